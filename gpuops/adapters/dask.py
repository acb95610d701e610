"""Dask arrays: a call becomes a graph of calls of the same op on chunks, which are NumPy's or CuPy's arrays.

Imported when the first Dask array shows up, never by ``import gpuops``. A call is first described: so it is checked
like any other, and what the result is like is known. Where an op goes
over several chunks, each of them gives a partial result in the dtype in which numbers are added up, and a tree brings
these together, a few at a time. Tasks are named after their op.
"""

from __future__ import annotations

import inspect
import math
from functools import partial, wraps
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np

from ..call.arrays import is_scalar
from ..call.dispatch import describe
from ..call.operation import WEAK_TYPES, operation_of
from ..definition.records import REDUCTIONS, SEARCHES
from ..definition.reduction import quotient as divided
from ..ops import broadcast, matmul, reduce, softmax
from ..ops.arguments import normalize_axis
from ..ops.matmul import as_factor, axis_orders
from ..ops.reduction import NOT_GIVEN, as_initial
from ..ops.softmax import arguments, finished, merged, statistics
from ..plan import rows
from ..plan.geometry import Shape, contiguous_strides
from ..plan.work import ArraySpec, new_array
from .dask_graphs import (
    FEWER,
    Function,
    Operand,
    accumulated,
    alone,
    arrays_of,
    blocks,
    chosen,
    converted,
    cut,
    filled,
    is_dask,
    labelled,
    like,
    masked,
    on_block,
    on_blocks,
    single,
    tree,
    whole,
)
from .dask_measures import GRAPHS as MEASURES
from .dask_variance import Spread, spread


def over_chunks(op: Function, compute: Function) -> Function:
    """An op of Dask arrays. ``compute`` makes the graph, given the result's spec and the arguments by name. These are
    correct; arrays among them are Dask's."""
    name, signature, operands = op.__name__, inspect.signature(op), operation_of(op).operands

    @wraps(op)
    def call(*args: Any, **options: Any) -> Any:
        if (few := options.pop("split_every", None)) is not None:  # as Dask's own reductions take it
            with dask.config.set(split_every=few):
                return call(*args, **options)
        try:
            given = signature.bind(*args, **options)
        except TypeError:
            return describe(op, *args, **options)  # Python words it
        arrays = arrays_of(name, operands, given.arguments)
        given.arguments |= {key: new_array(key, array.shape, array.dtype) for key, array in arrays.items()}
        results = describe(op, *given.args, **given.kwargs).results
        first = next(filter(is_dask, arrays.values()))
        given.apply_defaults()
        given.arguments |= {key: array if is_dask(array) else cut(array, first) for key, array in arrays.items()}
        given.arguments.pop("out", None)
        given.arguments.pop("casting", None)  # which has been checked
        return compute(name, results[0] if results else None, **given.arguments)

    return call


def host_operand(name: str, value: Any) -> Any:
    """The spec of an operand of a host's call; a Python scalar and None as they are."""
    if is_dask(value):
        return new_array(name, value.shape, value.dtype)
    if value is None or type(value) in WEAK_TYPES:
        return value
    return new_array(name, np.shape(value), np.asarray(value).dtype)


# --------------------------------------------------------------------------------------------- reductions and softmax


def at_once(op: str, result: ArraySpec, x: da.Array, where: Any, axis: Shape, **options: Any) -> da.Array:
    """The op on each chunk, which is alone along the axes."""
    dims = tuple([d for d in range(x.ndim) if result.ndim == x.ndim or d not in axis])
    function = partial(on_blocks, partial(FUNCTIONS[op], axis=axis, **options), "where")
    lengths = {d: result.shape[d] for d in dims if d in axis}
    return blocks(function, op, dims, masked(x, where), result.dtype, lengths)


