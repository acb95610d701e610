"""The providers that compute a case: gpuops, its strategies, and its peers."""

from __future__ import annotations

import importlib.util
import os
import re
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

import gpuops

from .arrays import dtype_of
from .cases import JOINT, SECOND, TABLES, Case
from .expressions import EXPRESSIONS, TEXTS, Library, computed, numpy_like
from .ops import EPS, OPS, elements, result_dtype, terms, widened
from .timing import Runner

EVERY = frozenset(TABLES)
SOFTMAX = frozenset({"softmax", "log_softmax", "logsumexp"})
SPECIAL = SOFTMAX | {"scaled_logsumexp", "scaled_softmax"}  # what NumPy has no function for
FUSED = frozenset(EXPRESSIONS)
SCANS = frozenset({"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"})
PIPELINE = frozenset({"pipeline"})

# Disable TF32 in cuBLAS, and JAX's preallocation of memory. Both are read at start-up.
os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


class Refused(Exception):
    """A provider does not support a case; the message says why."""


class Provider(Runner, ABC):
    """A library. Exceptions of its methods are reported as its refusal of the case."""

    module = ""  # what must be installed
    distribution = ""  # what has its version
    ops = EVERY
    compiles = False  # slowly, and for each shape
    specialises = False  # for the arrays of a case
    everywhere = True  # also in groups that do not name it
    checked = True  # whether its result is the case's

    def __init__(self, xp: Any) -> None:
        self.xp = xp  # NumPy or CuPy: the library of the case's arrays

    def array(self, x: Any) -> Any:
        """This library's array on the memory of a NumPy or CuPy array."""
        return x

    @abstractmethod
    def call(self, case: Case) -> Callable[..., Any]:
        """A function of the case's arrays."""

    def into(self, case: Case) -> Callable[..., Any]:
        """A function of the case's arrays and ``out``, which it fills and returns."""
        raise Refused("has no out=")

    def functions(self, case: Case) -> Library:
        """The functions that expressions call."""
        raise Refused("computes no expressions")

    def expression(self, case: Case) -> Callable[..., Any]:
        """A function of the arrays of an expression."""
        return partial(computed, case.op, self.functions(case), case.axis)

    def captured(self, call: Callable[[], Any]) -> tuple[Callable[[], Any], Any, Any]:
        """A CUDA graph of a call: its launch, its result, and an object to keep alive."""
        stream = self.xp.cuda.Stream(non_blocking=True)
        with stream:
            call()  # fills this stream's pool with the memory that the capture needs
            stream.synchronize()
            stream.begin_capture()
            try:
                result = call()
            except Exception:
                with suppress(Exception):  # the call's own failure says more
                    stream.end_capture()
                raise
            graph = stream.end_capture()
        return graph.launch, result, stream

    def wide(self, result: Any) -> Any:
        """A result as a NumPy or CuPy array in double precision, or of integers; several as one array."""
        several = isinstance(result, tuple)
        return self.xp.stack([self.widened(part) for part in result]) if several else self.widened(result)

    def widened(self, result: Any) -> Any:
        return widened(self.xp, self.xp.asarray(result))


def pipeline(where: Callable[..., Any], total: Callable[..., Any], softmax: Callable[..., Any]) -> Callable[..., Any]:
    """Three calls of a library, the last two on the result of the first."""

    def call(x: Any, mask: Any) -> Any:
        chosen = where(mask, x, 0.0)
        total(chosen)
        return softmax(chosen)

    return call


