"""The pure half: geometry, plans and their bytes, with no device at all."""

from __future__ import annotations

import itertools
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuops import plan
from gpuops.kernels import broadcast, reduce, softmax
from gpuops.plan import Axes
from tests import layouts

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
    """Where each operand is at every step of a walk, sorted."""
    strides = np.array(walk.strides, int).reshape(len(starts), len(walk.sizes))
    return sorted(tuple((strides @ step + starts).tolist()) for step in itertools.product(*map(range, walk.sizes)))


@given(axes())
def test_normalize_visits_the_same_elements(walk):
    normal, starts = plan.normalize(walk)
    assert visited(normal, starts) == visited(walk, (0,) * len(walk.strides))


@given(axes())
def test_normalize_leaves_nothing_to_merge(walk):
    normal, _ = plan.normalize(walk)
    assert 1 not in normal.sizes
    for outer in range(len(normal.sizes) - 1):
        size = normal.sizes[outer + 1]
        assert any(s[outer] != size * s[outer + 1] for s in normal.strides)


@given(axes())
def test_normalize_flips_and_sorts_the_first_operand(walk):
    normal, _ = plan.normalize(walk)
    first = normal.strides[0]
    assert all(s >= 0 for s in first)
    moving = [s for s in first if s]
    assert moving == sorted(moving, reverse=True)
    assert list(first) == [0] * (len(first) - len(moving)) + moving


@given(axes())
def test_normalize_is_idempotent(walk):
    normal, _ = plan.normalize(walk)
    assert plan.normalize(normal) == (normal, (0,) * len(normal.strides))


@pytest.mark.parametrize("layout", ["C", "F", "transposed", "reversed", "unaligned"])
def test_dense_arrays_become_one_dim(layout):
    x = layouts.lay_out(np.zeros((3, 4, 5), "u1"), layout)
    normal, _ = plan.normalize(Axes(x.shape, (x.strides,)))
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
    stored, magic, shift = struct.unpack("<QII", plan.divisor(value))
    assert stored == value
    total = (n * magic >> 32) + n
    assert total < 2**32
    return total >> shift


@given(axes())
def test_packed_axes_are_the_struct_of_the_kernels(walk):
    rank = walk.rank_class
    data = walk.packed()
    assert len(data) == rank * (16 + 8 * len(walk.strides))
    sizes = tuple(size for size, _, _ in struct.iter_unpack("<QII", data[: 16 * rank]))
    strides = struct.unpack(f"<{rank * len(walk.strides)}q", data[16 * rank :])
    pad = rank - len(walk.sizes)
    assert sizes == (1,) * pad + walk.sizes
    for k, operand in enumerate(walk.strides):
        assert strides[k * rank : (k + 1) * rank] == (0,) * pad + operand


def test_rank_classes_hold_every_rank_of_numpy():
    for rank in range(33):
        assert Axes((2,) * rank, ((0,) * rank,)).rank_class in plan.RANKS


@given(axes(), st.sampled_from((1, 2, 4)))
def test_packs_visit_the_first_of_every_few_elements(walk, vec):
    normal, starts = plan.normalize(walk)
    if normal.sizes and normal.sizes[-1] % vec == 0:
        packs = normal.in_packs(vec)
        inner = [vec * s[-1] for s in normal.strides]
        assert packs.size * vec == normal.size
        assert [s[-1] for s in packs.strides] == (inner if vec > 1 else [s[-1] for s in normal.strides])
        assert set(visited(packs, starts)) <= set(visited(normal, starts))


def test_a_pack_needs_stride_one_whole_packs_and_alignment():
    rows = Axes((3, 8), ((8, 1),))
    assert plan.packable(4, 4, 0, 0, rows, inner=rows)
    assert not plan.packable(4, 4, 4, 0, rows, inner=rows)  # an address that is no multiple of 16
    assert plan.packable(2, 4, 8, 0, rows, inner=rows)
    assert not plan.packable(4, 4, 0, 0, Axes((3, 6), ((6, 1),)), inner=Axes((3, 6), ((6, 1),)))  # 6 is 1.5 packs
    assert not plan.packable(4, 4, 0, 0, Axes((3, 8), ((9, 1),)), inner=Axes((3, 8), ((9, 1),)))  # rows start anywhere
    assert not plan.packable(2, 4, 0, 0, Axes((8,), ((2,),)), inner=Axes((8,), ((2,),)))
    assert not plan.packable(2, 4, 0, 0, Axes((), ((),)), inner=Axes((), ((),)))


