"""How functions of tensors are computed on this machine: sessions, threads, chunks."""
