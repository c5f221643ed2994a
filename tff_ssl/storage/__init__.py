"""Files that are whole or absent, and what is checked before a file is read."""
