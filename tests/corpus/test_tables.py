import gzip
import lzma

import pytest

from likewise.corpus.tables import read_table

COLUMNS = {"first": ("sentence1", "premise"), "label": ("gold_label", "label")}


def read(path, text, columns=COLUMNS):
    path.write_text(text, encoding="utf-8")
    return [(int(place.removeprefix(f"{path}:")), cells) for place, cells in read_table(path, columns)]


def test_columns_are_found_by_name_in_any_case_and_order(tmp_path):
    assert read(tmp_path / "a.tsv", "Label\tother\tPremise\nx\t1\t A b. \n\ny\t2\tC\n") == [
        (2, ["A b.", "x"]),
        (4, ["C", "y"]),
    ]


def test_the_likelier_name_wins(tmp_path):
    assert read(tmp_path / "a.tsv", "label\tgold_label\tsentence1\nfirst\tgold\ta\n") == [(2, ["a", "gold"])]


def test_quotes_protect_commas_and_line_ends_and_are_plain_beside_tabs(tmp_path):
    assert read(tmp_path / "a.csv", 'sentence1,label\n"a, ""b""\nc",x\nd,y\n') == [
        (2, ['a, "b"\nc', "x"]),
        (4, ["d", "y"]),
    ]
    assert read(tmp_path / "a.tsv", 'sentence1\tlabel\n"a\tx\n') == [(2, ['"a', "x"])]


def test_every_kind_of_rows_and_every_encoding(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (tmp_path / "a.csv").write_bytes("label;sentence1\nx;Größe, Öl\n".encode("cp1252"))
    (tmp_path / "a.json").write_text('[{"label": "x",\n "sentence1": "Größe, Öl"}]')
    parquet.write_table(pa.Table.from_pylist([{"label": "x", "sentence1": "Größe, Öl"}]), tmp_path / "a.parquet")
    for name in ("a.csv", "a.json", "a.parquet"):
        assert [cells for _, cells in read_table(tmp_path / name, COLUMNS)] == [["Größe, Öl", "x"]], name


def test_json_lines_and_compression(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"premise": "a", "label": 1}\n\n{"label": null, "premise": "b"}\n'))
    assert list(read_table(path, COLUMNS)) == [(f"{path}:1", ["a", "1"]), (f"{path}:3", ["b", ""])]


def test_a_number_that_is_none_is_an_empty_text(tmp_path):
    rows = read(tmp_path / "a.jsonl", '{"sentence1": NaN, "label": 1}\n{"sentence1": 2.5, "label": null}\n')
    assert [cells for _, cells in rows] == [["", "1"], ["2.5", ""]]


def test_rows_of_a_compressed_file(tmp_path):
    (tmp_path / "a.csv.xz").write_bytes(lzma.compress(b"sentence1,label\na,x\n"))
    assert [cells for _, cells in read_table(tmp_path / "a.csv.xz", COLUMNS)] == [["a", "x"]]