@given(st.data())
def test_like_strides_are_numpys_order_k(data):
    shape = data.draw(layouts.shapes(max_size=200))
    x = data.draw(layouts.laid_out(shape, np.dtype("u1")))
    got = plan.like_strides(x.shape, x.strides)
    if x.size:
        assert sorted(int(np.dot(i, got)) for i in np.ndindex(shape)) == list(range(x.size))
    if 0 not in x.strides and x.size:
        expected = np.empty_like(x, order="K", subok=False).strides
        assert walked(shape, got) == walked(shape, expected)


def walked(shape: plan.Shape, strides: plan.Shape) -> list[int]:
    """The strides that matter: of the dims that have more than one element."""
    return [s for n, s in zip(shape, strides, strict=True) if n > 1]


@given(st.data())
def test_contiguous_strides_are_numpys(data):
    shape = data.draw(layouts.shapes())
    if 0 not in shape:
        expected = np.zeros(shape, "u1").strides
        assert plan.contiguous_strides(shape) == expected


@given(st.data())
def test_broadcast_strides_are_numpys(data):
    to = data.draw(layouts.shapes(max_size=200))
    lead = data.draw(st.integers(0, len(to)))
    shape = tuple(data.draw(st.sampled_from((n, 1))) for n in to[lead:])
    x = data.draw(layouts.laid_out(shape, np.dtype("u1")))
    if 0 not in to:
        expected = np.broadcast_to(x, to).strides
        got = plan.broadcast_strides(x.shape, x.strides, to)
        assert walked(to, got) == walked(to, expected)


SHAPES = st.lists(st.sampled_from((0, 1, 2, 3)), max_size=3).map(tuple)


@given(SHAPES, SHAPES)
def test_broadcasts_to_agrees_with_numpy(shape, to):
    try:
        np.broadcast_to(np.zeros(shape), to)
        expected = True
    except ValueError:
        expected = False
    assert plan.broadcasts_to(shape, to) == expected


@given(SHAPES, SHAPES)
def test_broadcast_shapes_agree_with_numpy(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ValueError, match="^where: shapes .* do not broadcast$"):
            plan.broadcast_shapes("where", a, b)
    else:
        assert plan.broadcast_shapes("where", a, b) == expected


@given(st.data())
def test_normalize_axis_agrees_with_numpy(data):
    ndim = data.draw(st.integers(0, 4))
    axis = data.draw(st.one_of(st.none(), st.integers(-5, 5), st.lists(st.integers(-5, 5), max_size=3).map(tuple)))
    shape = (1,) * ndim
    try:
        expected = set(range(ndim)) if axis is None else set(np.lib.array_utils.normalize_axis_tuple(axis, ndim))
    except ValueError as error:
        with pytest.raises(type(error)):
            plan.normalize_axis("sum", axis, shape)
    else:
        assert plan.normalize_axis("sum", axis, shape) == tuple(sorted(expected))


def test_wide_indices_from_2_to_the_31_on():
    assert plan.index_type(2**31 - 1, 5) == "u32"
    assert plan.index_type(5, 2**31) == "i64"


def test_every_dtype_has_a_size_and_bits():
    for dtype in layouts.DTYPES:
        assert plan.ITEMSIZE[dtype.name] == dtype.itemsize
        assert dtype.name in plan.CTYPES
        assert dtype.itemsize in plan.BITS
    assert len(plan.CTYPES) == len(layouts.DTYPES)


# ----------------------------------------------------------------------------------------------------------- plans


MACHINE = plan.Machine(132, cluster=16, shared=227 * 1024, together=132)


def sum_of_rows(rows: int, cols: int, strategy: str | None = None) -> plan.Plan:
    strides = plan.contiguous_strides((rows, cols))
    names = ("float32",) * 3
    problem = reduce.problem("Sum", *names, (rows, cols), (1,), (strides, (0, 0), (1,)), POINTERS)
    return reduce.plan(problem, strategy, "device", MACHINE.multiprocessors)


def softmax_of_rows(rows: int, cols: int, strategy: str | None = None) -> plan.Plan:
    strides = plan.contiguous_strides((rows, cols))
    names = ("float32",) * 3
    problem = softmax.problem("softmax", *names, (rows, cols), (1,), (strides, (0, 0), strides), POINTERS, False, 1.0)
    return softmax.plan(problem, strategy, "device", MACHINE)


