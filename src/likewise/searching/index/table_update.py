"""The update of the table of an index: passages of new files and texts are written, former passages removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from likewise.corpus.clean_text import digest_of
from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.counts import CorpusReport, shortened
from likewise.corpus.inputs import TextSource
from likewise.errors import counted
from likewise.runs.prefetch import in_order
from likewise.runs.progress import StopRequest
from likewise.searching.index.fields import kinds_of
from likewise.searching.index.index_plan import Change, FilePlan, state_of
from likewise.searching.index.passage_encoder import PassageEncoder
from likewise.searching.index.passages import IndexedPassage, Splitting
from likewise.searching.index.table import HIT_COLUMNS, Table

T = TypeVar("T")
WINDOW = 1024
"""Passages that are encoded and written at a time: a stop waits for one of these."""


class Changed(NamedTuple):
    """The changes that an update has made: see `Indexed`."""

    encoded: int = 0
    added: int = 0
    removed: int = 0
    skipped: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    recall: float | None = None

    def lines(self) -> list[str]:
        """Return the first notes on skipped or converted input, and the number of further notes."""
        reasons = [*self.unread, *(reason for reason in self.skipped if reason not in self.unread)]
        with_kinds = [(": read as " in reason or ", and read as " in reason, reason) for reason in shortened(reasons)]
        return [f"{'reading' if is_read else 'skipped'}: {reason}" for is_read, reason in with_kinds]


@dataclass
class TableUpdate:
    """An update of a table by changed sources.

    Attributes:
        metadata: Stored fields of passages; None for all fields.
        id_kind: "int" as long as all ids are integers, "text" otherwise.
        partial: Partly skipped files with the reasons, which every update repeats.
        added, skipped, unread: See `Changed`.
        stale: Sources of texts with new ids.
        requested: Sources of texts.
        changed: Sources of files that changed while they were read.
        failed: Sources of files that could not be read to their end.
    """

    table: Table
    passages: PassageEncoder
    splitting: Splitting
    stop: StopRequest
    metadata: Sequence[str] | None = ()
    id_kind: str = ""
    partial: dict[str, list[str]] = field(default_factory=dict)
    added: int = 0
    skipped: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    stale: dict[str, None] = field(default_factory=dict)
    requested: set[str] = field(default_factory=set)
    changed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.there = self.table.sources()

    def run(self, change: Change) -> Changed:
        """Update the table to the given sources, and return the changes."""
        if change.given is None:
            return Changed(removed=self.table.remove_ids(change.deleted))
        if change.given.in_memory:
            return self._texts(change.given, change.keep)
        return self._files(change)

    def _done(self, removed: int) -> Changed:
        skipped = (*self.skipped, *self.unread)
        return Changed(self.passages.encoded, self.added, removed, skipped, tuple(self.unread))

    def _texts(self, given: TextSource, keep: bool) -> Changed:
        """Bring the table in line with texts, or add them."""
        self._fields([given.path])
        self.id_kind = self.id_kind if keep else ""
        report = CorpusReport()
        self._written(self._windows_of_texts(given.path, keep, report), given.path.stat().st_size)
        stale = list(self.stale) if keep else self.table.all_but(self.requested)
        if not self.table.rows or not (self.requested or (keep and stale)):
            raise CorpusError(f"no text to index in {' '.join(given.names)}: give texts with words")
        self.table.remove(stale)
        name = "row" if given.rows else "text"
        self.skipped += [note.replace(f"{given.path}:", f"{name} ", 1) for note in report.messages]
        return self._done(len(stale))

    def _fields(self, paths: Iterable[Path]) -> None:
        """Make columns for the fields of rows that are kept."""
        kinds, left_out = kinds_of(paths, self.splitting.options, self.metadata, HIT_COLUMNS)
        for name in sorted({*(self.metadata or ())} - {*kinds, *self.table.metadata}):
            self.skipped.append(f"no row has the field {name!r} of metadata")
            kinds[name] = "text"
        if reasons := ", ".join(f"{name} ({why})" for name, why in left_out.items()):
            self.skipped.append(f"these fields of rows cannot be used in conditions: {reasons}")
        self.table.extend(kinds)
        self.splitting = replace(self.splitting, metadata=self.table.metadata)

    def _windows_of_texts(self, path: Path, keep: bool, report: CorpusReport) -> Iterator[list[IndexedPassage]]:
        """Yield the passages of texts that are not in the table yet, in pieces of about `WINDOW`."""
        rows: dict[str, list[IndexedPassage]] = {}
        size = 0
        for _, group in groupby(self.splitting.read(path, report), attrgetter("line")):
            passages = list(group)
            first = passages[0]
            if not first.text:
                if keep:  # what was known by its id has no text any more
                    self.stale |= dict.fromkeys(self.table.others([str(first.id)], [""]))
                continue
            values = {
                name: one for name, one in zip(self.splitting.metadata, first.metadata, strict=True) if one is not None
            }
            said = [str(first.id), first.title, *(one.text for one in passages), repr(sorted(values.items()))]
            source = digest_of("\0".join(said)).hex()
            self.requested.add(source)
            self._saw(first)
            rows[source] = passages
            size += len(passages)
            if size >= WINDOW:
                yield self._fresh(rows, keep)
                rows, size = {}, 0
        if rows:
            yield self._fresh(rows, keep)

    def _fresh(self, rows: Mapping[str, list[IndexedPassage]], keep: bool) -> list[IndexedPassage]:
        """Return the passages of those texts that are not in the table yet; each of these comes once, by its id."""
        if keep:
            ids = [str(passages[0].id) for passages in rows.values()]
            self.stale |= dict.fromkeys(self.table.others(ids, list(rows)))
        there = self.table.complete(list(rows))
        self.added += len(rows) - len(there)
        return [
            replace(one, line=0, source=source, is_last=place == len(passages))
            for source, passages in rows.items()
            if source not in there
            for place, one in enumerate(passages, start=1)
        ]

    def _saw(self, passage: IndexedPassage) -> None:
        if passage.id is not None and self.id_kind != "text":
            self.id_kind = "int" if isinstance(passage.id, int) else "text"

    def _written(self, windows: Iterator[list[IndexedPassage]], size: int) -> None:
        """Encode and write windows of passages, of texts with `size` bytes in all.

        While a window is encoded, the next one is read in a thread.
        """
        workers = self.passages.workers
        with self.stop.progress.bar("indexing") as bar:
            self.passages.bar = bar

            def begun() -> Iterator[Callable[[], int]]:
                before = 0
                for window, following in pairwise(chain(read_ahead(filter(None, windows)), [None])):
                    assert window is not None
                    if following is None:
                        bar.update(total=before + len(window))
                    elif not bar.total:
                        bytes_of_window = sum(len(one.text.encode("utf-8", "replace")) for one in window)
                        bar.update(total=max(len(window), size * len(window) // bytes_of_window))
                    before += len(window)
                    yield self.passages.begin(window, bar.total or 0)

            done = 0
            for written in in_order(begun(), 2 * workers):
                done += written
                bar.update(done=done)
                self.stop.check(f"after {counted(done, 'passage')}")

    def _files(self, change: Change) -> Changed:
        """Bring the table in line with the files."""
        plan = FilePlan(change, self.there)
        self._fields(plan.fresh.values())
        self._written(self._windows(plan), plan.size)
        stale = plan.stale(change.keep)
        if not change.keep:
            stale += self.table.all_but((), "file = ''")
        requested, fresh = ({str(path) for path in paths.values()} for paths in (plan.requested, plan.fresh))
        if not change.keep:
            self.partial = {file: cause for file, cause in self.partial.items() if file in requested}
        before = (reason for file, cause in self.partial.items() if file in requested - fresh for reason in cause)
        self.unread = [*plan.unread.values(), *self.unread, *before]
        self.skipped = [*plan.left_out, *self.skipped]
        if not set(self.table.sources()) - {*stale, *self.failed} and not (change.keep and self.table.rows):
            first = f"{next(iter(plan.requested.values()))}: " if plan.requested else ""
            reason = next(iter([*self.unread, *self.skipped]), "give files with text")
            raise CorpusError(f"{first}no text to index in {counted(len(plan.requested), 'file')}: {reason}")
        self.table.remove([*stale, *self.failed])
        for source in self.changed:
            self.table.rename(source, uuid4().hex)  # belongs to no file, so that the next run reads it again
        return self._done(len(stale))

    def _windows(self, plan: FilePlan) -> Iterator[list[IndexedPassage]]:
        """Yield the passages of files that are not in the table yet, in pieces of `WINDOW`."""
        window: list[IndexedPassage] = []
        for source, path in plan.fresh.items():
            before = self.there[source][1] if source in self.there else 0  # written before a stop
            report = CorpusReport()
            self.partial.pop(str(path), None)
            passages = pairwise(chain((one for one in self.splitting.read(path, report) if one.text), [None]))
            try:
                for number, (passage, following) in enumerate(passages):
                    self.added += not number
                    if passage:
                        self._saw(passage)
                    if passage and number >= before:
                        file = str(path.resolve())
                        window.append(replace(passage, source=source, file=file, is_last=following is None))
                    if len(window) == WINDOW:
                        yield window
                        window = []
                if state_of(path) != plan.states[source]:
                    self.skipped.append(f"{path}: it changed while it was read: index again to update it")
                    self.changed.append(source)
            except CorpusError as reason:
                plan.fail(path, str(reason))
                self.failed.append(source)
            else:
                if markup := report.dropped.get("markup"):
                    self.skipped.append(f"{path}: {counted(markup, 'line')} of lists, tables and captions are skipped")
                (self.unread if report.is_partial else self.skipped).extend(report.messages)
                if report.is_partial:
                    self.partial[str(path)] = list(report.messages)
        if window:
            yield window


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items, of which the next one is made in a thread meanwhile.

    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    end: Any = object()
    with ThreadPoolExecutor(1, "likewise-reader") as reader:
        following = reader.submit(next, items, end)
        while (item := following.result()) is not end:
            following = reader.submit(next, items, end)
            yield item
