"""Arrays of other libraries: results are of the operands' library."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops.adapters import exchange
from gpuops.call import libraries, recordings
from gpuops.device import execute
from gpuops.plan.geometry import contiguous_strides
from tests import emulated, layouts
from tests.compare import assert_bits, fails
from tests.layouts import BFLOAT16
from tests.test_launch_cache import only_hits

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is of ml_dtypes")

GPU = gpuops.info()["path"] == "gpu"
needs_gpu = pytest.mark.skipif(not GPU, reason="needs CuPy with a GPU")
X, Y = layouts.sample((4, 6)), layouts.sample((4, 6), seed=1)
MASK = X > 0

#: Calls on x, y and a mask of shape (4, 6). Results with NumPy arrays are the reference.
OPS = {
    "expand": lambda x, y, mask: gpuops.expand(x[:, :1], (2, -1, 6)),
    "broadcast_to": lambda x, y, mask: gpuops.broadcast_to(x[0], (3, 6)),
    "where": lambda x, y, mask: gpuops.where(mask, x, y),
    "where of scalars": lambda x, y, mask: gpuops.where(mask, x, 0),
    "where alone": lambda x, y, mask: gpuops.where(mask),
    "nonzero": lambda x, y, mask: gpuops.nonzero(x > 0),
    "compress": lambda x, y, mask: gpuops.compress(mask[0], x, axis=1),
    "sum": lambda x, y, mask: gpuops.sum(x, axis=1),
    "sum of all": lambda x, y, mask: gpuops.sum(x, where=mask, initial=1),
    "prod": lambda x, y, mask: gpuops.prod(x, axis=0, keepdims=True),
    "max": lambda x, y, mask: gpuops.max(x, axis=(0, 1)),
    "min": lambda x, y, mask: gpuops.min(x.T, axis=0),
    "mean": lambda x, y, mask: gpuops.mean(x, axis=-1),
    "any": lambda x, y, mask: gpuops.any(mask, axis=0),
    "all": lambda x, y, mask: gpuops.all(mask),
    "dot": lambda x, y, mask: gpuops.dot(x[0], y[1]),
    "matmul": lambda x, y, mask: gpuops.matmul(x, y.T),
    "softmax": lambda x, y, mask: gpuops.softmax(x, axis=1, where=mask, scale=0.5),
    "log_softmax": lambda x, y, mask: gpuops.log_softmax(x, axis=0),
    "logsumexp": lambda x, y, mask: gpuops.logsumexp(x),
    "of nothing": lambda x, y, mask: gpuops.sum(x[:0], axis=0),
    "argmax": lambda x, y, mask: gpuops.argmax(x, axis=1),
    "max_with_index": lambda x, y, mask: gpuops.max_with_index(x, axis=1),
    "mean_var": lambda x, y, mask: gpuops.mean_var(x, axis=0),
    "vector_norm": lambda x, y, mask: gpuops.vector_norm(x),
    "count_nonzero": lambda x, y, mask: gpuops.count_nonzero(mask),
    "average": lambda x, y, mask: gpuops.average(x, 1, abs(y), True),
    "allclose": lambda x, y, mask: gpuops.allclose(x, y),
    "array_equal": lambda x, y, mask: gpuops.array_equal(x, x),
}


def check(result: Any, expected: Any, numpy: Any, kind: Any) -> None:
    """The result has the given type and the expected dtype, shape and bits."""
    if isinstance(expected, tuple):
        assert (type(result), len(result)) == (type(expected), len(expected))
        for one, other in zip(result, expected):
            check(one, other, numpy, kind)
    else:
        assert isinstance(result, kind)
        assert_bits(numpy(result), np.asarray(expected))


# ----------------------------------------------------------------------------------------------------------- PyTorch


@pytest.fixture(params=["cpu", "cuda"] if GPU else ["cpu"])
def place(request, torch):
    """The device of the tensors."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip(f"needs PyTorch with CUDA; {torch.__version__} has none or finds no GPU")
    return request.param


@pytest.fixture
def gpu_torch(torch):
    if not (GPU and torch.cuda.is_available()):
        pytest.skip("needs PyTorch and CuPy with a GPU")
    return torch


def tensor(torch, array, place="cpu"):
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.uint16).copy()).view(torch.bfloat16).to(place)
    return torch.from_numpy(array.copy()).to(place)


def to_numpy(torch, result):
    result = result.cpu()
    return result.view(torch.uint16).numpy().view(BFLOAT16) if result.dtype is torch.bfloat16 else result.numpy()


def check_tensor(torch, result, expected):
    if isinstance(expected, tuple):
        assert (type(result), len(result)) == (type(expected), len(expected))
        for one, other in zip(result, expected):
            check_tensor(torch, one, other)
    else:
        assert type(result) is torch.Tensor
        assert_close(to_numpy(torch, result), expected)


