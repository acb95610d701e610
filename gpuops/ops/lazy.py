"""Lazy expressions: immutable, typed nodes over a closed set of operations, which compute nothing themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from ..call.arrays import find, host_array, is_scalar, kind
from ..call.libraries import ARRAYS as ARRAY_TYPES
from ..call.libraries import CONTEXTS, adapter_of
from ..call.operation import WEAK_TYPES
from ..definition.program import ASTYPE, CLIP, COMPARED, IMAG, REAL, REFLECTED, UFUNCS, WHERE, Program, Step
from ..errors import error
from ..plan.geometry import Shape
from .arguments import as_dtype, broadcast_shapes, check_dtype, fitted, result_type
from .lazy_dtypes import beyond, power_of, resolved, supported

DEPTH = 64  # operations one inside the other, at most
ARRAYS = 16  # arrays of an expression, at most
STEPS = 256  # operations of an expression, at most
#: NumPy's other names of ufuncs in `UFUNCS`.
ALIASES = {"true_divide": "divide", "mod": "remainder", "abs": "absolute", "conj": "conjugate", "pow": "power"}


class Parts:
    """What an expression consists of: an array (``array``), a constant (a 0-d ``array``, and no ``arrays``), or an
    operation (``name``) on other nodes, computed in ``dtypes``."""

    __slots__ = ("args", "array", "arrays", "context", "depth", "dtypes", "name", "shape")

    def __init__(
        self, name: str, args: tuple[Lazy, ...], dtypes: tuple[np.dtype, ...], shape: Shape, array: Any, context: Any,
        arrays: tuple[Any, ...], depth: int,
    ) -> None:  # fmt: skip
        self.name, self.args, self.dtypes, self.shape, self.array = name, args, dtypes, shape, array
        self.context, self.arrays, self.depth = context, arrays, depth


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
        return self.dtypes[-1]

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
        return again, (self.name, self.args, self.dtypes, self.array)

    def __repr__(self) -> str:
        return f"lazy({self.text({})}, dtype={self.dtype.name}, shape={self.shape})"

    def text(self, names: dict[int, str]) -> str:
        """The expression as text. ``names``: of the arrays so far, by their identity."""
        if not (self.name or self.arrays):
            return repr(self.array.item())
        if not self.name:
            return names.setdefault(id(self.array), f"x{len(names)}")
        args = [arg.text(names) for arg in self.args]
        if self.name in UFUNCS and (sign := UFUNCS[self.name].sign):
            return f"({args[0]} {sign} {args[1]})"
        more = [self.dtype.name] if self.name == ASTYPE else []
        return f"{self.name}({', '.join(args + more)})"

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
        """The program, its arrays and its constants. An array, and a node, that is used twice is in it once."""
        steps: list[Lazy] = []
        constants: list[Lazy] = []
        seen: dict[int, Lazy] = {}

        def visit(node: Lazy) -> None:
            if id(node) in seen:
                return
            seen[id(node)] = node
            if node.name:
                for arg in node.args:
                    visit(arg)
                steps.append(node)
            elif not node.arrays:
                constants.append(node)

        visit(self)
        if len(steps) > STEPS:
            raise too_large(f"{len(steps)} operations", STEPS)
        places = {id(array): i for i, array in enumerate(self.arrays)}
        dtypes: list[Any] = [None] * len(places)
        at = {id(each): i for i, each in enumerate(chain(constants, steps), len(places))}
        for each in seen.values():
            if each.arrays and not each.name:
                place = at[id(each)] = places[id(each.array)]
                dtypes[place] = each.dtypes[0]
        made = tuple([Step(each.name, each.dtypes, tuple([at[id(arg)] for arg in each.args])) for each in steps])
        kinds = tuple([each.dtypes[0] for each in constants])
        return Program(tuple(dtypes), kinds, made), self.arrays, [each.array for each in constants]


# ------------------------------------------------------------------------------------------------------------- nodes


def made(*parts: Any) -> Lazy:
    """An expression of these parts."""
    found = Parts(*parts)
    found.__class__ = Lazy  # which is immutable; setting each part of it would take twice as long
    return found  # type: ignore[return-value]


def lazy(x: Any) -> Lazy:
    """Make an expression of an array, which is computed where a function reads its elements.

    Parameters
    ----------
    x : array_like or lazy
        An array of any library, which is not copied. An expression is returned as it is.

    Returns
    -------
    Lazy
        An immutable expression. Operators, NumPy's ufuncs, `numpy.where`, `numpy.clip` and `where` make others of it.
        It has ``dtype``, ``shape``, ``ndim``, ``size``, ``real``, ``imag``, ``astype``, ``clip`` and ``conj``.

    Raises
    ------
    TypeError
        If ``x`` is not an array, or its dtype is not supported.

    Notes
    -----
    Each operation has NumPy's dtype, shape, rounding and errors, in the line where it is written. Nothing is computed
    until a function takes the expression: `sum`, `softmax`, `cumsum` and so on, or `evaluate`, which gives its elements
    in memory. That function reads what the arrays hold at that time. `matmul`, `dot` and `broadcast_to` take arrays
    only. There may be 16 arrays, 256 operations, and 64 operations one inside the other; more are a ValueError.

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
    return made("", (), (dtype,), shape, x, context, (x,), 0)


