import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from likewise.cli.messages import clean_errors
from likewise.errors import LikewiseError
from likewise.evaluation import DataError
from likewise.runs.progress import Stopped


def run(error):
    app = typer.Typer()

    @app.command()
    def verb(name: str = "x"):
        with clean_errors():
            raise error

    return CliRunner().invoke(app, [])


@pytest.mark.parametrize("error", [DataError("[bold]file:3[/]: bad"), FileNotFoundError("[bold]file:3[/]: bad")])
def test_known_errors_are_one_message(error):
    result = run(error)
    assert result.exit_code == 2
    # Nothing of the message is read as markup.
    assert result.stderr == "Error: [bold]file:3[/]: bad\n"


@pytest.mark.parametrize("error", [ValueError("a library's"), KeyError("x"), RuntimeError("bug")])
def test_other_errors_keep_their_traceback(error):
    result = run(error)
    assert result.exit_code == 1
    assert result.exception is error


def test_what_the_system_refuses_names_the_file():
    result = run(OSError(28, "No space left on device", "/data/vectors.npy"))
    assert result.exit_code == 2
    assert result.stderr == "Error: /data/vectors.npy: No space left on device\n"


def test_a_stop_has_its_own_exit_code():
    result = run(Stopped("Stopped after row 3. Run the same command again to resume."))
    assert result.exit_code == 130
    assert result.stderr == "Stopped after row 3. Run the same command again to resume.\n"


def test_every_error_of_likewise_is_a_likewise_error(says):
    from likewise.evaluation.vector_measures import uniformity

    with says(LikewiseError):
        uniformity(np.ones((1, 2)))
