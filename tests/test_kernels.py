"""The kernel sources: every planned variant compiles without a GPU, names match, each barrier is needed."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from math import fsum
from typing import Any

import numpy as np
import pytest

import gpuops
from gpuops.call.dispatch import describe
from gpuops.definition import in_cuda, records
from gpuops.definition.records import AVERAGE, MEASURES, NORMS, REDUCTIONS, SEARCHES, WITH_INDEX
from gpuops.definition.reduction import Reduction
from gpuops.definition.structs import kinds_of
from gpuops.definition.totals import nearest
from gpuops.device import jit
from gpuops.ops.reduction import dtypes
from gpuops.ops.table import COMPARISONS
from gpuops.plan import maps, products, reductions, scans
from gpuops.plan import rows as softmax
from gpuops.plan.dtypes import BITS, CTYPES, INTEGERS, ITEMSIZE, accumulator
from gpuops.plan.geometry import Shape, contiguous_strides
from gpuops.plan.reductions import OpStruct
from gpuops.plan.reductions.problems import POSITION
from gpuops.plan.work import Kernel, Machine, Plan, new_array
from tests import emulated, emulator, layouts
from tests.budget import DEEP, TURN, round_robin
from tests.layouts import BFLOAT16
from tests.works import STRUCTS, reduction_problem, softmax_problem, spec

FILES = sorted(jit.files())
SOURCES = [name for name in FILES if name.endswith(".cu")]
TEXTS = [name for name in FILES if name.endswith((".cu", ".cuh"))]
#: Strategies that do not take rows of any length.
LIMITED = ("naive", *softmax.WARPS, "block_shared", *softmax.ON_CHIP)
CHUNKS = 8  # of what is compiled: test workers share it
PARTS = 1 if DEEP else 8  # of what is compiled: one with each commit
ARCH = 90
OTHER_ARCHS = (75, 80, 86, 89, 100, 120)
MACHINE = Machine(132, cluster=16, shared=227 * 1024, together=132)


def repeatable_id(item: int) -> str:
    """A test id that says how to reproduce the run."""
    return f"{item}-GPUOPS_TEST_TURN={TURN}"


# ------------------------------------------------------------------------------------------------------- variants

#: One dtype of each family.
FAMILIES = ("bool", "int8", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
#: (shape, axis) for each branch of the planners: short, medium and split rows and columns, the whole array.
REGIMES: tuple[tuple[Shape, Shape], ...] = (
    ((64, 3), (1,)), ((3, 64), (0,)), ((5000, 40), (1,)), ((5000, 300), (1,)), ((300, 5000), (0,)), ((64, 12800), (1,)),
    ((2, 999999), (1,)), ((999999, 2), (0,)), ((2**20,), (0,)), ((1, 2**33), (1,)), ((2**33, 1), (1,)),
    ((2**22, 16), (1,)), ((2**22, 16), (0,)), ((2**22, 3), (1,)), ((2**20, 11), (1,)), ((16, 2**22), (0,)),
    ((1000, 1000, 100), (1,)), ((999, 10007), (0,)), ((65536, 64), (1,)), ((8192, 8192), (0,)), ((8192, 8192), (1,)),
)  # fmt: skip


def padded(shape: Shape) -> Shape:
    """Strides of an array whose dims cannot be merged."""
    return tuple(2 * s for s in contiguous_strides(tuple(n + 1 for n in shape)))


def reduction(
    struct: str, names: tuple[str, str, str | None], shape: Shape, axis: Shape, strategy: str | None = None,
    x: Shape | None = None, pointer: int = 0, other: str | None = None, **more: Any,
) -> Plan:  # fmt: skip
    """The plan of a reduction of an array in C order, or with strides ``x``."""
    dense = contiguous_strides(shape)
    places = reductions.positions(spec("x", names[0], shape, dense), axis).steps
    strides = (
        dense if x is None else x,
        places if STRUCTS[struct].second == POSITION else dense if other else (0,) * len(shape),
        contiguous_strides(tuple(n for d, n in enumerate(shape) if d not in axis)),
    )
    second = more.pop("second", None)
    problem = reduction_problem(struct, *names, shape, axis, strides, (pointer, 0, 0), other, **more)
    problem = problem._replace(second=second and new_array("second", (), as_dtype(second)))
    return reductions.plan(problem, strategy, MACHINE.multiprocessors)


def normalisation(
    names: tuple[str, str, str], shape: Shape, axis: Shape, strategy: str | None, op: str = "softmax",
    masked: bool = False, x: Shape | None = None, scale: float = 1.0,
) -> Plan:  # fmt: skip
    """The plan of a softmax of an array in C order, or with strides ``x``."""
    dense = contiguous_strides(shape)
    strides = (dense if x is None else x, dense if masked else (0,) * len(shape), dense)
    problem = softmax_problem(op, *names, shape, axis, strides, (0, 0, 0), masked, scale)
    return softmax.plan(problem, strategy, MACHINE)


def mapping(
    map_: str, out: str, operands: tuple[str, ...], shape: Shape, *strides: Shape, pointer: int = 0,
    strategy: str | None = None,
) -> Plan:  # fmt: skip
    """The plan of expand or where; strides of out, then of the operands, C order where there are none."""
    dense = contiguous_strides(shape)
    types = maps.element_types(out, operands[-2:] if map_ == "Where" else operands)
    if map_ == "Where":
        types = (types[0], maps.condition_type(operands[0]), *types[1:])
    args = [
        maps.Arg(name, type_, ITEMSIZE[dtype], steps, pointer)
        for name, type_, dtype, steps in zip(
            ("out", "a", "b", "c"), types, (out, *operands), (*strides, *(dense,) * 4), strict=False
        )
    ]  # fmt: skip
    return maps.plan(map_, shape, args[0], tuple(args[1:]), strategy)


def masked(record: Reduction) -> OpStruct:
    """The struct of a reduction beside a mask."""
    return record.masked.struct if record.masked else record.counted or record.struct


def reduction_plans() -> Iterator[Plan]:
    for op, record in REDUCTIONS.items():
        struct = record.struct.name
        for x in CTYPES:
            if record.plain and x in INTEGERS:  # which have no NaN
                continue
            val, out = (d.name for d in dtypes(op, record, np.dtype(BFLOAT16 if x == "bfloat16" else x), None, None))
            names = (x, val, out)
            for strategy in ("rows", "columns", "shuffle"):
                if strategy in gpuops.strategies(op):
                    yield reduction(struct, names, (64, 700), (1,), strategy)
            yield reduction(struct, names, (2, 999999), (1,))
            for axis in ((0,), (1,)):
                yield reduction(masked(record).name, names, (64, 700), axis, other="bool")
    yield from measures()
    for x in FAMILIES:
        names = (x, x, x)
        for step, end in itertools.product(reductions.STEPS, ("", reductions.ON_HOST)):
            yield reduction("Sum", names, (2, 999999), (1,), step + end)
        for (shape, axis), pointer in itertools.product(REGIMES, (0, ITEMSIZE[x])):
            for op in ("Sum", "Max"):
                yield reduction(op, names, shape, axis, pointer=pointer)
        for other in (x, "bool"):
            for shape, axis in (((999999,), (0,)), ((64, 704), (1,)), ((704, 64), (0,)), ((64, 701), (1,))):
                yield reduction("Sum" if other == "bool" else "Dot", names, shape, axis, other=other)
        for axis in ((0,), (1,), (0, 1)):  # padded rows
            yield reduction("Sum", names, (8192, 2043), axis, x=(2048, 1))
    strategies = (None, *reductions.STRATEGIES)
    ranks = (("Sum", 2), ("Max", 3), ("Min", 4), ("Max", 6), ("Sum", 9))
    for (op, rank), strategy, other, x in itertools.product(ranks, strategies, (None, "bool"), CTYPES):
        shape, axes, names = (2,) * rank, tuple(range(0, rank, 2)), (x,) * 3
        yield reduction(op, names, shape, axes, strategy, padded(shape), other=other)
    for val in ("float32", "float64"):
        for strategy in reductions.STRATEGIES:
            for x in ("float16", "bfloat16", "float32", "float64", "int64", "bool"):
                for other in (None, "bool"):
                    yield reduction("LogSumExp", (x, val, "float64"), (64, 700), (1,), strategy, other=other)


def measures() -> Iterator[Plan]:
    """Counts, norms, searches and the like, and reductions of two arrays: of float32, and of another dtype each."""
    rows = [*MEASURES.values(), *NORMS.values()]
    for row, x in itertools.product(rows, FAMILIES):
        try:
            val, out = (d.name for d in dtypes(row.name, row, as_dtype(x), None, None))
        except TypeError:  # which the op refuses
            continue
        _, *more = [kinds_of(as_dtype(x), as_dtype(val))[kind].name for kind in row.results]
        second = more[0] if more else None
        if second and ITEMSIZE[x] == 2:
            continue
        yield from every_way(row.struct, (x, val, out), second=second)
        if row.counted and x == "float32":
            yield from every_way(row.counted, (x, val, out), second=second, other="bool")
    for x in FAMILIES:
        for row in SEARCHES.values():
            yield from every_way(row.struct, (x, x, "int64"), other="uint8")
            for n in (4096, 4095):  # transposed
                yield reduction(row.struct.name, (x, x, "int64"), (n, n), (0, 1), x=(1, n), other="uint8")
        for row in WITH_INDEX.values():
            yield from every_way(row.struct, (x, x, x), other="uint8", second="int64")
    for x, (shape, axis) in itertools.product(sorted({*CTYPES} - {*FAMILIES}), (REGIMES[0], *REGIMES[12:14])):
        yield reduction("Range", (x, x, x), shape, axis)
        for row in WITH_INDEX.values():
            yield reduction(row.struct.name, (x, x, x), shape, axis, other="uint8", second="int64")
    for x in FAMILIES[::2]:
        val = "float64" if x in INTEGERS else x
        yield from every_way(AVERAGE.struct, (x, val, val), other=x)
        for (op, _), made in COMPARISONS.items():
            yield from every_way(made, (x, val if op == "allclose" else x, "bool"), other=x)
    yield from every_way(AVERAGE.struct, ("float32",) * 3, other="float32", second="float32")


def every_way(made: OpStruct, names: tuple[str, str, str], **more: Any) -> Iterator[Plan]:
    """Plans for each branch of the planners."""
    for shape, axis in REGIMES:
        yield reduction(made.name, names, shape, axis, **more)


#: Softmaxes of each regime: rows of some lanes, of a block, staged, of a cluster, of the grid; columns likewise.
ON_CHIP = (
    ((64, 60), (1,)), ((64, 1200), (1,)), ((4096, 5001), (1,)), ((4096, 50257), (1,)), ((4096, 131072), (1,)),
    ((64, 2**20), (1,)), ((2**22,), (0,)), ((5, 640), (0,)), ((300, 72), (0,)), ((4096, 4096), (0,)),
    ((128, 8192, 256), (1,)), ((4096, 4095), (0,)),
)  # fmt: skip


def softmaxes() -> Iterator[Plan]:
    for x in (name for name in CTYPES if not name.startswith("complex")):
        result = x if x.startswith(("float", "bfloat")) else "float64"
        names = (x, accumulator(result), result)
        for strategy in softmax.STRATEGIES:
            yield normalisation(names, (64, 700), (1,), strategy)
            for rank in (2, 3, 4, 6, 9):
                shape = (2,) * rank
                yield normalisation(names, shape, tuple(range(0, rank, 2)), strategy, x=padded(shape), scale=0.5)
        if x not in FAMILIES:
            continue
        for op, strategy in itertools.product(("softmax", "log_softmax"), softmax.STRATEGIES):
            yield normalisation(names, (64, 700), (1,), strategy, op, masked=True)
        for shape, axis in ON_CHIP:
            yield normalisation(names, shape, axis, None)
            yield normalisation(names, shape, axis, None, "rms_norm")
            yield normalisation(names, shape, axis, None, "rms_norm", masked=True)
            yield normalisation(names, shape, axis, None, "log_softmax", masked=True)
    names = ("float32", "float32", "float32")
    for cols, strategy in itertools.product((1, 40, 100, 200, 300, 600, 1024), softmax.WARPS):
        yield normalisation(names, (64, cols), (1,), strategy)
    for strategy in softmax.STRATEGIES:
        for out in ("float16", "bfloat16", "float64"):
            yield normalisation(("float32", accumulator(out), out), (64, 700), (1,), strategy)
        if strategy not in LIMITED:
            yield normalisation(names, (1, 2**32), (1,), strategy)


#: Layouts of an operand, by the way in which ``pipelined`` moves its panels, for a of (m, k): (row, column, address).
LAYOUTS = {"packed": (1, 704, 0), "turned": (704, 1, 0), "across": (1, 704, 4), "deep": (704, 1, 4)}


def product(
    dtypes: tuple[str, ...], strategy: str | None, sizes: Shape = (700, 700, 700), batch: Shape = (),
    a: str = "turned", b: str = "packed", tile: products.Tile | None = None, splits: int = 1,
) -> Plan:  # fmt: skip
    """The plan of a product of operands of two dtypes, and perhaps an addend's, in named layouts."""
    val = dtypes[0] if len(dtypes) < 2 else np.result_type(*map(as_dtype, dtypes)).name
    one, apart = np.ones(1, accumulator(val)).tobytes(), tuple(10**6 * (i + 1) for i in range(len(batch)))
    (a_row, a_col, a_at), (b_col, b_row, b_at) = LAYOUTS[a], LAYOUTS[b]
    layouts = [
        products.Layout(name, dtype, (*apart, row, col), at)
        for name, dtype, row, col, at in (
            ("out", val, 704, 1, 0), ("a", dtypes[0], a_row, a_col, a_at), ("b", dtypes[-1], b_row, b_col, b_at),
        )
    ]  # fmt: skip
    p = products.problem(val, sizes, batch, dict(zip(("out", "a", "b"), layouts)), one, one, False)
    return products.tiled(p, "pipelined", tile, splits) if tile else products.plan(p, strategy, MACHINE)


