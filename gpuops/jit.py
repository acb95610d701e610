"""Kernel variants: source text, compilation by NVRTC, and the caches in memory and on disk.

NVRTC is called directly, so that a variant compiles without a GPU too (for any architecture), keeps subnormals (CuPy's
own route adds ``-ftz=true``), and is cached under a key of everything that decides its machine code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache

from .plan import Kernel

FOLDER = os.path.join(os.path.dirname(__file__), "kernels")
COMMON = ("launch.cuh", "types.cuh", "axes.cuh", "ops.cuh", "items.cuh")
MATMUL = ("matmul.cuh",)
SOFTMAX_ON_CHIP = ("block.cuh", "softmax.cuh", "softmax_on_chip.cuh")
#: Headers that come after the variant's types, per family (the first word of a kernel's name) or kernel.
FAMILY = {
    "broadcast": ("broadcast.cuh",),
    "matmul": MATMUL,
    "matmul_pipelined": ("block.cuh", *MATMUL, "matmul_panels.cuh"),
    "reduce": ("block.cuh", "reduce.cuh", "accumulate.cuh"),
    "softmax": ("block.cuh", "softmax.cuh"),
    "softmax_columns": SOFTMAX_ON_CHIP,
    **dict.fromkeys(("softmax_rows", "softmax_grid"), (*SOFTMAX_ON_CHIP, "softmax_parts.cuh")),
}
OPTIONS = ("--std=c++17",)
#: More options, by kernel. Where every register counts, the assembler keeps the order of the text.
MORE = {"matmul_pipelined": ("--ptxas-options=-O1",)}


@cache
def read(file: str) -> str:
    """The text of a kernel file, with a ``#line`` that names it in messages."""
    with open(os.path.join(FOLDER, file), encoding="utf-8") as text:
        return f'#line 1 "{file}"\n{text.read()}'


def source(kernel: Kernel) -> str:
    """The translation unit of a variant: common headers, its types and constants, the family's headers, its file."""
    family = FAMILY.get(kernel.name) or FAMILY[kernel.name.split("_")[0]]
    return "\n".join(
        [
            *map(read, COMMON),
            f'#line 1 "{kernel.name}: types and constants"',
            "using namespace gpuops;",
            *(f"using {name} = {type_};" for name, type_ in kernel.types),
            *(f"constexpr int {name} = {int(value)};" for name, value in kernel.constants),
            *map(read, (*family, f"{kernel.name}.cu")),
        ]
    )


def options(name: str) -> tuple[str, ...]:
    """NVRTC's options for a kernel, or its file."""
    return (*OPTIONS, *MORE.get(name.removesuffix(".cu"), ()))


def cache_folder() -> str:
    """Where compiled kernels are kept: ``GPUOPS_CACHE_DIR``, else ``gpuops`` in the user's cache folder."""
    if folder := os.environ.get("GPUOPS_CACHE_DIR"):
        return folder
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "gpuops")


def compile(text: str, name: str, arch: int) -> bytes:  # noqa: A001 - jit.compile reads well
    """Machine code (a cubin) of CUDA source for compute capability ``arch`` (90 for 9.0); needs no GPU.

    A GPU newer than the installed NVRTC gets PTX of the newest architecture that NVRTC knows; the driver takes either.
    """
    from cupy_backends.cuda.libs import nvrtc

    known = [a for a in nvrtc.getSupportedArchs() if a <= arch]
    exact = arch in known
    target = f"-arch=sm_{arch}" if exact else f"-arch=compute_{max(known)}"
    program = nvrtc.createProgram(text, name, (), ())
    try:
        nvrtc.compileProgram(program, (*options(name), target))
        return nvrtc.getCUBIN(program) if exact else nvrtc.getPTX(program)
    except nvrtc.NVRTCError as failure:
        raise RuntimeError(f"{name} does not compile for sm_{arch}:\n{nvrtc.getProgramLog(program)}") from failure
    finally:
        nvrtc.destroyProgram(program)


def compiled(kernel: Kernel, arch: int) -> bytes:
    """Machine code of a variant, from the disk cache where it has been compiled before."""
    import hashlib  # these two are slow to import, and NumPy users never need them
    import tempfile

    from cupy_backends.cuda.libs import nvrtc

    text = source(kernel)
    key = "\0".join((text, str(arch), str(nvrtc.getVersion()), *options(kernel.name)))
    folder = cache_folder()
    path = os.path.join(folder, f"{kernel.name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.cubin")
    if code := stored(path):
        return code
    with alone(path):
        if code := stored(path):  # another thread or process was faster
            return code
        code = compile(text, f"{kernel.name}.cu", arch)
        try:
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as new:
                new.write(code)
            os.replace(new.name, path)  # atomic: another process sees all of it or nothing
        except OSError:
            pass  # a read-only home costs a compile per process, nothing else
    return code


def stored(path: str) -> bytes:
    """The content of a file, nothing if there is no such file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


@contextmanager
def alone(path: str) -> Iterator[None]:
    """Let other threads and processes that are to make the same file wait, where files can be locked."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):  # Windows, or a folder that takes no files or no locks: each makes its own
            import fcntl
            from pathlib import Path

            os.makedirs(os.path.dirname(path), exist_ok=True)
            lock = stack.enter_context(open(f"{path}.lock", "w"))
            # Removed while it is locked: whoever waits for it finds the file made.
            stack.callback(Path(lock.name).unlink, missing_ok=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
