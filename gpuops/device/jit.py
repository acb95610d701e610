"""Kernel variants: source text, compilation by NVRTC, and the caches in memory and on disk.

NVRTC is called directly, so that a variant compiles without a GPU too (for any architecture), keeps subnormals (CuPy's
own route adds ``-ftz=true``), and is cached under a key of everything that decides its machine code.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from ..definition import in_cuda, program_in_cuda
from ..plan.expression import FAMILIES
from ..plan.maps import elements, evaluate, packs, stepped, tiled
from ..plan.products import rungs
from ..plan.reductions import launch as reductions
from ..plan.rows import launch as rows
from ..plan.scans import flat, lanes
from ..plan.scans import ladder as scan_ladder
from ..plan.scans import launch as scans
from ..plan.selection import count, place
from ..plan.selection import rows as selected_rows
from ..plan.work import Kernel

#: Says what is compiled, at level INFO, which Python's logging leaves out by default.
LOGGER = logging.getLogger("gpuops")

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "kernels")
COMMON = ("launch.cuh", "types.cuh", "axes.cuh", "ops.cuh", "exact.cuh", "digits.cuh", "sums.cuh", "items.cuh")
#: What kernels that may compute x read it from, and where an element of it is, if x is in memory.
POINTER = "using Source = const Tin*;\nusing From = const Tin*;\n#define SOURCE const Tin*"
EXPRESSION = ("ufuncs.cuh", "pairs.cuh", "expression.cuh")
MATMUL = ("matmul.cuh",)
SCAN_ENGINES = ("products.cuh", "engines.cuh", "inexact.cuh")
SCAN_TILES = ("tile_sums.cuh", "slots.cuh", "look_back.cuh", "settle.cuh")
SCAN_LADDER = ("block.cuh", "products.cuh", "ladder.cuh")
SOFTMAX_ON_CHIP = ("block.cuh", "softmax.cuh", "row_ops.cuh", "softmax_on_chip.cuh")
#: Headers that come after the variant's types, per family (the first word of a kernel's name) or kernel.
FAMILY = {
    "broadcast": ("broadcast.cuh",),
    "evaluate": (),
    "matmul": MATMUL,
    "matmul_pipelined": ("block.cuh", *MATMUL, "matmul_panels.cuh"),
    "scan": ("block.cuh", *SCAN_ENGINES, "scan.cuh", *SCAN_TILES),
    "scan_chains": ("block.cuh", *SCAN_ENGINES, "packs.cuh", "chunks.cuh"),
    "scan_flat": ("block.cuh", "engines.cuh", "packs.cuh", "slots.cuh", "published.cuh"),
    "scan_parts": ("block.cuh", *SCAN_ENGINES, "packs.cuh", "chunks.cuh", "slots.cuh", "published.cuh"),
    **dict.fromkeys(("scan_hillis_steele", "scan_warp"), SCAN_LADDER),
    **dict.fromkeys(("scan_blelloch", "scan_three_pass"), (*SCAN_LADDER, "tree.cuh")),
    "select": ("block.cuh", "select.cuh"),
    "select_rows": (),
    "reduce": ("block.cuh", "reduce.cuh", "words.cuh", "search.cuh", "lanes.cuh", "biased.cuh", "accumulate.cuh"),
    "softmax": ("block.cuh", "softmax.cuh"),
    "softmax_columns": SOFTMAX_ON_CHIP,
    "softmax_small": ("block.cuh", "softmax.cuh", "row_ops.cuh"),
    **dict.fromkeys(("softmax_rows", "softmax_grid"), (*SOFTMAX_ON_CHIP, "softmax_parts.cuh")),
}
#: The parameter struct, by the same keys.
PARAMS = {
    "broadcast": packs.PARAMS,
    "broadcast_elements": elements.PARAMS,
    "broadcast_stepped": stepped.PARAMS,
    "broadcast_tiled": tiled.PARAMS,
    "evaluate": evaluate.PARAMS,
    "matmul": rungs.PARAMS,
    "reduce": reductions.PARAMS,
    "reduce_small": reductions.SMALL_PARAMS,
    "scan": scan_ladder.PARAMS,
    **dict.fromkeys(("scan_chains", "scan_parts"), lanes.PARAMS),
    "scan_flat": flat.PARAMS,
    "scan_tiles": scans.PARAMS,
    "select_count": count.PARAMS,
    "select_elements": place.ELEMENTS,
    "select_indices": place.INDICES,
    "select_rows": selected_rows.PARAMS,
    "softmax": rows.PARAMS,
    "softmax_small": rows.SMALL_PARAMS,
}
OPTIONS = ("--std=c++17",)
#: Options that save compile time, by the first NVRTC that has them; its own cache would be a second one.
SINCE = {(12, 4): ("--minimal",), (12, 9): ("--no-cache",)}
#: More options, by kernel. With -O1, ptxas keeps the order of the source, which saves registers.
MORE = {"matmul_pipelined": ("--ptxas-options=-O1",)}


HEAD = 4096  # bytes of a library file that hold its headers


@cache
def files() -> dict[str, str]:
    """The paths of the kernel files, by their names."""
    return {name: os.path.join(folder, name) for folder, _, names in os.walk(FOLDER) for name in names}


@cache
def read(file: str) -> str:
    """The text of a kernel file, with a ``#line`` that names it in messages."""
    with open(files()[file], encoding="utf-8") as text:
        return f'#line 1 "{file}"\n{text.read()}'


