"""The claims of the papers: their runs, the arithmetic of verdicts, docs/claims.md."""
