"""Carrying out what ops describe: the launch cache, execution on devices, kernels' compilation, the NumPy engine."""
