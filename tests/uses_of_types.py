"""Right and wrong uses of gpuops as type checkers see it. It is checked, never run; see ``test_types.py``.

Lines that end with "# wrong" are errors, and there are no others.
"""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import gpuops
import gpuops.array_api as xp

Array = npt.NDArray[Any]
Float32 = npt.NDArray[np.float32]


class Tensor:
    """An array of another library, which speaks DLPack."""

    def __dlpack__(self, *, stream: Any = None, copy: bool | None = None) -> Any:
        raise NotImplementedError

    def __array__(self, dtype: Any = None) -> npt.NDArray[Any]:
        raise NotImplementedError


class Numba:
    """One that tells its address."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise NotImplementedError


class Lazy:
    """One of Dask's kind."""

    def __dask_graph__(self) -> Any:
        raise NotImplementedError

    def __array__(self, dtype: Any = None) -> npt.NDArray[Any]:
        raise NotImplementedError


def kinds_that_go_in_come_out(x: npt.NDArray[np.float32], t: Tensor, n: Numba, lazy: Lazy, any_: Any) -> None:
    assert_type(gpuops.sum(x, axis=0), Float32)
    assert_type(gpuops.sum([1, 2, 3]), Array)
    assert_type(gpuops.sum([[1.5], [2.5]], 1, keepdims=True), Array)
    assert_type(gpuops.sum(2.5), Array)
    assert_type(gpuops.sum(t, (0, 1), dtype="float64"), Tensor)
    assert_type(gpuops.sum(n, axis=-1, initial=3), Numba)
    assert_type(gpuops.sum(lazy), Lazy)
    assert_type(gpuops.softmax(t, axis=1, where=t, scale=0.5), Tensor)
    assert_type(gpuops.softmax(x, 1), Float32)
    assert_type(gpuops.any(x), npt.NDArray[np.bool])
    assert_type(gpuops.any(t), Tensor)
    assert_type(gpuops.argmax(x, axis=np.int64(1)), npt.NDArray[np.int64])
    assert_type(gpuops.nanargmin(t, 0, keepdims=True), Tensor)
    assert_type(gpuops.count_nonzero(x, axis=(0, 1)), npt.NDArray[np.int64])
    assert_type(gpuops.allclose(x, 1.0), bool)
    assert_type(gpuops.allclose(t, t, equal_nan=True), Tensor)
    assert_type(gpuops.array_equal(1, t), Tensor)
    assert_type(gpuops.vector_norm(t, ord=1, axis=0), Tensor)
    assert_type(gpuops.matmul(x, x), Array)
    assert_type(gpuops.matmul(t, t, alpha=2.0, c=t), Tensor)
    assert_type(gpuops.dot(x, [1.0, 2.0]), Array)
    assert_type(gpuops.where(x, x, 0.0), Float32)
    assert_type(gpuops.where(t, t, 0.0), Tensor)
    assert_type(gpuops.where(x), tuple[npt.NDArray[np.int64], ...])
    assert_type(gpuops.where(t), tuple[Tensor, ...])
    assert_type(gpuops.nonzero(x), tuple[npt.NDArray[np.int64], ...])
    assert_type(gpuops.nonzero(t), tuple[Tensor, ...])
    assert_type(gpuops.compress([True, False], x, axis=0), Float32)
    assert_type(gpuops.compress(t, t), Tensor)
    assert_type(gpuops.expand(x, (-1, 4)), Float32)
    assert_type(gpuops.broadcast_to(t, 4), Tensor)
    gpuops.softmax(any_, axis=1, strategy="rows")
    assert_type(gpuops.sum(any_).get(), Any)
    assert_type(gpuops.where(any_ > 0, any_, 0).get(), Any)
    assert_type(gpuops.mean_var(any_).mean.get(), Any)
    gpuops.softmax(any_, dim=1)  # wrong