def assert_close(got, expected):
    """Equal up to rounding: GPU results differ from NumPy's in the last bits."""
    expected = np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(got.astype("c16"), expected.astype("c16"), 1e-2 if got.itemsize == 2 else 1e-5, 1e-5)


@pytest.mark.parametrize("name", OPS)
def test_ops_on_tensors(torch, place, name):
    there = [tensor(torch, array, place) for array in (X, Y, MASK)]
    expected = OPS[name](X, Y, MASK)
    for _ in range(3):  # from the second call on, these hit the cache
        result = OPS[name](*there)
        check_tensor(torch, result, expected)
        for one in result if isinstance(result, tuple) else (result,):
            assert one.device == there[0].device


@pytest.mark.parametrize("dtype", layouts.DTYPES, ids=str)
def test_tensors_of_every_dtype(torch, place, dtype):
    x = layouts.sample((5, 7), dtype)
    for op, options in (("sum", {"axis": 0}), ("max", {}), ("expand", {"shape": (2, 5, 7)})):
        check_tensor(torch, getattr(gpuops, op)(tensor(torch, x, place), **options), getattr(gpuops, op)(x, **options))


def test_tensor_memory_is_shared(torch, place):
    x, out = tensor(torch, X, place), torch.zeros(4, 6, device=place)
    for _ in range(3):
        view, version = out[:, ::2], out._version
        assert gpuops.softmax(x[:, ::2], axis=1, out=view) is view
        assert out._version > version  # autograd is told
        check_tensor(torch, view, gpuops.softmax(np.ascontiguousarray(X[:, ::2]), axis=1))
        assert not out[:, 1::2].any()
        out.zero_()
    assert gpuops.broadcast_to(x, (2, 4, 6)).data_ptr() == x.data_ptr()


def test_pytorch_dtypes_are_accepted(torch, place):
    x = tensor(torch, X, place)
    for _ in range(2):
        assert gpuops.sum(x, dtype=torch.float64).dtype is torch.float64
        assert gpuops.softmax(x, 1, dtype=torch.bfloat16).dtype is torch.bfloat16
        assert gpuops.expand(x[:1], x.shape).shape == x.shape
    fails(TypeError, "sum: dtype torch.qint8 of dtype is not supported", gpuops.sum, x, dtype=torch.qint8)


def test_conjugated_and_negated_tensors(torch, place):
    z = tensor(torch, (X + 1j * Y).astype("c8"), place)
    for _ in range(2):
        check_tensor(torch, gpuops.sum(z.conj(), axis=0), gpuops.sum((X - 1j * Y).astype("c8"), axis=0))
        check_tensor(torch, gpuops.max(z.conj().imag, axis=0), gpuops.max(-Y, axis=0))
        check_tensor(torch, gpuops.sum(z, axis=0), gpuops.sum((X + 1j * Y).astype("c8"), axis=0))
    out = torch.zeros(6, dtype=torch.complex64, device=place).conj()
    fails(ValueError, "sum: out is a conjugated or negated view", gpuops.sum, z, axis=0, out=out)


def test_bfloat16_without_ml_dtypes_says_what_it_needs(torch, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    x = torch.ones(3, dtype=torch.bfloat16)
    fails(TypeError, "sum: a of dtype torch.bfloat16 needs the package ml_dtypes", gpuops.sum, x)


def test_tensors_that_require_gradients_raise(torch, place):
    x = tensor(torch, X, place).requires_grad_()
    message = "softmax: x requires a gradient, which gpuops does not compute: call it under torch.no_grad()"
    for _ in range(2):
        fails(RuntimeError, message, gpuops.softmax, x, axis=1)
        with torch.no_grad():
            check_tensor(torch, gpuops.softmax(x, axis=1), gpuops.softmax(X, axis=1))
        check_tensor(torch, gpuops.softmax(torch.nn.Parameter(x.detach(), False), axis=1), gpuops.softmax(X, axis=1))
    with torch.inference_mode():
        check_tensor(torch, gpuops.softmax(x, axis=1, out=torch.empty(4, 6, device=place)), gpuops.softmax(X, axis=1))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_forward_mode_dual_tensors_raise(torch, place):
    x = tensor(torch, X, place)
    for _ in range(2):
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, x)
            message = "softmax: x requires a gradient, which gpuops does not compute"
            fails(RuntimeError, message, gpuops.softmax, dual, axis=1)
            check_tensor(torch, gpuops.softmax(x, axis=1), gpuops.softmax(X, axis=1))
        check_tensor(torch, gpuops.softmax(x, axis=1), gpuops.softmax(X, axis=1))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:.torch.jit.script. is deprecated")
