"""The table of array libraries, by the package that defines the array type."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..call.key import Missed
from ..call.libraries import LIBRARIES, OTHERS, Library, Native
from ..call.operation import Call
from .exchange import Exchange, jax_device, same_namespace, to_cuda, to_cudf, to_jax, to_numba


def cupy(package: str) -> Library:
    """CuPy arrays are native."""
    from cupy import ndarray

    from ..device import cuda

    return Library(native=Native((ndarray,), cuda.device_of))


def pytorch(package: str) -> Library:
    """Tensors are native too; an adapter checks them, and makes NumPy arrays of CPU tensors."""
    from .pytorch import NATIVE, PYTORCH

    return Library(PYTORCH, NATIVE)


class Dask(NamedTuple):
    """Dask, whose chunks are NumPy or CuPy arrays."""

    mixes: bool = True

    def call(self, call: Call, known: Missed | None) -> Any:
        from .dask import on_chunks

        return on_chunks(call)


LIBRARIES |= {
    "cupy": cupy,
    "torch": pytorch,
    "dask": lambda package: Library(Dask()),
    **dict.fromkeys(
        ("jax", "jaxlib"), lambda package: Library(Exchange("jax", to_jax, jax_device, mutable=False))
    ),
    **dict.fromkeys(("numba", "numba_cuda"), lambda package: Library(Exchange("numba", to_numba))),
    "cudf": lambda package: Library(Exchange("cudf", to_cudf)),
    "cuda": lambda package: Library(Exchange("cuda", to_cuda)),
    OTHERS: lambda package: Library(Exchange(package, same_namespace)),
}
