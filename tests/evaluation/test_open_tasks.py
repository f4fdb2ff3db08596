"""Tasks from outside: objects given to `evaluate`, and a package that registers one by an entry point."""

import textwrap
from dataclasses import dataclass

import numpy as np
import pytest
from typer.testing import CliRunner

from likewise.cli import build_app
from likewise.evaluation import EvaluationError, Prepared, Task, TaskResult, evaluate, registry

PACKAGE = """
from dataclasses import dataclass

import numpy as np

from likewise.evaluation import Prepared, Task, TaskResult


@dataclass(frozen=True)
class Spread(Task):
    texts: tuple = ("the cat", "the river", "the song")

    def read(self, data):
        def score(vectors):
            return TaskResult(self.name, self.title, "spread", float(np.std(vectors)), len(self.texts))

        return Prepared(list(self.texts), score)


spread = Spread("spread", "Spread", needs_data=False)
"""


@dataclass(frozen=True)
class Count(Task):
    """The number of vectors."""

    texts: tuple[str, ...] = ("a cat", "a dog")

    def read(self, data):
        return Prepared(
            list(self.texts), lambda vectors: TaskResult(self.name, self.title, "count", len(vectors), len(vectors))
        )


def install(folder, name, entry):
    """Put a package with one entry point where Python finds it, as pip does."""
    (folder / f"{name}.py").write_text(textwrap.dedent(PACKAGE))
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[likewise.tasks]\n{entry}\n")
    return folder


@pytest.fixture
def fresh(forget_packages):
    forget_packages()
    registry._registered.cache_clear()
    yield
    registry._registered.cache_clear()


def test_names_and_objects_together(tiny_model, senteval):
    report = evaluate(tiny_model, ["sts-b-dev", Count("count", "Count", needs_data=False)], data=senteval)
    assert [result.name for result in report.results] == ["sts-b-dev", "count"]
    assert report["count"].score == 2
    assert evaluate(tiny_model, Count("count", "Count", needs_data=False))["count"].n == 2


def test_an_object_that_needs_data_is_told_without_any(tiny_model, says):
    with says(EvaluationError):
        evaluate(tiny_model, Count("count", "Count"), data="/nowhere")


def test_two_tasks_of_one_name_are_refused(tiny_model, says):
    one, other = (Count("count", "Count", texts=(text,), needs_data=False) for text in ("a", "b"))
    with says(EvaluationError):
        evaluate(tiny_model, [one, other])
    assert np.array_equal(registry.resolve([one, one])[0], [one])


def test_a_package_registers_a_task(tiny_model, tmp_path, monkeypatch, fresh):
    monkeypatch.syspath_prepend(str(install(tmp_path, "toy_spread", "spread = toy_spread:spread")))
    assert "spread" in registry.known_tasks()
    report = evaluate(tiny_model, "spread")
    assert report["spread"].n == 3
    assert report["spread"].score > 0


def test_the_command_line_knows_it_too(tiny_model, tmp_path, monkeypatch, fresh):
    monkeypatch.syspath_prepend(str(install(tmp_path, "toy_spread", "spread = toy_spread:spread")))
    tiny_model.save(str(tmp_path / "model"))
    done = CliRunner().invoke(build_app(), ["evaluate", str(tmp_path / "model"), "--tasks", "spread"])
    assert "Spread" in done.stdout, done.output


@pytest.mark.parametrize(
    "entry",
    [
        "spread = toy_wrong:missing",
        "spread = toy_wrong:PACKAGE_NAME",
        "spread = toy_wrong:Spread",
    ],
)
def test_a_wrong_entry_point_is_named(entry, tmp_path, monkeypatch, fresh, says):
    monkeypatch.syspath_prepend(str(install(tmp_path, "toy_wrong", entry)))
    with says(EvaluationError):
        registry.known_tasks()
