"""The backends on which every test runs, and how many examples Hypothesis draws."""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import hypothesis
import numpy as np
import pytest
from numpy.lib.array_utils import byte_bounds

import gpuops
from gpuops.call import dispatch, launch_cache
from gpuops.device import prebuilt
from tests import budget, emulated, emulator, tiers

# The examples in the emulator's docstrings need g++.
collect_ignore = ["emulator"] if emulator.available() else []
collect_ignore += budget.SLOW if budget.PROFILE == "quick" else ()

_PROFILE = {
    "deadline": None,
    "suppress_health_check": [hypothesis.HealthCheck.function_scoped_fixture, hypothesis.HealthCheck.too_slow],
}
hypothesis.settings.register_profile("ci", max_examples=120, derandomize=True, **_PROFILE)
hypothesis.settings.register_profile("quick", max_examples=budget.FEW, derandomize=True, **_PROFILE)
hypothesis.settings.register_profile("deep", max_examples=3000, **_PROFILE)
hypothesis.settings.load_profile(budget.PROFILE)


class Cpu:
    """NumPy arrays, computed by NumPy."""

    name = "cpu"
    kinds: tuple[type, ...] = (np.ndarray, np.generic)

    def array(self, array: np.ndarray) -> Any:
        """A copy on the backend, with the same strides and alignment."""
        return self.arrays(array)[0]

    def arrays(self, *arrays: np.ndarray) -> list[Any]:
        """Copies on the backend, with the same strides and alignment; arrays that share memory still do."""
        memories: dict[int, tuple[Any, int]] = {}
        copies = []
        for array in arrays:
            owner = root(array)
            if id(owner) not in memories:
                memories[id(owner)] = self.memory(owner)
            memory, start = memories[id(owner)]
            copies.append(self.view(memory, array.ctypes.data - start, array))
        return copies

    def memory(self, owner: np.ndarray) -> tuple[Any, int]:
        """A copy of an array's memory, and the host address that its first byte corresponds to."""
        low, high = byte_bounds(owner)
        margin = low % 16
        memory = self.reserve(margin + high - low)
        self.fill(memory, margin, np.frombuffer(ctypes.string_at(low, high - low), np.uint8))
        return memory, low - margin

    def reserve(self, nbytes: int) -> Any:
        """Bytes of backend memory, aligned to 16."""
        memory = np.full(nbytes + 16, 0xFF, np.uint8)
        start = -memory.ctypes.data % 16
        return memory[start : start + nbytes]

    def fill(self, memory: Any, start: int, data: np.ndarray) -> None:
        """Copy bytes into reserved memory."""
        memory[start : start + data.size] = data

    def view(self, memory: Any, offset: int, like: np.ndarray) -> Any:
        """An array of ``like``'s dtype, shape and strides over reserved memory."""
        return np.ndarray(like.shape, like.dtype, memory, offset, like.strides)

    def numpy(self, result: Any) -> np.ndarray:
        """A result as a NumPy array, after a check that it is of the backend's array type."""
        assert isinstance(result, self.kinds), f"{self.name}: got a {type(result)}"
        return self.fetch(result)

    def fetch(self, result: Any) -> np.ndarray:
        return np.array(result, subok=False)


class Emulated(Cpu):
    """Arrays whose kernels run on the emulator."""

    name = "emulated"
    kinds = (emulated.EmulatedArray,)

    def reserve(self, nbytes: int) -> Any:
        return emulator.empty((nbytes,), np.dtype(np.uint8))

    def view(self, memory: Any, offset: int, like: np.ndarray) -> Any:
        return super().view(memory, offset, like).view(emulated.EmulatedArray)


class Gpu(Cpu):
    """CuPy arrays on the current GPU."""

    name = "gpu"

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.kinds = (cupy.ndarray,)

    def reserve(self, nbytes: int) -> Any:
        return self.cupy.ndarray((nbytes,), np.uint8)

    def fill(self, memory: Any, start: int, data: np.ndarray) -> None:
        memory[start : start + data.size].set(np.ascontiguousarray(data))

    def view(self, memory: Any, offset: int, like: np.ndarray) -> Any:
        return self.cupy.ndarray(like.shape, like.dtype, memory.data + offset, like.strides)

    def fetch(self, result: Any) -> np.ndarray:
        return self.cupy.asnumpy(result)


