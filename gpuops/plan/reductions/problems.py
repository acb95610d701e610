"""Reductions in normal form, and what planning knows of the structs of ``kernels/common/ops.cuh``."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import INTEGERS, ITEMSIZE, accumulator, dtype_name
from ..expression import read_from
from ..geometry import Axes, Shape, broadcast_strides, index_type, normal_form, offset_type
from ..params import Params
from ..work import ALIGNMENT, ArraySpec, Operand


def accumulated(val: str) -> np.dtype:
    """The state of most reductions: one value of the accumulator's dtype."""
    return np.dtype(accumulator(val))


#: What a second operand is: a mask; a factor of each element; an element's index, which is not in memory.
MASK, FACTOR, POSITION = "mask", "factor", "position"


class Traits(NamedTuple):
    """The traits of an op: ``struct Traits`` of ``kernels/common/ops.cuh``, which explains them."""

    indexed: bool = False
    product: bool = False
    unconverted: bool = False
    counting: bool = False
    exponential: bool = False


class OpStruct(NamedTuple):
    """What planning knows of a struct that makes states on a GPU."""

    name: str
    state: Callable[[str], np.dtype]  # in memory, given the dtype of the values
    traits: Traits = Traits()
    options: tuple[str, ...] = ()  # its numeric options, three at most
    root: bool = False  # whether it can also take the square root
    numbered: bool = False  # its state counts elements, in 32 bits if these suffice
    exact: int = 0  # 1: sums of integers; 2: also of their squares, in fewer bytes if these suffice; 3: these in 16
    held: Callable[[str], int] | None = None  # bytes per output that a thread holds without a mask, if not the state's
    printed: bool = False  # its source is printed from its record, for the dtypes of a kernel
    summed: bool = False  # its states are exact sums
    selects: bool = False  # its states are merged by choosing among them

    def __repr__(self) -> str:
        return self.name

    @property
    def second(self) -> str:
        """What its second operand is, if it has one."""
        return POSITION if self.traits.indexed else FACTOR if self.traits.product else MASK

    @property
    def busy(self) -> bool:
        """Whether elements take many instructions, and merges many steps."""
        return self.traits.indexed or self.exact > 1

    def numbers(self, length: int, given: dict[str, float]) -> tuple[float, ...]:
        """The values of its options, for ``length`` elements."""
        if not self.options:
            return ()
        return tuple([OPTIONS[name](length, given) if name in OPTIONS else given[name] for name in self.options])


def reciprocal(n: float) -> float:
    return math.inf if n <= 0 else 1 / n


#: Options that are computed from the number of elements and from other options.
OPTIONS: dict[str, Callable[[int, dict[str, float]], float]] = {
    "n": lambda length, given: given.get("n", length),
    "inverse": lambda length, given: reciprocal(given.get("n", length)),
    "share": lambda length, given: reciprocal(given.get("n", length) * (given.get("n", length) - given["ddof"])),
}


def fields(*names: str) -> Callable[[str], np.dtype]:
    """A state of several values of the accumulator's dtype."""
    return lambda val: np.dtype([(name, accumulated(val)) for name in names])


def positions(x: ArraySpec, axis: Shape, given: Shape = ()) -> ArraySpec:
    """An operand whose elements are the indices of those of x: in C order of the reduced dims, or with given steps
    along them."""
    steps, step = [0] * x.ndim, 1
    for d in reversed(axis):
        steps[d], step = step, step * x.shape[d]
    for d, step in zip(axis, given, strict=False):
        steps[d] = step
    return ArraySpec(POSITION, x.shape, np.dtype(np.uint8), tuple(steps), x.machine)


@cache
def partial_result(state: Callable[[str], np.dtype], val: str, short: bool) -> np.dtype:
    """A state in memory. ``short``: four bytes suffice for its integer, and hold it unless values have 8-byte
    alignment."""
    most = state(val)
    if not short or most[0].alignment == 8:
        return most
    return np.dtype([(name, np.uint32 if most[name] == np.int64 else most[name]) for name in most.names or ()])


@cache
def partial_size(state: Callable[[str], np.dtype], val: str, short: bool) -> int:
    """Bytes of a state in memory."""
    return partial_result(state, val, short).itemsize