def reduction(op: str, result: ArraySpec, a: Any, axis: Any, keepdims: bool, where: Any, **options: Any) -> da.Array:
    """A reduction: of chunks that are alone along the axes at once, of others as a tree."""
    x = whole(a)
    axis = normalize_axis(op, axis, x.shape)
    options = {name: value for name, value in options.items() if value is not NOT_GIVEN}
    if alone(x, axis):
        return at_once(op, result, x, where, axis, keepdims=keepdims, **options)
    initial, strategy = options.get("initial"), options["strategy"]
    if REDUCTIONS[op].exponent:
        return spread(Spread(op, axis, keepdims, result.dtype, **options), x, where)
    if op == "nanmean":
        op, where = "mean", where if x.dtype.kind in "biu" else chosen(x == x, where)
    made = Tree(op, op, axis, keepdims, result.dtype, result.dtype)
    if op != "mean":
        return reduced(made, x, where, initial, strategy)
    total = reduced(made._replace(op="sum", out=accumulated(result.dtype)), x, where, None, strategy)
    count, lead = bool(where) if is_scalar(where) else where, x.ndim - np.ndim(where)
    times = math.prod(x.shape[d] for d in axis if d < lead or where.shape[d - lead] == 1)
    if is_dask(where):
        selected, dtype = tuple([d - lead for d in axis if d >= lead]), np.dtype(np.int64)
        count = reduced(Tree("sum", f"{op}-count", selected, keepdims, dtype, dtype), where, True, None, strategy)
    finish = partial(quotient, result.dtype, times)
    return blocks(finish, f"{op}-finish", range(result.ndim), [total, count], result.dtype)


def search(op: str, result: ArraySpec, a: Any, axis: Any, keepdims: bool, strategy: Any) -> da.Array:
    """argmax and argmin, of chunks that are alone along the axis."""
    x = whole(a)
    along = normalize_axis(op, axis, x.shape)
    x = x.rechunk(dict.fromkeys(along, -1))
    dims = tuple([d for d in range(x.ndim) if keepdims or d not in along])
    function = partial(on_block, partial(FUNCTIONS[op], axis=axis, keepdims=keepdims, strategy=strategy))
    return blocks(function, op, dims, [labelled(x, x.ndim)], result.dtype, {d: 1 for d in dims if d in along})


class Tree(NamedTuple):
    """A tree of reductions of values that are taken as ``val``, the last of which gives ``out``."""

    op: str
    name: str  # of its tasks
    axis: Shape
    keepdims: bool
    val: np.dtype
    out: np.dtype


def reduced(made: Tree, x: da.Array, where: Any, initial: Any, strategy: str | None) -> da.Array:
    """An array reduced by a tree."""
    op, name, axis, keepdims, val, out = made
    record, function = REDUCTIONS[op], FUNCTIONS[op]
    merging = FUNCTIONS[record.plain] if record.plain and record.identity else function  # a sum may be NaN
    acc = accumulated(val) if record.arithmetic else val
    once: dict[str, Any] = {} if initial is None else {"initial": as_initial(op, initial, val).astype(acc)}
    options: dict[str, Any] = {"dtype": acc} if record.arithmetic else once
    if record.zero and acc.kind in "fc":  # which leaves the sum of -0 what it is, until the last step
        once = {"initial": acc.type(0)} | once
        options |= {"initial": acc.type(-0.0)}
    part = partial(part_of_reduction, partial(function, axis=axis, strategy=strategy, **options), val)
    parts = blocks(part, name, range(x.ndim), masked(x, where), acc, dict.fromkeys(axis, 1))
    merge, last = (partial(merge_parts, merging, *each) for each in ((acc, options), (out, options | once)))
    return tree(parts, name, axis, keepdims, merge, last, out)


def part_of_reduction(function: Function, val: np.dtype, x: Any, where: Any) -> Any:
    """What a chunk contributes, in the dtype in which it is added up."""
    x = x if accumulated(val) == val else converted(x, val)  # halves are rounded before they are added up as float32
    return function(x, keepdims=True, where=where)


def merge_parts(function: Function, out: np.dtype, options: dict[str, Any], x: Any, axis: Shape, keepdims: bool) -> Any:
    """The contributions of several chunks in one."""
    return converted(function(x, axis=axis, keepdims=keepdims, **options), out)