#: Addresses modulo 16 of an op's operands.
POINTERS = (0, 0, 0)


def where_of_rows(rows: int, cols: int, strategy: str | None = None) -> plan.Plan:
    strides = plan.contiguous_strides((rows, cols))
    out, a, x, y = (broadcast.Arg(name, "u32", 4, strides) for name in ("out", "a", "b", "c"))
    return broadcast.plan("Where", (rows, cols), out, (a, x, y), strategy)


PLANS = {"sum": sum_of_rows, "softmax": softmax_of_rows, "where": where_of_rows}


@pytest.mark.parametrize("op", PLANS)
def test_plans_are_data(op):
    made = PLANS[op](100, 700)
    assert made is PLANS[op](100, 700)  # cached
    assert made != PLANS[op](200000, 3)
    assert len({made, PLANS[op](200000, 3)}) == 2
    assert repr(made).startswith(f"Plan(strategy={made.strategy!r}, steps=(Launch(kernel=Kernel(name=")
    with pytest.raises(AttributeError):
        made.strategy = "mine"


@pytest.mark.parametrize("op", PLANS)
def test_a_plan_has_the_strategy_that_was_asked_for(op):
    planners = {"sum": reduce.STRATEGIES, "softmax": softmax.STRATEGIES, "where": broadcast.STRATEGIES}[op]
    for strategy in filter(None, planners):
        if strategy in ("stepped", "tiled"):  # not for operands that all lie as the result
            with pytest.raises(ValueError, match=f"^where: strategy '{strategy}' takes an operand that "):
                PLANS[op](100, 700, strategy)
        else:
            assert PLANS[op](100, 700, strategy).strategy == strategy


@pytest.mark.parametrize(
    ("shape", "x", "chosen"),
    [
        ((2**13, 2**13), (2**13, 1), "vectorized"),
        ((2**13, 2**13), (0, 1), "vectorized"),  # a row that the nearest cache holds
        ((2**8, 2**20), (0, 1), "stepped"),
        ((2**8, 2**20 + 1), (0, 1), "vectorized"),  # packs that cross rows
        ((2**13, 2**13), (1, 2**13), "tiled"),
        ((2**13, 3), (1, 2**13), "vectorized"),  # too narrow for a tile
    ],
)
def test_expand_chooses_by_where_its_operand_lies(shape, x, chosen):
    out = broadcast.Arg("out", "u32", 4, plan.contiguous_strides(shape))
    assert broadcast.plan("Expand", shape, out, (broadcast.Arg("a", "u32", 4, x),)).strategy == chosen


@pytest.mark.parametrize(
    ("dtype", "shape", "axis", "kernel", "constants"),
    [
        ("float32", (2**22, 16), (1,), "reduce_rows", {"GROUP": 4, "ROWS": 4}),  # four lanes for each of four rows
        ("float32", (2**24, 3), (1,), "reduce_tiny", {"LENGTH": 3, "ROWS": 4, "PILED": False}),
        ("int8", (2**24, 3), (1,), "reduce_tiny", {"LENGTH": 3, "ROWS": 16, "VEC": 16, "PILED": True}),
        ("int8", (2**24, 8), (1,), "reduce_tiny", {"LENGTH": 8, "ROWS": 2, "VEC": 8, "PILED": False}),
        ("float32", (2**20, 11), (1,), "reduce_staged", {}),
        ("float32", (4096, 256), (1,), "reduce_rows", {"GROUP": 32, "UNROLL": 2}),
        ("float32", (4096, 781), (1,), "reduce_rows", {"GROUP": 32, "PEELED": True}),
        ("float32", (8192, 8192), (1,), "reduce_rows", {"GROUP": 256, "RESIDENT": 0}),
        ("float32", (8, 2**24), (1,), "reduce_rows", {"GROUP": 512, "RESIDENT": 1024}),  # several blocks to a row
        ("float32", (2**13,), (0,), "reduce_rows", {"GROUP": 512, "RESIDENT": 0}),
        ("float32", (65536, 1024), (0,), "reduce_columns", {"WIDE": 16, "RESIDENT": 1024}),
        ("float32", (16, 2**22), (0,), "reduce_columns", {"WIDE": 256, "STORED": 4}),
        ("float32", (1000, 1000, 100), (1,), "reduce_columns", {"WIDE": 32, "EDGED": True}),
        ("float32", (999, 10007), (0,), "reduce_columns", {"VEC": 1, "RESIDENT": 1536}),
        ("int8", (1000, 2**20 + 1), (0,), "reduce_columns", {"VEC": 16, "UNALIGNED": True}),
        ("int8", (1000, 2**20 + 4), (0,), "reduce_columns", {"VEC": 4, "UNALIGNED": False}),
    ],
)
def test_reductions_choose_by_shape_and_alignment(dtype, shape, axis, kernel, constants):
    step = reduction_of("Max", dtype, shape, axis)
    assert step.kernel.name == kernel
    assert constants.items() <= dict(step.kernel.constants).items()


