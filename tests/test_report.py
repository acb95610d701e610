"""The pages that ``bench report`` writes: which cases count, what tables and sentences say, where links lead."""

import json
import re
from functools import cache
from pathlib import Path
from statistics import median

import pytest

import gpuops
from benchmarks import (
    on_cpu,
    plot,
    report,
    report_families,
    report_guides,
    report_method,
    report_more,
    report_summary,
    results,
    show,
)  # fmt: skip
from benchmarks.report_standing import STRONG, counts, kind, losses, shares, standing, tally
from benchmarks.report_text import DOCS, KERNELS, table

MACHINES = [folder.name for folder in plot.PICTURES.iterdir() if folder.is_dir()]
PUBLISHED = sorted(results.FOLDER / machine for machine in MACHINES)  # others are the user's


@cache
def published():
    return {folder.name: results.load_all(folder) for folder in PUBLISHED}


@cache
def pages():
    return report.pages(published(), on_cpu.found())


def document_of(op):
    """A copy of the published results of an op."""
    (found, *_) = published().values()
    return json.loads(json.dumps(next(document for document in found if document["op"] == op)))


def timed(name, us, best=None, noise=0.01):
    """A result."""
    ratios = {"of_limit": 1 / us, "of_best_peer": best}
    return {"provider": name, "us": us, "speed": 1 / us, "spread": noise, "repeat": 0.0, **ratios}


def case_of(op="sum", axis=1, limit="read", gpuops=1.0, **peers):
    """A case with these times."""
    others = {name.replace("_", "."): us for name, us in peers.items()}
    best = min(others.values()) / gpuops if others else None
    found = [timed("gpuops", gpuops, best), *(timed(name, us) for name, us in others.items())]
    what = {"op": op, "case": "a case", "group": "rows", "dtype": "float32", "axis": axis, "pick": True, "flop": 0}
    return what | {"limit": {"name": limit, "us": 1.0, "speed": 1.0}, "results": found}


# ---------------------------------------------------------------------------------------------------------- what counts


@pytest.mark.parametrize(
    ("ours", "best", "noise", "expected"),
    [(1.0, 2.0, 0.01, "faster"), (2.0, 1.0, 0.01, "slower"), (1.0, 1.005, 0.01, "even"), (1.0, None, 0.01, "alone")],
)
def test_standing_is_even_within_the_noise(ours, best, noise, expected):
    found = [{"provider": "gpuops", "us": ours, "spread": noise, "repeat": 0.0}]
    found += [{"provider": "numpy", "us": best, "spread": 0.0, "repeat": 0.0}] if best else []
    assert standing({"results": found}) == expected


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (case_of(cupy=5.0, torch=3.0), False),
        (case_of(cupy=5.0, torch=0.5), True),  # a loss always counts
        (case_of(cupy=5.0, torch_compile=3.0), True),
        (case_of(cupy=5.0, torch=1.2), True),  # 0.83 of the reference's speed
        (case_of(cub=5.0), False),
        (case_of("matmul", axis=None, limit="BLAS", cupy=5.0), True),
        (case_of("dot", axis=None, cupy=5.0), False),
        (case_of(limit="launch", torch=5.0), True),
        (case_of(numpy=5.0), True),
        (case_of(), False),
    ],
)
def test_a_case_counts_if_a_strong_peer_completed_it_or_gpuops_loses(case, expected):
    assert counts(case) == expected


def test_cases_of_weak_peers_are_in_no_median_and_tables_say_how_many():
    cases = [case_of(cupy=700.0), case_of(cupy=8.0, jax=2.0), case_of(cupy=8.0, jax=1.2)]
    ours = tally(cases)
    assert (ours.cases, ours.left_out, ours.of_best_peer, ours.of_cupy) == (3, 1, [2.0, 1.2], [700.0, 8.0, 8.0])
    numbers = ["1.00", "1.00", "8.00", "1.60", "1.20", "2 of 2", "0"]
    assert report_families.numbers(ours) == ["3", *numbers]
    assert report_families.numbers(ours, "900") == ["3", "900", *numbers]
    assert report_families.numbers(tally(cases[:1])) == ["1", "1.00", "1.00", "700.00", "–", "–", "–", "0"]
    header, rows = show.comparison(cases)
    assert [row[header.index("of best peer")] for row in rows] == ["–", "2.00", "1.20"]
    assert "of best peer" not in show.comparison(cases[:1])[0]


