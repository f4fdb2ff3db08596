"""The language of texts, detected by py3langid (Lui and Baldwin 2012, 'langid.py', with a model of 2024)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

LANGUAGES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "ga": "Irish", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "km": "Khmer", "ko": "Korean", "lo": "Lao",
    "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "mr": "Marathi", "ms": "Malay", "my": "Burmese",
    "ne": "Nepali", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish", "ta": "Tamil", "te": "Telugu",
    "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""The languages that are detected, by their ISO 639-1 codes."""

_SAMPLE = 50_000
_PIECE = 400  # characters that are told at a time: a sentence alone is often too little
_FEWEST = 8  # letters
_POSSIBLE = 0.1
_GLANCE = 400  # characters
_SURE = 0.4
"""Least share of the likelihood, which is spread over all languages where there is little to go by."""


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # a second to load

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier


def language_of(texts: Iterable[str]) -> str:
    """Return the English name of the language in which most of some texts are written.

    The first 50,000 characters are examined.

    Returns:
        A name of `LANGUAGES`, or "" if the texts do not tell: a list of numbers, or a few names.

    >>> language_of(["Die Pumpe ist undicht.", "Der Techniker muss die Dichtung heute austauschen."])
    'German'
    >>> language_of(["P-107", "12.5"])
    ''
    """
    likely: Counter[str] = Counter()
    size = 0
    for piece in _pieces(texts):
        size += len(piece)
        for code, share in _identifier().rank(piece)[:3]:
            likely[code] += share * len(piece)
    code, weight = max(likely.items(), key=lambda item: item[1], default=("", 0.0))
    return LANGUAGES[code] if weight > _SURE * size else ""


def likely_codes(text: str) -> tuple[str, ...]:
    """Return the codes of the languages that a short text is likely to be in, the likeliest first; none if unsure.

    >>> likely_codes("Il tecnico ha riparato la pompa della cantina.")
    ('it',)
    """
    pieces = list(_pieces([text[:_GLANCE]]))
    if not pieces:
        return ()
    first, *others = _identifier().rank(pieces[0])[:3]
    if first[1] < _SURE:
        return ()
    return (first[0], *(code for code, share in others if share > _POSSIBLE))


def _pieces(texts: Iterable[str]) -> Iterator[str]:
    """Yield the letters of texts in pieces that are long enough for detection, up to the size of the sample."""
    buffer, read = "", 0
    for text in texts:
        for begin in range(0, min(len(text), _SAMPLE), _PIECE):
            part = text[begin : begin + _PIECE]
            read += len(part)
            # Numbers and punctuation are the same in all languages.
            letters = "".join(char if char.isalpha() or not char.isascii() else " " for char in part).split()
            buffer += " ".join(["", *letters])
            if len(buffer) >= _PIECE:
                yield buffer
                buffer = ""
        if read >= _SAMPLE:
            break
    if sum(map(str.isalpha, buffer)) >= _FEWEST:
        yield buffer
