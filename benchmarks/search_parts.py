"""The parts of a hybrid search, each by itself, over all documents of judged sets.

    python benchmarks/search_parts.py --study weights
    python benchmarks/search_parts.py --study tokens
    python benchmarks/search_parts.py --study feedback
    python benchmarks/search_parts.py --study length --sets aviation regulation
    python benchmarks/search_parts.py --study exclusion --sets exclusion aviation regulation

Exhaustive: every document is scored, so that no index stands between a weight and its figure. Dev queries (at most 150
a set with tokens, 300 with lengths), nDCG@10. Security reports whose digest is divisible by three are its dev part.
Two further sets chose nothing before: `docstrings`, the first paragraph of a function's documentation in seven Python
packages as the query for the rest of it, and `headings`, 'HEADING of TITLE' as the query for paragraphs of Wikipedia.
Vectors and token vectors are kept in --vectors; encoding the six sets takes about 40 minutes of one thread.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import hashlib
import json
import random
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

import likewise
from domains import Bm25, standard, task_of
from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.downloads import data_folder
from likewise.corpus.weaknesses import read_weaknesses
from likewise.inference.model_tokens import tokens_of
from likewise.retrieval.fusion import nearest, token_gains
from likewise.searching.exclusion import divided
from likewise.searching.maxsim import TokenCodec, token_weights
from likewise.searching.passages import Splitting

PACKAGES = ("scipy", "sklearn", "numpy", "pandas", "networkx", "nltk", "matplotlib")
Judged = tuple[list[str], list[str], list[dict[int, int]]]  # documents, queries, and each query's grades by document


def digest(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def drawn(documents: list[str], relevant: dict[str, set[int]], count: int, seed: int) -> Judged:
    asked = sorted(relevant, key=digest)
    random.Random(seed).shuffle(asked)
    return documents, asked[:count], [dict.fromkeys(relevant[query], 1) for query in asked[:count]]


def docstrings() -> Judged:
    places: dict[str, int] = {}
    relevant: dict[str, set[int]] = {}
    for package in PACKAGES:
        spec = find_spec(package)
        for path in sorted(Path(spec.origin).parent.rglob("*.py")) if spec and spec.origin else ():
            if "tests" in path.parts or path.name.startswith("test"):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                    query, _, rest = (
                        " ".join(part.split()) for part in (ast.get_docstring(node) or "").partition("\n\n")
                    )
                    body = re.sub(r">>>.*|\.\.\. .*|-{3,}", "", rest).split()
                    if 4 <= len(query.split()) <= 30 and len(body) >= 30 and query not in relevant:
                        text = " ".join(body[:150])
                        relevant[query] = {places.setdefault(text, len(places))}
    return drawn(list(places), relevant, 800, 1)


def headings(data: Path) -> Judged:
    documents: list[str] = []
    relevant: dict[str, set[int]] = defaultdict(set)
    with gzip.open(data / "wikipedia/articles.jsonl.gz", "rt", encoding="utf-8") as lines:
        for article in (json.loads(line) for i, line in enumerate(lines) if i % 18 == 0):
            for section in article["sections"]:
                for paragraph in section["paragraphs"]:
                    words = (paragraph if isinstance(paragraph, str) else " ".join(paragraph)).split()
                    if len(words) >= 25:
                        documents.append(" ".join(words[:150]))
                        if section.get("heading"):
                            relevant[f"{section['heading']} of {article['title']}"].add(len(documents) - 1)
    return drawn(documents, relevant, 600, 2)


def security() -> Judged:
    weaknesses = read_weaknesses()
    relevant: dict[str, set[int]] = defaultdict(set)
    for place, one in enumerate(weaknesses):
        for report in one.reports:
            if int(digest(report), 16) % 3 == 0:
                relevant[report].add(place)
    return drawn([" ".join([one.name, *one.described]) for one in weaknesses], relevant, 10**6, 1)


def judged(name: str, data: Path) -> Judged:
    if name in ("docstrings", "headings", "security"):
        return {"docstrings": docstrings, "security": security}.get(name, lambda: headings(data))()
    found = task_of(data / "domain", name, "dev").load()
    place = {one: i for i, one in enumerate(found.documents)}
    grades = [{place[one]: grade for one, grade in found.grades[query].items()} for query in found.queries]
    return list(found.documents.values()), list(found.queries.values()), grades


class Texts:
    """Vectors (S, D) of texts and of their tokens, of length 1, kept in a file for each list of texts."""

    def __init__(self, model: str, folder: Path) -> None:
        self.name, self.folder, self.model = model, folder, None

    def __call__(self, texts: list[str], tokens: bool = False) -> tuple[np.ndarray, list[np.ndarray]]:
        path = self.folder / f"{digest(chr(0).join([self.name, str(tokens), *texts]))}.npz"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            vectors, of_tokens = self._encoded(texts)
            kept = {"tokens": np.concatenate(of_tokens), "lengths": [len(one) for one in of_tokens]} if tokens else {}
            half = path.with_suffix(".half.npz")
            np.savez(half, vectors=vectors, **kept)
            half.replace(path)
        found = np.load(path)
        split = np.split(found["tokens"], np.cumsum(found["lengths"])[:-1]) if tokens else []
        return found["vectors"], split

    @torch.inference_mode()
    def _encoded(self, texts: list[str]) -> tuple[np.ndarray, list[np.ndarray]]:
        self.model = self.model or likewise.load(self.name, precision="fp32")
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        vectors: dict[int, np.ndarray] = {}
        tokens: dict[int, np.ndarray] = {}
        for start in range(0, len(order), 32):
            rows = order[start : start + 32]
            features = self.model.preprocess([texts[i] for i in rows])
            out = self.model(features)
            unit = torch.nn.functional.normalize(out["token_embeddings"].float(), dim=2)
            for at, i in enumerate(rows):
                vectors[i] = out["sentence_embedding"][at].float().numpy()
                tokens[i] = unit[at, : int(features["attention_mask"][at].sum())].half().numpy()
        found = np.stack([vectors[i] for i in range(len(texts))])
        return found / np.linalg.norm(found, axis=1, keepdims=True), [tokens[i] for i in range(len(texts))]


def ndcg(scores: np.ndarray, grades: list[dict[int, int]], depth: int = 10) -> float:
    """nDCG@10 times 100 of scores (Q, N)."""
    discounts = 1 / np.log2(np.arange(2, depth + 2))
    found = []
    for row, wanted in zip(scores, grades, strict=True):
        top = np.argsort(-row, kind="stable")[:depth]
        ideal = np.sort(np.array([*wanted.values()], dtype=float))[::-1][:depth]
        gain = (np.array([wanted.get(int(i), 0) for i in top]) * discounts[: len(top)]).sum()
        found.append(gain / (ideal * discounts[: len(ideal)]).sum())
    return 100 * float(np.mean(found))


def spread(scores: np.ndarray, near: np.ndarray, share: float) -> np.ndarray:
    return (1 - share) * scores + share * scores[:, near].mean(axis=2)


def reranked(
    scores: np.ndarray, asked: list[np.ndarray], tokens: list[np.ndarray], weight: float, depth: int = 60
) -> np.ndarray:
    """Scores to which MaxSim (Khattab and Zaharia 2020), standardised over the first documents, is added for these."""
    out = scores.copy()
    for row, query in enumerate(asked):
        top = np.argsort(-scores[row], kind="stable")[:depth]
        fits = np.array([(query.astype(np.float32) @ tokens[i].astype(np.float32).T).max(axis=1).mean() for i in top])
        change = weight * scores[row, top].std() * standard(fits)
        out[row] += np.sort(change)[:10].mean()
        out[row, top] = scores[row, top] + change
    return out


def both(cosines: np.ndarray, words: np.ndarray, share: float) -> np.ndarray:
    return share * standard(cosines) + (1 - share) * standard(words)


def weights(one: Judged, encode: Texts) -> Iterator[tuple[str, float]]:
    documents, queries, grades = one[0], one[1][:150], one[2][:150]
    (vectors, tokens), (asked, of_queries) = encode(documents, True), encode(queries, True)
    cosines, words = asked @ vectors.T, Bm25(queries, documents, documents).rows(slice(None))
    near = nearest(vectors, 5)
    yield "base", ndcg(cosines, grades)
    yield "BM25", ndcg(words, grades)
    yield "free hybrid", ndcg(both(cosines, words, 0.5), grades)
    for share in (0.4, 0.6, 0.7):
        yield f"vectors {share}", ndcg(both(cosines, words, share), grades)
    fused = both(cosines, words, 0.6)
    for count, share in ((3, 0.1), (3, 0.15), (5, 0.2), (5, 0.3)):
        yield f"vectors 0.6, neighbours {count}, {share}", ndcg(spread(fused, near[:, :count], share), grades)
    for weight in (0.4, 0.6):
        fits = reranked(fused, of_queries, tokens, weight)
        yield f"vectors 0.6, tokens {weight}", ndcg(fits, grades)
        for count, share in ((3, 0.15), (5, 0.2)):
            near_too = ndcg(spread(fits, near[:, :count], share), grades)
            yield f"vectors 0.6, tokens {weight}, neighbours {count}, {share}", near_too


def recall(scores: np.ndarray, grades: list[dict[int, int]]) -> float:
    """Recall@100 times 100 of scores (Q, N)."""
    found = []
    for row, wanted in zip(scores, grades, strict=True):
        relevant = {one for one, grade in wanted.items() if grade > 0}
        found.append(len(relevant & set(np.argsort(-row, kind="stable")[:100].tolist())) / len(relevant))
    return 100 * float(np.mean(found))


def feedback(one: Judged, encode: Texts) -> Iterator[tuple[str, float]]:
    """What finds more: the first passages as a part of the query, in vectors (Rocchio) or in words (as in RM3)."""
    documents, queries, grades = one[0], one[1][:300], one[2][:300]
    vectors, asked = encode(documents, True)[0], encode(queries, True)[0]
    words = Bm25(queries, documents, documents)
    cosines, matched = asked @ vectors.T, words.rows(slice(None))
    near = nearest(vectors, 20)
    fused = both(cosines, matched, 0.6)

    def shown(what: str, scores: np.ndarray) -> Iterator[tuple[str, float]]:
        yield what, ndcg(scores, grades)
        yield f"{what}: recall@100", recall(scores, grades)

    yield from shown("free hybrid", both(cosines, matched, 0.5))
    yield from shown("vectors 0.6", fused)
    usual = spread(fused, near[:, :3], 0.15)
    yield from shown("and neighbours 3, 0.15", usual)
    for count, share in ((10, 0.3), (20, 0.3), (20, 0.5)):
        yield from shown(f"neighbours {count}, {share}", spread(fused, near[:, :count], share))
    order = np.argsort(-usual, axis=1)
    last = np.argsort(order, axis=1) >= 10  # the first ten keep their places
    for first, share in ((3, 0.3), (5, 0.3), (5, 0.5), (10, 0.3), (10, 0.5)):
        moved = (1 - share) * asked + share * vectors[order[:, :first]].mean(axis=1)
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        scores = spread(both(moved @ vectors.T, matched, 0.6), near[:, :3], 0.15)
        yield from shown(f"vectors of the first {first}, {share}", scores)
        yield from shown(f"vectors of the first {first}, {share}, below ten", np.where(last, scores - 1e3, usual))
    for first, terms, share in ((3, 10, 0.3), (5, 10, 0.3), (5, 20, 0.5), (10, 20, 0.3)):
        more = np.zeros_like(matched)
        for query, tops in enumerate(order[:, :first]):
            weights = np.asarray(words.weights[tops].mean(axis=0)).ravel()
            best = np.argsort(-weights)[:terms]
            more[query] = words.weights[:, best] @ (weights[best] / max(weights[best].sum(), 1e-9))
        wider = (1 - share) * standard(matched) + share * standard(more)
        scores = spread(both(cosines, wider, 0.6), near[:, :3], 0.15)
        yield from shown(f"{terms} words of the first {first}, {share}", scores)
        yield from shown(f"{terms} words of the first {first}, {share}, below ten", np.where(last, scores - 1e3, usual))


def tokens(one: Judged, encode: Texts) -> Iterator[tuple[str, float]]:
    """How tokens are stored and weighted, and how many passages are compared; queries of all lengths, none left out."""
    documents, queries, grades = one[0], one[1][:300], one[2][:300]
    (vectors, of_documents), (asked, of_queries) = encode(documents, True), encode(queries, True)
    fused = both(asked @ vectors.T, Bm25(queries, documents, documents).rows(slice(None)), 0.6)
    near = nearest(vectors, 3)
    yield "vectors 0.6", ndcg(fused, grades)
    tokenizer = tokens_of(likewise.load(encode.name, precision="fp32"))
    weights = token_weights(tokenizer(documents))
    rarest = weights.max()
    rooted = [np.append(weights, np.full(10**6, rarest))[ids] for ids in tokenizer(queries)]
    sample = [of_documents[i].astype(np.float32) for i in np.linspace(0, len(documents) - 1, 256).astype(int)]

    def shown(what: str, fits: list[np.ndarray], tops: np.ndarray, first: int = 60, weight: float = 0.5) -> Any:
        scores = fused.copy()
        for row, (top, fit) in enumerate(zip(tops[:, :first], fits, strict=True)):
            gains, others = token_gains(fused[row, top], fit[:first], weight)
            scores[row] += others
            scores[row, top] = fused[row, top] + gains
        yield f"{what}, weight {weight}, first {first}", ndcg(scores, grades)
        yield f"{what}, weight {weight}, first {first}, neighbours", ndcg(spread(scores, near, 0.15), grades)

    tops = np.argsort(-fused, axis=1, kind="stable")[:, :100]
    plain, whole = [], []
    for top, query, share in zip(tops, of_queries, rooted, strict=True):
        best = [(query.astype(np.float32) @ of_documents[i].astype(np.float32).T).max(axis=1) for i in top]
        plain.append(np.array([one.mean() for one in best]))
        whole.append(np.array([one @ share / share.sum() for one in best]))
    yield from shown("16 bits, all tokens alike", plain, tops)
    yield from shown("16 bits", whole, tops)
    for width in (96, 192):
        codec = TokenCodec.fit(sample, width)
        packed = {i: codec.pack(of_documents[i].astype(np.float32)) for i in np.unique(tops)}
        yield f"2 bits of {width}: bytes of a passage", float(np.mean([len(one) for one in packed.values()]))
        fits = [
            codec.fits(codec.projected(query.astype(np.float32)), share, [packed[i] for i in top])
            for top, query, share in zip(tops, of_queries, rooted, strict=True)
        ]
        yield from shown(f"2 bits of {width}", fits, tops)
    for first, weight in ((30, 0.5), (100, 0.5), (60, 0.4), (60, 0.6), (60, 0.8)):
        yield from shown("2 bits of 192", fits, tops, first, weight)


def length(one: Judged, encode: Texts) -> Iterator[tuple[str, float]]:
    documents, queries, grades = one[0], one[1][:300], one[2][:300]
    asked = encode(queries)[0]
    for most in (100, 180, 10**6):
        texts, own = documents, np.arange(len(documents))
        if most < 10**6:
            with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
                rows = ({"_id": i, "text": text} for i, text in enumerate(documents))
                file.write("".join(json.dumps(row) + "\n" for row in rows))
                file.flush()
                passages = list(Splitting(most, CorpusOptions(field="text")).read(Path(file.name)))
            texts, own = [one.text for one in passages], np.array([one.id for one in passages])
        cosines, words = asked @ encode(texts)[0].T, Bm25(queries, texts, texts).rows(slice(None))
        starts = np.flatnonzero(np.r_[True, own[1:] != own[:-1]])
        for name, scores in (("base", cosines), ("BM25", words), ("vectors 0.6", both(cosines, words, 0.6))):
            best = np.full((len(queries), len(documents)), scores.min() - 1)
            best[:, own[starts]] = np.maximum.reduceat(scores, starts, axis=1)
            yield f"{most if most < 10**6 else 'all'} words, {name}", ndcg(best, grades)


def exclusion(one: Judged, encode: Texts) -> Iterator[tuple[str, float]]:
    documents, queries, grades = one
    parts = [(query, *divided(query)) for query in queries]
    chosen = [i for i, (_, _, excluded) in enumerate(parts) if excluded]
    yield "queries that exclude something", len(chosen)
    if not chosen:
        return
    vectors, wanted = encode(documents)[0], [grades[i] for i in chosen]
    whole, asked, excluded = (
        both(encode(list(texts))[0] @ vectors.T, Bm25(texts, documents, documents).rows(slice(None)), 0.6)
        for texts in zip(*(parts[i] for i in chosen), strict=True)
    )
    yield "as they stand", ndcg(whole, wanted)
    for share in (0.0, 0.1, 0.2, 0.3, 0.5):
        yield f"divided, {share} taken off", ndcg(asked - share * excluded, wanted)


STUDIES: dict[str, Any] = {
    "weights": weights,
    "feedback": feedback,
    "tokens": tokens,
    "length": length,
    "exclusion": exclusion,
}
SETS = ("aviation", "exclusion", "regulation", "security", "docstrings", "headings")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--study", choices=STUDIES, default="weights")
    found.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    found.add_argument("--model", default="bundled:minilm")
    found.add_argument("--data", type=Path, default=data_folder())
    found.add_argument("--vectors", type=Path, default=Path.home() / ".cache/likewise/benchmarks/search-parts")
    return found


def main() -> None:
    args = parser().parse_args()
    encode = Texts(args.model, args.vectors)
    for name in args.sets:
        for what, score in STUDIES[args.study](judged(name, args.data), encode):
            print(f"{name}: {what}: {score:.2f}", flush=True)


if __name__ == "__main__":
    main()
