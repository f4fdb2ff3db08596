"""Speed, coverage and correctness of likewise's negation, of one-by-one parsing and of the package `negate`.

    pip install "likewise[negation]" && pip install --no-deps negate
    python benchmarks/negation/compare.py SENTENCES.txt.gz --pairs tests/augment/negation/pairs.tsv

All measures are taken in one run, on the same sentences, one after the other. `negate` asks for spaCy's
en_core_web_md; it gets the model of --peer-model if given, else the same small one as likewise.
"""

from __future__ import annotations

import argparse
import gzip
import logging
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import spacy

sys.path.insert(0, str(Path(__file__).parent.parent))

from claims import Claim, finish, with_claims
from likewise.augment.negation import negate_batch, negate_corpus
from likewise.augment.negation.parser import DEFAULT_MODEL


def read(path: Path, n: int, seed: int) -> list[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip()]
    return random.Random(seed).sample(lines, min(n, len(lines)))


def peer(model: str) -> Callable[[str], str | None]:
    """The package `negate`, None where it says that it does not support a sentence."""
    from negate import Negator

    class Small(Negator):  # type: ignore[misc]
        def _initialize_spacy_model(self, use_transformers, **kwargs):
            return spacy.load(model, **kwargs)

    negator = Small(fail_on_unsupported=True, log_level=logging.ERROR)

    def run(sentence: str) -> str | None:
        try:
            return negator.negate_sentence(sentence, prefer_contractions=False)
        except Exception:  # it also raises IndexError and others
            return None

    return run


def timed(work: Callable[[], object], n: int, repeats: int = 1) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return n / best


def plain(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").strip()


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("sentences", type=Path)
    found.add_argument("--pairs", type=Path, required=True)
    found.add_argument("--n", type=int, default=2000)
    found.add_argument("--seed", type=int, default=2026)
    found.add_argument("--processes", type=int, default=2)
    found.add_argument("--peer-model", default=DEFAULT_MODEL)
    found.add_argument("--no-peer", action="store_true", help="without the package negate")
    with_claims(found)
    return found


def main() -> None:
    options = parser().parse_args()
    sentences = read(options.sentences, options.n, options.seed)
    n = len(sentences)
    full = spacy.load(DEFAULT_MODEL)
    theirs = (lambda _: None) if options.no_peer else peer(options.peer_model)
    negate_batch(sentences[:50])  # load before the clock starts

    rows: list[tuple[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        rows.append(("parse one by one, full pipeline", timed(lambda: [full(s) for s in sentences], n)))
        if not options.no_peer:
            rows.append(("`negate` (one by one)", timed(lambda: [theirs(s) for s in sentences], n)))
        rows.append(("likewise, 1 process", timed(lambda: negate_batch(sentences), n)))
        many = lambda: negate_corpus(sentences, out, processes=options.processes, cache=False, quiet=True)  # noqa: E731
        rows.append((f"likewise, {options.processes} processes, to a file, start included", timed(many, n)))
        negate_corpus(sentences, out)
        rows.append(("likewise, second run, from the cache", timed(lambda: negate_corpus(sentences, out), n)))
    load = os.getloadavg()[0]
    print(f"{n} sentences, peer's model {Path(options.peer_model).name}, {os.cpu_count()} cores, load {load:.1f}\n")
    print("| way | sentences/s | ratio |\n| --- | --- | --- |")
    for name, speed in rows:
        print(f"| {name} | {speed:,.0f} | {speed / rows[0][1]:.2f} |")
    speeds = dict(rows)
    claims = [Claim("negation: parsing one by one", "/s", rows[0][1], speeds["likewise, 1 process"])]
    if not options.no_peer:
        claims.append(Claim("negation: `negate`", "/s", speeds["`negate` (one by one)"], speeds["likewise, 1 process"]))
    finish(options, claims)
    if options.no_peer:
        return

    ours = {x.sentence: x.negation for x in negate_batch(sentences)}
    peers = {s: theirs(s) for s in sentences}
    changed = sum(peers[s] is not None and plain(peers[s]) != plain(s) for s in sentences)
    print(f"\ncoverage: likewise {sum(v is not None for v in ours.values()) / n:.1%}, negate {changed / n:.1%}")

    pairs = [line.split("\t") for line in options.pairs.read_text(encoding="utf-8").splitlines()]
    mine = {x.sentence: plain(x.negation) for x in negate_batch(p[1] for p in pairs)}
    by_kind: dict[str, list[tuple[bool, bool]]] = {}
    for kind, sentence, expected in pairs:
        result = theirs(sentence)
        other = "" if plain(result) == plain(sentence) else plain(result)
        by_kind.setdefault(kind, []).append((mine[sentence] == plain(expected), other == plain(expected)))
    print("\n| construction | pairs | likewise | negate |\n| --- | --- | --- | --- |")
    for kind, hits in by_kind.items():
        print(f"| {kind} | {len(hits)} | {sum(a for a, _ in hits)} | {sum(b for _, b in hits)} |")
    every = [hit for hits in by_kind.values() for hit in hits]
    print(f"| all | {len(every)} | {sum(a for a, _ in every)} | {sum(b for _, b in every)} |")


if __name__ == "__main__":
    main()
