"""The race: other libraries for federated learning do the same work."""
