"""Lazy expressions: immutable, typed nodes over a closed set of operations, which compute nothing themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..call.arrays import find, host_array, is_scalar, kind
from ..call.libraries import adapter_of
from ..call.operation import WEAK_TYPES
from ..definition.program import ASTYPE, CLIP, IMAG, REAL, UFUNCS, WHERE, Program, Step
from ..errors import error
from ..plan.geometry import Shape
from .arguments import as_dtype, broadcast_shapes, check_dtype, fitted, result_type

DEPTH = 64  # operations one inside the other, at most
ARRAYS = 16  # arrays of an expression, at most
STEPS = 256  # operations of an expression, at most
#: NumPy's other names of ufuncs in `UFUNCS`.
ALIASES = {"true_divide": "divide", "mod": "remainder", "abs": "absolute", "conj": "conjugate", "pow": "power"}


class Lazy:
    """An expression of arrays. ``shape`` and ``dtype`` are those that NumPy's result would have.

    A node is an array (``array``), a constant (``array`` is 0-d and ``constant`` is set), or an operation (``name``) on
    other nodes, computed in ``dtypes``.
    """

    __slots__ = ("args", "array", "arrays", "constant", "context", "depth", "dtypes", "name", "shape")
    __array_priority__ = 1000  # CuPy's operators leave expressions to these
    __hash__ = None  # type: ignore[assignment]

    name: str
    args: tuple[Lazy, ...]
    dtypes: tuple[np.dtype, ...]
    shape: Shape
    array: Any
    constant: bool
    context: Any
    arrays: tuple[Any, ...]
    depth: int

    def __init__(self, **parts: Any) -> None:
        for name, value in parts.items():
            object.__setattr__(self, name, value)

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

    def __repr__(self) -> str:
        return f"lazy({self.text({})}, dtype={self.dtype.name}, shape={self.shape})"

    def text(self, names: dict[int, str]) -> str:
        """The expression as text. ``names``: of the arrays so far, by their identity."""
        if self.constant:
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

    def __add__(self, other: Any) -> Lazy: return ufunc("add", self, other)
    def __radd__(self, other: Any) -> Lazy: return ufunc("add", other, self)
    def __sub__(self, other: Any) -> Lazy: return ufunc("subtract", self, other)
    def __rsub__(self, other: Any) -> Lazy: return ufunc("subtract", other, self)
    def __mul__(self, other: Any) -> Lazy: return ufunc("multiply", self, other)
    def __rmul__(self, other: Any) -> Lazy: return ufunc("multiply", other, self)
    def __truediv__(self, other: Any) -> Lazy: return ufunc("divide", self, other)
    def __rtruediv__(self, other: Any) -> Lazy: return ufunc("divide", other, self)
    def __floordiv__(self, other: Any) -> Lazy: return ufunc("floor_divide", self, other)
    def __rfloordiv__(self, other: Any) -> Lazy: return ufunc("floor_divide", other, self)
    def __mod__(self, other: Any) -> Lazy: return ufunc("remainder", self, other)
    def __rmod__(self, other: Any) -> Lazy: return ufunc("remainder", other, self)
    def __pow__(self, other: Any) -> Lazy: return power(self, other)
    def __rpow__(self, other: Any) -> Lazy: return ufunc("power", other, self)
    def __and__(self, other: Any) -> Lazy: return ufunc("bitwise_and", self, other)
    def __rand__(self, other: Any) -> Lazy: return ufunc("bitwise_and", other, self)
    def __or__(self, other: Any) -> Lazy: return ufunc("bitwise_or", self, other)
    def __ror__(self, other: Any) -> Lazy: return ufunc("bitwise_or", other, self)
    def __xor__(self, other: Any) -> Lazy: return ufunc("bitwise_xor", self, other)
    def __rxor__(self, other: Any) -> Lazy: return ufunc("bitwise_xor", other, self)
    def __lshift__(self, other: Any) -> Lazy: return ufunc("left_shift", self, other)
    def __rlshift__(self, other: Any) -> Lazy: return ufunc("left_shift", other, self)
    def __rshift__(self, other: Any) -> Lazy: return ufunc("right_shift", self, other)
    def __rrshift__(self, other: Any) -> Lazy: return ufunc("right_shift", other, self)
    def __eq__(self, other: Any) -> Lazy: return ufunc("equal", self, other)  # type: ignore[override]
    def __ne__(self, other: Any) -> Lazy: return ufunc("not_equal", self, other)  # type: ignore[override]
    def __lt__(self, other: Any) -> Lazy: return ufunc("less", self, other)
    def __le__(self, other: Any) -> Lazy: return ufunc("less_equal", self, other)
    def __gt__(self, other: Any) -> Lazy: return ufunc("greater", self, other)
    def __ge__(self, other: Any) -> Lazy: return ufunc("greater_equal", self, other)
    def __neg__(self) -> Lazy: return ufunc("negative", self)
    def __pos__(self) -> Lazy: return ufunc("positive", self)
    def __invert__(self) -> Lazy: return ufunc("invert", self)
    def __abs__(self) -> Lazy: return ufunc("absolute", self)

    # --------------------------------------------------------------------------------------------------------- programs

    def program(self) -> tuple[Program, list[Any], list[np.ndarray]]:
        """The program, its arrays and its constants. An array, and a node, that is used twice is in it once."""
        nodes: list[Lazy] = []
        seen: set[int] = set()

        def visit(node: Lazy) -> None:
            if id(node) not in seen:
                seen.add(id(node))
                for arg in node.args:
                    visit(arg)
                nodes.append(node)

        visit(self)
        places = {id(array): i for i, array in enumerate(self.arrays)}
        constants = [each for each in nodes if each.constant]
        steps = [each for each in nodes if each.name]
        if len(steps) > STEPS:
            raise too_large(f"{len(steps)} operations", STEPS)
        at = {id(each): places[id(each.array)] for each in nodes if not (each.name or each.constant)}
        at |= {id(each): i for i, each in enumerate((*constants, *steps), len(places))}
        made = [Step(each.name, each.dtypes, tuple([at[id(arg)] for arg in each.args])) for each in steps]
        dtypes = {id(each.array): each.dtype for each in nodes if not each.name}
        arrays = tuple([dtypes[id(array)] for array in self.arrays])
        return Program(arrays, tuple([each.dtype for each in constants]), tuple(made)), [*self.arrays], [
            each.array for each in constants
        ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- nodes


def lazy(x: Any) -> Lazy:
    """An array as an expression; an expression as it is."""
    if isinstance(x, Lazy):
        return x
    context: Any = adapter_of(x)
    if context is None and (context := find("lazy", "x", x)) is None:
        x = host_array("lazy", "x", x)
    dtype = as_dtype("lazy", str(x.dtype).removeprefix("torch.")).newbyteorder("=")
    check_dtype("lazy", "x", dtype)
    return Lazy(name="", args=(), dtypes=(dtype,), shape=tuple(x.shape), array=x, constant=False, context=context,
                arrays=(x,), depth=0)  # fmt: skip


def constant(value: np.ndarray) -> Lazy:
    """A number of a dtype."""
    return Lazy(name="", args=(), dtypes=(value.dtype,), shape=(), array=value, constant=True, context=None, arrays=(),
                depth=0)  # fmt: skip


def node(name: str, dtypes: tuple[np.dtype, ...], args: tuple[Lazy, ...]) -> Lazy:
    """An operation on nodes, in these dtypes of operands and result."""
    shape = broadcast_shapes(name, *[arg.shape for arg in args])
    depth = 1 + max([arg.depth for arg in args])
    arrays = {id(array): array for arg in args for array in arg.arrays}
    if depth > DEPTH:
        raise too_large(f"{depth} operations one inside the other", DEPTH)
    if len(arrays) > ARRAYS:
        raise too_large(f"{len(arrays)} arrays", ARRAYS)
    context = together(name, [arg for arg in args if arg.arrays])
    return Lazy(name=name, args=args, dtypes=dtypes, shape=shape, array=None, constant=False, context=context,
                arrays=tuple(arrays.values()), depth=depth)  # fmt: skip


def together(name: str, args: list[Lazy]) -> Any:
    """What all nodes with arrays share: an execution context or, of arrays of other libraries, the adapter."""
    context = args[0].context if args else None
    for arg in args:
        if arg.context is context:
            continue
        adapter = next((each for each in (context, arg.context) if getattr(each, "mixes", False)), None)
        if adapter is None:
            raise mixed(name, args[0], arg)
        context = adapter
    return context


def too_large(what: str, most: int) -> ValueError:
    """The error for an expression that no kernel takes."""
    return error(ValueError, "lazy", f"an expression has at most {most}, got {what}; evaluate parts of it first")


def mixed(name: str, a: Lazy, b: Lazy) -> Exception:
    """The error for arrays of two libraries, or on two devices."""
    if not (hasattr(a.context, "device") and hasattr(b.context, "device")):
        both = f"{kind(a.arrays[0])} and {kind(b.arrays[0])}"
        return error(TypeError, name, f"arrays of two libraries do not mix: {both}")
    return error(ValueError, name, f"arrays are on {a.context.device.label} and {b.context.device.label}")


def ufunc(name: str, *operands: Any) -> Lazy:
    """A ufunc of expressions, arrays and scalars."""
    given = [as_operand(each) for each in operands]
    function: np.ufunc = getattr(np, name)
    if len(given) != function.nin:
        raise error(TypeError, name, f"takes {function.nin} operands, got {len(given)}")
    half = next((each.dtype for each in given if isinstance(each, Lazy) and each.dtype.kind == "V"), None)
    asked = [each.dtype if isinstance(each, Lazy) else weak(each, half) for each in given]
    try:
        *dtypes, result = function.resolve_dtypes((*asked, None))
    except TypeError:
        names = ", ".join([each.name if isinstance(each, np.dtype) else each.__name__ for each in asked])
        raise error(TypeError, name, f"NumPy does not compute it for {names}") from None
    check_dtype(name, "the result", result)
    if UFUNCS[name].compares:
        dtypes = beyond(given, dtypes)
    args = [fixed(name, each, dtype) for each, dtype in zip(given, dtypes, strict=True)]
    return node(name, (*dtypes, result), tuple(args))


def weak(value: Any, half: np.dtype | None) -> Any:
    """What NumPy resolves a Python scalar by: its type, or the dtype of a bfloat16 operand, which it would widen."""
    return half if half is not None and type(value) is not complex else type(value)


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


def beyond(given: list[Any], dtypes: list[np.dtype]) -> list[np.dtype]:
    """The dtypes of a comparison: float64 beside a Python int that the other's dtype does not have, as in NumPy."""
    for value, dtype in zip(given, dtypes, strict=True):
        if type(value) is int and dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            return [np.dtype(np.float64)] * 2
    return dtypes


class Asked(np.ndarray):
    """An array whose operators give the ufunc that NumPy would call, and its operands."""

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:  # type: ignore[override]
        return function.__name__, inputs


@lru_cache(maxsize=256)
def power_of(dtype: np.dtype, kind: Any, exponent: Any) -> tuple[str, np.dtype] | None:
    """The ufunc of one operand by which NumPy computes the power of an array by a number of this type, and the
    operand's dtype; None if it uses ``np.power``. For which exponents there is one depends on NumPy's version."""
    asked: Any = np.empty(0, dtype).view(Asked) ** kind(exponent)
    name, inputs = asked
    return (name, inputs[0].dtype) if len(inputs) == 1 and name in UFUNCS else None


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


#: NumPy's functions that are no ufuncs.
FUNCTIONS: dict[Any, Callable[..., Lazy]] = {np.where: where, np.clip: clip, np.real: real, np.imag: imag}
