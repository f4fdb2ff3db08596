import pytest

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
