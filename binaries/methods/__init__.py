"""The single table of methods: names, algorithms, objectives and defaults."""
