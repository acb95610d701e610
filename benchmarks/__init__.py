"""gpuops against its peers and the machine's limits: ``python -m gpuops bench``."""
