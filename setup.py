"""What pyproject.toml cannot say: the page of the package, and the benchmarks as a part of it.

It must run with older Pythons than the package: pip learns from it which ones that needs.
"""

import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
IMAGE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]*\)")
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")


def page(readme: str) -> str:
    """The README where neither the repository's files nor its anchors are: without its pictures, links as text."""
    code, prose = CODE.findall(readme), CODE.split(readme)
    prose = [LINK.sub(r"\1", IMAGE.sub("", text)) for text in prose]
    return "".join(text for pair in zip(prose, [*code, ""]) for text in pair)  # noqa: B905 - not in Python 3.9


class BuildPackages(build_py):
    """Packs benchmarks/ as gpuops.benchmarks, for ``python -m gpuops bench``; editable installs find them in place."""

    def run(self) -> None:
        self.packages = [*self.packages, "gpuops.benchmarks"]
        self.package_dir = self.package_dir | {"gpuops.benchmarks": "benchmarks"}
        super().run()


setup(
    long_description=page(Path("README.md").read_text(encoding="utf-8")),
    long_description_content_type="text/markdown",
    cmdclass={"build_py": BuildPackages},
)
