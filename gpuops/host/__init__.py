"""A CPU: NumPy, in blocks on threads, and what Numba compiles."""
