"""Exclusions: 'A, excluding X' learns the base's vector of A minus a part of X's vector. Not from a paper.

Encoders place a text that excludes X next to texts about X. A rule on the query corrects this: the vector of the rest,
minus a fraction of the excluded words' vector. This recipe trains the encoder itself to apply the rule, on sentences
with generated exclusions. The vectors of other sentences do not change: the training is a distillation in which the
teacher never reads an exclusion. docs/systems/others.md states the sources of the values.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

from likewise.corpus.words import word_count
from likewise.recipes import PromptOptions, Reading, Recipe, Run, TextCollator, option
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

    from likewise.encoder.modules import Features
    from likewise.losses import EncoderLoss

_MOST_WORDS = 30
"""Longer sentences may be cut in training, and the exclusion with it: they stand for themselves alone."""
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


class ExclusionOptions(PromptOptions):
    """The options of `exclusion`; the template is for a base that reads a mask."""

    exclusion_share: float = option(0.5, "Fraction of the sentences for which an exclusion is written.", gt=0, le=1)
    excluded_weight: float = option(0.3, "Weight with which the vector of the excluded words is subtracted.", ge=0)


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
    phrase = " ".join(words[start : end + 1]).strip(_SIGNS)
    # Punctuation inside would end the phrase.
    return bare[start] if any(char in phrase for char in ",;:()") else phrase


def excluding(sentence: str, what: str, rng: random.Random) -> str:
    """Return a sentence with an exclusion at its end, or at one of its commas.

    >>> excluding("The castle is old.", "the tower", random.Random(1))
    'The castle is old (but not the tower).'
    """
    cue = f"{rng.choice(_CUES)} {what}"
    commas = [i for i, char in enumerate(sentence) if char == "," and sentence[i + 1 : i + 2] == " "]
    place = len(sentence) - (sentence[-1] in _ENDS)
    if commas and rng.random() < 0.3:
        place = rng.choice(commas)
    return sentence[:place] + rng.choice(_FORMS).format(cue) + sentence[place:]


def with_exclusions(rows: list[Record], share: float, seed: int) -> Record:
    """Return sentences, the texts whose vectors are their targets, and the exclusions.

    Args:
        rows: B sentences.
        share: Fraction of the sentences with an exclusion, which consists of words of the next sentence.

    Returns:
        {'sentence': N texts, the B sentences first, 'meaning': N texts, 'excluded': E texts, 'excluded_rows': (E,),
        their places among the N}; the last two only where there is an exclusion.
    """
    import torch

    pairs = [(row["sentence"], row["sentence"]) for row in rows]
    excluded: list[tuple[int, str]] = []
    for row, other in zip(rows, [*rows[1:], rows[0]], strict=True):
        sentence, rng = row["sentence"], random.Random(f"{seed} {row['sentence']}")
        short = word_count(sentence) <= _MOST_WORDS
        if short and rng.random() < share and (words := some_words(other["sentence"], rng)):
            excluded.append((len(pairs), words))
            pairs.append((excluding(sentence, words, rng), sentence))
    columns: Record = {"sentence": [text for text, _ in pairs], "meaning": [text for _, text in pairs]}
    if excluded:
        columns["excluded"] = [words for _, words in excluded]
        columns["excluded_rows"] = torch.tensor([place for place, _ in excluded])
    return columns


def in_english(run: Run) -> Run:
    """Return the unchanged run after a check that its text is English.

    Raises:
        NotEnglishError: If most sentences are in another language.
    """
    from likewise.augment.negation.english import check_english

    check_english(run.sentences())
    return run


def _encoder(base: str, options: ExclusionOptions) -> SentenceTransformer:
    from likewise.encoder import FrozenCopy, build_encoder, build_prompt_encoder, reads_a_mask

    if reads_a_mask(base):
        encoder = build_prompt_encoder(base, options.template, head=False, final_stop=options.final_stop)
    else:
        encoder = build_encoder(base, pooling="own", head=False)
    encoder.append(FrozenCopy.of(encoder))
    return encoder


def composed_loss(loss: EncoderLoss[ExclusionOptions], own: Features, meant: Features, *excluded: Features) -> Tensor:
    """Return the mean of 1 - cos(vector, target), with targets composed of a teacher's vectors.

    The target of a sentence is the teacher's vector of a text, minus a fraction of the teacher's vector of the excluded
    words, if there are any; both have length 1. Use it for an encoder that understands exclusions.

    Args:
        loss: The encoder, its teacher and the options.
        own: The column 'sentence' of `with_exclusions`, as tokens of the encoder.
        meant: The column 'meaning', as tokens of the teacher.
        excluded: The column 'excluded' with its rows, as tokens of the teacher, if there is one.

    See also:
        `likewise.recipes.light.vectors_loss`: the same distance from vectors that were encoded before training.
        `likewise.losses.functional.cosine_distance`: the equation.

    >>> import torch
    >>> from types import SimpleNamespace
    >>> given = SimpleNamespace(encode=lambda tokens: tokens["vectors"])
    >>> options = ExclusionOptions(excluded_weight=1.0)
    >>> loss = SimpleNamespace(vectors=given.encode, teacher=given, options=options)
    >>> a, x = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> columns = {"vectors": a}, {"vectors": a}, {"vectors": x, "rows": torch.tensor([0])}
    >>> round(float(composed_loss(loss, *columns)), 3)  # A lies at 45 degrees from A less X
    0.293
    """
    from torch.nn import functional as F

    from likewise.losses import functional

    targets = F.normalize(loss.teacher.encode(meant), dim=1)
    for features in excluded:
        less = F.normalize(loss.teacher.encode(features), dim=1).to(targets.dtype)
        targets = targets.index_add(0, features["rows"], less, alpha=-loss.options.excluded_weight)
    return functional.cosine_distance(loss.vectors(own), targets)


CPU = ExclusionOptions(
    learning_rate=2e-4,
    warmup_ratio=0.1,
    weight_decay=0.01,
    max_length=64,
    max_steps=150,
    eval_steps=75,
    sam_rho=0.0,
    select_by="last",  # STS-B dev has no exclusions and would take the beginning
)
EXCLUSION: Recipe = Recipe(
    name="exclusion",
    summary="'A, excluding X' learns the base's vector of A minus a part of X's vector; other sentences keep their "
    "vectors.",
    source="this library; docs/systems/others.md",
    presets={"cpu": CPU},
    preset_notes={"cpu": "150 updates of 64 sentences at rate 2e-4, from a fine-tuned encoder."},
    loss=composed_loss,
    distils=True,
    build_encoder=_encoder,
    build_collator=lambda encoder, options, seed: TextCollator(
        partial(with_exclusions, share=options.exclusion_share, seed=seed), Reading.of(encoder, options.max_length)
    ),
    stages=(in_english,),
)
