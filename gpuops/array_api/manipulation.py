"""The standard's manipulation functions."""

from ..ops import broadcast as _broadcast
from ..ops.docstrings import documented


@documented
def broadcast_to(x, /, shape):
    """A view of an array with another shape, as ``broadcast_to`` of the standard's manipulation functions.

    Nothing is copied, so do not write to it.

    Parameters
    ----------
    {standard_x}
    shape : int or tuple of ints
        The shape of the view, to which ``x`` broadcasts.

    Returns
    -------
    array
        A view of ``x``.

    Raises
    ------
    {TypeError}
    {ValueError} ``x`` does not broadcast to ``shape``

    Examples
    --------
    >>> import gpuops.array_api as xp, numpy as np
    >>> xp.broadcast_to(np.array([1, 2]), shape=(2, 2))
    array([[1, 2],
           [1, 2]])
    """
    return _broadcast.broadcast_to(x, shape)
