"""The tables that ``bench report`` writes into the guides and other pages made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpuops.plan.rows import WARP_COLS, WARPS

from . import issue_slots, plot
from .cases import FRONT, STEPS
from .report_standing import best_peer
from .report_summary import in_short
from .report_text import DOCS, KERNELS, NAMES, REFERENCES, picture, table, wrap
from .results import ROOT, Document, ladders, rivals, timed
from .show import MISSING, cell, digits, machine_name, refusals, scaling

PROFILES = ROOT / "benchmarks" / "profiles"
PROFILE = (
    "multiply-adds of all instructions", "issue slots used", "used by multiply-adds", "registers of a thread",
)  # fmt: skip


def crossings(folder: str, document: Document) -> str:
    """The row length from which a block is faster than a warp, for each pack size; "" if not measured."""
    group = "warp or block"
    by_dtype: dict[str, list[dict[str, Any]]] = {}
    for case in document["cases"]:
        if case["group"] == group and any(f"gpuops {name}" in timed(case) for name in WARPS):
            by_dtype.setdefault(case["dtype"], []).append(case)
    rows = [[name, str(pack), *(crossing(cases, name) for cases in by_dtype.values())] for name, pack in WARPS.items()]
    if not by_dtype:
        return ""
    heading = f"{machine_name(document)}, results of {document['date'][:10]}:\n"
    return "\n".join((heading, table(("strategy", "elements of a pack", *by_dtype), rows)))


def crossing(cases: list[dict[str, Any]], warp: str) -> str:
    """The shortest row from which on the best block strategy is always faster than that warp strategy."""
    shortest = f"not up to {WARP_COLS}"
    for case in sorted(cases, key=row_length, reverse=True):
        found = timed(case)
        blocks = [name for name in found if name.startswith("gpuops block")]
        best = min(blocks, key=lambda name: found[name]["us"], default="")
        ours = found.get(f"gpuops {warp}")
        if not ours or not best or found[best]["us"] >= ours["us"]:
            break
        shortest = f"{row_length(case)} ({best.removeprefix('gpuops ')})"
    return shortest


def row_length(case: dict[str, Any]) -> int:
    length: int = case["operands"][0]["shape"][-1]
    return length


def climbed(folder: str, document: Document) -> str:
    """The speed of each strategy in the cases of the ladder, and their picture; "" if not measured."""
    cases = {case["case"]: timed(case) for case in ladders(document["cases"])}
    names = dict.fromkeys(name for found in cases.values() for name in found if name.startswith("gpuops "))
    if not cases:
        return ""
    rows = []
    for name in names:
        speeds = (found.get(name) for found in cases.values())
        shares = (f"{each['speed']:.4g} ({each['of_limit']:.0%})" if each else MISSING for each in speeds)
        rows.append([name.removeprefix("gpuops "), *shares])
    op, unit = document["op"], document["unit"]
    drawn = picture(f"../performance/{folder}", plot.slug(op, "ladder"), f"{op}: what each strategy reaches")
    heading = f"{machine_name(document)}, results of {document['date'][:10]}: {unit}, and the share of a copy:\n"
    return "\n".join((drawn, heading, table(("strategy", *cases), rows)))


#: Shares of cuBLAS that a ladder of the same seven steps reaches on an NVIDIA A10, at n = 4092.
REFERENCE = {
    "naive": 0.039, "coalesced": 0.079, "shared": 0.146, "blocktile_1d": 0.412, "blocktile_2d": 0.764,
    "vectorized": 0.871, "warptile": 1.0,
}  # fmt: skip


def rates(folder: str, document: Document) -> str:
    """The speed of each matmul strategy, beside the reference ladder; "" if not measured."""
    found = {case["operands"][0]["shape"][0]: timed(case) for case in document["cases"] if case["group"] == "squares"}
    climbed = {n: results for n, results in found.items() if "gpuops naive" in results}
    if not climbed:
        return ""
    names = [name.removeprefix("gpuops ") for name in next(iter(climbed.values())) if name.startswith("gpuops ")]
    rows = []
    for name in names:
        cells = (climbed[n][f"gpuops {name}"] for n in climbed)
        reference = f"{REFERENCE[name]:.1%}" if name in REFERENCE else MISSING
        rows.append([name, *(f"{cell['speed']:.3g} ({cell['of_limit']:.1%})" for cell in cells), reference])
    heading = f"{machine_name(document)}, results of {document['date'][:10]}: TFLOP/s, and the share of cuBLAS:\n"
    made = [heading, table(("strategy", *(f"n = {n}" for n in climbed), "reference, n = 4092"), rows)]
    profile = PROFILES / folder / "matmul.csv"
    if profile.exists():
        made += [
            f"What Nsight Compute counts at n = {issue_slots.N} ([issue_slots.py](../../benchmarks/issue_slots.py)):\n",
            table(("kernel", *PROFILE), issue_slots.rows(profile)),
        ]
    return "\n".join(made)


def budget(folder: str, document: Document) -> str:
    """The times of a cached call and of its steps, each timed alone; "" if not measured."""
    steps = [case for case in document["cases"] if case["group"] == STEPS.name and "gpuops" in timed(case)]
    if not steps:
        return ""
    rows = [[case["case"].rpartition(", ")[2], f"{timed(case)['gpuops']['us']:.2f}"] for case in steps]
    heading = f"`{steps[0]['op']}`, {machine_name(document)}, results of {document['date'][:10]}:\n"
    return "\n".join([heading, table(("step", "µs"), rows)])


def scaled(folder: str, document: Document) -> str:
    """The speed of several GPUs beside one, by group; "" if not measured."""
    parts = [
        f"{machine_name(document)}, results of {document['date'][:10]}. *1 ×* and the like: {document['unit']} of so "
        "many GPUs, each with as much data. The other columns are for all GPUs. *of linear*: the speedup over the "
        "number of GPUs. *tasks*: their number. *ms*: from the start of the first task to the end of the last. *ms "
        "waited*: how long the client waited. *idle*: how long a GPU has nothing to do, for each task.\n"
    ]
    for name, group in document["groups"].items():
        if cases := [case for case in document["cases"] if case["group"] == name]:
            parts += [f"*{name}*: {group['origin']}.\n", table(*scaling([case for case in cases if "results" in case]))]
            parts += ["\n".join(f"- {line}" for line in missing) + "\n"] if (missing := refusals(cases)) else []
    return "\n".join(parts) if document["cases"] else ""


def front(folder: str, documents: list[Document]) -> str:
    """A few cases of several ops; "" if none was measured."""
    measured = {
        (document["op"], case["case"]): (document["unit"], case)
        for document in documents
        if document["mode"] == "cold"
        for case in document["cases"]
        if "gpuops" in timed(case)
    }
    rows = []
    for op, name in FRONT:
        if (op, name) in measured:
            unit, case = measured[op, name]
            reference = f"{digits(case['limit']['speed'])} {case['limit']['name']}"
            best = best_peer(case) if rivals(case) else ""
            fastest = f"{cell(case, best)} {NAMES.get(best, best)}" if best else MISSING
            numbers = (cell(case, "gpuops"), cell(case, "cupy"), cell(case, "torch"), fastest, reference)
            rows.append([f"`{op}` of {name}", *numbers, unit])
    head = ("case", "gpuops", "CuPy", "PyTorch", "fastest other", "reference", "unit")
    words = ", ".join(f"*{name}* is {what}" for name, what in REFERENCES.items())
    where = f"{machine_name(documents[0])}, data in the GPU's memory, not in its cache"
    about = f"{where}; higher is better. Of the references, {words}."
    return f"{wrap(about)}\n{table(head, rows)}" if rows else ""


Written = Callable[[str, list[Document]], str]


def one(op: str, written: Callable[[str, Document], str], mode: str = "cold") -> Written:
    """What writes a table from the results of one op alone."""

    def of_all(folder: str, documents: list[Document]) -> str:
        found = (document for document in documents if (document["op"], document["mode"]) == (op, mode))
        return "\n".join(filter(None, (written(folder, document) for document in found)))

    return of_all


#: The pages made by hand that have a table, and what writes it from the documents of a machine's folder.
GUIDES: dict[str, tuple[Path, Written]] = {
    "softmax": (KERNELS / "softmax.md", one("softmax", crossings)),
    "matmul": (KERNELS / "matmul.md", one("matmul", rates)),
    "cumsum": (KERNELS / "scan.md", one("cumsum", climbed)),
    "host": (DOCS / "architecture.md", one("host", budget, "host")),
    "scaling": (DOCS / "scaling.md", one("scaling", scaled, "scaling")),
    "front": (ROOT / "README.md", front),
    "home": (DOCS / "index.md", in_short),
}
