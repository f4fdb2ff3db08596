import numpy as np
import pytest

from likewise.evaluation.bm25 import analyzer, bm25, folded


def test_bm25_by_another_road():
    bm25s = pytest.importorskip("bm25s")
    texts = ["the pump of the engine failed", "a door opened and a door closed", "pumps and doors of an engine"]
    queries = ["pump doors", "engine failed twice"]
    stem = {"pumps": "pump", "doors": "door", "failed": "fail", "opened": "open", "closed": "close", "engine": "engin"}

    def words(text):
        return [stem.get(word, word) for word in text.split() if len(word) > 1]

    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index([words(text) for text in texts], show_progress=False)
    wanted = [index.get_scores([one for one in words(query) if one != "twice"]) for query in queries]
    np.testing.assert_allclose(bm25(queries, texts), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("arabic", ["مضخة", "المضخة", "المضخه", "مُضَخَّةٌ"]),
        ("", ["п'ять", "п\u02bcять"]),
        ("french", ["Réparées", "reparee"]),
    ],
)
def test_forms_of_a_word_are_one_word(language, forms):
    assert len({tuple(analyzer(language)(folded(form))) for form in forms}) == 1


@pytest.mark.parametrize("text", ["AI를 배운다", "인공지능AI", "AI技術", "用AI翻译", "ใช้AIแปล"])
def test_a_latin_word_is_found_beside_letters_of_other_scripts(text):
    assert "ai" in analyzer("")(folded(text))
