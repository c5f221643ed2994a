"""The benchmark of federated self-supervision; see README.md."""
