"""Kernel parameter structs, declared once: the C++ text of a struct and the bytes of its values come from here."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from .geometry import Axes, divisor

#: Types of fields that ``struct`` packs, with its format characters; ``Offset`` is one of the two.
FORMATS = {"i32": "i", "u32": "I", "i64": "q", "u64": "Q", "double": "d"}
OFFSETS = ("i32", "i64")


class Field(NamedTuple):
    """A field of a struct: its C++ type, its name (with array bounds), and what it is.

    Integers and doubles are given as numbers, arrays of one dim as sequences, ``Axes`` as they are in ``geometry``, a
    ``Divisor`` as an int, everything else as bytes.
    """

    type: str
    declarator: str
    comment: str

    @property
    def name(self) -> str:
        return self.declarator.partition("[")[0]

    @property
    def length(self) -> int:
        """The length of an array; 0 of a single value."""
        return int(self.declarator.partition("[")[2].rstrip("]") or 0)


class Struct:
    """A parameter struct of kernels.

    >>> point = Struct("Point", Field("i64", "size", "elements"), Field("Offset", "at[3]", "where"))
    >>> print(point.text)
    struct Point {
      i64 size;  // elements
      Offset at[3];  // where
    };
    >>> len(point.pack("i32", size=1, at=(2, 3, 4))), len(point.pack("i64", size=1, at=(2, 3, 4)))
    (24, 32)
    """

    def __init__(self, name: str, *fields: Field) -> None:
        self.fields = fields
        lines = (f"  {field.type} {field.declarator};  // {field.comment}" for field in fields)
        self.text = "\n".join((f"struct {name} {{", *lines, "};"))
        self.packers = {offset: packers(fields, offset) for offset in OFFSETS}

    def pack(self, offset: str, **values: Any) -> bytes:
        """The bytes of the struct for offsets of a type."""
        parts = []
        for packer, names, arrays in self.packers[offset]:
            if packer is None:
                parts.append(as_bytes(values[names[0]], offset))
            else:
                numbers = flat(values, names) if arrays else [values[name] for name in names]
                parts.append(packer.pack(*numbers))
        return b"".join(parts)


class Packer(NamedTuple):
    """What packs the values of some fields."""

    numbers: struct.Struct | None  # of neighbouring numbers; None: of one value that has bytes of its own
    names: tuple[str, ...]
    arrays: bool = False  # whether some of the numbers are arrays


def packers(fields: Sequence[Field], offset: str) -> list[Packer]:
    """What packs the fields in order: neighbouring numbers together, aligned and filled up as C++ does."""
    found: list[Packer] = []
    numbers: list[Field] = []

    def close() -> None:
        if numbers:
            characters = (f"{f.length or ''}{FORMATS[offset if f.type == 'Offset' else f.type]}" for f in numbers)
            made = struct.Struct(f"@{''.join(characters)}0q")
            found.append(Packer(made, tuple(f.name for f in numbers), any(f.length for f in numbers)))
            numbers.clear()

    for field in fields:
        if (field.type in FORMATS or field.type == "Offset") and field.declarator.count("[") < 2:
            numbers.append(field)
        else:
            close()
            found.append(Packer(None, (field.name,)))
    close()
    return found


def flat(values: dict[str, Any], names: tuple[str, ...]) -> list[Any]:
    """Numbers in order, those of arrays one by one."""
    found: list[Any] = []
    for name in names:
        value = values[name]
        if isinstance(value, (tuple, list)):
            found += value
        elif isinstance(value, bytes):
            found += struct.unpack(f"<{len(value) // 8}Q", value)
        else:
            found.append(value)
    return found


def as_bytes(value: Any, offset: str) -> bytes:
    """The bytes of dims, of a divisor, of numbers of 8 bytes each, or of what is bytes already."""
    if isinstance(value, Axes):
        return value.packed(offset)
    if isinstance(value, tuple):
        return struct.pack(f"<{len(value)}q", *value)
    data: bytes = value if isinstance(value, bytes) else divisor(value)
    return data
