"""Changes of the vectors that need no training, judged as a search uses them, and on single sentences.

    python benchmarks/adapt_untrained.py --out benchmarks/results/adapt-untrained
    python benchmarks/adapt_untrained.py --part test --arms ridge --out benchmarks/results/adapt-untrained/test

Everything is fitted on text without labels: the documents of a retrieval set, the corpus of 2,000 sentences of the
others. Retrieval sets: nDCG@10 of the dev part (security: half of its reports) by the vectors alone, within the free
hybrid, and within the pipeline of an index without tokens, whose neighbours are found by the changed vectors, with the
interval of the gain over the base in the same pipeline (paired bootstrap). The others: the main measure of the dev
part. --part test takes the test parts instead, for an arm that is final.

- `top K`: the mean and the first K principal directions taken off (all-but-the-top, Mu and Viswanath 2018).
- `whitening P`: the mean taken off, directions divided by their deviation to the power P, after the covariance is
  shrunk (Ledoit and Wolf 2004).
- `within P`: directions divided by the deviation of the differences of pairs that the text offers, to the power P
  (within-class covariance normalisation, Hatch et al. 2006).
- `near K, A`: a text's vector takes a share A of the mean of its K nearest texts' vectors; `by both`: nearest by the
  cosine and BM25 together.
- `sentences A`: a document's vector takes a share A of the mean of its sentences' vectors, as if these were queries.
- `ridge L`: queries are mapped by the ridge regression of passages on the queries that were taken out of them, with
  the identity as its prior.
- `latent A`: latent semantic indexing of the texts (Deerwester and others 1990), 384 dimensions over stems, has a share
  A beside the base's cosine.
- `weighed P` (single sentences): before the mean, a token's vector is multiplied by its inverse document frequency to
  the power P; the two special tokens have the average weight of the corpus.
- `hubs A`: from the cosine with a document, A times its mean cosine with the 10 nearest queries that were taken out of
  the text is subtracted (as in CSLS, Conneau et al. 2018); no map of vectors, but a number for each document.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import WordWeights
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from adapt_measures import SETS as SENTENCES
from domains import Encoded, corpus_of, sample_of, task_of
from likewise.choice.trial import gain_interval
from likewise.corpus.downloads import data_folder
from likewise.corpus.passages import Passage, offered_pairs
from likewise.corpus.sentence_splitter import sentences_of
from likewise.inference import encode, load
from likewise.inference.encoder import Encoder
from likewise.retrieval.fusion import exhaustive, nearest, standardised
from likewise.retrieval.pipeline import WITHOUT_TOKENS, free_hybrid, vectors_alone
from likewise.retrieval.words import analyzer, bm25
from queries import ndcg_of_each
from searching import JUDGED, Judged, collection

WAYS = {"alone": vectors_alone(), "free hybrid": free_hybrid(), "pipeline without tokens": WITHOUT_TOKENS}
PARTS = ("dev", "test")
MOST = 5000  # documents of a set on which the two dear changes are tried
Map = Callable[[np.ndarray], np.ndarray]
Scored = dict[str, np.ndarray]
"""Way to the nDCG@10 of each query."""


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)).astype(np.float32)


def without_top(vectors: np.ndarray, count: int) -> Map:
    mean = vectors.mean(axis=0)
    top = np.linalg.svd(vectors - mean, full_matrices=False)[2][:count]  # (K, D)
    return lambda some: unit(some - mean - (some - mean) @ top.T @ top)


def whitened(vectors: np.ndarray, power: float) -> Map:
    mean = vectors.mean(axis=0)
    values, directions = np.linalg.eigh(ledoit_wolf(vectors)[0])
    turned = (directions * values ** (-power / 2)) @ directions.T
    return lambda some: unit((some - mean) @ turned)


def within(left: np.ndarray, right: np.ndarray, power: float) -> Map:
    values, directions = np.linalg.eigh(ledoit_wolf(left - right, assume_centered=True)[0])
    turned = (directions * values ** (-power / 2)) @ directions.T
    return lambda some: unit(some @ turned)


def ridge(left: np.ndarray, right: np.ndarray, weight: float) -> Map:
    """The W that makes |left W - right|^2 + weight |W - I|^2 P / D least, as a map."""
    size = left.shape[1]
    prior = weight * len(left) / size * np.eye(size)
    turned = np.linalg.solve(left.T @ left + prior, left.T @ right + prior)
    return lambda some: unit(some @ turned)


def latent(texts: Sequence[str]) -> Callable[[Sequence[str]], np.ndarray]:
    """The vectors of texts by latent semantic indexing of some texts, each of length 1."""
    words = TfidfVectorizer(analyzer=analyzer("english"), sublinear_tf=True, min_df=2, dtype=np.float32)
    fitted = TruncatedSVD(384, n_iter=4, random_state=1).fit(words.fit_transform(texts))
    return lambda some: unit(fitted.transform(words.transform(some)))


def weighed(base: str, corpus: Sequence[str], powers: Sequence[float]) -> Iterator[tuple[float, Any]]:
    """A power, and the base with its tokens weighed by their inverse document frequency in the corpus to that power."""
    model = load(base, engine="torch", precision="bf16")
    tokenizer = model.tokenizer
    pieces = [
        set(ids) for ids in tokenizer(list(corpus), truncation=True, max_length=model.max_seq_length)["input_ids"]
    ]
    counts = np.bincount(np.concatenate([list(some) for some in pieces]), minlength=len(tokenizer))
    idf = np.log((len(corpus) + 1) / (counts + 1)).clip(0.05)
    vocabulary = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    for power in powers:
        weights = idf**power
        weights[[tokenizer.cls_token_id, tokenizer.sep_token_id]] = np.average(weights, weights=counts)
        given = WordWeights(vocabulary, dict(zip(vocabulary, weights.tolist(), strict=True)))
        yield power, Encoder(modules=[model[0], given, *list(model)[1:]])


def beside(vectors: np.ndarray, others: np.ndarray, share: float) -> np.ndarray:
    return unit(np.concatenate([vectors, share**0.5 * others], axis=1))


def wanted(arm: str, args: argparse.Namespace) -> bool:
    return not args.arms or arm.startswith(tuple(args.arms))


def averaged(vectors: np.ndarray, near: np.ndarray, pool: np.ndarray, share: float) -> np.ndarray:
    return unit((1 - share) * vectors + share * pool[near].mean(axis=1))


def near_in(vectors: np.ndarray, pool: np.ndarray, count: int) -> np.ndarray:
    """The nearest rows of a pool (N, K); a vector that is in the pool itself is not its own neighbour."""
    cosines = vectors @ pool.T
    cosines[cosines > 1 - 1e-5] = -np.inf
    return np.argpartition(-cosines, count, axis=1)[:, :count]


def near_by_both(texts: Sequence[str], vectors: np.ndarray, count: int) -> np.ndarray:
    found = []
    for start in range(0, len(texts), 500):
        block = slice(start, start + 500)
        both = standardised(vectors[block] @ vectors.T) + standardised(bm25(texts[block], texts))
        rows = np.arange(len(both))
        both[rows, start + rows] = -np.inf
        found.append(np.argpartition(-both, count, axis=1)[:, :count])
    return np.concatenate(found)


def heads(vectors: np.ndarray, left: np.ndarray, right: np.ndarray) -> Iterator[tuple[str, Map]]:
    """Maps of every vector, of documents and queries alike."""
    for count in (0, 1, 3, 10):
        yield f"top {count}", without_top(vectors, count)
    for power in (0.1, 0.25, 0.5):
        yield f"whitening {power}", whitened(vectors, power)
    for power in (0.25, 0.5, 1.0):
        yield f"within {power}", within(left, right, power)


def by_every_way(cosines: np.ndarray, words: np.ndarray, passages: np.ndarray, judged: Judged) -> Scored:
    """The nDCG@10 of each query by cosines and BM25 scores (Q, N), whose neighbours are found by passages (N, D)."""
    near = nearest(passages, WITHOUT_TOKENS.nearest)
    return {way: ndcg_of_each(exhaustive(steps, cosines, words, near), judged) for way, steps in WAYS.items()}


def row_of(name: str, arm: str, found: Scored, base: Scored | None = None) -> dict[str, Any]:
    """What is kept of an arm: the mean of each way, and beside a base the gain with its interval."""
    row: dict[str, Any] = {"set": name, "arm": arm}
    for way, each in found.items():
        row[way] = round(float(each.mean()), 2)
        if base is not None:
            low, high = gain_interval(each - base[way])
            row[f"{way}: gain"] = [round(float((each - base[way]).mean()), 2), round(low, 2), round(high, 2)]
    return row


def retrieval(name: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    judged = collection(args.data, name, args.part)
    texts, queries = list(judged.documents.values()), list(judged.queries.values())
    encode = Encoded(args.base, args.vectors)
    both = unit(encode([*texts, *queries]))
    documents, asked = both[: len(texts)], both[len(texts) :]
    offered = offered_pairs([Passage(tuple(sentences_of(text))) for text in texts], seed=1)
    chosen = np.random.default_rng(1).permutation(len(offered))[:2000]
    quick = Encoded(args.base, args.vectors, args.precision)
    left, right = (unit(quick([getattr(offered[i], side) for i in chosen])) for side in ("first", "second"))
    words = bm25(queries, texts)

    def scored(passages: np.ndarray, given: np.ndarray, less: np.ndarray | float = 0.0) -> Scored:
        return by_every_way(given @ passages.T - less, words, passages, judged)

    def arms() -> Iterator[tuple[str, Callable[[], Scored]]]:
        for arm, change in heads(documents, left, right):
            yield arm, lambda change=change: scored(change(documents), change(asked))
        near = nearest(documents, 10)
        for count, share in ((5, 0.15), (5, 0.3), (10, 0.3), (5, 0.5)):
            some = near[:, :count]
            yield (
                f"near {count}, {share}",
                lambda some=some, share=share: scored(averaged(documents, some, documents, share), asked),
            )
        for weight in (0.3, 1.0, 3.0):
            yield f"ridge {weight}", lambda weight=weight: scored(documents, ridge(left, right, weight)(asked))
        if any(wanted(f"latent {share}", args) for share in (0.3, 0.6)):
            topics = latent(texts)
            for share in (0.3, 0.6):
                sides = [beside(documents, topics(texts), share), beside(asked, topics(queries), share)]
                yield f"latent {share}", lambda sides=sides: scored(*sides)
        hubs = np.sort(documents @ left.T, axis=1)[:, -10:].mean(axis=1)
        for share in (0.25, 0.5):
            yield f"hubs {share}", lambda less=share * hubs: scored(documents, asked, less)
        if len(documents) > MOST or not any(wanted(arm, args) for arm in ("near 5, 0.15, by both", "sentences 0.15")):
            return
        alike = near_by_both(texts, documents, 5)
        for share in (0.15, 0.3):
            changed = averaged(documents, alike, documents, share)
            yield f"near 5, {share}, by both", lambda changed=changed: scored(changed, asked)
        sentences = [list(sentences_of(text))[:12] for text in texts]
        flat = unit(quick([one for some in sentences for one in some]))
        starts = np.cumsum([0, *map(len, sentences)])
        means = np.stack([flat[a:b].mean(axis=0) for a, b in pairwise(starts)])
        for share in (0.15, 0.3, 0.5):
            changed = unit((1 - share) * documents + share * means)
            yield f"sentences {share}", lambda changed=changed: scored(changed, asked)

    start = scored(documents, asked)
    yield row_of(name, "base", start)
    for arm, made in arms():
        if wanted(arm, args):
            yield row_of(name, arm, made(), start)


def single(name: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    corpus = sample_of(corpus_of(args.data, name))
    ready = task_of(args.data, name, args.part).read(Path())
    offered = offered_pairs([Passage((one,)) for one in corpus], seed=1)
    quick = Encoded(args.base, args.vectors, args.precision)
    sides = [[getattr(one, side) for one in offered] for side in ("first", "second")]
    needed = list(dict.fromkeys([*corpus, *ready.sentences, *sides[0], *sides[1]]))
    place = {text: row for row, text in enumerate(needed)}
    every = unit(quick(needed))
    pool, judged, left, right = (
        every[[place[text] for text in some]] for some in (corpus, ready.sentences, sides[0], sides[1])
    )
    start = ready.score(judged).score

    def row(arm: str, vectors: np.ndarray) -> dict[str, Any]:
        score = ready.score(vectors).score
        return {"set": name, "arm": arm, args.part: round(score, 2), "gain": round(score - start, 2)}

    yield row("base", judged)
    topics = latent(corpus)(ready.sentences)
    changes = {f"latent {share}": partial(beside, judged, topics, share) for share in (0.1, 0.3, 0.6)}
    changes |= {arm: partial(change, judged) for arm, change in heads(pool, left, right)}
    for count, share in ((5, 0.15), (5, 0.3), (10, 0.3), (5, 0.5)):
        near = near_in(judged, pool, count)
        changes[f"near {count}, {share}"] = partial(averaged, judged, near, pool, share)
    for arm, changed in changes.items():
        if wanted(arm, args):
            yield row(arm, changed())
    if wanted("weighed", args):
        for power, model in weighed(args.base, corpus, (0.25, 0.5, 1.0)):
            yield row(f"weighed {power}", unit(encode(model, ready.sentences)))


def tables(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: the gains over the base in the free hybrid and the pipeline, and on single sentences."""
    lines = []
    for way, sets in (*((way, JUDGED) for way in WAYS), *((part, SENTENCES) for part in PARTS)):
        there = [name for name in sets if any(one["set"] == name and way in one for one in rows)]
        if not there:
            continue
        gains: dict[str, dict[str, float]] = {}
        for one in rows:
            if one["set"] in there and way in one and one["arm"] != "base":
                given = one.get(f"{way}: gain", one.get("gain"))
                gains.setdefault(one["arm"], {})[one["set"]] = given[0] if isinstance(given, list) else given
        base = {one["set"]: one[way] for one in rows if one["arm"] == "base" and way in one}
        title = f"{way}, gain over the base" if way in WAYS else f"single sentences ({way}), gain over the base"
        lines += [f"| {title} | {' | '.join(there)} | mean | least |", f"| --- |{' ---: |' * (len(there) + 2)}"]
        lines.append(f"| base | {' | '.join(f'{base[name]:.2f}' for name in there)} | | |")
        for arm, found in gains.items():
            cells = [f"{found[name]:+.2f}" if name in found else "" for name in there]
            ends = [f"{one:+.2f}" for one in (np.mean([*found.values()]), min(found.values()))]
            lines.append(f"| {arm} | {' | '.join([*cells, *ends])} |")
        lines.append("")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--data", type=Path, default=data_folder() / "domain")
    found.add_argument("--out", type=Path, default=Path("benchmarks/results/adapt-untrained"))
    found.add_argument("--vectors", type=Path, default=Path.home() / ".cache/likewise/benchmarks/domains")
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--precision", choices=("fp32", "bf16"), default="bf16", help="of all but documents and queries")
    found.add_argument("--sets", nargs="+", choices=(*JUDGED, *SENTENCES), default=[*JUDGED, *SENTENCES])
    found.add_argument("--part", choices=PARTS, default="dev")
    found.add_argument("--arms", nargs="+", help="how the names of the arms begin; all if not given")
    return found


def write(args: argparse.Namespace, rows_of: Callable[[str, argparse.Namespace], Iterator[dict[str, Any]]]) -> None:
    """Measure the sets that have no file yet, and write the table of all that have one."""
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.sets:
        path, rows = args.out / f"{name}.jsonl", []
        if path.exists():
            continue
        for row in rows_of(name, args):
            rows.append(json.dumps(row))
            print(rows[-1], flush=True)
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    files = [path for name in (*JUDGED, *SENTENCES) if (path := args.out / f"{name}.jsonl").exists()]
    every = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    (args.out / "table.md").write_text(tables(every), encoding="utf-8")
    print(tables(every))


def main() -> None:
    write(parser().parse_args(), lambda name, args: (retrieval if name in JUDGED else single)(name, args))


if __name__ == "__main__":
    main()
