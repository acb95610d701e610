"""expand, broadcast_to and where against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call import launch_cache
from gpuops.plan.maps import packs, problems, stepped, tiled
from tests import layouts
from tests.budget import examples, pairs
from tests.compare import assert_bits, assert_same, run
from tests.conftest import Emulated
from tests.layouts import BFLOAT16, COMMON, COMPLEX, DTYPES, FLOATS, HALVES, LAYOUTS, lay_out, sample

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: The strategies that take every input.
STRATEGIES = (None, *(name for name in gpuops.strategies("where") if name not in ("stepped", "tiled")))
WIDTHS = (1, 2, 3, 4, 5, 8, 16, 97, 256, 1024)
ITEMS = ("u1", "f2", "f4", "f8", "c16")


def cast(values: Any, dtype: np.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


# ---------------------------------------------------------------------------------------------------------- expand


@st.composite
def expansions(draw: st.DrawFn, dtype: np.dtype) -> tuple[np.ndarray, tuple[int, ...], tuple[int, ...]]:
    """An array, a shape that it expands to as a caller writes it (with -1), and that shape in full."""
    full = draw(layouts.shapes())
    lead = draw(st.integers(0, len(full)))
    shape = tuple(draw(st.sampled_from((n, n, 1))) for n in full[lead:])
    kept = tuple(n == m and draw(st.booleans()) for n, m in zip(shape, full[lead:], strict=True))
    asked = full[:lead] + tuple(-1 if keep else n for keep, n in zip(kept, full[lead:], strict=True))
    return draw(layouts.arrays(shape, dtype)), asked, full


@pytest.mark.parametrize("strategy", STRATEGIES)
@examples(40)
@given(data=st.data())
def test_expand_agrees_with_numpy(backend, strategy, data):
    x, asked, full = data.draw(expansions(data.draw(st.sampled_from(COMMON))))
    expected = np.broadcast_to(x, full)
    if data.draw(st.booleans()):
        assert_bits(run(backend, gpuops.expand, x, asked, strategy=strategy), expected)
        return
    other = data.draw(layouts.casts(x.dtype))
    out = data.draw(layouts.outs(full, other, [x]))
    expected = cast(expected, other)
    assert_same(run(backend, gpuops.expand, x, asked, out=out, strategy=strategy), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_expand_takes_every_dtype(backend, strategy, dtype):
    x = sample((5, 1, 16), dtype, special=True)
    assert_bits(run(backend, gpuops.expand, x, (2, -1, 3, -1), strategy=strategy), np.broadcast_to(x, (2, 5, 3, 16)))


def test_expand_makes_a_new_array_in_c_order(backend):
    x = backend.array(np.arange(6.0).reshape(2, 3))
    y = gpuops.expand(x, (2, 3))
    assert y is not x
    y[...] = 0
    assert backend.numpy(x).tolist() == [[0, 1, 2], [3, 4, 5]]
    transposed = gpuops.expand(backend.array(lay_out(np.ones((4, 5)), "F")), (3, 4, 5))
    assert transposed.flags.c_contiguous


def test_expand_takes_an_int_a_list_and_numpy_integers(backend):
    for shape in (3, [3], (np.int64(3),)):
        assert run(backend, gpuops.expand, np.array([7]), shape).tolist() == [7, 7, 7]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_expand_out_may_overlap_the_input(backend, strategy):
    for x_step, offset, dtype in ((8, 4, "f4"), (4, 8, "f4"), (4, 4, "f2"), (4, 0, "f8"), (8, 2, "f2"), (4, 4, "f4")):
        memory = np.zeros(1000, np.uint8)
        x = np.ndarray((100,), "f4", memory, 0, (x_step,))
        x[...] = np.arange(100)
        out = np.ndarray((100,), dtype, memory, offset)
        assert_same(run(backend, gpuops.expand, x, (100,), out=out, strategy=strategy), np.arange(100).astype(dtype))


@pytest.mark.parametrize("inner", WIDTHS)
@pytest.mark.parametrize("dtype", ITEMS)
def test_expand_at_every_width_and_alignment(backend, dtype, inner):
    for layout in ("C", "unaligned", "window", "reversed"):
        x = lay_out(sample((3, 1, inner), dtype, special=True), layout)
        assert_bits(run(backend, gpuops.expand, x, (3, 5, inner)), np.broadcast_to(x, (3, 5, inner)))
    column = sample((7, 1), dtype, special=True)
    assert_bits(run(backend, gpuops.expand, column, (7, inner)), np.broadcast_to(column, (7, inner)))


# ----------------------------------------------------------------------------------------------------- broadcast_to


@examples(60)
@given(data=st.data())
def test_broadcast_to_returns_the_same_view_as_numpy(backend, data):
    x, _, full = data.draw(expansions(data.draw(st.sampled_from(COMMON))))
    there = backend.array(x)
    y = gpuops.broadcast_to(there, full)
    expected = np.broadcast_to(x, full)
    assert_bits(backend.numpy(y), expected)
    if x.size:
        strides = [0 if n == 1 else s for n, s in zip(full, expected.strides, strict=True)]
        assert [0 if n == 1 else s for n, s in zip(full, y.strides, strict=True)] == strides


def test_broadcast_to_is_read_only_where_arrays_can_be(backend):
    y = gpuops.broadcast_to(backend.array(np.zeros(3)), (2, 3))
    assert not getattr(y.flags, "writeable", False)


# ----------------------------------------------------------------------------------------------------------- where


@st.composite
def values(draw: st.DrawFn, full: tuple[int, ...], dtype: np.dtype, others: bool = True) -> Any:
    """An operand that broadcasts to the full shape: an array or a scalar, maybe of other types, as Python's."""
    narrow = draw(layouts.narrowed(full))
    if narrow or draw(st.booleans()):
        return draw(layouts.arrays(narrow, dtype))
    scalar = sample((), dtype)[()]
    return draw(st.sampled_from([scalar, 1, 1.5, True, np.float32(2), np.int8(-1)])) if others else scalar


