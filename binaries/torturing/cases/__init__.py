"""The table of bad inputs, by what is wrong with them."""
