"""The libraries of the race, each used as its own documentation shows.

All but `own` run in their own environments, which have neither TensorFlow nor anything
of tff_ssl. They import only `protocol` and their library.
"""
