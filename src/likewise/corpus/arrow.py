"""Sentences to Arrow files, batch by batch: first all of them with their places, then those that stay."""

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from likewise.corpus.dedupe import Fingerprints
from likewise.corpus.report import CorpusReport
from likewise.corpus.sentences import Sentence

BATCH = 10_000
"""Sentences written at once."""


def write_sentences(path: Path, sentences: Iterator[Sentence], fingerprints: Fingerprints | None) -> None:
    """Write sentences with their words, file and line, and take the fingerprint of each."""
    import pyarrow as pa  # slow to import: only a corpus that is really read needs it

    columns = [("sentence", pa.string()), ("words", pa.int32()), ("file", pa.int32()), ("line", pa.int64())]
    schema = pa.schema(columns)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        while batch := list(islice(sentences, BATCH)):
            if fingerprints is not None:
                for sentence in batch:
                    fingerprints.add(sentence.text)
            rows: dict[str, list[Any]] = {
                "sentence": [sentence.text for sentence in batch],
                "words": [sentence.words for sentence in batch],
                "file": [sentence.file for sentence in batch],
                "line": [sentence.line for sentence in batch],
            }
            writer.write_batch(pa.record_batch(rows, schema=schema))


def write_without(first: Path, path: Path, repeated: np.ndarray | None, report: CorpusReport, files: list[str]) -> str:
    """Copy the sentences and words of `first` to `path`, without the repeated ones, which the report counts.

    Args:
        first: what `write_sentences` wrote.
        path: the new file.
        repeated: bool array [sentences], True for those to leave out; None keeps all.
        report: counts a repeated sentence as dropped instead of kept.
        files: the names that the file numbers in `first` stand for.

    Returns:
        The SHA-256 of the sentences written, each with a line end, in UTF-8, as hex digits.
    """
    import pyarrow as pa

    digest = hashlib.sha256()
    begin = 0
    schema = pa.schema([("sentence", pa.string()), ("words", pa.int32())])
    with (
        pa.memory_map(str(first)) as source,
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_stream(sink, schema) as writer,
    ):
        for batch in pa.ipc.open_stream(source):
            end = begin + batch.num_rows
            if repeated is not None and (again := np.array(repeated[begin:end])).any():
                lost = batch.filter(pa.array(again)).select(["file", "line"])
                for row in lost.to_pylist():
                    report.kept -= 1
                    report.drop("duplicate", files[row["file"]], row["line"])
                batch = batch.filter(pa.array(~again))
            begin = end
            if batch.num_rows:
                digest.update(("\n".join(batch["sentence"].to_pylist()) + "\n").encode())
                writer.write_batch(batch.select(["sentence", "words"]))
    return digest.hexdigest()
