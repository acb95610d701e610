"""A page for each public function: its docstring, what to see also, its source, its speed beside other libraries."""

from __future__ import annotations

import inspect
import operator
import os
import re
from typing import Any

from docutils import nodes
from site_map import DOCS, ROOT, functions, related
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import gpuops
from benchmarks.cases import family_of
from benchmarks.plot import glances, slug
from benchmarks.plot_style import svg
from benchmarks.results import FOLDER as RESULTS
from benchmarks.results import Document, load_all

FOLDER = DOCS / "api" / "generated"
PAGE = """\
{name}
{line}

.. currentmodule:: {module}

.. autofunction:: {module}.{last}
"""
SPEED = """
Speed
-----

.. image:: /api/generated/{machine}/{op}.svg
   :alt: {op}: the speed of gpuops beside that of other libraries, on an {model}
"""
MORE = """
More: :doc:`/performance/{family}`.
"""
SAME = {"amax": "max", "amin": "min"}


def write_pages(app: Any) -> None:
    """Write the pages and pictures that changed, and remove the pages of functions that are gone."""
    measured = {path.name: load_all(path) for path in sorted(RESULTS.glob("*")) if path.is_dir()}
    texts = {FOLDER / f"gpuops.{name}.rst": page(name, measured) for name in functions()}
    for path in {*FOLDER.glob("*.rst")} - texts.keys():
        path.unlink()
    for machine, documents in measured.items():
        for op, draw in glances(documents):
            texts[FOLDER / machine / f"{op}.svg"] = svg(draw, f"{op}: the speed of gpuops beside other libraries")
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def page(name: str, measured: dict[str, list[Document]]) -> str:
    """The page of a function, with what was measured on each machine."""
    module, _, last = f"gpuops.{name}".rpartition(".")
    title = f"{module}.{last}"
    head = PAGE.format(name=title, line="=" * len(title), module=module, last=last)
    return head + speed(SAME.get(name, name), measured)


def speed(op: str, measured: dict[str, list[Document]]) -> str:
    """The pictures of an op on the machines that it was measured on."""
    machines = [name for name, documents in measured.items() if op in dict(glances(documents))]
    pictures = [SPEED.format(op=op, machine=name, model=name.replace("-", " ").upper()) for name in machines]
    return "".join([*pictures, *(MORE.format(family=slug(family_of(op))) for _ in machines[:1])])


def add_related(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Give a docstring its section "See Also", and links where it names pages of docs/."""
    if what != "function":
        return
    lines[:] = [re.sub(r"\bdocs/([\w/-]+)\.md\b", r":doc:`/\1`", line) for line in lines]
    section = ["See Also", "--------"]
    for other in related(name.removeprefix("gpuops.")):
        summary = operator.attrgetter(other)(gpuops).__doc__.split("\n\n")[0]
        section += [f"gpuops.{other} : {' '.join(summary.split())}"]
    after = next(i for i, line in enumerate(lines) if line in ("Notes", "Examples"))
    lines[after:after] = [*section, ""]


def name_defaults(app: Any, what: str, name: str, thing: Any, options: Any, signature: str, returns: str) -> Any:
    """NumPy's mark of a parameter that is not given reads as three dots."""
    return (signature or "").replace("<no value>", "..."), returns


class SourceLinks(SphinxTransform):
    """Links each function to the lines of its source."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        for node in self.document.findall(addnodes.desc_signature):
            name, line = source(f"{node['module']}.{node['fullname']}")
            self.env.metadata[self.env.docname].setdefault("sources", []).append(name)
            uri = self.env.app.builder.get_relative_uri(self.env.docname, f"source/{name}")
            words = nodes.inline("", "[source]", classes=["viewcode-link"])
            node += nodes.reference("", "", words, refuri=f"{uri}#L-{line}", internal=True)


def source(name: str) -> tuple[str, int]:
    """The file and the line where a function begins."""
    code = inspect.unwrap(operator.attrgetter(name.removeprefix("gpuops."))(gpuops)).__code__
    return os.path.relpath(code.co_filename, ROOT), code.co_firstlineno


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", add_related, priority=400)  # before numpydoc
    app.connect("autodoc-process-signature", name_defaults)
    app.add_transform(SourceLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
