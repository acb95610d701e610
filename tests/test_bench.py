"""The benchmarks: cases, checks, timing and reports; on the CPU with tiny arrays."""

import ast
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import gpuops
from benchmarks import (
    accuracy,
    arrays,
    cases,
    cli,
    cold,
    expressions,
    first_use,
    harness,
    host,
    mixes,
    on_cpu,
    ops,
    plot,
    providers,
    report,
    report_more,
    report_text,
    results,
    same_bits,
    scaling,
    show,
    thresholds,
    timing,
)
from benchmarks.machines import Cpu
from gpuops.call.dispatch import describe
from gpuops.definition import records, scans
from gpuops.device import disk_cache
from gpuops.host import threads
from gpuops.ops import table
from gpuops.plan.geometry import contiguous_strides
from gpuops.plan.work import ArraySpec, Machine
from tests.conftest import NO_GPU

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = json.loads(results.SCHEMA.read_text(encoding="utf-8"))
EVERY_CASE = [case for op in cases.TABLES for case in cases.cases(op)]
HOST_CASES = [case for op in (*cases.TABLES, "pipeline", "import") for case in cases.host_cases(op, gpu=True)]
OPTIONS = [case for case in EVERY_CASE if case.group.name == "options"]
MACHINES = [folder.name for folder in plot.PICTURES.iterdir() if folder.is_dir()]
PUBLISHED = sorted(results.FOLDER / machine for machine in MACHINES)  # others are the user's
#: ``python -m gpuops`` made fast: a small cache to flush before each sample, and few samples of processes.
FAST = """
import sys
from benchmarks import machines, scaling
from gpuops.__main__ import main
machines.cpu_cache, scaling.REPEATS = lambda: 2**20, 1
sys.exit(main())
"""


