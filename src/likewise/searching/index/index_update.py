"""Indexing of files: passages, their vectors and their words, updated by what has changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from likewise.corpus.clean_text import digest_of
from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.counts import CorpusReport, shortened
from likewise.corpus.inputs import GivenTexts, TextSource, given_texts
from likewise.encoder.location import check_cross_encoder
from likewise.errors import counted
from likewise.inference.engines.engine import EngineName, EnginePrecision
from likewise.inference.handle import ModelHandle, told_cosine
from likewise.runs.job import Job, Plan, Resume, check_target, open_job, read_record, work_of
from likewise.runs.on_ray import cluster, loadable
from likewise.runs.options import checked
from likewise.runs.prefetch import in_order, read_ahead
from likewise.runs.progress import Progress, StopRequest, orderly_stop
from likewise.runs.results import JobError, read_working_file
from likewise.runs.whole_files import Record, Values
from likewise.searching.index.fields import kinds_of
from likewise.searching.index.geometry import Geometry, build
from likewise.searching.index.index_plan import Change, FilePlan, settings_of, state_of
from likewise.searching.index.maxsim import TokenCodec
from likewise.searching.index.passage_encoder import PassageEncoder, Shared
from likewise.searching.index.passages import IndexedPassage, Splitting, TokenLimit
from likewise.searching.index.table import GRACE, OWN_FOLDER, SHOWN, Entry, SearchError, Table, check_fields
from likewise.searching.parts.pipeline import WITHOUT_TOKENS, Given, Pipeline, pipeline_of
from likewise.searching.query.typed_query import known_language
from likewise.searching.search_index import FORMAT, Index, check_version, encoder_of, of_queries, precision_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

WINDOW = 1024
"""Passages that are encoded and written at a time: a stop waits for one of these."""
APPROXIMATE = 200_000
"""Passages from which an approximate index of the vectors is built: an exact search reads 1.5 kB for each of them."""
_TRIED = 100


class Changed(NamedTuple):
    """The changes that an update has made: see `Indexed`."""

    encoded: int = 0
    added: int = 0
    removed: int = 0
    skipped: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    recall: float | None = None

    def lines(self) -> list[str]:
        """Return the lines for the user: the first on what was left out or read differently, and how many more."""
        reasons = [*self.unread, *(reason for reason in self.skipped if reason not in self.unread)]
        told = [(": read as " in reason or ", and read as " in reason, reason) for reason in shortened(reasons)]
        return [f"{'reading' if is_read else 'skipped'}: {reason}" for is_read, reason in told]


class Indexed(Index):
    """An index as `index` leaves it: an `Index` to search in, and what was done.

    Attributes:
        encoded: passages that were encoded by this call; the others were there.
        added, removed: files, or texts, that were new or changed, and those that changed or are gone.
        skipped: sentences on all that was left out, or read in another way than it stands: files in other formats and
            excluded ones, counted; files in another encoding than UTF-8; files that changed while they were read; rows
            without text; and `unread`.
        unread: sentences on what should have been read and could not be: a folder, a file, rows that are none. The
            passages that the index has of such a folder or file stay in it.
        recall: of the approximate index, if there is one: the share of the 10 exact nearest that it finds.
    """

    def __init__(self, path: Path, model: Any, found: Changed) -> None:
        super().__init__(path, model)
        self.encoded, self.added, self.removed, self.skipped, self.unread, self.recall = found


@dataclass(frozen=True)
class _Manner:
    """How an update is made: see `index`."""

    approximate: int = APPROXIMATE
    pipeline: Given | None = None
    vectors_from: str | os.PathLike[str] | None = None
    precision: EnginePrecision | None = None
    on: str | None = None
    workers: int | None = None
    resume: Resume = "auto"
    overwrite: bool = False


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
        texts: files, folders, or patterns: text, Markdown, JSONL, CSV, Parquet, articles, MediaWiki dumps, and with the
            extra `files` documents such as .html, .docx and .pdf. Of a folder, hidden files, other formats and what its
            .gitignore names are left out. In Python also texts, a list, a column or any other iterable,
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
        change = Change.of(given, keep)
        precision = precision or precision_of({} if overwrite else read_record(target))
        encoder = encoder_of(target, model, engine=engine, precision=precision)
        settings: Record = {"words": words, "metadata": metadata, "language": known_language(language)}
        if not given.in_memory:
            settings |= {"split": given.options.split, "field": given.options.field}
        manner = _Manner(approximate, pipeline, vectors_from, precision, on, workers, resume, overwrite)
        found = _updated(target, encoder, change, settings, progress, manner)
    return Indexed(target, model, found)


def add(
    opened: Index, encoder: ModelHandle, texts: GivenTexts, options: CorpusOptions | None, progress: Progress
) -> Changed:
    """Add texts, rows or files to an index; those of an id, or a file, that is there take the place of the old ones."""
    with ExitStack() as stack:
        first = max(opened.table.next_id(), read_record(opened.path).get("next_id", 0))  # no id comes twice
        given = given_texts(texts, options, first=first, stack=stack)
        return _updated(opened.path, encoder, Change.of(given, keep=True), {}, progress)


def delete(opened: Index, encoder: ModelHandle, ids: Sequence[str], progress: Progress) -> int:
    """Delete the texts and rows of ids, and return how many there were."""
    return _updated(opened.path, encoder, Change(deleted=ids), {}, progress).removed


def _updated(
    target: Path,
    encoder: ModelHandle,
    change: Change,
    asked: Values,
    progress: Progress,
    manner: _Manner = _Manner(),
) -> Changed:
    """Change an index, and return what was done.

    Args:
        asked: settings of the plan; those that are missing are those of the index.
    """
    if manner.on:
        loadable(encoder.name)
    record = {} if manner.overwrite else read_record(target)
    check_version(target, record if record.get("plan", {}).get("job") == "index" else {})
    left, facts = _left_in(target), encoder.facts
    if facts.other_similarity and not record:
        progress.tell(told_cosine(facts.other_similarity))
    usual = None if facts.tokens else WITHOUT_TOKENS
    steps = pipeline_of(manner.pipeline, Pipeline(**record["pipeline"]) if record else usual)
    if steps.reranker:
        check_cross_encoder(steps.reranker)
    settings = settings_of(asked, record, facts)
    if settings["metadata"] is not None:
        check_fields(settings["metadata"])
    plan = Plan("index", settings, inputs={"model": facts.fingerprint}, format=FORMAT)
    shared = Shared.open(Path(manner.vectors_from), plan) if manner.vectors_from is not None else None
    with ExitStack() as stack:
        workers = stack.enter_context(cluster(manner.on, manner.workers))
        job = stack.enter_context(open_job(target, plan, resume=manner.resume, overwrite=manner.overwrite, grows=True))
        stop = stack.enter_context(orderly_stop(progress))
        table = _table(job, facts.dimension, record, bool(steps.tokens and facts.tokens))
        job.note(table=table.name, left=left)
        if steps.tokens and not table.has_tokens:
            steps = steps.updated(tokens=0)
            held = f"{target} holds none, so that only `likewise index ... --overwrite` can add them"
            why = held if facts.tokens else "the model has no vectors of them"
            progress.tell(f"the tokens of passages are not compared: {why}")
        codec = _codec(job, table, record)
        passages = PassageEncoder(table, encoder, job, progress, workers=workers, codec=codec, shared=shared)
        limit = TokenLimit(facts.longest, encoder.tokenizer, settings["prompt"]) if facts.longest else None
        options = change.given.options if change.given else CorpusOptions()
        strict = change.given is not None and change.given.in_memory
        splitting = Splitting(settings["words"], options, limit=limit, strict=strict)
        update = _Update(table, passages, splitting, stop, settings["metadata"])
        update.id_kind, update.partial = record.get("ids", ""), dict(record.get("partial", {}))
        changed = update.run(change)
        recall = _index_columns(table, settings["language"], manner.approximate, progress)
        codec, unweighed = passages.weighed(record.get("unweighed", 0) + sum(changed[:3]))
        geometry = _geometry(job, table, steps, stop, record, codec)
        now = time.time()
        before = {name: since for name, since in left.items() if name not in (f"{table.name}.lance", geometry)}
        job.finish(
            {
                "table": table.name,
                "version": table.version,
                "geometry": geometry,
                "pipeline": steps.to_dict(),
                "left": {name: since for name, since in before.items() if now - since <= GRACE},
                "ids": update.id_kind,
                "partial": update.partial,
                "next_id": change.next_id(record.get("next_id", 0)),
                "unweighed": unweighed,
                "model": encoder.name,
                "precision": manner.precision or precision_of(record),
                "engine": passages.engine or record.get("engine", ""),
                "passages": table.rows,
                "query": of_queries(facts),
            }
        )
        table.clean({name: since for name, since in before.items() if now - since > GRACE})
    for line in changed.lines():
        progress.tell(line)
    return changed._replace(recall=recall)


def _left_in(target: Path) -> dict[str, float]:
    """Return the folders of the present index and of those before it, with the time since which none is needed.

    Readers may still use them for a while. Those that a killed run began are in its notes.
    """
    names: Record = {}
    for read in (lambda: read_record(target), lambda: read_working_file(work_of(target) / "notes.json")):
        with suppress(JobError):
            found = read()
            names |= dict.fromkeys([f"{found.get('table')}.lance", str(found.get("geometry"))], time.time())
            names |= found["left"] if isinstance(found.get("left"), dict) else {}
    return {one: since for one, since in names.items() if OWN_FOLDER.fullmatch(one) and isinstance(since, int | float)}


def _index_columns(table: Table, language: str, approximate: int, progress: Progress) -> float | None:
    """Index the words, and the vectors if there are many; return the recall of that index, None if there is none."""
    table.index_words(language)
    if table.rows >= approximate:
        progress.tell("building the approximate index of the vectors")
        table.index_vectors()
    table.optimize()
    return recall_of(table) if table.is_approximate else None


def recall_of(table: Table, count: int = 10) -> float:
    """Return the share of the exact nearest passages that the approximate search finds, for 100 of the passages."""
    found, wanted = 0, 0
    for vector in table.sample(_TRIED):
        exact, fast = (set(table.nearest(vector, count, exact=exact)[0].tolist()) for exact in (True, False))
        found, wanted = found + len(exact & fast), wanted + len(exact)
    return found / max(1, wanted)


@dataclass
class _Update:
    """The update of a table by what has changed."""

    table: Table
    passages: PassageEncoder
    splitting: Splitting
    stop: StopRequest
    metadata: Sequence[str] | None = ()  # fields that are kept; None for all
    added: int = 0
    id_kind: str = ""  # "int" as long as all ids are whole numbers, "text" otherwise
    partial: dict[str, list[str]] = field(default_factory=dict)  # what was left out of files, told by each update
    skipped: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    stale: dict[str, None] = field(default_factory=dict)  # sources of texts whose ids were given anew
    wanted: set[str] = field(default_factory=set)  # sources of texts
    changed: list[str] = field(default_factory=list)  # sources of files that changed while they were read
    failed: list[str] = field(default_factory=list)  # sources of files that could not be read to their end

    def __post_init__(self) -> None:
        self.there = self.table.sources()

    def run(self, change: Change) -> Changed:
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
        stale = list(self.stale) if keep else self.table.all_but(self.wanted)
        if not self.table.rows or not (self.wanted or (keep and stale)):
            raise CorpusError(f"no text to index in {' '.join(given.names)}: give texts with words")
        self.table.remove(stale)
        name = "row" if given.rows else "text"
        self.skipped += [note.replace(f"{given.path}:", f"{name} ", 1) for note in report.told]
        return self._done(len(stale))

    def _fields(self, paths: Iterable[Path]) -> None:
        """Make columns for the fields of rows that are kept."""
        kinds, left_out = kinds_of(paths, self.splitting.options, self.metadata, SHOWN)
        for name in sorted({*(self.metadata or ())} - {*kinds, *self.table.metadata}):
            self.skipped.append(f"no row has the field {name!r}, which was to be kept")
            kinds[name] = "text"
        if reasons := ", ".join(f"{name} ({why})" for name, why in left_out.items()):
            self.skipped.append(f"these fields of rows cannot be used in conditions: {reasons}")
        self.table.extend(kinds)
        self.splitting = replace(self.splitting, metadata=self.table.metadata)

    def _windows_of_texts(self, path: Path, keep: bool, report: CorpusReport) -> Iterator[list[Entry]]:
        """Yield the passages of texts that are not in the table yet, in pieces of about `WINDOW`."""
        rows: dict[str, list[IndexedPassage]] = {}
        held = 0
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
            self.wanted.add(source)
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
        if passage.id is not None and self.id_kind != "text":
            self.id_kind = "int" if isinstance(passage.id, int) else "text"

    def _written(self, windows: Iterator[list[Entry]], size: int) -> None:
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
                        bytes_of_window = sum(len(one.text.encode("utf-8", "replace")) for *_, one in window)
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
        wanted, fresh = ({str(path) for path in paths.values()} for paths in (plan.wanted, plan.fresh))
        if not change.keep:
            self.partial = {file: told for file, told in self.partial.items() if file in wanted}
        before = (reason for file, told in self.partial.items() if file in wanted - fresh for reason in told)
        self.unread = [*plan.unread.values(), *self.unread, *before]
        self.skipped = [*plan.left_out, *self.skipped]
        if not set(self.table.sources()) - {*stale, *self.failed} and not (change.keep and self.table.rows):
            first = f"{next(iter(plan.wanted.values()))}: " if plan.wanted else ""
            reason = next(iter([*self.unread, *self.skipped]), "give files with text")
            raise CorpusError(f"{first}no text to index in {counted(len(plan.wanted), 'file')}: {reason}")
        self.table.remove([*stale, *self.failed])
        for source in self.changed:
            self.table.rename(source, uuid4().hex)  # is that of no file, and so the next run reads it again
        return self._done(len(stale))

    def _windows(self, plan: FilePlan) -> Iterator[list[Entry]]:
        """Yield the passages of files that are not in the table yet, in pieces of `WINDOW`."""
        window: list[Entry] = []
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
                        window.append((source, str(path.resolve()), following is None, passage))
                    if len(window) == WINDOW:
                        yield window
                        window = []
                if state_of(path) != plan.states[source]:
                    self.skipped.append(f"{path}: it changed while it was read: index again to have it as it is now")
                    self.changed.append(source)
            except CorpusError as reason:
                plan.fail(path, str(reason))
                self.failed.append(source)
            else:
                if markup := report.dropped.get("markup"):
                    self.skipped.append(f"{path}: {counted(markup, 'line')} of lists, tables and captions are left out")
                (self.unread if report.is_partial else self.skipped).extend(report.told)
                if report.is_partial:
                    self.partial[str(path)] = list(report.told)
        if window:
            yield window


def _codec(job: Job, table: Table, record: Values) -> TokenCodec | None:
    """Return the form in which the tokens of a table are stored: of the stopped run, or of the index.

    A run that was stopped before it had written a passage finds the form again: the texts that say it share their
    batches, and a text that is encoded among others may differ in the last bit.
    """
    if not table.has_tokens:
        return None
    stopped = [job.work] if table.rows else []
    before = [job.target / record["geometry"]] if record.get("table") == table.name and record.get("geometry") else []
    return next(filter(None, map(TokenCodec.open, [*stopped, *before])), None)


def _table(job: Job, dimension: int, record: Values, tokens: bool) -> Table:
    """Return the table to write to: of the stopped run, of the index, or a new one."""
    name = job.notes.get("table") or record.get("table")
    if name and (job.target / f"{name}.lance").is_dir():
        return Table(job.target, name)
    return Table.create(job.target, f"passages-{uuid4().hex[:8]}", dimension, tokens)


def _geometry(
    job: Job,
    table: Table,
    steps: Pipeline,
    stop: StopRequest,
    record: Values,
    codec: TokenCodec | None,
) -> str:
    """Write the geometry of the finished passages, and the form of their tokens.

    Returns:
        the name of the folder.
    """
    before = None
    if record.get("table") == table.name and record.get("geometry"):
        with suppress(SearchError):
            before = Geometry.open(job.target / record["geometry"])
    name = f"geometry-{uuid4().hex[:8]}"
    geometry = build(table, steps.nearest, stop, before)
    geometry.save(job.target / name)
    if codec is not None:
        codec.save(job.target / name)
    return name
