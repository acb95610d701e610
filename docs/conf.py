"""The documentation site: ``make docs`` builds it in build/docs, without network and on the CPU path."""

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parent.parent)]
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the tutorials' results are the same on every machine

from site_map import BELOW, WAYS_IN, repository  # noqa: E402 - found by the path above

from gpuops.version import __version__  # noqa: E402

project = "gpuops"
author = "The gpuops authors"
copyright = author  # noqa: A001 - Sphinx's name
version = release = __version__

extensions = [
    "sphinx.ext.autodoc", "sphinx.ext.intersphinx", "numpydoc", "myst_nb", "sphinx_copybutton", "sphinx_design",
    "api_pages", "code_links", "descriptions", "folds", "inventories", "pages", "pictures", "tabs",
]  # fmt: skip
templates_path = ["_templates"]
exclude_patterns = ["_ext", "_templates", "**/.ipynb_checkpoints"]
default_role = "obj"  # `max` in a docstring is a function, or else code

myst_heading_anchors = 4

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120

autodoc_typehints = "none"
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # link the words in inventories.TYPES alone
# All but these: an extended summary; capitals, since a dtype or a formula may come first; a verb's mood.
numpydoc_validation_checks = {"all", "ES01", "RT02", "RT04", "SA03", "SS02", "SS05"}

copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

address = repository()

html_theme = "pydata_sphinx_theme"
html_title = "gpuops"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_sidebars = {page: [] for page in WAYS_IN if page not in BELOW and page != "api/index"}
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "gpuops"},
    "header_links_before_dropdown": 10,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "icon_links": [{"name": "Repository", "url": address, "icon": "fa-solid fa-code-branch"}] if address else [],
    "article_header_start": ["breadcrumbs", "contents"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-light",
    "pygments_dark_style": "github-dark",
}