def test_unsupported_tensors_raise(torch, place):
    x = tensor(torch, X, place)
    gpuops.sum(x)
    freed = x.clone()
    freed.untyped_storage().resize_(0)
    for without in (x.to_sparse(), x.to("meta"), freed, torch._efficientzerotensor((3,), device=place)):
        message = f"sum: a is a torch.Tensor of {without.layout} on {without.device}; only strided tensors in"
        fails(TypeError, message, gpuops.sum, without)
    nested = torch.nested.nested_tensor([x[0], x[1, :2]])
    fails(TypeError, "sum: a is a torch.Tensor of torch.strided on", gpuops.sum, nested)
    message = "sum: a is batched by torch.func.vmap: call gpuops outside of vmap, on the whole batch, with axis="
    fails(TypeError, message, lambda: torch.func.vmap(gpuops.sum)(x))
    with torch._subclasses.FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
        message = "sum: a is a FakeTensor, which has no elements; gpuops cannot be traced"
        fails(TypeError, message, gpuops.sum, fake)
    fails(TypeError, "sum: dtype torch.float8_e5m2 of a is not", gpuops.sum, x.to(torch.float8_e5m2))
    fails(ValueError, "softmax: out has shape (4, 5)", gpuops.softmax, x, out=x[:, :5])


def test_tensors_and_numpy_arrays_do_not_mix(torch, place):
    x = tensor(torch, X, place)
    words = "arrays of two libraries do not mix: condition is a torch.Tensor, y is a numpy.ndarray"
    fails(TypeError, f"where: {words}", gpuops.where, x > 0, x, Y)
    words = "arrays of two libraries do not mix: where is a torch.Tensor, a is a numpy.ndarray"
    fails(TypeError, f"sum: {words}", gpuops.sum, X, where=x > 0)
    check_tensor(torch, gpuops.where(x > 0, x, np.float32(2)), gpuops.where(X > 0, X, np.float32(2)))
    check_tensor(torch, gpuops.where(x > 0, x, np.array(2, "f4")), gpuops.where(X > 0, X, np.float32(2)))
    check_tensor(torch, gpuops.where(x > 0, x, torch.tensor(2.0)), gpuops.where(X > 0, X, np.float32(2)))
    words = "arrays of two libraries do not mix: condition is a torch.Tensor, x is a list"
    fails(TypeError, f"where: {words}", gpuops.where, x[0] > 0, [1.0] * 6, 0)
    words = "arrays of two libraries do not mix: a is a torch.Tensor, out is a numpy.ndarray"
    fails(TypeError, f"sum: {words}", gpuops.sum, x, out=np.zeros((), "f4"))
    assert gpuops.expand(x[0], np.array([2, 6])).shape == gpuops.expand(x[0], torch.tensor([2, 6])).shape == (2, 6)
    assert gpuops.expand(x[0], tensor(torch, np.array([2, 6]), place)).shape == (2, 6)
    assert type(gpuops.broadcast_to([1, 2], torch.tensor([2, 2]))) is np.ndarray


def test_autograd_functions_of_the_guide(torch, place):
    text = (Path(gpuops.__file__).parent.parent / "docs" / "interop.md").read_text(encoding="utf-8")
    (block,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "autograd.Function)" in block)
    names: dict[str, Any] = {}
    exec(block, names)
    rows = np.exp(names["x"].detach().numpy())
    share = rows / rows.sum(1, keepdims=True)
    right = share * (np.eye(rows.shape[1])[0] - share[:, :1])  # gradient of the first element of each row
    np.testing.assert_allclose(names["x"].grad.numpy(), right, atol=1e-12)
    x = tensor(torch, X.astype("f8"), place).requires_grad_()
    for function in (names["Softmax"], names["LogSumExp"]):
        assert torch.autograd.gradcheck(function.apply, (x,))


# ------------------------------------------------------------------- tensors in the launch cache, on the emulator


