"""Kernel parameter structs, declared once: the C++ text of a struct and the bytes of its values come from here."""

import struct
from functools import lru_cache
from typing import Any, NamedTuple

from .geometry import Axes, Dims, divisor
from .small import Shares

#: Types of numbers, with the format characters of ``struct``; ``Offset`` is i32 or i64.
FORMATS = {"i32": "i", "u32": "I", "i64": "q", "u64": "Q", "double": "d", "Shares": "i"}
FILLED = "0q"  # up to a multiple of 8 bytes, as C++ aligns what holds such numbers


class Field(NamedTuple):
    """A field of a struct: its C++ type, its name (with array bounds), and what it is.

    Numbers are given as such, pairs and arrays of them as sequences, ``Axes`` and ``Dims`` as they are in ``geometry``,
    a ``Divisor`` as an int, what is of the caller's dtype as bytes.
    """

    type: str
    declarator: str
    comment: str

    @property
    def name(self) -> str:
        return self.declarator.partition("[")[0]


class Params(NamedTuple):
    """A parameter struct with its values: a format of ``struct``, and what it packs."""

    format: str
    values: tuple[Any, ...]

    def __bytes__(self) -> bytes:
        return struct.pack(self.format, *self.values)


#: How the value of a field is packed: 0 for a number, n for so many of them, -n for bytes, (rank, operands) for Axes.
Packed = int | tuple[int, int]


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
        self.names = [(field.name, field.type) for field in fields]
        lines = (f"  {field.type} {field.declarator};  // {field.comment}" for field in fields)
        self.text = "\n".join((f"struct {name} {{", *lines, "};"))
        self.format = lru_cache(maxsize=1024)(self.format_of)

    def pack(self, offset: str, **values: Any) -> Params:
        """The struct with these values, for offsets of a type."""
        numbers: list[Any] = []
        kinds: list[Packed] = []
        for name, type_ in self.names:
            value = values[name]
            kind = type(value)
            if kind is Axes or kind is Dims:
                kinds.append((value.rank_class, len(value.strides)))
                numbers += value.numbers()
            elif type_ == "Divisor":
                kinds.append(0)
                numbers += divisor(value)
            elif kind is tuple or kind is list or kind is Shares:
                kinds.append(len(value))
                numbers += value
            else:
                kinds.append(-len(value) if kind is bytes else 0)
                numbers.append(value)
        return Params(self.format(offset, tuple(kinds)), tuple(numbers))

    def format_of(self, offset: str, kinds: tuple[Packed, ...]) -> str:
        """The format of the whole struct: fields aligned and filled up as C++ does."""
        pieces = (format_of(field.type, kind, offset) for field, kind in zip(self.fields, kinds, strict=True))
        return f"@{''.join(pieces)}{FILLED}"


DIVISOR = "QII"  # the format of ``struct Divisor``


def format_of(type_: str, kind: Packed, offset: str) -> str:
    """The format of a field."""
    if isinstance(kind, tuple):  # Axes<…, Offset> or Dims<…, Offset>, or with strides of 64 bits
        rank, operands = kind
        letter = FORMATS[offset if "Offset" in type_ else "i64"]
        if type_.startswith("Dims"):
            return f"{DIVISOR}{operands}{letter}{FILLED}" * rank
        return f"{DIVISOR * rank}{rank * operands}{letter}{FILLED}"
    if kind < 0:
        return f"{FILLED}{-kind}s"
    letter = DIVISOR if type_ == "Divisor" else FORMATS.get(offset if type_ == "Offset" else type_, FORMATS["i64"])
    return f"{kind or ''}{letter}"
