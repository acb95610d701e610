"""Functions of the host that Numba compiles. It is an optional dependency (``gpuops-cupy[cpu]``).

It compiles a function when it is first called with arrays of some dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit, types
from numba.extending import intrinsic


def kept(compiler: Callable[..., Any], function: Any) -> Any:
    """A function compiled by one of Numba's decorators; its code is kept on disk, where there is room for it."""
    try:
        return compiler(cache=True)(function)
    except RuntimeError:  # no folder can be written
        return compiler()(function)


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Have Numba compile a function that lets go of the GIL."""
    return lambda function: kept(partial(njit, nogil=True, **options), function)


@intrinsic  # type: ignore[untyped-decorator]
def widest_vectors(context: Any) -> Any:
    """Have LLVM take all 512 bits that a processor has for vectors: by itself it takes 256 on Intel's."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # llvmlite checks names, of which it knows those without values.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), build
