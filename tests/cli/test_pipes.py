"""The command line where its reader has left, where it is interrupted early, and where the locale holds few names."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from likewise.corpus import CorpusError
from likewise.corpus.sources import check_name


def test_a_reader_that_has_seen_enough_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "likewise", "--help"], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_error_keeps_its_exit_code_without_a_reader():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "likewise", "no-verb"], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert done.returncode == 2


@pytest.mark.parametrize("name", ["lazy_loader", "typer"])  # the first import of the package, and of its commands
def test_an_early_interruption_ends_without_a_traceback(name, tmp_path):
    (tmp_path / f"{name}.py").write_text("raise KeyboardInterrupt\n")
    command = [Path(sysconfig.get_path("scripts")) / "likewise", "--help"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True)
    assert (done.returncode, done.stderr) == (130, b"")


def test_a_name_that_the_locale_cannot_hold_is_told_apart_from_one_that_is_not_utf8(tmp_path, says):
    with says(CorpusError):
        check_name(tmp_path / os.fsdecode(b"caf\xe9.txt"))
    # In an ASCII locale, the bytes of 'é' in UTF-8 are read as two surrogates.
    with says(CorpusError):
        check_name(tmp_path / "caf\udcc3\udca9.txt")
