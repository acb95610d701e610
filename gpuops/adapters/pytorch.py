"""PyTorch tensors: imported with the first tensor, never by ``import gpuops``.

GPU tensors are computed on PyTorch's current stream, in PyTorch's memory. Their calls are cached like those of CuPy
arrays.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch._C._functorch import is_batchedtensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad

from ..call.arrays import kind
from ..call.dispatch import exclude_from_compilers, perform
from ..call.facts import FACTS
from ..call.key import Missed
from ..call.libraries import Native
from ..call.operation import Call
from ..errors import error
from ..plan.dtypes import CTYPES
from ..plan.geometry import Shape
from ..plan.work import ALIGNMENT, ArraySpec, Machine
from .exchange import converted

#: NumPy's names of the dtypes that both have.
NAMES = {getattr(torch, name): name for name in CTYPES if hasattr(torch, name)}


class PyTorch:
    """The adapter of tensors."""

    mixes = False

    def call(self, call: Call, known: Missed | None) -> Any:
        given, arrays = call.given, call.arrays
        index = gpu_of(call.name, {name: x for name, x in arrays.items() if isinstance(x, torch.Tensor)})
        if index is not None and importlib.util.find_spec("cupy") is None:
            rule = "tensors of a GPU need CuPy: pip install 'gpuops-cupy[cuda13]' or [cuda12]"
            raise error(ImportError, call.name, rule)
        there = call.on({name: native(call.name, name, value) for name, value in arrays.items()})
        if isinstance(dtype := given.get("dtype"), torch.dtype):
            there.given["dtype"] = numpy_dtype(call.name, "dtype", dtype)
        if index is not None:
            return perform(there, known)
        result = there.repeat()
        if call.operation.view:  # a view that PyTorch tracks as one
            return given["array"].expand(result.shape)
        result = converted(result, from_host)
        if (out := given.get("out")) is not None:
            written(out)
            return (out, *result[1:]) if isinstance(result, tuple) else out
        return result


def gpu_of(op: str, tensors: dict[str, torch.Tensor]) -> int | None:
    """The GPU of all tensors; None is the CPU, whose 0-d tensors mix with any device."""
    found = None
    if is_tracing():
        rule = "torch.jit.trace would record the result as a constant; gpuops has no operations that it can trace"
        raise error(RuntimeError, op, rule)
    for name, tensor in tensors.items():
        if (what := stand_in(tensor)) is not None:
            raise error(TypeError, op, f"{name} is {what}")
        if traced(tensor):
            rule = "call it under torch.no_grad() or in a torch.autograd.Function"
            raise error(RuntimeError, op, f"{name} requires a gradient, which gpuops does not compute: {rule}")
        if not dense(tensor):
            what = f"{kind(tensor)} of {tensor.layout} on {tensor.device}"
            rule = "only strided tensors in memory of a CPU or a CUDA GPU are supported"
            raise error(TypeError, op, f"{name} is a {what}; {rule}")
        if tensor.device.type == "cpu" and tensor.ndim == 0 and name != "out":
            continue
        if found is None:
            found = name, tensor.device
        elif tensor.device != found[1]:
            raise error(ValueError, op, f"{found[0]} is on {found[1]}, {name} is on {tensor.device}")
    return None if found is None or found[1].type == "cpu" else found[1].index


def traced(tensor: torch.Tensor) -> bool:
    """Whether autograd tracks a tensor, in reverse or forward mode."""
    if tensor.requires_grad and torch.is_grad_enabled():
        return True
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None


def stand_in(tensor: torch.Tensor) -> str | None:
    """What a tensor is that stands for others; None for any other tensor."""
    if isinstance(tensor, FakeTensor):
        return "a FakeTensor, which has no elements; gpuops cannot be traced"
    if is_batchedtensor(tensor):
        return "batched by torch.func.vmap: call gpuops outside of vmap, on the whole batch, with axis="
    return None


def dense(tensor: torch.Tensor) -> bool:
    """Whether a tensor has memory that its strides describe."""
    if tensor.layout is not torch.strided or tensor.device.type not in ("cpu", "cuda") or tensor.is_nested:
        return False
    try:
        return tensor.data_ptr() != 0 or tensor.numel() == 0
    except RuntimeError:  # one without memory
        return False


# -------------------------------------------------------------------------------------------- tensors as arrays


def native(op: str, name: str, value: Any) -> Any:
    """An argument as native calls take it: CPU tensors become arrays over the same memory."""
    if not isinstance(value, torch.Tensor):
        return value
    dtype = numpy_dtype(op, name, value.dtype)
    if value.is_conj() or value.is_neg():  # memory holds other values than the tensor
        if name == "out":
            raise error(ValueError, op, "out is a conjugated or negated view, which cannot be written to")
        value = value.detach().resolve_conj().resolve_neg()
    return host_view(value.detach(), dtype) if value.device.type == "cpu" else value


def numpy_dtype(op: str, name: str, dtype: torch.dtype) -> np.dtype:
    """The dtype that NumPy has for one of PyTorch's."""
    if dtype not in NAMES:
        raise error(TypeError, op, f"dtype {dtype} of {name} is not supported")
    if dtype is torch.bfloat16:
        try:
            import ml_dtypes
        except ModuleNotFoundError as failure:
            raise error(TypeError, op, f"{name} of dtype {dtype} needs the package {failure.name}") from None
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(NAMES[dtype])


