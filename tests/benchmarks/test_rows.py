import json
import multiprocessing
from pathlib import Path

ROWS = Path(__file__).parents[2] / "benchmarks/rows.py"


def test_rows_come_back_under_a_header_that_says_where_they_are_from(script, tmp_path):
    results = script(ROWS).ResultFile(tmp_path / "table.jsonl", command="python some.py")
    results.add({"arm": "simcse", "seed": 1, "set": "sts12", "score": 71.5})
    results.add(
        {"arm": "simcse", "seed": 2, "set": "sts12", "score": 72.5}, {"arm": "base", "set": "sts12", "score": 7}
    )
    (header,) = results.headers()
    assert header["table"] == "table"
    assert header["command"] == "python some.py"
    assert {"machine", "versions", "date"} <= set(header)
    assert [row["score"] for row in results.rows(arm="simcse")] == [71.5, 72.5]
    assert results.has(arm="base")
    assert not results.has(arm="base", seed=1)
    assert not results.has(arm="simcse", seed=3)


def test_a_run_that_goes_on_in_another_way_writes_a_header_of_its_own(script, tmp_path):
    file, row = script(ROWS).ResultFile, {"arm": "a", "set": "b", "score": 1}
    for command in ("python one.py", "python one.py", "python other.py"):
        file(tmp_path / "table.jsonl", command).add(row)
    assert [header["command"] for header in file(tmp_path / "table.jsonl").headers()] == [
        "python one.py",
        "python other.py",
    ]
    assert file(tmp_path / "table.jsonl").rows() == [row] * 3


def test_an_unfinished_line_is_not_read_and_is_gone_when_the_run_goes_on(script, tmp_path):
    results = script(ROWS).ResultFile(tmp_path / "table.jsonl")
    results.add({"arm": "a", "set": "b", "score": 1})
    with results.path.open("a") as file:
        file.write('{"arm": "torn", "se')
    assert len(results.rows()) == 1
    results.add({"arm": "c", "set": "b", "score": 2})
    assert [row["arm"] for row in results.rows()] == ["a", "c"]
    for line in results.path.read_text().splitlines():
        json.loads(line)


def test_another_kind_of_file_is_told_from_a_result_file(script, tmp_path, says):
    (tmp_path / "cells.jsonl").write_text('{"arm": "a", "score": 1}\n')
    with says(ValueError):
        script(ROWS).ResultFile(tmp_path / "cells.jsonl").rows()


def test_processes_append_to_one_file_at_once(script, tmp_path):
    results = script(ROWS).ResultFile(tmp_path / "table.jsonl")

    def append(arm: int) -> None:
        for number in range(20):
            results.add({"arm": arm, "set": number, "score": 0}, {"arm": arm, "set": -number, "score": 0})

    workers = [multiprocessing.get_context("fork").Process(target=append, args=(arm,)) for arm in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    rows = results.rows()
    assert len(rows) == 120
    assert all(one["set"] == -other["set"] for one, other in zip(rows[::2], rows[1::2], strict=True))
    assert len(results.headers()) == 1
