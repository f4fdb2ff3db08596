"""Retrieval on your own documents and questions: `retrieval:FOLDER`, in BEIR's layout (Thakur et al. 2021).

Documents are ranked by the cosine with the query, or by a search of an index. The measures are trec_eval's, by
pytrec_eval, as in BEIR's and MTEB's tables. scikit-learn's ndcg_score gives the same nDCG (a test compares them), but
from the grades and scores of all documents, which it sorts whole for each query; it has no recall at a depth. trec_eval
needs the first hundred only.

A folder contains `corpus.jsonl` or `docs.jsonl` (_id, title, text), `queries.jsonl` (_id, text), each also as .gz, and
`qrels/PART.tsv` or `qrels-PART.tsv` (query, document, grade; a header is optional). `violations-PART.tsv` (query,
document) can list documents that match a query except for its exclusion.

Letters of the shapes: Q queries, N documents, D embedding.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from likewise.corpus.rows import json_type
from likewise.errors import require_extra
from likewise.evaluation.data_folder import OwnTask, is_number, json_rows, table_rows
from likewise.evaluation.pairs import cosines
from likewise.evaluation.task import DataError, DocumentSearch, Items, Prepared, Rows, TaskResult
from likewise.runs.progress import Progress

_HIGHEST = 1000
"""The highest grade of a document: a larger number is of another column, such as a time."""
DEPTH = 100
_PASSAGES = 200  # passages that are examined for these documents
_CELLS = 2**24  # scores held at once: 64 MB in float32


@dataclass(frozen=True)
class RetrievalResult(TaskResult):
    """The measures of a ranking, times 100, as means over the queries; `score` is nDCG@10.

    Attributes:
        recall: Fraction of the relevant documents among the first 100.
        obeyed: Fraction of the pairs of a relevant and a violating document in which the relevant one is closer to the
            query; None without violations.
        left_out: Queries of the part that have no relevant document; they are not scored.
        documents: Number of documents.
    """

    COLUMNS = (
        ("Task", "title"),
        ("nDCG@10", "score"),
        ("Recall@100", "recall"),
        ("Exclusion", "obeyed"),
        ("Queries", "n"),
        ("Left out", "left_out"),
        ("Documents", "documents"),
    )

    recall: float
    obeyed: float | None
    left_out: int
    documents: int


@dataclass(frozen=True)
class Collection:
    """Documents, the queries that are scored, and the judgments.

    Attributes:
        documents, queries: Id to text, for queries with a relevant document.
        grades: Query to document to grade; a grade above 0 is relevant.
        violations: Query to documents.
        left_out: Number of judged queries without a relevant document.
    """

    documents: dict[str, str]
    queries: dict[str, str]
    grades: dict[str, dict[str, int]]
    violations: dict[str, list[str]]
    left_out: int


@dataclass(frozen=True)
class RetrievalTask(OwnTask):
    """Ranking of all documents for each query of a part."""

    def load(self) -> Collection:
        """Read the folder."""
        documents = read_texts(self.find("corpus.jsonl", "corpus.jsonl.gz", "docs.jsonl", "docs.jsonl.gz"), "document")
        queries = read_texts(self.find("queries.jsonl", "queries.jsonl.gz"), "query")
        judged = self.find(f"qrels/{self.part}.tsv", f"qrels-{self.part}.tsv")
        grades = read_grades(judged, documents, queries)
        scored = {query: by_document for query, by_document in grades.items() if max(by_document.values()) > 0}
        if not scored:
            raise DataError(f"{judged}: no query has a document with a grade above 0. Add the relevant documents.")
        violations: dict[str, list[str]] = {}
        path = self.path / f"violations-{self.part}.tsv"
        if path.is_file():
            for _, (query, document) in _judgements(path, ("query", "document"), documents, queries):
                violations.setdefault(query, []).append(document)
        scored_queries = {query: queries[query] for query in scored}
        return Collection(documents, scored_queries, scored, violations, len(grades) - len(scored))

    def read(self, data: Path) -> Prepared:
        """Read the documents, then the queries, for the suite."""
        require_extra("retrieval", self.name, "pytrec_eval")
        collection = self.load()
        count = len(collection.documents)

        def score(vectors: np.ndarray) -> TaskResult:
            return self.result(collection, cosines(vectors[count:], vectors[:count]))

        texts = [*collection.documents.values(), *collection.queries.values()]
        return Prepared(
            texts,
            score,
            score_rows=lambda rows: self.result(collection, rows),
            ranked=count,
            sides=True,
            score_search=partial(self._result_of_search, collection),
        )

    def _result_of_search(self, collection: Collection, search: DocumentSearch, progress: Progress) -> RetrievalResult:
        """Score the documents that a search finds; other documents have no rank."""
        ranking = ranked_by(search.documents, collection.queries, collection.grades, progress)
        if not any(name in collection.documents for ranked in ranking.values() for name in ranked):
            other = next((name for ranked in ranking.values() for name in ranked), "nothing")
            raise DataError(
                f"{search.name}: it returned {other}, but no document of {self.path}. Index the file of these "
                f"documents, so that each is identified by its _id."
            )
        for query, ranked in ranking.items():
            if collection.documents.get(query) == collection.queries[query]:
                ranked.pop(query, None)  # as in `result`
        return self._with(measures_of_each(collection.grades, ranking), None, collection)

    def result(self, collection: Collection, scores_of: Rows) -> RetrievalResult:
        """Return the result of a ranking by the scores (Q, N) of all documents for a slice of the queries."""
        documents, queries = list(collection.documents), list(collection.queries)
        place = {document: i for i, document in enumerate(documents)}
        ranking: dict[str, dict[str, float]] = {}
        obeyed: list[np.ndarray] = []
        step = max(1, _CELLS // len(documents))
        for start in range(0, len(queries), step):
            block = slice(start, min(start + step, len(queries)))
            for query, scores in zip(queries[block], scores_of(block), strict=True):
                if not np.isfinite(scores).all():
                    # A broken model has no score here, and keeps its other scores.
                    return self._with({}, None, collection)
                if collection.documents.get(query) == collection.queries[query]:
                    scores[place[query]] = -np.inf  # a query that is a document of the collection must not find itself
                first = np.argpartition(scores, -DEPTH)[-DEPTH:] if len(scores) > DEPTH else np.arange(len(scores))
                ranking[query] = {documents[i]: float(scores[i]) for i in first}
                if query in collection.violations:
                    near = scores[[place[d] for d, grade in collection.grades[query].items() if grade > 0]]
                    far = scores[[place[d] for d in collection.violations[query]]]
                    obeyed.append((near[:, None] > far[None, :]).ravel())
        share = 100 * float(np.concatenate(obeyed).mean()) if obeyed else None
        return self._with(measures_of_each(collection.grades, ranking), share, collection)

    def _with(
        self, each: Mapping[str, tuple[float, float]], obeyed: float | None, collection: Collection
    ) -> RetrievalResult:
        """Return the result of the measures of each query; none of them if the model is broken."""
        ndcg, recall = np.mean([*each.values()], axis=0).tolist() if each else (math.nan, math.nan)
        items = Items(np.array([each[query][0] / 100 for query in collection.queries])) if each else None
        counts = (len(collection.queries), recall, obeyed, collection.left_out, len(collection.documents))
        return RetrievalResult(self.name, self.title, "ndcg@10", ndcg, *counts, items=items)


def ranked_by(
    documents: Callable[[str, int], list[tuple[Sequence[str], float]]],
    queries: Mapping[str, str],
    grades: Mapping[str, Mapping[str, int]],
    progress: Progress | None = None,
) -> dict[str, dict[str, float]]:
    """Rank documents by a search, as in `DocumentSearch`: query to document to score, of the best hundred.

    A document is identified by the name that has a grade, otherwise by the first name.
    """
    ranking: dict[str, dict[str, float]] = {}
    with (progress or Progress(quiet=True)).bar("searching", len(queries)) as bar:
        for query, text in queries.items():
            best: dict[str, float] = {}
            for names, score in documents(text, _PASSAGES):
                best.setdefault(next((name for name in names if name in grades[query]), names[0]), score)
            ranking[query] = dict(list(best.items())[:DEPTH])
            bar.advance()
    return ranking


def measures_of_each(
    grades: dict[str, dict[str, int]], ranking: dict[str, dict[str, float]]
) -> dict[str, tuple[float, float]]:
    """Return trec_eval's nDCG@10 and recall@100, times 100, of each query of the ranking."""
    import pytrec_eval

    # -inf stands for a document that is skipped, which trec_eval would rank last instead.
    # A query without any document gets an unjudged document, since trec_eval skips queries without documents.
    ranked = {q: {d: s for d, s in scores.items() if s > -math.inf} or {"": 0.0} for q, scores in ranking.items()}
    judged = pytrec_eval.RelevanceEvaluator(grades, {"ndcg_cut.10", f"recall.{DEPTH}"}).evaluate(ranked)
    return {q: (100 * measures["ndcg_cut_10"], 100 * measures[f"recall_{DEPTH}"]) for q, measures in judged.items()}


