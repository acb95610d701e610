"""Results as the standard has them."""

import numpy as np


def as_array(result):
    """A result as an array: NumPy's scalars become 0-d arrays."""
    return np.asarray(result) if isinstance(result, np.generic) else result
