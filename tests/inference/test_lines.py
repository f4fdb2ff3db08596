import os
import threading

import pytest

from likewise.corpus import CorpusOptions
from likewise.errors import LikewiseError
from likewise.inference.lines import open_lines


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
    with open_lines(str(path)) as found:
        assert list(found) == lines


def test_jsonl_gives_the_text_of_a_field_and_keeps_rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1, "text": "One."}\n\n{"text": null}\n{"text": "Two\\u00e9."}\n')
    with open_lines(str(path), CorpusOptions(field="text")) as found:
        assert list(found) == ["One.", "", "", "Twoé."]
    path.write_text('{"text": "One."}\n{"txt": "Two."}\n')
    with (
        open_lines(str(path), CorpusOptions(field="text")) as found,
        pytest.raises(LikewiseError, match=r"jsonl:2: no"),
    ):
        list(found)
    path.write_text('{"text": "One."}\n[1]\n')
    with open_lines(str(path), CorpusOptions(field="text")) as found, pytest.raises(LikewiseError, match="line 2: not"):
        list(found)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_another_encoding(encoding, tmp_path):
    (tmp_path / "a.txt").write_bytes("café\nnaïve".encode(encoding))
    with open_lines(str(tmp_path / "a.txt"), CorpusOptions(encoding=encoding.removesuffix("-sig"))) as found:
        assert list(found) == ["café", "naïve"]


def test_a_pipe_is_read_as_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("one\ntwo\n",))
    writer.start()
    with open_lines(str(tmp_path / "pipe")) as found:
        assert found.size is None
        assert list(found) == ["one", "two"]
    writer.join()
