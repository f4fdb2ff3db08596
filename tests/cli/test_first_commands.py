"""The commands that a page on training begins with run as they stand, on a small corpus and a small base."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"
TRAINED = {
    "systems/arccse": (),
    "systems/sncse": ("--distil-steps", 1),
    "systems/gclsr": ("--batch-size", 16, "--filters", 4),
    "systems/others": (),
    "guides/train": (),
    "guides/not": ("--distil-steps", 1, "--batch-size", 8),
    "guides/light": ("--batch-size", 16, "--words", 50, "--hidden", 64),
}
"""What shortens the training of a page's first command, besides its base and its updates."""

OWN_TEXT = {
    "guides/adapt": ("--base", "bundled:minilm"),
    "guides/another-language": (),
    "guides/duplicates": ("--model", "bundled:minilm"),
    "guides/files": (),
    "guides/search": (),
}
"""What is added to the first command of a page on your own text: the default base, which a small one replaces."""


def commands_of(page):
    """Return the commands of the first block of a page, as lists of words, without its installation."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    block = re.search(r"(?:^    .*\n)+", text, re.MULTILINE)[0]
    lines = (shlex.split(line, comments=True) for line in block.splitlines())
    return [words[1:] for words in lines if words[0] == "likewise"]


@pytest.fixture
def sample(monkeypatch, tmp_path, corpus_file):
    """A small corpus in the place of `bundled:wiki-sample`, and an empty folder to work in."""
    monkeypatch.setattr("likewise.corpus.sources.wiki_sample_path", lambda: corpus_file)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def articles(monkeypatch, tmp_path, sentences):
    """Eight small articles in the place of `bundled:wiki-sample`, and an empty folder to work in."""
    rows = (
        {"id": n, "title": f"Title {n}", "sections": [{"heading": "", "paragraphs": [" ".join(sentences[n:320:8])]}]}
        for n in range(8)
    )
    path = tmp_path / "articles.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    monkeypatch.setattr("likewise.corpus.sources.wiki_sample_path", lambda: path)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def base_of(saved_model, sentences, tmp_path):
    """The small base of a system: an encoder, or word vectors."""
    vectors, draw = tmp_path / "vectors.txt", np.random.default_rng(0)
    known = sorted({word for text in sentences for word in text.lower().replace(".", " .").split()})
    rows = (f"{word} {' '.join(f'{x:.3f}' for x in draw.normal(size=8))}\n" for word in known)
    vectors.write_text("".join(rows), encoding="utf-8")
    return lambda page: vectors if page == "systems/gclsr" else saved_model


@pytest.mark.parametrize("page", TRAINED)
def test_the_first_command_of_a_page_trains(page, cli, sample, base_of):
    if page in ("systems/sncse", "guides/not"):
        pytest.importorskip("spacy", reason="negations need spacy")
    first, *others = commands_of(page)
    short = ("--base", base_of(page), "--max-steps", 1, "--select-by", "last", *TRAINED[page])
    done = cli(*first, *short)
    assert done.exit_code == 0, done.output
    assert (Path(first[first.index("--out") + 1]) / "modules.json").is_file()
    assert all("bundled:wiki-sample" in command for command in [first, *others] if command[0] == "train")


def test_the_first_commands_of_contexts_explain_a_similarity(cli, articles, saved_model):
    commands = commands_of("systems/contexts")
    assert "bundled:wiki-sample" in commands[0]
    for command in commands:
        done = cli(*command, *(("--set", f"states.encoder={saved_model}") if "states" in command else ()))
        assert done.exit_code == 0, (command, done.output)
    assert "[...]" in done.output


@pytest.mark.parametrize("page", OWN_TEXT)
def test_the_first_command_of_a_page_reads_your_own_text(page, cli, sentences, saved_model, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("my-text").mkdir()
    for path in (Path("my-text/notes.txt"), Path("messages.txt")):
        path.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    command = [*commands_of(page)[0], *OWN_TEXT[page]]
    done = cli(*(str(saved_model) if word == "bundled:minilm" else word for word in command))
    assert done.exit_code == 0, done.output
    assert Path(command[command.index("--out") + 1]).exists()
