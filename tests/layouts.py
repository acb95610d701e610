"""Arrays of every dtype, shape and memory layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from gpuops.plan import dtypes

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)  # its ``kind`` is V
DTYPES = tuple(map(np.dtype, dtypes.CTYPES))
FLOATS = tuple(map(np.dtype, dtypes.FLOATS))
HALVES = tuple(d for d in FLOATS if d.itemsize == 2)
BOOL = (np.dtype(bool),)
INTS = tuple(d for d in DTYPES if d.kind in "iu")
COMPLEX = tuple(d for d in DTYPES if d.kind == "c")
REALS = BOOL + INTS + FLOATS

#: Representative dtypes that properties draw from; one test per op takes all of DTYPES.
COMMON = tuple(map(np.dtype, ("f4", "f4", "f8", "f2", BFLOAT16, "i1", "i8", "u1", "?", "c8")))
COMMON_REALS = tuple(d for d in COMMON if d in REALS)
#: Other dtypes of out, to which a result is cast, by the kind of its dtype.
CASTS = {"b": "?bifF", "i": "bildF", "u": "BHIlf", "f": "efdFD", "V": "fd", "c": "FD"}

LAYOUTS = ("C", "F", "transposed", "sliced", "reversed", "broadcast", "unaligned", "window")
#: A shape with an axis of a given length, and that axis.
ALONG: dict[str, Callable[[int], tuple[tuple[int, ...], int | None]]] = {
    "last": lambda length: ((3, length), 1),
    "first": lambda length: ((length, 3), 0),
    "whole": lambda length: ((length,), None),
}


def inexact(dtype: np.dtype) -> bool:
    """Floating or complex."""
    return dtype in FLOATS or dtype.kind == "c"


def wide(dtype: np.dtype) -> np.dtype:
    """The dtype of a reference: float64 or complex128 for inexact dtypes, else the dtype itself."""
    if dtype.kind == "c":
        return np.dtype(np.complex128)
    return np.dtype(np.float64) if dtype in FLOATS else dtype


def smallest_subnormal(dtype: np.dtype) -> float:
    """The smallest positive number of a dtype."""
    return float(ml_dtypes.finfo(dtype).smallest_subnormal)


def random(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype, special: bool = False) -> np.ndarray:
    """Values of magnitude up to about 4, for floats with NaN, infinities, both zeros and subnormals if ``special``.

    Integers take small values and, if ``special``, ones of their whole range.
    """
    if dtype in BOOL:
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(max(info.min, -4), 5, shape, dtype)
        if special:
            whole = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
            values = np.where(rng.random(shape) < 0.5, whole, values)
        return values
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        values = np.empty(shape, dtype)
        values.real, values.imag = random(rng, shape, part, special), random(rng, shape, part, special)
        return values
    values = (rng.normal(size=shape) * 1.5).astype(dtype)
    if special:
        tiny = smallest_subnormal(dtype)
        odd = rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -3 * tiny]), shape).astype(dtype)
        values = np.where(rng.random(shape) < rng.choice([0.02, 0.2]), odd, values)
    return values


def sample(shape: Sequence[int], dtype: Any = "f4", seed: int = 0, special: bool = False) -> np.ndarray:
    """The values of ``random`` that belong to a seed."""
    return np.asarray(random(np.random.default_rng(seed), shape, np.dtype(dtype), special))


def strided(
    shape: Sequence[int], dtype: np.dtype, order: Sequence[int], steps: Sequence[int], start: int = 0
) -> np.ndarray:
    """An array in new memory, ``start`` elements from its beginning.

    ``order`` lists the dims from the outermost in memory; ``steps`` are the slicing steps of each dim (negative:
    reversed, 0: broadcast), of an array that is dense in that order.
    """
    strides, running, first = [0] * len(shape), 1, start
    for d in reversed(order):
        strides[d] = steps[d] * running
        if steps[d] < 0:
            first -= (shape[d] - 1) * strides[d]
        running *= max(shape[d], 1) * abs(steps[d]) or 1
    memory = np.zeros((start + running + 1) * dtype.itemsize, np.uint8)
    return np.ndarray(
        shape, dtype, memory, max(first, 0) * dtype.itemsize if math.prod(shape) else 0,
        [s * dtype.itemsize for s in strides],
    )  # fmt: skip


def placed(
    values: np.ndarray, order: Sequence[int] | None = None, steps: Sequence[int] | None = None, start: int = 0
) -> np.ndarray:
    """The values in a layout of ``strided``, C order if not given; the bytes in the gaps and around are 0xFF, NaN."""
    order, steps = order or range(values.ndim), steps or (1,) * values.ndim
    array = strided(values.shape, values.dtype, order, steps, start)
    array.base[...] = 0xFF
    array[...] = values
    return array


def lay_out(values: np.ndarray, layout: str) -> np.ndarray:
    """The values in a named layout (``broadcast`` repeats them along the last dim)."""
    n = values.ndim
    forward, ones = tuple(range(n)), (1,) * n
    order, steps, start = {
        "C": (forward, ones, 0),
        "F": (forward[::-1], ones, 0),
        "transposed": (forward[1:] + forward[:1], ones, 0),
        "sliced": (forward, tuple(2 + d % 2 for d in forward), 0),
        "reversed": (forward, (-1,) * n, 0),
        "broadcast": (forward, (1,) * (n - 1) + (0,) * min(n, 1), 0),
        "unaligned": (forward, ones, 1),
        "window": (forward, (1,) * (n - 2) + (2, 1)[2 - min(n, 2) :], 3),
    }[layout]
    return placed(values, order, steps, start)


def unmergeable() -> np.ndarray:
    """Six dims, no two of which merge."""
    return placed(sample((3, 2, 4, 3, 2, 5)), range(6), (2, 1, 2, -1, 2, 3))


def overlapping(place: str, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A square float32 matrix and a mask beside it in one memory, and an ``out`` that overlaps one of them."""
    memory = np.zeros(8 * n * n + 16, np.uint8)

    def at(start: int, dtype: Any = "f4") -> np.ndarray:
        return np.ndarray((n, n), dtype, memory, start)

    x, mask = at(8), at(8 + 4 * n * n, bool)
    x[...], mask[...] = sample(x.shape), sample(mask.shape, bool, 1)
    out = {
        "in place": x, "forward": at(12), "back": at(4), "reversed": x[::-1, ::-1], "transposed": x.T,
        "narrower": at(8, "f2"), "wider": at(8, "f8"), "mask": mask, "over the mask": at(8 + x.nbytes),
    }[place]  # fmt: skip
    return x, mask, out


