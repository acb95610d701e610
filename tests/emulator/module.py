"""Compiled kernels and how Python launches them."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
import random
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .build import EmulatorError, build, runtime, source_lines
from .source import source_line, translate

try:
    from numpy.lib.array_utils import byte_bounds
except ImportError:  # NumPy 1
    byte_bounds = np.byte_bounds  # type: ignore[attr-defined]

Dim3 = tuple[int, int, int]

# CUDA's limits for every GPU of compute capability 7.5 to 12.
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_BLOCK = (1024, 1024, 64)
_MAX_SHARED = 227 * 1024

# dtype.kind of a NumPy scalar -> kind of the parameter (cuda.h); the rest are structs.
_SCALAR_KINDS = {"b": b"i", "i": b"i", "u": b"i", "f": b"f"}


class _Dim3(ctypes.Structure):
    _fields_ = [(axis, ctypes.c_uint) for axis in "xyz"]


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("begin", ctypes.c_size_t),
        ("size", ctypes.c_size_t),
        ("writable", ctypes.c_size_t),
        ("label", ctypes.c_char_p),
    ]


class _Launch(ctypes.Structure):
    _fields_ = [
        ("call", ctypes.c_void_p),
        ("argv", ctypes.c_void_p),
        ("grid", _Dim3),
        ("block", _Dim3),
        ("dynamic_shared", ctypes.c_size_t),
        ("seed", ctypes.c_uint64),
        ("buffers", ctypes.POINTER(_Buffer)),
        ("buffer_count", ctypes.c_size_t),
    ]


class _Report(ctypes.Structure):
    _fields_ = [
        ("address", ctypes.c_uint64),
        ("block", _Dim3),
        ("thread", _Dim3),
        ("failed", ctypes.c_uint),
        ("in_thread", ctypes.c_uint),
        ("text", ctypes.c_char * 1024),
    ]


class _Parameter(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_char), ("size", ctypes.c_uint), ("align", ctypes.c_uint)]


class _Entry(ctypes.Structure):
    _fields_ = [
        ("call", ctypes.c_void_p),
        ("signature", ctypes.POINTER(_Parameter)),
        ("max_threads", ctypes.c_uint),
    ]


@functools.cache
def _launcher() -> Any:
    # PyDLL keeps the interpreter's lock: the runtime runs one launch at a time.
    function = ctypes.PyDLL(str(runtime())).emulator_launch
    function.argtypes, function.restype = [ctypes.POINTER(_Launch)], ctypes.POINTER(_Report)
    return function


_seeds = itertools.count(random.randrange(2**32))


def _next_seed() -> int:
    """A new order of blocks, warps and lanes for each launch; EMULATOR_SEED repeats one."""
    fixed = os.environ.get("EMULATOR_SEED")
    return int(fixed) if fixed else next(_seeds)


def empty(shape: int | Sequence[int], dtype: Any) -> np.ndarray:
    """An array as cudaMalloc gives it: aligned to 256 bytes, and full of garbage (0xFF bytes).

    >>> empty((2,), "float32")
    array([nan, nan], dtype=float32)
    """
    dtype = np.dtype(dtype)
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    nbytes = math.prod(sizes) * dtype.itemsize
    # A margin at both ends keeps a small overrun away from the next array.
    memory = np.full(nbytes + 1024, 0xFF, np.uint8)
    start = 256 + -memory.ctypes.data % 256
    inner: np.ndarray = memory[start : start + nbytes].view(dtype).reshape(sizes)
    return inner


def _cell(value: Any, parameter: _Parameter) -> bytes:
    """The bytes of one argument, or a TypeError that says what does not fit."""
    kind, size = parameter.kind, parameter.size
    if value is None or isinstance(value, np.ndarray):
        found, data = b"p", (0 if value is None else value.ctypes.data).to_bytes(8, "little")
    elif isinstance(value, bytes):
        found, data = kind if kind == b"p" else b"s", value
    elif isinstance(value, np.generic):
        found, data = _SCALAR_KINDS.get(value.dtype.kind, b"s"), value.tobytes()
    elif isinstance(value, (bool, int)):
        # A kernel may take an int where Python gives 8 bytes: little-endian, as on a GPU.
        found, data = b"i", (int(value) % 2**64).to_bytes(8, "little")
        if kind == b"i" and not -(2 ** (8 * size - 1)) <= value < 2 ** (8 * size):
            raise TypeError(f"{value} does not fit in the kernel's {size} bytes")
        data = data[:size] if kind == b"i" else data
    elif isinstance(value, float):
        found, data = b"f", np.float64(value).tobytes()
    else:
        raise TypeError(f"cannot pass a {type(value).__name__}")
    if (found, len(data)) != (kind, size):
        names = {b"p": "a pointer", b"i": "an integer", b"f": "a float", b"s": "a struct"}
        raise TypeError(
            f"got {names[found]} of {len(data)} bytes, the kernel takes {names[kind]} of {size} bytes"
        )
    return data


class Module:
    """The kernels of one translation unit."""

    def __init__(
        self, text: str, name: str, translated: str, common: int, kernels: list[str]
    ) -> None:
        self._text, self._name, self._built = text, name, (translated, common, name)
        try:
            self._library = ctypes.CDLL(str(build(*self._built)))
        except OSError as error:
            raise EmulatorError(f"{name} does not link: {error}") from None
        self.kernels = kernels

    def launch(
        self,
        kernel: str,
        grid: Dim3,
        block: Dim3,
        args: Sequence[Any],
        shared: int = 0,
        seed: int | None = None,
        labels: Sequence[str] | None = None,
        also: Sequence[np.ndarray] = (),
    ) -> None:
        """Run a kernel over a grid; EmulatorError at the first fault.

        Parameters
        ----------
        grid, block : (x, y, z)
        args : arrays (as a pointer to the first element), ints (8 bytes, cut to the parameter's
            size), floats (double), NumPy scalars (as they are), bytes (a struct, or an address) or None.
        shared : bytes of dynamic shared memory.
        seed : the order in which blocks, warps and lanes run; random unless given here or in the
            environment as EMULATOR_SEED.
        labels : what messages call the arguments.
        also : more arrays that it may access, through pointers in structs.
        """
        if kernel not in self.kernels:
            raise EmulatorError(
                f"{kernel}: not in {self._name}, which has {', '.join(self.kernels) or 'no kernel'}"
            )
        entry = _Entry.in_dll(self._library, f"emulator_entry_{kernel}")
        self._check_shape(kernel, grid, block, shared, entry.max_threads)
        if labels is None:
            labels = [f"argument {i}" for i in range(len(args))]

        cells = self._cells(kernel, args, labels, entry)
        argv = (ctypes.c_void_p * len(cells))(*map(ctypes.addressof, cells))
        buffers = []
        inside = [f"operand {i}" for i in range(len(also))]
        for value, label in zip((*args, *also), (*labels, *inside)):
            if isinstance(value, np.ndarray):
                begin, end = byte_bounds(value) if value.size else (value.ctypes.data,) * 2
                label = f"{label}, {value.dtype}{list(value.shape)}"
                buffers.append(_Buffer(begin, end - begin, value.flags.writeable, label.encode()))
        # A struct is passed by copying it from its cell, perhaps with memcpy, which checks.
        buffers += [_Buffer(ctypes.addressof(cell), len(cell), False, None) for cell in cells]
        seed = _next_seed() if seed is None else seed
        request = _Launch(
            entry.call, ctypes.addressof(argv), _Dim3(*grid), _Dim3(*block), shared, seed,
            (_Buffer * len(buffers))(*buffers), len(buffers),
        )  # fmt: skip
        report = _launcher()(ctypes.byref(request)).contents
        if report.failed:
            raise EmulatorError(self._message(kernel, report, seed))

    def _check_shape(
        self, kernel: str, grid: Dim3, block: Dim3, shared: int, max_threads: int
    ) -> None:
        where = f"{kernel}: grid {grid}, block {block}"
        for what, sizes, limits in (("grid", grid, _MAX_GRID), ("block", block, _MAX_BLOCK)):
            if len(sizes) != 3 or min(sizes) < 1:
                raise EmulatorError(f"{where}: a {what} is three sizes of at least 1")
            if any(size > limit for size, limit in zip(sizes, limits)):
                raise EmulatorError(f"{where}: CUDA allows a {what} of {limits}")
        if math.prod(block) > max_threads:
            raise EmulatorError(
                f"{where}: {math.prod(block)} threads in a block, the kernel allows {max_threads}"
            )
        if shared > _MAX_SHARED:
            raise EmulatorError(
                f"{where}: {shared} bytes of shared memory, CUDA allows {_MAX_SHARED}"
            )

    @staticmethod
    def _cells(kernel: str, args: Sequence[Any], labels: Sequence[str], entry: _Entry) -> list[Any]:
        parameters = list(
            itertools.takewhile(lambda p: p.size, (entry.signature[i] for i in itertools.count()))
        )
        if len(args) != len(parameters):
            raise EmulatorError(
                f"{kernel}: got {len(args)} arguments, the kernel takes {len(parameters)}"
            )
        cells = []
        for value, label, parameter in zip(args, labels, parameters):
            try:
                data = _cell(value, parameter)
            except TypeError as error:
                raise EmulatorError(f"{kernel}: {label}: {error}") from None
            memory = ctypes.create_string_buffer(len(data) + parameter.align)
            cell = (ctypes.c_char * len(data)).from_buffer(
                memory, -ctypes.addressof(memory) % parameter.align
            )
            cell.raw = data
            cells.append(cell)
        return cells

    def _message(self, kernel: str, report: _Report, seed: int) -> str:
        text = report.text.decode(errors="replace")
        others = re.findall(r"<0x(\w+)>", text)
        place, *places = source_lines(
            *self._built, [report.address, *(int(other, 16) for other in others)]
        )
        for other, there in zip(others, places):
            text = text.replace(f"<0x{other}>", there)
        where = [f"block ({report.block.x}, {report.block.y}, {report.block.z})"]
        if report.in_thread:
            where.append(f"thread ({report.thread.x}, {report.thread.y}, {report.thread.z})")
        message = f"{kernel}: {text}\n  in {', '.join(where)}, seed {seed}\n  at {place}"
        innermost = re.match(r"(.*?):(\d+)", place)
        code = innermost and source_line(self._text, innermost[1], int(innermost[2]), self._name)
        return f"{message}\n  {code}" if code else message


@functools.cache
def compile(text: str, name: str = "kernel.cu", common: int = 0) -> Module:
    """Compile CUDA C++ text, the one translation unit that NVRTC would get.

    With ``common``, many texts begin with the same so many lines (and say with ``#line`` where they and the rest are
    from): these are compiled once.
    """
    try:
        translated, kernels = translate(text, name)
    except ValueError as error:
        raise EmulatorError(f"{name}: {error}") from None
    return Module(text, name, translated, common, kernels)
