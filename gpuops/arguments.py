"""What the ops share: arguments as kernels and NumPy take them, and what becomes of a result for which there is an
``out``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .device import Device, is_scalar, overlap, run
from .errors import error
from .kernels import broadcast as maps
from .plan import BITS, Shape, as_dtype, broadcasts_to, check_dtype

# ------------------------------------------------------------------------------------------------------------- arrays


def as_array(op: str, device: Device | None, name: str, x: Any) -> Any:
    """An array on the device, in the machine's byte order and with elements that lie as kernels read them: as it is, a
    copy, or made from a list or scalar."""
    if x is None:
        raise error(TypeError, op, f"{name} is None; gpuops takes arrays and scalars")
    if device is None or is_scalar(x):
        x = np.asarray(x)
        x = x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
        return x if device is None else device.from_host(x)
    return whole(device, x)


def is_whole(device: Device, array: Any) -> bool:
    """Whether elements are whole items apart and aligned to their dtype; complex numbers may lie at multiples of half
    their size, as those of a view of real numbers do.
    """
    itemsize = array.itemsize
    for n, stride in zip(array.shape, array.strides, strict=True):
        if stride % itemsize and n > 1:
            return array.size == 0
    return not array.size or device.pointer(array) % (itemsize // 2 if array.dtype.kind == "c" else itemsize) == 0


def whole(device: Device, array: Any) -> Any:
    """An array whose elements lie as kernels read them: itself, or a copy."""
    if is_whole(device, array):
        return array
    shape = tuple([n if stride else 1 for n, stride in zip(array.shape, array.strides, strict=True)])
    with device.current():
        copy = device.empty(shape, array.dtype)
        move(device, copy, array)
        device.keep(copy)
        return device.broadcast_to(copy, array.shape)


def move(device: Device, to: Any, array: Any) -> None:
    """Copy the elements of an array into one of the same dtype, which may both lie anywhere: in pieces of as many bytes
    as they are aligned to. The array may repeat along dims in which the other has length 1."""
    if not to.size:
        return
    at = to.itemsize | device.pointer(to) | device.pointer(array)
    dims = [(n, s, t) for n, s, t in zip(to.shape, to.strides, array.strides, strict=True) if n > 1]
    for _, stride, other in dims:
        at |= stride | other
    size = at & -at
    pieces = to.itemsize // size
    shape = (*(n for n, _, _ in dims), pieces)

    def argument(name: str, operand: Any, k: int) -> maps.Arg:
        strides = (*(dim[k] // size for dim in dims), 1)
        return maps.Arg(name, BITS[size], size, strides, device.pointer(operand) % 16)

    run(maps.plan("Expand", shape, argument("out", to, 1), (argument("a", array, 2),)), device, out=to, a=array)


def as_mask(op: str, device: Device | None, where: Any) -> Any:
    """The mask that a caller gave as ``where``, as an array on the device; None for True. What is no array is a mask by
    its truth, as in NumPy."""
    if where is None:
        raise error(TypeError, op, "where is None; pass a mask, or True for all elements")
    if where is True:
        return None
    mask = where if hasattr(where, "dtype") else np.asarray(where, bool)
    return as_array(op, device, "where", mask)


def check_mask(op: str, mask: Any, shape: Shape) -> None:
    """``where`` must be boolean and broadcast to the shape of the array."""
    if mask is None:
        return
    if mask.dtype != bool:
        raise error(TypeError, op, f"where must be boolean, got {mask.dtype.name}")
    if not broadcasts_to(mask.shape, shape):
        raise error(ValueError, op, f"where of shape {mask.shape} does not broadcast to {shape}")


# ------------------------------------------------------------------------------------------------------------ scalars


def as_number(value: Any) -> Any:
    """A scalar on the host: of an array without dims of any library its element, for which a GPU is waited."""
    if type(value) is np.ndarray and value.ndim == 0:
        return value[()]
    if is_scalar(value) or getattr(value, "shape", None) != () or not hasattr(value, "item"):
        return value
    return value.item()


def fitted(op: str, name: str, value: Any, dtype: np.dtype) -> np.ndarray:
    """A scalar as a 0-d array of a dtype, in which a Python int must fit."""
    try:
        if type(value) is int and dtype.kind in "fV":  # (V: bfloat16)
            value = float(value)
        return np.asarray(value, dtype)
    except (OverflowError, TypeError, ValueError) as failure:
        raise error(type(failure), op, f"{name} {value!r} does not become {dtype.name}: {failure}") from None


WEAK = (int, float, complex)  # Python's scalars yield to the dtypes of arrays (NEP 50)


def result_type(op: str, **operands: Any) -> np.dtype:
    """The dtype to which the operands promote; None is no operand.

    >>> result_type("where", x=np.float32(1), y=2.5), result_type("where", x=1, y=2.5)
    (dtype('float32'), dtype('float64'))
    """
    given = [value for value in operands.values() if value is not None]
    weak = [value for value in given if type(value) in WEAK]
    others = [value for value in given if type(value) not in WEAK]
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
        raise error(TypeError, op, f"dtypes {names} do not promote to a common one") from None
    check_dtype(op, "the result", dtype)
    return dtype


def unit(value: Any) -> Any:
    """Another scalar of the same type, which fits every dtype."""
    return type(value)(1)


def dtype_of(op: str, dtype: Any) -> np.dtype | None:
    """What a caller gave as ``dtype``, if anything."""
    return None if dtype is None else as_dtype(op, dtype)


# ------------------------------------------------------------------------------------------------------------ results


def clash(device: Device, out: Any, operand: Any) -> bool:
    """Whether writing to ``out`` may spoil elements of an operand not yet read: they share memory, but are not the
    same elements in the same places."""
    same = (
        device.pointer(out) == device.pointer(operand)
        and (out.shape, out.strides, out.itemsize) == (operand.shape, operand.strides, operand.itemsize)
    )  # fmt: skip
    return not same and overlap(device, out, operand)


def spoils(device: Device, out: Any, *operands: Any) -> bool:
    """Whether a kernel cannot write to ``out``: it shares memory with what is read, or its elements lie askew."""
    return not is_whole(device, out) or any(overlap(device, out, operand) for operand in operands)


def delivered(device: Device, target: Any, out: Any) -> Any:
    """The result: a new array, or ``out``, to which it is copied from a temporary one."""
    if out is None or target is out:
        return target
    move(device, out, target)
    device.keep(target)
    return out
