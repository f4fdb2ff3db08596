"""The discriminator's accuracy on documents it was not trained on."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.context.coherence import Examples, draw_negatives
from likewise.context.discriminator import Discriminator
from likewise.context.errors import ContextError
from likewise.context.token_ids import Sentences


@dataclass(frozen=True)
class Accuracy:
    """Share of right answers on held-out examples, half of them positive.

    Attributes:
        accuracy: over all, from 0 to 1.
        positive: of the sentences in their own place.
        same_document: of the negatives from the same document.
        other_document: of those from others.
        examples: how many there are, positive and negative.
    """

    accuracy: float
    positive: float
    same_document: float
    other_document: float
    examples: int


def accuracy_of(model: Discriminator, sentences: Sentences, examples: Examples, seed: int) -> Accuracy:
    """The accuracy at p = 1/2 on each context with its own sentence and with one drawn negative."""
    with torch.no_grad():
        model.eval()
        found = accuracy_over(model, model.represent(sentences[examples.sentences]), examples, seed)
        model.train()
    return found


@torch.no_grad()
def accuracy_over(model: Discriminator, representations: Tensor, examples: Examples, seed: int) -> Accuracy:
    """As `accuracy_of`, from the representations (S, 2H) of the examples' sentences.

    Raises:
        ContextError: there is no negative among them.
    """
    drawn, of_document = draw_negatives(examples, seed)
    there = drawn >= 0
    if not there.any():
        raise ContextError("the held-out documents give no negative: index more documents, or hold out more of them")
    parts = model.sentence_part(representations)
    contexts = model.context_part(representations, torch.from_numpy(examples.places))[there]
    fits = model.combine_pairs(parts[examples.centres[there]], contexts) > 0
    refused = model.combine_pairs(parts[drawn[there]], contexts) <= 0
    right, wrong, same = fits.numpy(), refused.numpy(), of_document[there]
    return Accuracy(
        accuracy=float((right.mean() + wrong.mean()) / 2),
        positive=float(right.mean()),
        same_document=float(wrong[same].mean()) if same.any() else float("nan"),
        other_document=float(wrong[~same].mean()) if not same.all() else float("nan"),
        examples=2 * len(right),
    )