def facts(x: Any, context: Any) -> tuple[np.dtype, Shape]:
    """The dtype and the shape of an array; of one that lacks NumPy's, by the exchange of its memory."""
    try:
        return supported(x.dtype), tuple(x.shape)
    except (AttributeError, TypeError):
        if not hasattr(context, "native"):
            raise
    x = context.native("lazy", "x", x)
    return supported(x.dtype), x.shape


def constant(value: np.ndarray) -> Lazy:
    """A number of a dtype."""
    return made("", (), (value.dtype,), (), value, None, (), 0)


def again(name: str, args: tuple[Lazy, ...], dtypes: tuple[np.dtype, ...], array: Any) -> Lazy:
    """A node that was copied or pickled."""
    if name:
        return node(name, dtypes, args)
    return constant(array) if array.shape == () and type(array) is np.ndarray else lazy(array)


def node(name: str, dtypes: tuple[np.dtype, ...], args: tuple[Lazy, ...]) -> Lazy:
    """An operation on nodes, in these dtypes of operands and result."""
    first = args[0]
    shape, arrays, context, depth = first.shape, first.arrays, first.context, first.depth
    for arg in args[1:]:
        if arg.shape != shape:
            shape = broadcast_shapes(name, shape, arg.shape)
        if arg.depth > depth:
            depth = arg.depth
        if arg.arrays and arg.arrays is not arrays:
            context = together(name, context, arg, arrays) if arrays else arg.context
            arrays = tuple({id(array): array for array in (*arrays, *arg.arrays)}.values())
    if depth >= DEPTH:
        raise too_large(f"{depth + 1} operations one inside the other", DEPTH)
    if len(arrays) > ARRAYS:
        raise too_large(f"{len(arrays)} arrays", ARRAYS)
    return made(name, args, dtypes, shape, None, context, arrays, depth + 1)


def together(name: str, context: Any, arg: Lazy, arrays: tuple[Any, ...]) -> Any:
    """What arrays so far and those of an operand share: an execution context or, of other libraries, the adapter."""
    if arg.context is context:
        return context
    for each, other in ((context, arg.context), (arg.context, context)):
        if getattr(each, "mixes", False) and not hasattr(other, "mixes"):
            return each
    raise mixed(name, (context, arg.context), (arrays[0], arg.arrays[0]))


def too_large(what: str, most: int) -> ValueError:
    """The error for an expression that no kernel takes."""
    return error(ValueError, "lazy", f"an expression has at most {most}, got {what}; evaluate parts of it first")


def mixed(name: str, contexts: tuple[Any, Any], arrays: tuple[Any, Any]) -> Exception:
    """The error for arrays of two libraries, or on two devices."""
    a, b = contexts
    if not (hasattr(a, "device") and hasattr(b, "device")):
        return error(TypeError, name, f"arrays of two libraries do not mix: {' and '.join(map(kind, arrays))}")
    return error(ValueError, name, f"arrays are on {a.device.label} and {b.device.label}")


def ufunc(name: str, *operands: Any) -> Lazy:
    """A ufunc of expressions, arrays and scalars."""
    given = [each if type(each) is Lazy else as_operand(each) for each in operands]
    asked: list[Any] = [each.dtypes[-1] if type(each) is Lazy else type(each) for each in given]
    dtypes = resolved(name, *asked)
    if UFUNCS[name].compares:
        dtypes = beyond(given, dtypes)
    args = [each if type(each) is Lazy else fixed(name, each, dtypes[k]) for k, each in enumerate(given)]
    return node(name, dtypes, tuple(args))


def as_operand(value: Any) -> Any:
    """A node, or a Python scalar without a dtype."""
    if isinstance(value, Lazy) or type(value) in WEAK_TYPES:
        return value
    if is_scalar(value):
        check_dtype("lazy", "a scalar", np.asarray(value).dtype)
        return constant(np.array(value))
    return lazy(value)


def fixed(name: str, value: Any, dtype: np.dtype) -> Lazy:
    """An operand as a node: a Python scalar becomes a constant of this dtype, which must represent it."""
    return value if isinstance(value, Lazy) else constant(fitted(name, "a scalar", value, dtype))


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
    dtype = result_type(WHERE, x=given[0], y=given[1])
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
    asked = [np.empty(0, each.dtype) if isinstance(each, Lazy) else type(each)(1) for each in given]
    dtype = np.clip(*asked).dtype
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


def add_operators() -> None:
    """Give `Lazy` the methods of the tables."""
    for end, name in (REFLECTED | COMPARED).items():
        setattr(Lazy, f"__{end}__", lambda self, other, name=name: ufunc(name, self, other))
    for end, name in REFLECTED.items():
        setattr(Lazy, f"__r{end}__", lambda self, other, name=name: ufunc(name, other, self))


add_operators()
#: NumPy's functions that are no ufuncs.
FUNCTIONS: dict[Any, Callable[..., Lazy]] = {np.where: where, np.clip: clip, np.real: real, np.imag: imag}