def read_texts(path: Path, kind: str) -> dict[str, str]:
    """Read id to text; the title of a document precedes its text, as in BEIR."""
    texts: dict[str, str] = {}
    for where, row in json_rows(path):
        name, text, title = row.get("_id"), row.get("text"), row.get("title") or ""
        if not isinstance(name, str | int) or not isinstance(text, str) or not isinstance(title, str):
            expected = {
                "_id": (name, "a string or an integer"),
                "text": (text, "a string"),
                "title": (title, "a string"),
            }
            wrong = next(
                (
                    f"{field} is {json_type(value)}, but {form} is expected"
                    for field, (value, form) in expected.items()
                    if field in row and not isinstance(value, str) and (field != "_id" or not isinstance(value, int))
                ),
                f"this row has {', '.join(row) or 'none'}",
            )
            raise DataError(f"{where}: a {kind} has the fields _id and text; {wrong}.")
        if str(name) in texts:
            raise DataError(f"{where}: the {kind} '{name}' occurs twice. Give each its own _id.")
        if kind == "query" and not text.strip():
            raise DataError(f"{where}: the query '{name}' is empty. Add its text, or remove the line.")
        texts[str(name)] = f"{title} {text}".strip()
    if not texts:
        raise DataError(f"{path}: the file is empty. Write one {kind} per line, as a JSON object with _id and text.")
    return texts


