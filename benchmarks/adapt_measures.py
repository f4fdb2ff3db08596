"""Does a measure without labels tell whether an adaptation to single sentences helps? Candidates, labels, measures.

    python benchmarks/adapt_measures.py --out benchmarks/results/adapt-measures

Of each set 2,000 sentences of corpus.txt.gz (seed 1) adapt all-MiniLM-L6-v2 in several ways; each candidate is scored
by the labels of the set's dev part, and by measures that see the 2,000 sentences alone:

- `halves`: every other word of a sentence, without the stems that both halves share, finds the other words among those
  of all sentences (mean reciprocal rank).
- `parts`: the same for the first and the second half of a sentence.
- `agreement`: the share of the 10 nearest sentences by one half's words that are among the 10 nearest by the other's.
- `clusters`: the adjusted Rand index of 30 clusters (k-means) by one half's words and by the other's.
- `beyond`: the share of the 10 nearest sentences that have no stem in common with the sentence (stop words taken off).
- `hubs`: minus the skewness of how often a sentence is among the 10 nearest of another.

Printed are Spearman's correlation over the candidates of each set, and what each measure would have chosen. The
trained transformers are kept in --runs, vectors in --vectors.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import skew, spearmanr
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from domains import Encoded, corpus_of, sample_of, stem, task_of, words
from likewise import train
from likewise.adaptation.head import (
    BaseTexts,
    FrozenTexts,
    Head,
    HeadTrainingOptions,
    train_head,
)
from likewise.corpus.downloads import data_folder
from likewise.corpus.passages import Passage, offered_pairs
from likewise.encoder.word_part import WordPart, fit_word_part
from likewise.evaluation.geometry import reciprocal_ranks
from likewise.inference import load
from likewise.runs.progress import Progress

SETS = ("banking", "threats", "tweets", "biomedicine", "patents")
BASE = "bundled:minilm"
TRAINED = {"max_steps": 100, "learning_rate": 2e-5, "batch_size": 64, "max_length": 128, "select_by": "last"}
NEAR = 10


def centred(vectors: np.ndarray) -> Head:
    """Return the head that takes the mean of vectors (N, D) off."""
    head = Head(vectors.shape[1])
    with torch.no_grad():
        head.linear.bias.copy_(torch.from_numpy(-vectors.mean(axis=0)))
    return head


def softly_whitened(vectors: np.ndarray, power: float = 0.25) -> Head:
    """Return the head that takes the mean of vectors (N, D) off and makes their directions more equal.

    The matrix is C^(-power / 2) up to a factor, with the covariance C: power 1 whitens, 0 does nothing.
    """
    mean = vectors.mean(axis=0, dtype=np.float64)
    values, axes = np.linalg.eigh(np.cov(vectors.T.astype(np.float64)))
    values = np.maximum(values, 1e-6 * values.max())
    matrix = axes * values ** (-power / 2) @ axes.T  # symmetric
    head = Head(len(mean))
    with torch.no_grad():
        head.linear.weight.copy_(torch.from_numpy(matrix))
        head.linear.bias.copy_(torch.from_numpy(-mean @ matrix))
    return head


def stem_of(word: str) -> str:
    return stem(word.lower().strip(".,;:!?()[]\"'"))


def divided(text: str, parts: bool) -> tuple[str, str]:
    """Return two halves of a text without the stems that both have."""
    found = text.split()
    middle = (len(found) + 1) // 2
    left, right = (found[:middle], found[middle:]) if parts else (found[::2], found[1::2])
    shared = {stem_of(word) for word in left} & {stem_of(word) for word in right}
    kept = [[word for word in side if stem_of(word) not in shared] for side in (left, right)]
    return " ".join(kept[0]), " ".join(kept[1])


def nearest(vectors: np.ndarray, count: int = NEAR) -> np.ndarray:
    """Return the rows (N, count) of the nearest other vectors."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -np.inf)
    return np.argpartition(-cosines, count, axis=1)[:, :count]


