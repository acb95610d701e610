"""Launches through the driver, with CuPy arrays and no GPU: a fake driver records them."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import struct
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import gpuops
from gpuops.call import dispatch as call
from gpuops.call import launch_cache
from gpuops.call.key import Missed
from gpuops.call.recordings import Entry
from gpuops.device import execute
from gpuops.device.context import Refused
from gpuops.plan import work
from gpuops.plan.params import Params
from gpuops.plan.work import PARTIALS, HostCall, Kernel, Launch, Machine, Operand, Plan, Sources, Work

cupy = pytest.importorskip("cupy", reason="launches need CuPy")
from gpuops.device import cuda, cuda_driver, cuda_memory  # noqa: E402 - which need CuPy

KERNEL = Kernel("reduce_rows", (), ())
STRUCT = bytes(range(100))
ARGS = (Operand("x", 8), None, Operand("out"), STRUCT, None, Operand("x", -4))
STREAM = 77
F4 = np.dtype(np.float32)


class Recorder:
    """A fake driver that records launches; ``meanwhile`` runs during each."""

    CUDADriverError = RuntimeError
    sizes = (8, 8, 8, len(STRUCT), 8, 8)  # of the arguments, in bytes

    def __init__(self):
        self.launches, self.status, self.meanwhile = [], [], lambda: None

    def cuLaunchKernelEx(self, config, function, addresses, extra):
        self.meanwhile()
        *shape, stream, attributes, count = struct.unpack("<7I4x2QI4x", ctypes.string_at(config.value, 56))
        attributes = (cuda_driver.LaunchAttribute * count).from_address(attributes)
        places = (ctypes.c_void_p * len(self.sizes)).from_address(addresses.value)
        values = [ctypes.string_at(place, size) for place, size in zip(places, self.sizes)]
        args = [value if len(value) > 8 else int.from_bytes(value, "little") for value in values]
        known = {attribute.id: tuple(attribute.value)[:3] for attribute in attributes}
        grid, block, shared = tuple(shape[:3]), tuple(shape[3:6]), shape[6]
        self.launches.append((function.value, grid, block, shared, stream, known, args))
        return self.status.pop() if self.status else 0


@pytest.fixture
def recorder(monkeypatch):
    taken = Recorder()
    monkeypatch.setattr(cuda_driver, "driver", taken)
    monkeypatch.setattr(cuda_driver, "libcuda", lambda: taken)
    stream = SimpleNamespace(ptr=STREAM, is_capturing=lambda: False)
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: stream)
    taken.stream = stream
    return taken


@pytest.fixture
def gpu():
    """A device whose kernel is loaded."""
    made = object.__new__(cuda.CudaDevice)
    made._codes, made._begun, made.arch = {}, {}, 90
    made._functions, made._lock = {KERNEL: SimpleNamespace(ptr=1234)}, threading.Lock()
    made.index, made.label, made.overlaps, made._graphs = 3, "cuda:3", True, cuda_memory.Graphs()
    made.whole, made._local = Machine(132, cluster=16, together=132), threading.local()
    made._retired = SimpleNamespace(add=lambda scratch: retired.append(scratch.memory))
    made.retired = retired = []
    return made


def array(start, shape=(4,), dtype=np.float32):
    """A CuPy array at an address that is never read."""
    memory = cupy.cuda.UnownedMemory(start, 4096, None, 0)
    return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))


X, Y, OUT = array(0x10000), array(0x20000), array(0x30000)


#: Positions of the operands' addresses in a launcher's arguments.
PLACES = {"x": 0, "out": 2}


def given(x, out):
    return [x.data.ptr, 5, out.data.ptr]


def expected(x, out):
    return [x.data.ptr + 8, 0, out.data.ptr, STRUCT, 0, x.data.ptr - 4]


def test_launch_passes_addresses_structs_and_null_pointers(recorder, gpu):
    launcher = gpu.launcher(Launch(KERNEL, (5, 2, 1), 96, ARGS), PLACES)
    launcher(given(X, OUT))
    launcher(given(Y, X))
    shape = (1234, (5, 2, 1), (96, 1, 1), 0, STREAM, {6: (1, 0, 0)})
    assert recorder.launches == [(*shape, expected(X, OUT)), (*shape, expected(Y, X))]


def test_structs_hold_addresses_of_arrays(recorder, gpu):
    sources = Sources((Operand("x", 8), Operand("out", -4)), Params("@2iq0q", (3, 4, 5)))
    launch = Launch(KERNEL, (5, 2, 1), 96, (Operand("out"), None, Operand("x"), sources))
    recorder.sizes = (8, 8, 8, 32)
    launcher = gpu.launcher(launch, PLACES)
    for changed, numbers in ((None, (3, 4, 5)), (given_of(launch, (6, 7, 8)), (6, 7, 8))):
        launcher(given(X, OUT), changed)
        struct_ = struct.pack("<2Q2iq", X.data.ptr + 8, OUT.data.ptr - 4, *numbers)
        assert recorder.launches.pop()[-1] == [OUT.data.ptr, 0, X.data.ptr, struct_]


def given_of(launch, values):
    """What changes a launch's parameters."""
    sources = launch.args[-1]._replace(params=launch.args[-1].params._replace(values=values))
    return work.given(launch._replace(args=(*launch.args[:-1], sources)))