def quotient(val: np.dtype, times: int, total: Any, count: Any) -> Any:
    """A mean: divided in double precision, as NumPy does, and rounded."""
    number = np.multiply(count, times, dtype=np.float64)
    return converted(divided(total.astype(np.result_type(total.dtype, np.float64)), number), val)


def exponential(
    op: str, result: ArraySpec, x: Any, axis: Any, dtype: Any, where: Any, scale: Any, strategy: Any, **more: Any
) -> da.Array:
    """softmax and its like: of chunks that are alone along the axes at once, of others in two readings."""
    x = whole(x)
    given = arguments(op, new_array("x", x.shape, x.dtype), axis, dtype, True, scale)
    axis, val, out = given.axis, given.val, given.result
    if alone(x, axis):
        return at_once(op, result, x, where, axis, dtype=out, scale=scale, strategy=strategy, **more)
    part = partial(statistics, axis=axis, val=val, scale=given.scale)
    pair, lengths = np.result_type(val, np.complex64), dict.fromkeys(axis, 1)
    stats = blocks(part, f"{op}-max", range(x.ndim), masked(x, where), pair, lengths)
    stats = tree(stats, f"{op}-max", axis, True, merged, merged, pair)
    finish = partial(finished, op=op, dtype=out, scale=given.scale)
    return blocks(finish, f"{op}-finish", range(x.ndim), [*masked(x, where), stats], out)


def log_sum(
    op: str, result: Any, a: Any, axis: Any, b: Any, keepdims: bool, return_sign: bool, dtype: Any, where: Any,
    scale: Any, strategy: Any,
) -> Any:  # fmt: skip
    """logsumexp: of chunks that are alone along the axes at once, of others that of what each of them gives, with signs
    as weights."""
    a = a if is_dask(a) else np.asarray(a)  # a scalar, which goes with chunks of any kind
    weights = host_operand("b", b)
    given = arguments(op, new_array("a", a.shape, a.dtype), axis, dtype, True, scale, weights)
    axis, acc, out = given.axis, given.val, given.result
    how = {"scale": scale, "strategy": strategy}
    if b is None and not return_sign:
        a = whole(a)
        if alone(a, axis):
            return at_once(op, result, a, where, axis, dtype=out, keepdims=keepdims, **how)
        part = partial(on_blocks, partial(softmax.logsumexp, axis=axis, keepdims=True, dtype=acc, **how), "where")
        parts = blocks(part, op, range(a.ndim), masked(a, where), acc, dict.fromkeys(axis, 1))
        merge, last = (partial(merge_parts, softmax.logsumexp, each, {"dtype": acc}) for each in (acc, out))
        return tree(parts, op, axis, keepdims, merge, last, out)
    shape, pair = given.x.shape, np.result_type(acc, np.complex64)
    a, b = (da.broadcast_to(each, shape) if is_dask(each) and each.shape != shape else each for each in (a, b))
    part = partial(part_of_signed, partial(softmax.logsumexp, axis=axis, dtype=acc, **how))
    _, mask = masked(a if is_dask(a) else b, where)
    pieces, lengths = [labelled(a, len(shape)), mask, labelled(b, len(shape))], dict.fromkeys(axis, 1)
    parts = blocks(part, op, range(len(shape)), pieces, pair, lengths)
    both = tree(parts, op, axis, keepdims, merge_signed, merge_signed, pair)
    finish = [partial(part_of_pair, out, n, return_sign) for n in range(1 + return_sign)]
    results = [blocks(each, f"{op}-finish", range(both.ndim), [both], out) for each in finish]
    return tuple(results) if return_sign else results[0]


def part_of_signed(function: Function, x: Any, where: Any, b: Any) -> Any:
    """What a chunk contributes to a sum whose sign counts: its logarithm and its sign as one complex number."""
    return paired(*function(single(x), b=single(b), where=single(where), keepdims=True, return_sign=True))


def merge_signed(x: Any, axis: Shape, keepdims: bool) -> Any:
    """The contributions of several chunks in one."""
    return paired(*softmax.logsumexp(x.real, axis, x.imag, keepdims, True))


