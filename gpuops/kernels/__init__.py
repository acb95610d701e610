"""The CUDA kernels (``.cu``, ``.cuh``: package data) and, per family, the pure planner that chooses and parameterises them."""
