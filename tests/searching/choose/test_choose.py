import json
import random
import re

import numpy as np
import pytest

import likewise
from likewise.cli import build_app
from likewise.runs.progress import Progress
from likewise.searching import Pipeline
from likewise.searching.choose.choice_result import Choice, System, compared, decided, judgement
from likewise.searching.choose.given_queries import ChoiceError, of_passages, read_written
from likewise.searching.choose.held_out import Excerpt
from likewise.searching.parts.pipeline import FREE_HYBRID, VECTORS_ALONE, WORDS_ALONE

NOUNS = "cat dog river bridge teacher letter garden train window song market doctor island captain farmer".split()
VERBS = "sees paints follows remembers crosses builds visits likes carries watches".split()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Passages of five sentences with a title, each about nouns of its own, as rows with ids."""
    rng = random.Random(0)
    path = tmp_path_factory.mktemp("text") / "rows.jsonl"
    rows = []
    for i in range(170):
        mine = rng.sample(NOUNS, 3)
        sentences = [
            f"The {rng.choice(('old', 'small', 'green'))} {rng.choice(mine)} {rng.choice(VERBS)} the "
            f"{rng.choice(mine)} {rng.choice(('near', 'behind'))} the {rng.choice(mine)}."
            for _ in range(5)
        ]
        rows.append({"_id": f"d{i}", "title": f"{' '.join(mine)} {i}", "text": " ".join(sentences)})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def judged(text):
    rows = [json.loads(line) for line in text.read_text().splitlines()][:6]
    queries = [{"_id": f"q{i}", "text": row["text"].split(".")[0]} for i, row in enumerate(rows)]
    (text.parent / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    (text.parent / "qrels.tsv").write_text("".join(f"q{i}\t{row['_id']}\t1\n" for i, row in enumerate(rows)))
    return {"judgements": text.parent / "qrels.tsv", "queries_file": text.parent / "q.jsonl"}


@pytest.fixture(scope="module")
def chosen(text, judged, word_model, tiny_cross_encoder, tmp_path_factory):
    options = likewise.CorpusOptions(field="text")
    return likewise.choose(
        text,
        bases=[word_model],
        corpus_options=options,
        reranker=tiny_cross_encoder,
        out=tmp_path_factory.mktemp("report") / "out",
        quiet=True,
        **judged,
    )


def test_rows_of_python_are_the_same_text(chosen, text, judged, word_model, tiny_cross_encoder):
    rows = [json.loads(line) for line in text.read_text().splitlines()]
    settings = {"bases": [word_model], "reranker": tiny_cross_encoder, "out": chosen.folder, "quiet": True}
    again = likewise.choose(rows, **settings, **judged)
    assert again.to_dict() == chosen.to_dict()


def test_every_system_is_measured(chosen, word_model):
    names = [one.name for one in chosen.table]
    assert names == [
        "BM25",
        *(f"{word_model}{way}" for way in (", alone", " + BM25", ", pipeline", ", pipeline, reranker")),
        "a bag of characters",
    ]
    searches = chosen.table[:-1]
    assert all(0 < one.score <= 100 and 0 <= one.judged <= 100 for one in searches)
    assert [one.free for one in searches] == [True, True, True, False, False]
    assert searches[-1].score < searches[-2].score  # the cross-encoder's weights are random
    assert chosen.reason.startswith("use ")
    assert "6 judged queries" in chosen.judgement
    assert sum(chosen.facts["queries"].values()) >= 50
    assert len(chosen.facts["disagreements"]) == 10


def test_the_judged_column_is_the_retrieval_tasks(chosen, text, judged, word_model, tmp_path):
    from shutil import copy

    copy(text, tmp_path / "corpus.jsonl")
    copy(judged["queries_file"], tmp_path / "queries.jsonl")
    (tmp_path / "qrels").mkdir()
    copy(judged["judgements"], tmp_path / "qrels" / "test.tsv")
    # A document is 'title text' there, and 'title: text' in an index: the sign is no word of this model but one more.
    found = likewise.evaluate(word_model, tasks=[f"retrieval:{tmp_path}"], quiet=True)
    alone = next(one for one in chosen.table if one.name.endswith(", alone"))
    assert alone.judged == pytest.approx(found.results[0].score, abs=8)


def test_a_finished_choice_is_read_back_and_saved_elsewhere(
    chosen, text, judged, word_model, tiny_cross_encoder, tmp_path
):
    again = likewise.choose(
        text,
        bases=[word_model],
        reranker=tiny_cross_encoder,
        corpus_options=likewise.CorpusOptions(field="text"),
        out=chosen.folder,
        quiet=True,
        **judged,
    )
    assert again.to_dict() == chosen.to_dict()
    page = chosen.save(tmp_path / "copy").read_text()
    assert Choice.from_dict(json.loads((tmp_path / "copy" / "choice.json").read_text())).chosen == chosen.chosen
    assert not re.findall(r"(?:src|href)=|url\(|@import|https?:", page)
    assert (tmp_path / "copy" / "queries" / "qrels" / "own.tsv").is_file()


def test_an_index_takes_the_choice_and_its_vectors(chosen, text, word_model, tmp_path):
    options = likewise.CorpusOptions(field="text")
    kept = next((chosen.folder / "whole").iterdir())
    settings = {"model": word_model, "pipeline": chosen.best, "corpus_options": options, "vectors_from": kept}
    found = likewise.index(text, out=tmp_path / "i", quiet=True, **settings)
    assert found.encoded == 0
    assert likewise.Index(tmp_path / "i").pipeline == chosen.best


def test_vectors_of_another_model_are_refused(chosen, text, tiny_model, tmp_path, says):
    kept = next((chosen.folder / "whole").iterdir())
    with says(likewise.LikewiseError, hidden=re.escape(kept.name)):
        likewise.index(text, model=tiny_model, out=tmp_path / "i", vectors_from=kept, quiet=True)


def test_too_little_text_is_an_error_that_names_the_cure(word_model, tmp_path, says):
    (tmp_path / "a.txt").write_text("A cat sees a dog. The river is near the bridge.\n")
    with says(ChoiceError):
        likewise.choose(tmp_path / "a.txt", bases=[word_model], quiet=True)
    with says(ChoiceError):
        likewise.choose(tmp_path / "a.txt", bases=[word_model], judgements="q.tsv", quiet=True)


def test_the_command_prints_the_choice_as_json(chosen, text, judged, word_model, tiny_cross_encoder):
    from typer.testing import CliRunner

    given = ["choose", str(text), "--field", "text", "--base", str(word_model), "--out", str(chosen.folder), "--json"]
    given += ["--judgements", str(judged["judgements"]), "--queries-file", str(judged["queries_file"])]
    given += ["--reranker", str(tiny_cross_encoder)]
    result = CliRunner().invoke(build_app(), given)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["chosen"] == chosen.chosen.name


def system(name, score, free=True):
    return System(name, name, "hybrid", Pipeline(), free, score)


def test_the_usual_search_is_left_only_for_what_is_better_by_more_than_chance():
    rng = np.random.default_rng(0)
    usual = rng.uniform(0, 100, 300)
    better, lucky = usual + rng.normal(5, 5, 300), usual + rng.normal(0, 50, 300) + 1.0
    for other, wins in ((better, True), (lucky, False)):
        each = [other, usual - 3, usual]
        systems = [
            system("BM25", other.mean()),
            system("b", usual.mean() - 3),
            system("b, pipeline", usual.mean(), False),
        ]
        found = compared(systems, each, [])
        assert found[0].low is None
        best, reason = decided(found, each, 2)
        assert best.name == ("BM25" if wins else "b, pipeline")
        significant = "no gain is statistically significant (compared with BM25, the best baseline: " not in reason
        assert significant == wins


def test_the_verdict_says_what_the_usual_search_gains_over_what_is_free():
    rng = np.random.default_rng(0)
    base = rng.uniform(0, 50, 300)
    each = [base, base + rng.normal(5, 5, 300)]
    systems = [system("BM25", each[0].mean()), system("b, pipeline", each[1].mean(), free=False)]
    best, reason = decided(compared(systems, each, []), each, 1)
    assert best.name == "b, pipeline"
    assert re.search(r"points more than BM25, the best baseline \(\+4\.\d to \+5\.\d\)", reason)


def test_judgements_say_what_they_would_have_chosen():
    each = [np.array([50.0, 60.0, 70.0]), np.array([60.0, 80.0, 70.0])]
    found = compared([system("BM25", 40), system("b", 30)], [np.array([40.0]), np.array([30.0])], each)
    said = judgement(found, found[0], 3)
    assert "3 judged queries b is best (70.0)" in said
    assert "scores 10.0 points less" in said


def test_the_ways_switch_every_other_part_off():
    for one, weights in ((FREE_HYBRID, (0.5, 0.5)), (WORDS_ALONE, (0, 1)), (VECTORS_ALONE, (1, 0))):
        assert (one.vectors, one.words) == weights
        others = {name: value for name, value in one.to_dict().items() if isinstance(value, float)}
        assert {name for name, value in others.items() if value} <= {"vectors", "words"}


def test_a_language_model_writes_queries(text, word_model, monkeypatch, capsys):
    """Of what is written, most titles, which are copies, and what is about another passage are left out."""
    from likewise.searching.choose import choice_flow

    class Writer:
        name, notice, identity, batch = "tiny", "tiny writes", "tiny 1", 50

        def write(self, texts):
            found = []
            for one in texts:
                first, second, third, number = one.split(":")[0].split()
                own = f"Where does {second} go with {first} beyond {third} {number} today?"
                found.append([("title", one.split(":")[0]), ("question", own), ("question", "Who wrote the letter?")])
            return found

    monkeypatch.setattr(choice_flow, "ServerWriter", lambda *_: Writer())
    rows = likewise.CorpusOptions(field="text")
    found = likewise.choose(
        text, bases=[word_model], corpus_options=rows, queries="http://localhost:9/v1", queries_for=60
    )
    assert 55 <= found.facts["queries"]["written"] <= 85
    assert "Written queries" in found.columns
    assert all(len(row) == len(found.columns) for row in found.rows)
    alone, hybrid = (next(one for one in found.table if one.name.endswith(way)) for way in (", alone", " + BM25"))
    assert 0 < alone.written < hybrid.written == pytest.approx(100, abs=25)
    told = capsys.readouterr().err
    assert "tiny writes" in told
    assert re.search(r"\d+ of 180 written queries pass the round trip", told)


def test_what_has_seen_the_answers_is_not_chosen():
    rng = np.random.default_rng(0)
    usual = rng.uniform(0, 50, 300)
    each = [usual - 1, usual, usual + 30]
    seen = System("mine (adapted), alone", "mine", "vectors", Pipeline(), False, each[2].mean(), learnt=True)
    systems = [system("BM25", each[0].mean()), system("b, pipeline", each[1].mean(), free=False), seen]
    best, _ = decided(compared(systems, each, []), each, 1)
    assert best.name == "b, pipeline"


def test_an_adapted_base_is_told_and_adapting_does_not_see_the_queries(text, word_model, tmp_path, monkeypatch, capsys):
    import shutil

    from likewise.errors import LikewiseError
    from likewise.searching.choose import choice_flow

    mine = tmp_path / "mine"
    shutil.copytree(word_model, mine)
    (mine / "likewise.json").write_text(json.dumps({"plan": {}, "files": [], "recipe": "adapt"}))
    read = []

    def refuse(rows, **options):
        read.append(rows.read_text())
        raise LikewiseError("about 21 min, longer than the given 3 min")

    monkeypatch.setattr(choice_flow, "adapt_encoder", refuse)
    options = likewise.CorpusOptions(field="text")
    found = likewise.choose(
        text, bases=[mine, word_model], adapt=True, passages=150, corpus_options=options, out=tmp_path / "out"
    )
    told = capsys.readouterr().err
    assert f"{mine} is an adapted model. If it was adapted to this text" in told
    assert "is not adapted: about 21 min, longer" in told
    assert [one.name for one in found.table if one.learnt] == [
        f"{mine} (adapted){way}" for way in (", alone", " + BM25", ", pipeline")
    ]
    assert not found.chosen.learnt
    whole = text.read_text()
    queries = [json.loads(line) for line in (tmp_path / "out/queries/queries.jsonl").read_text().splitlines()]
    titles = [one["text"] for one in queries if one["kind"] == "title"]
    kept = [json.loads(line)["title"] for line in read[0].splitlines()]
    assert titles
    assert not {one for one in titles if one in whole} & set(kept)


def test_queries_and_documents_that_are_not_there_are_an_error(text, judged, word_model, tmp_path, says):
    how = {"bases": [word_model], "corpus_options": likewise.CorpusOptions(field="text"), "quiet": True}
    with says(ChoiceError):
        likewise.choose(text, queries=[("the old cat", "nowhere:1")], **how)
    (tmp_path / "qrels.tsv").write_text("q0\tnoway.md\t1\n")
    with says(ChoiceError):
        likewise.choose(text, judgements=tmp_path / "qrels.tsv", queries_file=judged["queries_file"], **how)


def test_a_query_that_is_no_text_is_told_by_its_kind(tmp_path, says):
    (tmp_path / "queries.jsonl").write_text('{"query": 5, "passage": "a.md:1"}\n')
    with says(ChoiceError):
        read_written(tmp_path / "queries.jsonl")


def test_a_query_may_name_the_end_of_the_path_of_its_passage():
    excerpts = [Excerpt("my-text/notes.md:12", "The cat."), Excerpt("my-text/a/b.md:1", "A"), Excerpt("c/b.md:1", "B")]
    written = [("cat", "notes.md:12"), ("which", "b.md:1"), ("one", "a/b.md:1")]
    found = of_passages(written, excerpts, Progress(quiet=True))
    assert [name for _, name in found] == ["my-text/notes.md:12", "b.md:1", "my-text/a/b.md:1"]
