"""The options of an adaptation, and of an encoder of characters."""

from likewise.runs.options import OptionError, Options, option


class AdaptOptions(Options):
    """The options of `likewise.adapt`.

    >>> AdaptOptions(minutes=5).passages
    0
    """

    minutes: float = option(
        15.0,
        "Approximate number of minutes to spend; passages of a text that is too long for them are sampled.",
        gt=0,
    )
    passages: int = option(
        0,
        "Maximum number of passages to use, regardless of the time, so that the result is the same on every machine; 0 "
        "uses as many as fit the minutes.",
        ge=0,
    )
    width: int = option(
        384,
        "Maximum number of dimensions that the words of the corpus add to each vector; 0 adds none, as --plain does.",
        ge=0,
    )
    plain: bool = option(
        False,
        "Whether to add no words, so that the model consists of stock modules that every server loads.",
    )
    language: str = option(
        "english", "Language of the corpus, for stemming; '' treats each word form as a separate word."
    )
    seed: int = option(1, "Random seed of pairs, batches and random vectors.", ge=0, lt=2**32)

    def _check(self) -> None:
        if self.language and self.language not in languages():
            raise OptionError(
                f"unknown language {self.language!r}: choose one of {', '.join(languages())}, or '' for none"
            )


class CharactersOptions(Options):
    """The options of `likewise.train_characters`.

    >>> CharactersOptions(width=512).axes
    64
    """

    axes: int = option(
        64, "Maximum number of principal axes of the corpus, which are the first numbers of a vector.", ge=0
    )
    width: int = option(
        1984,
        "Number of dimensions of a vector besides the axes; fewer make each cosine less exact.",
        ge=16,
        le=32_768,
    )
    seed: int = option(1, "Random seed of the hash and of the axes.", ge=0, lt=2**32)


def languages() -> list[str]:
    """Return the languages that have a stemmer."""
    import snowballstemmer

    return sorted(snowballstemmer.algorithms())
