import json
import random

import numpy as np

import likewise
from likewise.retrieval.pipeline import WITHOUT_TOKENS, Pipeline
from likewise.searching.weights import better, described, grid

NOUNS = "cat dog river bridge teacher letter garden train window song market doctor island".split()
VERBS = "sees paints follows remembers crosses builds visits likes carries watches".split()


def test_default_weights_stay_unless_others_are_better_by_more_than_chance():
    rng = np.random.default_rng(0)
    base = rng.uniform(0, 100, 400)
    lucky, sure, surer = base + rng.normal(0.5, 40, 400), base + rng.normal(4, 5, 400), base + rng.normal(8, 5, 400)
    assert better(base, [lucky, base]) is None
    assert better(base, [lucky, sure, surer, base]) == 2


def test_every_tried_pipeline_differs_from_the_default():
    tried = list(grid(Pipeline()))
    assert {0.0, 1.0} < {one.tokens for one in tried}
    assert {one.tokens for one in grid(WITHOUT_TOKENS)} == {0.0}
    assert {(0.0, 1.0), (1.0, 0.0)} <= {(one.vectors, one.words) for one in tried}
    assert 0 in {one.neighbours for one in tried}
    assert all(described(one, Pipeline()) for one in tried)


def test_an_index_of_too_little_text_keeps_the_default_weights(corpus_file, word_model, tmp_path):
    found = likewise.index(corpus_file, model=word_model, out=tmp_path / "i", pipeline="auto", quiet=True)
    assert "the default weights stay, as only" in found.chosen
    assert likewise.Index(tmp_path / "i").pipeline == WITHOUT_TOKENS


def test_an_index_finds_out_that_words_alone_mislead(word_model, tmp_path):
    """Sentences of a passage share no word but that of their topic, which the vectors alone would mix up."""
    rng = random.Random(0)
    rows = []
    for i in range(300):
        filler = [f"{rng.choice(VERBS)} the {rng.choice(NOUNS)}" for _ in range(5)]
        rows.append({"text": " ".join(f"Code{i % 150} unit{i // 2} {one}." for one in filler)})
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = likewise.CorpusOptions(field="text")
    found = likewise.index(
        tmp_path / "a.jsonl", model=word_model, out=tmp_path / "i", corpus_options=options, pipeline="auto", quiet=True
    )
    assert "queries taken out of the text" in found.chosen
    chosen = likewise.Index(tmp_path / "i").pipeline
    assert (chosen != WITHOUT_TOKENS) == ("stay" not in found.chosen)
    assert likewise.search(tmp_path / "i", "unit7")
