"""Every speed that is claimed, measured against its peer on this machine: `make bench`.

    python benchmarks/all.py

Runs the scripts that measure a ratio, one after the other, and keeps their rows in results/speed.jsonl by the features
of the processor; of rows with one name the last counts. What cannot run here (an engine or a peer that is not
installed) is left out and named. --quick takes small sizes. `make tables` puts the ratios into the pages.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from claims import Claim, read
from likewise import processor
from likewise.runs.cache import data_folder
from rows import ResultFile

HERE = Path(__file__).parent


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
    few = ["--steps", "2", "--turns", "1"] if quick else ["--steps", "4", "--turns", "2"]
    lengths = ["32"] if quick else ["32", "256"]
    return [
        ("start.py", ["--turns", "2" if quick else "5"]),
        ("encode.py", [*encode, *int8, "--latency", "24" if quick else "120"]),
        ("gclsr/speed.py", ["--corpus", str(corpus), "--sentences", "256" if quick else "2048"]),
        *(("step_time.py", ["--corpus", str(corpus), *few, "--lengths", length]) for length in lengths),
        ("memory.py", ["--corpus", str(corpus), "--passages", "1000" if quick else "20000"]),
    ]


def kind() -> str:
    """The features of this processor that decide, as they stand in the rows."""
    features = (("bf16", processor.has_bf16()), ("vnni", processor.has_int8()))
    return "-".join(name for name, there in features if there) or "avx2"


def table(claims: Sequence[Claim]) -> str:
    """Markdown: the peer, ours, and the ratio."""
    lines = ["| task: peer | peer | likewise | ratio |", "| --- | ---: | ---: | ---: |"]
    for claim in claims:
        peer, ours = (_figure(value, claim.unit) for value in (claim.peer, claim.ours))
        lines.append(f"| {claim.name} | {peer} | {ours} | {claim.ratio:.2f} |")
    return "\n".join(lines)


def _figure(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    if unit == "MB":
        return f"{value:,.0f} MB"
    return f"{value:,.{digits}f}/s" if unit == "/s" else f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.1f} ms"


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--corpus", type=Path, default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    found.add_argument("--only", nargs="+", help="names of scripts")
    found.add_argument("--quick", action="store_true", help="small sizes: minutes, and noise")
    found.add_argument("--table", default="speed", help="the result file")
    return found


def main() -> None:
    args = parser().parse_args()
    results, claims, failed, began = ResultFile(args.table), list[Claim](), list[str](), time.monotonic()
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
                continue
            new = read(found)
            # The number of processes that wanted to run: beside them a ratio holds better than a time.
            about = {"processor": kind(), "load": f"{os.getloadavg()[1]:.0f}"}
            results.add(*(about | asdict(claim) for claim in new))
            claims += new
    print(f"\n{table(claims)}\n\n{(time.monotonic() - began) / 60:.1f} minutes")
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