def test_kernels_compile_in_the_background(recorder, gpu, monkeypatch):
    new = Kernel("reduce_rows", (), (("VEC", 4),), "an expression")
    monkeypatch.setattr(cuda.jit, "kept", lambda kernel, arch: b"")
    monkeypatch.setattr(gpu, "compiled", lambda kernel: b"code")
    assert gpu.there([KERNEL]) and not gpu.there([KERNEL, new])
    for _ in range(2):
        gpu.begin([new])
    assert len(gpu._begun) == 1
    gpu.wait_for_kernels()
    assert gpu.there([KERNEL, new]) and gpu._codes == {new: b"code"}
    recorder.stream.is_capturing = lambda: True  # nothing is loaded now
    assert gpu.there([KERNEL]) and not gpu.there([new])


def test_kernels_on_disk_are_there(recorder, gpu, monkeypatch):
    monkeypatch.setattr(cuda.jit, "kept", lambda kernel, arch: b"code of 90")
    assert gpu.there([Kernel("reduce_rows", (), (("VEC", 4),))])


def test_a_kernel_that_fails_in_the_background_is_compiled_again(recorder, gpu, monkeypatch):
    new = Kernel("reduce_rows", (), (("VEC", 4),), "an expression")
    monkeypatch.setattr(cuda.jit, "kept", lambda kernel, arch: b"")
    monkeypatch.setattr(gpu, "compiled", lambda kernel: 1 / 0)
    monkeypatch.setattr(cuda.jit, "attempts", lambda kernel, arch: 1 / 0)
    gpu.begin([new])
    gpu.wait_for_kernels()
    assert gpu.there([new])
    with pytest.raises(ZeroDivisionError):
        gpu.function(Launch(new, (1, 1, 1), 32, ()))


@pytest.mark.parametrize(
    "options,attributes",
    [
        ({}, {6: (1, 0, 0)}),
        ({"cluster": 16, "shared": 4096}, {6: (1, 0, 0), 4: (16, 1, 1)}),
        ({"cooperative": True, "shared": 8}, {2: (1, 0, 0)}),
    ],
)
def test_launch_attributes(recorder, gpu, options, attributes):
    launcher = gpu.launcher(Launch(KERNEL, (5, 1, 1), 128, ARGS, **options), PLACES)
    for x, out in ((X, OUT), (Y, X)):
        launcher(given(x, out))
        shared = options.get("shared", 0)
        assert recorder.launches.pop() == (1234, (5, 1, 1), (128, 1, 1), shared, STREAM, attributes, expected(x, out))