def bench(*arguments, fast=False, **options):
    """``python -m gpuops bench`` as a user runs it, with any GPU hidden."""
    command = [sys.executable, *(("-c", FAST) if fast else ("-m", "gpuops")), "bench", *map(str, arguments)]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "COLUMNS": "160"}
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=300, cwd=ROOT, env=environment, **options
    )


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with results of tiny arrays, named like those of a full run."""
    base = tmp_path_factory.getbasetemp()
    made = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "results"  # shared by all workers
    with disk_cache.locked(f"{made}.lock"):
        if not made.exists():
            measured(tmp_path_factory.mktemp("measured")).rename(made)
    return made


def measured(made):
    """A folder with results."""
    given = "--providers", "numpy,scipy", "--results", made  # whatever else is installed
    done = bench("softmax", "sum", "where", "--elements", 2000, *given, fast=True)
    assert done.returncode == 0, done.stderr + done.stdout
    assert bench("sum", "expand", "--host", *given).returncode == 0
    for file in (made / "cpu").glob("*.part.json"):
        file.rename(file.with_name(file.name.replace(".part", "")))
    return made


@pytest.fixture(scope="session")
def documents(folder):
    return results.load_all(folder / "cpu")


def conforms(document):
    """Whether a document follows the schema."""
    import jsonschema  # not installed on machines that only measure

    try:
        jsonschema.validate(document, SCHEMA)
    except jsonschema.ValidationError:
        return False
    return True


def test_results_follow_the_schema(documents):
    assert [document["op"] for document in documents] == ["softmax", "sum", "where", "host"]
    for document in documents:
        assert conforms(document)
        assert all("results" in case for case in document["cases"])


@pytest.mark.parametrize(
    "file",
    [file for folder in PUBLISHED for file in folder.glob("*.json") if not file.stem.endswith(".part")],
    ids=lambda file: f"{file.parent.name}-{file.stem}",
)
def test_published_results_follow_the_schema_and_are_complete(file):
    document = results.load(file)
    assert conforms(document)
    assert document["selection"] == {}
    assert len(document["commit"]) == 40, "measured from a clean commit"
    if document["mode"] == "scaling":
        chosen = cli.choose([case for op in cases.TABLES for case in cases.scaling_cases(op)])
        chosen = [scaling.enlarged(case, document["cases"][0]["workers"]) for case in chosen]
    elif document["mode"] != "host":
        chosen = cli.choose(list(cases.cases(document["op"])))
    else:  # the groups of that commit
        return
    assert [case["case"] for case in document["cases"]] == [case.label for case in chosen]


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_published_results_of_ops_are_of_one_commit_and_the_same_versions(folder):
    every = [document for document in results.load_all(folder) if document["mode"] == "cold"]
    assert [document["op"] for document in every] == [op for op in cases.TABLES if op in providers.Gpuops.ops]
    for what in (lambda document: document["commit"], lambda document: document["environment"]["versions"]):
        assert all(what(document) == what(every[0]) for document in every)


def test_schema_rejects_a_time_of_zero(documents):
    broken = json.loads(json.dumps(documents[0]))
    broken["cases"][0]["results"][0]["us"] = 0
    assert not conforms(broken)


def test_every_result_has_ratios_to_limit_and_best_peer(documents):
    for document in documents:
        for case in document["cases"]:
            found = results.timed(case)
            assert found["gpuops"]["of_limit"] == pytest.approx(found["gpuops"]["speed"] / case["limit"]["speed"], 1e-3)
            rivals = [result["speed"] for name, result in found.items() if not name.startswith("gpuops")]
            for result in found.values():
                expected = pytest.approx(result["speed"] / max(rivals), 1e-3) if rivals else None  # NumPy may refuse
                assert result["of_best_peer"] == expected


def test_options_of_softmax_have_results_without_peers(documents):
    found = [case for case in documents[0]["cases"] if case["group"] == "options"]
    assert {case["dtype"] for case in found} == {"float32", "float16"}
    assert all([result["provider"] for result in case["results"]] == ["gpuops"] for case in found)
    assert [case.get("options") for case in found if case["dtype"] == "float32"][2:5] == [
        {"scale": 0.125}, {"dtype": "float16"}, {"scale": 0.125, "dtype": "float16"},
    ]  # fmt: skip
    for op in ("log_softmax", "logsumexp"):
        assert "options" not in {group.name for group in cases.TABLES[op]}


def test_environment_records_versions(documents):
    about = documents[0]["environment"]
    assert about["versions"]["gpuops"] == gpuops.__version__
    assert about["versions"]["numpy"] == np.__version__
    assert "scipy" in about["versions"]


# Cases


def test_labels_are_unique_after_selection():
    for op in cases.TABLES:
        labels = [case.label for case in cli.choose(list(cases.cases(op)))]
        assert len(labels) == len(set(labels))


def test_quick_selects_about_a_quarter_of_the_cases():
    count = sum(len(cli.choose(list(cases.cases(op)), quick=True)) for op in cases.TABLES)
    assert 0.15 < count / len(EVERY_CASE) < 0.3


@pytest.mark.parametrize(
    ("op", "label"),
    [
        ("softmax", "float32 4096×256 axis 1"),
        ("softmax", "float16 4096×12672 axis 1"),
        ("softmax", "bfloat16 4096×50257 axis 1"),
        ("softmax", "float32 64×1048576 axis 1"),
        ("softmax", "float32 128×1024×256 axis 1"),
        ("softmax", "float64 4096×4096 axis 1"),
        ("softmax", "float32 268435456 axis 0"),
        ("softmax", "float32 4096×4096 axis 1 where 1×4096"),
        ("softmax", "float16 4096×4096 axis 1 scale 0.125"),
        ("softmax", "float32 4096×4096 axis 1 where 4096×4096 scale 0.125 to float16"),
        ("softmax", "float16 4096×4096 axis 1 to float32"),
        ("sum", "float32 4194304×16 axis 0"),
        ("sum", "complex64 8192×8192 axis 0"),
        ("sum", "bfloat16 12000×7001 axis 1"),
        ("argmax", "float32 11×7000003 axis 0"),
        ("max", "float32 8192×8192 [:, ::2] axis 1"),
        ("where", "float32 1000×1×97, 1×333×1, 1000×333×97"),
        ("where", "float32 8192×8192, scalar, scalar"),
        ("expand", "float32 8192×8191×1 → 8192×8191×3"),
        ("matmul", "float32 4092×4092, 4092×4092"),
    ],
)
def test_tables_contain_commonly_compared_cases(op, label):
    assert label in {case.label for case in cases.cases(op)}


@pytest.mark.parametrize("elements", [1, 7, 1000, 10**6])
def test_shrunk_operands_still_broadcast(elements):
    for case in EVERY_CASE:
        small = cases.shrunk(case, elements)
        shape = ops.OPS[case.op].shape(small)
        for size in (np.prod(shape), *(np.prod(operand.shape) for operand in small.problem.operands)):
            assert size <= elements
        if case.op in ("softmax", "where", "expand"):
            assert np.broadcast_shapes(*(operand.shape for operand in small.problem.operands), shape) == shape


def test_small_cases_are_not_shrunk():
    for case in EVERY_CASE:
        assert cases.shrunk(case, 2**40) == case


def test_bytes_are_counted_once_per_element():
    by_label = {(case.op, case.label): case for case in EVERY_CASE}
    count = lambda op, label: ops.nbytes(by_label[op, label])  # noqa: E731
    assert count("softmax", "float16 4096×256 axis 1") == (2 * 2**20, 2 * 2**20)
    assert count("softmax", "float32 4096×4096 axis 1 where 4096×4096") == (5 * 2**24, 4 * 2**24)
    assert count("softmax", "float32 4096×4096 axis 1 where 1×4096") == (4 * 2**24 + 4096, 4 * 2**24)
    assert count("softmax", "float16 4096×4096 axis 1 scale 0.125") == (2 * 2**24, 2 * 2**24)
    assert count("softmax", "float16 4096×4096 axis 1 to float32") == (2 * 2**24, 4 * 2**24)
    everything = "float32 4096×4096 axis 1 where 4096×4096 scale 0.125 to float16"
    assert count("softmax", everything) == (5 * 2**24, 2 * 2**24)
    assert count("where", "float32 8192×8192, scalar, scalar") == (2**26 + 8, 4 * 2**26)
    assert count("sum", "int8 8192×8192 axis 0") == (2**26, 8 * 8192)
    assert count("sum", "float32 8192×8192 broadcast axis 0") == (4 * 8192, 4 * 8192)
    assert count("expand", "float32 8192×1 → 8192×8192") == (4 * 8192, 4 * 2**26)


@pytest.mark.parametrize("layout", arrays.LAYOUTS)
def test_allocate_fills_every_layout(layout):
    data = arrays.values("normal", np.dtype(np.float32))
    x = arrays.allocate(np, cases.Operand((12, 35), layout), data)
    assert x.shape == (12, 35)
    contiguous = {"C", "[1:]"}
    assert x.flags.c_contiguous == (layout in contiguous)
    assert np.isin(x, data).all()
    assert len(np.unique(x)) == arrays.stored(cases.Operand((12, 35), layout))
    if layout == "[1:]":
        assert x.ctypes.data % 16 == 4 or x.base.ctypes.data % 16


@pytest.mark.parametrize("dtype", ["float32", *cases.REDUCTION_DTYPES.split()])
def test_data_is_reproducible_and_fits_the_dtype(dtype):
    dtype = arrays.dtype_of(dtype)
    data = arrays.values.__wrapped__("normal", dtype)
    assert data.dtype == dtype and data.size == arrays.PATTERN
    assert np.array_equal(data, arrays.values("normal", dtype))
    assert abs(complex(data.astype(np.complex128).sum())) < 1e6


# Checks


@pytest.mark.parametrize(
    "case", [*(case for case in EVERY_CASE if case.pick), *OPTIONS], ids=lambda case: f"{case.op} {case.label}"
)
def test_check_accepts_right_and_rejects_wrong_results(case):
    case = cases.shrunk(case, 500)
    dtype = arrays.dtype_of(case.dtype)
    data = [arrays.values(kind, dtype) for kind in ops.kinds(case)]
    operands = tuple(map(arrays.allocate, [np] * len(data), case.problem.operands, data))
    wide = [ops.widened(np, x) for x in operands]
    right = np.asarray(ops.OPS[case.op].reference(np, case, *wide))
    expected = ops.expected(np, case, operands)
    assert ops.check(np, expected, right) == ""
    found = ops.check(np, expected, ~right if right.dtype == bool else right + 1 + 2 * (expected.allowed or 0))
    assert ("differ" if expected.allowed is None else "error") in found
    assert "shape" in ops.check(np, expected, right[None])
    if right.dtype.kind == "f":
        spoilt = right.copy()
        spoilt[(0,) * right.ndim] = np.nan
        assert ops.check(np, expected, spoilt)


@pytest.mark.parametrize("case", OPTIONS, ids=lambda case: case.label)
def test_check_detects_ignored_softmax_options(case):
    import scipy.special

    case = cases.shrunk(case, 4096)
    (x, *masks), *_ = harness.ring_of(Cpu(), case)
    given = dict(zip(["where"], masks)) | case.options
    chosen = np.where(given.get("where", True), x.astype(float), -np.inf)
    right = scipy.special.softmax(given.get("scale", 1) * chosen, axis=1)
    expected = ops.expected(np, case, (x, *masks))
    np.testing.assert_allclose(expected.values, right, rtol=1e-12)
    gpuops_ = providers.Gpuops(np)
    result = gpuops_.call(case)(x, *masks)
    assert ops.check(np, expected, gpuops_.wide(result)) == ""
    assert result.dtype == given.get("dtype", case.dtype)
    assert (sum(operand.nbytes for operand in (x, *masks)), result.nbytes) == ops.nbytes(case)
    for name in given.keys() - {"dtype"}:
        rest = {other: value for other, value in given.items() if other != name}
        assert "an error of" in ops.check(np, expected, gpuops_.wide(gpuops.softmax(x, axis=1, **rest)))


def test_fully_masked_softmax_rows_are_zero():
    case, x = OPTIONS[0], np.zeros((2, 4))
    mask = np.array([[False] * 4, [True, False, True, False]])
    np.testing.assert_array_equal(ops.softmax(np, case, x, mask), [[0] * 4, [0.5, 0, 0.5, 0]])
    np.testing.assert_array_equal(providers.Gpuops(np).call(case)(x, mask), [[0] * 4, [0.5, 0, 0.5, 0]])


def test_accuracy_command_writes_measurements_and_page(tmp_path):
    page = tmp_path / "page.md"
    assert cli.main(["accuracy", "--elements", "4096", "--results", str(tmp_path), "--output", str(page)]) == 0
    (found,) = accuracy.load_all(tmp_path)
    samples = (*accuracy.SAMPLES, *(sample for sample, _ in accuracy.HARD_SAMPLES), *accuracy.NEAR_ZERO)
    assert len(found["rows"]) == sum(len(dtypes) for *_, dtypes in samples)
    assert {row["data"] for row in found["rows"] if "data" in row} == {*accuracy.HARD}
    small = [row for row in found["rows"] if "near zero" in row]
    assert all(row["gpuops"] < (1e-2 if row["dtype"] == "bfloat16" else 1e-5) for row in small) and len(small) == 6
    assert all(row["gpuops"] < 20 for row in found["rows"] if row["op"] != "vector_norm")  # NumPy's overflows
    softmaxes = [row for row in found["rows"] if row["op"] in providers.SOFTMAX and row not in small]
    assert {row["op"] for row in softmaxes} == providers.SOFTMAX
    for row in softmaxes:  # a number is 1 / eps to 2 / eps ulps
        eps = float(ops.finfo(arrays.dtype_of(row["dtype"])).eps)
        assert row["gpuops"] * eps / 2.01 <= row["relative"]["gpuops"] <= row["gpuops"] * eps * 1.01
    assert page.read_text(encoding="utf-8") == accuracy.page([found])


def test_errors_are_in_units_in_the_last_place():
    for dtype in map(arrays.dtype_of, accuracy.DTYPES):
        right = np.array([1.5, 3.0, 1000.0])
        step = float(ops.finfo(dtype).eps)
        assert accuracy.error(right + np.array([step, 0, 0]), right, dtype) == 1
        assert accuracy.error(right + np.array([0, 2 * step, 0]), right, dtype) == 1
        assert accuracy.error(right, right, dtype) == 0
        assert accuracy.relative_error(np.array([1, 2 - 2 * step]), np.array([1, 2]), dtype) == float(f"{step:.3g}")


def test_errors_of_difficult_data_are_relative():
    """To the squares, where the exact value is 0."""
    (row,) = accuracy.page([{
        "machine": "A GPU", "commit": "a" * 40, "versions": {},
        "rows": [
            {"op": "sum", "dtype": "float32", "shape": [9], "axis": None, "gpuops": 0.5},
            {"op": "var", "dtype": "float32", "shape": [9, 9], "axis": 1, "data": "all 0.1", "gpuops": 0.0},
        ],
    }]).partition("relative to the mean of the squares.")[2].strip().splitlines()[2:]  # fmt: skip
    assert row == "| var, all 0.1 | float32 | 9×9, axis 1 | 0 |"
    case = cases.Case("var", cases.HOST, cases.along((4, 8), 1), "float32", pick=False)
    x = accuracy.hard_data(case, "all 0.1")
    assert not accuracy.exact(case, (x,)).any()
    np.testing.assert_allclose(accuracy.squares(case, (x,)), [0.01] * 4, rtol=1e-6)


@pytest.mark.parametrize("op", sorted(providers.SOFTMAX))
def test_exact_softmaxes_match_scipy(op):
    import scipy.special

    for shape, axis in (((30, 7), 0), ((30, 7), 1), ((50,), 0)):
        problem = cases.Problem((cases.Operand(shape),), axis)
        case = cases.Case(op, cases.HOST, problem, "float32", pick=False)
        x, right = accuracy.data(case)[0], getattr(scipy.special, op)
        np.testing.assert_allclose(accuracy.exact(case, (x,)), right(x.astype(float), axis=axis), rtol=1e-14)


def test_bits_command_writes_measurements_and_page(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    monkeypatch.setattr(same_bits, "TIMED", same_bits.TIMED[1:2])
    assert cli.main(["bits", "--elements", "700", "--results", str(tmp_path), "--output", str(page)]) == 0
    (found,) = accuracy.load_all(tmp_path)
    assert {(row["op"], row["dtype"]) for row in found["bits"]} == {*product(same_bits.OPS, same_bits.DTYPES)}
    for row in found["bits"]:
        if row["dtype"] != "float64" or find_spec("numba"):
            assert all(same == count > 0 for same, count in row["same"].values())
    assert all(row[name] > 0 for row in found["costs"] for name in same_bits.HARD)
    assert page.read_text(encoding="utf-8") == same_bits.page([found])


def test_bits_page_is_up_to_date():
    assert same_bits.PAGE.read_text(encoding="utf-8") == same_bits.page(accuracy.load_all(same_bits.FOLDER))


def test_accuracy_page_is_up_to_date():
    assert accuracy.PAGE.read_text(encoding="utf-8") == accuracy.page(accuracy.load_all(accuracy.FOLDER))


# --------------------------------------------------------------------------------------------------------- first calls


#: What a mix may need, and how many calls it has.
NEEDED = {"six ops": (74, 600), "sums": (27, 1000), "softmax rows": (12, 4096)}


@pytest.mark.parametrize("mix", mixes.MIXES)
def test_mixes_of_calls_need_few_kernels(mix):
    kernels, count = NEEDED[mix]
    found = mixes.kernels(mixes.MIXES[mix]())
    assert sum(found.values()) == count and len(found) <= kernels


def test_mixes_are_the_same_each_time():
    for mix in mixes.MIXES.values():
        assert [*mix()] == [*mix()]


def test_arrays_of_mixes_are_views_of_one_for_each_dtype(monkeypatch):
    monkeypatch.setattr(cold, "MOST", 2**10)
    pools: dict[str, np.ndarray] = {}
    case = cases.Case("where", mixes.GROUP, cases.together((3, 1), (3, 5), (5,)), "int32", pick=False)
    condition, x, y = cold.operands(np, pools, case)
    assert (condition.dtype, x.dtype, y.shape) == (bool, np.int32, (5,)) and {*pools} == {"bool", "int32"}
    assert np.shares_memory(x, y) and x.flags.c_contiguous


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "kernels are compiled for a GPU: this needs one"),
        (["--mixes", "all"], "there is no mix 'all'; there are six ops, sums, softmax rows"),
        (["--providers", "cub"], "there is no provider 'cub'; there are gpuops, gpuops (wheel), cupy, torch, jax"),
    ],
)
def test_first_calls_say_what_is_wrong(arguments, words, monkeypatch, capsys):
    monkeypatch.setattr(cold, "machine_here", Cpu)
    assert cli.main(["--cold", *arguments]) == 2
    assert capsys.readouterr().err == f"bench: {words}\n"


def test_first_calls_are_measured_written_and_shown(tmp_path, monkeypatch):
    machine = SimpleNamespace(name="A GPU", folder="a-gpu")
    monkeypatch.setattr(cold, "machine_here", lambda: machine)

    def process(library, mix, folders):
        if library == "torch":
            raise RuntimeError("broken")
        folder = Path(folders["GPUOPS_CACHE_DIR"])
        second = folder.exists()
        folder.mkdir(exist_ok=True)
        (folder / "a kernel").touch()
        return {"calls": 600, "refused": 2, "seconds": 0.5 if second else 8.0, "worst_ms": 200.0}

    monkeypatch.setattr(cold, "process", process)
    monkeypatch.setattr(cold, "FOLDER", tmp_path)
    selection = ["--mixes", "six ops", "--providers", "gpuops,torch"]
    assert cli.main(["--cold", *selection, "--results", str(tmp_path)]) == 0
    assert cold.found("a-gpu") is None  # a selection never replaces a full run
    (part,) = tmp_path.iterdir()
    rows = [["six ops: gpuops", "598", "8.00", "1", "200", "0.50"], ["six ops: torch", *["–"] * 4, "broken"]]
    assert part.name == "a-gpu.part.json" and cold.lines(json.loads(part.read_text(encoding="utf-8"))) == rows
    assert cli.main(["--cold", "--results", str(tmp_path)]) == 0
    document = cold.found("a-gpu")
    assert document["machine"] == "A GPU" and cold.found("another") is None
    lines = cold.lines(document)
    assert len(lines) == 13 and all(row in lines for row in rows)
    text = "\n".join(report_more.first_calls("a-gpu", []))
    assert "## A GPU" in text and "| six ops: gpuops | 598 | 8.00 |" in text and "first-calls.svg" in text
    assert [*report_more.first_calls("another", [])] == []
    if importlib.util.find_spec("matplotlib"):
        assert plot.draw_first_calls(document)


# ------------------------------------------------------------------------------------------------------------ the CPU


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["norm"], f"there is no op 'norm'; there are {', '.join(on_cpu.TABLES)}"),
        (["sum", "--cases", "9×9"], "no case of sum has '9×9' in its label"),
    ],
)
def test_the_cpus_cases_say_what_is_wrong(arguments, words, capsys):
    assert cli.main(["--cpu", *arguments]) == 2
    assert capsys.readouterr().err == f"bench: {words}\n"


def test_the_cpus_cases_are_measured_written_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(on_cpu, "FOLDER", tmp_path)
    monkeypatch.setattr(on_cpu, "PEERS", {"cpu": (providers.Numpy, providers.Scipy)})
    monkeypatch.setenv(threads.VARIABLES[0], "2")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1}, raising=False)
    threads.limit.cache_clear()
    try:
        assert cli.main(["--cpu", "softmax", "sum", "--cases", "128×128", "--results", str(tmp_path)]) == 0
    finally:
        threads.limit.cache_clear()
        threads.pool.cache_clear()
    assert on_cpu.found() == {}  # a selection never replaces a full run
    (file,) = tmp_path.iterdir()
    assert file.name.endswith("-2.part.json") and capsys.readouterr().out.count("scipy") == 8
    document = json.loads(file.read_text(encoding="utf-8"))
    assert {row["threads"] for row in document["rows"]} == {1, 2}
    ops = [line[:3] for line in on_cpu.lines(document)]
    assert ops == [[op, str(count), str(cases)] for op, cases in (("softmax", 4), ("sum", 4)) for count in (1, 2)]
    assert all(len(line) == len(on_cpu.HEAD) for line in on_cpu.lines(document))
    file.rename(tmp_path / "a-processor-2.json")
    text = report.pages({}, on_cpu.found())["performance/on-cpu.md"]
    assert "# On the CPU" in text and "on-cpu.svg" in text and "| softmax | 2 | 4 |" in text
    if importlib.util.find_spec("matplotlib"):
        assert plot.draw_on_cpu(document)


CPU_CASES = [case for op in on_cpu.TABLES for case in on_cpu.cases(op)]


@pytest.mark.parametrize("case", CPU_CASES[::7], ids=lambda case: f"{case.op} {case.label}")
def test_the_cpus_cases_are_computed_right(case):
    small = cases.shrunk(case, 2**12)
    arrays = harness.ring_of(Cpu(hot=True), small)[0]
    for provider in (providers.Gpuops(np), providers.Numpy(np), providers.Scipy(np)):
        if small.op in provider.ops and (provider.name == "gpuops" or small.dtype != "float16"):
            result = provider.wide(provider.call(small)(*arrays))
            assert not ops.check(np, ops.expected(np, small, arrays), result), provider.name


# --------------------------------------------------------------------------------------------------------- thresholds

#: Numbers of the planners that are no thresholds: limits of hardware, kernels and libraries, sizes of the classic
#: rungs, candidates between which a model chooses.
LIMITS = {
    "access.PACK", "access.SECTOR", "builder.TOGETHER", "expression.TILE", "geometry.MANY", "geometry.MAX_RANK",
    "maps.packs.LINE", "maps.packs.WORD",
    "maps.problems.MOST", "products.cublas.CALLS", "products.cublas.LIMIT", "products.cublas.MOST",
    "products.pipelined.FULL",
    "products.pipelined.LANES", "products.pipelined.LANES_M", "products.pipelined.LANES_N",
    "products.pipelined.STAGES", "products.rungs.BLOCK", "products.rungs.DEPTH", "products.rungs.ROWS_1D",
    "products.rungs.SHARED_TILE", "products.rungs.TILE_1D", "products.rungs.WARP_DEPTH", "reductions.classic.BLOCK",
    "reductions.columns.RESERVED", "reductions.columns.STORE", "reductions.launch.NARROW", "rows.classic.BLOCK",
    "rows.classic.STATES",
    "rows.classic.WARP_COLS", "reductions.small.MOST", "rows.columns.RESERVED", "rows.launch.GROUPS",
    "rows.on_chip.LARGE_BLOCK", "small.BLOCK", "small.SIDE", "work.ALIGNMENT", "work.BARRIERS", "work.BARRIERS_OFFSET",
    "scans.ladder.BLOCK", "scans.ladder.PART", "scans.ladder.STEPPED",
    "scans.flat.BRIEF", "scans.flat.FAR", "scans.flat.MOST", "scans.flat.STATIC", "scans.launch.SHORT",
    "scans.launch.STATIC", "scans.lanes.DIGITS", "scans.lanes.LANES", "scans.lanes.RESERVED", "scans.parts.BRIEF",
    "scans.parts.KNOWN", "scans.common.EACH", "scans.common.RADIX", "scans.common.TAGGED",
    "work.LARGE", "work.PARTIALS", "work.PORTABLE_CLUSTER", "work.SCRATCH", "work.SLOTS", "work.SLOTS_OFFSET",
    "work.STATIC_SHARED", "work.TICKETS",
}  # fmt: skip

#: Numbers that `bench` does not measure: of calls that wait for the GPU.
UNMEASURED = {
    "selection.count.BLOCK", "selection.count.TILE",
    "selection.place.TOGETHER", "selection.rows.BLOCK", "selection.rows.UNROLL",
}  # fmt: skip


def test_every_number_of_the_planners_is_a_measured_threshold_or_a_limit():
    numbers = {
        f"{module}.{name}"
        for module, planner in thresholds.planners().items()
        for node in ast.parse(Path(planner.__file__).read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name in (each.id for each in ast.walk(target) if isinstance(each, ast.Name))
        if isinstance(getattr(planner, name), (int, float))
    }
    assert numbers - LIMITS - UNMEASURED <= {threshold.path for threshold in thresholds.THRESHOLDS}
    assert numbers >= LIMITS | UNMEASURED


@pytest.mark.parametrize("threshold", thresholds.THRESHOLDS, ids=lambda threshold: threshold.path)
def test_thresholds_are_constants_and_have_other_values(threshold):
    value = getattr(thresholds.planners()[threshold.module], threshold.name)
    assert threshold.others and value not in threshold.others
    assert all(probe.case.label for probe in threshold.probes)
    for module in thresholds.holders(threshold.module, threshold.name):
        assert getattr(module, threshold.name) is value


def test_a_setting_changes_what_calls_do_until_the_next_one():
    threshold = next(each for each in thresholds.THRESHOLDS if each.path == "access.RAGGED")
    first, other = (thresholds.Setting(np, threshold, value, "") for value in (8, 16))
    planners = thresholds.planners()
    case = threshold.probes[0].case._replace(problem=cases.along((2, 3), 1))
    x = np.ones((2, 3), np.float32)
    try:
        np.testing.assert_array_equal(other.call(case)(x), [3, 3])
        assert planners["access"].RAGGED == planners["rows.launch"].RAGGED == 16
    finally:
        np.testing.assert_array_equal(first.call(case)(x), [3, 3])
    assert planners["access"].RAGGED == planners["rows.launch"].RAGGED == 8


def test_thresholds_need_a_gpu(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(thresholds, "machine_here", Cpu)
    assert cli.main(["thresholds", "--results", str(tmp_path), "--output", str(tmp_path / "page.md")]) == 2
    assert "this needs a GPU" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_thresholds_that_are_measured_anew_leave_the_rows_of_others(tmp_path, monkeypatch):
    machine = SimpleNamespace(name="A GPU", folder="a-gpu", ladders=True)
    monkeypatch.setattr(thresholds, "machine_here", lambda: machine)

    def measured(us, commit, machine, threshold):
        row = {"threshold": threshold.path, "value": "1", "op": "sum", "strategy": "", "case": "float32 9"}
        return [{**row, "us": us, "others": {"2": 2 * us}, "commit": commit}]

    page = tmp_path / "page.md"
    for only, us, commit in ("", 2.0, "a" * 40), ("small.LEAST", 3.0, "b" * 40):
        monkeypatch.setattr(thresholds, "measured", partial(measured, us, commit))
        assert cli.main(["thresholds", "--only", only, "--results", str(tmp_path), "--output", str(page)]) == 0
    (document,) = accuracy.load_all(tmp_path)
    assert [row["threshold"] for row in document["rows"]] == [each.path for each in thresholds.THRESHOLDS]
    anew = {row["threshold"] for row in document["rows"] if row["us"] == 3.0 and row["commit"] == "b" * 40}
    assert anew == {each.path for each in thresholds.THRESHOLDS if "small.LEAST" in each.path}
    assert {row["us"] for row in document["rows"] if row["threshold"] not in anew} == {2.0}
    text = page.read_text(encoding="utf-8")
    assert f"commit {'a' * 10}, {'b' * 10} (+" in text
    assert "| `small.LEAST` | `1` | sum float32 9 | 3 | `2` 2.00 |" in text


def test_thresholds_page_is_up_to_date():
    assert thresholds.PAGE.read_text(encoding="utf-8") == thresholds.page(accuracy.load_all(thresholds.FOLDER))


class Broken(providers.Numpy):
    """A peer that raises a given failure, or returns wrong results."""

    name = "broken"

    def __init__(self, failure):
        super().__init__(np)
        self.failure = failure

    def call(self, case):
        def call(*operands):
            if isinstance(self.failure, Exception):
                raise self.failure
            return super(Broken, self).call(case)(*operands) + 1

        return call


def tiny(op="sum", group="axes"):
    return cases.shrunk(next(case for case in cases.cases(op) if case.group.name == group), 100)


def quiet(name):
    """A silent ``watch``."""


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (None, "wrong: an error of"),
        (MemoryError("17 GB"), "out of memory: 17 GB"),
        (ValueError("no\nsuch thing"), "ValueError: no"),
        (providers.Refused("only on Sundays"), "only on Sundays"),
        (RuntimeError("\x1b[91mred\x1b[0m"), "RuntimeError: red"),
    ],
    ids=str,
)
def test_failing_peers_are_reported_and_the_run_continues(failure, reason):
    record = harness.measure(Cpu(), tiny(), [Broken(failure), providers.Numpy(np)], quiet)
    assert list(results.timed(record)) == ["gpuops", "numpy"]
    (refused,) = (result for result in record["results"] if "refused" in result)
    assert refused["provider"] == "broken" and refused["refused"].startswith(reason)
    assert cli.wrong([record]) == []
    assert f"broken: {reason}" in show.line(record)
    assert show.cell(record, "broken") in ("wrong", "out of memory", "refuses")
    assert any(line.startswith("broken: ") for line in show.refusals([record]))


@pytest.mark.parametrize("group", [g for g in cases.SOFTMAX if g.ladder or not g.peers], ids=lambda group: group.name)
def test_strategies_run_in_ladder_and_comparison_groups(group, monkeypatch):
    machine = Cpu()
    monkeypatch.setattr(machine, "ladders", True)
    scipy = providers.Scipy(np)
    for case in [case for case in cases.cases("softmax") if case.group == group]:
        found = [provider.name for provider in harness.providers_of(machine, case, [scipy])]
        if not group.peers:
            assert found == ["gpuops", *(f"gpuops {name}" for name in group.strategies)]
        else:
            everyone = [f"gpuops {shown(name)}" for name in gpuops.strategies("softmax")]
            assert found == ["gpuops", "scipy", *(everyone if case.pick else [])]


def test_cases_out_of_memory_are_skipped(monkeypatch):
    def allocate(*arguments):
        raise MemoryError("Unable to allocate 8 TiB")

    monkeypatch.setattr(harness, "allocate", allocate)
    record = harness.measure(Cpu(), tiny(), [], quiet)
    assert record["skipped"] == "out of memory: Unable to allocate 8 TiB"
    assert "skipped: out of memory" in show.line(record)


def test_memory_pools_are_freed_before_a_case_is_skipped(monkeypatch):
    machine, freed = Cpu(), []
    machine.free = lambda: freed.append(True)
    allocate = harness.allocate

    def once(*arguments):
        if not freed:
            raise MemoryError
        return allocate(*arguments)

    monkeypatch.setattr(harness, "allocate", once)
    assert "gpuops" in results.timed(harness.measure(machine, tiny(), [], quiet))
    assert freed


def test_wrong_results_of_gpuops_fail_the_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(gpuops, "sum", lambda x, axis: np.sum(x, axis=axis) + 1)
    monkeypatch.setattr(cli, "machine_here", lambda hot: Cpu(hot))
    given = "--providers", "numpy", "--results", str(tmp_path)
    assert cli.main(["sum", "--cases", "axis pairs", "--elements", "99", *given]) == 1
    assert "gpuops: wrong: an error of" in capsys.readouterr().err


def test_missing_and_broken_peers_are_reported():
    class Absent(providers.Provider):
        name, module, distribution = "absent", "no_such_package.inner", "no-such-package"

    class Unusable(providers.Numpy):
        name = module = "json"

        def __init__(self, xp):
            raise OSError("libcudart.so.13: cannot open shared object file")

    assert providers.load(Absent, np) == "not installed (no-such-package)"
    assert providers.load(Unusable, np) == "cannot be used: libcudart.so.13: cannot open shared object file"


def placeholder(operand, dtype):
    """An array with the shape, strides and alignment of an operand, but without its memory."""
    form = arrays.LAYOUTS[operand.layout]
    memory = form.memory(operand.shape)
    bytes_ = np.empty(32, "u1")
    start = bytes_[-bytes_.ctypes.data % 16 :][: dtype.itemsize].view(dtype)
    strides = [dtype.itemsize * s for s in contiguous_strides(memory)]
    return form.view(np.lib.stride_tricks.as_strided(start, memory, strides), operand.shape)


def variants(op):
    """The kernels that gpuops compiles for all cases of ``expand`` or ``where``."""
    found = set()
    for case in cases.cases(op):
        shape, out = case.problem.shape, case.problem.out
        dtypes = [np.dtype("u1") if kind == "mask" else arrays.dtype_of(case.dtype) for kind in ops.OPS[op].data]
        operands = [placeholder(operand, dtype) for operand, dtype in zip(case.problem.operands, dtypes)]
        specs = [spec(f"operand_{i}", x) for i, x in enumerate(operands)]
        into = {"out": spec("out", placeholder(cases.Operand(shape, out), dtypes[-1]))} if out else {}
        more = (shape,) if op == "expand" else ()
        found |= {*describe(getattr(gpuops, op), *specs, *more, **into).plan.kernels}
    return found


def spec(name, x):
    """The spec of an array on a device; one without dims is a scalar."""
    value = None if x.shape else bytes(x.itemsize)
    return ArraySpec(name, x.shape, x.dtype, x.strides, Machine(132), x.ctypes.data % 16, value=value)


#: All reductions, searches, comparisons and scans, from the tables that gpuops itself goes by; and selections.
OF_TABLES = sorted({
    *records.REDUCTIONS, *records.MEASURES, *records.SEARCHES, *records.WITH_INDEX, "average", "vector_norm",
    *(name for name, _ in table.COMPARISONS), *scans.SCANS, "nonzero", "compress",
})  # fmt: skip


@pytest.mark.parametrize("op", OF_TABLES)
def test_every_op_of_the_tables_has_cases_and_a_row(op):
    found = [case for case in EVERY_CASE if case.op == op]
    assert any(case.pick for case in found) and {"float32", "bool"} & {case.dtype for case in found}
    assert any(case.op == op for case in HOST_CASES)
    assert op in providers.Gpuops.ops and op in ops.OPS
    classic = {"sum", "prod", "max", "min", "mean", "any", "all", *scans.SCANS, "nonzero", "compress"}
    assert bool(ops.OPS[op].beside) == (op not in classic)


def without_a_gpu(kind):
    """A peer for CPUs' arrays; skips the test if its library is not there."""
    pytest.importorskip(kind.module, reason=f"needs {kind.module}, which `make test PEERS={kind.module}` installs")
    return kind(np)


