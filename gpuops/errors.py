"""One place where errors are worded: the op, the rule that was broken, and the values that broke it."""

from typing import TypeVar

E = TypeVar("E", bound=Exception)
MARK = "raised_by_gpuops"


def error(kind: type[E], op: str, rule: str) -> E:
    """An exception of NumPy's ``kind``, to be raised by the caller: ``softmax: axis 2 is out of range for …``."""
    made = kind(f"{op}: {rule}")
    made.__dict__[MARK] = True
    return made


def is_about_the_call(failure: Exception) -> bool:
    """Whether an exception says all that there is to say to who made the call: one of `error`, or a warning."""
    return MARK in failure.__dict__ or isinstance(failure, Warning)
