import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy.special import expit, rel_entr, softmax
from sentence_transformers import SentenceTransformer

import likewise
from likewise.context.stage_options import SURROGATE
from likewise.context.surrogate import Profiles, distill
from likewise.context.workspace import ContextError
from likewise.encoder.build import build_encoder
from likewise.runs.options import OptionError

OPTIONS = SURROGATE.presets["profiles"]
COSINES = OPTIONS.updated(learns="cosine-profiles")
SMALL = {"preset": "profiles", "batch_size": 16, "max_steps": 4, "learning_rate": 1e-3, "quiet": True}


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_batch_has_the_best_contexts_of_half_of_its_sentences_and_others(frozen):
    profiles = Profiles(frozen, OPTIONS, 1)
    assert len(set(profiles.sentences)) == len(profiles.sentences) > 100
    some = profiles.sentences[:16]
    found = profiles.contexts(some)
    assert len(found) <= 16
    assert (np.diff(found) > 0).all()
    for sentence in some[:8]:
        number = profiles.finder.find(sentence)[0]
        assert number in found
    assert len(found) > len({int(profiles.finder.find(sentence)[0]) for sentence in some[:8]})
    np.testing.assert_array_equal(found, Profiles(frozen, OPTIONS, 1).contexts(some))  # after a stop too
    assert found.tolist() != Profiles(frozen, OPTIONS, 2).contexts(some).tolist()


def test_the_teacher_is_the_discriminator_or_the_cosines_of_the_workspaces_encoder(frozen, tiny_base):
    profiles = Profiles(frozen, OPTIONS, 1)
    some, contexts = profiles.sentences[:5], np.array([3, 50, 90])
    fits = profiles.logits(some, contexts).numpy()  # (5, 3)
    for row, sentence in zip(fits, some, strict=True):
        np.testing.assert_allclose(np.log(expit(row)), profiles.finder.ranker.scores(sentence, contexts), rtol=1e-4)
    texts = profiles.texts(contexts)
    for text, (centre, *around) in zip(texts, profiles.states.store.around(contexts), strict=True):
        assert centre not in text
        assert any(sentence in text for sentence in around)
    encoder = build_encoder(str(tiny_base), pooling="mean", head=False).eval()
    encoder.max_seq_length = 24  # that of the workspace
    one, other = (unit(encoder.encode(few).astype(np.float64)) for few in (some, texts))
    found = Profiles(frozen, COSINES, 1).logits(some, contexts).numpy()
    np.testing.assert_allclose(found, one @ other.T / 0.05, atol=2e-2)  # states are kept in float16


def divergence(profiles, model, sentences):
    """The divergence from the teacher, by numpy."""
    contexts = profiles.contexts(sentences)
    teacher = softmax(profiles.logits(sentences, contexts).numpy().astype(np.float64), axis=1)
    one, other = (unit(model.encode(few).astype(np.float64)) for few in (sentences, profiles.texts(contexts)))
    return rel_entr(teacher, softmax(one @ other.T / 0.05, axis=1)).sum(axis=1).mean()


@pytest.mark.parametrize("learns", ["profiles", "cosine-profiles"])
def test_a_student_comes_nearer_to_the_profiles(frozen, tiny_base, tmp_path, learns):
    # [CLS] of the tiny base says the same of every text.
    settings = SMALL | {"learns": learns, "max_steps": 30, "pooling": "mean"}
    result = distill(work=frozen, base=tiny_base, out=tmp_path / "run", **settings)
    model = SentenceTransformer(str(result.path))
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling"]
    assert model[1].pooling_mode == "mean"
    profiles = Profiles(frozen, OPTIONS.updated(learns=learns), 1)
    before = build_encoder(str(tiny_base), pooling="mean", head=False).eval()
    sentences = profiles.sentences[40:100]
    assert divergence(profiles, model, sentences) < 0.9 * divergence(profiles, before, sentences)
    corpus = result.record["corpus"]
    assert corpus["sentences"] == len(profiles.sentences)
    assert (corpus["unit"], corpus["contexts"]) == ("sentences of a workspace", profiles.states.store.n_contexts)
    assert "test" not in result.record


def test_a_stopped_run_ends_with_the_same_weights(frozen, tiny_base, tmp_path, stopping_after):
    settings = SMALL | {"work": frozen, "base": tiny_base}
    distill(out=tmp_path / "whole", **settings)
    with stopping_after(2):
        distill(out=tmp_path / "cut", **settings)
    torch.manual_seed(999)
    distill(out=tmp_path / "cut", resume=True, **settings)
    whole, cut = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_what_is_wrong_is_told_before_anything_is_done(frozen, trained, indexed, tiny_base, tmp_path, says):
    out = tmp_path / "run"
    for arguments in (
        {},
        {"work": frozen},
        {"preset": "profiles"},
        {"preset": "profiles", "work": frozen, "harvest": frozen},
        {"preset": "profiles", "work": frozen, "structure": "cross"},
        {"preset": "profiles", "work": frozen, "select_by": "held-out"},
        {"preset": "profiles", "work": frozen, "batch_size": 5_000},
    ):
        with says(OptionError):
            distill(base=tiny_base, out=out, quiet=True, **arguments)
    for work, learns in (
        (indexed, "profiles"),
        (trained, "cosine-profiles"),
    ):
        with says(ContextError):
            likewise.distill(work=work, base=tiny_base, out=out, quiet=True, preset="profiles", learns=learns)
    assert not out.exists()
