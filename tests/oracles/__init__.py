"""What tests expect, computed in NumPy and float64 from definitions."""
