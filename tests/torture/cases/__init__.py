"""Tables of bad inputs, by what is wrong with them."""