def as_dtype(name: str) -> np.dtype:
    return np.dtype(BFLOAT16 if name == "bfloat16" else name)


def product_plans() -> Iterator[Plan]:
    rungs = [name for name in products.STRATEGIES if name not in ("cublas", "pipelined")]
    for x in CTYPES:
        for strategy in rungs if x in FAMILIES else ("warptile",):
            yield product((x,), strategy)
            yield product((x,), strategy, a="deep", b="deep")
            for rank in (2, 3, 4, 6):
                yield product((x,), strategy, batch=(2,) * rank)
    for strategy in rungs:
        yield product(("int8", "float32"), strategy)
    for tile in products.TILES:  # (more of them in test_pipelined_matmul_does_not_spill_registers)
        yield product(("float32",), None, tile=tile, splits=2 if tile.resident == 1 else 1, batch=(2, 2))
    yield product(("float32", "float64"), "cublas", batch=(2, 2, 2, 2, 2))


def map_plans() -> Iterator[Plan]:
    for out, x in itertools.product(FAMILIES, FAMILIES):
        yield mapping("Expand", out, (x,), (64, 700))
    for x in CTYPES:
        yield mapping("Where", "float32", (x, "float32", "float32"), (64, 700))
        yield mapping("Where", x, (x, "float32", x), (64, 700))
        yield mapping("Where", x, ("bool", x, x), (64, 700))
        yield mapping("Where", x, ("bool", "float32", x), (64, 700))
    for x in ("int8", "int16", "int32", "int64", "complex128"):
        yield from walks(x)
    yield mapping("Expand", "int32", ("int32",), (2**32 + 1,), (1,), (2,))


