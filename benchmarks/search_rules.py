"""What each rule of a search gives: the search by defaults, compared with the search without the rule.

    python benchmarks/search_rules.py --sets aviation exclusion regulation security library computing --split dev

Each set of searching.py is searched as a user does, and then with one rule off at a time, by an option of the pipeline
or another value of a name in the code. A row has nDCG@10 without the rule (`score`), the gain of the rule, its
interval of 95 % (a paired bootstrap), the largest loss of a query (`least`), and the number of queries whose first ten
documents the rule changes. At most 100 queries of a set are taken, or --queries. A rule that only queries with
operators or exclusions can meet is measured with these; the others are as they were. Folded letters are a rule of
indexing: the set is indexed without them, with the same vectors.

The row of quotation marks compares each query with and without them. That of short queries has the number of queries
whose first hit contains their phrase, with quotes and without: each is drawn from a document, two adjacent words, which
are in at most ten documents as a pair, and another of its words.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np

import likewise
from likewise.evaluation.bm25 import folded
from likewise.searching.choose.choice_result import gain_interval
from likewise.searching.query.exclusion import divided
from likewise.searching.query.query_encoder import read_query
from likewise.searching.query.typed_query import TypedQuery, stop_words
from likewise.searching.retrieval_task import measures_of_each, ranked_by
from rows import ResultFile
from searching import Found, Judged, collection, opened, parser

MOST, PASSAGES, PHRASES, HOLDING, LETTERS = 100, 30, 100, 10, 4
QUOTES = re.compile('["“”„«»]')
OPTIONS: dict[str, dict[str, Any]] = {
    "tokens": {"tokens": 0},
    "neighbours": {"neighbours": 0},
    "documents": {"documents": 0},
    "exclusions": {"excluded": 0},
    "phrases in quotes": {"phrases": 0},
}
REPLACED: dict[str, dict[str, Any]] = {
    "at most six deviations of words in exclusions": {"parts.parts._HIGHEST": np.inf},
    "quotes and hyphens": {"search_flow.TypedQuery.of": lambda query, language: TypedQuery(query)},
    "demanded phrases": {"query.typed_query._is_prose": lambda text, quoted, language: True},
    "no stop words in queries": {"search_flow.searched_words": lambda text, language: folded(text)},
    "no tokens of long queries": {"parts.parts._AS_LONG": np.inf},
    "folded letters": {f"{room}.folded": str.lower for room in ("index.table", "query.typed_query", "search_flow")},
}
"""Names in likewise.searching, and what replaces them while a rule is off."""
OF_OPERATORS = {"exclusions", "phrases in quotes", *list(REPLACED)[:3]}
MARKS, SHORT = "quotation marks", "short queries with a phrase"


def searched(judged: Judged, reader: likewise.Index, **pipeline: float) -> Found:
    """Return the documents of the first passages for each query."""
    return ranked_by(lambda text, _: reader.documents(text, PASSAGES, pipeline=pipeline), judged.queries, judged.grades)


def has_operators(text: str) -> bool:
    """Return whether a query may have a phrase, a -word or an exclusion."""
    return QUOTES.search(text) is not None or TypedQuery.of(text).text != text or divided(text)[1] != ""


def without(rule: str, judged: Judged, readers: Callable[[str], likewise.Index], whole: Found) -> Found:
    """Search without a rule."""
    if rule in OF_OPERATORS:
        judged = judged._replace(queries={one: text for one, text in judged.queries.items() if has_operators(text)})
    if rule == "folded letters" and all(map(str.isascii, [*judged.documents.values(), *judged.queries.values()])):
        return whole
    with ExitStack() as stack:
        for name, other in REPLACED.get(rule, {}).items():
            stack.enter_context(patch(f"likewise.searching.{name}", other))
        reader = readers("without-letters" if rule == "folded letters" else "")
        return whole | searched(judged, reader, **OPTIONS.get(rule, {}))


def without_quotes(judged: Judged, reader: likewise.Index, whole: Found) -> Found:
    queries = {one: QUOTES.sub(" ", text) for one, text in judged.queries.items() if QUOTES.search(text)}
    return whole | searched(judged._replace(queries=queries), reader)


def measured(judged: Judged, whole: Found, found: Found) -> dict[str, Any]:
    """Return the fields of a row."""
    one, other = (np.array([measures_of_each(judged.grades, each)[q][0] for q in whole]) for each in (whole, found))
    low, high = gain_interval(one - other)
    first = [[list(each[query])[:10] for query in whole] for each in (whole, found)]
    return {
        "score": round(float(other.mean()), 2),
        "gain": round(float((one - other).mean()), 2),
        "interval": [round(low, 2), round(high, 2)],
        "least": round(float((one - other).min()), 2),
        "changed": sum(a != b for a, b in zip(*first, strict=True)),
        "queries": len(whole),
    }


def short_queries(judged: Judged, reader: likewise.Index) -> dict[str, Any]:
    """Search for a phrase and a word of a document, with quotes and without."""
    draw, silent, found = random.Random(1), stop_words("English"), {True: 0, False: 0}
    texts, queries = [as_words(text) for text in judged.documents.values()], dict[str, str]()
    while len(queries) < PHRASES:
        words = draw.choice(texts).split()
        place = draw.randrange(max(1, len(words) - 1))
        phrase, other = " ".join(words[place : place + 2]), draw.choice(words or [""])
        parts = {*phrase.split(), other}
        if len(parts) < 3 or parts & silent or not all(len(word) >= LETTERS and word.isalpha() for word in parts):
            continue
        if sum(f" {phrase} " in text for text in texts) <= HOLDING:
            queries[phrase] = other
    for phrase, other in queries.items():
        for has_quotes in found:
            hit = reader.search(f'"{phrase}" {other}' if has_quotes else f"{phrase} {other}", 1)[0]
            found[has_quotes] += f" {phrase} " in as_words(hit.text)
    return {"score": found[True], "without_quotes": found[False], "queries": len(queries)}


def as_words(text: str) -> str:
    return f" {re.sub(r'[^a-z0-9]+', ' ', text.lower())} "


def judge(name: str, options: argparse.Namespace) -> None:
    """Measure the search without each rule that is not in the result file yet."""
    judged, results = collection(options.data, name, options.split), ResultFile(options.table)
    some = sorted(random.Random(1).sample(list(judged.queries), min(options.queries, len(judged.queries))))
    judged = judged._replace(
        queries={one: judged.queries[one] for one in some}, grades={one: judged.grades[one] for one in some}
    )

    @cache
    def reader(suffix: str = "") -> likewise.Index:
        index = opened(name, judged, options.model, options.work, options.precision, suffix)
        # Each query is encoded once for all rules.
        index.encoder.tokens = cache(partial(read_query, index.encoder._of(index._opened, tokens=True)))
        return index

    whole = cache(lambda: searched(judged, reader()))
    for rule in [*OPTIONS, *REPLACED, MARKS, SHORT]:
        key = {"arm": rule, "set": name, "part": options.split, "model": options.model}
        if results.has(**key) or (options.arms and rule not in options.arms):
            continue
        if rule == SHORT:
            row = short_queries(judged, reader())
        elif rule == MARKS:
            row = measured(judged, whole(), without_quotes(judged, reader(), whole()))
        else:
            row = measured(judged, whole(), without(rule, judged, reader, whole()))
        results.add(key | row)
        print(key | row, flush=True)


def main() -> None:
    arguments = parser()
    arguments.description = __doc__
    arguments.set_defaults(table="search-rules", split="dev")
    arguments.add_argument("--queries", type=int, default=MOST, help="of a set at most: %(default)s")
    options = arguments.parse_args()
    for name in options.sets:
        judge(name, options)


if __name__ == "__main__":
    main()
