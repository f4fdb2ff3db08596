import random
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def many(sentences, word_model, tmp_path_factory) -> Path:
    """The index of 300 sentences, a line each, by `word_model`."""
    from likewise import index

    folder = tmp_path_factory.mktemp("many")
    (folder / "lines.txt").write_text("\n".join(random.Random(1).sample(sentences, 300)) + "\n")
    weights = {"vectors": 1, "words": 1, "neighbours": 0.3, "nearest": 5}
    index(folder / "lines.txt", model=word_model, out=folder / "many.index", pipeline=weights, quiet=True)
    return folder / "many.index"


@pytest.fixture
def after_two_windows(monkeypatch):
    """A `with` block in which an update is interrupted after two windows of 16 passages, as by Ctrl-C."""
    from likewise.runs.progress import Stopped
    from likewise.searching.index import table_update

    monkeypatch.setattr(table_update, "WINDOW", 16)

    @contextmanager
    def stopped():
        add, calls = table_update.Table.add, []

        def interrupted(self, *args):
            add(self, *args)
            calls.append(len(args[0]))
            if len(calls) == 2:
                signal.raise_signal(signal.SIGINT)

        with monkeypatch.context() as patched, pytest.raises(Stopped, match="after 32 passages"):
            patched.setattr(table_update.Table, "add", interrupted)
            yield

    return stopped
