"""Which library an array is of: by the name of the package that its type is from. None is imported to look for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from ..call.arrays import CONTEXTS, is_scalar, kind
from ..call.dispatch import ADAPTERS, Adapter
from ..call.key import Missed
from ..call.operation import Call
from ..errors import error
from .exchange import Exchange, jax_device, same_namespace, to_cuda, to_cudf, to_jax, to_numba


def adapter_of(call: Call) -> Adapter | None:
    """The adapter of the library whose arrays are among those of a call; None if all are native.

    Raises TypeError if not all of them are of that library, but for scalars.
    """
    arrays = call.arrays
    first = next((name for name, value in arrays.items() if library_of(value) is not None), None)
    if first is None:
        return None
    library = library_of(arrays[first])
    assert library is not None
    for name, value in arrays.items():
        other = library_of(value)
        accepted = other is None and (library.mixes or (is_scalar(value) and name != "out"))
        if other != library and not accepted:
            both = f"{first} is a {kind(arrays[first])}, {name} is a {kind(value)}"
            raise error(TypeError, call.name, f"arrays of two libraries do not mix: {both}")
    return library


class Library(Adapter, Protocol):
    """A library whose arrays are foreign here."""

    @property
    def mixes(self) -> bool:
        """Whether NumPy's and CuPy's arrays may be among them."""
        ...


def library_of(value: Any) -> Library | None:
    """The library of a foreign array; None of a native one, and of what is no array."""
    return library_of_type(type(value))  # type: ignore[arg-type]  # mypy holds that types have no hash


SHARING = ("__dlpack__", "__cuda_array_interface__")  # how arrays share their memory


@lru_cache(maxsize=256)
def library_of_type(cls: type) -> Library | None:
    if not any(hasattr(cls, name) for name in (*SHARING, "__dask_graph__")):
        return None
    for base in cls.__mro__:
        package = base.__module__.partition(".")[0]
        if package in ("cupy", "numpy") or (base in CONTEXTS and package not in LIBRARIES):
            return None
        if package in LIBRARIES:
            return LIBRARIES[package]()
    if not any(hasattr(cls, name) for name in SHARING):
        return None
    return Exchange(cls.__module__.partition(".")[0], same_namespace)


class Dask(NamedTuple):
    """Dask, whose arrays are made of NumPy's or CuPy's."""

    mixes: bool = True

    def call(self, call: Call, known: Missed | None) -> Any:
        from .dask import OPS

        return call.make(OPS[call.name], call.given)


def pytorch() -> Library:
    from .pytorch import PYTORCH

    return PYTORCH


#: A library is a row: the package of its array types, and what makes a call with them.
LIBRARIES: dict[str, Callable[[], Library]] = {
    "torch": pytorch,
    "dask": Dask,
    **dict.fromkeys(("jax", "jaxlib"), lambda: Exchange("jax", to_jax, jax_device, mutable=False)),
    **dict.fromkeys(("numba", "numba_cuda"), lambda: Exchange("numba", to_numba)),
    "cudf": lambda: Exchange("cudf", to_cudf),
    "cuda": lambda: Exchange("cuda", to_cuda),
}

ADAPTERS.append(adapter_of)