def every_function(x: npt.NDArray[np.float32], t: Tensor) -> None:
    """Those that no other use here has."""
    assert_type(gpuops.prod(t, axis=0), Tensor)
    assert_type(gpuops.max(t, axis=(0, -1)), Tensor)
    assert_type(gpuops.min([[3, 1], [2, 5]], axis=0), Array)
    assert_type(gpuops.amax(x, axis=0, strategy="rows"), Float32)
    assert_type(gpuops.amin(t, keepdims=True), Tensor)
    assert_type(gpuops.mean(t, dtype=np.float64), Tensor)
    assert_type(gpuops.var(x, axis=0, correction=1), Float32)
    assert_type(gpuops.std(t, ddof=1), Tensor)
    assert_type(gpuops.ptp(t, 0), Tensor)
    assert_type(gpuops.all(t, where=t), Tensor)
    assert_type(gpuops.all([True, False]), npt.NDArray[np.bool])
    assert_type(gpuops.nansum(x, initial=None), Float32)
    assert_type(gpuops.nanprod(t), Tensor)
    assert_type(gpuops.nanmean(x, where=x > 0), Float32)
    assert_type(gpuops.nanmax(t), Tensor)
    assert_type(gpuops.nanmin(x, initial=np.float32(3)), Float32)
    assert_type(gpuops.nanvar(t, correction=0), Tensor)
    assert_type(gpuops.nanstd(x), Float32)
    assert_type(gpuops.argmin(t, axis=-1), Tensor)
    assert_type(gpuops.nanargmax(x, axis=0, keepdims=True), npt.NDArray[np.int64])
    assert_type(gpuops.min_with_index(t, axis=0).values, Tensor)
    assert_type(gpuops.sum_of_squares(t, axis=1), Tensor)
    assert_type(gpuops.log_softmax(t, axis=-1), Tensor)
    assert_type(gpuops.rms_norm(t, eps=1e-6), Tensor)
    assert_type(gpuops.cumsum(t, axis=0, reverse=True, exclusive=True), Tensor)
    assert_type(gpuops.cumprod([1, 2, 3]), Array)
    assert_type(gpuops.cummax(t, strategy="look_back"), Tensor)
    assert_type(gpuops.cummin(t, 0), Tensor)
    assert_type(gpuops.logcumsumexp(t, -1), Tensor)
    gpuops.cumsum(t, axis=(0, 1))  # wrong
    gpuops.cummax(t, strategy="rows")  # wrong


def expressions(x: Float32, i: npt.NDArray[np.int32], t: Tensor, any_: Any) -> None:
    """They are of a kind of arrays: NumPy's, or those of another library."""
    a, b = gpuops.lazy(x), gpuops.lazy(t)
    a = (a - x) * 2.5 + gpuops.lazy(a)
    b = 1 / (b + t) - [1.0, 2.0]
    a = (x - a) ** i
    a = gpuops.where(a > 0, a, 0)
    b = gpuops.where((b > t) & ~(b < 0), t, b)
    a = gpuops.where(x, a, 1)
    a = abs(a).astype(np.float64).clip(0, x).conj().real
    assert_type(gpuops.evaluate(a), Array)
    assert_type(gpuops.evaluate(b), Tensor)
    assert_type(gpuops.evaluate(x), Float32)
    assert_type(gpuops.evaluate(a, out=x), Float32)
    assert_type(gpuops.evaluate(any_ - a).get(), Any)
    assert_type(gpuops.where(a > 0, a, 0, out=x), Float32)
    assert_type(gpuops.where(a), tuple[npt.NDArray[np.int64], ...])
    assert_type(gpuops.sum((a - x) ** 2, axis=1), Array)
    assert_type(gpuops.sum(x, where=a > 0), Float32)
    assert_type(gpuops.sum(b, where=b > 0), Tensor)
    assert_type(gpuops.max(a), Array)
    assert_type(gpuops.max(abs(b - t), axis=0), Tensor)
    assert_type(gpuops.any(b != t), Tensor)
    assert_type(gpuops.argmax(a, axis=0), npt.NDArray[np.int64])
    assert_type(gpuops.allclose(a, x), bool)
    assert_type(gpuops.softmax(b * 2, axis=1), Tensor)
    assert_type(gpuops.mean_var(b).var, Tensor)
    assert_type(a.dtype, np.dtype[Any])
    assert_type(a.shape, tuple[int, ...])
    gpuops.mean(np.exp(a))
    gpuops.matmul(a, x)  # wrong
    gpuops.dot(x, a)  # wrong
    gpuops.broadcast_to(a, 4)  # wrong
    gpuops.sum(x, out=a)  # wrong
    gpuops.evaluate(a, x)  # wrong
    a[0]  # wrong
    len(a)  # wrong
    a @ x  # wrong
    a.sum()  # wrong


