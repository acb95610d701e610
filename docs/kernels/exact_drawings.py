"""Draws the pictures of exact sums: ``python docs/kernels/exact_drawings.py`` writes them beside itself.

Numbers are short, so that all of their bits can be shown: 8 bits in place of 53.
"""

from __future__ import annotations

from collections.abc import Callable

from drawings import SIDE, Picture, write


def number(p: Picture, row: float, left: float, kind: str, value: str, name: str, place: int = 0) -> None:
    """A number's bits in a row, the first at ``place``, with its name before it."""
    p.words(16, row + 18, name)
    p.cells(left + place * SIDE, row, [kind] * len(value), [*value])


def transformation() -> Picture:
    p = Picture(760, 236, "TwoSum: a and b, their rounded sum, and what rounding has lost")
    p.heading(16, 28, "TwoSum, in numbers of eight bits: nothing is lost")
    number(p, 44, 190, "t0", "11010011", "a")
    number(p, 78, 190, "t1", "10110110", "b", 5)
    p.cells(190, 124, ["s0"] * 8 + ["s1"] * 5, [*"1101100010110"])
    p.words(16, 142, "a + b, exactly")
    number(p, 162, 190, "t2", "11011001", "s, rounded")
    number(p, 162, 190, "t3", "-1010", "", 8)
    p.words(190 + 13 * SIDE + 12, 180, "lost, a number too")
    p.words(16, 218, "The first eight bits are rounded up. At most half of the last one is lost: s + lost = a + b.")
    return p


def biased() -> Picture:
    p = Picture(760, 262, "A sum that begins with a bias: all terms are cut at the same place")
    p.heading(16, 28, "A bias: all sums have their last bit at the same place")
    number(p, 48, 150, "empty", "11000000", "bias")
    for n, (value, place) in enumerate((("101101", 4), ("110011", 5), ("100111", 3))):
        y = 86 + 32 * n
        keep = 8 - place
        p.words(16, y + 18, f"x{n}")
        p.cells(150 + place * SIDE, y, ["t0"] * keep + ["s1"] * (6 - keep), [*value])
    p.frame(150, 48, 8 * SIDE, 128)
    p.words(150 + 11 * SIDE + 18, 104, "to the left: added to high,", "multiples of its last bit")
    p.words(150 + 11 * SIDE + 18, 150, "to the right: lost there,", "and added to low")
    p.words(16, 222, "Terms are rounded at the frame: if one is rounded up, what is added to low is negative.")
    p.words(16, 242, "The bits above the terms, with the bias in them, have room for carries: the headroom.")
    return p


def merge() -> Picture:
    p = Picture(760, 230, "A merge: the sum of the lesser exponent is cut where the greater one ends")
    p.heading(16, 28, "A merge of two sums, of which one has a greater unit")
    number(p, 48, 150, "t0", "10110100", "first")
    p.words(16, 100, "second")
    p.cells(150 + 4 * SIDE, 82, ["t1"] * 4 + ["s1"] * 4, [*"10011011"])
    p.arrow(150 + 6 * SIDE, 112, 150 + 6 * SIDE, 130)
    p.arrow(150 + 10 * SIDE, 112, 150 + 10 * SIDE, 130)
    p.cells(150, 134, ["t2"] * 8, [*"10111110"])
    p.words(16, 152, "s and rest")
    p.cells(150 + 8 * SIDE, 134, ["t3"] * 4, [*"-101"])
    p.words(150 + 12 * SIDE + 18, 66, "first: unit 16")
    p.words(150 + 12 * SIDE + 18, 100, "second: unit 1")
    p.words(150 + 12 * SIDE + 18, 152, "the sum: unit 16, and −5 below it")
    p.words(16, 196, "1001 and 1011/16 are 1010 − 0101/16. Numbers of one unit add up exactly, in any order; only")
    p.words(16, 214, "the sums of what lies below may round, and how much that can be is known.")
    return p


def test_of_rounding() -> Picture:
    p = Picture(760, 250, "The rounding test: an interval without a midpoint has one result")
    p.heading(16, 28, "The rounding test: an interval around the sum, and numbers of the result's dtype")
    for y, (low, high), text in (
        (84, (238, 292), "both ends round to b: that is the result"),
        (168, (330, 384), "one end rounds to b, the other to c: the elements are read again"),
    ):
        p.arrow(60, y, 700, y)
        for n, name in enumerate("abcd"):
            x = 80 + 180 * n
            p.cell(x - 2, y - 9, "t0", "", 4, 18)
            p.words(x, y + 26, name, anchor="middle")
            if n < 3:
                p.cell(x + 89, y - 5, "faint", "", 2, 10)
                p.words(x + 90, y + 24, "midpoint", size=11, anchor="middle", ink="faint")
        p.cell(low, y - 5, "chip", "", high - low, 10)
        p.words((low + high) / 2, y - 18, text, size=12, anchor="middle")
    p.words(16, 232, "Rounding keeps order: whatever lies between two numbers that are rounded to b is rounded to b.")
    return p


PICTURES: dict[str, Callable[[], Picture]] = {
    "exact-two-sum": transformation, "exact-bias": biased, "exact-merge": merge, "exact-rounding": test_of_rounding,
}  # fmt: skip


if __name__ == "__main__":
    write(PICTURES)