def reduction_of(op: str, dtype: str, shape: tuple[int, ...], axis: tuple[int, ...]) -> plan.Launch:
    strides = (plan.contiguous_strides(shape), (0,) * len(shape))
    kept = plan.contiguous_strides(tuple(n for d, n in enumerate(shape) if d not in axis))
    problem = reduce.problem(op, dtype, plan.accumulator(dtype), dtype, shape, axis, (*strides, kept), POINTERS)
    (step,) = reduce.plan(problem, None, "device", 132).steps
    return step


@pytest.mark.parametrize(("dtype", "group"), [("float32", 8), ("float16", 4)])
def test_lanes_that_take_powers_have_two_packs_of_short_rows(dtype, group):
    constants = dict(reduction_of("LogSumExp", dtype, (2**20, 64), (1,)).kernel.constants)
    assert (constants["GROUP"], constants["UNROLL"], constants["ROWS"]) == (group, 2, 2)


def softmax_of(
    dtype: str, shape: tuple[int, ...], axis: tuple[int, ...], machine: plan.Machine = MACHINE,
    strategy: str | None = None, masked: bool = False,
) -> plan.Plan:  # fmt: skip
    dense = plan.contiguous_strides(shape)
    names = (dtype, plan.accumulator(dtype), dtype)
    strides = (dense, dense if masked else (0,) * len(shape), dense)
    problem = softmax.problem("softmax", *names, shape, axis, strides, POINTERS, masked, 1.0)
    return softmax.plan(problem, strategy, "device", machine)


@pytest.mark.parametrize(("masked", "packs"), [(False, 4), (True, 2)])
def test_tiles_with_a_mask_have_fewer_packs_in_registers(masked, packs):
    (step,) = softmax_of("float16", (4096, 4096), (0,), masked=masked).steps
    assert dict(step.kernel.constants)["PACKS"] == packs
    assert step.shared % (8 * (2 + masked)) == 0 < step.shared  # packs of x, and of the mask beside them


@pytest.mark.parametrize(
    ("dtype", "shape", "axis", "strategy", "constants"),
    [
        ("float32", (2**20, 64), (1,), "rows", {"GROUP": 8, "PACKS": 2, "CLUSTER": 1}),  # eight lanes to a row
        ("float32", (4096, 127), (1,), "rows", {"GROUP": 16, "PEELED": True}),
        ("float32", (4096, 4096), (1,), "rows", {"GROUP": 0, "PACKS": 4, "CLUSTER": 1, "STAGED": 0}),  # a block
        ("float16", (4096, 4099), (1,), "rows", {"GROUP": 0, "VEC": 8, "PEELED": True}),
        ("float32", (4096, 12672), (1,), "rows", {"BLOCK": 128, "PACKS": 8, "CLUSTER": 4}),  # small blocks
        ("float32", (4096, 131072), (1,), "rows", {"BLOCK": 256, "PACKS": 8, "CLUSTER": 16, "STAGED": 0}),
        ("float32", (256, 262144), (1,), "rows", {"BLOCK": 256, "PACKS": 8, "CLUSTER": 16, "STAGED": 2}),
        ("float32", (64, 2**20), (1,), "grid", {"BLOCK": 512, "PACKS": 6, "RESIDENT": 2}),  # 33 blocks to a row
        ("float16", (64, 2**20), (1,), "grid", {"BLOCK": 512, "PACKS": 6, "RESIDENT": 2}),
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
    ],
)
def test_softmaxes_choose_by_what_fits_where(dtype, shape, axis, strategy, constants):
    made = softmax_of(dtype, shape, axis)
    assert made.strategy == strategy
    assert constants.items() <= dict(made.steps[0].kernel.constants).items()


