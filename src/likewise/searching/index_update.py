"""Indexing of files: passages, their vectors and their words, updated by what has changed."""

from __future__ import annotations

import os
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.given import GivenTexts, TextSource, given_texts
from likewise.corpus.lines_and_rows import digest_of
from likewise.encoder.location import check_cross_encoder
from likewise.errors import counted
from likewise.inference.deferred import DeferredEncoder
from likewise.inference.engines.engine import EngineName, EnginePrecision
from likewise.inference.exported import Facts
from likewise.inference.text_encoder import Item, TextEncoder
from likewise.inference.tokens import FEW
from likewise.retrieval.pipeline import WITHOUT_TOKENS, Given, Pipeline, pipeline_of
from likewise.runs.arguments import checked
from likewise.runs.job import Job, Resume, check_target, open_job, read_record
from likewise.runs.on_ray import RayExecutor, cluster, loadable
from likewise.runs.orderly_stop import StopRequest, orderly_stop
from likewise.runs.overlap import finished_behind, in_order, read_ahead
from likewise.runs.parts import checksum
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress
from likewise.searching.fields import kinds_of, merged
from likewise.searching.geometry import Geometry, build, new_name
from likewise.searching.leftovers import GRACE, left_in
from likewise.searching.maxsim import TokenCodec, token_weights
from likewise.searching.passages import IndexedPassage, Splitting, files_of
from likewise.searching.search_index import Index, check_version, encoder_of, finished_record, precision_of
from likewise.searching.table import SHOWN, Encoded, SearchError, Table, check_fields, number_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

WINDOW = 1024
"""Passages that are encoded and written at a time: a stop waits for one of these."""
WORDS = 180
"""Of a passage at most, if the model reads that much."""
_TOKENS_A_WORD = 1.4
APPROXIMATE = 200_000
"""Passages from which an approximate index of the vectors is built: an exact search reads 1.5 kB for each of them."""
_TRIED = 100
_FITTED = 256
"""Passages whose tokens say in which form those of all are stored."""
_UNWEIGHED = 0.01
"""Share of passages, texts and files that may change before the weights of tokens are found anew."""
_COUNTED = 10_000
"""Passages by which the weights of tokens are found, all of a smaller index: 2 s."""
Entry = tuple[str, str, bool, IndexedPassage]
"""Source, file, whether it is the last of its source, and the passage."""


class Changed(NamedTuple):
    """The changes that an update has made: see `Indexed`."""

    encoded: int = 0
    added: int = 0
    removed: int = 0
    skipped: tuple[str, ...] = ()


class Indexed(Index):
    """An index as `index` leaves it: an `Index` to search in, and what was done.

    Attributes:
        encoded: passages that were encoded by this call; the others were there.
        added, removed: files, or texts, that were new or changed, and those that changed or are gone.
        skipped: files of folders that were left out: a line that counts those that are not prose, and one for each that
            cannot be read, with the reason; also one for each file that changed while it was read.
        recall: of the approximate index, if there is one: the share of the 10 exact nearest that it finds.
    """

    def __init__(self, path: Path, model: Any, found: Changed, recall: float | None) -> None:
        super().__init__(path, model)
        self.encoded, self.added, self.removed, self.skipped = found
        self.recall = recall


