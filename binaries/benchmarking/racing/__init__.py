"""The race: other libraries for federated learning on the same work."""