def source(kernel: Kernel) -> str:
    """The translation unit of a variant: common headers, its types and constants, the parameters, the family's headers,
    its file."""
    word, code = kernel.name.split("_")[0], kernel.expression
    headers, params = FAMILY.get(kernel.name, FAMILY[word]), PARAMS.get(kernel.name) or PARAMS[word]
    return "\n".join(
        [
            *map(read, COMMON),
            *map(read, EXPRESSION if code else ()),
            f'#line 1 "{kernel.name}: types and constants"',
            "using namespace gpuops;",
            *in_cuda.texts(kernel),
            *(f"using {name} = {type_};" for name, type_ in kernel.types),
            program_in_cuda.text(code) if code else POINTER if word in FAMILIES else "",
            *(f"constexpr int {name} = {int(value)};" for name, value in kernel.constants),
            f'#line 1 "{kernel.name}: parameters"',
            params.text,
            *map(read, (*headers, f"{kernel.name}.cu")),
        ]
    )


def options(name: str) -> tuple[str, ...]:
    """NVRTC's options for a kernel, by its name or file name."""
    from cupy_backends.cuda.libs import nvrtc

    version = nvrtc.getVersion()
    new = (option for first, options in SINCE.items() if first <= version for option in options)
    return (*OPTIONS, *new, *MORE.get(name.removesuffix(".cu"), ()))


def cache_folder() -> str:
    """The folder of compiled kernels: ``GPUOPS_CACHE_DIR``, else ``gpuops`` in the user's cache folder; "" for users
    without a home."""
    if folder := os.environ.get("GPUOPS_CACHE_DIR"):
        expanded = os.path.expanduser(folder)
        if not os.path.isabs(expanded):
            raise ValueError(f"GPUOPS_CACHE_DIR must be an absolute path, got {folder!r}")
        return expanded
    root = os.environ.get("XDG_CACHE_HOME", "")
    root = root if os.path.isabs(root) else os.path.expanduser("~/.cache")  # the standard voids relative paths
    return os.path.join(root, "gpuops") if os.path.isabs(root) else ""


