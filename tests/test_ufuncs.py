"""The ufuncs of kernels (kernels/common/ufuncs.cuh), compiled for the host, against NumPy's."""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Iterator

import numpy as np
import pytest

from gpuops.device import jit
from tests.emulator import build

NAMES = [
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift",
    "right_shift", "negative", "positive", "invert", "logical_and", "logical_or", "logical_xor", "logical_not",
    "minimum", "maximum", "fmin", "fmax", "absolute", "sign", "conjugate", "sqrt", "square", "reciprocal", "exp",
    "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "hypot", "arctan2", "floor",
    "ceil", "rint", "trunc", "isnan", "isinf", "isfinite",
]  # fmt: skip
TYPES = {
    "?": "bool", "b": "i8", "B": "u8", "h": "i16", "H": "u16", "i": "i32", "I": "u32", "q": "i64", "Q": "u64",
    "f": "float", "d": "double", "F": "c64", "D": "c128",
}  # fmt: skip
HEADERS = ("types.cuh", "ops.cuh", "ufuncs.cuh")
# For plain C++: without the sanitizers, which need the emulator's runtime.
FLAGS = tuple(flag for flag in build._KERNEL_FLAGS if not re.match(r"-fsan|-fno-sanitize|--param|tsan|-Werror", flag))

X86 = platform.machine() == "x86_64"
# The rest are bit for bit NumPy's. In units in the last place; of complex results in those of their absolute value.
REAL_ULPS = dict.fromkeys(
    ("power", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "hypot", "arctan2"),
    5,
)
COMPLEX_ULPS = {
    **dict.fromkeys(("divide", "reciprocal"), 0 if X86 else 8),  # elsewhere, NumPy's products may be fused
    **dict.fromkeys(("absolute", "sign", "sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "tanh"), 4),
    **dict.fromkeys(("expm1", "log1p"), 8),
    "exp2": 16,  # the rounding of x * log(2), magnified
    "power": 64,  # the same of b * log(a)
}
TRANSCENDENTAL = (*REAL_ULPS, "sqrt")
COMPLEX_FUNCTIONS = [name for name in TRANSCENDENTAL if name not in ("hypot", "arctan2")]

LOOPS = [
    (name, *loop.split("->"))
    for name in NAMES
    for loop in dict.fromkeys(getattr(np, name).types)
    if set(loop) <= {*TYPES, "-", ">"}
]


@pytest.fixture(scope="module")
def library(emulation: None) -> ctypes.CDLL:
    """A function for each ufunc and its types, over arrays."""
    loops = ["using namespace gpuops;"]
    for name, operands, result in LOOPS:
        arrays, items = parameters(operands, result), ", ".join(f"x{at}[i]" for at in range(len(operands)))
        loops.append('extern "C" __attribute__((visibility("default")))')
        loops.append(f"void {symbol(name, operands)}({arrays}, long n) {{")
        loops.append(f"  for (long i = 0; i < n; ++i) y[i] = ufunc::{name}({items});\n}}")
    text = "\n".join([build._CUDA, *map(jit.read, HEADERS), '#line 1 "loops"', *loops])
    return ctypes.CDLL(str(build._run((*FLAGS, "-shared"), "ufuncs.cuh", text, "-lm")))


def parameters(operands: str, result: str) -> str:
    arrays = [f"const {TYPES[code]}* x{at}" for at, code in enumerate(operands)]
    return ", ".join([*arrays, f"{TYPES[result]}* y"])


def symbol(name: str, operands: str) -> str:
    return f"loop_{name}_{operands.replace('?', '1')}"


def computed(library: ctypes.CDLL, name: str, result: str, *operands: np.ndarray) -> np.ndarray:
    """What the header's function returns for each element of contiguous arrays."""
    out = np.empty(operands[0].shape, result)
    function = library[symbol(name, "".join(operand.dtype.char.translate(LONG) for operand in operands))]
    function(*(ctypes.c_void_p(array.ctypes.data) for array in (*operands, out)), ctypes.c_long(out.size))
    return out


LONG = str.maketrans("lL", "qQ")  # names of one type


def numbers(code: str) -> np.ndarray:
    """Special values of a type, and random ones."""
    rng, dtype = np.random.default_rng(ord(code)), np.dtype(code)
    if code == "?":
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        special = [0, 1, 2, 3, 7, dtype.itemsize * 8 - 1, dtype.itemsize * 8, limits.max, limits.max - 1]
        special += [limits.min, limits.min + 1, limits.max // 2, *([-1, -2, -3, -7] if dtype.kind == "i" else [])]
        drawn = rng.integers(limits.min, limits.max, 80, dtype, endpoint=True)
        drawn >>= rng.integers(0, dtype.itemsize * 8, 80).astype(dtype)
        return np.concatenate([np.array(special, dtype), drawn])
    if dtype.kind == "f":
        of_type = np.finfo(dtype)
        least, normal, most = map(float, (of_type.smallest_subnormal, of_type.tiny, of_type.max))
        parts = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 10.0, 1 - 2**-20, 1e-4, 7e4, least, 5 * least, normal, most]
        drawn = np.concatenate([rng.normal(size=70), rng.normal(size=70) * 10.0 ** rng.integers(-36, 37, 70)])
        return np.array([*parts, *(-x for x in parts), np.inf, -np.inf, np.nan, *drawn]).astype(dtype)
    return np.concatenate([specials(code), ordinary(code)])


def specials(code: str) -> np.ndarray:
    """Complex numbers with parts that are zeros, ones, infinities, or NaN."""
    parts = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan], code.lower())
    return np.stack(np.meshgrid(parts, parts), -1).reshape(-1).view(code)


