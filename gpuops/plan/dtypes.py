"""The dtypes that kernels support, and their accumulators."""

from __future__ import annotations

from functools import cache

import numpy as np

#: Types of ``kernels/common/types.cuh``, by NumPy's name of the dtype.
CTYPES = {
    "bool": "b8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip

#: Bytes of an element, by dtype name.
ITEMSIZE = {name: 2 if name == "bfloat16" else np.dtype(name).itemsize for name in CTYPES}

#: Types for copies, which compute nothing, by item size.
BITS = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "bits128"}

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = tuple(name for name in CTYPES if name.startswith(("bool", "int", "uint")))
REALS = (*FLOATS, *INTEGERS)


def accumulator(val: str) -> str:
    """The dtype in which values of a dtype accumulate: float32 for the half types.

    >>> accumulator("bfloat16"), accumulator("int8")
    ('float32', 'int8')
    """
    return "float32" if val in ("float16", "bfloat16") else val


@cache
def dtype_name(dtype: np.dtype) -> str:
    """``dtype.name``, which NumPy builds on each access."""
    return dtype.name


def ctype(dtype: np.dtype) -> str:
    """A dtype's name in ``kernels/common/types.cuh``."""
    return CTYPES[dtype_name(dtype)]
