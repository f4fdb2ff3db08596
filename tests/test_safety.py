"""What a careful operator tries: through the command line, nothing is lost, and every refusal is one sentence."""

import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from likewise.cli import build_app

ONE_STEP = ("--max-steps", 1, "--batch-size", 8, "--select-by", "last")


def cli(*arguments):
    done = CliRunner().invoke(build_app(), [str(one) for one in arguments], env={"COLUMNS": "200"})
    assert done.exit_code in (0, 2), done.exception  # anything else is a traceback
    return done


def train(corpus, base, out, *more):
    return cli("train", "simcse", "--corpus", corpus, "--base", base, "--out", out, *ONE_STEP, *more)


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def model(corpus_file, tiny_base, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("safety") / "model"
    assert train(corpus_file, tiny_base, out).exit_code == 0
    return out


@pytest.fixture
def own(model, tmp_path) -> Path:
    """A copy of the model, with a file of the user's in its folder."""
    shutil.copytree(model, tmp_path / "own")
    (tmp_path / "own" / "thesis.tex").write_text("mine")
    return tmp_path / "own"


@pytest.mark.parametrize(
    "arguments",
    [
        ("demo",),
        ("train", "simcse", "--corpus", "wrongname", "--base", "BASE", "--overwrite", *ONE_STEP),
        ("train", "simcse", "--corpus", "CORPUS", "--base", "no-such-model", "--overwrite", *ONE_STEP),
        ("train", "simcse", "--corpus", "CORPUS", "--base", "BASE", "--overwrite", "--seed", -1, *ONE_STEP),
        ("train", "simcse", "--corpus", "CORPUS", "--base", "BASE", "--overwrite", *ONE_STEP, "--batch-size", 100_000),
        ("train", "simcse", "--corpus", "CORPUS", "--base", "BASE", *ONE_STEP, "--seed", 2),
        ("export", "no-such-model", "--format", "onnx", "--overwrite"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:6])),
)
def test_a_command_that_fails_leaves_the_old_model(arguments, own, corpus_file, tiny_base):
    before = content(own)
    given = {"BASE": tiny_base, "CORPUS": corpus_file}
    done = cli(*[given.get(one, one) for one in arguments], "--out", own)
    assert done.exit_code == 2
    assert "Error:" in done.output
    assert content(own) == before