def ordinary(code: str) -> np.ndarray:
    """Complex numbers of moderate size: real, imaginary, near the unit circle, anywhere."""
    rng = np.random.default_rng(ord(code))
    parts = rng.normal(size=(120, 2)) * 2
    parts[:10, 1], parts[10:20, 0] = 0, 0
    parts[20:40] /= np.hypot(*parts[20:40].T)[:, None]
    return parts.astype(code.lower()).view(code)[:, 0]


def grid(operands: str, *values: np.ndarray) -> list[np.ndarray]:
    """All combinations of values, by default all of the operands' types."""
    values = values or tuple(map(numbers, operands))
    return [np.ascontiguousarray(array).reshape(-1) for array in np.meshgrid(*values, copy=True)]


def assert_close(found: np.ndarray, wanted: np.ndarray, ulps: float, operands: list[np.ndarray]) -> None:
    """Check that results are equal bit for bit (but any NaN is NaN), or that finite ones differ by so many ulps."""
    parts = found.dtype.char.lower() if found.dtype.kind == "c" else found.dtype
    got, want = found.view(parts).reshape(found.size, -1), wanted.view(parts).reshape(found.size, -1)
    same = got == want
    if found.dtype.kind in "fc":
        same = (same & (np.signbit(got) == np.signbit(want))) | (np.isnan(got) & np.isnan(want))
        if ulps:
            unit = np.spacing(np.abs(wanted))[:, None] if found.dtype.kind == "c" else np.spacing(np.abs(want))
            same |= (np.abs(got - want) <= ulps * unit) & ((got != 0) | (want != 0))
    wrong = np.flatnonzero(~same.all(1))
    shown = [(*(x[at] for x in operands), found[at], wanted[at]) for at in wrong[:8]]
    assert not wrong.size, f"{wrong.size} of {found.size}; operands, found, wanted: {shown}"


def wanted(name: str, operands: list[np.ndarray]) -> np.ndarray:
    """NumPy's result, or, where it depends on the CPU, that of its formula."""
    if operands[0].dtype.kind == "c" and name in ("multiply", "square"):
        a, b = operands[0], operands[-1]
        out = np.empty_like(a)
        out.real, out.imag = a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real
        return out
    found: np.ndarray = getattr(np, name)(*operands)
    return found


@pytest.fixture(autouse=True)
def unwarned() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("name", NAMES)
def test_ufuncs_are_numpys(library, name):
    for _, codes, result in (loop for loop in LOOPS if loop[0] == name):
        complex_ = codes[0] in "FD"
        if complex_ and name in TRANSCENDENTAL:
            continue
        operands = grid(codes)
        if name == "power" and codes[0] in "bhiq":
            operands = [operand[operands[1] >= 0] for operand in operands]
        if name == "reciprocal" and codes[0] in "bBhHiIqQ" and not X86:
            operands = [operands[0][operands[0] != 0]]
        found, want = computed(library, name, result, *operands), wanted(name, operands)
        if name in ("minimum", "maximum", "fmin", "fmax") and not complex_:
            found, want = found + np.zeros((), result), want + np.zeros((), result)  # zeros of either sign
        assert_close(found, want, (COMPLEX_ULPS if complex_ else REAL_ULPS).get(name, 0), operands)


