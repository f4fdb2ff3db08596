import pytest

from likewise.corpus.sentence_splitter import sentences_of

SENTENCES = {
    "German dates": ["Die Sitzung begann am 12. Januar 2024 in Bonn.", "Sie dauerte bis zum 3. Februar."],
    "a German ordinal": ["Im 2. Weltkrieg wurde das Werk zerstört.", "Danach baute man es neu."],
    "German years": ["Das geschah im Jahr 1990.", "Danach war alles anders."],
    "Spanish": ["El Sr. García llegó tarde a la reunión.", "La Dra. López revisó la bomba ayer."],
    "Italian": ["Il dott. Rossi ha riparato la pompa ieri.", "La sig.ra Bianchi lo ha chiamato."],
    "Dutch": ["De pomp is gemaakt door dhr. Jansen uit Utrecht.", "Mevr. De Vries belde gisteren over de pomp."],
    "Russian": ["Насос проверил проф. Иванов из института.", "Насос стоит 5 тыс. руб. в год."],
    "Polish": ["Pompę naprawił inż. Kowalski z firmy.", "Potem zadzwonił do nas prof. Nowak."],
    "Portuguese": ["O Sr. Silva chegou tarde à reunião.", "A Dra. Lopes já tinha saído."],
    "Greek": ["Τι κάνεις σήμερα;", "Ο κ. Παπάς ήρθε στη δουλειά."],
    "Turkish": ["Dr. Ali bugün geldi.", "Sayın Prof. Yılmaz evde kaldı."],
    "English": ["Dr. Smith of the U.S. Army met Mr. Jones in St. Louis.", "He left early."],
}
UNSPACED = {
    "a Japanese quotation": ["彼は「水が漏れた。すぐ来て。」と言った。", "次の文です。"],
    "what was said in Japanese": ["「壊れた。」と彼は言った。", "次の文です。"],
    "Chinese": ["“水泵坏了。”他说。", "我们走吧。"],
    "two who speak": ["“水泵坏了。”", "“我知道。”"],
}


@pytest.mark.parametrize("name", SENTENCES)
def test_abbreviations_and_ordinals_end_no_sentence(name):
    assert sentences_of(" ".join(SENTENCES[name])) == SENTENCES[name]


@pytest.mark.parametrize("name", UNSPACED)
def test_a_quotation_is_part_of_its_sentence(name):
    assert sentences_of("".join(UNSPACED[name])) == UNSPACED[name]


def test_a_quotation_that_is_never_closed_hides_no_sentence():
    assert sentences_of("他说：「水泵坏了。我们走吧。") == ["他说：「水泵坏了。", "我们走吧。"]