def measures(texts: Sequence[str], sides: dict[str, list[np.ndarray]], vectors: np.ndarray) -> dict[str, float]:
    """Return the measures without labels of one candidate.

    Args:
        texts: N sentences.
        sides: the vectors (M, D) of both sides of the sentences that could be divided.
        vectors: (N, D).
    """
    found = {}
    for name, (left, right) in sides.items():
        own = np.arange(len(left))
        ranks = [reciprocal_ranks(left, right, own), reciprocal_ranks(right, left, own)]
        found[name] = 100 * float(np.mean(ranks))
    left, right = sides["halves"]
    pairs = zip(nearest(left), nearest(right), strict=True)
    found["agreement"] = 100 * float(np.mean([len(set(a) & set(b)) / NEAR for a, b in pairs]))
    groups = [KMeans(30, n_init=3, random_state=0).fit_predict(side) for side in (left, right)]
    found["clusters"] = 100 * float(adjusted_rand_score(*groups))
    stems = [set(one) for one in words(texts)]
    near = nearest(vectors)
    beyond = [np.mean([not stems[row] & stems[other] for other in others]) for row, others in enumerate(near)]
    found["beyond"] = 100 * float(np.mean(beyond))
    found["hubs"] = -float(skew(np.bincount(near.ravel(), minlength=len(texts))))
    return found


def part_of(texts: FrozenTexts, base: BaseTexts, corpus: Sequence[str], supported: bool) -> WordPart:
    """Return the part of words; `supported`: each word as long as the share n / (n + 5) of its n sentences says."""
    ids = base.tokens(corpus)
    size = texts.vectors.shape[1]
    part = fit_word_part(ids, base.encoder.tokenizer, base.embeddings, size, 384, 1)
    if supported:
        rows = part.row.numpy()
        count = np.zeros(len(part.table))
        for one in ids:
            count[np.unique(rows[one])] += 1
        with torch.no_grad():
            part.table *= torch.from_numpy(count / (count + 5)).float()[:, None]
    return part


def candidates(texts: FrozenTexts, base: BaseTexts, corpus: Sequence[str], first: str) -> dict[str, Head]:
    """Return the heads on one transformer."""
    size = texts.vectors.shape[1]
    part, shrunk = (part_of(texts, base, corpus, supported) for supported in (False, True))

    def lexical(weight: float, of: WordPart) -> Head:
        found = copy.deepcopy(of)
        found.weight = weight
        return Head(size, found)

    pairs = offered_pairs([Passage((one,)) for one in corpus], seed=1)
    rows = texts.rows([(pair.first, pair.second) for pair in pairs])
    trained = HeadTrainingOptions(negation=0)
    found = {"": Head(size), "words 0.3": lexical(0.3, part), "words 0.7": lexical(0.7, part)}
    found["words 0.7, map and words"] = train_head(found["words 0.7"], texts, rows, trained, 1, Progress(quiet=True))
    if not first:
        vectors = texts.under(found[""], corpus)
        found |= {
            "words 0.5": lexical(0.5, part),
            "words 0.3, by support": lexical(0.3, shrunk),
            "words 0.7, by support": lexical(0.7, shrunk),
            "map": train_head(found[""], texts, rows, trained, 1, Progress(quiet=True)),
            "centred": centred(vectors),
            "soft whitening": softly_whitened(vectors),
        }
    return {", ".join(filter(None, (first, name))) or "base": head for name, head in found.items()}


def transformer(recipe: str, name: str, corpus: Sequence[str], runs: Path) -> str:
    """Return the folder of the base trained on the sentences by a recipe; made when it is not there."""
    folder, text = runs / f"{recipe}-{name}", runs / f"{name}.txt"
    runs.mkdir(parents=True, exist_ok=True)
    text.write_text("\n".join(corpus) + "\n", encoding="utf-8")
    train(recipe, str(text), base=BASE, out=str(folder), seed=1, quiet=True, **TRAINED)
    return str(folder)


