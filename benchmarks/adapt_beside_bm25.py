"""What an adaptation brings beside BM25: heads trained alone and beside it, judged alone and within the free hybrid.

    python benchmarks/adapt_beside_bm25.py --out benchmarks/results/adapt-beside-bm25

Of each set 2,000 passages of corpus.txt.gz offer pairs, as in `likewise adapt`; each head is judged by held-out pairs
(mean reciprocal rank of their passages) and by the labels of the dev part (nDCG@10), each alone and within the free
hybrid: the cosines of a query and its BM25 scores, each brought to mean 0 and deviation 1, added. `security` has no
dev part: its 2,018 reports are a test, and chose nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch.nn import functional as F

from domains import Bm25, Encoded, by_scores, standard, task_of
from likewise.adaptation.head import BaseTexts, FrozenTexts, Head, HeadTrainingOptions, train_head
from likewise.adaptation.texts import OwnText
from likewise.corpus import CorpusOptions
from likewise.corpus.downloads import data_folder
from likewise.corpus.passages import read_passages
from likewise.corpus.weaknesses import write_weaknesses
from likewise.encoder.word_part import fit_word_part
from likewise.evaluation.registry import resolve
from likewise.inference import load
from likewise.losses.functional import cosine_matrix
from likewise.losses.pairs import false_negatives, similarities_keep
from likewise.runs.progress import Progress

BASE = "bundled:minilm"
SETS = ("aviation", "exclusion", "regulation", "security")
ARMS: dict[str, dict[str, Any]] = {
    "beside BM25": {},
    "beside BM25, keep 0.3": {"keep": 0.3},
    "beside BM25, keep 3": {"keep": 3.0},
    "beside BM25, batch negatives": {"hard": 0},
    "beside BM25, short queries": {"short": True},
    "beside BM25, rate 3e-4": {"rate": 3e-4},
    "the same negatives, without BM25's term": {"share": 0.0},
}


class Both:
    """The free hybrid of vectors and of BM25 scores, or either alone, for `by_scores`."""

    def __init__(self, vectors: Callable[[Sequence[str]], np.ndarray], left: Any, right: Any, terms: Any) -> None:
        self.left, self.right, self.terms = vectors(left), vectors(right), terms

    def rows(self, block: slice) -> np.ndarray:
        cosines = self.left[block] @ self.right.T
        return cosines if self.terms is None else standard(cosines) + standard(self.terms.rows(block))


def beside(
    texts: FrozenTexts,
    pairs: np.ndarray,
    names: Sequence[str],
    *,
    keep: float = 1.0,
    hard: int = 3,
    short: bool = False,
    rate: float = 1e-4,
    share: float = 1.0,
    steps: int = 300,
    batch: int = 128,
    temperature: float = 0.05,
    seed: int = 1,
) -> Head:
    """Return a map trained so that its cosines and BM25's scores together find the passages of the pairs."""
    queries, passages = ([names[row] for row in pairs[:, side]] for side in (0, 1))
    rng = np.random.default_rng([seed, 9])
    if short:
        kept = [np.array(one.split()) for one in queries]
        queries = [" ".join(one[np.sort(rng.permutation(len(one))[: rng.integers(3, 9)])]) for one in kept]
    terms = standard(Bm25(queries, passages, passages).rows(slice(None)).astype(np.float32))  # (P, P)
    base = texts.vectors.numpy()
    cosines = base[pairs[:, 0]] @ base[pairs[:, 1]].T
    fixed, near = terms_and_negatives(cosines, terms, share)
    head = Head(base.shape[1])

    def sides(rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        left, right = (texts.vectors[torch.from_numpy(pairs[rows, side])] for side in (0, 1))
        return left, right

    def moved(rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        left, right = sides(rows)
        return head.linear(left), head.linear(right)

    batches = batches_of(rng, near, steps, batch, hard)
    train_beside([head.linear.weight], batches, moved, sides, fixed, steps, rate, keep, temperature)
    return head.eval()


Sides = Callable[[np.ndarray], tuple[torch.Tensor, torch.Tensor]]


def terms_and_negatives(cosines: np.ndarray, terms: np.ndarray, share: float) -> tuple[torch.Tensor, np.ndarray]:
    """BM25's scores (P, P), as large as a cosine varies, and the 25 best wrong passages of each pair in the hybrid."""
    spread = cosines.std(axis=1, keepdims=True)
    together = cosines / spread + terms
    np.fill_diagonal(together, -np.inf)
    return torch.from_numpy(share * terms * spread), np.argpartition(-together, 25, axis=1)[:, :25]


def batches_of(rng: np.random.Generator, near: np.ndarray, steps: int, batch: int, hard: int) -> Iterator[np.ndarray]:
    """Rows of each batch: pairs in a random order, each with so many of its negatives."""
    order: list[int] = []
    for _ in range(steps):
        chosen: dict[int, None] = {}
        while len(chosen) < min(batch, len(near)):
            order = order or rng.permutation(len(near)).tolist()
            one = order.pop()
            for row in [one, *rng.permutation(near[one])[:hard]]:
                chosen.setdefault(int(row))
        yield np.array(list(chosen))


def train_beside(
    weights: Sequence[torch.Tensor],
    batches: Iterator[np.ndarray],
    moved: Sides,
    before: Sides,
    fixed: torch.Tensor,
    steps: int,
    rate: float,
    keep: float,
    temperature: float,
) -> None:
    """Train weights with BM25's score as a fixed term in the softmax, and the base's similarities to keep to.

    `moved` and `before` give the vectors of both sides of a batch's pairs, of the model and of the base.
    """
    optimizer, warm = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0), steps // 10
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (steps - step) / (steps - warm + 1))
    )
    for rows in batches:
        found = cosine_matrix(*moved(rows))
        with torch.no_grad():
            left, right = before(rows)
            wanted, out = left @ right.T, false_negatives(left, right)
        logits = ((found + fixed[rows][:, rows]) / temperature).masked_fill(out, -torch.inf)
        loss = F.cross_entropy(logits, torch.arange(len(rows))) + keep * similarities_keep(found, wanted, temperature)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def mrr(scores: np.ndarray, own: np.ndarray) -> np.ndarray:
    return 100 / (scores >= scores[np.arange(len(own)), own][:, None] - 1e-6).sum(axis=1)