def test_old_drivers_get_no_overlap_attribute(recorder, gpu):
    gpu.overlaps = False
    gpu.launcher(Launch(KERNEL, (5, 1, 1), 128, ARGS), PLACES)(given(X, OUT))
    assert recorder.launches[0][5] == {}


def test_concurrent_launches_do_not_share_argument_buffers(recorder, gpu):
    launcher = gpu.launcher(Launch(KERNEL, (1, 1, 1), 32, ARGS), PLACES)

    def other_thread():
        recorder.meanwhile = lambda: None
        launcher(given(Y, X))

    for _ in range(2):
        recorder.meanwhile = other_thread
        launcher(given(X, OUT))
    assert [launch[-1] for launch in recorder.launches] == [expected(Y, X), expected(X, OUT)] * 2


def test_launches_use_the_current_stream(recorder, gpu):
    launcher = gpu.launcher(Launch(KERNEL, (1, 1, 1), 32, ARGS), PLACES)
    for stream in (0, 5, 2**40, 0):
        recorder.stream.ptr = stream
        launcher(given(X, OUT))
        assert recorder.launches[-1][4] == stream


def test_driver_errors_are_raised(recorder, gpu):
    recorder.status = [701]
    launcher = gpu.launcher(Launch(KERNEL, (1, 1, 1), 32, ARGS), PLACES)
    with pytest.raises(RuntimeError, match="701"):
        launcher(given(X, OUT))


@pytest.mark.parametrize("status,words", [(400, "stream belongs to another device"), (709, "device was reset")])
def test_wrong_device_and_reset_errors_name_the_cause(recorder, gpu, status, words):
    recorder.status = [status]
    with pytest.raises(RuntimeError, match=f"reduce_rows cannot be launched on cuda:3: .*{words}"):
        gpu.launcher(Launch(KERNEL, (1, 1, 1), 32, ARGS), PLACES)(given(X, OUT))


def test_launch_sets_the_device_in_a_new_thread(recorder, gpu, monkeypatch):
    recorder.status, entered = [0, 201], []
    monkeypatch.setattr(cupy.cuda.runtime, "setDevice", entered.append)
    gpu.launcher(Launch(KERNEL, (1, 1, 1), 32, ARGS), PLACES)(given(X, OUT))
    assert entered == [3] and len(recorder.launches) == 2 and recorder.launches[0] == recorder.launches[1]


def test_new_arrays_equal_those_of_cupy(gpu, monkeypatch):
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: None)
    memory = cupy.cuda.UnownedMemory(0x10000, 4096, None, 0)
    with cupy.cuda.using_allocator(lambda nbytes: cupy.cuda.MemoryPointer(memory, 0)):
        for shape, dtype in (((3, 5), F4), ((), np.dtype(bool)), ((0, 2), np.dtype(np.complex128))):
            addresses = []
            made, right = gpu.maker(dtype)(shape, None, addresses), cupy.ndarray(shape, dtype)
            assert type(made) is cupy.ndarray and addresses == [right.data.ptr]
            for name in ("shape", "strides", "dtype", "size", "itemsize", "nbytes", "ndim", "base"):
                assert getattr(made, name) == getattr(right, name), name
            assert made.data.ptr == right.data.ptr and str(made.flags) == str(right.flags)


def test_new_arrays_and_workspace_are_16_byte_aligned(recorder, gpu):
    asked, memory = [], cupy.cuda.UnownedMemory(0x10000, 4096, None, 0)
    with cupy.cuda.using_allocator(lambda nbytes: asked.append(nbytes) or cupy.cuda.MemoryPointer(memory, 4)):
        addresses = []
        made = gpu.maker(F4)((3, 5), (4, 12), addresses)
        assert addresses == [made.data.ptr] == [0x10010] and made.strides == (4, 12)
        assert gpu.workspace(100)[1] == 0x10010
    assert asked == [60, 60, 76, 100, 116]


