"""The files of messages have no entry without a test that makes it."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILES = sorted(TESTS.rglob("messages.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_each_entry_is_of_a_test_that_is_there(file):
    for name in re.findall(r"^(\S.*::.*)$", file.read_text(encoding="utf-8"), re.MULTILINE):
        path, function = name.split("[")[0].split("::")
        source = (file.parent / path).read_text(encoding="utf-8")
        assert re.search(rf"^def {function}\(", source, re.MULTILINE), f"{file}: {name} is of no test"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_no_message_has_the_name_of_a_variable(file):
    assert not re.findall(r"\{[A-Za-z_]\w*(?:\.\w+)*(?:![rsa])?\}", file.read_text(encoding="utf-8"))