#: (shape, axis) of scans: in part of a chunk, whole lines in a tile, alone, beside others, and in columns; parts of
#: lines likewise.
LINES = (
    ((5000, 5), 1), ((5, 5000), 0), ((5000, 100), 1), ((100, 5000), 0), ((500, 100, 3), 1), ((500, 1600), 1),
    ((30, 50000), 1), ((2**22,), 0), ((50000, 12), 0), ((5000, 3000), 0), ((2**33,), 0),
)  # fmt: skip


def scan_plans() -> Iterator[Plan]:
    for op, x in itertools.product(("cumsum", "cumprod", "cummax", "logcumsumexp"), (*FAMILIES, "int32", "int64")):
        if op == "logcumsumexp" and x.startswith("complex"):
            continue
        for shape, axis in LINES:
            yield scan(op, x, shape, axis)
            yield scan(op, x, shape, axis, exclusive=True)
        yield scan(op, x, (300, 5000), 1, padded((300, 5000)))
        yield scan(op, x, (300, 5000), 0, (1, 300), reverse=True)
        for rank in (3, 4, 6):
            yield scan(op, x, (2,) * rank, None, padded((2,) * rank))
            yield scan(op, x, (2,) * rank, 1, padded((2,) * rank))


#: A scan and dtypes for each rung of the ladder: they share all that depends on these.
RUNGS = {
    "hillis_steele": ("cumsum", FAMILIES), "blelloch": ("cumprod", FAMILIES), "warp": ("cummax", FAMILIES),
    "three_pass": ("logcumsumexp", ("float16", "bfloat16", "float32", "float64")),
}  # fmt: skip


