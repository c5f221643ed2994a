"""Execution of TFF's computations: in this process, by a worker, in actors of Ray."""
