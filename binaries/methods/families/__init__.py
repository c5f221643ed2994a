"""The rows of the table of methods, one file a family of experiments."""
