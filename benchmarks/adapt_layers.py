"""The last layers of the transformer trained beside BM25, and the linear map of `likewise adapt`, on the same pairs.

    python benchmarks/adapt_layers.py --out benchmarks/results/adapt-layers

The documents of a set (at most 3,000, with all that are relevant to its first 150 dev queries) offer pairs, at most
2,000, that train for 100 updates. BM25's score of the pair stands as a fixed term in the softmax (as in CLEAR, Gao et
al. 2021), negatives are those that the free hybrid finds, and a keep term holds the similarities to those of the base.
nDCG@10 of the dev part (security: half of its reports) by the vectors alone, within the free hybrid and within the
pipeline of an index without tokens, with the interval of the gain over the base in the same pipeline (paired
bootstrap).

The layers below those that are trained run once over every text, in bfloat16, and their output is kept in memory.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from adapt_beside_bm25 import BASE, batches_of, standard, terms_and_negatives, train_beside
from adapt_untrained import Scored, by_every_way, row_of
from likewise.corpus.downloads import data_folder
from likewise.corpus.passages import Passage, offered_pairs
from likewise.corpus.sentence_splitter import sentences_of
from likewise.inference import load
from likewise.queries.writer import round_trip, writer_of, written_for
from likewise.retrieval.words import bm25
from likewise.runs.progress import Progress
from queries import reduced
from searching import JUDGED, Judged, collection

DOCUMENTS, QUERIES, PAIRS, WRITTEN_FOR = 3000, 150, 2000, 240
ARMS: dict[str, dict[str, Any]] = {
    "map": {"layers": 0, "rate": 1e-4},
    "2 layers": {},
    "2 layers, and written queries": {"written": True},
    "2 layers, keep 0.3, rate 1e-4": {"keep": 0.3, "rate": 1e-4},
    "2 layers, without BM25's term": {"share": 0.0},
}


class Halves:
    """A BERT whose layers are divided: those that stay, whose output is kept for every text, and the last `layers`."""

    def __init__(self, layers: int = 2) -> None:
        self.encoder = load(BASE, engine="torch")
        bert: Any = self.encoder[0].auto_model
        self.below, self.start = list(bert.encoder.layer[:-layers]), bert.embeddings
        self.above = nn.ModuleList(bert.encoder.layer[-layers:])
        self.kept: dict[str, Tensor] = {}

    @torch.no_grad()
    def read(self, texts: Sequence[str], most: int = 256) -> None:
        tokenizer = self.encoder.tokenizer
        new = sorted({one for one in texts if one not in self.kept}, key=len)
        for begin in range(0, len(new), 64):
            block = new[begin : begin + 64]
            ids = tokenizer(block, padding=True, truncation=True, max_length=most, return_tensors="pt")
            with torch.autocast("cpu", torch.bfloat16):
                hidden = through(self.below, self.start(ids["input_ids"]), ids["attention_mask"])
            for text, row, mask in zip(block, hidden, ids["attention_mask"], strict=True):
                self.kept[text] = row[: int(mask.sum())].to(torch.bfloat16).clone()

    def vectors(self, texts: Sequence[str], above: nn.ModuleList) -> Tensor:
        rows = [self.kept[text] for text in texts]
        mask = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long)
        for row, some in zip(mask, rows, strict=True):
            row[: len(some)] = 1
        hidden = nn.utils.rnn.pad_sequence(rows, batch_first=True)  # (B, T, D)
        with torch.autocast("cpu", torch.bfloat16):
            found = through(above, hidden.float(), mask).float()
        pooled = (found * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        return F.normalize(pooled, dim=1)

    @torch.no_grad()
    def all(self, texts: Sequence[str], above: nn.ModuleList) -> np.ndarray:
        order = sorted(range(len(texts)), key=lambda i: len(self.kept[texts[i]]))
        found = np.empty((len(texts), 384), dtype=np.float32)
        for begin in range(0, len(order), 64):
            rows = order[begin : begin + 64]
            found[rows] = self.vectors([texts[i] for i in rows], above).numpy()
        return found


def through(layers: Sequence[Any], hidden: Tensor, mask: Tensor) -> Tensor:
    seen = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
    for layer in layers:
        out = layer(hidden, seen.to(hidden.dtype))
        hidden = out[0] if isinstance(out, tuple) else out
    return hidden


def trained(
    halves: Halves,
    pairs: Sequence[tuple[str, str]],
    *,
    layers: int = 2,
    rate: float = 3e-5,
    keep: float = 1.0,
    share: float = 1.0,
    written: bool = False,
    steps: int = 100,
    batch: int = 32,
    hard: int = 3,
    temperature: float = 0.05,
    seed: int = 1,
) -> tuple[nn.ModuleList, Tensor]:
    """The last layers and the map behind them; `layers` 0 trains the map, otherwise the layers."""
    rng = np.random.default_rng([seed, 9])
    torch.manual_seed(seed)
    above, turned = copy.deepcopy(halves.above).train(), torch.eye(384, requires_grad=not layers)
    for module in above.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    queries, passages = [first for first, _ in pairs], [second for _, second in pairs]
    left, right = (torch.from_numpy(halves.all(side, halves.above)) for side in (queries, passages))
    terms = standard(bm25(queries, passages).astype(np.float32))  # (P, P)
    fixed, near = terms_and_negatives((left @ right.T).numpy(), terms, share)

    def before(rows: np.ndarray) -> tuple[Tensor, Tensor]:
        return left[torch.from_numpy(rows)], right[torch.from_numpy(rows)]

    def moved(rows: np.ndarray) -> tuple[Tensor, Tensor]:
        if not layers:
            return before(rows)[0] @ turned, before(rows)[1] @ turned
        first, second = (halves.vectors([side[i] for i in rows], above) for side in (queries, passages))
        return first, second

    weights = list(above.parameters()) if layers else [turned]
    batches = batches_of(rng, near, steps, batch, hard)
    train_beside(weights, batches, moved, before, fixed, steps, rate, keep, temperature)
    return above.eval(), turned.detach()


def smaller(judged: Judged, most: int) -> Judged:
    """The first dev queries, and at most so many documents: those relevant to these queries, and some others."""
    asked = list(judged.queries)[:QUERIES]
    wanted = {one for query in asked for one, grade in judged.grades[query].items() if grade > 0}
    others = sorted(judged.documents.keys() - wanted)
    drawn = np.random.default_rng(1).permutation(len(others))[: max(0, most - len(wanted))]
    there = wanted | {others[i] for i in drawn}
    documents = {name: text for name, text in judged.documents.items() if name in there}
    grades = {query: {one: g for one, g in judged.grades[query].items() if one in there} for query in asked}
    return Judged(documents, {query: judged.queries[query] for query in asked}, grades)


def written_pairs(name: str, whole: Judged, halves: Halves) -> list[tuple[str, str]]:
    """The queries that SmolLM2 wrote for `queries.py --passages 240` and that the round trip keeps."""
    if name == "security":
        return []
    texts = list(reduced(whole, WRITTEN_FOR).documents.values())
    written = written_for(texts, writer_of("bundled:smollm2", "", Progress()), Progress())

    def vectors(some: Sequence[str]) -> np.ndarray:
        halves.read(some)
        return halves.all(list(some), halves.above)

    return [(one.text, texts[one.passage]) for one in round_trip(written, texts, vectors)]


def rows_of(name: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    whole = collection(args.data, name, "dev")
    judged = smaller(whole, DOCUMENTS)
    documents, queries = list(judged.documents.values()), list(judged.queries.values())
    halves = Halves()
    begun = time.perf_counter()
    halves.read([*documents, *queries])
    offered = offered_pairs([Passage(tuple(sentences_of(text))) for text in documents], seed=1)
    rest = [(one.first, one.second) for one in offered if one.kind in ("rest", "title", "question")]
    pairs = [rest[i] for i in np.random.default_rng([1, 3]).permutation(len(rest))[:PAIRS]]
    halves.read([side for pair in pairs for side in pair], most=128)
    written = written_pairs(name, whole, halves) if any("written" in ARMS[arm] for arm in args.arms) else []
    words = bm25(queries, documents)
    print(f"{name}: {len(documents)} documents, {len(pairs)} pairs, read in {time.perf_counter() - begun:.0f} s")

    def scored(above: nn.ModuleList, turned: Tensor) -> Scored:
        passages, asked = (
            F.normalize(torch.from_numpy(halves.all(some, above)) @ turned, dim=1).numpy()
            for some in (documents, queries)
        )
        return by_every_way(asked @ passages.T, words, passages, judged)

    start = scored(halves.above, torch.eye(384))
    yield row_of(name, "base", start)
    for arm in args.arms:
        settings = ARMS[arm]
        if settings.get("written") and not written:
            continue
        begun = time.perf_counter()
        parts = trained(halves, pairs + (written if settings.get("written") else []), **settings)
        seconds = round(time.perf_counter() - begun)
        yield row_of(name, arm, scored(*parts), start) | {"seconds": seconds}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--data", type=Path, default=data_folder() / "domain")
    found.add_argument("--out", type=Path, default=Path("benchmarks/results/adapt-layers"))
    found.add_argument("--sets", nargs="+", choices=JUDGED, default=list(JUDGED))
    found.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.sets:
        rows = []
        for row in rows_of(name, args):
            rows.append(row)
            print(json.dumps(row), flush=True)
            text = "\n".join(json.dumps(one) for one in rows)
            (args.out / f"{name}.jsonl").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
