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

.. image:: /performance/{machine}/{op}-glance.svg
   :alt: {op}: the speed of gpuops beside that of other libraries, on an {model}
"""
MORE = """
All cases, and how they were measured: :doc:`{op} </performance/{op}>`.
"""
SAME = {"amax": "max", "amin": "min"}


def write_pages(app: Any) -> None:
    """Write the pages that changed, and remove those of functions that are gone."""
    FOLDER.mkdir(exist_ok=True)
    pages = {FOLDER / f"gpuops.{name}.rst": page(name) for name in functions()}
    for path in {*FOLDER.glob("*.rst")} - pages.keys():
        path.unlink()
    for path, text in pages.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def page(name: str) -> str:
    module, _, last = f"gpuops.{name}".rpartition(".")
    title = f"{module}.{last}"
    return PAGE.format(name=title, line="=" * len(title), module=module, last=last) + speed(SAME.get(name, name))


def speed(op: str) -> str:
    """The pictures of an op on the machines that it was measured on."""
    machines = [path.parent.name for path in sorted((DOCS / "performance").glob(f"*/{op}-glance.svg"))]
    pictures = [SPEED.format(op=op, machine=name, model=name.replace("-", " ").upper()) for name in machines]
    more = (DOCS / "performance" / f"{op}.md").exists()
    return "".join([*pictures, *([MORE.format(op=op)] if pictures and more else [])])


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
