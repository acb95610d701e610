"""The CUDA kernels (``.cu``, ``.cuh``: package data) and each family's pure planner, which chooses among them."""
