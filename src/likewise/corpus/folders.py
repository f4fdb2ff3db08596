"""The files of a folder to read: files in known formats that no rule excludes."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.encodings import seen_encoding
from likewise.corpus.files import format_suffix, kernel_devices, read_head
from likewise.corpus.known_formats import folder_suffixes, format_named
from likewise.errors import counted, unread
from likewise.runs.results import RECORD

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILES = (".gitignore", ".likewiseignore")
_NO_PROSE = ("makefile", "dockerfile", "containerfile", "jenkinsfile", "vagrantfile", "gemfile", "procfile")
_CODE_BEGINS = (b"#!", b"<", b"{", b"[")
_KINDS = 5  # endings of files that are skipped
_CURE = "check its permissions, or exclude it"


@dataclass
class Listing:
    """The result of listing a folder.

    Attributes:
        folder: Path to the folder.
        files: Files to read, in the order of their paths.
        unread: Files, links and folders that could not be opened, each with a sentence that names it. Their content may
            still exist.
        left_out: Lines that count files in other formats, and files that a rule excludes.
    """

    folder: Path
    files: list[Path] = field(default_factory=list)
    unread: dict[Path, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def list_folder(folder: Path, exclude: Sequence[str] = ()) -> Listing:
    """List the readable files of a folder and its subfolders; links are followed.

    Text, Markdown, reStructuredText, Org, AsciiDoc, JSONL, CSV, TSV, Parquet and MediaWiki dumps are read, compressed
    or not, and text without an ending, such as README; notebooks, and with the extra `files` web pages, mails, office
    files and PDFs. JSON and code must be named to be read. Hidden files and folders are skipped, and so are models,
    indexes that likewise made among the texts.

    Args:
        exclude: Patterns as in a .gitignore, relative to the folder. Patterns in the files .gitignore and
            .likewiseignore of a folder, and of the folders above it in a repository, hold as well.
    """
    walk = _Walk(folder, exclude)
    others: Counter[str] = Counter()
    lacking: dict[str, Counter[str]] = {}
    for path in walk.files():
        kind, format = format_suffix(path), format_named(path)
        if not _is_prose(path):
            packed = path.suffix.lower() if format and format.holds == "pages" else ""  # only read as it is
            others[f"{kind}{packed}" or path.name] += 1
        elif format is not None and (cure := format.lacks()):
            lacking.setdefault(cure, Counter())[kind] += 1
        else:
            walk.listing.files.append(path)
    walk.listing.files.sort()
    walk.listing.left_out += [_uninstalled(suffixes, cure) for cure, suffixes in lacking.items()]
    if others:
        walk.listing.left_out.append(_counted(others))
    if walk.made:
        walk.listing.left_out.append(f"{counted(walk.made, 'folder')} created by likewise skipped")
    for rule, count in walk.excluded.items():
        walk.listing.left_out.append(f"{counted(count, 'path')} excluded by {rule}")
    return walk.listing


IgnoreRule = tuple[Path, str, "GitIgnoreSpec"]
"""A folder, the name of what holds patterns for it, and the patterns."""


class _Walk:
    """A walk through a folder, with unreadable paths, and the number of paths that each rule excludes."""

    def __init__(self, folder: Path, exclude: Sequence[str]) -> None:
        self.listing = Listing(folder)
        self.excluded: Counter[str] = Counter()
        self.made = 0
        self._first: list[IgnoreRule] = []
        if exclude:
            try:
                own = [re.sub(r"^(!?)\./", r"\1/", pattern) for pattern in exclude]
                self._first = [(folder, "--exclude", _patterns(own))]
            except ValueError as error:
                raise CorpusError(f"exclude: {error}: give patterns as in a .gitignore") from None

    def files(self) -> Iterator[Path]:
        """Yield the files that no rule excludes."""
        seen: set[tuple[int, int]] = set()
        folders: list[tuple[Path, list[IgnoreRule]]] = [(self.listing.folder, _rules_above(self.listing.folder))]
        while folders:
            here, rules = folders.pop()
            try:
                own = here.stat()
                with os.scandir(here) as scanned:
                    entries = sorted(scanned, key=lambda entry: entry.name, reverse=True)
            except OSError as error:
                self._note(here, error)
                continue
            if (own.st_dev, own.st_ino) in seen:  # a link leads back
                continue
            seen.add((own.st_dev, own.st_ino))
            if here != self.listing.folder and any(entry.name == RECORD for entry in entries):
                self.made += 1
                continue
            rules = [*rules, *_rules_in(here)]
            for entry in entries:
                path = here / entry.name
                if entry.name.startswith((".", "~$")):  # '~$' begins the lock files of Word
                    continue
                try:
                    state, is_folder = entry.stat(), entry.is_dir()
                except OSError as error:
                    self._note(path, error)
                    continue
                if rule := self._rule(path, is_folder, rules):
                    self.excluded[rule] += 1
                elif state.st_dev in kernel_devices():
                    self.listing.unread[path] = f"{path}: this is a kernel file, not a file on a disk: {_CURE}"
                elif not is_folder:
                    yield path
                else:
                    folders.append((path, rules))

    def _note(self, path: Path, error: OSError) -> None:
        is_broken = isinstance(error, FileNotFoundError) and path.is_symlink()
        reason = OSError("the link is broken") if is_broken else error
        self.listing.unread[path] = unread(path, reason, _CURE)

    def _rule(self, path: Path, is_folder: bool, rules: list[IgnoreRule]) -> str:
        """Return the name of the rule that leaves a path out, "" if none does; the nearest that says anything does."""
        for folder, name, patterns in [*self._first, *reversed(rules)]:
            relative = os.path.relpath(path, folder) + ("/" if is_folder else "")
            if (include := patterns.check_file(relative).include) is not None:
                return name if include else ""
        return ""


def _patterns(lines: Sequence[str]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _rules_in(folder: Path) -> list[IgnoreRule]:
    rules = []
    for name in IGNORE_FILES:
        with suppress(OSError, ValueError):
            content = (folder / name).read_bytes()
            text = content.decode(seen_encoding(content) or "utf-8", "replace").removeprefix("\ufeff")
            rules.append((folder, name, _patterns(text.splitlines())))
    return rules


def _rules_above(folder: Path) -> list[IgnoreRule]:
    """Return the rules of the folders above one, up to the top of its repository, the outermost first."""
    with suppress(OSError):
        absolute = folder.absolute()
        above = [absolute, *absolute.parents]
        top = next((place for place, parent in enumerate(above) if (parent / ".git").exists()), 0)
        return [rule for parent in reversed(above[1 : top + 1]) for rule in _rules_in(parent)]
    return []


def _is_prose(path: Path) -> bool:
    """Return whether a file of a folder is one that is read; an unreadable one is reported when it is read."""
    if not path.is_file():
        return False
    if suffix := format_suffix(path):
        format = format_named(path)
        if format is not None and format.holds == "pages":
            return suffix == path.suffix.lower()  # not compressed
        return suffix in folder_suffixes() or suffix.startswith(".xml-p")  # a part of a dump, of pages
    if path.name.lower() in _NO_PROSE:
        return False
    try:
        head = read_head(path)
    except CorpusError:
        return True
    return b"\0" not in head and not head.lstrip().startswith(_CODE_BEGINS)


def _counted(others: Counter[str]) -> str:
    """Return the line that counts files in other formats, by their endings."""
    most = sorted(others.items(), key=lambda item: (-item[1], item[0]))[:_KINDS]
    kinds = [f"{count:,} {ending}" for ending, count in most]
    more = others.total() - sum(count for _, count in most)
    listed = ", ".join([*kinds, *([f"{more:,} more"] if more else [])])
    return f"{counted(others.total(), 'file')} in other formats ({listed}); name a text file explicitly to read it"


def _uninstalled(suffixes: Counter[str], cure: str) -> str:
    """Return the line on files in formats that need more packages."""
    kinds = ", ".join(f"{count:,} {suffix}" for suffix, count in sorted(suffixes.items()))
    return f"{counted(suffixes.total(), 'file')} ({kinds}) can be read after {cure}"


def nothing_in(folder: str | PathLike[str], listing: Listing) -> str:
    """Return the error of a folder without files that are read."""
    there = "; ".join([*listing.unread.values(), *listing.left_out]) or "name its files"
    return f"{folder}: no file in this folder ends in {', '.join(folder_suffixes())}: {there}"
