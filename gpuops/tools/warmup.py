"""``python -m gpuops warmup``: compile what calls of some ops will need, before they are made.

Which kernels these are is read from descriptions of such calls.
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

from ..ops import reduce, softmax
from ..ops.arguments import as_dtype, check_dtype
from ..ops.broadcast import expand, where
from ..ops.matmul import dot, matmul
from ..ops.table import REDUCTIONS, SEARCHES
from ..plan import rows
from ..plan.geometry import Shape
from ..plan.work import ArraySpec, Kernel, Machine, Work, new_array
from ..run import jit
from ..run.call import describe
from .info import info

# Lengths of two dims, one of many, one of few: kernels depend on what divides them and between which bounds they lie.
MANY = sorted({m for n in range(21) for m in (2**n - 1, 2**n, 2**n + 1, 2**n + 2, 2**n + 4, 3 * 2**n) if m})
FEW = sorted({m for n in range(21) for m in (2**n, 3 * 2**n)} | {63, 68, 1023, 1028, 16383, 16388, 262143})
SOME = (1, 2, 3, 4, 7, 8, 16, 31, 32, 100, 128, 1000, 1024, 4095, 4096, 2**16)
SIDES = (1, 3, 16, 100, 128, 1000, 1024, 4095, 4096, 2**20)  # of matrices to be multiplied
MOST = 2**28  # elements of an array


Maker = Callable[[Shape], ArraySpec]  # of arrays of the dtype for which kernels are looked for


def over_axes(op: Callable[..., Any], array: Maker) -> Iterator[Work]:
    """Calls of an op over each axis of a matrix and over all of a vector."""
    for shape in itertools.chain(itertools.product(MANY, FEW), itertools.product(FEW, MANY)):
        if math.prod(shape) <= MOST:
            yield describe(op, array(shape), axis=0)
            yield describe(op, array(shape), axis=1)
    for n in MANY:
        yield describe(op, array((n,)))


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


#: An op is a row: the calls that stand for all.
OPS: dict[str, Callable[[Maker], Iterator[Work]]] = {
    **{name: partial(over_axes, getattr(reduce, name)) for name in (*REDUCTIONS, *SEARCHES)},
    **{name: partial(over_axes, getattr(softmax, name)) for name in (*rows.OPS, "logsumexp")},
    "expand": expands,
    "where": wheres,
    "matmul": products,
    "dot": dots,
}


def needed(ops: Iterable[str], dtypes: Iterable[str], machine: Machine) -> list[Kernel]:
    """The kernels that calls of some ops on arrays of some dtypes need on a machine, in order of their first use."""
    own = machine._replace(blas=False)  # as in the capture of a graph, so that no kernel is left out for cuBLAS
    found: dict[Kernel, None] = {}
    for op, name in itertools.product(ops, dtypes):
        for work in OPS[op](partial(new_array, "x", dtype=as_dtype(op, name), machine=own)):
            assert work.plan is not None
            found |= dict.fromkeys(work.plan.kernels)
    return [*found]


def compile_all(kernels: list[Kernel], arch: int) -> Iterator[Kernel]:
    """Compile kernels into the disk cache, on all cores; each is yielded when it is there."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {pool.submit(jit.compiled, kernel, arch): kernel for kernel in kernels}
        for future in as_completed(started):
            future.result()
            yield started[future]


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("op", nargs="+", choices=OPS, metavar="OP", help=", ".join(OPS))
    parser.add_argument("--dtype", nargs="+", default=["float32"], metavar="DTYPE", help="dtypes of arrays (float32)")


def main(options: argparse.Namespace) -> int:
    """Compile for the current GPU, with a progress bar."""
    try:
        for name in options.dtype:
            check_dtype("warmup", "--dtype", as_dtype("warmup", name))
    except TypeError as failure:
        print(failure, file=sys.stderr)
        return 2
    facts = info()
    if facts["path"] == "cpu":
        print(f"warmup: {facts['reason']}", file=sys.stderr)
        return 2
    import cupy

    from ..run import cuda

    gpu = cuda.device(cupy.cuda.Device().id)
    try:
        kernels = needed(options.op, options.dtype, gpu.machine)
    except TypeError as failure:  # an op that does not take the dtype
        print(f"warmup: {failure}", file=sys.stderr)
        return 2
    for done, kernel in enumerate(compile_all(kernels, gpu.arch), 1):
        if sys.stderr.isatty():
            print(f"\r{bar(done, len(kernels))} {kernel.name:<24}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(f"{len(kernels)} kernels for {', '.join(options.op)} of {', '.join(options.dtype)} are in {facts['cache']}")
    return 0


def bar(done: int, total: int, width: int = 40) -> str:
    """How far it is: ``[####....] 1/2``.

    >>> bar(1, 4, width=8)
    '[##......] 1/4'
    """
    full = done * width // total
    return f"[{'#' * full}{'.' * (width - full)}] {done}/{total}"
