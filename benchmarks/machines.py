"""The CPU and the GPU: memory, timing, and the machine's limits."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gpuops
from gpuops.host import threads

from .timing import COLD, Subject

#: FP32 multiply-adds per clock and multiprocessor, by compute capability (CUDA C++ programming guide, throughput of
#: native arithmetic instructions).
FP32_LANES = {70: 64, 72: 64, 75: 64, 80: 64}
FP32_LANES_SINCE_86 = 128
SPIN = r"""
extern "C" __global__ void spin(unsigned long long nanoseconds) {
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - start < nanoseconds);
}
"""


class Cpu:
    """NumPy arrays, timed by the clock."""

    xp = np
    folder = "cpu"
    ladders = False  # gpuops' strategies are kernels
    failures: tuple[type[Exception], ...] = ()  # fatal: nothing works after them
    elements = 2**20  # of a case's largest array, unless the user says otherwise

    def __init__(self, hot: bool = False) -> None:
        self.hot = hot
        self.cache = cpu_cache()
        self.scratch = np.zeros(COLD * self.cache, np.uint8)
        self.name = cpu_name()

    def environment(self) -> dict[str, Any]:
        return {"cpu": self.name, "cores": os.cpu_count(), "cache": self.cache}

    def workers(self, count: int) -> list[dict[str, str]]:
        """The environment of each of several processes."""
        return [{}] * count

    def upload(self, x: np.ndarray) -> np.ndarray:
        return x

    def synchronize(self) -> None:
        pass

    def free(self) -> None:
        pass

    tidy = free

    def sample(self, subject: Subject, results: list[Any]) -> tuple[float, bool]:
        """Seconds per call on the host."""
        if not self.hot:
            self.scratch.max()
        start = time.perf_counter()
        subject.call(results)
        return (time.perf_counter() - start) / subject.count, True

    def copy(self, nbytes: int) -> Callable[[], Any]:
        source, target = np.zeros(nbytes // 2 + 1, np.uint8), np.zeros(nbytes // 2 + 1, np.uint8)
        return shared(lambda part: np.copyto(target[part], source[part]), source.size, nbytes)

    def read(self, nbytes: int) -> Callable[[], Any]:
        source = np.zeros(nbytes // 8 + 1, np.int64)
        return shared(lambda part: source[part].max(), source.size, nbytes)

    def write(self, nbytes: int) -> Callable[[], Any]:
        target = np.zeros(nbytes, np.uint8)
        return shared(lambda part: target[part].fill(1), target.size, nbytes)

    def launch(self) -> None:
        """The lower bound of a call's cost: an empty function."""


