"""The one error of this room."""

from likewise.errors import LikewiseError


class CorpusError(LikewiseError):
    """A corpus cannot be read as asked.

    The message names the file, the line where there is one, and the cure.
    """
