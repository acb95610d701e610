"""NVRTC compiles the kernels of expressions, for the oldest and for a new architecture."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gpuops
from gpuops.adapters.lazies import CONSTANTS, taking
from gpuops.call.dispatch import describe
from gpuops.device import jit
from gpuops.plan.work import Machine, new_array
from tests.test_kernels import assembled

GPU = Machine(132, 16, 232448, 132)
#: A function and its axis, the operand's name, and the shapes of two arrays: one for each kernel.
CALLS = {
    "rows": (gpuops.sum, 1, "a", (8192, 8192), (8192,)), "columns": (gpuops.sum, 0, "a", (8192, 8192), (8192, 1)),
    "vector": (gpuops.max, 0, "a", (2**24,), (2**24,)), "small": (gpuops.sum, 1, "a", (30, 40), (40,)),
    "tiny": (gpuops.sum, 1, "a", (2**22, 3), (3,)), "staged": (gpuops.sum, 1, "a", (300000, 37), (300000, 37)),
    "search": (gpuops.argmax, 1, "a", (8191, 8193), (8193,)), "moments": (gpuops.var, 1, "a", (65536, 1024), (1024,)),
    "exponentials": (gpuops.logsumexp, 0, "a", (8192, 8192), (8192,)),
    "softmax rows": (gpuops.softmax, 1, "x", (4096, 4096), (4096,)),
    "softmax columns": (gpuops.softmax, 0, "x", (4096, 4096), (4096,)),
    "softmax grid": (gpuops.softmax, 1, "x", (8, 2**22), (2**22,)),
    "softmax small": (gpuops.softmax, 1, "x", (30, 40), (30, 1)), "flat scan": (gpuops.cummax, 0, "a", (2**24,), (1,)),
    "scan of columns": (gpuops.cummax, 0, "a", (8192, 8192), (8192,)),
    "scan in parts": (gpuops.cummax, 0, "a", (2**22, 16), (16,)),
}  # fmt: skip


def kernels(function, place, make, *specs, **options):
    """The kernels of a call with an expression of arrays of these specs."""
    leaves = [gpuops.lazy(np.zeros([min(n, 2) for n in spec.shape], spec.dtype)) for spec in specs]
    program, arrays, numbers = make(*leaves).program()
    bits = tuple([int.from_bytes(each.tobytes(), "little") for each in numbers])
    places = [next(i for i, leaf in enumerate(leaves) if leaf.arrays[0] is array) for array in arrays]
    operands = {f"x{k}": specs[i]._replace(name=f"x{k}") for k, i in enumerate(places)}
    return describe(taking(function, place, program), **operands, **{CONSTANTS: bits}, **options).plan.kernels


@pytest.mark.parametrize("arch", [75, 100])
@pytest.mark.parametrize("name", CALLS)
def test_kernels_with_expressions_compile(nvrtc, name, arch):
    function, axis, place, *shapes = CALLS[name]
    specs = [new_array("x", shape, np.dtype(np.float32), machine=GPU) for shape in shapes]
    made = kernels(function, place, lambda x, y: abs(x - y) * 0.5, *specs, axis=axis)
    assert any(kernel.expression for kernel in made)
    for kernel in made:
        assert jit.compile(jit.source(kernel), f"{kernel.name}.cu", arch)


@pytest.mark.parametrize("shapes", [((4096, 4096), (4096,), (4096, 1)), ((100, 33), (33,), (100, 1))], ids=str)
def test_the_kernel_that_evaluates_compiles(nvrtc, shapes):
    for dtype in (np.dtype(np.float16), np.dtype(np.complex64), np.dtype(np.int8)):
        specs = [new_array("x", shape, dtype, machine=GPU) for shape in shapes]
        for kernel in kernels(gpuops.evaluate, "x", lambda x, y, z: gpuops.where(x == y, x * z, y), *specs):
            assert jit.compile(jit.source(kernel), f"{kernel.name}.cu", 90)


def test_operands_that_lie_alike_share_an_offset():
    specs = [
        new_array("x", shape, np.dtype(np.float32), machine=GPU) for shape in ((64, 4096), (4096,), (4096,), (64, 1))
    ]
    (kernel,) = [
        each
        for each in kernels(gpuops.logsumexp, "a", lambda x, s, b, c: (x * s + b) * c, *specs, axis=1)
        if each.expression
    ]
    assert kernel.expression.ways == ("PASSING", "PACKED", "PACKED", "REPEATED")
    assert (kernel.expression.places, kernel.expression.offsets) == ((0, 0, 1), 2)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_few_elements_that_are_all_there_spill_hardly_any_registers(nvrtc, dtype, count):
    specs = [new_array("x", (11, 7000003), np.dtype(dtype), machine=GPU) for _ in range(2)]

    def stacked(x, y):
        terms = [x * y, x * x, y * y, x + y][:count]
        return np.stack(terms) if count > 1 and dtype != "complex128" else terms[-1]

    axis = 1 if count > 1 and dtype != "complex128" else 0
    (kernel,) = kernels(gpuops.sum, "a", stacked, *specs, axis=axis)
    assert kernel.name == "reduce_columns"
    assert max(map(int, re.findall(r"(\d+) bytes spill stores", assembled(kernel, 90)))) <= 32
