"""How far the signals of quality can be relied on: runs, and their tables."""