@contextlib.contextmanager
def jax_here():
    """JAX without the GPU that its provider asks for, and with 64 bits for a while."""
    jax = pytest.importorskip("jax")
    provider = object.__new__(providers.Jax)
    provider.xp, provider.jax, provider.array = np, jax, jax.numpy.asarray
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield provider
    finally:
        jax.config.update("jax_enable_x64", before)


#: How each peer is made; CuPy's functions are those of NumPy.
MADE = {
    "numpy": lambda: contextlib.nullcontext(without_a_gpu(providers.Numpy)),
    "torch": lambda: contextlib.nullcontext(without_a_gpu(providers.Torch)),
    "jax": jax_here,
}


@pytest.mark.turns(3, everywhere=True)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("op", OF_TABLES)
def test_every_op_of_the_tables_has_peers_that_compute_it(op, name):
    dtype = cases.TABLES[op][0].dtypes.split()[0]
    with MADE[name]() as provider:
        for case in (case for case in EVERY_CASE if case.op == op and case.pick and case.dtype == dtype):
            if not (isinstance(case.axis, tuple) and (op, name) == ("prod", "torch")):  # PyTorch's takes one
                check_peer(provider, cases.shrunk(case, 2**10))


def check_peer(provider, case):
    """A peer and gpuops must compute a case."""
    ours, arrays = providers.Gpuops(np), harness.ring_of(Cpu(hot=True), case)[0]
    expected, result = ops.expected(np, case, arrays), ours.call(case)(*arrays)
    other = provider.call(case)(*map(provider.array, arrays))
    assert [ops.check(np, expected, each) for each in (ours.wide(result), provider.wide(other))] == ["", ""]
    several = result if isinstance(result, tuple) else (result,)
    assert ops.nbytes(case)[1] == sum(np.asarray(part).nbytes for part in several)


