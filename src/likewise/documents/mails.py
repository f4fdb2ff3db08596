"""The converters of mails and mailboxes to text."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from likewise.corpus.encodings import seen_encoding
from likewise.corpus.formats import Page
from likewise.corpus.words import word_count
from likewise.documents.document_format import MARKS
from likewise.documents.paged_format import PagedFormat
from likewise.documents.web_pages import decoded, page_of_html
from likewise.errors import LikewiseError

if TYPE_CHECKING:
    from email.message import Message

_FROM = re.compile(
    rb"From (?=[^\n]{0,999}\d\d:\d\d)[^\n]{0,999}\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b[^\n]{0,99}\b\d{4}\b"
)
"""The line between the mails of a box; another one that begins with this word is text."""
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


class Mail(PagedFormat):
    """Mails, and web pages that are saved as such: the subject is the title."""

    suffixes = (".eml", ".mht", ".mhtml")

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the one mail."""
        yield _mail(path.read_bytes(), 0)


class Mailbox(PagedFormat):
    """Boxes of mails: a mail a page."""

    suffixes = (".mbox",)
    unit = "mail"

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the mails."""
        with path.open("rb") as box:
            marks, at = list[tuple[int, int]](), 0
            for line in box:
                if _FROM.match(line):
                    marks.append((at, at + len(line)))
                at += len(line)
            if at and not marks:
                raise LikewiseError("it contains no line 'From ADDRESS DATE', which begins each mail of a mailbox")
            box.seek(0)
            if marks and box.read(marks[0][0]).strip():
                yield Page(0, "", left_out="the text before the first line 'From ADDRESS DATE' is not a mail")
            for number, ((_, begin), (end, _)) in enumerate(pairwise([*marks, (at, at)]), 1):
                box.seek(begin)
                yield _mail(_QUOTED_FROM.sub(rb"\1", box.read(end - begin)), number)


def _mail(content: bytes, number: int) -> Page:
    """Return a mail as a page. A header that cannot be parsed, as in spam, stays unchanged."""
    from email import message_from_bytes, policy

    content = _with_readable_headers(content)
    try:
        return _of_mail(message_from_bytes(content, policy=policy.default), number)
    except Exception:  # of the parser of headers: IndexError, AttributeError ...
        return _of_mail(message_from_bytes(content), number)


def _with_readable_headers(content: bytes) -> bytes:
    """Return a mail with headers in UTF-8, if they are in 8 bits of another encoding, which none of them names."""
    match = re.search(rb"\r?\n\r?\n", content)
    head = content[: match.start()] if match else content
    try:
        head.decode("utf-8")
    except UnicodeDecodeError:
        return head.decode(seen_encoding(content) or "cp1252", "replace").encode("utf-8") + content[len(head) :]
    return content


def _of_mail(message: Message, number: int) -> Page:
    """Return a mail, with the texts and mails that are attached to it, and the names of all that is."""
    from email.utils import parsedate_to_datetime

    names: list[str] = []
    parts = [(text, form) for text, form in _parts_of(message, names) if text.strip()]
    parts += [(f"Attached: {', '.join(names)}", "plain")] if names else []
    form: Literal["markdown", "plain"] = "markdown" if any(form == "markdown" for _, form in parts) else "plain"
    fields = {name: _header(message, name) for name in ("from", "to", "date") if message[name]}
    with suppress(ValueError, TypeError, IndexError):
        # So that mails can be filtered by it.
        fields["date"] = parsedate_to_datetime(fields.get("date", "")).isoformat()
    texts = [text if own == form else re.sub(MARKS, r"\\\1", text) for text, own in parts]
    return Page(number, "\n\n".join(texts), _header(message, "subject"), form, fields)


def _header(message: Message, name: str) -> str:
    from email.header import decode_header, make_header

    value = str(message[name] or "")
    with suppress(Exception):  # it stays as it is written
        return str(make_header(decode_header(value))) if "=?" in value else value
    return value


def _parts_of(part: Any, names: list[str], related: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the texts of a part of a mail, and whether each is "plain" or "markdown".

    Args:
        names: List that receives the names of attachments.
        related: Whether it may be a picture of a page, which is not an attachment.
    """
    kind, inner = part.get_content_type(), part.get_payload()
    if (name := part.get_filename()) and not (related and part.get_content_disposition() != "attachment"):
        names.append(name)
    if kind == "message/rfc822" and isinstance(inner, list) and inner:
        mail = inner[0]
        if str(part["content-transfer-encoding"] or "").strip().lower() == "base64":  # against the rules
            page = _mail(b64decode("".join(str(mail.get_payload()).split())), 0)
        else:
            page = _of_mail(mail, 0)
        yield f"{page.title}\n\n{page.text}", page.form
    elif isinstance(inner, list) and kind == "multipart/alternative":
        yield from _alternative([list(_parts_of(other, names)) for other in inner])
    elif isinstance(inner, list):
        for other in inner:
            yield from _parts_of(other, names, kind == "multipart/related")
    elif part.get_content_maintype() in ("text", "multipart") and kind not in ("text/css", "text/javascript"):
        text = decoded(part.get_payload(decode=True) or b"", part.get_content_charset("utf-8"))
        is_page = kind == "text/html"
        yield (page_of_html(text).text, "markdown") if is_page else (text.replace("\r\n", "\n"), "plain")


def _alternative(forms: Sequence[list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Return the plain form of a text, or another one if the plain one is empty or only says that it is not shown."""
    texts = [parts for parts in forms if any(text.strip() for text, _ in parts)]
    plain = next((parts for parts in texts if all(form == "plain" for _, form in parts)), None)
    other = next((parts for parts in reversed(texts) if parts is not plain), [])
    words, more = (sum(word_count(text) for text, _ in parts) for parts in (plain or [], other))
    return plain if plain is not None and 3 * words >= more else other
