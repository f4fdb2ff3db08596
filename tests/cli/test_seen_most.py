"""The messages that users see most, whole: `messages_seen_most.txt` holds each command and what it says.

After a change of wording that is meant: LIKEWISE_WRITE_MESSAGES=1 python -m pytest tests/cli/test_seen_most.py
"""

import os
import re
import shlex
from pathlib import Path

import pytest

GOLDEN = Path(__file__).with_name("messages_seen_most.txt")
BLOCKS = GOLDEN.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
"""Of each command: its line behind a dollar sign, its exit code, and what it printed without its empty lines."""


@pytest.fixture
def folder(tmp_path, monkeypatch, indexed, saved_model, sentences):
    """A folder of files with one fault each, a model and an index."""
    monkeypatch.chdir(tmp_path)
    Path("model").symlink_to(saved_model)
    Path("notes.index").symlink_to(indexed)
    Path("short.txt").write_text("A cat sleeps on the mat.\nThe dog ran home.\n")
    Path("same.txt").write_text("A cat sleeps on the mat.\nA cat sleeps on the mat!\nThe dog ran home.\n")
    Path("wiki.txt").write_text("".join(f"{sentence}\n" for sentence in sentences))
    Path("broken.jsonl").write_text('{"text": "The cat sees the dog."}\n{"text": "The dog\n')
    Path("columns.csv").write_text("id,body\n1,The cat sees the dog.\n")
    for name in ("photos", "mixed", "no-model"):
        Path(name).mkdir()
    Path("photos/cat.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    Path("mixed/a.md").write_text("# Tea\n\nThe cat sees the dog.\n")
    Path("mixed/broken.pdf").write_bytes(b"%PDF-1.4 nothing\n")
    return tmp_path


@pytest.mark.parametrize("block", BLOCKS, ids=[block.split("\n")[0] for block in BLOCKS])
def test_a_message_is_as_it_is_meant(block, cli, folder):
    command = block.split("\n")[0].removeprefix("$ ")
    result = cli(*shlex.split(command)[1:], columns=120)
    lines = [line.rstrip() for line in result.output.replace(str(folder), "FOLDER").splitlines()]
    # Which engine and precision is chosen depends on the processor.
    shown = [line for line in lines if line and not line.startswith("engine:")]
    printed = "\n".join([f"$ {command}", f"exit code {result.exit_code}", *shown])
    if os.environ.get("LIKEWISE_WRITE_MESSAGES"):
        GOLDEN.write_text(GOLDEN.read_text(encoding="utf-8").replace(block, printed), encoding="utf-8")
    assert printed == block


def test_the_file_has_at_least_a_dozen():
    assert len(BLOCKS) >= 12
    assert all(re.match(r"\$ likewise \w+ ", block) for block in BLOCKS)
