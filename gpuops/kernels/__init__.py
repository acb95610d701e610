"""The CUDA kernels (``.cu``, ``.cuh``): package data."""
