"""The cases: for each op a table of groups, each named after the origin of its cases."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .expressions import EXPRESSIONS

#: Ops of several arrays, or without an axis of their own.
JOINT = ("where", "matmul", "dot", "allclose", "array_equal", "nonzero", "compress")
SECOND = {"average": "weights"}  # the name of the second operand of an op along an axis, if not ``where``
CASTS = {"float32": "float16", "float16": "float32"}  # dtypes of ``cast`` results, by the case's dtype

Shape = tuple[int, ...]
Axis = int | tuple[int, ...] | None


class Operand(NamedTuple):
    """An input of a case. ``layout`` is a key of ``arrays.LAYOUTS``."""

    shape: Shape
    layout: str = "C"

    def __str__(self) -> str:
        text = "×".join(map(str, self.shape)) or "scalar"
        return text if self.layout == "C" else f"{text} {self.layout}"


class Problem(NamedTuple):
    """Shapes and axes, without a dtype. ``shape`` is the result's, but for ops along an axis.

    ``out`` is the layout of an array given as ``out=``; "" where a new one is made. Softmaxes may have a mask, as a
    second operand, a factor, and a result that is ``cast``: in another dtype, that of ``CASTS``. ``how`` says what of a
    call ``--host`` times, if not repetitions of the same call. For ``--gpus``, arrays are what one worker has,
    in ``chunks`` of rows.
    """

    operands: tuple[Operand, ...]
    axis: Axis = None
    shape: Shape = ()
    out: str = ""
    scale: float = 1
    cast: bool = False
    how: str = ""
    chunks: int = 0


class Group(NamedTuple):
    """A row of an op's table: problems of one origin, each measured in every dtype.

    ``picks`` are the positions of those that stand for the group: ``--quick`` measures them alone, in the group's first
    dtype, and if the group is a ``ladder``, they are the cases of the named strategies. A group that compares
    ``strategies`` runs them in all its cases.
    """

    name: str
    origin: str
    problems: tuple[Problem, ...]
    dtypes: str
    picks: tuple[int, ...]
    ladder: bool = False
    strategies: tuple[str, ...] = ()
    peers: bool = True  # whether they take part
    only: tuple[str, ...] = ()  # the names of the peers that do, if not all


class Case(NamedTuple):
    """One line of the results."""

    op: str
    group: Group
    problem: Problem
    dtype: str
    pick: bool

    @property
    def axis(self) -> Axis:
        return self.problem.axis

    @property
    def options(self) -> dict[str, Any]:
        """The op's arguments that are neither arrays nor axes nor shapes."""
        scale = {} if self.problem.scale == 1 else {"scale": self.problem.scale}
        return scale | ({"dtype": CASTS[self.dtype]} if self.problem.cast else {})

    @property
    def label(self) -> str:
        """What identifies the case within its op."""
        out = self.problem.out and f"out {self.problem.out}"
        chunks = f"{self.problem.chunks} chunks" if self.problem.chunks else ""
        return ", ".join(filter(None, (self.operands, out, self.problem.how, chunks)))

    @property
    def operands(self) -> str:
        """The operands, the axis and the options, as text."""
        if not self.problem.operands:
            return ""
        if self.op in ("expand", *JOINT):
            operands = ", ".join(map(str, self.problem.operands))
            return f"{self.dtype} {operands}" + (f" → {Operand(self.problem.shape)}" if self.op == "expand" else "")
        axis = "" if self.axis is None else f" axis {self.axis}".replace(" (", " ").replace(")", "")
        if self.op in EXPRESSIONS:
            count, each = len(self.problem.operands), dict.fromkeys(map(str, self.problem.operands))
            alike = f"{count} of " if count > 2 and len(each) == 1 else ""
            names = each if alike else map(str, self.problem.operands)
            return f"{self.dtype} {alike}{', '.join(names)}{axis}"
        x, *more = self.problem.operands
        given = (*((SECOND.get(self.op, "where"), other) for other in more), *self.options.items())
        words = (f" {'to' if name == 'dtype' else name} {value}" for name, value in given)
        return f"{self.dtype} {x}{axis}{''.join(words)}"


def along(
    shape: Shape, axis: Axis, layout: str = "C", mask: Shape = (), scale: float = 1, cast: bool = False
) -> Problem:
    """A reduction or softmax of an array over some axes, with a mask (or weights) of a shape if one is given."""
    masks = (Operand(mask),) if mask else ()
    return Problem((Operand(shape, layout), *masks), axis, scale=scale, cast=cast)


def pair(n: int, *layouts: str) -> Problem:
    """Two vectors of a length."""
    return Problem(tuple(Operand((n,), layout) for layout in layouts or ("C", "C")))


def rows(count: int, lengths: range | tuple[int, ...]) -> tuple[Problem, ...]:
    """Rows of several lengths, along which to reduce."""
    return tuple(along((count, n), 1) for n in lengths)


def together(*operands: Shape | Operand, shape: Shape = (), out: str = "") -> Problem:
    """An op on several arrays; ``shape`` is that of the result, if not of their broadcast."""
    inputs = tuple(o if isinstance(o, Operand) else Operand(o) for o in operands)
    return Problem(inputs, shape=shape or np.broadcast_shapes(*(o.shape for o in inputs)), out=out)


