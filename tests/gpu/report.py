"""What a run on a GPU left behind, as one page: python tests/gpu/report.py FOLDER [--out FILE.md]

    FOLDER/unit.xml            pytest's --junitxml of the unit tests
    FOLDER/notebooks.xml       the same of nbval, on the GPU
    FOLDER/notebooks_cpu.xml   the same of nbval, on the CPU (may be missing)
    FOLDER/*_again.xml         of each of these, cases that ran once more, after a repair (may be missing)
    FOLDER/summary.json        written by tests/parts.py: pytest's exit codes, and seconds by the clock (may
                               be missing)
    FOLDER/bench.json          written by tests/gpu/bench.py; it says which device it was

What is missing is named. Written to tests/gpu/RESULTS.md only where the device was a GPU and the sizes were a
GPU's.
"""

import argparse
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).with_name("RESULTS.md")
WORST = ["passed", "skipped", "failed"]  # a test may be listed twice, once for its end: the worst counts
NONE = "–"

FORMULAS = {
    "attend": (
        "4 d for each pair of a query and a key that may look, each head and each sequence, and 2.5 times as"
        " many backward"
    ),
    "decoding": "4 d for each kept token and head, and 2 for each parameter",
    "graph": (
        "2 n d_in h d for the projection, 4 n h d for the scores, 2 h d for each edge, and twice as many"
        " backward"
    ),
}
TABLES = {  # key: title, how to read it, the columns of sizes
    "attend": (
        "attend(weights=False) against torch's fused kernel",
        (
            "Without a mask both sides end in the same kernel, `F.scaled_dot_product_attention`: what ours"
            " takes beyond theirs is its checks. With a causal mask ours gets a boolean table, theirs"
            ' `is_causal=True`, which needs to read no table and leaves half of the pairs out; "a table for'
            f' both" gives theirs the same table. FLOPs: {FORMULAS["attend"]}. Bytes: q, k, v, output, their'
            " gradients and the mask, each once."
        ),
        {"(b, h, n, d)": "shape", "mask": "mask"},
    ),
    "with weights": (
        "attend with weights, the table held in memory, against torch's fused kernel",
        (
            "What it costs to see the weights: ours computes and returns the table of n x n, theirs never"
            f" holds it. So look at the peak first. FLOPs: {FORMULAS['attend']}. Bytes: as above, and the"
            " table once."
        ),
        {"(b, h, n, d)": "shape", "mask": "mask"},
    ),
    "window": (
        "attend_window against flex_attention and local-attention",
        (
            "All three compute the same function of (1, 8, n, 64): each token looks at `radius` tokens on"
            " both sides. flex_attention is compiled for each size, with a block mask of that window;"
            " compiling, and making the mask, are not counted. local-attention is lucidrains' LocalAttention"
            " with `exact_windowsize`; n is a multiple of the radius, where it computes this function."
            f" FLOPs: {FORMULAS['attend']}; only the pairs within the window count, though all three compute"
            " more. Bytes: q, k, v, output and their gradients, each once."
        ),
        {"against": "peer", "n": "n", "radius": "radius"},
    ),
    "decoding": (
        "One more token behind a cache of n",
        (
            "MultiHeadAttention with a Cache, of width 512 and 8 heads, against the same four products with"
            " torch.cat and F.scaled_dot_product_attention between them: both copy what is kept once, to put"
            f" the new token behind it. FLOPs: {FORMULAS['decoding']}. Bytes: parameters, kept keys and"
            " values, the token, each once."
        ),
        {"tokens kept": "n", "heads of keys": "key heads"},
    ),
    "graph": (
        "GraphAttention against PyTorch Geometric's GATConv",
        (
            "Both have the same weights: 8 heads of width 8 on 64 features, edges drawn evenly, no"
            f" self-loops. FLOPs: {FORMULAS['graph']}. Bytes: features, parameters, edges and their weights,"
            " each once. What is gathered along the edges is read many times over, so small shares are no"
            " surprise."
        ),
        {"nodes": "nodes", "degree": "degree"},
    ),
}


class Refused(ValueError):
    """The sentence why nothing was written."""


class Run(NamedTuple):
    """One junit file: {(classname, name): (outcome, seconds, message)}, when it began, and what is wrong with
    the file."""

    cases: dict[tuple[str, str], tuple[str, float, str]]
    began: str = ""
    wrong: str = ""
    again: int = 0  # how many of the cases come from a run after a repair


