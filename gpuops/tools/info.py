"""What gpuops can do here: strategies, versions, devices, and which path calls take."""

from __future__ import annotations

import importlib.util
import platform
from typing import Any

import numpy as np

from ..call.launch_cache import entries
from ..host import blocks, threads
from ..ops import table
from ..ops.arguments import check_choice
from ..plan import printing


def strategies(op: str) -> tuple[str, ...]:
    """The names that ``strategy=`` takes for an op.

    Parameters
    ----------
    op : str
        The name of a function of gpuops that has strategies, such as ``"sum"``.

    Returns
    -------
    tuple of str
        The names, each explained in docs/kernels.

    Raises
    ------
    ValueError
        If the op has no strategies.

    Examples
    --------
    >>> import gpuops
    >>> gpuops.strategies("where")
    ('elementwise', 'collapsed', 'vectorized', 'stepped', 'tiled')
    """
    check_choice("strategies", "op", op, table.strategies())
    return table.strategies()[op]


class Info(dict[str, Any]):
    """The result of `info`: a dict that prints as a table, in notebooks too."""

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The facts as text, by name."""
        from .cache import words  # slow to import, and needed only here

        calls = "{known} of at most {limit} kinds of calls, {hits} hits, {misses} misses".format(**self["calls"])
        return [
            *self["versions"].items(),
            *self["devices"].items(),
            ("path", f"{self['path']}: {self['reason']}"),
            ("built in", packaged(self["packaged"])),
            ("kernel cache", f"{self['cache'] or 'none'}: {words(**self['cached'])}"),
            ("launch cache", calls),
            ("threads", str(self["threads"])),
        ]

    def __str__(self) -> str:
        return printing.as_text(self.rows)

    def __repr__(self) -> str:
        from pprint import pformat

        return pformat(dict(self), width=120, sort_dicts=False)

    def _repr_html_(self) -> str:
        return printing.as_html("gpuops", (), self.rows)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def info() -> Info:
    """Versions, devices, the path that calls take and why, the folder of compiled kernels, and the launch cache.

    Looks for a GPU and for Numba, so it imports CuPy and Numba where they are installed. Its text is a table, in
    notebooks too.

    Returns
    -------
    dict
        ``versions`` (of each library, or why it is missing), ``devices`` (label to description), ``path`` (``"gpu"``
        or ``"cpu"``, for callers who may choose), ``reason``, ``packaged`` (how many kernels came with the package, by
        compute capability: 90 is 9.0), ``cache`` (the folder of compiled kernels), ``cached`` (how many ``kernels`` and
        ``bytes`` are in it, and the ``limit`` of these), ``calls`` (the launch cache: the kinds of calls that are
        ``known`` and their ``limit``, ``hits`` and ``misses``), ``threads`` (of a call on the CPU).

    Examples
    --------
    >>> import gpuops
    >>> gpuops.info()["path"] in ("cpu", "gpu")
    True
    """
    versions = {"gpuops": version("gpuops-cupy"), "python": platform.python_version(), "numpy": np.__version__}
    devices = {"cpu": f"{platform.processor() or platform.machine()}, NumPy"}
    reason = ""
    if importlib.util.find_spec("cupy") is None:
        versions["cupy"] = "not installed"
        reason = "CuPy is not installed (pip install 'gpuops-cupy[cuda13]' or [cuda12])"
    else:
        import cupy

        versions["cupy"] = cupy.__version__
        try:
            count = cupy.cuda.runtime.getDeviceCount()
            versions["cuda driver"] = dotted(cupy.cuda.runtime.driverGetVersion())
            versions["cuda runtime"] = dotted(cupy.cuda.runtime.runtimeGetVersion())
            versions["nvrtc"] = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
        except (cupy.cuda.runtime.CUDARuntimeError, ImportError, RuntimeError) as failure:
            count, reason = 0, f"CuPy finds no usable GPU ({str(failure).splitlines()[0]})"
        for index in range(count):
            properties = cupy.cuda.runtime.getDeviceProperties(index)
            name = properties["name"].decode()
            capability = f"compute capability {properties['major']}.{properties['minor']}"
            devices[f"cuda:{index}"] = f"{name}, {capability}, {properties['totalGlobalMem'] / 2**30:.0f} GiB"
        if count:
            reason = "CuPy finds a GPU: CuPy arrays are computed there, NumPy arrays on the CPU"
        elif not reason:
            reason = "CuPy finds no GPU"
    versions["numba"] = numba()
    path = "gpu" if len(devices) > 1 else "cpu"
    counts = entries.cache_info()
    calls = {"known": counts.currsize, "limit": counts.maxsize, "hits": counts.hits, "misses": counts.misses}
    from ..device import disk_cache, jit, prebuilt  # which NumPy arrays do not need

    folder = jit.cache_folder()
    files = disk_cache.files(folder)
    cached = {"kernels": len(files), "bytes": sum(file.size for file in files), "limit": disk_cache.limit()}
    return Info(
        versions=versions, devices=devices, path=path, reason=reason, packaged=prebuilt.counts(), cache=folder,
        cached=cached, calls=calls, threads=threads.limit(),
    )  # fmt: skip


def packaged(counts: dict[int, int]) -> str:
    """The kernels that came with the package, as text.

    >>> packaged({80: 640, 90: 640})
    '640 for compute capability 8.0, 640 for 9.0'
    """
    if not counts:
        return "none: first calls compile, or run make kernels in a clone"
    first, *others = [f"{count} for {arch / 10}" for arch, count in counts.items()]
    return ", ".join([first.replace("for ", "for compute capability "), *others])


def numba() -> str:
    """Numba's version; without one that works here, what it would speed up."""
    if blocks.compiled("numba_compiler") is not None:
        return version("numba")
    why = "not installed (pip install" if importlib.util.find_spec("numba") is None else "cannot be imported (update"
    return f"{why} 'gpuops-cupy[cpu]'): with it, softmax, masks, float16 and large sums of NumPy arrays are much faster"


def version(distribution: str) -> str:
    """The installed version of a distribution."""
    from importlib import metadata  # slow to import, and only info() needs it

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed (running from a source folder)"


def dotted(number: int) -> str:
    """CUDA's 13020 as 13.2."""
    return f"{number // 1000}.{number % 1000 // 10}"
