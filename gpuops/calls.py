"""Calls that were made before: what such a call does is looked up and done again, without asking anything anew.

What a call does is decided by its arguments: by shape, strides, dtype, device and address modulo 16 of arrays, by type
and value of all else. A call of a new kind takes the long way through checks and planning, and is watched: if all that
it did on the device was to run one plan on the caller's arrays and on one of its own, the result, then that is what the
next call of this kind does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from struct import Struct
from typing import Any

import numpy as np

from .device import LAYOUTS, Device, Run, elements, extent, take, watched
from .plan import CTYPES, contiguous_strides

LIMIT = 4096  # kinds of calls that are remembered: the latest ones

DTYPES = [np.dtype(name) for name in CTYPES if name != "bfloat16"]
#: What of an argument that is no array decides, by its type; calls with arguments of other types take the long way.
FACTS: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((bool, int, str, type, type(None)), lambda value: value),
    **dict.fromkeys(map(type, DTYPES), lambda dtype: dtype),
    **dict.fromkeys((dtype.type for dtype in DTYPES), lambda scalar: (scalar.dtype, scalar.tobytes())),
    float: Struct("d").pack,  # the bits: 0.0 and -0.0 are equal, NaN and NaN are not
    complex: lambda value: np.complex128(value).tobytes(),
    tuple: lambda values: tuple([(type(value), FACTS[type(value)](value)) for value in values]),
}
NEW = -1  # in the place of an index: the array that is made for the result


class Memory:
    """What is known of a kind of calls: nothing at first."""

    call: Call | None = None


@lru_cache(maxsize=LIMIT, typed=True)
def memory(op: Callable[..., Any], *facts: Any) -> Memory:
    """The memory of a kind of calls."""
    return Memory()


def remembered(op: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does again what it did when it was called like this before."""

    @wraps(op)
    def call(*args: Any, **options: Any) -> Any:
        arrays: list[Any] = []
        facts: list[Any] = [(len(args), *options)]
        try:
            for value in (*args, *options.values()):
                if layout := LAYOUTS.get(type(value)):
                    arrays.append(value)
                    facts.append(layout(value))
                else:
                    facts.append(FACTS[type(value)](value))
            if len(arrays) > 1:
                facts += repeats(arrays)
            known = memory(op, *facts) if arrays else None
        except (KeyError, TypeError):  # a type that is in no table, an element without a hash
            known = None
        if known is None:
            return op(*args, **options)
        made = known.call
        if made is not None and made.fits(arrays) and (result := made.again(arrays)) is not None:
            return result
        result, runs = watched(op, *args, **options)
        known.call = Call.of(runs, arrays, result) or made
        return result

    return call


def repeats(arrays: list[Any]) -> list[int]:
    """Which of the arrays are the same one: nothing, if all are different."""
    ids = [*map(id, arrays)]
    return [] if len(set(ids)) == len(ids) else [*map(ids.index, ids)]


class Call:
    """What a call does: run a plan on the caller's arrays and on a new one, if the caller gave none for the result."""

    def __init__(self, run: Run, arrays: list[Any], result: Any) -> None:
        index = {id(array): i for i, array in reversed([*enumerate(arrays)])}
        self.plan, self.device, self.steps, named = run
        self.result = index.get(id(result), NEW)
        self.places = [(name, index.get(id(array), NEW)) for name, array in named.items() if array is not None]
        if self.result == NEW:
            strides = elements(result)
            dense = strides == contiguous_strides(result.shape)
            self.made = result.shape, result.dtype, None if dense else strides
        else:
            first = self.device.pointer(result)
            self.spans = [span(self.device, array) for array in arrays]
            self.in_place = [self.device.pointer(array) == first for array in arrays]

    @classmethod
    def of(cls, runs: list[Run], arrays: list[Any], result: Any) -> Call | None:
        """What a call did, if that was to run one plan on the caller's arrays and the result, and nothing else."""
        if len(runs) != 1:
            return None
        used = [id(array) for array in runs[0].arrays.values() if array is not None]
        known = [*map(id, arrays)]
        if id(result) not in known:
            known.append(id(result))
            if misaligned(runs[0].device, result):
                return None
        if sorted(used) != sorted(known):  # a copy, a view, or an array that was asked for its values
            return None
        call = cls(runs[0], arrays, result)
        return call if call.fits(arrays) else None

    def fits(self, arrays: list[Any]) -> bool:
        """Whether nothing that the call reads lies in the result, or only where it did before: in the same places."""
        if self.result == NEW:
            return True
        first = self.device.pointer(arrays[self.result])
        below, above = self.spans[self.result]
        for array, (low, high), in_place in zip(arrays, self.spans, self.in_place, strict=True):
            apart = self.device.pointer(array) - first
            if low + apart < above and below < high + apart and not (in_place and apart == 0):
                return False
        return True

    def again(self, arrays: list[Any]) -> Any:
        """Do it with other arrays of the same kind; None if the new one does not lie as the plan needs it."""
        with self.device.current():
            if self.result == NEW:
                result = self.device.empty(*self.made)
                if misaligned(self.device, result):
                    return None
            else:
                result = arrays[self.result]
            named = {name: result if i == NEW else arrays[i] for name, i in self.places}
            take(self.plan, self.device, self.steps, named)
            return result


def misaligned(device: Device, array: Any) -> bool:
    """Whether an array does not begin at a multiple of 16, as those of a caller's own allocator may not."""
    return device.pointer(array) % 16 != 0


def span(device: Device, array: Any) -> tuple[int, int]:
    """The first byte of an array and the one after its last, counted from the first element."""
    low, high = extent(device, array)
    return low - device.pointer(array), high - device.pointer(array)
