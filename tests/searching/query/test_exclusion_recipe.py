import random

import numpy as np
import pytest
import torch

import likewise
from likewise.encoder.build import build_encoder, build_prompt_encoder
from likewise.encoder.training_modules import FrozenCopy
from likewise.recipes import find_recipe
from likewise.searching.query.exclusion_recipe import excluding, some_words, with_exclusions

RECIPE = find_recipe("exclusion")
TEXTS = ["The lake is deep.", "The old cat sees a garden.", "The dog runs."]
ROWS = [{"sentence": text} for text in TEXTS]


def features(batch):
    return [
        {key.removeprefix(f"{name}_"): value for key, value in batch.items() if key.startswith(f"{name}_")}
        for name in ("sentence", "meaning", "excluded")
        if f"{name}_input_ids" in batch
    ]


def test_some_words_stand_in_the_sentence_and_begin_and_end_with_words_that_say_something():
    text = "The castle of the old king, which (it is said) was built in 1450, is very dark."
    for seed in range(200):
        found = some_words(text, random.Random(seed))
        assert found in text
        assert 1 <= len(found.split()) <= 6
        assert not set(found) & set(",;:()")
        assert {found.split()[0].lower(), found.split()[-1].lower()}.isdisjoint({"the", "of", "is", "it", "was", "in"})
    assert some_words("It is as it was.", random.Random(1)) is None


def test_an_exclusion_is_added_and_nothing_is_lost():
    found = {excluding("The castle, built late, is old.", "the tower", random.Random(seed)) for seed in range(300)}
    assert "The castle, built late, is old, excluding the tower." in found
    assert "The castle, built late, is old (without the tower)." in found
    assert any(text.startswith("The castle") and text.endswith(", built late, is old.") for text in found)
    for text in found:
        assert "the tower" in text
        assert text.endswith(".")
        rest = text.replace("the tower", "")
        assert all(word in rest for word in ("The castle", "built late", "is old"))
    assert excluding("Castles", "towers", random.Random(1)).startswith("Castles")


def test_an_exclusion_is_of_words_of_the_next_sentence_and_the_sentences_stand_for_themselves():
    found = with_exclusions(ROWS, 1.0, seed=1)
    assert found["sentence"][:3] == found["meaning"][:3] == found["meaning"][3:] == TEXTS
    assert found["excluded_rows"].tolist() == [3, 4, 5]
    added = found["sentence"][3:]
    for text, base, words, other in zip(added, TEXTS, found["excluded"], TEXTS[1:] + TEXTS[:1], strict=True):
        assert text.startswith(base.rstrip("."))
        assert words in text
        assert words in other
    assert with_exclusions(ROWS, 1.0, seed=1)["sentence"] == found["sentence"]


def test_long_sentences_and_those_that_are_not_drawn_get_none():
    long = {"sentence": "The old cat sees " + "a garden and " * 20 + "a dog."}
    assert len(with_exclusions([long, ROWS[1]], 1.0, seed=1)["sentence"]) == 3
    assert set(with_exclusions([long, long], 1.0, seed=1)) == {"sentence", "meaning"}
    many = [{"sentence": f"The cat of house {number} is old."} for number in range(400)]
    assert 160 < len(with_exclusions(many, 0.5, seed=1)["excluded"]) < 240


def test_the_loss_is_the_distance_from_the_composed_vectors(tiny_base):
    options = RECIPE.options(excluded_weight=0.4, exclusion_share=1.0)
    encoder = RECIPE.build_encoder(str(tiny_base), options).train()
    loss = RECIPE.build_loss(encoder, options)
    batch = RECIPE.build_collator(encoder, options, 1)(ROWS)
    found = with_exclusions(ROWS, 1.0, 1)
    (teacher,) = [module for module in encoder if isinstance(module, FrozenCopy)]
    with torch.no_grad():
        for weights in encoder[0].parameters():  # or the encoder would be its teacher
            weights.add_(0.01 * torch.randn_like(weights))
        value = loss(features(batch)).item()
        encoder.eval()
        vectors = encoder.encode(found["sentence"], normalize_embeddings=True).astype(float)
        targets = teacher.encoder.encode(found["meaning"], normalize_embeddings=True).astype(float)
        less = teacher.encoder.encode(found["excluded"], normalize_embeddings=True).astype(float)
    for row, vector in zip(found["excluded_rows"].tolist(), less, strict=True):
        targets[row] -= 0.4 * vector
    cosines = (vectors * targets).sum(axis=1) / np.linalg.norm(targets, axis=1)
    assert value == pytest.approx(1 - cosines.mean(), rel=1e-4)
    loss(features(batch)).backward()
    assert all(weights.grad is None for weights in teacher.parameters())


def test_a_run_brings_exclusions_near_what_they_mean(tiny_base, sentences, corpus_file, tmp_path):
    build_encoder(str(tiny_base), pooling="mean", head=False).save(str(tmp_path / "base"))
    settings = {"batch_size": 16, "max_steps": 60, "learning_rate": 3e-3, "seed": 1, "quiet": True}
    result = likewise.train("exclusion", corpus_file, base=tmp_path / "base", out=tmp_path / "out", **settings)
    base = likewise.load(tmp_path / "base", device="cpu", precision="fp32")
    found = with_exclusions([{"sentence": text} for text in sentences[:60]], 1.0, seed=2)
    meant = base.encode(found["meaning"], normalize_embeddings=True)
    meant[found["excluded_rows"]] -= 0.3 * base.encode(found["excluded"], normalize_embeddings=True)
    meant /= np.linalg.norm(meant, axis=1, keepdims=True)
    models = (base, result.model)
    before, after = ((meant * m.encode(found["sentence"], normalize_embeddings=True)).sum(1) for m in models)
    assert after[60:].mean() > before[60:].mean() + 0.01
    assert after[:60].mean() > 0.9
    assert not any(isinstance(module, FrozenCopy) for module in result.model)


def test_a_base_that_reads_a_mask_keeps_doing_so(tiny_base, tmp_path):
    base = build_prompt_encoder(str(tiny_base), head=False)
    base.save(str(tmp_path / "mask"))
    options = RECIPE.options()
    encoder = RECIPE.build_encoder(str(tmp_path / "mask"), options).eval()
    batch = RECIPE.build_collator(encoder, options, 1)(ROWS)
    with torch.no_grad():
        found, meant = (part["sentence_embedding"][:3].numpy() for part in map(encoder, features(batch)[:2]))
    wanted = base.eval().encode(TEXTS)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    np.testing.assert_allclose(meant, wanted, atol=1e-5)


def test_text_of_another_language_is_refused(tiny_base, tmp_path, says):
    german = tmp_path / "german.txt"
    lines = [f"Die Pumpe Nummer {i} ist undicht und muss heute ausgetauscht werden." for i in range(80)]
    german.write_text("\n".join(lines), encoding="utf-8")
    with says(likewise.LikewiseError):
        likewise.train("exclusion", german, base=tiny_base, out=tmp_path / "out", max_steps=1, batch_size=4, quiet=True)
