"""The libraries of the race, each as its own documentation has it used.

All but `own` run in environments of their own, where there is no TensorFlow and nothing
of tff_ssl: they import `protocol`, and their library.
"""
