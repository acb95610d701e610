"""Mixes of calls whose shapes do not repeat, as programs, notebooks and tests make them; and the kernels they need."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import numpy as np

import gpuops
from gpuops.call.dispatch import describe
from gpuops.plan.work import Kernel, Machine, Work, new_array

from .cases import Axis, Case, Group, Shape, along, together

SIZES = (1, 2, 3, 5, 8, 16, 17, 32, 64, 100, 128, 333, 512)
OPS = ("sum", "max", "mean", "softmax", "where", "expand")
DTYPES = ("float32", "float16", "float64", "int32")
MOST = 2**24  # elements of an array
GROUP = Group("first calls", "", (), "", ())


def mixed() -> Iterator[Case]:
    """600 calls of six ops over random shapes of 1 to 4 dims, in four dtypes, along any axis."""
    draw = random.Random(0)
    for _ in range(600):
        op, dtype, shape = draw.choice(OPS), draw.choice(DTYPES), drawn(draw)
        axis: Axis = draw.randrange(len(shape))
        if op in ("sum", "max", "mean") and draw.random() < 1 / (len(shape) + 1):
            axis = None
        problem = along(shape, axis)
        if op == "where":
            problem = together(*(stretched(draw, shape, 0.7) for _ in range(3)), shape=shape)
        elif op == "expand":
            problem = together(stretched(draw, shape, 0.6), shape=shape)
        yield Case(op, GROUP, problem, dtype, pick=False)


def drawn(draw: random.Random) -> Shape:
    """A random shape."""
    while True:
        shape = tuple(draw.choice(SIZES) for _ in range(draw.randint(1, 4)))
        if math.prod(shape) <= MOST:
            return shape


def stretched(draw: random.Random, shape: Shape, kept: float) -> Shape:
    """A shape that broadcasts to the given one: that share of its dims is kept, the others have length 1."""
    return tuple(n if draw.random() < kept else 1 for n in shape)


def sums() -> Iterator[Case]:
    """1000 sums of float32 matrices of 1 to 4096 rows and columns, evenly in logarithms, along one axis or both."""
    draw = random.Random(0)
    for _ in range(1000):
        shape = tuple(int(2 ** draw.uniform(0, 12)) for _ in range(2))
        yield Case("sum", GROUP, along(shape, draw.choice((0, 1, None))), "float32", pick=False)


def softmaxes() -> Iterator[Case]:
    """softmax of 256 float32 rows of every length from 1 to 4096."""
    for n in range(1, 4097):
        yield Case("softmax", GROUP, along((256, n), 1), "float32", pick=False)


#: The mixes.
MIXES: dict[str, Callable[[], Iterator[Case]]] = {"six ops": mixed, "sums": sums, "softmax rows": softmaxes}


#: An H200, for which kernels are counted without a GPU.
H200 = Machine(132, cluster=16, shared=227 * 1024, together=132)


def kernels(cases: Iterator[Case], machine: Machine = H200) -> dict[Kernel, int]:
    """The kernels that calls need on a machine, and how many calls do, read from descriptions."""
    found: dict[Kernel, int] = {}
    for case in cases:
        work = described(case, machine)
        for kernel in work.plan.kernels if work.plan else ():
            found[kernel] = found.get(kernel, 0) + 1
    return found


def described(case: Case, machine: Machine) -> Work:
    """What the call of a case is to do."""
    names = ("condition", "x", "y") if case.op == "where" else ("x",)
    arrays = [
        new_array(name, operand.shape, np.dtype("bool" if name == "condition" else case.dtype), machine=machine)
        for name, operand in zip(names, case.problem.operands, strict=True)
    ]
    if case.op == "where":
        return describe(gpuops.where, *arrays)
    if case.op == "expand":
        return describe(gpuops.expand, *arrays, case.problem.shape)
    return describe(getattr(gpuops, case.op), *arrays, axis=case.axis)