class EmulatedContext:
    """An execution context for CPU tensors on the emulator; counts how often it is entered."""

    device, foreign = emulated.DEVICE, True

    def __init__(self, pytorch, torch):
        self.pytorch, self.torch, self.written = pytorch, torch, pytorch.written
        self.entered, self.away = 0, False

    def elsewhere(self):
        return self.away

    @contextlib.contextmanager
    def enter(self):
        self.entered += 1
        yield

    def array(self, tensor):
        array = self.pytorch.host_view(tensor.detach(), self.pytorch.numpy_dtype("", "", tensor.dtype))
        return array.view(emulated.EmulatedArray)

    def spec(self, name, tensor, machine=None):
        return self.device.spec(name, self.array(tensor), machine)

    def maker(self, dtype):
        def make(shape, strides, addresses):
            steps = contiguous_strides(shape) if strides is None else [s // dtype.itemsize for s in strides]
            made = self.torch.empty_strided(shape, steps, dtype=self.pytorch.torch_dtype(dtype))
            addresses.append(emulated.Address.of(self.array(made)))
            return made

        return make

    def broadcast_to(self, tensor, shape):
        return tensor.expand(shape)

    def read(self, tensor):
        spec, address = self.spec("", tensor)
        return address, (spec.shape, tensor.stride(), tensor.dtype, spec.writeable, spec.start)


@pytest.fixture
def emulated_gpu(torch, emulation, monkeypatch):
    """CPU tensors that take the GPU path, on the emulator."""
    from gpuops.adapters import pytorch

    made = EmulatedContext(pytorch, torch)
    libraries.adapter_of_type(torch.Tensor)
    monkeypatch.setattr(pytorch, "gpu_of", lambda op, tensors: 0)
    monkeypatch.setattr(pytorch, "context_on", lambda index: made)
    monkeypatch.setattr(pytorch, "native", lambda op, name, value: value)
    monkeypatch.setitem(libraries.READERS, torch.Tensor, made.read)
    return made


#: Calls that take workspace from CuPy's current allocator.
WORKSPACE = {name: OPS[name] for name in ("where alone", "nonzero", "compress")} | {
    "two_pass": lambda x, y, mask: gpuops.softmax(x, 1, strategy="two_pass")
}
CACHED = [name for name in OPS if name not in ("broadcast_to", "of nothing", *WORKSPACE)]


@pytest.mark.parametrize("name", CACHED)
def test_the_second_call_with_tensors_hits_the_cache(torch, emulated_gpu, name):
    expected = OPS[name](X, Y, MASK)
    check_tensor(torch, OPS[name](*[tensor(torch, array) for array in (X, Y, MASK)]), expected)
    assert emulated_gpu.entered == 1
    for emulated_gpu.away in (False, True):
        with only_hits():
            check_tensor(torch, OPS[name](*[tensor(torch, array) for array in (X, Y, MASK)]), expected)
    assert emulated_gpu.entered == 2


@pytest.mark.parametrize("name", WORKSPACE)
def test_cached_calls_enter_the_context_for_workspace(torch, emulated_gpu, name):
    expected = WORKSPACE[name](X, Y, MASK)
    for call in (1, 2, 3):
        with only_hits() if call > 1 else contextlib.nullcontext():
            check_tensor(torch, WORKSPACE[name](*[tensor(torch, array) for array in (X, Y, MASK)]), expected)
        assert emulated_gpu.entered == call


@pytest.mark.parametrize("strategy", [None, "two_pass"])
def test_new_shapes_of_tensors_are_served_by_templates(torch, emulated_gpu, monkeypatch, strategy):
    served = []

    class Counted(execute.Template):
        def __call__(self, *args):
            served.append(args)
            return super().__call__(*args)

    monkeypatch.setattr(recordings, "EVERY", 1)
    monkeypatch.setattr(recordings, "EARNED", 0)
    monkeypatch.setattr(recordings, "Template", Counted)
    for rows in range(5, 45):
        x = np.arange(rows * 6, dtype="f4").reshape(rows, 6) % 5
        for host, there in ((x, tensor(torch, x)), (x.T, tensor(torch, x).T)):
            before = emulated_gpu.entered, len(served)
            check_tensor(torch, gpuops.softmax(there, 1, strategy=strategy), gpuops.softmax(host, 1))
            if len(served) > before[1]:
                assert emulated_gpu.entered - before[0] == bool(strategy)  # for workspace of PyTorch's
    assert len(served) >= 40


def test_cached_calls_write_into_out(torch, emulated_gpu):
    x, out = tensor(torch, X), torch.zeros(4, 6)
    for call in (1, 2, 3):
        version = out._version
        with only_hits() if call > 1 else contextlib.nullcontext():
            assert gpuops.softmax(x, axis=1, out=out) is out
        assert out._version == version + 1
        check_tensor(torch, out, gpuops.softmax(X, axis=1))
        out.zero_()


def test_workspace_is_memory_of_tensors(torch):
    """Needs no GPU: nothing reads the memory."""
    pytest.importorskip("cupy", reason="needs CuPy")
    from gpuops.adapters import pytorch

    memory = pytorch.allocated(0, torch.device("cpu"), 24)
    made = memory.mem.owner
    assert (memory.ptr, memory.mem.size, made.nbytes, made.dtype) == (made.data_ptr(), 24, 24, torch.uint8)


# ------------------------------------------------------------------------------------------------------------- JAX


@pytest.fixture
def jax(monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # other tests need GPU memory too
    return pytest.importorskip("jax", reason="needs JAX")


@pytest.fixture(params=["cpu", "gpu"] if GPU else ["cpu"])
def jax_device(request, jax):
    """The device of the JAX arrays."""
    if request.param == "gpu" and jax.default_backend() != "gpu":
        pytest.skip("needs JAX with CUDA")
    return jax.devices(request.param)[0]


@pytest.mark.parametrize("name", OPS)
def test_ops_on_jax_arrays(jax, jax_device, name):
    there = [jax.device_put(array, jax_device) for array in (X, Y, MASK)]
    expected, results = OPS[name](X, Y, MASK), OPS[name](*there)
    if not isinstance(expected, tuple):
        expected, results = (expected,), (results,)
    for one, other in zip(results, expected, strict=True):
        other = np.asarray(other)
        other = other.astype("i4") if other.dtype == np.int64 else other  # integers have 32 bits in JAX
        assert isinstance(one, jax.Array) and one.devices() == {jax_device}
        (assert_bits if jax_device.platform == "cpu" else assert_close)(np.asarray(one), other)


def test_jax_bfloat16_and_64_bit_results(jax):
    x = jax.numpy.asarray(X).astype(jax.numpy.bfloat16)
    check(gpuops.sum(x, axis=0), gpuops.sum(X.astype(BFLOAT16), axis=0), np.asarray, jax.Array)
    assert gpuops.sum(jax.numpy.arange(3)).dtype == np.int32  # JAX's default without 64-bit types
    with jax.enable_x64(True):
        assert gpuops.sum(jax.numpy.arange(3)).dtype == np.int64


def test_shapes_may_be_integer_arrays_of_any_library(jax):
    for x in (X[0], jax.numpy.asarray(X[0])):
        for shape in (np.array([2, 6]), jax.numpy.array([2, 6]), [np.int8(2), -1]):
            assert gpuops.expand(x, shape).shape == (2, 6)
            assert type(gpuops.expand(x, shape)) is type(x)
        for shape in (np.array([2.0, 6.0]), jax.numpy.array([2.0, 6.0]), np.array([True, True]), np.array([[2, 6]])):
            fails(TypeError, "expand: shape must be an int or a tuple of ints", gpuops.expand, x, shape)


def test_jax_arrays_stay_on_their_device(jax):
    x = jax.device_put(X, jax.devices("cpu")[-1])
    assert gpuops.softmax(x, axis=1).devices() == x.devices()


def test_unsupported_jax_arrays_raise(jax):
    x = jax.numpy.asarray(X)
    fails(TypeError, "sum: out is a jaxlib.ArrayImpl, which cannot be written to", gpuops.sum, x, out=x[0, 0])
    rule = "which JAX traces: call gpuops outside of jit, grad and vmap, or through jax.pure_callback"
    fails(TypeError, f"sum: a is a jax.DynamicJaxprTracer, {rule}", lambda: jax.jit(gpuops.sum)(x))
    for traced in (jax.grad(gpuops.sum), jax.vmap(gpuops.sum)):
        with pytest.raises(TypeError, match=rule):
            traced(x)
    words = "arrays of two libraries do not mix: condition is a jaxlib.ArrayImpl, x is a numpy.ndarray"
    fails(TypeError, f"where: {words}", gpuops.where, x, X, Y)


def test_jit_calls_through_pure_callback(jax):
    def softmax(x):
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda x: gpuops.softmax(np.asarray(x), axis=1), like, x)

    np.testing.assert_allclose(jax.jit(softmax)(jax.numpy.asarray(X)), gpuops.softmax(X, axis=1), rtol=1e-6)


def test_scalar_options_may_be_0d_arrays_of_any_library(jax, torch):
    for zero_dim in (np.array(2.0), jax.numpy.asarray(2.0), torch.tensor(2.0)):
        assert gpuops.sum(X, initial=zero_dim) == gpuops.sum(X, initial=2.0)
        np.testing.assert_array_equal(gpuops.softmax(X, 1, scale=zero_dim), gpuops.softmax(X, 1, scale=2.0))
        for factor in ("alpha", "beta"):
            got = gpuops.matmul(X, X.T, c=1, **{factor: zero_dim})
            np.testing.assert_array_equal(got, gpuops.matmul(X, X.T, c=1, **{factor: 2.0}))


@pytest.fixture
def strict():
    return pytest.importorskip("array_api_strict", reason="needs array-api-strict, whose dtypes are not NumPy's")


@pytest.mark.parametrize("name", ["where", "sum", "sum of all", "nonzero", "matmul", "softmax", "mean_var", "allclose"])
def test_results_are_on_the_device_of_the_arrays(strict, name):
    for device in map(strict.Device, ("CPU_DEVICE", "device1", "device2")):
        x, y, mask = (strict.asarray(array, device=device) for array in (X, Y, MASK))
        results, expected = (OPS[name](*arrays) for arrays in ((x, y, mask), (X, Y, MASK)))
        for one, right in zip(*(r if isinstance(r, tuple) else (r,) for r in (results, expected)), strict=True):
            assert one.device == device
            assert_bits(np.from_dlpack(one), np.asarray(right))
        out = strict.zeros((6,), device=device, dtype=x.dtype)
        assert gpuops.sum(x, axis=0, out=out) is out


def test_arrays_on_two_devices_of_a_library_raise(strict):
    here, there = (strict.asarray(X, device=strict.Device(name)) for name in ("CPU_DEVICE", "device1"))
    fails(ValueError, f"matmul: a is on {here.device}, b is on {there.device}", gpuops.matmul, here, there)
    fails(ValueError, f"sum: a is on {there.device}, out is on {here.device}", gpuops.sum, there, out=here)


TWO_DEVICES = """
import gpuops, jax, numpy as np
first, second = jax.devices("cpu")
x = np.arange(6, dtype=np.float32).reshape(2, 3)
here, there, free = jax.device_put(x, first), jax.device_put(x, second), jax.numpy.asarray(x)
assert gpuops.sum(there, axis=0).devices() == {second}
assert gpuops.softmax(free, axis=1).committed is False
assert gpuops.where(free > 2, free, there).devices() == {second}
try:
    gpuops.matmul(here, there.T)
except ValueError as failure:
    assert str(failure) == f"matmul: a is on {first}, b is on {second}", failure
else:
    raise AssertionError("mixed devices were accepted")
"""


def test_jax_arrays_committed_to_two_devices_raise(jax):
    env = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", TWO_DEVICES], check=True, env=env)


def test_dtypes_of_array_api_strict_are_accepted(strict):
    x = strict.asarray(X)
    assert gpuops.sum(x, dtype=strict.float64).dtype == strict.float64
    assert gpuops.softmax(x, dtype=strict.float64).dtype == strict.float64
    fails(TypeError, "sum: dtype 'nope' is not understood", gpuops.sum, x, dtype="nope")


def compiled_functions(torch):
    return {
        "softmax": lambda x: gpuops.softmax(x, axis=1) + 1,
        "softmax of bfloat16": lambda x: gpuops.softmax(x.bfloat16(), axis=1) + 1,
        "sum of int8": lambda x: gpuops.sum(x.to(torch.int8), axis=0) * 2,
        "out": lambda x: gpuops.softmax(x, axis=0, out=torch.empty_like(x)) - 1,
        "where": lambda x: gpuops.where(x > 0, x, 0.5) * 2,
        "matmul": lambda x: gpuops.matmul(x, x.T).sum(),
    }


COMPILED = """
import sys
import gpuops
import torch
from tests.test_interop import X, compiled_functions

function = compiled_functions(torch)[sys.argv[1]]
for shape in ((5, 6), (3, 4), (5, 6)):
    x = torch.arange(shape[0] * shape[1], dtype=torch.float32).reshape(shape).sin()
    assert torch.equal(torch.compile(function, backend="eager")(x), function(x))
"""


@pytest.mark.parametrize("name", ["softmax of bfloat16", "out"])
def test_torch_compile_in_a_new_process(torch, name):
    """gpuops notices the compiler even if it is imported first and the first tensor is a traced one."""
    command, root = [sys.executable, "-c", COMPILED, name], Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_torch_compile(torch):
    x = tensor(torch, X)
    for function in compiled_functions(torch).values():
        torch._dynamo.reset()
        assert torch.equal(torch.compile(function, backend="eager")(x), function(x))


@pytest.mark.filterwarnings("ignore:.torch.jit.trace")
def test_torch_jit_trace_raises(torch, place):
    x = tensor(torch, X, place)
    gpuops.sum(x), gpuops.sum(x)
    message = "sum: torch.jit.trace would record the result as a constant"
    fails(RuntimeError, message, lambda: torch.jit.trace(lambda x: gpuops.sum(x), x))


def test_ndarray_subclasses_give_plain_arrays():
    class Marked(np.ndarray):
        pass

    x = X.view(Marked)
    for result in (gpuops.sum(x, 0), gpuops.softmax(x, 1), gpuops.where(x > 0, x, 0), gpuops.matmul(x, x.T)):
        assert type(result) is np.ndarray
    matrix = gpuops.sum(np.matrix(X), 0)
    assert type(matrix) is np.ndarray and matrix.shape == (6,)
    out = np.zeros(6, "f4").view(Marked)
    assert gpuops.sum(x, 0, out=out) is out


def test_xarray_arrays_give_plain_arrays():
    xarray = pytest.importorskip("xarray", reason="needs xarray, whose arrays have labels")
    x = xarray.DataArray(X, dims=("row", "col"))
    assert type(gpuops.sum(x, 0)) is np.ndarray
    np.testing.assert_array_equal(gpuops.softmax(x, 1), gpuops.softmax(X, 1))


def test_sparse_arrays_raise():
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy has such arrays")
    fails(TypeError, "sum: a is a scipy.csr_array, not an array; pass a.toarray()", gpuops.sum, sparse.csr_array(X))


def test_arrays_of_two_libraries_do_not_mix(torch, jax):
    words = "arrays of two libraries do not mix: a is a torch.Tensor, b is a jaxlib.ArrayImpl"
    fails(TypeError, f"matmul: {words}", gpuops.matmul, tensor(torch, X), jax.numpy.asarray(Y.T))


# ------------------------------------------------------------------------------------------------- other libraries


class Foreign:
    """An array of an unknown library that supports DLPack."""

    def __init__(self, array: Any, device: tuple[int, int] = (1, 0)) -> None:
        self.array, self.device, self.shape = array, device, array.shape

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


class Standard(Foreign):
    """An array whose library follows the array API standard."""

    def __array_namespace__(self, api_version=None):
        return Standard

    @classmethod
    def from_dlpack(cls, array):
        return cls(array)


def test_dlpack_arrays():
    check(gpuops.softmax(Foreign(X), axis=1), gpuops.softmax(X, axis=1), np.asarray, np.ndarray)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="NumPy 2.0 only reads arrays of DLPack")