LENGTHS = tuple(along((2 ** (26 - k), 2**k), 1) for k in (6, 8, 10, 12, 14, 16, 20))
SIZES = 12, 16, 20, 24, 28
SQUARE = (4096, 4096)
WIDE = (8192, 8192)
#: Shapes that no kernel was tuned for: long and short rows of odd lengths, few long and many short ones, a middle axis.
ODD = (
    along((12000, 7001), 1), along((11, 7000003), 0), along((3000000, 21), 1), along((90, 777, 1111), 1),
    along((999, 10007), 0), along((7, 11, 1000003), 2),
)
ODD_LENGTH = 77000033
ODD_MATRICES = tuple(problem.operands[0].shape for problem in ODD[:3])


def odd(dtypes: str, problems: tuple[Problem, ...] = ODD[:3], name: str = "odd shapes") -> Group:
    """Long rows of an odd length, few that are longer still, and many short ones: in every dtype of an op."""
    return Group(name, "shapes that no kernel was tuned for", problems, dtypes, picks=(0,))


SOFTMAX = (
    Group(
        "tutorial", "rows of the sweep of Triton's fused-softmax tutorial",
        rows(4096, (256, 640, 1152, 2176, 4096, 6528, 8192, 12672)), "float32 float16", picks=(4, 7), ladder=True,
    ),
    Group(
        "lengths", "2²⁶ elements in rows of 64 … 2²⁰", LENGTHS, "float32 float16 bfloat16", picks=(0, 2, 5),
    ),
    Group(
        "odd lengths", "rows whose length is odd or prime", rows(4096, (127, 781, 4099, 12673)), "float32 bfloat16",
        picks=(1, 2),
    ),
    odd("float32 float16", ODD[:4]),
    odd("bfloat16 float64", name="odd shapes in other dtypes"),
    Group(
        "vocabularies", "logits over the vocabularies of GPT-2 and Llama 3", rows(4096, (50257, 128256)),
        "float32 float16 bfloat16", picks=(0,),
    ),
    Group(
        "few long rows", "too few rows for a block each", (along((64, 2**20), 1), along((8, 2**22), 1)),
        "float32 float16", picks=(1,),
    ),
    Group(
        "one vector", "a whole array", tuple(along((2**k,), 0) for k in SIZES), "float32 float16", picks=(2, 4),
    ),
    Group(
        "other axes", "an axis that is not the last, and a pair of axes",
        (along(WIDE, 0), along((128, 1024, 256), 1), along((2**20, 64), 0), along((64, 128, 64, 128), (1, 3))),
        "float32 float16", picks=(0,),
    ),
    Group("dtypes", "rows in the other dtype", rows(4096, (4096, 32768)), "float64", picks=(0,)),
    Group(
        "layouts", "transposed, sliced, reversed and unaligned arrays",
        tuple(along(SQUARE, 1, layout) for layout in ("F", "[:, ::2]", "[:, :-7]", "[:, ::-1]", "[1:]")),
        "float32", picks=(0, 1),
    ),
    Group(
        "warp or block", "2²⁴ elements in rows of 32 … 1024, each that of a warp or of a block",
        tuple(along((2**24 // n, n), 1) for n in (32, 64, 128, 192, 256, 384, 512, 640, 768, 896, 1024)),
        "float32 float16", picks=(),
        strategies=(
            "block_coalesced", "block_online", "block_shared", "warp", "warp_pack2", "warp_pack4", "warp_pack8",
        ),
        peers=False,
    ),
    Group(
        "options", "a mask, a factor, a result of another dtype: fused, each costs its own bytes",
        (
            along(SQUARE, 1, mask=SQUARE), along(SQUARE, 1, mask=(1, 4096)), along(SQUARE, 1, scale=0.125),
            along(SQUARE, 1, cast=True), along(SQUARE, 1, mask=SQUARE, scale=0.125, cast=True),
            along((128, 1024, 256), 1, mask=(128, 1024, 256)),
        ),
        "float32 float16", picks=(), peers=False,
    ),
)  # fmt: skip

AXES = (
    *(along(shape, axis) for shape in (WIDE, (65536, 1024), (2**22, 16), (16, 2**22)) for axis in (1, 0)),
    along((256, 512, 512), 1),
)


def reductions(whole: str, dtypes: str, first: str, others: str) -> tuple[Group, ...]:
    """The groups of a reduction that is measured in full: dtypes of whole arrays, of a matrix, of all odd shapes, of a
    few."""
    return (
        Group(
            "whole array", "one vector of 2¹² … 2²⁸", tuple(along((2**k,), None) for k in SIZES), whole, picks=(2, 4),
            ladder=True,
        ),
        Group(
            "axes", "the axes and shapes on which CuPy and PyTorch differ most", AXES, "float32", picks=(1, 5),
            ladder=True,
        ),
        Group("dtypes", "columns and rows of a matrix in the other dtypes", AXES[:2], dtypes, picks=(0,)),
        odd(first, ODD),
        odd(others, name="odd shapes in other dtypes"),
        Group(
            "axis pairs", "two axes of a 4-d array",
            tuple(along((64, 128, 64, 128), axes) for axes in ((0, 2), (1, 3))), "float32", picks=(0,),
        ),
        Group(
            "few long, many short", "rows too few for a block each, and rows shorter than a vector load",
            (along((8, 2**24), 1), along((2**24, 3), 1)), "float32", picks=(1,),
        ),
        Group(
            "layouts", "transposed, sliced, reversed, unaligned and broadcast arrays",
            (
                along(WIDE, 1, "F"), along(WIDE, 1, "[:, ::2]"), along(WIDE, None, "[:, ::2]"),
                along(WIDE, 0, "[:, :-7]"), along(WIDE, 1, "[::-1]"), along(WIDE, None, "[1:]"),
                along(WIDE, 0, "broadcast"),
            ),
            "float32", picks=(2,),
        ),
        Group(
            "huge", "more than 2³¹ elements", (along((2**31 + 2**12,), None), along((2**16, 2**15 + 1), 1)), "int8",
            picks=(0,),
        ),
    )  # fmt: skip


REDUCTION_DTYPES = "float16 bfloat16 float64 int8 int32 bool complex64"
REDUCTIONS = reductions(
    "float32 float16", REDUCTION_DTYPES, "float32 float16 bfloat16", "float64 int8 int32 bool complex64"
)
FEW_REDUCTIONS = reductions("float32", "float16 bfloat16 float64 int8", "float32 float16", "bfloat16 float64 int8")


def one_axis(*groups: Group) -> tuple[Group, ...]:
    """Groups without those that reduce a pair of axes: searches do not."""
    return tuple(group for group in groups if group.name != "axis pairs")


def in_brief(dtypes: str, more: str = "") -> tuple[Group, ...]:
    """A few shapes, fewer of them in more dtypes: for ops whose kernels others share."""
    few = Group(
        "some shapes", "a vector, columns and rows of a matrix, and short rows",
        (along((2**28,), None), *AXES[:2], AXES[4]), dtypes, picks=(1, 2),
    )  # fmt: skip
    others = few._replace(name="dtypes", origin="the same in other dtypes", problems=few.problems[1:3], picks=(0,))
    return (few, *([others._replace(dtypes=more)] if more else []), odd(f"{dtypes} {more}"))


#: The columns and rows of a matrix, and odd shapes: for the twins of other ops.
NARROW = (Group("matrix", "columns and rows of a matrix", AXES[:2], "float32", picks=(0, 1)), odd("float32"))


def of_rows(*dtypes: str) -> tuple[Group, ...]:
    """Rows, columns and a vector: for the relatives of softmax."""
    some = (along((65536, 1024), 1), along((4096, 50257), 1), along((2**20, 64), 1), along(WIDE, 0))
    first, *others = dtypes
    return (
        Group("some shapes", "rows, those of a vocabulary, short ones, and columns", some, first, picks=(0,)),
        Group("dtypes", "rows in other dtypes", some[:2], " ".join(others), picks=(0,)),
        odd(" ".join(dtypes)),
    )  # fmt: skip


def with_weights(*groups: Group) -> tuple[Group, ...]:
    """Groups with a weight for each element."""
    return tuple(g._replace(problems=tuple(p._replace(operands=p.operands * 2) for p in g.problems)) for g in groups)


def alike(more: str) -> tuple[Group, ...]:
    """Pairs of arrays of one shape and layout."""
    return (
        Group("sizes", "two vectors of 2²⁰ … 2²⁸", tuple(map(pair, (2**20, 2**24, 2**28))), "float32", picks=(2,)),
        Group("dtypes", "the other dtypes", (pair(2**26),), more, picks=(0,)),
        Group(
            "layouts", "transposed, sliced and unaligned matrices",
            tuple(Problem((Operand(WIDE, layout),) * 2) for layout in ("F", "[:, ::2]", "[1:]")), "float32",
            picks=(1,),
        ),
        odd(f"float32 {more}", (pair(ODD_LENGTH), *(Problem(p.operands * 2) for p in ODD[:3]))),
    )  # fmt: skip


DOT = (
    Group(
        "sizes", "two vectors of 2¹² … 2²⁸", tuple(map(pair, (2**k for k in SIZES))), "float32 float16", picks=(2, 4),
    ),
    Group("dtypes", "the other dtypes", (pair(2**26),), "float64 bfloat16 complex64 int32", picks=(0,)),
    Group(
        "layouts", "a prime length, vectors that begin anywhere, reversed and with a step",
        (
            pair(1000003), pair(2**26, "[1:]", "[1:]"), pair(2**26, "[1:]", "C"), pair(2**26, "[::-1]", "[::-1]"),
            pair(2**26, "[:, ::2]", "C"),
        ),
        "float32", picks=(1,),
    ),
    Group(
        "matrices", "a matrix and a vector, in either order",
        (
            together((8192, 8192), (8192,), shape=(8192,)), together((8192,), (8192, 8192), shape=(8192,)),
            together((2**20, 64), (64,), shape=(2**20,)),
        ),
        "float32", picks=(0,),
    ),
    odd(
        "float32 float16 float64 bfloat16 complex64 int32",
        (
            pair(ODD_LENGTH), together((12000, 7001), (7001,), shape=(12000,)),
            together((11,), (11, 7000003), shape=(7000003,)), together((3000000, 21), (21,), shape=(3000000,)),
        ),
    ),
)  # fmt: skip

ITEM_SIZES = "float32 int8 float16 float64"
SIX = (16, 16, 16, 16, 16, 64)
OUTS = ("[:, :-7]", "F", "[:, ::2]", "[1:]")

WHERE = (
    Group(
        "broadcasts", "condition, x and y broadcast against each other in the ways that programs do",
        (
            together(WIDE, WIDE, WIDE), together((8192, 1), (1, 8192), WIDE),
            together((64, 1, 1, 1), (1, 256, 128, 1), (1, 256, 128, 64)), together(WIDE, (), ()),
            together((256, 1, 512), (1, 511, 1), (256, 511, 512)),
            together((1000, 1, 97), (1, 333, 1), (1000, 333, 97)),
        ),
        ITEM_SIZES, picks=(0, 1, 3, 5), ladder=True,
    ),
    Group(
        "sizes", "three arrays of one shape", tuple(together(*((2**k,),) * 3) for k in SIZES),
        "float32", picks=(2, 4),
    ),
    Group(
        "inner dims", "innermost dims that no vector width divides",
        (
            *(together((2**26 // n, 1), (1, n), (2**26 // n, n)) for n in (1, 3, 97)),
            together((8191, 1, 1), (1, 8191, 3), (8191, 8191, 3)),
        ),
        "float32 int8", picks=(1, 2),
    ),
    Group(
        "layouts", "transposed, sliced, reversed and unaligned arrays, and six dims that do not merge",
        (
            together(WIDE, Operand(WIDE, "F"), WIDE), together(WIDE, Operand(WIDE, "F"), Operand(WIDE, "F")),
            together(WIDE, Operand(WIDE, "[:, ::2]"), WIDE), together(WIDE, Operand(WIDE, "[:, ::-1]"), WIDE),
            together(WIDE, Operand(WIDE, "[1:]"), Operand(WIDE, "[:, :-7]")),
            together((16, 1, 16, 1, 16, 1), (1, 16, 1, 16, 1, 64), SIX),
        ),
        "float32", picks=(0, 5), ladder=True,
    ),
    Group(
        "out", "results that go to a sliced, transposed or unaligned array",
        tuple(together(*(WIDE,) * 3, out=layout) for layout in OUTS), "float32", picks=(0,),
    ),
    Group("huge", "more than 2³¹ elements", (together(*((2**31 + 2**12,),) * 3),), "int8", picks=(0,)),
    odd(ITEM_SIZES, tuple(together((m, 1), (1, n), (m, n)) for m, n in ODD_MATRICES)),
)  # fmt: skip

EXPAND = (
    Group(
        "broadcasts", "rows, columns, middle dims and a scalar repeated",
        (
            together((8192, 1), shape=WIDE), together((1, 8192), shape=WIDE),
            together((64, 1, 128, 1), shape=(64, 256, 128, 64)), together((512, 1, 512), shape=(512, 511, 512)),
            together((1,), shape=(2**28,)), together((8192, 8191, 1), shape=(8192, 8191, 3)),
            together((2000, 1, 333), shape=(2000, 100, 333)),
        ),
        ITEM_SIZES, picks=(0, 1, 5, 6), ladder=True,
    ),
    Group(
        "sizes", "a row repeated 256 times", tuple(together((2**k // 256,), shape=(256, 2**k // 256)) for k in SIZES),
        "float32", picks=(2, 4), ladder=True,
    ),
    Group(
        "inner dims", "innermost dims that no vector width divides",
        tuple(together((2**26 // n // 64, 1, n), shape=(2**26 // n // 64, 64, n)) for n in (1, 3, 97)),
        "float32 int8", picks=(1, 2),
    ),
    Group(
        "layouts", "transposed, sliced, reversed and unaligned arrays, and six dims that do not merge",
        (
            together(Operand(WIDE, "F"), shape=WIDE), together(Operand(WIDE, "[:, ::2]"), shape=WIDE),
            together(Operand(WIDE, "[:, ::-1]"), shape=WIDE), together(Operand(WIDE, "[1:]"), shape=WIDE),
            together((16, 1, 16, 1, 16, 1), shape=SIX),
        ),
        "float32", picks=(0, 4), ladder=True,
    ),
    Group(
        "out", "results that go to a sliced, transposed or unaligned array",
        tuple(together(WIDE, shape=WIDE, out=layout) for layout in OUTS), "float32", picks=(0,),
    ),
    Group(
        "huge", "more than 2³¹ elements",
        (together((2**16, 1), shape=(2**16, 2**16)), together((46349,), shape=(46349, 46349))), "int8", picks=(0,),
    ),
    odd(
        ITEM_SIZES,
        (
            together((12000, 1), shape=(12000, 7001)), together((1, 7000003), shape=(11, 7000003)),
            together((1, 21), shape=(3000000, 21)),
        ),
    ),
)  # fmt: skip


def product(m: int, n: int, k: int, batch: Shape = ()) -> Problem:
    """The product of an (m, k) and a (k, n) matrix."""
    return together((*batch, m, k), (*batch, k, n), shape=(*batch, m, n))


MATMUL = (
    Group(
        "squares", "n × n matrices",
        tuple(product(n, n, n) for n in (256, 512, 1024, 2048, 3072, 4092, 4096, 8192)),
        "float32", picks=(0, 2, 5, 6), ladder=True,
    ),
    Group(
        "tall and skinny", "one dim much longer or shorter than the others, and odd ones",
        (
            product(8192, 8192, 256), product(256, 8192, 8192), product(64, 4096, 4096), product(4096, 64, 4096),
            product(128, 8192, 4096), product(511, 1023, 2047),
        ),
        "float32", picks=(2,), strategies=("pipelined",),
    ),
    Group(
        "batches", "many small products",
        (product(512, 512, 512, (64,)), product(128, 128, 128, (64,)), product(64, 64, 64, (1024,))),
        "float32", picks=(2,), strategies=("pipelined",),
    ),
    Group(
        "layouts", "matrices in columns, with padded rows, and unaligned",
        tuple(
            together(*(Operand(SQUARE, layout) for layout in layouts))
            for layouts in (("F", "C"), ("C", "F"), ("F", "F"), ("[:, :-7]", "[:, :-7]"), ("[1:]", "[1:]"))
        ),
        "float32", picks=(1,), strategies=("pipelined",),
    ),
    Group("dtypes", "the other dtypes", (product(4096, 4096, 4096),), "float16 bfloat16 float64", picks=(0,)),
    odd(
        "float32 float16 bfloat16 float64",
        (product(1999, 3001, 1777), product(11, 70001, 777), product(300007, 21, 77)),
    ),
)  # fmt: skip

SCANS = (
    Group(
        "one vector", "2¹⁶ … 2²⁸ elements in one line", tuple(along((2**k,), 0) for k in (16, 20, 24, 26, 28)),
        "float32", picks=(1, 4), strategies=("three_pass", "look_back"),
    ),
    Group(
        "dtypes", "one vector in the other dtypes", (along((2**26,), 0),), "float16 bfloat16 float64 int32 int64",
        picks=(0,),
    ),
    Group(
        "axes", "long and short lines, side by side and one after the other",
        (
            *(along(shape, axis) for shape in (WIDE, (2**22, 16), (16, 2**22)) for axis in (1, 0)),
            along((2**20, 2), 0), along((128, 1024, 256), 1),
        ),
        "float32", picks=(0, 1),
    ),
    Group(
        "odd sizes", "sizes that no tile and no vector width divides",
        tuple(along(shape, axis) for shape in ((8191, 8193), (65537, 1021)) for axis in (1, 0)), "float32", picks=(2,),
    ),
    Group(
        "rows", "2²⁶ elements in rows that fit into a block",
        tuple(along((2**26 // n, n), 1) for n in (4, 64, 256, 1000)),
        "float32", picks=(1, 3), ladder=True,
    ),
    Group(
        "layouts", "transposed and sliced matrices", tuple(along(WIDE, 1, layout) for layout in ("F", "[:, ::2]")),
        "float32", picks=(0,),
    ),
    odd("float32 float16 bfloat16 float64 int32 int64"),
)  # fmt: skip

#: One vector, and rows of a matrix: for scans that share the kernels of another, and its ladder.
OTHER_SCANS = (
    SCANS[0]._replace(name="some sizes", problems=(along((2**26,), 0),), picks=(0,)),
    SCANS[4]._replace(name="some rows", problems=(along((2**16, 1000), 1),), picks=(0,)),
    odd("float32"),
)


def chosen(length: int, *more: int) -> Problem:
    """A condition and the elements of a vector, or the rows of a matrix, of which it chooses."""
    return Problem((Operand((length,)), Operand((length, *more))), 0)


NONZERO = (
    Group(
        "one vector", "2¹⁶ … 2²⁸ elements, of which half are not 0",
        tuple(along((2**k,), None) for k in (16, 20, 24, 28)), "bool float32", picks=(1, 3),
    ),
    odd("bool float32", (along((ODD_LENGTH,), None),)),
)  # fmt: skip
COMPRESS = (
    Group(
        "elements and rows", "half of the elements of a vector, or of the rows of a matrix",
        (chosen(2**20), chosen(2**26), chosen(2**22, 16), chosen(2**16, 1024)), "float32 int8", picks=(1, 2),
    ),
    odd("float32 int8", (chosen(ODD_LENGTH), *(chosen(*shape) for shape in ODD_MATRICES))),
)  # fmt: skip


def joined(problem: Problem, *others: Shape) -> Problem:
    """A problem with more arrays of these shapes, or if there are none with one more that is like the first."""
    (x,) = problem.operands
    return problem._replace(operands=(x, *map(Operand, others)) if others else (x, x))


#: The groups of expressions, and where their cases come from.
FUSED = {
    "sizes": "vectors of 2¹² … 2²⁸",
    "axes": "the shapes on which reductions of CuPy and PyTorch differ most, and a middle axis",
    "dtypes": "the other dtypes",
    "layouts": "all arrays transposed, one of them transposed, all with a step",
    "rows and columns": "arrays of several shapes, beside a row or a column of each other operand",
    "numbers": "a factor and an addend that are numbers, not arrays",
}


def fused(name: str, dtypes: str, problems: tuple[Problem, ...], picks: tuple[int, ...]) -> Group:
    """A group of problems of expressions."""
    return Group(name, FUSED[name], problems, dtypes, picks)


VECTORS = tuple(along((2**k,), None) for k in SIZES)
FEW_AXES = (*AXES[:2], AXES[4])
LAYOUTS = (
    Problem((Operand(WIDE, "F"),) * 2, 1), Problem((Operand(WIDE), Operand(WIDE, "F")), 1),
    Problem((Operand(WIDE, "[:, ::2]"),) * 2, 1),
)  # fmt: skip


def of_pairs(dtypes: str) -> tuple[Group, ...]:
    """Reductions of two arrays of a shape."""
    return (
        fused("sizes", "float32", tuple(map(joined, VECTORS)), (2, 4)),
        fused("axes", "float32", tuple(map(joined, AXES)), (1, 2, 4)),
        fused("dtypes", dtypes, (joined(AXES[0]),), (0,)),
        fused("layouts", "float32", LAYOUTS, (0,)),
        odd(f"float32 {dtypes}", tuple(map(joined, ODD[:3]))),
    )  # fmt: skip


def of_few_pairs(dtypes: str) -> tuple[Group, ...]:
    """The same of fewer shapes."""
    return (
        fused("sizes", "float32", tuple(map(joined, VECTORS[2::2])), (1,)),
        fused("axes", "float32", tuple(map(joined, FEW_AXES)), (1, 2)),
        fused("dtypes", dtypes, (joined(AXES[0]),), (0,)),
        fused("layouts", "float32", LAYOUTS[:1], ()),
        odd(f"float32 {dtypes}", tuple(map(joined, ODD[:3]))),
    )  # fmt: skip


def scaled(problem: Problem) -> Problem:
    """An array, and a factor and an addend for each of its last dim."""
    (x,) = problem.operands
    return joined(problem, x.shape[-1:], x.shape[-1:])


LOGITS = (along(WIDE, 1), along((65536, 1024), 1), along((4096, 50257), 1), along((2**22, 16), 1), along(WIDE, 0))
SCALED = (
    fused("rows and columns", "float32", tuple(map(scaled, LOGITS)), (0, 1)),
    fused("dtypes", "float16 bfloat16 float64", (scaled(LOGITS[1]),), (0,)),
    fused("layouts", "float32", tuple(scaled(along(WIDE, 1, layout)) for layout in ("F", "[:, ::2]")), ()),
    odd("float32 float16 bfloat16 float64", tuple(map(scaled, ODD[:3]))),
)
SCALED_BY_NUMBERS = fused("numbers", "float32 float16", (along((65536, 1024), 1),), (0,))


def standardized(shape: Shape, layout: str = "C") -> Problem:
    """A matrix, a row and a column."""
    return joined(along(shape, None, layout), shape[-1:], (*shape[:-1], 1))


STANDARDIZE = (
    fused(
        "rows and columns", "float32",
        tuple(map(standardized, (WIDE, (65536, 1024), (2**22, 16), (256, 512, 512)))), (0,),
    ),
    fused("dtypes", "float16 bfloat16 float64", (standardized(WIDE),), (0,)),
    fused("layouts", "float32", tuple(standardized(WIDE, layout) for layout in ("F", "[:, ::2]")), ()),
    odd("float32 float16 bfloat16 float64", tuple(map(standardized, ODD_MATRICES))),
)  # fmt: skip


def five(problem: Problem) -> Problem:
    """Five arrays of a shape."""
    return problem._replace(operands=problem.operands * 5)


POLYNOMIAL = (
    fused("sizes", "float32", tuple(map(five, VECTORS)), (2, 4)),
    fused("dtypes", "float16 bfloat16 float64 int32", (five(along(WIDE, None)),), (0,)),
    fused("layouts", "float32", tuple(five(along(WIDE, None, layout)) for layout in ("F", "[:, ::2]")), ()),
    odd("float32 float16 bfloat16 float64 int32", tuple(five(along(shape, None)) for shape in ODD_MATRICES)),
)

#: The table of each op.
TABLES: dict[str, tuple[Group, ...]] = {
    "softmax": SOFTMAX,
    **dict.fromkeys(("log_softmax", "logsumexp", "rms_norm"), of_rows("float32", "float16", "bfloat16")),
    "sum": REDUCTIONS,
    "max": REDUCTIONS,
    "min": in_brief("float32", "float16"),
    "prod": in_brief("float32"),
    "mean": in_brief("float32 float16", "bfloat16"),
    **dict.fromkeys(("any", "all"), in_brief("bool")),
    "argmax": one_axis(*FEW_REDUCTIONS),
    "argmin": NARROW,
    **dict.fromkeys(("nanargmax", "nanargmin"), NARROW),
    "max_with_index": in_brief("float32", "int8"),
    "min_with_index": NARROW,
    "ptp": in_brief("float32", "int8"),
    "var": FEW_REDUCTIONS,
    "std": NARROW,
    "mean_var": in_brief("float32", "float16"),
    "nansum": in_brief("float32", "float16"),
    **dict.fromkeys(("nanprod", "nanmin", "nanstd"), NARROW),
    "nanmax": in_brief("float32", "float16"),
    "nanmean": in_brief("float32", "float16"),
    "nanvar": in_brief("float32", "float16"),
    "count_nonzero": in_brief("float32", "int8"),
    "sum_of_squares": in_brief("float32", "float16"),
    "vector_norm": in_brief("float32", "float16 bfloat16 float64"),
    "average": with_weights(*in_brief("float32", "float16")),
    "allclose": alike("float16 float64"),
    "array_equal": alike("int8 float64"),
    "dot": DOT,
    "cumsum": SCANS,
    **dict.fromkeys(("cumprod", "cummax", "cummin", "logcumsumexp"), OTHER_SCANS),
    "where": WHERE,
    "expand": EXPAND,
    "matmul": MATMUL,
    "nonzero": NONZERO,
    "compress": COMPRESS,
    "squared_distance": of_pairs("float16 bfloat16 float64 int32"),
    "greatest_difference": of_few_pairs("float16 bfloat16 float64 int32"),
    "share_above": of_few_pairs("float16 bfloat16"),
    "share_above_where": of_few_pairs("float16 bfloat16"),
    "scaled_logsumexp": (*SCALED, SCALED_BY_NUMBERS),
    "scaled_softmax": SCALED,
    "standardize": STANDARDIZE,
    "polynomial": POLYNOMIAL,
    "cosine": of_few_pairs("float16 bfloat16 float64"),
}

#: The ops whose results share a page.
FAMILIES: dict[str, tuple[str, ...]] = {
    "Maps": ("expand", "where"),
    "Reductions": (
        "sum", "prod", "max", "min", "mean", "any", "all", "ptp", "count_nonzero", "nansum", "nanprod", "nanmax",
        "nanmin", "nanmean",
    ),
    "Statistics": (
        "var", "std", "mean_var", "nanvar", "nanstd", "average", "sum_of_squares", "vector_norm", "allclose",
        "array_equal",
    ),
    "Searches": (
        "argmax", "argmin", "nanargmax", "nanargmin", "max_with_index", "min_with_index", "nonzero", "compress",
    ),
    "Softmax": ("softmax", "log_softmax", "logsumexp", "rms_norm"),
    "Products": ("matmul", "dot"),
    "Scans": ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"),
    "Expressions": (
        "squared_distance", "greatest_difference", "share_above", "share_above_where", "scaled_logsumexp",
        "scaled_softmax", "standardize", "polynomial", "cosine",
    ),
}  # fmt: skip



def family_of(op: str) -> str:
    """The family that an op belongs to."""
    return next(family for family, ops in FAMILIES.items() if op in ops)


#: What users meet first, and one of the hardest layouts: the cases of the README and of the home page.
FRONT = (
    ("softmax", "float32 4096×4096 axis 1"),
    ("softmax", "float32 8×4194304 axis 1"),
    ("sum", "float32 8192×8192 axis 0"),
    ("sum", "float32 4194304×16 axis 0"),
    ("argmax", "float32 268435456"),
    ("var", "float32 268435456"),
    ("where", "float32 8192×1, 1×8192, 8192×8192"),
    ("where", "float32 1000×1×97, 1×333×1, 1000×333×97"),
    ("expand", "float32 8192×1 → 8192×8192"),
    ("matmul", "float32 4096×4096, 4096×4096"),
)

#: The groups of ``--host``: arrays so small that host time dominates, and first uses.
HOST = Group("host", "arrays so small that the host decides", (), "float32", picks=())
NEW_SHAPES = HOST._replace(
    name="new shapes",
    origin="each call has arrays of a shape that no call before it had, of 33, 34, … rows: it is planned again",
)
PIPELINES = HOST._replace(
    name="pipelines",
    origin="where(mask, x, 0.0), then the sums and the softmax of its rows: three calls each time (eager), or one "
    "launch of the CUDA graph that they were captured as (replayed)",
)
FIRST_USE = HOST._replace(
    name="first use",
    origin="in a new process: for the import, beyond NumPy's, and for a first call until its result is there, with "
    "empty and with filled caches of kernels; the limit is what starts before: NumPy, or CuPy with one array filled. "
    "Of an expression that a call before had, what the first call with something new costs, with empty caches: with "
    "arrays of another shape, with another number, or of another expression; the limit is a call in which nothing is "
    "new",
)
STEPS = HOST._replace(name="steps", origin="the steps of a cached call, each by itself", peers=False)
TENSORS = HOST._replace(
    name="tensors",
    origin="gpuops given PyTorch's tensors, gpuops(torch), beside gpuops given CuPy's arrays and PyTorch's own ops",
    only=("gpuops(torch)", "torch"),
)

NEW = "new shapes"
EAGER, REPLAYED, REPLAYED_ON_GPU = "eager", "replayed", "replayed: on the GPU"
IMPORT, NOTHING_COMPILED, COMPILED_BEFORE = "over NumPy", "first call: nothing compiled", "first call: compiled before"
NEWS = NEW_EXPRESSION, NEW_SHAPE, NEW_NUMBER = "new expression", "new shape", "new number"
CACHED_CALL_STEPS = ("array for the result", "launch", "whole call")
WITH_TENSORS = "tensors"
WITHOUT_GPU = frozenset(("", NEW, EAGER, IMPORT))  # what is timed without a GPU


def new_shapes(*problems: Problem) -> tuple[Problem, ...]:
    """Problems in which each call has a new shape."""
    return tuple(problem._replace(how=NEW) for problem in problems)


def into(*problems: Problem) -> tuple[Problem, ...]:
    """Problems with a contiguous ``out``."""
    return tuple(problem._replace(out="C") for problem in problems)


def masked(n: int) -> Problem:
    """A square matrix and a mask of its elements."""
    return along((n, n), 1, mask=(n, n))


ROWS, COLUMNS, FEW = along((32, 32), 1), along((32, 32), 0), along((1000,), 0)
THREE, SCALARS = together(*((32, 32),) * 3), together((32, 32), (), ())
COLUMN = together((32, 1), shape=(32, 32))

#: The table of each group of ``--host``.
HOST_TABLES: tuple[tuple[Group, dict[str, tuple[Problem, ...]]], ...] = (
    (
        HOST,
        dict.fromkeys(TABLES, (ROWS,)) | dict.fromkeys(
            ("logsumexp", "min", "prod", "mean", "any", "all"), (ROWS, FEW)
        ) | {
            "softmax": (ROWS, FEW, *into(ROWS)),
            "log_softmax": (ROWS, FEW, *into(ROWS)),
            "sum": (ROWS, FEW, along((32, 32), None), *into(ROWS, FEW)),
            "max": (ROWS, FEW, *into(ROWS)),
            "where": (THREE, together((32, 1), (1, 32), (32, 32)), SCALARS, *into(THREE)),
            "dot": (pair(1000),),
            "average": (along((32, 32), 1, mask=(32, 32)),),
            "allclose": (pair(1000),),
            "array_equal": (pair(1000),),
            "expand": (COLUMN, together((1,), shape=(1000,)), *into(COLUMN)),
            "nonzero": (FEW._replace(axis=None),),
            "compress": (chosen(1000),),
            "matmul": (product(32, 32, 32),),
        } | dict.fromkeys(EXPRESSIONS, (joined(ROWS),)) | {
            "scaled_logsumexp": (scaled(ROWS), ROWS), "scaled_softmax": (scaled(ROWS),),
            "standardize": (standardized((32, 32)),), "polynomial": (five(ROWS._replace(axis=None)),),
        },
    ),
    (
        NEW_SHAPES,
        {
            "softmax": new_shapes(ROWS), "log_softmax": new_shapes(ROWS), "sum": new_shapes(ROWS, COLUMNS),
            "max": new_shapes(ROWS), "logsumexp": new_shapes(ROWS), "dot": new_shapes(pair(32)),
            "where": new_shapes(THREE, SCALARS), "expand": new_shapes(COLUMN),
            "matmul": new_shapes(product(32, 32, 32)), "squared_distance": new_shapes(joined(ROWS)),
            "polynomial": new_shapes(five(ROWS._replace(axis=None))),
        },
    ),
    (
        PIPELINES,
        {
            "pipeline": tuple(
                masked(n)._replace(how=how) for n in (32, 1024) for how in (EAGER, REPLAYED, REPLAYED_ON_GPU)
            )
        },
    ),
    (
        FIRST_USE,
        {"import": (Problem((), shape=(0,), how=IMPORT),)} | {
            op: tuple(problem._replace(how=how) for how in (NOTHING_COMPILED, COMPILED_BEFORE))
            for op, problem in (("softmax", ROWS), ("sum", ROWS), ("where", THREE))
        } | {"squared_distance": tuple(joined(ROWS)._replace(how=how) for how in NEWS)},
    ),
    (STEPS, {"sum": tuple(ROWS._replace(how=how) for how in CACHED_CALL_STEPS)}),
    (
        TENSORS,
        {
            op: tuple(problem._replace(how=WITH_TENSORS) for problem in problems)
            for op, problems in (
                ("softmax", (ROWS, *into(ROWS))), ("sum", (ROWS,)), ("where", (THREE,)),
                ("matmul", (product(32, 32, 32),)),
            )
        },
    ),
)  # fmt: skip

#: The groups of ``--gpus``: Dask arrays in chunks of whole rows. 4 GiB take a GPU a few milliseconds, which shows
#: delays between workers; arrays that fill much of its memory show what remains of them.
ROW_CHUNKS = Group(
    "row chunks", "each chunk is computed by itself: nothing goes from one GPU to another", (), "float32", picks=(0,)
)
CHUNKED_AXIS = ROW_CHUNKS._replace(
    name="chunked axis", origin="the op goes over all chunks: partial results of all of them are brought together"
)
CHUNK_SIZES = ROW_CHUNKS._replace(
    name="chunk sizes", origin="softmax along rows in chunks of 1 MiB … 4 GiB", picks=(3,)
)

GIB = 2**14  # rows and columns of a GiB of float32


def in_chunks(problem: Problem, *counts: int) -> tuple[Problem, ...]:
    """A problem with its rows in ``count`` chunks, for each count."""
    return tuple(problem._replace(chunks=count) for count in counts)


def gibibytes(count: float, axis: Axis) -> Problem:
    """An op along an axis of an array of ``count`` GiB."""
    return along((int(count * GIB), GIB), axis)


def masked_pair(count: int) -> Problem:
    """A mask and two arrays of ``count`` GiB."""
    return together(*((count * GIB, GIB),) * 3)


#: The table of each group of ``--gpus``.
SCALING_TABLES: tuple[tuple[Group, dict[str, tuple[Problem, ...]]], ...] = (
    (
        ROW_CHUNKS,
        {
            "softmax": (*in_chunks(gibibytes(32, 1), 8), *in_chunks(gibibytes(4, 1), 1, 4)),
            "sum": (*in_chunks(gibibytes(64, 1), 16), *in_chunks(gibibytes(4, 1), 1, 4)),
            "where": (*in_chunks(masked_pair(16), 4), *in_chunks(masked_pair(4), 1, 4)),
        },
    ),
    (
        CHUNKED_AXIS,
        {
            "softmax": (*in_chunks(gibibytes(32, 0), 8), *in_chunks(gibibytes(4, 0), 4)),
            "sum": (*in_chunks(gibibytes(64, 0), 16), *in_chunks(gibibytes(4, 0), 4)),
        },
    ),
    (
        CHUNK_SIZES,
        {
            "softmax": (
                *(in_chunks(gibibytes(size / 4, 1), 256)[0] for size in (1, 4, 16, 64)),
                *in_chunks(gibibytes(16, 1), 64, 16, 4),
            )
        },
    ),
)  # fmt: skip


def cases(op: str) -> Iterator[Case]:
    """The cases of an op, in the order of its table."""
    for group in TABLES[op]:
        dtypes = group.dtypes.split()
        for dtype in dtypes:
            for i, problem in enumerate(group.problems):
                yield Case(op, group, problem, dtype, pick=i in group.picks and dtype == dtypes[0])


def host_cases(op: str, gpu: bool) -> Iterator[Case]:
    """The cases of an op for ``--host``; without a GPU, only those that need none."""
    for group, table in HOST_TABLES:
        for problem in table.get(op, ()):
            if gpu or problem.how in WITHOUT_GPU:
                yield Case(op, group, problem, group.dtypes, pick=True)


def scaling_cases(op: str) -> Iterator[Case]:
    """The cases of an op for ``--gpus``."""
    for group, table in SCALING_TABLES:
        for i, problem in enumerate(table.get(op, ())):
            yield Case(op, group, problem, group.dtypes, pick=i in group.picks)


def shrunk(case: Case, elements: int) -> Case:
    """The case with its longest dims halved until no array has more than ``elements`` elements.

    Dims of length 1 and, for ``matmul`` and broadcasts, dims that belong together, stay so.
    """
    problem = case.problem
    while max(math.prod(shape) for shape in (*(o.shape for o in problem.operands), problem.shape)) > elements:
        longest = max(n for o in (*problem.operands, Operand(problem.shape)) for n in o.shape)
        problem = problem._replace(
            operands=tuple(o._replace(shape=_halved(o.shape, longest)) for o in problem.operands),
            shape=_halved(problem.shape, longest),
        )
    if problem.chunks:
        problem = problem._replace(chunks=min(problem.chunks, problem.operands[0].shape[0]))
    return case._replace(problem=problem)


def _halved(shape: Shape, longest: int) -> Shape:
    return tuple(n // 2 if n == longest else n for n in shape)
