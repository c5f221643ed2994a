"""Federated algorithms, one per file; families that share code are folders.

An algorithm trains whatever objective it is given, unless its point is a loss. A file
has a configuration and a function with the name of the method, which returns a server
state and phases (`federated.phases`); `federated.processes.build` makes a process of
them. Global-SSFL is FedAvg of SimSiam.
"""
