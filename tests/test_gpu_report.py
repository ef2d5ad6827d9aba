"""What measures on a GPU, and what makes a page of it: all of it that a CPU can prove."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lesson_lib.device import on
from lesson_lib.masks import window
from lesson_lib.truncated import attend_window
from tests.gpu import bench, report

ROOT = Path(__file__).resolve().parents[1]
CPU = torch.device("cpu")

UNIT = """<testsuites><testsuite name="pytest" timestamp="2026-01-02T03:04:05.6+00:00">
<testcase classname="tests.test_a" name="test_one" time="0.5"/>
<testcase classname="tests.test_a" name="test_two" time="0.25"><failure message="assert 1 == 2&#10;more">text</failure></testcase>
<testcase classname="tests.test_a" name="test_two" time="0.5"/>
<testcase classname="tests.test_b" name="test_three" time="0"><skipped message="no GPU"/></testcase>
<testcase classname="tests.test_b" name="test_four" time="2"><error message="OSError: /home/somebody/file.txt is not there"/></testcase>
</testsuite></testsuites>"""  # noqa: E501
DIFFERS = (
    "#x1B[91mNotebook cell execution failed#x1B[0m&#10;#x1B[94mCell 1: Cell outputs"
    " differ&#10;&#10;Input:&#10;#x1B[0mprint(2)&#10; assert reference_output == test_output"
    " failed:&#10;&#10;  '3' == '2'&#10;  - 2&#10;#x1B[0m&#10;"
)
RAISES = (
    "#x1B[91mfailed#x1B[0m&#10;Cell 0: Cell execution caused an"
    " exception&#10;&#10;Input:&#10;1/0&#10;&#10;ZeroDivisionError: by zero&#10;"
)
NOTEBOOKS = f"""<testsuites><testsuite name="pytest" timestamp="2026-01-02T04:05:06.7+00:00">
<testcase classname="notebooks.00_start.ipynb" name="Cell 0" time="1.5"/>
<testcase classname="notebooks.00_start.ipynb" name="Cell 1" time="0.25"><failure message="{DIFFERS}"/></testcase>
<testcase classname="notebooks.exercises.01_x.ipynb" name="Cell 0" time="3"><failure message="{RAISES}"/></testcase>
<testcase classname="" name="notebooks.02_broken.ipynb" time="0"><error message="collection failure">a/b.py: in read
E   NotJSONError: no notebook</error></testcase>
</testsuite></testsuites>"""  # noqa: E501
ON_THE_CPU = NOTEBOOKS.replace('time="1.5"', 'time="10"').replace("exercises.01_x", "exercises.07_only_here")
ROW = {
    "table": "window",
    "peer": "flex_attention",
    "dtype": "bf16",
    "pass": "forward",
    "n": 4096,
    "radius": 64,
    "quick": False,
}
BENCH = {
    "date": "2026-01-02 05:06 UTC", "quick": False, "seconds": 61.234,
    "allowed": {"fp32": 1e-4, "bf16": 5e-2},
    "device": {"kind": "cuda", "name": "A card for this test", "memory_gib": 12.345, "processors": 7},
    "python": "3.12.1", "torch": "2.11.0", "cuda": "12.8", "tf32": False,
    "packages": {"triton": "3.5", "torch_geometric": None},
    "ceilings": {},
    "rows": [
        {"table": "ceilings", "what": "product", "dtype": "bf16", "n": 8192, "ours": {"ms": 2.0},
        "tflops": 512.3456},
        {"table": "ceilings", "what": "launch", "dtype": "bf16", "ours": {"ms": 0.004}},
        {**ROW, "ours": {"ms": 1.23456, "peak_mib": 100.0}, "theirs": {"ms": 0.5, "peak_mib": 7.0},
        "ratio": 2.46912, "agree": True,
         "difference": 0.001, "allowed": 0.01, "tflops": 12.0, "of_product": 0.0234567, "gb_per_s": 900.0,
         "of_copy": 0.45},
        {**ROW, "n": 8192, "ours": {"ms": 2.0}, "theirs": {"ms": 1.0}, "ratio": 2.0, "agree": False,
        "difference": 0.3, "allowed": 0.01},
        {**ROW, "peer": "local-attention", "ours": {"ms": 2.0},
        "theirs": {"words": "not there: local-attention"}},
        {**ROW, "peer": "local-attention", "n": 65536, "words": "not measured: the time was up"},
        {**ROW, "peer": "local-attention", "n": 16384},
    ],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What a whole run leaves; RESULTS.md is another file than the project's."""
    monkeypatch.setattr(report, "RESULTS", tmp_path / "RESULTS.md")
    left = tmp_path / "left"
    left.mkdir()
    for name, text in {
        "unit.xml": UNIT,
        "notebooks.xml": NOTEBOOKS,
        "notebooks_cpu.xml": ON_THE_CPU,
        "bench.json": json.dumps(BENCH),
    }.items():
        (left / name).write_text(text)
    return left


