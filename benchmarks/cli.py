"""``python -m gpuops bench``: arguments and actions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import accuracy, cold, compare, harness, host, on_cpu, plot, report, results, same_bits, scaling, thresholds
from .cases import HOST_TABLES, SCALING_TABLES, TABLES, Case, cases, host_cases, scaling_cases, shrunk
from .machines import Cpu, Gpu, machine_here
from .providers import PEERS, Gpuops, Provider, Tensors, first_line, load
from .results import Unusable, positive
from .show import Screen

TINY = 2**10  # elements
SHARED = {"host": HOST_TABLES, "scaling": SCALING_TABLES}  # results files shared by all ops


def arguments_of_run() -> argparse.ArgumentParser:
    """The arguments of ``bench [OP ...]``."""
    parser = argparse.ArgumentParser(
        "python -m gpuops bench",
        description="Measure gpuops against its peers and the machine's limits, and keep the results.",
        epilog="bench plot, report and compare do something with results; bench accuracy measures errors, bench bits "
        "whether results depend on what lies beside them, bench thresholds what the planners' thresholds are worth, "
        "bench --cold mixes of first calls, bench --cpu NumPy arrays (see --help).",
    )
    parser.add_argument("ops", metavar="OP", nargs="*", help=f"of {', '.join(TABLES)}; all that gpuops has if none is")
    parser.add_argument("--quick", action="store_true", help="a representative tenth of the cases")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--hot", action="store_true", help="leave the arrays in the cache, where they fit into it")
    modes.add_argument("--host", action="store_true", help="the host's time: calls on tiny arrays, first uses")
    modes.add_argument(
        "--gpus",
        metavar="N",
        type=positive,
        help="Dask arrays on N GPUs beside one, a process for each; without a GPU, on N processes",
    )
    parser.add_argument("--providers", metavar="NAMES", help="only gpuops and these, by comma")
    parser.add_argument("--cases", metavar="TEXT", help="only those whose group or label has this text")
    parser.add_argument(
        "--elements",
        metavar="N",
        type=positive,
        help="halve the longest dims until no array, or no GPU's part of it, has more",
    )
    parser.add_argument("--results", metavar="FOLDER", type=Path, default=results.FOLDER, help="where to keep them")
    return parser


def run(arguments: list[str]) -> int:
    """``bench [OP ...]``: measure."""
    options = arguments_of_run().parse_args(arguments)
    if unknown := [op for op in options.ops if op not in TABLES]:
        raise Unusable(f"there is no op {unknown[0]!r}; there are {', '.join(TABLES)}")
    machine = machine_here(options.hot)
    jobs = selected(options, machine)
    folder = options.results / machine.folder
    results.prepare(folder)
    screen = Screen()
    screen.say(f"gpuops on {machine.name}")
    peers = [] if options.gpus else load_peers(machine, options.providers, screen)
    asked = {name: getattr(options, name) for name in ("quick", "providers", "cases", "elements")}
    if options.host or options.gpus:
        asked["ops"] = options.ops
    selection = {name: value for name, value in asked.items() if value}
    mode = "hot" if options.hot else "host" if options.host else "scaling" if options.gpus else "cold"
    failures = []
    for name, chosen in jobs.items():
        with measuring(machine, mode, options.gpus) as measure:
            records = measured(measure, machine, name, chosen, peers, screen)
        groups = [group for group, _ in SHARED[name]] if name in SHARED else TABLES[name]
        document = results.document(machine, name, mode, selection, groups, records)
        file = folder / results.file_name(name, mode, selection)
        results.save(file, document)
        screen.table(document)
        screen.say(f"Results: {file}\n")
        failures += [f"bench: {name}: {line}" for line in wrong(records)]
    for line in failures:
        print(line, file=sys.stderr)
    return 1 if failures else 0


def selected(options: argparse.Namespace, machine: Any) -> dict[str, list[Case]]:
    """The cases that were asked for, by results file."""
    if options.gpus and options.providers:
        raise Unusable("--gpus measures gpuops alone: there are no --providers")
    ops = options.ops or [op for op in TABLES if op in Gpuops.ops]
    elements = options.elements or machine.elements
    if options.host:
        gpu, more = not isinstance(machine, Cpu), () if options.ops else ("pipeline", "import")
        elements = elements if gpu else min(elements, TINY)  # without a GPU, the call's work is host time
        tables = {"host": [case for op in (*ops, *more) for case in host_cases(op, gpu)]}
    elif options.gpus:
        tables = {"scaling": [case for op in ops for case in scaling_cases(op)]}
    else:
        tables = {op: list(cases(op)) for op in ops}
    jobs = {name: choose(every, options.quick, options.cases, elements) for name, every in tables.items()}
    if not any(jobs.values()):
        text = f"{options.cases!r} in its group or label" if options.cases else "anything for --gpus"
        raise Unusable(f"no case of {', '.join(ops)} has {text}")
    return {name: chosen for name, chosen in jobs.items() if chosen}


def choose(every: list[Case], quick: bool = False, text: str | None = None, elements: int = Gpu.elements) -> list[Case]:
    """The selected cases, without duplicates."""
    chosen: dict[tuple[str, str], Case] = {}
    for case in every:
        if case.pick or not quick:
            small = shrunk(case, elements)
            if text is None or text in small.label or text in small.group.name:
                chosen.setdefault((small.op, small.label), small)
    return list(chosen.values())


def load_peers(machine: Any, names: str | None, screen: Screen) -> list[Provider]:
    """The usable peers among those named; reports the others."""
    kinds = PEERS["cpu" if isinstance(machine, Cpu) else "gpu"]
    wanted = {kind.name for kind in kinds} if names is None else {name.strip() for name in names.split(",")}
    if unknown := wanted - {kind.name for kind in kinds} - {"gpuops"}:
        known = ", ".join(kind.name for kind in kinds)
        raise Unusable(f"there is no provider {', '.join(sorted(unknown))}; there are {known}")
    peers = []
    for kind in kinds:
        if kind.name in wanted:
            peer = load(kind, machine.xp)
            if isinstance(peer, str):
                screen.say(f"{kind.name}: {peer}")
            else:
                peers.append(peer)
    return peers


#: Measures a case: takes the machine, the case, the peers and ``watch``; returns the record.
Measure = Callable[[Any, Case, list[Provider], Callable[[str], None]], dict[str, Any]]


def measuring(machine: Any, mode: str, gpus: int) -> AbstractContextManager[Measure]:
    """A context with the function that measures cases."""
    if mode == "scaling":
        return scaling.measuring(machine, gpus)
    return nullcontext(host.measure if mode == "host" else harness.measure)


def measured(
    measure: Measure, machine: Any, name: str, chosen: list[Case], peers: list[Provider], screen: Screen
) -> list[dict[str, Any]]:
    """The records of the cases of one results file."""
    records = []
    with screen.progress(name, len(chosen)) as watch:
        for case in chosen:
            watch.start(case.label)
            try:
                records.append(measure(machine, case, peers, watch.provider))
            except machine.failures as failure:
                raise Unusable(f"{name} {case.label}: the GPU has failed: {first_line(failure)}") from failure
            watch.done(records[-1])
    return records


def wrong(records: list[dict[str, Any]]) -> list[str]:
    """Faults of gpuops: wrong results, and cases that it fails (its named strategies may refuse)."""
    found = []
    for record in records:
        skipped = record.get("skipped", "") if "workers" in record else ""  # no other library takes part
        if skipped and not skipped.startswith("out of memory"):
            found.append(f"{record['case']}: {skipped}")
        for result in record.get("results", ()):
            name, why = result["provider"], result.get("refused", "")
            refused = name in ("gpuops", Tensors.name) and why and not why.startswith("out of memory")
            if refused or (name.startswith("gpuops ") and why.startswith("wrong")):
                found.append(f"{record['case']}: {name}: {why}")
    return found


#: The actions on results.
ACTIONS: dict[str, Callable[[list[str]], int]] = {
    "plot": plot.main, "report": report.main, "compare": compare.main, "accuracy": accuracy.main,
    "bits": same_bits.main, "thresholds": thresholds.main, "--cold": cold.main, "--cpu": on_cpu.main,
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run ``bench``: 1 if something is wrong with gpuops, 2 if with the arguments."""
    action = ACTIONS.get(arguments[0]) if arguments else None
    try:
        if find_spec("ml_dtypes") is None and not {"-h", "--help"} & {*arguments}:
            raise Unusable("needs the package ml_dtypes: pip install 'gpuops-cupy[bench]'")
        return action(arguments[1:]) if action else run(arguments)
    except Unusable as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130
