"""The command line where its reader has left, where it is interrupted early, and where the locale holds few names."""

import os
import subprocess
import sys

import pytest

from likewise import __main__ as entry
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


def test_an_early_interruption_ends_without_a_traceback(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("likewise.cli.main", interrupted)
    with pytest.raises(SystemExit) as end:
        entry.main()
    assert end.value.code == 130


def test_a_name_that_the_locale_cannot_hold_is_told_apart_from_one_that_is_not_utf8(tmp_path, says):
    with says(CorpusError):
        check_name(tmp_path / os.fsdecode(b"caf\xe9.txt"))
    # In an ASCII locale, the bytes of 'é' in UTF-8 are read as two surrogates.
    with says(CorpusError):
        check_name(tmp_path / "caf\udcc3\udca9.txt")