def test_dlpack_arrays_take_results():
    out = np.zeros_like(X)
    into = Foreign(out)
    assert gpuops.softmax(Foreign(X), axis=1, out=into) is into
    assert_bits(out, gpuops.softmax(X, axis=1))


def test_array_api_arrays_give_results_of_their_type():
    result = gpuops.sum(Standard(X), axis=1)
    check(result, gpuops.sum(X, axis=1), lambda result: result.array, Standard)
    assert [type(each) for each in gpuops.where(Standard(MASK))] == [Standard, Standard]


def test_arrays_of_two_types_of_one_library_mix():
    check(gpuops.where(Foreign(MASK), Standard(X), 0), gpuops.where(MASK, X, 0), np.asarray, np.ndarray)


@pytest.mark.parametrize("make", [Foreign, lambda x: x], ids=["another library's", "NumPy's"])
def test_wrong_arguments_raise_python_type_errors(make):
    x = make(X)
    for call, message in (
        (lambda: gpuops.softmax(x, x=x), "multiple values for argument 'x'"),
        (lambda: gpuops.softmax(*[x] * 20), "takes from 1 to 2 positional arguments"),
        (lambda: gpuops.softmax(x, 1, 2), "takes from 1 to 2 positional arguments"),
        (lambda: gpuops.sum(x, axes=1), "unexpected keyword argument 'axes'"),
        (lambda: gpuops.where(x, x=x, y=x), "positional-only arguments passed as keyword"),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_dlpack_devices_other_than_cpu_and_cuda_raise():
    message = "sum: a is a tests.Foreign, whose memory cannot be shared: DLPack device type 8 is not supported"
    fails(TypeError, message, gpuops.sum, Foreign(X, (8, 0)))


def test_only_1d_results_become_cudf_series(monkeypatch):
    cudf = SimpleNamespace(Series=lambda array, nan_as_null: (array, nan_as_null))
    monkeypatch.setitem(sys.modules, "cudf", cudf)
    row = X[0]
    assert exchange.to_cudf(row, None) == (row, False)
    assert exchange.to_cudf(X, None) is X


def test_namespaces_without_from_dlpack_give_numpy_results():
    class Silent(Foreign):
        def __array_namespace__(self):
            return sys

    check(gpuops.sum(Silent(X), axis=1), gpuops.sum(X, axis=1), np.asarray, np.ndarray)


def test_objects_with_the_array_protocol_give_numpy_results():
    class Labelled:
        """Like an xarray array."""

        __dask_graph__ = None

        def __array__(self, dtype=None, copy=None):
            return X

    check(gpuops.sum(Labelled(), axis=1), gpuops.sum(X, axis=1), np.asarray, np.ndarray)


def test_operands_are_kept_until_their_event_is_done(monkeypatch):
    class Event:
        done = False

        def record(self):
            pass

    stream = SimpleNamespace(is_capturing=lambda: False)
    events = SimpleNamespace(Event=lambda disable_timing: Event(), get_current_stream=lambda: stream)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=events))
    monkeypatch.setattr(exchange, "IN_USE", exchange.deque())
    there = SimpleNamespace(device=contextlib.nullcontext())
    exchange.keep([np.zeros(())])
    assert not exchange.IN_USE
    exchange.keep([np.zeros(()), there])
    exchange.keep([there])
    assert [arrays for _, arrays in exchange.IN_USE] == [[there], [there]]
    exchange.IN_USE[0][0].done = True
    exchange.keep([there, there])
    assert [len(arrays) for _, arrays in exchange.IN_USE] == [1, 2]


