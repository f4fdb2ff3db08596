"""The one error of this room."""


class CorpusError(ValueError):
    """A corpus cannot be read as asked.

    The message names the file, the line where there is one, and the cure.
    """
