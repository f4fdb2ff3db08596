import json

import numpy as np
import pytest
from datasets import Dataset
from sentence_transformers import SentenceTransformer

import likewise
from likewise.encoder.build import build_encoder, build_prompt_encoder, has_own_vector
from likewise.evaluation.checkpoint import CheckpointEvaluator
from likewise.recipes import RECIPES, OptionError
from likewise.recipes.recipe import Run, sample_rows
from likewise.recipes.sncse import with_candidates

SNCSE = RECIPES["sncse"]


def test_paper_presets_hold_the_values_of_section_3_2():
    expected = {"base": (256, 1e-5, 1e-3), "large": (128, 5e-6, 1e-3)}
    expected |= {"roberta-base": (256, 1e-5, 5e-4), "roberta-large": (128, 5e-6, 5e-4)}
    for name, (batch, rate, weight) in expected.items():
        options = SNCSE.options(f"paper-{name}")
        assert (options.batch_size, options.learning_rate, options.weight) == (batch, rate, weight)
        assert (options.alpha, options.beta, options.temperature, options.dropout) == (0.1, 0.3, 0.05, 0.1)
        assert (options.epochs, options.eval_steps, options.sam_rho) == (1, 125, 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"alpha": 0.5},
        {"opposite_weight": 1.0, "negation": "none"},
        {"template": "no place"},
        {"other_template": "no place"},
        {"template": "X [MASK]", "other_template": "X [MASK]"},
        {"dropout": 0.0},
        {"keep_weight": 1.0, "head": True},
    ],
)
def test_contradictions_are_refused(changes, says):
    with says(OptionError):
        SNCSE.options(**changes)


def test_the_number_of_processes_changes_no_result_and_is_in_no_plan():
    assert SNCSE.options(processes=4).to_dict() == SNCSE.options().to_dict()
    assert SNCSE.options(processes=4).updated(alpha=0.2).processes == 4


def test_batch_is_sentences_then_negations_with_their_rows(tiny_base, says):
    options = SNCSE.options()
    encoder = SNCSE.build_encoder(str(tiny_base), options)
    rows = [
        {"sentence": "the cat sees a dog", "words": 5, "negation": None},
        {"sentence": "the old river", "words": 3, "negation": "not the old river"},
    ]
    batch = SNCSE.build_collator(encoder, options, 1)(rows)
    assert batch["sentence_rows"].tolist() == [1]
    texts = [encoder.tokenizer.decode(ids, skip_special_tokens=True) for ids in batch["sentence_input_ids"]]
    assert len(texts) == 3
    assert "not the old river" in texts[2]
    with says(OptionError):
        SNCSE.build_collator(encoder, SNCSE.options(max_length=5), 1)


def test_in_two_prompts_a_sentence_and_its_positive_have_other_tokens(tiny_base, says):
    options = SNCSE.options(template='the " X " is [MASK].', other_template='the cat : " X " is [MASK].')
    encoder = SNCSE.build_encoder(str(tiny_base), options)
    rows = [
        {"sentence": "a dog", "words": 2, "negation": None},
        {"sentence": "the old river", "words": 3, "negation": "not the old river"},
    ]
    batch = SNCSE.build_collator(encoder, options, 1)(rows)
    columns = [batch["sentence_input_ids"], batch["other_input_ids"]]
    assert [len(column) for column in columns] == [2, 3]
    assert batch["other_rows"].tolist() == [1]
    for column, template, texts in zip(
        columns,
        (options.template, options.other_template),
        (["a dog", "the old river"], ["a dog", "the old river", "not the old river"]),
        strict=True,
    ):
        alone = build_prompt_encoder(str(tiny_base), template).tokenizer
        assert column.tolist() == alone(texts, padding=True)["input_ids"]
    with says(OptionError):
        SNCSE.build_collator(encoder, options.updated(max_length=8), 1)


def test_batch_goes_on_with_the_opposites_of_some_negations(tiny_base):
    options = SNCSE.options(opposite_weight=1.0)
    encoder = SNCSE.build_encoder(str(tiny_base), options)
    rows = [
        {"sentence": "the cat sees a dog", "words": 5, "negation": "the cat does not see a dog"},
        {"sentence": "the river is old", "words": 4, "negation": "the river is not old"},
    ]
    batch = SNCSE.build_collator(encoder, options, 1)(rows)
    assert batch["sentence_rows"].tolist() == [0, 1]
    assert batch["sentence_pairs"].tolist() == [1]
    assert len(batch["sentence_input_ids"]) == 2 + 2 + 2


def test_a_negation_that_truncation_makes_equal_to_its_sentence_is_dropped(tiny_base):
    encoder = SNCSE.build_encoder(str(tiny_base), SNCSE.options())
    rows = [
        {"sentence": "the river is old and the cat sees a dog", "negation": "the river is old and the cat sees no dog"},
        {"sentence": "the river is old and the cat sees a dog", "negation": "the river is not old and the cat sees"},
    ]
    whole = len(encoder.tokenizer(rows[0]["sentence"])["input_ids"])
    for length, kept in ((whole, [0, 1]), (whole - 2, [1])):
        batch = SNCSE.build_collator(encoder, SNCSE.options(max_length=length), 1)(rows)
        assert batch["sentence_rows"].tolist() == kept
        assert len(batch["sentence_input_ids"]) == 2 + len(kept)
    none = SNCSE.build_collator(encoder, SNCSE.options(max_length=whole - 2), 1)(rows[:1])
    assert none["sentence_rows"].tolist() == []


