"""Ideas for a search, compared with the default on dev queries, without an index in between.

    python benchmarks/search_ideas.py --sets library computing aviation security exclusion
    python benchmarks/search_ideas.py --ideas whitening graph

Every passage is scored by every part; the scores agree with those of the index, whose candidates hold the answer. What
is needed of an index of searching.py (in --work) is read once for each set and stored beside it: vectors, the BM25
scores of the queries, how well the tokens of the first 150 passages fit, and the vectors of a question's sentences. An
idea then takes seconds. Each line has the mean gain over the default, and for each set nDCG@10, the gain and its
standard error. At most 300 queries of a set are taken.

Letters of the shapes: Q queries, N passages, D embedding.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.extmath import randomized_svd

import likewise
from likewise.corpus.sentence_splitter import sentence_spans
from likewise.evaluation.bm25 import analyzer, folded
from likewise.evaluation.fusion import standardised, token_gains
from likewise.searching.parts.pipeline import Pipeline
from likewise.searching.query.exclusion import divided
from likewise.searching.query.typed_query import TypedQuery, searched_words, stop_words
from searching import JUDGED, collection, parser

MOST, FIRST, HIGHEST = 300, 150, 6.0
STEPS = Pipeline()


def read(name: str, options: argparse.Namespace) -> SimpleNamespace:
    """Return the passages, queries and scores of a set."""
    index = options.work / f"{name}-{options.model.replace(':', '-').replace('/', '-')}.index"
    stored = index.with_suffix(f".{options.split}.pickle")
    if not stored.exists():
        stored.write_bytes(
            pickle.dumps(looked_up(likewise.Index(index), collection(options.data, name, options.split)))
        )
    found = SimpleNamespace(**pickle.loads(stored.read_bytes()), name=name)
    found.words = np.zeros((len(found.queries), len(found.texts)), dtype=np.float32)
    for row, (positions, scores) in zip(found.words, found.bm25, strict=True):
        row[positions] = scores
    centred = found.vectors - found.vectors.mean(axis=0)
    found.variances, found.directions = np.linalg.eigh(centred.T @ centred / len(centred))
    sizes = np.bincount(found.document)
    means = np.zeros((len(sizes), found.vectors.shape[1]), dtype=np.float32)
    np.add.at(means, found.document, found.vectors)
    found.sizes, found.document_vectors = sizes, means / sizes[:, None]
    return found


def looked_up(index: likewise.Index, judged: Any) -> dict[str, Any]:
    """Return what an index has of the passages, and of up to `MOST` queries."""
    opened, table, geometry = index._opened, index.table, index._opened.stored.geometry
    passages = table.passages(np.asarray(geometry.rows))
    names = [str(row["metadata"].get("_id") or row["id"]) for row in passages]
    vectors = table.vectors(np.asarray(geometry.rows))
    found: dict[str, Any] = {"texts": [row["text"] for row in passages], "names": names, "vectors": vectors}
    found |= {"document": np.asarray(geometry.document), "near": np.asarray(geometry.near)}
    found |= {name: [] for name in ("queries", "grades", "asked", "bm25", "fits", "sentences", "off")}
    some = list(judged.queries)
    if len(some) > MOST:
        some = [some[i] for i in np.sort(np.random.default_rng(0).choice(len(some), MOST, replace=False))]

    def by_words(text: str) -> tuple[np.ndarray, np.ndarray]:
        ids, scores = table.by_words(searched_words(text, "English"), len(vectors))
        return geometry.positions(ids), scores

    for query in some:
        text, excluded = divided(TypedQuery.of(judged.queries[query], "English").text)
        asked = index.encoder.asked(opened, text, "", tokens=True)
        positions, scores = by_words(text)
        words = np.zeros(len(vectors))
        words[positions] = scores
        own = STEPS.vectors * standardised(vectors @ asked.vector) + STEPS.words * standardised(words)
        first = np.sort(np.argsort(-own)[:FIRST])
        packed = table.tokens_of(geometry.rows[first])
        codec = opened.stored.codec
        is_question = len(asked.tokens) < codec.lengths(packed).mean()
        found["fits"].append((first, codec.fits(asked.tokens, asked.weights, packed)) if is_question else None)
        several = [one for a, b in sentence_spans(text) if len((one := text[a:b].strip()).split()) > 2]
        found["sentences"].append(index._encode(several) if 1 < len(several) <= 10 else None)
        found["off"].append((index._encode([excluded])[0], *by_words(excluded)) if excluded else None)
        found["queries"].append(text)
        found["grades"].append({str(name): grade for name, grade in judged.grades[query].items()})
        found["asked"].append(asked.vector)
        found["bm25"].append((positions, scores))
    return found | {"asked": np.stack(found["asked"])}


def whitened(found: SimpleNamespace, queries: np.ndarray, power: float, soft: float = 0.1) -> np.ndarray:
    """Return queries (Q, D) with less of the directions in which all passages vary."""
    if not power:
        return queries
    factors = (found.variances / found.variances[-1] + soft) ** -power
    result: np.ndarray = (queries @ found.directions * factors) @ found.directions.T
    return result


def by_vectors(found: SimpleNamespace, power: float = 0.0, share: float = 0.0) -> np.ndarray:
    """Return the standardised cosines (Q, N), of whitened queries, with a share for the best sentence of a question."""
    scores = standardised(whitened(found, found.asked, power) @ found.vectors.T)
    for row, several in zip(scores, found.sentences, strict=True):
        if several is not None and share:
            best = standardised(whitened(found, several, power) @ found.vectors.T).max(axis=0)
            row += share * (best - row)
    return scores


def search(
    found: SimpleNamespace,
    vectors: np.ndarray | None = None,
    words: np.ndarray | None = None,
    smooth: Callable[[np.ndarray], np.ndarray] | None = None,
    added: np.ndarray | float = 0.0,
    highest: float = HIGHEST,
    **steps: float,
) -> np.ndarray:
    """Return the scores (Q, N) of a search in which a part is another one."""
    pipeline, off = STEPS.updated(**steps), np.zeros_like(found.words)
    vectors = by_vectors(found) if vectors is None else vectors
    lexical = standardised(found.words if words is None else words)
    for number, excluded in enumerate(found.off):
        if excluded is not None and pipeline.excluded:
            vector, positions, scores = excluded
            lexical[number] = np.minimum(lexical[number], highest)
            row = np.zeros(len(found.texts))
            row[positions] = scores
            own = standardised(found.vectors @ vector)
            off[number] = pipeline.excluded * (pipeline.vectors * own + pipeline.words * standardised(row))
    scores = pipeline.vectors * vectors + pipeline.words * lexical + added
    for row, fits in zip(scores, found.fits, strict=True):
        if fits is not None and pipeline.tokens:
            positions, fit = fits
            kept = np.argsort(-row[positions])[: pipeline.first]
            gains, other = token_gains(row[positions[kept]], fit[kept])
            row += pipeline.tokens * other
            row[positions[kept]] += pipeline.tokens * (gains - other)
    near = scores[:, found.near[:, : pipeline.nearest]].mean(axis=2)
    scores = smooth(scores) if smooth else scores + pipeline.neighbours * (near - scores)
    if pipeline.documents and found.sizes.max() > 1:
        sums = np.stack([np.bincount(found.document, row, len(found.sizes)) for row in found.words])
        of_words = standardised(sums / (0.8 + 0.2 * found.sizes / found.sizes.mean()))
        of_vectors = standardised(found.asked @ found.document_vectors.T)
        of_documents = pipeline.vectors * of_vectors + pipeline.words * of_words
        scores = scores + pipeline.documents * of_documents[:, found.document]
    return scores - off


def ndcg(found: SimpleNamespace, scores: np.ndarray) -> np.ndarray:
    """Return nDCG@10 (Q,), times 100; a document counts by its best passage."""
    values = []
    for row, grades in zip(scores, found.grades, strict=True):
        first = list(dict.fromkeys(found.names[i] for i in np.argsort(-row, kind="stable")[:80]))[:10]
        gains, best = [grades.get(name, 0) for name in first], sorted(grades.values(), reverse=True)[:10]
        dcg = [sum(grade / np.log2(place + 2) for place, grade in enumerate(some)) for some in (gains, best)]
        values.append(100 * dcg[0] / dcg[1])
    return np.array(values)


def own_bm25(found: SimpleNamespace, k1: float, power: float) -> np.ndarray:
    """Return BM25 scores (Q, N) with another k1, and with idf to a power."""
    counts, asked, idf = counted(found)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    weights = counts.copy()
    weights.data = weights.data / (
        weights.data + np.repeat(k1 * (0.25 + 0.75 * lengths / lengths.mean()), np.diff(counts.indptr))
    )
    return np.asarray((asked @ diags(idf**power) @ weights.T).todense())


def counted(found: SimpleNamespace) -> tuple[Any, Any, np.ndarray]:
    """Return the counts of words in passages (N, V) and queries (Q, V), and idf (V,)."""
    silent, stems = stop_words("English"), analyzer("english")
    counter = CountVectorizer(analyzer=lambda text: stems(" ".join(w for w in folded(text).split() if w not in silent)))
    counts = csr_matrix(counter.fit_transform(found.texts), dtype=np.float32)
    holding = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log1p((len(found.texts) - holding + 0.5) / (holding + 0.5))
    return counts, csr_matrix(counter.transform(found.queries), dtype=np.float32), idf


def latent(found: SimpleNamespace, size: int) -> np.ndarray:
    """Return the standardised cosines (Q, N) of latent semantic analysis."""
    counts, asked, idf = counted(found)
    for one in (counts, asked):
        one.data = 1 + np.log(one.data)
    weighed = counts @ diags(idf)
    weighed = diags(1 / np.maximum(np.sqrt(np.asarray(weighed.multiply(weighed).sum(axis=1)).ravel()), 1e-9)) @ weighed
    left, values, right = randomized_svd(weighed.tocsr(), size, random_state=0, n_iter=3)
    passages, queries = left * values, asked @ diags(idf) @ right.T
    passages /= np.maximum(np.linalg.norm(passages, axis=1, keepdims=True), 1e-9)
    return standardised(queries @ passages.T)


def fed_back(found: SimpleNamespace, share: float, depth: int) -> np.ndarray:
    """Return standardised cosines, to which those of the first 5 passages are added that both lists have."""
    vectors, first = by_vectors(found).copy(), search(found)
    lists = [np.argsort(-scores, axis=1)[:, :depth] for scores in (vectors, found.words)]
    for number, row in enumerate(vectors):
        agreed = [one for one in np.argsort(-first[number])[:depth] if all(one in some[number] for some in lists)][:5]
        if agreed:
            row += share * (standardised(found.vectors @ found.vectors[agreed].mean(axis=0)) - row)
    return vectors


def graph(found: SimpleNamespace, count: int, share: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the smoothing of scores by nearer passages, which count more."""
    cosines = found.vectors @ found.vectors.T
    np.fill_diagonal(cosines, -1)
    near = np.argsort(-cosines, axis=1)[:, :count]
    weights = np.maximum(np.take_along_axis(cosines, near, axis=1), 0) ** 4
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    return lambda scores: scores + share * (np.einsum("nk,qnk->qn", weights, scores[:, near]) - scores)


