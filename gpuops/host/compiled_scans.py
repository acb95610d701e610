"""Exact sums so far, compiled by Numba: see `prefix_sums`.

Sums are integers: hi * 2**u + lo * 2**(u - 52), where 0 <= lo < 2**52. The unit 2**u is as small as a block of elements
and the sum before it allow, so nothing is lost as long as the elements' bits lie within about 100; most float32 need hi
alone. Elements become integers, these are added up, and sums become numbers, which rounds them once: in loops without
branches. Where elements have bits below the last one of lo, ``lost`` counts them: a sum is off by so many of the last
bits, at most. If some of a block may then be rounded to one of two numbers, each is made in a unit of its own.

The state of a line is hi, lo, lost, u, and the bits of a sum of what is no ordinary number: infinities and NaN; -0.0 if
there was nothing but -0.0; else 0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from .numba_compiler import compiled

BLOCK = 256  # elements of a line in one unit, at most
WIDE, STEPS = 128, 64  # lines side by side that are added up together, and elements of each in one unit
LOW = 52  # bits of lo
MASK = 2**LOW - 1
FINEST = -1022  # the least u: then all float64 are multiples of the last bit
#: Of hi alone, and of hi with lo: bits of hi that an element may have, and that the sum before the block may have.
ALONE, BOTH = (50, 61), (44, 52)
SLACK = 4  # bits by which a unit may be larger than it must be
MAGIC = 1.5 * 2.0**52  # numbers below 2**51 that are added to it are rounded to integers, which its bits show
MAGIC_BITS = int(np.float64(MAGIC).view(np.int64))
SIZE, INFINITY, MINUS = 2**63 - 1, 0x7FF << 52, -(2**63)  # bits of magnitudes; of infinity, and of -0.0
LACKING = 2**29 - 1  # bits of float64 that float32 lacks
UNSURE, INFINITE = 1, 2  # what is told of results: some are not sure, some are not finite

# ------------------------------------------------------------------------------------------------- numbers and integers


@register_jitable
def bits(x: Any) -> Any:
    return np.float64(x).view(np.int64)


@register_jitable
def float_of(bits: Any) -> Any:
    return np.int64(bits).view(np.float64)


@register_jitable
def power(k: Any) -> Any:
    """2**k, for k from -1022 to 1023."""
    return float_of((k + 1023) << 52)


@register_jitable
def exponent(size: Any) -> Any:
    """That of a power of two above the magnitude of these bits."""
    return (size >> 52) - 1022


@register_jitable
def at_one(v: Any, u: Any) -> Any:
    """An element as hi, what is left in units, and the bits of an element that is too small to be seen in them."""
    w = v * power(-u)
    s = w + MAGIC
    return bits(s) - MAGIC_BITS, w - (s - MAGIC), bits(v) if w == 0.0 else np.int64(0)


@register_jitable
def at_two(v: Any, u: Any) -> Any:
    """An element as hi and lo, and bits that are 0 if that is all of it."""
    hi, rest, unseen = at_one(v, u)
    rest *= 2.0**LOW
    s = rest + MAGIC
    return hi, bits(s) - MAGIC_BITS, (bits(rest - (s - MAGIC)) | unseen) & SIZE


@register_jitable
def number(hi: Any, lo: Any, u: Any, narrow: Any) -> Any:
    """A sum, rounded to float64: to odd if it is to be rounded again, see `definition.exact.odd`."""
    a, b = np.float64(hi + (lo >> LOW)), np.float64(lo & MASK) * 2.0**-LOW
    s = a + b
    if narrow:
        error, word = b - (s - a), bits(s)  # (a is 0 or larger than b)
        away = 1 | ((word ^ bits(error)) >> 63)
        s = float_of(word + ((away & ((word & 1) - 1)) if error != 0.0 else np.int64(0)))
    return s * power(u)


@register_jitable
def single(x: Any) -> Any:
    """A number rounded to odd, as float32 rounded to odd."""
    word = bits(x)
    return np.float32(float_of((word | ((word & LACKING) + LACKING)) & ~LACKING))


@register_jitable
def differ(y: Any, sum: Any, off: Any, odd: Any) -> Any:
    """Whether a sum (hi, lo, u) that is off by so much, in units, may be rounded to one of two numbers."""
    hi, lo, u = sum
    a, b = np.float64(hi + (lo >> LOW)), np.float64(lo & MASK) * 2.0**-LOW
    low, high = a + (b - off), a + (b + off)
    if y.itemsize == 4:
        low, high = low - abs(low) * 2.0**-52, high + abs(high) * 2.0**-52
    if odd:
        return single(low * power(u)) != single(high * power(u))
    return y.dtype.type(low * power(u)) != y.dtype.type(high * power(u))


# --------------------------------------------------------------------------------------------------------------- states


@register_jitable
def moved(hi: Any, lo: Any, lost: Any, by: Any) -> Any:
    """A sum in a unit that is larger by a power of two."""
    if hi == 0 and lo == 0 and lost == 0:
        by = np.int64(0)
    while by > 0:
        k = min(by, np.int64(LOW))
        below = (1 << k) - 1
        if lost != 0 or lo & below != 0:
            lost = (lost >> k) + 2
        lo, hi, by = (lo >> k) | ((hi & below) << (LOW - k)), hi >> k, by - k
    while by < 0:
        k = min(-by, np.int64(LOW))
        hi, lo, by = (hi << k) | (lo >> (LOW - k)), (lo << k) & MASK, by + k
    return hi, lo, lost


@register_jitable
def fitted(state: Any, top: Any, most: Any, least: Any) -> Any:
    """A state in a unit that is right for it, and for elements up to a magnitude of such bits."""
    hi, lo, lost, u = state
    need = max(exponent(top) - most[0], np.int64(least))
    if hi != 0 or lo != 0:
        size = exponent(bits(abs(hi))) if hi != 0 else exponent(bits(lo)) - LOW
        need = max(need, u + size - most[1])
    if u < need or (u > need + SLACK and lost == 0):
        hi, lo, lost = moved(hi, lo, lost, need - u)
        u = need
    return hi, lo, lost, u


@register_jitable
def with_care(v: Any, y: Any, unsure: Any, state: Any, odd: Any) -> Any:
    """Sums of a line, each in a unit that is right for it. Tells whether some are not sure."""
    told = 0
    for i in range(len(y)):
        hi, lo, lost, u = fitted(state, bits(v[i]) & SIZE, BOTH, FINEST)
        more, rest, left = at_two(v[i], u)
        hi, lo, lost = hi + more, lo + rest, lost + (left != 0)
        s = number(hi, lo, u, y.itemsize == 4)
        y[i] = single(s) if odd else s
        if lost != 0 and differ(y, (hi, lo, u), lost * 2.0**-LOW, odd):
            unsure[i], told = True, UNSURE
        state = hi + (lo >> LOW), lo & MASK, lost, u
    return state, told


@register_jitable
def unusual(x: Any, y: Any, special: Any) -> Any:
    """Sums of what is no ordinary number in elements of a line, in the place of others' sums. Returns the last one."""
    for i in range(len(x)):
        v = np.float64(x[i])
        special += v if v == 0.0 or not np.isfinite(v) else 0.0
        if bits(special) != 0:
            y[i] = special
    return special