def read_grades(path: Path, documents: dict[str, str] | None, queries: dict[str, str]) -> dict[str, dict[str, int]]:
    """Read query to document to grade; with None for the documents, these may be called anything."""
    grades: dict[str, dict[str, int]] = {}
    for where, (query, document, grade) in _judgements(path, ("query", "document", "grade"), documents, queries):
        by_document = grades.setdefault(query, {})
        if document in by_document:
            raise DataError(
                f"{where}: query '{query}' and document '{document}' are judged twice. Remove one of the lines."
            )
        try:
            by_document[document] = int(grade)
        except ValueError:
            raise DataError(f"{where}: the grade '{grade}' is not an integer. Write 0, 1 or more.") from None
        if abs(by_document[document]) > _HIGHEST:
            raise DataError(f"{where}: the grade {grade} is not valid. Write 0, 1 or more, up to {_HIGHEST}.")
    return grades


def _judgements(
    path: Path, names: tuple[str, ...], documents: dict[str, str] | None, queries: dict[str, str]
) -> list[tuple[str, list[str]]]:
    """Read lines that begin with a query and a document."""
    lines = []
    for i, (where, cells) in enumerate(table_rows(path)):
        if len(cells) != len(names):
            raise DataError(
                f"{where}: {len(cells)} tab-separated columns, and there must be {len(names)}: {', '.join(names)}."
            )
        if i == 0 and cells[0] not in queries and cells[-1] not in (documents or {}) and not is_number(cells[-1]):
            continue  # a header, as BEIR's: query-id, corpus-id, score
        for kind, name, known in (("query", cells[0], queries), ("document", cells[1], documents)):
            if known is not None and name not in known:
                raise DataError(f"{where}: there is no {kind} '{name}'. Add it to the {kind} file or remove the line.")
        lines.append((where, cells))
    if not lines:
        raise DataError(f"{path}: the file is empty. Write {', '.join(names)} on each line, separated by tabs.")
    return lines
