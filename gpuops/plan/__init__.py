"""Planning: from shapes, strides and dtypes to frozen, printable plans. Pure Python; nothing here knows a device.

The constants at the top of the planners' modules are thresholds, or sizes of blocks and tiles that are one. What each
is worth, beside other values of it, is measured in docs/kernels/thresholds.md; the rest are limits.
"""