@pytest.mark.parametrize(
    ("cols", "shifted", "vec"), [(4089, 1, 4), (16384, 1, 4), (131072, 1, 4), (131073, 0, 1), (31, 0, 1)]
)
def test_rows_of_a_slice_are_shifted_as_long_as_registers_hold_them(cols, shifted, vec):
    strides = ((cols + 7, 1), (0, 0), (cols, 1))  # of x, of no mask, of the result
    names = ("float32",) * 3
    problem = softmax.problem("softmax", *names, (4096, cols), (1,), strides, (4, 0, 0), masked=False, scale=1.0)
    constants = dict(softmax.plan(problem, "rows", "device", MACHINE).steps[0].kernel.constants)
    assert (constants["SHIFTED"], constants["VEC"]) == (shifted, vec)
    assert not (constants["SHIFTED"] and constants["STAGED"])


@pytest.mark.parametrize(("rows", "teams"), [(64, 8), (63, 9), (7, 7), (1, 1)])  # nine have room
def test_teams_of_the_grid_end_together(rows, teams):
    (step,) = softmax_of("float32", (rows, 2**20), (1,), strategy="grid").steps
    together = 132 if rows == 1 else 264
    assert step.grid[0] == together // teams * teams


@pytest.mark.parametrize(
    ("cols", "constants"),
    [
        (100, {"GROUP": 16, "PACKS": 8}),
        (700, {"GROUP": 32, "PACKS": 24}),
        (4096, {"GROUP": 0, "PACKS": 16, "BLOCK": 256}),
    ],
)
def test_threads_hold_as_many_bytes_in_narrow_packs(cols, constants):
    strides = ((2 * cols, 2), (0, 0), (cols, 1))  # of x, of no mask, of the result
    problem = softmax.problem(
        "softmax", *("float32",) * 3, (4096, cols), (1,), strides, (0, 0, 0), masked=False, scale=1.0
    )
    made = dict(softmax.plan(problem, "rows", "device", MACHINE).steps[0].kernel.constants)
    assert ({"VEC": 1} | constants).items() <= made.items()


