"""What all packages share: sessions, threads and chunks of work; checks of numbers."""
