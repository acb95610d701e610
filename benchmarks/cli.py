"""The arguments of ``python -m gpuops bench``, and what it does with them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import compare, harness, results
from .cases import HOST, TABLES, Case, cases, shrunk, tiny_cases
from .machines import Cpu, Gpu
from .providers import PEERS, Gpuops, Provider, first_line, load
from .results import Unusable
from .show import Screen


def run(arguments: list[str]) -> int:
    """``bench [OP ...]``: measure."""
    parser = argparse.ArgumentParser(
        "python -m gpuops bench",
        description="Measure gpuops against its peers and the machine's limits, and keep the results.",
        epilog="bench compare does something with results: see its --help.",
    )
    parser.add_argument("ops", metavar="OP", nargs="*", help=f"of {', '.join(TABLES)}; all of gpuops' if none is given")
    parser.add_argument("--quick", action="store_true", help="a representative tenth of the cases")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--hot", action="store_true", help="leave the arrays in the cache, where they fit into it")
    modes.add_argument("--host", action="store_true", help="the host's time per call, on tiny arrays")
    parser.add_argument("--providers", metavar="NAMES", help="only gpuops and these, by comma")
    parser.add_argument("--cases", metavar="TEXT", help="only those whose group or label has this text")
    parser.add_argument(
        "--elements", metavar="N", type=positive, help="halve the longest dims until no array has more elements"
    )
    parser.add_argument("--results", metavar="FOLDER", type=Path, default=results.FOLDER, help="where to keep them")
    options = parser.parse_args(arguments)
    for op in options.ops:
        if op not in TABLES:
            raise Unusable(f"there is no op {op!r}; there are {', '.join(TABLES)}")
    machine = machine_here(options.hot)
    screen = Screen()
    screen.say(f"gpuops on {machine.name}")
    peers = load_peers(machine, options.providers, screen)
    mode = "hot" if options.hot else "host" if options.host else "cold"
    asked = {name: getattr(options, name) for name in ("quick", "providers", "cases", "elements")}
    selection = {name: value for name, value in asked.items() if value}
    results.prepare(options.results / machine.folder)
    ops = options.ops or [op for op in TABLES if op in Gpuops.ops]
    if options.host:
        selection |= {"ops": options.ops} if options.ops else {}
        jobs = {"host": [case for op in ops for case in tiny_cases(op)]}
    else:
        jobs = {op: list(cases(op)) for op in ops}
    failures = []
    for name, every in jobs.items():
        chosen = choose(every, options.quick, options.cases, options.elements or machine.elements)
        if not chosen:
            screen.say(f"{name}: no case has {options.cases!r} in its group or label")
            continue
        measure = harness.latency if options.host else harness.measure
        records = []
        with screen.progress(name, len(chosen)) as watch:
            for case in chosen:
                watch.start(case.label)
                try:
                    records.append(measure(machine, case, peers, watch.provider))
                except machine.failures as failure:
                    raise Unusable(f"{name} {case.label}: the GPU has failed: {first_line(failure)}") from failure
                watch.done(records[-1])
        groups = [HOST] if options.host else TABLES[name]
        document = results.document(machine, name, mode, selection, groups, records)
        file = results.path(options.results, machine, name, mode, selection)
        results.save(file, document)
        screen.table(document)
        screen.say(f"Results: {file}\n")
        failures += [f"{name}: {line}" for line in wrong(records)]
    for line in failures:
        print(f"bench: {line}", file=sys.stderr)
    return 1 if failures else 0


def machine_here(hot: bool) -> Any:
    """The GPU that CuPy finds, or the CPU."""
    import gpuops

    return Gpu(hot) if gpuops.info()["path"] == "gpu" else Cpu(hot)


def load_peers(machine: Any, names: str | None, screen: Screen) -> list[Provider]:
    """The peers that can be used here, of those named; says which cannot."""
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


def choose(every: list[Case], quick: bool, text: str | None, elements: int) -> list[Case]:
    """The cases that were asked for, each once."""
    chosen: dict[tuple[str, str], Case] = {}
    for case in every:
        if case.pick or not quick:
            small = shrunk(case, elements)
            if text is None or text in small.label or text in small.group.name:
                chosen.setdefault((small.op, small.label), small)
    return list(chosen.values())


def wrong(records: list[dict[str, Any]]) -> list[str]:
    """Where gpuops is at fault: wrong results, and cases that it should do and does not (its strategies may refuse)."""
    found = []
    for record in records:
        for result in record.get("results", ()):
            name, why = result["provider"], result.get("refused", "")
            if (name == "gpuops" and why) or (name.startswith("gpuops ") and why.startswith("wrong")):
                found.append(f"{record['case']}: {name}: {why}")
    return found


def positive(text: str) -> int:
    """An argument that must be a positive integer."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


#: What ``bench`` does with results.
ACTIONS: dict[str, Callable[[list[str]], int]] = {"compare": compare.main}


def main(arguments: list[str]) -> int:
    """Run ``bench``: 1 if something is wrong with gpuops, 2 if with the arguments."""
    action = ACTIONS.get(arguments[0]) if arguments else None
    try:
        return action(arguments[1:]) if action else run(arguments)
    except Unusable as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130
