import pytest
import typer
from typer.testing import CliRunner

from likewise.cli.messages import clean_errors
from likewise.evaluation import DataError


def run(error):
    app = typer.Typer()

    @app.command()
    @clean_errors
    def verb(name: str = "x"):
        raise error

    return CliRunner().invoke(app, [])


@pytest.mark.parametrize(
    "error", [DataError("[bold]file, line 3[/]: bad"), FileNotFoundError("[bold]file, line 3[/]: bad")]
)
def test_known_errors_are_one_message(error):
    result = run(error)
    assert result.exit_code == 2
    # Nothing of the message is read as markup.
    assert result.stderr == "Error: [bold]file, line 3[/]: bad\n"


@pytest.mark.parametrize("error", [ValueError("a library's"), KeyError("x"), RuntimeError("bug")])
def test_other_errors_keep_their_traceback(error):
    result = run(error)
    assert result.exit_code == 1
    assert result.exception is error


def test_a_value_error_that_likewise_raises_is_known():
    import numpy as np

    from likewise.evaluation.geometry import uniformity

    app = typer.Typer()

    @app.command()
    @clean_errors
    def verb():
        uniformity(np.ones((1, 2)))

    result = CliRunner().invoke(app, [])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: Uniformity needs two rows")


def test_the_traceback_can_be_asked_for(monkeypatch):
    monkeypatch.setenv("LIKEWISE_TRACEBACK", "1")
    assert run(DataError("x")).exit_code == 1
