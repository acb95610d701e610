"""Finishes a reduction on the host, for comparison: states are copied from the device, results back to it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ..definition import totals
from ..definition.exact import merged_along, rounded_quotient
from ..definition.expressions import exp, real_of, where
from ..definition.in_cuda import dtype_of
from ..definition.records import MAX, MEAN, STRUCTS
from ..definition.reduction import Reduction
from ..definition.structs import ALIGNED, Field
from ..host.forms import combined, merged_parts
from ..plan.dtypes import CTYPES
from ..plan.reductions import Problem
from ..plan.reductions.classic import BLOCK
from ..plan.rows import SCALED_MAX, SHIFTED_EXP_SUM
from ..plan.work import Step

SPECIAL = 1 << 20  # the unit of a sum that is not finite, in exact.cuh
WORD = 2**32 - 1  # the bits of a word
#: A sum of exponentials less one 1: the terms below 1, and the number of terms that are 1.
EXPONENTIALS = Reduction(
    "shifted_exp_sum", {"smaller": Field("A", 0, "add"), "ones": Field("A", 0, "add")},
    lambda x, shift: {
        "smaller": where(x == shift.as_("A"), 0, exp(x - shift.as_("A"))), "ones": (x == shift.as_("A")).as_("A"),
    },
    lambda s: s.smaller + (s.ones - 1), struct=SHIFTED_EXP_SUM,
)  # fmt: skip
#: Records by the name of the struct that makes their states, also of structs that are only a part of an op.
RECORDS = STRUCTS | {
    each.struct.name: each
    for each in (
        MEAN.but("integer_mean", results=("D",), struct=MEAN.exact[0]), MAX.but("scaled_max", struct=SCALED_MAX),
        EXPONENTIALS,
    )
}  # fmt: skip


def finisher(device: Any, step: Any, places: dict[str, int]) -> Step:
    """A step that synchronises, merges states (splits, outputs) on the host, and copies the results back."""
    p, shape = step.problem, (step.splits, step.problem.outputs)
    partials, finished = places["partials"], places["finished"]

    def go(addresses: list[int]) -> None:
        state = np.frombuffer(device.read(addresses[partials], step.splits * p.outputs * p.state), p.partial)
        with np.errstate(all="ignore"):
            if "part" in (state.dtype.names or ()):
                where = {name: addresses[place] for name, place in places.items()}
                found = exact_results(p, state.reshape(shape), partial(elements, p, device, where))
            else:
                found = results(p, state.reshape(shape))
            device.write(addresses[finished], found.tobytes())

    return go


def elements(p: Problem, device: Any, addresses: dict[str, int]) -> np.ndarray:
    """The elements of each output, copied from the device; -0.0 in the place of those that a mask leaves out."""
    x = operand(p, device, addresses, 0, dtype_of(CTYPES[p.x]))
    if p.other is None:
        return x
    mask = operand(p, device, addresses, 1, np.dtype(np.uint8))
    return np.where(mask != 0, x, x.dtype.type(-0.0))


def operand(p: Problem, device: Any, addresses: dict[str, int], k: int, dtype: np.dtype) -> np.ndarray:
    """Operand k of each output."""
    array = p.arrays[k]
    assert array is not None
    sizes, strides = p.kept.sizes + p.reduced.sizes, p.kept.strides[k] + p.reduced.strides[k]
    reach = [(n - 1) * step for n, step in zip(sizes, strides, strict=True)]  # a mask may go the other way
    first, last = (sum([f(0, each) for each in reach]) for f in (min, max))
    start = addresses[array.name] + array.offset + first * dtype.itemsize
    flat = np.frombuffer(device.read(start, (last - first + 1) * dtype.itemsize), dtype)
    found = np.lib.stride_tricks.as_strided(flat[-first:], sizes, [step * dtype.itemsize for step in strides])
    return found.reshape(p.outputs, -1)


def exact_results(p: Problem, state: np.ndarray, read: Callable[[], np.ndarray]) -> np.ndarray:
    """Merge and round exact sums; where they lack bits, those of the elements, which are read once more."""
    val = dtype_of(CTYPES[p.val])
    first = None if p.initial is None else parts(np.frombuffer(p.initial, val)[:1])[0]
    given = int(dict(zip(p.op.options, p.numbers, strict=True)).get("n", 1))
    counts = state["n"].sum(0) if p.op.numbered else np.full(p.outputs, given)
    found, sure = rounded_at_once(state["part"], counts, p.length, real_of(val))
    all_of: np.ndarray | None = None
    for o, k in np.argwhere(~sure if first is None or not first.any() else np.ones_like(sure)).tolist():
        total = merged_total(state["part"][:, o, k])
        minus_zero = first is not None and first[k] == 0 and np.signbit(first[k]) and total == 0
        if total is None or minus_zero:
            all_of = parts(read().astype(val)) if all_of is None else all_of
            total = totals.total(all_of[o, :, k])
        if first is not None:
            total = total + (Fraction(float(first[k])) if np.isfinite(first[k]) else float(first[k]))
        n = int(counts[o])
        total = total / n if n and isinstance(total, Fraction) else total if n else np.nan
        found[o, k] = totals.nearest(total, found.dtype)
        if minus_zero and all_of is not None and np.signbit(all_of[o, :, k]).all():
            found[o, k] = -0.0
    made = found.view(val)[:, 0] if val.kind == "c" else found[:, 0]
    return made.astype(dtype_of(CTYPES[p.out or p.val]))


def rounded_at_once(
    part: np.ndarray, counts: np.ndarray, length: int, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """The quotients (outputs, parts) of exact sums and numbers of elements, and whether each of them is sure. length:
    all elements of an output, whether they count or not."""
    if part.dtype != ALIGNED:
        return np.empty(part.shape[1:], dtype), np.zeros(part.shape[1:], bool)
    sums = merged_along(part["s"], part["rest"], lost_of(part, length), 0)
    found, sure = rounded_quotient(sums, np.broadcast_to(counts[:, None], part.shape[1:]), dtype)
    return found, sure & np.isfinite(found) & (found != 0)


def lost_of(part: np.ndarray, length: int) -> np.ndarray:
    """What states of aligned sums are off, at most: what they have noted, and once what merges in blocks have lost, in
    the greatest of their units (``note_merging`` in sums.cuh, with `merging`)."""
    unit = np.where(part["lost"] == 0, 0.0, np.ldexp(1.0, part["exponent"] - 52))
    off = part["lost"] * unit
    off[0] += 2.0 ** merging(length, len(part)) * unit.max(0)
    return off


def merging(length: int, splits: int) -> int:
    """``merging`` of reduce_block.cu's ``Context`` in the last pass, for sums of so many elements in so many splits."""
    steps = (2 * (length // splits) + splits) // BLOCK + 64
    return steps.bit_length() + length.bit_length() - 49


def parts(x: np.ndarray) -> np.ndarray:
    """The real and the imaginary parts of numbers, in one more dim."""
    return np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x[..., None]


def merged_total(part: np.ndarray) -> Fraction | float | None:
    """The sum of exact sums; None if it lacks bits."""
    aligned = part.dtype == ALIGNED
    special = ~np.isfinite(part["s"]) if aligned else part["unit"] == SPECIAL
    if special.any():
        return float(np.sum(part["s"][special] if aligned else part["low"][special].view(np.float64)))
    if part["lost"].any():
        return None
    if aligned:
        return totals.total(np.concatenate([part["s"], part["rest"]]))
    some = part[(part["low"] != 0) | (part["high"] != 0)]  # (0 has no unit)
    low, high, unit = some["low"], some["high"], some["unit"].astype(np.int64)
    words = (low & WORD, low >> 32, high & WORD, high >> 32)
    return totals.by_exponent([(word.astype(np.int64), unit + 32 * i) for i, word in enumerate(words)])


def results(p: Problem, state: np.ndarray) -> np.ndarray:
    """Merge and finish states as their record defines it."""
    val = dtype_of(CTYPES[p.val])
    bound = RECORDS[p.op.name].bind(val, val)
    fields = [state[name].astype(bound.state[name], copy=False) for name in bound.state.names or ()]
    whole = merged_parts(bound, fields)
    if p.initial is not None:
        whole = combined(bound, bound.map(x=np.frombuffer(p.initial, val)[0].astype(bound.kinds["A"])), whole)
    given = dict(zip(bound.leaves_of["s"], whole, strict=True)) | dict(zip(p.op.options, p.numbers, strict=True))
    (found,) = bound.finish(**given)
    return found.astype(dtype_of(CTYPES[p.out or p.val]))
