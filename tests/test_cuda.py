"""How launches are handed to the driver, with CuPy's arrays and no GPU: the driver is one that takes notes."""

from __future__ import annotations

import ctypes
import struct
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import gpuops
from gpuops import calls
from gpuops.device import run
from gpuops.plan import Kernel, Launch, Operand, Plan

cupy = pytest.importorskip("cupy", reason="launches need CuPy")
from gpuops import cuda  # noqa: E402 - which needs CuPy

KERNEL = Kernel("reduce_rows", (), ())
STRUCT = bytes(range(100))
ARGS = (Operand("x", 8), None, Operand("out"), STRUCT, None, Operand("x", -4))
STREAM = 77
F4 = np.dtype(np.float32)


class Notes:
    """A driver that writes down what it is to launch, and may do something else meanwhile."""

    CUDADriverError = RuntimeError

    def __init__(self):
        self.launches, self.status, self.meanwhile = [], [], lambda: None

    def cuLaunchKernelEx(self, config, function, addresses, extra):
        self.meanwhile()
        *shape, stream, attributes, count = struct.unpack("<7I4x2QI4x", ctypes.string_at(config.value, 56))
        attributes = (cuda.LaunchAttribute * count).from_address(attributes)
        sizes = (8, 8, 8, len(STRUCT), 8, 8)
        places = (ctypes.c_void_p * len(sizes)).from_address(addresses.value)
        values = [ctypes.string_at(place, size) for place, size in zip(places, sizes)]
        args = [value if len(value) > 8 else int.from_bytes(value, "little") for value in values]
        known = {attribute.id: tuple(attribute.value)[:3] for attribute in attributes}
        grid, block, shared = tuple(shape[:3]), tuple(shape[3:6]), shape[6]
        self.launches.append((function.value, grid, block, shared, stream, known, args))
        return self.status.pop() if self.status else 0


@pytest.fixture
def notes(monkeypatch):
    taken = Notes()
    monkeypatch.setattr(cuda, "driver", taken)
    monkeypatch.setattr(cuda, "libcuda", lambda: taken)
    stream = SimpleNamespace(ptr=STREAM, is_capturing=lambda: False)
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: stream)
    taken.stream = stream
    return taken


@pytest.fixture
def gpu():
    """A device whose kernel is loaded."""
    made = object.__new__(cuda.CudaDevice)
    made._functions, made._lock = {KERNEL: SimpleNamespace(ptr=1234)}, threading.Lock()
    made.index, made.label, made.overlaps, made._captured = 3, "cuda:3", True, []
    return made


def array(start, shape=(4,), dtype=np.float32):
    """An array of CuPy's at an address, which nothing reads."""
    memory = cupy.cuda.UnownedMemory(start, 4096, None, 0)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))


X, Y, OUT = array(0x10000), array(0x20000), array(0x30000)


#: Where an array's address is among those that a launcher is given.
PLACES = {"x": 0, "out": 2}


def given(x, out):
    return [x.data.ptr, 5, out.data.ptr]


def expected(x, out):
    return [x.data.ptr + 8, 0, out.data.ptr, STRUCT, 0, x.data.ptr - 4]


def test_addresses_structs_and_null_pointers(notes, gpu):
    launcher = gpu.launcher(Launch(KERNEL, (5, 2, 1), 96, ARGS), PLACES)
    launcher(given(X, OUT))
    launcher(given(Y, X))
    shape = (1234, (5, 2, 1), (96, 1, 1), 0, STREAM, {6: (1, 0, 0)})
    assert notes.launches == [(*shape, expected(X, OUT)), (*shape, expected(Y, X))]


@pytest.mark.parametrize(
    "options,attributes",
    [
        ({}, {6: (1, 0, 0)}),
        ({"cluster": 16, "shared": 4096}, {6: (1, 0, 0), 4: (16, 1, 1)}),
        ({"cooperative": True, "shared": 8}, {2: (1, 0, 0)}),
    ],
)
def test_attributes(notes, gpu, options, attributes):
    launcher = gpu.launcher(Launch(KERNEL, (5, 1, 1), 128, ARGS, **options), PLACES)
    for x, out in ((X, OUT), (Y, X)):
        launcher(given(x, out))
        shared = options.get("shared", 0)
        assert notes.launches.pop() == (1234, (5, 1, 1), (128, 1, 1), shared, STREAM, attributes, expected(x, out))


def test_an_older_driver_overlaps_nothing(notes, gpu):
    gpu.overlaps = False
    gpu.launcher(Launch(KERNEL, (5, 1, 1), 128, ARGS), PLACES)(given(X, OUT))
    assert notes.launches[0][5] == {}


