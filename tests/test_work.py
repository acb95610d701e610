"""Descriptions of calls are pure: specs in, an equal and printable `Work` out; and how ``out`` lies to the operands."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuops
from gpuops.call.dispatch import describe
from gpuops.definition import records, scans
from gpuops.device.execute import related
from gpuops.host import blocks, threads
from gpuops.plan.work import ArraySpec, Machine, new_array

MACHINE = Machine(132, cluster=16, shared=227 * 1024, together=132)
WITHOUT_NAN = ("nanmax", "nanmin", "nanprod", "nansum", "nanmean")
COUNTED = ("where alone", "nonzero", "compress")  # calls whose results' shape depends on elements
MORE = ("nanargmax", "nanargmin", *records.WITH_INDEX, *records.MEASURES, "vector_norm")
#: Calls on an array x of shape (6, 40), a mask of that shape, and an array ``out`` of shape (6,).
CALLS = {
    **{
        f"{op} {name}": (op, lambda x, mask, out, options=options: ((x,), options))
        for op in ("all", "amax", "amin", "any", "max", "mean", "min", "prod", "sum")
        for name, options in {"rows": {"axis": 1}, "columns": {"axis": 0, "keepdims": True}, "whole": {}}.items()
    },
    **{op: (op, lambda x, mask, out: ((x,), {"axis": 1})) for op in WITHOUT_NAN},
    **{op: (op, lambda x, mask, out: ((x,), {"axis": 0, "ddof": 1})) for op in ("var", "std", "nanvar", "nanstd")},
    "argmax": ("argmax", lambda x, mask, out: ((x,), {"axis": 1})),
    "argmin of all": ("argmin", lambda x, mask, out: ((x,), {})),
    **{op: (op, lambda x, mask, out: ((x,), {"axis": 1})) for op in MORE},
    **{f"{op} of two": (op, lambda x, mask, out: ((x, x), {})) for op in ("allclose", "array_equal")},
    "average": ("average", lambda x, mask, out: ((x, 1, x), {})),
    "sum of another dtype": ("sum", lambda x, mask, out: ((x,), {"axis": 1, "dtype": np.float64})),
    "sum of a mask": ("sum", lambda x, mask, out: ((x,), {"axis": 1, "where": mask, "initial": 2.5})),
    "sum into": ("sum", lambda x, mask, out: ((x,), {"axis": 1, "out": out})),
    "softmax": ("softmax", lambda x, mask, out: ((x,), {"axis": 1})),
    "log_softmax": ("log_softmax", lambda x, mask, out: ((x,), {"axis": 0, "scale": 0.5})),
    "rms_norm": ("rms_norm", lambda x, mask, out: ((x,), {})),
    "rms_norm of a mask": ("rms_norm", lambda x, mask, out: ((x, 0), {"where": mask})),
    "logsumexp": ("logsumexp", lambda x, mask, out: ((x,), {"axis": 1, "where": mask})),
    **{f"{op} along rows": (op, lambda x, mask, out: ((x,), {"axis": 1})) for op in scans.SCANS},
    "cumsum of all, exclusive": ("cumsum", lambda x, mask, out: ((x,), {"exclusive": True, "reverse": True})),
    "cummax into": ("cummax", lambda x, mask, out: ((out, 0), {"out": out})),
    "expand": ("expand", lambda x, mask, out: ((x, (3, -1, 40)), {})),
    "evaluate": ("evaluate", lambda x, mask, out: ((x,), {})),
    "broadcast_to": ("broadcast_to", lambda x, mask, out: ((x, (3, 6, 40)), {})),
    "where": ("where", lambda x, mask, out: ((mask, x, 0), {})),
    "where alone": ("where", lambda x, mask, out: ((x,), {})),
    "nonzero": ("nonzero", lambda x, mask, out: ((mask,), {})),
    "compress": ("compress", lambda x, mask, out: ((out, x, 0), {})),
    "dot": ("dot", lambda x, mask, out: ((out, x), {})),
    "matmul": ("matmul", lambda x, mask, out: ((out, x), {})),
    "matmul by a rung": ("matmul", lambda x, mask, out: ((out, x), {"strategy": "warptile"})),
}
ARRAYS = {
    "x": np.linspace(-1, 1, 240, dtype=np.float32).reshape(6, 40), "mask": np.arange(240).reshape(6, 40) % 3 == 0,
    "out": np.ones(6, np.float32),
}  # fmt: skip


def test_every_op_is_described():
    others = {"array_api", "info", "lazy", "strategies"}
    assert {op for op, _ in CALLS.values()} == {*gpuops.__all__} - others


def described(call, machine):
    """The description of a call, made of specs alone."""
    specs = {name: ArraySpec(name, x.shape, x.dtype, x.strides, machine) for name, x in ARRAYS.items()}
    op, arguments = CALLS[call]
    args, options = arguments(**specs)
    return describe(getattr(gpuops, op), *args, **options)


@pytest.mark.parametrize("call", CALLS)
def test_a_description_needs_specs_alone(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # which makes its import an error
    first, again = described(call, MACHINE), described(call, MACHINE)
    assert repr(first) == repr(again)
    assert first._replace(host=None) == again._replace(host=None)
    assert (first.plan is None) != (first.method is None)
    assert described(call, None).plan is None


@pytest.mark.parametrize("call", CALLS)
def test_a_description_is_the_same_in_every_environment(call, monkeypatch):
    machines = (MACHINE, None)
    first = [described(call, machine) for machine in machines]
    other = 7 if threads.limit() == 1 else 1
    monkeypatch.setattr(threads, "limit", lambda: other)
    monkeypatch.setitem(sys.modules, "numba", None)
    blocks.compiled.cache_clear()
    again = [described(call, machine) for machine in machines]
    blocks.compiled.cache_clear()
    assert [repr(work) for work in first] == [repr(work) for work in again]


@pytest.mark.parametrize("call", CALLS)
def test_a_description_reads_well(call):
    """Its text names the op, the results, the strategy and each step; its table has what the text has."""
    work, host = described(call, MACHINE), described(call, None)
    first, *lines = str(work).splitlines()
    assert first.startswith(f"{work.op}: ")
    assert all(f"{each.name} {each.dtype} {each.shape}" in first for each in work.results)
    results = first if work.results else f"{work.op}: "
    maker = f"{', ' * bool(work.results)}by {host.host.function.__name__} on the host"
    assert str(host) == (f"{results}{maker}" if host.method is None else first)
    if work.plan is None:
        assert not lines and work._repr_html_() is None
        return
    assert lines == str(work.plan).splitlines() and lines[0].startswith(f"strategy {work.plan.strategy}")
    heads = [line.split()[:2] for line in lines[1:] if line[0] != " "]
    assert heads == [[str(i), getattr(step, "kernel", type(step)).name] for i, step in enumerate(work.plan.steps, 1)]
    assert max(map(len, lines)) <= 120
    assert work._repr_html_().count("<tr>") == 1 + len(work.plan.steps)


def test_tables_of_descriptions_have_text_alone():
    """The template arguments of kernels are text, not tags."""
    page = described("sum rows", MACHINE)._repr_html_()
    assert "Op=Sum&lt;Tval, false&gt;" in page and "<Tval" not in page


def test_steps_that_are_no_launches_say_what_they_do():
    x = new_array("x", (64, 64), np.dtype(np.float64), machine=MACHINE)
    assert "1  Gemm\n   A call of cuBLAS: " in str(describe(gpuops.matmul, x, x))


def test_launches_say_how_their_blocks_go_together():
    x = new_array("x", (1, 2**22), np.dtype(np.float32), machine=MACHINE)
    text = str(describe(gpuops.softmax, x, axis=1))
    assert re.search(r"1  softmax_grid  grid \(\d+, 1, 1\), cooperative  block \d+  shared \d+$", text, re.MULTILINE)


def test_interactive_python_prints_descriptions_as_text():
    work, printed = described("sum rows", MACHINE), []
    for thing in (work, work.plan):
        thing._repr_pretty_(SimpleNamespace(text=printed.append), False)
    assert printed == [str(work), str(work.plan)]


@pytest.mark.parametrize("call", [call for call in CALLS if call not in (*COUNTED, "broadcast_to")])
def test_a_description_has_the_shape_and_dtype_of_the_result(call):
    op, arguments = CALLS[call]
    args, options = arguments(**ARRAYS)
    expected = getattr(gpuops, op)(*args, **options)
    results = described(call, MACHINE).results
    several = [*map(np.asarray, expected if isinstance(expected, tuple) else (expected,))]
    assert [(each.shape, each.dtype) for each in results] == [(each.shape, each.dtype) for each in several]


# ------------------------------------------------------------------------------------------------------------ overlap


SPAN = 160  # bytes


@st.composite
def views(draw, memory):
    """An array over the middle third of memory, with strides of either sign."""
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=2)))
    strides = tuple(draw(st.integers(-12, 12)) for _ in shape)
    spans = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low, high = sum(min(0, span) for span in spans), sum(max(0, span) for span in spans)
    offset = draw(st.integers(SPAN - low, 2 * SPAN - high - 2))
    return np.ndarray(shape, np.int16, memory, offset, strides)


@given(st.data())
def test_out_knows_which_arrays_share_its_memory(data):
    """By the first and last byte, as ``np.may_share_memory`` tells it."""
    memory = np.zeros(3 * SPAN, np.uint8)
    x, y, out = (data.draw(views(memory)) for _ in range(3))
    arrays = {"x": x, "out": out, "y": y}
    specs = {name: ArraySpec(name, array.shape, array.dtype, array.strides) for name, array in arrays.items()}
    begin = [array.ctypes.data for array in arrays.values()]
    spec, fits = related(specs, begin)
    near = {name for name, array in (("x", x), ("y", y)) if np.may_share_memory(array, out)}
    same = {name for name, array in (("x", x), ("y", y)) if array.ctypes.data == out.ctypes.data}
    assert ({*spec.overlaps}, {*spec.aliases}) == (near, same)
    assert (fits is None) == bool(near - same)
    if fits is not None and "x" not in same:
        start = x.ctypes.data - memory.ctypes.data + data.draw(st.integers(-SPAN, SPAN))
        moved = np.ndarray(x.shape, x.dtype, memory, start, x.strides)
        assert fits([moved.ctypes.data, *begin[1:]]) != np.may_share_memory(moved, out)