@checked
def index(
    texts: GivenTexts,
    *,
    model: SentenceTransformer | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str],
    corpus_options: CorpusOptions | None = None,
    words: int | None = None,
    metadata: Sequence[str] | None = None,
    language: str = "English",
    keep: bool = False,
    approximate: int = APPROXIMATE,
    pipeline: Given | None = None,
    vectors_from: str | os.PathLike[str] | None = None,
    engine: EngineName = "auto",
    precision: EnginePrecision | None = None,
    on: str | None = None,
    workers: int | None = None,
    quiet: bool = False,
    resume: Resume = "auto",
    overwrite: bool = False,
) -> Indexed:
    """Index the passages of files, or texts, for search by meaning and by words.

    Run it again after files have changed: only new passages are encoded, and those of files that are gone or no longer
    named are removed. A stopped run is resumed. Other processes can search the index meanwhile: they see it as it was
    before, until everything is in.

        rows = [{"id": "a7", "text": "The valve does not close.", "year": 2024}, ...]
        found = likewise.index(rows, model="bundled:minilm", out="my.index")
        found.search("leaking valve", where="year >= 2020")

    Args:
        texts: files, folders, or patterns: text, Markdown, JSONL, CSV, Parquet, articles, MediaWiki dumps. Of a folder,
            hidden files and other formats are left out. In Python also texts, a list, a column or any other iterable,
            or rows with a text each, mappings or a DataFrame; a row's field `id`, or the place of a text from 0, names
            it.
        model: the encoder, or what `load` takes; None for that of the index.
        out: the folder of the index.
        corpus_options: how the files are read; `field` names the text of JSONL, CSV and Parquet rows.
        words: most words in a passage; by default 180, or fewer if the model reads less.
        metadata: fields of such rows to keep with their passages, for filters; by default all whose values are numbers,
            short texts, or true or false.
        language: the language of the text, for the stems of words.
        keep: keep the passages of files and texts that are not named.
        approximate: passages from which an approximate index of the vectors is built.
        pipeline: what a search does: a `Pipeline`, options of one, or a TOML file with them; None keeps that of the
            index, by default the weights measured in docs/guides/search.md.
        vectors_from: another index by the same model, such as one that `choose` has made: the vectors of texts that
            it holds are taken from it.
        engine, precision: as in `load`; None for the precision of the index, float32 for a new one. "close" is two to
            three times as fast where the processor has bfloat16, and changes some hits. A query is
            always encoded in float32.
        on: 'ray', or the address of a Ray cluster, whose workers encode; this process reads and writes.
        workers: number of workers of the Ray cluster; None for one on each core.
        quiet: show nothing on standard error.
        resume: True insists on a stopped run to resume.
        overwrite: make the index again if it was made with another model or other options.

    Returns:
        The index, which can be searched, and what was done.

    Raises:
        CorpusError: a file cannot be read, or there is no text in any.
        JobError: the folder holds other files, or an index with another model or other options.
        SearchError: no model is named, or the index is damaged.
        MissingExtraError: LanceDB is not installed.
    """
    target, progress = Path(out), Progress(quiet)
    check_target(target)
    with ExitStack() as stack:
        given = given_texts(texts, corpus_options, stack=stack)
        change = _Change.of(given, target, keep)
        precision = precision or precision_of({} if overwrite else read_record(target))
        encoder = encoder_of(target, model, engine=engine, precision=precision)
        settings: dict[str, Any] = {"words": words, "metadata": metadata, "language": language}
        if not given.in_memory:
            read = given.options
            settings |= {"split": read.split, "field": read.field, "encoding": read.encoding}
        found, recall = _updated(
            target,
            encoder,
            change,
            settings,
            progress,
            approximate=approximate,
            pipeline=pipeline,
            vectors_from=vectors_from,
            precision=precision,
            on=on,
            workers=workers,
            resume=resume,
            overwrite=overwrite,
        )
    return Indexed(target, model, found, recall)


def add(
    opened: Index, encoder: DeferredEncoder, texts: GivenTexts, options: CorpusOptions | None, progress: Progress
) -> Changed:
    """Add texts, rows or files to an index; those of an id, or a file, that is there take the place of the old ones."""
    with ExitStack() as stack:
        given = given_texts(texts, options, first=opened.table.next_id(), stack=stack)
        return _updated(opened.path, encoder, _Change.of(given, opened.path, keep=True), {}, progress)[0]


def delete(opened: Index, encoder: DeferredEncoder, ids: Sequence[str], progress: Progress) -> int:
    """Delete the texts and rows of ids, and return how many there were."""
    return _updated(opened.path, encoder, _Change(deleted=ids), {}, progress)[0].removed


