"""Long jobs that are killed at random moments and resumed: bit-equal to undisturbed ones, no row lost or doubled.

    python benchmarks/kill.py --kills 20                       # every job
    python benchmarks/kill.py --kills 5 --only encode,negate   # some of them

A job is done once undisturbed. Then, for each kill, it is started in a fresh folder, gets SIGKILL at a moment drawn
from the time that the undisturbed run took, and the same call is made again until it ends by itself. What it left is
compared byte by byte, but for records and logs, which hold times; an index row by row. The processes are forked from a
server that has imported likewise, so that the moments fall into the work and not into the imports.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import itertools
import json
import math
import multiprocessing
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

NOT_COMPARED = {"likewise.json", "log.jsonl", "README.md", "run.toml", "about.json", "parts.jsonl"}
"""Files that hold times, the name of the folder, or the course of the work."""

_SERVER = multiprocessing.get_context("forkserver")
PRELOADED = [
    "likewise.training.train",
    "likewise.inference.encoded_files",
    "likewise.context.discriminator",
    "datasets",
    "sklearn.linear_model",
]


@dataclass(frozen=True)
class Call:
    """A call of a public function: 'likewise:train' and its arguments.

    A text that begins with 'OUT' begins with the target, one with 'WORK' with the folder of the job's `first` calls.
    """

    function: str
    arguments: Mapping[str, Any]

    def run(self, out: Path, work: Path) -> None:
        """Make the call in this process."""
        module, _, name = self.function.partition(":")
        given = {
            key: re.sub("^(OUT|WORK)", lambda found: str(out if found[0] == "OUT" else work), value)
            if isinstance(value, str)
            else value
            for key, value in self.arguments.items()
        }
        function = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
        function(**given)


@dataclass(frozen=True)
class Job:
    """A long job: its calls in order, the name of its target in the folder of a trial, and what is compared of it.

    The `first` calls make what the others read; they are made once and not killed.
    """

    name: str
    calls: Sequence[Call]
    target: str = "out"
    content: Callable[[Path], dict[str, str]] | None = None
    first: Sequence[Call] = ()


@dataclass
class Outcome:
    """What became of a job's kills.

    Attributes:
        seconds: of the undisturbed run.
        killed: the kills that came before the end.
        equal: the trials that ended with the same files.
        faults: the others, in words.
    """

    name: str
    seconds: float = 0.0
    killed: int = 0
    equal: int = 0
    faults: list[str] = field(default_factory=list)


def try_job(job: Job, folder: Path, kills: int, seed: int = 1, seconds: float = math.inf) -> Outcome:
    """Run a job undisturbed, then kill and resume it: `kills` times, or until the seconds are over, but once."""
    end = time.monotonic() + seconds
    _SERVER.set_forkserver_preload(PRELOADED)
    rng, outcome = random.Random(seed), Outcome(job.name)
    (folder / "whole").mkdir(parents=True)
    work = folder / "work"
    if not _run(job.first, work, work):  # the server imports before the clock runs
        raise SystemExit(f"what {job.name} reads cannot be made")
    begun = time.monotonic()
    if not _run(job.calls, folder / "whole" / job.target, work):
        raise SystemExit(f"{job.name} fails without a kill")
    outcome.seconds = round(time.monotonic() - begun, 2)
    compared = job.content or content
    wanted = compared(folder / "whole" / job.target)
    for trial in range(kills):
        if trial and time.monotonic() > end:
            break
        place = folder / f"kill-{trial}"
        place.mkdir()
        moment = rng.uniform(0, outcome.seconds)
        outcome.killed += not _run(job.calls, place / job.target, work, moment)
        if not _run(job.calls, place / job.target, work):
            outcome.faults.append(f"killed after {moment:.2f} s, it does not resume")
        elif (found := compared(place / job.target)) != wanted:
            names = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
            outcome.faults.append(f"killed after {moment:.2f} s, it ends with other {', '.join(names)}")
        else:
            outcome.equal += 1
    return outcome


def content(target: Path) -> dict[str, str]:
    """Return the hash of each file of a result; a rest of the work is part of it."""
    paths = [target] if target.is_file() else [path for path in target.rglob("*") if path.is_file()]
    return {
        path.relative_to(target.parent).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(paths)
        if path.name not in NOT_COMPARED
    }


def rows_of_index(target: Path) -> dict[str, str]:
    """Return the hash of each row of an index, whose files have random names and times; a lost or doubled row shows."""
    import lancedb

    record = json.loads((target / "likewise.json").read_text(encoding="utf-8"))
    rows = lancedb.connect(target).open_table(record["table"]).to_arrow().to_pylist()
    rows.sort(key=lambda row: (row["source"], row["line"], row["key"]))
    left = [path.name for path in target.rglob(".*") if path.is_file()]
    return {str(i): hashlib.sha256(repr(row).encode()).hexdigest() for i, row in enumerate(rows)} | dict.fromkeys(
        left, ""
    )


def runs_of_comparison(target: Path) -> dict[str, str]:
    """Return the hash of each run of a comparison but for its times, and the names of the files."""
    found = json.loads((target / "comparison.json").read_text(encoding="utf-8"))
    files = [path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()]
    runs = {f"{run['label']}, seed {run['seed']}": json.dumps(_timeless(run)) for run in found["runs"]}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in runs.items()} | dict.fromkeys(files, "")


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if "second" not in key}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


def _run(calls: Sequence[Call], out: Path, work: Path, seconds: float | None = None) -> bool:
    """Make calls in a process of their own; return whether they ended, False if they were killed."""
    process = _SERVER.Process(target=_calls, args=(calls, out, work))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return False
    if process.exitcode:
        sys.stderr.write(f"{out.name}: exit code {process.exitcode}\n")
    return process.exitcode == 0


def _calls(calls: Sequence[Call], out: Path, work: Path) -> None:
    for call in calls:
        call.run(out, work)


def training(name: str, base: str, corpus: str, steps: int, **options: Any) -> Job:
    """Return the job of a recipe's training."""
    common = {"batch_size": 8, "max_steps": steps, "eval_steps": 3, "held_out": 40, "precision": "fp32", "quiet": True}
    given = {"recipe": name, "corpus": corpus, "base": base, "out": "OUT", **common, **options}
    return Job(f"train {name}", [Call("likewise:train", given)])


