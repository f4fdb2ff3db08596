"""Data sets of the hub as files of rows."""

import json
import re
from pathlib import Path

from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.inputs import plain_value
from likewise.errors import first_line
from likewise.runs.cache import cached

HUB = "hf:"
"""Beginning of the name of a data set of the hub."""
_TEXT_COLUMNS = ("text", "sentence", "content", "document", "body")
"""Columns that are taken where none is named, the likeliest first."""
_SLICE = re.compile(r"(\w[\w.-]*)\[:(\d+)\]")


def hub_rows(entry: str) -> Path:
    """Return a cached file of the rows of a data set, named after the column of its text.

    The library `datasets` streams the rows once; later calls reuse the file, unless the data set has changed.

    Args:
        entry: Name such as "hf:wikitext:wikitext-2-raw-v1:test:text". CONFIG may be empty, SPLIT is 'train' by default
            ('train[:1000]' for its first thousand rows), and COLUMN is by default text or sentence.

    Raises:
        CorpusError: If there is no such data set, split or column.
    """
    parts = re.split(r":(?![^\[:]*:?[^\[:]*\])", entry.removeprefix(HUB))
    name, config, split, column = [*parts, "", "", ""][:4]
    if not name or len(parts) > 4:
        raise CorpusError(f"{entry}: give hf:NAME, hf:NAME:CONFIG, hf:NAME:CONFIG:SPLIT or hf:NAME:CONFIG:SPLIT:COLUMN")
    sliced = _SLICE.fullmatch(split)
    split_name, most = (sliced[1], int(sliced[2])) if sliced else (split or "train", None)
    import datasets

    try:
        rows = datasets.load_dataset(name, config or None, split=split_name, streaming=True)
        names = rows.column_names or list(next(iter(rows), {}))
    except Exception as error:  # the library raises its own errors, and errors of every format and connection
        raise CorpusError(
            f"{entry}: this data set cannot be read ({type(error).__name__}: {first_line(error)}): check the name, the "
            "config and the split"
        ) from None
    column = column or next((usual for usual in _TEXT_COLUMNS if usual in names), "")
    if column not in names:
        raise CorpusError(f"{entry}: there is no column {column or 'text'!r}: name one of {', '.join(names)}")

    def make(folder: Path) -> None:
        with (folder / f"{column}.jsonl").open("w", encoding="utf-8") as file:
            for row in rows if most is None else rows.take(most):
                plain = {name: plain_value(value) for name, value in row.items() if _is_plain(value)}
                file.write(json.dumps(plain, ensure_ascii=False, default=str) + "\n")

    return cached("hub", [name, config, split_name, most, column, _version(name)], make) / f"{column}.jsonl"


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool) or hasattr(value, "isoformat")


def _version(name: str) -> object:
    """Return what changes with a data set: the times of a folder's files, or the commit of the hub."""
    if Path(name).exists():
        files = [path for path in sorted(Path(name).rglob("*")) if path.is_file()] or [Path(name)]
        return [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
    from huggingface_hub import HfApi

    try:
        return HfApi().dataset_info(name).sha
    except Exception:  # no connection: what the library itself has kept
        return ""
