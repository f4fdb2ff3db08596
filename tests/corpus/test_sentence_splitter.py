"""The rule that tells prose from a sentence a line, and the sentences of a paragraph."""

import textwrap
from pathlib import Path

import pytest

from likewise.corpus.sentence_splitter import (
    PARAGRAPH_LIMIT,
    is_prose,
    is_wrapped,
    joined,
    paragraphs_of,
    sentences_in_lines,
    sentences_of,
)

SENTENCES = [
    "The river rose for three days before the dam of earth and timber gave way.",
    "Mr. Hale had warned the council of it twice.",
    "Nobody listened!",
    "In the morning the lower fields lay under a metre of brown water, and the road to the mill was gone.",
    "Who would pay for the bridge?",
] * 6
PARAGRAPHS = [" ".join(SENTENCES[i : i + 5]) for i in range(0, 30, 5)]


@pytest.mark.parametrize("width", [40, 60, 72, 100])
def test_wrapped_prose_is_recognised(width):
    lines = "\n\n".join(textwrap.fill(text, width) for text in PARAGRAPHS).split("\n")
    assert is_wrapped(lines)
    assert is_prose(lines)


def test_paragraph_a_line_is_prose_but_not_wrapped():
    assert is_prose(PARAGRAPHS)
    assert not is_wrapped(PARAGRAPHS)


def test_sentence_a_line_is_not_prose():
    assert not is_prose(SENTENCES)


def test_small_letters_without_stops_are_sentences_a_line():
    assert not is_prose([text.lower().rstrip(".!?") for text in SENTENCES])


def test_small_letters_with_stops_inside_are_sentences_a_line():
    """The way of SentEval's files: tokens apart, all in small letters."""
    assert not is_prose([f"a film . it is {i} times too long ." for i in range(20)])


def test_wrapped_small_letters_need_to_be_called_prose():
    lines = textwrap.fill(PARAGRAPHS[0].lower(), 50).split("\n")
    assert not is_wrapped(lines)
    assert is_wrapped(lines, known_prose=True)


def test_loose_notes_are_not_wrapped_prose():
    """Half without stops or capitals, of every length: what people write in a form."""
    notes = [
        "Great film.",
        "did not like it at all, far too long for what it had to say",
        "meh",
        "Loved the dog",
    ]
    assert not is_prose(notes * 20)


def test_few_lines_without_a_stop_are_not_wrapped_prose():
    assert not is_prose(["One two three", "no", "One two three"])


def test_nothing_is_not_prose():
    assert not is_prose([])
    assert not is_prose(["", ""])


@pytest.mark.parametrize("name", ["MR/rt-polarity.pos", "SUBJ/subj.subjective", "CR/custrev.pos", "SNLI/s1.dev"])
def test_real_sentence_files(shared_data: Path, name: str):
    text = (shared_data / "senteval" / name).read_text(encoding="latin-1")
    assert not is_prose([" ".join(line.split()) for line in text.split("\n")[:500]])


def test_paragraphs_of_wrapped_text():
    text = "\n\n".join(textwrap.fill(text, 50) for text in PARAGRAPHS)
    assert paragraphs_of(text) == PARAGRAPHS


def test_sentences_of_paragraphs():
    assert [sentence for text in PARAGRAPHS for sentence in sentences_of(text)] == SENTENCES


def test_paragraph_knows_the_line_of_each_sentence():
    lines = list(enumerate(["One is here. Two", "goes on to", "its end. Three is", "short.", "", "", "Four."], 7))
    assert list(sentences_in_lines(lines)) == [
        [(7, "One is here."), (7, "Two goes on to its end."), (9, "Three is short.")],
        [(13, "Four.")],
    ]
    assert list(sentences_in_lines([])) == []


def test_endless_paragraph_is_given_out_in_parts():
    # Each sentence begins on an odd line and ends on the next one.
    texts = ("and it ends on the next one.", "Sentence {} begins on this line")
    read = 0

    def lines():
        nonlocal read
        for number in range(1, 6001):
            text = texts[number % 2].format(number)
            read += len(text) + 1
            yield number, text

    given: list[tuple[int, str]] = []
    most = before = 0
    for sentences in sentences_in_lines(lines()):
        most, before = max(most, read - before), read
        given += sentences
    assert most < PARAGRAPH_LIMIT + 100
    assert given == [
        (number, f"Sentence {number} begins on this line and it ends on the next one.") for number in range(1, 6001, 2)
    ]


def test_nothing_is_put_between_the_lines_and_sentences_of_chinese():
    lines = [(1, "地下室的水泵"), (2, "坏了。请修理。"), (3, "The pump"), (4, "leaks.")]
    (sentences,) = sentences_in_lines(lines)
    assert sentences[:2] == [(1, "地下室的水泵坏了。"), (2, "请修理。")]
    assert sentences[-1][1].endswith("The pump leaks.")
    assert (
        joined(["水泵坏了。", "请修理。", "The pump leaks.", "It is old."])
        == "水泵坏了。请修理。The pump leaks. It is old."
    )
    assert joined(["펌프가 샌다.", "고쳐라."]) == "펌프가 샌다. 고쳐라."
