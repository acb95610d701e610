"""Draws the pictures of the guides to the kernels: ``python docs/kernels/drawings.py`` writes them beside itself.

A thread has a colour; what it touches has the same. ``PICTURES`` has a function for each file.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
#: Fills by name, on a light page and on a dark one: t0 … t3 are threads, s0 … s3 the same in a paler shade.
FILLS = {
    "card": ("#ffffff", "#161b22"), "empty": ("#e9ecef", "#30363d"), "chip": ("#e69f00", "#a87400"),
    "block": ("#cfe8f7", "#16405c"), "t0": ("#0072b2", "#0b78b8"), "t1": ("#d55e00", "#c95a05"),
    "t2": ("#00835f", "#00835f"), "t3": ("#a8527f", "#a8527f"), "s0": ("#b7d9ee", "#17435f"),
    "s1": ("#f6cfb2", "#5e310f"), "s2": ("#b5e0d3", "#0d4a3a"), "s3": ("#ecd0e0", "#55304a"),
}  # fmt: skip
INKS = {"ink": ("#24292f", "#e6edf3"), "faint": ("#57606a", "#9aa4af")}
THREADS, PALE = ("t0", "t1", "t2", "t3"), ("s0", "s1", "s2", "s3")
SIDE = 26  # of a cell


def style() -> str:
    """The style sheet of a picture: the colours of light pages, and those that replace them on dark ones."""

    def colours(dark: int) -> str:
        fills = "".join(f".{name}{{fill:{shades[dark]}}}" for name, shades in {**FILLS, **INKS}.items())
        edge, faint = FILLS["card"][dark], INKS["faint"][dark]
        return f"{fills}.edge{{stroke:{edge}}}.line{{stroke:{faint};fill:none}}"

    return f"<style>.on{{fill:#fff}}{colours(0)}@media (prefers-color-scheme: dark){{{colours(1)}}}</style>"


class Picture:
    """Cells, arrows and words on a card."""

    def __init__(self, width: int, height: int, about: str) -> None:
        self.width, self.height, self.about = width, height, about
        self.parts: list[str] = []

    def words(self, x: float, y: float, *lines: str, size: int = 13, anchor: str = "start", ink: str = "ink") -> None:
        """Lines of text, the first with its baseline at y."""
        for n, line in enumerate(lines):
            place = f'x="{x:g}" y="{y + n * (size + 5):g}" font-size="{size}" text-anchor="{anchor}" class="{ink}"'
            self.parts.append(f"<text {place}>{escape(line)}</text>")

    def paragraph(self, x: float, y: float, text: str, columns: int = 100, size: int = 13) -> None:
        """Text in lines of so many characters at most."""
        self.words(x, y, *textwrap.wrap(text, columns), size=size)

    def heading(self, x: float, y: float, text: str) -> None:
        place = f'x="{x:g}" y="{y:g}" font-size="15" font-weight="bold" class="ink"'
        self.parts.append(f"<text {place}>{escape(text)}</text>")

    def cell(self, x: float, y: float, kind: str, label: str = "", w: float = SIDE, h: float = SIDE) -> None:
        """A box of a kind (a key of ``FILLS``) with a label in its middle."""
        place = f'x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" class="{kind} edge"'
        self.parts.append(f"<rect {place}/>")
        if label:
            ink = "on" if kind in THREADS else "ink"
            self.words(x + w / 2, y + h / 2 + 4, label, size=11, anchor="middle", ink=ink)

    def cells(self, x: float, y: float, kinds: Sequence[str], labels: Sequence[object] = (), w: float = SIDE) -> None:
        """Cells side by side."""
        for n, kind in enumerate(kinds):
            self.cell(x + n * w, y, kind, str(labels[n]) if labels else "", w)

    def frame(self, x: float, y: float, w: float, h: float = SIDE) -> None:
        """An outline, such as that of a cache line."""
        place = f'x="{x - 1:g}" y="{y - 3:g}" width="{w + 2:g}" height="{h + 6:g}" rx="3"'
        self.parts.append(f'<rect {place} class="line" stroke-width="1.5"/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        place = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
        self.parts.append(f'<line {place} class="line" stroke-width="1.3" marker-end="url(#tip)"/>')

    def svg(self) -> str:
        """The file's text."""
        tip = (
            '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
            '<path d="M0 0L8 4L0 8z" class="faint"/></marker>'
        )
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        about = escape(self.about, {'"': "&quot;"})
        top = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT}" role="img" aria-label="{about}">'
        card = f'<rect width="{self.width}" height="{self.height}" rx="6" class="card"/>'
        return "\n".join((top, style(), f"<defs>{tip}</defs>", card, *self.parts, "</svg>\n"))


# --------------------------------------------------------------------------------------------- expand and where