def cells(page, start):
    """The cells of the table row that begins with that cell."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("|")
    ]
    return next(row for row in rows if row[: len(start)] == start)


def test_page_of_a_run_on_a_gpu_has_its_numbers(folder):
    assert report.main([str(folder)]) == 0
    page = report.RESULTS.read_text()
    assert page.startswith("# A run on a GPU\n")
    for what, which in {
        "date of the benchmark": "2026-01-02 05:06 UTC",
        "date of the unit tests": "2026-01-02 03:04",
        "date of the notebooks": "2026-01-02 04:05",
        "GPU": "A card for this test, 12.3 GiB",
        "torch": "2.11.0",
        "CUDA": "12.8",
        "Python": "3.12.1",
        "processors": "7",
        "TF32": "off",
        "other libraries": "triton 3.5",
        "not there": "torch_geometric",
    }.items():
        assert cells(page, [what]) == [what, which]
    assert "4 tests: 1 passed, 2 failed, 1 skipped; 3.25 s" in page
    assert cells(page, ["00_start"]) == ["00_start", "1 of 2", "10.2", "1.75"]
    assert cells(page, ["exercises/01_x"])[1:] == ["0 of 1", "–", "3.00"]
    assert cells(page, ["exercises/07_only_here"])[1:] == ["not run", "3.00", "–"]
    assert cells(page, ["all 4"])[1:] == ["1 of 4", "13.2", "4.75"]
    assert "seconds on the GPU" in page
    assert cells(page, ["bf16"]) == ["bf16", "512", "not measured", "4.00"]
    first = cells(page, ["flex_attention", "4096"])
    assert first[2:] == [
        "64",
        "bf16",
        "forward",
        "1.23",
        "0.500",
        "2.47",
        "100",
        "7.00",
        "0.00100",
        "12.0",
        "0.0235",
        "900",
        "0.450",
        "",
    ]
    assert report.report(folder, report.RESULTS) == page, "the same files give the same page"


def test_failures_are_named_with_their_reason(folder):
    page = report.report(folder, report.RESULTS)
    assert "- `tests.test_a` `test_two`: assert 1 == 2\n" in page
    assert "- `tests.test_b` `test_four`: OSError: file.txt is not there\n" in page, (
        "without the machine's folder"
    )
    assert "- 00_start, Cell 1: Cell outputs differ: '3' == '2'\n" in page
    assert (
        "- exercises/01_x, Cell 0: Cell execution caused an exception: ZeroDivisionError: by zero\n" in page
    )
    assert "- 02_broken: NotJSONError: no notebook\n" in page
    assert "x1B" not in page


def test_notes_say_what_was_not_measured_and_what_differs(folder):
    page = report.report(folder, report.RESULTS)
    assert cells(page, ["flex_attention", "8192"])[-1] == "THE TWO DIFFER, by more than 0.0100"
    assert "**In 1 of them the two sides differ by more than is allowed" in page
    assert "2 of 5 comparisons were measured on both sides, in 61.2 s" in page
    assert cells(page, ["local-attention", "4096"])[-1] == "theirs: not there: local-attention"
    assert cells(page, ["local-attention", "65536"])[-1] == "not measured: the time was up"
    assert cells(page, ["local-attention", "16384"])[-1] == "not measured: the run ended before"
    assert page.count("Not measured: bench.json has no row of it.") == 4


@pytest.mark.parametrize(
    "file, sentence",
    [
        ("unit.xml", "The unit tests were not run: unit.xml is not there."),
        ("notebooks.xml", "The notebooks were not run: notebooks.xml is not there."),
        ("notebooks_cpu.xml", "On the CPU they were not run: notebooks_cpu.xml is not there."),
    ],
)
def test_missing_parts_are_named(folder, file, sentence):
    assert sentence not in report.report(folder, report.RESULTS)
    (folder / file).unlink()
    assert sentence in report.report(folder, report.RESULTS)


def test_broken_and_empty_files_are_named(folder):
    (folder / "unit.xml").write_text(UNIT[:200])
    (folder / "notebooks.xml").write_text("<testsuites/>")
    (folder / "bench.json").write_text(json.dumps({**BENCH, "rows": [{**ROW, "words": "given up"}]}))
    page = report.report(folder, report.RESULTS)
    assert "The unit tests were not run: unit.xml cannot be read (" in page
    assert "The notebooks were not run: notebooks.xml holds no test." in page
    assert "The benchmark was not run: given up." in page


def test_clock_and_exit_code_are_told(folder):
    (folder / "summary.json").write_text(json.dumps({"unit": {"exit_code": 3, "seconds": 12.34}}))
    page = report.report(folder, report.RESULTS)
    assert "By the clock, several at a time: 12.3 s. pytest ended with code 3." in page
    assert page.count("By the clock") == 1


@pytest.mark.parametrize(
    "change, doubt",
    [
        ({"device": {"kind": "cpu", "name": "x86_64"}}, "A dry run on the CPU"),
        ({"device": {}}, "Nothing says which device it was: bench.json names none"),
        ({"quick": True}, "A quick run, of tiny sizes"),
        (None, "Nothing says which device it was: bench.json is not there"),
    ],
)
def test_no_result_comes_from_a_run_without_a_gpu(folder, tmp_path, capsys, change, doubt):
    if change is None:
        (folder / "bench.json").unlink()
    else:
        (folder / "bench.json").write_text(json.dumps({**BENCH, **change}))
    assert report.main([str(folder)]) == 2
    assert not report.RESULTS.exists()
    assert capsys.readouterr().err.startswith(doubt)
    other = tmp_path / "dry.md"
    assert report.main([str(folder), "--out", str(other)]) == 0
    assert other.read_text().startswith(f"{doubt}")
    assert other.read_text().splitlines()[2] == "# A run"
    assert change in (None, {"device": {}}) or ("seconds on the GPU" in other.read_text()) == (
        "quick" in change
    )


def test_no_folder_gets_a_sentence(tmp_path, capsys):
    assert report.main([str(tmp_path / "nowhere")]) == 2
    assert "nowhere is no folder" in capsys.readouterr().err


def test_tables_are_in_line():
    lines = report.table(["a", "number", "note"], [["x|y", "1", "w"], ["z", "1000000", ""]])
    assert lines == [
        "| a    |  number | note |",
        "| ---- | ------: | ---- |",
        "| x\\|y |       1 | w    |",
        "| z    | 1000000 |      |",
    ]


# The benchmark's formulas


@pytest.mark.parametrize("n, radius", [(7, 0), (7, 1), (7, 3), (7, 6), (7, 7), (7, 100), (1, 5)])
def test_pairs_of_a_window_are_counted(n, radius):
    assert bench.pairs(n, radius=radius) == window(n, radius).sum().item()
    assert bench.pairs(n, causal=True) == torch.ones(n, n).tril().sum().item()


def test_work_of_attention_by_hand():
    # one head, 3 queries, 3 keys, width 5: 9 scores of 5 products and sums, 9 weights times 5 values
    assert bench.attention_flops(9, 5, 1) == 2 * (9 * 5 + 9 * 5)
    # five products backward
    assert bench.attention_flops(9, 5, 2, backward=True) == 2 * (180 + 5 * 2 * 9 * 5)
    assert bench.attention_bytes(3, 5, 2, 4) == 4 * (2 * 3 * 5) * 4
    assert bench.attention_bytes(3, 5, 2, 2, backward=True) == 8 * (2 * 3 * 5) * 2
    assert bench.attention_bytes(3, 5, 2, 4, mask=True, weights=True) == 480 + 9 + 2 * 9 * 4


def test_work_of_graph_attention_by_hand():
    # 3 nodes, 5 edges; 64 features to 8 heads of width 8
    assert bench.graph_flops(3, 5) == 2 * 3 * 64 * 64 + 2 * (2 * 3 * 64) + 2 * 5 * 64
    assert bench.graph_flops(3, 5, backward=True) == 3 * bench.graph_flops(3, 5)
    numbers = 3 * 64 + 3 * 64 + 64 * 64 + 3 * 64  # features in and out, W, two vectors and a bias
    assert bench.graph_bytes(3, 5, 2) == 2 * (numbers + 5 * 8) + 2 * 5 * 8
    assert bench.graph_bytes(3, 5, 4, backward=True) == 4 * (2 * numbers + 5 * 8) + 2 * 5 * 8


# The benchmark's parts


@pytest.mark.on_cpu
@pytest.mark.parametrize("radius", [0, 1, 64, 127, 128, 129, 255, 300, 1000])
def test_blocks_of_a_window_are_those_that_flex_attention_finds(radius):
    from torch.nn.attention.flex_attention import create_block_mask

    n = 5 * bench.BLOCK
    ours = bench.window_blocks(n, radius, CPU)
    theirs = create_block_mask(lambda b, h, q, k: (q - k).abs() <= radius, None, None, n, n, device="cpu")
    assert ours.shape == theirs.shape and ours.BLOCK_SIZE == theirs.BLOCK_SIZE
    for kind in ("kv", "full_kv", "q", "full_q"):
        ours_count, count = getattr(ours, f"{kind}_num_blocks"), getattr(theirs, f"{kind}_num_blocks")
        assert torch.equal(ours_count, count) and ours_count.dtype == count.dtype
        listed = torch.arange(5) < count[..., None].cpu()
        ours_index, index = getattr(ours, f"{kind}_indices"), getattr(theirs, f"{kind}_indices")
        assert torch.equal(ours_index[listed], index[listed]) and ours_index.dtype == index.dtype


def test_blocks_need_whole_blocks():
    with pytest.raises(ValueError, match="multiple of 128, got 100"):
        bench.window_blocks(100, 3, CPU)


def test_local_attention_is_asked_only_where_it_is_the_same_function():
    pytest.importorskip("local_attention", reason="local-attention is not installed here")
    with pytest.raises(ValueError, match="does not divide"):
        bench.local(100, 64, CPU, backward=False)


@pytest.mark.parametrize("dtype", bench.DTYPES)
def test_agreement_sees_a_window_one_too_wide(dtype):
    q, k, v = (bench.draw(1, 2, 512, 16, dtype=dtype, device=CPU, number=i) for i in range(3))
    right, wrong = attend_window(q, k, v, 8), attend_window(q, k, v, 9)
    share = bench.ALLOWED[dtype]
    assert bench.agreement([right], [right], share)["agree"] is True
    found = bench.agreement([right, right], [right, wrong], share)
    assert found["agree"] is False and found["difference"] > found["allowed"]
    assert bench.agreement([right * torch.nan], [right], share) == {
        "agree": False,
        "difference": None,
        "allowed": None,
    }


def case(theirs, ours=lambda x: 2 * x):
    return bench.Case(ours, theirs, [torch.ones(7, 5, device="cpu")], flops=35, moved=280)


def out_of_memory(x):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7 GiB")


@pytest.mark.parametrize("which", bench.PASSES)
def test_a_side_that_fails_leaves_the_other_its_numbers(which):
    row = {"pass": which, "dtype": "fp32", "quick": True}
    with on("cpu"):
        found = bench.compared(row, case(out_of_memory))
        assert found["theirs"] == {"words": "out of memory"} and not found["dead"]
        assert found["ours"]["ms"] > 0 and found["ours"]["peak_mib"] > 0 and found["tflops"] > 0
        assert "ratio" not in found and "agree" not in found
        found = bench.compared(row, case(lambda x: x + x, out_of_memory))
        assert (
            found["ours"] == {"words": "out of memory"}
            and found["theirs"]["ms"] > 0
            and "tflops" not in found
        )
        assert bench.compared(row, case("not there: it"))["theirs"] == {"words": "not there: it"}
        found = bench.compared(row, case(lambda x: x + x))
        assert found["agree"] and found["difference"] == 0
        assert found["ratio"] == pytest.approx(found["ours"]["ms"] / found["theirs"]["ms"])
        assert bench.compared(row, case(lambda x: 3 * x))["agree"] is False


def test_a_lost_gpu_ends_the_row():
    def lost(x):
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nand more")

    row = {"pass": "forward", "dtype": "fp32", "quick": True}
    with on("cpu"):
        found = bench.compared(row, case(lambda x: x, lost))
    assert found["dead"] and found["ours"]["words"].startswith("failed: RuntimeError: CUDA error: an illegal")
    assert found["theirs"] == {}


@pytest.mark.parametrize(
    "error, said",
    [
        (torch.OutOfMemoryError("anything"), "out of memory"),
        (RuntimeError("CUDA error: out of memory"), "out of memory"),
        (ModuleNotFoundError("No module", name="local_attention.x"), "not there: local-attention"),
        (RuntimeError("Failed to find C compiler. Please"), "not there: a C compiler, which triton needs"),
        (
            RuntimeError("Cannot find a working triton installation. Either"),
            "not there: triton, which compiles flex_attention",
        ),
        (OSError("no /home/somebody/a b/c.txt\n there"), "failed: OSError: no a b/c.txt there"),
        (ValueError("x" * 300), "failed: ValueError: " + "x" * 180),
    ],
)
def test_what_fails_is_said_in_words(error, said):
    assert bench.words(error) == said
    assert not bench.dead(error)


@pytest.mark.parametrize(
    "peer, module", [("local-attention", "local_attention"), ("GATConv", "torch_geometric")]
)
def test_a_missing_library_is_named_and_ours_is_measured(monkeypatch, peer, module):
    for name in [module, *(name for name in sys.modules if name.startswith(module + "."))]:
        monkeypatch.setitem(sys.modules, name, None)
    row = next(row for row in bench.plan(True) if row.get("peer") == peer)
    with on("cpu"):
        found = bench.measured(row, CPU)
    assert found["theirs"] == {"words": f"not there: {module.replace('local_attention', peer)}"}
    assert found["ours"]["ms"] > 0


def worker(connection, rows, name, until):
    """A measuring process that ends, or loses its GPU, in the rows that say so."""
    connection.send({"torch": "of this test"})
    for i, row in rows:
        if row["what"] == "ends":
            os._exit(7)
        lost = row["what"] == "loses"
        connection.send((i, {"words": "lost"} if lost else {"ours": {"ms": 1.0}, "tflops": 2.0}, lost))
        if lost:
            return


def stillborn(connection, rows, name, until):
    os._exit(5)


def test_a_row_that_ends_the_process_does_not_lose_the_others(monkeypatch, tmp_path):
    kinds = ["good", "ends", "good", "loses", "good"]
    rows = [{"table": "a test's", "what": kind, "dtype": "fp32", "pass": "forward"} for kind in kinds]
    monkeypatch.setattr(bench, "plan", lambda quick: rows)
    found = bench.run("cpu", quick=True, minutes=1, out=tmp_path / "bench.json", worker=worker)
    ended = "failed: the process ended with code 7"
    assert [row.get("words", "measured") for row in rows] == [
        "measured",
        ended,
        "measured",
        "lost",
        "measured",
    ]
    assert found == json.loads((tmp_path / "bench.json").read_text())
    assert found["torch"] == "of this test" and found["device"] == {"kind": "cpu"}


def test_a_process_that_never_starts_is_not_started_again(monkeypatch, tmp_path):
    rows = [{"table": "a test's", "dtype": "fp32", "pass": "forward"} for _ in range(3)]
    monkeypatch.setattr(bench, "plan", lambda quick: rows)
    bench.run("cpu", quick=True, minutes=1, out=tmp_path / "bench.json", worker=stillborn)
    assert [row["words"] for row in rows] == ["failed: the process ended with code 5"] * 3


def test_shares_are_of_the_same_dtype():
    rows = [
        {"table": "ceilings", "what": "product", "dtype": "fp32", "ours": {"ms": 1.0}, "tflops": 50.0},
        {"table": "ceilings", "what": "copy", "dtype": "bf16", "ours": {"ms": 1.0}, "gb_per_s": 2000.0},
        {"table": "graph", "dtype": "fp32", "tflops": 5.0, "gb_per_s": 100.0},
        {"table": "graph", "dtype": "bf16", "tflops": 5.0, "gb_per_s": 100.0},
    ]
    bench.shares({"ceilings": {"fp32": {}, "bf16": {}}, "rows": rows})
    assert rows[2]["of_product"] == 0.1 and "of_copy" not in rows[2]
    assert rows[3]["of_copy"] == 0.05 and "of_product" not in rows[3]


def test_the_plan_has_every_comparison():
    for quick in (True, False):
        rows = bench.plan(quick)
        for dtype in bench.DTYPES:
            for which in bench.PASSES:
                some = [row for row in rows if row["dtype"] == dtype and row.get("pass") == which]
                decoding = {"decoding"} if which == "forward" else set()  # nobody learns while writing
                learning = {"attend", "with weights", "window", "graph"}
                assert {row["table"] for row in some} == learning | decoding
                assert {row["peer"] for row in some if row["table"] in learning} == {
                    "fused kernel",
                    "GATConv",
                    "local-attention",
                    "flex_attention",
                }
                for table in ("attend", "with weights"):
                    masks = {row["mask"] for row in some if row["table"] == table}
                    assert {bench.NO_MASK, bench.CAUSAL} <= masks
        assert {row["table"] for row in rows} - {"ceilings"} == set(bench.CASES) == set(report.TABLES)
    windows = [row for row in bench.plan(False) if row["table"] == "window"]
    assert {row["n"] for row in windows} >= {1024, 65536} and len({row["radius"] for row in windows}) > 1
    for row in windows:
        assert row["n"] % row["radius"] == 0 and row["n"] % bench.BLOCK == 0


# The whole of it, on the CPU


def started(*arguments):
    # what PYTHONPATH names stays: on a GPU machine the other libraries are there
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=ROOT, env=environment, capture_output=True, text=True,
        timeout=600
    )  # fmt: skip


@pytest.fixture(scope="module")
def dry(tmp_path_factory):
    """bench.json of `--device cpu --quick`, and the folder that it is in."""
    folder = tmp_path_factory.mktemp("dry")
    done = started("tests/gpu/bench.py", "--device", "cpu", "--quick", "--out", folder / "bench.json")
    assert done.returncode == 0, done.stderr[-2000:]
    return folder, json.loads((folder / "bench.json").read_text()), done.stderr


def test_quick_run_measures_every_comparison(dry):
    _, found, told = dry
    assert found["device"]["kind"] == "cpu" and found["quick"] and found["tf32"] is False
    assert len(found["rows"]) == len(bench.plan(True))
    assert f"{len(found['rows'])}/{len(found['rows'])} " in told
    for row in found["rows"]:
        assert row["ours"]["ms"] > 0, row
        if row["table"] != "ceilings":
            assert row["ours"]["peak_mib"] > 0 and row["of_product"] > 0 and row["of_copy"] > 0, row
            assert row.get("agree", True), row
    both = {(row["table"], row["peer"], row["dtype"]) for row in found["rows"] if "ratio" in row}
    for dtype in bench.DTYPES:
        assert {("attend", "fused kernel", dtype), ("with weights", "fused kernel", dtype)} <= both
        assert ("window", "flex_attention", dtype) in both
    unmeasured = {row["theirs"]["words"] for row in found["rows"] if "words" in row.get("theirs", {})}
    assert "not run on the CPU: flex_attention has no backward there" in unmeasured


@pytest.mark.parametrize(
    "module, table, peer",
    [("torch_geometric", "graph", "GATConv"), ("local_attention", "window", "local-attention")],
)
def test_quick_run_measures_other_libraries(dry, module, table, peer):
    pytest.importorskip(
        module, reason=f"{module} is not installed here, so the benchmark has nothing to compare with"
    )
    rows = [row for row in dry[1]["rows"] if row["table"] == table and row["peer"] == peer]
    assert len(rows) == 4
    for row in rows:
        assert row.get("agree"), row["theirs"]
        assert row["ratio"] > 0 and row["theirs"]["peak_mib"] > 0


def test_quick_run_is_no_result(dry, tmp_path):
    folder = dry[0]
    page = ROOT / "tests" / "gpu" / "RESULTS.md"
    before = page.read_text() if page.exists() else None
    refused = started("tests/gpu/report.py", folder)
    assert refused.returncode == 2 and "A dry run on the CPU" in refused.stderr
    assert (page.read_text() if page.exists() else None) == before
    done = started("tests/gpu/report.py", folder, "--out", tmp_path / "dry.md")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "dry.md").read_text()
    assert text.startswith("A dry run on the CPU")
    for title, *_ in report.TABLES.values():
        assert f"### {title}\n" in text
    assert "Not measured" not in text and "nan" not in text.lower().split()


def test_a_time_that_is_up_is_said(tmp_path):
    done = started(
        "tests/gpu/bench.py", "--device", "cpu", "--quick", "--minutes", "0", "--out", tmp_path / "b.json"
    )
    assert done.returncode == 0
    rows = json.loads((tmp_path / "b.json").read_text())["rows"]
    assert {row.get("words") for row in rows} == {"not measured: the time was up"}


def test_without_a_gpu_it_says_so_and_writes_nothing(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert bench.main(["--out", str(tmp_path / "bench.json")]) == 2
    assert "torch sees no CUDA device" in capsys.readouterr().err
    assert bench.main(["--device", "cpu", "--out", str(tmp_path / "bench.json")]) == 2
    assert "on the CPU use --quick" in capsys.readouterr().err
    assert not (tmp_path / "bench.json").exists()


def test_cases_that_ran_again_after_a_repair_count(tmp_path):
    (tmp_path / "unit.xml").write_text(UNIT, "utf-8")
    (tmp_path / "unit_again.xml").write_text(
        '<testsuites><testsuite name="pytest"><testcase classname="tests.test_a" name="test_two"'
        ' time="1"/></testsuite></testsuites>',
        "utf-8",
    )
    before, after = report.junit(tmp_path / "unit.xml"), report.with_again(tmp_path, "unit")
    assert report.counted(before) == "1 passed, 2 failed, 1 skipped"
    assert report.counted(after) == (
        "2 passed, 1 failed, 1 skipped (1 of them run once more, after a repair)"
    )
    assert report.with_again(tmp_path, "notebooks").wrong == "notebooks.xml is not there"
