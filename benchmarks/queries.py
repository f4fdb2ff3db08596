"""What queries written by a language model bring: in the index, for choosing, and as training pairs; each alone.

    python benchmarks/queries.py --study write
    python benchmarks/queries.py --study expand choose train --out benchmarks/results/queries

Of each set --passages documents are taken: two thirds of them at random from those that the dev part judges relevant,
the others at random from all; dev queries with a relevant document among them are asked, 300 at most. SmolLM2-135M
writes a title, keywords and two questions for each (`write`; kept in the cache, so that the studies share them).

- `expand`: the queries are added to the document in BM25, or to its vector, or to both; all of them, or those that the
  round trip keeps. nDCG@10 over the documents taken, by BM25, by the free hybrid, and by the default pipeline, with the
  interval of the gain over the same without queries (paired bootstrap).
- `choose`: systems as in choosing.py, ranked by labels over the documents taken, and without labels by queries that are
  taken out of them, with written ones and without, and by written ones alone, all or as many as were taken out:
  Kendall's tau, and the regret.
- `train`: a map trained beside BM25 (`adapt_beside_bm25.py`) on the pairs that the documents offer, on written queries
  with their documents, or on both; nDCG@10 over all documents of the set.
- `judge`: the candidates of an adaptation (those of `adapt_beside_bm25.py`, trained on 2,000 other documents) in the
  order of their mean reciprocal ranks by sentences that are taken out of documents, as `likewise adapt` judges them,
  and by written queries, beside their order by the dev part over all documents: Kendall's tau, what would be chosen,
  and its change of nDCG@10; by the vectors alone, and within the pipeline of an index without tokens.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import kendalltau

from adapt_beside_bm25 import BASE, beside, heads, mrr
from choosing import BASES, BM25, Space, excerpts, glove, ways, without_labels
from domains import Encoded
from likewise.adaptation.contest import LEAST
from likewise.adaptation.head import BaseTexts, FrozenTexts, Head
from likewise.adaptation.texts import HELD_OUT, OwnText
from likewise.choice.held_out import HeldOut
from likewise.choice.trial import gain_interval
from likewise.corpus.downloads import data_folder
from likewise.corpus.passages import Passage, offered_pairs
from likewise.corpus.sentence_splitter import sentences_of
from likewise.inference import load
from likewise.inference.model_tokens import tokens_of
from likewise.queries.writer import Written, round_trip, writer_of, written_for
from likewise.retrieval.fusion import exhaustive, nearest
from likewise.retrieval.pipeline import WITHOUT_TOKENS, Pipeline, free_hybrid, vectors_alone, words_alone
from likewise.retrieval.words import bm25
from likewise.runs.progress import Progress
from likewise.runs.whole_files import write_json
from likewise.searching.maxsim import TokenCodec, token_weights
from search_parts import Texts
from searching import JUDGED, Judged, collection

ASKED = 300
WAYS = {"BM25": words_alone(), "free hybrid": free_hybrid(), "pipeline": Pipeline()}


def reduced(judged: Judged, count: int, seed: int = 1) -> Judged:
    rng = np.random.default_rng(seed)
    relevant = sorted({one for given in judged.grades.values() for one, grade in given.items() if grade > 0})
    chosen = [relevant[i] for i in rng.permutation(len(relevant))[: 2 * count // 3]]
    others = sorted(judged.documents.keys() - set(chosen))
    chosen += [others[i] for i in rng.permutation(len(others))[: count - len(chosen)]]
    there = set(chosen)
    grades = {
        query: {one: grade for one, grade in given.items() if one in there}
        for query, given in judged.grades.items()
        if any(one in there for one, grade in given.items() if grade > 0)
    }
    asked = list(grades)[:ASKED]
    documents = {name: text for name, text in judged.documents.items() if name in there}
    return Judged(documents, {one: judged.queries[one] for one in asked}, {one: grades[one] for one in asked})


def ndcg_of_each(scores: np.ndarray, judged: Judged) -> np.ndarray:
    """nDCG@10 times 100 of each query, from scores (Q, N)."""
    place = {name: i for i, name in enumerate(judged.documents)}
    discounts, found = 1 / np.log2(np.arange(2, 12)), []
    for row, query in zip(scores, judged.queries, strict=True):
        wanted = {place[name]: grade for name, grade in judged.grades[query].items()}
        top = np.argsort(-row, kind="stable")[:10]
        ideal = np.sort(np.array(list(wanted.values()), dtype=float))[::-1][:10]
        gain = (np.array([wanted.get(int(i), 0) for i in top]) * discounts[: len(top)]).sum()
        found.append(100 * gain / (ideal * discounts[: len(ideal)]).sum())
    return np.array(found)


class Set(NamedTuple):
    name: str
    judged: Judged
    whole: Judged
    written: list[Written]
    kept: list[Written]
    encode: Texts


def opened(name: str, args: argparse.Namespace) -> Set:
    whole = collection(args.data, name, "dev")
    judged = reduced(whole, args.passages)
    texts, encode = list(judged.documents.values()), Texts(BASE, args.vectors / "search-parts")
    begun = time.perf_counter()
    written = written_for(texts, writer_of(args.writer, "", Progress()), Progress())
    seconds = (time.perf_counter() - begun) / len(texts)
    kept = round_trip(written, texts, lambda some: encode(list(some))[0])
    kinds = {kind: [sum(one.kind == kind for one in some) for some in (written, kept)] for kind in KINDS}
    facts = {"passages": len(texts), "asked": len(judged.queries), "written and kept": kinds}
    print(f"{name}: {json.dumps(facts)}; {seconds:.2f} s a passage if none was in the cache", flush=True)
    return Set(name, judged, whole, written, kept, encode)


KINDS = ("title", "keywords", "question")


def gathered(written: Sequence[Written], count: int) -> list[str]:
    """The queries of each passage in a row."""
    found: list[list[str]] = [[] for _ in range(count)]
    for one in written:
        found[one.passage].append(one.text)
    return [" ".join(some) for some in found]


def expand(one: Set) -> Iterator[dict[str, Any]]:
    texts, queries = list(one.judged.documents.values()), list(one.judged.queries.values())
    (vectors, of_texts), (asked, of_queries) = one.encode(texts, True), one.encode(queries, True)
    tokenizer = tokens_of(load(BASE))
    weights = token_weights(tokenizer(texts))
    codec = TokenCodec.fit([tokens.astype(np.float32) for tokens in of_texts[:256]])
    packed = [codec.pack(tokens.astype(np.float32)) for tokens in of_texts]
    codec = TokenCodec(codec.directions, codec.mean, codec.step, weights)
    of_ids = [codec.weights_of(ids) for ids in tokenizer(queries)]

    def fits(query: int, first: np.ndarray) -> np.ndarray:
        tokens = codec.projected(of_queries[query].astype(np.float32))
        return codec.fits(tokens, of_ids[query], [packed[i] for i in first])

    def scored(words: Sequence[str], passages: np.ndarray) -> dict[str, np.ndarray]:
        parts = asked @ passages.T, bm25(queries, words), nearest(passages, 3)
        return {way: ndcg_of_each(exhaustive(steps, *parts, fits), one.judged) for way, steps in WAYS.items()}

    start = scored(texts, vectors)
    yield {"arm": "no queries", **{way: round(float(each.mean()), 2) for way, each in start.items()}}
    some = {"all": one.written, "kept": one.kept}
    some |= {f"kept, {kind}": [written for written in one.kept if written.kind == kind] for kind in KINDS}
    for name, written in some.items():
        rows = gathered(written, len(texts))
        longer = [f"{text} {more}".strip() for text, more in zip(texts, rows, strict=True)]
        arms = {"words": (longer, vectors)}
        if name in ("all", "kept"):
            of_written = one.encode([query.text for query in written])[0]
            mean = vectors.copy()
            for place in range(len(texts)):
                mine = [i for i, query in enumerate(written) if query.passage == place]
                if mine:
                    mean[place] = 0.7 * vectors[place] + 0.3 * of_written[mine].mean(axis=0)
            mean /= np.linalg.norm(mean, axis=1, keepdims=True)
            arms |= {"vector, as text": (texts, one.encode(longer)[0]), "vector, 0.3 of the mean": (texts, mean)}
            arms |= {"words and vector, 0.3 of the mean": (longer, mean)}
        for arm, given in arms.items():
            row: dict[str, Any] = {"arm": f"{name}: {arm}"}
            for way, each in scored(*given).items():
                low, high = gain_interval(each - start[way])
                row[way] = round(float(each.mean()), 2)
                row[f"{way}: gain"] = [round(float((each - start[way]).mean()), 2), round(low, 2), round(high, 2)]
            yield row


def choose(one: Set, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    names, some = list(one.judged.documents), excerpts(one.judged, 10**9)
    pairs = [(query.text, names[query.passage]) for query in one.kept]
    held = {
        "taken out": HeldOut.of(some, args.seed),
        "taken out, and written": HeldOut.of(some, args.seed, written=pairs),
        "written": HeldOut.of(some, args.seed, most=0, written=pairs),
    }
    labels: dict[tuple[str, str], float] = {}
    free: dict[str, dict[tuple[str, str], np.ndarray]] = {by: {} for by in held}
    for base in args.bases:
        model, first = BASES[base]
        model = glove(args.vectors / "domains/glove") if model == "glove" else model
        encode = Encoded(model, args.vectors / "domains")
        space = Space(list(one.judged.documents.values()), list(one.judged.queries.values()), encode, first)
        for way, steps in ways().items():
            if not way.startswith("auto"):
                key = base if way != BM25 else "", way
                labels[key] = float(ndcg_of_each(space.scores(steps), one.judged).mean())
        for by, given in held.items():
            space = Space([p.searched for p in given.passages], [q.text for q in given.queries], encode, first)
            for way, each in without_labels(space, given).items():
                if not way.startswith("auto"):
                    free[by][base if way != BM25 else "", way] = np.array(each)
    keys = list(labels)

    def agreement(scores: dict[tuple[str, str], float]) -> tuple[float, float]:
        tau = kendalltau([labels[key] for key in keys], [scores[key] for key in keys]).statistic
        return float(tau), max(labels.values()) - labels[max(keys, key=lambda key: scores[key])]

    for by, scores in free.items():
        tau, regret = agreement({key: float(scores[key].mean()) for key in keys})
        yield {
            "arm": by,
            "queries": held[by].kinds,
            "systems": len(keys),
            "tau": round(tau, 3),
            "regret": round(regret, 2),
        }
    count, rng = len(held["taken out"].queries), np.random.default_rng(args.seed)
    draws = [rng.permutation(len(held["written"].queries))[:count] for _ in range(20)]
    each = [agreement({key: float(free["written"][key][rows].mean()) for key in keys}) for rows in draws]
    tau, regret = np.mean(each, axis=0)
    row = {"arm": "written, as many as are taken out, mean of 20 draws", "queries": {"written": count}}
    yield row | {"systems": len(keys), "tau": round(float(tau), 3), "regret": round(float(regret), 2)}


def train(one: Set, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    documents, queries = list(one.whole.documents.values()), list(one.whole.queries.values())[:ASKED]
    mine = list(one.judged.documents.values())
    offered = offered_pairs([Passage(tuple(sentences_of(text))) for text in mine], seed=args.seed)
    arms = {
        "offered": [(pair.first, pair.second) for pair in offered],
        "written": [(query.text, mine[query.passage]) for query in one.kept],
        "written, no round trip": [(query.text, mine[query.passage]) for query in one.written],
    }
    arms["offered and written"] = arms["offered"] + arms["written"]
    names = list(dict.fromkeys([*documents, *queries, *(side for pairs in arms.values() for p in pairs for side in p)]))
    encode = Encoded(BASE, args.vectors / "domains")
    encode([*one.whole.documents.values(), *one.whole.queries.values()])  # as choosing.py does: their vectors are kept
    found = encode(names)
    found = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
    base = BaseTexts(load(BASE, engine="torch"), BASE)
    texts = FrozenTexts(torch.from_numpy(found), base.tokens(names), base, {name: i for i, name in enumerate(names)})
    words = bm25(queries, documents)
    asked = Judged(one.whole.documents, dict(list(one.whole.queries.items())[:ASKED]), one.whole.grades)
    steps = {"alone": vectors_alone(), "free hybrid": free_hybrid(), "pipeline, no tokens": Pipeline(tokens=0)}

    def scored(head: Head) -> dict[str, np.ndarray]:
        passages = texts.under(head, documents)
        parts = texts.under(head, queries) @ passages.T, words, nearest(passages, 3)
        return {way: ndcg_of_each(exhaustive(weights, *parts), asked) for way, weights in steps.items()}

    start = scored(Head(found.shape[1]))
    yield {"arm": "base", **{way: round(float(each.mean()), 2) for way, each in start.items()}}
    for arm, pairs in arms.items():
        for keep in (1.0, 0.3):
            head = beside(texts, texts.rows(pairs), names, keep=keep, seed=args.seed)
            row: dict[str, Any] = {"arm": f"{arm}, keep {keep}", "pairs": len(pairs)}
            for way, each in scored(head).items():
                low, high = gain_interval(each - start[way])
                row[way] = round(float(each.mean()), 2)
                row[f"{way}: gain"] = [round(float((each - start[way]).mean()), 2), round(low, 2), round(high, 2)]
            yield row


def judge(one: Set, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    documents, queries = list(one.whole.documents.values()), list(one.whole.queries.values())[:ASKED]
    mine = list(one.judged.documents.values())
    others = [text for text in documents if text not in set(mine)]
    drawn = [others[i] for i in np.random.default_rng([args.seed, 3]).permutation(len(others))[:2000]]
    passages = [Passage(tuple(sentences_of(text))) for text in (*mine, *drawn)]
    pairs = offered_pairs(passages, seed=args.seed)
    # Those written for, and more of the others until there are as many as `likewise adapt` holds out.
    taken = [pair for pair in pairs if pair.kind == "rest"][:HELD_OUT]
    gone = {pair.passage for pair in taken} | {*range(len(mine))}
    text = OwnText(passages, pairs, taken, [pair for pair in pairs if pair.passage not in gone], [])
    pools = {"taken out": list(dict.fromkeys(pair.second for pair in (*taken, *pairs))), "written": [*mine, *drawn]}
    held = {
        "taken out": ([pair.first for pair in taken], [pair.second for pair in taken], pools["taken out"]),
        "written": ([query.text for query in one.kept], [mine[query.passage] for query in one.kept], pools["written"]),
    }
    encode, quick = Encoded(BASE, args.vectors / "domains"), Encoded(BASE, args.vectors / "domains", "bf16")
    kept = [*one.whole.documents.values(), *one.whole.queries.values()]
    known = dict(zip(kept, encode(kept), strict=True))
    sides = [side for pair in pairs for side in (pair.first, pair.second)]
    names = list(dict.fromkeys([*kept, *sides, *pools["written"], *held["written"][0]]))
    new = [name for name in names if name not in known]
    known |= dict(zip(new, quick(new), strict=True))
    found = np.stack([known[name] for name in names]).astype(np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    base = BaseTexts(load(BASE, engine="torch"), BASE)
    texts = FrozenTexts(torch.from_numpy(found), base.tokens(names), base, {name: i for i, name in enumerate(names)})
    asked = Judged(one.whole.documents, dict(list(one.whole.queries.items())[:ASKED]), one.whole.grades)

    def of(head: Head, queries: Sequence[str], passages: Sequence[str], words: np.ndarray) -> dict[str, np.ndarray]:
        vectors = texts.under(head, passages)
        cosines = texts.under(head, queries) @ vectors.T
        near = nearest(vectors, WITHOUT_TOKENS.nearest)
        return {"alone": cosines, "pipeline": exhaustive(WITHOUT_TOKENS, cosines, words, near)}

    words = {by: bm25(some, pool) for by, (some, _, pool) in held.items()} | {"labels": bm25(queries, documents)}
    own = {by: np.array([pool.index(text) for text in right]) for by, (_, right, pool) in held.items()}
    labels: dict[str, dict[str, float]] = {"alone": {}, "pipeline": {}}
    ranks: dict[str, dict[str, dict[str, np.ndarray]]] = {way: {by: {} for by in held} for way in labels}
    for arm, head in heads(texts, base, text, texts.rows([(p.first, p.second) for p in text.training]), names):
        for way, scores in of(head, queries, documents, words["labels"]).items():
            labels[way][arm] = float(ndcg_of_each(scores, asked).mean())
        for by, (some, _, pool) in held.items():
            for way, scores in of(head, some, pool, words[by]).items():
                ranks[way][by][arm] = mrr(scores, own[by])
    for way, by_arm in labels.items():
        found_by = {by: {arm: float(each.mean()) for arm, each in some.items()} for by, some in ranks[way].items()}
        found_by["taken out, and written"] = {
            arm: float(np.concatenate([ranks[way][by][arm] for by in held]).mean()) for arm in by_arm
        }
        for by, scores in found_by.items():
            best = max(scores, key=lambda arm: scores[arm])
            counts = scores[best] > (1 + LEAST) * scores["base"]
            yield {
                "arm": f"{way}: {by}",
                "queries": {kind: len(given[0]) for kind, given in held.items()},
                "candidates": len(by_arm),
                "tau": round(float(kendalltau(list(by_arm.values()), list(scores.values())).statistic), 3),
                "best": best,
                "change": round(by_arm[best] - by_arm["base"], 2),
                "chosen": best if counts else "base",
                "mrr": {arm: round(score, 2) for arm, score in scores.items()},
                "labels": {arm: round(score, 2) for arm, score in by_arm.items()},
            }


STUDIES = ("write", "expand", "choose", "train", "judge")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--study", nargs="+", choices=STUDIES, default=list(STUDIES))
    found.add_argument("--data", type=Path, default=data_folder() / "domain")
    found.add_argument("--out", type=Path, default=Path("benchmarks/results/queries"))
    found.add_argument("--vectors", type=Path, default=Path.home() / ".cache/likewise/benchmarks")
    found.add_argument("--sets", nargs="+", choices=JUDGED, default=list(JUDGED))
    found.add_argument("--bases", nargs="+", choices=BASES, default=list(BASES)[:-1])
    found.add_argument("--writer", default="bundled:smollm2", help="a language model, or the address of a server")
    found.add_argument("--passages", type=int, default=300, help="documents of a set")
    found.add_argument("--seed", type=int, default=1)
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(1)
    for name in args.sets:
        one = opened(name, args)
        for study in args.study:
            if study == "write":
                continue
            rows = []
            of = {"choose": choose, "train": train, "judge": judge}
            for row in expand(one) if study == "expand" else of[study](one, args):
                rows.append(row)
                print(f"{name}, {study}: {json.dumps(row)}", flush=True)
            args.out.mkdir(parents=True, exist_ok=True)
            write_json(args.out / f"{study}-{name}.json", rows)


if __name__ == "__main__":
    main()
