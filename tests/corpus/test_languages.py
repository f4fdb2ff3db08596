"""The language of texts."""

import pytest

from likewise.corpus.languages import language_of

TEXTS = {
    "English": ["The pump in the cellar is broken.", "The technician has to replace the seal today."],
    "German": ["Die Pumpe im Keller ist kaputt.", "Der Techniker muss die Dichtung heute austauschen."],
    "French": ["La pompe de la cave est en panne.", "Le technicien doit remplacer le joint aujourd'hui."],
    "Spanish": ["La bomba del sótano está rota.", "El técnico tiene que cambiar la junta hoy."],
    "Russian": ["Насос в подвале сломан.", "Техник должен заменить уплотнение сегодня."],
    "Chinese": ["地下室的水泵坏了。", "技术人员今天必须更换密封圈。"],
    "Japanese": ["地下室のポンプが壊れています。", "技術者は今日シールを交換しなければなりません。"],
    "Thai": ["ปั๊มในชั้นใต้ดินเสีย", "ช่างต้องเปลี่ยนซีลวันนี้"],
    "Hindi": ["तहखाने का पंप खराब है।", "तकनीशियन को आज सील बदलनी होगी।"],
    "Arabic": ["المضخة في القبو معطلة.", "يجب على الفني استبدال الختم اليوم."],
    "Korean": ["지하실의 펌프가 고장 났습니다.", "기술자는 오늘 씰을 교체해야 합니다."],
    "Turkish": ["Bodrumdaki pompa bozuk.", "Teknisyen bugün contayı değiştirmek zorunda."],
}


@pytest.mark.parametrize("language", TEXTS)
def test_two_sentences_tell_the_language(language):
    assert language_of(TEXTS[language]) == language


def test_most_of_the_text_decides_and_numbers_do_not():
    mixed = [*TEXTS["German"] * 9, *TEXTS["English"]]
    assert language_of(mixed) == "German"
    assert language_of([f"{number}, {number / 7:.3f}" for number in range(2000)] + TEXTS["French"] * 3) == "French"
    assert language_of(["12", "", "!!!", "P-107"]) == ""


def test_only_the_beginning_is_read():
    def endless():
        while True:
            yield from TEXTS["Spanish"]

    assert language_of(endless()) == "Spanish"
