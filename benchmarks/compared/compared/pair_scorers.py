"""Models that score sentence pairs directly: BERTScore on the tokens of an encoder, and cross-encoders.

Zhang et al. 2020, "BERTScore: Evaluating Text Generation with BERT": the similarity of two sentences by the best match
of each token among the tokens of the other. The package bert-score takes models only by their hub names, and needs
pandas and matplotlib; this works on an encoder that is loaded already. Letters of the shapes: P pairs, T and U tokens,
D embedding.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer
from torch import Tensor
from torch.nn import functional as F

from likewise.encoder.modules import undisturbed
from likewise.evaluation.task import EvaluationError
from likewise.inference.cross_encoder import predict_pairs
from likewise.inference.load_model import load
from likewise.inference.vectors import Precision, autocast
from likewise.runs.progress import Progress
from likewise.searching.parts.reranker import open_cross_encoder

LAYERS = {
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "roberta-base": 10,
    "roberta-large": 17,
    "distilbert-base-uncased": 5,
    "distilroberta-base": 5,
}
"""The layer that correlates best with WMT16's ratings, by model (the table of the authors' code)."""

BATCH = 64
"""Pairs in a batch; another size changes the last bits of a score."""
_CHUNKS = 32
"""Calls of a cross-encoder for one task: steps of the bar, long enough for batches of near-equal length."""


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
        precision: as in `likewise.evaluate`.

    Attributes:
        layer: the hidden layer taken: the authors' choice for the models that they name, and the last one of others.

    Raises:
        EvaluationError: the model has no transformer.
    """

    def __init__(
        self, model: SentenceTransformer | str | os.PathLike[str], *, precision: Precision | None = None
    ) -> None:
        encoder: SentenceTransformer
        if isinstance(model, str | os.PathLike):
            encoder, name = load(model, precision="fp32"), os.fspath(model)
        else:
            encoder, name = model, type(model).__name__
        self.transformer: Any = encoder[0]
        if not isinstance(self.transformer, Transformer):
            kind = type(self.transformer).__name__
            raise EvaluationError(f"BERTScore takes the tokens of a transformer, and this model begins with {kind}")
        last = int(self.transformer.auto_model.config.num_hidden_layers)
        self.layer = LAYERS.get(name.rpartition("/")[2], last)
        self.model, self.name = encoder, f"bertscore:{name}"
        self.precision = precision
        self.settings = _settings(encoder, f"BERTScore f1, layer {self.layer}", precision)

    @torch.inference_mode()
    def score_pairs(self, first: Sequence[str], second: Sequence[str], progress: Progress) -> np.ndarray:
        """Return the score of each of P pairs, (P,) float64; the model's modes and the random state are restored."""
        scores = np.zeros(len(first))
        lengths = np.array([len(a) + len(b) for a, b in zip(first, second, strict=True)])
        order = np.argsort(-lengths, kind="stable")  # pairs of near-equal length pad little
        with progress.bar("scoring pairs", len(first)) as bar, undisturbed(self.model):
            for start in range(0, len(order), BATCH):
                rows = order[start : start + BATCH]
                (left, left_masks), (right, right_masks) = (
                    self._tokens([side[row] for row in rows]) for side in (first, second)
                )
                *_, f1 = match_tokens(left, right, left_masks, right_masks)
                scores[rows] = f1.double().cpu().numpy()
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


class CrossEncoderScorer:
    """A `PairScorer` by a cross-encoder; `likewise context distill --structure cross` trains one.

    Args:
        model: a CrossEncoder with one output, or its folder or hub name.
        precision: as in `likewise.evaluate`.

    Raises:
        LoadError: there is no such model, or it has more than one output.
    """

    def __init__(self, model: CrossEncoder | str, *, precision: Precision | None = None) -> None:
        encoder = open_cross_encoder(model)
        named = model if isinstance(model, str) else type(model).__name__
        self.model, self.name = encoder, f"cross-encoder:{named}"
        self.precision = precision
        self.settings = _settings(encoder, "score of a cross-encoder", precision)

    def score_pairs(self, first: Sequence[str], second: Sequence[str], progress: Progress) -> np.ndarray:
        """Return the score of each of P pairs, (P,) float64; the model's modes and the random state are restored."""
        scores = [np.zeros(0)]
        with progress.bar("scoring pairs", len(first)) as bar:
            for rows in np.array_split(np.arange(len(first)), min(_CHUNKS, len(first)) or 1):
                some = [first[row] for row in rows], [second[row] for row in rows]
                scores.append(predict_pairs(self.model, *some, BATCH, self.precision))
                bar.advance(len(rows))
        return np.concatenate(scores)


def _settings(model: Any, similarity: str, precision: Precision | None) -> dict[str, str]:
    return {"similarity": similarity, "precision": precision or "fp32", "device": str(model.device)}