@dataclass(frozen=True)
class _Change:
    """The change of an index.

    Attributes:
        given: what is indexed; None if nothing is.
        named, walked, others: as `files_of` returns them.
        keep: what is not named stays.
        deleted: ids that are deleted.
    """

    given: TextSource | None = None
    named: Sequence[Path] = ()
    walked: Sequence[Path] = ()
    others: str = ""
    keep: bool = False
    deleted: Sequence[str] = ()

    @classmethod
    def of(cls, given: TextSource, target: Path, keep: bool) -> _Change:
        """Return the change by what is given."""
        if given.in_memory:
            return cls(given, keep=keep)
        named, walked, others = files_of(given.entries, target)
        return cls(given, named, walked, others, keep)


def _updated(
    target: Path,
    encoder: DeferredEncoder,
    change: _Change,
    asked: Mapping[str, Any],
    progress: Progress,
    *,
    approximate: int = APPROXIMATE,
    pipeline: Given | None = None,
    vectors_from: str | os.PathLike[str] | None = None,
    precision: EnginePrecision | None = None,
    on: str | None = None,
    workers: int | None = None,
    resume: Resume = "auto",
    overwrite: bool = False,
) -> tuple[Changed, float | None]:
    """Change an index, and return what was done, and `recall` of `Indexed`.

    Args:
        asked: settings of the plan; those that are missing are those of the index.
    """
    if on:
        loadable(encoder.name)
    record = {} if overwrite else read_record(target)
    check_version(target, record if record.get("plan", {}).get("job") == "index" else {})
    left = left_in(target)
    facts = encoder.facts
    usual = None if facts.tokens else WITHOUT_TOKENS
    steps = pipeline_of(pipeline, Pipeline(**record["pipeline"]) if record else usual)
    if steps.reranker:
        check_cross_encoder(steps.reranker)
    settings = _settings(asked, record, facts)
    metadata = settings["metadata"]
    if metadata is not None:
        check_fields(metadata)
    language = settings["language"]
    plan = Plan("index", settings, inputs={"model": facts.fingerprint})
    shared = Shared.open(Path(vectors_from), plan) if vectors_from is not None else None
    with ExitStack() as stack:
        number = stack.enter_context(cluster(on, workers))
        job = stack.enter_context(open_job(target, plan, resume=resume, overwrite=overwrite, grows=True))
        stop = stack.enter_context(orderly_stop(progress))
        table = _table(job, facts.dimension, record, bool(steps.tokens and facts.tokens))
        job.note(table=table.name, left=left)
        if steps.tokens and not table.has_tokens:
            steps = steps.updated(tokens=0)
            progress.tell(f"the tokens of passages are not compared: {_no_tokens(target, facts.tokens)}")
        reading = change.given.options if change.given else CorpusOptions()
        splitting = Splitting(settings["words"], reading)
        codec = _codec(job, table, record)
        update = _Update(table, encoder, number, splitting, stop, job, metadata, change.others, codec, shared)
        update.id_kind = record.get("ids", "")
        found = update.run(change)
        table.index_words(language)
        if table.rows >= approximate:
            progress.tell("building the approximate index of the vectors")
            table.index_vectors()
        table.optimize()
        recall = recall_of(table) if table.is_approximate else None
        codec = update.codec
        unweighed = record.get("unweighed", 0) + sum(found[:3])
        if codec is not None and table.rows and (unweighed > _UNWEIGHED * table.rows or len(codec.weights) == 1):
            unweighed = 0
            if not (update.counted and len(update.ids) == table.rows <= _COUNTED):
                reader = update.vectors or encoder.opened("document", few=True)
                update.ids = reader.items(table.texts(_COUNTED))
            codec = replace(codec, weights=token_weights(update.ids))
        geometry = _geometry(job, table, steps, stop, record, codec)
        table.finish()
        query = {"prompt": facts.prompt("query"), "tokenizer": facts.tokenizer, "truncate_dim": facts.truncate_dim}
        known = {"table": table.name, "version": table.version, "geometry": geometry, "pipeline": steps.to_dict()}
        now = time.time()
        before = {name: since for name, since in left.items() if name not in (f"{table.name}.lance", geometry)}
        known["left"] = {name: since for name, since in before.items() if now - since <= GRACE}
        known |= {
            "ids": update.id_kind,
            "unweighed": unweighed,
            "model": encoder.name,
            "precision": precision or precision_of(record),
            "engine": update.vectors.engine if update.vectors is not None else record.get("engine", ""),
            "passages": table.rows,
            "query": query,
        }
        job.finish(known)
        table.clean({name: since for name, since in before.items() if now - since > GRACE})
    return found, recall