@cache
def torch_dtype(dtype: np.dtype) -> torch.dtype:
    """The dtype that PyTorch has for one of NumPy's."""
    return getattr(torch, dtype.name)


def host_view(tensor: torch.Tensor, dtype: np.dtype) -> np.ndarray:
    """NumPy's array over a tensor's memory."""
    bits = tensor.view(torch.uint16) if tensor.dtype is torch.bfloat16 else tensor  # unknown to NumPy itself
    return bits.numpy().view(dtype)


def from_host(result: np.ndarray) -> torch.Tensor:
    """A tensor over a result's memory."""
    if result.dtype.name == "bfloat16":
        return torch.from_numpy(result.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(result)


def borrowed(index: int, tensor: torch.Tensor, nbytes: int) -> Any:
    """A tensor's memory as CuPy's."""
    import cupy

    from ..device.cuda_memory import Borrowed

    return cupy.cuda.MemoryPointer(Borrowed(tensor.data_ptr(), nbytes, tensor, index), 0)


# ------------------------------------------------------------------------------------------------ memory and streams


def stream_of(index: int) -> int:
    """The handle of PyTorch's current stream on a GPU."""
    return torch.cuda.current_stream(index).cuda_stream


is_tracing: Callable[[], bool] = getattr(torch._C, "_is_tracing", torch.jit.is_tracing)
stream_of = getattr(torch._C, "_cuda_getCurrentRawStream", stream_of)  # the same, without a Stream object


class Handle(int):
    """A PyTorch stream, with the protocol by which CuPy takes those of other libraries."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, int(self)


class TensorContext:
    """A GPU, PyTorch's current stream there and PyTorch's memory: the execution context of tensors."""

    foreign = True

    def __init__(self, index: int) -> None:
        import cupy

        from ..device import cuda

        self.index, self.device, self.written = index, cuda.device(index), written
        self.current_stream, self.place = cupy.cuda.get_current_stream, torch.device("cuda", index)
        self.allocator = partial(allocated, index, self.place)

    def elsewhere(self) -> bool:
        other = self.device.elsewhere
        return (other is not None and other()) or stream_of(self.index) != self.current_stream().ptr

    @contextmanager
    def enter(self) -> Iterator[None]:
        import cupy

        theirs = cupy.cuda.Stream.from_external(Handle(stream_of(self.index)))
        with self.device.enter(), theirs, cupy.cuda.using_allocator(self.allocator):
            yield

    def spec(self, name: str, tensor: torch.Tensor, machine: Machine) -> tuple[ArraySpec, int]:
        address, dtype = tensor.data_ptr(), numpy_dtype("", name, tensor.dtype)
        strides = tuple([step * dtype.itemsize for step in tensor.stride()])
        return ArraySpec(name, tuple(tensor.shape), dtype, strides, machine, address % ALIGNMENT), address

    def maker(self, dtype: np.dtype) -> Callable[[Shape, Shape | None, list[int]], torch.Tensor]:
        of, place, itemsize = torch_dtype(dtype), self.place, dtype.itemsize

        def make(shape: Shape, strides: Shape | None, addresses: list[int]) -> torch.Tensor:
            if strides is None:
                tensor = torch.empty(shape, dtype=of, device=place)
            else:
                steps = [stride // itemsize for stride in strides]
                tensor = torch.empty_strided(shape, steps, dtype=of, device=place)
            addresses.append(tensor.data_ptr())  # a multiple of 512
            return tensor

        return make

    def broadcast_to(self, tensor: torch.Tensor, shape: Shape) -> torch.Tensor:
        return tensor.expand(shape)


@cache
def context_on(index: int) -> TensorContext:
    """The execution context of tensors on a GPU."""
    return TensorContext(index)


def allocated(index: int, device: torch.device, nbytes: int) -> Any:
    """New memory from PyTorch, which also works under capture by PyTorch."""
    return borrowed(index, torch.empty(nbytes, dtype=torch.uint8, device=device), nbytes)


# -------------------------------------------------------------------------------------------------- the launch cache


def read(tensor: torch.Tensor) -> tuple[int, tuple[Any, ...]]:
    """A tensor's address and its part of the key, for the launch cache."""
    unlike = tensor.is_conj() or tensor.is_neg() or not tensor.is_cuda  # not a native array as it is
    exclude_from_compilers()
    if unlike or is_tracing() or (tensor.requires_grad and torch.is_grad_enabled()) or forward_ad._current_level >= 0:
        raise TypeError
    try:
        address = tensor.data_ptr()
        facts = tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device(), address % 16
    except RuntimeError:  # one without memory, or without a shape
        raise TypeError from None
    if not address:
        raise TypeError
    return address, facts


def written(out: torch.Tensor) -> None:
    """Tell autograd that a tensor was modified, as PyTorch's own functions do."""
    if not out.is_inference():
        torch.autograd.graph.increment_version(out)


PYTORCH = PyTorch()
NATIVE = Native(
    (torch.Tensor, torch.nn.Parameter), lambda tensor: context_on(tensor.get_device()), read,
    ((torch.dtype, lambda dtype: dtype), (torch.Size, FACTS[tuple])),
)  # fmt: skip
exclude_from_compilers()