def jobs(
    base: str,
    corpus: str,
    articles: str,
    steps: int = 12,
    *,
    pairs: str,
    discriminator: Any = None,
    generators: Any = None,
    harvest: Any = None,
) -> list[Job]:
    """Return the long jobs of the library on a text, on articles and on a file of rated pairs."""
    from likewise.context import ScoreOptions, StatesOptions

    def stages(work: str) -> list[Call]:
        common = {"work": work, "quiet": True}
        return [
            Call("likewise.context:build_index", {"corpus": articles, **common}),
            Call("likewise.context:read_states", {"options": StatesOptions(encoder=base), **common}),
            Call("likewise.context:train_discriminator", {"options": discriminator, **common}),
            Call("likewise.context:train_generators", {"options": generators, **common}),
        ]

    def harvesting(out: str) -> Call:
        # By cosine and words: contexts would want a discriminator first.
        score = ScoreOptions(terms=("cosine", "words"))
        given = {"work": "WORK", "out": out, "options": harvest, "score": score, "quiet": True}
        return Call("likewise.context:harvest", given)

    few = {"batch_size": 8, "max_steps": steps, "eval_steps": 3, "precision": "fp32", "quiet": True}
    rated = {"objective": "sts", "rows": pairs, "base": base, "out": "OUT", **few}
    adapted = {"corpus": articles, "base": base, "out": "OUT"}
    surrogate = {"harvest": "WORK/harvest", "base": base, "out": "OUT", **few}
    compared = {"methods": ["simcse", "arccse margin=0"], "corpus": corpus, "out": "OUT", "base": base, "seeds": (1, 2)}
    compared |= {"steps": steps, "tasks": f"pairs:{pairs}", "held_out": 40, "batch_size": 8, "quiet": True}
    return [
        *(training(name, base, corpus, steps) for name in ("simcse", "arccse", "esimcse", "ct", "tsdae", "consert")),
        training("sncse", base, corpus, steps, preset="cpu"),
        training("gclsr", "bundled:glove", corpus, steps, sentences=0),
        training("light", base, corpus, steps),
        Job("adapt", [Call("likewise:adapt", {**adapted, "passages": 150, "width": 16, "quiet": True})]),
        Job("finetune", [Call("likewise:finetune", rated)]),
        Job("compare", [Call("likewise:compare", compared)], content=runs_of_comparison),
        Job(
            "index",
            [Call("likewise:index", {"texts": corpus, "out": "OUT", "model": base, "quiet": True})],
            "out.index",
            rows_of_index,
        ),
        Job("encode", [Call("likewise:encode_file", {"model": base, "source": corpus, "out": "OUT"})], "out.npy"),
        Job(
            "negate",
            [
                Call(
                    "likewise.augment.negation.negated_file:negate_corpus",
                    {"sources": corpus, "out": "OUT", "cache": False},
                )
            ],
            "out.jsonl",
        ),
        Job("context stages", stages("OUT")),
        Job("context harvest", [harvesting("OUT")], first=stages("WORK")[:2]),
        Job(
            "context distill",
            [Call("likewise.context:distill", surrogate)],
            first=[*stages("WORK")[:2], harvesting("WORK/harvest")],
        ),
    ]


