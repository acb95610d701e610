"""``python -m gpuops demo``: five ops on one array, on the best device present, checked against NumPy and timed."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..ops.broadcast import expand, where
from ..ops.reduce import max as max_
from ..ops.reduce import sum as sum_
from ..ops.softmax import softmax
from ..plan.dtypes import CTYPES
from ..plan.geometry import MAX_RANK
from ..version import __version__
from .info import info

REPEATS = 20  # timed calls of an op on a GPU; the median counts
REPEATS_CPU = 5
SCRATCH = 2**27  # bytes: more than the L2 cache of any GPU


@dataclass(frozen=True)
class Op:
    """One line of the table. Functions take x (of any shape but 0-d), mask and row, which broadcast against x."""

    text: str
    operands: str  # the arrays that it reads
    run: Callable[[Any, Any, Any], Any]
    reference: Callable[[Any, Any, Any], Any]  # with NumPy; x and row are wide: float64, complex128 or integers
    tolerance: int = 0  # the largest error allowed, in units in the last place of the largest result
    scale: Callable[[Any], Any] | None = None  # a function of wide x, whose values replace the results in that
    kinds: str = "biufc"  # of dtypes


def reference_softmax(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    powers = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return powers / np.sum(powers, axis=-1, keepdims=True)


#: An op is a row.
OPS = (
    Op(
        "where(mask, x, 0)", "mask x",
        lambda x, mask, row: where(mask, x, 0),
        lambda x, mask, row: np.where(mask, x, 0),
    ),
    Op(
        "expand(row, x.shape)", "row",
        lambda x, mask, row: expand(row, x.shape),
        lambda x, mask, row: np.broadcast_to(row, x.shape),
    ),
    Op(
        "sum(x, axis=-1)", "x",
        lambda x, mask, row: sum_(x, axis=-1),
        lambda x, mask, row: np.sum(x, axis=-1),
        tolerance=16, scale=lambda x: np.sum(np.abs(x), axis=-1),  # large terms may cancel
    ),
    Op(
        "max(x, axis=0)", "x",
        lambda x, mask, row: max_(x, axis=0),
        lambda x, mask, row: np.max(x, axis=0),
    ),
    Op(
        "softmax(x, axis=-1)", "x",
        lambda x, mask, row: softmax(x, axis=-1),
        lambda x, mask, row: reference_softmax(x),
        tolerance=16, kinds="biuf",
    ),
)  # fmt: skip


class Cpu:
    """NumPy arrays, timed by the clock."""

    label = "cpu"

    def load(self, array: np.ndarray) -> Any:
        return array

    def fetch(self, array: Any) -> np.ndarray:
        return np.asarray(array)

    def copy(self, x: Any, target: Any) -> None:
        np.copyto(target, x)

    def seconds(self, call: Callable[[], Any]) -> float:
        """The median time of a call that has been made before."""
        times = []
        for _ in range(REPEATS_CPU):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return statistics.median(times)


class Gpu:
    """CuPy arrays on the current device, timed by events on the GPU itself."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.label = f"cuda:{cupy.cuda.Device().id}"
        self.scratch = cupy.zeros(SCRATCH, cupy.uint8), cupy.zeros(SCRATCH, cupy.uint8)

    def load(self, array: np.ndarray) -> Any:
        return self.cupy.asarray(array)

    def fetch(self, array: Any) -> np.ndarray:
        return self.cupy.asnumpy(array)

    def copy(self, x: Any, target: Any) -> None:
        self.cupy.copyto(target, x)

    def seconds(self, call: Callable[[], Any]) -> float:
        """The median time of a call that has been made before.

        Copies of scratch memory precede each call: they evict the cache, and keep the GPU busy until Python has
        launched the call, so that only the GPU's time counts.
        """
        events = [(self.cupy.cuda.Event(), self.cupy.cuda.Event()) for _ in range(REPEATS)]
        for start, stop in events:
            for _ in range(4):
                self.copy(*self.scratch)
            start.record()
            call()
            stop.record()
        events[-1][1].synchronize()
        return statistics.median(self.cupy.cuda.get_elapsed_time(start, stop) for start, stop in events) / 1e3


def arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``python -m gpuops demo``."""
    data = parser.add_mutually_exclusive_group()
    data.add_argument("file", metavar="FILE.npy", nargs="?", help="an array of your own, of any numeric dtype")
    data.add_argument("--size", metavar="N", type=positive, default=4096, help="else N x N random logits (%(default)s)")


def positive(text: str) -> int:
    """An argument that must be a positive integer."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def main(options: argparse.Namespace) -> int:
    """Run the demo; 1 if a result is wrong, 2 if the file or the size is unusable."""
    what = f"size {options.size}" if options.file is None else options.file
    try:
        return run(options)
    except Useless as failure:
        rule = str(failure)
    except MemoryError as failure:
        rule = f"there is not enough memory: {first_line(failure)}"
    print(f"demo: cannot use {what}: {rule}", file=sys.stderr)
    return 2


class Useless(Exception):
    """The demo cannot use an array; the message says why."""


def first_line(failure: Exception) -> str:
    """The first line of an exception's message."""
    return (str(failure).splitlines() or [type(failure).__name__])[0]


