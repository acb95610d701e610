"""``bench thresholds``: what the planners' thresholds are worth, each measured beside other values of it.

A threshold is a constant of a planner whose value was found by measurement. It is set to another value for a while, and
the calls that it decides are planned and timed anew; docs/kernels/thresholds.md is written from that.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import math
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import gpuops.plan
from gpuops.call import launch_cache

from .accuracy import load_all
from .cases import Case, Group, Operand, Problem, along, together
from .harness import prepare as prepared
from .harness import ring_of, with_memory
from .machines import machine_here
from .ops import expected
from .providers import Gpuops, first_line
from .results import ROOT, Document, Unusable, commit, prepare, save_rows, write
from .timing import ROUNDS, Subject

FOLDER = ROOT / "benchmarks" / "thresholds"
PAGE = ROOT / "docs" / "kernels" / "thresholds.md"


class Probe(NamedTuple):
    """A call that a threshold decides."""

    op: str
    problem: Problem
    dtype: str = "float32"
    strategy: str = ""

    @property
    def case(self) -> Case:
        group = Group("thresholds", "", (self.problem,), self.dtype, ())
        return Case(self.op, group, self.problem, self.dtype, pick=False)


class Threshold(NamedTuple):
    """A constant of a module of ``gpuops.plan``, other values of it, and calls near the place where it decides."""

    module: str
    name: str
    others: tuple[Any, ...]
    probes: tuple[Probe, ...]

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


def over(op: str, *cases: Any, dtype: str = "float32", strategy: str = "") -> tuple[Probe, ...]:
    """Probes along an axis: a shape, an axis and perhaps a layout each."""
    return tuple(Probe(op, along(*case), dtype, strategy) for case in cases)


def stretch(*cases: Any, dtype: str = "float32") -> tuple[Probe, ...]:
    """Probes of ``expand``: from a shape to a shape."""
    return tuple(Probe("expand", Problem((Operand(*one),), shape=to), dtype) for *one, to in cases)


def product(m: int, n: int, k: int, *layouts: str, dtype: str = "float32") -> tuple[Probe, ...]:
    """A probe of ``matmul``."""
    a, b = layouts or ("C", "C")
    return (Probe("matmul", Problem((Operand((m, k), a), Operand((k, n), b)), shape=(m, n)), dtype),)


WIDE = (8192, 8192)
INF = math.inf
THRESHOLDS = (
    Threshold("access", "RAGGED", (2, 16), over("sum", ((2**20, 45), 1)) + over("softmax", ((2**18, 127), 1))),
    # ---- small arrays
    Threshold("small", "LEAST", (64, 256), over("sum", ((333, 33), 1), ((1000, 100), 1))),
    Threshold("small", "FILLED", (512, 2048), over("sum", ((1000, 1000), 0), ((100, 100, 100), 1))),
    Threshold("small", "EACH", (2, 8), over("sum", ((333, 333), 1), ((333, 333), 0)) + over(
        "softmax", ((333, 333), 1), ((333, 333), 0))),
    Threshold("maps.elements", "BLOCK", (128, 512), stretch(((333, 1), (333, 333)), ((700, 1), (700, 701)))),
    Threshold("maps.elements", "UNROLL", (1, 4), stretch(((333, 1), (333, 333)), ((700, 1), (700, 701)))),
    Threshold("maps.elements", "WHOLE", (0, 2**18), stretch(((1, 32), (32, 32)), ((1, 64), (256, 64)))),
    Threshold("maps.elements", "ACROSS", (2**16, 2**21), stretch(((300, 300), "F", (300, 300)), (
        (500, 500), "F", (500, 500)))),
    Threshold("maps.elements", "ODD", (2**16, 2**24), stretch(((333, 1), (333, 333)), ((1500, 1), (1500, 1500)))),
    Threshold("reductions.small", "WHOLE", (0, 2**13), over("sum", ((1000,), None), ((4096,), None))),
    Threshold("reductions.small", "WIDE", (0, 2**20), (
        *over("sum", ((2**14,), None), ((2**17,), None), ((2**19,), None), dtype="float64"),
        *over("sum", ((200_001,), None), ((500_001,), None)))),
    Threshold("reductions.small", "SHORT", (0, 2048), (
        *over("sum", ((2**15, 16), 1), ((2**14, 64), 1), ((2**13, 200), 1), ((2**12, 128), 1)),
        *over("sum", ((2**14, 64), 1), dtype="float16"))),
    Threshold("reductions.small", "LONG", (2**14, 2**20), over("sum", ((400, 400), 1), ((1000, 1000), 1))),
    Threshold("reductions.small", "ODD", (2**14, 2**23), (
        *over("sum", ((333, 333), 1), ((333, 333), 0), ((1400, 1401), 1), ((1500, 1500), 0)),)),
    Threshold("reductions.small", "UNROLL", (4, 16), over("sum", ((1000,), None), ((333, 333), 0))),
    Threshold("reductions.small", "WORTH", (12, 48), (
        *over("sum", ((30001,), None), ((5, 50001), 1)), *over("var", ((20011,), None)),
        *over("sum", ((3000, 30), 0), dtype="float16"))),
    Threshold("reductions.small", "LEAST", (2, 16), over("sum", ((5, 50001), 1), ((50000, 5), 0))),
    Threshold("rows.small", "EACH", (4, 16), over("softmax", ((333, 333), 1), ((1000, 1000), 0))),
    Threshold("rows.small", "COLS", (2**10, 2**13), over("softmax", ((20, 3000), 1), ((7000, 100), 0))),
    Threshold("rows.small", "ONE", (0, 2**15), over("softmax", ((1500,), 0), ((4096,), 0))),
    Threshold("rows.small", "SMALL", (2**16, 2**20), over("softmax", ((300, 300), 1), ((400, 400), 1))),
    Threshold("rows.small", "ODD", (2**16, 2**24), (
        *over("softmax", ((333, 333), 0), ((1500, 1500), 0), ((8192, 31), 1)),)),
    Threshold("rows.small", "NARROW", (8, 64), over("softmax", ((8192, 17), 1), ((8192, 45), 1))),
    # ---- maps
    Threshold("maps.packs", "BLOCK", (dict.fromkeys((1, 2, 3), 256), dict.fromkeys((1, 2, 3), 128)), (
        *stretch(((1, 8192), WIDE)), Probe("where", together(WIDE, WIDE, WIDE)))),
    Threshold("maps.packs", "IN_FLIGHT", (1, 4), (
        *stretch(((1, 8192), WIDE)), Probe("where", together(WIDE, WIDE, WIDE)))),
    Threshold("maps.packs", "FEW", (2**16, 2**20), stretch(((1, 2048), (1024, 2048)), ((1, 2048), (256, 2048)))),
    Threshold("maps.packs", "AHEAD", (0, 2**26), stretch(((1, 2**21), (64, 2**21)), ((1, 2**23), (16, 2**23)))),
    Threshold("builder", "TURNED", (2**12, 2**20), tuple(
        Probe("polynomial", together(Operand(shape, "F"), *[shape] * 4)) for shape in ((128, 128), (512, 512)))),
    *[Threshold("maps.evaluate", name, others, (
        Probe("standardize", together(WIDE, WIDE[1:], (8192, 1))), Probe("polynomial", together(*[WIDE] * 5)),
        Probe("standardize", together((1024, 1024), (1024,), (1024, 1)))))
      for name, others in (("BLOCK", (128, 512)), ("LOADED", (32, 128)))],
    Threshold("expression", "REPEATS", (2, 2**30), tuple(
        Probe("squared_distance", together(WIDE, second)._replace(axis=axis))
        for second in (WIDE[1:], (8192, 1)) for axis in (0, 1))),
    Threshold("expression", "L1", (1, 2**20), (
        Probe("standardize", together(WIDE, (8192,), (8192, 1))),
        Probe("scaled_logsumexp", together((4096, 50257), (50257,), (50257,))._replace(axis=1)))),
    Threshold("maps.stepped", "BLOCK", (128, 512), stretch(((1, 2**21), (64, 2**21)))),
    Threshold("maps.stepped", "IN_FLIGHT", (1, 4), stretch(((1, 2**21), (64, 2**21)))),
    Threshold("maps.stepped", "FEW", (2**16, 2**20), stretch(((1, 2**18), (64, 2**18)))),
    *[Threshold("maps.stepped", name, others, (
        *stretch(((1, 21), (3_000_000, 21)), ((1, 97), (691_843, 97)), ((1, 7001), (12_000, 7001)), dtype="float16"),
        *stretch(((1, 21), (3_000_000, 21)), ((1, 97), (691_843, 97)), dtype="int8")))
      for name, others in (("TOGETHER", (2**10, 2**14)), ("ROUNDS", (4, 16)))],
    Threshold("maps.stepped", "NARROW", (1, 4), (
        *stretch(((1, 21), (3_000_000, 21)), dtype="float16"), *stretch(((1, 21), (3_000_000, 21))))),
    Threshold("maps.stepped", "STEPS", (((INF, 1),), ((2**17, 1), (INF, 4)), ((2**17, 1), (INF, 64))), stretch(
        ((1, 2**15), (2048, 2**15)), ((1, 2**21), (64, 2**21)), ((1, 2**23), (16, 2**23)))),
    Threshold("maps.tiled", "BLOCK", (128, 512), (
        *stretch((WIDE, "F", WIDE)), *stretch((WIDE, "F", WIDE), dtype="float16"))),
    Threshold("maps.tiled", "SIDE", (8, 32), stretch(((24, 2**20), "F", (24, 2**20)))),
    Threshold("maps.tiled", "COLS", (16, 32), stretch(*(((2**20, n), "F", (2**20, n)) for n in (24, 32, 40)))),
    Threshold("maps.tiled", "TILES", ({1: 64, 2: 32, 4: 32, 8: 32, 16: 32},), (
        *stretch((WIDE, "F", WIDE), dtype="int8"), *stretch((WIDE, "F", WIDE)))),
    # ---- reductions
    Threshold("reductions.launch", "IN_FLIGHT", (4, 16), over("sum", (WIDE, 1), (WIDE, 0), ((2**28,), None))),
    Threshold("reductions.launch", "THREADS_PER_SM", (512, 2048), over("sum", ((2**28,), None), ((2**22, 16), 0))),
    Threshold("reductions.launch", "WAVES", (2, 9), over("sum", ((2**26,), None), ((7, 2**24), 1), ((2**22, 16), 0))),
    Threshold("reductions.launch", "START", (0, 8), (
        *over("sum", ((777, 3333), 0), ((16, 10**5), 1), ((65536, 1024), 0)),)),
    Threshold("reductions.classic", "LEAST", (1, 16), over("sum", ((2**20,), None), strategy="shuffle")),
    *[Threshold("reductions.rows", name, others, tuple(
        Probe("cosine", together(shape, shape)._replace(axis=1)) for shape in (WIDE, (65536, 1024))))
      for name, others in (
          ("SEVERAL_PACKS", (8, 128)), ("SEVERAL_BLOCK", (64, 128)), ("SEVERAL_ROOM", (160, 640)))],
    *[Threshold(f"reductions.{module}", name, others, tuple(
        Probe("cosine", together(shape, shape)._replace(axis=0)) for shape in (WIDE, (65536, 1024))))
      for module, name, others in (
          ("columns", "SEVERAL_HELD", (192, 800)), ("columns", "SEVERAL_ROOM", (320, 1280)),
          ("launch", "SEVERAL_PER_SM", (512,)))],
    Threshold("reductions.rows", "BLOCK", (128, 512), over("sum", ((2**18, 256), 1), ((2**20, 64), 1))),
    Threshold("reductions.rows", "LANES_PACKS", ({False: 256, True: 256}, {False: 768, True: 768}), (
        *over("sum", ((2**16, 1088), 1), ((4096, 1536), 1)), *over("sum", ((2**15, 4096), 1), dtype="float16"),
        *over("logsumexp", ((2**15, 2048), 1)), *over("var", ((65536, 1024), 1), dtype="float64"))),
    Threshold("reductions.launch", "EXACT_PER_SM", (256, 1024), over("sum", ((2**22,), None), ((4096, 4096), 0))),
    Threshold("reductions.columns", "FEW_SPLITS", (1, 64), over("sum", ((65536, 100), 0), ((2048, 2048), 0))),
    Threshold("reductions.rows", "LANES_EXACT", (128, 512), over("sum", ((16384, 1024), 1), ((8192, 1536), 1))),
    Threshold("reductions.rows", "WARPS_PER_SM", (2, 32), over("sum", ((2048, 1000), 1), ((600, 1000), 1))),
    Threshold("reductions.rows", "LANES_ALWAYS", (32, 256), over("sum", ((512, 256), 1), ((512, 768), 1))),
    Threshold("reductions.rows", "RUN_PACKS", (128, 512), over("sum", ((100, 300, 1000), (0, 2), "[:, :-7]"))),
    Threshold("reductions.rows", "ALONE", (4096, 2**14), over("sum", ((256, 24576), 1), ((256, 49152), 1))),
    Threshold("reductions.rows", "ALONE_SLOW", (2**14, 2**16), (
        *over("nanvar", ((2**15,), None), ((2**16,), None), dtype="float16"),
        *over("vector_norm", ((2**15,), None), ((2**16,), None), dtype="int8"))),
    Threshold("reductions.rows", "MERGED_PACKS", (1, 4), (
        *over("logsumexp", ((2**20, 64), 1)), *over("var", ((2**22, 16), 1), ((2**20, 64), 1)),
        *over("var", ((2**22, 16), 1), dtype="float64"), *over("var", ((2**22, 16), 1), dtype="complex64"))),
    Threshold("reductions.rows", "MERGED", (4, 16), (
        *over("argmax", ((2**22, 16), 1)), *over("argmax", ((2**22, 16), 1), dtype="float64"),
        *over("argmax", ((2**22, 16), 1), dtype="complex64"), *over("var", ((2**22, 16), 1)),
        *over("vector_norm", ((2**22, 16), 1)), *over("sum", ((2**21, 16), 1), dtype="complex128"),
        *over("max", ((2**22, 16), 1), dtype="float64"))),
    Threshold("reductions.rows", "ROWS", (1, 8), over("sum", ((2**24, 4), 1), ((2**23, 8), 1))),
    Threshold("reductions.rows", "TINY", (4, 16), over("sum", ((2**23, 7), 1), ((2**22, 13), 1))),
    Threshold("reductions.rows", "ROW_BLOCK", (
        {1: 256, 2: 128, 4: 128, 8: 256, 16: 256}, {1: 512, 2: 512, 4: 512, 8: 512, 16: 512},
    ), (*over("sum", ((16384, 8192), 1)), *over("sum", ((16384, 8192), 1), dtype="int8"),
        *over("sum", ((8192, 8192), 1), dtype="float64"))),
    Threshold("reductions.rows", "BLOCKS_PER_SM", (1, 8), over("sum", ((200, 2**15), 1), ((800, 8192), 1))),
    Threshold("reductions.rows", "SPLIT_BLOCK", (256, 1024), over("sum", ((2**28,), None), ((16, 2**22), 1))),
    Threshold("reductions.rows", "STAGED", (128, 512), over("sum", ((2**21, 41), 1), ((2**20, 65), 1))),
    Threshold("reductions.rows", "STAGED_IDLE", (256, 1024), over("sum", ((2**20, 77), 1), ((2**18, 199), 1))),
    Threshold(
        "reductions.rows", "STAGED_LONG", (512, 2048),
        over("sum", ((2**20, 67), 1), ((2**18, 191), 1), dtype="float64") + over("argmax", ((2**18, 189), 1)),
    ),
    Threshold("reductions.rows", "BUSY", (20, 32), over("sum", ((2**20, 77), 1), ((2**19, 101), 1), ((2**19, 115), 1))),
    Threshold("reductions.rows", "STAGE", (2**13, 2**15), over("max", ((2**21, 41), 1), ((2**22, 17), 1))),
    Threshold("reductions.rows", "STAGE_LONG", (2**14, 2**15), (
        *over("sum", ((2**21, 41), 1), ((3_000_000, 21), 1)), *over("var", ((3_000_000, 21), 1)))),
    Threshold("reductions.rows", "LEFT_OUT", (0.0, 1.0), (
        *over("sum", ((7_000_001, 9), 1)), *over("max", ((3_000_000, 21), 1), dtype="int8"))),
    Threshold("reductions.columns", "THREAD_BLOCK", (128, 512), over("sum", ((16, 2**22), 0))),
    Threshold("reductions.columns", "SEARCH_BLOCK", (64, 256), (
        *over("argmax", ((11, 7_000_003), 0)), *over("argmax", ((11, 7_000_003), 0), dtype="float16"))),
    Threshold("reductions.columns", "SHARED_BLOCK", (256, 1024), over("sum", (WIDE, 0), ((2**22, 16), 0))),
    Threshold("reductions.columns", "HELD", (96, 384), (
        *over("sum", (WIDE, 0), dtype="float16"), *over("max", (WIDE, 0), dtype="int8"),
        *over("var", (WIDE, 0), ((256, 512, 512), 1), dtype="float16"), *over("var", (WIDE, 0), dtype="int8"),
        *over("argmax", (WIDE, 0), dtype="int8"))),
    Threshold("reductions.columns", "POWERS", (16, 64), over("logsumexp", (WIDE, 0), ((65536, 1024), 0))),
    Threshold("reductions.columns", "SEGMENT", (128, 512), over("sum", (WIDE, 0), ((65536, 1024), 0))),
    Threshold("reductions.columns", "BUSY_SEGMENT", (64, 256), (
        *over("var", (WIDE, 0), ((65536, 1024), 0)), *over("argmax", (WIDE, 0), ((65536, 1024), 0)),
        *over("argmax", ((65536, 1024), 0), dtype="float64"))),
    Threshold("reductions.columns", "COLUMNS", (64, 256), (
        *over("sum", (WIDE, 0), dtype="int8"), *over("sum", ((65536, 32769), 0), dtype="int8"))),
    Threshold("reductions.columns", "NARROWER", (16, 128), over("sum", ((50_000, 77), 0), ((2000, 5003), 0))),
    Threshold("reductions.columns", "NARROWEST", (8, 32), over("sum", ((999, 10007), 0), ((300, 10007), 0))),
    Threshold("reductions.columns", "ENOUGH", (1, 2), (
        *over("sum", ((8192, 8191), 0), dtype="float16"), *over("var", ((2000, 5003), 0), dtype="float64"),
        *over("sum", ((999, 10007), 0)))),
    Threshold("reductions.columns", "LONG", (64, 256), over("sum", ((2**18, 2, 200), 0), ((2**17, 3, 331), 0))),
    Threshold("reductions.columns", "LEAST", (1, 16), over("sum", ((2000, 2000), 0), ((10**4, 512), 0))),
    Threshold("reductions.columns", "WORTH", (16, 512), (
        *over("sum", ((1024, 8192), 0), ((2000, 2000), 0)),
        *over("mean", ((999, 10007), 0), dtype="float16"), *over("argmax", ((512, 8192), 0), dtype="int8"))),
    Threshold("reductions.columns", "SHALLOW", (32, 128), over("sum", ((48, 2**20), 0), ((100, 335488), 0))),
    Threshold("reductions.columns", "FUNNEL", (4, 16), (
        *over("any", ((11, 7_000_003), 0), ((40, 1_000_003), 0), dtype="float16"),
        *over("max", ((11, 7_000_003), 0), ((40, 1_000_003), 0), dtype="int8"))),
    Threshold("reductions.columns", "SINGLES", (8, 16), (
        *over("sum", ((11, 7_000_003), 0), dtype="float64"), *over("var", ((11, 7_000_003), 0), dtype="float64"),
        *[Probe("average", Problem((Operand((n, 7_000_003)),) * 2, 0)) for n in (7, 11, 15)])),
    Threshold("reductions.columns", "STRIPES", (1, 4), (
        *over("sum", ((11, 7_000_003), 0), ((40, 1_000_003), 0)),
        *over("sum", ((11, 7_000_003), 0), ((40, 1_000_003), 0), dtype="bfloat16"),
        *over("sum", ((11, 7_000_003), 0), dtype="float16"), *over("var", ((11, 7_000_003), 0), dtype="float16"),
        *over("max", ((11, 7_000_003), 0)), *over("max", ((11, 7_000_003), 0), dtype="float16"),
        *over("argmax", ((11, 7_000_003), 0)), *over("argmax", ((11, 7_000_003), 0), dtype="float16"))),
    Threshold("reductions.columns", "DEEP", (0.5, 4), over("sum", ((70, 1917376), 0), ((500, 2**18), 0))),
    # ---- rows on chip
    Threshold("rows", "LONG", (2**15, 2**17), over("softmax", ((256, 2**17 * 3), 1), ((256, 2**18), 1))),
    Threshold("rows.on_chip", "MOST_PACKS", (4,), over("softmax", ((4096, 16384), 1), ((512, 131072), 1))),
    Threshold("rows.on_chip", "NARROW", (2, 8), over("softmax", ((4096, 4096), 1, "[:, ::2]"))),
    Threshold("rows.on_chip", "LANE_PACKS", (1, 4), over("softmax", ((2**18, 128), 1), ((2**17, 512), 1))),
    Threshold("rows.on_chip", "NARROW_PACKS", (2, 8), (
        *over("softmax", ((3_000_000, 21), 1), ((6_000_000, 10), 1)),
        *over("softmax", ((3_000_000, 21), 1), dtype="float16"))),
    Threshold("rows.on_chip", "WARP_PACKS", (88, 352), over("softmax", ((2**16, 512), 1), ((2**16, 1024), 1))),
    Threshold("rows.on_chip", "LANES_BLOCK", (256,), over("softmax", ((2**18, 128), 1), ((2**20, 64), 1))),
    Threshold("rows.on_chip", "SHORT", (2**10, 2**12), over("softmax", ((8192, 6144), 1), ((8192, 12288), 1))),
    Threshold("rows.on_chip", "FEW_PACKS", (2, 8), over("softmax", ((16384, 2048), 1), ((8192, 8192), 1))),
    Threshold("rows.on_chip", "BLOCK", (128, 512), over("softmax", ((4096, 16384), 1), ((512, 131072), 1))),
    Threshold("rows.on_chip", "PART", (384, 1536), over("softmax", ((4096, 16384), 1), ((4096, 32768), 1))),
    Threshold("rows.on_chip", "SPREAD", (128, 512), over("softmax", ((16, 8192), 1), ((8, 32768), 1))),
    Threshold("rows.on_chip", "GRID_PACKS", (4, 8), over("softmax", ((8, 2**22), 1), ((64, 2**20), 1))),
    Threshold("rows.columns", "BLOCK", (256,), over("softmax", ((128, 8192, 256), 1), dtype="float16")),
    Threshold("rows.columns", "SMALL_BLOCK", (128,), over("softmax", ((4096, 4096), 0), ((128, 1024, 256), 1))),
    Threshold("rows.columns", "SMALL_CLUSTERS", ({}, {4: 16, 2: 16}), (
        *over("softmax", ((4096, 4096), 0)), *over("softmax", ((4096, 4096), 0), dtype="float16"))),
    Threshold("rows.columns", "REGISTERS", ((2, 2), (4, 4)), over("softmax", ((4096, 4096), 0), ((128, 8192, 256), 1))),
    Threshold("rows.columns", "SEGMENT", (64, 256), over("softmax", ((4096, 4096), 0), ((128, 1024, 256), 1))),
    Threshold("rows.columns", "SINGLES", (0, 4), over("softmax", ((90, 777, 1111), 1), ((90, 777, 1110), 1))),
    Threshold("rows.columns", "ALONE", (64, INF), (
        *over("softmax", ((11, 7000003), 0), ((24, 2000003), 0), ((32, 65537), 0)),
        *over("softmax", ((11, 7000003), 0), ((16, 131073), 0), dtype="float16"))),
    Threshold("rows.columns", "FAR", (2**15, 2**20), over("softmax", ((4096, 8192), 0), ((4096, 65536), 0))),
    Threshold("rows.columns", "LONGER", (1, 4), over("softmax", ((4096, 65536), 0))),
    Threshold("rows.columns", "ROWS", (32, 128), over("softmax", ((4096, 4096), 0), dtype="float16")),
    # ---- scans
    Threshold("scans.flat", "OWN", (32, 128), over("cumsum", ((2**22, 16), 1), ((2**16, 1024), 1))),
    Threshold("scans.flat", "LONG_OWN", (64,), over("cumsum", ((2**28,), 0), (WIDE, 1))),
    Threshold("scans.flat", "LONG_LATER", (1, 3), over("cumsum", ((2**28,), 0), (WIDE, 1))),
    Threshold("scans.flat", "WARPS", (12, 16), over("cumsum", ((2**28,), 0), (WIDE, 1), ((2**22, 16), 1))),
    Threshold("scans.flat", "FEW", (2, 8), over("cumsum", ((2**16,), 0), ((2**18,), 0))),
    Threshold("scans.flat", "LOOKING", (2, 4), over("cumsum", ((2**28,), 0), (WIDE, 1))),
    Threshold("scans.flat", "LATER", (1, 2), over("cumsum", ((2**22, 16), 1), ((2**16, 1024), 1))),
    Threshold("scans.flat", "AHEAD", (2,), over("cumsum", ((2**28,), 0), (WIDE, 1))),
    Threshold("scans.flat", "ROOM", (100 * 1024, 150 * 1024), over("cumsum", ((2**28,), 0), (WIDE, 1))),
    Threshold("scans.flat", "SHORT", (512, 2**20), over("cumsum", ((2**16, 1024), 1), (WIDE, 1))),
    Threshold("scans.chains", "MANY", (8, 14), (
        *over("cumprod", (WIDE, 0)), *over("cumsum", (WIDE, 0), dtype="float64"))),
    Threshold("scans.chains", "USUAL", (6, 12), over("cumsum", (WIDE, 0), (WIDE, 1), ((128, 1024, 256), 1))),
    Threshold("scans.chains", "RESIDENT", (1, 3), over("cumsum", (WIDE, 0), (WIDE, 1))),
    Threshold("scans.chains", "TALL", ({False: 64, True: 2}, {False: 16, True: 16}), (
        *over("cumsum", ((2**22, 16), 1), ((32, 2**20), 0), ((11, 7_000_003), 0), ((5, 14_000_003), 0)),
        *over("cumprod", ((11, 7_000_003), 0)))),
    Threshold("scans.chains", "LONG", (16, 10**9), over("cumsum", ((2**17, 200), 1), ((2**17, 264), 1))),
    Threshold("scans.chains", "FILLED", (0.1, 2), over("cumsum", ((5120, 8192), 1), (WIDE, 1))),
    Threshold("scans.parts", "WARPS", (4, 12), over("cumsum", ((2**22, 16), 0), ((65536, 1024), 0))),
    Threshold("scans.parts", "RESIDENT", (1, 3), over("cumsum", ((2**22, 16), 0), ((65536, 1024), 0))),
    Threshold("scans.parts", "DEPTH", (2, 3), over("cumsum", ((2**22, 16), 0), ((65536, 1024), 0))),
    Threshold("scans.lanes", "SECTOR", (8, 128), over("cumsum", ((16, 2**22), 0), ((65536, 100), 0))),
    Threshold("scans.launch", "BLOCK", (128, 512), over("cumprod", ((2**28,), 0), (WIDE, 1), (WIDE, 0))),
    Threshold("scans.launch", "RESIDENT", (1, 2, 4), over("cumprod", (WIDE, 1), ((2**22, 16), 1), ((2**16, 512), 1))),
    Threshold("scans.launch", "CLOSE", (2, 3), over("cumprod", ((2**22, 16), 0), ((65536, 1024), 0))),
    Threshold("scans.launch", "SEGMENT", (64, 256), over("cumprod", ((2**22, 16), 0), ((65536, 1024), 0))),
    Threshold("scans.launch", "WALKED", (2, 4), over("cumprod", ((65536, 1024), 0), ((1000, 65536), 1))),
    Threshold("scans.launch", "SECTOR", (8, 128), over("cumprod", ((2**22, 16), 0), ((65536, 100), 0))),
    # ---- products
    Threshold("products", "LARGE", (100_000, 2_500_000), (
        *product(2048, 2048, 2048, "C", "F"), *product(1024, 1024, 2048, "C", "F"))),
    Threshold("products", "DEEP", (256, 4096), (
        *product(4096, 4096, 512, "C", "F"), *product(2048, 2048, 2048, "C", "F"))),
    Threshold("products", "MIDDLE", (range(0), range(2**40)), (
        *product(511, 511, 511), *product(1023, 1023, 1023), *product(2047, 2047, 2047))),
    Threshold("products.cublas", "WORK", (2**24, 2**40), (
        *product(1999, 3001, 1777, dtype="float16"), *product(1025, 1025, 1025, dtype="float16"),
        *product(513, 513, 513, dtype="float16"))),
    Threshold("products.cublas", "REUSE", (4, 10**9), (
        *product(256, 4095, 4095, dtype="float16"), *product(64, 4095, 4095, dtype="float16"),
        *product(300_007, 77, 77, dtype="float16"))),
    Threshold("products.pipelined", "START", (2750, 11000), product(1024, 1024, 1024) + product(512, 512, 512)),
    Threshold("products.pipelined", "SHARE", (3250, 13000), product(512, 512, 4096) + product(1536, 1536, 1536)),
    Threshold("products.pipelined", "BYTES", (22, 88), product(512, 512, 4096) + product(1536, 1536, 1536)),
    Threshold("products.pipelined", "LEAST", (1, 8), product(256, 256, 512) + product(512, 512, 512)),
    Threshold("products.pipelined", "WORKSPACE", (2**21, 2**25), product(512, 512, 16384) + product(1536, 1536, 4096)),
    Threshold("products.pipelined", "GROUP", (2, 32), product(8192, 8192, 1024)),
)  # fmt: skip

HEAD = """\
# What the planners' thresholds are worth

