"""What is where on the site: tables and pure functions, which Sphinx and the tests share."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

#: The ways in, in the order of the bar at the top, which shows the titles of the pages.
WAYS_IN = (
    "start", "guide", "coming-from", "tutorials/index", "performance", "learn", "promises", "scaling", "interop",
    "api/index", "contributing", "changelog",
)  # fmt: skip

#: The pages below a page, in their order; ``*`` is all others of a folder.
BELOW = {
    "guide": ("sharp-edges",),
    "coming-from": ("names",),
    "tutorials/index": ("tutorials/*",),
    "performance": (
        "performance/method", "performance/host", "performance/first-calls", "performance/on-cpu", "performance/*",
    ),
    "learn": (
        "kernels/broadcast", "kernels/reduce", "kernels/softmax", "kernels/matmul", "kernels/scan", "kernels/select",
        "kernels/expressions", "kernels/*",
    ),
    "promises": ("exact", "exact-proof", "exact-measured", "accuracy"),
    "contributing": ("architecture", "security", "code-of-conduct"),
}  # fmt: skip

#: Files outside of docs/ that are pages of the site.
STAND_FOR = {
    "README.md": "index", "CHANGELOG.md": "changelog", "CONTRIBUTING.md": "contributing", "SECURITY.md": "security",
    "CODE_OF_CONDUCT.md": "code-of-conduct",
}  # fmt: skip
#: Those of them that a page includes, so that its links begin at the root.
INCLUDED = {page: file for file, page in STAND_FOR.items() if page != "index"}

#: Functions that a reader of a function's page may want instead.
RELATED = {
    "all": ("any", "count_nonzero", "array_equal"),
    "allclose": ("array_equal", "all"),
    "amax": ("max", "argmax", "max_with_index", "nanmax"),
    "amin": ("min", "argmin", "min_with_index", "nanmin"),
    "any": ("all", "count_nonzero"),
    "argmax": ("max_with_index", "nanargmax", "argmin", "max"),
    "argmin": ("min_with_index", "nanargmin", "argmax", "min"),
    "array_equal": ("allclose", "all"),
    "average": ("mean", "dot"),
    "broadcast_to": ("expand",),
    "compress": ("nonzero", "where"),
    "count_nonzero": ("any", "nonzero"),
    "cummax": ("cummin", "max", "cumsum"),
    "cummin": ("cummax", "min", "cumsum"),
    "cumprod": ("cumsum", "prod"),
    "cumsum": ("sum", "cumprod", "cummax", "logcumsumexp"),
    "dot": ("matmul", "sum_of_squares"),
    "evaluate": ("lazy", "where"),
    "expand": ("broadcast_to", "where"),
    "info": ("strategies",),
    "lazy": ("evaluate", "where"),
    "log_softmax": ("softmax", "logsumexp"),
    "logcumsumexp": ("logsumexp", "cumsum"),
    "logsumexp": ("log_softmax", "softmax", "logcumsumexp"),
    "matmul": ("dot",),
    "max": ("argmax", "max_with_index", "nanmax", "min", "ptp"),
    "max_with_index": ("max", "argmax", "min_with_index"),
    "mean": ("average", "mean_var", "nanmean", "var"),
    "mean_var": ("mean", "var", "std"),
    "min": ("argmin", "min_with_index", "nanmin", "max", "ptp"),
    "min_with_index": ("min", "argmin", "max_with_index"),
    "nanargmax": ("argmax", "nanargmin", "nanmax"),
    "nanargmin": ("argmin", "nanargmax", "nanmin"),
    "nanmax": ("max", "nanargmax", "nanmin"),
    "nanmean": ("mean", "nanvar", "nansum"),
    "nanmin": ("min", "nanargmin", "nanmax"),
    "nanprod": ("prod", "nansum"),
    "nanstd": ("std", "nanvar"),
    "nansum": ("sum", "nanmean", "nanprod"),
    "nanvar": ("var", "nanstd", "nanmean"),
    "nonzero": ("where", "compress", "count_nonzero"),
    "prod": ("sum", "nanprod"),
    "ptp": ("max", "min"),
    "rms_norm": ("vector_norm", "sum_of_squares", "softmax"),
    "softmax": ("log_softmax", "logsumexp"),
    "std": ("var", "mean_var", "nanstd"),
    "strategies": ("info",),
    "sum": ("mean", "prod", "nansum", "sum_of_squares", "count_nonzero", "cumsum"),
    "sum_of_squares": ("vector_norm", "var", "dot"),
    "var": ("std", "mean_var", "nanvar"),
    "vector_norm": ("sum_of_squares", "dot"),
    "where": ("nonzero", "compress", "expand"),
}


def place(page: str, link: str) -> Path:
    """The file that a link of a page names: from the page's folder, from docs/, or from where an included file is."""
    folder = DOCS if link.startswith("/") else ROOT if page in INCLUDED else (DOCS / page).parent
    return Path(os.path.normpath(folder / link.lstrip("/")))


def repository() -> str | None:
    """The public address of the repository that this checkout comes from, if it has one."""
    command = ("git", "config", "--get", "remote.origin.url")
    here = os.environ | {"GIT_CEILING_DIRECTORIES": str(ROOT.parent)}  # no repository around this folder
    try:
        done = subprocess.run(command, cwd=ROOT, env=here, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # no git
        return None
    return public_address(done.stdout)


def public_address(remote: str) -> str | None:
    """Where readers find the repository of a remote: at its address of https, without credentials."""
    parts = urlsplit(remote.strip())
    host = parts.netloc.rpartition("@")[2]
    return f"https://{host}{parts.path.removesuffix('.git')}" if parts.scheme == "https" and host else None


def topics(text: str) -> dict[str, list[str]]:
    """The functions of docs/api/index.md by heading: what the first cells of its tables name."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    tables = dict(zip(parts[::2], parts[1::2], strict=True))
    cells = {heading: re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for heading, table in tables.items()}
    return {heading: re.findall(r"`([\w.]+)`", " ".join(names)) for heading, names in cells.items()}


def functions() -> list[str]:
    """The public functions by their names in ``gpuops``, as ``sum`` and ``array_api.linalg.matmul``."""
    import gpuops

    spaces = {"": gpuops, "array_api.": gpuops.array_api, "array_api.linalg.": gpuops.array_api.linalg}
    return [prefix + name for prefix, space in spaces.items() for name in space.__all__ if name != "array_api"]


#: Functions of the array API standard that have another name in gpuops.
STANDARD = {"cumulative_prod": "cumprod", "cumulative_sum": "cumsum"}


def related(name: str) -> tuple[str, ...]:
    """The functions to see also: those of the table, or the one that computes a function of the array API."""
    space, _, last = name.rpartition(".")
    return (STANDARD.get(last, last),) if space else RELATED[last]


def toctrees(page: str) -> Iterator[str]:
    """The toctrees to append to a page."""
    if page == "index":
        yield toctree("", [f"/{name}" for name in WAYS_IN])
    elif page == "api/index":
        for heading, names in topics((DOCS / "api" / "index.md").read_text(encoding="utf-8")).items():
            yield toctree(heading, [f"{name} </api/generated/gpuops.{name}>" for name in names])
    elif page in BELOW:
        yield toctree("", [f"/{name}" for name in BELOW[page]])


def toctree(caption: str, entries: list[str]) -> str:
    """A toctree that shows in the bars of the site alone."""
    options = [":hidden:", ":glob:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "", "```{toctree}", *options, "", *entries, "```", ""])
