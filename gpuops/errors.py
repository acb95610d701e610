"""The one place that makes errors: the op, the broken rule, and the values that broke it."""

from typing import TypeVar

E = TypeVar("E", bound=Exception)
MARK = "raised_by_gpuops"


def error(kind: type[E], op: str, rule: str) -> E:
    """An exception of NumPy's type, for the caller to raise: ``softmax: axis 2 is out of range for …``."""
    made = kind(f"{op}: {rule}")
    made.__dict__[MARK] = True
    return made


def is_about_the_call(failure: Exception) -> bool:
    """Whether an exception is meant for the user as it is: made by `error`, or a warning."""
    return MARK in failure.__dict__ or isinstance(failure, Warning)
