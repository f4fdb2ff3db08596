import time
from contextlib import suppress

import numpy as np
import pytest

import likewise
from likewise.searching import Index
from likewise.searching.query.exclusion import divided
from likewise.searching.query.typed_query import TypedQuery

TOPICS = (
    "tips for avoiding burnout",
    "guide to avoiding burnout",
    "rules on excluding evidence at trial",
    "packages that do not include headers",
    "is excluding evidence legal?",
    "how avoiding sugar helps",
    "avoiding burnout",
    "tell me anything excluding burnout",
)
"""Queries that are about leaving something out, or have nothing else to search for."""


@pytest.mark.parametrize(
    ("query", "asked", "excluded"),
    [
        ("Rivers of France, excluding the Loire.", "Rivers of France.", "the Loire"),
        ("Rivers of France (excluding the Loire) and of Spain", "Rivers of France and of Spain", "the Loire"),
        ("Symphonies (excluding No. 9: Choral, Op. 125) of Vienna", "Symphonies of Vienna", "No. 9: Choral, Op. 125"),
        ("Rivers of France but don’t mention the Loire", "Rivers of France", "the Loire"),
        ("Rivers without mention of dams, excluding canals", "Rivers", "dams canals"),
        ("Describe rivers while avoiding any mention of dams.", "Describe rivers.", "dams"),
        ("pumps – excluding diesel – of steel", "pumps of steel", "diesel"),
        ("pumps - excluding diesel-driven ones - of steel", "pumps of steel", "diesel-driven ones"),
        ("Rivers excluding 3.5 km long ones, in Europe", "Rivers in Europe", "3.5 km long ones"),
        ("Servers excluding node.js and the U.S. ones, at noon", "Servers at noon", "node.js and the U.S. ones"),
        ("rivers AND NOT dams", "rivers", "dams"),
        ("rivers and not dams", "rivers and not dams", ""),
        ("Rivers, excluding the Loire, Rhine and Seine", "Rivers", "the Loire, Rhine and Seine"),
        ("Food excluding nuts, dairy, or eggs, to go", "Food to go", "nuts, dairy, or eggs"),
        ("Laptops excluding Dell, HP & Acer", "Laptops", "Dell, HP & Acer"),
        ("Rivers excluding the Loire, from 1900 and later", "Rivers from 1900 and later", "the Loire"),
        ("Rivers, excluding the Loire, and of Spain", "Rivers and of Spain", "the Loire"),
        ("Excluding the Loire", "Excluding the Loire", ""),  # nothing else is asked
        ("assets other than cash", "assets other than cash", ""),
        ("a server without authentication", "a server without authentication", ""),
        ("rules except for banks", "rules except for banks", ""),
        *((topic, topic, "") for topic in TOPICS),
    ],
)
def test_a_query_is_divided_at_an_order_to_leave_something_out(query, asked, excluded):
    assert divided(query) == (asked, excluded)


@pytest.mark.parametrize(
    "sign", [" ", ",", "(", "\n", "excluding ", "excluding a, b and c, ", "do not ", "but ", "avoiding,", "“", "-a "]
)
@pytest.mark.parametrize("read", [divided, TypedQuery.of])
def test_no_query_is_read_longer_than_in_proportion_to_its_length(read, sign):
    begun = time.perf_counter()
    with suppress(likewise.LikewiseError):
        read("a" + sign * (100_000 // len(sign)) + "b")
    assert time.perf_counter() - begun < 1


def test_what_a_query_excludes_is_taken_off_after_the_neighbours(many):
    """The score is that of the rest of the query less a share of that of the excluded words, both of known searches."""
    reader, share = Index(many), 0.4
    whole = {"depth": 300, "excluded": share}
    asked = {hit.text: hit.score for hit in reader.search("the famous captain", 300, pipeline={"depth": 300})}
    alone = {"depth": 300, "neighbours": 0}
    unwanted = {hit.text: hit.score for hit in reader.search("river", 300, pipeline=alone)}
    hits = reader.search("the famous captain, excluding river", 300, pipeline=whole)
    assert (len(hits), hits.without) == (300, "river")
    np.testing.assert_allclose(
        [hit.score for hit in hits], [asked[hit.text] - share * unwanted[hit.text] for hit in hits], atol=1e-4
    )
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(sum(hit.scores.values()) == pytest.approx(hit.score) for hit in hits)
    assert all("excluded" in hit.scores for hit in hits)
    assert "excluded" not in reader.search("the famous captain")[0].scores


def test_a_weight_of_0_searches_for_the_query_as_it_stands(many):
    def matched(pipeline):  # passages with the excluded word alone in which BM25 found something
        hits = Index(many).search("captain, excluding river", 300, pipeline={"depth": 300, **pipeline})
        return [hit for hit in hits if "river" in hit.text and "captain" not in hit.text and hit.words > 0]

    assert matched({"excluded": 0})
    assert not matched({})