def root(array: np.ndarray) -> np.ndarray:
    """The array that owns an array's memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


#: With the tuned kernels, or with those that serve all small arrays.
BACKENDS: dict[str, type[Cpu]] = {"cpu": Cpu, "emulated": Emulated, "emulated-small": Emulated}
if gpuops.info()["path"] == "gpu":
    BACKENDS |= {"gpu": Gpu, "gpu-small": Gpu}
#: Why tests that need a GPU are skipped, if they are.
NO_GPU = "" if "gpu" in BACKENDS else f"needs a GPU: {gpuops.info()['reason']}"


def pytest_report_header(config: pytest.Config) -> str:
    """Which parts of the slow tests this run takes, and how to take them again."""
    turn = budget.TURN
    return f"slow tests: profile {budget.PROFILE}, parts of turn {turn} (again with GPUOPS_TEST_TURN={turn})"


@pytest.fixture(autouse=True)
def nothing_cached() -> None:
    """Each test starts with nothing cached or recorded, as tests may change what calls depend on."""
    launch_cache.clear()


def started(request: pytest.FixtureRequest) -> Iterator[Cpu]:
    """A backend, while a test runs on it."""
    if BACKENDS[request.param] is Emulated:
        request.getfixturevalue("emulation")
    with nullcontext() if request.param.endswith("small") else tiers.tuned():
        yield BACKENDS[request.param]()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[Cpu]:
    """The backend of a test's arrays: each test runs on all of them."""
    yield from started(request)


@pytest.fixture(params=[name for name in BACKENDS if name != "cpu"])
def device(request: pytest.FixtureRequest) -> Iterator[Cpu]:
    """A backend that runs kernels."""
    yield from started(request)


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch. Tests that take it have the marker ``torch``, by which CI runs those that were skipped without it."""
    return pytest.importorskip("torch", reason="needs PyTorch, which `make test PEERS=torch` installs")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of tensors. The quick profile runs a test with the tuned kernels or with those for small arrays,
    in turns."""
    for item in items:
        if "torch" in getattr(item, "fixturenames", ()):
            item.add_marker("torch")
    left_out = {*budget.other_turns(items, tier)}
    if budget.PROFILE == "quick":
        left_out |= {item for item in items if is_other_tier(item)}
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]


def tier(item: pytest.Item) -> str:
    """The backend of a test that runs kernels, by its name in ``BACKENDS``; "" for others."""
    call = getattr(item, "callspec", None)
    names = [call.params.get("backend"), call.params.get("device")] if call is not None else []
    return next((name for name in names if isinstance(name, str) and name != "cpu"), "")


def is_other_tier(item: pytest.Item) -> bool:
    """Whether a test has the kernels that are not its turn's."""
    turn = (zlib.crc32(item.location[2].partition("[")[0].encode()) + budget.TURN) % 2
    return tier(item) != "" and tier(item).endswith("small") != turn


@pytest.fixture
def own_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls wait for their own kernels, so that the first of a call is cached on a GPU, too."""
    monkeypatch.setattr(dispatch, "sooner", lambda call, specs, work, device, known: work)


@pytest.fixture(autouse=True, scope="session")
def nothing_prebuilt(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No kernels come with the package, whatever this checkout has built."""
    prebuilt.FOLDER = str(tmp_path_factory.mktemp("prebuilt"))


@pytest.fixture(scope="session")
def emulation() -> None:
    """The emulator; skips the test if there is no compiler for it."""
    if reason := emulator.available():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def nvrtc() -> None:
    """NVRTC, which compiles without a GPU. A broken installation is an error."""
    pytest.importorskip(
        "cupy_backends.cuda.libs.nvrtc", reason="compiling needs CuPy's NVRTC", exc_type=ModuleNotFoundError
    )
