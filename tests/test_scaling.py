"""``bench --gpus``: a run on two processes with tiny arrays, and its parts."""

import json
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

da = pytest.importorskip("dask.array", exc_type=ModuleNotFoundError)
pytest.importorskip("distributed", exc_type=ModuleNotFoundError)

from benchmarks import cases, cli, ops, providers, report, results, scaling, show  # noqa: E402
from benchmarks.machines import Cpu, Gpu  # noqa: E402
from tests.test_bench import altered, bench, conforms, quiet, slower  # noqa: E402

EVERY_CASE = [case for op in cases.TABLES for case in cases.scaling_cases(op)]
SMALL = [cases.shrunk(case, 1024) for case in EVERY_CASE if case.pick]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with results of two processes, named like those of a full run."""
    made = tmp_path_factory.mktemp("results")
    done = bench("--gpus", 2, "--elements", 1024, "--results", made, fast=True)
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stderr == "", "Dask is silent"
    (made / "cpu" / "scaling.part.json").rename(made / "cpu" / "scaling.json")
    return made


@pytest.fixture
def document(folder):
    return results.load(folder / "cpu" / "scaling.json")


def test_results_of_two_workers(document):
    assert conforms(document)
    assert (document["op"], document["mode"], document["unit"]) == ("scaling", "scaling", "GB/s")
    assert {"dask", "distributed"} <= document["environment"]["versions"].keys()
    assert {(case["op"], case["group"]) for case in document["cases"]} == {
        ("softmax", "row chunks"), ("softmax", "chunked axis"), ("softmax", "chunk sizes"), ("sum", "row chunks"),
        ("sum", "chunked axis"), ("where", "row chunks"),
    }  # fmt: skip
    for case in document["cases"]:
        (ours,), alone, work = case["results"], case["limit"], case["read_bytes"] + case["written_bytes"]
        assert ours["speed"] == pytest.approx(work * 1e-3 / ours["us"], 1e-3), "GB/s of all data"
        assert alone["speed"] == pytest.approx(2 * (work / 2) * 1e-3 / alone["us"], 1e-3), "twice what one reaches"
        assert ours["of_limit"] == pytest.approx(alone["us"] / ours["us"], 1e-3)
        for result in (alone, ours):
            assert result["wall_us"] >= result["us"] > result["overhead_us"] >= 0
            assert result["overhead_us"] > 0 or result["tasks"] == 1
        tasks = alone["tasks"], ours["tasks"]
        if case["group"] == "chunked axis":
            assert tasks[0] > case["chunks"] // 2 and tasks[1] > case["chunks"]
        else:
            assert tasks == (case["chunks"] // 2, case["chunks"]), "a task per chunk: operands were there before"


def test_schema_requires_the_fields_of_scaling_results(document):
    for change in (
        lambda case: case.pop("workers"),
        lambda case: case["limit"].pop("tasks"),
        lambda case: case["limit"].update(name="copy"),
        lambda case: case["results"][0].update(wall_us=0),
        lambda case: case["results"].append(case["results"][0] | {"provider": "gpuops x2"}),
    ):
        broken = json.loads(json.dumps(document))
        change(broken["cases"][0])
        assert not conforms(broken)
    assert not conforms(document | {"mode": "cold"})


def test_tables_are_shown_and_reported(document):
    case = document["cases"][0]
    case["chunk_bytes"] = 2**31
    case["limit"] |= {"speed": 6000.0, "overhead_us": 78.9}
    ours = {"speed": 5700.0, "of_limit": 0.95, "tasks": 32, "us": 12345.0, "wall_us": 45600.0, "overhead_us": 123.4}
    case["results"][0] |= ours
    ((title, header, rows),) = show.tables(document)
    assert title.startswith("GB/s on ") and len(rows) == len(document["cases"])
    assert dict(zip(header, rows[0], strict=True)) == {
        "case": f"softmax {case['case']}",
        "chunks of": "2 GiB",
        "1 ×": "3000",
        "2 ×": "5700",
        "of linear": "0.95",
        "tasks": "32",
        "ms": "12.3",
        "ms waited": "45.6",
        "idle µs, 1 ×": "78.9",
        "idle µs, 2 ×": "123",
    }
    text = f"above\n\n{report.BEGIN}old\n{report.END}below\n"
    made = report.guide("scaling", text, {"cpu": [document]})
    assert all(f"| {' | '.join(cells)} |\n" in made for cells in rows)
    assert all(f"*{name}*: {group['origin']}.\n" in made for name, group in document["groups"].items())
    assert "Not measured yet." in report.guide("scaling", made, {})
    document["cases"][0] = {k: v for k, v in case.items() if k not in ("limit", "results")} | {"skipped": "no power"}
    assert f"- {case['case']}: skipped: no power\n" in report.guide("scaling", text, {"cpu": [document]})


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(1, "1 B"), (1023, "1023 B"), (1024, "1 KiB"), (2**20, "1 MiB"), (3 * 2**29, "1.5 GiB"), (2**42, "4096 GiB")],
)
def test_sizes_have_binary_units(nbytes, text):
    assert show.size(nbytes) == text


def test_performance_page_excludes_scaling_results(document, folder):
    assert results.load_all(folder / "cpu") == [document]
    assert report.pages({"cpu": [document]}) == report.pages({})


def test_compare_finds_scaling_losses(document, tmp_path, capsys):
    for case in document["cases"]:
        for result in (case["limit"], *case["results"]):
            result |= {"spread": 0.001, "repeat": 0.001}
    results.save(old := tmp_path / "old.json", document)
    new = altered(document, tmp_path, slower(1.5))
    assert cli.main(["compare", str(old), str(old)]) == 0
    assert cli.main(["compare", str(old), str(new)]) == 1
    assert f"LOSS softmax {document['cases'][0]['case']}: gpuops" in capsys.readouterr().out


# Refusals


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--gpus", "0"], "argument --gpus: invalid positive value"),
        (["--gpus", "2", "--host"], "not allowed with argument"),
        (["--gpus", "2", "--providers", "numpy"], "--gpus measures gpuops alone"),
        (["matmul", "--gpus", "2"], "no case of matmul has anything for --gpus"),
        (["sum", "--gpus", "2", "--cases", "moon"], "no case of sum has 'moon' in its group or label"),
    ],
)
def test_bad_arguments_are_reported(arguments, rule, tmp_path, capsys):
    try:
        status = cli.main([*arguments, "--results", str(tmp_path)])
    except SystemExit as stopped:  # by argparse
        status = stopped.code
    assert status == 2
    assert rule in capsys.readouterr().err


@pytest.mark.parametrize("package", ["dask.array", "distributed"])
def test_without_dask_it_says_what_to_install(package, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(cli, "machine_here", lambda hot: Cpu(hot))
    assert cli.main(["--gpus", "2", "--results", str(tmp_path)]) == 2
    assert f"--gpus needs {package}: pip install 'gpuops-cupy[dask]'" in capsys.readouterr().err


def test_asking_for_too_many_gpus_raises():
    machine = SimpleNamespace(workers=lambda count: [{}], xp=np)
    with pytest.raises(results.Unusable, match="--gpus 2: there are 1 to be seen"), scaling.measuring(machine, 2):
        pass


@pytest.mark.parametrize(
    ("visible", "count", "names"),
    [(None, 2, ["0", "1"]), (None, 4, ["0", "1", "2"]), ("5,GPU-ab,7", 2, ["5", "GPU-ab"]), ("2", 2, ["2"])],
)
def test_each_worker_sees_one_gpu(visible, count, names, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    runtime = SimpleNamespace(getDeviceCount=lambda: len(visible.split(",")) if visible else 3)
    machine = SimpleNamespace(cupy=SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    assert Gpu.workers(machine, count) == [{"CUDA_VISIBLE_DEVICES": name} for name in names]


# What is measured


def test_chunk_sizes_match_their_group():
    sizes = [
        4 * cols * max(scaling.parts(case))
        for case in EVERY_CASE
        if case.group == cases.CHUNK_SIZES
        for rows, cols in [case.problem.operands[0].shape]
    ]
    assert [show.size(size) for size in sizes] == ["1 MiB", "4 MiB", "16 MiB", "64 MiB", "256 MiB", "1 GiB", "4 GiB"]
    for case in EVERY_CASE:
        assert len(set(scaling.parts(case))) == 1 and len(scaling.parts(case)) == case.problem.chunks
        whole = scaling.enlarged(case, 3)
        assert sum(scaling.parts(whole)) == 3 * sum(scaling.parts(case)) == whole.problem.operands[0].shape[0]
        assert scaling.parts(whole) == 3 * scaling.parts(case)
        assert sum(ops.nbytes(whole)) >= 2**30 and sum(ops.nbytes(case)) < 80e9, "fits into a GPU"
    labels = [(case.op, case.label) for case in EVERY_CASE]
    assert len(set(labels)) == len(labels)


def test_small_arrays_have_no_more_chunks_than_rows():
    for case in EVERY_CASE:
        small = cases.shrunk(case, 64)
        assert min(scaling.parts(small)) >= 1 and sum(scaling.parts(small)) == small.problem.operands[0].shape[0]


def operands(case):
    """The operands of a case as Dask arrays, in this process."""
    (_, cols), lengths = case.problem.operands[0].shape, scaling.parts(case)
    return [
        da.concatenate([
            da.from_array(scaling.chunk("numpy", kind, case.dtype, (length, cols), i + operand))
            for i, length in enumerate(lengths)
        ])
        for operand, kind in enumerate(ops.kinds(case))
    ]  # fmt: skip


@pytest.mark.parametrize("case", SMALL, ids=lambda case: f"{case.op} {case.group.name}")
def test_check_accepts_right_and_rejects_wrong_results(case):
    given = operands(case)
    right = providers.Gpuops(np).call(case)(*given)
    assert isinstance(right, da.Array) and scaling.fault(case, given, right) == ""
    count = 3 * right.shape[-1 if case.axis == 0 else 0] // 4
    late = [right[..., :count], right[..., count:] + 1] if case.axis == 0 else [right[:count], right[count:] + 1]
    end = da.concatenate(late, axis=-1 if case.axis == 0 else 0)
    for wrong in (right + 1, right[::-1], right * np.nan, end):
        assert scaling.fault(case, given, wrong)
    assert "shape" in scaling.fault(case, given, right[None])


def test_chunks_hold_different_data():
    first, second = (scaling.chunk("numpy", "normal", "float32", (4, 8), i) for i in range(2))
    assert first.shape == second.shape == (4, 8) and first.dtype == np.float32
    assert not (first == second).any()


def test_summary_of_a_run():
    logs = [[(10.0, 11.0), (11.5, 12.0)], [(10.5, 13.0)]]
    run = scaling.summary(logs, called=9.0, returned=14.0)
    assert run == scaling.Run(work=3.0, idle=pytest.approx((2 * 3.0 - 4.0) / 3), wall=5.0, tasks=3)
    assert scaling.summary(logs, called=9.0, returned=12.5).wall == 4.0, "a GPU may be at work after the answer"
    assert scaling.summary([[(1.0, 2.0)]], 0.0, 3.0).idle == 0
    with pytest.raises(scaling.Wrong, match="a worker had nothing to do"):
        scaling.summary([[(1.0, 2.0)], []], 0.0, 3.0)


def test_workers_record_task_intervals():
    executor = scaling.TimedThreadPoolExecutor()
    assert "ThreadPoolExecutor" in str(type(executor)), "Dask tells threads by it"
    before = scaling.time.time()
    assert executor.submit(pow, 2, 3).result() == 8
    with pytest.raises(ZeroDivisionError):
        executor.submit(lambda: 1 / 0).result()
    executor.shutdown()
    (first, second), after = executor.take(), scaling.time.time()
    assert before <= first[0] <= first[1] <= second[0] <= second[1] <= after
    assert executor.take() == []


class SlowGpu:
    """CuPy's events, on a fake GPU that takes a second per task."""

    def __init__(self):
        self.free = 0.0  # when all its work is done
        self.cuda = self
        self.synchronized = False

    def Event(self):
        return Event(self)

    def get_elapsed_time(self, first, second):
        assert self.synchronized
        return (second.reached - first.reached) * 1e3