#: Those of expressions; CuPy's functions are those of NumPy and SciPy, and what is fused is computed here as it is.
FUSED_BY = MADE | {
    "scipy": lambda: contextlib.nullcontext(without_a_gpu(providers.Scipy)),
    "numexpr": lambda: contextlib.nullcontext(without_a_gpu(providers.Numexpr)),
    "numba": lambda: contextlib.nullcontext(without_a_gpu(providers.Numba)),
    "cupy.fuse": lambda: contextlib.nullcontext(unfused()),
}  # fmt: skip


def unfused():
    """CuPy's provider of fused expressions, with NumPy."""
    provider = object.__new__(providers.CupyFuse)
    plain = {name: getattr(np, name) for name in ("sum", "mean", "max", "where", "asarray")}
    provider.xp, provider.special = SimpleNamespace(fuse=lambda kernel_name: lambda f: f, **plain), None
    return provider


@pytest.mark.parametrize("name", FUSED_BY)
@pytest.mark.parametrize("op", expressions.EXPRESSIONS)
def test_expressions_are_written_for_every_library(op, name):
    assert op in ops.OPS and op in providers.Gpuops.ops & providers.Cupy.ops & providers.TorchCompile.ops
    with FUSED_BY[name]() as provider:
        computed = 0
        for case in (case for case in EVERY_CASE if case.op == op and case.pick and op in provider.ops):
            if case.dtype in ("float16", "bfloat16") and name in ("numexpr", "numba"):
                with pytest.raises(providers.Refused, match="16 bits"):
                    provider.call(case)
            elif not (name == "cupy.fuse" and op in providers.SPECIAL):
                with contextlib.suppress(providers.Refused):
                    check_peer(provider, cases.shrunk(case, 2**10))
                    computed += 1
        fused = name == "cupy.fuse" and op in providers.SPECIAL
        assert bool(computed) == (op in provider.ops and not fused)