def dtypes_that_stay(
    x: Float32, i: npt.NDArray[np.int32], z: npt.NDArray[np.complex64], mask: npt.NDArray[np.bool]
) -> None:
    assert_type(gpuops.softmax(x, axis=1, where=mask, scale=0.5), Float32)
    assert_type(gpuops.log_softmax(x), Float32)
    assert_type(gpuops.rms_norm(x, axis=(0, 1)), Float32)
    assert_type(gpuops.logsumexp(x, axis=1), Float32)
    assert_type(gpuops.mean(x, 0), Float32)
    assert_type(gpuops.sum(z), npt.NDArray[np.complex64])
    assert_type(gpuops.cumsum(x, axis=0), Float32)
    assert_type(gpuops.cumprod(z), npt.NDArray[np.complex64])
    assert_type(gpuops.cummin(x, reverse=True), Float32)
    assert_type(gpuops.logcumsumexp(x, 1), Float32)
    assert_type(gpuops.max(i, axis=0, where=mask, initial=3), npt.NDArray[np.int32])
    assert_type(gpuops.broadcast_to(mask, (3, 4)), npt.NDArray[np.bool])
    assert_type(gpuops.where(mask, x, x), Float32)
    assert_type(gpuops.where(mask, 1, x), Float32)
    assert_type(xp.where(mask, x, 0.5), Float32)
    # Others may be computed, and another parameter may say so.
    assert_type(gpuops.softmax(i), Array)
    assert_type(gpuops.sum(i), Array)
    assert_type(gpuops.mean(i), Array)
    assert_type(gpuops.var(z), Array)
    assert_type(gpuops.softmax(x, dtype=np.float64), Array)
    assert_type(gpuops.sum(x, 0, "float64"), Array)
    assert_type(gpuops.cumsum(i), Array)
    assert_type(gpuops.cumsum(x, dtype="float64"), Array)
    assert_type(gpuops.logsumexp(x, b=2.0), Array)
    assert_type(gpuops.where(mask, x, i), Array)
    assert_type(gpuops.where(mask, x, 1j), Array)
    assert_type(gpuops.where(mask, i, 0.5), Array)


def results_of_several_arrays(x: npt.NDArray[np.float32], t: Tensor, flag: bool) -> None:
    mean, var = gpuops.mean_var(x, axis=1, ddof=1)
    assert_type(mean, Array)
    assert_type(var, Array)
    assert_type(gpuops.mean_var(t).var, Tensor)
    assert_type(gpuops.max_with_index(t, axis=1).indices, Tensor)
    assert_type(gpuops.average(x), Array)
    assert_type(gpuops.average(t, weights=t), Tensor)
    assert_type(gpuops.average(t, weights=t, returned=True).weights, Tensor)
    assert_type(gpuops.logsumexp(t), Tensor)
    assert_type(gpuops.logsumexp(t, return_sign=True), tuple[Tensor, Tensor])
    assert_type(gpuops.logsumexp(x, return_sign=flag), Array | tuple[Array, Array])


def results_that_are_written(x: npt.NDArray[np.float32], out: npt.NDArray[np.float64], t: Tensor) -> None:
    assert_type(gpuops.sum(x, axis=0, out=out), npt.NDArray[np.float64])
    assert_type(gpuops.sum(t, axis=0, out=t), Tensor)
    assert_type(gpuops.where(x, x, 1, out=out), npt.NDArray[np.float64])
    assert_type(gpuops.matmul(x, x, out), npt.NDArray[np.float64])
    assert_type(gpuops.max(x, axis=0, out=out), npt.NDArray[np.float64])
    assert_type(gpuops.cumsum(x, axis=0, out=out), npt.NDArray[np.float64])
    assert_type(gpuops.expand(t, 4, out=t), Tensor)