def test_candidates_for_opposites_replace_a_share_of_the_rows():
    texts = [f"number {i} is old" if i % 10 == 0 else f"number {i} runs" for i in range(400)]
    corpus = Dataset.from_dict({"sentence": texts, "words": [len(text.split()) for text in texts]})
    rows = sample_rows(400, 40, 1, 2)
    chosen = with_candidates(corpus, rows, 0.5, 1)
    assert len(chosen) == 40
    assert len(set(chosen.tolist())) == 40
    assert sum(row % 10 == 0 for row in chosen) >= 20
    assert chosen.tolist() == with_candidates(corpus, rows, 0.5, 1).tolist()
    # There are forty such sentences in all.
    assert sum(row % 10 == 0 for row in with_candidates(corpus, np.arange(400), 0.5, 1)) == 40


def test_a_sample_is_sorted_and_of_its_seed_and_nothing_asked_for_is_all():
    assert sample_rows(100, 0, 1, 2).tolist() == list(range(100))
    assert sample_rows(100, 400, 1, 2).tolist() == list(range(100))
    few = sample_rows(100, 24, 1, 2)
    assert len(set(few.tolist())) == 24
    assert (np.diff(few) > 0).all()
    assert few.tolist() == sample_rows(100, 24, 1, 2).tolist() != sample_rows(100, 24, 2, 2).tolist()


def test_trains_on_real_negations_and_loads_in_plain_sentence_transformers(
    corpus_file, tiny_base, tmp_path, monkeypatch
):
    pytest.importorskip("spacy", reason="needs the extra 'negation'")
    settings = {"batch_size": 8, "max_steps": 3, "select_by": "last", "quiet": True, "weight": 1.0}
    first = likewise.train("sncse", corpus_file, base=tiny_base, out=tmp_path / "a", **settings)
    log = [json.loads(line) for line in (first.path / "log.jsonl").read_text().splitlines()]
    parts = [entry["soft_negative"] for entry in log if "soft_negative" in entry]
    assert parts
    assert all(part > 0 for part in parts)
    model = SentenceTransformer(str(first.path))
    assert model.encode("the cat sees a dog").shape == (32,)
    # A second run reads the negations instead of parsing.
    from likewise.augment.negation import stream

    def parsed(*_, **__):
        raise AssertionError("parsed again")

    monkeypatch.setattr(stream, "negated_batches", parsed)
    likewise.train("sncse", corpus_file, base=tiny_base, out=tmp_path / "b", **settings)


@pytest.fixture
def shipped(tiny_base, tmp_path):
    """A sentence encoder whose mask was never trained."""
    build_encoder(str(tiny_base), pooling="mean", head=False).save(str(tmp_path / "shipped"))
    return str(tmp_path / "shipped")


STAGED = {"batch_size": 8, "max_steps": 2, "select_by": "last", "negation": "none", "quiet": True, "precision": "fp32"}


def test_a_mask_behind_the_base_s_own_vector_is_distilled_first_and_once(
    corpus_file, shipped, tmp_path, monkeypatch, stopping_after
):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Run, "is_behind_base", lambda _: True)
    with stopping_after(3):  # in the stage, which goes on from there
        likewise.train("sncse", corpus_file, base=shipped, out=tmp_path / "a", head=False, learning_rate=1e-9, **STAGED)
    a = likewise.train("sncse", corpus_file, base=shipped, out=tmp_path / "a", head=False, learning_rate=1e-9, **STAGED)
    by_hand = likewise.train(
        "mask-distillation",
        corpus_file,
        base=shipped,
        out=tmp_path / "mask",
        max_steps=10,  # five for each update of sncse
        **{name: STAGED[name] for name in ("batch_size", "select_by", "quiet", "precision")},
    )
    texts = ["the cat sees the dog", "the old river"]
    assert a.model.encode(texts) == pytest.approx(by_hand.model.encode(texts), abs=1e-4)
    assert a.record["base"] == shipped
    assert [a.record["first_stage"][name] for name in ("recipe", "steps")] == ["mask-distillation", 10]
    trained = []
    monkeypatch.setattr(Run, "is_behind_base", lambda _: trained.append("measured"))
    likewise.train("sncse", corpus_file, base=shipped, out=tmp_path / "b", seed=2, **STAGED)
    assert trained == []  # the stage's model is there: nothing is measured or distilled again
    (record,) = (tmp_path / "cache").rglob("likewise.json")
    assert json.loads(record.read_text())["recipe"] == "mask-distillation"


def test_what_is_not_distilled(corpus_file, tiny_base, shipped, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    masked = build_prompt_encoder(str(tiny_base), head=False)
    masked.save(str(tmp_path / "masked"))
    assert [has_own_vector(base) for base in (shipped, str(tiny_base), str(tmp_path / "masked"))] == [
        True,
        False,
        False,
    ]
    assert SNCSE.options("paper-base").distil_mask == "never"
    # A mask that is no worse than the base's own vector, by the corpus's own sentences.
    monkeypatch.setattr(CheckpointEvaluator, "noise", lambda *_: 1e9)
    result = likewise.train("sncse", corpus_file, base=shipped, out=tmp_path / "out", **STAGED)
    assert "first_stage" not in result.record
