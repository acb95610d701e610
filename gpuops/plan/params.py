"""Kernel parameter structs, declared once: the C++ text of a struct and the bytes of its values come from here."""

import struct
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from .geometry import divisor

#: Types of numbers, with the format characters of ``struct``; ``Offset`` is i32 or i64.
FORMATS = {"i32": "i", "u32": "I", "i64": "q", "u64": "Q", "double": "d", "Shares": "i"}
FILLED = "0q"  # pads to a multiple of 8 bytes, as C++ does
DIVISOR = "QII"  # the format of ``struct Divisor``
PAIRS = ("Shares", "Strides")  # structs of a few numbers


#: By kind of field: how its values are listed, and the lengths that decide its format.
WAYS = {"axes": "*{}_", "divisor": "*divisor({})", "array": "*{}", "bytes": "{}", "number": "{}"}
LENGTHS = {"axes": "len({0}_), len({0}.strides)", "array": "len({})", "bytes": "len({})"}


class Field(NamedTuple):
    """A field of a struct: its C++ type, its name (with array bounds), and a comment.

    Values are numbers; sequences for pairs and arrays; the ``Axes`` and ``Dims`` of ``geometry``; an int for a
    ``Divisor``; bytes for a value of the caller's dtype.
    """

    type: str
    declarator: str
    comment: str

    @property
    def name(self) -> str:
        return self.declarator.partition("[")[0]

    @property
    def kind(self) -> str:
        """The kind of its value: a key of ``WAYS``."""
        if self.type.startswith(("Axes", "Dims")):
            return "axes"
        if self.type.startswith("T") or (self.type == "u64" and "[" in self.declarator):
            return "bytes"
        if "[" in self.declarator or self.type in PAIRS:
            return "array"
        return "divisor" if self.type == "Divisor" else "number"

    def format(self, offset: str, lengths: Iterator[int]) -> str:
        """Its format, given the next of ``LENGTHS``."""
        letter = FORMATS.get(offset if "Offset" in self.type else self.type, FORMATS["i64"])
        match self.kind:
            case "axes":
                numbers, operands = next(lengths), next(lengths)
                rank = numbers // (len(DIVISOR) + operands)
                if self.type.startswith("Dims"):
                    return f"{DIVISOR}{operands}{letter}{FILLED}" * rank
                return f"{DIVISOR * rank}{rank * operands}{letter}{FILLED}"
            case "bytes":
                return f"{FILLED}{next(lengths)}s"
            case "array":
                return f"{next(lengths)}{letter}"
            case "divisor":
                return DIVISOR
        return letter


class Params(NamedTuple):
    """A parameter struct with values: a format of Python's ``struct``, and what it packs."""

    format: str
    values: tuple[Any, ...]

    def __bytes__(self) -> bytes:
        return struct.pack(self.format, *self.values)


class Struct:
    """A parameter struct of kernels.

    >>> point = Struct("Point", Field("i64", "size", "elements"), Field("Offset", "at[3]", "where"))
    >>> print(point.text)
    struct Point {
      i64 size;  // elements
      Offset at[3];  // where
    };
    >>> point.pack("i32", size=1, at=(2, 3, 4))
    Params(format='@q3i0q', values=(1, 2, 3, 4))
    """

    def __init__(self, name: str, *fields: Field) -> None:
        self.fields = fields
        lines = (f"  {field.type} {field.declarator};  // {field.comment}" for field in fields)
        self.text = "\n".join((f"struct {name} {{", *lines, "};"))

    @cached_property
    def pack(self) -> Callable[..., Params]:
        """A function that packs values, given the type of offsets: generated, since every plan calls it."""
        names = ", ".join(field.name for field in self.fields)
        ways = [WAYS[field.kind].format(field.name) for field in self.fields]
        lengths = [LENGTHS[field.kind].format(field.name) for field in self.fields if field.kind in LENGTHS]
        lists = [f"    {field.name}_ = {field.name}.numbers()" for field in self.fields if field.kind == "axes"]
        made = f"    return Params(format({', '.join(('offset', *lengths))}), ({', '.join(ways)},))"
        space = {"Params": Params, "divisor": divisor, "format": lru_cache(maxsize=1024)(self.format_of)}
        exec("\n".join((f"def pack(offset, *, {names}, **others):", *lists, made)), space)
        return space["pack"]  # type: ignore[return-value]

    def format_of(self, offset: str, *lengths: int) -> str:
        """The format of the whole struct, given ``LENGTHS``: aligned and padded as in C++."""
        rest = iter(lengths)
        pieces = (field.format(offset, rest) for field in self.fields)
        return f"@{''.join(pieces)}{FILLED}"
