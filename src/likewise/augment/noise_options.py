"""The options of the noise on word vectors, without what adds it, which takes torch."""

from likewise.runs.options import OptionError, Options, option


class WordNoise(Options):
    """The settings of the noise on word vectors."""

    share: float = option(
        0.5, "Probability p that noise is added to a word at all (equation 2); 1 is 'full' augmentation.", ge=0, le=1
    )
    kinds: tuple[float, float, float, float] = option(
        (0.5, 0.2, 0.1, 0.2),
        "Probabilities p1 to p4 of white noise, zeros, Fourier round trip, background (equation 1).",
    )
    decibels: tuple[float, float] = option(
        (6.0, 12.0), "Lowest and highest signal-to-noise ratio of the white noise in decibels; each word draws its own."
    )
    zero_rates: tuple[float, float] = option(
        (0.05, 0.1), "Fraction of a word's dimensions that is set to zero: lowest and highest, drawn for each word."
    )
    background: float = option(0.1, "The background noise is uniform from 0 to this (equation 5).", ge=0)
    authors: bool = option(
        False, "Add the four kinds as the authors' code does; `decibels`, `zero_rates` and `background` are not read."
    )

    def _check(self) -> None:
        if min(self.kinds) < 0 or abs(sum(self.kinds) - 1) > 1e-6:
            raise OptionError(f"the kinds of noise must be four probabilities that add up to 1, not {self.kinds}")
        if self.decibels[0] > self.decibels[1]:
            raise OptionError(f"decibels must be the least and then the most, not {self.decibels}")
        if not 0 <= self.zero_rates[0] <= self.zero_rates[1] <= 1:
            raise OptionError(
                f"zero_rates must be the lowest and then the highest share, from 0 to 1, not {self.zero_rates}"
            )
