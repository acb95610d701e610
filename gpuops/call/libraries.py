"""Array libraries: what each brings, and what the launch cache reads of its arrays.

Arrays of a library are native, which calls read where they lie, or an adapter makes the calls with them, or both: the
adapter checks and converts arguments, and then makes the call with native ones. `gpuops.adapters.libraries` has the
table of libraries. None is imported to look for them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..device.context import ExecutionContext
from .facts import FACTS
from .operation import Call

#: An array's address, and of its key the shape, the strides in elements, the dtype, the device and the address modulo
#: 16. It raises TypeError for arrays whose calls are not cached.
Reader = Callable[[Any], tuple[int, tuple[Any, ...]]]


class Native(NamedTuple):
    """What makes arrays native."""

    types: tuple[type, ...]
    context: Callable[[Any], ExecutionContext | None]  # which executes calls with an array; None is the host
    read: Reader | None = None  # None: they have CuPy's attributes, which the launch cache reads in place
    facts: tuple[tuple[type, Callable[[Any], Any]], ...] = ()  # what else `FACTS` has, of its dtypes and the like


class Adapter(Protocol):
    """Makes calls with arrays of another library."""

    @property
    def mixes(self) -> bool:
        """Whether NumPy's and CuPy's arrays may be among them."""
        ...

    def call(self, call: Call, known: Any) -> Any:
        """The result of a call. ``known`` is what its key tells (`Missed`), if it has one."""
        ...


class Library(NamedTuple):
    """What a library brings."""

    adapter: Adapter | None = None
    native: Native | None = None


#: The libraries by the package that their array types are from, whose name a row is given. `OTHERS` is any other.
LIBRARIES: dict[str, Callable[[str], Library]] = {}
OTHERS = ""
SHARING = ("__dlpack__", "__cuda_array_interface__")  # how arrays share their memory

#: The execution context of an array, by its type.
CONTEXTS: dict[type, Callable[[Any], ExecutionContext | None]] = {}
#: Native types that have CuPy's attributes, and readers of the others but NumPy's, which the launch cache knows.
ARRAYS: set[type] = set()
READERS: dict[type, Reader] = {}


def register(native: Native) -> None:
    """Make arrays native from now on."""
    CONTEXTS.update(dict.fromkeys(native.types, native.context))
    if native.read is None:
        ARRAYS.update(native.types)
    else:
        READERS.update(dict.fromkeys(native.types, native.read))
    FACTS.update(native.facts)


CONTEXTS.update(dict.fromkeys((np.ndarray, np.generic), lambda array: None))


def adapter_of(array: Any) -> Adapter | None:
    """The adapter of the library that an array is of; None if it is native, or no array."""
    return adapter_of_type(type(array))  # type: ignore[arg-type]  # mypy holds that types have no hash


@lru_cache(maxsize=256)
def adapter_of_type(cls: type) -> Adapter | None:
    shares = any(hasattr(cls, name) for name in SHARING)
    if not shares and not hasattr(cls, "__dask_graph__"):
        return None
    for base in cls.__mro__:
        package = base.__module__.partition(".")[0]
        if package in LIBRARIES:
            return adapter_from(package)
        if base in CONTEXTS:
            return None
    return adapter_from(cls.__module__.partition(".")[0]) if shares else None


@cache
def adapter_from(package: str) -> Adapter | None:
    """The adapter of a library, whose arrays are native from now on if it brings what makes them so."""
    library = LIBRARIES.get(package, LIBRARIES[OTHERS])(package)
    if library.native is not None:
        register(library.native)
    return library.adapter
