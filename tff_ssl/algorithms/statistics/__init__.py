"""DCCO and what follows from it: clients share statistics of their encodings."""
