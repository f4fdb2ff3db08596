import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.corpus.words import DividedText, joined_words, with_blanks, word_count

SENTENCES = {
    "Chinese": "地下室的水泵昨天晚上突然坏了，今天早上技术员来修理。",
    "Japanese": "地下のポンプが昨夜突然壊れて、すぐに交換する必要があります。",
    "Thai": "ปั๊มน้ำในห้องใต้ดินเสียเมื่อคืนนี้ และต้องเปลี่ยนทันที",
    "Lao": "ປັ໊ມນ້ຳໃນຫ້ອງໃຕ້ດິນເພແລ້ວ",
    "Khmer": "ម៉ាស៊ីនបូមទឹកខូចកាលពីយប់មិញ",
    "Burmese": "ရေစုပ်စက်ညကပျက်သွားတယ်",
    "English": "The pump (in the cellar) broke  down\tlast night.",
    "mixed": "新しいGPUは「A100」です and it works。",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_words_are_joined_to_the_very_text(language):
    text = SENTENCES[language]
    words = DividedText.of(text)
    assert str(words) == text
    assert len(words) == word_count(text) >= 4
    assert all(word and not word.isspace() for word in words.words)


@given(st.text())
def test_any_text_is_joined_again(text):
    words = DividedText.of(text)
    assert str(words) == text
    assert len(words.gaps) == len(words) + 1
    assert not any(gap.strip() for gap in words.gaps)
    assert words.replaced((), "[MASK]") == text


@given(st.lists(st.text(alphabet=st.characters(max_codepoint=0x2FF, exclude_categories=("Z", "C")), min_size=1)))
def test_text_with_blanks_has_the_words_between_them(words):
    text = " ".join(words)
    assert list(DividedText.of(text).words) == text.split()
    assert joined_words(text.split()) == " ".join(text.split())


@pytest.mark.parametrize("language", SENTENCES)
def test_a_text_without_a_share_of_its_words_differs_and_is_shorter(language):
    words = DividedText.of(SENTENCES[language])
    for share in (0.01, 0.4, 0.9):
        left = words.without_share(share, random.Random(1))
        assert 0 < len("".join(left.split())) < len("".join(SENTENCES[language].split()))
    assert words.without(()) == SENTENCES[language]


def test_one_word_stays_what_it_is():
    assert DividedText.of("水").without_share(0.4, random.Random(1)) == "水"
    assert DividedText.of("").words == ()


def test_marks_go_with_their_word():
    assert DividedText.of("他说：“水泵(新)坏了。”").words == ("他", "说：", "“水泵", "(新)", "坏", "了。”")


def test_blanks_between_words_of_other_scripts():
    assert with_blanks("The pump: it's 3.5 bar") == "The pump: it's 3.5 bar"
    assert with_blanks("GPU水泵坏了。 Ok") == "GPU 水泵 坏 了 。 Ok"