def test_arguments_are_not_shared_while_they_are_in_use(notes, gpu):
    launcher = gpu.launcher(Launch(KERNEL, (1, 1, 1), 32, ARGS), PLACES)

    def other_thread():
        notes.meanwhile = lambda: None
        launcher(given(Y, X))

    for _ in range(2):
        notes.meanwhile = other_thread
        launcher(given(X, OUT))
    assert [launch[-1] for launch in notes.launches] == [expected(Y, X), expected(X, OUT)] * 2


def test_a_launch_goes_to_the_stream_that_is_current(notes, gpu):
    launcher = gpu.launcher(Launch(KERNEL, (1, 1, 1), 32, ARGS), PLACES)
    for stream in (0, 5, 2**40, 0):
        notes.stream.ptr = stream
        launcher(given(X, OUT))
        assert notes.launches[-1][4] == stream


def test_a_launch_that_the_driver_refuses(notes, gpu):
    notes.status = [701]
    launcher = gpu.launcher(Launch(KERNEL, (1, 1, 1), 32, ARGS), PLACES)
    with pytest.raises(RuntimeError, match="701"):
        launcher(given(X, OUT))


@pytest.mark.parametrize("status,words", [(400, "stream is of another device"), (709, "device was reset")])
def test_a_launch_that_was_called_wrongly(notes, gpu, status, words):
    notes.status = [status]
    with pytest.raises(RuntimeError, match=f"reduce_rows cannot be launched on cuda:3: .*{words}"):
        gpu.launcher(Launch(KERNEL, (1, 1, 1), 32, ARGS), PLACES)(given(X, OUT))


def test_a_thread_that_has_not_entered_the_device(notes, gpu, monkeypatch):
    notes.status, entered = [0, 201], []
    monkeypatch.setattr(cupy.cuda.runtime, "setDevice", entered.append)
    gpu.launcher(Launch(KERNEL, (1, 1, 1), 32, ARGS), PLACES)(given(X, OUT))
    assert entered == [3] and len(notes.launches) == 2 and notes.launches[0] == notes.launches[1]


def test_a_new_array_is_as_cupy_makes_it(gpu, monkeypatch):
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: None)
    memory = cupy.cuda.UnownedMemory(0x10000, 4096, None, 0)
    with cupy.cuda.using_allocator(lambda nbytes: cupy.cuda.MemoryPointer(memory, 0)):
        for shape, dtype in (((3, 5), F4), ((), np.dtype(bool)), ((0, 2), np.dtype(np.complex128))):
            made, right = gpu.empty(shape, dtype), cupy.ndarray(shape, dtype)
            assert type(made) is cupy.ndarray
            for name in ("shape", "strides", "dtype", "size", "itemsize", "nbytes", "ndim", "base"):
                assert getattr(made, name) == getattr(right, name), name
            assert made.data.ptr == right.data.ptr and str(made.flags) == str(right.flags)


def test_a_kernel_that_is_not_loaded_when_a_capture_begins(notes, gpu):
    gpu._functions.clear()
    notes.stream.is_capturing = lambda: True
    plan = Plan("rows", (Launch(KERNEL, (1, 1, 1), 32, ARGS),), scratch=64)
    with pytest.raises(RuntimeError, match=r"reduce_rows is not loaded yet, .* make the same call once .*'rows'"):
        run(plan, gpu, x=X, out=OUT)
    assert not notes.launches and not gpu._captured


def test_what_a_graph_may_use_is_kept(notes, gpu):
    gpu.keep(X)
    assert gpu._captured == []
    notes.stream.is_capturing = lambda: True
    gpu.keep(Y)
    assert len(gpu._captured) == 1 and gpu._captured[0] is Y


def test_what_decides_a_call_of_an_array(monkeypatch):
    known = SimpleNamespace(again=lambda values, addresses: addresses)
    seen = []
    monkeypatch.setattr(calls, "memory", lambda *facts: seen.append(facts) or known)
    monkeypatch.setattr(calls, "ARRAYS", {cupy.ndarray})
    x, y = array(0x10000, (8, 8)), array(0x20000, (8, 8))
    others = (x.T, x[:4], x[::2], array(0x10004, (8, 8)), array(0x10000, (8, 8), np.int32))
    for each in (x, y, *others):
        assert gpuops.sum(each) == [each.data.ptr]
    first, second, *rest = seen
    assert first == second and hash(first) == hash(second)
    assert all(first != other for other in rest)
