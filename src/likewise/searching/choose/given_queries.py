"""Queries that a user gives to `likewise choose`: judged, written in a file, or written by a language model.

Letters of the shapes: N texts, D embedding.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from likewise.corpus.rows import json_type
from likewise.errors import LikewiseError, counted, require_extra
from likewise.evaluation.data_folder import json_rows
from likewise.inference.handle import ModelHandle
from likewise.runs.progress import Progress
from likewise.searching.choose.held_out import CALLED, Excerpt
from likewise.searching.choose.query_writer import Writer, Written, round_trip, written_for
from likewise.searching.parts.pipeline import Pipeline
from likewise.searching.retrieval_task import measures_of_each, ranked_by, read_grades, read_texts
from likewise.searching.search_index import Index, Mode


class ChoiceError(LikewiseError):
    """Raised if nothing can be measured, or if an input is wrong; the message names the cure."""


@dataclass(frozen=True)
class Judged:
    """Queries that people judged, and the grades of documents, one of which is above 0 for each query."""

    queries: dict[str, str]
    grades: dict[str, dict[str, int]]

    def check(self, opened: Index, progress: Progress) -> None:
        """Report which judged documents are in no index.

        Raises:
            ChoiceError: If none is in an index.
        """
        there = {str(id) for id in opened}
        for file, *_ in opened.table.sources().values():
            there |= {file, Path(file).name, Path(file).stem}
        judged = {name for by_document in self.grades.values() for name in by_document}
        cure = "identify a document by the _id of its row, or by its file"
        _report_missing(sorted(judged - there), len(judged), "judged document", cure, progress)

    def scores(self, opened: Index, mode: Mode, pipeline: Pipeline) -> list[float]:
        """Return nDCG@10 times 100 of each query; a document counts by its best passage."""
        search = partial(opened.documents, mode=mode, pipeline=pipeline)
        each = measures_of_each(self.grades, ranked_by(search, self.queries, self.grades))
        return [each[name][0] for name in self.queries]


def read_judged(
    judgements: str | os.PathLike[str] | None, queries_file: str | os.PathLike[str] | None
) -> Judged | None:
    """Return the judged queries of two files, None without them.

    Raises:
        ChoiceError: If one of the files is missing, or no document is relevant.
    """
    if bool(judgements) != bool(queries_file):
        raise ChoiceError("--judgements requires --queries-file, and the reverse: give both")
    if not judgements or not queries_file:
        return None
    require_extra("retrieval", "Judgements", "pytrec_eval")
    queries = read_texts(Path(queries_file), "query")
    every = read_grades(Path(judgements), None, queries)
    grades = {name: by_document for name, by_document in every.items() if max(by_document.values()) > 0}
    if not grades:
        raise ChoiceError(f"{judgements}: no query has a document with a grade above 0. Add the relevant documents")
    return Judged({name: queries[name] for name in grades}, grades)


def by_writer(
    excerpts: Sequence[Excerpt],
    writer: Writer,
    most: int,
    encoders: Sequence[ModelHandle],
    language: str,
    seed: int,
    progress: Progress,
) -> list[tuple[str, str]]:
    """Return the queries that a language model writes for some of the passages, each with the id of its passage."""
    places = np.random.default_rng([seed, 12]).permutation(len(excerpts))[:most].tolist()
    texts = [excerpts[place].searched for place in places]
    written = written_for(texts, writer, progress)
    selected = set[Written]()
    for encoder in encoders:

        def vectors(some: Sequence[str], encoder: ModelHandle = encoder) -> np.ndarray:
            rows = encoder.opened(None, some, len(some))(list(some))
            unit: np.ndarray = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
            return unit

        selected.update(round_trip(written, texts, vectors, language.lower()))
    progress.tell(f"{len(selected):,} of {counted(len(written), CALLED['written'])} pass the round trip")
    return [(query.text, excerpts[places[query.passage]].id) for query in written if query in selected]


def read_written(queries: Any) -> list[tuple[str, str]]:
    """Return the queries of a file or of pairs, each with the id of its passage.

    Raises:
        ChoiceError: If a row has no such texts; the message names the line.
    """
    if queries is None:
        return []
    if not isinstance(queries, str | os.PathLike):
        return [(str(text), str(name)) for text, name in queries]
    pairs = []
    for where, row in json_rows(Path(queries)):
        text, name = row.get("query"), row.get("passage")
        if not isinstance(text, str) or not isinstance(name, str | int):
            there = ", ".join(f"{name} ({json_type(value)})" for name, value in row.items())
            raise ChoiceError(f"{where}: a query needs the fields query and passage; this row has {there or 'nothing'}")
        if not text.strip():
            raise ChoiceError(f"{where}: the query is empty: complete or remove the line")
        pairs.append((text, str(name)))
    return pairs


def of_passages(
    written: list[tuple[str, str]], excerpts: Sequence[Excerpt], progress: Progress
) -> list[tuple[str, str]]:
    """Return written queries with the ids of their passages, of which the end of a path is enough.

    Raises:
        ChoiceError: If no query names a passage that is searched.
    """
    ids = {excerpt.id for excerpt in excerpts}
    ends: dict[str, list[str]] = defaultdict(list)
    for id in ids:
        parts = id.split("/")
        for count in range(1, len(parts)):
            ends["/".join(parts[count:])].append(id)
    named = [(text, name if name in ids or len(ends[name]) != 1 else ends[name][0]) for text, name in written]
    unknown = [name for _, name in named if name not in ids]
    cure = "give the _id of a row, or file and line, as a hit shows"
    _report_missing(unknown, len(written), "query passage", cure, progress)
    return named


def _report_missing(missing: Sequence[str], total: int, noun: str, cure: str, progress: Progress) -> None:
    """Report names that do not occur in the text; raise a ChoiceError if none of them does."""
    if missing:
        said = f"the text does not contain {len(missing)} of {counted(total, noun)}, such as {missing[0]!r}: {cure}"
        if len(missing) == total:
            raise ChoiceError(said)
        progress.tell(said)
