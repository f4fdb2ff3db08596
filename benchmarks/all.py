"""Every speed that is claimed, measured against its peer, as the table of benchmarks/notebook/speed.md: `make bench`.

    python benchmarks/all.py --page benchmarks/notebook/speed.md

Runs the scripts that measure a ratio, one after the other, keeps their rows in results/speed/ by the features of the
processor, and puts a table of each kind between the marks of that page. What cannot run here (an engine or a peer that
is not installed) is left out and named. --quick takes small sizes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from claims import Claim, read
from likewise import processor
from likewise.corpus.downloads import data_folder
from likewise.runs.provenance import machine, versions
from likewise.runs.whole_files import write_text

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "speed"
CLAIM = [field.name for field in fields(Claim)]
BEGIN, END = "<!-- make bench -->", "<!-- end of make bench -->"


def scripts(corpus: Path, quick: bool) -> list[tuple[str, list[str]]]:
    """The scripts and their arguments."""
    engines = ["torch fp32"]
    for package in ("onnx", "openvino"):
        wanted = ["onnx", "onnxruntime"] if package == "onnx" else ["openvino"]
        if all(importlib.util.find_spec(name) for name in wanted):
            engines.append(f"{package} fp32")
    int8 = ["onnx int8"] if "onnx fp32" in engines else []
    if processor.has_bf16():
        int8 += ["torch bf16", *(["openvino bf16"] if "openvino fp32" in engines else [])]
    if processor.has_int8() and "openvino fp32" in engines and importlib.util.find_spec("nncf"):
        int8.append("openvino int8")
    int8 += ["auto auto", "default", "default-first"]
    encode = ["--corpus", str(corpus), "--sentences", "256" if quick else "1024", "--engines", *engines]
    small = ["--steps", "2", "--turns", "1", "--lengths", "32"] if quick else ["--steps", "4", "--turns", "2"]
    negate = ["--pairs", str(HERE.parent / "tests/augment/negation/pairs.tsv"), "--n", "200" if quick else "2000"]
    growth = ["--sizes", "1000", "10000"] if quick else ["--sizes", "10000", "100000", "--most", "10000"]
    return [
        ("start.py", ["--turns", "2" if quick else "5"]),
        ("encode.py", [*encode, *int8, "--latency", "24" if quick else "120"]),
        ("gclsr/speed.py", ["--corpus", str(corpus), "--sentences", "256" if quick else "2048"]),
        ("step_time.py", ["--corpus", str(corpus), *small]),
        ("gclsr/word_noise.py", []),
        (
            "negation/compare.py",
            [str(corpus), *negate, *([] if importlib.util.find_spec("negate") else ["--no-peer"])],
        ),
        (
            "context/pairs_a_minute.py",
            [
                *("--corpus", str(corpus.parent / "articles.jsonl.gz")),
                *("--pairs", "20" if quick else "100", "--contexts", "5" if quick else "20"),
            ],
        ),
        ("growth.py", ["--corpus", str(corpus), *growth]),
    ]


def kind() -> str:
    """The features of this processor that decide, as the name of its results."""
    found = [name for name, there in (("bf16", processor.has_bf16()), ("vnni", processor.has_int8())) if there]
    return "-".join(found) or "avx2"


def kept(claims: list[Claim], failed: list[str], add: bool) -> None:
    """Put the claims of this run into the results of this kind of processor, in place of those of before or to them.

    Every row has its machine, its day and the load of the machine as it was measured: the number of processes that
    wanted to run, beside which a ratio holds better than a time.
    """
    path, here = RESULTS / f"{kind()}.json", machine()
    before = json.loads(path.read_text())["claims"] if add and path.exists() else []
    packages = [f"{name} {version}" for name, version in versions().items() if name in ("torch", "transformers")]
    about = [here["processor"], f"{here['cores']} cores", here.get("instruction_set"), kind(), here.get("gpu")]
    where = {"machine": ", ".join(filter(None, [*about, *packages])), "date": time.strftime("%Y-%m-%d")}
    where["load"] = f"{os.getloadavg()[1]:.0f}"
    rows = {row["name"]: row for row in [*before, *(asdict(claim) | where for claim in claims)]}
    RESULTS.mkdir(exist_ok=True)
    write_text(path, json.dumps({"failed": failed, "claims": list(rows.values())}, indent=1) + "\n")


def tables() -> str:
    """Markdown of all results, a table for each kind of processor, machine and day."""
    return "\n\n".join(_tables(json.loads(path.read_text())) for path in sorted(RESULTS.glob("*.json")))


def _tables(found: dict[str, Any]) -> str:
    parts: dict[str, list[Claim]] = {}
    for row in found["claims"]:
        load = f", beside a load of {row['load']}" if float(row["load"] or 0) >= 1 else ""
        where = f"{row['machine']}, {row['date']}{load}."
        parts.setdefault(where, []).append(Claim(**{name: row[name] for name in CLAIM}))
    lines = [_table(where, claims) for where, claims in parts.items()]
    if found["failed"]:
        lines.append(f"Not measured there: {', '.join(found['failed'])}.")
    return "\n\n".join(lines)


def _table(where: str, claims: list[Claim]) -> str:
    lines = [where]
    if speeds := [claim for claim in claims if claim.kind == "speed"]:
        lines += ["", "| task: peer | peer | likewise | ratio |", "| --- | ---: | ---: | ---: |"]
        for claim in speeds:
            peer, ours = (_figure(value, claim.unit) for value in (claim.peer, claim.ours))
            lines.append(f"| {claim.name} | {peer} | {ours} | {claim.ratio:.2f} |")
    if growth := [f"| {claim.name} | {claim.ratio:.2f} |" for claim in claims if claim.kind == "growth"]:
        lines += ["", "| growth: time of a sentence | ratio |", "| --- | ---: |", *growth]
    return "\n".join(lines)


def _figure(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}/s" if unit == "/s" else f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.1f} ms"


def check(page: Path) -> str:
    """The page's text, if it has the marks.

    Raises:
        SystemExit: it has not.
    """
    whole = page.read_text(encoding="utf-8")
    if BEGIN not in whole or END not in whole:
        sys.exit(f"{page}: no line {BEGIN} and {END}: put them where the table should stand")
    return whole


def put(page: Path, text: str) -> None:
    """Put the table between the page's marks."""
    whole = check(page)
    head, rest = whole.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    write_text(page, f"{head}{BEGIN}\n{text}\n{END}{tail}")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--corpus", type=Path, default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    found.add_argument("--page", type=Path, help="the file whose table is written anew")
    found.add_argument("--only", nargs="+", help="names of scripts")
    found.add_argument("--quick", action="store_true", help="small sizes: minutes, and noise")
    return found


def main() -> None:
    args = parser().parse_args()
    if args.page:
        check(args.page)  # before the hour that the scripts take
    claims: list[Claim] = []
    failed: list[str] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in scripts(args.corpus, args.quick):
            if args.only and name not in args.only:
                continue
            print(f"\n{time.strftime('%H:%M:%S')} {name} {' '.join(arguments)}", flush=True)
            found = Path(folder) / "claims.json"
            found.unlink(missing_ok=True)
            code = subprocess.run([sys.executable, str(HERE / name), *arguments, "--claims", str(found)]).returncode
            if code or not found.exists():
                failed.append(name)
            else:
                claims += read(found)
    kept(claims, failed, add=bool(args.only or failed))
    text = tables()
    print(f"\n{text}\n\n{(time.monotonic() - began) / 60:.1f} minutes")
    if args.page:
        put(args.page, text)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