This page is written by `python -m gpuops bench thresholds` from what it measures.

The constants at the top of the modules of `gpuops/plan` are thresholds: where one way to divide the work becomes faster
than another. Each is measured here beside other values, on calls near the threshold. The times are medians with a cold
cache, all values of a row in turn in one run; a ratio above 1 means that the other value is slower. The rest of the
planners' constants are limits of the hardware, of the kernels' types or of CUDA.
"""


def main(arguments: list[str]) -> int:
    """``bench thresholds``: measure, and write the page from this and earlier measurements."""
    parser = argparse.ArgumentParser("python -m gpuops bench thresholds", description=__doc__)
    words = "thresholds with this text in their name; the rows of others stay"
    parser.add_argument("--only", metavar="TEXT", default="", help=words)
    parser.add_argument("--results", metavar="FOLDER", type=Path, default=FOLDER, help="of results (%(default)s)")
    parser.add_argument("--output", metavar="FILE", type=Path, default=PAGE, help="the page (%(default)s)")
    options = parser.parse_args(arguments)
    machine = machine_here()
    if not machine.ladders:
        raise Unusable("thresholds are those of kernels: this needs a GPU")
    prepare(options.results)
    chosen = [threshold for threshold in THRESHOLDS if options.only in threshold.path]
    file = options.results / f"{machine.folder}.json"
    before = rows_of(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []
    new = {threshold.path: [*measured(machine, threshold)] for threshold in chosen}
    paths = [threshold.path for threshold in THRESHOLDS]
    rows = [row for path in paths for row in new.get(path) or [row for row in before if row["threshold"] == path]]
    save_rows(file, machine, rows)
    write(options.output, page(load_all(options.results)))
    print(f"{options.output}: {len(rows)} rows, {machine.name}")
    return 0


# ------------------------------------------------------------------------------------------------------------ settings


@cache
def planners() -> dict[str, Any]:
    """The modules of ``gpuops.plan``, by their names in it."""
    root = gpuops.plan.__name__
    names = (module.name for module in pkgutil.walk_packages(gpuops.plan.__path__, f"{root}."))
    return {name.removeprefix(f"{root}."): importlib.import_module(name) for name in names}


@cache
def holders(owner: str, name: str) -> list[Any]:
    """The modules that have a constant: its own, and those that import it from there."""
    found = [planners()[owner]]
    for module in planners().values():
        assert module.__file__ is not None
        package = module.__name__ if module.__file__.endswith("__init__.py") else module.__name__.rpartition(".")[0]
        for node in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
                source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                found += [module] if source == found[0].__name__ else []
    return found


class Setting(Gpuops):
    """gpuops with a threshold set to a value, in turns with others: what calls do is planned anew at each turn."""

    active: Setting | None = None

    def __init__(self, xp: Any, threshold: Threshold, value: Any, strategy: str) -> None:
        super().__init__(xp, strategy)
        self.threshold, self.value, self.name = threshold, value, repr(value)

    def call(self, case: Case) -> Callable[..., Any]:
        return partial(self.make, super().call(case))

    def make(self, function: Callable[..., Any], *arrays: Any) -> Any:
        """The call, as planned with the setting."""
        if Setting.active is not self:
            self.activate()
        return function(*arrays)

    def activate(self) -> None:
        """Make this the setting in force."""
        Setting.active = self
        for module in holders(self.threshold.module, self.threshold.name):
            setattr(module, self.threshold.name, self.value)
        launch_cache.clear()


def measured(machine: Any, threshold: Threshold) -> Iterator[dict[str, Any]]:
    """A row for each call: the microseconds it takes with each value."""
    value = getattr(planners()[threshold.module], threshold.name)
    for probe in threshold.probes:
        case = probe.case
        ring = with_memory(machine, ring_of, machine, case)
        right = with_memory(machine, expected, machine.xp, case, ring[0][: len(case.problem.operands)])
        settings = [Setting(machine.xp, threshold, each, probe.strategy) for each in (value, *threshold.others)]
        times: dict[str, Any] = {}
        subjects: list[Subject] = []
        try:
            for setting in settings:
                try:
                    subjects.append(with_memory(machine, prepared, machine, case, setting, ring, right))
                except Exception as failure:  # a value that kernels do not take
                    times[setting.name] = first_line(failure)
            for turn in range(ROUNDS):
                for subject in subjects[:: -1 if turn % 2 else 1]:
                    subject.sample(machine)
            times |= {subject.runner.name: subject.result()["us"] for subject in subjects}
        finally:
            settings[0].activate()
        us = times.pop(repr(value))
        what = {"op": case.op, "strategy": probe.strategy, "case": case.label}
        row = {"threshold": threshold.path, "value": repr(value), **what, "us": us, "others": times, "commit": commit()}
        machine.tidy()
        print(line(row), flush=True)
        yield row


# ---------------------------------------------------------------------------------------------------------------- page


def page(documents: list[Document]) -> str:
    """The page, from the measurements."""
    parts = [HEAD]
    for found in documents:
        known = ("gpuops", "cupy", "cuda runtime")
        of = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if name in known)
        commits = dict.fromkeys(f"{row['commit'][:10]}{'+' * row['commit'].endswith('+')}" for row in rows_of(found))
        parts.append(f"## {found['machine']}\n\n{of}; commit {', '.join(commits)} (+: with changes).\n")
        head = ("| threshold | value | call | µs | other values: time over that |", "| --- | --- | --- | ---: | --- |")
        for family in dict.fromkeys(row["threshold"].partition(".")[0] for row in found["rows"]):
            rows = [row for row in found["rows"] if row["threshold"].startswith(f"{family}.")]
            parts.append(f"### {family}\n\n" + "\n".join((*head, *map(line, rows))) + "\n")
    return "\n".join(parts)


def rows_of(document: Document) -> list[dict[str, Any]]:
    """The rows, each with the commit that was measured."""
    return [{"commit": document["commit"], **row} for row in document["rows"]]


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    others = (
        f"`{value}` {us / row['us']:.2f}" if isinstance(us, float) else f"`{value}` refused"
        for value, us in row["others"].items()
    )
    call = f"{row['op']} {row['case']}" + (f", {row['strategy']}" if row["strategy"] else "")
    return f"| `{row['threshold']}` | `{row['value']}` | {call} | {row['us']:g} | {', '.join(others)} |"
