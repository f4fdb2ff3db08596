"""The change of an index: new, unchanged and deleted files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from likewise.corpus.clean_text import digest_of
from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.files import is_folder
from likewise.corpus.folders import Listing, list_folder, nothing_in
from likewise.corpus.inputs import TextSource
from likewise.corpus.sources import check_name, find_files
from likewise.errors import unread
from likewise.inference.handle import Facts
from likewise.runs.whole_files import Record, Values, checksum

WORDS = 180
"""The most words in a passage, if the model reads that much."""
_TOKENS_A_WORD = 1.4
_CURE = "check its permissions, or exclude it"
State = tuple[int, ...]
"""Size, time and number of a file; empty if it is gone."""


@dataclass(frozen=True)
class Change:
    """The change of an index.

    Attributes:
        given: Texts to index; None for none.
        named: Files that were named.
        listings: Listings of the named folders.
        keep: Whether passages of unnamed files stay.
        deleted: Ids to delete.
    """

    given: TextSource | None = None
    named: Sequence[Path] = ()
    listings: Sequence[Listing] = ()
    keep: bool = False
    deleted: Sequence[str] = ()

    @classmethod
    def of(cls, given: TextSource, keep: bool) -> Change:
        """Return the change by what is given."""
        if given.in_memory:
            return cls(given, keep=keep)
        named, listings = files_of(given)
        return cls(given, named, listings, keep)

    def next_id(self, before: int) -> int:
        """Return the id of the next text that has none, given that before the change."""
        own = self.given.first + self.given.count if self.given is not None else 0
        return max(own, before if self.keep or self.given is None else 0)


def files_of(given: TextSource) -> tuple[list[Path], list[Listing]]:
    """Return the given files, and the listings of the given folders.

    Raises:
        CorpusError: If a file does not exist, or there is no readable file.
    """
    folders = [path for path in (Path(entry).expanduser() for entry in given.entries) if is_folder(path)]
    named = [entry for entry in given.entries if Path(entry).expanduser() not in folders]
    exclude = given.options.exclude
    files = find_files(named, exclude) if named or not folders else []
    listings = [list_folder(folder, exclude) for folder in folders]
    if not files and not any(listing.files or listing.unread for listing in listings):
        raise CorpusError(nothing_in(folders[0], listings[0]))
    return files, listings


class FilePlan:
    """What an update does with files.

    Args:
        change: Change of the index.
        there: Sources of the index with their file, the number of passages, and whether these are complete.

    Attributes:
        requested: Sources, which are paths with their content, to files.
        fresh: Files that are missing from the index, or incomplete in it.
        states: State of each file before it is read.
        unread: Unreadable files, each with a sentence; their passages stay.
        left_out: Sentences on files that are skipped because of their format or a rule.
        named: Named files, whose errors end the update.

    Raises:
        CorpusError: If a file that was named cannot be read.
    """

    def __init__(self, change: Change, there: Mapping[str, tuple[str, int, bool]]) -> None:
        self.named, self.there = frozenset(change.named), there
        self.requested: dict[str, Path] = {}
        self.states: dict[str, State] = {}
        self.unread = {path: reason for listing in change.listings for path, reason in listing.unread.items()}
        self.left_out = [reason for listing in change.listings for reason in listing.left_out]
        for path in [*(path for listing in change.listings for path in listing.files), *change.named]:
            try:
                check_name(path)
                state = state_of(path)
                source = digest_of(f"{path.resolve()}\0{checksum(path)}").hex()
            except OSError as error:
                self.fail(path, unread(path, error, _CURE))
            except CorpusError as error:
                self.fail(path, str(error))
            else:
                self.requested[source], self.states[source] = path, state
        self.fresh = {one: path for one, path in self.requested.items() if one not in there or not there[one][2]}

    def fail(self, path: Path, reason: str) -> None:
        """Store the reason why a file cannot be read.

        Raises:
            CorpusError: If it was named.
        """
        if path in self.named:
            raise CorpusError(reason) from None
        self.unread[path] = reason

    @property
    def size(self) -> int:
        """The bytes of the files that are read."""
        return sum(sum(self.states[source][:1]) for source in self.fresh)

    def stale(self, keep: bool) -> list[str]:
        """Return the sources of the index that have changed, no longer exist, or are no longer listed.

        Args:
            keep: Whether to keep passages that are no longer listed.
        """
        files = {str(path.resolve()) for path in self.requested.values()}
        unread = [_resolved(path) for path in self.unread]

        def stays(file: str) -> bool:
            return (keep and file not in files) or any(map(Path(file).is_relative_to, unread))

        return [source for source, (file, *_) in self.there.items() if source not in self.requested and not stays(file)]


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a path that is too long, or a link that leads to itself
        return path.absolute()


def state_of(path: Path) -> State:
    """Return values that change with a file, beginning with its size; an empty tuple if there is no file."""
    try:
        status = path.stat()
        return status.st_size, status.st_mtime_ns, status.st_ino
    except OSError:
        return ()


def settings_of(requested: Values, before: Values, facts: Facts) -> Record:
    """Return the settings of the plan: requested settings, settings of the index, or defaults."""
    most = int(min(WORDS, max(8, (facts.longest or 2 * WORDS) / _TOKENS_A_WORD)))
    usual = {"words": most, "metadata": None, "language": "English", "split": "auto", "field": None}
    settings = {name: requested.get(name, before.get(name, value)) for name, value in usual.items()}
    settings["words"] = settings["words"] or most
    if settings["metadata"] is None:
        settings["metadata"] = before.get("metadata")
    return {
        **settings,
        "metadata": None if settings["metadata"] is None else list(settings["metadata"]),
        "prompt": facts.prompt("document"),
        "truncate_dim": facts.truncate_dim,
    }