def elementwise() -> Picture:
    p = Picture(760, 220, "elementwise: a thread for each element of y, which divides its way to an element of x")
    p.heading(16, 28, "expand (2, 1, 3) → (2, 2, 3), a thread for each element of y")
    p.words(16, 70, "x")
    p.cells(60, 52, ["t0"] * 3 + ["t1"] * 3, ("a0", "a1", "a2", "b0", "b1", "b2"))
    p.words(16, 142, "y")
    p.cells(60, 124, ["s0"] * 6 + ["s1"] * 6, [f"t{n}" for n in range(12)], 30)
    p.arrow(60 + 5.5 * SIDE, 80, 60 + 8.5 * 30, 122)
    p.words(450, 64, "thread 8 has index 8:", "8 mod 3 = 2,   8 div 3 = 2", "2 mod 2 = 0,   2 div 2 = 1")
    p.words(450, 124, "coordinates (1, 0, 2)", "strides of x (3, 0, 1): x[3 + 0 + 2] = b2")
    p.words(16, 186, "A 64-bit division for each dim, to move 4 bytes: the arithmetic takes longer than memory does.")
    return p


def collapsed() -> Picture:
    p = Picture(760, 228, "collapsed: neighbouring dims are merged, and a thread has two elements a block apart")
    p.heading(16, 28, "Dims are merged where possible")
    for x, w, size in ((16, 50, "64"), (68, 90, "256"), (160, 70, "128"), (232, 50, "64")):
        p.cell(x, 44, "s0", size, w)
    for x, w, size in ((16, 50, "64"), (68, 162, "32768"), (232, 50, "64")):
        p.cell(x, 100, "t0", size, w)
    p.arrow(113, 72, 143, 98)
    p.arrow(195, 72, 155, 98)
    p.words(16, 150, "and a division is a multiplication", "by a constant, and a shift")
    p.heading(380, 28, "A thread has two elements, a block apart")
    p.words(380, 64, "a block of four threads:")
    for n in range(8):
        p.cell(380 + n * 44, 100, THREADS[n % 4], f"t{n % 4}", 44)
    p.arrow(402, 76, 402, 98)
    p.arrow(402, 76, 578, 98)
    p.words(380, 150, "Both loads of t0 are under way at a time, and", "neighbouring threads load neighbours.")
    p.words(16, 206, "There are still as many instructions for 4 bytes as for 16.")
    return p


def stepped() -> Picture:
    p = Picture(760, 262, "stepped: a thread loads a pack once and stores it at several steps along the repeated dim")
    p.heading(16, 28, "A row that repeats: each thread loads its pack once, and stores it at several steps")
    p.words(16, 66, "x")
    p.words(16, 114, "registers")
    p.words(16, 158, "y, step by step")
    for t in range(4):
        x = 150 + t * 140
        p.cells(x, 48, [THREADS[t]] * 4, [f"{4 * t + v}" for v in range(4)], 32)
        p.cell(x, 96, PALE[t], f"thread {t}", 128)
        p.arrow(x + 64, 76, x + 64, 94)
        p.arrow(x + 64, 124, x + 64, 138)
        for step in range(3):
            p.cells(x, 140 + step * 28, [THREADS[t]] * 4, [f"{4 * t + v}" for v in range(4)], 32)
    p.paragraph(
        16, 246,
        "One load for several stores: the row does not come from the L2 cache again for each of its copies.",
    )  # fmt: skip
    return p


def tiled() -> Picture:
    p = Picture(760, 268, "tiled: a block reads rows of x into shared memory, and writes rows of y from there")
    p.heading(16, 28, "y = x, transposed: a square tile through shared memory")
    for n, title in enumerate(("x: read along its rows", "shared memory: rows padded", "y: written along its rows")):
        p.words(40 + n * 240, 62, title)
        for i in range(4):
            for j in range(4):
                row, col = (i, j) if n < 2 else (j, i)
                p.cell(40 + n * 240 + j * 30, 76 + i * 30, THREADS[row], f"{row}{col}", 30, 30)
            if n == 1:
                p.cell(40 + n * 240 + 120, 76 + i * 30, "empty", "", 30, 30)
    p.arrow(176, 136, 266, 136)
    p.arrow(446, 136, 510, 136)
    p.paragraph(
        16, 226,
        "A colour is a row of x: four neighbours in memory. Without the tile, x or y would be touched element by "
        "element. With the padding, the elements of a row, and those of a column, are in different banks.",
    )  # fmt: skip
    return p


# -------------------------------------------------------------------------------------------------- reductions


