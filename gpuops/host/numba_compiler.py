"""Functions of the host that Numba compiles. It is an optional dependency (``gpuops-cupy[cpu]``).

It compiles a function when it is first called with arrays of some dtypes. Functions assign elements, not arrays: for
`a[:] = b` Numba compiles the text of the error about shapes as well, for seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit


def kept(compiler: Callable[..., Any], function: Any) -> Any:
    """A function compiled by one of Numba's decorators; its code is kept on disk, where there is room for it."""
    try:
        return compiler(cache=True)(function)
    except RuntimeError:  # no folder can be written
        return compiler()(function)


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Have Numba compile a function that lets go of the GIL."""
    return lambda function: kept(partial(njit, nogil=True, **options), function)