@st.composite
def shapes(draw: st.DrawFn, max_dims: int = 6, max_size: int = 3000) -> tuple[int, ...]:
    """Shapes of up to 6 dims: some of size 1, some long, a few of size 0."""
    ndim = draw(st.integers(0, max_dims))
    sides = (1, 2, 3, 4, 5, 8, 0) if ndim > 3 else (1, 2, 3, 5, 16, 17, 33, 64, 130, 0)
    shape: list[int] = []
    for _ in range(ndim):
        side = draw(st.sampled_from(sides))
        shape.append(side if math.prod(shape) * side <= max_size else 1)
    return tuple(shape)


@st.composite
def axes(draw: st.DrawFn, ndim: int) -> int | tuple[int, ...] | None:
    """``axis=`` of a reduction: None, an int or a tuple, counted from either end."""
    if ndim == 0:
        return draw(st.sampled_from((None, ())))
    dims = tuple(draw(st.lists(st.integers(-ndim, ndim - 1), unique_by=lambda d: d % ndim)))
    return draw(st.sampled_from((None, dims, dims[0] if dims else None)))


@st.composite
def laid_out(draw: st.DrawFn, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of the shape in any layout; its values are zeros."""
    if draw(st.booleans()):
        return lay_out(np.zeros(shape, dtype), draw(st.sampled_from(LAYOUTS)))
    n = len(shape)
    order = draw(st.permutations(range(n)))
    steps = draw(st.lists(st.sampled_from((1, 1, 1, -1, 2, 3, -2, 0)), min_size=n, max_size=n))
    return strided(shape, dtype, order, steps, draw(st.sampled_from((0, 0, 1, 2, 3))))


@st.composite
def arrays(draw: st.DrawFn, shape: tuple[int, ...], dtype: np.dtype, special: bool | None = None) -> np.ndarray:
    """An array of the shape in any layout; random values also fill the gaps in its memory."""
    array = draw(laid_out(shape, dtype))
    special = draw(st.booleans()) if special is None else special
    memory = array.base
    whole = memory[: memory.size // dtype.itemsize * dtype.itemsize].view(dtype)
    whole[...] = sample(whole.shape, dtype, draw(st.integers(0, 2**32 - 1)), special)
    return array


@st.composite
def narrowed(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to the shape."""
    narrow = tuple(draw(st.sampled_from((n, n, 1))) for n in shape)
    return narrow[draw(st.integers(0, len(shape))) :] if draw(st.booleans()) else narrow


def masks(shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    """Boolean arrays that broadcast to the shape, in any layout."""
    return narrowed(shape).flatmap(lambda narrow: arrays(narrow, np.dtype(bool)))


def casts(dtype: np.dtype) -> st.SearchStrategy[np.dtype]:
    """The dtype of an ``out``: mostly a result's own, else one to which it is cast."""
    others = st.sampled_from(CASTS[dtype.kind]).map(np.dtype)
    return st.integers(0, 3).flatmap(lambda turn: st.just(dtype) if turn else others)


@st.composite
def outs(draw: st.DrawFn, shape: tuple[int, ...], dtype: np.dtype, inputs: Iterable[Any]) -> np.ndarray:
    """An ``out``: new memory in any layout without repeated elements, or memory of one of the arrays in the inputs."""
    # Not an empty input: operands at one address count as one, and the emulator would check its empty bounds.
    memory = draw(st.sampled_from([None, *(a.base for a in inputs if isinstance(a, np.ndarray) and a.size)]))
    size = math.prod(shape) * dtype.itemsize
    if memory is None or memory.size < size:
        n = len(shape)
        order = draw(st.permutations(range(n)))
        steps = draw(st.lists(st.sampled_from((1, 1, -1, 2)), min_size=n, max_size=n))
        return strided(shape, dtype, order, steps, draw(st.sampled_from((0, 1))))
    start = draw(st.integers(0, (memory.size - size) // dtype.itemsize)) * dtype.itemsize
    return np.ndarray(shape, dtype, memory, start, order=draw(st.sampled_from("CF")))


def memory_after(before: np.ndarray, out: np.ndarray, got: np.ndarray) -> bytes:
    """The bytes of ``out``'s memory after ``got`` is written to it, given its content ``before``."""
    memory = before.copy()
    first = out.ctypes.data - out.base.ctypes.data
    np.ndarray(out.shape, out.dtype, memory, first, out.strides)[...] = got
    return memory.tobytes()
