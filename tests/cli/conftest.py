import pytest
from typer.testing import CliRunner

from likewise.cli import build_app


@pytest.fixture
def cli():
    """Run the command line with arguments of any type."""

    def run(*arguments, columns=200):
        words = [str(argument) for argument in arguments]
        return CliRunner().invoke(build_app(), words, env={"COLUMNS": str(columns)}, prog_name="likewise")

    return run
