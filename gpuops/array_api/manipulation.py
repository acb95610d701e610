"""The standard's manipulation functions."""

from ..ops import broadcast as _broadcast


def broadcast_to(x, /, shape):
    """A view of an array with another shape, as ``broadcast_to`` of the standard's manipulation functions.

    Nothing is copied, so do not write to it.

    Parameters
    ----------
    x : array
        An array of NumPy's, CuPy's or another library's (docs/interop.md), of any shape and strides.
    shape : int or tuple of ints
        The shape of the view, to which that of ``x`` broadcasts.

    Returns
    -------
    array
        A view of ``x``.

    Raises
    ------
    TypeError
        If a dtype is not supported.
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.broadcast_to(np.array([1, 2]), shape=(2, 2))
    array([[1, 2],
           [1, 2]])
    """
    return _broadcast.broadcast_to(x, shape)
