"""Dask arrays: a call becomes a graph of calls on chunks, which are NumPy or CuPy arrays.

Imported with the first Dask array, never by ``import gpuops``. A call is first described, which checks it and gives the
shape and dtype of its result. Where an op goes over several chunks, each gives a partial result in the accumulator's
dtype, and a tree merges these, a few at a time. Tasks are named after their op.
"""

from __future__ import annotations

import math
from functools import partial
from inspect import signature
from typing import Any

import dask
import dask.array as da
import numpy as np

from ..call.dispatch import describe
from ..call.operation import MASK, OUT, Call, operation_of
from ..definition.program import Program
from ..definition.scans import Task as Scan
from ..definition.selection import Compress
from ..definition.task import Task
from ..errors import error
from ..ops import broadcast, compare, expressions, matmul, reduce, selection
from ..ops.matmul import as_factor, axis_orders
from ..plan.geometry import Shape, contiguous_strides
from ..plan.reductions import accumulated
from ..plan.work import ArraySpec, new_array
from .dask_graphs import FEWER, Function, Operand, arrays_of, blocks, converted, cut, filled, is_dask, like, tree, whole
from .dask_reductions import compared, equal, reduction
from .dask_scans import scan


def on_chunks(call: Call) -> Any:
    """The graph of a call with Dask arrays: of a reduction or a scan by its record, of others by the table `GRAPHS`."""
    op, operands, given = call.public, call.operation.operands, dict(call.given)
    few = given.pop("split_every", None)  # as Dask's own reductions take it
    arrays = arrays_of(call, given)
    specs = {name: new_array(name, array.shape, array.dtype) for name, array in arrays.items()}
    made = call.make(partial(partial, op), given | specs)
    work = describe(op, *made.args, **made.keywords)
    first, task = next(filter(is_dask, arrays.values())), work.host.options.get("task")
    arrays = {name: array if is_dask(array) or op in WHOLE else cut(array, first) for name, array in arrays.items()}
    options = {name: each.default for name, each in signature(op).parameters.items()} | given | arrays
    values = {name: options.pop(name) for name, takes in operands.items() if takes not in (MASK, OUT)}
    with dask.config.set({} if few is None else {"split_every": few}):
        if isinstance(task, Task):
            return reduction(made, work, options.get("where", True), values)
        if isinstance(task, Scan):
            return scan(made, work, values)
        for name in ("out", "casting"):  # already checked
            options.pop(name, None)
        return GRAPHS[op](op, work.results[0] if work.results else None, *values.values(), **options)


def evaluated(program: Program, arrays: dict[str, Any], constants: tuple[int, ...]) -> da.Array:
    """The graph of an expression: each chunk is computed on its own."""
    function = expressions.taking(expressions.evaluate, "x", program)
    call = Call(function, operation_of(function), arrays, 0, arrays)
    arrays = arrays_of(call, arrays)
    first = next(filter(is_dask, arrays.values()))
    operands = [array if is_dask(array) or array.ndim == 0 else cut(array, first) for array in arrays.values()]
    dims = range(max([array.ndim for array in operands]))
    return blocks(partial(evaluate_chunks, program, constants), "evaluate", dims, operands, program.dtype)


def evaluate_chunks(program: Program, constants: tuple[int, ...], *chunks: Any) -> Any:
    """A chunk of an expression."""
    function = expressions.taking(expressions.evaluate, "x", program)
    return function(**{f"x{k}": chunk for k, chunk in enumerate(chunks)}, constants=constants)


# ------------------------------------------------------------------------------------------------------- broadcasting


def choice(op: Function, result: Any, condition: Any, x: Any, y: Any, strategy: Any) -> Any:
    """where."""
    if result is None:
        return nonzero(op, None, condition)
    function = partial(op, strategy=strategy)
    return blocks(function, op.__name__, range(result.ndim), [condition, x, y], result.dtype)


# ---------------------------------------------------------------------------------------------------------- selection


def nonzero(op: Function, result: Any, condition: da.Array) -> tuple[da.Array, ...]:
    """nonzero, and where alone. The number of indices of each chunk is unknown until it is computed."""
    flat, dtype = raveled(condition), np.dtype(np.intp)
    options = {"dtype": dtype, "meta": like(condition, 1, dtype), "token": op.__name__}
    places = da.map_blocks(places_in, flat, chunks=((math.nan,) * flat.numblocks[0],), **options)
    dims = zip(contiguous_strides(condition.shape), condition.shape, strict=True)
    return tuple(da.map_blocks(index_along, places, step, n, **options) for step, n in dims)


