"""Indexing of files: passages, their vectors and their words, with incremental updates."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.inputs import GivenTexts, given_texts
from likewise.encoder.location import check_cross_encoder
from likewise.inference.engines.engine import EngineName, EnginePrecision
from likewise.inference.handle import Facts, ModelHandle
from likewise.inference.text_encoder import cosine_note
from likewise.runs.job import Job, Plan, Resume, check_target, open_job
from likewise.runs.on_ray import cluster, loadable
from likewise.runs.options import checked
from likewise.runs.progress import Progress, StopRequest, orderly_stop
from likewise.runs.whole_files import Record, Values
from likewise.searching.index.geometry import Geometry, build
from likewise.searching.index.index_plan import Change, settings_of
from likewise.searching.index.index_record import (
    FORMAT,
    IndexRecord,
    finished_record,
    left_in,
    of_queries,
    record_before,
)
from likewise.searching.index.maxsim import TokenCodec
from likewise.searching.index.passage_encoder import PassageEncoder, Shared
from likewise.searching.index.passages import Splitting, TokenLimit
from likewise.searching.index.table import GRACE, HIT_COLUMNS, SearchError, Table
from likewise.searching.index.table_update import Changed, TableUpdate
from likewise.searching.parts.pipeline import WITHOUT_TOKENS, Given, Pipeline, pipeline_of
from likewise.searching.query.query_encoder import encoder_of
from likewise.searching.query.typed_query import known_language
from likewise.searching.search_index import Index

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

APPROXIMATE = 200_000
"""Passages from which an approximate index of the vectors is built: an exact search reads 1.5 kB for each of them."""
_TRIED = 100


class Indexed(Index):
    """The result of `index`: an open `Index`, with counts of the changes.

    Attributes:
        encoded: Number of passages that this call encoded.
        added: Number of files, or texts, that were new or changed.
        removed: Number of files, or texts, that changed or no longer exist.
        skipped: Sentences on skipped or converted input: counts of files in other formats and of excluded files; files
            in another encoding than UTF-8; files that changed while they were read; rows without text; and `unread`.
        unread: Sentences on folders, files and rows that could not be read. Existing passages of such a folder or file
            stay in the index.
        recall: Recall@10 of the approximate index, if there is one.
    """

    def __init__(self, path: Path, model: Any, changed: Changed) -> None:
        super().__init__(path, model)
        self.encoded, self.added, self.removed, self.skipped, self.unread, self.recall = changed


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
    """Index texts, or the passages of files, for search by meaning and by words.

    After files have changed, run it again: only new passages are encoded, and passages of files that no longer exist or
    are no longer listed are removed. An interrupted run is resumed. Other processes can search the index meanwhile, and
    see its former state until the update is complete.

    Args:
        texts: Paths to files, folders, or patterns: text, Markdown, JSONL, CSV, Parquet, articles, MediaWiki dumps, and
            with the extra `files` documents such as .html, .docx and .pdf. Hidden files of a folder, other formats and
            files in its .gitignore are skipped. In Python also texts (a list, a column or any other iterable) or rows
            (mappings or a DataFrame); a row is identified by its field `id`, a text by its position from 0.
        model: Encoder, or its path or name as in `load`; by default the model of the index.
        out: Path to the index.
        corpus_options: Options of reading; `field` names the text of JSONL, CSV and Parquet rows.
        words: Maximum number of words in a passage; by default 180, or fewer if the model reads less.
        metadata: Names of the fields of rows to store with the passages for filters; by default every field whose
            values are numbers, short texts or Booleans.
        language: Language of the text, for stemming.
        keep: Whether to keep the passages of files and texts that are not part of this call.
        approximate: Minimum number of passages for which an approximate index of the vectors is built.
        pipeline: Options of the search: a `Pipeline`, a mapping, or a path to a TOML file; by default the index's own,
            or the weights measured in docs/guides/search.md.
        vectors_from: Path to another index of the same model, such as an index that `choose` has built, from which the
            vectors of the texts that both contain are copied.
        engine, precision: See `load`; by default the precision of the index, or float32 for a new index. "close" is two
            to three times as fast if the processor supports bfloat16, and changes some hits. Queries are always encoded
            in float32.
        on: Address of a Ray cluster whose workers encode, or 'ray'; the current process reads and writes.
        workers: Number of workers of the Ray cluster; by default one per core.
        quiet: Whether to print nothing to standard error.
        resume: Whether to fail if there is no interrupted run to resume.
        overwrite: Whether to rebuild an index that was built with another model or other options.

    Returns:
        The open index, with the counts of added and removed files or texts.

    Raises:
        CorpusError: If a file cannot be read, or no file contains text.
        JobError: If the folder contains other files, or an index with another model or other options.
        SearchError: If no model is given, or the index is damaged.
        MissingExtraError: If LanceDB is not installed.

    Example:
        >>> import likewise
        >>> rows = [
        ...     {"id": "a1", "text": "The valve does not close.", "year": 2019},
        ...     {"id": "a2", "text": "The pump is leaking.", "year": 2024},
        ... ]
        >>> index = likewise.index(rows, model="bundled:minilm", out="my.index", quiet=True)
        >>> index.search("a leak", where="year >= 2020")[0].id
        'a2'
    """
    target, progress = Path(out), Progress(quiet)
    check_target(target)
    with ExitStack() as stack:
        given = given_texts(texts, corpus_options, stack=stack)
        change = Change.of(given, keep)
        before = None if overwrite else record_before(target)
        precision = precision or (before.precision if before else "fp32")
        encoder = encoder_of(target, model, engine=engine, precision=precision)
        settings: Record = {"words": words, "metadata": metadata, "language": known_language(language)}
        if not given.in_memory:
            settings |= {"split": given.options.split, "field": given.options.field}
        manner = _Manner(approximate, pipeline, vectors_from, precision, on, workers, resume, overwrite)
        result = _updated(target, encoder, change, settings, progress, manner)
    return Indexed(target, model, result)


def add(
    opened: Index, encoder: ModelHandle, texts: GivenTexts, options: CorpusOptions | None, progress: Progress
) -> Changed:
    """Add texts, rows or files to an index; an existing id or file is replaced."""
    with ExitStack() as stack:
        first = max(opened.table.next_id(), finished_record(opened.path).next_id)  # no id comes twice
        given = given_texts(texts, options, first=first, stack=stack)
        return _updated(opened.path, encoder, Change.of(given, keep=True), {}, progress)


def delete(opened: Index, encoder: ModelHandle, ids: Sequence[str], progress: Progress) -> int:
    """Delete the texts and rows of ids, and return how many there were."""
    return _updated(opened.path, encoder, Change(deleted=ids), {}, progress).removed


def _updated(
    target: Path,
    encoder: ModelHandle,
    change: Change,
    requested: Values,
    progress: Progress,
    manner: _Manner = _Manner(),
) -> Changed:
    """Change an index, and return what was done.

    Args:
        requested: Settings of the plan; missing settings are taken from the index.
    """
    if manner.on:
        loadable(encoder.name)
    before = None if manner.overwrite else record_before(target)
    left, facts = left_in(target), encoder.facts
    if facts.other_similarity and before is None:
        progress.tell(cosine_note(facts.other_similarity))
    steps = _steps(manner.pipeline, before, facts)
    plan = Plan("index", _settings(requested, before, facts), inputs={"model": facts.fingerprint}, format=FORMAT)
    shared = Shared.open(Path(manner.vectors_from), plan) if manner.vectors_from is not None else None
    with ExitStack() as stack:
        workers = stack.enter_context(cluster(manner.on, manner.workers))
        job = stack.enter_context(open_job(target, plan, resume=manner.resume, overwrite=manner.overwrite, grows=True))
        stop = stack.enter_context(orderly_stop(progress))
        table = _table(job, facts.dimension, before, bool(steps.tokens and facts.tokens))
        job.note(table=table.name, left=left)
        steps = steps if table.has_tokens else _without_tokens(steps, target, facts, progress)
        codec = _codec(job, table, before)
        passages = PassageEncoder(table, encoder, job, progress, workers=workers, codec=codec, shared=shared)
        update = TableUpdate(table, passages, _splitting(encoder, plan, change), stop, plan.options["metadata"])
        update.id_kind, update.partial = (before.ids, dict(before.partial)) if before else ("", {})
        changed = update.run(change)
        recall = _index_columns(table, plan.options["language"], manner.approximate, progress)
        codec, unweighed = passages.weighed((before.unweighed if before else 0) + sum(changed[:3]))
        geometry = _geometry(job, table, steps, stop, before, codec)
        now, own = time.time(), (f"{table.name}.lance", geometry)
        job.finish(
            IndexRecord(
                table=table.name,
                version=table.version,
                geometry=geometry,
                pipeline=steps.to_dict(),
                left={name: since for name, since in left.items() if name not in own and now - since <= GRACE},
                ids=update.id_kind,
                partial=update.partial,
                next_id=change.next_id(before.next_id if before else 0),
                unweighed=unweighed,
                model=encoder.name,
                precision=manner.precision or (before.precision if before else "fp32"),
                engine=passages.engine or (before.engine if before else ""),
                passages=table.rows,
                query=of_queries(facts),
            ).to_dict()
        )
        table.clean({name: since for name, since in left.items() if name not in own and now - since > GRACE})
    for line in changed.lines():
        progress.tell(line)
    return changed._replace(recall=recall)


def _steps(given: Given | None, before: IndexRecord | None, facts: Facts) -> Pipeline:
    """Return the pipeline that an index will have."""
    usual = None if facts.tokens else WITHOUT_TOKENS
    steps = pipeline_of(given, before.steps if before else usual)
    if steps.reranker:
        check_cross_encoder(steps.reranker)
    return steps


def _without_tokens(steps: Pipeline, target: Path, facts: Facts, progress: Progress) -> Pipeline:
    """Return a pipeline that compares no tokens, and say why if it was to."""
    if steps.tokens:
        stored = f"{target} has none, so that only `likewise index ... --overwrite` can add them"
        why = stored if facts.tokens else "the model has no token vectors"
        progress.tell(f"the tokens of passages are not compared: {why}")
    return steps.updated(tokens=0)


def _settings(requested: Values, before: IndexRecord | None, facts: Facts) -> Record:
    """Return the settings of the plan.

    Raises:
        SearchError: If a field cannot be stored by its name.
    """
    settings = settings_of(requested, before.options if before else {}, facts)
    for name in settings["metadata"] or ():
        if name in (*HIT_COLUMNS, "id") or not name.strip():
            raise SearchError(
                f"a metadata field cannot be named {name!r}: choose a name other than id, {', '.join(HIT_COLUMNS)}"
            )
    return settings


def _splitting(encoder: ModelHandle, plan: Plan, change: Change) -> Splitting:
    """Return how texts are divided into passages."""
    longest, settings = encoder.facts.longest, plan.options
    limit = TokenLimit(longest, encoder.tokenizer, settings["prompt"]) if longest else None
    options = change.given.options if change.given else CorpusOptions()
    strict = change.given is not None and change.given.in_memory
    return Splitting(settings["words"], options, limit=limit, strict=strict)


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
    hits, total = 0, 0
    for vector in table.sample(_TRIED):
        exact, fast = (set(table.nearest(vector, count, exact=exact)[0].tolist()) for exact in (True, False))
        hits, total = hits + len(exact & fast), total + len(exact)
    return hits / max(1, total)


def _codec(job: Job, table: Table, before: IndexRecord | None) -> TokenCodec | None:
    """Return the form in which the tokens of a table are stored: of the stopped run, or of the index.

    A run that was stopped before it had written a passage finds the form again: the texts that say it share their
    batches, and a text that is encoded among others may differ in the last bit.
    """
    if not table.has_tokens:
        return None
    stopped = [job.work] if table.rows else []
    former = [job.target / before.geometry] if before and before.table == table.name else []
    return next(filter(None, map(TokenCodec.open, [*stopped, *former])), None)


def _table(job: Job, dimension: int, before: IndexRecord | None, tokens: bool) -> Table:
    """Return the table to write to: of the stopped run, of the index, or a new one."""
    name = job.notes.get("table") or (before.table if before else "")
    if name and (job.target / f"{name}.lance").is_dir():
        return Table(job.target, name)
    return Table.create(job.target, f"passages-{uuid4().hex[:8]}", dimension, tokens)


def _geometry(
    job: Job,
    table: Table,
    steps: Pipeline,
    stop: StopRequest,
    before: IndexRecord | None,
    codec: TokenCodec | None,
) -> str:
    """Write the geometry of the finished passages, and the form of their tokens.

    Returns:
        the name of the folder.
    """
    former = None
    if before and before.table == table.name:
        with suppress(SearchError):
            former = Geometry.open(job.target / before.geometry)
    name = f"geometry-{uuid4().hex[:8]}"
    geometry = build(table, steps.nearest, stop, former)
    geometry.save(job.target / name)
    if codec is not None:
        codec.save(job.target / name)
    return name
