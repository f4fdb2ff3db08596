"""The preset `frozen` from the command line: score, weights, evaluation and harvest."""

import json
import re
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr
from typer.testing import CliRunner

import likewise
from likewise.cli import build_app
from likewise.context.origin import open_origin, own_pairs
from likewise.context.stage_options import ScoreOptions, SelectionOptions
from likewise.context.weights import Weights, match_words
from likewise.training import compare

A, B = "The ship stood beside the wave.", "The cow stood beside the barn."


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def test_cosine_and_words_need_index_and_states_alone_and_say_that_they_read_no_context(frozen, tmp_path):
    work = tmp_path / "work"
    shutil.copytree(frozen, work, ignore=shutil.ignore_patterns("discriminator", "generators"))
    done = run("context", "score", A, B, "--work", work, "--set", "score.terms=cosine,words")
    assert done.exit_code == 0, done.output
    states = open_origin(work, ScoreOptions(terms=("cosine", "words"))).states

    def features(first, second):
        one, other = states.readings([first, second])
        return one.vector @ other.vector, match_words(one, other, states.idf)

    spread = np.std([features(*pair) for pair in own_pairs(states)], axis=0)
    expected = features(A, B) / spread @ [1, 1] / (1 / spread).sum()
    assert float(done.stdout) == pytest.approx(expected, abs=1e-4)
    (kept,) = work.glob("even-*.json")
    assert Weights.load(kept).values[1] == pytest.approx(spread[0] / spread[1], rel=1e-3)
    assert Weights.load(kept).spearman is None
    assert "no context is read" in done.stderr
    done = run("context", "score", A, B, "--work", work)
    assert done.exit_code == 2
    assert "contains no discriminator" in done.output


def test_the_default_scores_by_contexts_explains_and_shows_the_cosine_beside(frozen):
    small = ("--set", "selection.size=4", "--set", "selection.same=1.1")
    done = run("context", "score", A, B, "--work", frozen, *small, "--explain")
    assert done.exit_code == 0, done.output
    origin = open_origin(frozen, selection=SelectionOptions(size=4, same=1.1))
    assert origin.reads_contexts
    assert origin.weights.tolist() == [0, 0, 0, 1, 0, 0, 0]
    value, cosine = origin([(A, B)])[0], origin.features([(A, B)])[0, 0]
    numbers = [float(number) for number in re.findall(r"-?[0-9.]+", done.stdout.splitlines()[0])]
    assert numbers == pytest.approx([value, cosine], abs=1e-4)
    assert origin.explain(A, B)[0].left in done.stdout


def test_coherence_needs_no_generators(frozen, tmp_path):
    work = tmp_path / "work"
    shutil.copytree(frozen, work, ignore=shutil.ignore_patterns("generators"))
    small = ("--set", "selection.size=4", "--set", "selection.same=1.1")
    asked = ("context", "score", A, B, *small, "--explain", "--set", "score.terms=cosine,coherence", "--work")
    done, whole = run(*asked, work), run(*asked, frozen)
    assert done.exit_code == 0, done.output
    assert done.stdout == whole.stdout
    pairs = ("--set", "harvest.pairs=20", "--set", "harvest.anchors=2", "--set", "score.weights=0,0,0,1,0,0,0")
    done = run("context", "harvest", "--work", work, *pairs, *small)
    assert done.exit_code == 0, done.output
    done = run("context", "score", A, B, "--work", work, "--set", "score.weights=1,0,0,1,0,0,1")
    assert done.exit_code == 2
    assert "contains no generators" in done.output


def test_terms_of_equation_3_with_weights(frozen):
    weights = (1.0, 0.0, 0.0, 0.5, -0.25, 0.0, 0.0)
    origin = open_origin(frozen, ScoreOptions(weights=weights), SelectionOptions(size=6, same=1.1))
    pairs = [(A, B), (A, A), (B, "The farmer stood beside the field.")]
    features = origin.features(pairs)
    assert origin(pairs) == pytest.approx(features @ weights / 1.5, abs=1e-6)
    assert features[1, [0, 3, 4, 5, 6]] == pytest.approx([1] * 5, abs=1e-5)
    terms = origin.terms([(A, B)])[0]
    assert terms.shape == (2, 12, 4), "6 contexts of either sentence"
    norms = np.linalg.norm(terms[0], axis=0) * np.linalg.norm(terms[1], axis=0)
    expected = (terms[0] * terms[1]).sum(axis=0) / norms
    assert features[0, 3:] == pytest.approx(expected, abs=1e-6)


def test_the_contexts_that_decided(frozen):
    given = ("--set", "score.weights=1,0,0,0.5,0.5,0,0", "--set", "selection.size=4", "--set", "selection.same=1.1")
    done = run("context", "score", A, B, "--work", frozen, "--explain", *given)
    assert done.exit_code == 0, done.output
    weights = (1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0)
    origin = open_origin(frozen, ScoreOptions(weights=weights), SelectionOptions(size=4, same=1.1))
    found = origin.explain(A, B)
    parts = [one.part for one in found]
    assert parts == sorted(parts, reverse=True)
    features = origin.features([(A, B)])[0]
    assert sum(parts) == pytest.approx(features[3:] @ weights[3:] / 2, abs=1e-6)
    assert f"{parts[0]:+.4f}" in done.output
    assert f"{found[0].left} [...] {found[0].right}" in done.output
    (terms,) = origin.terms([(A, B)])
    fits = {(round(x, 5), round(y, 5)) for x, y in (terms @ weights[3:]).T}
    assert {(round(x, 5), round(y, 5)) for x, y in (one.fits for one in found)} == fits
    done = run("context", "score", A, B, "--work", frozen, "--explain", "--set", "score.weights=1,0,0,0,0,0,0")
    assert "no term over contexts has a weight" in done.output
    done = run("context", "score", "--task", "sts-b", "--work", frozen, "--explain")
    assert "--explain needs two sentences" in done.output


