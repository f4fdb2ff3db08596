"""Negation of many sentences, in parallel and with a cache."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from itertools import chain, islice
from multiprocessing import connection
from pathlib import Path

from threadpoolctl import threadpool_limits

from likewise.augment.negation import parser
from likewise.augment.negation.english import check_english
from likewise.augment.negation.rules import RULES_VERSION, Negation, negate_batch
from likewise.corpus.clean_text import digest_of
from likewise.runs.cache import CachedRows
from likewise.runs.prefetch import in_order
from likewise.runs.progress import Progress, orderly_stop
from likewise.runs.whole_files import read_json, write_json

#: Sentences that one process takes at a time.
BATCH_SIZE = 512
_FILE = "negations.json"
# Sentences that take no longer than the start of further processes.
_FIRST = 2048
# Batches that wait for each process: enough to keep it busy, few enough to keep the stream in little memory.
_AHEAD = 3


def negated_batches(
    sentences: Iterator[str],
    *,
    model: str = parser.DEFAULT_MODEL,
    processes: int = 1,
    batch_size: int = BATCH_SIZE,
    cache: bool = True,
) -> Generator[tuple[list[Negation], int], None, None]:
    """Yield the negations of sentences in their order, batch by batch, each with the number of sentences parsed.

    The arguments are as in `likewise.augment.negation.negated_file.negate_corpus`.
    """
    with ExitStack() as stack:
        # A changed rule or model has rows of its own, so that nothing stale is ever read.
        key = {"model": parser.identity(model), "rules": RULES_VERSION}
        store = stack.enter_context(closing(CachedRows("negation", key))) if cache else None
        if not processes:
            first = list(islice(sentences, _FIRST))
            sentences, processes = chain(first, sentences), (os.cpu_count() or 1) if len(first) == _FIRST else 1
        pool = None
        if processes > 1:
            # A forked process would inherit the threads and locks of torch where that is loaded.
            pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=_start)
            # After an error the batches that wait are given up.
            stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        batches = iter(lambda: list(islice(sentences, batch_size)), [])
        begun = (_begun(batch, store, model, pool) for batch in batches)
        yield from in_order(begun, _AHEAD * processes if pool else 0)


def cached_negations(
    sentences: Callable[[], Iterable[str]],
    keep: Callable[[list[object], Callable[[Path], object]], Path],
    *,
    processes: int = 1,
    progress: Progress,
) -> list[str | None]:
    """Return the negation of each sentence, or None if it has none; cached negations are reused.

    Args:
        sentences: Function that yields the sentences in their order.
        keep: Function from the rules and the writer of a folder to the folder in the cache, as `Run.prepared`.
        processes: Number of processes that parse; 0 uses one per core from 2,048 sentences.
        progress: Display of the bar.

    Raises:
        NotEnglishError: If the sentences are not English.
        MissingExtraError: If spaCy, lemminflect or the model is not installed.
        Stopped: After Ctrl-C; finished work is cached.
    """

    def make(folder: Path) -> None:
        texts: list[str | None] = []
        batches = negated_batches(check_english(sentences()), processes=processes)
        with orderly_stop(progress) as stop, progress.bar("negating the sentences") as bar, closing(batches):
            for done, _ in batches:
                texts += [negation.negation for negation in done]
                bar.advance(len(done))
                stop.check(f"after {len(texts):,} sentences")
        write_json(folder / _FILE, texts)

    negations: list[str | None] = read_json(keep([RULES_VERSION], make) / _FILE)
    return negations


def _begun(
    batch: list[str], store: CachedRows | None, model: str, pool: ProcessPoolExecutor | None
) -> Callable[[], tuple[list[Negation], int]]:
    """Begin to parse the sentences of a batch that are not in the cache, and return what yields all negations."""
    keys = {sentence: digest_of(sentence) for sentence in batch}
    cached_rows = store.get(keys.values()) if store is not None else {}
    known = {sentence: Negation(sentence, *cached_rows[key]) for sentence, key in keys.items() if key in cached_rows}
    missing = [sentence for sentence in dict.fromkeys(batch) if sentence not in known]
    work = pool.submit(negate_batch, missing, model=model) if pool is not None and missing else None

    def finished() -> tuple[list[Negation], int]:
        new = work.result() if work is not None else negate_batch(missing, model=model) if missing else []
        if store is not None and new:
            store.put({keys[made.sentence]: [made.negation, made.reason, made.rule] for made in new})
        all_of_batch = known | {made.sentence: made for made in new}
        return [all_of_batch[sentence] for sentence in batch], len(missing)

    return finished


def _start() -> None:
    """Keep this process to one core, and end it when its parent is killed: it would wait for work forever."""
    import numpy  # noqa: F401 - a limit counts for what is loaded

    threadpool_limits(1)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