def summed_in(x: str, val: str, length: int, power: int = 1) -> str:
    """The dtype for sums of ``length`` elements (power 2: also of their squares, which are unsigned): four bytes
    suffice for few small integers."""
    small = x in INTEGERS and length << 8 * ITEMSIZE[x] * power <= 2 ** (30 + power)
    return "int32" if small and val in ("int64", "uint64") else val


FIELDS = "Fields"  # the C++ type of states in memory


class States:
    """Bits: whether a kernel reads states instead of elements, and writes them instead of results."""

    READ = 1
    WRITTEN = 2


Arrays = tuple[Operand, Operand | None, Operand]


class Problem(NamedTuple):
    """A reduction in normal form: ``out[k] = op(x[k, r] for r in reduced)``, perhaps beside a second operand."""

    op: OpStruct
    x: str  # dtype names: of the elements, of the values NumPy would compute with, of the result
    val: str
    out: str | None  # None: the op's own state
    kept: Axes  # operands x, other, out
    reduced: Axes  # operands x, other
    arrays: Arrays  # where x, other and out begin in normal form
    starts: Shape  # these addresses modulo 16
    length: int  # elements reduced to one output
    outputs: int
    integer: str  # the type of the index or the count in a partial result; "": it has none
    other: str | None = None  # dtype of the second operand: a mask, or a factor
    numbers: tuple[float, ...] = ()  # the op's options
    initial: bytes | None = None
    root: bool = False  # take the root of a variance
    states: int = 0  # bits of States
    relative: bool = False  # elements are relative to their rows' maxima
    second: ArraySpec | None = None  # a new array of second results, laid out like a new ``out``
    computed: bool = False  # whether x is made from other arrays
    loaded: int = 0  # bytes that are loaded for each element of x, if it is made from others
    widest: int = 0  # bytes of an element of the widest array that x is made from
    several: int = 0  # sums that are made together, if an element has a term of each
    ahead: bool = False  # whether what x is made from is loaded long before x is computed
    general: bool = False  # kernels of small arrays serve larger ones too, if the bits are the same

    @property
    def orderless(self) -> bool:
        """Whether every order of merging gives the same bits. Of the two zeros, maxima in double precision and of
        complex numbers give the one that comes first."""
        selects = self.op.selects and self.val in ("float16", "bfloat16", "float32")
        return bool(self.exact or selects or self.op.traits.indexed or self.val in INTEGERS)

    @property
    def any_order(self) -> bool:
        """Whether plans for arrays and for what is made from others may differ."""
        return self.orderless or self.op.selects

    @property
    def pointers(self) -> tuple[Operand | Params | None, ...]:
        """The pointer arguments for x, other and out; for indices, the first index is the address."""
        x, other, out = self.arrays
        return x, Params("@q", (other.offset,)) if other and self.op.second == POSITION else other, out

    @property
    def seconds(self) -> Operand | None:
        """Where second results begin."""
        if self.second is None:
            return None
        first = self.arrays[2].offset // ITEMSIZE[self.out or self.val]
        return Operand(self.second.name, first * self.second.itemsize)

    @property
    def itemsize(self) -> int:
        """Bytes of an element of x, or of what it is made from."""
        return max(ITEMSIZE[self.x], self.widest)

    @property
    def packs(self) -> int:
        """What is loaded for each pack of x, in packs. Beside the many instructions of exact sums, one more array does
        not count."""
        return -(-self.loaded // (max(self.widest, 1) * (2 if self.exact else 1))) or 1

    @property
    def partial(self) -> np.dtype:
        """A partial result in memory."""
        return partial_result(self.op.state, self.val, self.integer not in ("", "i64"))

    @property
    def state(self) -> int:
        """Bytes of a partial result."""
        return partial_size(self.op.state, self.val, self.integer not in ("", "i64")) * (self.several or 1)

    @property
    def exact(self) -> bool:
        """Whether states are exact sums of floats."""
        return self.op.summed and self.val not in INTEGERS

    @property
    def wide(self) -> bool:
        """Whether states are exact sums of float64."""
        return self.exact and self.val in ("float64", "complex128")

    @property
    def held(self) -> int:
        """Bytes that a thread holds for each of its outputs."""
        fewer = self.op.held if self.other is None or self.exact else None
        return fewer(self.val) * (self.several or 1) if fewer else self.state

    @property
    def scaled(self) -> bool:
        """Whether elements are multiplied by a number."""
        return "scale" in self.op.options and self.numbers[self.op.options.index("scale")] != 1

    def writing(self) -> "Problem":
        """The same problem, writing states instead of results."""
        return self._replace(states=self.states | States.WRITTEN, out=FIELDS)

    def reading(self) -> "Problem":
        """The same problem, reading states instead of elements. They count in 64 bits."""
        return self._replace(states=self.states | States.READ, x=FIELDS, integer=self.integer and "i64")

    @property
    def result(self) -> int:
        """Bytes of a result: of the larger one, if there are two."""
        if self.out == FIELDS:
            return ALIGNMENT  # or more: no thread writes several at once
        own = 2 * ITEMSIZE[self.val] if self.out is None else ITEMSIZE[self.out] * (self.several or 1)
        return max(own, self.second.itemsize) if self.second else own


def of_normal_form(
    op: OpStruct, x: str, val: str, out: str | None, axes: tuple[Axes, Axes], arrays: Arrays, starts: Shape,
    length: int, *more: Any,
) -> Problem:  # fmt: skip
    """The problem with these kept and reduced dims; ``more``: the fields from ``other`` on."""
    integer = offset_type((length,)) if op.traits.indexed else index_type(length) if op.numbered else ""
    return Problem(op, x, val, out, *axes, arrays, starts, length, axes[0].size, integer, *more)


def problem(
    op: OpStruct, x: ArraySpec, other: ArraySpec | None, out: ArraySpec, axis: Shape, val: str,
    initial: bytes | None = None, root: bool = False, **options: float,
) -> Problem:  # fmt: skip
    """The normal form of reducing x over ``axis`` in values of dtype ``val``; a mask or factor broadcasts to x."""
    shape, steps, out_steps = x.shape, x.steps, out.steps
    beside = (0,) * len(shape) if other is None else broadcast_strides(other.shape, other.steps, shape)
    if len(out_steps) == len(shape):  # keepdims: the strides of the dims that stay
        out_steps = tuple([s for d, s in enumerate(out_steps) if d not in axis])
    kept_dims, reduced_dims = [d for d in range(len(shape)) if d not in axis], axis
    if empty := 0 in shape:  # nothing to read: every output is the identity
        steps = beside = (0,) * len(shape)
        reduced_dims = ()
    kept, kept_moves = normal_form(
        [(shape[d], steps[d], beside[d], s) for d, s in zip(kept_dims, out_steps, strict=True)], 3
    )
    reduced, moves = normal_form([(shape[d], steps[d], beside[d]) for d in reduced_dims], 2)
    length = 0 if empty else reduced.size
    x_dtype = dtype_name(x.dtype)
    if op.exact and initial is None:
        val = summed_in(x_dtype, val, length, op.exact)
    first = x.itemsize * (kept_moves[0] + moves[0])
    second = 0 if other is None else other.itemsize * (kept_moves[1] + moves[1])
    last = out.itemsize * kept_moves[2]
    arrays = (
        Operand(x.name, x.offset + first), None if other is None else Operand(other.name, other.offset + second),
        Operand(out.name, out.offset + last),
    )  # fmt: skip
    starts = (
        (x.start + first) % ALIGNMENT, 0 if other is None else (other.start + second) % ALIGNMENT,
        (out.start + last) % ALIGNMENT,
    )  # fmt: skip
    other_dtype = None if other is None else dtype_name(other.dtype)
    found = of_normal_form(
        op, x_dtype, val, dtype_name(out.dtype), (kept, reduced), arrays, starts, length, other_dtype,
        op.numbers(length, options), initial, root,
    )  # fmt: skip
    if x.made is not None:
        return made_from(found, x, axis)
    return found._replace(general=True) if x.machine is not None and x.machine.general and found.orderless else found


def made_from(p: Problem, x: ArraySpec, axis: Shape) -> Problem:
    """The problem, given what the expression x is made from. Operands that repeat come from a cache: these do not
    count beside the many instructions of exact sums. Where the order of merging decides the bits, the plan is that of
    an array."""
    p = p._replace(computed=True)
    if not p.any_order:
        return p._replace(ahead=p.op.traits.exponential)
    whole, moving = read_from(x, axis)
    sizes = whole if p.exact and whole else [*whole, *moving]
    many = len(whole) + len(moving) > 1
    p = p._replace(loaded=sum(sizes), widest=max(sizes, default=0))
    return p._replace(ahead=not p.exact or many or p.itemsize == 2)
