"""One run: its training, its evaluation, and the contents of its folder."""