def shared(function: Callable[[slice], Any], size: int, nbytes: int) -> Callable[[], None]:
    """A function of parts of an array, called for all of them, on as many threads as gpuops would use."""
    count = max(1, min(threads.limit(), size))
    parts = [slice(size * i // count, size * (i + 1) // count) for i in range(count)]
    return lambda: threads.shared(nbytes)(function, parts)


class Gpu:
    """CuPy arrays on the current device, timed by events on the GPU itself."""

    ladders = True
    elements = 2**62

    def __init__(self, hot: bool = False) -> None:
        import cupy

        self.xp = self.cupy = cupy
        self.hot = hot
        self.index = cupy.cuda.Device().id
        self.properties = cupy.cuda.runtime.getDeviceProperties(self.index)
        self.name = self.properties["name"].decode()
        self.folder = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")
        self.cache = self.properties["l2CacheSize"]
        self.scratch = cupy.zeros(COLD * self.cache // 4, np.float32)
        self.spin = cupy.RawKernel(SPIN, "spin")
        self.failures = (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)

    def environment(self) -> dict[str, Any]:
        """The GPU's properties and current clocks: call this right after the measurements."""
        properties = self.properties
        capability = 10 * properties["major"] + properties["minor"]
        lanes = FP32_LANES.get(capability, FP32_LANES_SINCE_86)
        peak = 2 * lanes * properties["multiProcessorCount"] * properties["clockRate"] * 1e-9
        return {
            "gpu": self.name,
            "compute_capability": f"{properties['major']}.{properties['minor']}",
            "multiprocessors": properties["multiProcessorCount"],
            "memory": properties["totalGlobalMem"],
            "cache": self.cache,
            "fp32_tflops": round(peak, 1),
            "cpu": cpu_name(),
            **smi(self.cupy.cuda.runtime.deviceGetPCIBusId(self.index)),
        }

    def workers(self, count: int) -> list[dict[str, str]]:
        """The environments of processes with one GPU each, at most as many as there are GPUs."""
        there = range(self.cupy.cuda.runtime.getDeviceCount())
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = visible.split(",") if visible else map(str, there)
        return [{"CUDA_VISIBLE_DEVICES": name} for _, name in zip(there[:count], names, strict=False)]

    def upload(self, x: np.ndarray) -> Any:
        if x.dtype.kind == "V":  # bfloat16
            return self.cupy.asarray(x.view(np.uint16)).view(x.dtype)
        return self.cupy.asarray(x)

    def synchronize(self) -> None:
        """Wait for the GPU, and for kernels that compile in the background."""
        from gpuops.device import cuda  # which needs CuPy

        self.cupy.cuda.Device().synchronize()
        cuda.device(self.index).wait_for_kernels()

    def free(self) -> None:
        """Free the libraries' memory pools."""
        self.cupy.get_default_memory_pool().free_all_blocks()
        if torch := sys.modules.get("torch"):
            torch.cuda.empty_cache()

    def tidy(self) -> None:
        """Free memory pools if memory is scarce."""
        free, total = self.cupy.cuda.runtime.memGetInfo()
        if free < total / 2:
            self.free()

    def keep_busy(self, seconds: float) -> None:
        """Occupy the GPU while Python queues the timed calls, then flush its cache."""
        self.spin((1,), (1,), (np.uint64(seconds * 1e9),))
        if not self.hot:
            self.scratch.max()

    def sample(self, subject: Subject, results: list[Any]) -> tuple[float, bool]:
        """Seconds per call on the GPU, and whether all calls were queued before the first began."""
        start, stop = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        for patience in (1.5, 4) if subject.hidden else (0,):
            subject.runner.keep_busy(self, patience * subject.host * subject.count + 1e-4)
            start.record()
            last = subject.call(results)
            hidden = not start.done
            subject.runner.fence(last)
            stop.record()
            stop.synchronize()
            if hidden:
                break
        return self.cupy.cuda.get_elapsed_time(start, stop) * 1e-3 / subject.count, hidden

    def copy(self, nbytes: int) -> Callable[[], Any]:
        half = nbytes // 2
        source, target = self.cupy.empty(half, np.uint8), self.cupy.empty(half, np.uint8)
        runtime = self.cupy.cuda.runtime
        kind = runtime.memcpyDeviceToDevice
        return lambda: runtime.memcpyAsync(target.data.ptr, source.data.ptr, half, kind, 0)

    def read(self, nbytes: int) -> Callable[[], Any]:
        # By CUB, which CuPy calls for whole arrays of fewer than 2**31 elements.
        dtype = np.dtype(np.float32 if nbytes < 2**33 else np.float64)
        return self.cupy.empty(nbytes // dtype.itemsize + 1, dtype).sum

    def write(self, nbytes: int) -> Callable[[], Any]:
        target = self.cupy.empty(nbytes, np.uint8)
        return lambda: self.cupy.cuda.runtime.memsetAsync(target.data.ptr, 1, nbytes, 0)

    def launch(self) -> None:
        """The lower bound of a call's cost: an empty kernel."""
        self.spin((1,), (1,), (np.uint64(0),))


def machine_here(hot: bool = False) -> Any:
    """The GPU that CuPy finds, or the CPU."""
    return Gpu(hot) if gpuops.info()["path"] == "gpu" else Cpu(hot)


def smi(bus: str) -> dict[str, Any]:
    """Driver, clocks in MHz and power limit in W from nvidia-smi; empty without it."""
    fields = ("driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "power.limit")
    command = ["nvidia-smi", f"--id={bus}", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    driver, *numbers = map(str.strip, done.stdout.split(","))
    names = ("clock_sm_mhz", "clock_memory_mhz", "clock_sm_max_mhz", "power_limit_w")
    known = {name: text for name, text in zip(names, numbers, strict=True) if re.fullmatch(r"[\d.]+", text)}
    return {"driver": driver, **{name: round(float(text)) for name, text in known.items()}}


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def cpu_cache() -> int:
    """The bytes of the last-level cache, 32 MiB where the system does not say."""
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size", encoding="utf-8") as file:
            kilobytes = int(file.read().strip().removesuffix("K"))
    except (OSError, ValueError):
        return 2**25
    return kilobytes * 1024
