"""Queries from a text without labels: titles, questions and sentences, each removed from the passage that answers it.

A passage that has lost a sentence has to be found again by that sentence (the inverse cloze task, Lee et al. 2019), one
that has lost its title by the title. A sentence repeats the words of its passage more than a question of a user does:
query words that occur in its own passage and in no other passage are removed.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from likewise.corpus.counts import CorpusReport
from likewise.corpus.passages import Passage, offered_pairs
from likewise.corpus.sentence_splitter import sentences_of
from likewise.corpus.words import DividedText, word_count
from likewise.evaluation.bm25 import analyzer
from likewise.runs.whole_files import write_text
from likewise.searching.index.passages import Splitting

QUERIES = 400
"""Queries at most."""
LEAST = 50
"""Queries below which nothing is measured."""
_CHANGED = {"rest": 0.25, "question": 0.25, "title": 0.34}
"""Share of the passages that lose one: the others stay what they are."""
_SHORTEST = 3  # words of a query
_ABOVE = " > "
RUN = 20
"""Adjacent passages, of one title or of one file, that are kept or dropped together."""
KINDS = ("title", "question", "rest")
CALLED = {"title": "title", "question": "question", "rest": "sentence", "written": "written query"}
"""What a query of each kind is, for people."""


@dataclass(frozen=True)
class Excerpt:
    """A passage of a text.

    Attributes:
        id: Name of the passage.
        text: Sentences of the passage.
        title: Headings above it, joined by " > ", starting with the outermost; "" if there are none.
        group: Name of the title's document: passages of the same group and title share it.
        prose: Whether it consists of sentences; a line of code or of a table is not a query.
    """

    id: str
    text: str
    title: str = ""
    group: str = ""
    prose: bool = True

    @property
    def searched(self) -> str:
        """The text that a search looks in."""
        return f"{self.title}: {self.text}" if self.title else self.text


@dataclass(frozen=True)
class Query:
    """A text that searches, and the passages that it has to find, of which the first found counts.

    Attributes:
        kind: "title", "question", "rest" (a sentence of the passage), "written" or "judged".
    """

    text: str
    own: frozenset[str]
    kind: str


@dataclass(frozen=True)
class HeldOut:
    """Passages without the removed queries, and the queries, which have to retrieve them."""

    passages: Sequence[Excerpt]
    queries: Sequence[Query] = field(default_factory=tuple)

    @classmethod
    def of(
        cls,
        excerpts: Sequence[Excerpt],
        seed: int = 1,
        *,
        language: str = "english",
        written: Iterable[tuple[str, str]] = (),
    ) -> HeldOut:
        """Remove queries from passages, and add written queries, each with the id of its passage."""
        passages, drawn = _taken_out(excerpts, random.Random(seed))
        stems = analyzer(language)
        words = {passage.id: set(stems(passage.searched)) for passage in passages}
        holding = Counter(word for own in words.values() for word in own)
        queries = []
        for query in drawn:
            own = set[str]().union(*(words[name] for name in query.own))
            divided, gone = DividedText.of(query.text), set[int]()
            for place, word in enumerate(divided.words):
                here = [holding[stem] for stem in stems(word) if stem in own]
                if here and min(here) <= len(query.own):
                    gone.add(place)
            if len(divided) - len(gone) >= max(2, min(_SHORTEST, len(divided))):
                queries.append(replace(query, text=divided.without(gone)))
        there = {passage.id for passage in passages}
        queries += [Query(text, frozenset([name]), "written") for text, name in written if name in there]
        return cls(passages, queries)

    @property
    def kinds(self) -> dict[str, int]:
        """The number of queries of each kind."""
        return dict(Counter(query.kind for query in self.queries))

    def save(self, folder: Path) -> Path:
        """Write the passages, queries and judgments in BEIR's layout, and return the file of the passages."""
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        rows = [{"_id": query.id, "title": query.title, "text": query.text} for query in self.passages]
        query_rows = [{"_id": f"q{i}", "text": query.text, "kind": query.kind} for i, query in enumerate(self.queries)]
        pairs = [f"q{i}\t{name}\t1" for i, query in enumerate(self.queries) for name in sorted(query.own)]
        write_text(folder / "corpus.jsonl", _lines(rows))
        write_text(folder / "queries.jsonl", _lines(query_rows))
        write_text(folder / "qrels" / "own.tsv", "\n".join(["query-id\tcorpus-id\tscore", *pairs]) + "\n")
        return folder / "corpus.jsonl"


