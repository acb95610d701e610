"""Arrays without memory, and a device that computes nothing with them: what a call would do, without doing it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from .device import FINDERS, Step
from .plan import Kernel, Launch, Machine, Shape, contiguous_strides


class Ghost:
    """An array without memory."""

    def __init__(
        self, device: Survey, shape: Shape, dtype: np.dtype, strides: Shape | None = None, address: int | None = None
    ) -> None:
        self.device, self.shape, self.dtype, self.itemsize = device, shape, dtype, dtype.itemsize
        self.ndim, self.size = len(shape), math.prod(shape)
        self.address = next(device.addresses) if address is None else address
        steps = contiguous_strides(shape) if strides is None else strides
        self.strides = tuple(step * dtype.itemsize for step in steps)

    def transpose(self, order: Sequence[int]) -> Ghost:
        """The same with its dims in another order."""
        steps = tuple(self.strides[d] // self.itemsize for d in order)
        return Ghost(self.device, tuple(self.shape[d] for d in order), self.dtype, steps, self.address)


FINDERS[Ghost] = lambda ghost: ghost.device


class Survey:
    """A device that takes no step of a plan, and notes which kernels it would have launched."""

    label = "survey"

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.kernels: dict[Kernel, None] = {}  # in the order of their first launch
        self.addresses = itertools.count(0, 2**60)  # of arrays: far apart, and multiples of 16

    def current(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def capturing(self) -> bool:
        return True  # a graph has no calls of cuBLAS, so that its kernels are noted too

    def empty(self, shape: Shape, dtype: np.dtype, strides: Shape | None = None) -> Ghost:
        return Ghost(self, shape, dtype, strides)

    def scratch(self, nbytes: int) -> tuple[Ghost, int]:
        return self.empty((nbytes,), np.dtype(np.uint8)), 1

    def keep(self, array: Ghost) -> None:
        pass

    def pointer(self, array: Ghost) -> int:
        return array.address

    def view(self, array: Ghost, offset: int, dtype: np.dtype, shape: Shape, strides: Shape) -> Ghost:
        return Ghost(self, shape, dtype, strides, array.address + offset)

    def launcher(self, launch: Launch, places: dict[str, int]) -> Step:
        self.kernels[launch.kernel] = None
        return lambda addresses: None
