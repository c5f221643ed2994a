"""Pages, and the programs that make their figures and tables: `python -m docs.NAME`."""
