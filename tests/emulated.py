"""The device of the ``emulated`` backend: NumPy memory, kernels run by ``tests/emulator``."""

from __future__ import annotations

import contextlib
import ctypes
import math
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from gpuops.call import libraries
from gpuops.device import jit
from gpuops.device.finish import finisher
from gpuops.ops.arguments import as_dtype
from gpuops.plan.dtypes import accumulator
from gpuops.plan.params import Params
from gpuops.plan.work import LAUNCH, PARTIALS, SCRATCH, ArraySpec, Machine, Operand, Sources

from . import emulator


class EmulatedArray(np.ndarray):
    """An array in the emulated GPU's memory, with the CuPy attributes that the launch cache reads."""

    owner: Any  # of that memory, where the array is a view made from an address

    @property
    def data(self):
        return SimpleNamespace(ptr=Address.of(self), device_id=self.flags.writeable)

    @property
    def _c_contiguous(self):
        return self.flags.c_contiguous


class Address(int):
    """An array's address, and the array itself: the emulator checks its bounds."""

    array: Any = None

    @classmethod
    def of(cls, array):
        address = cls(array.ctypes.data)
        address.array = array
        return address


class EmulatedDevice:
    """Runs plans as ``CudaDevice`` does, on the emulator."""

    label = "emulated"
    machine = Machine(4, together=1)
    elsewhere = written = None
    foreign = False

    def __init__(self):
        self.device, self.number = self, 0
        self.memory = self.empty((SCRATCH,), np.dtype(np.uint8))
        self.memory[:PARTIALS] = 0

    def enter(self):
        return contextlib.nullcontext()

    def without(self, launch):
        return contextlib.nullcontext()

    def capturing(self):
        return False

    def spec(self, name, array, machine=None):
        address = Address.of(array)
        flags = {"start": address % 16, "writeable": array.flags.writeable}
        return ArraySpec(name, array.shape, array.dtype, array.strides, machine or self.machine, **flags), address

    def empty(self, shape, dtype, strides=None):
        memory = emulator.empty((math.prod(shape) * dtype.itemsize,), np.uint8)
        return np.ndarray(shape, dtype, memory, 0, strides).view(EmulatedArray)

    def maker(self, dtype):
        def make(shape, strides, addresses):
            array = self.empty(shape, dtype, strides)
            addresses.append(Address.of(array))
            return array

        return make

    def workspace(self, nbytes):
        memory = self.empty((nbytes,), np.dtype(np.uint8))
        return memory, Address.of(memory)

    def scratch(self, nbytes):
        self.number += 1
        self.memory[PARTIALS:] = 0xFF
        memory = self.memory[:nbytes]
        return memory, Address.of(memory), self.number

    def view(self, array, offset, dtype, shape, strides):
        low, high = byte_bounds(array)
        memory = memory_at(low, high)
        out = np.ndarray(shape, dtype, memory, array.ctypes.data + offset - low, [s * dtype.itemsize for s in strides])
        view = out.view(EmulatedArray)
        view.owner = array  # keeps the memory alive
        return view

    def broadcast_to(self, array, shape):
        return np.broadcast_to(array, shape, subok=True)

    def read(self, address, nbytes):
        return ctypes.string_at(address, nbytes)

    def write(self, address, data):
        ctypes.memmove(address, data, len(data))

    def from_host(self, array):
        """A copy on the device, for tests."""
        out = self.empty(array.shape, array.dtype)
        out[...] = array
        return out

    def load(self, kernels):
        pass

    compiles_all = False

    def there(self, kernels):
        return True

    def begin(self, kernels):
        raise AssertionError("all kernels are there")

    def finisher(self, step, places):
        return finisher(self, step, places)

    def launcher(self, launch, places):
        return partial(self.launch, launch, places)

    def launch(self, launch, places, addresses, given=None):
        if given is not None:
            (*grid, block, _, _, shared), structs = given
            values = iter(structs)
            args = [changed(arg, values) for arg in launch.args]
            launch = launch._replace(grid=tuple(grid), block=block, shared=shared, args=tuple(args))
        arrays = {name: getattr(addresses[place], "array", addresses[place]) for name, place in places.items()}
        pointers, block = [pointed(arg, arrays) for arg in launch.args], (launch.block, 1, 1)
        inside = [each for arg in launch.args if isinstance(arg, Sources) for each in arg.operands]
        also = [pointed(each, arrays) for each in inside]
        run = module(launch.kernel).launch
        run(launch.kernel.name, launch.grid, block, pointers, shared=launch.shared, also=also)

    def bits(self, array, size):
        dtype = np.dtype("c16" if size == 16 else f"u{size}")
        if array.itemsize < size:  # workspace
            return array[: array.size // size * size].view(np.ndarray).view(dtype)
        shape = (*array.shape, array.itemsize // size)
        return self.view(array, 0, dtype, shape, [*(s // size for s in array.strides), 1]).view(np.ndarray)

    def elementwise(self, step, places):
        return partial(self.map, step, places)

    def map(self, step, places, addresses):
        *inputs, out = (
            self.bits(addresses[places[operand.name]].array, size)
            if isinstance(operand, Operand)
            else np.frombuffer(operand, "c16" if size == 16 else f"u{size}")[0]
            for operand, size in step.operands
        )
        elementwise_kernel(step.in_params, step.out_params, step.operation, step.name)(
            *inputs, *map(np.int64, step.scalars), out, size=step.size
        )

    def gemm(self, step, places):
        return partial(self.multiply, step, places)

    def multiply(self, step, places, addresses):
        """Like cuBLAS: half types accumulate in float32; ``out`` is read only if beta is not 0."""
        dtype, (m, n, k) = as_dtype("matmul", step.dtype), step.sizes
        acc = np.dtype(accumulator(step.dtype))
        alpha, beta = (np.frombuffer(factor, acc)[0] for factor in (step.alpha, step.beta))
        shapes, operands = ((m, k), (k, n), (m, n)), []
        turned = (*step.turned, False)
        for operand, shape, columns, rows, apart in zip(
            (step.a, step.b, step.out), shapes, turned, step.leading, step.strides
        ):
            assert rows >= shape[0 if columns else 1], "cuBLAS's rule for leading dimensions"
            steps = (apart, 1, rows) if columns else (apart, rows, 1)
            array = addresses[places[operand.name]].array
            operands.append(self.view(array, operand.offset, dtype, (step.batch, *shape), steps))
        a, b, out = operands
        product = alpha * np.matmul(a.astype(acc), b.astype(acc))
        out[...] = product if beta == 0 else product + beta * out.astype(acc)


@cache
def module(kernel):
    common = "\n".join(map(jit.read, jit.COMMON))
    return emulator.compile(jit.source(kernel), f"{kernel.name}.cu", common.count("\n") + 1)


@cache
def elementwise_kernel(in_params, out_params, operation, name):
    return emulator.ElementwiseKernel(in_params, out_params, operation, name, preamble=jit.read("types.cuh"))


def memory_at(low, high):
    """The bytes between two addresses."""
    return np.frombuffer((ctypes.c_ubyte * (high - low)).from_address(low), np.uint8)


def changed(arg, values):
    """An argument with the next of these values, if it has values."""
    if isinstance(arg, Sources):
        return arg._replace(params=arg.params._replace(values=next(values)[len(arg.operands) :]))
    return arg._replace(values=next(values)) if isinstance(arg, Params) else arg


def pointed(arg, arrays):
    """An operand as a byte array that starts at its pointer and spans the memory of its array."""
    if isinstance(arg, Sources):
        addresses = [pointed(each, arrays).ctypes.data.to_bytes(8, "little") for each in arg.operands]
        return b"".join(addresses) + bytes(arg.struct)[8 * len(addresses) :]
    if not isinstance(arg, Operand):
        return bytes(arg) if isinstance(arg, Params) else arg
    if arg == LAUNCH:
        return arrays[arg.name].to_bytes(8, "little")
    array = arrays[arg.name]
    low, high = byte_bounds(array)
    if low == high:
        return array
    first = array.ctypes.data + arg.offset
    start = memory_at(low, high)[first - low :]
    reach = (high - 1 - first, low - first)  # two strides whose corners are the memory's last and first byte
    return np.lib.stride_tricks.as_strided(start, (2, 2), reach, writeable=array.flags.writeable)


DEVICE = EmulatedDevice()
libraries.register(libraries.Native((EmulatedArray,), lambda array: DEVICE))
