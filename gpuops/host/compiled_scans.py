"""Exact sums so far, compiled by Numba: see `prefix_sums`.

Sums are integers in a unit (`compiled_units`), which is as small as a tile of elements and the sums before it allow.
So nothing is lost as long as the elements' bits lie within about 100; most float32 need hi alone. Elements become
integers, these are added up, and sums become numbers, which rounds them once: in loops without branches over all of a
tile. If bits are lost, its lines are added up apart, in units of their own; and if some results may then be rounded to
one of two numbers, the line is added up once more as an expansion.

The state of a line is hi, lo, lost, u, and the bits of a sum of what is no ordinary number: infinities and NaN; -0.0 if
there was nothing but -0.0; else 0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from .compiled_units import (
    ALONE,
    BOTH,
    FINEST,
    INFINITE,
    INFINITY,
    LOW,
    MASK,
    MINUS,
    SIZE,
    SLACK,
    at_one,
    at_two,
    bits,
    differ,
    exponent,
    fitted,
    float_of,
    least_unit,
    may_overflow,
    moved,
    number,
    power,
    single,
    unusual,
    with_care,
)  # fmt: skip
from .numba_compiler import compiled

TILE = 1024  # elements that are added up together, at most
LINES, MOST = 64, 256  # their lines, at most; and if these are short
LONG = 128  # elements of lines that are not added up beside others
FEW, SIDE = 8, 8  # elements of a line, and lines side by side, that are worth loops of their own
HI, LO, HIS, LOS, MEMORY = (np.uintp(k) for k in (TILE, 2 * TILE, 3 * TILE, 3 * TILE + MOST, 3 * TILE + 2 * MOST))

# ---------------------------------------------------------------------------------------------------- loops over a tile
#
# Memory is one array: elements, then integers from HI and LO on, and the sums of lines before these, HIS and LOS.


@register_jitable
def load(x: Any, m: Any) -> Any:
    """Put elements into memory, or 0 if they are not finite. Returns the bits of the greatest magnitude of finite ones,
    and whether all are."""
    top, finite, count = np.int64(0), np.int64(0), np.uintp(len(x))
    for i in range(count):
        m[i] = bits(x[i])
        size = m[i] & SIZE
        top = size if size > top else top
    if top < INFINITY:
        return top, True
    for i in range(count):
        m[i] = m[i] if m[i] & SIZE < INFINITY else np.int64(0)
        finite = max(finite, m[i] & SIZE)
    return finite, False


@register_jitable
def accumulated(m: Any, first: Any, count: Any, lines: Any, before: Any) -> None:
    """Sums of lines side by side so far, given those before, which go on."""
    if lines == 1:
        sum = m[before]
        for i in range(first, first + count):
            sum += m[i]
            m[i] = sum
        m[before] = sum
    elif lines < SIDE:
        for k in range(lines):
            sum = m[before + k]
            for i in range(first + k, first + count, lines):
                sum += m[i]
                m[i] = sum
            m[before + k] = sum
    else:
        for start in range(first, first + count, lines):
            for k in range(lines):
                m[before + k] += m[start + k]
                m[start + k] = m[before + k]


@register_jitable
def alone(m: Any, y: Any, lines: Any, u: Any) -> Any:
    """Sums as hi alone. Returns whether that is all of them; if not, nothing has changed."""
    rest, count, real, unit = np.int64(0), np.uintp(len(y)), y.dtype.type, y.dtype.type(power(u))
    for i in range(count):
        m[HI + i], left, unseen = at_one(float_of(m[i]), u)
        rest |= (bits(left) | unseen) & SIZE
    if rest != 0:
        return False
    accumulated(m, HI, count, lines, HIS)
    for i in range(count):
        y[i] = real(m[HI + i]) * unit
    return True


@register_jitable
def both(m: Any, y: Any, lines: Any, u: Any, odd: Any) -> Any:
    """Sums as hi and lo. Returns whether that is all of them."""
    rest, count = np.int64(0), np.uintp(len(y))
    for i in range(count):
        m[HI + i], m[LO + i], left = at_two(float_of(m[i]), u)
        rest |= left
    accumulated(m, HI, count, lines, HIS)
    accumulated(m, LO, count, lines, LOS)
    for k in range(lines):
        m[HIS + k], m[LOS + k] = m[HIS + k] + (m[LOS + k] >> LOW), m[LOS + k] & MASK
    if odd:
        for i in range(count):
            y[i] = single(number(m[HI + i], m[LO + i], u, True))
    else:
        for i in range(count):
            y[i] = number(m[HI + i], m[LO + i], u, y.itemsize == 4)
    return rest == 0


# --------------------------------------------------------------------------------------------------------------- lines


@register_jitable
def in_common(states: Any, m: Any, top: Any, most: Any, least: Any) -> Any:
    """Put sums into memory, in one unit. Returns it, whether nothing is lost so, and whether they have hi alone."""
    need, some, lines = max(exponent(top) - most[0], np.int64(least)), np.int64(0), np.uintp(states.shape[1])
    for k in range(lines):
        m[HIS + k], m[LOS + k] = states[0, k], states[1, k]
        some |= states[0, k] | states[1, k] | states[2, k]
    if some == 0:
        return need, True, True
    differ, more, off = np.int64(0), np.int64(0), np.int64(0)
    for k in range(lines):
        need = max(need, least_unit((states[0, k], states[1, k], states[2, k], states[3, k]), most))
        differ |= states[3, k] ^ states[3, 0]
    unit = states[3, 0] if differ == 0 and need <= states[3, 0] <= need + SLACK else need
    for k in range(lines):
        hi, lo, lost = moved(states[0, k], states[1, k], states[2, k], unit - states[3, k])
        m[HIS + k], m[LOS + k], more, off = hi, lo, more | lo, off | lost
    return unit, off == 0, more == 0


@register_jitable
def together(m: Any, y: Any, states: Any, top: Any, odd: Any) -> Any:
    """Sums of lines side by side. Returns whether nothing is lost; else nothing has changed but results."""
    done, lines = False, np.uintp(states.shape[1])
    unit, exact, short = in_common(states, m, top, ALONE, -149 if y.itemsize == 4 else FINEST)
    if exact and short and not odd:
        done = alone(m, y, lines, unit)
    if not done and lines > 1:
        unit, exact, short = in_common(states, m, top, BOTH, FINEST)
        done = exact and both(m, y, lines, unit, odd)
    if done:
        for k in range(lines):
            states[0, k], states[1, k], states[3, k] = m[HIS + k], m[LOS + k], unit
    return done


@register_jitable
def by_itself(m: Any, y: Any, unsure: Any, state: Any, odd: Any) -> Any:
    """Sums of one line. Tells whether some are not sure."""
    top, count = np.int64(0), np.uintp(len(y))
    if count < FEW:
        return with_care(m, y, unsure, state, odd)
    for i in range(count):
        size = m[i] & SIZE
        top = size if size > top else top
    m[HIS], m[LOS], lost, u = fitted(state, top, BOTH, FINEST)
    lost += 0 if both(m, y, np.uintp(1), u, odd) else len(y)
    if lost != 0:
        doubts, off = np.int64(0), lost * 2.0**-LOW
        for i in range(count):
            doubts += differ(y, (m[HI + i], m[LO + i], u), off, odd)
        if doubts != 0:
            return with_care(m, y, unsure, state, odd)
    return (m[HIS], m[LOS], lost, u), 0


@register_jitable
def apart(m: Any, y: Any, unsure: Any, states: Any, odd: Any, line: Any) -> Any:
    """Sums of lines side by side, of each by itself. Tells whether some are not sure."""
    told, lines = 0, np.uintp(states.shape[1])
    count = np.uintp(len(y)) // lines
    again, made = line[0], line[1][:count]
    for k in range(lines):
        for i in range(count):
            again[i] = m[i * lines + k]
        state = states[0, k], states[1, k], states[2, k], states[3, k]
        state, doubt = by_itself(again, made, unsure[k], state, odd)
        states[0, k], states[1, k], states[2, k], states[3, k] = state
        told |= doubt
        for i in range(count):
            y[i * lines + k] = made[i]
    return told


@register_jitable
def unusual_each(x: Any, y: Any, finite: Any, states: Any) -> Any:
    """Sums of what is no ordinary number, of lines side by side that have it. Returns what is told of infinite sums."""
    lines, told, some = np.uintp(states.shape[1]), 0, np.int64(0)
    for k in range(lines):
        states[4, k] = np.int64(0) if (states[4, k] == MINUS) & (bits(x[k]) != MINUS) else states[4, k]
        some |= states[4, k]
    if some == 0 and finite:
        return 0
    for k in range(lines):
        if states[4, k] != 0 or not finite:
            found = unusual(x[k::lines], y[k::lines], float_of(states[4, k]))
            states[4, k] = bits(found)
            told |= INFINITE if found != 0.0 else 0
    return told


@register_jitable
def turned(x: Any, given: Any, place: Any, along: Any, counts: Any) -> None:
    """Put elements (step, line) that lie so far apart one after the other."""
    for i in range(counts[0]):
        first, into = place + i * along[0], i * counts[1]
        if along[1] == 1:
            for k in range(counts[1]):
                given[into + k] = x[first + k]
        else:
            for k in range(counts[1]):
                given[into + k] = x[first + k * along[1]]


@register_jitable
def returned(y: Any, made: Any, place: Any, along: Any, counts: Any) -> None:
    """The reverse."""
    for i in range(counts[0]):
        first, source = place + i * along[0], i * counts[1]
        if along[1] == 1:
            for k in range(counts[1]):
                y[first + k] = made[source + k]
        else:
            for k in range(counts[1]):
                y[first + k * along[1]] = made[source + k]


@register_jitable
def copy(source: Any, into: Any) -> None:
    """Copy states."""
    for i in range(into.shape[0]):
        for k in range(into.shape[1]):
            into[i, k] = source[i, k]


@register_jitable
def scanned(x: Any, y: Any, unsure: Any, states: Any, odd: Any, memory: Any) -> Any:
    """Go on with a tile (step, line). Tells what is told of results."""
    m, line = memory
    told, (top, finite) = 0, load(x, m)
    if not together(m, y, states, top, odd):
        if states.shape[1] == 1:
            state = states[0, 0], states[1, 0], states[2, 0], states[3, 0]
            state, told = by_itself(m, y, unsure[0], state, odd)
            states[0, 0], states[1, 0], states[2, 0], states[3, 0] = state
        else:
            told = apart(m, y, unsure, states, odd, line)
    if may_overflow(y, states[3].max()):
        for i in range(np.uintp(len(y))):
            told |= INFINITE if abs(y[i]) == np.inf else 0
    return told | unusual_each(x, y, finite, states)


@compiled()
def sums(
    x: np.ndarray, y: np.ndarray, where: tuple[int, ...], states: np.ndarray, unsure: np.ndarray, odd: bool
) -> int:
    """Go on with lines that lie in memory: from states (5, lines) to states. where: the place of the first element, how
    many groups of lines there are and how far apart, the number of elements, the distances of elements and of lines,
    and how many elements were before; unsure: (lines, all elements); odd: float32 are rounded to odd. Tells what
    `UNSURE` and `INFINITE` say."""
    told, (base, outer, far, n, step, between, before) = 0, where
    inner = states.shape[1] // outer
    most = 1 if step == 1 and n >= LONG else min(MOST, inner, max(LINES, TILE // n))
    steps, along = min(n, TILE // most), (np.uintp(step), np.uintp(between))
    memory = np.empty(MEMORY, np.int64), (np.empty(MEMORY, np.int64), np.empty(TILE, y.dtype))
    given, made = np.empty(TILE, x.dtype), np.empty(TILE, y.dtype)
    for o in range(outer):
        for first in range(0, inner, most):
            here = slice(o * inner + first, o * inner + min(first + most, inner))
            now = np.ascontiguousarray(states[:, here])
            lines = now.shape[1]
            for start in range(0, n, steps):
                count = min(steps, n - start)
                place = base + o * far + start * step + first * between
                doubtful = unsure[here, before + start : before + start + count]
                if (lines == 1 or between == 1) and (count == 1 or step == lines):
                    part = slice(place, place + count * lines)
                    told |= scanned(x[part], y[part], doubtful, now, odd, memory)
                else:
                    counts, part = (np.uintp(count), np.uintp(lines)), slice(0, count * lines)
                    turned(x, given, np.uintp(place), along, counts)
                    told |= scanned(given[part], made[part], doubtful, now, odd, memory)
                    returned(y, made, np.uintp(place), along, counts)
            copy(now, states[:, here])
    return told
