"""The papers' claims: data, runs, verdicts and their pages."""