def paired(logarithm: Any, sign: Any) -> Any:
    """Two arrays as the parts of complex numbers."""
    pair = converted(logarithm, np.result_type(logarithm.dtype, np.complex64))
    pair = np.asarray(pair) if np.isscalar(pair) else pair
    pair.imag = sign
    return pair


def part_of_pair(out: np.dtype, n: int, signed: bool, pair: Any) -> Any:
    """The logarithms (0) or the signs (1) of pairs; without signs, a negative sum has no logarithm."""
    if n == 0 and not signed:
        return converted(broadcast.where(pair.imag < 0, np.nan, pair.real), out)
    return converted(pair.imag if n else pair.real, out)


# ------------------------------------------------------------------------------------------------------- broadcasting


def choice(op: str, result: Any, condition: Any, x: Any, y: Any, strategy: Any) -> Any:
    """where."""
    if result is None:
        return nonzero(op, condition)
    return blocks(partial(broadcast.where, strategy=strategy), op, range(result.ndim), [condition, x, y], result.dtype)


def nonzero(op: str, condition: da.Array) -> tuple[da.Array, ...]:
    """The indices of the elements that are not zero, by dim; how many a chunk has is known when it is computed."""
    some = condition if condition.size else condition.blocks[(0,) * condition.ndim]  # Dask ravels no more of nothing
    flat, dtype = some.ravel(), np.dtype(np.intp)
    options = {"dtype": dtype, "meta": like(condition, 1, dtype), "token": op}
    places = da.map_blocks(places_in, flat, chunks=((math.nan,) * flat.numblocks[0],), **options)
    steps = contiguous_strides(condition.shape)
    dims = zip(steps, condition.shape, strict=True)
    return tuple(da.map_blocks(index_along, places, step, n, **options) for step, n in dims)


def places_in(x: Any, block_info: Any) -> Any:
    """The flat indices of the elements of a chunk that are not zero."""
    ((first, _),) = block_info[0]["array-location"]
    return broadcast.where(x)[0] + first


def index_along(places: Any, step: int, n: int) -> Any:
    """Flat indices as indices along a dim of n, of which one step is so many elements."""
    return places // step % n


def stretched(op: str, result: ArraySpec, shape: Any, **options: Any) -> da.Array:
    """expand and broadcast_to: of each chunk, to the chunks along dims in which it repeats."""
    x = options.pop("x" if op == "expand" else "array")
    lead = result.ndim - x.ndim
    repeats = [d < lead or x.shape[d - lead] != n for d, n in enumerate(result.shape)]
    old = [None if repeat else x.chunks[d - lead] for d, repeat in enumerate(repeats)]
    chunks = filled(old, result.shape, result.dtype)
    new = {d: chunks[d] for d, repeat in enumerate(repeats) if repeat}
    lengths = [(da.from_array(np.asarray(sizes), 1), (d,)) for d, sizes in new.items()]
    function = partial(stretch, partial(FUNCTIONS[op], **options), result.ndim, tuple(new))
    return blocks(function, op, range(result.ndim), [x, *lengths], result.dtype, new)


def stretch(function: Function, ndim: int, dims: Shape, x: Any, *lengths: Any) -> Any:
    """A chunk, repeated along dims to these lengths."""
    shape = [1] * (ndim - x.ndim) + [*x.shape]
    for d, length in zip(dims, lengths, strict=True):
        shape[d] = int(length[0])
    return function(x, tuple(shape))


# ----------------------------------------------------------------------------------------------------------- products


