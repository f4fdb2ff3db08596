"""`push` against a hub that only records what it is sent."""

import json
import shutil

import pytest
from typer.testing import CliRunner

import likewise
from likewise.cli import build_app
from likewise.training import PushError

CARD = """---
library_name: sentence-transformers
---
# A sentence encoder trained with likewise

From `{base}`.

model = SentenceTransformer("path/to/this/folder")

Every option, the versions, the hash of the corpus and all scores are in `likewise.json` and `log.jsonl`; `run.toml`
holds the arguments.
"""
SECRETS = {"run.toml": 'corpus = "/home/me/diary.txt"', "log.jsonl": "{}", "report.html": "Dear diary"}


@pytest.fixture
def trained(tmp_path):
    """Return a function that writes the folder of a model from a base, as far as `push` reads it."""

    def write(base="bundled:minilm"):
        folder = tmp_path / "run"
        (folder / "1_Pooling").mkdir(parents=True)
        content = {"README.md": CARD.format(base=base), "1_Pooling/config.json": "{}", "model.safetensors": "12345"}
        for name, text in (content | SECRETS).items():
            (folder / name).write_text(text)
        record = {
            "plan": {"inputs": {"corpus": "abc123"}},
            "files": list(content | SECRETS),
            "base": base,
            "selection": "STS-B dev",
            "before": {"dev": 70.0},
            "best": {"metric": "dev", "score": 71.5},
        }
        (folder / "likewise.json").write_text(json.dumps(record))
        return folder

    return write


@pytest.fixture
def hub(monkeypatch):
    """Return what a stand-in for the hub was sent: names with their content."""
    sent = {}

    class Api:
        def create_repo(self, name, *, private, exist_ok):
            sent["private"] = private
            return f"https://hub.example/{name}"

        def create_commit(self, repo_id, operations, *, commit_message):
            for one in operations:
                with one.as_file() as file:
                    sent[one.path_in_repo] = file.read().decode()

    monkeypatch.setattr("huggingface_hub.HfApi", Api)
    return sent


def test_a_dry_run_sends_nothing_and_lists_what_would_be_sent(trained, hub):
    found = likewise.push(trained(), "me/arc", license="mit", dry_run=True)
    assert not hub
    assert not found.url
    assert found.files == {"1_Pooling/config.json": 2, "model.safetensors": 5, "README.md": len(found.card.encode())}


def test_the_model_goes_to_the_hub_and_the_users_text_does_not(trained, hub):
    found = likewise.push(trained(), "me/arc", license="mit", private=True)
    assert found.url == "https://hub.example/me/arc"
    assert hub.pop("private") is True
    assert set(hub) == {"1_Pooling/config.json", "model.safetensors", "README.md"}
    assert not any("diary" in text for text in hub.values())


def test_the_card_has_licence_base_hash_and_the_bases_score(trained, hub):
    folder = trained()
    card = likewise.push(folder, "me/arc", license="mit", dry_run=True).card
    assert card.startswith("---\nlicense: mit\nbase_model: sentence-transformers/all-MiniLM-L6-v2\n")
    assert "`abc123`" in card
    assert "70.00" in card
    assert "71.50" in card
    assert 'SentenceTransformer("me/arc")' in card
    assert "run.toml" not in card
    assert (folder / "README.md").read_text() == CARD.format(base="bundled:minilm")


def test_a_base_in_a_folder_is_named_without_its_place(trained, hub, tmp_path):
    base = tmp_path / "bases" / "mine"
    base.mkdir(parents=True)
    card = likewise.push(trained(str(base)), "me/arc", license="mit", dry_run=True).card
    assert "From `mine`." in card
    assert str(tmp_path) not in card
    assert "base_model" not in card


def test_a_folder_without_a_record_and_a_name_without_owner_are_refused(trained, hub, tmp_path):
    with pytest.raises(PushError, match="--out"):
        likewise.push(tmp_path, "me/arc", license="mit")
    with pytest.raises(PushError, match="me/my-encoder"):
        likewise.push(trained(), "arc", license="mit")


def test_a_refusal_of_the_hub_is_one_sentence(trained, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr("huggingface_hub.HfApi.create_repo", refuse)
    with pytest.raises(PushError, match=r"no route to host: log in with `hf auth login`, and try again"):
        likewise.push(trained(), "me/arc", license="mit")


def test_the_table_has_the_base_and_the_model_under_the_same_tasks(trained, hub, saved_model, tmp_path):
    folder = trained(str(saved_model))
    shutil.copytree(saved_model, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("README.md"))
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("5\tthe cat sees the dog\tthe cat sees the dog\n1\ta house\tthe dog sees\n3\tthe dog\ta cat\n")
    card = likewise.push(folder, "me/arc", license="mit", tasks=f"pairs:{pairs}", dry_run=True, quiet=True).card
    row = next(line for line in card.splitlines() if "spearman" in line)
    base, model = row.split("|")[-3:-1]
    assert base.strip() == model.strip() != ""  # the same weights


def test_the_command_prints_the_card_of_a_dry_run(trained, hub):
    words = ["push", str(trained()), "me/arc", "--license", "mit", "--dry-run"]
    shown = CliRunner().invoke(build_app(), words)
    assert shown.exit_code == 0, shown.output
    assert "license: mit" in shown.stdout
    assert "nothing was sent to me/arc" in shown.stdout
