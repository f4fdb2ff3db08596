import csv

import pytest

from likewise.cli.data import write_triplets
from likewise.corpus.documents import Document, Section, Triplet, read_triplets, section_triplets
from likewise.errors import LikewiseError


def text(article, section, i):
    return f"Sentence {i} of section {section} in article {article}."


def article(name, sizes=(3, 4, 1), opening=True):
    sections = [Section("", ("An opening sentence of seven words here.",))] if opening else []
    sections += [Section(f"part {s}", tuple(text(name, s, i) for i in range(size))) for s, size in enumerate(sizes)]
    return Document(name, f"Title {name}", tuple(sections))


def test_each_triplet_is_of_one_article_two_of_its_section_and_one_of_another():
    articles = [article(f"a{i}") for i in range(30)]
    found = list(section_triplets(articles, 100))
    assert len(found) == 100
    headings = set()
    for t in found:
        name = t.article.removeprefix("Title ")
        own = {text(name, t.section[-1], i) for i in range(4)}
        assert t.anchor in own
        assert t.positive in own
        assert t.anchor != t.positive
        assert t.negative in {text(name, t.other[-1], i) for i in range(4)}
        assert t.section != t.other
        headings.add((t.section, t.other))
    # A section of one sentence gives negatives only.
    assert {own for own, _ in headings} == {"part 0", "part 1"}
    assert {other for _, other in headings} == {"part 0", "part 1", "part 2"}
    # In order, four of an article, each of another anchor.
    assert [t.article for t in found[:8]] == ["Title a0"] * 4 + ["Title a1"] * 4
    assert len({t.anchor for t in found}) == 100


def test_a_longer_draw_begins_with_the_shorter_and_the_seed_decides():
    articles = [article(f"a{i}") for i in range(9)]
    ten = list(section_triplets(articles, 10))
    assert list(section_triplets(articles, 20))[:10] == ten
    assert list(section_triplets(articles, 10, seed=7)) != ten
    # What is drawn from an article does not depend on those before it.
    assert list(section_triplets(articles[1:], 4)) == list(section_triplets(articles, 8))[4:]


def test_skipping_leaves_no_article_in_both():
    articles = [article(f"a{i}") for i in range(9)]
    held, rest = list(section_triplets(articles, 10)), list(section_triplets(articles, 1000, skip=10))
    assert {t.article for t in held} == {"Title a0", "Title a1", "Title a2"}
    assert {t.article for t in rest} == {f"Title a{i}" for i in range(3, 9)}


def test_articles_without_a_triplet_are_left_out(says):
    one_section, single = article("x", (5,)), article("y", (1, 1))
    same = "The same six words stand here."
    twice = Document("z", "Z", (Section("one", (same, "Another sentence of six words here.")), Section("two", (same,))))
    short = Document("s", "S", (Section("one", ("Too short.", "Also short.")), Section("two", ("Short.",))))
    assert list(section_triplets([one_section, single, short], 5)) == []
    # The only other sentence is the anchor or its neighbour, word for word.
    assert list(section_triplets([twice], 5)) == []
    for wrong in ({"count": 0}, {"count": 1, "skip": -1}):
        with says(ValueError):
            list(section_triplets([], **wrong))


def test_written_and_read_again(tmp_path, says):
    given = [
        Triplet('He said, "no".', "A line\nbreak.", "Ünicode, too.", "Title", "One", "Two"),
        Triplet("a", "b", "c"),
    ]
    assert write_triplets(tmp_path / "t.csv", given) == 2
    assert read_triplets(tmp_path / "t.csv") == given
    assert {p.name for p in tmp_path.iterdir()} == {"t.csv", ".t.csv.likewise"}
    with says(LikewiseError):
        write_triplets(tmp_path / "no" / "t.csv", given)

    def broken():
        yield given[0]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_triplets(tmp_path / "u.csv", broken())
    assert {p.name for p in tmp_path.iterdir()} == {"t.csv", ".t.csv.likewise"}


def test_the_original_format(tmp_path):
    """Columns of other names, in any order, as in the file of sentence-transformers."""
    with (tmp_path / "test.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["Article Title", "Sentence1", "Sentence2", "Sentence3", "Article Link"])
        writer.writerow(["London", "It was founded, they say.", "Then it grew.", "Schools are many.", "http://x"])
    assert read_triplets(tmp_path / "test.csv") == [
        Triplet("It was founded, they say.", "Then it grew.", "Schools are many.")
    ]
