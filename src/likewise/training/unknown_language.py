"""Whether a base knows the language of a text, by the average number of letters per token."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from transformers import PreTrainedTokenizerBase

from likewise.corpus.languages import language_of
from likewise.corpus.words import has_unspaced

FEWEST, FEWEST_WITHOUT_BLANKS = 3.2, 0.8
"""Letters of a token in a text that the base knows, in scripts with blanks between words and in those without.

The tokens of all-MiniLM-L6-v2 hold 4.0 to 4.4 letters of English captions, tweets, encyclopedia and biomedical titles,
2.6 of German and Spanish, 2.0 of Polish, and 0.4 of Chinese, of which it does not know six characters in ten.
"""
_TEXTS = 500  # texts that are examined


def letters_per_token(tokenizer: PreTrainedTokenizerBase, texts: list[str]) -> float | None:
    """Return the average number of letters per token of texts, one or more; an unknown token counts as none.

    Returns:
        None for a tokenizer without offsets, or for texts without a letter.
    """
    if not tokenizer.is_fast:
        return None
    encoded: Any = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    letters, tokens, unknown = 0, 0, tokenizer.unk_token_id
    for text, *parts in zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True):
        ids: set[int] = set()
        for token, (begin, end) in zip(*parts, strict=True):
            places = [place for place in range(begin, min(end, len(text))) if text[place].isalpha()]
            tokens += bool(places)
            if token != unknown:
                ids.update(places)
        letters += len(ids)
    return letters / tokens if tokens else None


def advice(encoder: Any, base: str, texts: Iterable[str]) -> str:
    """Return a warning about text whose language the base does not support, or "".

    Args:
        encoder: Encoder that is built from the base.
        texts: Sentences of the corpus.
    """
    tokenizer, sample = getattr(encoder, "tokenizer", None), list(islice(texts, _TEXTS))
    if not isinstance(tokenizer, PreTrainedTokenizerBase) or not sample:
        return ""
    letters = letters_per_token(tokenizer, sample)
    least = FEWEST_WITHOUT_BLANKS if 2 * sum(map(has_unspaced, sample)) > len(sample) else FEWEST
    if letters is None or letters >= least:
        return ""
    name = language_of(sample)
    return (
        f"{base} hardly knows the language of this text{f', {name}' if name else ''}: its tokens have {letters:.1f} "
        f"letters on average, compared with {least} or more in a known language. Use a base of the language, or make "
        "an encoder of the text alone by `likewise train characters`; likewise evaluate compares either with a bag of "
        "characters, characters:FILE (docs/guides/another-language.md)"
    )
