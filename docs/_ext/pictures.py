"""Pictures that follow the theme's switch: of each a light and a dark one, which open in their own size."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from site_map import DOCS, ROOT, place
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.osutil import relative_uri

from benchmarks.plot_theme import themed

THEMES = {"only-light": False, "only-dark": True}


class Pictures(SphinxTransform):
    """Replaces a picture by two, of which the theme shows one."""

    default_priority = 500

    def apply(self, **kwargs: Any) -> None:
        for node in [*self.document.findall(nodes.image)]:
            path = place(self.env.docname, node["uri"])
            if path.suffix == ".svg" and path.is_file():
                pair = [self.variant(node, path, name, dark) for name, dark in THEMES.items()]
                inline = isinstance(node.parent, nodes.TextElement)
                node.replace_self(pair if inline else nodes.paragraph("", "", *pair))

    def variant(self, node: nodes.image, path: Path, name: str, dark: bool) -> nodes.image:
        """The picture for one theme, written beside the doctrees."""
        made = Path(self.env.doctreedir) / name / path.relative_to(ROOT)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(themed(path.read_text(encoding="utf-8"), dark), encoding="utf-8")
        self.env.note_dependency(str(path))
        copy = node.deepcopy()
        copy["uri"] = "/" + os.path.relpath(made, DOCS)
        copy["classes"] += ["picture", name]
        return copy


class PictureLinks(SphinxPostTransform):
    """Makes of each picture a link to its file, which a narrow page shows smaller than it is."""

    default_priority = 500

    def run(self, **kwargs: Any) -> None:
        here = self.env.app.builder.get_target_uri(self.env.docname)
        for node in [*self.document.findall(nodes.image)]:
            if "picture" in node["classes"] and not isinstance(node.parent, nodes.reference):
                file = self.env.images[node["uri"]][1]
                link = nodes.reference("", "", refuri=relative_uri(here, f"_images/{file}"), internal=True)
                link["classes"] += ["picture-link", *(name for name in node["classes"] if name in THEMES)]
                node.replace_self(link)
                link += node


def setup(app: Any) -> dict[str, bool]:
    app.add_transform(Pictures)
    app.add_post_transform(PictureLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