def places_in(x: Any, block_info: Any) -> Any:
    """The flat indices of a chunk's nonzero elements."""
    ((first, _),) = block_info[0]["array-location"]
    return selection.nonzero(x)[0] + first


def index_along(places: Any, step: int, n: int) -> Any:
    """Flat indices as indices along a dim of length n and stride ``step``."""
    return places // step % n


def raveled(x: da.Array) -> da.Array:
    """An array as one line, in C order."""
    return (x if x.size else x.blocks[(0,) * x.ndim]).ravel()  # Dask ravels only one empty chunk


def compressed(op: Function, result: Any, condition: Any, a: Any, axis: Any) -> da.Array:
    """compress. How much of each chunk is selected is unknown until it is computed, if the condition is Dask's."""
    name, a = op.__name__, a if is_dask(a) else cut(a, condition) if np.ndim(a) else whole(a)
    a, axis = (raveled(a), 0) if axis is None or a.ndim == 0 else (a, axis % a.ndim)
    length = min(len(condition), a.shape[axis])
    beyond, condition = condition[length:], condition[:length]
    if is_dask(beyond) and beyond.size:
        rule = f"condition is a dask.Array of {length + beyond.size} elements, more than the {length} of axis {axis}"
        raise error(ValueError, name, rule)
    if not is_dask(beyond):
        Compress(name, a.shape, axis).result(0, int(np.count_nonzero(beyond)), None)
    a = a[(slice(None),) * axis + (slice(length),)]
    sizes = (math.nan,) * len(a.chunks[axis])
    if not is_dask(condition):
        ends = np.cumsum(a.chunks[axis])[:-1]
        sizes = tuple([int(np.count_nonzero(part)) for part in np.split(condition, ends)])
        condition = da.from_array(condition, (a.chunks[axis],))
    dims, pairs = range(a.ndim), [(condition.rechunk((a.chunks[axis],)), (axis,)), (a, tuple(range(a.ndim)))]
    return blocks(partial(op, axis=axis), name, dims, pairs, a.dtype, {axis: sizes})


# ----------------------------------------------------------------------------------------------- repeated along dims


def stretched(op: Function, result: ArraySpec, x: Any, shape: Any, **options: Any) -> da.Array:
    """expand and broadcast_to: each chunk repeats to the chunks along new and broadcast dims."""
    lead = result.ndim - x.ndim
    repeats = [d < lead or x.shape[d - lead] != n for d, n in enumerate(result.shape)]
    old = [None if repeat else x.chunks[d - lead] for d, repeat in enumerate(repeats)]
    chunks = filled(old, result.shape, result.dtype)
    new = {d: chunks[d] for d, repeat in enumerate(repeats) if repeat}
    lengths = [(da.from_array(np.asarray(sizes), 1), (d,)) for d, sizes in new.items()]
    function = partial(stretch, partial(op, **options), result.ndim, tuple(new))
    return blocks(function, op.__name__, range(result.ndim), [x, *lengths], result.dtype, new)


def stretch(function: Function, ndim: int, dims: Shape, x: Any, *lengths: Any) -> Any:
    """A chunk, repeated along dims to these lengths."""
    shape = [1] * (ndim - x.ndim) + [*x.shape]
    for d, length in zip(dims, lengths, strict=True):
        shape[d] = int(length[0])
    return function(x, tuple(shape))


# ----------------------------------------------------------------------------------------------------------- products


