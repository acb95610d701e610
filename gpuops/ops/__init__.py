"""The ops: NumPy's semantics, as pure descriptions of calls."""
