"""``make test-versions``: the wheel, and the tests of the CPU path, on each Python that is installed.

Every Python runs the README's examples and the commands, with the wheel and NumPy alone. The oldest, the newest and the
free-threaded one run the tests too, without CuPy, Numba and Dask. Interpreters are found on PATH, by pyenv and by uv;
those that are not installed are listed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
#: The NumPy to install, by Python, where t is the free-threaded build. For Python 3.13, there is no wheel of NumPy 2.0.
VERSIONS = {
    "3.10": "numpy==2.0.*", "3.11": "numpy==2.0.*", "3.12": "numpy", "3.13": "numpy", "3.14": "numpy", "3.14t": "numpy",
}  # fmt: skip
TOOLS = ("hypothesis", "ml_dtypes", "pytest", "scipy")
#: The tests of what NumPy's arrays go through. Those beyond the quick profile are quick without the emulator.
TESTS = {
    "quick": (
        "argmax", "arguments", "broadcast", "definition", "errors", "host_maps", "host_reduce", "host_rows",
        "host_rules", "info", "key", "launch_cache", "lazy", "matmul", "measures", "memory", "memory_order",
        "new_shapes", "plan", "recording", "reduce", "softmax", "tracebacks", "variance", "warnings", "work",
    ),
    "ci": ("array_api", "interop", "logsumexp"),
}  # fmt: skip
#: Prints an interpreter's name in VERSIONS, and where it is.
NAME = """
import sys, sysconfig
print("{}.{}".format(*sys.version_info) + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))
print(sys.executable)
"""
#: Runs the examples of a page, and prints what ran them.
EXAMPLES = """
import doctest, gpuops, numpy, platform, sys
failed, count = doctest.testfile(sys.argv[1], module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
lock = getattr(sys, "_is_gil_enabled", lambda: True)()
print(f"Python {platform.python_version()}, NumPy {numpy.__version__}{'' if lock else ', without the GIL'}")
sys.exit(failed > 0 or count == 0)
"""


class Failed(Exception):
    """A command that failed, and what it printed."""


def run(*command: object, **options: object) -> str:
    """What a command prints."""
    words = list(map(str, command))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "check": False}
    done = subprocess.run(words, **{"cwd": ROOT, **pipes, **options})  # type: ignore[call-overload]
    if done.returncode:
        raise Failed(f"{' '.join(words)}\n{done.stdout}")
    return str(done.stdout)


def candidates(name: str) -> Iterator[str]:
    """Where a Python may be."""
    yield f"python{name}"
    if shutil.which("pyenv"):
        for version in run("pyenv", "versions", "--bare").split():
            if re.fullmatch(rf"{re.escape(name.rstrip('t'))}\.\d+{'t' * name.endswith('t')}", version):
                yield run("pyenv", "prefix", version).strip() + "/bin/python"
    if shutil.which("uv"):
        yield from run("uv", "python", "find", "--no-python-downloads", name).split()


def interpreter(name: str) -> str | None:
    """The Python of this name, if there is one that runs."""
    try:
        for path in candidates(name):
            if shutil.which(path):
                found = subprocess.run([path, "-c", NAME], capture_output=True, text=True, check=False).stdout.split()
                if found[:1] == [name]:
                    return found[1]
    except Failed:  # uv finds none
        pass
    return None


class Environment(NamedTuple):
    """A virtual environment, and the variables of its processes."""

    folder: Path
    variables: dict[str, str]

    def python(self, *arguments: object, **options: object) -> str:
        return run(self.folder / "bin" / "python", *arguments, env=self.variables, **options)

    def install(self, *packages: object) -> None:
        """Install wheels, with the pip that runs this."""
        options = ("--quiet", "--disable-pip-version-check", "--no-compile", "--only-binary=:all:")
        run(sys.executable, "-m", "pip", "--python", self.folder / "bin" / "python", "install", *options, *packages)


def environment(name: str, python: str, folder: Path) -> Environment:
    """A new environment; on free-threaded Python nothing turns the lock on."""
    run(python, "-m", "venv", "--without-pip", folder)
    variables = os.environ | ({"PYTHON_GIL": "0"} if name.endswith("t") else {})
    return Environment(folder, variables)


def wheel_works(python: Environment, elsewhere: Path) -> str:
    """The README's examples and the commands with what is installed; gives the versions."""
    versions = python.python("-c", EXAMPLES, ROOT / "README.md", cwd=elsewhere).strip()
    for arguments in (["info"], ["demo", "--size", "64"], ["warmup", "--help"], ["bench", "--help"]):
        python.python("-m", "gpuops", *arguments, cwd=elsewhere)
    return versions


def tests_pass(python: Environment) -> str:
    """The tests of the CPU path, with this checkout; gives pytest's summaries."""
    summaries = []
    for profile, names in TESTS.items():
        files = [f"tests/test_{name}.py" for name in names]
        chosen = python._replace(variables=python.variables | {"GPUOPS_TEST_PROFILE": profile})
        printed = chosen.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not emulated", *files)
        summaries.append(printed.splitlines()[-1])
    return ", ".join(summaries)


def check(name: str, python: str, wheel: Path, tested: bool, folder: Path) -> str:
    """Everything of one Python; gives a line about it."""
    start = time.monotonic()
    made = environment(name, python, folder / name)
    made.install(wheel, VERSIONS[name])
    line = wheel_works(made, folder) + ": the wheel works"
    if tested:
        made.install(*TOOLS, VERSIONS[name])
        line += f"; {tests_pass(made)}"
    return f"{line} ({time.monotonic() - start:.0f} s in all)"


def main() -> int:
    """Check every Python that there is; 1 if one fails."""
    found = {name: path for name in VERSIONS if (path := interpreter(name))}
    missing = [name for name in VERSIONS if name not in found]
    print("Not installed, so not tested: Python", ", ".join(missing) or "-", flush=True)
    plain = [name for name in found if not name.endswith("t")]
    tested = {*plain[:1], *plain[-1:], *found.keys() - plain}
    with TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as threads:
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
        (wheel,) = Path(folder).glob("*.whl")
        order = sorted(found, key=lambda name: name not in tested)  # the long ones first
        jobs = [threads.submit(check, name, found[name], wheel, name in tested, Path(folder)) for name in order]
        failures = 0
        for name, job in zip(order, jobs, strict=True):
            try:
                print(job.result(), flush=True)
            except Failed as failure:
                print(f"Python {name} fails: {failure}", flush=True)
                failures += 1
    return 1 if failures or not found else 0


if __name__ == "__main__":
    sys.exit(main())
