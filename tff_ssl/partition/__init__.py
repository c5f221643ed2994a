"""How a set of examples is dealt to clients: NumPy in, NumPy out."""
