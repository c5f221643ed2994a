"""Builds the library's objects from a run's configuration (`config.run_config`)."""
