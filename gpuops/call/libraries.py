"""The interface of array libraries, and what the launch cache reads from their arrays.

Native arrays are used in place. For other arrays an adapter makes the call. A library may have both: its adapter checks
and converts arguments, then makes the native call. `gpuops.adapters.libraries` has the table of libraries. Recognising
a library's arrays does not import it.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..device.context import ExecutionContext
from .facts import FACTS
from .operation import Call

#: Returns an array's address and its part of the key: shape, strides in elements, dtype, device, address modulo 16.
#: Raises TypeError for arrays whose calls are not cached.
Reader = Callable[[Any], tuple[int, tuple[Any, ...]]]


class Native(NamedTuple):
    """How native arrays are read."""

    types: tuple[type, ...]
    context: Callable[[Any], ExecutionContext | None]  # an array's execution context; None is the host
    read: Reader | None = None  # None: the launch cache reads CuPy's attributes inline
    facts: tuple[tuple[type, Callable[[Any], Any]], ...] = ()  # more entries of `FACTS`, such as for dtypes


class Adapter(Protocol):
    """Makes calls with arrays of a library."""

    @property
    def mixes(self) -> bool:
        """Whether NumPy and CuPy arrays may be passed with them."""
        ...

    def call(self, call: Call, known: Any) -> Any:
        """Make a call. ``known`` is the `Missed` of its key, if it has one."""
        ...


class Library(NamedTuple):
    """How calls with a library's arrays are made."""

    adapter: Adapter | None = None
    native: Native | None = None


#: Libraries by the package that defines the array type; each is a function of the package's name. `OTHERS`: any other.
LIBRARIES: dict[str, Callable[[str], Library]] = {}
OTHERS = ""
SHARING = ("__dlpack__", "__cuda_array_interface__")  # protocols by which arrays share memory

#: What makes calls with values of a type that stand for arrays of any library: given the public function, its operation
#: and the arguments.
STANDING: dict[type, Callable[..., Any]] = {}
#: The execution context of an array, by its type.
CONTEXTS: dict[type, Callable[[Any], ExecutionContext | None]] = {}
#: Native types with CuPy's attributes, and readers of other native types. The launch cache reads NumPy arrays itself.
ARRAYS: set[type] = set()
READERS: dict[type, Reader] = {}


def register(native: Native) -> None:
    """Register native array types."""
    CONTEXTS.update(dict.fromkeys(native.types, native.context))
    if native.read is None:
        ARRAYS.update(native.types)
    else:
        READERS.update(dict.fromkeys(native.types, native.read))
    FACTS.update(native.facts)


CONTEXTS.update(dict.fromkeys((np.ndarray, np.generic), lambda array: None))


def adapter_of(array: Any) -> Adapter | None:
    """The adapter of an array's library; None for arrays that need none, and for objects that are not arrays."""
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
    """The adapter of a library; the first call also registers the library's native types."""
    library = LIBRARIES.get(package, LIBRARIES[OTHERS])(package)
    if library.native is not None:
        register(library.native)
    return library.adapter
