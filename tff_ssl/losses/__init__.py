"""Self-supervised losses: pure functions of encodings or of their statistics."""
