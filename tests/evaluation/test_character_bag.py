import math
from collections import Counter

import numpy as np
import pytest

import likewise
from likewise.evaluation.character_bag import CharacterBag, open_characters
from likewise.evaluation.task import EvaluationError

TEXTS = ["Die Pumpe ist undicht.", "Die Pumpen waren undicht.", "Niemand kam heute.", "Der Techniker kam heute."]


def grams(text, sizes):
    """The n-grams of each word with a blank before and after it; characters for sizes of 1."""
    words = [text.lower()] if sizes == (1, 1) else [f" {word} " for word in text.lower().split()]
    return Counter(w[i : i + n] for w in words for n in range(sizes[0], sizes[1] + 1) for i in range(len(w) - n + 1))


def by_hand(first, second, texts, sizes):
    """The cosine of TF-IDF vectors, from the definition."""
    holding = Counter(gram for text in texts for gram in grams(text, sizes))
    weight = {gram: math.log((1 + len(texts)) / (1 + count)) + 1 for gram, count in holding.items()}
    counts = [grams(text, sizes) for text in (first, second)]
    one, other = ({g: (1 + math.log(n)) * weight[g] for g, n in some.items() if g in weight} for some in counts)
    product = sum(value * other.get(gram, 0.0) for gram, value in one.items())
    return product / math.sqrt(sum(v * v for v in one.values()) * sum(v * v for v in other.values()))


def test_cosines_are_those_of_the_definition():
    bag = CharacterBag.fitted(TEXTS)
    wanted = [by_hand(TEXTS[0], other, TEXTS, (2, 4)) for other in TEXTS]
    assert bag.score_pairs([TEXTS[0]] * 4, TEXTS) == pytest.approx(wanted)
    assert bag.rows(TEXTS, TEXTS)(slice(0, 1))[0] == pytest.approx(wanted)


def test_scripts_without_blanks_count_single_characters():
    texts = ["水泵坏了。", "水泵漏油了。", "没有人来。"]
    wanted = by_hand(texts[0], texts[1], texts, (1, 1))
    assert CharacterBag.fitted(texts).score_pairs(texts[:1], texts[1:2]) == pytest.approx([wanted])


def test_a_text_of_nothing_is_refused(says):
    with says(EvaluationError):
        CharacterBag.fitted(["", ""])


def test_it_is_evaluated_like_a_model(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    rows = [(5, TEXTS[0], TEXTS[1]), (0, TEXTS[0], TEXTS[2]), (3, TEXTS[2], TEXTS[3]), (1, TEXTS[1], TEXTS[3])]
    (tmp_path / "dev.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    task = f"pairs:{tmp_path / 'dev.tsv'}"
    result = likewise.evaluate(f"characters:{tmp_path / 'a.txt'}", task)[task]
    scores = open_characters(tmp_path / "a.txt").score_pairs([row[1] for row in rows], [row[2] for row in rows])
    ranks = np.argsort(np.argsort(scores))
    assert result.score == pytest.approx(100 * np.corrcoef(ranks, np.argsort(np.argsort([5, 0, 3, 1])))[0, 1])
