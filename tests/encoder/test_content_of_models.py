"""The content of a model, by which results are known: also what lies behind links and in folders of its own."""

import json

import pytest

import likewise
from likewise.encoder.location import files_of_model, model_fingerprint
from likewise.runs.job import JobError
from likewise.training import compare


@pytest.fixture
def model(tmp_path):
    """A folder with a module behind a link, and an adapter whose transformer is in a folder of its own."""
    folder, elsewhere, transformer = (tmp_path / name for name in ("model", "elsewhere", "transformer"))
    for place in (folder, elsewhere, transformer):
        place.mkdir()
        (place / "config.json").write_text("{}")
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(transformer)}))
    (folder / "2_Dense").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(folder)  # no walk goes round in circles
    return folder


def test_its_files_are_those_that_it_is_read_from(model):
    names = set(files_of_model(model))
    transformer = model.parent / "transformer"
    assert names == {"config.json", "adapter_config.json", "2_Dense/config.json", f"{transformer}/config.json"}


@pytest.mark.parametrize("place", ["model", "elsewhere", "transformer"])
def test_it_changes_with_each_of_them(model, place):
    before = model_fingerprint(str(model))
    (model.parent / place / "config.json").write_text('{"changed": 1}')
    assert model_fingerprint(str(model)) != before


def test_other_word_vectors_are_noticed(tmp_path, sentences, saved_model, says):
    words = sorted({word for text in sentences for word in text.lower().strip(".").split()})

    def write(sign: str) -> None:
        lines = [f"{word} {' '.join(f'{sign}0.{(7 * n + k) % 9}' for k in range(8))}" for n, word in enumerate(words)]
        (tmp_path / "words.txt").write_text("\n".join(lines) + "\n")

    def train() -> None:
        vectors, options = str(tmp_path / "words.txt"), {"max_steps": 2, "batch_size": 8, "select_by": "last"}
        likewise.train(
            "light", sentences[:40], base=saved_model, out=tmp_path / "light", vectors=vectors, quiet=True, **options
        )

    write("")
    train()
    write("-")
    with says(JobError):
        train()


def test_a_comparison_evaluates_a_model_again_whose_content_has_changed(tmp_path, saved_model):
    import shutil

    base = tmp_path / "base"
    shutil.copytree(saved_model, base)
    (tmp_path / "q.tsv").write_text("".join(f"{n % 5}\tthe cat {n}\ta dog {n}\n" for n in range(12)))

    def time_of_result() -> int:
        compare([str(base)], out=tmp_path / "out", tasks=f"pairs:{tmp_path / 'q.tsv'}", quiet=True)
        (file,) = (tmp_path / "out" / "results").glob("*.json")
        return file.stat().st_mtime_ns

    first = time_of_result()
    assert time_of_result() == first
    weights = next(base.rglob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
    assert time_of_result() > first