def the_standard(x: npt.NDArray[np.float32], t: Tensor) -> None:
    assert_type(xp.sum(x, axis=0, dtype=np.float64), Array)
    assert_type(xp.prod(t, axis=(0, 1)), Tensor)
    assert_type(xp.cumulative_sum(x, axis=0, include_initial=True), Float32)
    assert_type(xp.cumulative_sum(t, dtype=np.float64), Tensor)
    assert_type(xp.cumulative_prod(t, axis=-1), Tensor)
    assert_type(xp.max(t), Tensor)
    assert_type(xp.min(x, keepdims=True), Float32)
    assert_type(xp.mean(t, axis=-1), Tensor)
    assert_type(xp.var(t, correction=1), Tensor)
    assert_type(xp.std(x, correction=0.5), Float32)
    assert_type(xp.any(t), Tensor)
    assert_type(xp.all(x, axis=0), npt.NDArray[np.bool])
    assert_type(xp.argmax(t, axis=0), Tensor)
    assert_type(xp.argmin(x), npt.NDArray[np.int64])
    assert_type(xp.count_nonzero(t, axis=(0, 1)), Tensor)
    assert_type(xp.nonzero(t), tuple[Tensor, ...])
    assert_type(xp.broadcast_to(t, (3, 4)), Tensor)
    assert_type(xp.matmul(t, t), Tensor)
    assert_type(xp.linalg.matmul(x, x), Array)
    assert_type(xp.linalg.vector_norm(t, ord=2), Tensor)
    assert_type(xp.where(t, t, 0), Tensor)
    xp.sum(x, 0)  # wrong
    xp.sum(x=x)  # wrong
    xp.cumulative_sum(x, 0)  # wrong
    xp.var(x, ddof=1)  # wrong


def other_things() -> None:
    facts: dict[str, Any] = gpuops.info()
    assert_type(facts["path"], Any)
    assert_type(gpuops.__version__, str)


def strategies_by_name(x: npt.NDArray[np.float32], op: str) -> None:
    names: tuple[str, ...] = gpuops.strategies("matmul")
    assert names
    for name in gpuops.strategies("sum"):
        gpuops.prod(x, axis=1, strategy=name)
        gpuops.softmax(x, strategy=name)  # wrong
    gpuops.strategies("nonsense")  # wrong
    gpuops.strategies("dot")  # wrong
    gpuops.strategies(op)  # wrong


def names_axes_and_strategies(x: npt.NDArray[np.float32], t: Tensor) -> None:
    gpuops.softmax(x, dim=1)  # wrong
    gpuops.softmax(t, dim=1)  # wrong
    gpuops.sum(x, keepdim=True)  # wrong
    gpuops.sum(x, axis="rows")  # wrong
    gpuops.sum(x, axis=1.5)  # wrong
    gpuops.sum(x, axis=[0, 1])  # wrong
    gpuops.argmax(x, axis=(0, 1))  # wrong
    gpuops.max(x, axis="rows")  # wrong
    gpuops.max(x, axes=1)  # wrong
    gpuops.sum(x, strategy="fast")  # wrong
    gpuops.sum(t, strategy="warp")  # wrong
    gpuops.softmax(x, strategy="warp")
    gpuops.var(x, strategy="shuffle")  # wrong
    gpuops.argmax(x, strategy="shuffle")
    gpuops.argmax(x, strategy="shuffle_host")  # wrong
    gpuops.matmul(x, x, strategy="cublas", casting="same_kind")
    gpuops.matmul(x, x, casting="any")  # wrong
    gpuops.expand(x, shape="4")  # wrong
    gpuops.expand(x, (2.5, 1))  # wrong
    gpuops.sum(x, dtype=3)  # wrong
    gpuops.sum(x, keepdims="yes")  # wrong
    gpuops.sum()  # wrong
    gpuops.sum(object())  # wrong
    gpuops.where(x, x)  # wrong
    gpuops.var(x, ddof="1")  # wrong
    gpuops.total(x)  # wrong