def heads(texts: FrozenTexts, base: BaseTexts, text: OwnText, pairs: np.ndarray, names: Sequence[str]) -> Any:
    """Yield the name and head of each candidate."""
    size = texts.vectors.shape[1]
    yield "base", Head(size)
    ids = base.tokens([one.text for one in text.passages])
    words = Head(size, fit_word_part(ids, base.encoder.tokenizer, base.embeddings, size, 384, 1))
    yield "words 0.7", words
    alone, quiet = HeadTrainingOptions(negation=0), Progress(quiet=True)
    yield "words 0.7, trained map and words", train_head(words, texts, pairs, alone, 1, quiet)
    yield "trained map", train_head(Head(size), texts, pairs, alone, 1, quiet)
    for name, settings in ARMS.items():
        yield name, beside(texts, pairs, names, **settings)


def row_of(
    name: str, arm: str, dev: Sequence[float], ranks: Sequence[np.ndarray], base: Sequence[np.ndarray]
) -> dict[str, Any]:
    """What is kept of a candidate; ranks are reciprocal, of each held-out pair, alone and in the hybrid."""
    gains = ranks[1] - base[1]
    row: dict[str, Any] = {"set": name, "candidate": arm, "dev_alone": dev[0], "dev_hybrid": dev[1]}
    row |= {f"mrr_{kind}": float(one.mean()) for kind, one in zip(("alone", "hybrid"), ranks, strict=True)}
    row["gain_hybrid"], row["noise"] = float(gains.mean()), 2 * float(gains.std()) / len(gains) ** 0.5
    return row


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--data", type=Path, default=data_folder() / "domain")
    found.add_argument("--out", type=Path, default=Path("benchmarks/results/adapt-beside-bm25"))
    found.add_argument("--runs", type=Path, default=Path("runs"), help="where the weaknesses are written")
    found.add_argument("--vectors", type=Path, default=Path.home() / ".cache/likewise/benchmarks/domains")
    found.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    vectors = Encoded(BASE, args.vectors)
    base = BaseTexts(load(BASE, engine="torch"), BASE)
    for name in args.sets:
        if name == "security":
            folder = args.runs / "security-text"
            write_weaknesses(folder)
            corpus, options = folder / "text.jsonl", CorpusOptions(field="text")
            task = resolve([f"retrieval:{folder}/reports:test"])[0][0]
        else:
            corpus, options, task = args.data / name / "corpus.txt.gz", None, task_of(args.data, name, "dev")
        passages = read_passages(str(corpus), options, seed=1)
        order = np.random.default_rng([1, 3]).permutation(len(passages))[:2000]
        text = OwnText.of([passages[i] for i in np.sort(order)], 1)
        ready = task.read(Path())
        names = list(dict.fromkeys([*(side for one in text.pairs for side in (one.first, one.second)), *text.pool]))
        names = list(dict.fromkeys([*names, *ready.sentences]))
        found = vectors(names)
        found = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
        place = {one: row for row, one in enumerate(names)}
        texts = FrozenTexts(torch.from_numpy(found), base.tokens(names), base, place)
        pairs = texts.rows([(pair.first, pair.second) for pair in text.training])
        own = np.array(text.own)
        terms = standard(Bm25(text.queries, text.pool, text.pool).rows(slice(None)))
        documents = ready.sentences[: ready.ranked]
        judged = Bm25(ready.sentences[ready.ranked :], documents, documents)
        ranks: dict[str, list[np.ndarray]] = {}
        rows = []
        for arm, head in heads(texts, base, text, pairs, names):

            def under(some: Sequence[str], head: Head = head, texts: FrozenTexts = texts) -> np.ndarray:
                return texts.under(head, some)

            cosines = under(text.queries) @ under(text.pool).T
            ranks[arm] = [mrr(cosines, own), mrr(standard(cosines) + terms, own)]
            dev = [
                by_scores(task, lambda left, right, under=under, t=t: Both(under, left, right, t)).score  # type: ignore
                for t in (None, judged)
            ]
            rows.append(row_of(name, arm, dev, ranks[arm], ranks["base"]))
            print(json.dumps(rows[-1]), flush=True)
        (args.out / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        for kind in ("alone", "hybrid"):
            sides = [[row[f"{measure}_{kind}"] for row in rows] for measure in ("mrr", "dev")]
            print(f"{name}, {kind}: rank correlation of held-out MRR and dev {spearmanr(*sides)[0]:.2f}")


if __name__ == "__main__":
    main()
