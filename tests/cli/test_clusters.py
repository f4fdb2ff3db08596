"""`likewise duplicates` and `likewise topics` as a user types them."""

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
    assert head == f"{len(texts)} texts: 1 repeat another exactly, {near} more say the same; {left} are kept"
    assert len(kept.read_text().splitlines()) == left
    assert "Just above the threshold of 0.999: duplicates" in rest
    assert "the threshold is too low for it" in rest  # random weights: all texts are near each other
    assert cli("duplicates", tmp_path / "lines.txt", *line, "--quiet").stdout == ""
    result = cli("duplicates", tmp_path / "none.txt", "--model", saved_model)
    assert result.exit_code == 2
    assert "no such file" in result.stderr


def test_topics_prints_names_sizes_and_the_map(cli, saved_model, corpus_file, tmp_path):
    out = tmp_path / "topics"
    result = cli("topics", corpus_file, "--model", saved_model, "--out", out, "--number", "20")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"20 topics of 400 texts: {out / 'map.html'}\n")
    assert f"and 5 more in {out / 'topics.jsonl'}" in result.stdout
    first = json.loads((out / "topics.jsonl").read_text().splitlines()[0])
    assert first["name"] in result.stdout
    assert first["examples"][0][:60] in result.stdout
    assert "<title>20 topics of 400 texts</title>" in (out / "map.html").read_text()
    assert "Missing option" in cli("topics", corpus_file, "--model", saved_model).stderr
