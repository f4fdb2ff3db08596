"""`likewise duplicates` as a user types it."""

import json


def test_duplicates_prints_counts_and_pairs_of_ones_own_text(cli, saved_model, sentences, tmp_path):
    texts = [*sentences[:30], sentences[3].upper(), sentences[4], sentences[5].replace(" sees ", " does not see ")]
    (tmp_path / "lines.txt").write_text("\n".join(texts) + "\n")
    out, kept = tmp_path / "groups.jsonl", tmp_path / "kept.txt"
    line = ("--model", saved_model, "--out", out, "--keep-one", kept, "--threshold", "0.999")
    result = cli("duplicates", tmp_path / "lines.txt", *line)
    assert result.exit_code == 0, result.output
    head, _, rest = result.stdout.partition("\n")
    groups = [json.loads(row) for row in out.read_text().splitlines()]
    near = sum(len(group["duplicates"]) for group in groups) - 1
    left = len(texts) - 1 - near
    assert head == f"{len(texts)} texts: 1 exact duplicate, {near} near duplicates; {left} remain"
    assert len(kept.read_text().splitlines()) == left
    assert "Just above the threshold of 0.999: duplicates" in rest
    assert "the threshold is too low" in rest  # random weights: all texts are near each other
    assert cli("duplicates", tmp_path / "lines.txt", *line, "--quiet").stdout == ""
    result = cli("duplicates", tmp_path / "none.txt", "--model", saved_model)
    assert result.exit_code == 2
    assert "no such file" in result.stderr
