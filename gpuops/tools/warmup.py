"""``python -m gpuops warmup``: compile the kernels of some ops before their first calls.

Descriptions of representative calls tell which kernels these are.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any

import numpy as np

from ..call.dispatch import describe
from ..definition.records import LOGSUMEXP, MEASURES, REDUCTIONS, ROWS, SEARCHES, WITH_INDEX
from ..definition.scans import SCANS
from ..device import jit, record
from ..ops import norms, reduce, scans, softmax
from ..ops.arguments import as_dtype, check_dtype
from ..ops.average import average
from ..ops.broadcast import expand, where
from ..ops.compare import allclose, array_equal
from ..ops.matmul import dot, matmul
from ..ops.selection import compress, nonzero
from ..plan.geometry import Shape
from ..plan.work import ArraySpec, Kernel, Machine, Work, largest_cluster, new_array
from .info import info
from .progress import progress

# Lengths of two dims, from a long list and a short one: kernels depend on divisors and on thresholds.
MANY = sorted(
    {m for n in range(21) for m in (2**n - 1, 2**n, 2**n + 1, 2**n + 2, 2**n + 4, 3 * 2**n, 5 * 2**n, 7 * 2**n) if m}
)
FEW = sorted({m for n in range(21) for m in (2**n, 3 * 2**n)} | {63, 68, 1023, 1028, 16383, 16388, 262143})
SOME = (1, 2, 3, 4, 7, 8, 16, 31, 32, 100, 128, 1000, 1024, 4095, 4096, 2**16)
SIDES = (1, 3, 16, 100, 128, 1000, 1024, 4095, 4096, 2**20)  # of matrices to multiply
MOST = 2**28  # most elements of an array


Maker = Callable[[Shape], ArraySpec]  # makes specs of arrays of one dtype


def over_axes(op: Callable[..., Any], array: Maker) -> Iterator[Work]:
    """Calls of an op over each axis of a matrix and over all of a vector."""
    for shape in itertools.chain(itertools.product(MANY, FEW), itertools.product(FEW, MANY)):
        if math.prod(shape) <= MOST:
            yield describe(op, array(shape), axis=0)
            yield describe(op, array(shape), axis=1)
    for n in MANY:
        yield describe(op, array((n,)))


def pairs(op: Callable[..., Any], array: Maker) -> Iterator[Work]:
    """Calls of an op with two arrays: matrices, and vectors."""
    for shape in [*itertools.product(SOME, SOME), *((n,) for n in MANY)]:
        yield describe(op, array(shape), array(shape))


def averages(array: Maker) -> Iterator[Work]:
    """Calls of ``average`` with weights, over each axis of a matrix and over all of a vector."""
    for shape in [*itertools.product(SOME, SOME), *((n,) for n in MANY)]:
        for axis in range(len(shape)):
            yield describe(average, array(shape), axis, array(shape))


def expands(array: Maker) -> Iterator[Work]:
    """Calls of ``expand`` with rows, columns and scalars."""
    for m, n in itertools.product(SOME, SOME):
        for shape in ((1, n), (m, 1), (1, 1), (n,)):
            yield describe(expand, array(shape), (m, n))


def wheres(array: Maker) -> Iterator[Work]:
    """Calls of ``where`` with matrices, rows, columns and scalars."""
    for m, n in itertools.product(SOME, SOME):
        shapes = ((m, n), (1, n), (m, 1))
        values = [*map(array, shapes)]
        number = np.zeros((), values[0].dtype)
        scalar = values[0]._replace(shape=(), strides=(), value=number.tobytes())
        for shape, x, y in itertools.product(shapes, [scalar, *values], [scalar, *values]):
            condition = new_array("condition", shape, np.dtype(bool), machine=scalar.machine)
            yield describe(where, condition, x, y)


def products(array: Maker) -> Iterator[Work]:
    """Calls of ``matmul`` with matrices and their transposes."""
    for m, n, k in itertools.product(SIDES, repeat=3):
        for a in (array((m, k)), array((k, m)).transpose((1, 0))):
            for b in (array((k, n)), array((n, k)).transpose((1, 0))):
                yield describe(matmul, a, b)


def dots(array: Maker) -> Iterator[Work]:
    """Calls of ``dot`` with vectors."""
    for n in MANY:
        yield describe(dot, array((n,)), array((n,)))


def conditions(array: Maker) -> Iterator[Work]:
    """Calls of ``nonzero`` with vectors and matrices."""
    for shape in [*itertools.product(SOME, SOME), *((n,) for n in MANY)]:
        yield from both(describe(nonzero, array(shape)))


def choices(array: Maker) -> Iterator[Work]:
    """Calls of ``compress`` with masks along each axis of a matrix, and of a vector."""
    for shape in [*itertools.product(SOME, SOME), *((n,) for n in MANY)]:
        a = array(shape)
        for axis, n in enumerate(shape):
            mask = new_array("condition", (n,), np.dtype(bool), machine=a.machine)
            yield from both(describe(compress, mask, a, axis))


def both(work: Work) -> Iterator[Work]:
    """A work that counts first, and the rest of the call if there is anything to do."""
    assert work.then is not None
    yield work
    yield work.then((1,))


#: An op is a row: its representative calls.
OPS: dict[str, Callable[[Maker], Iterator[Work]]] = {
    **{
        name: partial(over_axes, getattr(reduce, name))
        for name in (*REDUCTIONS, *SEARCHES, *MEASURES, *WITH_INDEX, "vector_norm")
    },
    **{name: partial(over_axes, (vars(softmax) | vars(norms))[name]) for name in (*ROWS, LOGSUMEXP.name)},
    **{name: partial(over_axes, getattr(scans, name)) for name in SCANS},
    "average": averages,
    **{op.__name__: partial(pairs, op) for op in (array_equal, allclose)},
    "expand": expands,
    "where": wheres,
    "nonzero": conditions,
    "compress": choices,
    "matmul": products,
    "dot": dots,
}


def needed(ops: Iterable[str], dtypes: Iterable[str], machine: Machine) -> list[Kernel]:
    """The kernels that calls of some ops on arrays of some dtypes need on a machine, in order of their first use."""
    own = machine._replace(blas=False)  # as under capture, so that cuBLAS replaces no kernel
    found: dict[Kernel, None] = {}
    asked = [*itertools.product(ops, dtypes)]
    with progress(len(asked)) as shown:
        for op, name in asked:
            shown.at(f"looking for the kernels of {op} {name}")
            for work in OPS[op](partial(new_array, "x", dtype=as_dtype(op, name), machine=own)):
                assert work.plan is not None
                found |= dict.fromkeys(work.plan.kernels)
            shown.done()
    return [*found]


#: Common GPUs by compute capability, to compile for without one: multiprocessors, and KiB of shared memory of a block.
GPUS = {
    75: (40, 64), 80: (108, 163), 86: (84, 99), 87: (16, 163), 89: (142, 99), 90: (132, 227), 100: (148, 227),
    103: (148, 227), 110: (20, 227), 120: (188, 99), 121: (48, 99),
}  # fmt: skip


def machine_of(arch: int) -> Machine:
    """The `Machine` of a common GPU of a compute capability."""
    count, shared = GPUS[max((known for known in GPUS if known <= arch), default=min(GPUS))]
    return Machine(count, largest_cluster(arch, shared * 1024), shared * 1024, count)


def compile_all(kernels: list[Kernel], arch: int, folder: str | None = None) -> Iterator[Kernel]:
    """Compile kernels into the disk cache or a folder, on all cores; yields each when it is done."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {pool.submit(jit.compiled, kernel, arch, folder=folder): kernel for kernel in kernels}
        for future in as_completed(started):
            future.result()
            yield started[future]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("op", nargs="*", metavar="OP", help=", ".join(OPS))
    parser.add_argument("--dtype", nargs="+", default=["float32"], metavar="DTYPE", help="dtypes of arrays (float32)")
    parser.add_argument("--from", dest="record", metavar="FILE", help="what programs recorded with GPUOPS_RECORD=FILE")
    parser.add_argument("--arch", type=int, metavar="N", help="for a GPU elsewhere: 90 is compute capability 9.0")
    parser.add_argument("--output", metavar="FOLDER", help="instead of the cache; set GPUOPS_CACHE_DIR to use it")