def test_kernels_not_loaded_before_capture_raise(recorder, gpu):
    gpu._functions.clear()
    recorder.stream.is_capturing = lambda: True
    plan = Plan("rows", (Launch(KERNEL, (1, 1, 1), 32, ARGS),), scratch=64)
    work = Work("sum", (), HostCall(len, {}), plan)
    with pytest.raises(RuntimeError, match=r"reduce_rows is not loaded, .* make the same call once .*'rows'"):
        execute.prepare(work, gpu, ["x", "out"], None, None, True)
    assert not recorder.launches and not gpu._graphs.captured


def test_memory_of_a_graph_is_kept_until_it_is_destroyed(recorder, gpu, monkeypatch):
    gpu._graphs.keep(X.data)
    assert gpu._graphs.captured == {}
    recorder.stream.is_capturing = lambda: True
    graph = [1]
    monkeypatch.setattr(cuda_memory, "capture_of", lambda stream: (graph[0], None))
    made = []

    def of(graph):
        made.append(SimpleNamespace(memory=[], gone=lambda: False))
        return made[-1]

    monkeypatch.setattr(cuda_memory, "Captured", of)
    gpu._graphs.keep(X.data)
    gpu._graphs.keep(Y.data)
    assert list(gpu._graphs.captured) == [1] and made[0].memory == [X.data, Y.data]
    graph[0] = 2
    gpu._graphs.keep(OUT.data)
    assert list(gpu._graphs.captured) == [1, 2]
    made[0].gone = lambda: True
    gpu._graphs.keep(OUT.data)
    assert list(gpu._graphs.captured) == [2]


@pytest.mark.skipif(sys.platform == "win32", reason="there what graphs use is kept for good")
def test_graph_destruction_is_signalled_without_python(monkeypatch):
    """The driver calls a function of the C library, with its own argument."""
    given = {}

    class Driver:
        def cuUserObjectCreate(self, made, argument, destroy, count, flags):
            given["call"] = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(destroy.value), argument.value
            assert (count, flags) == (1, 1)
            return 0

        def cuGraphRetainUserObject(self, graph, user_object, count, flags):
            assert (graph, count, flags) == (77, 1, 1)
            return 0

    monkeypatch.setattr(cuda_driver, "libcuda", Driver)
    captured = cuda_memory.Captured(77)
    assert not captured.gone() and not captured.gone()
    call, argument = given["call"]
    call(argument)
    assert captured.gone()


class External:
    """CuPy's view of a foreign stream at an address."""

    def __init__(self, ptr):
        self.ptr = ptr

    def is_capturing(self):
        return False


class Stream(External):
    """A stream that CuPy owns."""


@pytest.fixture
def streams(recorder, monkeypatch):
    """Makes a stream at an address current, with an id from the driver."""
    numbers = {}

    monkeypatch.setattr(cupy.cuda, "Stream", Stream)
    monkeypatch.setattr(cuda_memory, "stream_id", numbers.__getitem__)
    cleared = []
    memory = lambda: SimpleNamespace(ptr=4096, memset_async=lambda value, size: cleared.append(size))  # noqa: E731
    monkeypatch.setattr(cuda.CudaDevice, "zeros", lambda device, nbytes: memory())

    def enter(ptr, number=None, own=False):
        numbers[ptr] = number
        recorder.stream = Stream(ptr) if own else External(ptr)
        monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: recorder.stream)

    enter.cleared = cleared
    return enter


def test_launches_of_a_stream_share_scratch_and_are_numbered(gpu, streams):
    streams(77, 1)
    first = [gpu.scratch(64) for _ in range(3)]
    assert [number for _, _, number in first] == [1, 2, 3]
    assert len({id(memory) for memory, *_ in first}) == 1
    streams(88, 2)
    memory, _, number = gpu.scratch(64)
    assert number == 1 and memory is not first[0][0]
    streams(77, 1)
    assert gpu.scratch(64) == (first[0][0], 4096, 4)


