import json

import pytest

from likewise.corpus import CorpusError, CorpusOptions
from likewise.corpus.passages import LONGEST, Passage, offered_pairs, read_passages
from likewise.corpus.sentences import read_sentences

PROSE = """The pilot saw the runway. It was wet and the lights were out.

The tower answered late. Nobody was hurt that day.
"""


def test_a_paragraph_of_prose_is_a_passage(tmp_path):
    (tmp_path / "a.txt").write_text(PROSE)
    found = read_passages(tmp_path / "a.txt")
    assert [one.sentences for one in found] == [
        ("The pilot saw the runway.", "It was wet and the lights were out."),
        ("The tower answered late.", "Nobody was hurt that day."),
    ]


def test_a_line_is_a_passage_where_lines_are_sentences(tmp_path):
    (tmp_path / "a.txt").write_text("wet runway lights\nthe tower answered late\nwet runway lights\nno\n")
    assert [one.text for one in read_passages(tmp_path / "a.txt")] == ["wet runway lights", "the tower answered late"]
    kept = read_passages(tmp_path / "a.txt", CorpusOptions(deduplicate=False, min_words=1))
    assert [one.text for one in kept][2:] == ["wet runway lights", "no"]


def test_rows_have_titles_and_folders_are_read_whole(tmp_path, says):
    rows = [
        {"title": "Wet runways", "body": "The pilot saw it. It was late."},
        {"title": "", "body": "Nobody was hurt."},
    ]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    found = read_passages(tmp_path, CorpusOptions(field="body"))
    assert found == [
        Passage(("The pilot saw it.", "It was late."), "Wet runways"),
        Passage(("Nobody was hurt.",), ""),
    ]
    (tmp_path / "deep" / "rows.jsonl").unlink()
    with says(CorpusError):
        read_passages(tmp_path)


def test_markdown_headings_are_titles(tmp_path):
    (tmp_path / "a.md").write_text("# Runways\n\nThe pilot saw it. It was late.\n\n## Lights\n\nThey were all out.\n")
    assert read_passages(tmp_path) == [
        Passage(("The pilot saw it.", "It was late."), "Runways"),
        Passage(("They were all out.",), "Lights"),
    ]


def test_tables_are_read_as_rows(tmp_path):
    rows = [{"title": "Runways", "body": "The pilot saw it. It was late."}, {"title": "", "body": "Nobody was hurt."}]
    (tmp_path / "a.csv").write_text("title,body\nRunways,The pilot saw it. It was late.\n,Nobody was hurt.\n")
    (tmp_path / "a.tsv").write_text("title\tbody\nRunways\tThe pilot saw it. It was late.\n\tNobody was hurt.\n")
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    options = CorpusOptions(field="body")
    for name in ("a.csv", "a.tsv", "a.parquet"):
        assert read_passages(tmp_path / name, options) == [
            Passage(("The pilot saw it.", "It was late."), "Runways"),
            Passage(("Nobody was hurt.",), ""),
        ], name
        assert list(read_sentences(tmp_path / name, options)) == [
            "The pilot saw it.",
            "It was late.",
            "Nobody was hurt.",
        ], name


def test_long_paragraphs_are_divided_and_large_corpora_sampled(tmp_path):
    (tmp_path / "a.txt").write_text(" ".join(f"The {i}th pilot saw the wet runway at night." for i in range(60)))
    found = read_passages(tmp_path / "a.txt", CorpusOptions(split="prose"))
    assert len(found) > 1
    assert all(len(one.text.split()) <= LONGEST for one in found)
    assert sum(len(one.sentences) for one in found) == 60
    (tmp_path / "b.txt").write_text("".join(f"the pilot saw runway {i}\n" for i in range(100)))
    sample = read_passages(tmp_path / "b.txt", most=10)
    numbers = [int(one.text.split()[-1]) for one in sample]
    assert len(numbers) == 10
    assert numbers == sorted(numbers)
    assert numbers != list(range(10))
    assert sample == read_passages(tmp_path / "b.txt", most=10)


def test_the_pairs_that_passages_offer():
    passages = [
        Passage(("Was the runway wet that day?", "It was very wet all day.", "The lights were out."), "Wet runways"),
        Passage(("one two three four five six seven eight nine ten",), ""),
    ]
    found = offered_pairs(passages)
    kinds = [pair.kind for pair in found]
    assert kinds == ["title", "question", "rest", "deletion"]
    title, question, rest, deletion = found
    assert (title.first, title.second) == ("Wet runways", passages[0].text)
    assert question.second == "It was very wet all day. The lights were out."
    assert rest.first in passages[0].sentences
    assert sorted([rest.first, *(one for one in passages[0].sentences if one in rest.second)]) == sorted(
        passages[0].sentences
    )
    shorter, whole = deletion.first.split(), deletion.second.split()
    assert 0.6 * len(whole) <= len(shorter) < len(whole)
    assert [word for word in whole if word in shorter] == shorter  # in order


def test_a_list_in_one_sentence_is_divided():
    text = "A fund must: (a) keep its own books in order; or (b) name a person who keeps them; and so on."
    (pair,) = offered_pairs([Passage((text,))])
    assert pair.kind == "rest"
    opening, books, name = (
        "A fund must:",
        "(a) keep its own books in order;",
        "or (b) name a person who keeps them; and so on.",
    )
    assert (pair.first, pair.second) in [(books, f"{opening} {name}"), (name, f"{opening} {books}")]


def test_one_sentence_of_ten_stays_in_the_rest():
    found = offered_pairs(
        [Passage((f"The {i}th pilot saw the runway.", "It was very wet that day.")) for i in range(500)]
    )
    stays = sum(pair.first in pair.second for pair in found)
    assert 25 <= stays <= 75  # 50 are expected


def test_a_passage_without_a_sentence_offers_nothing():
    pairs = offered_pairs([Passage((), "A title"), Passage(("The old dog sees a river.",))])
    assert [pair.passage for pair in pairs] == [1]


def test_words_are_counted_in_a_text_without_blanks(tmp_path):
    (tmp_path / "a.txt").write_text("地下室的水泵坏了。阀门漏油，压力太低。\n\n坏\n")
    (passage,) = read_passages(str(tmp_path / "a.txt"))
    assert passage.sentences == ("地下室的水泵坏了。", "阀门漏油，压力太低。")


@pytest.mark.parametrize("text", ["地下室的水泵坏了需要更换。", "地下のポンプが壊れました。", "Pump leaks badly"])
def test_a_deletion_differs_from_its_text_in_any_script(text):
    (pair,) = offered_pairs([Passage((text,))])
    assert pair.kind == "deletion"
    assert 0 < len(pair.first) < len(pair.second)


def test_a_passage_of_one_word_offers_no_pair():
    assert offered_pairs([Passage(("Pump",))]) == []
