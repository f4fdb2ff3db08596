import likewise
from likewise.training.unknown_language import advice, letters_per_token

ENGLISH = ["The pump in the cellar is leaking, and the technician has to replace the seal."] * 3
GERMAN = ["Die Pumpe im Keller ist undicht, und der Techniker muss die Dichtung austauschen."] * 3
CHINESE = ["地下室的水泵昨天晚上突然坏了，今天早上技术员来修理的时候发现密封圈已经损坏。"] * 3


class Whitespace:
    """A tokenizer of words, of which one is unknown."""

    is_fast, unk_token_id = True, 0

    def __call__(self, texts, **_):
        found = {"input_ids": [], "offset_mapping": []}
        for text in texts:
            spans, at = [], 0
            for word in text.split():
                begin = text.index(word, at)
                at = begin + len(word)
                spans.append((begin, at))
            found["input_ids"].append([0 if text[a:b] == "unheard" else 1 for a, b in spans])
            found["offset_mapping"].append(spans)
        return found


def test_letters_are_counted_by_token_and_unknown_ones_hold_none():
    assert letters_per_token(Whitespace(), ["some good words"]) == (4 + 4 + 5) / 3
    assert letters_per_token(Whitespace(), ["some unheard words 12"]) == (4 + 0 + 5) / 3
    assert letters_per_token(Whitespace(), ["some good words", "12 13"]) == (4 + 4 + 5) / 3
    assert letters_per_token(Whitespace(), ["12 13"]) is None


def test_an_english_base_is_told_of_in_other_languages_alone():
    encoder = likewise.load("bundled:minilm")
    assert advice(encoder, "bundled:minilm", ENGLISH) == ""
    assert "German" in (said := advice(encoder, "bundled:minilm", GERMAN))
    assert "likewise train characters" in said
    assert "Chinese" in advice(encoder, "bundled:minilm", CHINESE)
