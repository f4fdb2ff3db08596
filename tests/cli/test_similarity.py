from likewise.inference import similarity as cosines


def test_four_decimals(cli, tiny_model, tmp_path):
    tiny_model.save(str(tmp_path / "model"))
    result = cli("similarity", *[str(tmp_path / "model"), "the old cat", "a small dog"])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{cosines('the old cat', 'a small dog', model=tiny_model).item():.4f}\n"
    result = cli("similarity", *["/no/such/model", "a", "b"])
    assert result.exit_code == 2
    assert "There is no folder" in result.stderr