class Unusable(Exception):
    """The command cannot run; the message says why."""


def main(options: argparse.Namespace) -> int:
    """Compile for the current GPU or another one, and show the progress."""
    try:
        check(options)
        arch, machine = target(options.arch)
        kernels, what = wanted(options, machine)
        folder = output_folder(options.output)
    except OSError as failure:
        print(f"warmup: {failure.filename}: {failure.strerror}", file=sys.stderr)
        return 2
    except (Unusable, record.Unusable, TypeError) as failure:  # an op does not support a dtype
        print(f"warmup: {str(failure).removeprefix('warmup: ')}", file=sys.stderr)
        return 2
    with progress(len(kernels)) as shown:
        for kernel in compile_all(kernels, arch, folder):
            shown.at(f"compiled {kernel.name}")
            shown.done()
    print(f"{len(kernels)} kernels for {what} are in {folder}")
    return 0


def check(options: argparse.Namespace) -> None:
    """Raise if arguments conflict or name something unknown."""
    if bool(options.op) == bool(options.record):
        raise Unusable("pass either ops or, with --from FILE, a record")
    for op in options.op:
        if op not in OPS:
            raise Unusable(f"op must be one of {', '.join(OPS)}, got {op!r}")
    for name in options.dtype:
        check_dtype("warmup", "--dtype", as_dtype("warmup", name))


def target(arch: int | None) -> tuple[int, Machine]:
    """The compute capability to compile for, and its `Machine`: the current GPU's unless ``arch`` is given."""
    if arch is None:
        facts = info()
        if facts["path"] == "cpu":
            raise Unusable(f"{facts['reason']}; --arch 90 compiles for a GPU of compute capability 9.0 elsewhere")
        import cupy

        from ..device import cuda

        gpu = cuda.device(cupy.cuda.Device().id)
        return gpu.arch, gpu.machine
    try:
        known = jit.architectures()
    except ImportError:
        raise Unusable("compiling needs NVRTC: pip install 'gpuops-cupy[cuda13]' or [cuda12]") from None
    if arch not in known:
        raise Unusable(f"--arch must be one of {', '.join(map(str, known))}, which NVRTC compiles for; got {arch}")
    return arch, machine_of(arch)


def wanted(options: argparse.Namespace, machine: Machine) -> tuple[list[Kernel], str]:
    """The kernels to compile, and what they are for."""
    if options.record:
        kernels = record.read(options.record)
        for kernel in kernels:
            if f"{kernel.name}.cu" not in jit.files():
                raise Unusable(f"{options.record} has a kernel {kernel.name}, which gpuops does not have")
        return kernels, options.record
    return needed(options.op, options.dtype, machine), f"{', '.join(options.op)} of {', '.join(options.dtype)}"


def output_folder(given: str | None) -> str:
    """The folder to compile into; it exists and is writable."""
    folder = os.path.abspath(os.path.expanduser(given)) if given else jit.cache_folder()
    if not folder:
        raise Unusable("there is no folder for compiled kernels: pass --output, or set GPUOPS_CACHE_DIR")
    os.makedirs(folder, 0o777 if given else 0o700, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Unusable(f"{folder} cannot be written")
    return folder
