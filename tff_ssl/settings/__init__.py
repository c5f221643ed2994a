"""Settings of methods and of training: ranges, papers' values, and what they mean."""