@register_jitable
def may_overflow(y: Any, u: Any) -> Any:
    """Whether sums in a unit may be infinite."""
    return u + 62 > (127 if y.itemsize == 4 else 1023)


# ---------------------------------------------------------------------------------------------------------------- rows


@register_jitable
def load(x: Any, v: Any) -> Any:
    """Put elements, or 0 if they are not finite, into memory. Returns the bits of the greatest magnitude of finite
    ones, and of all."""
    top, finite, count = np.int64(0), np.int64(0), np.uintp(len(x))
    for i in range(count):
        v[i] = x[i]
        size = bits(x[i]) & SIZE
        top = size if size > top else top
    if top < INFINITY:
        return top, top
    for i in range(count):
        v[i] = v[i] if np.isfinite(v[i]) else 0.0
        finite = max(finite, bits(v[i]) & SIZE)
    return finite, top


@register_jitable
def row_alone(v: Any, y: Any, state: Any, q: Any) -> Any:
    """Sums as hi alone, and whether that is all of them."""
    hi, lo, lost, u = state
    rest, count, real, unit = np.int64(0), np.uintp(len(y)), y.dtype.type, y.dtype.type(power(u))
    for i in range(count):
        q[i], left, unseen = at_one(v[i], u)
        rest |= (bits(left) | unseen) & SIZE
    if rest != 0:
        return state, False
    for i in range(count):
        hi += q[i]
        q[i] = hi
    for i in range(count):
        y[i] = real(q[i]) * unit
    return (hi, lo, lost, u), True


