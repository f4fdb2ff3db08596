"""The tokens of passages: their stored form, the fit of a query, and what they do in a search."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import likewise
from likewise.evaluation.fusion import token_gains
from likewise.searching import Index, SearchError
from likewise.searching.index import passage_encoder, table_update
from likewise.searching.index.index_update import index
from likewise.searching.index.maxsim import TokenCodec, token_weights

QUERY = "the old dog near the river"


def texts_of_tokens(count: int, size: int = 24) -> list[np.ndarray]:
    draw = np.random.default_rng(3)
    centre = draw.normal(size=size)  # tokens of an encoder are not spread evenly around zero
    return [centre + draw.normal(size=(int(draw.integers(1, 12)), size)) for _ in range(count)]


def by_hand(query, weights, text) -> float:
    """The weighted mean over the query's tokens of the best product with a token of the text, one at a time."""
    total = 0.0
    for token, weight in zip(query.tolist(), weights.tolist(), strict=True):
        total += weight * max(sum(a * b for a, b in zip(token, other, strict=True)) for other in text.tolist())
    return total / sum(weights.tolist())


def cosine(a, b) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.dist(a, [0] * len(a)) / math.dist(b, [0] * len(b))


def test_the_fit_is_the_best_match_of_each_token_of_the_query():
    texts = texts_of_tokens(30)
    codec = TokenCodec.fit(texts)
    query, weights = codec.projected(texts[7] + 0.1), np.linspace(0.1, 2, len(texts[7])).astype(np.float32)
    packed = [codec.pack(text) for text in texts]
    wanted = [by_hand(query, weights, codec.unpack(one)) for one in packed]
    np.testing.assert_allclose(codec.fits(query, weights, packed), wanted, atol=1e-5)
    assert int(np.argmax(wanted)) == 7


@pytest.mark.parametrize("size", [1, 6, 24, 300])
def test_stored_tokens_are_near_those_of_the_encoder(size, tmp_path):
    texts = texts_of_tokens(60, size)
    TokenCodec.fit(texts).save(tmp_path / "codec")
    codec = TokenCodec.open(tmp_path / "codec")
    found, wanted = [], []
    for text in texts[:20]:
        packed = codec.pack(text)
        assert len(packed) == len(text) * len(codec.mean) / 4
        there, asked = codec.unpack(packed), codec.projected(texts[30])
        assert len(there) == len(text) == codec.lengths([packed])[0]
        found += (asked @ there.T).ravel().tolist()
        wanted += [cosine(a, b) for a in texts[30].tolist() for b in text.tolist()]
    if size > 1:
        assert np.corrcoef(found, wanted)[0, 1] > 0.8, "2 bits of each number keep the order of the products"
    assert TokenCodec.open(tmp_path) is None


def test_a_text_without_tokens_fits_as_badly_as_the_worst():
    texts = texts_of_tokens(9)
    codec = TokenCodec.fit(texts)
    packed = [codec.pack(text) for text in texts]
    query, weights = codec.projected(texts[0]), np.ones(len(texts[0]), dtype=np.float32)
    whole = codec.fits(query, weights, packed)
    with_none = codec.fits(query, weights, [b"", *packed[:4], b"", *packed[4:]])
    np.testing.assert_allclose(np.delete(with_none, [0, 5]), whole, atol=1e-6)
    assert with_none[0] == with_none[5] == with_none.min()
    assert codec.fits(query, weights, [b"", b""]).tolist() == [0, 0]


def test_weights_are_the_root_of_the_idf_and_a_new_token_weighs_as_much_as_the_rarest():
    ids = [np.array(one) for one in ([5, 1, 1, 2], [5, 2], [5], [5, 2])]
    weights = token_weights(ids)
    for token, texts in ((5, 4), (2, 3), (1, 1), (0, 0)):
        assert weights[token] == pytest.approx(math.sqrt(math.log(1 + (4 - texts + 0.5) / (texts + 0.5))), rel=1e-6)
    codec = TokenCodec(*[np.ones((4, 4), dtype=np.float32)] * 3, weights)
    assert codec.weights_of(np.array([5, 1, 77])).tolist() == [weights[5], weights[1], weights.max()]


def test_gains_have_the_deviation_of_the_scores_and_the_others_get_that_of_the_last():
    own, fits = np.array([4.0, 1.0, 1.0, 2.0, 3.0, 1.0]), np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.9])
    gains, others = token_gains(own, fits)
    assert gains.mean() == pytest.approx(0)
    assert gains.std() == pytest.approx(own.std())
    assert np.corrcoef(gains, fits)[0, 1] == pytest.approx(1)
    assert others == pytest.approx(gains[0])
    assert token_gains(own, np.ones(6))[1] == 0


