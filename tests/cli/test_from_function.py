"""Options that are read from a function: their names, types, defaults and help texts."""

import pytest

from likewise.cli import described, from_function
from likewise.cli.groups import command
from likewise.runs.options import Options, option


class More(Options):
    depth: int = option(2, "How deep.")


SOURCE = '''
WIDTH = 3

def painted(
    texts: GivenTexts,
    *,
    colour: Literal["red", "blue"] = "red",
    width: int = WIDTH,
    names: Sequence[str] | None = None,
    bold: bool = False,
    resume: Resume = "auto",
    out: str | None = None,
    **more: Any,
) -> None:
    """Paint.

    Args:
        texts: what is painted; in Python also texts themselves.
        colour, width: how it looks,
            on two lines.
        names: whose.
        bold: more of it.
        out: where it goes; None for nowhere.

    Returns:
        Nothing.
    """
'''


@pytest.fixture
def painted(tmp_path, monkeypatch, capsys):
    """A function that runs the command of `painted`, and returns what it was given, its exit code and its text."""
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / "paint.py").write_text(SOURCE)
    monkeypatch.setattr(described, "__file__", str(tmp_path / "cli" / "x.py"))

    def run(*line, **settings):
        got = []

        def made(arguments):
            got.append(arguments)

        settings = {"options": More(), "arguments": ["texts"], **settings}
        made = from_function.with_function("house/paint.py:painted", **settings)(made)
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as end:
            command(made).main([*line])
        return (got[0] if got else None), end.value.code, " ".join(capsys.readouterr().out.split())

    return run


def test_values_arrive_by_name_and_what_was_not_given_is_left_to_the_function(painted):
    got, _, _ = painted("a.txt", "b.txt", "--names", "x", "--bold", "--depth", "4")
    assert [str(path) for path in got.pop("texts")] == ["a.txt", "b.txt"]
    assert got == {"colour": "red", "width": 3, "names": ["x"], "bold": True, "resume": "auto", "depth": 4}


def test_the_help_is_that_of_the_docstring_without_what_is_for_python_alone(painted):
    *_, text = painted("--help")
    assert "What is painted. " in text
    assert "Python" not in text
    assert "<red|blue> How it looks, on two lines. [default: red]" in text
    assert "Whether to fail if there is no interrupted job" in text, "an option that all commands share"


def test_a_command_may_change_names_types_defaults_and_texts(painted):
    settings = {"names": {"width": "-w"}, "kinds": {"out": int}, "defaults": {"width": 7}, "texts": {"bold": "Much."}}
    got, *_ = painted("a", "-w", "5", "--out", "2", without=["names"], **settings)
    assert (got["width"], got["out"], "names" in got) == (5, 2, False)
    got, *_ = painted("a", **settings)
    assert got["width"] == 7
    assert "Much." in painted("--help", **settings)[2]


def test_a_wrong_value_is_refused(painted):
    assert painted("a", "--colour", "green")[1] == 2
    assert painted("--bold")[1] == 2
