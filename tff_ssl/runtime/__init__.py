"""Running algorithms: execution contexts, client data, the round loop, run folders."""