def _settings(asked: Mapping[str, Any], record: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """Return the settings of the plan: those that are asked for, of the index, or the default ones."""
    most = int(min(WORDS, max(8, (facts.longest or 2 * WORDS) / _TOKENS_A_WORD)))
    usual = {"words": most, "metadata": None, "language": "English", "split": "auto", "field": None}
    usual["encoding"] = "utf-8"
    before = record.get("plan", {}).get("options", {})
    found = {name: asked.get(name, before.get(name, value)) for name, value in usual.items()}
    found["words"] = found["words"] or most
    if found["metadata"] is None:
        found["metadata"] = before.get("metadata")
    return {
        **found,
        "metadata": None if found["metadata"] is None else list(found["metadata"]),
        "prompt": facts.prompt("document"),
        "truncate_dim": facts.truncate_dim,
    }


def recall_of(table: Table, count: int = 10) -> float:
    """Return the share of the exact nearest passages that the approximate search finds, for 100 of the passages."""
    found, wanted = 0, 0
    for vector in table.sample(_TRIED):
        exact, fast = (set(table.nearest(vector, count, exact=exact)[0].tolist()) for exact in (True, False))
        found, wanted = found + len(exact & fast), wanted + len(exact)
    return found / max(1, wanted)


class Shared(NamedTuple):
    """An index whose vectors another one takes, where it has the same text.

    Attributes:
        table: its passages.
        codec: the form of their tokens; None if none are stored.
    """

    table: Table
    codec: TokenCodec | None

    @classmethod
    def open(cls, path: Path, plan: Plan) -> Shared:
        """Open an index that is finished.

        Raises:
            SearchError: there is no such index, or its vectors are not those that the plan would make.
        """
        record = finished_record(path)
        before = record["plan"]
        deciding = [(before.get("options", {}).get(name), plan.options[name]) for name in ("prompt", "truncate_dim")]
        if before["inputs"].get("model") != plan.inputs["model"] or any(old != new for old, new in deciding):
            raise SearchError(
                f"{path} was made with another model: its vectors cannot be used. Leave out --vectors-from"
            )
        return cls(Table(path, record["table"], record["version"]), TokenCodec.open(path / record["geometry"]))

    def stores_as(self, codec: TokenCodec | None) -> bool:
        """Return whether tokens are stored, in the same form."""
        if codec is None or self.codec is None:
            return False
        parts = ("directions", "mean", "step")
        return all(np.array_equal(getattr(codec, one), getattr(self.codec, one)) for one in parts)

    def known(self, keys: Sequence[str], tokens: bool) -> dict[str, Encoded]:
        """Return the vectors, and the tokens if they are wanted, of texts by key."""
        found = self.table.known(keys)
        return found if tokens else {key: (vector, b"") for key, (vector, _) in found.items()}


@dataclass
class _Update:
    """The update of a table by what has changed; `workers` of a cluster encode, or 0 for none."""

    table: Table
    encoder: DeferredEncoder
    workers: int
    splitting: Splitting
    stop: StopRequest
    job: Job  # whose work holds what a run that is resumed must know
    metadata: Sequence[str] | None = ()  # fields that are kept; None for all
    others: str = ""  # files of folders that are not prose
    codec: TokenCodec | None = None  # of the tokens, fitted when there is something to encode
    shared: Shared | None = None  # whose vectors are taken where it has the same text
    skipped: dict[str, str] = field(default_factory=dict)  # source to the reason
    changed: dict[str, str] = field(default_factory=dict)  # and those that are in, but as they were for a moment
    states: dict[str, tuple[int, ...]] = field(default_factory=dict)  # of the files, before they were read
    encoded: int = 0
    added: int = 0
    bar: Any = None
    pending: deque[dict[str, Encoded]] = field(default_factory=deque)  # by key, what may not be in the table yet
    vectors: Any = None  # a TextEncoder, opened when there is something to encode
    id_kind: str = ""  # "int" as long as all ids are whole numbers, "text" otherwise
    stale: dict[str, None] = field(default_factory=dict)  # sources whose ids were given anew
    wanted: array[int] = field(default_factory=lambda: array("Q"))  # the numbers of sources that were given

    seen: set[int] | None = None  # the beginnings of the keys of this run, if the table was empty before it
    ids: list[Item] = field(default_factory=list)  # of the tokens of all passages, if these are few and encoded here

    def __post_init__(self) -> None:
        self.counted = not (self.workers or self.table.rows)
        self.seen = None if self.table.rows else set()
        self.there = self.table.sources()
        if self.shared is not None and self.table.has_tokens:
            if self.codec is None and self.shared.codec is not None:
                self.codec = replace(self.shared.codec, weights=np.ones(1, dtype=np.float32))  # those of its own text
                self.codec.save(self.job.work)
            if not self.shared.stores_as(self.codec):
                self.shared = None

    def run(self, change: _Change) -> Changed:
        """Change the table."""
        if change.given is None:
            return Changed(removed=self.table.remove_ids(change.deleted))
        if change.given.in_memory:
            return self._texts(change.given, change.keep)
        return self._files(list(change.named), list(change.walked), change.keep)

    def _texts(self, given: TextSource, keep: bool) -> Changed:
        """Bring the table in line with texts, or add them."""
        self._fields([given.path])
        self.id_kind = self.id_kind if keep else ""
        self._written(lambda: self._windows_of_texts(given.path, keep), given.path.stat().st_size)
        wanted = np.sort(np.frombuffer(self.wanted, dtype=np.uint64))
        stale = list(self.stale) if keep else self.table.all_but(wanted)
        if not self.table.rows or len(wanted) == 0:
            raise CorpusError(f"no text to index in {' '.join(given.names)}: give texts with words")
        self.table.remove(stale)
        return Changed(self.encoded, self.added, len(stale))

    def _fields(self, paths: Iterable[Path]) -> None:
        """Make columns for the fields of rows that are kept."""
        kinds: dict[str, Any] = {}
        for path in paths if self.metadata is None or self.metadata else ():
            with suppress(CorpusError):  # it is told when the file is read
                found = kinds_of([path], self.splitting.options, self.metadata, SHOWN)
                kinds |= {name: merged(kinds.get(name, kind), kind) for name, kind in found.items()}
        self.table.extend(kinds)
        self.splitting = replace(self.splitting, metadata=self.table.metadata)

    def _windows_of_texts(self, path: Path, keep: bool) -> Iterator[list[Entry]]:
        """Yield the passages of texts that are not in the table yet, in pieces of about `WINDOW`."""
        rows: dict[str, list[IndexedPassage]] = {}
        held = 0
        for _, group in groupby(self.splitting.read(path), attrgetter("line")):
            passages = list(group)
            first = passages[0]
            values = {
                name: one for name, one in zip(self.splitting.metadata, first.metadata, strict=True) if one is not None
            }
            said = [str(first.id), first.title, *(one.text for one in passages), repr(sorted(values.items()))]
            source = digest_of("\0".join(said)).hex()
            self.wanted.append(number_of(source))
            self._saw(first)
            rows[source] = passages
            held += len(passages)
            if held >= WINDOW:
                yield self._fresh(rows, keep)
                rows, held = {}, 0
        if rows:
            yield self._fresh(rows, keep)

    def _fresh(self, rows: Mapping[str, list[IndexedPassage]], keep: bool) -> list[Entry]:
        """Return the passages of those texts that are not in the table yet; each of these comes once, by its id."""
        if keep:
            ids = [str(passages[0].id) for passages in rows.values()]
            self.stale |= dict.fromkeys(self.table.others(ids, list(rows)))
        there = self.table.complete(list(rows))
        self.added += len(rows) - len(there)
        return [
            (source, "", place == len(passages), replace(one, line=0))
            for source, passages in rows.items()
            if source not in there
            for place, one in enumerate(passages, start=1)
        ]

    def _saw(self, passage: IndexedPassage) -> None:
        """Take note of the kind of an id."""
        if passage.id is not None and self.id_kind != "text":
            self.id_kind = "int" if isinstance(passage.id, int) else "text"

    def _written(self, windows: Callable[[], Iterator[list[Entry]]], size: int) -> None:
        """Encode and write windows of passages, of texts with `size` bytes in all.

        While a window is encoded, the next one is read in a thread, and the one before is written in another.
        """
        with self.stop.progress.bar("indexing") as bar:
            self.bar = bar

            def begun() -> Iterator[Callable[[], int]]:
                before = 0
                for window, following in pairwise(chain(read_ahead(filter(None, windows())), [None])):
                    assert window is not None
                    if following is None:
                        bar.update(total=before + len(window))
                    elif not bar.total:
                        bytes_of_window = sum(len(one.text.encode("utf-8", "replace")) for *_, one in window)
                        bar.update(total=max(len(window), size * len(window) // bytes_of_window))
                    before += len(window)
                    yield self._begun(window, bar.total or 0)

            done = 0
            for written in in_order(begun(), 2 * self.workers) if self.workers else finished_behind(begun()):
                done += written
                self.pending.popleft()
                if self.workers:
                    bar.update(done=done)
                self.stop.check(f"after {counted(done, 'passage')}")

    def _files(self, named: list[Path], walked: list[Path], keep: bool) -> Changed:
        """Bring the table in line with the files."""
        for path in [*named, *walked]:
            if not _is_text(str(path)):
                shown = os.fsencode(path).decode("utf-8", "replace")
                reason = f"{shown}: this name is not UTF-8: rename the file"
                if path in named:
                    raise CorpusError(reason)
                self.skipped[os.fsencode(path).hex()] = reason
        walked = [path for path in walked if _is_text(str(path))]
        wanted: dict[str, Path] = {}
        for path in [*walked, *named]:
            try:
                state = _state(path)
                # A source is a path with its content.
                source = digest_of(f"{path.resolve()}\0{checksum(path)}").hex()
            except OSError as error:
                reason = f"{path}: it cannot be read ({error.strerror}): check its rights, or leave it out"
                if path in named:
                    raise CorpusError(reason) from None
                self.skipped[os.fsencode(path).hex()] = reason
            else:
                wanted[source], self.states[source] = path, state
        fresh = {one: path for one, path in wanted.items() if one not in self.there or not self.there[one][2]}
        self._fields(fresh.values())
        size = sum(sum(self.states[one][:1]) for one in fresh)
        self._written(lambda: self._windows(fresh, set(named)), size)
        files = {str(path.resolve()) for path in wanted.values()}
        stale = [
            one for one, (file, *_) in self.there.items() if one not in wanted and not (keep and file not in files)
        ]
        if not keep:
            stale += self.table.sources_of_texts()
        reasons = [*([self.others] if self.others else []), *self.skipped.values(), *self.changed.values()]
        if not set(self.table.sources()) - {*stale, *self.skipped} and not (keep and self.table.rows):
            first = f"{next(iter(wanted.values()))}: " if wanted else ""
            raise CorpusError(f"{first}no text to index in {counted(len(wanted), 'file')}{_because(reasons)}")
        self.table.remove([*stale, *self.skipped])
        for source in self.changed:
            self.table.rename(source, uuid4().hex)  # is that of no file, and so the next run reads it again
        return Changed(self.encoded, self.added, len(stale), tuple(reasons))

    def _windows(self, fresh: Mapping[str, Path], named: set[Path]) -> Iterator[list[Entry]]:
        """Yield the passages of files that are not in the table yet, in pieces of `WINDOW`."""
        window: list[Entry] = []
        for source, path in fresh.items():
            before = self.there[source][1] if source in self.there else 0  # written before a stop
            passages = pairwise(chain(self.splitting.read(path), [None]))
            try:
                for number, (passage, following) in enumerate(passages):
                    self.added += not number
                    if passage:
                        self._saw(passage)
                    if passage and number >= before:
                        window.append((source, str(path.resolve()), following is None, passage))
                    if len(window) == WINDOW:
                        yield window
                        window = []
                if _state(path) != self.states[source]:
                    change = f"{path}: it changed while it was read: index again to have it as it is now"
                    self.changed[source] = change
            except CorpusError as reason:
                if path in named:
                    raise
                self.skipped[source] = str(reason)
        if window:
            yield window

    def _begun(self, window: list[Entry], total: int) -> Callable[[], int]:
        """Begin to encode the passages whose text is not in the table, and return what writes all and counts them."""
        keys = [digest_of(passage.encoded).hex() for *_, passage in window]
        known = self._in_table(keys)
        for before in self.pending:
            known |= {key: before[key] for key in keys if key in before}
        if self.shared is not None and (missing := [key for key in keys if key not in known]):
            known |= self.shared.known(missing, self.table.has_tokens)
        new = {key: one.encoded for key, (*_, one) in zip(keys, window, strict=True) if key not in known}
        rows = self._encode(list(new.values()), total) if new else tuple
        self.encoded += len(new)
        self.pending.append(known)
        if not self.workers:
            known.update(zip(new, rows(), strict=True))
            self.bar.advance(len(window) - len(new))

        def write() -> int:
            if self.workers:
                known.update(zip(new, rows(), strict=True))
            self.table.add(window, keys, [known[key] for key in keys])
            return len(window)

        return write

    def _in_table(self, keys: Sequence[str]) -> dict[str, Encoded]:
        """Look up the texts, by key, whose vectors are in the table already.

        Where all of the table went through this run, it is asked only for texts that come again: a look at the whole
        table for each window would take longer than a light encoder.
        """
        if self.seen is None:
            return self.table.known(keys)
        numbers = [int(key[:16], 16) for key in keys]
        again = [key for key, number in zip(keys, numbers, strict=True) if number in self.seen]
        self.seen.update(numbers)
        return self.table.known(again) if again else {}

    def _encode(self, texts: list[str], total: int) -> Callable[[], Iterable[Encoded]]:
        """Return a function that gives the vectors and the tokens of texts, which a cluster encodes meanwhile."""
        if self.vectors is None:
            own, notes = self.encoder, self.job.notes
            before = notes.get("engine", "") if notes.get("asked") == own.asked else ""
            if self.workers:
                self.vectors = own.loaded("document")
            else:
                few = max(total, len(texts)) < FEW
                self.vectors = own.opened("document", self.table.has_tokens, few=few, before=before)
            self.vectors.choose(texts, total, self.stop.progress, before)
            self.job.note(engine=self.vectors.engine, asked=own.asked)
        if self.table.has_tokens and self.codec is None:
            return self._fitted(texts)
        if self.workers:
            return RayExecutor().submit(_encoded, self.vectors.elsewhere(), texts, self.codec).result
        rows = self._here(texts)
        return lambda: rows

    def _here(self, texts: list[str]) -> list[Encoded]:
        """Return the vectors and the tokens of texts, encoded by this process."""
        if self.codec is None:
            return [(vector, b"") for vector in self.vectors(texts, self.bar.advance)]
        items = self._counted(self.vectors.items(texts))
        return list(zip(*self.vectors.with_tokens(items, self.codec.pack, self.bar.advance), strict=True))

    def _counted(self, items: list[Item]) -> list[Item]:
        """Return items, which are kept if they may be all that the weights of tokens are found by."""
        if self.counted and len(self.ids) <= _COUNTED:
            self.ids += items
        return items

    def _fitted(self, texts: list[str]) -> Callable[[], Iterable[Encoded]]:
        """Return the same, after the form of the tokens is found by some of the texts, which are encoded once too."""
        some = dict.fromkeys(np.linspace(0, len(texts) - 1, num=min(_FITTED, len(texts))).astype(int).tolist())
        items = self._counted(self.vectors.items([texts[i] for i in some]))
        vectors, tokens = self.vectors.with_tokens(items, lambda rows: rows.astype(np.float32))
        self.bar.advance(0 if self.workers else len(some))
        self.codec = TokenCodec.fit(tokens)
        self.codec.save(self.job.work)
        first = dict(zip(some, zip(vectors, map(self.codec.pack, tokens), strict=True), strict=True))
        if not (rest := [i for i in range(len(texts)) if i not in first]):
            return lambda: first.values()
        others = self._encode([texts[i] for i in rest], len(texts))
        return lambda: [row for _, row in sorted((first | dict(zip(rest, others(), strict=True))).items())]


def _state(path: Path) -> tuple[int, ...]:
    """Return values that change with the content of a file, its size first; an empty list if it is gone."""
    try:
        found = path.stat()
        return found.st_size, found.st_mtime_ns, found.st_ino
    except OSError:
        return ()


def _because(reasons: Sequence[str]) -> str:
    """Return the first reason for which files were left out, to end a sentence with."""
    return f": {reasons[0]}" if reasons else ": give files with text"


def _is_text(name: str) -> bool:
    """Return whether a name can be written as UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _encoded(opens: Callable[[], TextEncoder], texts: list[str], codec: TokenCodec | None) -> list[Encoded]:
    """Return the vectors and the tokens of texts; called by a worker of a cluster."""
    encoder = opens()
    if codec is None:
        return [(vector, b"") for vector in encoder(texts)]
    return list(zip(*encoder.with_tokens(encoder.items(texts), codec.pack), strict=True))


def _no_tokens(target: Path, length: int) -> str:
    """Return why there are none."""
    if not length:
        return "the model has no vectors of them"
    return f"{target} holds none, so that only `likewise index ... --overwrite` can add them"


def _codec(job: Job, table: Table, record: Mapping[str, Any]) -> TokenCodec | None:
    """Return the form in which the tokens of a table are stored: of the stopped run, or of the index.

    A run that was stopped before it had written a passage finds the form again: the texts that say it share their
    batches, and a text that is encoded among others may differ in the last bit.
    """
    if not table.has_tokens:
        return None
    stopped = [job.work] if table.rows else []
    before = [job.target / record["geometry"]] if record.get("table") == table.name and record.get("geometry") else []
    return next(filter(None, map(TokenCodec.open, [*stopped, *before])), None)


def _table(job: Job, dimension: int, record: Mapping[str, Any], tokens: bool) -> Table:
    """Return the table to write to: of the stopped run, of the index, or a new one."""
    name = job.notes.get("table") or record.get("table")
    if name and (job.target / f"{name}.lance").is_dir():
        return Table(job.target, name)
    return Table.create(job.target, f"passages-{uuid4().hex[:8]}", dimension, tokens)


def _geometry(
    job: Job, table: Table, steps: Pipeline, stop: StopRequest, record: Mapping[str, Any], codec: TokenCodec | None
) -> str:
    """Write the geometry of the finished passages and the form of their tokens; return the name of the folder."""
    before = None
    if record.get("table") == table.name and record.get("geometry"):
        with suppress(SearchError):
            before = Geometry.open(job.target / record["geometry"])
    name = new_name()
    build(table, steps.nearest, stop, before).save(job.target / name)
    if codec is not None:
        codec.save(job.target / name)
    return name
