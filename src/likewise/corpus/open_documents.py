"""The converter of LibreOffice texts to Markdown."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

from likewise.corpus.converter import MARKS, Converter, Page


class OpenDocument(Converter):
    """Texts of LibreOffice."""

    suffixes = (".odt",)

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the one page."""
        with zipfile.ZipFile(path) as archive:
            content = fromstring(archive.read("content.xml"))
        _raise(content)
        body = next(element for element in content.iter() if element.tag.endswith("}body"))
        yield Page(0, "\n\n".join(_of_open_document(body)), form="markdown")


def _of_open_document(element: Element, depth: int = 0) -> Iterator[str]:
    """Yield the blocks of an element of an OpenDocument text as Markdown."""
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name in ("h", "p"):
            level = next((value for key, value in child.attrib.items() if key.endswith("}outline-level")), "1")
            text = re.sub(MARKS, r"\\\1", _inline(child)).strip()
            if text:
                yield f"{'#' * min(6, int(level))} {text}" if name == "h" else text
            for box in _nearest(child, "text-box"):
                yield from _of_open_document(box, depth)
        elif name == "list":
            for item in child:
                yield from ("- " + block.replace("\n", "\n  ") for block in _of_open_document(item, depth + 1))
        elif name == "table":
            rows = [
                "| " + " | ".join(" ".join(_of_open_document(cell)) for cell in _cells_of(row)) + " |"
                for row in _nearest(child, "table-row")
            ]
            rule = ["|" + " --- |" * (rows[0].count(" | ") + 1)] if rows else []
            yield "\n".join([*rows[:1], *rule, *rows[1:]])
        elif not name.endswith("changes"):
            yield from _of_open_document(child, depth)


def _raise(content: Element) -> None:
    """Put a sign before each raised number of an OpenDocument text: 10^6 would be 106."""
    raised = set()
    for style in content.iter():
        if style.tag.endswith("}style"):
            positions = (
                value for part in style for key, value in part.attrib.items() if key.endswith("}text-position")
            )
            if any(position.startswith("super") for position in positions):
                raised |= {value for key, value in style.attrib.items() if key.endswith("style:1.0}name")}
    for span in content.iter():
        if span.tag.endswith("}span") and raised & set(span.attrib.values()) and (span.text or "")[:1].isdigit():
            span.text = f"^{span.text}"


def _cells_of(row: Element) -> list[Element]:
    """Return the cells of a row of an OpenDocument table; one that is repeated is there as often, but for the last."""
    cells = [cell for cell in row if "cell" in cell.tag]
    count = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}number-columns-repeated"
    times = [int(cell.get(count, "1")) for cell in cells[:-1]] + [1]
    return [cell for cell, many in zip(cells, times, strict=False) for _ in range(min(many, 100))]


def _nearest(element: Element, name: str) -> Iterator[Element]:
    """Yield the elements of a name within another one, without those that are within one of them."""
    for child in element:
        if child.tag.endswith(f"}}{name}"):
            yield child
        else:
            yield from _nearest(child, name)


def _inline(element: Element) -> str:
    parts = [element.text or ""]
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name in ("s", "tab", "line-break"):
            parts.append(" ")
        elif name == "note":
            texts = (_inline(inner).split() for inner in child.iter() if inner.tag.endswith("}p"))
            parts.append(f" ({' '.join(chain.from_iterable(texts))})")
        elif name in ("frame", "text-box"):
            parts.append(" ")
        elif name not in ("annotation", "ruby-text"):
            parts.append(_inline(child))
        parts.append(child.tail or "")
    return "".join(parts)
