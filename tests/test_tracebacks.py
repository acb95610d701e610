"""Tracebacks of errors about arguments end at the call; those of anything else are whole."""

from __future__ import annotations

import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuops
import gpuops.array_api as xp
from gpuops.ops import reduction
from tests.host_blocks import small_blocks

X = np.arange(12.0).reshape(3, 4)
NANS = np.full((60, 10), np.nan)
PACKAGE = str(Path(gpuops.__file__).parent)


class Foreign:
    """Another library's array."""

    def __dlpack__(self, **options):
        return X.__dlpack__(**options)

    def __dlpack_device__(self):
        return X.__dlpack_device__()


def frames(failure: BaseException) -> list[traceback.FrameSummary]:
    """The frames of the package in a traceback."""
    return [each for each in traceback.extract_tb(failure.__traceback__) if each.filename.startswith(PACKAGE)]


def raised(call: Any, *args: Any) -> Exception:
    """What a call raises."""
    try:
        call(*args)
    except Exception as failure:
        return failure
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("call", [
    lambda x: gpuops.sum(x, axis=5), lambda x: gpuops.argmax(x, axis=(0, 1)), lambda x: gpuops.softmax(x, axis="a"),
    lambda x: gpuops.matmul(x, x), lambda x: gpuops.where(x, x, "a"), lambda x: gpuops.broadcast_to(x, (5, 5)),
    lambda x: gpuops.sum(x, dim=0), lambda x: gpuops.sum(x, nonsense=0), lambda x: gpuops.sum(),
    lambda x: gpuops.softmax(x, 1, 2), lambda x: gpuops.sum(x, x, a=x), lambda x: gpuops.sum({}),
])  # fmt: skip
def test_errors_about_arguments_show_one_frame(backend, call):
    for _ in range(2):
        assert len(frames(raised(call, backend.array(X)))) == 1


def test_errors_of_other_libraries_arrays_show_one_frame():
    da = pytest.importorskip("dask.array", reason="arrays are Dask's")
    for x in (Foreign(), da.from_array(X, 2)):
        failure = raised(lambda x: gpuops.sum(x, axis=5), x)
        assert isinstance(failure, np.exceptions.AxisError) and len(frames(failure)) == 1
    failure = raised(gpuops.matmul, da.from_array(X, 2), X)
    assert isinstance(failure, ValueError) and len(frames(failure)) == 1


def test_errors_of_the_standards_functions_show_two_frames():
    assert len(frames(raised(lambda: xp.sum(X, axis=5)))) == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_of_cached_calls_show_one_frame(threads):
    with small_blocks(threads):
        failures = [raised(gpuops.nanargmax, x, 1) for x in (NANS, NANS[:3]) for _ in ("a miss", "a hit")]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            failures += [raised(gpuops.nanmean, NANS, 1) for _ in ("a miss", "a hit")]
    assert [type(each) for each in failures] == [*[ValueError] * 4, *[RuntimeWarning] * 2]
    assert [len(frames(each)) for each in failures] == [1] * 6


def test_causes_are_kept():
    class Broken(Foreign):
        def __dlpack_device__(self):
            raise OSError("gone")

    failure = raised(gpuops.sum, Broken())
    assert type(failure) is TypeError and len(frames(failure)) == 1
    assert type(failure.__cause__) is OSError and failure.__cause__.__traceback__ is not None


@pytest.mark.parametrize("kind", [KeyError, AssertionError, TypeError, ValueError])
def test_errors_of_the_library_itself_show_where(monkeypatch, backend, kind):
    def broken(*args: Any) -> Any:
        raise kind("a bug")

    monkeypatch.setattr(reduction, "normalize_axis", broken)
    shown = frames(raised(gpuops.sum, backend.array(X), 1))
    assert shown[-1].filename == reduction.__file__ and len(shown) > 4
    assert len([each for each in shown if each.name == "public"]) == 1
