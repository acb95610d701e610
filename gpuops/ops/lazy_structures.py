"""What expressions compute, without their arrays, numbers and shapes: found once for each way to combine others."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..call.arrays import kind
from ..definition.program import STACK, UFUNCS, Program, Step
from ..errors import error
from .arguments import fitted
from .lazy_dtypes import resolved

DEPTH = 64  # operations one inside the other, at most
ARRAYS = 16  # arrays of an expression, at most
STEPS = 256  # operations of an expression, at most
LIMIT = 4096  # structures that are kept

Places = tuple[int, ...]


class Structure:
    """The program of an expression, its last operation (``name``; "" if there is none) and that one's dtypes."""

    __slots__ = ("depth", "dtype", "dtypes", "name", "program")

    def __init__(self, program: Program, name: str, dtypes: tuple[np.dtype, ...], depth: int) -> None:
        self.program, self.name, self.dtypes, self.depth = program, name, dtypes, depth
        self.dtype = dtypes[-1]


class Number:
    """A constant of an expression, by its bits. Each is another parameter, though it may have the value of one."""

    __slots__ = ("bits",)

    def __init__(self, bits: int) -> None:
        self.bits = bits


@lru_cache(maxsize=LIMIT)
def leaf(dtype: np.dtype, number: bool = False) -> Structure:
    """The structure of an array, or of a number."""
    return Structure(Program((), (dtype,), ()) if number else Program((dtype,), (), ()), "", (dtype,), 0)


@lru_cache(maxsize=LIMIT)
def of_one(name: str, x: Structure) -> Structure:
    """That of a ufunc of one operand."""
    return combined(name, resolved(name, x.dtype), (x,), (own_places(x),))


@lru_cache(maxsize=LIMIT)
def of_two(name: str, a: Structure, b: Structure, arrays: Places, numbers: Places) -> Structure:
    """That of a ufunc of two operands; ``arrays`` and ``numbers``: where those of b are among those of both."""
    return combined(name, resolved(name, a.dtype, b.dtype), (a, b), (own_places(a), (arrays, numbers)))


@lru_cache(maxsize=LIMIT)
def of_scalar(name: str, x: Structure, kind: type, at: int) -> tuple[Structure, np.dtype, Any]:
    """That of a ufunc of x and a Python scalar of type ``kind``, which is operand ``at``; the scalar's dtype; and that
    dtype's limits, where NumPy compares with ints of any size."""
    dtypes = resolved(name, *((kind, x.dtype) if at == 0 else (x.dtype, kind)))
    own, number = own_places(x), leaf(dtypes[at], True)
    place = ((), (len(own[1]),))
    parts, places = ((number, x), (place, own)) if at == 0 else ((x, number), (own, place))
    limits = np.iinfo(dtypes[at]) if UFUNCS[name].compares and kind is int and dtypes[at].kind in "iu" else None
    return combined(name, dtypes, parts, places), dtypes[at], limits


def own_places(x: Structure) -> tuple[Places, Places]:
    """The places of arrays and numbers that are the first ones."""
    return from_first(len(x.program.arrays)), from_first(len(x.program.constants))


@lru_cache(maxsize=LIMIT)
def combined(
    name: str, dtypes: tuple[np.dtype, ...], operands: tuple[Structure, ...], places: tuple[tuple[Places, Places], ...]
) -> Structure:
    """That of an operation in these dtypes; ``places``: where each operand's arrays and numbers are among those of all.
    What two operands both compute is computed once."""
    if any([x.name == STACK for x in operands]):
        raise error(TypeError, name, f"{STACK} must be the last operation of an expression; stack its results instead")
    arrays: dict[int, np.dtype] = {}
    constants: dict[int, np.dtype] = {}
    for x, (of_arrays, of_numbers) in zip(operands, places, strict=True):
        arrays.update(zip(of_arrays, x.program.arrays, strict=True))
        constants.update(zip(of_numbers, x.program.constants, strict=True))
    first = len(arrays) + len(constants)
    steps: dict[Step, int] = {}
    results = []
    for x, (of_arrays, of_numbers) in zip(operands, places, strict=True):
        at = [*of_arrays, *[len(arrays) + place for place in of_numbers]]
        for step in x.program.steps:
            moved = step._replace(args=tuple([at[place] for place in step.args]))
            at.append(steps.setdefault(moved, first + len(steps)))
        results.append(at[-1])
    depth = 1 + max([x.depth for x in operands])
    for count, what, most in (
        (depth, "operations one inside the other", DEPTH), (len(arrays), "arrays", ARRAYS),
        (len(steps) + 1, "operations", STEPS),
    ):  # fmt: skip
        if count > most:
            rule = f"an expression has at most {most}, got {count} {what}; evaluate parts of it first"
            raise error(ValueError, "lazy", rule)
    program = Program(
        tuple([arrays[i] for i in range(len(arrays))]), tuple([constants[i] for i in range(len(constants))]),
        (*steps, Step(name, dtypes, tuple(results))),
    )  # fmt: skip
    return Structure(program, name, dtypes, depth)


# ------------------------------------------------------------------------------------------------------------- numbers


def bits_of(name: str, value: Any, dtype: np.dtype) -> int:
    """The bits of a scalar in a dtype, which must represent it."""
    return known_bits(name, value, dtype) if value else found_bits(name, value, dtype)  # (-0.0 is equal to 0.0)


def found_bits(name: str, value: Any, dtype: np.dtype) -> int:
    """The same, without a memory."""
    return int.from_bytes(fitted(name, "a scalar", value, dtype).tobytes(), "little")


known_bits = lru_cache(maxsize=LIMIT, typed=True)(found_bits)


def of_bits(bits: int, dtype: np.dtype) -> Any:
    """A number of a dtype, by its bits."""
    return np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype)[0]


# -------------------------------------------------------------------------------------------------------------- leaves


def united(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[tuple[Any, ...], Places]:
    """The arrays, or the numbers, of two expressions, each once; and where those of the second are among them."""
    if not b:
        return a, ()
    if a is b or not a:
        return b, from_first(len(b))
    places = []
    for each in b:
        found = [i for i, other in enumerate(a) if other is each]
        places.append(found[0] if found else len(a))
        a = a if found else (*a, each)
    return a, tuple(places)


@lru_cache(maxsize=LIMIT)
def from_first(count: int) -> Places:
    return tuple(range(count))


def all_united(several: list[tuple[Any, ...]]) -> tuple[tuple[Any, ...], list[Places]]:
    """The same of several expressions."""
    every: tuple[Any, ...] = ()
    places = []
    for each in several:
        every, place = united(every, each)
        places.append(place)
    return every, places


def together(name: str, context: Any, other: Any, arrays: Any, of_other: Any) -> Any:
    """What the arrays of two expressions share: an execution context or, of other libraries, the adapter."""
    if context is other or not of_other:
        return context
    if not arrays:
        return other
    for each, beside in ((context, other), (other, context)):
        if getattr(each, "mixes", False) and not hasattr(beside, "mixes"):
            return each
    if hasattr(context, "device") and hasattr(other, "device"):
        raise error(ValueError, name, f"arrays are on {context.device.label} and {other.device.label}")
    both = f"{kind(arrays[0])} and {kind(of_other[0])}"
    raise error(TypeError, name, f"arrays of two libraries do not mix: {both}")
