"""Execution of TFF's computations: in this process, by a worker, or by many hosts."""
