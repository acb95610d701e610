"""Graphs of calls on chunks: results block by block, and trees of partial results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks, unify_chunks
from dask.array.utils import meta_from_array

from ..call.arrays import find, host_array, is_scalar, kind
from ..call.libraries import CONTEXTS
from ..call.operation import Call
from ..errors import error
from ..ops import reduce
from ..plan.geometry import Shape

#: Partial results that a task merges, if Dask's option ``split_every`` is not set; fewer of products, which are large.
FEW, FEWER = 16, 4

Function = Callable[..., Any]
Operand = tuple[Any, Any]  # an array with labels of its dims, or a scalar with None


def is_dask(value: Any) -> bool:
    return isinstance(value, da.Array)


def whole(x: Any) -> da.Array:
    """A Dask array, also of a scalar."""
    return x if is_dask(x) else da.from_array(np.asarray(x))


# ------------------------------------------------------------------------------------------------------------- graphs


def blocks(
    function: Function, name: str, dims: Iterable[int], operands: list[Any], dtype: np.dtype,
    lengths: dict[int, Any] | None = None,
) -> da.Array:  # fmt: skip
    """An array with dims labelled ``dims``, whose blocks a function makes of the operands' blocks, which broadcast.
    Operands without labels of their own have those of the last dims.

    Other dims of an operand must be one block long, and its blocks come as lists. ``lengths``: the chunks, by label, of
    dims that are not as long as the operands'.
    """
    dims = tuple(dims)
    pairs = [each if isinstance(each, tuple) else labelled(each, len(dims)) for each in operands]
    chunks, arrays = unify_chunks(*[part for pair in pairs for part in pair], warn=False)
    args = [part for array, (_, labels) in zip(arrays, pairs, strict=True) for part in (array, labels)]
    meta = like(next(filter(is_dask, arrays)), len(dims), dtype)
    return da.blockwise(
        function, dims, *args, token=name, dtype=dtype, meta=meta, align_arrays=False,
        adjust_chunks={d: chunks[d] for d in dims} | (lengths or {}),
    )  # fmt: skip


def tree(
    x: da.Array, name: str, axis: Shape, keepdims: bool, merge: Function, last: Function, dtypes: list[np.dtype],
    few: int = FEW,
) -> list[Any]:  # fmt: skip
    """Merge partial results along some axes, ``few`` at a time. The last step makes the results, of these dtypes;
    several as a tuple."""
    ndim = x.ndim if keepdims else x.ndim - len(axis)
    options = {"dtype": x.dtype, "meta": like(x, ndim, dtypes[0]), "name": name}
    few = dask.config.get("split_every", few)
    found = da.reduction(x, same, last, axis, keepdims, combine=merge, split_every=few, **options)
    return several(found, name, dtypes)


def several(found: da.Array, name: str, dtypes: list[np.dtype]) -> list[da.Array]:
    """The arrays of these dtypes in one whose chunks, if there are several, are tuples."""
    if len(dtypes) == 1:
        return [found]
    dims = range(found.ndim)
    return [blocks(partial(nth, k), f"{name}-finish", dims, [found], each) for k, each in enumerate(dtypes)]


def same(x: Any, axis: Shape, keepdims: bool) -> Any:
    """The first step of a tree: partial results as they are."""
    return x


def nth(k: int, results: tuple[Any, ...]) -> Any:
    """One of several results."""
    return results[k]


def like(x: da.Array, ndim: int, dtype: np.dtype) -> Any:
    """Dask's sample of a chunk (``meta``): of the type of x's chunks, without elements."""
    sample = np.asarray(x._meta) if find("like", "x", x._meta) is None else x._meta
    return meta_from_array(sample if dtype.kind == "c" else sample.real, ndim, dtype)


def labelled(x: Any, ndim: int) -> Operand:
    """An operand with the labels of the last of ``ndim`` dims; a scalar has none."""
    return (x, tuple(range(ndim - x.ndim, ndim))) if is_dask(x) else (x, None)


def beside(y: Any, x: da.Array, dims: Shape | None = None) -> Operand:
    """An operand whose dims correspond to some of x's, by default the last: rechunked like them where it does not
    broadcast."""
    if not is_dask(y):
        return y, None
    dims = tuple(range(x.ndim - y.ndim, x.ndim)) if dims is None else dims
    return y.rechunk(tuple([x.chunks[d] if n > 1 else (n,) for d, n in zip(dims, y.shape, strict=True)])), dims


def converted(x: Any, dtype: np.dtype) -> Any:
    """A chunk in another dtype."""
    return x if x.dtype == dtype else reduce.sum(x, axis=(), dtype=dtype)


# ---------------------------------------------------------------------------------------------------------- arguments


def arrays_of(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments that are arrays: Dask's, and those of the library of Dask's chunks, NumPy or CuPy."""
    op, operands = call.name, call.operation.operands
    if given.get("out") is not None:
        raise error(TypeError, op, "out is not supported for dask arrays, which cannot be written to")
    arrays: dict[str, Any] = {}
    kinds: dict[bool, str] = {}
    for name, value in given.items():
        if name not in operands and hasattr(value, "__dask_graph__"):
            raise error(TypeError, op, f"{name} is a {kind(value)}, which is not computed: pass {name}.compute()")
        if name not in operands or value is None or is_scalar(value):
            continue
        host = find(op, name, value._meta if is_dask(value) else value) is None
        if is_dask(value):
            words = f"{name} is a {kind(value)} of {kind(value._meta)}"
            value = known(op, name, value)
        else:
            words = f"{name} is a {kind(value)}"
            # (Masks that are no arrays count by their truth values, as in NumPy.)
            truth = name == "where" and not hasattr(value, "dtype")
            value = host_array(op, name, value, truth) if host else value
        # In native byte order, as GPU arrays are.
        arrays[name] = value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))
        kinds.setdefault(host, words)
        if len(kinds) > 1:
            raise error(TypeError, op, f"NumPy and CuPy arrays do not mix: {', '.join(kinds.values())}")
    return arrays


def known(op: str, name: str, x: da.Array) -> da.Array:
    """A Dask array checked for a known shape, and without empty chunks among others."""
    if CONTEXTS.keys().isdisjoint(type(x._meta).__mro__):
        rule = f"{name} is a {kind(x)} of {kind(x._meta)}; only chunks of NumPy and CuPy are supported"
        raise error(TypeError, op, rule)
    if math.isnan(math.prod(x.shape)):
        rule = f"{name} has unknown chunk sizes {x.shape}; call {name}.compute_chunk_sizes() first"
        raise error(ValueError, op, rule)
    for d, sizes in enumerate(x.chunks):
        if len(keep := [i for i, n in enumerate(sizes) if n] or [0]) < len(sizes):
            x = x.blocks[(slice(None),) * d + (keep,)]
    return x


def cut(array: Any, other: da.Array) -> da.Array:
    """An array in chunks: those of another one, where lengths agree."""
    last = dict(zip(range(array.ndim)[::-1], other.chunks[::-1], strict=False))
    chunks = [last[d] if d in last and sum(last[d]) == n else None for d, n in enumerate(array.shape)]
    return da.from_array(array, filled(chunks, array.shape, array.dtype))


def filled(chunks: list[Any], shape: Shape, dtype: np.dtype) -> tuple[Shape, ...]:
    """Complete chunks: for None, those of Dask's setting ``array.chunk-size``."""
    cuts = [c if c is not None else n if 0 in shape else "auto" for c, n in zip(chunks, shape, strict=True)]
    return normalize_chunks(tuple(cuts), shape, dtype=dtype)
