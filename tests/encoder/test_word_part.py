from collections import Counter

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch.nn import functional as F

from likewise.encoder.modules import with_modules
from likewise.encoder.word_part import WordPart, _first_forms, fit_word_part
from likewise.inference import load


@pytest.fixture
def part(tiny_model, sentences):
    ids = [np.array(tiny_model.tokenizer(text)["input_ids"]) for text in sentences[:50]]
    embeddings = tiny_model[0].auto_model.get_input_embeddings().weight.detach().numpy()
    return fit_word_part(ids, tiny_model.tokenizer, embeddings, 32, 24, seed=1), ids


def test_the_vectors_by_hand(part, tiny_model, sentences):
    words, _ = part
    model = with_modules(tiny_model, [*tiny_model.children(), words]).eval()
    base, found = tiny_model.encode(sentences[:6]), model.encode(sentences[:6])
    for text, before, after in zip(sentences[:6], base, found, strict=True):
        counts = Counter(tiny_model.tokenizer(text)["input_ids"])
        w = sum(count**0.5 * words.table[words.row[i]].detach().numpy() for i, count in counts.items())
        v = np.concatenate([before / np.linalg.norm(before), 0.7 * w / np.linalg.norm(w)])
        np.testing.assert_allclose(after, v / np.linalg.norm(v), atol=1e-5)


def test_rare_pieces_weigh_more_and_signs_nothing(part, tiny_model):
    words, ids = part
    lengths = {}
    for piece in np.unique(np.concatenate(ids)):
        seen = sum(piece in row for row in ids)
        lengths[seen] = max(lengths.get(seen, 0.0), float(words.table.detach()[words.row[piece]].norm()))
    tokenizer = tiny_model.tokenizer
    for sign in (".", ",", "[CLS]", "[SEP]", "[PAD]"):
        assert words.row[tokenizer.convert_tokens_to_ids(sign)] == 0
    assert float(words.table[0].detach().abs().sum()) == 0
    common, rare = max(lengths), min(lengths)
    assert lengths[common] < 0.5 * lengths[rare]
    unseen = tokenizer.convert_tokens_to_ids("q")
    assert words.table[words.row[unseen]].norm() > 0


def test_training_and_running_agree(part, tiny_model, sentences):
    words, _ = part
    rows = tiny_model.tokenizer(sentences[:4], padding=True, return_tensors="pt")
    flat = [torch.tensor(tiny_model.tokenizer(text)["input_ids"]) for text in sentences[:4]]
    starts = torch.tensor([0, *np.cumsum([len(one) for one in flat[:-1]])])
    torch.testing.assert_close(
        words.words_of(torch.cat(flat), starts), words.words(rows["input_ids"], rows["attention_mask"])
    )


def test_it_is_saved_and_read_back(part, tiny_model, sentences, tmp_path):
    model = with_modules(tiny_model, [*tiny_model.children(), part[0]]).eval()
    model.save(str(tmp_path / "model"), create_model_card=False)
    wanted = model.encode(sentences[:5])
    np.testing.assert_allclose(load(tmp_path / "model", engine="torch").encode(sentences[:5]), wanted, atol=1e-6)
    plain = SentenceTransformer(str(tmp_path / "model"), trust_remote_code=True, device="cpu")
    np.testing.assert_allclose(plain.encode(sentences[:5]), wanted, atol=1e-6)
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    np.testing.assert_allclose(
        load(tmp_path / "model", device="cpu", engine="onnx").encode(sentences[:5]), wanted, atol=1e-5
    )


def test_weight_zero_is_the_base(tiny_model, sentences):
    part = WordPart(len(tiny_model.tokenizer), 1, 32, 8, weight=0.0)
    found = with_modules(tiny_model, [*tiny_model.children(), part]).encode(sentences[:3])
    base = tiny_model.encode(sentences[:3], normalize_embeddings=True)
    np.testing.assert_allclose(found, np.pad(base, ((0, 0), (0, 8))), atol=1e-6)


class Vocabulary(list[str]):
    """A tokenizer, as far as the part of words asks it."""

    all_special_ids = (0,)

    def convert_ids_to_tokens(self, ids):
        return [self[i] for i in ids]


def test_forms_of_a_word_share_its_vector_and_its_frequency():
    tokenizer = Vocabulary(["[CLS]", "flows", "flow", "."])
    ids = [np.array([1])] * 3 + [np.array([2])] * 5 + [np.array([3])] * 4
    embeddings = np.zeros((4, 1), dtype=np.float32)

    def cosine(language):
        part = fit_word_part(ids, tokenizer, embeddings, 32, 64, 1, language)
        rows = part.table[part.row[[1, 2]]].detach()
        return float(F.cosine_similarity(rows[:1], rows[1:])), rows.norm(dim=1)

    same, lengths = cosine("english")
    assert same == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(lengths, np.log(13 / 9), rtol=1e-5)
    other, lengths = cosine("")
    assert abs(other) < 0.5
    np.testing.assert_allclose(lengths, [np.log(13 / 4), np.log(13 / 6)], rtol=1e-5)


def test_pieces_inside_a_word_have_no_forms():
    assert _first_forms(["cats", "cat", "##cat", "Cat"], "english") == [0, 0, 2, 0]
    assert _first_forms(["▁cats", "cat", "▁cat", "Ġcat"], "english") == [0, 1, 0, 0]
    assert _first_forms(["cats", "cat"], "") == [0, 1]
