"""What is read of a folder, what a rule leaves out, and what cannot be looked at."""

import os

import pytest

from likewise.corpus import CorpusError, CorpusOptions
from likewise.corpus.files import kernel_devices
from likewise.corpus.folders import list_folder
from likewise.corpus.sources import find_files


@pytest.fixture
def tree(tmp_path):
    for name in ("a.txt", "b.md", "logs/c.txt", "logs/keep.txt", "deep/er/d.txt", "deep/build/e.txt"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("One two three.\n")
    return tmp_path / "tree"


def names(listing):
    return [path.relative_to(listing.folder).as_posix() for path in listing.files]


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        (["logs/"], ["a.txt", "b.md", "deep/build/e.txt", "deep/er/d.txt"]),
        (["*.txt", "!keep.txt"], ["b.md", "logs/keep.txt"]),
        (["build"], ["a.txt", "b.md", "deep/er/d.txt", "logs/c.txt", "logs/keep.txt"]),
        (["/a.txt", "deep/**/d.txt"], ["b.md", "deep/build/e.txt", "logs/c.txt", "logs/keep.txt"]),
        (["./logs", "!./deep"], ["a.txt", "b.md", "deep/build/e.txt", "deep/er/d.txt"]),
    ],
)
def test_patterns_leave_out(tree, patterns, kept):
    listing = list_folder(tree, patterns)
    assert names(listing) == kept
    assert len(listing.left_out) == 1
    assert listing.left_out[0].endswith("excluded by --exclude")
    assert find_files(tree, patterns) == listing.files


def test_files_of_rules_hold_below_their_folder_and_the_nearest_decides(tree):
    (tree / ".gitignore").write_text("*.txt\n# a comment\n")
    (tree / "logs" / ".likewiseignore").write_text("!keep.txt\n")
    assert names(list_folder(tree)) == ["b.md", "logs/keep.txt"]
    (tree / ".git").mkdir()
    assert names(list_folder(tree / "deep")) == [], "the rules of its repository hold"
    assert names(list_folder(tree, ["b.*"])) == ["logs/keep.txt"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_file_of_rules_may_begin_with_a_byte_order_mark(tree, encoding):
    (tree / ".gitignore").write_text("*.txt\n", encoding=encoding)
    assert names(list_folder(tree)) == ["b.md"]


def test_what_word_keeps_beside_an_open_file_is_hidden(tree):
    (tree / "~$a.docx").write_bytes(b"\x05someone")
    listing = list_folder(tree)
    assert "~$a.docx" not in names(listing)
    assert not listing.left_out


def test_a_pattern_that_is_none_is_refused(tree, says):
    with says(CorpusError):
        list_folder(tree, ["!"])


def test_links_are_followed_and_a_loop_ends(tree, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "f.txt").write_text("Four five six.\n")
    (tree / "linked").symlink_to(tmp_path / "other")
    (tree / "back").symlink_to(tree)
    (tree / "g.txt").symlink_to(tmp_path / "other" / "f.txt")
    listing = list_folder(tree)
    assert {"linked/f.txt", "g.txt", "a.txt"} <= set(names(listing))
    assert listing.unread == {}


def test_what_cannot_be_looked_at_is_named(tree):
    (tree / "gone.txt").symlink_to(tree / "nowhere.txt")
    if os.path.exists("/proc/self/status"):  # noqa: PTH110
        (tree / "kernel.txt").symlink_to("/proc/kmsg")  # to read it waits for ever
    listing = list_folder(tree)
    assert {path.name for path in listing.unread} >= {"gone.txt"}
    assert all(str(path) in reason for path, reason in listing.unread.items())
    assert "kernel.txt" not in names(listing)


def test_a_folder_without_a_kernel_mount_is_read(tree, monkeypatch):
    """In a chroot, /proc and /sys are ordinary folders on the disk that holds the text."""
    monkeypatch.setattr("pathlib.Path.is_mount", lambda self: False)
    kernel_devices.cache_clear()
    assert kernel_devices() == frozenset()
    assert "a.txt" in names(list_folder(tree))
    kernel_devices.cache_clear()


def test_a_file_of_the_kernel_and_what_cannot_be_looked_at_are_refused_by_name(tmp_path, monkeypatch, says):
    if os.path.exists("/proc/self/status"):  # noqa: PTH110
        (tmp_path / "status.txt").symlink_to("/proc/kmsg")
        with says(CorpusError):
            find_files(tmp_path / "status.txt")

    def stale(self):
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr("pathlib.Path.is_dir", stale)
    with says(CorpusError):
        find_files(tmp_path / "mount")


def test_a_path_that_is_too_long_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("One two three.\n")
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # deeper than a path can be
        os.mkdir("d" * 250, dir_fd=here)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    listing = list_folder(tmp_path)
    assert names(listing) == ["a.txt"]
    assert len(listing.unread) == 1


def test_exclude_is_an_option_of_every_corpus(tree):
    assert CorpusOptions(exclude=["logs"]).exclude == ["logs"]