IDEAS: dict[str, Callable[[SimpleNamespace], np.ndarray]] = {
    "without the most deviations of words": lambda one: search(one, highest=np.inf),
    "without tokens": lambda one: search(one, tokens=0),
    "without neighbours": lambda one: search(one, neighbours=0),
    "without documents": lambda one: search(one, documents=0),
    "without exclusion": lambda one: search(one, excluded=0),
    "whitening 0.25": lambda one: search(one, by_vectors(one, power=0.25)),
    "sentences 0.3": lambda one: search(one, by_vectors(one, share=0.3)),
    "whitening and sentences": lambda one: search(one, by_vectors(one, 0.25, 0.3)),
    "neighbours 0.2": lambda one: search(one, neighbours=0.2),
    "neighbours 0.3": lambda one: search(one, neighbours=0.3),
    "words 0.5, vectors 0.5": lambda one: search(one, vectors=0.5, words=0.5),
    "graph of 5, 0.2": lambda one: search(one, smooth=graph(one, 5, 0.2)),
    "feedback 0.2 of 10": lambda one: search(one, fed_back(one, 0.2, 10)),
    "feedback 0.3 of 20": lambda one: search(one, fed_back(one, 0.3, 20)),
    "BM25 with idf^1.5": lambda one: search(one, words=own_bm25(one, 1.2, 1.5)),
    "BM25 with k1 2": lambda one: search(one, words=own_bm25(one, 2.0, 1.0)),
    "latent semantics, 100, 0.2": lambda one: search(one, added=0.2 * latent(one, 100)),
}