def junit(path: Path) -> Run:
    """The cases of a junit file; a file that is missing or cut off gives none, and says so."""
    if not path.is_file():
        return Run({}, wrong=f"{path.name} is not there")
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        return Run({}, wrong=f"{path.name} cannot be read ({error})")
    cases: dict[tuple[str, str], tuple[str, float, str]] = {}
    for case in root.iter("testcase"):
        failed = case.find("failure") if case.find("failure") is not None else case.find("error")
        outcome = (
            "failed" if failed is not None else "skipped" if case.find("skipped") is not None else "passed"
        )
        message = "" if failed is None else reason(failed.get("message") or "", failed.text or "")
        key = case.get("classname", ""), case.get("name", "")
        before = cases.get(key, ("passed", 0.0, ""))
        worst = max(before[0], outcome, key=WORST.index)
        cases[key] = worst, before[1] + float(case.get("time", 0)), before[2] or message
    suite = root if root.tag == "testsuite" else root.find("testsuite")
    began = suite.get("timestamp", "") if suite is not None else ""
    return Run(cases, began[:16].replace("T", " "), "" if cases else f"{path.name} holds no test")


def with_again(folder: Path, name: str) -> Run:
    """The cases of NAME.xml; those of NAME_again.xml, which ran after a repair, in the place of the first."""
    first, again = junit(folder / f"{name}.xml"), junit(folder / f"{name}_again.xml")
    if first.wrong or again.wrong:
        return first
    return first._replace(cases=first.cases | again.cases, again=len(again.cases))


def reason(message: str, text: str) -> str:
    """Why a test failed, in a line: the message's first; of a notebook's cell what differs, or what was
    raised."""
    # as a terminal has them; XML cannot hold the first character, and pytest writes it out
    colours = r"(\x1b|#x1B)\[[0-9;]*m"
    message, text = (re.sub(colours, "", part) for part in (message, text))
    if message.strip() == "collection failure":
        return line(text.strip().rpartition("\n")[2].removeprefix("E").strip())
    if what := re.search(r"^Cell \d+: (.+)$", message, re.MULTILINE):
        after = message.partition("assert reference_output == test_output failed:")[2]
        told = next((part.strip() for part in after.splitlines() if part.strip()), "")
        return line(f"{what[1]}: {told or message.strip().rpartition(chr(10))[2]}")
    return line(message or text)


def line(text: str, most: int = 160) -> str:
    """The first line that says something, without folders of the machine."""
    first = next((part.strip() for part in text.splitlines() if part.strip()), "")
    first = re.sub(r"(?<![\w:/])/(?:[^\s/'\":,]+/)+", "", first)
    return first if len(first) <= most else first[: most - 1] + "…"


def notebook(classname: str, name: str) -> str:
    """The notebook of a case of nbval: "notebooks.exercises.02_scoring.ipynb" is exercises/02_scoring; of one
    not collected, its name says it."""
    path = (classname or name).removesuffix(".ipynb").replace(".", "/")
    return path.removeprefix("notebooks/")


def short(number: float | None) -> str:
    """Three significant digits.

    >>> short(0.09996), short(12.34), short(61234.5), short(1.234e-6), short(0), short(None)
    ('0.100', '12.3', '61200', '1.23e-06', '0', '–')
    """
    if number is None:
        return NONE
    if number == 0:
        return "0"
    rounded = f"{number:.2e}"
    power = int(rounded.split("e")[1])
    return rounded if power < -4 else f"{float(rounded):.{max(0, 2 - power)}f}"


