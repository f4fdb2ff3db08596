"""The base class of the errors that a user can mend, and the reporting of other libraries' errors."""

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

_BEYOND = re.compile(r"index out of range|out of data bounds|indices? .{0,40}out of bounds", re.IGNORECASE)
"""The errors of engines for a row that a table does not have."""


class LikewiseError(ValueError):
    """The base class of the errors that likewise raises for its user: the message names the cause and the cure."""


class MissingExtraError(LikewiseError, ImportError):
    """Raised if packages of an optional extra are missing; the message names the command that installs them."""


def require_extra(extra: str, purpose: str, *modules: str) -> None:
    """Check that the packages of an optional extra are installed, without importing them.

    Args:
        extra: its name, as in `pip install "likewise[extra]"`.
        purpose: what needs it, as the subject of the message.
        modules: top-level modules that the extra brings.
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
    r"""Return a text without the signs that a terminal would obey: a file name may hold any.

    >>> printable("a\x1b[31mb"), printable("two\nlines")
    ('a\\x1b[31mb', 'two\nlines')
    """
    return "".join(one if one in "\n\t" or unicodedata.category(one) != "Cc" else f"\\x{ord(one):02x}" for one in text)


def is_utf8(name: str) -> bool:
    r"""Return whether the name of a file is text in UTF-8, which JSON and the libraries below can hold.

    >>> is_utf8("café"), is_utf8("caf\udce9")
    (True, False)
    """
    return not any("\ud800" <= sign <= "\udfff" for sign in name)


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
        LikewiseError: in the place of the error of torch, or of another engine.
    """
    try:
        yield
    except Exception as error:
        if not _BEYOND.search(str(error)):
            raise
        raise LikewiseError(
            f"a text has a token, or a position, that the model has no weights for ({first_line(error)}): its "
            "tokenizer does not fit; shorten its max_seq_length, or resize its embeddings"
        ) from error
