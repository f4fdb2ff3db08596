"""Negations are made of English sentences alone."""

import pytest

from likewise.augment.negation import negate
from likewise.augment.negation.english import NotEnglishError, check_english

GERMAN = ["Die Pumpe im Keller ist kaputt.", "Der Techniker muss die Dichtung heute noch austauschen."] * 3
CHINESE = ["地下室的水泵坏了，正在漏油。", "技术人员今天必须更换密封圈。"] * 5
SPANISH = ["La bomba del sótano está rota y pierde aceite.", "El técnico tiene que cambiar la junta hoy mismo."] * 2
ENGLISH = ["The pump in the cellar is broken.", "The technician has to replace the seal today."] * 3


@pytest.mark.parametrize("sentences", [GERMAN, CHINESE, SPANISH])
def test_other_languages_are_refused_by_name(sentences, says):
    with says(NotEnglishError):
        check_english(sentences)


def test_english_passes_whole_and_so_does_what_tells_nothing():
    assert list(check_english(iter(ENGLISH))) == ENGLISH
    assert list(check_english(["P-107", "12.5 bar"] * 50)) == ["P-107", "12.5 bar"] * 50
    assert list(check_english(GERMAN[:1])) == GERMAN[:1], "too little to judge by"


def test_a_list_in_another_language_is_refused_in_python_too(says):
    with says(NotEnglishError):
        negate(GERMAN)


def test_a_short_text_without_latin_letters_is_not_english(says):
    with says(NotEnglishError):
        check_english(CHINESE[:2])
