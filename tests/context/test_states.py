"""The states of a frozen encoder, against sentence-transformers' own encode and a tokenizer."""

import shutil

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from likewise.baselines.building import baseline
from likewise.context import ContextError, StatesOptions, Workspace, read_states, states
from likewise.context.indexing import open_store
from likewise.context.states import FrozenEncoder, open_states
from likewise.runs.job import JobError
from likewise.runs.stopping import Stopped

TEXTS = ["The old cat sees the dog.", "A river", "The bridge is near the garden and the cat likes the small window."]


def test_vectors_and_tokens_are_the_models(tiny_base):
    encoder = FrozenEncoder(str(tiny_base), 12)
    model = SentenceTransformer(str(tiny_base), device="cpu")
    model.max_seq_length = 12
    expected = model.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(encoder.vectors(TEXTS), expected, atol=1e-5)
    for text, tokens, ids in zip(TEXTS, encoder.readings(TEXTS), encoder.ids(TEXTS), strict=True):
        own = model.encode(text, output_value="token_embeddings").cpu().numpy()[1:-1]
        own = own / np.linalg.norm(own, axis=1, keepdims=True)
        np.testing.assert_allclose(tokens.states.astype(np.float32), own, atol=2e-3)
        plain = model.tokenizer(text, add_special_tokens=False)["input_ids"][:10]
        assert tokens.ids.tolist() == ids.tolist() == plain
    assert encoder.vectors(TEXTS[:1]).tolist() == encoder.vectors(TEXTS)[:1].tolist()


@pytest.fixture
def begun(indexed, tmp_path):
    shutil.copytree(indexed, tmp_path / "work")
    return tmp_path / "work"


def test_the_stage_holds_every_sentence_in_its_place(frozen, tiny_base):
    stage = Workspace(frozen).require("states")
    found, store = open_states(stage), open_store(Workspace(frozen).require("index"))
    texts = store.texts()
    assert stage.record["sentences"] == len(texts) == len(found.vectors)
    np.testing.assert_allclose(found.vectors, FrozenEncoder(str(tiny_base), 24).vectors(texts), atol=1e-3)
    ids = FrozenEncoder(str(tiny_base), 24).ids(texts)
    assert [found.pieces(i).tolist() for i in range(len(texts))] == [row.tolist() for row in ids]
    holding = sum(int(5 in row) for row in ids)  # "the"
    assert found.idf[5] == pytest.approx(np.log((len(texts) + 1) / (holding + 1)), rel=1e-5)


def test_a_stopped_run_goes_on_to_the_same_bytes(begun, frozen, tiny_base, monkeypatch):
    monkeypatch.setattr(states, "_AT_ONCE", 200)
    options, real, calls = StatesOptions(encoder=str(tiny_base), max_tokens=24), FrozenEncoder.read, []

    def stopping(self, *args, **kwargs):
        import signal

        calls.append(1)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return real(self, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(FrozenEncoder, "read", stopping)
        with pytest.raises(Stopped, match="after 2 of"):
            read_states(begun, options, quiet=True)
    with pytest.raises(JobError, match="stopped work that was started with"):
        read_states(begun, options.updated(max_tokens=20), quiet=True)
    stage = read_states(begun, options, quiet=True)
    whole = open_states(Workspace(frozen).require("states"))
    np.testing.assert_allclose(open_states(stage).vectors, whole.vectors, atol=1e-3)
    assert open_states(stage).ids.tolist() == whole.ids.tolist()


def test_an_encoder_of_words_has_no_pieces(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2 3\ncat 3 2 1\n")
    baseline("word-average", base=str(path), out=tmp_path / "words", quiet=True)
    with pytest.raises(ContextError, match="give a transformer"):
        FrozenEncoder(str(tmp_path / "words"), 20)


def test_damage_names_its_cure(begun, frozen):
    shutil.copytree(frozen / "states", begun / "states")
    (begun / "states" / "states.safetensors").write_bytes(b"x")
    with pytest.raises(ContextError, match="train states --overwrite"):
        open_states(Workspace(begun).require("states"))