@pytest.mark.parametrize("op", expressions.EXPRESSIONS)
def test_checks_detect_operands_of_expressions_that_are_left_out(op):
    for case in (case for case in EVERY_CASE if case.op == op and case.pick and case.dtype == "float32"):
        case = cases.shrunk(case, 4096)
        arrays = harness.ring_of(Cpu(hot=True), case)[0]
        expected, ours = ops.expected(np, case, arrays), providers.Gpuops(np)
        assert not ops.check(np, expected, ours.wide(ours.call(case)(*arrays)))
        for i, array in enumerate(arrays):
            for other in (np.ones_like(array), array.ravel()[::-1].reshape(array.shape)):
                given = (*arrays[:i], other, *arrays[i + 1 :])
                assert ops.check(np, expected, ours.wide(ours.call(case)(*given))), (case.label, i)


def test_peers_that_compile_run_in_every_dtype():
    peer = Named("torch.compile")
    peer.compiles, peer.ops = True, providers.EVERY
    for op in ("sum", "squared_distance"):
        for case in cases.cases(op):
            assert peer in harness.providers_of(Cpu(), case, [peer])


def test_numbered_data_differ():
    for dtype in (np.float32, np.int32):
        x, again, y = (arrays.values(kind, np.dtype(dtype)) for kind in ("normal", "normal 0", "normal 1"))
        assert np.array_equal(x, again) and (x != y).mean() > 0.9


@pytest.mark.parametrize("op", OF_TABLES)
def test_cupy_has_every_op_of_the_tables(op):
    cupy = pytest.importorskip("cupy")
    assert op in providers.Cupy.ops and (hasattr(cupy, op) or op in providers.COMPOSED)


class CubInNumpy:
    """``cupy.cuda.cub`` in NumPy, no less strict: results have the array's dtype."""

    CUB_support_dtype_with_half = (
        np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64,
        np.complex64, np.complex128, np.float16,
    )  # fmt: skip

    def __init__(self):
        vars(self).update({f"CUPY_CUB_{op.upper()}": getattr(np, op) for op in providers.Cub.ops})

    def device_reduce(self, x, op, reduce_axis, out_axis):
        assert x.flags.c_contiguous and (reduce_axis, out_axis) == (tuple(range(x.ndim)), ())
        return np.asarray(op(x), None if op in (np.argmax, np.argmin) else x.dtype)

    def device_segmented_reduce(self, x, op, reduce_axis, out_axis, contiguous_size):
        assert op in (np.sum, np.prod, np.max, np.min) and x.flags.c_contiguous
        assert out_axis + reduce_axis == tuple(range(x.ndim)) and contiguous_size == x.shape[-1]
        return op(x, axis=reduce_axis).astype(x.dtype)


def cub_in_numpy():
    """The provider of CUB, with NumPy."""
    provider = object.__new__(providers.Cub)
    provider.xp, provider.cub = np, CubInNumpy()
    return provider


def case_of(op, shape, axis, dtype="float32", layout="C"):
    return cases.Case(op, cases.HOST, cases.along(shape, axis, layout), dtype, pick=False)


@pytest.mark.parametrize("op", sorted(providers.Cub.ops))
def test_cub_computes_whole_arrays_and_the_rows_of_reductions(op):
    rows = [((30, 20), 1), ((3, 5, 7), 2)] if op in providers.Cub.along_rows else []
    for shape, axis in [((700,), 0), ((700,), None), ((30, 20), None), *rows]:
        for layout in ("C", "[1:]"):
            for dtype in ("float32", "float64", "int64"):
                check_peer(cub_in_numpy(), case_of(op, shape, axis, dtype, layout))



WHOLE = "only over whole contiguous arrays"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (case_of("sum", (30, 20), 0), f"{WHOLE}, or along their rows"),
        (case_of("max", (3, 5, 7), 1), f"{WHOLE}, or along their rows"),
        (case_of("sum", (3, 5, 7), (1, 2)), f"{WHOLE}, or along their rows"),
        (case_of("sum", (30, 20), 1, layout="F"), f"{WHOLE}, or along their rows"),
        (case_of("sum", (700,), None, layout="[:, ::2]"), f"{WHOLE}, or along their rows"),
        (case_of("argmax", (30, 20), 1), WHOLE),
        (case_of("sum", (700,), None, "int32"), "its sum of int32 would be int32, not int64"),
        (case_of("prod", (30, 20), 1, "int8"), "its prod of int8 would be int8, not int64"),
        (case_of("max", (700,), None, "bool"), "CuPy does not call it for bool"),
        (case_of("argmin", (700,), None, "bfloat16"), "CuPy does not call it for bfloat16"),
        (case_of("max", (2**31,), None, "int8"), "counts elements in 32 bits: only fewer than 2³¹"),
        (case_of("max", (2**16, 2**15), 1, "int8"), "counts elements in 32 bits: only fewer than 2³¹"),
    ],
    ids=lambda value: value.label if isinstance(value, cases.Case) else "",
)
def test_cub_refuses_what_it_would_not_compute_alone(case, words):
    with pytest.raises(providers.Refused) as refusal:
        cub_in_numpy().call(case)
    assert str(refusal.value) == words


def test_cub_in_cupy_has_what_is_called():
    real, ours = pytest.importorskip("cupy.cuda.cub"), CubInNumpy()
    assert tuple(real.CUB_support_dtype_with_half) == ours.CUB_support_dtype_with_half
    assert all(hasattr(real, name) for name in (*vars(ours), *vars(CubInNumpy)) if not name.startswith("__"))
    assert isinstance(providers.load(providers.Cub, np), providers.Cub)


@pytest.mark.parametrize("op", ["argmax", "mean_var", "average", "array_equal"])
def test_another_op_of_gpuops_stands_beside_but_is_no_peer(op, documents):
    case = cases.shrunk(next(case for case in cases.cases(op) if case.dtype == "float32"), 100)
    record = harness.measure(Cpu(), case, [providers.Numpy(np)], quiet)
    beside = f"gpuops({ops.OPS[op].beside})"
    assert list(results.timed(record)) == ["gpuops", beside, "numpy"]
    assert conforms(documents[0] | {"cases": [record]})
    assert results.peers([record]) == ["numpy"] and not list(results.ladders([record]))
    assert show.comparison([record])[0][-2:] == [beside, "numpy"]


@pytest.mark.parametrize("op", [op for op in OF_TABLES if op.startswith("nan")])
def test_data_of_what_leaves_out_nan_has_some(op):
    (kind,) = ops.OPS[op].data
    share = np.isnan(arrays.values(kind, np.dtype(np.float32))).mean()
    assert share == pytest.approx(arrays.NANS, rel=0.1)
    assert arrays.values(kind, np.dtype(np.int8)).dtype == np.int8


