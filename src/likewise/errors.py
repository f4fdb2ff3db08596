"""The base class of errors that a user can fix, and the reporting of other libraries' errors."""

import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

_LIMITS = {
    r"Too many open files|os error 2[34]\b|Errno 2[34]\b": "too many files are open: raise the limit, for example by "
    "`ulimit -n 1024`, and run the same command again",
    r"File too large|os error 27\b|Errno 27\b": "a file would exceed the shell's limit: raise it, for "
    "example by `ulimit -f unlimited`, and run the same command again",
    r"failed to map segment|[Cc]an(no|')t allocate memory|Unable to allocate|bad[ _]alloc|can't start new thread|"
    r"os error 12\b|Errno 12\b|^MemoryError$": "there is not enough memory: free some, or raise the shell's limit, "
    "for example by `ulimit -v unlimited`, and run the same command again",
    r"Permission denied|Operation not permitted|os error (1|13)\b|Errno (1|13)\b": "this user may not access it "
    "(Permission denied): change its permissions, or run the command as another user",
    r"Input/output error|os error 5\b|Errno 5\b": "the disk or the network share failed (Input/output error): check "
    "the system log, and run the same command again",
    r"Stale (NFS )?file handle|os error 116\b|Errno 116\b": "the network share has replaced it (Stale file handle): "
    "mount the share again, and run the same command again",
    r"Could not determine home directory": "this user has no home folder: set HOME, or give a path without '~'",
}
"""Errors of the system that say nothing of a file's content, in the words of Python and Rust, each with its cure."""
_BEYOND = re.compile(r"index out of range|out of data bounds|indices? .{0,40}out of bounds", re.IGNORECASE)
"""The errors of engines for a row that a table does not have."""


class LikewiseError(ValueError):
    """The base class of the errors that users can fix; the message names the cause and the cure."""


class MissingExtraError(LikewiseError, ImportError):
    """Raised if packages of an optional extra are missing; the message names the command that installs them."""


def require_extra(extra: str, purpose: str, *modules: str) -> None:
    """Check that the packages of an optional extra are installed, without importing them.

    Args:
        extra: Name of the extra, as in `pip install "likewise[extra]"`.
        purpose: Feature that needs it, as the subject of the message.
        modules: Top-level modules that the extra brings.
    """
    if missing := [name for name in modules if find_spec(name) is None]:
        raise MissingExtraError(f'{purpose} needs {" and ".join(missing)}: pip install "likewise[{extra}]"')


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, for a message.

    >>> counted(1, "sentence"), counted(1200, "sentence"), counted(2, "query")
    ('1 sentence', '1,200 sentences', '2 queries')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun.removesuffix('y')}ies" if noun.endswith("ry") else f"{number:,} {noun}s"


def printable(text: str) -> str:
    r"""Return a text without the control characters that a terminal would obey, which a file name may contain.

    >>> printable("a\x1b[31mb"), printable("two\nlines")
    ('a\\x1b[31mb', 'two\nlines')
    """
    return "".join(one if one in "\n\t" or unicodedata.category(one) != "Cc" else f"\\x{ord(one):02x}" for one in text)


def limit_of(error: BaseException | None) -> str | None:
    """Return the message for an error due to a limit, a permission or a device of the system; None for other errors.

    Libraries often wrap such errors in their own errors.

    >>> limit_of(OSError(24, "Too many open files"))[:23], limit_of(ValueError("the header is truncated"))
    ('too many files are open', None)
    """
    while error is not None:
        for pattern, message in _LIMITS.items():
            if re.search(pattern, "MemoryError" if isinstance(error, MemoryError) else str(error)):
                return message
        error = error.__cause__ or error.__context__
    return None


def unread(place: object, error: BaseException, cure: str) -> str:
    """Return the sentence on a file that cannot be read: with the system's limit or right, or else with `cure`.

    >>> unread("a.npy", ValueError("the header is truncated"), "make it again")
    'a.npy cannot be read (the header is truncated): make it again'
    >>> unread("a.npy", PermissionError(13, "Permission denied"), "make it again")[:40]
    'a.npy cannot be read: this user may not '
    """
    if limit := limit_of(error):
        return f"{place} cannot be read: {limit}"
    return f"{place} cannot be read ({getattr(error, 'strerror', None) or first_line(error)}): {cure}"


def is_utf8(name: str) -> bool:
    r"""Return whether the name of a file is text in UTF-8, which JSON and the libraries below can hold.

    >>> is_utf8("café"), is_utf8("caf\udce9")
    (True, False)
    """
    return not any("\ud800" <= char <= "\udfff" for char in name)


def not_utf8(name: str) -> str:
    """Return the fault and the cure of a name for which `is_utf8` is false, as the end of a sentence."""
    try:
        os.fsencode(name).decode("utf-8")
    except UnicodeError:
        return "is not UTF-8: rename it"
    return f"cannot be read in this locale ({sys.getfilesystemencoding()}): set LC_ALL=C.UTF-8 or PYTHONUTF8=1"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its class if it has none.

    >>> first_line(OSError("no such file\\nand much more")), first_line(ValueError())
    ('no such file', 'ValueError')
    """
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextmanager
def weights_for_all() -> Iterator[None]:
    """Say in a `with` block that a text has a token or a position for which a model has no weights.

    Raises:
        LikewiseError: Instead of the error of torch or another engine.
    """
    try:
        yield
    except Exception as error:
        if not _BEYOND.search(str(error)):
            raise
        raise LikewiseError(
            f"the model has no weights for a token or a position of a text ({first_line(error)}): its "
            "tokenizer does not fit; shorten its max_seq_length, or resize its embeddings"
        ) from error
