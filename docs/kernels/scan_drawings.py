"""Draws the pictures of scans: ``python docs/kernels/scan_drawings.py`` writes them beside itself.

Lines, warps and trees are short: eight or sixteen elements, four lanes, four branches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drawings import PALE, SIDE, THREADS, Picture, write


def span(first: int, last: int) -> str:
    """The name of what neighbouring elements give together."""
    return f"{first}" if first == last else f"{first}…{last}"


def nodes(p: Picture, x: float, y: float, w: float, kinds: Sequence[str], labels: Sequence[str]) -> None:
    """Boxes, a little apart."""
    for n, (kind, label) in enumerate(zip(kinds, labels, strict=True)):
        p.cell(x + n * w + 2, y, kind, label, w - 4)


def hillis_steele() -> Picture:
    p = Picture(760, 300, "hillis_steele: in each step a thread merges what the thread ever further before it has")
    p.heading(16, 28, "hillis_steele: eight elements, a thread for each, three steps")
    w, gap = 56, 62
    for level in range(4):
        step = 2**level // 2
        p.words(16, 64 + level * gap, f"step {step}" if step else "elements", size=12, ink="faint")
        labels = [span(max(0, t - 2**level + 1), t) for t in range(8)]
        kinds = ["t0" if t >= step else "s0" for t in range(8)] if step else ["s0"] * 8
        p.cells(90, 46 + level * gap, kinds, labels, w)
        for t in range(step, 8) if step else ():
            top, bottom = 46 + (level - 1) * gap + SIDE + 2, 46 + level * gap - 2
            p.arrow(90 + (t + 0.5) * w + 6, top, 90 + (t + 0.5) * w + 6, bottom)
            p.arrow(90 + (t - step + 0.5) * w + 8, top, 90 + (t + 0.5) * w - 8, bottom)
    p.words(556, 126, "7 merges", size=12)
    p.words(556, 188, "6 merges", size=12)
    p.words(556, 250, "4 merges", size=12)
    p.words(16, 288, "17 merges for 8 elements, where one thread needs 7; for 1024 elements, 9217 in place of 1023.")
    return p


def tree_branches(p: Picture, x: float, y: float, down: bool) -> None:
    """Sixteen elements, four chunks, one block, with arrows up or down."""
    side = 20
    for chunk in range(4):
        left = x + chunk * 4 * side
        labels = ["y"] * 4 if down else [str(4 * chunk + i) for i in range(4)]
        p.cells(left, y + 150, [THREADS[chunk]] * 4, labels, side)
        before = f"0…{4 * chunk - 1}" if chunk else "–"
        p.cell(left + 6, y + 76, PALE[chunk], before if down else span(4 * chunk, 4 * chunk + 3), 4 * side - 12)
        for i in range(4):
            ends = (left + (i + 0.5) * side, y + 148), (left + 2 * side, y + 104)
            p.arrow(*(ends[1] + ends[0] if down else ends[0] + ends[1]))
        ends = (left + 2 * side, y + 74), (x + 8 * side, y + 30)
        p.arrow(*(ends[1] + ends[0] if down else ends[0] + ends[1]))
    p.cell(x + 8 * side - 30, y, "empty", "–" if down else "0…15", 60)


def blelloch() -> Picture:
    p = Picture(760, 286, "blelloch: up, nodes merge what their children have; down, children learn what comes before")
    p.heading(16, 28, "up: each node merges what its children have")
    tree_branches(p, 16, 46, False)
    p.heading(400, 28, "down: each child learns what comes before it")
    tree_branches(p, 400, 46, True)
    p.paragraph(
        16, 248,
        "Colours are threads: each has a chunk of neighbouring elements. What comes before a child is what comes "
        "before its parent, merged with what its elder siblings have. y: results.",
    )  # fmt: skip
    return p


def warp() -> Picture:
    p = Picture(760, 256, "warp: a warp goes along its line, and keeps what comes before its next elements")
    p.heading(16, 28, "warp: four lanes go along a line, and keep what comes before their next elements")
    for piece in range(3):
        x = 16 + piece * 250
        first = 4 * piece
        p.cells(x, 48, THREADS, [str(first + i) for i in range(4)], 46)
        for row, step in ((1, 1), (2, 2)):
            labels = [span(first + max(0, i - 2 * step + 1), first + i) for i in range(4)]
            p.cells(x, 48 + row * 44, THREADS, labels, 46)
            for i in range(step, 4):
                p.arrow(x + (i - step + 0.5) * 46, 48 + (row - 1) * 44 + 28, x + (i + 0.5) * 46 - 4, 46 + row * 44)
        if piece:
            p.arrow(x - 38, 149, x - 4, 149)
        p.words(x - 34, 170, f"0…{first - 1}" if piece else "", size=11, ink="faint")
        p.words(x, 184, f"loads {first} … {first + 3}", size=12, ink="faint")
    p.words(16, 224, "Two shuffles and merges for four lanes, five for 32. The next elements are asked for when these")
    p.words(16, 242, "are done.")
    return p


def three_pass() -> Picture:
    p = Picture(760, 268, "three_pass: states of parts, what comes before each part, results")
    p.heading(16, 28, "three_pass: a block for each part of a line, three launches")
    w = 130
    for row, title in enumerate(("1: reads x", "2: one block", "3: reads x again")):
        p.words(16, 66 + row * 72, title)
    nodes(p, 160, 48, w, THREADS, [f"part {n}" for n in range(4)])
    nodes(p, 160, 84, w, PALE, [f"state of part {n}" for n in range(4)])
    nodes(p, 160, 132, w, PALE, ["–", "part 0", "parts 0, 1", "parts 0, 1, 2"])
    nodes(p, 160, 192, w, THREADS, [f"results {n}" for n in range(4)])
    for n in range(4):
        middle = 160 + (n + 0.5) * w
        p.arrow(middle, 75, middle, 83)
        p.arrow(middle, 160, middle, 190)
        if n < 3:
            p.arrow(middle + 10, 111, middle + w - 10, 130)
    p.words(16, 250, "x moves twice, y once. Each launch waits until the last block of the one before it is done.")
    return p


def look_back() -> Picture:
    p = Picture(760, 256, "look_back: a tile reads the totals of its elder siblings on each level, all at once")
    p.heading(16, 28, "look_back: what comes before tile 10, in a tree with four branches")
    side = 45
    for n in range(16):
        kind = "t0" if n in (8, 9) else "chip" if n == 10 else "empty"
        p.cell(20 + n * side, 160, kind, str(n), side - 4)
    for n in range(4):
        p.cell(20 + n * 4 * side, 84, "t2" if n < 2 else "empty", span(4 * n, 4 * n + 3), 4 * side - 4)
        for i in range(4):
            p.arrow(20 + (4 * n + i) * side + 20, 158, 20 + 4 * n * side + 2 * side + (i - 1.5) * 16, 112)
    p.words(20, 62, "Coloured: the totals that tile 10 reads, of its elder siblings and of its parent's.", ink="faint")
    p.paragraph(
        16, 220,
        "A total depends on elements alone: none of the four waits for what comes before it. With sixteen branches, "
        "a line of 4096 tiles has three levels, and a tile reads at most 45 totals.",
    )  # fmt: skip
    return p


PICTURES: dict[str, Callable[[], Picture]] = {
    "scan-hillis-steele": hillis_steele, "scan-blelloch": blelloch, "scan-warp": warp, "scan-three-pass": three_pass,
    "scan-look-back": look_back,
}  # fmt: skip


if __name__ == "__main__":
    write(PICTURES)
