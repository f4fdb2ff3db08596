"""Documents: sentences in order under their headings."""

import json
from itertools import islice

from likewise.corpus import CorpusError, CorpusOptions, read_documents


def test_articles_keep_order_headings_and_short_sentences(write):
    rows = [
        {
            "id": str(i),
            "title": f"Title {i}",
            "sections": [
                {"heading": "", "paragraphs": ["It rained. He left early.", "A second paragraph."]},
                {"heading": "Parts", "paragraphs": ["It has parts as follows:"]},
                {"heading": "End", "paragraphs": [f"Sentence {i} ends it."]},
            ],
        }
        for i in range(3)
    ]
    path = write("a.jsonl", "\n".join(json.dumps(row) for row in rows))
    documents = list(read_documents(path))
    assert [one.id for one in documents] == ["0", "1", "2"]
    assert [part.heading for part in documents[2].sections] == ["", "End"]
    assert documents[2].sections[0].sentences == ("It rained.", "He left early.", "A second paragraph.")
    assert documents[2].sentences[-1] == "Sentence 2 ends it."


def test_plain_text_is_a_document_a_file(write, tmp_path):
    write("b.txt", "It rained.\nHe left\n\nShe came\n")
    write("a.txt", "The wind rose. It rained all day long. Nobody went out of the house.\n" * 3)
    documents = list(read_documents(str(tmp_path / "*.txt")))
    assert [one.title for one in documents] == ["a", "b"]
    assert documents[0].sentences == ("The wind rose.", "It rained all day long.", "Nobody went out of the house.") * 3
    assert documents[1].sections[0].sentences == ("It rained.", "He left", "She came")


def test_equal_documents_are_given_once(write):
    rows = [
        {
            "id": str(i),
            "title": "T",
            "sections": [{"heading": "", "paragraphs": [f"It rained {i % 3} times."]}],
        }
        for i in range(7)
    ]
    path = write("a.jsonl", "\n".join(json.dumps(row) for row in rows))
    assert [one.id for one in read_documents(path)] == ["0", "1", "2"]
    assert len(list(read_documents(path, CorpusOptions(deduplicate=False)))) == 7


def test_what_is_refused(write, says):
    with says(CorpusError):
        list(read_documents(write("a.jsonl", '{"t": "x"}'), CorpusOptions(field="t")))
    with says(CorpusError):
        list(read_documents(write("b.txt", "\n\n")))


def test_real_articles(shared_data):
    first = list(islice(read_documents(shared_data / "wikipedia" / "articles.jsonl.gz"), 20))
    assert first[0].title == "Jarred Shaw"
    assert [part.heading for part in first[0].sections] == ["", "Professional career"]
    assert len(first[0].sections[1].sentences) == 3