def ladder_plans() -> Iterator[Plan]:
    for strategy, (op, elements) in RUNGS.items():
        for x in elements:
            yield scan(op, x, (5000, 100), 1, strategy=strategy)
        yield scan(op, "float32", (2,) * 6, 1, padded((2,) * 6), strategy=strategy)
    yield scan("cumsum", "int8", (2**33,), 0, strategy="three_pass")


def scan(op: str, x: str, shape: Shape, axis: int | None, steps: Shape | None = None, **options: Any) -> Plan:
    """The plan of a scan of an array in C order, or with other strides."""
    array = new_array("a", shape, as_dtype(x), steps, MACHINE)
    plan = describe(getattr(gpuops, op), array, axis, **options).plan
    assert plan is not None
    return plan


def selection_plans() -> Iterator[Plan]:
    for x in CTYPES:
        array = partial(new_array, "a", dtype=as_dtype(x), machine=MACHINE)
        for shape in ((2**20,), (2**32,)):
            yield from selected(gpuops.nonzero, array(shape))
            yield from selected(gpuops.compress, new_array("c", shape, np.dtype("?"), machine=MACHINE), array(shape))
        for rank in (2, 3, 4, 5, 7, 13):
            apart = array((2,) * rank, steps=padded((2,) * rank))
            yield from selected(gpuops.nonzero, apart)
            yield from selected(gpuops.compress, new_array("c", (2**rank,), np.dtype("?"), machine=MACHINE), apart)
            yield from selected(gpuops.compress, new_array("c", (2,), np.dtype("?"), machine=MACHINE), apart, 1)
        some = new_array("c", (64,), np.dtype("?"), machine=MACHINE)
        for cols in (1, 2, 4, 8, 16, 2**31):
            yield from selected(gpuops.compress, some, array((64, cols)), 0)
        out = new_array("out", (1, 8), np.dtype(np.complex128), machine=MACHINE)
        yield from selected(gpuops.compress, some, array((64, 8)), 0, out=out)
        yield from selected(gpuops.compress, some, array((64,)), out=out.view((1,), (1,)))


def selected(function: Callable[..., Any], *args: Any, **options: Any) -> Iterator[Plan]:
    """The plans of a call's two works, with one element selected."""
    work = describe(function, *args, **options)
    for each in (work, work.then((1,))):
        assert each.plan is not None
        yield each.plan