def compile(text: str, name: str, arch: int) -> bytes:  # noqa: A001 - jit.compile reads well
    """Machine code (a cubin) of CUDA source for compute capability ``arch`` (90 for 9.0); needs no GPU.

    A GPU newer than the installed NVRTC gets PTX of the newest architecture that NVRTC knows; the driver takes either.
    """
    from cupy_backends.cuda.libs import nvrtc

    supported = architectures()
    known = [a for a in supported if a <= arch]
    if not known:
        version = ".".join(map(str, nvrtc.getVersion()))
        least = f"NVRTC {version} compiles for compute capability {min(supported) / 10} and newer"
        raise RuntimeError(f"{name}: {least}, the GPU has {arch / 10}: install CuPy for an older CUDA")
    exact = arch in known
    target = f"-arch=sm_{arch}" if exact else f"-arch=compute_{max(known)}"
    begin = time.perf_counter()
    program = nvrtc.createProgram(text, name, (), ())
    try:
        nvrtc.compileProgram(program, (*options(name), target))
        LOGGER.info("compiled %s for sm_%d in %.0f ms", name, arch, (time.perf_counter() - begin) * 1e3)
        return nvrtc.getCUBIN(program) if exact else nvrtc.getPTX(program)
    except nvrtc.NVRTCError as failure:
        raise RuntimeError(f"{name} does not compile for sm_{arch}:\n{nvrtc.getProgramLog(program)}") from failure
    finally:
        nvrtc.destroyProgram(program)


def compiled(kernel: Kernel, arch: int, anew: bool = False, folder: str | None = None) -> bytes:
    """Machine code of a variant, through the disk cache (``anew``: compiled again) in the default or another folder."""
    from . import disk_cache  # slow to import, and NumPy users never need it

    text, key = keyed(kernel, arch)
    folder = cache_folder() if folder is None else folder
    return disk_cache.entry(folder, kernel.name, key, lambda: compile(text, f"{kernel.name}.cu", arch), anew)


def packaged(kernel: Kernel, arch: int) -> bytes:
    """Machine code of a variant that came with the package; empty if it did not."""
    from . import prebuilt  # slow to import, and NumPy users never need it

    return prebuilt.found(source(kernel), arch)


def is_packaged(arch: int) -> bool:
    """Whether any variants for an architecture came with the package."""
    from . import prebuilt  # slow to import, and NumPy users never need it

    return any(each.kernels for each in prebuilt.archives(arch))


def kept(kernel: Kernel, arch: int) -> bytes:
    """Machine code of a variant from the package or the disk cache; empty if neither has it."""
    from . import disk_cache  # slow to import, and NumPy users never need it

    return packaged(kernel, arch) or disk_cache.found(cache_folder(), kernel.name, keyed(kernel, arch)[1])


def attempts(kernel: Kernel, arch: int) -> Iterator[bytes]:
    """Machine code of a variant: the package's, that of the disk cache, compiled again. A driver may refuse the one
    before: it may be older than the compiler, or the file damaged."""
    if code := packaged(kernel, arch):
        yield code
    yield compiled(kernel, arch)
    yield compiled(kernel, arch, anew=True)


def keyed(kernel: Kernel, arch: int) -> tuple[str, str]:
    """The source of a variant, and the key of its machine code: all that decides it."""
    text = source(kernel)
    return text, "\0".join((text, str(arch), compiler(), *options(kernel.name)))


def architectures() -> list[int]:
    """The architectures that NVRTC compiles for; 90 is compute capability 9.0."""
    from cupy_backends.cuda.libs import nvrtc

    found: list[int] = nvrtc.getSupportedArchs()
    return found


@cache
def compiler() -> str:
    """Identifies the build of NVRTC: the version, which lacks the patch level, and, if the system tells its file, the
    file's headers (with the build ID) and size."""
    from cupy_backends.cuda.libs import nvrtc

    known = [str(nvrtc.getVersion())]
    with suppress(OSError):
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            path = next((line.split(maxsplit=5)[-1].strip() for line in maps if "libnvrtc.so" in line), "")
        with open(path, "rb") as library:
            known += [library.read(HEAD).hex(), str(os.fstat(library.fileno()).st_size)]
    return "\0".join(known)