def test_cuda_core_buffers_keep_their_memory_alive():
    class Buffer:
        def __init__(self, *handle):
            self.handle = handle

        @classmethod
        def from_handle(cls, address, nbytes, owner):
            return cls(address, nbytes, owner)

    address, nbytes, owner = exchange.to_cuda(X, Buffer()).handle
    assert (address, nbytes) == (X.ctypes.data, X.nbytes) and owner is X
    _, nbytes, owner = exchange.to_cuda(np.broadcast_to(X[0], (3, 6)), Buffer()).handle
    assert nbytes == owner.nbytes == 3 * X[0].nbytes and owner.base is None


def test_foreign_libraries_are_not_imported():
    code = """
import sys, numpy as np, gpuops
gpuops.softmax(np.ones(3)), gpuops.where(np.ones(3) > 0, 1, 2)
class Array:
    def __dlpack_device__(self): return 1, 0
    def __dlpack__(self, **options): return np.ones(3).__dlpack__(**options)
gpuops.sum(Array())
print({'torch', 'jax', 'numba', 'cudf', 'cuda', 'dask', 'cupy'} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# ------------------------------------------------------------------------------------------------- on a GPU


def test_tensors_on_two_devices_raise(gpu_torch):
    x = tensor(gpu_torch, X, "cuda")
    fails(ValueError, "where: condition is on cuda:0, y is on cpu", gpuops.where, x > 0, x, x.cpu())


def test_tensors_use_the_current_pytorch_stream(gpu_torch):
    torch, n = gpu_torch, 2**24
    stream, x = torch.cuda.Stream(), torch.zeros(n, device="cuda")
    torch.cuda.synchronize()
    for call in range(4):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            x.fill_(call)
            total = gpuops.sum(x)
            later = total + 0
        stream.synchronize()
        assert later.item() == total.item() == call * n
        assert gpuops.sum(x).item() == call * n


def test_results_use_the_pytorch_allocator(gpu_torch):
    import cupy

    torch = gpu_torch
    x = torch.ones(1024, 1024, device="cuda")
    gpuops.sum(x, axis=0)
    for call in (1, 2):
        before, pool = torch.cuda.memory_allocated(), cupy.get_default_memory_pool().used_bytes()
        y = gpuops.softmax(x, axis=call - 1)
        assert torch.cuda.memory_allocated() - before >= y.nbytes
        assert cupy.get_default_memory_pool().used_bytes() == pool
        y.record_stream(torch.cuda.Stream())
        del y
        assert torch.cuda.memory_allocated() - before < x.nbytes


def test_pytorch_cuda_graphs(gpu_torch):
    torch = gpu_torch
    x = torch.zeros(512, 512, device="cuda")
    mask = x > 0

    def pipeline():
        return gpuops.softmax(gpuops.where(mask, x, -x), axis=1), gpuops.sum(x, axis=0)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        pipeline()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = pipeline()
    for seed in range(100):
        torch.manual_seed(seed)
        x.normal_()
        mask.copy_(x > 0.5)
        graph.replay()
        right = torch.softmax(torch.where(mask, x, -x), 1), x.sum(0)
        for got, expected in zip(results, right):
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-4)


def test_tensors_on_a_gpu_that_is_not_current(gpu_torch):
    torch = gpu_torch
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    x = tensor(torch, X, "cuda:1")
    for _ in range(2):
        result = gpuops.softmax(x, axis=1)
        assert result.device == x.device
        check_tensor(torch, result, gpuops.softmax(X, axis=1))


@needs_gpu
def test_gpu_arrays_give_results_of_their_type():
    import cupy

    x = cupy.asarray(X)
    expected = gpuops.softmax(X, axis=1)
    cuda = pytest.importorskip("numba.cuda", reason="needs Numba")
    result = gpuops.softmax(cuda.as_cuda_array(x), axis=1)
    assert type(result) is type(cuda.as_cuda_array(x))
    np.testing.assert_allclose(result.copy_to_host(), expected, 1e-5)
    result = gpuops.softmax(Foreign(x, (2, 0)), axis=1)
    assert type(result) is cupy.ndarray
    np.testing.assert_allclose(result.get(), expected, 1e-5)


@needs_gpu
def test_cuda_core_buffers_on_gpus():
    import cupy

    core = pytest.importorskip("cuda.core", reason="needs cuda.core")
    gpu = core.Device()
    gpu.set_current()
    buffer = gpu.allocate(64, stream=gpu.default_stream)
    cupy.from_dlpack(buffer)[...] = 3
    total = gpuops.sum(buffer)
    assert type(total) is type(buffer) and total.size == 8
    assert cupy.from_dlpack(total).view(np.int64)[0] == 3 * 64


def test_jax_arrays_on_gpus(jax):
    if not GPU or jax.default_backend() != "gpu":
        pytest.skip("needs JAX and CuPy with a GPU")
    for dtype in (np.float32, ml_dtypes.bfloat16):
        x = jax.device_put(X.astype(dtype))
        for _ in range(3):
            result = gpuops.softmax(x, axis=1)
            assert result.devices() == x.devices() and result.dtype == x.dtype
            expected = gpuops.softmax(X.astype(dtype), axis=1)
            np.testing.assert_allclose(np.asarray(result, "f8"), expected.astype("f8"), 1e-2)
    big = jax.numpy.ones((4096, 4096))
    for _ in range(20):  # operands are kept until the kernel has read them
        total = gpuops.sum(big * 2)
        assert float(total) == 2 * 4096**2
    assert len(exchange.IN_USE) <= 2
