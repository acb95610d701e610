"""Arrays of other libraries: calls run on NumPy or CuPy arrays over the same memory, and results are converted back.

A library is recognised by the package that defines its array types; none is imported for that.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..call.arrays import is_scalar, kind
from ..call.key import Missed
from ..call.operation import Call
from ..errors import error

CPU = (1, 3, 11)  # DLPack's devices whose memory the host reads: kDLCPU, kDLCUDAHost, kDLROCMHost
CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged

Convert = Callable[[Any, Any], Any]  # (a NumPy or CuPy result, an argument) to an array of the argument's library


def own_device(array: Any) -> Any:
    """An array's ``device``; None if it has no such attribute."""
    return getattr(array, "device", None)


class Exchange(NamedTuple):
    """A library whose arrays NumPy and CuPy take by DLPack or ``__cuda_array_interface__``; ``convert`` makes its
    arrays of results. ``device`` gives that of an array, or None if it mixes with any."""

    name: str
    convert: Convert
    device: Callable[[Any], Any] = own_device
    mutable: bool = True
    mixes: bool = False

    def call(self, call: Call, known: Missed | None) -> Any:
        given, arrays = dict(call.given), call.arrays
        if given.get("dtype") is not None:
            given["dtype"] = dtype_of(next(each for each in arrays.values() if not is_scalar(each)), given["dtype"])
        if not self.mutable and (out := given.get("out")) is not None:
            raise error(TypeError, call.name, f"out is a {kind(out)}, which cannot be written to")
        native = {name: self.native(call.name, name, value) for name, value in arrays.items()}
        leading = self.leading(call.name, arrays)
        result = call._replace(given=given).on(native).repeat()
        theirs = [name for name in arrays if native[name] is not arrays[name]]
        keep([native[name] for name in theirs])
        if (out := given.get("out")) is not None:
            return out
        return converted(result, lambda array: self.convert(array, leading))

    def leading(self, op: str, arrays: dict[str, Any]) -> Any:
        """The array whose device gets the result. Raises ValueError for arrays on several devices."""
        foreign = {name: value for name, value in arrays.items() if not is_scalar(value)}
        devices = {name: device for name, value in foreign.items() if (device := self.device(value)) is not None}
        first = next(iter(devices), next(iter(foreign)))
        for name, device in devices.items():
            if device != devices[first]:
                raise error(ValueError, op, f"{first} is on {devices[first]}, {name} is on {device}")
        return foreign[first]

    def native(self, op: str, name: str, value: Any) -> Any:
        """A NumPy or CuPy array over an array's memory; scalars as they are."""
        if is_scalar(value):
            return value
        try:
            packs = hasattr(value, "__dlpack_device__")
            if not packs and not hasattr(value, "__cuda_array_interface__"):
                raise TypeError("it has neither __dlpack__ nor __cuda_array_interface__")
            device = value.__dlpack_device__()[0] if packs else CUDA[0]
            if device in CPU:
                return np.from_dlpack(value) if self.mutable else np.asarray(value)
            if device not in CUDA:
                rule = "is not supported: arrays must be on a CPU or a CUDA GPU"
                raise TypeError(f"DLPack device type {int(device)} {rule}")
            import cupy

            return cupy.from_dlpack(value) if packs else cupy.asarray(value)
        except Exception as failure:
            if traced_by_jax(value):
                rule = "call gpuops outside of jit, grad and vmap, or through jax.pure_callback"
                raise error(TypeError, op, f"{name} is a {kind(value)}, which JAX traces: {rule}") from None
            rule = f"{name} is a {kind(value)}, whose memory cannot be shared: {failure}"
            raise error(TypeError, op, rule) from failure


def traced_by_jax(value: Any) -> bool:
    """Whether an array is a tracer of a JAX transformation."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.core.Tracer)


def dtype_of(array: Any, dtype: Any) -> Any:
    """NumPy's dtype for a dtype of its own or of an array's namespace."""
    try:
        return np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        pass
    try:
        return np.from_dlpack(array.__array_namespace__().empty((0,), dtype=dtype)).dtype
    except Exception:  # neither knows it: the op raises
        return dtype


def converted(result: Any, convert: Callable[[Any], Any]) -> Any:
    """Convert a result, or each of several; scalars become arrays first."""
    if isinstance(result, tuple):
        gather = getattr(result, "_make", tuple)  # that of a named tuple
        return gather([converted(each, convert) for each in result])
    return convert(np.asarray(result) if isinstance(result, (np.generic, bool)) else result)


#: Operands that a CuPy stream may still read, each with the event after that.
IN_USE: deque[tuple[Any, list[Any]]] = deque()


def keep(arrays: list[Any]) -> None:
    """Keep the arrays of libraries that do not know CuPy's stream alive until the GPU has read them.

    Each call releases those of earlier calls whose events are done.
    """
    on_gpu = [array for array in arrays if not isinstance(array, np.ndarray)]
    if not on_gpu:
        return
    import cupy

    if cupy.cuda.get_current_stream().is_capturing():  # events cannot be queried under capture
        return
    while IN_USE:
        try:
            event, _ = oldest = IN_USE.popleft()
        except IndexError:  # another thread was faster
            break
        if not event.done:
            IN_USE.appendleft(oldest)
            break
    with on_gpu[0].device:
        event = cupy.cuda.Event(disable_timing=True)
        event.record()
        IN_USE.append((event, on_gpu))


# -------------------------------------------------------------------------------------------------------- libraries


def same_namespace(result: Any, like: Any) -> Any:
    """The result as an array of the namespace and device of ``like``; as it is if that has no array API namespace."""
    namespace: Any = like.__array_namespace__() if hasattr(like, "__array_namespace__") else None
    if not hasattr(namespace, "from_dlpack"):
        return result
    made, device = namespace.from_dlpack(result), own_device(like)
    return made if own_device(made) == device else made.to_device(device)


def jax_device(array: Any) -> Any:
    """The device to which a JAX array is committed; None if JAX may move it."""
    return next(iter(array.devices())) if getattr(array, "committed", True) else None


def to_jax(result: Any, like: Any) -> Any:
    """A JAX array; in 32 bits unless JAX enables 64."""
    import jax.dlpack

    result = result.astype(jax.dtypes.canonicalize_dtype(result.dtype), copy=False)
    if isinstance(result, np.ndarray):
        return jax.device_put(result, jax_device(like))
    return jax.dlpack.from_dlpack(result if result.flags.forc else result.copy())


def to_numba(result: Any, like: Any) -> Any:
    """A Numba array over the same memory."""
    return sys.modules["numba"].cuda.as_cuda_array(result)


def to_cudf(result: Any, like: Any) -> Any:
    """A cuDF series if the result is 1-d; else the result as it is."""
    return sys.modules["cudf"].Series(result, nan_as_null=False) if result.ndim == 1 else result


def to_cuda(result: Any, like: Any) -> Any:
    """A buffer of ``cuda.core``: the bytes of the result."""
    result = result if result.flags.c_contiguous else result.copy()
    address = result.ctypes.data if isinstance(result, np.ndarray) else result.data.ptr
    return type(like).from_handle(address, result.nbytes, owner=result)
