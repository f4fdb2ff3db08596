import json
import random
from dataclasses import replace

import numpy as np
import pytest

from likewise.corpus import CorpusOptions, CorpusReport
from likewise.searching.choose.choice_flow import discounted
from likewise.searching.choose.choice_result import gain_interval
from likewise.searching.choose.held_out import Excerpt, HeldOut, sampled
from likewise.searching.index.passages import Splitting

NOUNS = [f"{first}{last}" for first in "ba do fi gu ke lo mi nu".split() for last in "ran tel vis pok mud sen".split()]


def excerpts(count: int = 120) -> list[Excerpt]:
    rng = random.Random(0)
    found = []
    for i in range(count):
        sentences = [f"The {' '.join(rng.sample(NOUNS, 6))} of number{i} is here." for _ in range(4)]
        found.append(Excerpt(f"p{i}", " ".join(sentences), f"A heading about {NOUNS[i // 3]}", "file"))
    return found


def test_a_sentence_that_searches_is_gone_from_its_passage_alone():
    given = excerpts()
    held = HeldOut.of(given)
    before, after = ({one.id: one for one in some} for some in (given, held.passages))
    sentences = [one for one in held.queries if one.kind == "rest"]
    assert 20 <= len(sentences) <= len(given) / 4
    changed = {name for name in before if before[name].text != after[name].text}
    assert changed == {name for one in sentences for name in one.own}
    for one in sentences:
        (name,) = one.own
        assert "number" not in one.text  # only its own passage has this word
        gone = set(before[name].text.split()) - set(after[name].text.split())
        assert gone <= {*one.text.split(), *before[name].text.split()}
        assert len(after[name].text) < len(before[name].text)


def test_a_title_that_searches_is_gone_from_all_passages_below_it():
    held = HeldOut.of(excerpts())
    titles = [one for one in held.queries if one.kind == "title"]
    assert titles
    after = {one.id: one for one in held.passages}
    for one in titles:
        assert len(one.own) == 3
        assert {after[name].title for name in one.own} == {""}


def test_a_heading_that_searches_is_the_innermost_and_is_gone_from_the_sections_below_it():
    given = [
        Excerpt(f"{section}-{i}", "Rain falls here. It stays wet.", path, "file")
        for section, path in (
            ("a", "The manual > Pumps of the plant"),
            ("b", "The manual > Pumps of the plant > Seals"),
            ("c", "The manual > Valves"),
        )
        for i in range(20)
    ]
    held = HeldOut.of(given[:2] + given[20:22] + given[40:])
    (title,) = [one for one in held.queries if one.kind == "title"]
    after = {one.id: one.title for one in held.passages}
    assert "manual" not in title.text
    assert title.own == {"a-0", "a-1", "b-0", "b-1"}
    assert {after[name] for name in title.own} == {"The manual", "The manual > Seals"}
    assert after["c-0"] == "The manual > Valves"


def test_code_and_tables_do_not_search():
    held = HeldOut.of([replace(one, prose=i % 2 == 0, title="") for i, one in enumerate(excerpts())])
    prose = {f"p{i}" for i in range(0, 120, 2)}
    assert held.queries
    assert all(one.own <= prose for one in held.queries)


def test_a_title_of_several_groups_does_not_search():
    given = [Excerpt(f"p{i}", "Rain falls here. It stays wet.", "First steps", f"file {i}") for i in range(9)]
    assert not [one for one in HeldOut.of(given).queries if one.kind == "title"]


def test_written_queries_count_where_their_passage_is_there():
    held = HeldOut.of(excerpts(), written=[("where is it", "p7"), ("of nothing", "p999")])
    assert [(one.text, set(one.own)) for one in held.queries if one.kind == "written"] == [("where is it", {"p7"})]


def test_the_same_seed_draws_the_same():
    assert HeldOut.of(excerpts(), 5) == HeldOut.of(excerpts(), 5) != HeldOut.of(excerpts(), 6)


def test_a_sample_keeps_passages_below_one_title_together(tmp_path):
    rows = [{"_id": f"d{i // 4}", "title": f"Part {i // 4}", "text": f"Word{i} is one. It is two."} for i in range(400)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    splitting = Splitting(100, CorpusOptions(field="text"))
    found, total = sampled([tmp_path / "a.jsonl"], splitting, 60)
    assert total == 400
    assert 50 <= len(found) <= 60
    assert len({one.id for one in found}) == len(found)
    counts: dict[str, int] = {}
    for one in found:
        counts[one.title] = counts.get(one.title, 0) + 1
    assert set(counts.values()) == {4}
    assert sampled([tmp_path / "a.jsonl"], splitting, 1000)[1] == 400
    (tmp_path / "b.jsonl").write_text('{"text": "Yes."}\n{"text": ""}\n')
    report = CorpusReport()
    assert [excerpt.text for excerpt in sampled([tmp_path / "b.jsonl"], splitting, 1000, report=report)[0]] == ["Yes."]
    assert report.messages == [f"{tmp_path}/b.jsonl:2: this row has no text"]
    assert HeldOut.of(sampled([tmp_path / "b.jsonl"], splitting, 1000)[0]).queries == []


@pytest.mark.parametrize("rank", [0, 3, 9, 10])
def test_the_score_of_a_rank_is_scikit_learns_ndcg(rank):
    from sklearn.metrics import ndcg_score

    relevant = np.zeros((1, 20))
    relevant[0, rank] = 1
    expected = 100 * ndcg_score(relevant, np.arange(20, 0, -1)[None], k=10)
    assert discounted(rank) == pytest.approx(expected)


def test_the_interval_is_scipys_bootstrap():
    from scipy.stats import bootstrap

    gains = np.random.default_rng(3).normal(2, 30, 200)
    expected = bootstrap((gains,), np.mean, n_resamples=10_000, method="percentile", rng=1).confidence_interval
    assert gain_interval(gains) == pytest.approx((expected.low, expected.high), abs=0.25)