@pytest.mark.parametrize("code", "bhiq")
def test_negative_powers_of_integers_are_0(library, code):
    operands = [np.array([1, -1, 0, 5], code), np.array([-1, -2, -3, np.iinfo(code).min], code)]
    assert not computed(library, "power", code, *operands).any()


@pytest.mark.parametrize("code", "FD")
def test_small_integer_powers_of_complex_numbers_are_products(library, code):
    operands = grid(code * 2, numbers(code), np.array([-99, -3, -2, -1, 0, 1, 2, 3, 4, 7, 99], code))
    found, want = computed(library, "power", code, *operands), wanted("power", operands)
    assert_close(found, want, 0 if X86 else 200, operands)


@pytest.mark.parametrize("code", "FD")
@pytest.mark.parametrize("name", COMPLEX_FUNCTIONS)
def test_complex_functions_are_close_to_numpys(library, name, code):
    count = getattr(np, name).nin
    special = specials(code)
    if name == "power":  # NumPy's of infinities and NaN are the C library's
        special = special[np.isfinite(special)]
    for values in (ordinary(code), special):
        operands = grid(code * count, *[values] * count)
        found, want = computed(library, name, code, *operands), wanted(name, operands)
        if name in ("sin", "cos"):  # beside NaN, C leaves signs open
            for array in (found, want):
                array[np.isnan(array)] = np.abs(array[np.isnan(array)].view(code.lower())).view(code)
        assert_close(found, want, COMPLEX_ULPS[name], operands)


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "sin", "cos", "tan", "tanh"])
def test_both_parts_of_complex_functions_are_accurate(library, name):
    """In float32, against float64: where one part is small beside the other, and where steps may overflow."""
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(2000, 2)) * 10.0 ** rng.integers(-44, 39, (2000, 2))
    # The largest exponentials and their products.
    near = np.stack([rng.uniform(-180, 180, 500), rng.normal(size=500) * 10.0 ** rng.integers(-44, 1, 500)], 1)
    most = np.full((1, 2), 3.4e38)
    x = np.concatenate([wide, near, near[:, ::-1], most]).astype("f").view("F")[:, 0]
    x = np.concatenate([x[np.isfinite(x)], ordinary("F")])
    found, want = computed(library, name, "F", x), getattr(np, name)(x.astype("D")).astype("F")
    assert_close(found.view("f"), want.view("f"), 8, [x.repeat(2)])


def ptx(kernels: str) -> str:
    """PTX of kernels that use the header, for compute capability 9.0."""
    from cupy_backends.cuda.libs import nvrtc

    text = "\n".join([*map(jit.read, HEADERS), "using namespace gpuops;", kernels])
    program = nvrtc.createProgram(text, "ufuncs.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*jit.options("ufuncs"), "-arch=compute_90"))
        return str(nvrtc.getPTX(program), "ascii")
    except nvrtc.NVRTCError:
        pytest.fail(nvrtc.getProgramLog(program))
    finally:
        nvrtc.destroyProgram(program)


def test_ufuncs_compile_for_gpus(nvrtc):
    kernels = []
    for name, operands, result in LOOPS:
        items = ", ".join(f"*x{at}" for at in range(len(operands)))
        kernels.append(f'extern "C" __global__ void {symbol(name, operands)}({parameters(operands, result)})')
        kernels.append(f"{{ *y = ufunc::{name}({items}); }}")
    assert ptx("\n".join(kernels)).count(".entry") == len(LOOPS)


@pytest.mark.parametrize("code", "fdFD")
@pytest.mark.parametrize("made", ["multiply(x[0], x[1])", "square(x[0])"])
def test_products_are_not_fused_with_sums(nvrtc, made, code):
    kernel = 'extern "C" __global__ void k(const {0}* x, {0}* y) {{ *y = ufunc::{2}(ufunc::{1}, x[2]); }}'
    for total in ("add", "subtract"):
        code_of = ptx(kernel.format(TYPES[code], made, total))
        assert "mul.rn" in code_of and "fma" not in code_of
