"""The ops by what they have in common, from the package's own table, and random options for them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from hypothesis import strategies as st

import gpuops
from gpuops.definition import records, scans
from gpuops.ops import table
from gpuops.plan import rows
from tests import layouts


def parameters(op: str) -> list[str]:
    """The names of an op's parameters."""
    return [*inspect.signature(getattr(gpuops, op)).parameters]


REDUCTIONS = tuple(records.REDUCTIONS)
#: Reductions by ufuncs, as NumPy's: they take ``initial``, and cast to ``out`` by the rule same_kind.
UFUNCS = tuple(op for op, row in records.REDUCTIONS.items() if not (row.rules.floating or row.rules.logical))
EXTREMA = tuple(op for op, row in records.REDUCTIONS.items() if not row.rules.identity)
LOGICAL = tuple(op for op, row in records.REDUCTIONS.items() if row.rules.logical)
SPREADS = tuple(op for op, row in records.REDUCTIONS.items() if row.form == "deviations")
WITH_DTYPE = tuple(op for op in REDUCTIONS if "dtype" in parameters(op))
#: softmax and log_softmax, whose results have the shape of the input.
ROWWISE = tuple(op for op, names in table.strategies().items() if names == tuple(rows.STRATEGIES))
SOFTMAXES = (*ROWWISE, "logsumexp")
#: Those whose results are of the elements so far.
SCANS = tuple(scans.SCANS)
WITH_AXIS = (*REDUCTIONS, *SOFTMAXES)


def initial(op: str, value: Any = 0) -> dict[str, Any]:
    """The option without which an op takes no mask and no empty array."""
    return {"initial": value} if op in EXTREMA else {}


@st.composite
def reduction_options(draw: st.DrawFn, op: str, shape: tuple[int, ...], dtype: np.dtype) -> dict[str, Any]:
    """``axis``, ``keepdims`` and ``initial`` of a reduction; a mask may be added."""
    options = {"axis": draw(layouts.axes(len(shape))), "keepdims": draw(st.booleans())}
    if op in EXTREMA or (op in UFUNCS and draw(st.booleans())):
        options["initial"] = draw(st.sampled_from([0, 1] if dtype in layouts.BOOL else [2, 0, np.int8(3)]))
    return options


@st.composite
def softmax_options(draw: st.DrawFn, op: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """``axis``, ``dtype``, ``scale`` and ``keepdims`` of a softmax."""
    options = {"axis": draw(layouts.axes(len(shape)))}
    if draw(st.booleans()):
        options["dtype"] = draw(st.sampled_from(layouts.FLOATS))
    if draw(st.booleans()):
        options["scale"] = draw(st.sampled_from([1, 0.5, -2.0, 0, np.float32(3), 10.0]))
    if op == "logsumexp":
        options["keepdims"] = draw(st.booleans())
    return options
