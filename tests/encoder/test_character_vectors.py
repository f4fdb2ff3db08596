import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from likewise.encoder import character_vectors
from likewise.encoder.character_vectors import (
    CharacterVectors,
    CharacterVectorsError,
    fit_character_vectors,
    hash_of,
    parts_of,
    sketch,
)
from likewise.inference import load

TEXTS = [
    f"{who} {what} {where}"
    for who in ("Die alte Pumpe", "Der Techniker", "Meine Nachbarin", "Niemand")
    for what in ("kam 2024", "rief an", "schreibt Briefe")
    for where in ("im Keller.", "nach Köln!", "auf der Brücke.")
]
KIND = dict(zip("abcdefg", ("beginning", "trigram", "fourgram", "number", "mark", "character", "word"), strict=True))


def by_kind(text):
    parts = {}
    for part, count in parts_of(text).items():
        parts.setdefault(KIND[part[0]], {})[part[1:]] = count
    return parts


def bags_of(texts, corpus):
    """Return the bags of texts (T, P) over all parts there are, the parts, and the texts that hold each."""
    names = sorted(set().union(*(parts_of(text) for text in [*texts, *corpus])))
    column = {name: i for i, name in enumerate(names)}
    held = {name: sum(name in parts_of(text) for text in corpus) for name in names}
    bags = np.zeros((len(texts), len(names)))
    for row, text in enumerate(texts):
        for part, count in parts_of(text).items():
            seen = held[part] if held[part] > 1 else 1
            idf = np.log((1 + len(corpus)) / (1 + seen)) + 1e-3
            bags[row, column[part]] = character_vectors.WEIGHTS[KIND[part[0]]] * (1 + np.log(count)) * idf
    return bags, names, held


def test_the_parts_of_a_word_a_number_and_a_mark():
    assert by_kind("Pumpe 12, 12") == {
        "beginning": {"pump": 1, "12": 2},
        "trigram": {" pu": 1, "pum": 1, "ump": 1, "mpe": 1, "pe ": 1, " 12": 2, "12 ": 2},
        "fourgram": {" pum": 1, "pump": 1, "umpe": 1, "mpe ": 1, " 12 ": 2},
        "number": {"12": 2},
        "mark": {",": 1},
    }


def test_a_script_without_blanks_has_characters_and_words():
    assert by_kind("水泵坏了。") == {
        "character": {"水": 1, "泵": 1, "坏": 1, "了": 1},
        "word": {"水泵": 1, "坏": 1, "了": 1},
        "mark": {"。": 1},
    }


def test_case_width_and_vowel_signs_do_not_divide_words():
    assert parts_of("ＫÖLN") == parts_of("köln")
    assert by_kind("हिन्दी")["beginning"] == {"हिन्": 1}


def test_without_axes_and_with_a_wide_sketch_the_cosines_are_those_of_the_bags():
    fitted = fit_character_vectors(TEXTS, axes=0, width=32_768)
    with torch.no_grad():
        vectors = fitted(fitted.preprocess(TEXTS))["sentence_embedding"].double().numpy()
    bags, _, _ = bags_of(TEXTS, TEXTS)
    bags /= np.linalg.norm(bags, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors @ vectors.T, bags @ bags.T, atol=0.03)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_the_sketch_of_a_sum_by_hand():
    hashes = torch.from_numpy(np.array([0x8000_7FFF_0000_8001, 5], dtype=np.uint64).view(np.int64))
    found = sketch(hashes, torch.tensor([2.0, 3.0]), torch.tensor([0, 1]), 4)
    # Of the first hash: place 0 with -1, place 0 with +1, place 3 with +1, place 0 with -1; each times 2 / 2.
    np.testing.assert_allclose(found[0], [-1, 0, 0, 1])
    np.testing.assert_allclose(found[1], [6, 0, 0, 0])