def test_it_ranks_texts_and_finds_neighbours(frozen, tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.context.origin.NEAR", 3)
    origin = open_origin(frozen)
    ranked = [A, B, "The farmer stood beside the field.", "The sailor stood beside the rope.", "Rain fell.", "No."]
    asked = ["A ship and a wave.", "A cow in a barn."]
    found = origin.rows(ranked, asked)(slice(0, 2))
    cosines = np.inner(*(origin.states.vectors_of(texts) for texts in (asked, ranked)))
    for text, scores, by_cosine in zip(asked, found, cosines, strict=True):
        near = np.argsort(-by_cosine)
        assert scores[near[:3]] == pytest.approx(origin([(text, ranked[i]) for i in near[:3]]), abs=1e-6)
        assert np.argsort(-scores)[3:].tolist() == near[3:].tolist()
    rows = [("sea", "The ship met a wave."), *[("land", f"The cow saw {n} barns.") for n in range(9)]]
    for name, part in (("train", rows), ("test", [("land", B)])):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in part))
    report = likewise.evaluate(origin, f"classes:{tmp_path}")
    assert (report.results[0].score, report.missing) == (100, ())
    assert report.results[0].to_dict()["v_measure"] is None


def test_it_is_a_scorer_for_evaluate_and_its_weights_are_chosen_on_dev(frozen, data_dir, twelve_pairs, tmp_path):
    work = tmp_path / "work"
    shutil.copytree(frozen, work)
    given = ("--task", "sts-b-dev", "--work", work)
    given = (*given, "--set", "selection.size=5")
    done = run("context", "score", "--choose", *given)
    assert done.exit_code == 0, done.output
    chosen = Weights.load(work / "weights.json")
    assert (chosen.form, len(chosen.values), chosen.values[0]) == ("pmi", 7, 1.0)
    again = run("context", "score", *given)
    assert f"Spearman {chosen.spearman:.2f}" in again.output
    other = run("context", "score", *given, "--preset", "paper")
    assert "was chosen for form=pmi, not paper" in other.output
    report = likewise.evaluate(
        open_origin(work, ScoreOptions(weights=(1, 0, 0, 0, 0, 0, 0))), "sts-b-dev", data=data_dir / "senteval"
    )
    model = likewise.load(open_origin(work).states.encoder.name, precision="fp32")
    model.max_seq_length = 24
    expected = likewise.evaluate(model, "sts-b-dev", data=data_dir / "senteval")
    assert report.results[0].score == pytest.approx(expected.results[0].score, abs=0.05)


def test_near_pairs_of_a_harvest_are_near_by_the_encoder(frozen, tmp_path):
    out = tmp_path / "harvest"
    settings = ("harvest.pairs=40", "harvest.ranks=1,4", "harvest.random=2", "harvest.anchors=5", "harvest.min_words=2")
    sets = [word for one in settings for word in ("--set", one)]
    done = run("context", "harvest", "--work", frozen, "--out", out, *sets)
    assert done.exit_code == 0, done.output
    rows = [row for path in sorted(out.glob("shard-*.parquet")) for row in pq.read_table(path).to_pylist()]
    origin = open_origin(frozen)
    scores = origin([(row["sentence1"], row["sentence2"]) for row in rows])
    assert [row["score"] for row in rows] == pytest.approx(scores, abs=1e-5)
    vectors = origin.states.vectors_of

    def cosine(kind):
        found = [vectors([row["sentence1"], row["sentence2"]]) for row in rows if row["kind"] == kind]
        return np.mean([one @ other for one, other in found])

    assert cosine("rank 1") > cosine("rank 4") > cosine("random")
    assert [row["kind"] for row in rows].count("rank 1") == 10, "one for each of two shards of five anchors"


def test_a_workspace_is_evaluated_and_compared_by_its_name(frozen, tmp_path):
    sentences = [A, B, "The farmer stood beside the field.", "The sailor stood beside the island."]
    pairs = [(one, other) for one in sentences for other in sentences if one < other]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{i}\t{one}\t{other}\n" for i, (one, other) in enumerate(pairs)))
    done = run("evaluate", f"origin:{frozen}", "--tasks", f"pairs:{path}", "--json", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "report.json").read_text())
    expected = 100 * spearmanr(open_origin(frozen)(pairs), range(len(pairs))).statistic
    assert report["results"][0]["spearman"] == pytest.approx(expected)
    assert "Origin, form pmi" in done.output
    given = {"tasks": f"pairs:{path}", "seeds": (1,), "quiet": True}
    table = compare(f"origin:{frozen} label=contexts", out=tmp_path / "compared", **given)
    assert table.cells["contexts", f"pairs:{path}"].mean == pytest.approx(expected)
