"""Exclusions written by rule: 'A, excluding X.' of a sentence A and a few words X of another one. Not from a paper."""

import random

_CUES = (
    "excluding|without|but not|except|except for|other than|apart from|not including|but without|leaving out|avoiding|"
    "but don't mention|but excluding"
).split("|")
_FORMS = (", {}", " {}", " ({})")
_ENDS = ".?!;:"
_SIGNS = ".,;:!?()\"'"
_LONGEST = 6
_SMALL = frozenset(
    "a an the of in on at to for from by with and or but not as is are was were be been has have had that which who it "
    "its he she his her they their this these those there where when while".split()
)


def some_words(sentence: str, rng: random.Random) -> str | None:
    """Return one to six consecutive words of a sentence that begin and end with a content word; None if it has none.

    >>> some_words("The castle of the king is very old.", random.Random(3))
    'king is very old'
    """
    words = sentence.split()
    bare = [word.strip(_SIGNS) for word in words]
    says = [len(word) > 2 and word[0].isalpha() and word.lower() not in _SMALL for word in bare]
    starts = [i for i, one in enumerate(says) if one]
    if not starts:
        return None
    start = rng.choice(starts)
    end = rng.choice([i for i in range(start, min(start + _LONGEST, len(words))) if says[i]])
    found = " ".join(words[start : end + 1]).strip(_SIGNS)
    # A sign inside would end the phrase.
    return bare[start] if any(sign in found for sign in ",;:()") else found


def excluding(sentence: str, what: str, rng: random.Random) -> str:
    """Return a sentence with an exclusion at its end, or at one of its commas.

    >>> excluding("The castle is old.", "the tower", random.Random(1))
    'The castle is old (but not the tower).'
    """
    cue = f"{rng.choice(_CUES)} {what}"
    commas = [i for i, sign in enumerate(sentence) if sign == "," and sentence[i + 1 : i + 2] == " "]
    place = len(sentence) - (sentence[-1] in _ENDS)
    if commas and rng.random() < 0.3:
        place = rng.choice(commas)
    return sentence[:place] + rng.choice(_FORMS).format(cue) + sentence[place:]