def test_the_axes_are_the_first_singular_vectors_of_the_bags():
    fitted = fit_character_vectors(TEXTS, axes=5, width=64)
    bags, names, held = bags_of(TEXTS, TEXTS)
    listed = [held[name] > 1 for name in names]
    bags /= np.linalg.norm(bags, axis=1, keepdims=True)
    strengths = np.linalg.svd(bags[:, listed], compute_uv=False)[:5]
    table = fitted.table[1:].double().numpy()
    np.testing.assert_allclose(table.T @ table, np.eye(5), atol=1e-4)
    order = [fitted.row[name] - 1 for name, kept in zip(names, listed, strict=True) if kept]
    np.testing.assert_allclose(np.linalg.norm(bags[:, listed] @ table[order], axis=0), strengths, rtol=0.01)
    np.testing.assert_allclose(fitted.shrink, np.sqrt(0.01 / (0.01 + strengths**2 / len(TEXTS))), rtol=0.01)


def test_the_vectors_by_the_equation():
    """[s A x; S (x - A' A x)], by dense matrices, also of parts that the corpus does not hold."""
    width, texts = 64, [*TEXTS, "Die neue Pumpe kam gestern.", "Brücken", ""]
    fitted = fit_character_vectors(TEXTS, axes=5, width=width, seed=3)
    bags, names, _ = bags_of(texts, TEXTS)
    axes, matrix = np.zeros((5, len(names))), np.zeros((width, len(names)))
    for column, name in enumerate(names):
        axes[:, column] = fitted.table[fitted.row.get(name, 0)]
        bits = hash_of(name, 3) & (2**64 - 1)
        for place in range(4):
            piece = bits >> 16 * place & 0xFFFF
            matrix[(piece & 0x7FFF) * width >> 15, column] += (-1 if piece >> 15 else 1) / 2
    at = bags @ axes.T
    expected = np.concatenate([at * fitted.shrink.numpy(), (bags - at @ axes) @ matrix.T], axis=1)
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-12)
    with torch.no_grad():
        vectors = fitted(fitted.preprocess(texts))["sentence_embedding"].numpy()
    np.testing.assert_allclose(vectors, expected, atol=1e-4)
    assert not vectors[-1].any()
    with torch.no_grad():
        assert not fitted(fitted.preprocess([""]))["sentence_embedding"].any()


def test_a_vector_does_not_depend_on_its_batch_and_the_seed_moves_the_sketch():
    fitted, other = (fit_character_vectors(TEXTS, axes=4, width=64, seed=seed) for seed in (1, 2))
    with torch.no_grad():
        whole = fitted(fitted.preprocess(["", *TEXTS]))["sentence_embedding"]
        single = fitted(fitted.preprocess(TEXTS[5:6]))["sentence_embedding"]
        moved = other(other.preprocess(TEXTS[5:6]))["sentence_embedding"]
    torch.testing.assert_close(whole[6], single[0])
    assert not torch.allclose(moved[0, 4:], single[0, 4:], atol=1e-2)


def test_it_is_saved_and_read_back(tmp_path):
    model = SentenceTransformer(modules=[fit_character_vectors(TEXTS, axes=4, width=64)], device="cpu")
    model.save(str(tmp_path / "model"), create_model_card=False)
    again = load(tmp_path / "model")
    assert isinstance(again[0], CharacterVectors)
    np.testing.assert_array_equal(model.encode(TEXTS), again.encode(TEXTS))
    assert again.get_embedding_dimension() == 68
    assert SentenceTransformer(str(tmp_path / "model"), trust_remote_code=True).encode("Pumpe").shape == (68,)


def test_a_query_and_a_lone_surrogate_are_read():
    fitted = fit_character_vectors(TEXTS, axes=4, width=64)
    with torch.no_grad():
        vectors = fitted(fitted.preprocess(["\ud800 Pumpe", "Pumpe"], prompt=""))["sentence_embedding"]
    torch.testing.assert_close(vectors[0], vectors[1])


def test_text_without_letters_is_refused(says):
    with says(CharacterVectorsError):
        fit_character_vectors([" ", "\n", "a"])
