"""The documentation site's generated parts: sources, docstrings and notebooks."""