@pytest.fixture(scope="module")
def reader(mean_model, sentences, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "lines.txt").write_text("\n".join(sentences[:120]) + "\n")
    index(folder / "lines.txt", model=mean_model, out=folder / "a.index", quiet=True)
    return Index(folder / "a.index")


def stored(folder) -> dict[str, bytes]:
    found = Index(folder).table._select(["text", "tokens"])
    return dict(zip(found["text"].to_pylist(), found["tokens"].to_pylist(), strict=True))


def check_stored(folder, model, sentences) -> None:
    """Assert that the tokens of all passages are stored, and that they are those of the model."""
    encoder, codec, there = SentenceTransformer(str(model)), Index(folder)._opened.stored.codec, stored(folder)
    assert set(there) == set(sentences)
    for text in list(there)[::7]:
        wanted = encoder.encode(text, output_value="token_embeddings").cpu().numpy()
        found = codec.unpack(there[text])
        assert len(found) == len(wanted)
        differs = np.abs(found - codec.projected(wanted))
        middle = np.abs(codec.projected(wanted) - codec.mean) < 2 * codec.step
        assert (differs <= codec.step * 0.51)[middle].all()


def test_an_index_stores_the_tokens_of_the_model(reader, mean_model, sentences):
    check_stored(reader.path, mean_model, sentences[:120])


def test_scores_with_tokens_are_those_of_all_parts_by_hand(reader, mean_model):
    steps = {"neighbours": 0, "first": 30}
    before = {hit.text: hit for hit in reader.search(QUERY, 120, pipeline={**steps, "tokens": 0})}
    hits = reader.search(QUERY, 120, pipeline=steps)
    first = [hit.text for hit in list(before.values())[:30]]
    model, codec, there = SentenceTransformer(str(mean_model)), reader._opened.stored.codec, stored(reader.path)
    ids = np.array(model.tokenizer(QUERY)["input_ids"])[1:]  # all but [CLS], with which every text begins
    query = codec.projected(model.encode(QUERY, output_value="token_embeddings").cpu().numpy()[1:])
    weights = token_weights([np.array(model.tokenizer(text)["input_ids"]) for text in there])[ids]
    fits = np.array([by_hand(query, weights, codec.unpack(there[text])) for text in first])
    own = np.array([before[text].score for text in first])
    gains = dict(zip(first, 0.5 * own.std() * (fits - fits.mean()) / fits.std(), strict=True))
    least = np.mean(sorted(gains.values())[:5])
    for hit in hits:
        assert hit.scores["tokens"] == pytest.approx(gains.get(hit.text, least), abs=1e-4)
        assert hit.score == pytest.approx(before[hit.text].score + hit.scores["tokens"], abs=1e-4)
        assert sum(hit.scores.values()) == pytest.approx(hit.score)
        assert f"tokens {hit.scores['tokens']:+.2f}" in hit.explanation
        assert hit.to_dict()["scores"]["tokens"] == hit.scores["tokens"]
    assert [hit.text for hit in hits] != list(before)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_neighbours_share_what_tokens_have_given(reader):
    alone = {hit.text: hit.score for hit in reader.search(QUERY, 120, pipeline={"neighbours": 0})}
    rows, _ = reader.table.keys()
    texts = [row["text"] for row in reader.table.passages(rows)]
    near = reader._opened.stored.geometry.near
    for hit in reader.search(QUERY, 20, pipeline={"neighbours": 0.3}):
        around = [alone[texts[i]] for i in near[texts.index(hit.text), :3]]
        assert hit.score == pytest.approx(0.7 * alone[hit.text] + 0.3 * np.mean(around), abs=1e-4)


def test_a_query_as_long_as_the_passages_is_searched_without_tokens(reader, sentences):
    long = " ".join(sentences[:3])
    assert reader.search(QUERY)[0].scores.keys() == {"vectors", "words", "tokens", "neighbours"}
    assert reader.search(long)[0].scores.keys() == {"vectors", "words", "neighbours"}
    assert reader.search(long) == reader.search(long, pipeline={"tokens": 0})


