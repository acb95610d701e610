"""One place where errors are worded: the op, the rule that was broken, and the values that broke it."""

from typing import TypeVar

E = TypeVar("E", bound=Exception)


def error(kind: type[E], op: str, rule: str) -> E:
    """An exception of NumPy's ``kind``, to be raised by the caller: ``softmax: axis 2 is out of range for …``."""
    return kind(f"{op}: {rule}")
