"""Lazy expressions: immutable, typed nodes over a closed set of operations, which compute nothing themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..call.arrays import find, host_array, is_scalar
from ..call.libraries import ARRAYS as ARRAY_TYPES
from ..call.libraries import CONTEXTS, adapter_of
from ..call.operation import WEAK_TYPES
from ..definition.program import ASTYPE, CLIP, COMPARED, IMAG, REAL, REFLECTED, STACK, UFUNCS, WHERE, Program
from ..errors import error
from ..plan.geometry import Shape
from .arguments import as_dtype, broadcast_shapes, check_dtype, result_type
from .lazy_dtypes import facts, power_of, promoted, resolved
from .lazy_structures import (
    Number,
    Structure,
    all_united,
    bits_of,
    combined,
    leaf,
    of_bits,
    of_one,
    of_scalar,
    of_two,
    together,
    united,
)

#: NumPy's other names of ufuncs in `UFUNCS`.
ALIASES = {"true_divide": "divide", "mod": "remainder", "abs": "absolute", "conj": "conjugate", "pow": "power"}


class Parts:
    """What an expression consists of: what it computes, the operands of its last operation (expressions, and Python's
    scalars), its arrays and numbers, each once, and what its arrays share."""

    __slots__ = ("args", "arrays", "context", "numbers", "shape", "structure")

    def __init__(
        self, structure: Structure, args: tuple[Any, ...], shape: Shape, context: Any, arrays: tuple[Any, ...],
        numbers: tuple[Number, ...],
    ) -> None:  # fmt: skip
        self.structure, self.args, self.shape = structure, args, shape
        self.context, self.arrays, self.numbers = context, arrays, numbers


class Lazy(Parts):
    """An expression of arrays, which `lazy` makes. ``shape`` and ``dtype`` are those that NumPy's result would have."""

    __slots__ = ()
    __array_priority__ = 1000  # CuPy's operators leave expressions to these
    __pandas_priority__ = 5000  # and so do those of pandas
    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an expression is immutable; {name} cannot be set")

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the result."""
        return self.structure.dtype

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def real(self) -> Lazy:
        """The real part."""
        return real(self)

    @property
    def imag(self) -> Lazy:
        """The imaginary part."""
        return imag(self)

    def astype(self, dtype: Any) -> Lazy:
        """The same values, cast to another dtype as NumPy's ``astype`` does."""
        to = as_dtype(ASTYPE, dtype)
        check_dtype(ASTYPE, "dtype", to)
        return self if to == self.dtype else node(ASTYPE, (self.dtype, to), (self,))

    def clip(self, min: Any = None, max: Any = None) -> Lazy:
        """The same values, none below ``min`` or above ``max``."""
        return clip(self, min, max)

    def conj(self) -> Lazy:
        """The complex conjugate."""
        return ufunc("conjugate", self)

    # --------------------------------------------------------------------------------------------------------- printing

    def __reduce__(self) -> Any:
        name, dtypes = self.structure.name, self.structure.dtypes
        if name:
            return again, (name, dtypes, self.args)
        return (lazy, self.arrays) if self.arrays else (constant, (self.numbers[0].bits, dtypes[0]))

    def __repr__(self) -> str:
        return f"lazy({self.text({})}, dtype={self.dtype.name}, shape={self.shape})"

    def text(self, names: dict[int, str]) -> str:
        """The expression as text. ``names``: of the arrays so far, by their identity."""
        name, dtypes = self.structure.name, self.structure.dtypes
        if not name and not self.arrays:
            return repr(of_bits(self.numbers[0].bits, dtypes[0]).item())
        if not name:
            return names.setdefault(id(self.arrays[0]), f"x{len(names)}")
        pairs = zip(self.args, dtypes, strict=False)
        args = [x.text(names) if type(x) is Lazy else repr(np.asarray(x, dtype).item()) for x, dtype in pairs]
        if name in UFUNCS and (sign := UFUNCS[name].sign):
            return f"({args[0]} {sign} {args[1]})"
        more = [self.dtype.name] if name == ASTYPE else []
        return f"{name}({', '.join(args + more)})"

    # ---------------------------------------------------------------------------------------------- NumPy's protocols

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Lazy:
        name = ALIASES.get(function.__name__, function.__name__)
        if method != "__call__":
            raise error(TypeError, "lazy", f"np.{name}.{method} takes arrays, not expressions; use gpuops' functions")
        if name not in UFUNCS:
            raise error(TypeError, "lazy", f"np.{name} is not an operation of expressions")
        if options:
            given = ", ".join(options)
            raise error(TypeError, "lazy", f"np.{name} of an expression takes no {given}; use astype, gpuops.where or "
                                           "gpuops.evaluate(…, out=…)")  # fmt: skip
        return ufunc(name, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function not in FUNCTIONS:
            name = getattr(function, "__name__", repr(function))
            raise error(TypeError, "lazy", f"np.{name} is not an operation of expressions; use gpuops' functions")
        return FUNCTIONS[function](*args, **options)

    def _computes_nothing(self, *_: Any, **__: Any) -> Any:
        raise error(TypeError, "lazy", f"{self!r} is not computed yet; use gpuops.evaluate")

    __bool__ = __len__ = __iter__ = __array__ = __dlpack__ = __dlpack_device__ = _computes_nothing
    __int__ = __float__ = __complex__ = __index__ = __getitem__ = __contains__ = _computes_nothing

    # -------------------------------------------------------------------------------------------------------- operators

    def __pow__(self, other: Any) -> Lazy: return power(self, other)
    def __rpow__(self, other: Any) -> Lazy: return ufunc("power", other, self)
    def __neg__(self) -> Lazy: return ufunc("negative", self)
    def __pos__(self) -> Lazy: return ufunc("positive", self)
    def __invert__(self) -> Lazy: return ufunc("invert", self)
    def __abs__(self) -> Lazy: return ufunc("absolute", self)

    # --------------------------------------------------------------------------------------------------------- programs

    def program(self) -> tuple[Program, tuple[Any, ...], list[np.ndarray]]:
        """The program, its arrays and its numbers. An array, and an operation, that is used twice is in it once."""
        program = self.structure.program
        pairs = zip(self.numbers, program.constants, strict=True)
        return program, self.arrays, [np.array(of_bits(number.bits, dtype)) for number, dtype in pairs]


# ------------------------------------------------------------------------------------------------------------- nodes


def made(*parts: Any) -> Lazy:
    """An expression of these parts."""
    found = Parts(*parts)
    found.__class__ = Lazy  # which is immutable; setting each part of it would take twice as long
    return found  # type: ignore[return-value]


def lazy(x: Any) -> Lazy:
    """Make an expression of an array; it is computed as a function reads its elements.

    Parameters
    ----------
    x : array_like or lazy
        An array of any library, which is not copied. An expression is returned as it is.

    Returns
    -------
    Lazy
        An immutable expression. Operators, NumPy's ufuncs, `numpy.where`, `numpy.clip` and `where` make larger ones
        from it, and `numpy.stack` makes one from several.
        It has ``dtype``, ``shape``, ``ndim``, ``size``, ``real``, ``imag``, ``astype``, ``clip`` and ``conj``.

    Raises
    ------
    TypeError
        If ``x`` is not an array, or its dtype is not supported.

    Notes
    -----
    Each operation has NumPy's dtype, shape and rounding, and raises NumPy's errors in the line where it is written.
    Nothing is computed until a function takes the expression: `sum`, `softmax`, `cumsum` and so on, or `evaluate`,
    which gives its elements in memory. That function reads the arrays as they are then. `matmul`, `dot` and
    `broadcast_to` take arrays only. `numpy.stack` must be the last operation of an expression. An expression may have
    16 arrays and 256 operations, nested at most 64 deep; larger ones raise a ValueError.

    docs/kernels/expressions.md explains how a GPU computes an expression.

    Examples
    --------
    >>> import gpuops, numpy as np
    >>> a = np.array([[1.0, 2.0, 3.0], [4.0, 6.0, 8.0]])
    >>> x = gpuops.lazy(a)
    >>> x - a[0]
    lazy((x0 - x1), dtype=float64, shape=(2, 3))
    >>> gpuops.sum((x - a[0]) ** 2, axis=1)
    array([ 0., 50.])
    >>> gpuops.mean(gpuops.where(x > 2, x, 0) > 3, axis=0)
    array([0.5, 0.5, 0.5])
    """
    cls = type(x)
    if cls is Lazy:
        return x  # type: ignore[no-any-return]
    context: Any = None
    if cls in ARRAY_TYPES:
        context = CONTEXTS[cls](x)
    elif cls is not np.ndarray:
        context = adapter_of(x) or find("lazy", "x", x)
        x = host_array("lazy", "x", x) if context is None else x
    dtype, shape = facts(x, context)
    return made(leaf(dtype), (), shape, context, (x,), ())


def constant(bits: int, dtype: np.dtype) -> Lazy:
    """A number of a dtype."""
    return made(leaf(dtype, True), (), (), None, (), (Number(bits),))


def again(name: str, dtypes: tuple[np.dtype, ...], args: tuple[Any, ...]) -> Lazy:
    """A node that was copied or pickled."""
    return node(name, dtypes, tuple([fixed(name, each, dtype) for each, dtype in zip(args, dtypes, strict=False)]))


def node(name: str, dtypes: tuple[np.dtype, ...], args: tuple[Lazy, ...]) -> Lazy:
    """An operation on nodes, in these dtypes of operands and result."""
    shape, context, before = args[0].shape, args[0].context, args[0].arrays
    for arg in args[1:]:
        shape = shape if arg.shape == shape else broadcast_shapes(name, shape, arg.shape)
        context, before = together(name, context, arg.context, before, arg.arrays), before or arg.arrays
    arrays, of_arrays = all_united([arg.arrays for arg in args])
    numbers, of_numbers = all_united([arg.numbers for arg in args])
    places = tuple(zip(of_arrays, of_numbers, strict=True))
    structure = combined(name, dtypes, tuple([arg.structure for arg in args]), places)
    return made(structure, args, shape, context, arrays, numbers)


def ufunc(name: str, *operands: Any) -> Lazy:
    """A ufunc of expressions, arrays and scalars."""
    if len(operands) == 2:
        a, b = operands
        if type(a) is not Lazy:
            if type(a) in WEAK_TYPES and type(b) is Lazy:
                return beside(name, b, a, 0)
            a = as_operand(a)
        if type(b) is not Lazy:
            if type(b) in WEAK_TYPES and type(a) is Lazy:
                return beside(name, a, b, 1)
            b = as_operand(b)
        return pair(name, a, b)
    if len(operands) != 1:
        resolved(name, *operands)  # raises
    x = as_operand(operands[0])
    return made(of_one(name, x.structure), (x,), x.shape, x.context, x.arrays, x.numbers)


def pair(name: str, a: Lazy, b: Lazy) -> Lazy:
    """A ufunc of two expressions."""
    arrays, of_arrays = united(a.arrays, b.arrays)
    numbers, of_numbers = united(a.numbers, b.numbers)
    structure = of_two(name, a.structure, b.structure, of_arrays, of_numbers)
    shape = a.shape if a.shape == b.shape else broadcast_shapes(name, a.shape, b.shape)
    context = a.context if a.context is b.context else together(name, a.context, b.context, a.arrays, b.arrays)
    return made(structure, (a, b), shape, context, arrays, numbers)


def beside(name: str, x: Lazy, value: Any, at: int) -> Lazy:
    """A ufunc of an expression and a Python scalar, which is operand ``at``."""
    kind: Any = type(value)
    structure, dtype, limits = of_scalar(name, x.structure, kind, at)
    args = (value, x) if at == 0 else (x, value)
    if limits is not None and not limits.min <= value <= limits.max:  # NumPy compares as float64
        wide = np.dtype(np.float64)
        return node(name, (wide, wide, structure.dtype), tuple([fixed(name, each, wide) for each in args]))
    numbers = (*x.numbers, Number(bits_of(name, value, dtype)))
    return made(structure, args, x.shape, x.context, x.arrays, numbers)


def as_operand(value: Any) -> Any:
    """A node, or a Python scalar without a dtype."""
    if isinstance(value, Lazy) or type(value) in WEAK_TYPES:
        return value
    if is_scalar(value):
        value = np.asarray(value)
        check_dtype("lazy", "a scalar", value.dtype)
        return constant(int.from_bytes(value.tobytes(), "little"), value.dtype)
    return lazy(value)


def fixed(name: str, value: Any, dtype: np.dtype) -> Lazy:
    """An operand as a node: a Python scalar becomes a constant of this dtype, which must represent it."""
    return value if isinstance(value, Lazy) else constant(bits_of(name, value, dtype), dtype)


def asked_of(value: Any) -> Any:
    """What decides dtypes: a node's dtype, or the type of a Python scalar."""
    return value.dtype if isinstance(value, Lazy) else type(value)


def power(x: Lazy, exponent: Any) -> Lazy:
    """``x ** exponent``."""
    if type(exponent) is int and exponent < 0 and x.dtype.kind in "biu":
        raise error(ValueError, "power", f"integers have no integer power below 0, got {exponent}")
    if is_scalar(exponent) and type(exponent) is not complex:
        number: Any = exponent[()] if isinstance(exponent, np.ndarray) else exponent
        of: Any = type(number)
        if alone := power_of(x.dtype, of, number):
            return ufunc(alone[0], x.astype(alone[1]))
    return ufunc("power", x, exponent)


def where(condition: Any, x: Any, y: Any) -> Lazy:
    """``x`` where the condition is true, else ``y``."""
    given = as_operand(x), as_operand(y)
    dtype = promoted(WHERE, *map(asked_of, given))
    chosen = condition if type(condition) not in WEAK_TYPES else bool(condition)
    args = as_operand(chosen), *[fixed(WHERE, each, dtype) for each in given]
    return node(WHERE, (np.dtype(bool), dtype, dtype, dtype), args)


def clip(x: Any, min: Any = None, max: Any = None) -> Lazy:
    """``x``, but ``min`` where it is below that, and ``max`` where it is above that."""
    if min is None or max is None:
        if min is None and max is None:
            return ufunc("positive", x)
        return ufunc("minimum", x, max) if min is None else ufunc("maximum", x, min)
    given = [as_operand(each) for each in (x, min, max)]
    dtype = promoted(CLIP, *map(asked_of, given))
    return node(CLIP, (dtype,) * 4, tuple([fixed(CLIP, each, dtype) for each in given]))


def part(name: str, x: Lazy) -> Lazy:
    """The real or the imaginary part of a complex expression."""
    return node(name, (x.dtype, np.empty(0, x.dtype).real.dtype), (x,))


def real(x: Any) -> Lazy:
    """The real part, as ``numpy.real``."""
    x = lazy(x)
    return part(REAL, x) if x.dtype.kind == "c" else x


def imag(x: Any) -> Lazy:
    """The imaginary part, as ``numpy.imag``."""
    x = lazy(x)
    return part(IMAG, x) if x.dtype.kind == "c" else where(True, x.dtype.type(0), x)


def stack(arrays: Any, axis: int = 0) -> Lazy:
    """Expressions of one shape along a new first dim."""
    given = [as_operand(np.asarray(each) if type(each) in WEAK_TYPES else each) for each in arrays]
    dtype = result_type(STACK, **{f"x{k}": each for k, each in enumerate(given)})
    args = [each.astype(dtype) for each in given]
    if len({each.shape for each in args}) > 1:
        raise error(ValueError, STACK, f"all shapes must be equal, got {', '.join([str(x.shape) for x in args])}")
    if axis not in (0, -1 - args[0].ndim):
        raise error(ValueError, STACK, f"expressions are stacked along axis 0, got axis {axis}")
    every = node(STACK, (dtype,) * (len(args) + 1), tuple(args))
    return made(every.structure, every.args, (len(args), *every.shape), every.context, every.arrays, every.numbers)


def add_operators() -> None:
    """Give `Lazy` the methods of the tables."""
    for end, name in (REFLECTED | COMPARED).items():
        setattr(Lazy, f"__{end}__", lambda self, other, name=name: ufunc(name, self, other))
    for end, name in REFLECTED.items():
        setattr(Lazy, f"__r{end}__", lambda self, other, name=name: ufunc(name, other, self))


add_operators()
#: NumPy's functions that are no ufuncs.
FUNCTIONS: dict[Any, Callable[..., Lazy]] = {
    np.where: where, np.clip: clip, np.real: real, np.imag: imag, np.stack: stack,
}  # fmt: skip
