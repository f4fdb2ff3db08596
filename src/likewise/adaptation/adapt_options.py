"""The options of an adaptation."""

from likewise.runs.options import OptionError, Options, option


class AdaptOptions(Options):
    """The options of `likewise.adapt`.

    >>> AdaptOptions(minutes=5).passages
    0
    """

    minutes: float = option(
        15.0,
        "About how many minutes to spend; of a text that is too long for them, passages are drawn at random.",
        gt=0,
    )
    passages: int = option(
        0,
        "The most passages to use, however long they take, so that the result is the same on every machine; 0 uses as "
        "many as fit the minutes.",
        ge=0,
    )
    width: int = option(
        384,
        "The most dimensions that the words of the corpus add to each vector; 0 adds none, as --plain does.",
        ge=0,
    )
    plain: bool = option(
        False,
        "Add no words, so that the folder holds stock modules of sentence-transformers and every server loads it.",
    )
    language: str = option(
        "english", "Language of the corpus, for stemming; '' treats each form of a word as a separate word."
    )
    seed: int = option(1, "Random seed of pairs, batches and random vectors.", ge=0, lt=2**32)

    def _check(self) -> None:
        if self.language and self.language not in languages():
            raise OptionError(f"language is {self.language!r}: give one of {', '.join(languages())}, or '' for none")


def languages() -> list[str]:
    """Return the languages that have a stemmer."""
    import snowballstemmer

    return sorted(snowballstemmer.algorithms())
