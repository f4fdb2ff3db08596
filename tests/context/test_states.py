"""The states of a frozen encoder, against sentence-transformers' own encode and a tokenizer."""

import json
import shutil

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from likewise.context import ContextError, StatesOptions, Workspace, read_states, states
from likewise.context.index import open_store
from likewise.context.states import FrozenEncoder, States
from likewise.runs.job import JobError
from likewise.runs.progress import Stopped

TEXTS = ["The old cat sees the dog.", "A river", "The bridge is near the garden and the cat likes the small window."]


def test_vectors_and_tokens_are_the_models(tiny_base):
    encoder = FrozenEncoder(str(tiny_base), 12)
    model = SentenceTransformer(str(tiny_base), device="cpu")
    model.max_seq_length = 12
    expected = model.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose([one.vector for one in encoder.read(TEXTS)], expected, atol=1e-5)
    for text, tokens, pieces in zip(TEXTS, encoder.read(TEXTS), encoder.read_pieces(TEXTS), strict=True):
        own = model.encode(text, output_value="token_embeddings").cpu().numpy()[1:-1]
        own = own / np.linalg.norm(own, axis=1, keepdims=True)
        np.testing.assert_allclose(tokens.states.astype(np.float32), own, atol=2e-3)
        plain = model.tokenizer(text, add_special_tokens=False)["input_ids"][:10]
        assert tokens.ids.tolist() == pieces.ids.tolist() == plain


def test_what_was_read_once_is_not_read_again(frozen, monkeypatch):
    states = States(Workspace(frozen))
    text = states.store.texts()[7]
    found = states.readings([text, *TEXTS])
    assert found[0].ids.tolist() == states.of([7])[0].ids.tolist()
    monkeypatch.setattr(FrozenEncoder, "read", lambda self, texts, progress: [None] * len(texts))
    assert states.vectors_of(TEXTS[:1]).tolist() == [found[1].vector.tolist()]
    states.forget()
    assert states.readings(TEXTS[:1]) == [None]


def test_sentences_are_read_in_bfloat16_if_asked(begun, tiny_base):
    stage = read_states(begun, StatesOptions(encoder=str(tiny_base), max_tokens=24, precision="bf16"), quiet=True)
    found = States(Workspace(begun))
    assert found.encoder.precision == "bf16"
    texts = found.store.texts()[:40]
    exact, near = (FrozenEncoder(str(tiny_base), 24, name).read(texts) for name in ("fp32", "bf16"))
    differences = [float(np.abs(one.vector - other.vector).max()) for one, other in zip(exact, near, strict=True)]
    assert 0 < max(differences) < 0.02, "near, and not the same"
    np.testing.assert_allclose(found.vectors[:40], [one.vector for one in near], atol=0.02)
    del stage.record["plan"]["options"]["precision"]  # as an earlier release wrote it
    (stage.folder / "likewise.json").write_text(json.dumps(stage.record))
    assert States(Workspace(begun)).encoder.precision == "fp32"


@pytest.mark.parametrize(("precision", "atol"), [("fp32", 1e-3), ("bf16", 0.02)])
def test_vectors_alone_are_kept_if_asked(begun, tiny_base, precision, atol):
    given = StatesOptions(encoder=str(tiny_base), max_tokens=8, keep="vectors", precision=precision)
    stage = read_states(begun, given, quiet=True)
    found = States(Workspace(begun))
    model = SentenceTransformer(str(tiny_base), device="cpu")
    model.max_seq_length = 8
    texts = found.store.texts()
    np.testing.assert_allclose(found.vectors, model.encode(texts, normalize_embeddings=True), atol=atol)
    ids = model.tokenizer(texts, add_special_tokens=False)["input_ids"]
    assert [one.ids.tolist() for one in found.of(range(len(texts)))] == [row[:6] for row in ids]
    assert not list(stage.folder.glob("tokens*"))


@pytest.fixture
def begun(indexed, tmp_path):
    shutil.copytree(indexed, tmp_path / "work")
    return tmp_path / "work"


def test_the_stage_holds_every_sentence_in_its_place(frozen, tiny_base):
    stage = Workspace(frozen).require("states")
    found, store = States(Workspace(frozen)), open_store(Workspace(frozen).require("index"))
    texts = store.texts()
    assert stage.record["sentences"] == len(texts) == len(found.vectors)
    read = FrozenEncoder(str(tiny_base), 24).read(texts)
    np.testing.assert_allclose(found.vectors, [one.vector for one in read], atol=1e-3)
    kept = found.of(range(len(texts)))
    assert [one.ids.tolist() for one in kept] == [one.ids.tolist() for one in read]
    for one, other in zip(kept, read, strict=True):
        np.testing.assert_allclose(one.states.astype(np.float32), other.states.astype(np.float32), atol=2e-3)
    holding = sum(int(5 in one.ids) for one in read)  # "the"
    assert found.idf[5] == pytest.approx(np.log((len(texts) + 1) / (holding + 1)), rel=1e-5)


def interrupting(real, calls):
    """A method that asks for a stop in its second call."""

    def stopping(self, *args, **kwargs):
        import signal

        calls.append(1)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return real(self, *args, **kwargs)

    return stopping


def test_a_stopped_run_goes_on_to_the_same_bytes(begun, frozen, tiny_base, monkeypatch, says):
    monkeypatch.setattr(states, "_AT_ONCE", 200)
    options, stopping = StatesOptions(encoder=str(tiny_base), max_tokens=24), interrupting(FrozenEncoder.read, [])
    with monkeypatch.context() as patched:
        patched.setattr(FrozenEncoder, "read", stopping)
        with says(Stopped):
            read_states(begun, options, quiet=True)
    with says(JobError):
        read_states(begun, options.updated(max_tokens=20), quiet=True)
    read_states(begun, options, quiet=True)
    resumed, whole = States(Workspace(begun)), States(Workspace(frozen))
    np.testing.assert_allclose(resumed.vectors, whole.vectors, atol=1e-3)
    assert resumed.ids.tolist() == whole.ids.tolist()


def test_an_encoder_of_words_has_no_pieces(word_model, says):
    with says(ContextError):
        FrozenEncoder(str(word_model), 20)


def test_damage_names_its_cure(begun, frozen, says):
    shutil.copytree(frozen / "states", begun / "states")
    (begun / "states" / "states.safetensors").write_bytes(b"x")
    with says(ContextError):
        States(Workspace(begun))


def test_a_workspace_notices_that_its_encoder_was_trained_again(begun, tiny_base, tmp_path, says):
    encoder = tmp_path / "encoder"
    shutil.copytree(tiny_base, encoder)
    options = StatesOptions(encoder=str(encoder), max_tokens=24)
    read_states(begun, options, quiet=True)
    Workspace(begun).require("states")
    weights = next(encoder.rglob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-4] + b"abcd")
    with says(ContextError):
        Workspace(begun).require("states")
    with says(JobError):
        read_states(begun, options, quiet=True)


def test_half_a_surrogate_pair_is_read_as_a_question_mark(tiny_base):
    encoder = FrozenEncoder(str(tiny_base), 12)
    half, mark = (encoder.read([text])[0] for text in ("the cat \udce9", "the cat ?"))
    np.testing.assert_array_equal(half.vector, mark.vector)
