"""Dask arrays whose chunks are a backend's arrays."""

from typing import Any

import dask.array as da
import numpy as np
from dask.array.dispatch import concatenate_lookup

from . import emulated


@concatenate_lookup.register(emulated.EmulatedArray)
def concatenated(arrays, axis=0):
    """Like Dask's own for CuPy arrays."""
    return emulated.DEVICE.from_host(np.concatenate([np.array(array, subok=False) for array in arrays], axis))


def on_device(device: Any, array: np.ndarray, chunks: Any) -> Any:
    """A Dask array whose chunks are in a device's memory."""
    meta = device.array(np.zeros((0,) * array.ndim, array.dtype))
    return da.from_array(array, chunks).map_blocks(device.array, meta=meta)
