"""Recorded functions give what the function gives, or None; calls with new shapes are described by them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call import recordings
from gpuops.call.operation import bind
from gpuops.device.execute import changes_of
from gpuops.plan.geometry import contiguous_strides
from gpuops.plan.recording import Symbol, index, record
from gpuops.plan.work import ArraySpec, Machine
from tests.budget import examples

MACHINE = Machine(132, cluster=16, shared=227 * 1024, together=132)
#: What programs do with two numbers: arithmetic, and decisions.
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "max": max, "min": min,
    "//": lambda a, b: a // b if b else 7, "%": lambda a, b: a % b if b else 7,
    "/": lambda a, b: a / b if b else 7, "divmod": lambda a, b: divmod(a, b)[0] if b else 7,
    "less": lambda a, b: -a if a < b else b, "at most": lambda a, b: abs(b) if a <= b else a,
    "equal": lambda a, b: 1 if a == b else a, "unequal": lambda a, b: 2 if a != b else b,
    "true": lambda a, b: a if b else 3,
}  # fmt: skip


class Box(NamedTuple):
    items: tuple[Any, ...]
    name: str


# ---------------------------------------------------------------------------------------------------------- recordings


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, int, int | float]]:
    """Steps (sign, index of an earlier number, index of another or a literal)."""
    steps = []
    for n in range(3, 3 + draw(st.integers(1, 12))):
        right = draw(st.one_of(st.integers(0, n - 1), st.sampled_from((0.5, -0.0, 3.0))))
        steps.append((draw(st.sampled_from([*STEPS])), draw(st.integers(0, n - 1)), right))
    return steps


def run(program: list[tuple[str, int, int | float]], numbers: list[Any]) -> list[Any]:
    """The numbers that a program makes. Those after a comparison depend on how it went."""
    found = list(numbers)
    for sign, left, right in program:
        found.append(STEPS[sign](found[left], found[right] if isinstance(right, int) else right))
    return found


def bits(numbers: list[Any]) -> list[str]:
    return [repr(number) for number in numbers]


@examples(200)
@given(programs(), st.tuples(*[st.integers(-9, 40)] * 3), st.lists(st.tuples(*[st.integers(-9, 40)] * 3), max_size=8))
def test_a_recorded_function_gives_what_the_function_gives(program, numbers, others):
    recorded = record(lambda symbols: run(program, symbols), numbers)
    assert bits(recorded(*numbers)) == bits(run(program, list(numbers)))
    for other in others:
        result = recorded(*other)
        assert result is None or bits(result) == bits(run(program, list(other)))


def test_bits_are_recorded():
    recorded = record(lambda n: ((n[0] & 6) | 1, 1 << n[0], n[0] >> 1, 3 | n[0], (n[0] << 2).bit_length()), [5])
    for n in range(20):
        assert recorded(n) == ((n & 6) | 1, 1 << n, n >> 1, 3 | n, (n << 2).bit_length())


def test_infinity_is_a_literal():
    recorded = record(lambda n: (n[0] < math.inf, n[0] - math.inf), [5])
    assert recorded(6) == (True, -math.inf)


def test_results_keep_their_structure():
    def function(n):
        return Box((n[0] + 1, (n[1], "fixed"), {"size": n[0]}, [n[1]]), "box"), None

    recorded = record(function, [1, 2])
    assert recorded(5, 6) == (Box((6, (6, "fixed"), {"size": 5}, [6]), "box"), None)
    assert type(recorded(5, 6)[0]) is Box


def test_what_does_not_depend_on_numbers_is_made_once():
    fixed = (1, 2)
    recorded = record(lambda n: (fixed, n[0]), [3])
    assert recorded(4)[0] is fixed


@pytest.mark.parametrize(
    "function",
    [
        lambda n: "abcdef"[n[0]], lambda n: {3: "three"}.get(n[0]), lambda n: list(range(n[0])),
        lambda n: int(n[0]) * 2, lambda n: math.gcd(n[0], 6), lambda n: hash((n[0], 1)), lambda n: {n[0]} == {3},
        lambda n: f"{n[0]}", lambda n: float(n[0]), lambda n: round(n[0] / 2), lambda n: repr(n[0]),
        lambda n: lru_cache(lambda k: "cached")(n[0]), lambda n: n[0] * 2 if n[0].bit_length() in (2,) else 0,
    ],
)  # fmt: skip
def test_using_the_value_of_a_number_is_a_guard(function):
    recorded = record(function, [3])
    assert recorded(3) == function([3])
    assert recorded(4) is None


def test_decisions_are_guards():
    recorded = record(lambda n: "long" if n[0] >= 10 and n[1] % 4 == 0 else "short", [12, 8])
    assert (recorded(10, 4), recorded(9, 4), recorded(10, 5)) == ("long", None, None)


def test_truth_is_a_guard():
    recorded = record(lambda n: "some" if n[0] else "none", [5])
    assert (recorded(7), recorded(0)) == ("some", None)


def test_comparison_with_other_types_is_no_guard():
    recorded = record(lambda n: (n[0] == "text", n[0] != None, n[0]), [5])  # noqa: E711
    assert recorded(6) == (False, True, 6)
    with pytest.raises(TypeError):
        record(lambda n: n[0] + "text", [5])


def test_index_keeps_symbols_and_refuses_what_is_no_int():
    recorded = record(lambda n: index(n[0]) + 1, [5])
    assert (recorded(9), index(np.int8(3)), type(index(np.int8(3)))) == (10, 3, int)
    with pytest.raises(TypeError):
        index(1.5)


def test_floats_keep_the_type_and_the_sign_of_zero():
    functions = (
        lambda n: n[0] / 2 // 1, lambda n: n[0] * -0.0 + 0, lambda n: 0 + n[0] * -0.0, lambda n: 1 * (n[0] / 2),
        lambda n: n[0] * math.nan,
    )  # fmt: skip
    for function in functions:
        assert repr(record(function, [5])(4)) == repr(function([4]))


def test_sets_of_symbols_cannot_be_recorded():
    with pytest.raises(TypeError, match="a set of symbols cannot be recorded"):
        record(lambda n: {n[0]}, [5])


# ---------------------------------------------------------------------------------------------------------- new shapes


def call_of(op: str, args: list[Any], **options: Any) -> tuple[Any, dict[str, ArraySpec]]:
    """A call with specs in the place of arrays, and these."""
    public = getattr(gpuops, op)
    call = bind(public, public.operation, tuple(args), options)
    specs = {name: value for name, value in call.given.items() if isinstance(value, ArraySpec)}
    return call, specs


def over(x: ArraySpec, aliases: tuple[str, ...] = ()) -> ArraySpec:
    """The spec of an ``out`` that shares memory with an operand, and perhaps begins where it does."""
    return x._replace(name="out", overlaps=("x",), aliases=aliases)


def spec(name: str, shape: tuple[int, ...], dtype: str = "f4", strides: tuple[int, ...] | None = None) -> ArraySpec:
    kind = np.dtype(dtype)
    strides = contiguous_strides(shape) if strides is None else strides
    return ArraySpec(name, shape, kind, tuple(s * kind.itemsize for s in strides), MACHINE)


SIZES = st.one_of(st.integers(1, 40), st.sampled_from((64, 100, 128, 256, 1000, 1024, 4096, 5000, 10**5)))
#: Calls on two arrays of shape (m, n), given also sizes and strides of their own.
CALLS = {
    "sum": lambda x, y: call_of("sum", [x], axis=1),
    "max of columns": lambda x, y: call_of("max", [x], axis=0),
    "mean of all": lambda x, y: call_of("mean", [x]),
    "sum by a rung": lambda x, y: call_of("sum", [x], axis=1, strategy="shuffle"),
    "sum of a mask": lambda x, y: call_of("sum", [x], axis=0, where=spec("mask", x.shape, "?"), initial=2.5),
    "sum into": lambda x, y: call_of("sum", [x], axis=1, out=spec("out", x.shape[:1])),
    "argmax": lambda x, y: call_of("argmax", [x], axis=1),
    "argmin of all": lambda x, y: call_of("argmin", [x], keepdims=True),
    "softmax in place": lambda x, y: call_of("softmax", [y], axis=1, out=over(y, aliases=("x",))),
    "softmax over its operand": lambda x, y: call_of("softmax", [y], axis=1, out=over(y)),
    "softmax": lambda x, y: call_of("softmax", [x], axis=1),
    "softmax of columns": lambda x, y: call_of("softmax", [x], axis=0),
    "softmax of all": lambda x, y: call_of("log_softmax", [x], axis=None),
    "softmax in several passes": lambda x, y: call_of("softmax", [x], axis=1, strategy="grid_online"),
    "logsumexp": lambda x, y: call_of("logsumexp", [x], axis=1, b=y),
    "where": lambda x, y: call_of("where", [x, y, x]),
    "where of a row": lambda x, y: call_of("where", [x, y, spec("row", x.shape[1:])]),
    "expand": lambda x, y: call_of("expand", [x, (3, *x.shape)]),
    "expand a column": lambda x, y: call_of("expand", [spec("column", (x.shape[0], 1)), x.shape]),
    "matmul": lambda x, y: call_of("matmul", [x, spec("b", (x.shape[1], 48))]),
    "matmul transposed": lambda x, y: call_of("matmul", [x, y.transpose((1, 0))]),
    "dot": lambda x, y: call_of("dot", [x, spec("v", x.shape[1:])]),
}  # fmt: skip


def numbers_of(call: Any, specs: dict[str, ArraySpec]) -> tuple[int, ...]:
    """The sizes and strides of a call."""
    found: list[int] = []
    for name, value in call.given.items():
        if name in specs:
            found += (*specs[name].shape, *specs[name].strides)
        elif name in call.operation.shapes:
            found += value
    return tuple(found)


def described(kind: recordings.Kind, call: Any, specs: dict[str, ArraySpec]) -> Any:
    return recordings.described(call, specs, kind, numbers_of(call, specs))


@pytest.mark.turns(2, everywhere=True)
@pytest.mark.parametrize("name", CALLS)
@examples(25)
@given(data=st.data())
def test_recorded_descriptions_equal_the_ones_they_stand_for(name, data, always_recorded):
    kind = recordings.Kind()
    for _ in range(8):
        m, n = data.draw(SIZES), data.draw(SIZES)
        strides = data.draw(st.sampled_from([None, None, (1, m), (n + 1, 1), (-n, 1), (0, 1)]))
        call, specs = CALLS[name](spec("x", (m, n), strides=strides), spec("y", (m, n)))
        found, right = described(kind, call, specs), call.describe(specs)
        assert found == right and repr(found) == repr(right)
        numbers = numbers_of(call, specs)
        for recorded in kind.recorded:
            changes = recorded.changes and recorded.changes(*numbers)
            assert changes is None or changes == changes_of(right)
            assert (changes is None) == (recorded.changes is None or recorded.work(*numbers) is None)


@pytest.fixture
def always_recorded(monkeypatch):
    """Every call that no recording serves is recorded."""
    monkeypatch.setattr(recordings, "EVERY", 1)
    monkeypatch.setattr(recordings, "EARNED", 0)


@pytest.mark.parametrize("name", CALLS)
def test_new_shapes_need_no_description(name):
    unknown, kind = 0, recordings.Kind()
    for rows in range(301, 601, 2):
        call, specs = CALLS[name](spec("x", (rows, 96)), spec("y", (rows, 96)))
        unknown += kind.find(numbers_of(call, specs)) is None
        described(kind, call, specs)
    assert unknown <= 5 * recordings.EVERY  # of 150: until there are recordings, and where tiles and alignment change


def test_recordings_are_made_ever_more_rarely_unless_they_pay():
    kind = recordings.Kind()
    assert [n for n in range(1, 100) if kind.due()] == [10, 20, 30, 50, 90]
    kind.served = recordings.EARNED
    assert [n for n in range(100, 300) if kind.due()] == [170, 180, 200, 240]


def test_the_latest_recordings_are_kept_and_tried_first():
    kind = recordings.Kind()
    every = [
        SimpleNamespace(work=lambda *numbers, n=n: n if numbers == (n,) else None, changes=None)
        for n in range(recordings.MOST + 3)
    ]
    for each in every:
        kind.add(each)
    assert kind.recorded == every[: -recordings.MOST - 1 : -1]
    assert kind.find((3,)) == 3
    assert kind.recorded[0] is every[3] and len(kind.recorded) == recordings.MOST
    assert kind.find((0,)) is None


def test_what_cannot_be_recorded_is_described_each_time(monkeypatch):
    def recorded(*arguments):
        raise TypeError("an operation that symbols do not have")

    monkeypatch.setattr(recordings, "Recorded", recorded)
    kind = recordings.Kind()
    for rows in range(5, 5 + 4 * recordings.EVERY):
        call, specs = CALLS["sum"](spec("x", (rows, 7)), None)
        assert described(kind, call, specs) == call.describe(specs)
    assert kind.recorded == []


def test_results_whose_elements_interleave_are_recorded():
    kind = recordings.Kind()
    for length in range(2, 40):
        out = spec("out", (2, 3), strides=(3, 2))._replace(overlaps=(), aliases=())
        call, specs = call_of("sum", [spec("x", (2, 3, length))], axis=2, out=out)
        assert described(kind, call, specs) == call.describe(specs)
    assert kind.recorded


def test_symbols_do_not_leave_a_recording():
    call, specs = CALLS["matmul"](spec("x", (64, 48)), None)
    kind = recordings.Kind()
    for _ in range(recordings.EVERY + 1):
        work = described(kind, call, specs)
    assert not contains_symbols(work)


def contains_symbols(value: Any) -> bool:
    if isinstance(value, dict):
        value = tuple(value.values())
    return any(map(contains_symbols, value)) if isinstance(value, (tuple, list)) else type(value) is Symbol
