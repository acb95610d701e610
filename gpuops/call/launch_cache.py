"""The launch cache: what a kind of calls does is looked up and done, without checks and planning.

What a call does is decided by its arguments: by shape, strides (of a contiguous array the shape tells them), dtype,
device and address modulo 16 of arrays and by which of them share an address; by type and value of all else. A hit looks
these up, makes the new results and fills addresses into launches that lie ready: no argument is checked, nothing is
planned. With arrays of the host, what lies ready is a call of the CPU engine.
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

LIMIT = 4096  # kinds of calls that are cached: the latest ones


@lru_cache(maxsize=LIMIT)
def entries(*facts: Any) -> Entry:
    """The cache's entry of a kind of calls: of an op, with what decides what it does."""
    return Entry()


def clear() -> None:
    """Let go of all cached calls, and of what was recorded of others: what plans depend on has changed."""
    entries.cache_clear()
    kinds.cache_clear()


def operation(**operands: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the pure description of a call a public function; ``operands`` says which parameters are arrays."""
    return lambda describe: cached(Operation(describe, operands))


def view(**operands: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same for a function that makes views: it launches nothing, so nothing is cached."""

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
    """The public function of an operation."""

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
                facts += map(addresses.index, addresses)  # which arrays begin where another one does
            entry = entries(*facts) if addresses else None
        except (KeyError, TypeError):  # a type that is in no table, an element without a hash
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
    """A public function, which tells its operation."""
    public.operation = op  # type: ignore[attr-defined]
    return public
