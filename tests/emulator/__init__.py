"""Runs CUDA C++ kernels on the CPU and checks every memory access and barrier.

>>> module = compile('extern "C" __global__ void fill(int* x) { x[threadIdx.x] = 7; }')
>>> x = empty(4, "int32")
>>> module.launch("fill", (1, 1, 1), (4, 1, 1), [x])
>>> x
array([7, 7, 7, 7], dtype=int32)

The text of a kernel (``source.py`` rewrites what g++ cannot read, ``cuda.h`` declares the rest of
CUDA) is compiled with g++'s thread sanitizer, whose call before each memory access ends in our own
runtime (``runtime.cpp``) in place of the sanitizer's.
"""

from .build import EmulatorError, available
from .elementwise import ElementwiseKernel
from .module import Module, compile, empty

__all__ = ["ElementwiseKernel", "EmulatorError", "Module", "available", "compile", "empty"]
