import json
import re


def test_an_index_of_a_folder_without_prose_ends_with_2_and_a_sentence(cli, tiny_model, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "page.log").write_text("<p>The cat sees the dog.</p>\n")
    result = cli("index", tmp_path / "text", "--model", tmp_path / "model", "--out", tmp_path / "a.index")
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert "no file in this folder ends in .txt" in said
    assert "1 file in other formats (1 .log)" in said


def test_index_and_search(cli, tiny_model, sentences, tmp_path):
    tiny_model.save(str(tmp_path / "model"), create_model_card=False)
    (tmp_path / "notes.md").write_text(f"# Tea\n\n{sentences[0]} {sentences[1]}\n")
    out = tmp_path / "notes.index"
    result = cli("index", tmp_path / "notes.md", "--model", tmp_path / "model", "--out", out)
    assert result.exit_code == 0, result.output
    assert "1 passage of 1 file: 1 encoded now, 1 file added, 0 removed" in result.stdout
    result = cli("index", tmp_path / "notes.md", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout == "1 passage of 1 file: up to date\n"
    result = cli("search", out, sentences[1], "-k", "3")
    assert result.exit_code == 0, result.output
    assert "notes.md:3  Tea" in result.stdout
    assert sentences[1] in " ".join(result.stdout.split())
    result = cli("search", out, sentences[1], "-k", "3", "--explain")
    assert re.search(
        r"vectors [+-]\d\.\d\d \(cosine 1\.000\), words \+\d\.\d\d \(BM25 \d+\.\d\d\), (tokens .*, )?neighbours",
        result.stdout,
    )
    result = cli("search", out, sentences[1], "--json", "--words-only")
    assert [hit["line"] for hit in json.loads(result.stdout)["hits"]] == [3]
    phrase = " ".join(sentences[1].split()[:2])
    asked = {f'"{phrase}"': ([phrase], []), f'Where is "{phrase}" at home?': ([], [phrase])}
    for query, (demanded, ranked) in asked.items():
        found = json.loads(cli("search", out, query, "--json").stdout)
        assert (found["demanded"], found["ranked"], found["others"]) == (demanded, ranked, 0)
    assert cli("search", out, "zebra", "--words-only").stdout.endswith("Nothing found.\n")
    result = cli("search", tmp_path / "none", "a")
    assert result.exit_code == 2
    assert "likewise index" in result.stderr
