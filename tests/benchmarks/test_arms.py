"""The frame of the STS tables on made data: what is in the result file is not run again."""

from pathlib import Path

import pytest

import likewise

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def pairs(tmp_path, sentences):
    path = tmp_path / "rated.tsv"
    rows = [
        f"{i % 6}\t{first}\t{second}"
        for i, (first, second) in enumerate(zip(sentences[:40], sentences[40:80], strict=True))
    ]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_arms_run_once_for_each_seed_and_their_rows_stay(
    script, tmp_path, pairs, saved_model, tiny_base, corpus_file, capsys
):
    arms = script(BENCHMARKS / "arms.py")
    made = []

    def shipped(args, out):
        made.append((args.base, args.seed, out.name))
        return {"model": likewise.load(saved_model, precision="fp32"), "dev": 50.0 + args.seed}

    table = {
        "as it is": arms.Arm(shipped, seeds=False, base="another"),
        "each seed": arms.Arm(shipped),
        "trained": arms.Arm("simcse", {"select_by": "last"}, seeds=False),
    }
    parser = arms.parser_of(table, "a table", out=tmp_path / "out", table=str(tmp_path / "rows.jsonl"))
    words = ["--seeds", "1", "2", "--tasks", f"pairs:{pairs}", "--base", str(tiny_base), "--corpus", str(corpus_file)]
    args = parser.parse_args([*words, "--steps", "2", "--eval-steps", "2", "--batch-size", "8", "--max-length", "16"])
    for _ in range(2):
        arms.run(table, args)
    assert made == [
        ("another", 1, "as-it-is-1"),
        (str(tiny_base), 1, "each-seed-1"),
        (str(tiny_base), 2, "each-seed-2"),
    ]
    results = script(BENCHMARKS / "rows.py").ResultFile(tmp_path / "rows.jsonl")
    assert [row["score"] for row in results.rows(arm="each seed", set="sts-b-dev")] == [51.0, 52.0]
    assert results.rows(arm="trained", set="sts-b-dev")[0]["options"]["max_steps"] == 2
    assert len(results.rows(set=f"pairs:{pairs}")) == 4
    assert (tmp_path / "out/trained-1/model.safetensors").is_file()
    assert (tmp_path / "out/comparison/rows/comparison.md").is_file()
    assert "| each seed |" in capsys.readouterr().out