@pytest.mark.parametrize("verb", ["demo", "train"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_of_other_files_is_refused_whatever_it_holds(verb, overwrite, corpus_file, tiny_base, tmp_path):
    (tmp_path / "proj" / "checkpoints").mkdir(parents=True)
    (tmp_path / "proj" / "checkpoints" / "a.txt").write_text("mine")
    (tmp_path / "proj" / "corpus.txt").write_bytes(corpus_file.read_bytes())
    before = content(tmp_path / "proj")
    corpus = ("--corpus", tmp_path / "proj" / "corpus.txt", "--base", tiny_base)
    words = {"demo": (), "train": ("simcse", *corpus, *ONE_STEP)}[verb]
    more = ("--overwrite",) if overwrite and verb != "demo" else ()
    done = cli(verb, *words, "--out", tmp_path / "proj", *more)
    assert done.exit_code == 2
    assert "contains other files" in done.output
    assert content(tmp_path / "proj") == before


def test_overwriting_keeps_what_is_not_the_models_and_may_read_what_it_replaces(own, corpus_file, tiny_base):
    shutil.copyfile(corpus_file, own / "corpus.txt")
    before = (own / "model.safetensors").read_bytes()
    assert train(own / "corpus.txt", own, own, "--overwrite").exit_code == 0
    assert (own / "model.safetensors").read_bytes() != before
    assert (own / "thesis.tex").read_text() == "mine"
    assert (own / "corpus.txt").read_bytes() == corpus_file.read_bytes()


def _with_weights(change):
    def damage(folder):
        weights = {name: value.clone() for name, value in load_file(folder / "model.safetensors").items()}
        change(weights)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return damage


def _not_a_number(weights):
    weights["embeddings.word_embeddings.weight"][:] = float("nan")


def _other_shape(weights):
    weights["embeddings.word_embeddings.weight"] = weights["embeddings.word_embeddings.weight"][:50].clone()


class _Ran:
    def __reduce__(self):
        return open, ("ran", "w")


def _pickled(folder):
    (folder / "model.safetensors").unlink()
    torch.save({"weight": _Ran()}, folder / "pytorch_model.bin")


def _without_tokenizer(folder):
    for path in folder.iterdir():
        if path.name not in ("config.json", "model.safetensors"):
            path.unlink()


def _cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def _emptied(folder):
    shutil.rmtree(folder)
    folder.mkdir()


BROKEN = {
    "not a number": (_with_weights(_not_a_number), "not finite"),
    "other shape": (_with_weights(_other_shape), "do not have the shapes"),
    "cut": (_cut, "truncated or damaged"),
    "empty folder": (_emptied, "contains no model"),
    "pickled": (_pickled, "could run code"),
    "no tokenizer": (_without_tokenizer, "no tokenizer files"),
    "a text": (None, "is a file"),
    "no name": (None, "There is no folder ''"),
}


@pytest.mark.parametrize("fault", list(BROKEN))
def test_a_broken_model_is_one_sentence_for_every_verb(
    fault, corpus_file, tiny_base, tmp_path, tmp_path_factory, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    pairs = tmp_path_factory.mktemp("rated") / "pairs.tsv"
    pairs.write_text("1\ta cat\ta dog\n0\ta cat\ta car\n")
    damage, said = BROKEN[fault]
    base = {"a text": str(corpus_file), "no name": ""}.get(fault, "base")
    if damage:
        shutil.copytree(tiny_base, "base")
        damage(tmp_path / "base")
    for done in (
        cli("similarity", base, "The cat sees.", "The dog sees."),
        cli("encode", base, corpus_file, "--out", "vectors.npy"),
        cli("evaluate", base, "--tasks", f"pairs:{pairs}"),
        train(corpus_file, base, "run"),
    ):
        assert done.exit_code == 2
        errors = done.output[done.output.index("Error:") :].strip()
        assert said in errors
        assert "\n" not in errors
    assert {path.name for path in tmp_path.iterdir()} <= {"base"}


def test_a_mistyped_base_is_corrected_by_the_same_command(corpus_file, tiny_base, tmp_path):
    assert train(corpus_file, "no-such-model", tmp_path / "run").exit_code == 2
    assert train(corpus_file, tiny_base, tmp_path / "run").exit_code == 0


@pytest.mark.parametrize("options", [("--learning-rate", "1e9", "--max-steps", 4), ("--batch-size", 1)])
def test_a_training_that_learns_nothing_is_no_success(options, corpus_file, tiny_base, tmp_path):
    done = train(corpus_file, tiny_base, tmp_path / "run", *options)
    assert done.exit_code == 2
    assert "Error:" in done.output
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_written(corpus_file, model, tiny_base, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written" in train(corpus_file, tiny_base, tmp_path / "file" / "run").output
    done = cli("encode", model, corpus_file, "--out", tmp_path / "file" / "vectors.npy")
    assert done.exit_code == 2
    assert "there is no folder" in done.output


def test_what_is_made_has_the_mode_of_any_new_file(model, corpus_file, tmp_path):
    (tmp_path / "usual").touch()
    cli("encode", model, corpus_file, "--out", tmp_path / "vectors.npy")
    for path in (tmp_path / "vectors.npy", *model.rglob("*.*")):
        if path.is_file():
            assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode, path


def test_python_m_and_short_help():
    done = subprocess.run([sys.executable, "-m", "likewise", "-h"], capture_output=True, text=True, check=True)
    assert "Usage:" in done.stdout
    for group in ("train", "data", "similarity"):
        assert "Usage:" in cli(group, "-h").output


def test_a_training_says_nothing_of_transformers_own(corpus_file, tiny_base, tmp_path, caplog, monkeypatch):
    from transformers.utils.logging import warning_once

    warning_once.cache_clear()
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    done = train(corpus_file, tiny_base, tmp_path / "run", "--max-steps", 3, "--eval-steps", 1)
    assert done.exit_code == 0
    assert "mtime" not in caplog.text
    assert "LOAD REPORT" not in caplog.text


@pytest.mark.parametrize(
    "verb",
    [
        ("train", "simcse", "--corpus", "none.txt", "--base", "BASE", "--seed"),
        ("finetune", "nli", "--train", "none.txt", "--base", "BASE", "--seed"),
        ("compare", "--method", "simcse", "--corpus", "none.txt", "--base", "BASE", "--steps", 1, "--seeds"),
    ],
    ids=lambda verb: verb[0],
)
def test_a_seed_below_zero_is_told_before_anything_is_read(verb, tiny_base, tmp_path):
    done = cli(*(tiny_base if word == "BASE" else word for word in verb), -1, "--out", tmp_path / "run")
    assert done.exit_code == 2
    assert "seed must be an integer from 0" in done.output
    assert not content(tmp_path)


def test_messages_count_one_as_one(tiny_base, tmp_path):
    (tmp_path / "one.txt").write_text("The old cat sees the dog near the river and the small bridge.\n")
    assert "1 sentence of 1 file can be used," in train(tmp_path / "one.txt", tiny_base, tmp_path / "run").output


@pytest.mark.parametrize(("row", "said"), [(3, "a number"), (["a"], "a list"), (None, "null"), (True, "a Boolean")])
def test_messages_name_types_of_json_in_words(row, said, tiny_base, tmp_path):
    good = json.dumps({"text": "The old cat sees the dog near the river."})
    for bad in (row, {"text": row}) if row is not None else (row,):  # a field may be null
        (tmp_path / "a.jsonl").write_text(f"{good}\n{json.dumps(bad)}\n")
        assert f"is {said}" in train(tmp_path / "a.jsonl", tiny_base, tmp_path / "run", "--field", "text").output


def test_half_of_a_character_is_no_traceback(model, tmp_path):
    """What a terminal gives for bytes that are not UTF-8, and JSON for half of a pair."""
    assert cli("similarity", model, "a \udcff", "a ?").output == "1.0000\n"
    (tmp_path / "a.jsonl").write_text('{"text": "a \\ud800"}\n')
    for out in ("a.npy", "a.parquet", "a"):
        assert cli("encode", model, tmp_path / "a.jsonl", "--field", "text", "--out", tmp_path / out).exit_code == 0


def test_a_name_that_no_system_has_is_refused(model, corpus_file):
    assert "control character" in cli("encode", model, corpus_file, "--out", "a\0.npy").output