@register_jitable
def row_both(v: Any, y: Any, unsure: Any, state: Any, odd: Any, memory: Any) -> Any:
    """Sums as hi and lo. Tells whether some are not sure."""
    hi, lo, lost, u = state
    q, p = memory
    rest, doubts, count = np.int64(0), np.int64(0), np.uintp(len(y))
    for i in range(count):
        q[i], p[i], left = at_two(v[i], u)
        rest |= left
    for i in range(count):
        hi, lo = hi + q[i], lo + p[i]
        q[i], p[i] = hi, lo
    if odd:
        for i in range(count):
            y[i] = single(number(q[i], p[i], u, True))
    else:
        for i in range(count):
            y[i] = number(q[i], p[i], u, y.itemsize == 4)
    lost += np.int64(len(y)) if rest != 0 else 0
    if lost != 0:
        off = lost * 2.0**-LOW
        for i in range(count):
            doubts += differ(y, (q[i], p[i], u), off, odd)
        if doubts != 0:
            return with_care(v, y, unsure, state, odd)
    return (hi + (lo >> LOW), lo & MASK, lost, u), 0


@compiled()
def rows(
    x: np.ndarray, y: np.ndarray, where: tuple[int, int, int], states: np.ndarray, unsure: np.ndarray, odd: bool
) -> int:
    """Go on with lines of (lines, n): from states (5, lines) to states. where: the first and the last line, and how many
    elements were before these; unsure: (lines, elements), of these lines alone; odd: float32 are rounded to odd. Tells
    what `UNSURE` and `INFINITE` say."""
    told, n, least = 0, x.shape[1], np.int64(-149 if x.itemsize == 4 else FINEST)
    v, memory = np.empty(BLOCK), (np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64))
    for k in range(where[1] - where[0]):
        line, special = where[0] + k, float_of(states[4, k])
        state = states[0, k], states[1, k], states[2, k], states[3, k]
        for start in range(0, n, BLOCK):
            given, made = x[line, start : start + BLOCK], y[line, start : start + BLOCK]
            (top, all), done = load(given, v), False
            if state[1] == 0 and state[2] == 0 and not odd:
                state = fitted(state, top, ALONE, least)
                if state[1] == 0 and state[2] == 0:
                    state, done = row_alone(v, made, state, memory[0])
            if not done:
                state = fitted(state, top, BOTH, FINEST)
                doubtful = unsure[k, where[2] + start : where[2] + start + BLOCK]
                state, doubt = row_both(v, made, doubtful, state, odd, memory)
                told |= doubt
            if may_overflow(y, state[3]) and np.isinf(made).any():
                told |= INFINITE
            special = 0.0 if bits(special) == MINUS and bits(v[0]) != MINUS else special
            if all >= INFINITY or bits(special) != 0:
                special = unusual(given, made, special)
                told |= INFINITE if special != 0.0 else 0
        states[0, k], states[1, k], states[2, k], states[3, k] = state
        states[4, k] = bits(special)
    return told


