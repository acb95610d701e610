"""What the ops share: the checks of their arguments, and what these mean."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np

from ..call.operation import WEAK_TYPES
from ..errors import error
from ..plan.dtypes import CTYPES, dtype_name
from ..plan.geometry import MAX_RANK, Shape, overlaps_itself
from ..plan.work import ArraySpec, Machine

Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]

# ------------------------------------------------------------------------------------------------------------- arrays


def check_array(op: str, name: str, x: Any, dtypes: Iterable[str] = CTYPES) -> ArraySpec:
    """An operand must be an array, of a dtype that the op computes and that a device has."""
    if x is None:
        raise error(TypeError, op, f"{name} is None; gpuops takes arrays and scalars")
    if x.machine is not None:
        check_order(op, name, x.dtype)
        check_rank(op, name, x.ndim)
    check_dtype(op, name, x.dtype, dtypes)
    return x


def check_order(op: str, what: str, dtype: np.dtype) -> None:
    """Elements must be in native byte order."""
    if not dtype.isnative:
        raise error(TypeError, op, f"dtype {dtype.str} of {what} is not in native byte order")


def check_rank(op: str, what: str, ndim: int) -> None:
    """Kernels take at most this many dims."""
    if ndim > MAX_RANK:
        raise error(ValueError, op, f"{what} has {ndim} dims; on a GPU gpuops takes at most {MAX_RANK}")


def check_dtype(op: str, what: str, dtype: np.dtype, kinds: Iterable[str] = CTYPES) -> None:
    """The dtype must be one that the op computes."""
    if dtype_name(dtype) not in kinds:
        raise error(TypeError, op, f"dtype {dtype} of {what} is not supported")


def check_out(op: str, out: ArraySpec, shape: Shape, dtype: np.dtype, casting: Casting = "same_kind") -> None:
    """``out`` must have the result's shape, be writeable, and take the result's dtype."""
    if out.shape != shape:
        raise error(ValueError, op, f"out has shape {out.shape}, the result has shape {shape}")
    if not out.writeable:
        raise error(ValueError, op, "out is read-only")
    if overlaps_itself(shape, out.strides, out.itemsize):
        raise error(ValueError, op, f"out overlaps itself: its shape is {shape}, its strides {out.strides}")
    if out.machine is not None:
        check_order(op, "out", out.dtype)
    check_dtype(op, "out", out.dtype)
    if not np.can_cast(dtype, out.dtype, casting):
        rule = f"cannot cast the result from {dtype.name} to {out.dtype.name} of out with casting rule '{casting}'"
        raise error(TypeError, op, rule)



def as_mask(op: str, where: Any, shape: Shape) -> ArraySpec | None:
    """The mask that a caller gave as ``where``: boolean, and broadcasting to the shape of the array; None for True."""
    if where is True:
        return None
    if where is None:
        raise error(TypeError, op, "where is None; pass a mask, or True for all elements")
    check_array(op, "where", where)
    if where.dtype != bool:
        raise error(TypeError, op, f"where must be boolean, got {where.dtype.name}")
    if not broadcasts_to(where.shape, shape):
        raise error(ValueError, op, f"where of shape {where.shape} does not broadcast to {shape}")
    return where


# ------------------------------------------------------------------------------------------------- shapes and choices


def normalize_axis(op: str, axis: Any, shape: Shape) -> tuple[int, ...]:
    """``axis`` (None, an int or a tuple of ints, negative ones counted from the end) as sorted dims."""
    if axis is None:
        return tuple(range(len(shape)))
    dims = []
    for a in axis if isinstance(axis, tuple) else (axis,):
        a = as_index(op, "axis", a, axis)
        if not shape and axis in (0, -1):  # as NumPy, which treats a 0-d array like one of length 1
            return ()
        if not -len(shape) <= a < len(shape):
            raise error(np.exceptions.AxisError, op, f"axis {a} is out of range for shape {shape}")
        dims.append(a % len(shape))
    if len(set(dims)) != len(dims):
        raise error(ValueError, op, f"axis {axis!r} names a dimension twice for shape {shape}")
    return tuple(sorted(dims))


def as_index(op: str, name: str, index: Any, given: Any, kinds: str = "None, an int or a tuple of ints") -> int:
    """``index``, which must be an int and not a bool; the message shows all that was ``given``, and the valid kinds."""
    try:
        if not isinstance(index, (bool, np.bool_)):
            return operator.index(index)
    except TypeError:
        pass
    raise error(TypeError, op, f"{name} must be {kinds}, got {given!r}")


def broadcast_shapes(op: str, *shapes: Shape) -> Shape:
    """NumPy's broadcast of the shapes, of any number of dims.

    >>> broadcast_shapes("where", (3, 1), (4,), ())
    (3, 4)
    """
    ndim = max(map(len, shapes))
    result: list[int] = []
    for lengths in zip(*[(1,) * (ndim - len(shape)) + shape for shape in shapes], strict=True):
        long = [n for n in lengths if n != 1] or [1]
        if long.count(long[0]) < len(long):
            raise error(ValueError, op, f"shapes {', '.join(map(str, shapes))} do not broadcast")
        result.append(long[0])
    return tuple(result)


def broadcasts_to(shape: Shape, to: Shape) -> bool:
    """Whether an operand of ``shape`` broadcasts to exactly the shape ``to``.

    >>> broadcasts_to((3, 1), (2, 3, 4)), broadcasts_to((3,), (1,))
    (True, False)
    """
    tail = to[len(to) - len(shape) :] if len(shape) <= len(to) else ()
    return len(tail) == len(shape) and all(n in (1, m) for n, m in zip(shape, tail, strict=True))


def check_choice(op: str, what: str, value: Any, choices: Iterable[str | None]) -> None:
    """``value`` must be one of the choices, which the message lists."""
    if value not in (names := tuple(choices)):
        listed = ", ".join(str(name) for name in names)
        raise error(ValueError, op, f"unknown {what} {value!r}; valid: {listed}")


# -------------------------------------------------------------------------------------------- scalars and dtypes


#: Python's type of number, by the kind of NumPy's (V: bfloat16).
PYTHON: dict[str, Callable[[Any], Any]] = {"b": bool, "i": int, "u": int, "f": float, "V": float, "c": complex}


def fitted(op: str, name: str, value: Any, dtype: np.dtype) -> np.ndarray:
    """A scalar as a 0-d array of a dtype, which must represent it; NumPy's scalars are checked like Python's."""
    try:
        if isinstance(value, np.generic):
            value = PYTHON.get(value.dtype.kind, np.generic.item)(value)
        if type(value) is int and dtype.kind in "fV":
            value = float(value)
        return np.asarray(value, dtype)
    except (OverflowError, TypeError, ValueError) as failure:
        raise error(type(failure), op, f"{name} {value!r} cannot be represented in {dtype.name}: {failure}") from None


def scalar(name: str, value: np.ndarray, machine: Machine | None) -> ArraySpec:
    """The spec of a number beside arrays of a device."""
    return ArraySpec(name, (), value.dtype, (), machine, value=value.tobytes())


def result_type(op: str, **operands: Any) -> np.dtype:
    """The dtype to which the operands promote, leaving out None.

    >>> result_type("where", x=np.float32(1), y=2.5), result_type("where", x=1, y=2.5)
    (dtype('float32'), dtype('float64'))
    """
    given = [value for value in operands.values() if value is not None]
    weak = [value for value in given if type(value) in WEAK_TYPES]
    others = [value for value in given if type(value) not in WEAK_TYPES]
    strong = [value.dtype if hasattr(value, "dtype") else np.dtype(type(value)) for value in others]
    for name, value in operands.items():
        if hasattr(value, "dtype"):
            check_dtype(op, name, value.dtype)
    try:
        dtype = np.result_type(*strong) if strong else None
        if dtype is None or dtype.name != "bfloat16":  # with which NumPy takes a Python float for float64
            dtype = np.result_type(*[dtype] * (dtype is not None), *map(unit, weak))
        elif any(type(value) is complex for value in weak):
            dtype = np.dtype(np.complex64)
    except TypeError:
        names = " and ".join(each.name for each in strong)
        raise error(TypeError, op, f"dtypes {names} have no common dtype") from None
    check_dtype(op, "the result", dtype)
    return dtype


def unit(value: Any) -> Any:
    """Another scalar of the same type, which fits every dtype."""
    return type(value)(1)


def as_dtype(op: str, dtype: Any) -> np.dtype:
    """What the caller gave as ``dtype``."""
    try:
        made = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        raise error(TypeError, op, f"dtype {dtype!r} is not understood") from None
    check_order(op, "dtype", made)
    return made


def dtype_of(op: str, dtype: Any) -> np.dtype | None:
    """What a caller gave as ``dtype``, if anything."""
    return None if dtype is None else as_dtype(op, dtype)