def matrix_product(
    op: str, result: ArraySpec, a: Any, b: Any, alpha: Any, beta: Any, c: Any, axes: Any, strategy: Any
) -> da.Array:
    """matmul: of chunks that are alone along the summed dim at once, of others as a tree of sums."""
    if axes is not None:
        orders = axis_orders(op, axes, a.ndim, b.ndim)
        a, b, back = a.transpose(orders[0]), b.transpose(orders[1]), np.argsort(orders[2]).tolist()
        turned = result.transpose(orders[2])
        product = matrix_product(op, turned, a, b, alpha, beta, c, None, strategy)
        return product.transpose(back) if back else product
    beta = (0 if c is None else 1) if beta is None else beta
    val, ndim, dims = result.dtype, result.ndim, tuple(range(result.ndim))
    rows, cols = a.ndim > 1, b.ndim > 1
    batch = ndim - rows - cols
    pair = (
        (a, (*dims[max(batch - a.ndim + 2, 0) : batch + rows], ndim)),
        (b, (*dims[max(batch - b.ndim + 2, 0) : batch], ndim, *dims[batch + rows :])),
    )
    factors = [as_factor(op, "alpha", alpha, val)[()], as_factor(op, "beta", beta, val)[()]]
    if is_dask(c) and factors[1] == 0:
        c = c.dtype.type(0)  # nothing is added, but its dtype counts
    if a.numblocks[-1] == b.numblocks[-2 if cols else -1] == 1:
        function = partial(matmul.matmul, alpha=alpha, beta=beta, strategy=strategy)
        return blocks(partial(on_blocks, function, "c"), op, dims, [*pair, c], val)
    plain = factors == [1, 0]
    total = summed(op, partial(matmul.matmul, strategy=strategy), *pair, val, val if plain else accumulated(val))
    c = np.asarray(0 if factors[1] == 0 else c, val) if not is_dask(c) else c
    return total if plain else blocks(partial(scaled, val, *factors), f"{op}-finish", dims, [total, c], val)


def dot_product(op: str, result: ArraySpec, a: Any, b: Any) -> da.Array:
    """dot, likewise."""
    val, ndim, dims = result.dtype, result.ndim, tuple(range(result.ndim))
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return blocks(matmul.dot, op, dims, [a, b], val)
    kept, last = a.ndim - 1, max(b.ndim - 2, 0)  # dims of a before its last axis, and of b before that which is summed
    pair = (a, (*dims[:kept], ndim)), (b, (*dims[kept : kept + last], ndim, *dims[kept + last :]))
    if a.numblocks[-1] == b.numblocks[last] == 1:
        return blocks(partial(on_blocks, matmul.dot, "b"), op, dims, [*pair], val)
    return summed(op, matmul.dot, *pair, val, val)


def summed(op: str, function: Function, a: Operand, b: Operand, val: np.dtype, out: np.dtype) -> da.Array:
    """Products of chunks, added up along the last dim of ``a``, which comes first meanwhile."""
    acc, along = accumulated(val), a[1][-1]
    parts = blocks(partial(part_of_product, function, acc), op, (along, *range(along)), [a, b], acc, {along: 1})
    merge, last = (partial(merge_parts, reduce.sum, dtype, {"dtype": acc}) for dtype in (acc, out))
    return tree(parts, op, (0,), False, merge, last, out, FEWER)


def part_of_product(function: Function, acc: np.dtype, a: Any, b: Any) -> Any:
    """What two chunks contribute, in the dtype in which it is added up."""
    if np.result_type(a.dtype, b.dtype) != acc:
        a, b = converted(a, acc), converted(b, acc)
    return function(a, b)[None]


def scaled(val: np.dtype, alpha: Any, beta: Any, total: Any, c: Any) -> Any:
    """alpha * total + beta * c in the dtype in which it was added up, rounded."""
    result = total if alpha == 1 else total * alpha
    result = result if beta == 0 else result + converted(converted(c[()], val), total.dtype) * beta
    return converted(result, val)


#: What makes the graph of each public function.
GRAPHS: dict[Function, Function] = {
    **{getattr(reduce, name): reduction for name in REDUCTIONS},
    **{getattr(reduce, name): search for name in SEARCHES},
    **{getattr(softmax, name): exponential for name in rows.OPS},
    softmax.logsumexp: log_sum,
    broadcast.where: choice,
    **dict.fromkeys((broadcast.expand, broadcast.broadcast_to), stretched),
    matmul.matmul: matrix_product,
    matmul.dot: dot_product,
    **MEASURES,
}
FUNCTIONS = {function.__name__: function for function in GRAPHS}
#: What they do with Dask arrays.
OPS = {name: over_chunks(function, GRAPHS[function]) for name, function in FUNCTIONS.items()}
