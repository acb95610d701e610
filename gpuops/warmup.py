"""``python -m gpuops warmup``: compile what calls of some ops will need, before they are made.

Which kernels these are is found by making such calls, with arrays that have a shape, a dtype and no memory.
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

from . import jit
from .broadcast import expand, where
from .ghosts import Ghost, Survey
from .info import info
from .matmul import dot, matmul
from .plan import Kernel, Machine, Shape, as_dtype, check_dtype
from .reduce import all, any, max, mean, min, prod, sum
from .softmax import log_softmax, logsumexp, softmax

# Lengths of two dims, one of many, one of few: kernels depend on what divides them and between which bounds they lie.
MANY = sorted({m for n in range(21) for m in (2**n - 1, 2**n, 2**n + 1, 2**n + 2, 2**n + 4, 3 * 2**n) if m})
FEW = sorted({m for n in range(21) for m in (2**n, 3 * 2**n)} | {63, 68, 1023, 1028, 16383, 16388, 262143})
SOME = (1, 2, 3, 4, 7, 8, 16, 31, 32, 100, 128, 1000, 1024, 4095, 4096, 2**16)
SIDES = (1, 3, 16, 100, 128, 1000, 1024, 4095, 4096, 2**20)  # of matrices to be multiplied
MOST = 2**28  # elements of an array


Maker = Callable[[Shape], Ghost]  # of arrays of the dtype for which kernels are looked for


def over_axes(op: Callable[..., Any], array: Maker) -> None:
    """Calls of an op over each axis of a matrix and over all of a vector."""
    for shape in itertools.chain(itertools.product(MANY, FEW), itertools.product(FEW, MANY)):
        if math.prod(shape) <= MOST:
            op(array(shape), axis=0)
            op(array(shape), axis=1)
    for n in MANY:
        op(array((n,)))


def expands(array: Maker) -> None:
    """Calls of ``expand`` with rows, columns and scalars."""
    for m, n in itertools.product(SOME, SOME):
        for shape in ((1, n), (m, 1), (1, 1), (n,)):
            expand(array(shape), (m, n))


def wheres(array: Maker) -> None:
    """Calls of ``where`` with matrices, rows, columns and scalars."""
    scalar = array(()).dtype.type(0)
    for m, n in itertools.product(SOME, SOME):
        shapes = ((m, n), (1, n), (m, 1))
        values = (scalar, *map(array, shapes))
        for shape, x, y in itertools.product(shapes, values, values):
            where(Ghost(values[1].device, shape, np.dtype(bool)), x, y)


def products(array: Maker) -> None:
    """Calls of ``matmul`` with matrices and their transposes."""
    for m, n, k in itertools.product(SIDES, repeat=3):
        for a in (array((m, k)), transposed(array((k, m)))):
            for b in (array((k, n)), transposed(array((n, k)))):
                matmul(a, b)


def transposed(array: Ghost) -> Ghost:
    """The transpose of a matrix."""
    return Ghost(array.device, array.shape[::-1], array.dtype, (1, array.shape[1]))


def dots(array: Maker) -> None:
    """Calls of ``dot`` with vectors."""
    for n in MANY:
        dot(array((n,)), array((n,)))


#: An op is a row: the calls that stand for all.
OPS: dict[str, Callable[[Maker], None]] = {
    **{
        op.__name__: partial(over_axes, op)
        for op in (sum, prod, max, min, mean, any, all, softmax, log_softmax, logsumexp)
    },
    "expand": expands,
    "where": wheres,
    "matmul": products,
    "dot": dots,
}


def needed(ops: Iterable[str], dtypes: Iterable[str], machine: Machine) -> list[Kernel]:
    """The kernels that calls of some ops on arrays of some dtypes need on a machine."""
    survey = Survey(machine)
    for op, name in itertools.product(ops, dtypes):
        OPS[op](partial(Ghost, survey, dtype=as_dtype(op, name)))
    return [*survey.kernels]


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

    from . import cuda

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
