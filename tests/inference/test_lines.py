import os
import threading

import pytest

from likewise.corpus import CorpusOptions
from likewise.errors import LikewiseError
from likewise.inference.text_pieces import lines_of


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        ("a\x85b\u2028c\rd\n".encode(), ["a\x85b\u2028c\rd"]),
        (b"  a \n", ["  a "]),
    ],
)
def test_one_string_a_line(raw, lines, tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(raw)
    assert list(lines_of(str(path))) == lines


def test_jsonl_gives_the_text_of_a_field_and_keeps_rows(tmp_path, says):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1, "text": "One."}\n\n{"text": null}\n{"text": "Two\\u00e9."}\n')
    assert list(lines_of(str(path), CorpusOptions(field="text"))) == ["One.", "", "", "Twoé."]
    path.write_text('{"text": "One."}\n{"txt": "Two."}\n')
    with says(LikewiseError):
        list(lines_of(str(path), CorpusOptions(field="text")))
    path.write_text('{"text": "One."}\n[1]\n')
    with says(LikewiseError):
        list(lines_of(str(path), CorpusOptions(field="text")))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_another_encoding(encoding, tmp_path):
    (tmp_path / "a.txt").write_bytes("café\nnaïve".encode(encoding))
    options = CorpusOptions(encoding=encoding.removesuffix("-sig"))
    assert list(lines_of(str(tmp_path / "a.txt"), options)) == ["café", "naïve"]


def test_a_pipe_is_read_as_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("one\ntwo\n",))
    writer.start()
    assert list(lines_of(str(tmp_path / "pipe"))) == ["one", "two"]
    writer.join()
