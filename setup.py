"""What pyproject.toml cannot say: the page of the package, and the benchmarks as a part of it.

It also runs on Python 3.9: pip asks it for the versions of Python that gpuops supports, before it refuses an older one.
"""

import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
IMAGE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]*\)")
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")


def page(readme: str) -> str:
    """The README where neither the repository's files nor its anchors are: without its pictures, links as text."""
    parts = CODE.split(readme)  # prose and code by turns
    parts[::2] = [LINK.sub(r"\1", IMAGE.sub("", prose)) for prose in parts[::2]]
    return "".join(parts)


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
