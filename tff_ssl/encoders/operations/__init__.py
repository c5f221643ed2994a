"""The operations that networks are made of, each one class with all that it means."""