# ------------------------------------------------------------------------------------------------------------- columns


@register_jitable
def load_each(x: Any, place: Any, v: Any, tops: Any) -> None:
    """The same of each line. place: the first and the last element, the first and the last line."""
    start, stop, first, last = place
    tops[:] = 0
    for i in range(stop - start):
        row, into = x[start + i, first:last], v[i]
        for k in range(np.uintp(len(row))):
            into[k] = row[k]
            size = bits(row[k]) & SIZE
            tops[k] = size if size > tops[k] else tops[k]
    for k in range(last - first):
        tops[WIDE + k] = tops[k]
        if tops[k] >= INFINITY:
            tops[k] = 0
            for i in range(stop - start):
                v[i, k] = v[i, k] if np.isfinite(v[i, k]) else 0.0
                tops[k] = max(tops[k], bits(v[i, k]) & SIZE)


@register_jitable
def lane(k: Any) -> Any:
    """Where the state of a line is, and the bits that are lost now. (All are in one array, since loops over several,
    which might overlap, are not vectorised.)"""
    wide = np.uintp(WIDE)
    return k, wide + k, wide * np.uintp(2) + k, wide * np.uintp(3) + k, wide * np.uintp(4) + k, wide * np.uintp(5) + k


@register_jitable
def state_of(lanes: Any, k: Any) -> Any:
    hi, lo, lost, u, _, _ = lane(k)
    return lanes[hi], lanes[lo], lanes[lost], lanes[u]


@register_jitable
def put_state(lanes: Any, k: Any, state: Any) -> None:
    hi, lo, lost, u, _, _ = lane(k)
    lanes[hi], lanes[lo], lanes[lost], lanes[u] = state


@register_jitable
def fit_each(lanes: Any, tops: Any, width: Any) -> None:
    """Bring states in units that are right. Most are, or are states of nothing."""
    wrong = np.int64(0)
    for k in range(width):
        hi, lo, lost, u, _, left = lane(k)
        need = max(exponent(tops[k]) - BOTH[0], np.int64(FINEST))
        of_sum = exponent(bits(abs(lanes[hi]))) + lanes[u] - BOTH[1]
        need = of_sum if (lanes[hi] != 0) & (of_sum > need) else need
        unit = need if (lanes[hi] | lanes[lo] | lanes[lost]) == 0 else lanes[u]
        lanes[u], lanes[left] = unit, 0
        wrong |= np.int64(unit < need) | np.int64((unit > need + SLACK) & (lanes[lost] == 0))
    if wrong != 0:
        for k in range(width):
            put_state(lanes, k, fitted(state_of(lanes, k), tops[k], BOTH, FINEST))


@register_jitable
def added(v: Any, lanes: Any, k: Any) -> Any:
    """The sum of a line and an element, in its unit."""
    hi, lo, _, u, _, left = lane(k)
    more, rest, lost = at_two(v, lanes[u])
    lanes[hi], lanes[lo], lanes[left] = lanes[hi] + more, lanes[lo] + rest, lanes[left] | lost
    return lanes[hi], lanes[lo], lanes[u]


@register_jitable
def add_each(v: Any, y: Any, place: Any, lanes: Any, odd: Any) -> None:
    """Sums of each line."""
    start, stop, first, last = place
    for i in range(stop - start):
        given, made = v[i], y[start + i, first:last]
        if odd:
            for k in range(np.uintp(len(made))):
                hi, lo, u = added(given[k], lanes, k)
                made[k] = single(number(hi, lo, u, True))
        else:
            for k in range(np.uintp(len(made))):
                hi, lo, u = added(given[k], lanes, k)
                made[k] = number(hi, lo, u, y.itemsize == 4)


@register_jitable
def doubt_each(v: Any, y: Any, place: Any, lanes: Any, odd: Any, doubts: Any) -> None:
    """The same again: count those that are not sure."""
    start, stop, first, last = place
    for i in range(stop - start):
        given = v[i]
        for k in range(np.uintp(last - first)):
            sum = added(given[k], lanes, k)
            doubts[k] += differ(y, sum, np.float64(lanes[lane(k)[2]]) * 2.0**-LOW, odd)


