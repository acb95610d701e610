"""Copies of arrays between the host and a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from .context import ExecutionContext
from .execute import extent


def to_host(context: ExecutionContext, array: Any) -> np.ndarray:
    """A copy on the host, after all work on the current stream."""
    with context.enter():
        spec, address = context.spec("array", array, context.device.machine)
        low, high = extent(spec, address)
        memory = context.device.read(low, high - low)
    return np.ndarray(spec.shape, spec.dtype, memory, address - low, spec.strides)


def to_device(context: ExecutionContext, array: np.ndarray) -> Any:
    """A copy on the device."""
    addresses: list[int] = []
    with context.enter():
        made = context.maker(array.dtype)(array.shape, None, addresses)
        if array.size:
            context.device.write(addresses[0], array.tobytes())
    return made