def test_a_device_with_less_room_holds_fewer_rows_on_chip():
    small = plan.Machine(20, cluster=1, shared=48 * 1024)
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
def test_what_is_held_on_chip_is_all_of_a_row_and_has_room(data):
    dtype = data.draw(st.sampled_from(("float16", "float32", "float64")))
    cols, rows = data.draw(st.integers(1, 400000)), data.draw(st.sampled_from((1, 3, 64, 5000)))
    masked, apart = data.draw(st.booleans()), data.draw(st.integers(0, 9))
    shared = data.draw(st.sampled_from((48, 99, 163, 227))) * 1024
    machine = plan.Machine(132, data.draw(st.sampled_from((1, 8, 16))), shared, data.draw(st.sampled_from((0, 132))))
    shape, axis = data.draw(st.sampled_from((((rows, cols), (1,)), ((cols, rows), (0,)))))
    x = (shape[1] + apart, 1)
    for strategy, on_chip in softmax.ON_CHIP.items():
        names = (dtype, plan.accumulator(dtype), dtype)
        strides = (x, plan.contiguous_strides(shape) if masked else (0, 0), plan.contiguous_strides(shape))
        problem = softmax.problem("softmax", *names, shape, axis, strides, POINTERS, masked, 1.0)
        if (made := on_chip(problem, machine)) is None:
            continue
        (step,) = made.steps
        has = dict(step.kernel.constants)
        vec, size = has["VEC"], plan.ITEMSIZE[dtype]
        staged = step.shared // (step.block * vec * (size + masked))
        assert (staged > 0) == (has["STAGED"] > 0)
        threads = has.get("GROUP") or step.block // has.get("WIDE", 1)
        team = struct.unpack_from("<6q", step.args[-1])[5] or step.cluster  # blocks to a row
        packs = cols // (1 if strategy == "columns" else vec)
        assert team * threads * (has["PACKS"] + staged) >= packs
        state, wide = 2 * plan.ITEMSIZE[plan.accumulator(dtype)], has.get("WIDE")
        states = (has["BLOCK"] // max(32, wide) + step.cluster + 1) * vec * wide * state if wide else softmax.STATES
        assert step.shared == 0 or step.shared + states <= machine.shared // max(1, has.get("RESIDENT", 1))
        assert step.cluster <= machine.cluster and step.block <= has["BLOCK"] <= 1024 and step.block % 32 == 0
        assert step.cooperative == (strategy == "grid")


@given(st.data())
def test_packs_and_blocks_of_reductions_are_powers_of_two(data):
    """Whatever the op, dtypes and layout: loads, shuffles and shared memory are made for nothing else."""
    op = data.draw(st.sampled_from(("Sum", "Max", "MaskedMean", "LogSumExp", "Dot")))
    x = data.draw(st.sampled_from(("bool", "float16", "float32", "float64", "complex64", "complex128")))
    other = {"MaskedMean": "bool", "Dot": x}.get(op) or data.draw(st.sampled_from((None, "bool")))
    shape = tuple(data.draw(st.lists(st.sampled_from((3, 20, 135, 640, 4099)), min_size=1, max_size=3)))
    axis = tuple(d for d in range(len(shape)) if data.draw(st.booleans()))
    spread = [n + data.draw(st.sampled_from((0, 0, 1, 4))) for n in shape]  # cut out of a larger array
    strides = plan.contiguous_strides(spread)
    beside = tuple(s * data.draw(st.integers(0, 1)) for s in strides)
    kept = plan.contiguous_strides(tuple(n for d, n in enumerate(shape) if d not in axis))
    pointers = tuple(data.draw(st.sampled_from((0, 0, size))) % 16 for size in (plan.ITEMSIZE[x], 1, 1))
    problem = reduce.problem(op, x, x, x, shape, axis, (strides, beside, kept), pointers, other)
    for strategy in ("rows", "columns"):
        (step,) = reduce.plan(problem, strategy, "device", 132).steps
        constants = dict(step.kernel.constants)
        for name in {"VEC", "BLOCK", "GROUP", "TEAM", "ROWS", "UNROLL", "WIDE", "STORED"} & set(constants):
            assert constants[name].bit_count() == 1, name
        assert constants["VEC"] * plan.ITEMSIZE[x] <= reduce.PACK


def test_few_small_integers_are_added_in_four_bytes():
    for x, val, most in (("bool", "int64", 2**23), ("uint8", "uint64", 2**23), ("int16", "int64", 2**15)):
        assert reduce.summed_in(x, val, most) == "int32"
        assert reduce.summed_in(x, val, most + 1) == val
    for x, val in (("int32", "int64"), ("int8", "int8"), ("int8", "float64"), ("float16", "int64")):
        assert reduce.summed_in(x, val, 1 if x != "int32" else 2) == val


@pytest.mark.parametrize("op", PLANS)
def test_grids_fit_the_hardware(op):
    for rows, cols in ((1, 2**33), (2**33, 1), (2**20, 2**12), (2**16, 2**16)):
        for step in PLANS[op](rows, cols).steps:
            x, y, z = step.grid
            assert 0 < x <= plan.MAX_GRID_X
            assert 0 < y <= 65535
            assert z == 1


@pytest.mark.parametrize("rows,cols", [(1, 2**30), (2**10, 2**20), (2**20, 2**10), (2**30, 1), (3, 12345678)])
def test_reductions_take_at_most_a_mebibyte_of_workspace(rows, cols):
    for strategy in (None, *reduce.STRATEGIES):
        made = sum_of_rows(rows, cols, strategy)
        assert sum(nbytes for _, nbytes in made.workspace) <= 2**20
        assert made.scratch <= plan.SCRATCH == 2**20


@pytest.mark.parametrize("cols", [2**31 - 256, 2**31, 2**33])
def test_long_rows_get_wide_indices(cols):
    (step, *_) = sum_of_rows(1, cols, "cross").steps
    assert dict(step.kernel.types)["Index"] == ("u32" if cols < 2**31 else "i64")


def test_more_blocks_than_a_grid_holds_are_refused():
    with pytest.raises(ValueError, match="^softmax: strategy 'block_tree' takes at most 2147483647 blocks"):
        softmax_of_rows(2**31, 1, "block_tree")


def test_planning_imports_no_cupy():
    code = (
        "import sys, pkgutil, importlib, gpuops.plan, gpuops.kernels\n"
        "for module in pkgutil.iter_modules(gpuops.kernels.__path__, 'gpuops.kernels.'):\n"
        "    importlib.import_module(module.name)\n"
        "print([name for name in sys.modules if name.startswith('cupy')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