def test_a_new_stream_at_a_reused_address_gets_new_scratch(gpu, streams):
    streams(77, 1)
    old, *_ = gpu.scratch(64)
    streams(77, 2)
    new, _, number = gpu.scratch(64)
    assert new is not old and number == 1 and gpu.retired == [old]
    assert gpu.scratch(64) == (new, 4096, 2)


def test_cupy_streams_with_scratch_are_kept_alive(gpu, streams):
    streams(77, own=True)
    memory, *_ = gpu.scratch(64)
    stream = weakref.ref(cupy.cuda.get_current_stream())
    streams(88, own=True)
    gc.collect()
    assert stream() is not None  # so its address is not reused
    streams(77, own=True)
    assert gpu.scratch(64) == (memory, 4096, 2)


def test_scratch_of_many_streams_is_bounded(gpu, streams):
    for ptr in range(1000, 1000 + cuda_memory.STREAMS + 5):
        streams(ptr, ptr)
        gpu.scratch(64)
    assert len(gpu._local.scratches) == cuda_memory.STREAMS and len(gpu.retired) == 5


def test_launch_numbers_restart_with_cleared_scratch(gpu, streams, monkeypatch):
    monkeypatch.setattr(cuda_memory, "LAUNCHES", 4)
    streams(0)
    assert [gpu.scratch(64)[2] for _ in range(7)] == [1, 2, 3, 1, 2, 3, 1]
    assert streams.cleared == [PARTIALS] * 2


def test_scratch_of_finished_threads_is_retired(gpu, streams):
    streams(77, 1)
    with ThreadPoolExecutor(1) as pool:
        memory, *_ = pool.submit(gpu.scratch, 64).result()
    gc.collect()
    assert gpu.retired == [memory]


@pytest.fixture
def events(monkeypatch):
    """What events have been recorded after: a stream, or all work of the device; and which of it is done."""
    found = SimpleNamespace(recorded=[], done=[], status=0, waited=0)

    class Event:
        ptr = 7

        def __init__(self, **options):
            self.after = None

        def record(self, stream):
            self.after = stream
            found.recorded.append(stream)

        @property
        def done(self):
            return self.after in found.done

    def record_event(context, event):
        assert (context.value, event.value) == (99, Event.ptr)
        found.recorded.append("all")
        return found.status

    def wait():
        found.waited += 1

    monkeypatch.setattr(cupy.cuda, "Event", Event)
    monkeypatch.setattr(cupy.cuda, "Device", lambda index: contextlib.nullcontext())
    monkeypatch.setattr(cuda_driver, "driver", SimpleNamespace(ctxGetCurrent=lambda: 99, CUDADriverError=RuntimeError))
    monkeypatch.setattr(cuda_driver, "runtime", SimpleNamespace(deviceSynchronize=wait))
    found.driver = SimpleNamespace(cuCtxRecordEvent=record_event)
    monkeypatch.setattr(cuda_driver, "libcuda", lambda: found.driver)
    return found


def retire(retired, count):
    """Retire the scratch of so many streams that are gone."""
    gone = [SimpleNamespace(stream=None) for _ in range(count)]
    for scratch in gone:
        retired.add(scratch)
    return gone


def test_retired_scratch_is_freed_when_its_stream_is_done(events):
    retired = cuda_memory.Retired(0)
    one, two = (SimpleNamespace(stream=Stream(ptr)) for ptr in (1, 2))
    retired.add(one)
    retired.add(two)
    assert [scratch for _, scratch in retired.known] == [[one], [two]]
    events.done.append(one.stream)
    retire(retired, 1)
    assert [scratch for _, scratch in retired.known] == [[two]]
    assert events.recorded == [one.stream, two.stream]


