"""The one table of methods: name, algorithm, objective and defaults."""