def table(header: list[str], rows: list[list[str]], left: int = 1) -> list[str]:
    """A Markdown table, its columns in line: the first `left` to the left, and a note; the others to the
    right."""
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in [header, *rows]]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(header))]

    def is_text(i: int) -> bool:
        return i < left or header[i] == "note"

    def written(row: list[str]) -> str:
        both = zip(row, widths, strict=True)
        return (
            "| "
            + " | ".join(x.ljust(w) if is_text(i) else x.rjust(w) for i, (x, w) in enumerate(both))
            + " |"
        )

    rule = ["-" * w if is_text(i) else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return [written(cells[0]), "| " + " | ".join(rule) + " |", *map(written, cells[1:])]


def counted(run: Run) -> str:
    """12 passed, 1 failed, 2 skipped."""
    outcomes = [outcome for outcome, _, _ in run.cases.values()]
    told = ", ".join(f"{outcomes.count(word)} {word}" for word in ("passed", "failed", "skipped"))
    return told + (f" ({run.again} of them run once more, after a repair)" if run.again else "")


def by_the_clock(summary: dict[str, Any], part: str) -> str:
    """A sentence of what `tests/parts.py` noted about that part, or nothing."""
    noted = summary.get(part, {})
    if "seconds" not in noted:
        return ""
    code = noted.get("exit_code", 0)
    ended = "" if code == 0 else f" pytest ended with code {code}."
    return f" By the clock, several at a time: {short(noted['seconds'])} s.{ended}"


def failures(run: Run, name: Any) -> list[str]:
    """A line for each failed case, in the order of their names."""
    lines = [
        f"- {name(*key)}: {message or 'no message'}"
        for key, (outcome, _, message) in sorted(run.cases.items())
        if outcome == "failed"
    ]
    return ["", "Failed:", "", *lines] if lines else []


def of_the_machine(bench: dict[str, Any], unit: Run, books: Run) -> list[str]:
    """Where and when it ran."""
    device = bench.get("device", {})
    gib = device.get("memory_gib")
    packages = bench.get("packages", {})
    there = [f"{name} {version}" for name, version in packages.items() if version]
    missing = [name for name, version in packages.items() if not version]
    named = device.get("name") or "not known"
    dates = [("benchmark", bench.get("date")), ("unit tests", unit.began), ("notebooks", books.began)]
    rows = [
        *([f"date of the {part}", date] for part, date in dates if date),
        ["CPU" if device.get("kind") == "cpu" else "GPU", named + (f", {short(gib)} GiB" if gib else "")],
        ["torch", bench.get("torch", "not known")],
        ["CUDA", bench.get("cuda") or ("none" if device.get("kind") == "cpu" else "not known")],
        ["TF32", {True: "on", False: "off"}.get(bench.get("tf32"), "not known")],
        ["Python", bench.get("python", "not known")],
        ["processors", str(device.get("processors", "not known"))],
        ["other libraries", ", ".join(there) or "none known"],
    ]
    if missing:
        rows.append(["not there", ", ".join(missing)])
    return ["## The machine", "", *table(["what", "which"], rows, left=2), ""]


def of_the_tests(unit: Run, clock: str) -> list[str]:
    """How many passed, and which did not."""
    title = ["## Unit tests", ""]
    if unit.wrong:
        return [*title, f"The unit tests were not run: {unit.wrong}.", ""]
    seconds = sum(seconds for _, seconds, _ in unit.cases.values())
    text = f"{len(unit.cases)} tests: {counted(unit)}; {short(seconds)} s, added up over the tests.{clock}"
    return [*title, text, *failures(unit, lambda classname, name: f"`{classname}` `{name}`"), ""]


def of_the_notebooks(gpu: Run, cpu: Run, where: str, clock: str) -> list[str]:
    """A row for each notebook, on both devices; `where` names the one of this run."""
    title = ["## Notebooks", ""]
    if gpu.wrong:
        return [*title, f"The notebooks were not run: {gpu.wrong}.", ""]
    text = [
        "nbval runs every cell, and compares its output with the stored one, letter by letter. Seconds are"
        f" those of a notebook's cells, added up; the first one waits for the kernel to start.{clock}"
    ]
    if cpu.wrong:
        text.append(f"On the CPU they were not run: {cpu.wrong}.")
    of_cpu, of_gpu = per_notebook(cpu), per_notebook(gpu)
    rows = []
    for name in sorted({**of_cpu, **of_gpu}):
        there = of_gpu.get(name, [])
        passed = [outcome for outcome, _ in there].count("passed")
        skipped = [outcome for outcome, _ in there].count("skipped")
        cells = f"{passed} of {len(there)}" + (f", {skipped} skipped" if skipped else "")
        seconds = [short(sum(s for _, s in of[name])) if name in of else NONE for of in (of_cpu, of_gpu)]
        rows.append([name, cells if there else "not run", *seconds])
    totals = [short(sum(s for _, s, _ in run.cases.values())) if run.cases else NONE for run in (cpu, gpu)]
    passed = sum(outcome == "passed" for outcome, _, _ in gpu.cases.values())
    rows.append([f"all {len(rows)}", f"{passed} of {len(gpu.cases)}", *totals])
    lines = table(["notebook", "cells passed", "seconds on the CPU", f"seconds {where}"], rows)

    def cell(classname: str, name: str) -> str:
        return f"{notebook(classname, name)}, {name}" if classname else notebook("", name)

    return [*title, *text, "", *lines, *failures(gpu, cell), ""]


def per_notebook(run: Run) -> dict[str, list[tuple[str, float]]]:
    """Outcome and seconds of the cells of each notebook."""
    found: dict[str, list[tuple[str, float]]] = {}
    for key, (outcome, seconds, _) in run.cases.items():
        found.setdefault(notebook(*key), []).append((outcome, seconds))
    return found


def of_the_benchmark(bench: dict[str, Any], wrong: str) -> list[str]:
    """The card's limits, and a table for each comparison."""
    title = ["## Benchmark", ""]
    rows = bench.get("rows", [])
    if wrong or not any("ms" in row.get("ours", {}) for row in rows):
        words = sorted({row["words"] for row in rows if "words" in row})
        why = wrong or "; ".join(words) or "bench.json holds no measured row"
        return [*title, f"The benchmark was not run: {why}.", ""]
    compared = [row for row in rows if row["table"] != "ceilings"]
    whole = [row for row in compared if "ratio" in row]
    differing = [row for row in compared if row.get("agree") is False]
    allowed = " or ".join(f"{share:g} ({dtype})" for dtype, share in bench.get("allowed", {}).items())
    text = [
        f"{len(whole)} of {len(compared)} comparisons were measured on both sides, in"
        f" {short(bench.get('seconds'))} s; the note of a row says what was not. Times are medians of calls"
        " in turns, with all that a caller waits for, so a small size shows what launching costs."
        " `ours/theirs` below 1: ours is faster. Peaks are what torch's allocator holds beyond the inputs."
        " Before it was timed, a row's outputs and gradients were compared: `difference` is the largest, and"
        f" allowed is {allowed} of the largest number."
    ]
    if differing:
        text.append(
            f"**In {len(differing)} of them the two sides differ by more than is allowed; their notes say"
            " so.**"
        )
    lines = [*title, *text, "", *limits(bench, rows)]
    for key, (name, how, sizes) in TABLES.items():
        some = [row for row in rows if row["table"] == key]
        lines += [f"### {name}", "", how, ""]
        lines += comparison(some, sizes) if some else ["Not measured: bench.json has no row of it."]
        lines += [""]
    return lines


def limits(bench: dict[str, Any], rows: list[dict]) -> list[str]:
    """What the shares are shares of."""
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["table"] == "ceilings":
            unit, factor = {"product": ("tflops", 1), "copy": ("gb_per_s", 1), "launch": ("ms", 1000)}[
                row["what"]
            ]
            value = row.get(unit, row.get("ours", {}).get(unit))
            cell = short(value * factor) if value is not None else row.get("words", "not measured")
            found.setdefault(row["dtype"], {})[row["what"]] = cell
    product = next((row["n"] for row in rows if row.get("what") == "product" and "n" in row), "n")
    copied = next((row["MiB"] for row in rows if row.get("what") == "copy" and "MiB" in row), "some")
    text = (
        f"What the card itself does: a product of two random matrices of {product} x {product}, a copy of"
        f" {copied} MiB within its memory (bytes read and written), and the smallest call there is, which is"
        " all launching. The shares below are of these two. A share of the product above 1 can be true in"
        " fp32: the product is computed without TF32, and a fused kernel may build products of that accuracy"
        " from faster instructions; one of the copy where everything fits into the card's cache."
    )
    cells = [
        [dtype, *(of.get(what, "not measured") for what in ("product", "copy", "launch"))]
        for dtype, of in found.items()
    ]
    header = ["dtype", "product, TFLOP/s", "copy, GB/s", "smallest call, µs"]
    return ["### What the card can do", "", text, "", *table(header, cells), ""]


def comparison(rows: list[dict], sizes: dict[str, str]) -> list[str]:
    """The rows of one comparison; a note where something was not measured, or differs."""
    header = [*sizes, "dtype", "pass", "ours ms", "theirs ms", "ours/theirs", "ours MiB", "theirs MiB",
        "difference",
              "TFLOP/s", "of the product", "GB/s", "of the copy"]  # fmt: skip
    lines, notes = [], []
    for row in rows:
        ours, theirs = row.get("ours", {}), row.get("theirs", {})
        size = [
            f"({', '.join(map(str, x))})" if isinstance(x := row[key], list) else str(x)
            for key in sizes.values()
        ]
        numbers = [
            ours.get("ms"), theirs.get("ms"), row.get("ratio"), ours.get("peak_mib"), theirs.get("peak_mib"),
            row.get("difference"),
            row.get("tflops"), row.get("of_product"), row.get("gb_per_s"), row.get("of_copy"),
        ]  # fmt: skip
        lines.append([*size, row["dtype"], row["pass"], *map(short, numbers)])
        notes.append(note(row, ours, theirs))
    if any(notes):
        header.append("note")
        lines = [[*cells, words] for cells, words in zip(lines, notes, strict=True)]
    return table(header, lines, left=len(sizes) + 2)


def note(row: dict, ours: dict, theirs: dict) -> str:
    """What a row has to say in words."""
    if "words" in row:
        return line(row["words"])
    if not ours and not theirs:
        return "not measured: the run ended before"
    said = [
        f"{side}: {line(of['words'])}" for side, of in (("ours", ours), ("theirs", theirs)) if "words" in of
    ]
    if row.get("agree") is False:
        more = (
            f"more than {short(row['allowed'])}"
            if row.get("allowed") is not None
            else "a number that is none"
        )
        said.append(f"THE TWO DIFFER, by {more}")
    return "; ".join(said)


def report(folder: Path, out: Path) -> str:
    """The page. Raises Refused where `out` is RESULTS.md, and the run was no run on a GPU."""
    bench, wrong = read(folder / "bench.json")
    kind = bench.get("device", {}).get("kind")
    doubt = ""
    if kind is None:
        doubt = f"Nothing says which device it was: {wrong or 'bench.json names none'}"
    elif kind == "cpu":
        doubt = "A dry run on the CPU: it shows that everything runs, and says nothing about a GPU"
    elif bench.get("quick"):
        doubt = "A quick run, of tiny sizes: it shows that everything runs, and not how fast"
    if doubt and out.resolve() == RESULTS.resolve():
        raise Refused(
            f"{doubt}. So it is not written to {RESULTS.name}; run `python tests/gpu/bench.py --out"
            f" {folder.name}/bench.json` on a machine with a GPU, or name another file with --out"
        )
    unit, gpu, cpu = (with_again(folder, name) for name in ("unit", "notebooks", "notebooks_cpu"))
    lines = [f"{doubt}.", ""] if doubt else []
    lines += ["# A run on a GPU" if not doubt else "# A run", ""]
    lines += [
        "Written by `tests/gpu/report.py` from what the run left; nothing here was typed in by hand.",
        "",
    ]
    summary, _ = read(folder / "summary.json")
    where = "on the GPU" if kind not in (None, "cpu") else "in this run"
    lines += of_the_machine(bench, unit, gpu) + of_the_tests(unit, by_the_clock(summary, "unit"))
    lines += of_the_notebooks(gpu, cpu, where, by_the_clock(summary, "notebooks"))
    lines += of_the_benchmark(bench, wrong)
    return "\n".join(lines).rstrip() + "\n"


def read(path: Path) -> tuple[dict[str, Any], str]:
    """The benchmark's file, and what is wrong with it."""
    if not path.is_file():
        return {}, f"{path.name} is not there"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        return {}, f"{path.name} cannot be read ({error})"
    return (found, "") if isinstance(found, dict) else ({}, f"{path.name} holds no benchmark")


def main(arguments: list[str] | None = None) -> int:
    """0 where the page was written, 2 where it was refused."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the run left its files")
    parser.add_argument(
        "--out", type=Path, default=RESULTS, help="the page to write (default: tests/gpu/RESULTS.md)"
    )
    chosen = parser.parse_args(arguments)
    if not chosen.folder.is_dir():
        print(f"{chosen.folder} is no folder; name the one that the run left its files in", file=sys.stderr)
        return 2
    try:
        page = report(chosen.folder, chosen.out)
    except Refused as error:
        print(error, file=sys.stderr)
        return 2
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(page, encoding="utf-8")
    print(f"written: {chosen.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