def _taken_out(excerpts: Sequence[Excerpt], rng: random.Random) -> tuple[list[Excerpt], list[Query]]:
    """Return passages without what was taken out, and what was, as queries."""
    sections: dict[str, set[tuple[str, str]]] = defaultdict(set)
    below: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, excerpt in enumerate(excerpts):
        path = excerpt.title.split(_ABOVE)
        sections[path[-1]].add((excerpt.group, excerpt.title))
        for level in range(len(path)):
            below[excerpt.group, _ABOVE.join(path[: level + 1])].append(place)
    offered: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    whole = [Passage(tuple(sentences_of(excerpt.text)), excerpt.title) for excerpt in excerpts]
    for pair in offered_pairs(whole, seed=rng.randrange(2**32)):
        if pair.kind == "title":
            heading = pair.first.rpartition(_ABOVE)[2]  # what people would ask for; the others are the way to it
            if len(sections[heading]) == 1 and word_count(heading) > 1:
                offered["title"].append(pair)
        elif not excerpts[pair.passage].prose:
            continue
        elif pair.kind in KINDS and pair.first not in pair.second and word_count(pair.second) >= 2 * _SHORTEST:
            offered[pair.kind].append(pair)
    for pairs in offered.values():
        rng.shuffle(pairs)
    passages, changed, queries = list(excerpts), set[int](), list[Query]()
    for kind in KINDS:
        room = _CHANGED[kind] * len(excerpts)  # passages
        limit = QUERIES if kind == KINDS[-1] else len(queries) + QUERIES // 3
        for pair in offered[kind]:
            if len(queries) >= limit or room < 1:
                break
            own = excerpts[pair.passage]
            places = below[own.group, own.title] if kind == "title" else [pair.passage]
            if changed & set(places) or len(places) > room:
                continue
            changed |= set(places)
            room -= len(places)
            for place in places:
                excerpt = passages[place]
                if kind == "title":
                    path = excerpt.title.split(_ABOVE)
                    del path[len(own.title.split(_ABOVE)) - 1]
                    passages[place] = replace(excerpt, title=_ABOVE.join(path))
                else:
                    passages[place] = replace(excerpt, text=pair.second)
            text = pair.first.rpartition(_ABOVE)[2] if kind == "title" else pair.first
            queries.append(Query(text, frozenset(excerpts[place].id for place in places), kind))
    return passages, queries


def sampled(
    paths: Sequence[Path], splitting: Splitting, most: int, seed: int = 1, report: CorpusReport | None = None
) -> tuple[list[Excerpt], int]:
    """Read passages, and return about `most` of them, and their total number.

    Passages of one title or one file stay together. The report lists each row without text.
    """
    rng, share, total = random.Random(seed), 1.0, 0
    selected: list[tuple[float, list[Excerpt]]] = []
    accepted = 0
    for run in _runs(paths, splitting, report):
        total += len(run)
        if (draw := rng.random()) < share:
            selected.append((draw, run))
            accepted += len(run)
        while accepted > 2 * most and len(selected) > 1:
            share /= 2
            selected = [drawn for drawn in selected if drawn[0] < share] or selected[:1]
            accepted = sum(len(run) for _, run in selected)
    size, chosen = 0, list[int]()
    for i in sorted(range(len(selected)), key=lambda i: selected[i][0]):
        if size + len(selected[i][1]) <= most or not chosen:
            size += len(selected[i][1])
            chosen.append(i)
    return [passage for i in sorted(chosen) for passage in selected[i][1]], total


def _runs(paths: Sequence[Path], splitting: Splitting, report: CorpusReport | None) -> Iterator[list[Excerpt]]:
    """Yield runs of at most `RUN` passages below one title, or adjacent in one file.

    A passage is called by the id of its row, otherwise by its file and line.
    """
    names: Counter[str] = Counter()
    for path in paths:
        run: list[Excerpt] = []
        for passage in splitting.read(path, report):
            if not passage.text:
                continue
            name = f"{path}:{passage.line}" if passage.id is None else str(passage.id)
            names[name] += 1
            name = name if names[name] == 1 else f"{name}#{names[name]}"
            excerpt = Excerpt(name, passage.text, passage.title, str(path), passage.prose)
            if run and (run[-1].title != excerpt.title or len(run) == RUN):
                yield run
                run = []
            run.append(excerpt)
        if run:
            yield run


def _lines(rows: Iterable[dict[str, str]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
