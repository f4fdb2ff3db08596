import json

import pytest

from likewise.corpus import CorpusError, CorpusOptions
from likewise.corpus.inputs import TextSource
from likewise.searching.index.index_plan import files_of
from likewise.searching.index.passages import Splitting


def read(path, words=20, field=None, metadata=()):
    splitting = Splitting(words, CorpusOptions(field=field), dict.fromkeys(metadata, "text"))
    return [(one.line, one.title, one.text, one.metadata) for one in splitting.read(path)]


def test_a_line_of_a_list_is_a_passage_and_blank_lines_are_counted(tmp_path):
    (tmp_path / "a.txt").write_text("the first line\n\n---\nthe fourth line\n")
    assert read(tmp_path / "a.txt") == [(1, "", "the first line", ()), (4, "", "the fourth line", ())]


def test_prose_is_packed_sentence_by_sentence_within_its_paragraph(tmp_path):
    text = "One two three four. Five six seven eight. Nine ten eleven twelve.\n\nAnother paragraph is here. It ends.\n"
    (tmp_path / "a.txt").write_text(text)
    assert [(line, text) for line, _, text, _ in read(tmp_path / "a.txt", words=8)] == [
        (1, "One two three four. Five six seven eight."),
        (1, "Nine ten eleven twelve."),
        (3, "Another paragraph is here. It ends."),
    ]


def test_a_sentence_longer_than_a_passage_is_cut(tmp_path):
    (tmp_path / "a.txt").write_text(" ".join(map(str, range(7))) + "\n")
    assert [text for _, _, text, _ in read(tmp_path / "a.txt", words=3)] == ["0 1 2", "3 4 5", "6"]


def test_markdown_blocks_carry_their_heading(tmp_path):
    (tmp_path / "a.md").write_text("Before.\n\n# Tea\nGreen tea\nis old.\n\n## Black ##\n\nIt is new.\n")
    assert [(line, title, text) for line, title, text, _ in read(tmp_path / "a.md")] == [
        (1, "", "Before."),
        (4, "Tea", "Green tea is old."),
        (9, "Tea > Black", "It is new."),
    ]


def test_a_row_of_a_table_is_whole_below_its_header_or_has_the_names_of_its_columns(tmp_path):
    rows = "".join(f"| P-{number} | {number}.50 |\n" for number in range(10))
    long = "| P-10 | " + "very " * 30 + "dear |\n"
    (tmp_path / "a.md").write_text(f"| Part | Price |\n| --- | --- |\n{rows}{long}| P-11 | 11.50 |\n")
    texts = [text for _, _, text, _ in read(tmp_path / "a.md", words=20)]
    header = "| Part | Price |\n| --- | --- |\n"
    short = [text.removeprefix(header) for text in texts if text.startswith(header)]
    assert "\n".join(short).split("\n") == [*rows.splitlines(), "| P-11 | 11.50 |"]
    assert [text for text in texts if not text.startswith(header)][:2] == ["Part: P-10", f"Price: {'very ' * 18}very"]


def test_rows_of_every_kind_give_the_same_passages_with_their_metadata(tmp_path):
    rows = [{"body": "The first row.\nIts second line.", "year": 2020}, {"body": "The second row.", "year": None}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "a.csv").write_text('body,year\n"The first row.\nIts second line.",2020\nThe second row.,\n')
    (tmp_path / "a.tsv").write_text('body\tyear\n"The first row.\nIts second line."\t2020\nThe second row.\t\n')
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    lines = {"jsonl": (1, 2), "csv": (2, 4), "tsv": (2, 4), "parquet": (1, 2)}
    for suffix, (first, second) in lines.items():
        assert read(tmp_path / f"a.{suffix}", field="body", metadata=("year",)) == [
            (first, "", "The first row. Its second line.", ("2020",)),
            (second, "", "The second row.", (None,)),
        ], suffix


def test_rows_carry_their_title(tmp_path):
    rows = [{"title": "Tea\u200b ", "body": "It is green."}, {"title": 7, "body": "It is black."}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    titles = [(title, text) for _, title, text, _ in read(tmp_path / "a.jsonl", field="body")]
    assert titles == [("Tea", "It is green."), ("7", "It is black.")]
    (tmp_path / "b.jsonl").write_text(json.dumps(rows[0]))
    assert read(tmp_path / "b.jsonl", field="title") == [(1, "", "Tea", ())], "the title is the text itself"


def test_articles_carry_title_and_heading(tmp_path):
    paragraph = "The old river runs past the small town near the sea."
    article = {"id": "7", "title": "Town", "sections": [{"heading": "River", "paragraphs": [paragraph]}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(article) + "\n")
    assert read(tmp_path / "a.jsonl") == [(1, "Town: River", paragraph, ())]


def test_files_of_folders_without_the_hidden_ones_and_what_likewise_made(notes, says):
    for made in ("my.index", "deep/model"):
        (notes / made).mkdir()
        (notes / made / "likewise.json").write_text("{}")
        (notes / made / "README.md").write_text("# A model\n\nIt was trained.\n")
    (notes / "page.css").write_text("p {}")
    named, (listing,) = files_of(TextSource([notes, notes / "heads.md"], CorpusOptions()))
    assert [line.split()[:2] for line in listing.left_out] == [["1", "file"], ["2", "folders"]]
    assert [path.name for path in named] == ["heads.md"]
    assert [path.relative_to(notes).as_posix() for path in listing.files] == ["deep/lines.txt", "heads.md"]
    with says(CorpusError):
        files_of(TextSource([notes / "none.txt"], CorpusOptions()))
