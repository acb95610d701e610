"""Graphs of calls on chunks: blocks of a result made of blocks of the operands, and trees of partial results."""

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

#: Partial results that a task brings together, if Dask's option ``split_every`` says nothing; of products, which are
#: large, fewer.
FEW, FEWER = 16, 4

Function = Callable[..., Any]
Operand = tuple[Any, Any]  # an array with labels of its dims, or a scalar with None


def is_dask(value: Any) -> bool:
    return isinstance(value, da.Array)


def whole(x: Any) -> da.Array:
    """An array, of a scalar too."""
    return x if is_dask(x) else da.from_array(np.asarray(x))


# ------------------------------------------------------------------------------------------------------------- graphs


def blocks(
    function: Function, name: str, dims: Iterable[int], operands: list[Any], dtype: np.dtype,
    lengths: dict[int, Any] | None = None,
) -> da.Array:  # fmt: skip
    """An array whose dims are labelled ``dims``, and whose blocks a function makes of those of the operands, which
    broadcast. The last dims of operands are labelled like those of the array, unless labels come with them.

    What an operand has beside these dims is one block long, and comes as lists. ``lengths`` are the chunks, by label,
    of dims that are not as long as the operands'.
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
    """Partial results brought together along some axes, a few of them at a time. The last step gives the results, of
    these dtypes: several as a tuple."""
    ndim = x.ndim if keepdims else x.ndim - len(axis)
    options = {"dtype": x.dtype, "meta": like(x, ndim, dtypes[0]), "name": name}
    few = dask.config.get("split_every", few)
    found = da.reduction(x, same, last, axis, keepdims, combine=merge, split_every=few, **options)
    return several(found, name, dtypes)


def several(found: da.Array, name: str, dtypes: list[np.dtype]) -> list[da.Array]:
    """Arrays of these dtypes, of an array whose chunks are tuples of their chunks if there are several."""
    if len(dtypes) == 1:
        return [found]
    dims = range(found.ndim)
    return [blocks(partial(nth, k), f"{name}-finish", dims, [found], each) for k, each in enumerate(dtypes)]


def same(x: Any, axis: Shape, keepdims: bool) -> Any:
    """The partial results, which are there already."""
    return x


def nth(k: int, results: tuple[Any, ...]) -> Any:
    """One of several results."""
    return results[k]


def like(x: da.Array, ndim: int, dtype: np.dtype) -> Any:
    """What Dask takes as a sample of chunks: of the same kind as those of x, without elements."""
    sample = np.asarray(x._meta) if find("like", "x", x._meta) is None else x._meta
    return meta_from_array(sample if dtype.kind == "c" else sample.real, ndim, dtype)


def labelled(x: Any, ndim: int) -> Operand:
    """An operand with the labels of the last dims of ``ndim``; a scalar has none."""
    return (x, tuple(range(ndim - x.ndim, ndim))) if is_dask(x) else (x, None)


def beside(y: Any, x: da.Array, dims: Shape | None = None) -> Operand:
    """An operand whose dims go along those of another one, by default the last ones: in chunks like its, where it is
    not broadcast."""
    if not is_dask(y):
        return y, None
    dims = tuple(range(x.ndim - y.ndim, x.ndim)) if dims is None else dims
    return y.rechunk(tuple([x.chunks[d] if n > 1 else (n,) for d, n in zip(dims, y.shape, strict=True)])), dims


def converted(x: Any, dtype: np.dtype) -> Any:
    """A chunk in another dtype."""
    return x if x.dtype == dtype else reduce.sum(x, axis=(), dtype=dtype)


# ---------------------------------------------------------------------------------------------------------- arguments


def arrays_of(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments that are arrays and no scalars: Dask's, or NumPy's or CuPy's, all of one kind."""
    op, operands = call.name, call.operation.operands
    if given.get("out") is not None:
        raise error(TypeError, op, "out is not for dask arrays, which cannot be written to")
    arrays: dict[str, Any] = {}
    kinds: dict[bool, str] = {}
    for name, value in given.items():
        if name not in operands and hasattr(value, "__dask_graph__"):
            raise error(TypeError, op, f"{name} is a {kind(value)}, and a call computes none")
        if name not in operands or value is None or is_scalar(value):
            continue
        host = find(op, name, value._meta if is_dask(value) else value) is None
        if is_dask(value):
            words = f"{name} is a {kind(value)} of {kind(value._meta)}"
            value = known(op, name, value)
        else:
            words = f"{name} is a {kind(value)}"
            # (What is no array is a mask by its truth, as in NumPy.)
            truth = name == "where" and not hasattr(value, "dtype")
            value = host_array(op, name, value, truth) if host else value
        # In the machine's byte order, as a GPU's arrays are.
        arrays[name] = value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))
        kinds.setdefault(host, words)
        if len(kinds) > 1:
            raise error(TypeError, op, f"NumPy and CuPy arrays do not mix: {', '.join(kinds.values())}")
    return arrays


def known(op: str, name: str, x: da.Array) -> da.Array:
    """A Dask array as calls take it: of a known shape, and without empty chunks among others."""
    if CONTEXTS.keys().isdisjoint(type(x._meta).__mro__):
        rule = f"{name} is a {kind(x)} of {kind(x._meta)}; gpuops takes those of NumPy and CuPy arrays"
        raise error(TypeError, op, rule)
    if math.isnan(math.prod(x.shape)):
        rule = f"{name} has unknown chunk sizes {x.shape}; call {name}.compute_chunk_sizes() first"
        raise error(ValueError, op, rule)
    for d, sizes in enumerate(x.chunks):
        if len(keep := [i for i, n in enumerate(sizes) if n] or [0]) < len(sizes):
            x = x.blocks[(slice(None),) * d + (keep,)]
    return x


def cut(array: Any, other: da.Array) -> da.Array:
    """An array in chunks: those of another one, where it is as long."""
    last = dict(zip(range(array.ndim)[::-1], other.chunks[::-1], strict=False))
    chunks = [last[d] if d in last and sum(last[d]) == n else None for d, n in enumerate(array.shape)]
    return da.from_array(array, filled(chunks, array.shape, array.dtype))


def filled(chunks: list[Any], shape: Shape, dtype: np.dtype) -> tuple[Shape, ...]:
    """Chunks, where there are none yet as large as Dask's setting ``array.chunk-size`` tells."""
    cuts = [c if c is not None else n if 0 in shape else "auto" for c, n in zip(chunks, shape, strict=True)]
    return normalize_chunks(tuple(cuts), shape, dtype=dtype)