def walks(x: str) -> Iterator[Plan]:
    """Expand and where of one item size for each branch of the planner."""
    size = ITEMSIZE[x]
    for cols in (704, 700, 333, 24, 5, 3, 2):  # whole packs, half packs, partial packs, short rows
        shape = (64, 64, cols)
        dense, row, middle = contiguous_strides(shape), (0, 0, 1), (cols, 0, 1)
        reverse = (64 * cols, cols, -1)
        apart = tuple((cols + 5) * s // cols if s > 1 else s for s in dense)
        for pointer in {0, max(size, 1) % 16}:
            yield mapping("Expand", x, (x,), shape, dense, middle, pointer=pointer)
            yield mapping("Where", x, ("bool", x, x), shape, dense, row, middle, dense, pointer=pointer)
            yield mapping("Where", x, ("bool", x, x), shape, apart, dense, apart, (1, 0, 0), pointer=pointer)
        yield mapping("Expand", x, (x,), shape, dense, reverse)
        yield mapping("Where", x, ("bool", x, x), shape, dense, reverse, apart, (64 * cols, cols, 0))
        yield mapping("Expand", x, (x,), shape, dense, middle, strategy="collapsed")
    square = (640, 640)
    across = (1, 640)
    for pointer in {0, size % 16}:
        yield mapping("Expand", x, (x,), square, contiguous_strides(square), across, pointer=pointer)
        for cond, a, b in itertools.product((contiguous_strides(square), across), repeat=3):
            yield mapping("Where", x, ("bool", x, x), square, contiguous_strides(square), cond, a, b, pointer=pointer)
    big = (64, 64, 2**18)
    for operand in ((0, 2**18, 1), (2**18, 0, 1)):
        yield mapping("Expand", x, (x,), big, contiguous_strides(big), operand)
        yield mapping("Where", x, ("bool", x, x), big, contiguous_strides(big), (1, 0, 0), operand, (0, 1, 0))
    for rank in (2, 3, 4, 6, 9, 17):
        shape = (2,) * rank
        yield mapping("Expand", x, (x,), shape, contiguous_strides(shape), padded(shape))


@cache
def variants() -> tuple[Kernel, ...]:
    """Every kernel variant of the plans above."""
    plans = (reduction_plans, softmaxes, product_plans, map_plans, scan_plans, ladder_plans, selection_plans)
    made = itertools.chain.from_iterable(each() for each in plans)
    return tuple(sorted({step.kernel for plan in made for step in plan.steps if hasattr(step, "kernel")}, key=repr))


@cache
def representatives() -> tuple[Kernel, ...]:
    """A variant of each kernel file for an element type of each family that it reads."""
    families = [CTYPES[name] for name in ("int8", "float16", "bfloat16", "float32")]
    found: dict[tuple[str, str], Kernel] = {}
    for kernel in variants():
        types = dict(kernel.types)
        found.setdefault((kernel.name, types.get("Tin") or types.get("Ta", "i8")), kernel)
    return tuple(kernel for (_, read), kernel in found.items() if read in families)


def facts(kernel: Kernel) -> set[tuple[str, str, Any]]:
    """Each type and each constant of a variant."""
    return {(kernel.name, *fact) for fact in (*kernel.types, *kernel.constants)}


@cache
def cover() -> tuple[Kernel, ...]:
    """Few variants that have every type and constant of each kernel between them, combined anew with every eighth
    commit."""
    having: dict[Any, list[Kernel]] = {}
    for kernel in random.Random(TURN // PARTS).sample(variants(), len(variants())):
        for fact in sorted(facts(kernel), key=repr):
            having.setdefault(fact, []).append(kernel)
    rarity = {fact: 1 / len(kernels) for fact, kernels in having.items()}
    found, left = [], {*having}
    for fact in sorted(having, key=rarity.__getitem__, reverse=True):
        if fact in left:  # the variant with most that is rare and not there yet
            found.append(max(having[fact], key=lambda kernel: fsum(rarity[each] for each in facts(kernel) & left)))
            left -= facts(found[-1])
    counts = Counter(fact for kernel in found for fact in facts(kernel))
    for kernel in [*found]:  # what later ones have made superfluous
        if all(counts[fact] > 1 for fact in facts(kernel)):
            counts.subtract(facts(kernel))
            found.remove(kernel)
    return tuple(found)


@pytest.mark.parametrize("chunk", range(CHUNKS), ids=repeatable_id)
def test_variants_compile(nvrtc, chunk):
    """A part of a cover of them for sm_90, every eighth for another architecture too; the next commits' runs compile
    the other parts. The deep profile compiles all for all."""
    first, step = PARTS * chunk + TURN % PARTS, PARTS * CHUNKS
    for i, kernel in itertools.islice(enumerate(variants() if DEEP else cover()), first, None, step):
        eighth = (i // step + chunk) % 8 == 0
        others = OTHER_ARCHS if DEEP else round_robin(OTHER_ARCHS, start=i) if eighth else ()
        for arch in (ARCH, *others):
            assert jit.compile(jit.source(kernel), f"{kernel.name}.cu", arch)[:4] == b"\x7fELF"


@pytest.mark.parametrize("arch", round_robin(OTHER_ARCHS), ids=repeatable_id)
def test_every_file_compiles_for_every_architecture(nvrtc, arch):
    """One architecture per run, and every other file, the others with the next six commits."""
    first, step = (0, 1) if DEEP else (TURN // len(OTHER_ARCHS) % 2, 2)
    for kernel in representatives()[first::step]:
        assert jit.compile(jit.source(kernel), f"{kernel.name}.cu", arch)


def assembled(kernel: Kernel, arch: int) -> str:
    """What the assembler reports of a variant."""
    from cupy_backends.cuda.libs import nvrtc

    program = nvrtc.createProgram(jit.source(kernel), f"{kernel.name}.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*jit.options(kernel.name), f"-arch=sm_{arch}", "--ptxas-options=-v"))
        return nvrtc.getProgramLog(program)
    finally:
        nvrtc.destroyProgram(program)


@pytest.mark.turns(2, everywhere=True)
@pytest.mark.parametrize("arch", (ARCH, *round_robin(OTHER_ARCHS)), ids=repeatable_id)
@pytest.mark.parametrize("tile", products.TILES, ids=lambda tile: f"{tile.m}x{tile.n}")
def test_pipelined_matmul_does_not_spill_registers(nvrtc, tile, arch):
    ways = list(LAYOUTS)
    for i, a in enumerate(ways):  # each way for both operands
        b = ways[(i + products.TILES.index(tile)) % len(ways)]
        for splits in (1, 2) if tile.resident == 1 and i == arch // 5 % len(ways) else (1,):
            (launch,) = product(("float32",), None, a=a, b=b, tile=tile, splits=splits).steps
            report = assembled(launch.kernel, arch)
            assert "0 bytes spill stores" in report and not re.search(r"[1-9]\d* bytes spill", report), (a, report)


def test_pipelined_panels_use_the_way_of_their_layout():
    for a, b in itertools.product(LAYOUTS, repeat=2):
        constants = dict(product(("float32",), None, a=a, b=b, tile=products.TILES[0]).steps[0].kernel.constants)
        assert (constants["WAY_A"], constants["WAY_B"]) == (products.WAYS[a], products.WAYS[b])


# ---------------------------------------------------------------------------------------------------------- names


def stems(prefix: str = "") -> set[str]:
    return {name.removesuffix(".cu") for name in SOURCES if name.startswith(prefix)}


def test_every_kernel_file_is_reached_by_a_plan():
    assert {kernel.name for kernel in variants()} == stems() - {"evaluate"}  # which expressions alone have


def test_eight_runs_compile_every_type_and_constant_in_few_variants():
    assert set().union(*map(facts, cover())) == set().union(*map(facts, variants()))
    assert len(cover()) + len(cover()) // 8 + len(representatives()) <= 820


def test_every_softmax_file_is_a_strategy():
    files = {name.removeprefix("softmax_") for name in stems("softmax_")} - {"small"}
    assert files <= set(gpuops.strategies("softmax"))


def test_strategies_plan_the_kernel_file_of_their_name():
    for strategy in softmax.STRATEGIES:
        names = {kernel.name for kernel in normalisation(("float32",) * 3, (64, 700), (1,), strategy).kernels}
        file = "softmax_warp" if strategy in softmax.WARPS else f"softmax_{strategy}"
        assert names == {file} or file not in stems()
    for strategy in products.STRATEGIES:
        steps = product(("float32",), strategy).steps
        names = {step.kernel.name for step in steps if hasattr(step, "kernel")}
        assert names == ({f"matmul_{strategy}"} if strategy != "cublas" else set())
    assert stems("matmul_") == {f"matmul_{name}" for name in products.STRATEGIES if name != "cublas"}
    for strategy in reductions.STRATEGIES:
        name = "block" if strategy.removesuffix(reductions.ON_HOST) in reductions.STEPS else strategy
        assert reduction("Sum", ("float32",) * 3, (640, 72), (1,), strategy).steps[0].kernel.name == f"reduce_{name}"
    for strategy in scans.STRATEGIES:
        for axis, name in ((1, "flat"), (0, "tiles")):
            plan = scan("cumsum", "float32", (3, 900), axis, strategy=strategy)
            assert {kernel.name for kernel in plan.kernels} == {f"scan_{name if strategy == 'look_back' else strategy}"}


@pytest.mark.parametrize(
    "file,enum,names",
    [
        ("reduce_block.cu", "Step", reductions.STEPS),
        ("broadcast.cuh", "Way", maps.WAYS),
        ("matmul_panels.cuh", "Way", products.WAYS),
        ("broadcast.cu", "Walk", maps.WALKS),
    ],
)
def test_cuda_enums_match_python_tables(file, enum, names):
    (members,) = re.findall(rf"enum {enum} {{ (.*?) }};", jit.read(file))
    assert {name.strip().lower(): i for i, name in enumerate(members.split(","))} == dict(names)


def test_every_op_is_a_struct_of_ops_cuh_or_printed():
    structs = set(re.findall(r"(?:struct|> using) (\w+)", jit.read("ops.cuh") + jit.read("sums.cuh")))
    printed = {name for name, struct in STRUCTS.items() if struct.printed}
    assert STRUCTS.keys() - printed <= structs and not printed & structs
    assert printed <= records.STRUCTS.keys()


@pytest.mark.parametrize("integer", ("u32", "i64"))
@pytest.mark.parametrize("dtype", ("int8", "int64", "float16", "float32", "float64", "complex64"))
def test_structs_are_what_the_host_knows_of_them(nvrtc, dtype, integer):
    """Traits, options and the size of states, declared on both sides."""
    lines = []
    for name, struct in STRUCTS.items():
        val = "complex64" if name.startswith("MergedMax") else dtype
        record = records.STRUCTS.get(name)
        if not takes(struct, record, val):
            continue
        place = "i32" if integer == "u32" else "i64"
        second = {"Integer": place if struct.traits.indexed else integer}
        types = {"Op": name, "Tval": CTYPES[val]} | second
        lines += in_cuda.texts(Kernel("reduce_small", tuple(types.items()), (("STATES", 0),)))
        numbered = struct.traits.indexed or struct.numbered
        args = CTYPES[val] + (f", {second['Integer']}" if numbered else "")
        args += ", false" * struct.summed
        op = name if struct.printed else f"{name}<{args}>"
        state = reductions.problems.partial_size(struct.state, val, numbered and integer == "u32")
        lines.append(f'static_assert(sizeof({op}::State) == {state}, "{name}");')
        for trait, value in struct.traits._asdict().items():
            lines.append(f'static_assert({op}::{trait.upper()} == {str(value).lower()}, "{name} {trait}");')
        for place, option in enumerate(struct.options):
            lines.append(f'static_assert(int({op}::{option.upper()}) == {place}, "{name} {option}");')
    text = "\n".join([*map(jit.read, jit.COMMON), "using namespace gpuops;", *lines])
    jit.compile(text, "reduce_structs", ARCH)


def takes(struct: OpStruct, record: Reduction | None, val: str) -> bool:
    """Whether an op computes in a dtype."""
    if "scale" in struct.options or (record and record.each):
        return val in ("float32", "float64")
    if struct.exact == 3 or val == "int64":
        return (struct.exact, val) == (3, "int64")
    if struct.exact > 1 or "rtol" in struct.options:
        return val == ("int8" if struct.exact else "float32")
    if record and record.rules.real and val == "complex64":
        return False
    return val != "int8" or record is None or not (record.rules.floating or record.takes)


def test_every_dtype_is_a_type_of_types_cuh():
    text = jit.read("types.cuh")
    for name in {*CTYPES.values(), *BITS.values()}:
        assert re.search(rf"using {name} =|struct (alignas\(\d+\) )?{name} ", text)


@pytest.mark.parametrize("file", TEXTS)
def test_a_kernel_file_opens_with_its_contract(file):
    with open(jit.files()[file], encoding="utf-8") as text:
        assert text.readline().startswith("// ")


#: Those of exact sums and of scans.
MORE_ATOMICS = {
    "digits.cuh": [
        "atomicAdd(digit + bit / 32, negative ? 0 - low : low);",
        "atomicAdd(digit + bit / 32 + 1, negative ? 0 - high : high);",
        "atomicOr(&seen, x != x ? NOTHING : x > 0 ? UP : DOWN);",
    ],
    "sums.cuh": ["atomicOr(&all.seen, seen);"],
    "reduce.cuh": ["atomicMin(&next, threadIdx.x);", "atomicAdd(&number, taking);"],
    "engines.cuh": ["atomicOr(&sum.seen, Digits<V, false>::OTHER);"],
    "tile_sums.cuh": [
        "atomicMax(sizes(turn).most + line, found.most), atomicMin(sizes(turn).least + line, found.least);",
    ],
    "ladder.cuh": ["atomicMin(&next, threadIdx.x);"],
    **{key: ["atomicAdd(counter, u64(1)));"] for key in ("scan_parts.cu", "scan_tiles.cu")},
    "slots.cuh": ["atomicAdd(const_cast<u64*>(from), u64(0));"],
}  # fmt: skip


@pytest.mark.parametrize("file", TEXTS)
def test_no_atomics_whose_order_could_change_a_sum(file):
    """Atomics count arriving blocks, for the last block of a ticket and for barriers; those of exact sums add integers,
    note what is seen, and choose a thread; those of scans find extremes, count tiles, and load."""
    atomics = re.findall(r"\b(?:atomic|atom\.|red\.)[^;]*;", jit.read(file))
    arrival = ["atomicMax(word, launch.number << 32);", "atomicAdd(word, u64(1)));"]
    counts = [*arrival, "atomicExch(ticket, u64(0));"]
    assert atomics == (counts if file == "block.cuh" else MORE_ATOMICS.get(file, []))


@pytest.mark.parametrize("name", sorted(stems()))
def test_kernels_wait_for_the_preceding_kernel(name):
    """They wait before they touch memory: the preceding kernel may still run at launch."""
    body = re.search(r'extern "C" .*?\{\n(.*?)\n\}\n', jit.read(f"{name}.cu"), re.S)
    assert body
    assert body[1].strip().startswith("wait_for_previous();")


def test_subnormals_are_not_flushed_by_the_compiler():
    assert not any("ftz" in option or "fast" in option for option in jit.OPTIONS)


# ---------------------------------------------------------------------------------------------- counters that are full

#: Numbers in kernels that say how many elements a counter is certain to hold, and small ones in their place.
FULL = {
    "(BYTES ? 60000 : 30000) * COUNT / VEC": "8",
    "(packs += N) > 255": "(packs += N) > 20",
    "sizeof(T) == 1 ? 1 << 18 : 1 << 11": "8",
}


@pytest.mark.parametrize("full", FULL)
def test_counters_move_on_before_they_are_full(emulation, monkeypatch, full):
    text, read = jit.read("words.cuh"), jit.read
    assert full in text
    monkeypatch.setattr(
        jit, "read", lambda name: text.replace(full, FULL[full]) if name == "words.cuh" else read(name)
    )
    monkeypatch.setattr(emulated, "module", emulated.module.__wrapped__)
    for dtype in ("?", "i1", "u1", "i2"):
        info = None if dtype == "?" else np.iinfo(dtype)
        for shape, axis, strategy in (((66000, 48), 0, "columns"), ((3, 66000), 1, "rows")):  # not in 32 bits
            x = np.random.default_rng(9).integers(0, 2, shape).astype(dtype)
            x = x if info is None else np.where(x > 0, info.max, info.min + x).astype(dtype)
            for op in ("sum", "var"):
                got = getattr(gpuops, op)(emulated.DEVICE.from_host(x), axis=axis, strategy=strategy)
                right = getattr(np, op)(x.astype(np.longdouble), axis=axis).astype(np.float64)
                np.testing.assert_allclose(np.asarray(got), right, rtol=1e-12)


# -------------------------------------------------------------------------------------------------------- barriers

BARRIER = re.compile(r"__sync(?:threads|warp)\(\);")
#: Barriers that order concurrent blocks. The emulator runs blocks one after the other, so it cannot miss these.
BETWEEN_BLOCKS = (
    "__shared__ bool last;\n  __syncthreads();",
    "meet(barriers + team, p.team, round, launch);\n      }\n      __syncwarp();",
    "if constexpr (CLUSTER > 1) {\n      __syncthreads();",
)
BARRIERS = [
    (file, i)
    for file in TEXTS
    for i, barrier in enumerate(BARRIER.finditer(jit.read(file)))
    if not jit.read(file)[: barrier.end()].endswith(BETWEEN_BLOCKS)
]


def same_as_cpu(function: Callable[..., Any], shape: Shape, axis: int, strategy: str | None) -> bool:
    """Whether a call gives the same on the emulator as on the CPU."""
    x = layouts.sample(shape)
    got = function(emulated.DEVICE.from_host(x), axis=axis, strategy=strategy)
    return np.allclose(np.asarray(got), function(x, axis=axis), rtol=1e-4, atol=1e-5)


def sums_left_open(strategy: str, dtype: str = "f4") -> bool:
    """Whether sums of such different elements are right that they are added up once more."""
    rng = np.random.default_rng(7)
    x = np.ldexp(1 + rng.random(1500), rng.integers(-140, 100, 1500)).astype(dtype)
    third = x.dtype.type(1 / 3)
    rows = [rng.permutation(np.concatenate([x, -x, [third]])) for _ in range(3)]
    got = [
        gpuops.sum(emulated.DEVICE.from_host(np.ascontiguousarray(each)), axis=axis, strategy=strategy)
        for each, axis in ((np.stack(rows), 1), (np.stack(rows, 1), 0))
    ]
    return bool((np.stack(got) == third).all())


def scanned(op: str, shape: Shape, axis: int, apart: int = 0, strategy: str | None = None) -> bool:
    """Whether a scan is right: of numbers whose exponents are as far apart, of which half cancel the others."""
    rng, half = np.random.default_rng(7), shape[axis] // 2
    x = np.ldexp(rng.standard_normal(shape), rng.integers(-apart, apart + 1, shape)).astype("f4")
    lines = np.moveaxis(x, axis, 0)
    lines[half : 2 * half] = -lines[rng.permutation(half)]
    got = np.asarray(getattr(gpuops, op)(emulated.DEVICE.from_host(x), axis, strategy=strategy))
    exact = [itertools.accumulate(map(Fraction, line)) for line in np.moveaxis(x, axis, -1).tolist()]
    return np.moveaxis(got, axis, -1).tolist() == [[nearest(each, np.float32) for each in line] for line in exact]


def scanned_bytes(shape: Shape, axis: int, step: int = 1) -> bool:
    """Whether a scan is right whose results are wider than elements, of many tiles; elements may lie apart."""
    x = layouts.sample((*shape[:-1], shape[-1] * step), "i1")
    got = gpuops.cumsum(emulated.DEVICE.from_host(x)[..., ::step], axis)
    return bool((np.asarray(got) == np.cumsum(x[..., ::step], axis)).all())


def scanned_alike(op: str, shape: Shape, axis: int | None, step: int = 1) -> bool:
    """Whether a scan gives the same bits as on the CPU; elements may lie apart."""
    x = 1 + layouts.sample((*shape[:-1], shape[-1] * step)) / 1000
    got = getattr(gpuops, op)(emulated.DEVICE.from_host(x)[..., ::step], axis)
    return np.asarray(got).tobytes() == np.ascontiguousarray(getattr(gpuops, op)(x[..., ::step], axis)).tobytes()


def selected_alike(length: int, density: float) -> bool:
    """Whether indices are right."""
    x = np.random.default_rng(length).random(length) < density
    (got,) = gpuops.nonzero(emulated.DEVICE.from_host(x))
    return np.array_equal(np.asarray(got), np.flatnonzero(x))


def expanded() -> bool:
    """Whether tiles that are turned are right."""
    x = layouts.sample((40, 70))
    return bool((np.asarray(gpuops.expand(emulated.DEVICE.from_host(x).T, (70, 40), strategy="tiled")) == x.T).all())


def multiplied(strategy: str) -> bool:
    """Whether a product is right."""
    k = 600 if strategy == "pipelined" else 36  # so that blocks share it
    a, b = (layouts.sample(shape) for shape in ((40, k), (k, 44)))
    got = gpuops.matmul(emulated.DEVICE.from_host(a), emulated.DEVICE.from_host(b), strategy=strategy)
    return bool(np.allclose(np.asarray(got), a @ b, rtol=1e-4, atol=1e-2))


def calls() -> Iterator[Callable[[], bool]]:
    """Calls that reach every barrier between them, which tell whether they give right results."""
    for strategy in gpuops.strategies("sum"):
        for op in (gpuops.sum, gpuops.max):
            yield partial(same_as_cpu, op, (3, 5000), 1, strategy)
            yield partial(same_as_cpu, op, (300, 5), 0, strategy)
    for shape, axis, strategy in (((3, 50000), 1, "rows"), ((3000, 11), 1, "rows"), ((9000, 5), 0, "columns")):
        # rows of several blocks, short rows, columns of several blocks
        yield partial(same_as_cpu, gpuops.sum, shape, axis, strategy)
    yield partial(same_as_cpu, gpuops.var, (3, 5001), 1, "rows")  # in doubles
    for strategy in gpuops.strategies("sum"):
        yield partial(sums_left_open, strategy)
    yield partial(sums_left_open, "rows", "f8")
    lines = ((400, 5), 1), ((5, 400), 0), ((3, 900), 1), ((900, 3), 0), ((2, 20000), 1), ((9000, 12), 0), ((300, 3), 0)
    for line in lines:
        yield partial(scanned, "cumsum", *line)
    for line in lines[1::2]:
        yield partial(scanned, "cumsum", *line, 120)
    for strategy in gpuops.strategies("cumsum")[:-1]:
        yield partial(scanned, "cumsum", (3, 900), 1, 0, strategy)
        yield partial(scanned, "cumsum", (2, 400), 1, 120, strategy)
    for line in ((4000, 20), 1), ((20000, 5), 1), ((2, 9000), 1), ((1, 300000), 1), ((40, 5000), 1), ((8, 3000, 3), 1):
        yield partial(scanned_bytes, *line)
        yield partial(scanned_bytes, *line, 2)
    for line in ((2, 20000), 1), ((9000, 12), 0), ((40, 5000), 1), ((40, 900, 2), 1), ((900, 160), 0), ((3, 900), 1):
        yield partial(scanned_alike, "cumprod", *line)
        yield partial(scanned_alike, "cumprod", *line, 2)
    for shape in (20, 2000), (3, 200):
        yield partial(scanned_alike, "cumsum", shape, None, 2)
    for length, density in ((5000, 0.5), (300000, 0.1), (9000, 1)):
        yield partial(selected_alike, length, density)
    yield expanded
    for strategy in gpuops.strategies("softmax"):
        yield partial(same_as_cpu, gpuops.softmax, (3, 500), 1, strategy)
        yield partial(same_as_cpu, gpuops.softmax, (300, 3), 0, strategy)
    yield partial(same_as_cpu, gpuops.softmax, (300, 7), 1, "rows")  # in one piece
    for strategy in gpuops.strategies("matmul"):
        yield partial(multiplied, strategy)


@cache
def with_every_barrier() -> tuple[tuple[Callable[[], bool], bool, frozenset[str]], ...]:
    """Each of these calls, whether it is right, and the files of its kernels."""
    found = []
    for call in calls():
        kernels: set[Kernel] = set()
        module = emulated.module
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(emulated, "module", lambda kernel: kernels.add(kernel) or module(kernel))  # noqa: B023
            right = call()
        texts = map(jit.source, kernels)
        found.append((call, right, frozenset(name for text in texts for name in re.findall(r'#line 1 "(.*)"', text))))
    return tuple(found)


def test_calls_are_right_with_every_barrier(emulation):
    assert all(right for _, right, _ in with_every_barrier())


@pytest.mark.turns(4, everywhere=True)  # they compile most of what the emulator runs once more
@pytest.mark.parametrize("file,occurrence", BARRIERS, ids=str)
def test_no_barrier_can_be_removed(emulation, monkeypatch, file, occurrence):
    reaching = [call for call, _, files in with_every_barrier() if file in files]
    text = jit.read(file)
    barrier = list(BARRIER.finditer(text))[occurrence]
    without = text[: barrier.start()] + ";" + text[barrier.end() :]
    read = jit.read
    monkeypatch.setattr(jit, "read", lambda name: without if name == file else read(name))
    monkeypatch.setattr(emulated, "module", emulated.module.__wrapped__)
    try:
        assert not all(call() for call in reaching)
    except emulator.EmulatorError as fault:
        assert re.search("race|uninitialised|not written", str(fault))
