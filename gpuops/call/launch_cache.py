"""The launch cache: a call with a known key runs its prepared launches, without checks or planning.

The key is everything that decides what a call does: shape, strides (implied by the shape in C order), dtype, device and
address modulo 16 of each array, which arrays share an address, and type and value of every other argument. A hit looks
the key up, allocates the results and fills addresses into prepared launches. For host arrays, a prepared call of the
CPU engine takes the place of the launches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

from numpy import ndarray

from ..device.context import Refused
from .dispatch import miss, shown
from .facts import FACTS, PLAIN
from .key import missed
from .libraries import ARRAYS, READERS
from .operation import Operation
from .recordings import Entry, kinds

LIMIT = 4096  # cached keys, at most: the least recently used goes first


@lru_cache(maxsize=LIMIT)
def entries(*facts: Any) -> Entry:
    """The cache entry of a key."""
    return Entry()


def clear() -> None:
    """Drop all cached calls and recorded descriptions, after a change of something that plans depend on."""
    entries.cache_clear()
    kinds.cache_clear()


def operation(**operands: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turn a pure description of calls into a public function; ``operands`` gives the roles of array parameters."""
    return lambda describe: cached(Operation(describe, operands))


def view(**operands: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Likewise for a function that returns views. It launches nothing, so its calls are not cached."""

    def decorate(describe: Callable[..., Any]) -> Callable[..., Any]:
        op = Operation(describe, operands, view=True)

        @wraps(describe)
        def public(*args: Any, **options: Any) -> Any:
            try:
                return miss(public, op, args, options)
            except Exception as failure:
                raise shown(failure, op, args, options)  # noqa: B904

        return of_operation(public, op)

    return decorate


def cached(op: Operation) -> Callable[..., Any]:
    """The public function of an operation, with cached calls."""

    @wraps(op.describe)
    def public(*args: Any, **options: Any) -> Any:
        values = (*args, *options.values()) if options else args
        addresses: list[int] = []
        facts = [op, len(args), *options]
        try:
            for value in values:
                kind = type(value)
                if kind in ARRAYS:
                    data, strides = value.data, value._c_contiguous or value.strides
                    addresses.append(address := data.ptr)
                    facts += (value.shape, strides, value.dtype, data.device_id, address % 16)
                elif kind is ndarray:
                    addresses.append(id(value))
                    facts += (value.shape, value.strides, value.dtype, value.flags.writeable)
                elif kind in PLAIN:
                    facts.append(value)
                elif kind in READERS:
                    address, more = READERS[kind](value)
                    addresses.append(address)
                    facts += more
                else:
                    facts.append(FACTS[kind](value))
            if len(addresses) > 1 and len({*addresses}) < len(addresses):
                facts += map(addresses.index, addresses)  # which arrays share an address
            entry = entries(*facts) if addresses else None
        except (KeyError, TypeError):  # an unknown type, or an unhashable value
            entry = None
        try:
            if entry is not None and (ready := entry.ready) and (result := ready(values, addresses)) is not None:
                return result
            return miss(public, op, args, options, missed(entry, facts, values, addresses) if entry else None)
        except Refused:
            return miss(public, op, args, options)
        except Exception as failure:
            raise shown(failure, op, args, options)  # noqa: B904

    return of_operation(public, op)


def of_operation(public: Callable[..., Any], op: Operation) -> Callable[..., Any]:
    """Attach the operation to its public function."""
    public.operation = op  # type: ignore[attr-defined]
    return public
