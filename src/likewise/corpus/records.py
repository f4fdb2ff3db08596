"""Rows of JSON: a text field of each, or a whole article."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from likewise.corpus.decoding import without_invisible
from likewise.corpus.errors import CorpusError
from likewise.corpus.files import Tick, is_wide, numbered_lines
from likewise.corpus.sources import JSON_LIMIT
from likewise.corpus.wiki import Sections, clean_markup


def read_rows(path: Path, encoding: str = "utf-8", tick: Tick | None = None) -> Iterator[tuple[int, Any]]:
    """Give (line number, object) of each line of a JSONL file that is not blank.

    None stands for a line that cannot be decoded.

    Raises:
        CorpusError: a line is no JSON object, or longer than 64 MiB.
    """
    codec = "utf-8" if is_wide(encoding) else encoding
    for number, raw in numbered_lines(path, encoding, tick, limit=JSON_LIMIT):
        if not raw.strip():
            continue
        try:
            text = raw.decode(codec)
        except UnicodeDecodeError:
            yield number, None
            continue
        try:
            row = json.loads(text)
        except ValueError as error:
            raise CorpusError(f"{path}:{number}: not JSON ({error}): a JSONL file has one object a line") from None
        if not isinstance(row, dict):
            raise CorpusError(f"{path}:{number}: a JSON {type(row).__name__}, not an object: one object a line")
        yield number, row


def field_text(path: Path, number: int, row: dict[str, Any], field: str) -> str:
    """Give the text of a row's field, "" where it is null.

    Raises:
        CorpusError: the row has no such field, or it is no text.
    """
    if field not in row:
        raise CorpusError(
            f"{path}:{number}: no field {field!r} in this row; it has: {', '.join(row) or 'nothing'}; give --field NAME"
        )
    value = row[field]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise CorpusError(
            f"{path}:{number}: field {field!r} is a {type(value).__name__}, not a text; give --field NAME"
        )
    return value


def article_parts(path: Path, number: int, row: dict[str, Any]) -> tuple[str, str, Sections]:
    """Give (id, title, sections) of an articles file's row; paragraphs are cleaned of wiki leftovers.

    Raises:
        CorpusError: a section is not {"heading": text, "paragraphs": [text, ...]}.
    """
    sections: Sections = []
    try:
        for section in row["sections"]:
            paragraphs = [clean_markup(without_invisible(text)) for text in section["paragraphs"]]
            sections.append(
                (
                    clean_markup(without_invisible(section.get("heading") or "")),
                    [text for text in paragraphs if text],
                )
            )
    except (KeyError, TypeError, AttributeError):
        raise CorpusError(
            f'{path}:{number}: not an article: each of its sections must be {{"heading": text, "paragraphs": [text]}}'
        ) from None
    return str(row.get("id", number)), str(row.get("title", "")), sections