def test_losses_to_weak_peers_are_listed():
    slow = case_of(gpuops=2.0, torch=1.0, cupy=3.0)
    assert losses([case_of(jax=2.0), slow]) == [slow]
    assert [*report_families.lost([case_of(jax=2.0), slow])] == [
        "Slower than another library in 1 of 2 cases, these:\n", "- `sum` `a case`: 0.50 of torch\n",
    ]  # fmt: skip
    assert [*report_families.lost([case_of(jax=2.0)])] == []


def test_shares_are_those_of_cases_that_another_strong_peer_completed():
    cases = [case_of(cupy=4.0, jax=2.0), case_of(cupy=4.0), case_of(cub=8.0, torch=2.0, jax=4.0)]
    assert dict(shares([{"cases": cases}])) == {"cupy": [0.5], "torch": [1.0], "cub": [0.25]}
    product = case_of("matmul", cupy=2.0, jax=4.0)
    assert dict(shares([{"cases": [product]}])) == {"cupy in products": [1.0], "jax": [0.5]}


def test_published_shares_bear_the_rule_out():
    for documents in published().values():
        found = dict(shares(document for document in documents if document["mode"] == "cold"))
        medians = {name: sorted(values)[len(values) // 2] for name, values in found.items()}
        strong = {name: value for name, value in medians.items() if name in STRONG}
        assert strong and min(strong.values()) > 0.9 > max(medians[name] for name in medians.keys() - STRONG)


def test_kinds_of_peers_are_shown_in_the_method():
    text = report_method.method_page(published())
    for documents in published().values():
        for document in documents:
            for case in document["cases"] if document["mode"] == "cold" else ():
                assert all(f"| {kind(case, peer)} | " in text for peer in results.rivals(case))


# --------------------------------------------------------------------------------------------------------------- tables


def test_references_are_named_where_several_are_in_a_table():
    one, two = case_of(jax=2.0), case_of(limit="copy", jax=2.0)
    assert show.comparison([one, one])[1][0][2] == "1.00"
    assert [row[2] for row in show.comparison([one, two])[1]] == ["1.00 read", "1.00 copy"]


def test_other_ops_of_gpuops_share_a_column_if_there_are_several():
    one, two = case_of(jax=2.0), case_of(jax=2.0)
    one["results"].append(timed("gpuops(max)", 0.5))
    assert show.comparison([one])[0][-1] == "gpuops(max)"
    two["results"].append(timed("gpuops(sum)", 4.0))
    header, rows = show.comparison([one, two])
    assert header[-1] == "gpuops(max or sum)" and [row[-1] for row in rows] == ["2.00 max", "0.25 sum"]


def test_refusals_take_a_line_for_each_reason():
    def refused(name, why):
        return {"case": "x", "results": [{"provider": name, "refused": why}]}

    rule = "ValueError: softmax: strategy '{}' takes rows of at most 1024 elements, got {}"
    cases = [refused(f"gpuops {name}", rule.format(name, n)) for name in ("warp", "warp_pack2") for n in (4096, 8192)]
    cases += [refused("quack", f"AssertionError: Input N {n} is not divisible") for n in (781, 4099)]
    cases += [refused("jax", "has no out="), refused("cupy", "wrong: an error of 2e-06 where 1e-06 is allowed")]
    cases += [{"case": name, "skipped": "out of memory"} for name in "ab"]
    assert show.refusals(cases) == [
        "warp, warp_pack2: takes rows of at most 1024 elements (4 results)",
        "quack: AssertionError: Input N … is not divisible (2 results)",
        "jax: has no out= (1 result)",
        "cupy: wrong: an error of 2e-06 where 1e-06 is allowed (1 result)",
        "a, b: skipped: out of memory",
    ]
    many = [refused(f"gpuops s{letter}", "no") for letter in "abcdefghij"]
    assert show.refusals(many) == ["sa, sb, sc, sd, se, sf, sg, sh and 2 more: no (10 results)"]


def headers(text):
    return [above.strip("| ").split(" | ") for above in re.findall(r"^(\| .+ \|)\n\| ---", text, re.MULTILINE)]


@pytest.mark.parametrize("name", pages())
def test_tables_are_narrow_and_call_a_reference_no_limit(name):
    for header in headers(pages()[name]):
        assert len(header) <= 10 and not any("limit" in cell for cell in header)


# ------------------------------------------------------------------------------------------------------------ sentences


def test_a_page_begins_with_the_result_in_words():
    cases = [case_of(cupy=700.0), case_of(gpuops=0.5, jax=1.0), case_of(gpuops=2.0, jax=1.0)]
    document = {"op": "sum", "mode": "cold", "environment": {"gpu": "NVIDIA X", "cpu": "Y"}, "cases": cases}
    assert report_families.sentence(document, cases) == (
        "On an NVIDIA X, these ops run at 1.00 times the speed of their reference (a sum of as many bytes by CUB), in "
        "the median of 3 cases. Compared with the fastest other library, gpuops is faster in 1, even in 0 and slower "
        "in 1, of the 2 cases that a [strong peer](method.md#strong-peers) completed: 1.25 times as fast in the "
        "median, 0.50 times at worst."
    )
    assert report_families.sentence(document, cases[:1]).endswith("No strong peer completed any of them.")
    assert report_families.sentence(document, []) == "On an NVIDIA X, no case was completed."


def test_the_first_page_says_when_another_library_is_the_better_choice():
    win, loss = case_of(jax=2.0), case_of(gpuops=2.0, jax=1.0)
    assert report_summary.lost({"sum": [win]}) == report_summary.even({"sum": [win]}) == ""
    assert "1 of 2 do; these are [sum](performance/reductions.md) `a case` 0.50 (jax)" in report_summary.lost(
        {"sum": [win, loss]}
    )
    assert "in [sum](performance/reductions.md) (0.50)" in report_summary.even({"sum": [loss]})
    assert "0.50 times the speed of the fastest other library in the 1 case of these" in report_summary.exact(
        {"sum": [loss], "max": [win]}
    )
    assert report_summary.exact({"max": [win]}) == ""
    assert report_summary.far({"sum": [win, loss]}) == ""  # at half the speed of its reference
    assert "In 1 of 1 cases" in report_summary.far({"sum": [case_of(gpuops=4.0, jax=8.0)]})


def test_the_first_page_says_what_tiny_arrays_and_first_calls_cost():
    document = document_of("host")
    host, new = (report_more.of_group(document, name)[:1] for name in ("host", "new shapes"))
    for case, ours in ((host[0], 3.0), (new[0], 9.0)):
        case["results"] = [timed("gpuops", ours), timed("torch", 2.0)]
    text = report_summary.tiny(document | {"cases": [*host, *new]})
    assert (
        "PyTorch's is shorter in 1 of 1 calls" in text and "1.50 times as long" in text and "4.5 times as long" in text
    )
    host[0]["results"][0]["us"] = 1.0
    assert report_summary.tiny(document | {"cases": host}) == ""
    assert report_summary.compiled("another", document | {"cases": []}) == ""
    (folder, *_) = published()
    said = report_summary.compiled(folder, document_of("host"))
    assert "[First calls](performance/first-calls.md) compile." in said and "calls of random shapes" in said


def test_machines_have_sections_of_their_own():
    here = [document_of("softmax"), document_of("host")]
    there = json.loads(json.dumps(here))
    for document in there:
        document["environment"]["gpu"] = "Another GPU"
    made = report.pages({"a-gpu": here, "b-gpu": there})
    machines = [show.machine_name(document) for document in (here[0], there[0])]
    for name in ("performance.md", "performance/host.md", "performance/first-calls.md"):
        assert all(f"## {machine}\n" in made[name] for machine in machines)
    tabs = made["performance/softmax.md"].partition("<!-- tabs -->\n")[2]
    assert re.findall(r"^\*\*(.+)\*\*$", tabs, re.MULTILINE) == machines
    assert "(b-gpu/softmax.svg)" in tabs
    assert made["performance.md"].count("| [Softmax](performance/softmax.md) | ") == 2


def test_the_first_page_says_what_holds_on_every_machine():
    win, loss = case_of(jax=2.0), case_of(gpuops=2.0, jax=1.0) | {"case": "another"}
    document = {"op": "sum", "environment": {"gpu": "NVIDIA X", "cpu": "Y"}, "cases": [win, loss]}
    other = document | {"environment": {"gpu": "NVIDIA Z", "cpu": "Y"}, "cases": [win, loss, case_of() | {"case": "c"}]}
    text = "".join(report_summary.everywhere([[document], [other]]))
    assert "Of 2 cases that a [strong peer]" in text and "an NVIDIA X and an NVIDIA Z" in text
    assert "faster than every other library in 1 on all" in text
    assert "- [sum](performance/reductions.md) `another`" in text
    assert [*report_summary.everywhere([[document], []])] == []


def test_several_gpus_have_a_page_of_their_own():
    softmax, scaling = document_of("softmax"), document_of("scaling")
    assert report.pages({"a-gpu": [softmax, scaling]}) == report.pages({"a-gpu": [softmax]})
    assert report.pages({"a-gpu": [scaling]}) == report.pages({})


def test_groups_of_host_times_have_tables_and_first_uses_another_page():
    document = document_of("host")
    text = report_more.host_page({"a-gpu": [document]})
    for name, group in document["groups"].items():
        words = " ".join(f"*{name}*: {group['origin']}.".split())
        assert (words in " ".join(text.split())) == (name not in ("host", "first use"))
    report_more.of_group(document, "tensors")[0]["results"].append({"provider": "numpy", "refused": "takes no tensors"})
    assert "\n- numpy: takes no tensors (1 result)\n" in report_more.host_page({"a-gpu": [document]})
    assert "| import over NumPy | " in report_more.first_calls_page({"a-gpu": [document]})


# --------------------------------------------------------------------------------------------------------------- guides


def test_crossing_is_where_a_block_beats_a_warp():
    times = {  # by row length
        "block_online": lambda n: 2 * n,
        "block_shared": lambda n: 500,
        "warp": lambda n: n,
        "warp_pack2": lambda n: 4 * n,
        "warp_pack4": lambda n: 4 * n if n != 512 else 1,
        "warp_pack8": lambda n: 1,
    }
    members = [
        {
            "operands": [{"shape": [1, n]}],
            "results": [{"provider": f"gpuops {name}", "us": us(n)} for name, us in times.items()],
        }
        for n in range(32, 1025, 32)
    ]
    found = {name: report_guides.crossing(members, name) for name in times if name.startswith("warp")}
    assert found == {
        "warp": "512 (block_shared)",
        "warp_pack2": "32 (block_online)",
        "warp_pack4": "544 (block_shared)",
        "warp_pack8": "not up to 1024",
    }


def test_softmax_guide_table_comes_from_the_results():
    text = (KERNELS / "softmax.md").read_text(encoding="utf-8")
    document = document_of("softmax")
    for case in document["cases"]:
        if case["group"] == "warp or block":
            case["results"] = [timed("gpuops", 1.0), timed("gpuops block_shared", 2.0), timed("gpuops warp_pack4", 2.0)]
    made = report.guide("softmax", text, {"cpu": [document]})
    assert "| warp_pack4 | 4 | not up to 1024 | not up to 1024 |\n" in made
    bare = document | {"cases": []}
    assert "Not measured yet." in report.guide("softmax", text, {"cpu": [bare]})
    assert report.guide("softmax", made, {"cpu": [bare]}) == report.guide("softmax", text, {"cpu": [bare]})


def test_scan_ladder_table_has_a_column_for_each_case():
    times = {"gpuops warp": 8.0, "gpuops look_back": 2.0}
    found = [{"provider": name, "us": us, "speed": 1000 / us, "of_limit": 1 / us} for name, us in times.items()]
    cases = [
        {"case": "float32 1048576×64 axis 1", "results": found},
        {"case": "float32 268435456 axis 0", "results": found[1:]},
    ]
    document = {"op": "cumsum", "mode": "cold", "unit": "GB/s", "date": "2026-01-02", "cases": cases}
    document["environment"] = {"cpu": "CPU", "gpu": "NVIDIA H200"}
    made = report_guides.climbed("gpu", document)
    assert "| warp | 125 (12%) | – |" in made and "| look_back | 500 (50%) | 500 (50%) |" in made
    assert "(../performance/gpu/cumsum-ladder.svg)" in made
    assert report_guides.climbed("gpu", document | {"cases": []}) == ""


def test_matmul_ladder_table_has_reference_rates():
    speeds = {"gpuops": 52.0, "gpuops naive": 0.5, "gpuops pipelined": 52.0}
    found = [{"provider": name, "us": 1.0, "speed": speed, "of_limit": speed / 50} for name, speed in speeds.items()]
    case = {"group": "squares", "operands": [{"shape": [4092, 4092]}], "results": found}
    document = {"cases": [case], "environment": {"cpu": "CPU"}, "date": "2026-01-01T00:00"}
    made = report_guides.rates("gpu", document)
    assert "| naive | 0.5 (1.0%) | 3.9% |\n" in made and "| pipelined | 52 (104.0%) | – |\n" in made
    assert report_guides.rates("gpu", document | {"cases": []}) == ""
    assert list(report_guides.REFERENCE) == [*gpuops.strategies("matmul")[: len(report_guides.REFERENCE)]]


@pytest.mark.parametrize("marker", [report.BEGIN, report.END])
def test_guide_without_table_markers_raises(marker):
    """Text after an unterminated table would be lost."""
    text = f"above\n\n{report.BEGIN}old\n{report.END}below\n"
    assert report.guide("softmax", text, {}) == f"above\n\n{report.BEGIN}Not measured yet.\n{report.END}below\n"
    with pytest.raises(ValueError, match="lacks a line"):
        report.guide("softmax", text.replace(marker, ""), {})


def test_the_readme_has_the_cases_that_were_measured():
    documents = [document_of("softmax"), document_of("sum") | {"cases": []}]
    text = report.guide("front", f"{report.BEGIN}{report.END}", {"gpu": documents})
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) == 2 and all(line.startswith("| `softmax` of float32 ") for line in rows)
    assert "Not measured yet." in report.guide("front", text, {"gpu": documents[1:]})


def test_the_home_page_has_the_medians_of_the_results():
    page = " ".join((DOCS / "index.md").read_text(encoding="utf-8").split())
    (cold,) = ([each for each in every if each["mode"] == "cold"] for every in published().values())
    cupy = [gain for document in cold for gain in tally(document["cases"]).of_cupy]
    moved = [gain for each in cold if each["unit"] == "GB/s" for gain in tally(each["cases"]).of_reference]
    assert f"**{median(cupy):.1f} times as fast as CuPy** in the median of {len(cupy)} cases" in page
    assert f"in the median of {len(moved)} cases at {median(moved):.2f} times the speed of a plain copy" in page


def test_every_drawing_is_shown_in_a_guide():
    """In one beside it, or those of exact sums on their page."""
    guides = "".join(page.read_text(encoding="utf-8") for page in KERNELS.glob("*.md"))
    exact = (KERNELS.parent / "exact.md").read_text(encoding="utf-8")
    for drawing in KERNELS.glob("*.svg"):
        text, place = (exact, "kernels/") if drawing.name.startswith("exact-") else (guides, "")
        assert f"({place}{drawing.name})" in text


# ------------------------------------------------------------------------------------------------------- what is there


def anchors(text):
    """The fragments that lead to the headings of a page, as GitHub makes them."""
    found = []
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return set(found)


@pytest.mark.parametrize("name", pages())
def test_links_of_pages_lead_somewhere(name):
    links = re.findall(r"\]\(([^)\s]+)\)", " ".join(pages()[name].split()))
    assert links
    for link in links:
        path, _, fragment = link.partition("#")
        there = (DOCS / name).parent / path if path else DOCS / name
        assert there.exists(), link
        assert not fragment or fragment in anchors(there.read_text(encoding="utf-8")), link


def test_published_pages_are_up_to_date():
    for name, text in pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, "run python -m gpuops bench report"
    assert {f"performance/{file.name}" for file in plot.PICTURES.glob("*.md")} == {*pages()} - {"performance.md"}
    for op, path in report.guides():
        guide = path.read_text(encoding="utf-8")
        assert guide == report.guide(op, guide, published()), "run python -m gpuops bench report"


def test_published_pictures_are_up_to_date_and_shown():
    guides = [*KERNELS.glob("*.md"), DOCS / "index.md"]
    text = "".join([*pages().values(), *(guide.read_text(encoding="utf-8") for guide in guides)])
    for folder, found in published().items():
        there = {file.stem for file in (plot.PICTURES / folder).glob("*")}
        assert there == {picture.name for picture in plot.drawn(folder, found)}, "run python -m gpuops bench plot"
        assert all(f"{folder}/{name}.svg)" in text for name in there)
    assert {file.name for file in plot.PICTURES.glob("*.svg")} == {f"{plot.ON_CPU.name}.svg"}


def test_tables_align_numbers_to_the_right():
    assert table(("op", "µs"), [("sum", "1")]) == "| op | µs |\n| --- | ---: |\n| sum | 1 |\n"


def test_pages_are_written_below_a_folder(tmp_path, capsys):
    assert report.main(["--output", str(tmp_path)]) == 0
    written = {str(Path(file).relative_to(tmp_path)) for file in capsys.readouterr().out.splitlines()}
    assert written == {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.md")} == {*pages()}
