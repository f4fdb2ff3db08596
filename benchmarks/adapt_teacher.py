"""A larger encoder as the teacher of a linear map: what the base's vectors know of its similarities on a text.

    python benchmarks/adapt_teacher.py --out benchmarks/results/adapt-teacher

Of each set 2,000 documents or sentences without labels are encoded by the base and by the teacher. The map is fitted to
the similarities among them, by the teacher alone (`teacher`) or by the mean of both (`both`):

- `regression A`: W predicts the teacher's vectors from the base's by ridge regression; similarities are (1 - A) those
  of the base plus A those of the predictions, so that the map is the root of (1 - A) I + A W W'. No chance in it.
- `distilled`: the distribution of the similarities (temperature 0.05) of each text of a batch of 192 to the others, as
  near to the teacher's as 300 updates bring it (relational distillation).

Retrieval sets: nDCG@10 of the dev part (security: half of its reports) by the vectors alone, within the free hybrid,
and within the pipeline of an index without tokens, with the interval of the gain over the base (paired bootstrap). The
others: the main measure of the dev part.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from adapt_untrained import SENTENCES, Map, Scored, by_every_way, row_of, unit, write
from domains import Encoded, corpus_of, sample_of, task_of
from likewise.corpus.downloads import data_folder
from likewise.retrieval.words import bm25
from searching import JUDGED, collection

FITTED = 2000


def regressed(own: np.ndarray, teacher: np.ndarray, share: float, weight: float = 0.1) -> Map:
    """The map of (P, D) vectors by the teacher's (P, E)."""
    size = own.shape[1]
    prior = weight * len(own) / size * np.eye(size)
    predicts = np.linalg.solve(own.T @ own + prior, own.T @ teacher)  # (D, E)
    predicts /= np.sqrt(((own @ predicts) ** 2).sum(axis=1).mean())  # as long as the base's vectors
    values, directions = np.linalg.eigh((1 - share) * np.eye(size) + share * predicts @ predicts.T)
    turned = (directions * np.sqrt(np.maximum(values, 0))) @ directions.T
    return lambda some: unit(some @ turned)


def distilled(own: np.ndarray, teacher: np.ndarray, keep: float, seed: int = 1) -> Map:
    torch.manual_seed(seed)
    base, taught = torch.from_numpy(own), torch.from_numpy(teacher)
    turned = torch.eye(own.shape[1], requires_grad=True)
    optimizer = torch.optim.AdamW([turned], lr=3e-4, weight_decay=0.0)
    size = min(192, len(own))
    itself = torch.eye(size, dtype=torch.bool)
    for _ in range(300):
        rows = torch.randint(len(own), (size,))
        found = F.normalize(base[rows] @ turned, dim=1)
        mine, wanted, before = (
            (some @ some.T / 0.05).masked_fill(itself, -1e4).log_softmax(dim=1)
            for some in (found, taught[rows], base[rows])
        )
        loss = F.kl_div(mine, wanted, reduction="batchmean", log_target=True)
        loss = loss + keep * F.kl_div(mine, before, reduction="batchmean", log_target=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    matrix = turned.detach().numpy()
    return lambda some: unit(some @ matrix)


def maps(own: np.ndarray, teacher: np.ndarray) -> Iterator[tuple[str, Map]]:
    both = (np.hstack([own, teacher]) / np.sqrt(2)).astype(np.float32)
    for share in (0.3, 0.5, 0.7):
        yield f"regression {share}", regressed(own, teacher, share)
    yield "regression 0.5, prior 1", regressed(own, teacher, 0.5, 1.0)
    yield "distilled, both", distilled(own, both, 0.0)
    yield "distilled, both, another seed", distilled(own, both, 0.0, 2)
    yield "distilled, both, keep 1", distilled(own, both, 1.0)
    yield "distilled, teacher", distilled(own, teacher, 0.0)
    yield "distilled, teacher, keep 1", distilled(own, teacher, 1.0)


def retrieval(name: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    judged, test = (collection(args.data, name, part) for part in ("dev", "test"))
    texts, queries = list(judged.documents.values()), list(judged.queries.values())
    both = unit(Encoded(args.base, args.vectors)([*texts, *queries]))
    documents, asked = both[: len(texts)], both[len(texts) :]
    taught = Encoded(args.teacher, args.vectors, "bf16")
    whole = [*test.documents.values(), *test.queries.values()]
    if args.kept:
        taught(whole)  # as searching.py does: their vectors are kept
    chosen = np.random.default_rng(1).permutation(len(texts))[:FITTED]
    fitted = unit(taught([texts[i] for i in chosen]))
    words = bm25(queries, texts)

    def scored(passages: np.ndarray, given: np.ndarray) -> Scored:
        return by_every_way(given @ passages.T, words, passages, judged)

    start = scored(documents, asked)
    yield row_of(name, "base", start)
    for arm, change in maps(documents[chosen], fitted):
        yield row_of(name, arm, scored(change(documents), change(asked)), start)


def single(name: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    corpus = sample_of(corpus_of(args.data, name))
    ready = task_of(args.data, name, "dev").read(Path())
    needed = list(dict.fromkeys([*corpus, *ready.sentences]))
    place = {text: row for row, text in enumerate(needed)}
    every = unit(Encoded(args.base, args.vectors, "bf16")(needed))
    pool, judged = (every[[place[text] for text in some]] for some in (corpus, ready.sentences))
    fitted = unit(Encoded(args.teacher, args.vectors, "bf16")(corpus))
    start = ready.score(judged).score
    yield {"set": name, "arm": "base", "dev": round(start, 2), "gain": 0.0}
    for arm, change in maps(pool, fitted):
        score = ready.score(change(judged)).score
        yield {"set": name, "arm": arm, "dev": round(score, 2), "gain": round(score - start, 2)}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--data", type=Path, default=data_folder() / "domain")
    found.add_argument("--out", type=Path, default=Path("benchmarks/results/adapt-teacher"))
    found.add_argument("--vectors", type=Path, default=Path.home() / ".cache/likewise/benchmarks/domains")
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--teacher", default="bundled:mpnet")
    found.add_argument("--kept", action="store_true", help="searching.py encoded the documents by the teacher before")
    found.add_argument("--sets", nargs="+", choices=(*JUDGED, *SENTENCES), default=[*JUDGED, *SENTENCES])
    return found


def main() -> None:
    write(parser().parse_args(), lambda name, args: (retrieval if name in JUDGED else single)(name, args))


if __name__ == "__main__":
    main()
