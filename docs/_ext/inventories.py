"""Where other libraries document their names: an inventory of each for intersphinx, written without the network.

The addresses follow a pattern for each library. So that no link leads nowhere, an inventory has the names that the docs
use: those in the table of ``gpuops.tools.names``, and those listed here.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from gpuops.tools import names


class Library(NamedTuple):
    """A library's documentation: its address, its pages by name, names beside the table's, and other places."""

    name: str
    address: str
    pages: str = "generated/{}.html"
    more: str = ""
    elsewhere: Mapping[str, str] = MappingProxyType({})


#: Python's types and exceptions, as docstrings name them.
BUILT_IN = {
    "None": "library/constants.html#None",
    **{name: f"library/functions.html#{name}" for name in ("bool", "float", "int")},
    **{name: f"library/stdtypes.html#{name}" for name in ("dict", "list", "str", "tuple")},
    **{name: f"library/exceptions.html#{name}" for name in ("IndexError", "OverflowError", "TypeError", "ValueError")},
}
LIBRARIES = {
    "numpy": Library(
        "NumPy",
        "https://numpy.org/doc/stable/",
        "reference/generated/{}.html",
        "ndarray dtype matrix ma.MaskedArray errstate exceptions.AxisError power real imag",
        {
            "numpy.abs": "reference/generated/numpy.absolute.html",
            "numpy.maximum.accumulate": "reference/generated/numpy.ufunc.accumulate.html",
            "numpy.minimum.accumulate": "reference/generated/numpy.ufunc.accumulate.html",
            "numpy.logaddexp.accumulate": "reference/generated/numpy.ufunc.accumulate.html",
        },
    ),
    "cupy": Library(
        "CuPy",
        "https://docs.cupy.dev/en/stable/",
        "reference/generated/{}.html",
        "fuse cuda.Device",
        {"cupyx.profiler.benchmark": "reference/generated/cupyx.profiler.benchmark.html"},
    ),
    "scipy": Library("SciPy", "https://docs.scipy.org/doc/scipy/", "reference/generated/{}.html", "linalg.norm"),
    "torch": Library(
        "PyTorch", "https://docs.pytorch.org/docs/stable/", more="compile no_grad set_float32_matmul_precision"
    ),
    "jax": Library(
        "JAX",
        "https://docs.jax.dev/en/latest/",
        "_autosummary/{}.html",
        """grad jit vmap pure_callback nn.softmax nn.log_softmax nn.logsumexp lax.cumsum lax.cumprod lax.cummax
        lax.cummin lax.cumlogsumexp numpy.all numpy.allclose numpy.any numpy.argmax numpy.argmin numpy.array_equal
        numpy.average numpy.broadcast_to numpy.compress numpy.count_nonzero numpy.cumprod numpy.cumsum numpy.dot
        numpy.linalg.vector_norm numpy.matmul numpy.max numpy.mean numpy.min numpy.nanargmax numpy.nanargmin
        numpy.nanmax numpy.nanmean numpy.nanmin numpy.nanprod numpy.nanstd numpy.nansum numpy.nanvar numpy.nonzero
        numpy.prod numpy.ptp numpy.std numpy.sum numpy.var numpy.where""",
    ),
    "dask": Library(
        "Dask",
        "https://docs.dask.org/en/stable/",
        elsewhere={"dask.diagnostics.ProgressBar": "diagnostics-local.html#dask.diagnostics.ProgressBar"},
    ),
    "python": Library("Python", "https://docs.python.org/3/", elsewhere=BUILT_IN),
}
#: What the table of gpuops names and its library documents elsewhere, or not at all, by the end of the name.
NO_PAGE = {
    "bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128",
    "inf", "nan", "newaxis", "fft", "linalg", "random", "numpy.abs", "cupy.abs", "cupy.broadcast_shapes", "cupy.dtype",
    "cupy.maximum.accumulate", "cupy.minimum.accumulate", "torch.Tensor", "torch.dtype", "torch.log_softmax",
    "torch.masked_fill", "torch.relu",
}  # fmt: skip
#: The roles of the words that types of parameters are made of; others stay text.
TYPES = {
    **{name: f":obj:`{name}`" for name in BUILT_IN},
    "AxisError": ":obj:`AxisError <numpy.exceptions.AxisError>`",
    "array": "array",
    "array_like": ":term:`numpy:array_like`",
    "dtype": ":obj:`dtype <numpy.dtype>`",
    "scalar": "scalar",
}


def entries(library: str) -> dict[str, str]:
    """The names of a library, and where in its documentation each is."""
    _, _, pages, more, elsewhere = LIBRARIES[library]
    found = [f"{library}.{name}" for name in more.split()]
    found += [name for name in table() if name.partition(".")[0].removesuffix("x") == library]
    return {**{name: pages.format(name) for name in found}, **elsewhere}


def table() -> list[str]:
    """The full names in the table of gpuops that have a page."""
    rows = [row for found in names.topics().values() for row in found]
    theirs = [(library, row.theirs[i]) for i, library in enumerate(names.LIBRARIES) for row in rows]
    found = [names.full_name(library, name) for library, each in theirs for name in each]
    return [name for name in found if NO_PAGE.isdisjoint((name, names.last(name)))]


def inventory(library: str) -> bytes:
    """The inventory of a library in the format of Sphinx."""
    lines = [f"{name} py:function 1 {place} -" for name, place in entries(library).items()]
    if library == "numpy":
        lines.append("array_like std:term -1 glossary.html#term-array_like -")
    name = LIBRARIES[library].name
    head = ("Sphinx inventory version 2", f"Project: {name}", "Version:", "The rest is compressed with zlib.")
    return "".join(f"# {line}\n" for line in head).encode() + zlib.compress("\n".join([*lines, ""]).encode())


def write(app: Any, config: Any) -> None:
    """Write the inventories beside the doctrees, and name them to intersphinx."""
    folder = Path(app.doctreedir) / "inventories"
    folder.mkdir(parents=True, exist_ok=True)
    for library, (_, address, *_) in LIBRARIES.items():
        path = folder / f"{library}.inv"
        path.write_bytes(inventory(library))
        config.intersphinx_mapping[library] = (address, str(path))
    config.numpydoc_xref_aliases.update(TYPES)


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", write, priority=400)  # before intersphinx reads its mapping
    return {"parallel_read_safe": True, "parallel_write_safe": True}
