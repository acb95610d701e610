"""Planning: from shapes, strides and dtypes to frozen, printable plans. Pure Python; nothing here touches a device.

The constants at the top of the planners' modules are thresholds and sizes of blocks and tiles, which
docs/kernels/thresholds.md measures against other values, or limits.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import maps as maps
    from . import products as products
    from . import rows as rows
    from . import scans as scans
    from . import selection as selection


#: The submodules that load at first use: calls with NumPy arrays need none.
PLANNERS = ("maps", "products", "rows", "scans", "selection")


def __getattr__(name: str) -> ModuleType:
    """Import a planner."""
    if name in PLANNERS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