#: Pairs of dtypes for x and y: mostly the same, some that promote.
PROMOTED = (("f4", "f8"), ("i1", "f2"), ("u1", "i1"), ("f4", "c8"), (BFLOAT16, "f4"), ("?", "i8"))
PAIRS = [*((d, d) for d in COMMON), *(tuple(map(np.dtype, pair)) for pair in PROMOTED)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@examples(40)
@given(data=st.data())
def test_where_agrees_with_numpy(backend, strategy, data):
    full = data.draw(layouts.shapes())
    pair = data.draw(st.sampled_from(PAIRS))
    condition = data.draw(values(full, data.draw(st.sampled_from((np.dtype(bool), *COMMON)))))
    x, y = (data.draw(values(full, dtype, BFLOAT16 not in pair)) for dtype in pair)  # NumPy promotes it to float64
    with np.errstate(all="ignore"):
        expected = np.where(condition, x, y)
    if not any(type(a) is np.ndarray for a in (condition, x, y)):  # no array determines the library of the result
        assert_same(np.asarray(gpuops.where(condition, x, y)), expected)
        return
    out = None
    if data.draw(st.booleans()):
        out = data.draw(layouts.outs(expected.shape, data.draw(layouts.casts(expected.dtype)), (condition, x, y)))
        expected = cast(expected, out.dtype)
    assert_same(run(backend, gpuops.where, condition, x, y, out=out, strategy=strategy), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_where_takes_every_dtype(backend, strategy, dtype):
    condition, x, y = (sample((n, 33), dtype, seed, special=True) for seed, n in enumerate((4, 4, 1)))
    assert_bits(run(backend, gpuops.where, condition, x, y, strategy=strategy), np.where(condition != 0, x, y))
    chosen = condition != 0
    assert_bits(run(backend, gpuops.where, chosen, x, y, strategy=strategy), np.where(chosen, x, y))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX, ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_conditions_are_true_unless_zero(backend, strategy, dtype):
    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    tiny = layouts.smallest_subnormal(real)
    values = np.array([0.0, -0.0, 1, -1, np.nan, np.inf, -np.inf, tiny, -tiny]).astype(real)
    conditions = [values.astype(dtype)]
    if dtype.kind == "c":
        conditions.append(np.zeros(9, dtype))
        conditions[1].imag = values
    for condition in conditions:
        got = run(backend, gpuops.where, condition, 1, 0, strategy=strategy)
        assert got.tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_where_preserves_every_bit(backend, strategy):
    nans, others = [0x7FC00001, 0x7F800001, 0xFFC12345], [0x80000000, 0x00000001, 0xFF800000, 0x3F800000, 0x807FFFFF]
    bits = np.array(nans + others, "u4")
    x, y = bits.view("f4"), bits[::-1].copy().view("f4")
    chosen = np.array([1, 0, 1, 1, 0, 1, 0, 1], bool)
    got = run(backend, gpuops.where, chosen, x, y, strategy=strategy)
    assert got.view("u4").tolist() == np.where(chosen, bits, bits[::-1]).tolist()
    for view in ("f2", BFLOAT16, "f8", "c8", "c16"):
        wide = bits.repeat(8).view(view)
        got = run(backend, gpuops.where, np.ones(wide.shape, bool), wide, wide[::-1].copy(), strategy=strategy)
        assert got.tobytes() == wide.tobytes()


PROMOTIONS = [
    ("f4", 1), ("f4", 1.5), ("f4", True), ("f4", 1j), ("f2", 2), ("f2", 1.5), ("i1", 3), ("i1", 1.5), ("i1", True),
    ("?", True), ("?", 3), ("u1", np.int8(3)), ("i4", np.float32(2)), ("f4", np.float64(2)), ("i8", np.uint64(3)),
    (BFLOAT16, np.float32(1)), ("c8", 2.5), (2, 3), (2.0, 3), (True, 2),
]  # fmt: skip


@pytest.mark.parametrize("promotion,strategy", pairs(PROMOTIONS, STRATEGIES[:2], STRATEGIES[2:]), ids=str)
def test_where_promotes_like_numpy(backend, promotion, strategy):
    x, y = promotion
    x = np.arange(6).astype(x) if isinstance(x, (str, np.dtype)) else x
    condition = np.array([True, False, True, True, False, False])
    assert_same(run(backend, gpuops.where, condition, x, y, strategy=strategy), np.where(condition, x, y))
    assert_same(run(backend, gpuops.where, condition, y, x, strategy=strategy), np.where(condition, y, x))


@pytest.mark.parametrize("scalar", [1.5, 1, True, -np.inf, 2**70, -3])
def test_python_scalars_adopt_bfloat16(backend, scalar):  # NumPy itself would promote to float64
    x, condition = np.arange(6).astype(BFLOAT16), np.array([True, False, True, True, False, False])
    expected = np.where(condition, x, np.asarray(float(scalar)).astype(BFLOAT16))
    assert_same(run(backend, gpuops.where, condition, x, scalar), expected)
    got = run(backend, gpuops.where, ~condition, scalar, x)
    assert_same(got, expected)


def test_complex_and_numpy_scalars_promote_bfloat16(backend):
    x = backend.array(np.arange(3).astype(BFLOAT16))
    assert gpuops.where(backend.array(np.ones(3, bool)), x, 1j).dtype == np.complex64
    assert gpuops.where(backend.array(np.ones(3, bool)), x, np.float64(1)).dtype == np.float64


@pytest.mark.parametrize("dtype,scalar", [
    ("u1", -1), ("u1", 256), ("i1", 128), ("i1", -129), ("i8", 2**63), ("u8", 2**64), ("u8", -1), ("i4", 2**100),
    ("f4", 10**400), (BFLOAT16, 10**400), ("f8", -(10**400)),
])  # fmt: skip
def test_python_ints_out_of_range_raise(backend, dtype, scalar):
    x, out, mask = *backend.arrays(np.ones(2, dtype), np.ones(2, dtype)), backend.array(np.array([True, False]))
    for args, name in (((x, scalar), "y"), ((scalar, x), "x")):
        rule = f"^where: {name} {scalar} cannot be represented in {np.dtype(dtype).name}"
        with pytest.raises(OverflowError, match=rule):
            gpuops.where(mask, *args, out=out)
    assert_same(backend.fetch(out), np.ones(2, dtype))


def test_where_of_two_python_ints_gives_int64(backend):
    mask = backend.array(np.array([True, False]))
    assert_same(backend.numpy(gpuops.where(mask, 2**62, 1)), np.array([2**62, 1]))
    for scalar in (2**63, 2**64, -(2**63) - 1):
        with pytest.raises(OverflowError, match=f"^where: x {scalar} cannot be represented in int64"):
            gpuops.where(mask, scalar, 0)
    assert_same(backend.numpy(gpuops.where(mask, 2**70, 0.5)), np.array([2.0**70, 0.5]))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("condition", [True, False, 0, 2.5, np.bool_(True), np.float32(0)], ids=repr)
def test_where_takes_a_scalar_condition(backend, strategy, condition):
    x, y = np.arange(5.0), np.arange(3.0)[:, None]
    assert_same(run(backend, gpuops.where, condition, x, y, strategy=strategy), np.where(condition, x, y))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_0d_numpy_arrays_work_with_arrays_of_every_backend(backend, strategy):
    x, zero, one = np.arange(5, dtype="f4"), np.array(0), np.array(1, "f4")
    there = backend.array(x)
    assert_same(backend.numpy(gpuops.where(zero, there, one, strategy=strategy)), np.where(zero, x, one))
    assert_same(backend.numpy(gpuops.where(there, one, zero, strategy=strategy)), np.where(x, one, zero))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("target", ["i1", "f2", BFLOAT16, "f8", "c16"], ids=str)
def test_where_casts_to_out(backend, strategy, target):
    x = sample((4, 9), "i8" if target == "i1" else "f4")
    out = lay_out(np.zeros((4, 9), target), "transposed")
    expected = np.where(x > 0, x, x.dtype.type(1)).astype(target)
    assert_same(run(backend, gpuops.where, x > 0, x, x.dtype.type(1), out=out, strategy=strategy), expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("place", ["in place", "forward", "back", "reversed", "transposed", "mask", "wider"])
def test_where_out_may_overlap_its_operands(backend, strategy, place):
    x, condition, out = layouts.overlapping(place, 40)
    y = np.zeros(40, "f4")
    if place == "mask":
        x, y = x > 0, y > 0
    expected = np.where(condition, x, y).astype(out.dtype)
    assert_same(run(backend, gpuops.where, condition, x, y, out=out, strategy=strategy), expected)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("inner", WIDTHS)
def test_where_at_every_width_and_alignment(backend, inner, strategy):
    for dtype in ITEMS if strategy is None else ("f4",):
        for layout in ("C", "unaligned", "window", "sliced"):
            x = lay_out(sample((3, 4, inner), dtype, special=True), layout)
            y = sample((4, 1), dtype, special=True)
            chosen = lay_out(sample((3, 1, inner), bool), "unaligned")
            assert_bits(run(backend, gpuops.where, chosen, x, y, strategy=strategy), np.where(chosen, x, y))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_where_reads_every_layout(backend, layout, strategy):
    x, y = lay_out(sample((5, 6, 32)), layout), sample((5, 6, 32), seed=1)
    chosen = lay_out(sample((5, 6, 32), bool), layout)
    expected = np.where(chosen, x, y)
    assert_same(run(backend, gpuops.where, chosen, x, y, strategy=strategy), expected)
    assert_same(run(backend, gpuops.where, chosen, y, x, strategy=strategy), np.where(chosen, y, x))


@pytest.mark.parametrize("shape", [(32, 32), (64, 96), (3, 64, 32), (64, 33), (33, 64)], ids=str)
@pytest.mark.parametrize("dtype", ITEMS)
def test_where_of_transposed_operands(backend, dtype, shape):
    x, y = (sample(shape[::-1], dtype, seed, special=True).T for seed in range(2))
    chosen = sample(shape, bool)
    assert_bits(run(backend, gpuops.where, chosen, x, y), np.where(chosen, x, y))
    assert_bits(run(backend, gpuops.where, chosen, x, x[..., :1]), np.where(chosen, x, x[..., :1]))
    y = np.ascontiguousarray(y)
    out = lay_out(np.zeros(shape, dtype), "C")
    assert_bits(run(backend, gpuops.where, chosen, x, y, out=out), np.where(chosen, x, y))
    assert_bits(run(backend, gpuops.expand, x, shape, out=out), np.ascontiguousarray(x))


# ------------------------------------------------------------------------------------ memory access patterns


@st.composite
def rows(draw: st.DrawFn, full: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An operand that may broadcast along any dim; its last dim is contiguous, reversed, strided or broadcast."""
    shape = tuple(draw(st.sampled_from((n, n, 1))) for n in full)
    layout = draw(st.sampled_from(("C", "C", "unaligned", "window", "reversed", "sliced")))
    return lay_out(sample(shape, dtype, draw(st.integers(0, 9)), special=True), layout)


@pytest.mark.parametrize("dtype", ITEMS)
@examples(40)
@given(data=st.data())
def test_rows_of_any_length_and_alignment(device, dtype, data):
    """Packs that cross rows, rows shorter than a pack, padded rows."""
    dtype = np.dtype(dtype)
    length = data.draw(st.sampled_from((2, 3, 5, 7, 15, 16, 17, 24, 31, 33, 63, 64, 65, 100, 333)))
    full = (data.draw(st.integers(1, 5)), data.draw(st.integers(1, 7)), length)
    chosen = data.draw(rows(full, np.dtype(bool)))
    x, y = data.draw(rows(full, dtype)), data.draw(rows(full, dtype))
    expected = np.broadcast_to(np.where(chosen, x, y), np.broadcast_shapes(chosen.shape, x.shape, y.shape))
    layout = data.draw(st.sampled_from(("C", "unaligned", "window", "transposed")))
    out = lay_out(np.zeros(expected.shape, dtype), layout)
    assert_bits(run(device, gpuops.where, chosen, x, y, out=out), expected)
    assert_bits(run(device, gpuops.expand, x, full), np.broadcast_to(x, full))


@pytest.mark.parametrize("dtype", ITEMS)
@examples(40)
@given(data=st.data())
def test_tiles_transpose_operands(device, dtype, data):
    """Operands whose contiguous dim differs from the result's; sizes are not multiples of the tile."""
    dtype = np.dtype(dtype)
    full = tuple(data.draw(st.sampled_from((16, 17, 31, 40, 65, 131))) for _ in range(2))
    full = (*full[:1], *data.draw(st.sampled_from(((), (2,), (3,)))), *full[1:])
    order = data.draw(st.permutations(range(len(full))).filter(lambda order: order[-1] != len(full) - 1))
    steps = data.draw(st.sampled_from(((1,) * len(full), tuple(-1 if d == order[-1] else 1 for d in range(len(full))))))
    chosen, x, y = (
        layouts.placed(
            sample(full, kind, seed, special=True), order if data.draw(st.booleans()) else None, steps,
            data.draw(st.integers(0, 1)),
        )
        for seed, kind in enumerate((bool, dtype, dtype))
    )  # fmt: skip
    x = x if data.draw(st.booleans()) else x[..., :1]
    out = lay_out(np.zeros(full, dtype), data.draw(st.sampled_from(("C", "unaligned", "window"))))
    assert_bits(run(device, gpuops.where, chosen, x, y, out=out), np.where(chosen, x, y))
    turned = layouts.placed(sample(full, dtype, special=True), order, steps)
    strategy = "tiled" if len(full) == 2 and dtype.itemsize > 1 else None  # 16 one-byte items are too close for tiles
    assert_bits(run(device, gpuops.expand, turned, full, strategy=strategy), turned)


@pytest.mark.parametrize("steps", [2, 3, 64])
@pytest.mark.parametrize("dtype", ITEMS)
def test_stepped_strategy_on_broadcast_dims(device, monkeypatch, dtype, steps):
    monkeypatch.setattr(stepped, "STEPS", ((np.inf, steps),))
    monkeypatch.setattr(stepped, "FEW", 1)
    for full in ((7, 160), (5, 3, 64), (2, 9, 48)):
        x = sample(full[1:], dtype, special=True)
        assert_bits(run(device, gpuops.expand, x, full, strategy="stepped"), np.broadcast_to(x, full))
        chosen = sample((full[0], *(1,) * (len(full) - 1)), bool)
        y = sample((*full[1:-1], 1), dtype, special=True)
        assert_bits(run(device, gpuops.where, chosen, x, y, strategy="stepped"), np.where(chosen, x, y))


@pytest.mark.parametrize("dtype", ["?", "i1", "f2"])
@pytest.mark.parametrize("row", [(1,), (3,), (21,), (97,), (5, 7)], ids=str)
def test_rows_that_are_not_whole_packs_are_taken_together(device, monkeypatch, dtype, row):
    monkeypatch.setattr(stepped, "TOGETHER", 4)
    monkeypatch.setattr(stepped, "FEW", 1)
    x, chosen = sample(row, dtype, special=True), sample(row, bool)
    for length in (64, 1000, 1003):
        full = (length, *row)
        y = sample(full, dtype, special=True)
        strategy = "stepped" if row != (1,) else None  # which is one dim
        assert_bits(run(device, gpuops.expand, x, full, strategy=strategy), np.broadcast_to(x, full))
        assert_bits(run(device, gpuops.where, chosen, x, y, strategy=strategy), np.where(chosen, x, y))
        for other in (y[0, ..., :1], x.dtype.type(1)):
            assert_bits(run(device, gpuops.where, y != 0, x, other, strategy=strategy), np.where(y != 0, x, other))


@pytest.mark.parametrize("layout", ["C", "unaligned", "reversed"])
def test_small_operands_of_large_results_are_prefetched(device, layout):
    x = lay_out(sample((2**12 + 5,)), layout)
    assert_bits(run(device, gpuops.expand, x, (9, x.size)), np.broadcast_to(x, (9, x.size)))


@pytest.mark.parametrize("most", [100, 1000])
@examples(60)
@given(data=st.data())
def test_large_results_are_split_into_several_launches(device, most, data):
    full = data.draw(layouts.shapes())
    x, y = data.draw(layouts.arrays(full, np.dtype("f4"))), data.draw(layouts.arrays(full[1:], np.dtype("f4")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problems, "MOST", most)
        launch_cache.entries.cache_clear()
        got = run(device, gpuops.where, x > 0, x, y)
    assert_bits(got, np.where(x > 0, x, y))


@pytest.mark.parametrize("dtype", ITEMS)
def test_64_bit_offsets(device, monkeypatch, dtype):
    for module in (packs, stepped, tiled):
        monkeypatch.setattr(module, "offset_type", lambda p: "i64")
    for length in (3, 16, 37, 333):
        x = sample((5, 1, length), dtype, special=True)
        assert_bits(run(device, gpuops.expand, x, (5, 4, length)), np.broadcast_to(x, (5, 4, length)))
        window = lay_out(np.zeros((5, length), dtype), "window")
        assert_bits(run(device, gpuops.where, np.ones((5, 1), "u1"), x[:, 0], x[0], out=window), x[:, 0])
    square = sample((70, 40), dtype, special=True)
    assert_bits(run(device, gpuops.expand, square.T, (40, 70)), square.T)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_views_with_the_alignment_of_reals(backend, dtype):
    half = np.dtype(dtype).itemsize // 2
    memory = np.zeros((40 * 2 * half + half,), np.uint8)
    x = np.ndarray((5, 8), dtype, memory, half)
    x[...] = sample((5, 8), x.dtype)
    out = np.ndarray((5, 8), dtype, np.zeros_like(memory), half)
    chosen = sample((5, 8), bool)
    for strategy in STRATEGIES:
        assert_bits(run(backend, gpuops.expand, x, (3, 5, 8), strategy=strategy), np.broadcast_to(x, (3, 5, 8)))
        assert_bits(run(backend, gpuops.where, chosen, x, x[0], strategy=strategy), np.where(chosen, x, x[0]))
        got = run(backend, gpuops.where, chosen, x[0].copy(), 2, out=out, strategy=strategy)
        assert_bits(got, np.where(chosen, x[0], x.dtype.type(2)))
    assert_bits(run(backend, gpuops.expand, x.T, (8, 5)), x.T)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_six_dims_that_do_not_merge(backend, strategy):
    x, y, chosen = layouts.unmergeable(), sample((2, 1, 3, 1, 5)), sample((3, 1, 4, 1, 2, 1), bool)
    assert_same(run(backend, gpuops.where, chosen, x, y, strategy=strategy), np.where(chosen, x, y))
    assert_same(run(backend, gpuops.expand, x, (2, *x.shape), strategy=strategy), np.broadcast_to(x, (2, *x.shape)))


def test_where_without_values_is_nonzero(backend):
    for dtype in ("?", "f4", "i1", "c8"):
        condition = lay_out(sample((4, 7), dtype), "transposed")
        got = gpuops.where(backend.array(condition))
        for ours, numpys in zip(got, np.where(condition), strict=True):
            assert_same(backend.numpy(ours), numpys)


def test_where_keeps_fortran_order(device):
    x = device.array(lay_out(sample((4, 5)), "F"))
    assert gpuops.where(x > 0, x, 0).flags.f_contiguous


def test_lists_and_scalars_give_numpy_results():
    assert gpuops.where([True, False], [1, 2], 3).tolist() == [1, 3]
    assert gpuops.expand(3, (2,)).tolist() == [3, 3]
    assert gpuops.broadcast_to([1, 2], (2, 2)).tolist() == [[1, 2], [1, 2]]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4, 5)], ids=str)
def test_empty_arrays(backend, shape):
    x = np.zeros(shape, "f4")
    for strategy in STRATEGIES:
        assert run(backend, gpuops.expand, x, (2, *shape), strategy=strategy).shape == (2, *shape)
        assert_same(run(backend, gpuops.where, x, x, 1, strategy=strategy), np.where(x, x, 1))


def test_half_types_cast_to_float32_exactly(backend):
    for dtype in HALVES:
        x = np.arange(2**16, dtype="u2").view(dtype)
        out = lay_out(np.zeros(x.shape, "f4"), "C")
        assert_same(run(backend, gpuops.expand, x, x.shape, out=out), x.astype("f4"))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_overlapping_sliding_windows(backend, strategy):
    x = np.lib.stride_tricks.sliding_window_view(np.arange(131, dtype="f4"), 4)
    got = run(backend, gpuops.expand, x, (2, -1, -1), strategy=strategy)
    np.testing.assert_array_equal(got, np.broadcast_to(x, (2, *x.shape)))


def test_broadcast_to_takes_numpy_parameters():
    class Marked(np.ndarray):
        pass

    x = np.arange(3).view(Marked)
    assert type(gpuops.broadcast_to(array=x, shape=(2, 3))) is np.ndarray
    assert type(gpuops.broadcast_to(x, (2, 3), subok=True)) is Marked
    assert type(gpuops.broadcast_to(x, (2, 3), True)) is Marked


def test_results_have_at_most_32_dims_on_gpus(device):
    x = device.array(np.ones((2, 1), "f4"))
    assert gpuops.expand(x, (1,) * 30 + (2, 3)).shape == (1,) * 30 + (2, 3)
    with pytest.raises(ValueError, match="^expand: the result has 33 dims; on a GPU gpuops takes at most 32"):
        gpuops.expand(x, (1,) * 31 + (2, 3))


def test_operands_have_at_most_32_dims_on_gpus():
    x = np.ones((1,) * 62 + (2, 3), "f4")
    assert gpuops.sum(x) == 6
    assert gpuops.softmax(x, -1).shape == gpuops.where(x > 0, x, 0).shape == x.shape
    there = Emulated().array(np.ones((1,) * 31 + (2, 3), "f4"))
    for function in (gpuops.sum, gpuops.max, gpuops.logsumexp):
        with pytest.raises(ValueError, match=f"^{function.__name__}: a has 33 dims; on a GPU gpuops takes at most 32"):
            function(there)
