"""Which execution context serves an argument: one library's arrays on one device, or the host."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..device.context import ExecutionContext
from ..errors import error
from .libraries import ARRAYS, CONTEXTS, adapter_of

SCALARS = (bool, int, float, complex, np.generic)


def is_scalar(value: Any) -> bool:
    """Whether a value is a scalar or a 0-d NumPy array, which mix with arrays of any library and device."""
    return isinstance(value, SCALARS) or (type(value) is np.ndarray and value.ndim == 0)


def context_of(op: str, arrays: dict[str, Any]) -> ExecutionContext | None:
    """The execution context that all arrays share; None is the host.

    Scalars mix with any device. Raises TypeError for host and device arrays together, ValueError for two devices.
    """
    found: tuple[str, Any, ExecutionContext | None] | None = None
    for name, array in arrays.items():
        if type(array) in ARRAYS:
            context = CONTEXTS[type(array)](array)
        elif name != "out" and is_scalar(array):
            continue
        else:
            context = find(op, name, array)
        if name == "out" and context is None and not isinstance(array, np.ndarray):
            raise not_an_array(op, name, array)
        if found is None:
            found = name, array, context
        elif context is not found[2]:
            if context is None or found[2] is None:
                host_array(op, *((name, array) if context is None else found[:2]))  # raises if it is not an array
                both = f"{found[0]} is a {kind(found[1])}, {name} is a {kind(array)}"
                raise error(TypeError, op, f"NumPy and CuPy arrays do not mix: {both}")
            labels = found[2].device.label, context.device.label
            raise error(ValueError, op, f"{found[0]} is on {labels[0]}, {name} is on {labels[1]}")
    return found[2] if found else None


def find(op: str, name: str, array: Any) -> ExecutionContext | None:
    """The execution context of one array; None (the host) also for lists and whatever else NumPy converts."""
    ma = sys.modules.get("numpy.ma")
    if ma is not None and isinstance(array, ma.MaskedArray):
        rule = "pass where=mask.filled(False)" if name == "where" else "pass its data, and ~mask as where="
        raise error(TypeError, op, f"{name} is a {kind(array)}; masked arrays are not supported: {rule}")
    adapter_of(array)  # registers its library's native types
    for cls in type(array).__mro__:
        if cls in CONTEXTS:
            return CONTEXTS[cls](array)
    if isinstance(array, (str, bytes)):
        raise not_an_array(op, name, array)
    return None


def host_array(op: str, name: str, value: Any, truth: bool = False) -> np.ndarray:
    """A host operand as a NumPy array; of bools if ``truth``."""
    try:
        array = np.asarray(value, bool if truth else None)
    except (TypeError, ValueError) as failure:  # such as for ragged lists
        exact = TypeError if isinstance(failure, TypeError) else ValueError
        raise error(exact, op, f"{name} cannot be converted to an array: {failure}") from None
    opaque = array.ndim == 0 and not (is_scalar(value) or isinstance(value, np.ndarray))
    if opaque and np.asarray(value).dtype == object:
        raise not_an_array(op, name, value)
    return array


def not_an_array(op: str, name: str, value: Any) -> TypeError:
    """The error for an argument that NumPy cannot convert to an array."""
    words = kind(value)
    hint = f"; pass {name}.toarray()" if hasattr(value, "toarray") else ""  # a sparse matrix
    return error(TypeError, op, f"{name} is {'an' if words[0] in 'aeio' else 'a'} {words}, not an array{hint}")


def kind(array: Any) -> str:
    """A type's name with its top-level package: ``numpy.ndarray``, ``dict``."""
    return f"{type(array).__module__.split('.')[0]}.{type(array).__name__}".removeprefix("builtins.")