class Event:
    def __init__(self, gpu):
        self.gpu = gpu

    def record(self):
        self.reached = self.gpu.free = max(self.gpu.free, scaling.time.time())

    def synchronize(self):
        self.gpu.synchronized = True


def test_gpu_workers_record_gpu_times(monkeypatch):
    gpu, now = SlowGpu(), [100.0]
    monkeypatch.setitem(sys.modules, "cupy", gpu)
    monkeypatch.setattr(scaling, "time", SimpleNamespace(time=lambda: now[0]))
    executor = scaling.GpuThreadPoolExecutor()

    def launch(seconds):
        gpu.free = max(gpu.free, now[0]) + 1.0  # of work
        now[0] += seconds  # of the host

    for seconds in (0.1, 0.1, 3.0, 0.1):
        executor.submit(launch, seconds).result()
    executor.shutdown()
    assert gpu.free == pytest.approx(104.2)
    found = executor.take()
    assert found == [pytest.approx(each) for each in [(100, 101), (101, 102), (102, 103.2), (103.2, 104.2)]]
    assert executor.take() == []


class FailingTeam:
    """A team that raises when it is to hold a case."""

    names = ("a", "b")

    def __init__(self, failure):
        self.failure = failure

    @contextmanager
    def holding(self, case):
        raise self.failure
        yield


@pytest.mark.parametrize(
    ("failure", "why", "fails"),
    [
        (MemoryError("64 GiB"), "out of memory: 64 GiB", False),
        (scaling.Wrong("an error of 1"), "wrong: an error of 1", True),
        (TypeError("no"), "TypeError: no", True),
    ],
)
def test_failing_cases_are_skipped_and_fail_the_run_unless_out_of_memory(failure, why, fails, document):
    record = scaling.measure(FailingTeam(failure), Cpu(), SMALL[0], [], quiet)
    assert record["skipped"] == why and f"skipped: {why}" in show.line(record)
    assert conforms(document | {"cases": [record]})
    assert bool(cli.wrong([record])) == fails
