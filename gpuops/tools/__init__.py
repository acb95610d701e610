"""Tools around the ops: info, demo, warm-up, the kernel cache, other libraries' names."""
