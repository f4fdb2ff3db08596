import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformer

from likewise.context import (
    DiscriminatorOptions,
    IndexOptions,
    StatesOptions,
    build_index,
    read_states,
    train_discriminator,
)
from likewise.context.stage_options import SurrogateOptions


@pytest.fixture
def harvest(sentences, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path))
    folder = tmp_path / "harvest"
    folder.mkdir()
    columns = {
        "sentence1": sentences[:30],
        "sentence2": sentences[30:60],
        "score": [0.9 + i / 1000 for i in range(30)],
        "split": ["dev", "dev", "test", "test"] + ["train"] * 26,
    }
    pq.write_table(pa.table(columns), folder / "shard-0.parquet")
    return folder


def test_every_option_is_on_the_command_line(cli):
    shown = cli("context", "distill", "--help-all").output
    assert all(f"--{name.replace('_', '-')}" in shown for name in SurrogateOptions.model_fields)
    assert "sections 3.4" in shown


def test_distills_and_tells_the_errors(cli, harvest, tiny_base, tmp_path):
    out = tmp_path / "run"
    done = cli(
        "context",
        "distill",
        "--harvest",
        harvest,
        "--out",
        out,
        "--base",
        tiny_base,
        "--preset",
        "cpu",
        "--batch-size",
        8,
        "--max-steps",
        2,
    )
    assert done.exit_code == 0, done.output
    record = json.loads((out / "likewise.json").read_text())
    assert (record["preset"], record["options"]["batch_size"]) == ("cpu", 8)
    assert f"test_mse: {record['test']['test_mse']:.4g}" in done.stdout
    assert "dev_mse: " in done.stdout
    assert SentenceTransformer(str(out)).encode("the cat sees a dog").shape == (32,)


def test_profiles_of_a_workspace(cli, sentences, tiny_base, tmp_path):
    work, out, texts = tmp_path / "work", tmp_path / "run", tmp_path / "texts"
    texts.mkdir()
    for i in range(0, 120, 6):
        (texts / f"{i}.txt").write_text(" ".join(sentences[i : i + 6]), encoding="utf-8")
    states = StatesOptions(encoder=str(tiny_base), max_tokens=24)
    build_index(work, str(texts), IndexOptions(hash_bits=12), quiet=True)
    read_states(work, states, quiet=True)
    train_discriminator(work, DiscriminatorOptions(epochs=1, rank=4, held_out=0.3), quiet=True)
    options = ("--preset", "profiles", "--batch-size", 8, "--max-steps", 2)
    done = cli("context", "distill", "--work", work, "--out", out, "--base", tiny_base, *options)
    assert done.exit_code == 0, done.output
    record = json.loads((out / "likewise.json").read_text())
    assert (record["preset"], record["options"]["learns"]) == ("profiles", "profiles")


def test_bad_input_is_one_clean_message(cli, harvest, tiny_base, tmp_path):
    done = cli("context", "distill", "--harvest", tmp_path / "nowhere", "--out", tmp_path / "run", "--base", tiny_base)
    assert done.exit_code == 2
    assert "no such folder" in done.stderr
    assert "Traceback" not in done.stderr