def scored(name: str, recipe: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return name, dev score and measures of each candidate on one transformer."""
    corpus = sample_of(corpus_of(args.data, name))
    model = transformer(recipe, name, corpus, args.runs) if recipe else BASE
    ready = task_of(args.data, name, "dev").read(Path())
    sides = {}
    for kind in ("halves", "parts"):
        pairs = [divided(text, kind == "parts") for text in corpus]
        sides[kind] = [pair for pair in pairs if all(pair)]
    pairs = offered_pairs([Passage((one,)) for one in corpus], seed=1)
    needed = [*corpus, *ready.sentences, *(text for pairs in sides.values() for pair in pairs for text in pair)]
    needed = list(dict.fromkeys([*needed, *(text for pair in pairs for text in (pair.first, pair.second))]))
    vectors = Encoded(model, args.vectors)(needed)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    base = BaseTexts(load(model, engine="torch"), model)
    rows = {text: row for row, text in enumerate(needed)}
    texts = FrozenTexts(torch.from_numpy(vectors.astype(np.float32)), base.tokens(needed), base, rows)
    found = []
    for candidate, head in candidates(texts, base, corpus, recipe).items():
        of = {kind: [texts.under(head, side) for side in zip(*pairs, strict=True)] for kind, pairs in sides.items()}
        row = {"set": name, "candidate": candidate, "dev": ready.score(texts.under(head, ready.sentences)).score}
        found.append(row | measures(corpus, of, texts.under(head, corpus)))
        print(json.dumps(found[-1]), flush=True)
    return found


def tables(rows: Sequence[dict[str, Any]]) -> str:
    """Return the correlations, what would have been chosen, and all scores, as Markdown."""
    sets = list(dict.fromkeys(row["set"] for row in rows))
    names = [name for name in rows[0] if name not in ("set", "candidate", "dev")]
    lines = [f"| Spearman over candidates | {' | '.join(sets)} |", f"| --- |{' ---: |' * len(sets)}"]
    of = {name: [row for row in rows if row["set"] == name] for name in sets}
    for measure in names:
        found = [spearmanr([one["dev"] for one in of[name]], [one[measure] for one in of[name]])[0] for name in sets]
        lines.append(f"| {measure} | {' | '.join(f'{one:.2f}' for one in found)} |")
    lines += ["", f"| dev, over the base, of what it chooses | {' | '.join(sets)} | mean | least |"]
    lines.append(f"| --- |{' ---: |' * (len(sets) + 2)}")

    def line(title: str, gains: Sequence[float]) -> str:
        return f"| {title} | {' | '.join(f'{one:+.2f}' for one in (*gains, np.mean(gains), min(gains)))} |"

    base = {name: next(one["dev"] for one in of[name] if one["candidate"] == "base") for name in sets}
    for measure in (*names, "dev"):
        best = [max(of[name], key=lambda one: one[measure]) for name in sets]
        lines.append(line(f"the best by {measure}", [one["dev"] - base[one["set"]] for one in best]))
    for candidate in dict.fromkeys(row["candidate"] for row in rows):
        fixed = [next((one for one in of[name] if one["candidate"] == candidate), None) for name in sets]
        if all(fixed) and candidate != "base":
            lines.append(line(f"always {candidate}", [one["dev"] - base[one["set"]] for one in fixed if one]))
    lines += ["", f"| set | candidate | dev | {' | '.join(names)} |", f"| --- | --- |{' ---: |' * (len(names) + 1)}"]
    for row in rows:
        cells = [f"{row[name]:.2f}" for name in ("dev", *names)]
        lines.append(f"| {row['set']} | {row['candidate']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--data", type=Path, default=data_folder() / "domain")
    found.add_argument("--out", type=Path, default=Path("benchmarks/results/adapt-measures"))
    found.add_argument("--runs", type=Path, default=Path("runs/adapt-measures"))
    found.add_argument("--vectors", type=Path, default=Path.home() / ".cache/likewise/benchmarks/domains")
    found.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    found.add_argument("--recipes", nargs="+", default=["", "arccse"], help="transformers; '': the base as shipped")
    return found


def main() -> None:
    args = parser().parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "scores.jsonl"
    for recipe in args.recipes:
        for name in args.sets:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            rows = [json.loads(line) for line in lines]
            if any(row["set"] == name and row["recipe"] == recipe for row in rows):
                continue
            new = [json.dumps({"recipe": recipe, **row}) + "\n" for row in scored(name, recipe, args)]
            with path.open("a", encoding="utf-8") as file:
                file.writelines(new)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row.pop("recipe")
    (args.out / "table.md").write_text(tables(rows) + "\n", encoding="utf-8")
    print(tables(rows))


if __name__ == "__main__":
    main()
