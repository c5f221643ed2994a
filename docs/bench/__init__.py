"""The cost of a round, measured against a centralized step."""
