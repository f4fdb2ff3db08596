"""BERTScore: the similarity of two sentences by the best match of each token among the tokens of the other.

Zhang et al. 2020, "BERTScore: Evaluating Text Generation with BERT". The package bert-score takes models only by their
hub names, and needs pandas and matplotlib; this works on an encoder that is loaded already. Letters of the shapes: P
pairs, T and U tokens, D embedding.
"""

import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor
from torch.nn import functional as F

from likewise.evaluation.task import EvaluationError
from likewise.inference.encoding import Precision, autocast, undisturbed
from likewise.runs.progress import Progress

Measure = Literal["f1", "precision", "recall"]

LAYERS = {
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "roberta-base": 10,
    "roberta-large": 17,
    "distilbert-base-uncased": 5,
    "distilroberta-base": 5,
}
"""The layer that correlates best with WMT16's ratings, by model (the table of the authors' code)."""


def match_tokens(
    first: Tensor, second: Tensor, first_masks: tuple[Tensor, Tensor], second_masks: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return precision, recall and F1 of pairs by greedy matching (section 3, without importance weights).

    R = mean over the words x_i of `second` of max over j of cos(x_i, y_j), P the same with the sides changed, and
    F1 = 2 P R / (P + R). As in the authors' code, the special tokens are not words, but a word may match one.

    Args:
        first: (P, T, D) token vectors y of the candidates.
        second: (P, U, D) token vectors x of the references.
        first_masks: (P, T) each: 1 at tokens, and 1 at words.

    Returns:
        Three times (P,); 0 where a side has no word.
    """
    cosines = F.normalize(first.float(), dim=-1) @ F.normalize(second.float(), dim=-1).mT  # (P, T, U)
    (there, words), (others_there, other_words) = first_masks, second_masks
    lowest = -2.0  # below any cosine
    best = cosines.masked_fill(~others_there.bool()[:, None, :], lowest).amax(dim=2)  # (P, T)
    other_best = cosines.masked_fill(~there.bool()[:, :, None], lowest).amax(dim=1)  # (P, U)
    precision = (best * words).sum(dim=1) / words.sum(dim=1).clamp(min=1)
    recall = (other_best * other_words).sum(dim=1) / other_words.sum(dim=1).clamp(min=1)
    empty = (words.sum(dim=1) == 0) | (other_words.sum(dim=1) == 0)
    precision, recall = precision.masked_fill(empty, 0.0), recall.masked_fill(empty, 0.0)
    total = precision + recall
    return precision, recall, torch.where(total != 0, 2 * precision * recall / total, torch.zeros_like(total))


class BertScore:
    """A `PairScorer` of sentence pairs by BERTScore.

    Args:
        model: a SentenceTransformer whose first module is a Transformer, or what `likewise.load` takes.
        layer: the hidden layer taken, 0 for the embeddings and -1 for the last; None takes the authors' choice for the
            models that they name, and the last one of others.
        measure: the score of a pair; F1 is the same in both orders.
        batch_size, precision: as in `likewise.evaluate`.

    Raises:
        EvaluationError: the model has no transformer, or no such layer.
    """

    def __init__(
        self,
        model: SentenceTransformer | str | os.PathLike[str],
        *,
        layer: int | None = None,
        measure: Measure = "f1",
        batch_size: int = 64,
        precision: Precision | None = None,
    ) -> None:
        from sentence_transformers.sentence_transformer.modules import Transformer

        from likewise.inference.loading import load

        named = os.fspath(model) if isinstance(model, str | os.PathLike) else ""
        self.model = load(model) if isinstance(model, str | os.PathLike) else model
        transformer = self.model[0]
        if not isinstance(transformer, Transformer):
            raise EvaluationError(
                f"BERTScore takes the tokens of a transformer, and this model begins with {type(transformer).__name__}"
            )
        deepest = int(transformer.auto_model.config.num_hidden_layers)
        chosen = LAYERS.get(named.rpartition("/")[2], deepest) if layer is None else layer
        self.layer = chosen + deepest + 1 if chosen < 0 else chosen
        if not 0 <= self.layer <= deepest:
            raise EvaluationError(f"the layers of this model are 0 to {deepest}, and {chosen} is asked for")
        self.transformer: Any = transformer
        self.measure = measure
        self.batch_size = batch_size
        self.precision: Precision | None = precision
        self.name = f"bertscore:{named or type(self.model).__name__}"
        self.settings = {
            "similarity": f"BERTScore {measure}, layer {self.layer}",
            "precision": precision or "fp32",
            "device": str(self.model.device),
        }

    def score_pairs(self, first: Sequence[str], second: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """Return the score of each of P pairs, (P,) float64; the model's modes and the random state are restored."""
        order = np.argsort([-len(a) - len(b) for a, b in zip(first, second, strict=True)], kind="stable")
        scores = np.zeros(len(first))
        bars = (progress or Progress(quiet=True)).bar("scoring pairs", len(first))
        with bars as bar, undisturbed(self.model), torch.inference_mode():
            for start in range(0, len(order), self.batch_size):
                rows = order[start : start + self.batch_size]
                one, one_masks = self._tokens([first[row] for row in rows])
                other, other_masks = self._tokens([second[row] for row in rows])
                found = match_tokens(one, other, one_masks, other_masks)
                scores[rows] = found[("precision", "recall", "f1").index(self.measure)].double().cpu().numpy()
                bar.advance(len(rows))
        return scores

    def _tokens(self, texts: list[str]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return token vectors (P, T, D) of a layer, and the masks of tokens and of words, (P, T) each."""
        tokens = self.transformer.tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self.model.max_seq_length,
            return_special_tokens_mask=True,
            return_tensors="pt",
        ).to(self.model.device)
        words = tokens["attention_mask"] * (1 - tokens.pop("special_tokens_mask"))
        with autocast(self.model, self.precision):
            hidden = self.transformer.auto_model(**tokens, output_hidden_states=True).hidden_states[self.layer]
        return hidden, (tokens["attention_mask"], words)