def write_pairs(path: Path) -> None:
    """Write 120 pairs of sentences with ratings of 0 to 5: the more words they share, the higher."""
    rng, rows = random.Random(0), ["sentence1\tsentence2\tscore"]
    words = "cat dog river bridge teacher letter garden train window song market doctor".split()
    for row in range(120):
        one = rng.sample(words, 5)
        other = one[: row % 6] + rng.sample(words, 5 - row % 6)
        rows.append(f"the {' '.join(one)} .\tthe {' '.join(other)} .\t{row % 6}")
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def write_articles(path: Path, text: Path, source: str, count: int) -> None:
    """Write the first articles of a source, and their sentences as a text: on all of them, jobs take hours."""
    from likewise.corpus.documents import read_documents

    with path.open("w", encoding="utf-8") as file, text.open("w", encoding="utf-8") as lines:
        for article in itertools.islice(read_documents(source), count):
            sections = [{"heading": one.heading, "paragraphs": [" ".join(one.sentences)]} for one in article.sections]
            lines.writelines(f"{sentence}\n" for one in article.sections for sentence in one.sentences)
            file.write(json.dumps({"id": article.id, "title": article.title, "sections": sections}) + "\n")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--kills", type=int, default=20)
    found.add_argument("--only", default="", help="jobs, with commas")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument(
        "--seconds", type=float, default=300, help="after which a job is killed no more; its line follows"
    )
    found.add_argument(
        "--articles-taken", type=int, default=20, help="of the articles; the context stages read all of them"
    )
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--corpus", help="text; the sentences of the articles without it")
    found.add_argument("--articles", default="bundled:wiki-sample", help="articles, for the context stages")
    return found


def main() -> None:
    args = parser().parse_args()
    pairs = Path(tempfile.mkdtemp()) / "pairs.tsv"
    write_pairs(pairs)
    articles = pairs.with_name("articles.jsonl")
    text = pairs.with_name("text.txt")
    write_articles(articles, text, args.articles, args.articles_taken)
    wanted = [name.strip() for name in args.only.split(",") if name.strip()]
    failed = 0
    for job in jobs(args.base, args.corpus or str(text), str(articles), pairs=str(pairs)):
        if wanted and not any(name in job.name for name in wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcome = try_job(job, Path(folder), args.kills, args.seed, args.seconds)
        failed += len(outcome.faults)
        print(json.dumps(asdict(outcome)), flush=True)
    sys.exit(int(failed > 0))


if __name__ == "__main__":
    main()