def run(options: argparse.Namespace) -> int:
    """Make or read the array, and run the ops on it; 1 if a result is wrong."""
    random = np.random.default_rng(0)
    try:
        x = random.standard_normal((options.size,) * 2, np.float32) if options.file is None else read(options.file)
    except OSError as failure:
        raise Useless(failure.strerror or first_line(failure)) from None
    except (OverflowError, ValueError) as failure:
        raise Useless(first_line(failure)) from None
    mask = random.random((x.shape[0],) + (1,) * (x.ndim - 1)) < 0.5
    facts = info()
    device = Gpu() if facts["path"] == "gpu" else Cpu()
    if facts["path"] == "cpu":
        print(f"No GPU: {facts['reason']}. NumPy arrays are computed on the CPU.")
        print(f"Numba: {facts['versions']['numba']}")
    print(f"gpuops {__version__} on {device.label}: {facts['devices'][device.label]}")
    print(f"x: {x.shape} {x.dtype}, mask: {mask.shape} bool, row: {x[:1].shape} {x.dtype}\n")
    with np.errstate(all="ignore"):
        return table(device, x, mask)


def read(path: str) -> np.ndarray:
    """The array in a ``.npy`` file: C-contiguous, in the machine's byte order, with one dim or more."""
    with open(path, "rb") as file:
        if file.read(6) != b"\x93NUMPY":
            raise ValueError("not a .npy file")
        file.seek(0)
        x = np.lib.format.read_array(file, allow_pickle=False)
    if x.dtype.name not in CTYPES:
        raise ValueError(f"dtype {x.dtype} is not supported")
    if x.size == 0:
        raise ValueError(f"an array of shape {x.shape} has no elements")
    if x.ndim > MAX_RANK:
        raise ValueError(f"an array of {x.ndim} dims; GPUs take at most {MAX_RANK}")
    return np.ascontiguousarray(np.atleast_1d(x), x.dtype.newbyteorder("="))


def table(device: Cpu | Gpu, x: np.ndarray, mask: np.ndarray) -> int:
    """Run the ops and print a line for each; 1 if a result is wrong."""
    layout = "{:<21} {:<22} {:<7} {:>9} {:>10} {:>9} {:>8}"
    print(layout.format("op", "shape of the result", "ran on", "max error", "time", "GB/s", "of copy"))
    host = {"x": x, "mask": mask, "row": x[:1]}
    wide = widened(x)
    arrays = [device.load(array) for array in host.values()]
    copy = partial(device.copy, arrays[0], device.load(np.empty_like(x)))
    copy()
    seconds = device.seconds(copy)
    peak = 2 * x.nbytes / seconds
    print(layout.format("plain copy of x", str(x.shape), device.label, "", duration(seconds), rate(peak), "100 %"))
    wrong = []
    for op in OPS:
        if x.dtype.kind not in op.kinds:
            print(f"{op.text:<21} not for {x.dtype}")
            continue
        call = partial(op.run, *arrays)
        result = device.fetch(call())
        reference = op.reference(wide, mask, wide[:1])
        error = deviation(result, reference, reference if op.scale is None else op.scale(wide))
        seconds = device.seconds(call)
        speed = (sum(host[name].nbytes for name in op.operands.split()) + result.nbytes) / seconds
        shown = f"{error:.1e}" if error else "0"
        cells = (shown, duration(seconds), rate(speed), f"{100 * speed / peak:.0f} %")
        print(layout.format(op.text, str(result.shape), device.label, *cells))
        allowed = op.tolerance * ulp(result.dtype)
        if not error <= allowed:  # a NaN is wrong too
            wrong.append(f"{op.text}: the error of {error:.1e} exceeds {allowed:.1e}")
    print("\nmax error: against NumPy in float64, relative to the largest result (sum: the largest sum of abs(x))")
    print("GB/s: each operand read once and the result written once; time: the median of several calls")
    for line in wrong:
        print(f"demo: {line}", file=sys.stderr)
    return 1 if wrong else 0


def widened(x: np.ndarray) -> np.ndarray:
    """Floating and complex numbers in double precision, others as they are."""
    return x.astype(np.result_type(x, np.float64)) if x.dtype.kind in "fc" else x


def ulp(dtype: np.dtype) -> float:
    """The unit in the last place of 1; 0 for exact numbers."""
    return float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0


def deviation(result: np.ndarray, reference: np.ndarray, scale: np.ndarray) -> float:
    """The largest error, relative to the largest finite scale; NaN is right where the reference is NaN."""
    if result.shape != reference.shape:
        return float("inf")
    reference = reference.astype(result.dtype)  # overflows as the result does
    differs = (result != reference) & ~((result != result) & (reference != reference))
    if not np.any(differs):
        return 0.0
    gap = np.max(np.abs(widened(result[differs]) - widened(reference[differs])))
    sizes = np.abs(scale)
    return float(gap / np.max(sizes, where=np.isfinite(sizes), initial=np.finfo(np.float64).tiny))


def duration(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def rate(bytes_per_second: float) -> str:
    return f"{bytes_per_second / 1e9:.1f}"
