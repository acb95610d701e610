"""``python -m gpuops kernels``: compile the kernels that calls need most often, into the package.

Descriptions of random calls tell which these are: calls of all ops, dtypes and sizes, the common ones more often.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from typing import Any

import numpy as np

from ..call.dispatch import describe
from ..device import jit, prebuilt
from ..ops import norms, reduce, scans, softmax
from ..ops.arguments import as_dtype
from ..ops.broadcast import expand, where
from ..ops.compare import allclose, array_equal
from ..ops.matmul import dot, matmul
from ..plan.geometry import Shape
from ..plan.work import ArraySpec, Kernel, Machine, Work, new_array
from .cache import megabytes
from .progress import progress
from .warmup import GPUS, machine_of

ARCHITECTURES = (80, 90, 100, 120)  # one of a generation, whose machine code later ones run too
CALLS = 60_000  # that are described
COUNT = 550  # kernels for an architecture, so that a wheel stays below 15 MB
#: What a kernel counts that kernels of small arrays stand in for while it compiles.
REPLACED = 0.3
SEED = 1
#: How often calls are of a dtype.
DTYPES = {"float32": 8, "float16": 3, "bfloat16": 3, "float64": 8, "int32": 3, "int64": 2, "bool": 1}
LENGTHS = (2**9, 2**12, 2**16, 2**24)  # the most that a dim may have, one of these
RANKS = (1, 2, 2, 2, 3, 4)
MOST = 2**26  # elements of an array

Maker = Callable[[Shape], ArraySpec]  # makes specs of arrays of one dtype


def along_an_axis(op: Callable[..., Any], draw: Random, make: Maker) -> Work:
    """A call along the last axis, most often, along another one or along all."""
    shape = drawn(draw)
    last = len(shape) - 1
    return describe(op, make(shape), axis=draw.choice((last, last, 0, draw.randrange(len(shape)), None)))


def along_one(op: Callable[..., Any], draw: Random, make: Maker) -> Work:
    """A call along the last axis or the first."""
    return describe(op, make(drawn(draw)), axis=draw.choice((-1, -1, 0)))


def of_two(op: Callable[..., Any], draw: Random, make: Maker) -> Work:
    """A call with two arrays of one shape."""
    shape = drawn(draw)
    return describe(op, make(shape), make(shape))


def expanded(draw: Random, make: Maker) -> Work:
    """A call of ``expand``."""
    shape = drawn(draw)
    return describe(expand, make(stretched(draw, shape)), shape)


def chosen(draw: Random, make: Maker) -> Work:
    """A call of ``where`` with three arrays."""
    shape = drawn(draw)
    x, y = (make(stretched(draw, shape)) for _ in range(2))
    return describe(where, new_array("condition", stretched(draw, shape), np.dtype(bool), machine=x.machine), x, y)


def product(draw: Random, make: Maker) -> Work:
    """A call of ``matmul``."""
    m, n, k = (length(draw, 4096) for _ in range(3))
    return describe(matmul, make((m, k)), make((k, n)))


def of_vectors(draw: Random, make: Maker) -> Work:
    """A call of ``dot``."""
    n = length(draw, LENGTHS[-1])
    return describe(dot, make((n,)), make((n,)))


def reductions(names: str) -> dict[str, Callable[[Random, Maker], Work]]:
    """The calls of reductions, by name."""
    return {name: partial(along_an_axis, getattr(reduce, name)) for name in names.split()}


#: What is called, and how often.
OPS: tuple[tuple[int, dict[str, Callable[[Random, Maker], Work]]], ...] = (
    (8, reductions("sum mean max")),
    (8, {"softmax": partial(along_an_axis, softmax.softmax), "where": chosen, "expand": expanded}),
    (2, reductions("min argmax any all var std")),
    (2, {name: partial(along_an_axis, getattr(softmax, name)) for name in ("log_softmax", "logsumexp")}),
    (2, {"cumsum": partial(along_one, scans.cumsum)}),
    (1, reductions("prod argmin count_nonzero ptp vector_norm mean_var max_with_index nansum nanmean nanmax nanmin")),
    (1, {"rms_norm": partial(along_one, norms.rms_norm), "cumprod": partial(along_one, scans.cumprod)}),
    (1, {op.__name__: partial(of_two, op) for op in (allclose, array_equal)}),
    (1, {"matmul": product, "dot": of_vectors}),
)


def drawn(draw: Random) -> Shape:
    """A random shape."""
    while True:
        most = draw.choice(LENGTHS)
        shape = tuple(length(draw, most) for _ in range(draw.choice(RANKS)))
        if math.prod(shape) <= MOST:
            return shape


def length(draw: Random, most: int) -> int:
    """A random length, evenly on a logarithmic scale; every other one is a power of two."""
    n = int(2 ** draw.uniform(0, math.log2(most)))
    return 2 ** (n.bit_length() - 1) if draw.random() < 0.5 else n


def stretched(draw: Random, shape: Shape) -> Shape:
    """A shape that broadcasts to another: a third of its dims has length 1."""
    return tuple(1 if draw.random() < 1 / 3 else n for n in shape)


def works(machine: Machine) -> Iterator[Work]:
    """What random calls do on a machine. Ops do not take all dtypes."""
    draw = Random(SEED)
    calls = [(call, often) for often, calls in OPS for call in calls.values()]
    for _ in range(CALLS):
        ((call, _often),) = draw.choices(calls, [often for _call, often in calls])
        (name,) = draw.choices([*DTYPES], [*DTYPES.values()])
        try:
            yield call(draw, partial(new_array, "x", dtype=as_dtype("kernels", name), machine=machine))
        except TypeError:
            continue


def commonest(machines: Sequence[Machine], count: int) -> list[Kernel]:
    """The kernels that most calls wait for on machines, similar ones next to each other."""
    found: dict[Kernel, float] = defaultdict(float)
    for machine in machines:
        own = machine._replace(blas=False)  # as under capture, so that cuBLAS replaces no kernel
        for work, general in zip(works(own), works(own._replace(general=True)), strict=True):
            kernels, others = ({*each.plan.kernels} if each.plan else set() for each in (work, general))
            for kernel in kernels | others:
                found[kernel] += 1 if kernel in others else REPLACED
    return sorted(sorted(found, key=found.__getitem__, reverse=True)[:count], key=repr)


def machines_of(arch: int) -> list[Machine]:
    """The common GPUs that run machine code of an architecture."""
    return [machine_of(each) for each in GPUS if each // 10 == arch // 10 and each >= arch] or [machine_of(arch)]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    every = " ".join(map(str, ARCHITECTURES))
    parser.add_argument("--arch", nargs="+", type=int, default=ARCHITECTURES, metavar="N", help=f"90 is 9.0 ({every})")
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help="kernels for each (%(default)s)")


def main(options: argparse.Namespace) -> int:
    """Compile, and show the progress."""
    try:
        known = jit.architectures()
    except ImportError:
        print("kernels: compiling needs NVRTC: pip install 'gpuops-cupy[cuda13]' or [cuda12]", file=sys.stderr)
        return 2
    if unknown := [arch for arch in options.arch if arch not in known]:
        print(f"kernels: --arch must be of {', '.join(map(str, known))}, got {unknown[0]}", file=sys.stderr)
        return 2
    for arch in options.arch:
        path = prebuilt.path_of(arch)
        prebuilt.write(path, codes(commonest(machines_of(arch), options.count), arch))
        size = megabytes(os.path.getsize(path))
        print(f"{options.count} kernels for compute capability {arch / 10} are in {path}: {size}")
    return 0


def codes(kernels: list[Kernel], arch: int) -> list[tuple[str, bytes]]:
    """The sources and the machine code of kernels, compiled on all cores."""

    def code(kernel: Kernel) -> tuple[str, bytes]:
        text = jit.source(kernel)
        made = text, jit.compile(text, f"{kernel.name}.cu", arch)
        shown.done()
        return made

    with progress(len(kernels)) as shown, ThreadPoolExecutor(os.cpu_count()) as pool:
        shown.at(f"compiling for sm_{arch}")
        return [*pool.map(code, kernels)]