def runs_and_neighbours(p: Picture, x: float, y: float, neighbours: bool) -> None:
    """Sixteen elements of x in four cache lines, and which of four threads reads which first."""
    owner = [n % 4 if neighbours else n // 4 for n in range(16)]
    first = [n < 4 if neighbours else n % 4 == 0 for n in range(16)]
    kinds = [(THREADS if now else PALE)[t] for t, now in zip(owner, first, strict=True)]
    p.cells(x, y, kinds, [f"t{t}" for t in owner], 28)
    for line in range(4):
        p.frame(x + line * 112 + 1, y, 110)


def first_pass() -> Picture:
    p = Picture(760, 206, "A run for each thread touches a cache line for each load; neighbours share one")
    p.heading(16, 28, "What a warp (here of four threads) loads first; frames are cache lines")
    p.words(16, 66, "a run for each")
    runs_and_neighbours(p, 150, 48, False)
    p.words(16, 126, "every 4th for each")
    runs_and_neighbours(p, 150, 108, True)
    p.words(616, 66, "4 lines", "for 4 elements", size=12)
    p.words(616, 126, "1 line", "for 4 elements", size=12)
    p.words(16, 182, "Strong colours: the first load of each thread. Pale: what the thread adds later.")
    return p


#: For each classic step of a reduction: the distances, and which of eight threads add at each.
TREES: dict[str, tuple[tuple[int, ...], Callable[[int, int], bool]]] = {
    "cross": ((1, 2, 4), lambda thread, stride: thread % (2 * stride) == 0),
    "interleaved": ((4, 2, 1), lambda thread, stride: thread < stride),
    "shuffle": ((4, 2, 1), lambda thread, stride: True),
}
TREE_WORDS = {
    "cross": (
        ("stride 1: threads 0, 2, 4, 6 add", "half of each warp is idle"),
        ("stride 2: threads 0, 4", "words 2 apart: bank conflicts"),
        ("stride 4: thread 0", "every warp still works for one lane"),
    ),
    "interleaved": (
        ("distance 4: threads 0 … 3 add", "neighbouring words, different banks"),
        ("distance 2: threads 0, 1", "warps without an active lane retire"),
        ("distance 1: thread 0", "a barrier after each step"),
    ),
    "shuffle": (
        ("distance 4: every lane adds", "registers, no shared memory"),
        ("distance 2", "no barrier within a warp"),
        ("distance 1", "every lane has the sum"),
    ),
}  # fmt: skip


def tree(p: Picture, x: float, y: float, name: str, threads: int = 8) -> None:
    """Which thread adds what at each step."""
    strides, adds = TREES[name]
    w, gap = 44, 58
    p.cells(x, y, [THREADS[0]] * threads, [f"t{n}" for n in range(threads)], w)
    for level, stride in enumerate(s for s in strides if s < threads):
        top, bottom = y + level * gap + SIDE + 2, y + (level + 1) * gap - 2
        for t in range(threads):
            active = adds(t, stride)
            p.cell(x + t * w, y + (level + 1) * gap, "t0" if active else "empty", "+" if active else "", w)
            if active:
                other = t ^ stride if name == "shuffle" else t + stride
                p.arrow(x + (t + 0.5) * w - 4, top, x + (t + 0.5) * w - 4, bottom)
                p.arrow(x + (other + 0.5) * w + 4, top, x + (t + 0.5) * w + (6 if other > t else -10), bottom)


def step_of(name: str) -> Picture:
    p = Picture(760, 264, f"{name}: which of eight threads adds what at each step")
    p.heading(16, 28, f"{name}: eight values become one")
    tree(p, 16, 46, name)
    for level, lines in enumerate(TREE_WORDS[name]):
        p.words(400, 46 + (level + 1) * 58 + 8, *lines)
    return p


def on_host() -> Picture:
    p = Picture(760, 250, "The second pass on the GPU is one launch; on the host it is a wait, two copies and a launch")
    p.heading(16, 28, "What follows the blocks' partial results (not to scale)")
    p.words(16, 70, "on the GPU")
    p.cell(130, 52, "t0", "blocks reduce", 150)
    p.cell(284, 52, "empty", "launch", 54)
    p.cell(342, 52, "t0", "one block adds", 110)
    p.words(16, 116, "…_host: GPU")
    p.words(16, 162, "…_host: host")
    p.cell(130, 98, "t0", "blocks reduce", 150)
    for x, w, kind, label in ((130, 150, "empty", "waits"), (340, 110, "t1", "NumPy adds")):
        p.cell(x, 144, kind, label, w)
    p.cell(284, 121, "chip", "copy", 52)
    p.cell(454, 121, "chip", "copy", 52)
    p.cell(510, 98, "empty", "launch", 54)
    p.cell(568, 98, "t0", "move to the result", 130)
    p.paragraph(
        16, 206,
        "The host waits until the GPU is done, and the GPU waits for the host. That takes many times as long as a "
        "small reduction.",
    )  # fmt: skip
    return p


def reduce_rows() -> Picture:
    p = Picture(760, 300, "rows: lanes along a row with several packs in flight; then a reduce-scatter over the lanes")
    p.heading(16, 28, "Four lanes share a row, in packs")
    for row in range(4):
        p.cells(16, 44 + row * 30, [THREADS[row]] * 12, [n % 4 for n in range(12)])
    p.paragraph(
        16, 186,
        "Numbers are lanes, colours are rows. A lane loads its packs of all four rows before it uses the first: twelve"
        " loads in flight.",
        44,
    )  # fmt: skip
    p.heading(400, 28, "Reduce-scatter: two steps for four rows")
    held = (tuple((0, 1, 2, 3) for _ in range(4)), ((0, 1), (0, 1), (2, 3), (2, 3)), ((0,), (1,), (2,), (3,)))
    for step, lanes in enumerate(held):
        y = 58 + step * 74
        p.words(372, y + 17, ("sums", "half", "one")[step], size=12, ink="faint")
        for lane, rows in enumerate(lanes):
            p.cells(410 + lane * 86, y, [THREADS[r] for r in rows], rows, 20)
    for step, (apart, y) in enumerate(((2, 58), (1, 132))):
        for lane in range(4):
            other = lane ^ apart
            p.arrow(410 + lane * 86 + (40, 20)[step], y + 29, 410 + other * 86 + (20, 10)[step], y + 71)
    p.paragraph(372, 254, "A lane sends half of its sums, and adds to the other half what it receives.", 52)
    p.paragraph(16, 282, "Longer rows have a warp, a block, or several blocks.")
    return p


def reduce_columns() -> Picture:
    p = Picture(760, 262, "columns: a lane keeps a pack of outputs and goes down; warps share the rows")
    p.heading(16, 28, "A lane keeps a pack of neighbouring outputs, and goes down")
    for row in range(4):
        labels = [f"{n // 2}" if n % 2 == 0 else "" for n in range(14)]
        p.cells(16, 44 + row * 28, [THREADS[row % 2]] * 14, labels)
    p.words(400, 62, "Numbers: lanes. Two elements here are a pack.", "Colours: warps, which take every second row.")
    p.words(400, 112, "A warp reads whole lines of a row, whatever", "the number of rows.")
    p.words(16, 182, "shared memory", size=12, ink="faint")
    p.cells(16, 190, ["s0"] * 14)
    p.cells(16, 218, ["s1"] * 14)
    p.arrow(386, 203, 420, 214)
    p.arrow(386, 231, 420, 220)
    p.cells(424, 204, ["t2"] * 14, w=22)
    p.words(424, 250, "one sum for each output", size=12, ink="faint")
    return p


def tickets() -> Picture:
    p = Picture(760, 214, "Several blocks to an output: each writes a partial result and takes a ticket")
    p.heading(16, 28, "Several blocks share an output, in one launch")
    for n, ticket in enumerate((2, 0, 3, 1)):
        p.cell(16 + n * 130, 46, THREADS[n], f"block {n}", 110)
        p.arrow(71 + n * 130, 74, 71 + n * 130, 98)
        p.cell(41 + n * 130, 100, PALE[n], f"p{n}", 60)
        p.words(71 + n * 130, 146, f"ticket {ticket}", size=12, anchor="middle", ink="faint")
    p.arrow(522, 113, 574, 113)
    p.cell(578, 100, "t2", "p0 + p1 + p2 + p3", 150)
    p.paragraph(
        16, 180,
        "Block 2 takes the last ticket, so all others have written. It adds in the order of the blocks, not of their "
        "arrival: the same call gives the same bits.",
    )  # fmt: skip
    return p


# ----------------------------------------------------------------------------------------------------- softmax


def naive_softmax() -> Picture:
    p = Picture(760, 292, "naive: each thread of a row reads the whole row twice, and its own element once more")
    p.heading(16, 28, "A row of eight elements, a thread for each result")
    p.words(120, 58, "elements of the row", size=12, ink="faint")
    for thread in range(8):
        p.words(16, 82 + thread * SIDE, f"thread {thread}", size=12)
        kinds = ["t0" if thread == c else "s0" for c in range(8)]
        p.cells(90, 64 + thread * SIDE, kinds, ["3" if thread == c else "2" for c in range(8)])
    p.paragraph(
        340, 86,
        "A number says how often the thread reads the element: once for the maximum, once for the sum, and its own "
        "once more for the result.",
        54,
    )  # fmt: skip
    p.paragraph(
        340, 158,
        "An element is read 2 · 8 + 1 times, in general 2 · cols + 1 times. All threads find the same maximum and the "
        "same sum.",
        54,
    )  # fmt: skip
    return p


def block_tree() -> Picture:
    p = Picture(760, 300, "block_tree: a run for each thread, then a tree in shared memory")
    p.heading(16, 28, "A row, a run for each thread; frames are cache lines")
    runs_and_neighbours(p, 16, 48, False)
    p.words(480, 58, "Strong: the first load of each thread.", "Four loads touch four lines.")
    p.words(16, 112, "Then a tree in shared memory, with a barrier at each level:")
    tree(p, 16, 130, "interleaved", 4)
    p.words(220, 206, "barrier", size=12, ink="faint")
    p.words(220, 264, "barrier", size=12, ink="faint")
    p.paragraph(
        300, 148,
        "Once for the maximum, and once for the sum. Each element is now read three times, however long the row is.",
        56,
    )  # fmt: skip
    return p


def block_coalesced() -> Picture:
    p = Picture(760, 300, "block_coalesced: neighbouring threads take neighbouring elements; shuffles replace the tree")
    p.heading(16, 28, "The same row, every 4th element for each thread")
    runs_and_neighbours(p, 16, 48, True)
    p.words(480, 58, "Strong: the first load of each thread.", "Four loads touch one line.")
    p.words(16, 112, "Then shuffles between the lanes of a warp, without a barrier:")
    tree(p, 16, 130, "shuffle", 4)
    p.paragraph(
        300, 148,
        "One barrier remains for each reduction: the eight warps leave a value each in shared memory, and every warp "
        "reduces those eight.",
        56,
    )  # fmt: skip
    return p


def in_passes(p: Picture, y: float, name: str, count: int, reads: str) -> None:
    """A pass over a row that so many blocks share."""
    p.words(16, y + 17, name)
    for n in range(count):
        p.cell(170 + n * 90, y, THREADS[n % 4], f"block {n}", 88)
    p.words(548, y + 17, reads, size=12, ink="faint")


def two_pass() -> Picture:
    p = Picture(760, 290, "two_pass: a launch for the maximum, one for the sum, one for the results")
    p.heading(16, 28, "A long row: several blocks, three passes over memory")
    for n, (name, what) in enumerate((("1. maximum", "m"), ("2. sum of exp(x − m)", "d"))):
        y = 46 + n * 82
        in_passes(p, y, name, 4, "reads x")
        for block in range(4):
            p.arrow(214 + block * 90, y + 28, 214 + block * 90, y + 40)
            p.cell(199 + block * 90, y + 42, PALE[block], f"{what}{block}", 30)
        p.arrow(504, y + 55, 546, y + 55)
        p.cell(550, y + 42, "t0", f"{what}", 40)
        p.words(600, y + 60, "a second launch", size=12, ink="faint")
    in_passes(p, 210, "3. exp(x − m) / d", 4, "reads x, writes y")
    p.words(16, 266, "Between the passes only m and d of each row go through memory. x is read three times.")
    return p


def merged(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    """Two states of online softmax as one."""
    top = max(left[0], right[0])
    return top, left[1] * math.exp(left[0] - top) + right[1] * math.exp(right[0] - top)


def online() -> Picture:
    p = Picture(760, 286, "block_online: states of a maximum and a sum are merged in a tree")
    p.heading(16, 28, "States (maximum m, sum d of exp(x − m)) merge like numbers: one read for both")
    level = [(x, 1.0) for x in (1.0, 3.0, 2.0, 0.0)]
    w, y = 150.0, 84.0
    p.words(16, 66, "x = 1, 3, 2, 0, each as a state", size=12, ink="faint")
    while True:
        for n, (m, d) in enumerate(level):
            p.cell(16 + n * w, y, "t0" if d == 1 else "t2", f"m = {m:g}, d = {d:.4g}", w - 10)
        if len(level) == 1:
            break
        for n in range(len(level)):
            p.arrow(16 + (n + 0.5) * w - 5, y + 28, 16 + (n // 2 * 2 + 1) * w - 5 + (n % 2 * 16 - 8), y + 50)
        level = [merged(*level[n : n + 2]) for n in range(0, len(level), 2)]
        y, w = y + 52, 2 * w
    total = sum(math.exp(x - 3) for x in (1, 3, 2, 0))
    p.words(16, 240, f"The same as in two passes: m = 3, d = e⁻² + 1 + e⁻¹ + e⁻³ = {total:.4g}.")
    p.words(16, 262, "The state with the lower maximum is multiplied by exp(its m − the other); the other one by 1.")
    return p


def kept(p: Picture, y: float, where: str, kind: str, labels: Sequence[str]) -> None:
    """A row of x, and its copy on the chip."""
    p.words(16, y + 17, "x in memory")
    p.cells(150, y, [THREADS[n % 4] for n in range(8)], [f"t{n % 4}" for n in range(8)], 40)
    p.words(16, y + 73, where)
    p.cells(150, y + 56, [kind] * 8, labels, 40)
    for n in range(8):
        p.arrow(170 + n * 40, y + 28, 170 + n * 40, y + 54)


def block_shared() -> Picture:
    p = Picture(760, 234, "block_shared: the block writes its row into shared memory and reads it there twice")
    p.heading(16, 28, "x is read once: the block keeps its row in shared memory")
    kept(p, 48, "shared memory", "chip", [f"t{n % 4}" for n in range(8)])
    p.words(492, 66, "first: for the maximum, and to keep")
    p.words(492, 116, "second: for the sum", "third: for the result")
    p.words(16, 170, "A thread reads only what it wrote itself, so that takes no barrier.")
    p.paragraph(
        16, 192,
        "A multiprocessor holds as many rows as its shared memory has room for. The longer the rows, the fewer blocks "
        "work at a time.",
    )  # fmt: skip
    return p


def warp() -> Picture:
    p = Picture(760, 278, "warp: each lane keeps its elements in registers; shuffles find maximum and sum")
    p.heading(16, 28, "A warp (here of four lanes) keeps its row in registers")
    p.words(16, 66, "x in memory")
    p.cells(130, 48, [THREADS[n % 4] for n in range(16)], [n for n in range(16)], 32)
    p.words(16, 140, "registers")
    for lane in range(4):
        x = 130 + lane * 132
        p.cells(x, 120, [THREADS[lane]] * 4, [lane + 4 * n for n in range(4)], 30)
        p.words(x + 60, 164, f"lane {lane}", size=12, anchor="middle", ink="faint")
        p.arrow(146 + lane * 32, 76, x + 56, 118)
    p.paragraph(
        16, 200,
        "All loads of a lane are in flight before it uses the first. A lane finds its own maximum, and five shuffles "
        "find that of the row; the sum likewise. No shared memory, no barrier, and no warp waits for another.",
    )  # fmt: skip
    p.words(16, 260, "32 lanes with up to 32 elements each: rows of up to 1024.")
    return p


def warp_packs() -> Picture:
    p = Picture(760, 250, "warp_pack2, 4 and 8: a lane loads 2, 4 or 8 neighbours at once")
    p.heading(16, 28, "A row of 32 elements, four lanes: colours are lanes, frames are packs")
    for n, size in enumerate((1, 2, 4, 8)):
        y = 50 + n * 42
        name = "warp" if size == 1 else f"warp_pack{size}"
        p.words(16, y + 17, name)
        for i in range(32):
            p.cell(120 + i * 16, y, THREADS[i // size % 4], "", 16)
        if size > 1:
            for pack in range(32 // size):
                p.frame(120 + pack * size * 16 + 1, y, size * 16 - 2)
        p.words(644, y + 17, f"{8 // size} a lane", size=12)
    p.words(16, 232, "The same bytes in fewer loads, with one address for each. A load has at most 16 bytes.")
    return p


def grid_online() -> Picture:
    p = Picture(760, 226, "grid_online: one launch writes the state of each row, another computes the results")
    p.heading(16, 28, "A row of any length: two passes over memory")
    in_passes(p, 46, "1. states (m, d)", 4, "reads x")
    for block in range(4):
        p.arrow(214 + block * 90, 74, 214 + block * 90, 88)
        p.cell(189 + block * 90, 90, PALE[block], f"m{block}, d{block}", 50)
    p.arrow(512, 103, 556, 103)
    p.cell(560, 90, "t0", "m, d", 50)
    p.words(620, 108, "by the last block", size=12, ink="faint")
    in_passes(p, 140, "2. exp(x − m) / d", 4, "reads x, writes y")
    p.words(16, 200, "Maximum and sum come from the same read, in one launch: two reads instead of three.")
    return p


def softmax_rows() -> Picture:
    p = Picture(760, 306, "rows: some lanes, a block or a cluster of blocks share a row")
    p.heading(16, 28, "rows: lanes or a block")
    for row in range(2):
        p.cells(16, 44 + row * 30, [THREADS[row]] * 8 + ["empty"] * 4, [n % 4 for n in range(8)] + [""] * 4)
    p.words(16, 124, "short rows: four lanes each, numbers are lanes", size=12, ink="faint")
    p.cells(16, 140, ["t2"] * 8 + ["s2"] * 4, [n % 4 for n in range(12)])
    p.words(16, 184, "in registers", size=12, ink="faint")
    p.words(224, 184, "in shared memory", size=12, ink="faint")
    p.words(16, 216, "A thread holds packs in registers; what does", "not fit waits in shared memory, copied there")
    p.words(16, 252, "without a register (cp.async).")
    p.heading(400, 28, "rows: a cluster of blocks")
    for block in range(4):
        p.cell(400 + block * 88, 44, THREADS[block], f"block {block}", 80)
        for state in range(4):
            p.cell(402 + block * 88 + state * 19, 136, THREADS[state], "", 18)
    for block in range(4):
        p.arrow(440 + block * 88, 72, 499 + block * 19, 133)
    where = "states of all warps, in each block's shared", "memory (arrows: those into block 1)"
    p.words(400, 184, *where, size=12, ink="faint")
    p.paragraph(
        400, 230,
        "A warp stores its state into every block. A block waits for as many bytes as must arrive in it, not for the "
        "whole cluster.",
        48,
    )  # fmt: skip
    return p


def softmax_columns() -> Picture:
    p = Picture(760, 236, "columns: a tile of 128 bytes of neighbouring rows by a part of the axis")
    p.heading(16, 28, "Along another axis: a tile of neighbouring rows, 128 bytes wide")
    for level in range(4):
        first = level % 2 * 8
        kinds = [("t0", "t1", "s0", "s1")[level]] * 8
        p.cells(90, 46 + level * 28, kinds, [first + n for n in range(8)], 38)
    p.words(16, 64, "the axis")
    p.arrow(44, 76, 44, 152)
    p.words(90, 178, "eight packs of 16 bytes: a cache line", size=12, ink="faint")
    p.paragraph(430, 62, "Numbers: threads. Each has two packs here, the pale one in shared memory.", 44)
    p.paragraph(430, 112, "A row goes down: a thread has a maximum and a sum for each element of its pack.", 44)
    p.words(16, 214, "Threads with the same packs merge in shared memory; the blocks of a cluster merge as in rows.")
    return p


def softmax_grid() -> Picture:
    p = Picture(760, 262, "grid: all blocks of the chip share a row, and meet at a counter in memory")
    p.heading(16, 28, "A row of more than 1 MiB: all blocks of the chip, at once")
    for n, label in enumerate(("block 0", "block 1", "block 2", "…", "block 131")):
        kind = ("t0", "t1", "t2", "empty", "t3")[n]
        p.cell(16 + n * 140, 46, kind, label, 120)
        p.arrow(76 + n * 140, 74, 76 + n * 140, 96)
        p.cell(46 + n * 140, 98, ("s0", "s1", "s2", "empty", "s3")[n], "…" if n == 3 else "m, d", 60)
        p.arrow(76 + n * 140, 126, 76 + n * 140, 148)
    p.cell(16, 150, "chip", "a counter in memory: every block waits until all have arrived", 680)
    p.paragraph(
        16, 206,
        "The launch is cooperative: all blocks are on the chip together, or they would wait for ever. Then one warp of"
        " each block reads all states, in the same order, and the block writes its results from what it has kept. x is"
        " read once.",
    )  # fmt: skip
    return p


# ---------------------------------------------------------------------------------------------- matrix products


class Tiles(NamedTuple):
    """Which part of the result a block, a warp and a thread compute: (row, column, rows, columns) in elements."""

    block: tuple[int, int]
    warp: tuple[int, int, int, int]
    thread: tuple[tuple[int, int, int, int], ...]
    depth: int  # of k in shared memory at a time; 0 if nothing is there
    stages: int
    words: str


SQUARES = tuple((16 + 32 * i, 4 + 16 * j, 4, 4) for i in range(2) for j in range(4))
#: The tiles of each rung, as gpuops/plan/products has them.
RUNGS = {
    "naive": Tiles(
        (32, 32), (0, 12, 32, 1), ((20, 12, 1, 1),), 0, 1,
        "A thread reads a row of a and a column of b. A warp has 32 results of a column: for each k, its "
        "lanes read 32 different rows of a, in 32 cache lines.",
    ),
    "coalesced": Tiles(
        (32, 32), (20, 0, 1, 32), ((20, 12, 1, 1),), 0, 1,
        "A warp has 32 results of a row: for each k, its lanes read 32 neighbours of b, in one line, and one "
        "element of a.",
    ),
    "shared": Tiles(
        (32, 32), (20, 0, 1, 32), ((20, 12, 1, 1),), 32, 1,
        "The block copies a square of a and of b to shared memory. All of its threads read there, and each "
        "element serves 32 of them.",
    ),
    "blocktile_1d": Tiles(
        (64, 64), (24, 32, 8, 32), ((24, 40, 8, 1),), 8, 1,
        "A thread has 8 results of a column: an element of b, once in a register, serves 8 products.",
    ),
    "blocktile_2d": Tiles(
        (128, 128), (48, 0, 16, 128), ((56, 40, 8, 8),), 8, 1,
        "A thread has 8 × 8 results: 8 elements of a and 8 of b in registers serve 64 products.",
    ),
    "vectorized": Tiles(
        (128, 128), (48, 0, 16, 128), ((56, 40, 8, 8),), 8, 1,
        "The same tiles. a's part is transposed on its way to shared memory, so that a thread reads its 8 "
        "rows and its 8 columns in packs of four: 4 loads for each k instead of 16.",
    ),
    "warptile": Tiles(
        (128, 128), (64, 0, 64, 64), tuple((64 + r, c, h, w) for r, c, h, w in SQUARES), 16, 1,
        "A warp has a square: it reads 64 + 64 numbers for 4096 products. A thread has eight squares of 4 × "
        "4, with gaps: neighbouring lanes read neighbouring packs.",
    ),
    "pipelined": Tiles(
        (128, 256), (64, 64, 64, 64), tuple((64 + r, 64 + c, h, w) for r, c, h, w in SQUARES), 16, 2,
        "Two stages of shared memory: one is filled (pale) while the other is multiplied. A block of 8 warps has a "
        "multiprocessor to itself.",
    ),
}  # fmt: skip
DRAWN_K = 64  # of k


def legend(p: Picture, x: float, text: str) -> None:
    """What the colours of a product's picture are, and what is new in it."""
    for n, (kind, words) in enumerate((
        ("block", "the block's results"), ("t0", "a warp's"), ("t1", "a thread's, and what it reads"),
        ("chip", "in shared memory at a time"), ("empty", "the rest of a and b that the block reads"),
    )):  # fmt: skip
        p.cell(x, 46 + n * 22, kind, "", 16, 16)
        p.words(x + 24, 59 + n * 22, words, size=12)
    p.paragraph(x, 184, text, 40, size=12)


def product(name: str) -> Picture:
    tiles = RUNGS[name]
    rows, cols = tiles.block
    p = Picture(760, 306, f"{name}: what a block, a warp and a thread own of the result, and what they read")
    p.heading(16, 28, f"{name}: a block has {rows} × {cols} results")
    scale, strip = 150 / max(64, rows), 84.0
    k, left, top = strip / DRAWN_K, 60 + strip, 46 + strip
    width, height = cols * scale if cols <= 128 else 300.0, rows * scale
    across = width / cols
    p.cell(left - strip - 4, top, "empty", "", strip, height)
    p.cell(left, top - strip - 4, "empty", "", width, strip)
    p.cell(left, top, "block", "", width, height)
    p.words(left - strip - 24, top + 14, "a")
    p.words(left - 20, top - strip + 12, "b")
    begin = 16 * k
    for stage in range(tiles.stages if tiles.depth else 0):
        kind, at = ("chip", "s1")[stage], begin + stage * (tiles.depth * k + 2)
        p.cell(left - strip - 4 + at, top, kind, "", tiles.depth * k, height)
        p.cell(left, top - strip - 4 + at, kind, "", width, tiles.depth * k)
    row, col, high, wide = tiles.warp
    p.cell(left + col * across, top + row * scale, "t0", "", max(wide * across, 4), max(high * scale, 4))
    extent = (begin, tiles.depth * k) if tiles.depth else (0, strip)
    for row, col, high, wide in tiles.thread:
        w, h = max(wide * across, 4), max(high * scale, 4)
        p.cell(left - strip - 4 + extent[0], top + row * scale, "t1", "", extent[1], h)
        p.cell(left + col * across, top - strip - 4 + extent[0], "t1", "", w, extent[1])
        p.cell(left + col * across, top + row * scale, "t1", "", w, h)
    legend(p, 480, tiles.words)
    return p


def cublas() -> Picture:
    p = Picture(760, 228, "cublas: matrices in rows or in columns go as they lie; others are copied first")
    p.heading(16, 28, "What cuBLAS takes as it lies")
    shapes = (("in rows", "t0", True), ("in columns", "t1", False))
    for n, (title, kind, by_rows) in enumerate(shapes):
        x = 16 + n * 180
        p.words(x, 58, title)
        for i in range(4):
            for j in range(4):
                p.cell(x + j * 28, 68 + i * 28, kind, str(4 * i + j if by_rows else 4 * j + i), 28, 28)
    p.words(376, 58, "with other strides")
    for i in range(4):
        p.cells(376, 68 + i * 28, ["t2", "empty"] * 4, [f"{8 * i + j}" if j % 2 == 0 else "" for j in range(8)], 22)
    p.arrow(556, 124, 590, 124)
    p.words(596, 58, "a copy")
    for i in range(4):
        for j in range(4):
            p.cell(596 + j * 28, 68 + i * 28, "t2", str(4 * i + j), 28, 28)
    p.paragraph(
        16, 212,
        "Numbers: the order in memory. A copy takes a launch and memory of its own before the product.",
    )  # fmt: skip
    return p


PICTURES: dict[str, Callable[[], Picture]] = {
    "broadcast-elementwise": elementwise, "broadcast-collapsed": collapsed, "broadcast-stepped": stepped,
    "broadcast-tiled": tiled, "reduce-first": first_pass, "reduce-host": on_host, "reduce-rows": reduce_rows,
    "reduce-columns": reduce_columns, "reduce-tickets": tickets, "softmax-naive": naive_softmax,
    "softmax-block-tree": block_tree, "softmax-block-coalesced": block_coalesced, "softmax-two-pass": two_pass,
    "softmax-block-online": online, "softmax-block-shared": block_shared, "softmax-warp": warp,
    "softmax-warp-packs": warp_packs, "softmax-grid-online": grid_online, "softmax-rows": softmax_rows,
    "softmax-columns": softmax_columns, "softmax-grid": softmax_grid, "matmul-cublas": cublas,
    **{f"reduce-{name}": partial(step_of, name) for name in TREES},
    **{f"matmul-{name}": partial(product, name) for name in RUNGS},
}  # fmt: skip


def write(pictures: dict[str, Callable[[], Picture]]) -> None:
    """Write pictures, by their names."""
    for name, draw in pictures.items():
        (HERE / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    write(PICTURES)
