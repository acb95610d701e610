"""softmax, log_softmax and logsumexp over any axes."""

import numbers
from typing import Any, NamedTuple

import numpy as np

from ..call.launch_cache import operation
from ..call.operation import ARRAY, MASK, OUT, WEAK, WEAK_TYPES
from ..definition.records import LOG_SOFTMAX, LOGSUMEXP, SIGNED_LOGSUMEXP, SOFTMAX, WEIGHTED_LOGSUMEXP
from ..definition.reduction import Reduction
from ..definition.task import Task
from ..errors import error
from ..plan import reductions
from ..plan.builder import Builder, shared
from ..plan.dtypes import FLOATS, REALS, accumulator, ctype, dtype_name
from ..plan.geometry import Shape
from ..plan.work import ArraySpec, HostCall, Work, new_array
from .arguments import (
    as_mask,
    broadcast_shapes,
    check_array,
    check_dtype,
    check_out,
    dtype_of,
    fitted,
    normalize_axis,
    result_type,
    scalar,
)
from .broadcast import add_map
from .docstrings import documented
from .reduction import add_reduction, reduced
from .rows import Rows, normalized
from .table import check_strategy


@operation(x=ARRAY, out=OUT, where=MASK)
@documented
def softmax(x, axis=None, *, dtype=None, out=None, where=True, scale=None, strategy=None):
    """exp(x * scale), normalised to sum to 1 over the given axes, as ``scipy.special.softmax``.

    Masked elements become 0, also where all elements of a row are masked.

    {softmax}

    Notes
    -----
    A row that is all -inf, or that holds +inf or NaN, becomes NaN, as in SciPy. The one-pass maximum and sum follow M.
    Milakov and N. Gimelshein, "Online normalizer calculation for softmax" (2018).

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.softmax(np.array([[0.0, 0.0], [0.0, np.log(3.0)]]), axis=1)
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    return exponentials(SOFTMAX, x, axis, dtype, out, where, scale, strategy)


@operation(x=ARRAY, out=OUT, where=MASK)
@documented
def log_softmax(x, axis=None, *, dtype=None, out=None, where=True, scale=None, strategy=None):
    """Logarithm of the softmax over the given axes, as ``scipy.special.log_softmax``.

    Masked elements become -inf.

    {softmax}

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.log_softmax(np.array([0.0, 0.0]))
    array([-0.69314718, -0.69314718])
    """
    return exponentials(LOG_SOFTMAX, x, axis, dtype, out, where, scale, strategy)


@operation(a=ARRAY, b=WEAK, out=OUT, where=MASK)
@documented
def logsumexp(
    a, axis=None, b=None, keepdims=False, return_sign=False, *, dtype=None, out=None, where=True, scale=None,
    strategy=None,
):  # fmt: skip
    """log(sum(b * exp(a * scale))) over the given axes, as ``scipy.special.logsumexp``; in one pass over memory.

    The result is -inf where no element takes part.

    Parameters
    ----------
    a : array_like
        {array}
        bool, integer or floating (including float16 and bfloat16).
    {axis}
    b : array_like, optional
        Real weights, which may be negative; ``a`` and ``b`` broadcast. Elements of weight 0 are left out.
    {keepdims}
    return_sign : bool, optional
        Return the logarithm of the sum's magnitude, and its sign. Otherwise, the logarithm of a negative sum is NaN.
    {softmax_dtype}
    {out}
    {where}
    scale : float, optional
        Factor on ``a``, by default 1.
    {classic_strategy}

    Returns
    -------
    ndarray or scalar
        The logarithm; with ``return_sign`` a tuple of it and the sign, which is 1, 0 or -1.
        {like_input}
        On a GPU, a call takes up to 1 MiB of workspace; ``b`` together with ``where`` takes an array of their shape.

    Raises
    ------
    {AxisError}
    {TypeError}
    {ValueError} the shapes of ``a`` and ``b`` do not broadcast

    Notes
    -----
    The maximum is kept out of the sum, so that results near 0 keep their digits: log(1 + 1e-20) is 1e-20.
    docs/accuracy.md has the measured errors.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> gpuops.logsumexp(np.array([[0.0, 0.0], [1000.0, 1000.0]]), axis=1)
    array([6.93147181e-01, 1.00069315e+03])
    >>> gpuops.logsumexp([0.0, 0.0], b=[1, -2], return_sign=True)
    (np.float64(0.0), np.float64(-1.0))
    """
    op = "logsumexp"
    check_strategy(op, strategy)
    given = arguments(op, a, axis, dtype, where, scale, 1.0 if b is None and return_sign else b, "a")
    x, result = given.x, given.result
    shape, steps = reduced(x, given.axis, keepdims)
    if out is not None:
        check_out(op, out, shape, result)
    host = sums_on_host(given, keepdims, return_sign)
    signs = (new_array("sign", shape, result, steps, x.machine),) if return_sign else ()
    if x.machine is None:
        return Work(op, (out or new_array("out", shape, result, steps), *signs), host)
    builder = Builder(x.machine)
    operand = builder.computable(x, given.axis)
    beside = weights(builder, given) if given.weights is not None else given.mask and builder.readable(given.mask)
    record = LOGSUMEXP if given.weights is None else WEIGHTED_LOGSUMEXP

    def reduce_to(target: ArraySpec) -> None:
        val = dtype_name(given.val)
        problem = reductions.problem(record.struct, operand, beside, target, given.axis, val, scale=given.scale)
        add_reduction(builder, problem, strategy)

    blocked = out is not None and shared(out, x, given.mask, given.weights)
    target = builder.target(out, blocked, shape, result, steps)
    if not return_sign:
        reduce_to(target)
    else:
        pairs = builder.temporary("pairs", shape, np.result_type(given.val, np.complex64))
        reduce_to(pairs)
        for array, part in zip((target, *signs), parts(pairs, given.val), strict=True):
            add_map(builder, "Expand", array, [part], (ctype(array.dtype), ctype(given.val)))
    builder.deliver(target, out)
    return Work(op, (out or target, *signs), host, builder.finish())


def sums_on_host(given: "Arguments", keepdims: bool, signed: bool) -> HostCall:
    """What the CPU does for logsumexp."""
    from ..host import reduce  # which costs time at import

    x, b, options = given.x, given.weights, {"scale": given.scale}
    record, places = LOGSUMEXP if b is None else SIGNED_LOGSUMEXP if signed else WEIGHTED_LOGSUMEXP, None
    if b is not None:
        places = tuple(range(x.ndim - b.ndim, x.ndim))
    bound = record.bind(x.dtype, given.val, None if b is None else given.val)
    task = Task(bound, given.axis, keepdims, form=Signed if signed else None, places=places, options=options)
    more: dict[str, Any] = {} if given.number is None else {"b": given.number}
    if x.machine is None and reduce.is_small(bound, x.shape, x.strides, given.axis):
        more["run"] = reduce.whole(bound)
    return HostCall(reduce.logsumexp, {"task": task, "shape": x.shape, "dtype": given.result, **more})


def weights(builder: Builder, given: "Arguments") -> ArraySpec:
    """The weights of ``logsumexp``, 0 where the mask leaves elements out: the kernel takes one operand beside a."""
    b, mask = given.weights, given.mask
    assert b is not None
    if mask is None:
        return builder.readable(b).broadcast_to(given.x.shape)
    shape, bits = broadcast_shapes("logsumexp", b.shape, mask.shape), ctype(b.dtype)
    chosen = builder.temporary("weights", shape, b.dtype)
    b = b if b.value is not None else builder.readable(b)
    nothing = scalar("nothing", np.zeros((), b.dtype), b.machine)
    add_map(builder, "Where", chosen, [builder.readable(mask), b, nothing], (bits, "u8", bits, bits))
    return chosen.broadcast_to(given.x.shape)


def parts(pairs: ArraySpec, val: np.dtype) -> tuple[ArraySpec, ArraySpec]:
    """Views of the two numbers of pairs."""
    steps = tuple([2 * step for step in pairs.steps])
    return pairs.view(pairs.shape, steps, val), pairs.view(pairs.shape, steps, val, offset=val.itemsize)


def exponentials(
    record: Reduction, x: Any, axis: Any, dtype: Any, out: Any, where: Any, scale: Any, strategy: str | None
) -> Work:
    """The description of softmax and log_softmax."""
    given = arguments(record.name, x, axis, dtype, where, scale)
    return normalized(record, given.rows, out, strategy, scale=given.scale)


class Signed(NamedTuple):
    """A logarithm of a sum's magnitude, and the sign."""

    value: Any
    sign: Any