@register_jitable
def tile(y: Any, unsure: Any, place: Any, lanes: Any, odd: Any, memory: Any) -> Any:
    """Sums of some elements of each line. Tells whether some are not sure."""
    v, tops, before, again, doubts = memory
    start, stop, first, last = place
    told, some, width = 0, np.int64(0), np.uintp(last - first)
    fit_each(lanes, tops, width)
    before[:] = lanes
    add_each(v, y, place, lanes, odd)
    for k in range(width):
        hi, lo, lost, _, _, left = lane(k)
        lanes[hi], lanes[lo] = lanes[hi] + (lanes[lo] >> LOW), lanes[lo] & MASK
        lanes[lost] += stop - start if lanes[left] != 0 else 0
        some |= lanes[lost]
    if some != 0:
        again[:], doubts[:] = before, 0
        again[2 * WIDE : 3 * WIDE] = lanes[2 * WIDE : 3 * WIDE]
        doubt_each(v, y, place, again, odd, doubts)
        for k in range(width):
            if doubts[k] != 0:
                made = y[start:stop, first + np.int64(k)]
                state, doubt = with_care(v[:, k], made, unsure[k], state_of(before, k), odd)
                put_state(lanes, k, state)
                told |= doubt
    return told


@register_jitable
def unusual_each(x: Any, y: Any, place: Any, lanes: Any, memory: Any) -> Any:
    """`unusual` for each line that needs it. Returns what is told of infinite results."""
    v, tops, _, _, _ = memory
    start, stop, first, last = place
    some, most, told, given, wide = np.int64(0), np.int64(-5000), 0, v[0], np.uintp(WIDE)
    for k in range(np.uintp(last - first)):
        _, _, _, u, special, _ = lane(k)
        goes = (lanes[special] == MINUS) & (bits(given[k]) != MINUS)
        lanes[special] = np.int64(0) if goes else lanes[special]
        some |= lanes[special] | np.int64(tops[wide + k] >= INFINITY)
        most = lanes[u] if lanes[u] > most else most
    if some != 0:
        for k in range(np.uintp(last - first)):
            special, line = lane(k)[4], first + np.int64(k)
            if lanes[special] != 0 or tops[wide + k] >= INFINITY:
                found = unusual(x[start:stop, line], y[start:stop, line], float_of(lanes[special]))
                lanes[special] = bits(found)
                told |= INFINITE if found != 0.0 else 0
    if may_overflow(y, most):
        for i in range(start, stop):
            told |= INFINITE if np.isinf(y[i, first:last]).any() else 0
    return told


@compiled()
def columns(
    x: np.ndarray, y: np.ndarray, where: tuple[int, int, int], states: np.ndarray, unsure: np.ndarray, odd: bool
) -> int:
    """The same of (n, lines)."""
    told, v, tops = 0, np.empty((STEPS, WIDE)), np.empty(2 * WIDE, np.int64)
    lanes, before, again = np.zeros(6 * WIDE, np.int64), np.empty(6 * WIDE, np.int64), np.empty(6 * WIDE, np.int64)
    memory = v, tops, before, again, np.empty(WIDE, np.int64)
    for first in range(where[0], where[1], WIDE):
        last = min(first + WIDE, where[1])
        here = slice(first - where[0], last - where[0])
        for field in range(len(states)):
            lanes[field * WIDE : field * WIDE + last - first] = states[field, here]
        for start in range(0, len(x), STEPS):
            place = start, min(start + STEPS, len(x)), first, last
            load_each(x, place, v, tops)
            told |= tile(y, unsure[here, where[2] + start :], place, lanes, odd, memory)
            told |= unusual_each(x, y, place, lanes, memory)
        for field in range(len(states)):
            states[field, here] = lanes[field * WIDE : field * WIDE + last - first]
    return told