def with_second(case: Case, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the case's array, and of the other one that it takes by name, if the case has two."""
    if len(case.problem.operands) == 1:
        return function
    name = SECOND.get(case.op, "where")
    return lambda x, second: function(x, **{name: second})


def over_axis(case: Case, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a case's arrays, over its axis if it has one."""
    return function if case.axis is None else partial(function, axis=case.axis)


#: Options of gpuops in all cases of an op.
GIVEN: dict[str, dict[str, Any]] = {"rms_norm": {"eps": EPS}}


class Gpuops(Provider):
    """gpuops itself, on NumPy or CuPy arrays."""

    ops = frozenset(op for op in TABLES if hasattr(gpuops, op)) | FUSED | PIPELINE

    def __init__(self, xp: Any, strategy: str = "") -> None:
        super().__init__(xp)
        self.options = {"strategy": strategy} if strategy else {}
        self.strategy = strategy.replace("_host", " host")  # its name in results
        self.name = f"gpuops {self.strategy}".rstrip()

    def call(self, case: Case) -> Callable[..., Any]:
        if case.op == "pipeline":
            total = partial(gpuops.sum, axis=case.axis, keepdims=True)
            return pipeline(gpuops.where, total, partial(gpuops.softmax, axis=case.axis))
        if case.op in EXPRESSIONS:
            return self.expression(case)
        function = partial(getattr(gpuops, case.op), **self.options, **GIVEN.get(case.op, {}))
        if case.op == "expand":
            return lambda x: function(x, case.problem.shape)
        if case.op in JOINT:
            return over_axis(case, function)
        return with_second(case, partial(function, axis=case.axis, **case.options))

    def functions(self, case: Case) -> Library:
        def sums(terms: Any, axis: int | None) -> Any:
            every = np.stack(terms)
            return gpuops.sum(every, axis=tuple(range(1, every.ndim)) if axis is None else axis + 1)

        return numpy_like(gpuops, gpuops)._replace(sums=sums, lazy=gpuops.lazy, evaluate=gpuops.evaluate)

    def into(self, case: Case) -> Callable[..., Any]:
        function = partial(getattr(gpuops, case.op), **self.options)
        if case.op == "expand":
            return lambda x, out: function(x, case.problem.shape, out=out)
        if case.op not in JOINT:
            function = partial(function, axis=case.axis, **case.options)
        return lambda *arrays: function(*arrays[:-1], out=arrays[-1])


def strategies(op: Any, xp: Any) -> list[Gpuops]:
    """gpuops with each named strategy of an op."""
    return [Gpuops(xp, name) for name in gpuops.strategies(op)] if op in Gpuops.ops else []


class Beside(Gpuops):
    """Another op of gpuops on the arrays of a case, each by itself."""

    checked = False  # in its own cases

    def __init__(self, xp: Any, op: str) -> None:
        super().__init__(xp)
        self.function = getattr(gpuops, op)
        self.name = f"gpuops({op})"  # neither a peer nor a strategy, as that of Tensors

    def call(self, case: Case) -> Callable[..., Any]:
        return lambda *arrays: [self.function(x, axis=case.axis) for x in arrays]


def beside(op: str, xp: Any) -> list[Beside]:
    """gpuops with the op whose time stands beside that of another, if there is one."""
    return [Beside(xp, OPS[op].beside)] if OPS[op].beside else []


#: What ops are in libraries with NumPy's interface that have no function of that name, by axis.
COMPOSED: dict[str, Callable[..., Any]] = {
    "max_with_index": lambda xp, axis, x: (xp.max(x, axis=axis), xp.argmax(x, axis=axis)),
    "min_with_index": lambda xp, axis, x: (xp.min(x, axis=axis), xp.argmin(x, axis=axis)),
    "mean_var": lambda xp, axis, x: (xp.mean(x, axis=axis), xp.var(x, axis=axis)),
    "sum_of_squares": lambda xp, axis, x: xp.sum(xp.square(x), axis=axis),
    "vector_norm": lambda xp, axis, x: xp.linalg.norm(x, axis=axis),
    "rms_norm": lambda xp, axis, x: x / xp.sqrt(xp.mean(xp.square(x), axis=axis, keepdims=True) + EPS),
    "cummax": lambda xp, axis, x: xp.maximum.accumulate(x, axis=axis),
    "cummin": lambda xp, axis, x: xp.minimum.accumulate(x, axis=axis),
    "logcumsumexp": lambda xp, axis, x: xp.logaddexp.accumulate(x, axis=axis),
}


class ArrayLibrary(Provider):
    """NumPy or CuPy, with SciPy's special functions in the same spelling."""

    def __init__(self, xp: Any, special: Any) -> None:
        super().__init__(xp)
        self.special = special

    def call(self, case: Case) -> Callable[..., Any]:
        if case.op == "pipeline":
            total = partial(self.xp.sum, axis=case.axis, keepdims=True)
            return pipeline(self.xp.where, total, partial(self.special.softmax, axis=case.axis))
        if case.op in EXPRESSIONS:
            return self.expression(case)
        if case.op == "expand":
            return lambda x: self.xp.broadcast_to(x, case.problem.shape).copy()
        if case.op in JOINT:
            return over_axis(case, getattr(self.xp, case.op))
        if case.op in COMPOSED:
            return partial(COMPOSED[case.op], self.xp, case.axis)
        function = getattr(self.special if case.op in SOFTMAX else self.xp, case.op)
        return with_second(case, partial(function, axis=case.axis))

    def functions(self, case: Case) -> Library:
        return numpy_like(self.xp, self.special)

    def into(self, case: Case) -> Callable[..., Any]:
        if case.op in JOINT or case.op in SOFTMAX:
            return super().into(case)
        if case.op != "expand":
            function = partial(getattr(self.xp, case.op), axis=case.axis)
            return lambda x, out: function(x, out=out)

        def copy(x: Any, out: Any) -> Any:
            self.xp.copyto(out, x)
            return out

        return copy


class Numpy(ArrayLibrary):
    name = module = distribution = "numpy"
    ops = EVERY - SPECIAL

    def __init__(self, xp: Any) -> None:
        super().__init__(np, None)


class Scipy(ArrayLibrary):
    name = module = distribution = "scipy"
    ops = SPECIAL | PIPELINE

    def __init__(self, xp: Any) -> None:
        import scipy.special

        super().__init__(np, scipy.special)


class Numexpr(Provider):
    """numexpr, with NumPy's reductions between its expressions."""

    name = module = distribution = "numexpr"
    ops = SOFTMAX | frozenset(TEXTS) | {"where"}

    def __init__(self, xp: Any) -> None:
        import numexpr

        super().__init__(xp)
        self.evaluate = numexpr.evaluate

    def call(self, case: Case) -> Callable[..., Any]:
        if case.op == "where":
            return lambda c, x, y: self.evaluate("where(c, x, y)", {"c": c, "x": x, "y": y})
        if case.op in TEXTS:
            return self.expression(case)
        return partial(self.softmax, case.op, case.axis)

    def expression(self, case: Case) -> Callable[..., Any]:
        names, elements, reduction = TEXTS[case.op]
        finish = partial(getattr(np, reduction), axis=case.axis) if reduction else lambda x: x
        if case.dtype in ("float16", "bfloat16"):
            raise Refused("computes no numbers of 16 bits")
        return lambda *arrays: finish(self.evaluate(elements, dict(zip(names.split(), arrays, strict=True))))

    def softmax(self, op: str, axis: Any, x: Any) -> Any:
        top = np.max(x, axis=axis, keepdims=True)
        power = self.evaluate("exp(x - top)", {"x": x, "top": top})
        total = np.sum(power, axis=axis, keepdims=True)
        if op == "softmax":
            return self.evaluate("power / total", {"power": power, "total": total})
        log = top + np.log(total)
        return self.evaluate("x - log", {"x": x, "log": log}) if op == "log_softmax" else np.squeeze(log, axis)


class Cupy(ArrayLibrary):
    name = module = "cupy"
    ops = EVERY | PIPELINE

    def __init__(self, xp: Any) -> None:
        import cupyx.scipy.special

        super().__init__(xp, cupyx.scipy.special)
        self.distribution = xp.__name__


class CupyFuse(Cupy):
    """CuPy's expressions, each fused into one kernel: it refuses those that cannot be."""

    name = "cupy.fuse"
    ops = FUSED

    def expression(self, case: Case) -> Callable[..., Any]:
        library = self.functions(case)

        @self.xp.fuse(kernel_name=case.op)
        def fused(*arrays: Any) -> Any:
            return computed(case.op, library, case.axis, *arrays)

        return fused

    def functions(self, case: Case) -> Library:
        def mean(x: Any, axis: Any) -> Any:  # CuPy's own cannot be fused
            return self.xp.sum(x, axis=axis) / terms(case)

        return super().functions(case)._replace(mean=mean)


class Numba(Provider):
    """The loops of ``numba_loops.py``, on all cores."""

    name = module = distribution = "numba"
    ops = frozenset({"squared_distance", "greatest_difference", "share_above", "standardize", "polynomial"})

    def call(self, case: Case) -> Callable[..., Any]:
        from . import numba_loops

        shape = case.problem.operands[0].shape
        if any(operand.layout not in ("C", "[1:]") for operand in case.problem.operands):
            raise Refused("only contiguous arrays")
        if case.dtype in ("float16", "bfloat16"):
            raise Refused("computes no numbers of 16 bits")
        if case.op not in numba_loops.JOINED:
            if case.op == "standardize" and len(shape) != 2:
                raise Refused("only matrices")
            return partial(numba_loops.each_element, case.op)
        if len(shape) > 1 and case.axis not in (len(shape) - 1, -1):
            raise Refused("only whole vectors, or along rows")
        dtype = np.dtype(np.int64) if case.op == "share_above" else result_dtype(case)
        return partial(numba_loops.along_rows, case.op, dtype)


def without_nan(torch: Any, x: Any, value: float) -> Any:
    return torch.where(torch.isnan(x), value, x)


def torch_nanvar(torch: Any, dim: Any, x: Any) -> Any:
    return torch.nanmean((x - torch.nanmean(x, dim=dim, keepdim=True)).square(), dim=dim)


def torch_rms_norm(torch: Any, dim: int, x: Any) -> Any:
    if dim in (-1, x.ndim - 1):
        return torch.nn.functional.rms_norm(x, x.shape[-1:], eps=EPS)
    return (x * torch.rsqrt(x.float().square().mean(dim, keepdim=True) + EPS)).to(x.dtype)


#: What ops are in PyTorch that it does not have by that name, or not with NumPy's meaning, by axis.
IN_TORCH: dict[str, Callable[..., Any]] = {
    "max": lambda torch, dim, x: torch.amax(x, dim=() if dim is None else dim),
    "min": lambda torch, dim, x: torch.amin(x, dim=() if dim is None else dim),
    "max_with_index": lambda torch, dim, x: torch.max(x.reshape(-1) if dim is None else x, dim=dim or 0),
    "min_with_index": lambda torch, dim, x: torch.min(x.reshape(-1) if dim is None else x, dim=dim or 0),
    "ptp": lambda torch, dim, x: IN_TORCH["max"](torch, dim, x) - IN_TORCH["min"](torch, dim, x),
    "nanprod": lambda torch, dim, x: torch.prod(without_nan(torch, x, 1), *(() if dim is None else (dim,))),
    "nanmax": lambda torch, dim, x: IN_TORCH["max"](torch, dim, without_nan(torch, x, -np.inf)),
    "nanmin": lambda torch, dim, x: IN_TORCH["min"](torch, dim, without_nan(torch, x, np.inf)),
    "nanargmax": lambda torch, dim, x: torch.argmax(without_nan(torch, x, -np.inf), dim=dim),
    "nanargmin": lambda torch, dim, x: torch.argmin(without_nan(torch, x, np.inf), dim=dim),
    "nanvar": torch_nanvar,
    "nanstd": lambda torch, dim, x: torch_nanvar(torch, dim, x).sqrt(),
    "var": lambda torch, dim, x: torch.var(x, dim=dim, correction=0),
    "std": lambda torch, dim, x: torch.std(x, dim=dim, correction=0),
    "mean_var": lambda torch, dim, x: torch.var_mean(x, dim=dim, correction=0)[::-1],
    "sum_of_squares": lambda torch, dim, x: torch.linalg.vector_norm(x, dim=dim).square(),
    "vector_norm": lambda torch, dim, x: torch.linalg.vector_norm(x, dim=dim),
    "rms_norm": torch_rms_norm,
    "average": lambda torch, dim, x, weights: torch.sum(x * weights, dim=dim) / torch.sum(weights, dim=dim),
    "allclose": lambda torch, dim, a, b: torch.isclose(a, b).all(),  # its own waits for the GPU
    "array_equal": lambda torch, dim, a, b: (a == b).all(),
    "cummax": lambda torch, dim, x: torch.cummax(x, dim).values,
    "cummin": lambda torch, dim, x: torch.cummin(x, dim).values,
    "nonzero": lambda torch, dim, x: torch.nonzero(x, as_tuple=True),
    "compress": lambda torch, dim, condition, x: x[condition],
}


def torch_like(torch: Any) -> Library:
    """PyTorch's functions for expressions."""

    def mean(x: Any, axis: Any) -> Any:  # of bools as NumPy's is
        return torch.mean(x, dim=axis, dtype=torch.float64 if x.dtype == torch.bool else None)

    return Library(
        sum=lambda x, axis: torch.sum(x, dim=axis),
        mean=mean,
        max=lambda x, axis: IN_TORCH["max"](torch, axis, x),
        where=torch.where,
        logsumexp=lambda x, axis: torch.logsumexp(x, dim=axis),
        softmax=lambda x, axis: torch.softmax(x, dim=axis),
    )


class Torch(Provider):
    """PyTorch, eager."""

    name = module = distribution = "torch"
    ops = EVERY | PIPELINE

    def __init__(self, xp: Any) -> None:
        import torch

        super().__init__(xp)
        self.torch = torch
        torch.backends.cuda.matmul.allow_tf32 = False

    def array(self, x: Any) -> Any:
        if any(stride < 0 for stride in x.strides):
            raise Refused("tensors have no negative strides")
        if x.dtype.kind == "V":
            return self.torch.from_dlpack(x.view(np.uint16)).view(self.torch.bfloat16)
        return self.torch.from_dlpack(x)

    def call(self, case: Case) -> Callable[..., Any]:
        torch, axis = self.torch, case.axis
        if case.op == "pipeline":
            total = partial(torch.sum, dim=axis, keepdim=True)
            return pipeline(torch.where, total, partial(torch.softmax, dim=axis))
        if case.op in EXPRESSIONS:
            return self.expression(case)
        if case.op == "expand":
            layout = torch.contiguous_format
            return lambda x: x.expand(case.problem.shape).clone(memory_format=layout)
        if case.op in IN_TORCH:
            composed = IN_TORCH[case.op]
            return lambda *tensors: composed(torch, axis, *tensors)
        function = getattr(torch, case.op)
        if case.op in JOINT:
            return function
        return (lambda x: function(x)) if axis is None else (lambda x: function(x, dim=axis))

    def expression(self, case: Case) -> Callable[..., Any]:
        function, library = EXPRESSIONS[case.op], torch_like(self.torch)
        return lambda *tensors: function(library, case.axis, *tensors)  # plain, for torch.compile

    def into(self, case: Case) -> Callable[..., Any]:
        if case.op == "expand":
            return lambda x, out: out.copy_(x.expand(case.problem.shape))
        function = getattr(self.torch, f"a{case.op}" if case.op in ("max", "min") else case.op)
        if case.op not in JOINT:
            function = partial(function, dim=() if case.axis is None else case.axis)
        return lambda *tensors: function(*tensors[:-1], out=tensors[-1])

    def captured(self, call: Callable[[], Any]) -> tuple[Callable[[], Any], Any, Any]:
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other libraries' threads may go on
            result = call()
        return graph.replay, result, None

    def widened(self, result: Any) -> Any:
        if result.is_complex():
            result = result.to(self.torch.complex128)
        elif result.is_floating_point():
            result = result.double()
        return self.xp.from_dlpack(result)


class Tensors(Torch):
    """gpuops itself, on PyTorch's tensors."""

    name = "gpuops(torch)"  # begins with gpuops: not a peer; without a space after it: not a strategy
    ops = Gpuops.ops
    everywhere = False

    def call(self, case: Case) -> Callable[..., Any]:
        return Gpuops(self.xp).call(case)

    def into(self, case: Case) -> Callable[..., Any]:
        return Gpuops(self.xp).into(case)


class TorchCompile(Torch):
    """PyTorch with its compiler, for one shape at a time."""

    name = "torch.compile"
    ops = EVERY
    compiles = specialises = True

    def __init__(self, xp: Any) -> None:
        super().__init__(xp)
        warnings.filterwarnings("ignore", module=r"torch\._inductor")  # advice on reporting unsupported code

    def call(self, case: Case) -> Callable[..., Any]:
        self.torch._dynamo.reset()  # it stops compiling after a few shapes
        return self.torch.compile(super().call(case), dynamic=False)

    def into(self, case: Case) -> Callable[..., Any]:
        return Provider.into(self, case)


class Triton(Torch):
    """The fused softmax of ``triton_softmax.py``."""

    name = module = distribution = "triton"
    ops = frozenset({"softmax"})
    specialises = True

    def call(self, case: Case) -> Callable[..., Any]:
        from . import triton_softmax

        return self.rows(case, triton_softmax.softmax, triton_softmax.LONGEST)

    def into(self, case: Case) -> Callable[..., Any]:
        return Provider.into(self, case)

    def rows(self, case: Case, function: Callable[..., Any], longest: float) -> Callable[..., Any]:
        """The function, for cases along the rows of a matrix."""
        (x,) = case.problem.operands
        if len(x.shape) != 2 or case.axis != 1 or x.layout in ("F", "[:, ::2]"):
            raise Refused("only along the contiguous rows of a matrix")
        if x.shape[1] > longest:
            raise Refused(f"rows of more than {longest} elements do not fit into a block's registers")
        return function


class Quack(Triton):
    """QuACK's softmax and norm, in CuTe DSL."""

    name, module, distribution = "quack", "quack", "quack-kernels"
    ops = frozenset({"softmax", "rms_norm"})

    def call(self, case: Case) -> Callable[..., Any]:
        if case.op == "rms_norm":
            from quack.rmsnorm import rmsnorm

            return self.rows(case, partial(rmsnorm, eps=EPS), float("inf"))
        from quack.softmax import softmax

        return self.rows(case, softmax, float("inf"))


#: What ops are in JAX that it has under other names, or cannot jit, since their results' length depends on elements.
IN_JAX: dict[str, Callable[..., Any]] = {
    "cummax": lambda jax, axis: jax.jit(partial(jax.lax.cummax, axis=axis)),
    "cummin": lambda jax, axis: jax.jit(partial(jax.lax.cummin, axis=axis)),
    "logcumsumexp": lambda jax, axis: jax.jit(partial(jax.lax.cumlogsumexp, axis=axis)),
    "nonzero": lambda jax, axis: jax.numpy.nonzero,
    "compress": lambda jax, axis: partial(jax.numpy.compress, axis=axis),
}


class Jax(Provider):
    """JAX, jitted. It uses its own stream: a matmul queued first keeps it busy; DLPack synchronises the streams."""

    name = module = distribution = "jax"
    compiles = specialises = True
    most = 16  # JAX queues at most 32 computations

    def __init__(self, xp: Any) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")
        super().__init__(xp)
        self.jax = jax
        self.device = jax.devices("gpu")[0]
        self.product = jax.jit(lambda a: a @ a)
        self.square = jax.device_put(np.zeros((4096, 4096), np.float32), self.device)
        self.seconds = 0.0  # of one product, whose arrays also exceed the cache

    def array(self, x: Any) -> Any:
        self.xp.cuda.get_current_stream().synchronize()
        if x.dtype.kind == "V":
            bits = self.jax.dlpack.from_dlpack(x.view(np.uint16))
            return self.jax.lax.bitcast_convert_type(bits, self.jax.numpy.bfloat16)
        return self.jax.dlpack.from_dlpack(x)

    def call(self, case: Case) -> Callable[..., Any]:
        jnp, nn = self.jax.numpy, self.jax.nn
        if case.op in EXPRESSIONS:
            return self.jax.jit(self.expression(case))
        if case.op == "expand":
            return self.jax.jit(lambda x: jnp.broadcast_to(x, case.problem.shape))
        if case.op in IN_JAX:
            return IN_JAX[case.op](self.jax, case.axis)
        if case.op in JOINT:
            return self.jax.jit(getattr(jnp, case.op))
        if case.op in COMPOSED:
            return self.jax.jit(partial(COMPOSED[case.op], jnp, case.axis))
        function = getattr(nn if case.op in SOFTMAX else jnp, case.op)
        options = {"dtype": result_dtype(case)} if case.op in ("sum", "prod", "var", "cumsum", "cumprod") else {}
        return self.jax.jit(with_second(case, partial(function, axis=case.axis, **options)))

    def functions(self, case: Case) -> Library:
        jnp = self.jax.numpy

        def mean(x: Any, axis: Any) -> Any:  # of bools as NumPy's is
            return jnp.mean(x, axis=axis, dtype=jnp.float64 if x.dtype == jnp.bool_ else None)

        return numpy_like(jnp, self.jax.nn)._replace(mean=mean)

    def widened(self, result: Any) -> Any:
        jnp = self.jax.numpy
        if jnp.issubdtype(result.dtype, jnp.inexact):
            result = result.astype(jnp.promote_types(result.dtype, jnp.float64))
        return self.xp.from_dlpack(result.block_until_ready())

    def keep_busy(self, machine: Any, seconds: float) -> None:
        if not self.seconds:
            self.product(self.square).block_until_ready()
            start = time.perf_counter()
            self.product(self.square).block_until_ready()
            self.seconds = time.perf_counter() - start
        for _ in range(min(self.most - 2, max(2, int(seconds / self.seconds) + 1))):
            busy = self.product(self.square)
        self.fence(busy)

    def fence(self, result: Any) -> None:
        last = result[-1] if isinstance(result, tuple) else result
        last.__dlpack__(stream=1)


class Cub(Provider):
    """CUB's reductions, as they are compiled into CuPy."""

    name, module, distribution = "cub", "cupy.cuda.cub", "cupy"
    along_rows = frozenset({"sum", "prod", "max", "min"})
    ops = along_rows | {"argmax", "argmin"}

    def __init__(self, xp: Any) -> None:
        from cupy.cuda import cub

        super().__init__(xp)
        self.cub = cub

    def call(self, case: Case) -> Callable[..., Any]:
        (operand,) = case.problem.operands
        axes, rows = tuple(range(len(operand.shape))), case.op in self.along_rows
        whole = case.axis is None or len(axes) == 1
        if operand.layout not in ("C", "[1:]") or not (whole or (rows and case.axis == axes[-1])):
            raise Refused(f"only over whole contiguous arrays{', or along their rows' if rows else ''}")
        if elements(case) >= 2**31:
            raise Refused("counts elements in 32 bits: only fewer than 2³¹")
        self.refuse_conversions(case)
        op = getattr(self.cub, f"CUPY_CUB_{case.op.upper()}")
        if whole:
            return lambda x: self.cub.device_reduce(x, op, axes, ())
        return lambda x: self.cub.device_segmented_reduce(x, op, axes[-1:], axes[:-1], contiguous_size=x.shape[-1])

    def refuse_conversions(self, case: Case) -> None:
        """Refuse dtypes that CuPy converts before it calls CUB, or for which it does not call it."""
        dtype, result = dtype_of(case.dtype), result_dtype(case)
        if dtype not in self.cub.CUB_support_dtype_with_half:
            raise Refused(f"CuPy does not call it for {dtype}")
        if result != dtype and not case.op.startswith("arg"):
            raise Refused(f"its {case.op} of {dtype} would be {dtype}, not {result}")


#: Providers beside gpuops, in the order of the tables, by the kind of machine.
PEERS: dict[str, tuple[type[Provider], ...]] = {
    "cpu": (Numpy, Scipy, Torch, Numexpr, Numba),
    "gpu": (Cupy, CupyFuse, Tensors, Torch, TorchCompile, Triton, Quack, Jax, Cub),
}


def load(kind: type[Provider], xp: Any) -> Provider | str:
    """A provider, or the reason why it cannot be used."""
    try:
        found = importlib.util.find_spec(kind.module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        found = False
    if not found:
        return f"not installed ({kind.distribution or kind.module})"
    try:
        return kind(xp)
    except Exception as failure:  # a broken installation may raise anything
        return f"cannot be used: {first_line(failure)}"


def first_line(failure: BaseException) -> str:
    """An exception's message in one line."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(failure))  # some messages come in colour
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    text = lines[0] if lines else type(failure).__name__
    return text if len(text) <= 160 else f"{text[:159]}…"