class Arguments(NamedTuple):
    """Arguments that have been checked."""

    x: ArraySpec
    mask: ArraySpec | None
    axis: Shape
    val: np.dtype  # of the arithmetic
    result: np.dtype
    scale: float
    weights: ArraySpec | None = None  # of logsumexp
    number: np.ndarray | None = None  # a weight that is a Python scalar

    @property
    def rows(self) -> Rows:
        """Those of an op that gives a result for each element."""
        return Rows(self.x, self.mask, self.axis, self.val, self.result)


def arguments(
    op: str, x: Any, axis: Any, dtype: Any, where: Any, scale: Any = None, b: Any = None, name: str = "x"
) -> Arguments:
    """Check what softmax and its like are given."""
    check_array(op, name, x, REALS)
    common = x.dtype if b is None else result_type(op, **{name: x}, b=b)
    floating = common if dtype_name(common) in FLOATS else np.dtype(np.float64)
    number = fitted(op, "b", b, floating) if type(b) in WEAK_TYPES else None
    b = b if number is None else scalar("b", number, x.machine)
    if b is not None:
        check_array(op, "b", b, REALS)
        x = x.broadcast_to(broadcast_shapes(op, x.shape, b.shape))
    axis = normalize_axis(op, axis, x.shape)
    mask = as_mask(op, where, x.shape)
    result = dtype_of(op, dtype) or floating
    check_dtype(op, "the result", result, FLOATS)
    val = np.dtype(accumulator(dtype_name(floating if floating.itemsize > result.itemsize else result)))
    if scale is not None and not isinstance(scale, numbers.Real):
        raise error(TypeError, op, f"scale must be a real number, got {scale!r}")
    return Arguments(x, mask, axis, val, result, 1.0 if scale is None else float(scale), b, number)