def test_scratch_of_gone_streams_is_freed_after_one_event_and_no_call_waits(events):
    retired = cuda_memory.Retired(0)
    gone = retire(retired, cuda_memory.GONE - 1)
    assert retired.unknown == gone and not events.recorded
    gone += retire(retired, 1)
    assert not retired.unknown and events.recorded == ["all"]
    ((event, kept),) = retired.known
    assert kept == gone
    retire(retired, 1)
    assert retired.known == [(event, gone)]
    event.after = "over"
    events.done.append("over")
    retire(retired, 1)
    assert not retired.known and not events.waited


def test_scratch_of_gone_streams_is_kept_while_a_capture_refuses_the_event(events):
    retired = cuda_memory.Retired(0)
    events.status = cuda_driver.CAPTURE_UNSUPPORTED
    gone = retire(retired, cuda_memory.GONE)
    assert retired.unknown == gone and not retired.known
    events.status = 0
    gone += retire(retired, cuda_memory.GONE)
    assert [scratches for _, scratches in retired.known] == [gone] and events.recorded == ["all"] * 2
    events.status = 700
    with pytest.raises(RuntimeError):
        retire(retired, cuda_memory.GONE)


def test_older_drivers_wait_for_the_device_once_for_many_streams(events):
    events.driver = SimpleNamespace()
    retire(cuda_memory.Retired(0), 3 * cuda_memory.GONE)
    assert events.waited == 3


@pytest.mark.parametrize("status", cuda.REFUSED)
@pytest.mark.parametrize("options", [{"cooperative": True}, {"cluster": 8}])
def test_launches_that_cannot_be_coresident_raise_refused(recorder, gpu, status, options):
    recorder.status = [status]
    launch = Launch(KERNEL, (5, 1, 1), 128, ARGS, **options)
    with pytest.raises(Refused) as refused:
        gpu.launcher(launch, PLACES)(given(X, OUT))
    with refused.value.device.without(refused.value.launch):
        assert gpu.machine == gpu.whole._replace(**({"together": 0} if "cooperative" in options else {"cluster": 1}))
    assert gpu.machine == gpu.whole


def test_refused_calls_are_retried_without_such_launches(monkeypatch):
    tries = []

    @contextlib.contextmanager
    def without(launch):
        tries.append(launch)
        yield
        tries.append("back")

    device = SimpleNamespace(without=without)
    launches = [SimpleNamespace(kernel=KERNEL, grid=(5, 1, 1)) for _ in range(2)]

    def make(made, known):
        if len(tries) < 2:
            raise Refused(device, launches[len(tries)])
        return known

    assert call.attempt(make, None, Missed(Entry(), (), [])) is None  # nothing is cached
    assert tries == [*launches, "back", "back"]


def test_concurrent_threads_get_the_same_device(monkeypatch):
    made, barrier = [], threading.Barrier(8)

    def slow(index):
        made.append(index)
        time.sleep(0.05)
        return SimpleNamespace(index=index)

    monkeypatch.setattr(cuda, "CudaDevice", slow)
    monkeypatch.setattr(cuda, "DEVICES", {})
    with ThreadPoolExecutor(8) as pool:
        devices = [*pool.map(lambda _: barrier.wait(30) is None or cuda.device(5), range(8))]
    assert made == [5] and len({id(device) for device in devices}) == 1


def test_cache_key_holds_layout_dtype_and_alignment(monkeypatch):
    entry = SimpleNamespace(ready=lambda values, addresses: addresses)
    seen = []
    monkeypatch.setattr(launch_cache, "entries", lambda *facts: seen.append(facts) or entry)
    monkeypatch.setattr(launch_cache, "ARRAYS", {cupy.ndarray})
    x, y = array(0x10000, (8, 8)), array(0x20000, (8, 8))
    others = (x.T, x[:4], x[::2], array(0x10004, (8, 8)), array(0x10000, (8, 8), np.int32))
    for each in (x, y, *others):
        assert gpuops.sum(each) == [each.data.ptr]
    first, second, *rest = seen
    assert first == second and hash(first) == hash(second)
    assert all(first != other for other in rest)
