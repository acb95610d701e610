"""Matrix products to profile with Nsight Compute: the share of issue slots that hold a multiply-add.

On a machine with a GPU and ``ncu``, in the root of the repository::

    ncu --clock-control none --csv --metrics $(python -m benchmarks.issue_slots metrics) -k regex:'gemm|matmul' \\
        --log-file benchmarks/profiles/<gpu>/matmul.csv python -m benchmarks.issue_slots
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

N = 4096
KERNELS = ("cuBLAS", "`pipelined`, a in rows", "`pipelined`, a in columns")  # in the order of `main`
METRICS = {
    "instructions": "smsp__inst_executed.sum",
    "of them multiply-adds": "smsp__inst_executed_pipe_fma.sum",
    "issue slots that are used": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "by multiply-adds": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "registers of a thread": "launch__registers_per_thread",
}


def main() -> None:
    """Run the products to profile."""
    import cupy
    import numpy as np

    import gpuops

    random = cupy.random.default_rng(0)
    a, b = (random.standard_normal((N, N), np.float32) for _ in "ab")
    gpuops.matmul(a, b, strategy="cublas")
    gpuops.matmul(a, b, strategy="pipelined")
    gpuops.matmul(cupy.asfortranarray(a), b, strategy="pipelined")
    cupy.cuda.Device().synchronize()


def rows(file: Path) -> list[list[str]]:
    """A table row for each kernel, from the output of ncu."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith('"')]
    found: dict[str, dict[str, float]] = {}
    for line in csv.DictReader(lines):
        value = float(line["Metric Value"].replace(",", ""))
        found.setdefault(line["ID"], {})[line["Metric Name"]] = value
    made = []
    for name, values in zip(KERNELS, found.values(), strict=True):
        count, adds, used, filled, registers = (values[metric] for metric in METRICS.values())
        made.append([name, f"{adds / count:.1%}", f"{used:.1f}%", f"{filled:.1f}%", f"{registers:g}"])
    return made


if __name__ == "__main__":
    print(",".join(METRICS.values())) if "metrics" in sys.argv else main()
