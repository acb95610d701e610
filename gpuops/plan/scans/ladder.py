"""The ladder: a thread, a warp or a block for each line, and three passes over longer ones."""

from __future__ import annotations

from ...errors import error
from ..builder import Builder
from ..geometry import index_type, offset_type, reaches
from ..params import Field, Struct
from ..work import Kernel, Launch, Operand, Plan, check_grid, variant
from .common import RADIX, struct_of, types_of
from .problems import Problem

PART = RADIX**3  # elements of a block that has a tree
STEPPED = 1024  # elements of a line, and threads of a block, of hillis_steele
BLOCK = 256
#: The strategies that merge in an order of their own, not in that of the tree.
OWN_ORDER = ("hillis_steele", "warp")

PARAMS = Struct(
    "Ladder",
    Field("i64", "length", "elements of a line, or states"),
    Field("i64", "lines", "lines in all"),
    Field("i64", "parts", "parts of a line, of a block each"),
    Field("Tout", "nothing", "the result of no elements"),
    Field("Axes<KEPT, 2, Offset>", "kept", "operands x and y, over the lines"),
    Field("Axes<LINE, 2, Offset>", "line", "operands x and y, over the elements of a line"),
    Field("i32", "exclusive", "whether results are those of the elements before"),
)


def add_hillis_steele(builder: Builder, p: Problem, strategy: str) -> None:
    """A block per line, a thread per element."""
    check(p, strategy, STEPPED)
    threads = -(-p.length // 32) * 32
    builder.add(Plan(strategy, (launch(p, strategy, p.kept.size, threads, BLOCK=STEPPED),)))


def add_blelloch(builder: Builder, p: Problem, strategy: str) -> None:
    """A block per line, a chunk of it for each thread."""
    check(p, strategy, PART)
    builder.add(Plan(strategy, (launch(p, strategy, p.kept.size, BLOCK),)))


def add_warp(builder: Builder, p: Problem, strategy: str) -> None:
    """A warp per line."""
    check(p, strategy)
    builder.add(Plan(strategy, (launch(p, strategy, -(-p.kept.size // (BLOCK // 32)), BLOCK),)))


def add_three_pass(builder: Builder, p: Problem, strategy: str) -> None:
    """Parts of lines, whose states are scanned between two readings of the elements."""
    items = [p.length]  # of a line, by level: elements, then the states of parts of the level below
    while items[-1] > PART:
        items.append(-(-items[-1] // PART))
    states = [None, *(Operand(f"level_{level}") for level in range(1, len(items))), None]

    def step(level: int, results: bool) -> Launch:
        parts = -(-items[level] // PART)
        return launch(
            p, strategy, p.kept.size * parts, BLOCK, *states[level : level + 2], length=items[level], parts=parts,
            ELEMENTS=level == 0, RESULTS=results,
        )  # fmt: skip

    levels = range(len(items))
    up, down = [step(each, results=False) for each in levels[:-1]], [step(each, results=True) for each in levels[::-1]]
    workspace = [(f"level_{level}", p.kept.size * items[level] * p.carry) for level in levels[1:]]
    builder.add(Plan(strategy, (*up, *down), tuple(workspace)))


def check(p: Problem, strategy: str, longest: int | None = None) -> None:
    """Raise if a strategy does not take lines of that length, or scans that depend on the order of merges."""
    rule = f"strategy {strategy!r}"
    if longest and p.length > longest:
        raise error(ValueError, p.op, f"{rule} takes lines of at most {longest} elements, got {p.length}")
    if p.ordered and strategy in OWN_ORDER:
        raise error(ValueError, p.op, f"{rule} merges in an order of its own, on which {p.val} results depend")


def launch(
    p: Problem, strategy: str, blocks: int, threads: int, *states: Operand | None, length: int | None = None,
    parts: int = 1, **constants: int,
) -> Launch:  # fmt: skip
    """A launch of a strategy's kernel, for lines of elements or of as many states."""
    grid = check_grid(p.op, f"strategy {strategy!r}", (blocks, 1), "{} lines of {} elements", p.kept.size, p.length)
    params = PARAMS.pack(
        offset_type(reaches(p.kept, p.line)), length=p.length if length is None else length, lines=p.kept.size,
        parts=parts, exclusive=p.exclusive, nothing=p.nothing + bytes(-len(p.nothing) % 8), kept=p.kept, line=p.line,
    )  # fmt: skip
    return Launch(kernel_of(p, strategy, constants), grid, threads, (*p.arrays, *states, params))


def kernel_of(p: Problem, strategy: str, constants: dict[str, int]) -> Kernel:
    """The kernel of a strategy."""
    types = types_of(p) | {
        "Op": struct_of(p),
        "Index": index_type(p.kept.size, p.length), "Offset": offset_type(reaches(p.kept, p.line)),
    }  # fmt: skip
    common = {
        "KEPT": p.kept.rank_class, "LINE": p.line.rank_class, "BLOCK": BLOCK, "PREFIX": p.exact, "SCALED": p.scaled,
        "STATES": 0,
    }  # fmt: skip
    return variant(f"scan_{strategy}", types, common | constants)
