"""Geometry, plans and kernel parameters, without a device."""

from __future__ import annotations

import itertools
import math
import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gpuops
from gpuops.call.dispatch import describe
from gpuops.ops import arguments
from gpuops.plan import dtypes, geometry, maps, products, reductions, work
from gpuops.plan import rows as softmax
from gpuops.plan.access import PACK, packable
from gpuops.plan.geometry import Axes
from gpuops.plan.params import Field, Struct
from gpuops.plan.reductions.problems import summed_in
from gpuops.plan.rows.classic import STATES
from tests import layouts
from tests.works import reduction_problem, softmax_problem

# -------------------------------------------------------------------------------------------------------- geometry


@st.composite
def axes(draw: st.DrawFn) -> Axes:
    """Small dims with the strides of one to three operands: dense, sliced, reversed, broadcast, or anything."""
    sizes = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 4)), max_size=5)))
    operands = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            x = draw(layouts.laid_out(sizes, np.dtype("u1")))
            operands.append(x.strides)
        else:
            operands.append(tuple(draw(st.sampled_from((0, 1, 2, -1, 3, 12, -4))) for _ in sizes))
    return Axes(sizes, tuple(operands))


def visited(walk: Axes, starts: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The offsets of all operands at every index, sorted."""
    strides = np.array(walk.strides, int).reshape(len(starts), len(walk.sizes))
    return sorted(tuple((strides @ step + starts).tolist()) for step in itertools.product(*map(range, walk.sizes)))


@given(axes())
def test_normalize_visits_the_same_elements(walk):
    normal, starts = geometry.normalize(walk)
    assert visited(normal, starts) == visited(walk, (0,) * len(walk.strides))


@given(axes())
def test_normalize_leaves_nothing_to_merge(walk):
    normal, _ = geometry.normalize(walk)
    assert 1 not in normal.sizes
    for outer in range(len(normal.sizes) - 1):
        size = normal.sizes[outer + 1]
        assert any(s[outer] != size * s[outer + 1] for s in normal.strides)


@given(axes())
def test_normalize_flips_and_sorts_the_first_operand(walk):
    normal, _ = geometry.normalize(walk)
    first = normal.strides[0]
    assert all(s >= 0 for s in first)
    moving = [s for s in first if s]
    assert moving == sorted(moving, reverse=True)
    assert list(first) == [0] * (len(first) - len(moving)) + moving


@given(axes())
def test_normalize_is_idempotent(walk):
    normal, _ = geometry.normalize(walk)
    assert geometry.normalize(normal) == (normal, (0,) * len(normal.strides))


@pytest.mark.parametrize("layout", ["C", "F", "transposed", "reversed", "unaligned"])
def test_dense_arrays_become_one_dim(layout):
    x = layouts.lay_out(np.zeros((3, 4, 5), "u1"), layout)
    normal, _ = geometry.normalize(Axes(x.shape, (x.strides,)))
    assert normal == Axes((60,), ((1,),))


@given(st.integers(1, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_divisor_divides_every_index_below_2_to_the_31(value, n):
    assert quotient(n, value) == n // value


@pytest.mark.parametrize("value", [2**k + d for k in range(31) for d in (-1, 0, 1) if 2**k + d > 0])
def test_divisor_at_its_edges(value):
    multiples = {k * value + d for k in (0, 1, 2, (2**31 - 1) // value) for d in (-1, 0, 1)}
    for n in {0, 1, 2**31 - 1, *multiples}:
        if 0 <= n < 2**31:
            assert quotient(n, value) == n // value


def quotient(n: int, value: int) -> int:
    """``divide`` of axes.cuh: 32-bit arithmetic."""
    stored, magic, shift = geometry.divisor(value)
    assert stored == value
    total = (n * magic >> 32) + n
    assert total < 2**32
    return total >> shift


@given(axes())
def test_packed_axes_match_the_cuda_struct(walk):
    rank = walk.rank_class
    data = bytes(Struct("Walk", Field("Axes<RANK, OPERANDS>", "axes", "")).pack("i64", axes=walk))
    assert len(data) == rank * (16 + 8 * len(walk.strides))
    sizes = tuple(size for size, _, _ in struct.iter_unpack("<QII", data[: 16 * rank]))
    strides = struct.unpack(f"<{rank * len(walk.strides)}q", data[16 * rank :])
    pad = rank - len(walk.sizes)
    assert sizes == (1,) * pad + walk.sizes
    for k, operand in enumerate(walk.strides):
        assert strides[k * rank : (k + 1) * rank] == (0,) * pad + operand


@given(axes())
def test_packed_dims_match_the_cuda_struct(walk):
    rank = max(walk.rank_class, geometry.MANY)
    data = bytes(Struct("Walk", Field("Dims<RANK, OPERANDS>", "dims", "")).pack("i64", dims=walk.dims()))
    found = [(size, *strides) for size, _, _, *strides in struct.iter_unpack(f"<QII{len(walk.strides)}q", data)]
    missing = (1, *(0,) * len(walk.strides))
    assert found == [*zip(walk.sizes, *walk.strides)][::-1] + [missing] * (rank - len(walk.sizes))


def test_rank_classes_cover_every_rank():
    for rank in range(33):
        assert Axes((2,) * rank, ((0,) * rank,)).rank_class in geometry.RANKS


@given(axes(), st.sampled_from((1, 2, 4)))
def test_packs_visit_the_first_element_of_each_pack(walk, vec):
    normal, starts = geometry.normalize(walk)
    if normal.sizes and normal.sizes[-1] % vec == 0:
        packs = normal.in_packs(vec)
        inner = [vec * s[-1] for s in normal.strides]
        assert packs.size * vec == normal.size
        assert [s[-1] for s in packs.strides] == (inner if vec > 1 else [s[-1] for s in normal.strides])
        assert set(visited(packs, starts)) <= set(visited(normal, starts))


def test_packs_need_unit_stride_whole_packs_and_alignment():
    rows = Axes((3, 8), ((8, 1),))
    assert packable(4, 4, 0, 0, rows, inner=rows)
    assert not packable(4, 4, 4, 0, rows, inner=rows)  # an address that is no multiple of 16
    assert packable(2, 4, 8, 0, rows, inner=rows)
    narrow = Axes((3, 6), ((6, 1),))  # 6 is 1.5 packs
    assert not packable(4, 4, 0, 0, narrow, inner=narrow)
    padded = Axes((3, 8), ((9, 1),))  # rows start anywhere
    assert not packable(4, 4, 0, 0, padded, inner=padded)
    assert not packable(2, 4, 0, 0, Axes((8,), ((2,),)), inner=Axes((8,), ((2,),)))
    assert not packable(2, 4, 0, 0, Axes((), ((),)), inner=Axes((), ((),)))


@given(st.data())
def test_like_strides_match_numpy_order_k(data):
    shape = data.draw(layouts.shapes(max_size=200))
    x = data.draw(layouts.laid_out(shape, np.dtype("u1")))
    got = geometry.like_strides(x.shape, x.strides)
    if x.size:
        assert sorted(int(np.dot(i, got)) for i in np.ndindex(shape)) == list(range(x.size))
    if 0 not in x.strides and x.size:
        expected = np.empty_like(x, order="K", subok=False).strides
        assert significant_strides(shape, got) == significant_strides(shape, expected)


def significant_strides(shape: geometry.Shape, strides: geometry.Shape) -> list[int]:
    """The strides of the dims that have more than one element."""
    return [s for n, s in zip(shape, strides, strict=True) if n > 1]


@given(st.data())
def test_contiguous_strides_match_numpy(data):
    shape = data.draw(layouts.shapes())
    if 0 not in shape:
        expected = np.zeros(shape, "u1").strides
        assert geometry.contiguous_strides(shape) == expected


@given(st.data())
def test_broadcast_strides_match_numpy(data):
    to = data.draw(layouts.shapes(max_size=200))
    lead = data.draw(st.integers(0, len(to)))
    shape = tuple(data.draw(st.sampled_from((n, 1))) for n in to[lead:])
    x = data.draw(layouts.laid_out(shape, np.dtype("u1")))
    if 0 not in to:
        expected = np.broadcast_to(x, to).strides
        got = geometry.broadcast_strides(x.shape, x.strides, to)
        assert significant_strides(to, got) == significant_strides(to, expected)


SHAPES = st.lists(st.sampled_from((0, 1, 2, 3)), max_size=3).map(tuple)


@given(SHAPES, SHAPES)
def test_broadcasts_to_agrees_with_numpy(shape, to):
    try:
        np.broadcast_to(np.zeros(shape), to)
        expected = True
    except ValueError:
        expected = False
    assert arguments.broadcasts_to(shape, to) == expected


@given(SHAPES, SHAPES)
def test_broadcast_shapes_agree_with_numpy(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ValueError, match="^where: shapes .* do not broadcast$"):
            arguments.broadcast_shapes("where", a, b)
    else:
        assert arguments.broadcast_shapes("where", a, b) == expected


@given(st.data())
def test_normalize_axis_agrees_with_numpy(data):
    ndim = data.draw(st.integers(0, 4))
    axis = data.draw(st.one_of(st.none(), st.integers(-5, 5), st.lists(st.integers(-5, 5), max_size=3).map(tuple)))
    shape = (1,) * ndim
    try:
        whole = axis is None or (ndim == 0 and axis in (0, -1))  # as NumPy's reductions accept
        expected = set(range(ndim)) if whole else set(np.lib.array_utils.normalize_axis_tuple(axis, ndim))
    except ValueError as error:
        with pytest.raises(type(error)):
            arguments.normalize_axis("sum", axis, shape)
    else:
        assert arguments.normalize_axis("sum", axis, shape) == tuple(sorted(expected))


def test_indices_are_64_bit_from_2_to_the_31():
    assert geometry.index_type(2**31 - 1, 5) == "u32"
    assert geometry.index_type(5, 2**31) == "i64"


def test_every_dtype_has_a_size_and_bits():
    for dtype in layouts.DTYPES:
        assert dtypes.ITEMSIZE[dtype.name] == dtype.itemsize
        assert dtype.name in dtypes.CTYPES
        assert dtype.itemsize in dtypes.BITS
    assert len(dtypes.CTYPES) == len(layouts.DTYPES)


# ----------------------------------------------------------------------------------------------------------- plans


MACHINE = work.Machine(132, cluster=16, shared=227 * 1024, together=132)


def sum_of_rows(rows: int, cols: int, strategy: str | None = None) -> work.Plan:
    strides = geometry.contiguous_strides((rows, cols))
    names = ("float32",) * 3
    problem = reduction_problem("Sum", *names, (rows, cols), (1,), (strides, (0, 0), (1,)), POINTERS)
    return reductions.plan(problem, strategy, MACHINE.multiprocessors)


def softmax_of_rows(rows: int, cols: int, strategy: str | None = None) -> work.Plan:
    strides = geometry.contiguous_strides((rows, cols))
    names = ("float32",) * 3
    problem = softmax_problem("softmax", *names, (rows, cols), (1,), (strides, (0, 0), strides), POINTERS, False, 1.0)
    return softmax.plan(problem, strategy, MACHINE)


#: Addresses modulo 16 of an op's operands.
POINTERS = (0, 0, 0)


def where_of_rows(rows: int, cols: int, strategy: str | None = None) -> work.Plan:
    strides = geometry.contiguous_strides((rows, cols))
    out, a, x, y = (maps.Arg(name, "u32", 4, strides) for name in ("out", "a", "b", "c"))
    return maps.plan("Where", (rows, cols), out, (a, x, y), strategy)


PLANS = {"sum": sum_of_rows, "softmax": softmax_of_rows, "where": where_of_rows}


@pytest.mark.parametrize("op", PLANS)
def test_plans_compare_hash_and_print_by_value(op):
    made = PLANS[op](100, 700)
    assert made == PLANS[op](100, 700)
    assert made != PLANS[op](200000, 3)
    assert len({made, PLANS[op](200000, 3)}) == 2
    assert repr(made).startswith(f"Plan(strategy={made.strategy!r}, steps=(Launch(kernel=Kernel(name=")
    with pytest.raises(AttributeError):
        made.strategy = "mine"


@pytest.mark.parametrize("op", PLANS)
def test_plans_have_the_requested_strategy(op):
    planners = {"sum": reductions.STRATEGIES, "softmax": softmax.STRATEGIES, "where": maps.STRATEGIES}[op]
    for strategy in filter(None, planners):
        if strategy in ("stepped", "tiled"):  # these need an operand in another layout than the result
            with pytest.raises(ValueError, match=f"^where: strategy '{strategy}' takes an operand that "):
                PLANS[op](100, 700, strategy)
        else:
            assert PLANS[op](100, 700, strategy).strategy == strategy


@pytest.mark.parametrize(
    ("shape", "x", "chosen"),
    [
        ((2**13, 2**13), (2**13, 1), "vectorized"),
        ((2**13, 2**13), (0, 1), "vectorized"),  # a row that fits L1
        ((2**8, 2**20), (0, 1), "stepped"),
        ((2**8, 2**20 + 1), (0, 1), "vectorized"),  # packs that cross rows
        ((2**13, 2**13), (1, 2**13), "tiled"),
        ((2**20, 3), (1, 2**20), "vectorized"),  # too narrow for a tile
        ((2**13, 3), (1, 2**13), "collapsed"),  # small
        ((2**7, 2**7), (0, 1), "vectorized"),  # small too, but all in whole packs
    ],
)
def test_expand_chooses_by_operand_strides(shape, x, chosen):
    out = maps.Arg("out", "u32", 4, geometry.contiguous_strides(shape))
    assert maps.plan("Expand", shape, out, (maps.Arg("a", "u32", 4, x),)).strategy == chosen


@pytest.mark.parametrize(
    ("dtype", "shape", "axis", "kernel", "constants"),
    [
        ("float32", (2**22, 16), (1,), "reduce_rows", {"GROUP": 4, "ROWS": 4}),  # four lanes for each of four rows
        ("float32", (2**24, 3), (1,), "reduce_tiny", {"LENGTH": 3, "ROWS": 4, "PILED": False}),
        ("int8", (2**24, 3), (1,), "reduce_tiny", {"LENGTH": 3, "ROWS": 16, "VEC": 16, "PILED": True}),
        ("int8", (2**24, 8), (1,), "reduce_tiny", {"LENGTH": 8, "ROWS": 2, "VEC": 8, "PILED": False}),
        ("float32", (2**20, 11), (1,), "reduce_staged", {}),
        ("float32", (4096, 256), (1,), "reduce_rows", {"GROUP": 32, "UNROLL": 2}),
        ("float32", (4096, 781), (1,), "reduce_rows", {"GROUP": 32, "RAGGED": True}),
        ("float32", (8192, 8192), (1,), "reduce_rows", {"GROUP": 256, "RESIDENT": 0}),
        ("float32", (8, 2**24), (1,), "reduce_rows", {"GROUP": 512, "RESIDENT": 1024}),  # several blocks to a row
        ("float32", (2**13,), (0,), "reduce_rows", {"GROUP": 512, "RESIDENT": 0}),
        ("float32", (65536, 1024), (0,), "reduce_columns", {"WIDE": 16, "RESIDENT": 1024}),
        ("float32", (16, 2**22), (0,), "reduce_columns", {"WIDE": 256, "STORED": 4}),
        ("float32", (1000, 1000, 100), (1,), "reduce_columns", {"WIDE": 32, "EDGED": True}),
        ("float32", (999, 10007), (0,), "reduce_columns", {"VEC": 1, "RESIDENT": 1536}),
        ("float16", (11, 2**21 + 1), (0,), "reduce_columns", {"VEC": 2, "STRIPED": True}),
        ("int8", (11, 2**21 + 1), (0,), "reduce_columns", {"VEC": 8, "FUNNEL": True}),
        ("int8", (1000, 2**20 + 1), (0,), "reduce_columns", {"VEC": 16, "FUNNEL": True}),
        ("int8", (1000, 2**20 + 4), (0,), "reduce_columns", {"VEC": 4, "FUNNEL": False}),
    ],
)
def test_reductions_choose_by_shape_and_alignment(dtype, shape, axis, kernel, constants):
    step = reduction_of("Max", dtype, shape, axis)
    assert step.kernel.name == kernel
    assert constants.items() <= dict(step.kernel.constants).items()


def reduction_of(op: str, dtype: str, shape: tuple[int, ...], axis: tuple[int, ...]) -> work.Launch:
    strides = (geometry.contiguous_strides(shape), (0,) * len(shape))
    kept = geometry.contiguous_strides(tuple(n for d, n in enumerate(shape) if d not in axis))
    names = dtype, dtypes.accumulator(dtype), dtype
    problem = reduction_problem(op, *names, shape, axis, (*strides, kept), POINTERS)
    (step,) = reductions.plan(problem, None, 132).steps
    return step


@pytest.mark.parametrize(
    ("starts", "strides", "loaded"),
    [((0, 0), (1, 1), ("x", 1)), ((4, 4), (1, 1), ("x", 1)), ((4, 0), (1, 1), ("x", 4)), ((0, 0), (2, 1), ("y", 4))],
)
def test_factors_are_loaded_one_by_one_beside_packs_of_the_other_operand(starts, strides, loaded):
    x, y = (
        work.new_array(name, (2**20,), np.dtype("f4"), machine=MACHINE)._replace(start=start, strides=(4 * step,))
        for name, start, step in zip("xy", starts, strides, strict=True)
    )
    (step,) = describe(gpuops.dot, x, y).plan.steps
    constants = dict(step.kernel.constants)
    assert (constants["VEC"], step.args[0].name, constants["OTHER"]) == (4, *loaded)


@pytest.mark.parametrize(("op", "dtype", "vec"), [("Sum", "bfloat16", 2), ("Sum", "float64", 1), ("Var", "float64", 1)])
def test_exact_sums_of_few_elements_are_made_of_all_of_them_at_once(op, dtype, vec):
    constants = dict(reduction_of(op, dtype, (11, 2**21 + 1), (0,)).kernel.constants)
    assert (constants["STRIPED"], constants["VEC"], constants["SINGLE"]) == (vec > 1, vec, True)


def test_exact_sums_of_few_elements_and_their_weights_are_made_of_all_of_them_at_once():
    x, weights = (work.new_array(name, (11, 2**21 + 1), np.dtype("f4"), machine=MACHINE) for name in ("a", "weights"))
    (step,) = describe(gpuops.average, x, 0, weights).plan.steps
    constants = dict(step.kernel.constants)
    assert [constants[name] for name in ("VEC", "UNROLL", "SINGLE")] == [1, 12, True]


#: An op and dtype, the shape of short rows, and how many of them a block has: whole rounds of its threads, unless too
#: many were left out.
ROUNDS = (
    ("Sum", "float32", (2**20, 21), 256), ("Sum", "float16", (2**20, 21), 512), ("Sum", "float64", (2**20, 21), 146),
    ("Max", "float32", (2**20, 21), 194), ("Max", "int8", (2**20, 21), 768), ("Max", "float32", (2**20, 9), 454),
)  # fmt: skip


@pytest.mark.parametrize(("op", "dtype", "shape", "rows"), ROUNDS)
def test_blocks_of_short_rows_have_whole_rounds(op, dtype, shape, rows):
    step = reduction_of(op, dtype, shape, (1,))
    assert (step.kernel.name, step.grid[0]) == ("reduce_staged", -(-shape[0] // rows))


#: Lines of a scan and the kernel that has them.
LINES = (
    ("cumsum", "float32", (8, 9_000_000), 0, "scan_chains"), ("cumprod", "float32", (3, 9_000_000), 0, "scan_chains"),
    ("cumsum", "int32", (8, 9_000_000), 0, "scan_tiles"), ("cummax", "float32", (15, 9_000_000), 0, "scan_tiles"),
    ("cumsum", "int32", (16, 9_000_000), 0, "scan_chains"), ("cumprod", "float32", (9_000_000, 8), 1, "scan_tiles"),
    ("cumsum", "float32", (9_000_000, 8), 1, "scan_flat"), ("cumsum", "float32", (8, 1000), 0, "scan_tiles"),
)  # fmt: skip


@pytest.mark.parametrize(("op", "dtype", "shape", "axis", "kernel"), LINES)
def test_short_lines_go_to_lanes_if_they_are_side_by_side_and_take_long(op, dtype, shape, axis, kernel):
    x = work.new_array("x", shape, np.dtype(dtype), machine=MACHINE)
    step = describe(getattr(gpuops, op), x, axis=axis).plan.steps[-1]  # memory for totals may be filled before
    constants = dict(step.kernel.constants)
    assert step.kernel.name == kernel
    assert kernel != "scan_tiles" or constants["SHORT"] == (axis == 1)


#: The second operand's shape and strides, and how a kernel of short rows has it: beside x (1), one row for all (4).
SECONDS = {
    "alike": ((2**20, 21), (21, 1), 1), "one row": ((21,), (1,), 4), "one row, with a step": ((21,), (2,), 4),
    "columns": ((2**20, 21), (1, 2**20), None), "one for each row": ((2**20, 1), (1, 0), None),
}  # fmt: skip


@pytest.mark.parametrize("second", SECONDS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int32"])
def test_short_rows_beside_a_second_operand_go_through_shared_memory(dtype, second):
    shape, steps, other = SECONDS[second]
    x = work.new_array("a", (2**20, 21), np.dtype(dtype), machine=MACHINE)
    mask = work.new_array("where", shape, np.dtype(bool), steps, machine=MACHINE)
    (step,) = describe(gpuops.sum, x, axis=1, where=mask).plan.steps
    assert (step.kernel.name == "reduce_staged") == (other is not None)
    assert other is None or dict(step.kernel.constants)["OTHER"] == other


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("rows", [20, 2**12, 2**20])
def test_doubles_of_variances_take_less_than_128_additions_in_turn(dtype, rows):
    """In kernels that know the length of a row, it is asserted there."""
    turns = []
    for length in range(5, 600):
        kernel = reduction_of("Var", dtype, (rows, length), (1,)).kernel
        if kernel.name == "reduce_staged":
            team = dict(kernel.constants)["TEAM"]
            turns.append(-(-length // team) + math.log2(team))
    assert len(turns) > 50
    assert max(turns) < 2**7


@pytest.mark.parametrize(
    ("op", "dtype", "shape", "axis", "striped", "unroll"),
    [
        ("Sum", "bfloat16", (11, 2**21 + 1), 0, True, 12),
        ("Sum", "float32", (5, 2**21 + 1), 0, True, 8),
        ("Max", "float32", (40, 2**21 + 1), 0, True, 16),
        ("Sum", "float32", (11, 2**21), 0, False, 8),  # packs
        ("Max", "float16", (11, 2**21 + 1), 0, True, 12),
        ("Max", "int8", (11, 2**21 + 1), 0, False, 8),  # funnel loads
        ("Sum", "float64", (11, 2**21 + 1), 0, False, 12),
        ("Sum", "float64", (13, 2**21 + 1), 0, False, 8),
        ("Sum", "float32", (99, 11, 2**14 + 1), 1, False, 12),  # outputs of several rows
        ("Sum", "float32", (999, 2**14 + 1), 0, False, 16),  # blocks share outputs
    ],
)
def test_threads_have_outputs_that_are_a_block_apart_if_they_read_no_packs(op, dtype, shape, axis, striped, unroll):
    constants = dict(reduction_of(op, dtype, shape, (axis,)).kernel.constants)
    assert (constants["STRIPED"], constants["UNROLL"]) == (striped, unroll)


@pytest.mark.parametrize(
    ("dtype", "shape", "wide", "splits"),
    [
        ("float32", (64, 2**17 + 1), 128, 1),  # blocks of most outputs fill the GPU
        ("float32", (999, 10007), 16, 1),  # fewer do
        ("bfloat16", (999, 10007), 16, 1),
        ("float32", (2000, 5003), 32, 5),  # blocks share outputs
        ("float16", (50000, 77), 32, 66),
        ("float32", (8192, 8192), 16, 2),  # packs
    ],
)
def test_blocks_of_exact_sums_of_single_elements_rather_have_fewer_outputs_than_share_them(dtype, shape, wide, splits):
    step = reduction_of("Sum", dtype, shape, (0,))
    constants = dict(step.kernel.constants)
    assert (constants["WIDE"], step.grid[1], constants["FUNNEL"]) == (wide, splits, False)


def test_single_bytes_are_not_in_flight_by_sixteen():
    assert dict(reduction_of("Sum", "int8", (60, 2**20 + 1), (0,)).kernel.constants)["UNROLL"] == 8


@pytest.mark.parametrize(("dtype", "group"), [("float32", 8), ("float16", 4)])
def test_logsumexp_of_short_rows_has_two_packs_per_lane(dtype, group):
    constants = dict(reduction_of("LogSumExp", dtype, (2**20, 64), (1,)).kernel.constants)
    assert (constants["GROUP"], constants["UNROLL"], constants["ROWS"]) == (group, 2, 2)


def softmax_of(
    dtype: str, shape: tuple[int, ...], axis: tuple[int, ...], machine: work.Machine = MACHINE,
    strategy: str | None = None, masked: bool = False,
) -> work.Plan:  # fmt: skip
    dense = geometry.contiguous_strides(shape)
    names = (dtype, dtypes.accumulator(dtype), dtype)
    strides = (dense, dense if masked else (0,) * len(shape), dense)
    problem = softmax_problem("softmax", *names, shape, axis, strides, POINTERS, masked, 1.0)
    return softmax.plan(problem, strategy, machine)


@pytest.mark.parametrize(("masked", "packs"), [(False, 4), (True, 2)])
def test_masked_tiles_keep_fewer_packs_in_registers(masked, packs):
    (step,) = softmax_of("float16", (4096, 4096), (0,), masked=masked).steps
    assert dict(step.kernel.constants)["PACKS"] == packs
    assert step.shared % (8 * (2 + masked)) == 0 < step.shared  # packs of x, and of the mask beside them


@pytest.mark.parametrize(
    ("dtype", "shape", "axis", "strategy", "constants"),
    [
        ("float32", (2**20, 64), (1,), "rows", {"GROUP": 8, "PACKS": 2, "CLUSTER": 1}),  # eight lanes to a row
        ("float32", (4096, 127), (1,), "rows", {"GROUP": 16, "RAGGED": True}),
        ("float32", (2**16, 34), (1,), "rows", {"GROUP": 4, "RAGGED": True}),
        ("float32", (4096, 512), (1,), "rows", {"GROUP": 32, "RAGGED": False}),
        ("float32", (4096, 4096), (1,), "rows", {"GROUP": 0, "PACKS": 4, "CLUSTER": 1, "STAGED": 0}),  # a block
        ("float16", (4096, 4099), (1,), "rows", {"GROUP": 0, "VEC": 8, "RAGGED": True}),
        ("float32", (4096, 12672), (1,), "rows", {"BLOCK": 128, "PACKS": 8, "CLUSTER": 4}),  # small blocks
        ("float32", (4096, 131072), (1,), "rows", {"BLOCK": 256, "PACKS": 8, "CLUSTER": 16, "STAGED": 0}),
        ("float32", (256, 262144), (1,), "rows", {"BLOCK": 256, "PACKS": 8, "CLUSTER": 16, "STAGED": 2}),
        ("float32", (64, 2**20), (1,), "grid", {"BLOCK": 1024, "PACKS": 6, "RESIDENT": 1}),  # 16 blocks to a row
        ("float16", (64, 2**20), (1,), "grid", {"BLOCK": 1024, "PACKS": 6, "RESIDENT": 1}),
        ("float64", (4096, 4096), (1,), "rows", {"BLOCK": 256, "PACKS": 8, "CLUSTER": 1, "STAGED": 0}),
        ("float64", (4096, 32768), (1,), "rows", {"BLOCK": 128, "PACKS": 8, "CLUSTER": 4, "STAGED": 2}),
        ("float64", (512, 2**18), (1,), "rows", {"BLOCK": 512, "PACKS": 4, "CLUSTER": 16, "STAGED": 2}),
        ("float32", (2**16,), (0,), "rows", {"PACKS": 2, "CLUSTER": 16}),  # spread
        ("float32", (2**22,), (0,), "grid", {"PACKS": 6, "STAGED": 2}),
        ("float32", (2**26,), (0,), "grid_online", {}),
        ("float32", (2**22, 7), (0,), "grid_online", {}),
        ("float32", (4096, 4096), (0,), "columns", {"VEC": 4, "WIDE": 8, "BLOCK": 256, "CLUSTER": 8}),
        ("float32", (4096, 65536), (0,), "columns", {"VEC": 4, "WIDE": 16, "CLUSTER": 8}),  # far from row to row
        ("float64", (4096, 4096), (0,), "columns", {"VEC": 2, "WIDE": 8, "BLOCK": 256}),
        ("float16", (128, 1024, 256), (1,), "columns", {"VEC": 8, "WIDE": 8, "BLOCK": 256, "CLUSTER": 2}),
        ("float16", (4096, 4096), (0,), "columns", {"VEC": 8, "WIDE": 8, "BLOCK": 512, "CLUSTER": 4}),
        ("float32", (6, 2**20), (0,), "columns", {"WIDE": 128, "BLOCK": 128, "PACKS": 6}),  # a thread's own
        ("float32", (11, 2**20 + 1), (0,), "columns", {"VEC": 1, "WIDE": 128, "PACKS": 12}),  # narrow ones
        ("float64", (17, 2**20 + 1), (0,), "columns", {"VEC": 1, "WIDE": 32}),  # too many bytes
        ("float32", (24, 2**16 + 1), (0,), "columns", {"VEC": 1, "WIDE": 64}),  # too few threads
    ],
)
def test_softmax_chooses_by_shape_and_on_chip_capacity(dtype, shape, axis, strategy, constants):
    made = softmax_of(dtype, shape, axis)
    assert made.strategy == strategy
    assert constants.items() <= dict(made.steps[0].kernel.constants).items()


@pytest.mark.parametrize(
    ("cols", "funnel", "vec"), [(4089, 1, 4), (16384, 1, 4), (131072, 1, 4), (131073, 0, 1), (31, 0, 1)]
)
def test_misaligned_rows_use_funnel_loads_if_registers_hold_them(cols, funnel, vec):
    strides = ((cols + 7, 1), (0, 0), (cols, 1))  # of x, of no mask, of the result
    names = ("float32",) * 3
    problem = softmax_problem("softmax", *names, (4096, cols), (1,), strides, (4, 0, 0), masked=False, scale=1.0)
    constants = dict(softmax.plan(problem, "rows", MACHINE).steps[0].kernel.constants)
    assert (constants["FUNNEL"], constants["VEC"]) == (funnel, vec)
    assert not (constants["FUNNEL"] and constants["STAGED"])


@pytest.mark.parametrize(("rows", "teams"), [(64, 8), (63, 9), (7, 7), (1, 1)])  # nine have room
def test_grid_softmax_balances_rows_among_teams(rows, teams):
    (step,) = softmax_of("float32", (rows, 2**20), (1,), strategy="grid").steps
    assert step.grid[0] == 132 // teams * teams


@pytest.mark.parametrize(
    ("cols", "constants"),
    [
        (100, {"GROUP": 16, "PACKS": 8}),
        (700, {"GROUP": 32, "PACKS": 24}),
        (4096, {"GROUP": 0, "PACKS": 16, "BLOCK": 256}),
    ],
)
def test_narrow_packs_hold_as_many_bytes_per_thread(cols, constants):
    strides = ((2 * cols, 2), (0, 0), (cols, 1))  # of x, of no mask, of the result
    problem = softmax_problem(
        "softmax", *("float32",) * 3, (4096, cols), (1,), strides, (0, 0, 0), masked=False, scale=1.0
    )
    made = dict(softmax.plan(problem, "rows", MACHINE).steps[0].kernel.constants)
    assert ({"VEC": 1} | constants).items() <= made.items()


@pytest.mark.parametrize(
    ("dtype", "shape", "constants"),
    [
        ("float32", (2**18, 21), {"DENSE": True, "GROUP": 2, "VEC": 1, "PACKS": 12}),
        ("float32", (2**18, 10), {"DENSE": True, "GROUP": 1, "VEC": 2, "PACKS": 6}),
        ("float16", (2**18, 15), {"DENSE": True, "GROUP": 1, "VEC": 1, "PACKS": 16}),
        ("float64", (2**17, 15), {"DENSE": True, "GROUP": 2, "VEC": 1, "PACKS": 8}),
        ("float32", (2**18, 16), {"DENSE": False, "VEC": 4}),  # in whole packs
        ("float32", (2**15, 781), {"DENSE": False, "RAGGED": True}),
    ],
)
def test_short_rows_that_lie_one_after_the_other_come_as_one_piece(dtype, shape, constants):
    made = dict(softmax_of(dtype, shape, (1,)).steps[0].kernel.constants)
    assert constants.items() <= made.items()


def test_small_devices_hold_shorter_rows_on_chip():
    small = work.Machine(20, cluster=1, shared=48 * 1024)
    assert softmax_of("float32", (4096, 32768), (1,), small).strategy == "rows"
    assert softmax_of("float32", (4096, 131072), (1,), small).strategy == "grid_online"
    assert softmax_of("float32", (1000, 512), (0,), small).strategy == "columns"
    assert softmax_of("float32", (4096, 512), (0,), small).strategy == "grid_online"
    assert softmax_of("float32", (2**22,), (0,), small).strategy == "grid_online"
    for strategy in softmax.ON_CHIP:
        rule = f"^softmax: strategy '{strategy}' does not hold rows of 67108864 elements on this device's chip"
        with pytest.raises(ValueError, match=rule):
            softmax_of("float32", (2**26,), (0,), small, strategy=strategy)


@given(st.data())
def test_on_chip_plans_hold_whole_rows_within_limits(data):
    dtype = data.draw(st.sampled_from(("float16", "float32", "float64")))
    cols, rows = data.draw(st.integers(1, 400000)), data.draw(st.sampled_from((1, 3, 64, 5000)))
    masked, apart = data.draw(st.booleans()), data.draw(st.integers(0, 9))
    shared = data.draw(st.sampled_from((48, 99, 163, 227))) * 1024
    machine = work.Machine(132, data.draw(st.sampled_from((1, 8, 16))), shared, data.draw(st.sampled_from((0, 132))))
    shape, axis = data.draw(st.sampled_from((((rows, cols), (1,)), ((cols, rows), (0,)))))
    x = (shape[1] + apart, 1)
    for strategy, on_chip in softmax.ON_CHIP.items():
        names = (dtype, dtypes.accumulator(dtype), dtype)
        strides = (x, geometry.contiguous_strides(shape) if masked else (0, 0), geometry.contiguous_strides(shape))
        problem = softmax_problem("softmax", *names, shape, axis, strides, POINTERS, masked, 1.0)
        if (made := on_chip(problem, machine)) is None:
            continue
        (step,) = made.steps
        has = dict(step.kernel.constants)
        vec, size = has["VEC"], dtypes.ITEMSIZE[dtype]
        staged = step.shared // (step.block * vec * (size + masked))
        assert (staged > 0) == (has["STAGED"] > 0)
        threads = has.get("GROUP") or step.block // has.get("WIDE", 1)
        team = step.args[-1].values[5] or step.cluster  # blocks to a row
        packs = cols // (1 if strategy == "columns" else vec)
        assert team * threads * (has["PACKS"] + staged) >= packs
        state, wide = 2 * dtypes.ITEMSIZE[dtypes.accumulator(dtype)], has.get("WIDE")
        states = (has["BLOCK"] // max(32, wide) + step.cluster + 1) * vec * wide * state if wide else STATES
        assert step.shared == 0 or step.shared + states <= machine.shared // max(1, has.get("RESIDENT", 1))
        assert step.cluster <= machine.cluster and step.block <= has["BLOCK"] <= 1024 and step.block % 32 == 0
        assert step.cooperative == (strategy == "grid")


@given(st.data())
def test_packs_and_blocks_of_reductions_are_powers_of_two(data):
    """For any op, dtype and layout: loads, shuffles and shared memory require it."""
    op = data.draw(st.sampled_from(("Sum", "Max", "MaskedMean", "LogSumExp", "Dot")))
    x = data.draw(st.sampled_from(("bool", "float16", "float32", "float64", "complex64", "complex128")))
    other = {"MaskedMean": "bool", "Dot": x}.get(op) or data.draw(st.sampled_from((None, "bool")))
    shape = tuple(data.draw(st.lists(st.sampled_from((3, 20, 135, 640, 4099)), min_size=1, max_size=3)))
    axis = tuple(d for d in range(len(shape)) if data.draw(st.booleans()))
    spread = [n + data.draw(st.sampled_from((0, 0, 1, 4))) for n in shape]  # a slice of a larger array
    strides = geometry.contiguous_strides(spread)
    beside = tuple(s * data.draw(st.integers(0, 1)) for s in strides)
    kept = geometry.contiguous_strides(tuple(n for d, n in enumerate(shape) if d not in axis))
    pointers = tuple(data.draw(st.sampled_from((0, 0, size))) % 16 for size in (dtypes.ITEMSIZE[x], 1, 1))
    problem = reduction_problem(op, x, x, x, shape, axis, (strides, beside, kept), pointers, other)
    for strategy in ("rows", "columns"):
        (step,) = reductions.plan(problem, strategy, 132).steps
        constants = dict(step.kernel.constants)
        for name in {"VEC", "BLOCK", "GROUP", "TEAM", "ROWS", "WIDE", "STORED"} & set(constants):
            assert constants[name].bit_count() == 1, name
        assert 1 <= constants.get("UNROLL", 1) <= 16
        assert constants["VEC"] * dtypes.ITEMSIZE[x] <= PACK


def test_short_sums_of_small_integers_use_int32():
    for x, val, most in (("bool", "int64", 2**23), ("uint8", "uint64", 2**23), ("int16", "int64", 2**15)):
        assert summed_in(x, val, most) == "int32"
        assert summed_in(x, val, most + 1) == val
    for x, most in (("bool", 2**16), ("int8", 2**16), ("uint16", 1)):  # and of squares
        assert summed_in(x, "int64", most, 2) == "int32"
        assert summed_in(x, "int64", most + 1, 2) == "int64"
    for x, val in (("int32", "int64"), ("int8", "int8"), ("int8", "float64"), ("float16", "int64")):
        assert summed_in(x, val, 1 if x != "int32" else 2) == val


@pytest.mark.parametrize(("op", "power"), [("mean", 1), ("var", 2), ("std", 2)])
@pytest.mark.parametrize("dtype", [dtype for dtype in layouts.DTYPES if dtype.kind in "biu"], ids=str)
def test_means_and_variances_of_integers_are_exact_where_the_greatest_sums_fit_64_bits(op, power, dtype):
    """The greatest sums, also of squares, are those of as many unsigned integers of the same size."""
    fit = (2**63 - 1) // (2 ** (8 * dtype.itemsize) - 1) ** power  # so many of the greatest integers

    def is_exact(size: int) -> bool:
        (step,) = describe(getattr(gpuops, op), work.new_array("x", (size,), dtype, machine=MACHINE)).plan.steps
        types = dict(step.kernel.types)
        assert types["Tval"] == ("i64" if types["Op"].startswith(("Integer", "Long")) else "f64")
        return types["Tval"] == "i64"

    if not fit:  # four bytes: squares have 128 bits
        assert is_exact(2**20) == (dtype.itemsize == 4) and not is_exact(2**31 + 1)
        return
    most = 2 ** (fit.bit_length() - 1)
    assert is_exact(most)
    assert not is_exact(most + 1) and not is_exact(fit + 1)


def test_indices_have_32_bits_where_these_suffice():
    for length, index in ((65536, "i32"), (2**31, "i64")):
        steps = ((2**16, 0), (0, 1), (1,))  # offsets have 64 bits
        problem = reduction_problem("ArgMax", "int8", "int8", "int64", (2**16, length), (1,), steps)
        (step,) = reductions.plan(problem, None, 132).steps
        types = dict(step.kernel.types)
        assert (types["Offset"], types["Integer"], types["Op"]) == ("i64", index, "ArgMax<Tval, Integer>")


@pytest.mark.parametrize(
    ("op", "dtype", "short", "long"),
    [("MaskedVar", "float16", 56, 56), ("NanVar", "complex64", 80, 80), ("MaskedMeanVar", "float64", 80, 80),
     ("NanMean", "float16", 32, 32), ("MaskedMean", "int8", 5, 9)],
)  # fmt: skip
def test_partial_results_count_in_32_bits_where_these_suffice(op, dtype, short, long):
    for length, count, nbytes in ((2**31 - 1, "u32", short), (2**31, "i64", long)):
        steps = ((0, 1), (0, 0), (1,))  # a broadcast row: offsets have 32 bits
        problem = reduction_problem(op, dtype, dtype, "float32", (4, length), (1,), steps)
        (step,) = reductions.plan(problem, None, 132).steps
        assert (dict(step.kernel.types)["Integer"], problem.state) == (count, nbytes)


@pytest.mark.parametrize(
    ("op", "dtype", "shape", "kernel", "constants"),
    [
        # rows of busy reductions leave the kernel of small arrays sooner
        ("Sum", "int16", (16, 4096), "reduce_small", {}), ("IntegerVar", "int16", (16, 4096), "reduce_rows", {}),
        ("IntegerVar", "int16", (64, 1024), "reduce_small", {}), ("Sum", "float64", (1, 4096), "reduce_small", {}),
        ("Sum", "float32", (1, 4096), "reduce_rows", {}),
        # blocks that share long rows
        ("Var", "float32", (16, 2**22), "reduce_rows", {"VEC": 4, "UNROLL": 8, "RESIDENT": 512}),
        ("LongVar", "int32", (16, 2**22), "reduce_rows", {"VEC": 4, "UNROLL": 8, "RESIDENT": 1024}),
        ("Sum", "int32", (16, 2**22), "reduce_rows", {"VEC": 4, "UNROLL": 8}),
        # a thread has more packs before its partial result merges with others
        ("Sum", "float16", (8192, 8192), "reduce_rows", {"GROUP": 128}),
        ("NanVar", "float16", (8192, 8192), "reduce_rows", {"GROUP": 128}),
        ("Sum", "float16", (8192, 4096), "reduce_rows", {"GROUP": 64}),
    ],
)  # fmt: skip
def test_busy_reductions_of_rows(op, dtype, shape, kernel, constants):
    steps = geometry.contiguous_strides(shape), (0, 0), (1,)
    val = "int64" if dtype.startswith("int") else dtype
    problem = reduction_problem(op, dtype, val, val, shape, (1,), steps)
    (step,) = reductions.plan(problem, None, 132).steps
    assert step.kernel.name == kernel and constants.items() <= dict(step.kernel.constants).items()


@pytest.mark.parametrize("op", PLANS)
def test_grids_fit_the_hardware(op):
    for rows, cols in ((1, 2**33), (2**33, 1), (2**20, 2**12), (2**16, 2**16)):
        for step in PLANS[op](rows, cols).steps:
            x, y, z = step.grid
            assert 0 < x <= work.MAX_GRID[0]
            assert 0 < y <= 65535
            assert z == 1


@pytest.mark.parametrize("rows,cols", [(1, 2**30), (2**10, 2**20), (2**20, 2**10), (2**30, 1), (3, 12345678)])
def test_reductions_take_at_most_a_mebibyte_of_workspace(rows, cols):
    on_device = [name for name in reductions.STRATEGIES if not name.endswith(reductions.ON_HOST)]
    for strategy in (None, *on_device):
        made = sum_of_rows(rows, cols, strategy)
        assert sum(nbytes for _, nbytes in made.workspace) <= 2**20
        assert made.scratch <= work.SCRATCH == 2**22


@pytest.mark.parametrize("cols", [2**31 - 256, 2**31, 2**33])
def test_long_rows_get_64_bit_indices(cols):
    (step, *_) = sum_of_rows(1, cols, "cross").steps
    assert dict(step.kernel.types)["Index"] == ("u32" if cols < 2**31 else "i64")


def test_too_many_blocks_for_a_grid_raise():
    with pytest.raises(ValueError, match="^softmax: strategy 'block_tree' takes at most 2147483647 blocks"):
        softmax_of_rows(2**31, 1, "block_tree")


def test_planning_imports_no_cupy():
    code = (
        "import sys, pkgutil, importlib, gpuops.plan\n"
        "for module in pkgutil.iter_modules(gpuops.plan.__path__, 'gpuops.plan.'):\n"
        "    importlib.import_module(module.name)\n"
        "print([name for name in sys.modules if name.startswith('cupy')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr


# ---------------------------------------------------------------------------------------------------------- matmul


def layout_of(
    name: str, shape: geometry.Shape, order: str = "C", dtype: str = "float32", pointer: int = 0
) -> products.Layout:
    """An array of dense matrices, row-major or, in order F, column-major."""
    rows, cols = shape[-2:]
    *batch, _, _ = geometry.contiguous_strides(shape)
    return products.Layout(name, dtype, (*batch, *((cols, 1) if order == "C" else (1, rows))), pointer)


def product_of(
    m: int, n: int, k: int, orders: str = "CCC", batch: geometry.Shape = (), dtype: str = "float32",
    **more: products.Layout,
) -> products.Problem:  # fmt: skip
    """A product of dense matrices. ``orders`` are those of out, a, b and perhaps c; ``more`` replaces layouts."""
    shapes = {"out": (m, n), "a": (m, k), "b": (k, n), "c": (m, n)}
    dense = {name: layout_of(name, (*batch, *shapes[name]), order, dtype) for name, order in zip(shapes, orders)}
    operand_layouts = {"c": None} | dense | more
    one = np.ones((), dtypes.accumulator(dtype)).tobytes()
    return products.problem(
        dtype, (m, n, k), batch, {n: operand_layouts[n] for n in shapes if operand_layouts[n]}, one, one, False
    )


def test_column_major_results_swap_and_transpose_operands():
    p = product_of(30, 50, 70, "FCFC")
    assert (p.m, p.n, p.k) == (50, 30, 70)
    assert (p.a.name, p.a.row, p.a.col) == ("b", 70, 1)  # b is column-major, so its transpose is row-major
    assert (p.b.name, p.b.row, p.b.col) == ("a", 1, 70)
    assert (p.out.row, p.out.col) == (30, 1)
    assert (p.c.row, p.c.col) == (1, 50)
    assert product_of(30, 50, 70)[:3] == (30, 50, 70)


@given(st.data())
def test_the_normal_form_multiplies_the_same_elements(data):
    m, n, k = (data.draw(st.integers(1, 4)) for _ in range(3))
    batch = tuple(data.draw(st.lists(st.integers(1, 3), max_size=3)))
    hosts = {}
    for name, shape in {"out": (m, n), "a": (m, k), "b": (k, n), "c": (m, n)}.items():
        hosts[name] = data.draw(layouts.laid_out((*batch, *shape), np.dtype("f4")))
    given_ = {
        name: products.Layout(name, "float32", tuple(s // 4 for s in x.strides), x.ctypes.data % 16)
        for name, x in hosts.items()
    }
    p = product_of(m, n, k, batch=batch, **given_)
    assert p.number == math.prod(batch) and 1 not in p.batch
    assert abs(p.out.row) >= abs(p.out.col)

    def where(i: int, j: int, depth: int, place: geometry.Shape) -> tuple[int, ...]:
        """The element offsets of out, a, b and c for one multiplication."""
        steps = ((p.out, i, j), (p.a, i, depth), (p.b, depth, j), (p.c, i, j))
        at = {
            x.name: x.offset // 4 + r * x.row + q * x.col + sum(s * t for s, t in zip(x.batch, place))
            for x, r, q in steps
        }
        return tuple(at[name] for name in hosts)

    def there(i: int, j: int, depth: int, place: geometry.Shape) -> tuple[int, ...]:
        steps = {"out": (i, j), "a": (i, depth), "b": (depth, j), "c": (i, j)}
        return tuple(sum(s * t for s, t in zip(given_[x].strides, (*place, *steps[x]))) for x in hosts)

    got = [where(i, j, d, at) for i, j, d in np.ndindex(p.m, p.n, p.k) for at in np.ndindex(p.batch)]
    assert sorted(got) == sorted(there(i, j, d, at) for i, j, d in np.ndindex(m, n, k) for at in np.ndindex(batch))


def test_batch_dims_merge_if_all_operands_allow_it():
    assert product_of(4, 5, 6, batch=(2, 3, 4)).batch == (24,)
    assert product_of(4, 5, 6, batch=(1, 1)).batch == ()
    b = products.Layout("b", "float32", (0, 30, 5, 1), 0)  # repeats along the outer dim
    p = product_of(4, 5, 6, batch=(2, 3), b=b)
    assert (p.batch, p.b.batch, p.a.batch) == ((2, 3), (0, 30), (72, 24))
    p = product_of(4, 5, 6, batch=(2, 3), b=b._replace(strides=(0, 0, 5, 1)))
    assert (p.batch, p.b.batch) == ((6,), (0,))
    c = products.Layout("c", "float32", (0, 1, 0, 0), 0)
    p = product_of(4, 5, 6, batch=(2, 3), c=c)
    assert (p.batch, p.c.batch, p.c.row, p.c.col) == ((2, 3), (0, 1), 0, 0)


def test_negative_batch_strides_of_out_are_flipped():
    out = products.Layout("out", "float32", (-20, 5, 1), 12)
    p = product_of(4, 5, 6, batch=(3,), out=out)
    assert (p.out.batch, p.out.offset, p.out.pointer) == ((20,), -160, 12)
    assert (p.a.batch, p.a.offset) == ((-24,), 192)


@pytest.mark.parametrize("size", [(4096,) * 3, (8192, 8192, 64), (4000, 5000, 6000)], ids=str)
def test_large_products_use_large_tiles(size):
    choice = products.best(product_of(*size), MACHINE)
    assert (choice.tile[:2], choice.splits) == ((128, 256), 1)
    assert products.choose(product_of(*size), MACHINE) == "pipelined"


@pytest.mark.parametrize("size", [(1024,) * 3, (64, 4096, 4096), (128 * 33, 128, 2**14), (64, 64, 2**20)], ids=str)
def test_smaller_products_occupy_most_multiprocessors(size):
    tile, whole, splits, cycles = products.best(product_of(*size), MACHINE)
    tiles = -(-size[0] // tile.m) * -(-size[1] // tile.n)
    assert 32 <= whole + (tiles - whole) * splits <= MACHINE.multiprocessors
    others = [products.ways_to_share(product_of(*size), tile, MACHINE) for tile in products.TILES]
    assert cycles == min(choice.cycles for choices in others for choice in choices)


@pytest.mark.parametrize("size", [(1152,) * 3, (1536,) * 3, (2560,) * 3, (5120,) * 3], ids=str)
def test_partial_last_waves_use_split_k(size):
    tile, whole, splits, cycles = products.best(product_of(*size), MACHINE)
    tiles = -(-size[0] // tile.m) * -(-size[1] // tile.n)
    assert whole == tiles // MACHINE.multiprocessors * MACHINE.multiprocessors > 0
    assert MACHINE.multiprocessors // 3 < (tiles - whole) * splits <= MACHINE.multiprocessors
    alone, *_ = products.ways_to_share(product_of(*size), tile, MACHINE)
    assert alone.whole == tiles and alone.cycles > cycles


@pytest.mark.parametrize("tiles", [33, 44, 66, 2, 1])
@pytest.mark.parametrize("multiprocessors", [132, 148, 20])
def test_split_k_workspace_is_at_most_8_mebibytes(multiprocessors, tiles):
    machine = MACHINE._replace(multiprocessors=multiprocessors)
    for side in (64, 128):
        for k in (4096, 2**14, 2**17):
            made = products.plan(product_of(side * tiles, side, k), "pipelined", machine)
            assert sum(nbytes for _, nbytes in made.workspace) <= 8 * 2**20


def test_small_products_use_small_tiles_and_split_long_k():
    choice = products.best(product_of(256, 256, 256), MACHINE)
    assert choice.tile[:3] == (32, 32, 8) and choice.splits == 1
    long = products.best(product_of(256, 256, 2**16), MACHINE)
    assert long.splits > 1 and long.tile.slices > 1 and long.whole == 0
    tiles = math.prod(-(-256 // side) for side in long.tile[:2])
    assert MACHINE.multiprocessors // 2 < tiles * long.splits <= MACHINE.multiprocessors


def test_matmul_picks_kernel_by_dtype_and_factors():
    for dtype in dtypes.CTYPES:
        expected = {"float32": "pipelined"}.get(dtype, "cublas" if dtype in products.BLAS else "warptile")
        assert products.choose(product_of(1024, 1024, 1024, dtype=dtype), MACHINE) == expected
        captured = MACHINE._replace(blas=False)  # cuBLAS cannot be captured in a graph
        expected = {"float32": "pipelined"}.get(dtype, "warptile")
        assert products.choose(product_of(64, 64, 64, dtype=dtype), captured) == expected
    half = layout_of("b", (64, 64), dtype="float16")
    assert products.choose(product_of(64, 64, 64, b=half), MACHINE) == "cublas"  # with b copied to float32
    large = product_of(1024, 1024, 1024)
    assert products.choose(large._replace(alpha=bytes(4)), MACHINE) == "pipelined"
    double = product_of(64, 64, 64, dtype="float64")
    assert products.choose(double._replace(alpha=bytes(8)), MACHINE) == "warptile"  # for alpha 0, BLAS skips a and b


def test_matmul_picks_kernel_by_shape():
    for sizes, orders, batch, strategy in (
        ((256, 256, 256), "CCC", (), "pipelined"), ((1023, 1023, 1023), "CCC", (), "cublas"),
        ((255, 255, 255), "CCC", (), "pipelined"), ((4095, 4095, 4095), "CCC", (), "pipelined"),
        ((2048, 2048, 2048), "CCF", (), "cublas"), ((256, 8192, 8192), "CCF", (), "cublas"),
        ((8192, 8192, 256), "CCF", (), "pipelined"), ((1024, 1024, 1024), "CCF", (), "pipelined"),
        ((4096, 4096, 4096), "CFC", (), "pipelined"), ((4096, 4096, 4096), "CFF", (), "pipelined"),
        ((1023, 1023, 1024), "FCC", (), "cublas"), ((64, 64, 64), "CCC", (1024,), "pipelined"),
        ((512, 512, 512), "CCC", (64,), "pipelined"), ((4092, 4092, 4092), "CCC", (), "pipelined"),
    ):  # fmt: skip
        assert products.choose(product_of(*sizes, orders, batch), MACHINE) == strategy
    for strides in ((512, 2), (256, -1)):  # cuBLAS would need a copy
        a = products.Layout("a", "float32", strides, 0)
        assert products.choose(product_of(256, 256, 256, a=a), MACHINE) == "pipelined"


def test_devices_without_shared_memory_for_a_tile():
    tiny = MACHINE._replace(shared=2**13)
    assert products.best(product_of(64, 64, 64), tiny) is None
    assert products.choose(product_of(64, 64, 64), tiny) == "cublas"
    with pytest.raises(ValueError, match="^matmul: strategy 'pipelined' takes .* this device has 8192$"):
        products.plan(product_of(64, 64, 64), "pipelined", tiny)


SIDES = st.one_of(st.integers(1, 300), st.sampled_from((512, 1000, 1024, 2048, 4096, 5000, 8192, 10**5, 2**20)))


@given(SIDES, SIDES, SIDES, st.sampled_from(((), (2,), (64,), (3, 5))), st.sampled_from((48, 64, 99, 227)))
def test_split_k_is_bounded(m, n, k, batch, shared):
    machine = MACHINE._replace(shared=shared * 1024)
    p = product_of(m, n, k, batch=batch)
    tile, whole, splits, _ = products.best(p, machine)
    assume(p.number * -(-p.m // tile.m) * -(-p.n // tile.n) <= work.MAX_GRID[0])  # more are refused
    made = products.plan(p, "pipelined", machine)
    (step,) = made.steps
    has = dict(step.kernel.constants)
    assert (has["BLOCK_M"], has["BLOCK_N"], has["SLICES"], has["DEPTH"]) == tile[:4]
    assert step.shared == tile.shared <= machine.shared
    tiles = p.number * -(-p.m // tile.m) * -(-p.n // tile.n)
    sharing = (tiles - whole) * splits
    assert step.grid == (whole + sharing, 1, 1) and step.block == has["THREADS"] and has["SPLIT"] == (splits > 1)
    if splits == 1:
        assert whole == tiles
        assert made.workspace == () and made.scratch == 0 and step.args[-4:-1] == (None, None, work.NO_LAUNCH)
        return
    assert whole % machine.multiprocessors == 0 < sharing <= machine.multiprocessors  # which run together
    assert tiles - whole <= work.TICKETS and made.scratch == 8 * work.TICKETS
    assert -(-k // tile.step) >= products.LEAST * splits  # every block has work
    ((name, nbytes),) = made.workspace
    assert name == "partials" and nbytes == sharing * 4 * tile.m * tile.n <= 8 * 2**20


def test_tile_table_is_consistent():
    for tile in products.TILES:
        assert tile.threads * math.prod(tile.thread) == tile.m * tile.n * tile.slices
        assert tile.shared >= 4 * 2 * tile.step * (tile.m + tile.n)
        assert tile.resident * tile.shared <= 164 * 1024 and tile.resident * tile.threads <= 1024
    assert any(tile.shared <= 48 * 1024 for tile in products.TILES)  # every device has room for one


@pytest.mark.parametrize(
    ("strides", "pointer", "size", "k", "way"),
    [
        ((1, 64), 0, 64, 32, "packed"), ((1, 68), 0, 64, 31, "packed"), ((1, 64), 4, 64, 32, "across"),
        ((1, 63), 0, 64, 32, "across"), ((1, 64), 0, 62, 32, "across"), ((1, -64), 0, 64, 32, "packed"),
        ((-1, 64), 12, 64, 32, "across"), ((2, 128), 0, 64, 32, "across"), ((1, 0), 0, 64, 32, "packed"),
        ((32, 1), 0, 64, 32, "turned"), ((36, 1), 0, 63, 32, "turned"), ((-32, 1), 0, 64, 32, "turned"),
        ((32, 1), 8, 64, 32, "deep"), ((33, 1), 0, 64, 32, "deep"), ((32, 1), 0, 64, 30, "deep"),
        ((32, -1), 12, 64, 32, "deep"), ((64, 2), 0, 64, 32, "deep"), ((0, 1), 0, 64, 32, "turned"),
        ((0, 0), 0, 64, 32, "across"), ((5, 5), 0, 64, 32, "across"),
    ],
)  # fmt: skip
def test_panel_way_follows_operand_strides_and_alignment(strides, pointer, size, k, way):
    matrix = products.Matrix("a", "float32", *strides, 0, pointer, ())
    assert products.way(matrix, size, k) == way
    whole = matrix._replace(batch=(4 * size * k,))
    assert products.way(whole, size, k) == way
    if way in ("packed", "turned"):
        narrow = "across" if abs(strides[0]) <= abs(strides[1]) else "deep"
        assert products.way(matrix._replace(batch=(size * k + 1,)), size, k) == narrow  # misaligned batch
        assert products.way(matrix._replace(offset=4), size, k) == narrow
        assert products.way(matrix._replace(offset=-16), size, k) == way


@pytest.mark.parametrize(
    ("orders", "ways"),
    [("CCC", ("turned", "packed")), ("CFC", ("packed", "packed")), ("CCF", ("turned", "turned")),
     ("CFF", ("packed", "turned")), ("FCC", ("packed", "turned")), ("FFF", ("turned", "packed"))],
)  # fmt: skip
def test_panel_ways_by_memory_order(orders, ways):
    (step,) = products.plan(product_of(256, 512, 1024, orders), None, MACHINE).steps
    has = dict(step.kernel.constants)
    assert (has["WAY_A"], has["WAY_B"]) == tuple(products.WAYS[way] for way in ways)
    assert has["VEC_OUT"] == 4


def test_offsets_within_large_panels_are_64_bit():
    def offset(**more: Any) -> str:
        (step,) = products.plan(product_of(64, 64, 64, **more), "pipelined", MACHINE).steps
        return dict(step.kernel.types)["Offset"]

    def far(name: str, *strides: int) -> dict[str, Any]:
        return {name: products.Layout(name, "float32", strides, 0)}

    assert offset() == "i32"
    for row, col in ((2**26, 1), (1, 2**26), (-(2**26), 1), (1, -(2**26))):
        assert offset(**far("a", row, col)) == offset(**far("b", row, col)) == "i64"
    assert offset(**far("a", 2**20, 1)) == "i32"
    assert offset(**far("out", 2**40, 1)) == "i64"


def test_vector_widths_of_the_simple_matmul_kernels():
    def vectors(strategy: str, m: int, n: int, k: int, orders: str = "CCC", **more: Any) -> tuple[int, ...]:
        (step,) = products.plan(product_of(m, n, k, orders, **more), strategy, MACHINE).steps
        return tuple(dict(step.kernel.constants)[name] for name in ("VEC_A", "VEC_B", "VEC_OUT"))

    for strategy in ("vectorized", "warptile"):
        assert vectors(strategy, 33, 64, 32) == (4, 4, 4)
        assert vectors(strategy, 33, 64, 31) == (1, 4, 4)
        assert vectors(strategy, 33, 63, 32) == (4, 1, 1)
        assert vectors(strategy, 64, 64, 32, "CFC") == (1, 4, 4)
        assert vectors(strategy, 64, 64, 32, a=layout_of("a", (64, 32), pointer=4)) == (1, 4, 4)
        assert vectors(strategy, 64, 64, 32, dtype="int8") == (4, 4, 4)


# cuBLAS


def blas_of(*args: Any, **options: Any) -> work.Plan:
    return products.plan(product_of(*args, **options), "cublas", MACHINE)


def kinds_of(made: work.Plan) -> list[str]:
    """The kinds of the steps."""
    return ["gemm" if isinstance(step, products.Gemm) else step.kernel.name.split("_")[0] for step in made.steps]


@pytest.mark.parametrize("orders", ["CCC", "CFC", "CCF", "CFF", "FCC"])
def test_cublas_takes_row_and_column_major_operands(orders):
    made = blas_of(30, 50, 70, orders)
    assert made.workspace == ()
    (step,) = made.steps
    m, n, k = (50, 30, 70) if orders[0] == "F" else (30, 50, 70)
    assert (step.sizes, step.batch) == ((m, n, k), 1)
    columns = [order == "F" for order in orders[1:]]
    turned = tuple(not c for c in columns[::-1]) if orders[0] == "F" else tuple(columns)
    assert step.turned == turned
    assert step.leading == tuple(size[t] for size, t in (((k, m), turned[0]), ((n, k), turned[1]), ((n, m), False)))
    assert step.beta == bytes(4)


def test_cublas_takes_padded_rows():
    a = products.Layout("a", "float32", (99, 1), 4)
    (step,) = blas_of(30, 50, 70, a=a).steps
    assert step.leading == (99, 50, 50)


def test_unsupported_operands_are_copied_for_cublas():
    for strides in ((140, 2), (-70, 1), (0, 1), (1, -30), (69, 1)):
        made = blas_of(30, 50, 70, a=products.Layout("a", "float32", strides, 0))
        assert kinds_of(made) == ["broadcast", "gemm"]
        assert made.workspace == (("dense_a", 4 * 30 * 70),)
    made = blas_of(30, 50, 70, b=layout_of("b", (70, 50), dtype="int16"))  # converted
    assert (kinds_of(made), made.workspace) == (["broadcast", "gemm"], (("dense_b", 4 * 70 * 50),))
    for out in (products.Layout("out", "float32", (100, 2), 0), layout_of("out", (30, 50), dtype="float64")):
        made = blas_of(30, 50, 70, out=out)
        assert (kinds_of(made), made.workspace) == (["gemm", "broadcast"], (("dense_out", 4 * 30 * 50),))


def test_cublas_leading_dimensions_fit_31_bits():
    for strides in ((2**31, 1), (1, 2**31)):
        far = {name: products.Layout(name, "float32", strides, 0) for name in ("out", "a", "b")}
        for name, layout in far.items():
            gemm = next(step for step in blas_of(30, 30, 30, **{name: layout}).steps if isinstance(step, products.Gemm))
            assert max(gemm.leading) < 2**31


def test_cublas_accumulates_into_its_result():
    made = blas_of(30, 50, 70, "CCCC")
    assert kinds_of(made) == ["broadcast", "gemm"] and made.workspace == ()
    assert made.steps[-1].beta == np.float32(1).tobytes()
    out = layout_of("out", (30, 50))
    assert kinds_of(blas_of(30, 50, 70, c=out)) == ["gemm"]  # in place
    sliced = products.Layout("out", "float32", (100, 2), 0)
    made = blas_of(30, 50, 70, out=sliced, c=sliced)
    assert kinds_of(made) == ["broadcast", "gemm", "broadcast"]


def test_cublas_is_called_once_for_a_batch_with_one_stride():
    (step,) = blas_of(30, 50, 70, batch=(2, 3)).steps
    assert (step.batch, step.strides) == (6, (2100, 3500, 1500))
    b = products.Layout("b", "float32", (0, 0, 50, 1), 0)
    (step,) = blas_of(30, 50, 70, batch=(2, 3), b=b).steps
    assert (step.batch, step.strides) == (6, (2100, 0, 1500))
    made = blas_of(30, 50, 70, batch=(2, 3), b=b._replace(strides=(0, 3500, 50, 1)))
    assert [step.batch for step in made.steps] == [3, 3]
    assert [step.a.offset for step in made.steps] == [0, 4 * 3 * 2100]
    assert [step.b.offset for step in made.steps] == [0, 0]
    assert [step.out.offset for step in made.steps] == [0, 4 * 3 * 1500]


def test_copies_for_cublas_keep_broadcast_batches():
    b = products.Layout("b", "float32", (0, 0, 100, 2), 0)
    made = blas_of(30, 50, 70, batch=(2, 3), b=b)
    assert made.workspace == (("dense_b", 4 * 70 * 50),)
    assert kinds_of(made) == ["broadcast", "gemm"] and made.steps[-1].strides == (2100, 0, 1500)
    made = blas_of(30, 50, 70, batch=(2, 3), b=b._replace(strides=(0, 7000, 100, 2)))
    assert made.workspace == (("dense_b", 4 * 3 * 70 * 50),)
    assert kinds_of(made) == ["broadcast", "gemm", "gemm"]


#: Sizes m, n and k, layouts of out, a and b, and the copies of loose rows that a product of halves takes: none if it is
#: small, if elements take part in few multiply-adds, or if it takes too much memory.
LOOSE = (
    ((1999, 3001, 1777), "CCC", {"a": (1999, 1784), "b": (1784, 3008), "out": (1999, 3008)}),
    ((2048, 2048, 2047), "CFC", {"a": (2048, 2048), "b": (2048, 2048)}),
    ((2048, 2047, 2048), "CCF", {"b": (2048, 2048), "out": (2048, 2048)}),
    ((2048, 2048, 2048), "CCC", {}), ((2047, 2048, 2048), "CCC", {}),  # nothing is loose
    ((513, 513, 513), "CCC", {}), ((300_007, 77, 77), "CCC", {}), ((2**15 - 1, 2**14 + 1, 2**14), "CCC", {}),
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize(("sizes", "orders", "copied"), LOOSE, ids=str)
def test_halves_in_loose_rows_are_copied_for_cublas_where_that_pays(dtype, sizes, orders, copied):
    made, itemsize = blas_of(*sizes, orders, dtype=dtype), np.dtype(np.float16).itemsize
    shapes = copied if dtype != "float64" else {}
    assert made.workspace == tuple((f"dense_{name}", itemsize * m * n) for name, (m, n) in shapes.items())
    (step,) = (step for step in made.steps if isinstance(step, products.Gemm))
    m, n, k = sizes
    assert step.sizes == ((m, -(-n // 8) * 8, -(-k // 8) * 8) if shapes else sizes)


def test_products_with_empty_k_have_a_plan():
    for strategy in products.STRATEGIES:
        made = products.plan(product_of(30, 50, 0), strategy, MACHINE)
        (step,) = made.steps
        name = "naive" if strategy in ("cublas", "pipelined") else strategy
        assert (made.strategy, step.kernel.name) == (strategy, f"matmul_{name}")


def test_too_many_matmul_tiles_for_a_grid_raise():
    for strategy in (*products.STRATEGIES, None):
        if strategy != "cublas":
            rule = r"takes at most 2147483647 blocks in x, 1 products of \(4294967296, 1\) @ \(1, 1073741824\) need "
            with pytest.raises(ValueError, match=f"^matmul: strategy '{strategy or 'pipelined'}' {rule}"):
                products.plan(product_of(2**32, 2**30, 1), strategy, MACHINE)


def test_matmul_parameters_match_the_cuda_struct():
    p = product_of(30, 50, 70, "CFCF", (2,))._replace(alpha=np.float32(3).tobytes(), scaled=True)
    (step,) = products.plan(p, "naive", MACHINE).steps
    *operands, params = step.args
    assert operands == [work.Operand(name) for name in ("a", "b", "c", "out")]
    data = bytes(params)
    sizes, packed = struct.unpack_from("<3q2I8q2i", data), struct.calcsize("<3q2I8q2i")
    assert sizes == (30, 50, 70, 0, 1, 1, 30, 50, 1, 1, 30, 50, 1, 1, 1)
    assert struct.unpack_from("<f12xf12x", data, packed) == (3, 1)
    batch = p.axes(p.out, p.a, p.b, p.c)
    batches = Struct("Batches", Field("Axes<BATCH, 4>", "batch", ""))
    assert data[packed + 32 :] == bytes(batches.pack("i64", batch=batch))


# ------------------------------------------------------------------------------------------------- bounds of indices


def far_reductions(reach: int) -> list[tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Shapes, axes and strides of arrays whose last element is ``reach`` from the first, along either kind of dim."""
    return [
        ("rows", (3, reach // 2), (1,), (1, 2)), ("columns", (reach // 4, 64), (0,), (4, 1)),
        ("rows", (2, 7), (1,), (reach - 6, 1)), ("columns", (7, 2), (0,), (1, reach - 6)),
    ]  # fmt: skip


EDGE = 2**31 - 2**10  # limit of 32-bit offsets, with a margin for packs that begin before or end after an element


@pytest.mark.parametrize("op", ["Sum", "Max", "LogSumExp"])
@pytest.mark.parametrize("strategy", [None, "rows", "columns", "shuffle"])
def test_reduction_offsets_become_64_bit_in_time(op, strategy):
    for reach in (EDGE - 8, EDGE, 2**31, 2**32 - 8, 2**32, 2**33):
        for _, shape, axis, strides in far_reductions(reach):
            span = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
            kept = geometry.contiguous_strides(tuple(n for d, n in enumerate(shape) if d not in axis))
            operand_layouts = strides, (0,) * 2, kept
            problem = reduction_problem(op, *("float32",) * 3, shape, axis, operand_layouts, POINTERS)
            wanted = "i32" if span < EDGE else "i64"
            assert abs(span - reach) < 2**7
            for step in reductions.plan(problem, strategy, 132).steps:
                assert dict(step.kernel.types)["Offset"] == wanted, (shape, strides, strategy)


@pytest.mark.parametrize("backwards", [False, True])
def test_map_offsets_become_64_bit_in_time(backwards):
    for reach in (EDGE - 3, EDGE, 2**31, 2**32 - 1, 2**32, 2**33):
        step = -reach if backwards else reach
        out = maps.Arg("out", "u32", 4, (1, 2))
        for strategy in ("vectorized", "collapsed"):
            made = maps.plan("Expand", (2, 2), out, (maps.Arg("a", "u32", 4, (1, step)),), strategy)
            (launch,) = made.steps
            assert dict(launch.kernel.types)["Offset"] == ("i32" if reach < EDGE else "i64")


def test_softmax_offsets_become_64_bit_in_time():
    for reach in (EDGE - 2, EDGE, 2**31, 2**32, 2**33):
        for strategy in (None, "naive", "block_online", "rows"):
            problem = softmax_problem(
                "softmax", *("float32",) * 3, (2, 8), (1,), ((reach, 1), (0, 0), (8, 1)), POINTERS, False, 1.0
            )
            for step in softmax.plan(problem, strategy, MACHINE).steps:
                assert dict(step.kernel.types)["Offset"] == ("i32" if reach + 7 < EDGE else "i64")


def test_product_offsets_become_64_bit_in_time():
    for row, expected in ((2**30 // 256 - 1, "i32"), (2**30 // 32, "i64"), (2**31, "i64"), (2**32, "i64")):
        problem = product_of(64, 64, 64)
        problem = problem._replace(a=problem.a._replace(row=row))
        (step,) = products.plan(problem, "pipelined", MACHINE).steps
        assert dict(step.kernel.types)["Offset"] == expected


def test_check_grid_checks_every_dim():
    assert work.check_grid("op", "kernel", (5, 1), "things") == (5, 1, 1)
    assert work.check_grid("op", "kernel", work.MAX_GRID, "things") == (2**31 - 1, 65535, 1)
    for grid, axis in (((2**31, 1), "x"), ((1, 2**16), "y")):
        with pytest.raises(ValueError, match=f"^op: kernel takes at most .* blocks in {axis}, 7 of 8 things need"):
            work.check_grid("op", "kernel", grid, "{} of {} things", 7, 8)


@pytest.mark.parametrize("length", [65535 * 2, 65535 * 2 + 1, 200000, 2**24 + 1])
def test_stepped_grids_of_long_dims_fit_the_hardware(length):
    out = maps.Arg("out", "u64", 8, (4, 1))
    made = maps.plan("Expand", (length, 4), out, (maps.Arg("a", "u64", 8, (0, 1)),), "stepped")
    for step in made.steps:
        assert step.kernel.name == "broadcast_stepped"
        assert all(0 < blocks <= most for blocks, most in zip(step.grid, (*work.MAX_GRID, 1), strict=True))


def test_where_grids_of_large_results_fit_the_hardware():
    shape = (2**20, 2**5, 2**5)
    out = maps.Arg("out", "bits128", 16, geometry.contiguous_strides(shape))
    condition = maps.Arg("a", "u8", 1, (0, 0, 1))
    x, y = (maps.Arg(name, "bits128", 16, strides) for name, strides in (("b", (0, 32, 1)), ("c", (0, 1, 0))))
    for strategy in (None, "stepped"):
        for step in maps.plan("Where", shape, out, (condition, x, y), strategy).steps:
            assert all(0 < blocks <= most for blocks, most in zip(step.grid, (*work.MAX_GRID, 1), strict=True))