def shown(label: str, sets: Sequence[SimpleNamespace], scores: Callable[[SimpleNamespace], np.ndarray]) -> str:
    """Return a line of the table."""
    values = [ndcg(one, scores(one)) for one in sets]
    gains = [value - one.default for one, value in zip(sets, values, strict=True)]
    cells = [
        f"{value.mean():.2f} ({gain.mean():+.2f} ± {gain.std() / len(gain) ** 0.5:.2f})"
        for value, gain in zip(values, gains, strict=True)
    ]
    return f"| {label} | {np.mean([gain.mean() for gain in gains]):+.2f} | {' | '.join(cells)} |"


def main() -> None:
    options = parser()
    options.add_argument("--ideas", nargs="*", default=[""], help="beginnings of their names; all of them if not given")
    options.set_defaults(sets=JUDGED[:6], split="dev")
    given = options.parse_args()
    sets = [read(name, given) for name in given.sets]
    for one in sets:
        one.default = ndcg(one, search(one))
    print(f"| | mean | {' | '.join(given.sets)} |\n| --- |{' ---: |' * (1 + len(sets))}")
    print(shown("the default", sets, search))
    for label, idea in IDEAS.items():
        if label.startswith(tuple(given.ideas)):
            print(shown(label, sets, idea), flush=True)


if __name__ == "__main__":
    main()