def test_an_update_keeps_the_tokens_true(mean_model, sentences, tmp_path, monkeypatch):
    monkeypatch.setattr(table_update, "WINDOW", 16)
    source, out = tmp_path / "lines.txt", tmp_path / "a.index"
    source.write_text("\n".join(sentences[:40]) + "\n")
    index(source, model=mean_model, out=out, quiet=True)
    before = Index(out)._opened.stored.codec
    source.write_text("\n".join(sentences[30:60]) + "\n")
    assert index(source, out=out, quiet=True).encoded == 20
    check_stored(out, mean_model, sentences[30:60])
    after = Index(out)._opened.stored.codec
    np.testing.assert_array_equal(after.directions, before.directions)  # or what was stored could not be read any more
    assert after.weights.tolist() != before.weights.tolist(), "the weights are those of the passages that are there"
    (tmp_path / "more.txt").write_text("\n".join(sentences[:3]) + "\n")
    index([source, tmp_path / "more.txt"], out=out, quiet=True)
    index(tmp_path / "more.txt", out=out, quiet=True)
    check_stored(out, mean_model, sentences[:3])
    assert Index(out).search(QUERY)[0].scores["tokens"] != 0


def test_a_run_that_stopped_before_its_first_passages_were_written_encodes_the_same_texts_together(
    mean_model, sentences, tmp_path, monkeypatch
):
    """A text that is encoded among others may differ in the last bit."""
    from likewise.inference.text_encoder import TextEncoder

    source = tmp_path / "lines.txt"
    source.write_text("\n".join(sentences[:40]) + "\n")
    monkeypatch.setattr(passage_encoder, "_FITTED", 8)
    together: list[list[list[int]]] = []
    encode = TextEncoder.with_tokens

    def noted(self, items, take, *step):
        together.append([item.tolist() for item in items])
        return encode(self, items, take, *step)

    def stopped(self, *args):
        raise RuntimeError("stopped")

    monkeypatch.setattr(TextEncoder, "with_tokens", noted)
    index(source, model=mean_model, out=tmp_path / "whole.index", quiet=True)
    whole, together[:] = list(together), []
    assert [len(texts) for texts in whole] == [8, 32]
    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="stopped"):
        patched.setattr(table_update.Table, "add", stopped)
        index(source, model=mean_model, out=tmp_path / "a.index", quiet=True)
    together.clear()
    index(source, model=mean_model, out=tmp_path / "a.index", quiet=True)
    assert together == whole


@pytest.mark.parametrize("steps", [{"tokens": 0}, None])
def test_an_index_without_tokens_is_searched_without_them(steps, mean_model, sentences, tmp_path, capsys):
    source, out = tmp_path / "lines.txt", tmp_path / "a.index"
    source.write_text("\n".join(sentences[:40]) + "\n")
    index(source, model=mean_model, out=out, pipeline={"tokens": 0}, quiet=True)
    assert not Index(out).table.has_tokens
    assert not list(out.rglob("tokens.npz"))
    if steps is None:  # as an older version wrote it
        record = json.loads((out / "likewise.json").read_text())
        for name in ("tokens", "first"):
            del record["pipeline"][name]
        (out / "likewise.json").write_text(json.dumps(record))
    assert Index(out).pipeline.tokens == 0
    assert "tokens" not in Index(out).search(QUERY)[0].scores
    assert "tokens" not in likewise.search(out, QUERY, pipeline={"tokens": 1})[0].scores
    source.write_text("\n".join(sentences[:41]) + "\n")
    index(source, out=out, pipeline={"tokens": 0.5})
    assert "has none, so that only `likewise index ... --overwrite` can add them" in " ".join(
        capsys.readouterr().err.split()
    )
    assert Index(out).pipeline.tokens == 0
    index(source, out=out, overwrite=True, model=mean_model, quiet=True)
    assert "tokens" in Index(out).search(QUERY)[0].scores


def test_a_model_without_tokens_makes_an_index_without_them(notes, word_model, tmp_path, capsys):
    index(notes, model=word_model, out=tmp_path / "a.index")
    assert "tokens" not in capsys.readouterr().err, "nobody has asked for them"
    found = Index(tmp_path / "a.index")
    assert (found.pipeline.tokens, found.pipeline.neighbours) == (0, 0.1)
    index(notes, model=word_model, out=tmp_path / "b.index", pipeline={"tokens": 0.5})
    assert "the model has no token vectors" in " ".join(capsys.readouterr().err.split())


def test_a_missing_form_of_the_tokens_is_said_with_the_cure(reader, tmp_path, says):
    copy = Path(shutil.copytree(reader.path, tmp_path / "copy.index"))
    for path in copy.rglob("tokens.npz"):
        path.write_bytes(b"nonsense")
    with says(SearchError, hidden=r"\(This file contains pickled.*\)"):
        Index(copy)
    for path in copy.rglob("tokens.npz"):
        path.unlink()
    with says(SearchError):
        Index(copy)


def test_a_given_encoder_of_vectors_alone_does_without_tokens(reader):
    alone = Index(reader.path, vectors=reader._encode)
    assert alone.search(QUERY) == reader.search(QUERY, pipeline={"tokens": 0})