def test_docs_give_the_number_of_broadcast_kernel_variants():
    text = " ".join((plot.PICTURES.parent / "kernels" / "broadcast.md").read_text(encoding="utf-8").split())
    counts = [sum(1 for _ in cases.cases(op)) for op in ("expand", "where")]
    kernels = [len(variants(op)) for op in ("expand", "where")]
    assert f"{counts[0]} cases of `expand` and {counts[1]} of `where`" in text
    assert f"take {kernels[0]} and {kernels[1]} variants" in text


def test_docs_give_the_reads_of_each_softmax_strategy():
    text = (report_text.KERNELS / "softmax.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    table = {name: row[3:] for row in lines for name in row[0].replace("`", "").split(", ")}
    assert set(table) == set(gpuops.strategies("softmax")) == set(ops.READINGS["softmax"])
    for name, (read, traffic) in table.items():
        for cols in (1, 1024):
            count = ops.READINGS["softmax"][name](cols)
            words = {"once": 1, "twice": 2, "3 times": 3, "2 · cols + 1 times": 2 * cols + 1}
            assert (words[read], eval(traffic.replace("·", "*"), {"cols": cols})) == (count, count + 1)


@pytest.mark.parametrize("provider", [providers.Gpuops, providers.Numpy])
@pytest.mark.parametrize("op", ["expand", "where"])
def test_broadcasts_write_into_out(op, provider):
    case = next(case for case in cases.cases(op) if case.problem.out)
    case = cases.shrunk(case, 1000)
    (*arrays, out), *_ = harness.ring_of(Cpu(), case)
    assert out.shape == case.problem.shape
    if op == "where" and provider is providers.Numpy:
        with pytest.raises(providers.Refused, match="no out="):
            provider(np).into(case)
        return
    assert provider(np).into(case)(*arrays, out) is out
    np.testing.assert_array_equal(out, ops.expected(np, case, tuple(arrays)).values)


@pytest.mark.parametrize("provider", [providers.Gpuops, providers.Numpy])
@pytest.mark.parametrize(
    "case",
    [case for case in HOST_CASES if case.problem.out and case.op not in cases.JOINT],
    ids=lambda case: f"{case.op} {case.label}",
)
def test_axis_ops_write_into_out(case, provider):
    (x, out), *_ = harness.ring_of(Cpu(), case)
    assert (out.shape, out.dtype) == (ops.OPS[case.op].shape(case), ops.result_dtype(case))
    if case.op in providers.SOFTMAX and provider is providers.Numpy:
        with pytest.raises(providers.Refused, match="no out="):
            provider(np).into(case)
        return
    assert provider(np).into(case)(x, out) is out
    assert ops.check(np, ops.expected(np, case, (x,)), ops.widened(np, out)) == ""


# The host's time


def host_case(how, op=None):
    return next(case for case in HOST_CASES if case.problem.how == how and op in (None, case.op))


def host_labels(*arguments):
    """The labels of the cases of ``bench --host`` without a GPU."""
    options = cli.arguments_of_run().parse_args(["--host", *arguments])
    return [f"{case.op} {case.label}" for case in cli.selected(options, Cpu())["host"]]


def test_host_cases_have_unique_labels_and_a_timing():
    labels = [(case.op, case.label) for case in HOST_CASES]
    assert len(set(labels)) == len(labels)
    assert {case.problem.how for case in HOST_CASES} == {*host.TIMINGS, *first_use.MEASURED}
    assert all((case.group == cases.FIRST_USE) == (case.problem.how in first_use.MEASURED) for case in HOST_CASES)
    for label in (
        "softmax float32 32×32 axis 1, out C",
        "sum float32 32×32",
        "where float32 32×32, scalar, scalar, new shapes",
        "pipeline float32 1024×1024 axis 1 where 1024×1024, replayed",
        "sum float32 32×32 axis 1, first call: nothing compiled",
        "sum float32 32×32 axis 1, array for the result",
        "softmax float32 32×32 axis 1, out C, tensors",
        "import over NumPy",
        "squared_distance float32 32×32, 32×32 axis 1, new number",
    ):
        assert tuple(label.split(" ", 1)) in labels


def test_host_cases_without_a_gpu():
    labels = host_labels()
    assert labels[-2:] == ["pipeline float32 32×32 axis 1 where 32×32, eager", "import over NumPy"]
    assert not any(word in label for label in labels for word in ("replayed", "first call", "launch", "tensors"))
    named = host_labels("sum", "where")
    assert {label.split()[0] for label in named} == {"sum", "where"}
    assert "sum float32 32×32 axis 0, new shapes" in named
    assert host_labels("--quick", "--cases", "new shapes") == [label for label in labels if "new shapes" in label]


class Shapes(providers.Numpy):
    """NumPy, which records the shapes that it is called with."""

    def __init__(self):
        super().__init__(np)
        self.seen = []

    def call(self, case):
        def call(*operands):
            self.seen.append(np.broadcast_shapes(*(x.shape for x in operands)))
            return function(*operands)

        function = super().call(case)
        return call


class Compiling(Shapes):
    name = "compiling"
    specialises = True


@pytest.mark.parametrize("op", ["sum", "where", "expand"])
def test_each_timed_new_shape_is_unseen(op, monkeypatch):
    every, timed = Shapes(), []
    host_seconds = host.host_seconds

    def watched(machine, subject):
        start = len(every.seen)
        seconds = host_seconds(machine, subject)
        timed.extend(every.seen[start:])
        return seconds

    timings = host.TIMINGS | {cases.NEW: host.TIMINGS[cases.NEW]._replace(clock=watched)}
    monkeypatch.setattr(host, "TIMINGS", timings)
    record = host.measure(Cpu(), host_case(cases.NEW, op), [every, compiling := Compiling()], quiet)
    assert list(results.timed(record)) == ["gpuops", "numpy"] and not compiling.seen
    assert len(set(timed)) == len(timed) == timing.ROUNDS * host.SAMPLES * host.NEW_CALLS
    assert not {*every.seen[: -len(timed)]} & {*timed}, "none had been seen before"
    assert all(33 <= rows < 600 for rows, *_ in timed)


class Replays(providers.Scipy):
    """SciPy with a fake graph: a replay calls again and writes to the captured result."""

    def __init__(self, wrong=0):
        super().__init__(np)
        self.wrong, self.replays = wrong, 0

    def captured(self, call):
        result = call()

        def replay():
            self.replays += 1
            result[...] = call() + self.wrong

        return replay, result, None


@pytest.mark.parametrize("how", [cases.REPLAYED, cases.REPLAYED_ON_GPU])
def test_graph_replays_are_timed(how):
    peer = Replays()
    record = host.measure(Cpu(), host_case(how), [peer], quiet)
    assert list(results.timed(record)) == ["scipy"], "NumPy captures nothing"
    assert record["results"][0]["refused"].startswith("AttributeError")
    assert peer.replays > timing.ROUNDS * host.SAMPLES * host.FEW_CALLS


def test_graph_replays_are_checked():
    record = host.measure(Cpu(), host_case(cases.REPLAYED), [Replays(wrong=1)], quiet)
    assert record["results"][1]["refused"].startswith("wrong: replayed, an error of")


TENSOR_CASES = [case for case in HOST_CASES if case.group == cases.TENSORS]


def test_gpuops_on_tensors_runs_only_in_the_tensors_group():
    everyone = [Named("numpy"), Named(providers.Tensors.name), Named("torch")]
    everyone[1].everywhere = providers.Tensors.everywhere
    for provider in everyone:
        provider.ops = {case.op for case in HOST_CASES}
    assert {case.op for case in TENSOR_CASES} == {"softmax", "sum", "where", "matmul"} <= providers.Tensors.ops
    for case in [*EVERY_CASE, *(case for case in HOST_CASES if case.group != cases.FIRST_USE)]:
        found = [provider.name for provider in harness.providers_of(Cpu(), case, everyone)]
        beside = [provider.name for provider in providers.beside(case.op, np)]
        if case.group == cases.TENSORS:
            assert found == ["gpuops", "gpuops(torch)", "torch"]
        else:
            assert found == ["gpuops", *beside, *(["numpy", "torch"] if case.group.peers else [])]


@pytest.mark.parametrize("case", TENSOR_CASES, ids=lambda case: f"{case.op} {case.label}")
def test_gpuops_on_tensors_is_reported_but_is_not_a_peer(case, torch, monkeypatch, documents):
    monkeypatch.setattr(host, "SAMPLES", 2)
    given = []
    op = getattr(gpuops, case.op)
    monkeypatch.setattr(gpuops, case.op, lambda *args, **options: given.append(type(args[-1])) or op(*args, **options))
    record = host.measure(Cpu(), case, [providers.Tensors(np), providers.Torch(np)], quiet)
    assert {kind.__name__ for kind in given} == {"ndarray", "Tensor"}
    assert conforms(documents[-1] | {"cases": [record]})
    found = results.timed(record)
    assert list(found) == ["gpuops", "gpuops(torch)", "torch"]
    for result in found.values():
        assert result["of_best_peer"] == pytest.approx(found["torch"]["us"] / result["us"], 1e-3)
    header, (row,) = show.comparison([record])
    assert header == ["case", "gpuops", "of reference", "of best peer", "gpuops(torch)", "torch"]
    assert row[-2] == show.digits(found["gpuops(torch)"]["us"])
    assert results.peers([record]) == ["torch"]
    assert not list(results.ladders([record])) and plot.strategies([record]) == []
    text = report_more.host_page({"cpu": [documents[-1] | {"cases": [record]}]})
    assert "### Tensors\n\n*tensors*: " in text and "| case | gpuops | of reference |" in text


@pytest.mark.parametrize("refusal", ["wrong: an error of 1", "TypeError: no tensors"])
def test_refused_tensors_fail_the_run(refusal):
    found = cli.wrong([{"case": "x", "results": [{"provider": providers.Tensors.name, "refused": refusal}]}])
    assert found == [f"x: gpuops(torch): {refusal}"]
    assert cli.wrong([{"case": "x", "results": [{"provider": "torch", "refused": refusal}]}]) == []


class FakeCupy:
    """The CuPy functions that a capture uses; records their calls."""

    def __init__(self):
        self.notes = []
        self.cuda = self

    def Stream(self, non_blocking):
        return self

    def __enter__(self):
        self.notes.append("enter")

    def __exit__(self, *failure):
        self.notes.append("exit")

    def __getattr__(self, name):
        return lambda: self.notes.append(name) or self


def test_calls_are_warmed_up_before_capture():
    streams = FakeCupy()
    launch, result, stream = providers.Gpuops(streams).captured(lambda: streams.notes.append("call") or "result")
    assert streams.notes == ["enter", "call", "synchronize", "begin_capture", "call", "end_capture", "exit"]
    assert (result, stream) == ("result", streams)
    launch()
    assert streams.notes[-1] == "launch"


def test_capture_failures_are_raised_and_end_the_capture():
    streams = FakeCupy()

    def call():
        if "begin_capture" in streams.notes:
            raise RuntimeError("not while a stream is captured")

    with pytest.raises(RuntimeError, match="not while"):
        providers.Gpuops(streams).captured(call)
    assert streams.notes[-2:] == ["end_capture", "exit"]


def test_steps_of_a_cached_call(device):
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    steps, kept = host.steps(gpuops.sum, device.array(numbers), axis=1)
    assert tuple(steps) == cases.CACHED_CALL_STEPS
    made, launched, result = (step() for step in steps.values())
    assert (made.shape, made.dtype) == ((2,), np.float32) and launched is None
    np.testing.assert_array_equal(device.numpy(result), [3, 12])
    target, _ = kept
    target[...] = 0
    steps["launch"]()
    np.testing.assert_array_equal(device.numpy(target), [3, 12])


class Named(providers.Numpy):
    """A peer that has only a name."""

    def __init__(self, name):
        super().__init__(np)
        self.name = name


@pytest.fixture
def processes(monkeypatch):
    """Records the processes that would have run, each a little faster than the one before."""
    run = []

    def process(before, start, use, variables=None):
        run.append((before, start, use, variables))
        for text in (before, start, use):
            compile(text, "script", "exec")
        return first_use.Seconds(1 / len(run), 2 / len(run))

    monkeypatch.setattr(first_use, "process", process)
    first_use.compiled.cache_clear()
    yield run
    first_use.compiled.cache_clear()


PEERS = [Named(name) for name in ("cupy", "torch", "jax")]


@pytest.mark.parametrize(
    ("how", "op", "lineup"),
    [
        (cases.IMPORT, "import", ["gpuops", "cupy", "torch"]),
        (cases.NOTHING_COMPILED, "softmax", ["gpuops"]),
        (cases.NOTHING_COMPILED, "sum", ["gpuops", "cupy"]),
        (cases.COMPILED_BEFORE, "sum", ["gpuops", "cupy", "torch"]),
        (cases.COMPILED_BEFORE, "where", ["gpuops"]),
        *((how, "squared_distance", ["gpuops", "jax"]) for how in cases.NEWS),
    ],
)
def test_first_uses_are_measured(how, op, lineup, processes, documents):
    record = host.measure(Cpu(), host_case(how, op), PEERS, quiet)
    assert list(results.timed(record)) == lineup and record["limit"]["name"] == "start"
    assert conforms(documents[-1] | {"cases": [record]})
    assert [result["us"] for result in record["results"]] == sorted((r["us"] for r in record["results"]), reverse=True)
    assert show.number(record, record["limit"]) == show.digits(record["limit"]["us"])


def test_first_uses_start_with_empty_then_filled_caches(processes):
    host.measure(Cpu(), host_case(cases.NOTHING_COMPILED, "sum"), PEERS, quiet)
    folders = [variables["GPUOPS_CACHE_DIR"] for *_, variables in processes]
    assert len(set(folders)) == len(folders) == 2 * first_use.REPEATS
    assert all(Path(folder).is_dir() for folder in folders)
    host.measure(Cpu(), host_case(cases.COMPILED_BEFORE, "sum"), PEERS[:1], quiet)
    again = [variables["GPUOPS_CACHE_DIR"] for *_, variables in processes[len(folders) :]]
    assert again == folders
    assert all(set(variables) == set(first_use.CACHES) for *_, variables in processes)


def test_libraries_that_fail_at_first_use_are_reported(monkeypatch):
    def process(before, start, use, variables=None):
        if "cupy" in use:
            raise RuntimeError("ImportError: libcudart.so.13")
        return first_use.Seconds(1.0, 2.0)

    monkeypatch.setattr(first_use, "process", process)
    record = host.measure(Cpu(), host_case(cases.IMPORT), PEERS, quiet)
    assert list(results.timed(record)) == ["gpuops", "torch"]
    assert record["results"][1]["refused"] == "RuntimeError: ImportError: libcudart.so.13"

    def fail(*arguments):
        raise RuntimeError("no more processes")

    monkeypatch.setattr(first_use, "process", fail)
    assert host.measure(Cpu(), host_case(cases.IMPORT), [], quiet)["skipped"] == "RuntimeError: no more processes"


def test_process_times_start_and_use_separately():
    seconds = first_use.process("import time", "time.sleep(0.01)", "time.sleep(0.5)", {"ANY": "thing"})
    assert 0.01 <= seconds.start < 0.5 <= seconds.use
    with pytest.raises(RuntimeError, match="^ValueError: no such thing$"):
        first_use.process("", "", "raise ValueError('no such thing')")
    assert first_use.imported("gpuops", "import", 0).use > 0


# Timing


@pytest.mark.parametrize(
    ("read", "written", "expected"),
    [(10, 10, 64), (100, 0, 40), (100, 5000, 40), (4000, 0, 2), (10**9, 10**9, 2), (0, 10**9, 2), (10, 2**31, 7)],
)
def test_ring_is_four_times_the_cache_within_limits(read, written, expected):
    assert timing.slots(read, written, cache=1000) == expected


class FakeMachine:
    """A machine with given samples."""

    def __init__(self, seconds, hidden=True):
        self.seconds, self.hidden = iter(seconds), hidden

    def sample(self, subject, results):
        return next(self.seconds), self.hidden


def test_median_spread_and_repeat():
    subject = timing.Subject(timing.Runner(), [lambda: None], fresh=False)
    machine = FakeMachine([1e-6, 2e-6, 3e-6, 4e-6, 3e-6, 4e-6, 5e-6, 6e-6])
    for _ in range(timing.ROUNDS):
        subject.sample(machine)
    result = subject.result()
    assert result["us"] == pytest.approx(3.5)
    assert result["repeat"] == pytest.approx((4.5 - 2.5) / 3.5, 1e-3)
    assert 0 < result["spread"] < 1
    assert result["host_hidden"]


def test_slow_calls_are_sampled_once_per_round():
    subject = timing.Subject(timing.Runner(), [lambda: None], fresh=False)
    subject.sample(FakeMachine([1.0], hidden=False))
    assert subject.samples == [[1.0]]
    assert not subject.hidden


def test_calls_cycle_through_the_ring_and_keep_results():
    made = []
    calls = [lambda i=i: made.append(i) or i for i in range(3)]
    subject = timing.Subject(timing.Runner(), calls, fresh=False, count=5)
    ring = [None] * 3
    assert subject.call(ring) == 1
    assert made == [0, 1, 2, 0, 1]
    assert ring == [0, 1, 2]


@pytest.mark.parametrize(
    ("seconds", "fresh", "count"),
    [(1e-6, False, timing.Runner.most), (1e-6, True, 5), (5e-5, False, 20), (2e-2, False, 2), (1.0, False, 1)],
)
def test_calls_per_sample_follow_from_the_time_of_one(monkeypatch, seconds, fresh, count):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: clock.now))

    def call():
        clock.now += seconds

    subject = timing.Subject(timing.Runner(), [call] * 5, fresh)
    subject.warm_up(lambda: None)
    assert subject.host == pytest.approx(seconds)
    assert subject.count == count


@pytest.mark.skipif(bool(NO_GPU), reason=NO_GPU)
def test_gpu_times_exclude_the_host():
    from benchmarks.machines import Gpu

    machine = Gpu()
    case = next(case for case in cases.cases("softmax") if case.label == "float32 4096×1152 axis 1")
    record = harness.measure(machine, case, [providers.load(providers.Cupy, machine.xp)], quiet)
    found = results.timed(record)
    assert all(result["host_hidden"] for result in found.values())
    assert all(0.01 < result["of_limit"] < 1.2 for result in found.values())
    assert machine.environment()["gpu"] == machine.name


# Compare


def altered(document, folder, change):
    """A file with a changed copy of the document."""
    copy = json.loads(json.dumps(document))
    change(copy)
    file = folder / "new.json"
    results.save(file, copy)
    return file


def slower(factor):
    def change(document):
        result = next(r for r in document["cases"][0]["results"] if r["provider"] == "gpuops")
        result.update(us=result["us"] * factor, spread=0.0, repeat=0.0)

    return change


@pytest.fixture
def old(documents, tmp_path):
    """A results file without noise."""
    document = json.loads(json.dumps(documents[0]))
    for case in document["cases"]:
        for result in case["results"]:
            result |= {"spread": 0.001, "repeat": 0.001}
    file = tmp_path / "old.json"
    results.save(file, document)
    return file


@pytest.mark.parametrize(
    ("factor", "status", "moved"), [(1.2, 1, 1), (1.06, 1, 1), (1.04, 0, 1), (1.0005, 0, 0), (0.5, 0, 1)]
)
def test_compare_fails_on_a_loss_above_five_percent(old, tmp_path, capsys, factor, status, moved):
    new = altered(results.load(old), tmp_path, slower(factor))
    assert cli.main(["compare", str(old), str(new)]) == status
    printed = capsys.readouterr().out
    assert f"{moved} results moved" in printed
    assert ("LOSS softmax" in printed) == bool(status)


def test_compare_ignores_noise_and_peers(old, tmp_path, capsys):
    def change(document):
        for result in document["cases"][0]["results"]:
            if result["provider"] == "gpuops":
                result.update(us=result["us"] * 1.2, spread=0.3)
            else:
                result["us"] *= 3

    assert cli.main(["compare", str(old), str(altered(results.load(old), tmp_path, change))]) == 0
    assert "1 results moved, 0 losses" in capsys.readouterr().out


def test_compare_distinguishes_a_slower_machine_from_a_loss(old, tmp_path, capsys):
    def change(document):
        for result in (document["cases"][0]["limit"], *document["cases"][0]["results"]):
            result.update(us=result["us"] * 1.3, spread=0.0, repeat=0.0)

    def and_lose(document):
        change(document)
        slower(1.2)(document)

    assert cli.main(["compare", str(old), str(altered(results.load(old), tmp_path, change))]) == 0
    assert "0 losses" in capsys.readouterr().out
    assert cli.main(["compare", str(old), str(altered(results.load(old), tmp_path, and_lose))]) == 1
    assert "the others -23.1 %" in capsys.readouterr().out


def test_compare_ignores_losses_in_times_that_include_the_host(old, tmp_path, capsys):
    def change(document):
        slower(2)(document)
        document["cases"][0]["results"][0]["host_hidden"] = False

    assert cli.main(["compare", str(old), str(altered(results.load(old), tmp_path, change))]) == 0
    assert "1 results moved, 0 losses" in capsys.readouterr().out


def test_compare_counts_a_missing_result_as_a_loss(old, tmp_path, capsys):
    def change(document):
        document["cases"][0]["results"][0] = {"provider": "gpuops", "refused": "wrong: everything"}

    assert cli.main(["compare", str(old), str(altered(results.load(old), tmp_path, change))]) == 1
    assert "gpuops has no result any more: wrong: everything" in capsys.readouterr().out


def test_compare_rejects_files_of_different_ops_or_machines(folder, tmp_path, capsys):
    softmax, where = folder / "cpu" / "softmax.json", folder / "cpu" / "where.json"
    assert cli.main(["compare", str(softmax), str(where)]) == 2
    assert "is of op softmax" in capsys.readouterr().err
    other = altered(results.load(softmax), tmp_path, lambda document: document["environment"].update(cpu="Z80"))
    assert cli.main(["compare", str(softmax), str(other)]) == 2
    assert "on Z80" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "rule"),
    [(None, "No such file"), (b"{", "is not JSON"), (b"[]", "is not a results file"), (b"\xff", "JSON")],
)
def test_compare_rejects_files_that_are_not_results(tmp_path, content, rule):
    file = tmp_path / "x.json"
    if content is not None:
        file.write_bytes(content)
    done = bench("compare", file, file)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and rule in done.stderr


# The command


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["sofmax"], "there is no op 'sofmax'; there are softmax, "),
        (["sum", "--providers", "numpy,matlab"], "there is no provider matlab; there are numpy, scipy"),
        (["sum", "--elements", "0"], "--elements"),
        (["sum", "--cases", "moon"], "no case of sum has 'moon' in its group or label"),
        (["plot", "--results", "/no/such/folder"], "there are no results in /no/such/folder"),
        (["report", "--results", "/no/such/folder"], "there are no results in /no/such/folder"),
    ],
)
def test_bad_arguments_are_reported(arguments, rule, tmp_path):
    done = bench(*arguments, *(() if "--results" in arguments else ("--results", tmp_path)))
    assert done.returncode == 2
    assert rule in done.stderr and "Traceback" not in done.stderr


def test_unwritable_folders_are_reported_before_measuring(tmp_path):
    (tmp_path / "file").touch()
    done = bench("sum", "--results", tmp_path / "file")
    assert done.returncode == 2
    assert "cannot write to" in done.stderr and "[1/" not in done.stdout


def test_selections_measure_only_what_was_asked_for(tmp_path):
    options = "--hot", "--quick", "--providers", "numpy", "--cases", "axes", "--elements", 500
    assert bench("sum", *options, "--results", tmp_path).returncode == 0
    document = results.load(tmp_path / "cpu" / "sum.hot.part.json")
    assert document["mode"] == "hot"
    assert document["selection"] == {"quick": True, "providers": "numpy", "cases": "axes", "elements": 500}
    assert all(case["group"] == "axes" and case["pick"] for case in document["cases"])
    assert all(list(results.timed(case)) == ["gpuops", "numpy"] for case in document["cases"])


def test_selections_never_replace_full_results():
    assert results.file_name("sum", "cold", {}) == "sum.json"
    assert results.file_name("sum", "hot", {}) == "sum.hot.json"
    assert results.file_name("sum", "hot", {"quick": True}) == "sum.hot.part.json"


def test_bench_without_the_repository_says_where_it_is(tmp_path):
    shutil.copytree(ROOT / "gpuops", tmp_path / "gpuops", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-m", "gpuops", "bench"], capture_output=True, text=True, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "in the repository" in done.stderr


def test_terminals_get_tables_and_progress(documents, capsys, monkeypatch):
    from rich.console import Console

    screen = show.Screen()
    screen.console = Console(width=200, force_terminal=True, highlight=False, markup=False)
    for document in documents:
        screen.table(document)
    with screen.progress("sum", 1) as watch:
        watch.start("a case")
        watch.provider("numpy")
        watch.done({})
    printed = capsys.readouterr().out
    assert "softmax (GB/s)" in printed and "of best peer" in printed and "µs per call" in printed


# Pictures and the page


def test_plots_are_reproducible_from_results_files(folder, tmp_path):
    assert cli.main(["plot", "--results", str(folder), "--output", str(tmp_path / "a")]) == 0
    assert cli.main(["plot", "--results", str(folder), "--output", str(tmp_path / "b")]) == 0
    names = [name for name, _ in plot.names(results.load_all(folder / "cpu"))]
    assert {"maps", "reductions", "softmax", "host"} <= set(names)
    for name in names:
        drawn = [(tmp_path / side / "cpu" / f"{name}.svg").read_bytes() for side in "ab"]
        assert drawn[0] == drawn[1] and b"<svg" in drawn[0]


def test_plots_omit_libraries_without_results(documents):
    import matplotlib.figure

    document = json.loads(json.dumps(documents[0]))
    document["environment"]["fp32_tflops"] = 1.0
    for case in document["cases"]:
        case["results"] = [result for result in case["results"] if result["provider"] == "gpuops"]
        case["results"] += [case["results"][0] | {"provider": f"gpuops {name}"} for name in ("naive", "block_tree")]
    drawn = {picture.name: picture.draw() for picture in plot.plan([document])}
    assert {"roofline", "softmax-ladder", "softmax"} <= set(drawn)
    assert all(isinstance(made, matplotlib.figure.Figure) for made in drawn.values())


def shown(strategy):
    """A strategy's name in results."""
    return strategy.replace("_host", " host")


def with_strategies(document, group, names):
    """A copy of the document in which strategies have times in the cases of a group."""
    made = json.loads(json.dumps(document))
    made["environment"]["fp32_tflops"] = 1.0
    for case in made["cases"]:
        if case["group"] == group:
            case["results"] += [case["results"][0] | {"provider": f"gpuops {name}", "us": 2.0} for name in names]
    return made


def drawn(document, name):
    return next(picture for picture in plot.plan([document]) if picture.name == name).draw()


def test_roofline_places_each_strategy_by_its_traffic(documents):
    names = [*map(shown, gpuops.strategies("softmax"))]
    document = with_strategies(documents[0], "tutorial", names)
    case = next(case for case in document["cases"] if case["group"] == "tutorial")
    case["pick"] = True
    rows, cols = case["operands"][0]["shape"]
    points = plot.rungs(case)
    assert list(points) == names
    assert all(speed == pytest.approx(5 * rows * cols / 2e6) for _, speed in points.values())
    for name, moved in (("naive", 2 * cols + 2), ("two_pass host", 4), ("block_online", 3), ("grid", 2)):
        assert points[name][0] == pytest.approx(5 / (4 * moved))
    axis = next(axis for axis in drawn(document, "softmax-roofline").axes if axis.get_title() == case["case"])
    _, *marks = axis.lines  # the first is the limit
    assert [mark.get_label() for mark in marks] == [name.replace(" host", ", finish on host") for name in names]
    assert [tuple(map(float, mark.get_xydata()[0])) for mark in marks] == list(points.values())


def test_plot_without_matplotlib_is_reported(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(plot.importlib.util, "find_spec", lambda name: None)
    assert cli.main(["plot", "--results", str(folder), "--output", str(tmp_path)]) == 2
    assert "pictures need matplotlib" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["plot", "report"])
def test_unwritable_output_is_reported(action, folder, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert cli.main([action, "--results", str(folder), "--output", str(tmp_path / "file" / "below")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_the_plot_of_host_times_shows_only_the_host_group(documents):
    document = documents[-1]
    assert {case["group"] for case in document["cases"]} == {"host", "new shapes"}
    text = report_more.host_page({"cpu": documents})
    assert "### New shapes\n" in text and "| expand float32 32×1 → 32×32, out C |" in text
    labels = [label.get_text() for label in drawn(document, "host").axes[0].get_yticklabels()]
    assert labels == [show.label(case) for case in document["cases"] if case["group"] == "host"]


def test_machines_without_a_gpu_have_pages(documents):
    made = report.pages({"cpu": documents})
    for family, op in (("Softmax", "softmax"), ("Reductions", "sum"), ("Maps", "where")):
        text = made[f"performance/{family.lower()}.md"]
        assert f"| [{family}](performance/{family.lower()}.md) | " in made["performance.md"]
        assert f"# {family}\n" in text and f"| `{op}` float32 | " in text
