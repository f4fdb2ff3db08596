"""The loop over blocks of texts: each is encoded and saved whole, so that a stopped job resumes after the last one.

It knows neither formats nor clusters: the caller says how the vectors of a block are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from likewise.errors import counted
from likewise.inference.text_encoder import TextEncoder
from likewise.inference.tokens import Step
from likewise.runs.prefetch import in_order
from likewise.runs.progress import StopRequest
from likewise.runs.whole_files import Parts


class TextBlock(NamedTuple):
    """Texts that are encoded and saved as one file.

    Attributes:
        name: Name of the file.
        begin: Function that begins to encode the texts, and returns a function that waits for the file of the vectors
            and for their number. It may call its argument with the number of finished texts.
        total: Expected number of texts of all blocks.
        digest: Fingerprint of the texts; "" if other texts are another job.
    """

    name: str
    begin: Callable[[Step], Callable[[], tuple[Path, int]]]
    total: int
    digest: str = ""


def opened_encoder(opens: Callable[..., TextEncoder], parts: Parts) -> TextEncoder:
    """Return an encoder with the engine of the saved blocks; they are dropped if only another engine is there.

    Args:
        opens: Function from `before`, the name of the engine to repeat, to the encoder.
        parts: Saved blocks.
    """
    before = next((str(facts["engine"]) for facts in parts.facts.values()), "")
    encoder = opens(before=before)
    if before not in ("", encoder.engine):
        parts.drop(*parts.facts)
    return encoder


def encode_blocks(blocks: Iterable[TextBlock], parts: Parts, engine: str, stop: StopRequest, ahead: int = 0) -> None:
    """Encode the blocks that are not saved with the same texts, and drop saved blocks that no longer exist.

    Args:
        blocks: Blocks in order.
        parts: Saved blocks, with the facts 'rows', 'texts' and 'engine'.
        engine: Engine of the encoder.
        stop: Request to stop, which takes effect after a block.
        ahead: Number of blocks that are started before the current block is finished.
    """
    names: set[str] = set()
    done = 0
    with stop.progress.bar("encoding") as bar:

        def begun() -> Iterator[Callable[[], tuple[TextBlock, Path, int]]]:
            nonlocal done
            for block in blocks:
                names.add(block.name)
                saved = parts.facts.get(block.name, {})
                done += saved["rows"] if saved.get("texts") == block.digest else 0
                bar.update(done=done, total=block.total or None)
                if saved.get("texts") != block.digest:
                    yield partial(_finished, block, block.begin(bar.advance))

        for block, file, rows in in_order(begun(), ahead):
            with parts.new(block.name, rows=rows, texts=block.digest, engine=engine) as path:
                file.replace(path)
            done += rows
            bar.update(done=done)
            stop.check(f"after {counted(done, 'row')}")
    parts.drop(*(parts.facts.keys() - names))


def _finished(block: TextBlock, finish: Callable[[], tuple[Path, int]]) -> tuple[TextBlock, Path, int]:
    return block, *finish()
