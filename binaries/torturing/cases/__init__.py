"""Bad inputs as a table, by what is wrong."""
