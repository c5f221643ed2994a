"""What a round costs, measured against a centralized step."""
