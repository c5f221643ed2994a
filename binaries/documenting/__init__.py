"""The documentation's site: what is made of sources, docstrings and notebooks."""