def matrix_product(
    op: Function, result: ArraySpec, a: Any, b: Any, c: Any, alpha: Any, beta: Any, axes: Any, strategy: Any
) -> da.Array:
    """matmul: one task per block if the summed dim is one chunk long, else a tree of sums."""
    name, val = op.__name__, result.dtype
    if axes is not None:
        orders = axis_orders(name, axes, a.ndim, b.ndim)
        a, b, back = a.transpose(orders[0]), b.transpose(orders[1]), np.argsort(orders[2]).tolist()
        product = matrix_product(op, result.transpose(orders[2]), a, b, c, alpha, beta, None, strategy)
        return product.transpose(back) if back else product
    beta = (0 if c is None else 1) if beta is None else beta
    ndim, dims = result.ndim, tuple(range(result.ndim))
    cols = b.ndim > 1
    batch = ndim - (a.ndim > 1) - cols
    pair = (
        (a, (*dims[max(batch - a.ndim + 2, 0) : batch + (a.ndim > 1)], ndim)),
        (b, (*dims[max(batch - b.ndim + 2, 0) : batch], ndim, *dims[ndim - cols :])),
    )
    factors = [as_factor(name, "alpha", alpha, val)[()], as_factor(name, "beta", beta, val)[()]]
    if is_dask(c) and factors[1] == 0:
        c = c.dtype.type(0)  # nothing is added, but its dtype counts
    if a.numblocks[-1] == b.numblocks[-2 if cols else -1] == 1:
        function = partial(product_of_blocks, partial(op, alpha=alpha, beta=beta, strategy=strategy))
        return blocks(function, name, dims, [*pair, c], val)
    plain = factors == [1, 0]
    total = summed(partial(op, strategy=strategy), name, *pair, val, val if plain else accumulated(val.name))
    c = np.asarray(0 if factors[1] == 0 else c, val) if not is_dask(c) else c
    return total if plain else blocks(partial(scaled, val, *factors), f"{name}-finish", dims, [total, c], val)


def dot_product(op: Function, result: ArraySpec, a: Any, b: Any) -> da.Array:
    """dot, likewise."""
    name, val, ndim, dims = op.__name__, result.dtype, result.ndim, tuple(range(result.ndim))
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return blocks(op, name, dims, [a, b], val)
    kept, last = a.ndim - 1, max(b.ndim - 2, 0)  # dims of a and of b before the summed one
    pair = (a, (*dims[:kept], ndim)), (b, (*dims[kept : kept + last], ndim, *dims[kept + last :]))
    if a.numblocks[-1] == b.numblocks[last] == 1:
        return blocks(partial(product_of_blocks, op), name, dims, [*pair], val)
    return summed(op, name, *pair, val, val)


def product_of_blocks(function: Function, a: Any, b: Any, c: Any = None) -> Any:
    """A call with blocks, which Dask passes as lists of one along the summed dim."""
    (a,), (b,) = a, b
    return function(a, b, **({} if c is None else {"c": c}))


def summed(function: Function, name: str, a: Operand, b: Operand, val: np.dtype, out: np.dtype) -> da.Array:
    """Products of chunks, summed along the last dim of ``a``, which is the first dim of partial products."""
    acc, along = accumulated(val.name), a[1][-1]
    parts = blocks(partial(part_of_product, function, acc), name, (along, *range(along)), [a, b], acc, {along: 1})
    merge, last = (partial(merge_products, acc, each) for each in (acc, out))
    (found,) = tree(parts, name, (0,), False, merge, last, [out], FEWER)
    return found


def part_of_product(function: Function, acc: np.dtype, a: Any, b: Any) -> Any:
    """The product of two chunks, in the accumulator's dtype."""
    if np.result_type(a.dtype, b.dtype) != acc:
        a, b = converted(a, acc), converted(b, acc)
    return function(a, b)[None]


def merge_products(acc: np.dtype, out: np.dtype, x: Any, axis: Shape, keepdims: bool) -> Any:
    """The sum of several partial products."""
    return converted(reduce.sum(x, axis=axis, keepdims=keepdims, dtype=acc), out)


def scaled(val: np.dtype, alpha: Any, beta: Any, total: Any, c: Any) -> Any:
    """alpha * total + beta * c in the accumulator's dtype, then rounded."""
    result = total if alpha == 1 else total * alpha
    result = result if beta == 0 else result + converted(converted(c[()], val), total.dtype) * beta
    return converted(result, val)


#: What makes the graphs of functions other than reductions and scans of one array.
GRAPHS: dict[Function, Function] = {
    compare.array_equal: equal, compare.allclose: compared, broadcast.where: choice, broadcast.expand: stretched,
    broadcast.broadcast_to: stretched, matmul.matmul: matrix_product, matmul.dot: dot_product,
    selection.nonzero: nonzero, selection.compress: compressed,
}  # fmt: skip
#: Those that take an array of the library of Dask's chunks as it is.
WHOLE = (selection.compress,)
