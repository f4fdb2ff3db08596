"""Evaluators that select a checkpoint during training, by rated, labeled or plain sentences.

Checkpoints are scored in float32, whatever they are trained in, as the saved model is. The sentences are tokenized
once, and encoded at each evaluation. Letters of the shapes: P pairs, S sentences, R triplets,
D embedding.
"""

import math
import os
import random
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
from sentence_transformers.util import batch_to_device

from likewise.corpus.words import DividedText, word_count
from likewise.encoder.location import Role
from likewise.encoder.modules import Features, find_part, undisturbed
from likewise.encoder.settings import ModelSettings
from likewise.encoder.training_modules import PairClassifier
from likewise.evaluation.bootstrap import sampled_scores
from likewise.evaluation.pairs import Distance, correlations, pair_cosines, triplet_accuracy
from likewise.evaluation.registry import rated_task
from likewise.evaluation.task import EvaluationError, Items
from likewise.evaluation.vector_measures import alignment, separation_of_each, uniformity
from likewise.inference.cross_encoder import predict_pairs

# Pairs rated above this mean the same: SimCSE's choice for alignment on STS-B (Gao et al. 2021, section 6).
_SAME = 4.0
_RATE = 0.4  # share of the words that a copy lacks
_LONG = 5  # words; with some of them removed, a shorter sentence may mean anything

Metrics = dict[str, float]


class CheckpointEvaluator(SentenceEvaluator):
    """An evaluator of checkpoints; the trainer saves the checkpoint with the best value of the primary metric.

    The trainer prefixes the names of the metrics by `eval_`, as in "eval_sts_dev_spearman".

    Args:
        metric: Name of the metric that selects the checkpoint.
        name: Prefix of the metrics, followed by an underscore.
        score: Function from a model to its metrics, or to the metrics and the items from which the primary metric is
            computed.

    Attributes:
        items: Items of the last evaluated model; None if they are unknown.
    """

    description: str = ""  # of the class above it is a property

    def __init__(
        self,
        metric: str,
        name: str,
        score: Callable[[Any], Metrics | tuple[Metrics, Items]],
        description: str,
        sentences: Sequence[str],
        *,
        greater_is_better: bool = True,
    ) -> None:
        super().__init__()
        self.name, self.description, self.sentences = name, description, tuple(sentences)
        self.primary_metric, self.greater_is_better = f"{name}_{metric}", greater_is_better
        self.items: Items | None = None
        self._score = score

    def __call__(self, model: Any, *others: object, **more: object) -> Metrics:
        """Score the model; nothing is written to the trainer's `output_path`."""
        metrics = self._score(model)
        if isinstance(metrics, tuple):
            metrics, self.items = metrics
        return self.prefix_name_to_metrics(metrics, self.name)

    def gain(self, before: float, after: float) -> float:
        """Return the gain of the primary metric by a change; it is negative if the metric becomes worse."""
        return after - before if self.greater_is_better else before - after

    def noise(self, before: Items | None, after: Items | None) -> float | None:
        """Return the noise of the primary metric's change from one model to another; None if it is unknown.

        The noise is half of the width of the 95% confidence interval of the change: 1.96 standard deviations over
        bootstrap samples of the items (a paired bootstrap).

        Args:
            before, after: `items` of both models.
        """
        if before is None or after is None:
            return None
        first, second = sampled_scores(self.name, [before, after])
        return 1.96 * float(np.std(second - first))


def sts_b_dev_evaluator(data: str | os.PathLike[str] | None = None) -> CheckpointEvaluator:
    """Return the papers' evaluator: STS-B dev, read from the data folder that `find_data` finds.

    Raises:
        DataError: If there is no data folder, no STS-B dev in it, or it is malformed.
    """
    pairs = rated_task("sts-b-dev").pairs(data)
    description = f"best Spearman correlation on STS-B dev, {len(pairs.gold)} rated pairs"
    return ratings_evaluator(pairs.first, pairs.second, pairs.gold, description=description)


def ratings_evaluator(
    first: Sequence[str],
    second: Sequence[str],
    ratings: Sequence[float] | np.ndarray,
    *,
    name: str = "sts_dev",
    description: str | None = None,
) -> CheckpointEvaluator:
    """Return an evaluator on P pairs rated from 0 to 5, which selects by Spearman correlation.

    The metrics are `spearman` and `pearson` of the cosines with the ratings, times 100 (0 if they are undefined, as for
    a collapsed model); `alignment` over the pairs rated above 4, if there are any; and `uniformity` over all distinct
    sentences.

    Raises:
        EvaluationError: If the lengths differ, or there are fewer than two pairs.
    """
    _check_pairs(first, second, ratings, "ratings", "two rated pairs")
    gold = np.asarray(ratings, dtype=np.float64)  # (P,)
    same = gold > _SAME
    texts = [*first, *second]
    cache, places = TokenCache(texts), dict[str, int]()
    different = [i for i, text in enumerate(texts) if places.setdefault(text, i) == i]

    def score(model: SentenceTransformer) -> tuple[Metrics, Items]:
        vectors = cache.vectors(model)
        left, right = np.split(vectors, 2)  # each (P, D)
        cosines = pair_cosines(left, right)
        metrics = _correlations(cosines, gold)
        if same.any():
            metrics["alignment"] = alignment(left[same], right[same])
        if len(different) > 1:
            metrics["uniformity"] = uniformity(vectors[different])
        return metrics, Items(cosines, gold)

    description = description or f"best Spearman correlation on {len(gold)} rated pairs"
    return CheckpointEvaluator("spearman", name, score, description, texts)


def sentences_evaluator(sentences: Sequence[str], *, limit: int = 1000, seed: int = 0) -> CheckpointEvaluator:
    """Return an evaluator on unrated sentences, which selects by the separation of corrupted copies.

    Each sentence has a copy without 40% of its words, which the seed selects; the evaluator's `sentences` are S
    sentences and their S copies. The metrics are `separation`, the primary metric (see `separation_of_each`),
    `alignment` of copies and sentences, and `uniformity` of the sentences.

    Over 65 encoders made from all-MiniLM-L6-v2 (its layers, two poolings, five degrees of noise in the weights; 500
    Wikipedia sentences, rate 0.4) the rank correlation with the Spearman score on STS-B dev was 0.93 for separation,
    0.77 for alignment plus uniformity, and below 0 for alignment alone. Among the better half, it was 0.67 for
    separation, which thus distinguishes good models from degraded models, but distinguishes good models less reliably.

    Args:
        sentences: Held-out sentences. Repeated sentences and sentences of one word are skipped, as are sentences of
            fewer than five words, unless they are the majority.
        limit: Maximum number of sentences, which are sampled by the seed.

    Raises:
        EvaluationError: If fewer than two sentences remain.
    """
    usable = measurable_sentences(sentences)
    if len(usable) < 2:
        raise EvaluationError(
            "Selection on held-out sentences needs at least two different sentences of two words or more, but got "
            f"{len(usable)}. Hold out more."
        )
    chance = random.Random(seed)
    drawn = usable if len(usable) <= limit else chance.sample(usable, limit)
    texts = [*drawn, *(DividedText.of(sentence).without_share(_RATE, chance) for sentence in drawn)]
    cache = TokenCache(texts)

    def score(model: SentenceTransformer) -> tuple[Metrics, Items]:
        own, copies = np.split(cache.vectors(model), 2)  # each (S, D)
        separations = separation_of_each(copies, own)
        metrics = {
            "separation": float(separations.mean()),
            "alignment": alignment(own, copies),
            "uniformity": uniformity(own),
        }
        return metrics, Items(separations / 100)  # what is a mean of items is given times 100

    description = (
        f"best separation of {len(drawn)} held-out sentences from each other, by copies without {_RATE:.0%} of their "
        "words (no ratings)"
    )
    return CheckpointEvaluator("separation", "held_out", score, description, texts)


def measurable_sentences(sentences: Iterable[str]) -> list[str]:
    """Return the different sentences that `sentences_evaluator` can measure on, in order.

    >>> measurable_sentences(["pump", "pump noise", "pump seal", "the pump makes a noise"])
    ['pump noise', 'pump seal', 'the pump makes a noise']
    """
    words = {sentence: word_count(sentence) for sentence in dict.fromkeys(sentences)}
    usable = [sentence for sentence, count in words.items() if count > 1]
    long = [sentence for sentence in usable if words[sentence] >= _LONG]
    return long if 2 * len(long) >= len(usable) else usable


def labels_evaluator(first: Sequence[str], second: Sequence[str], labels: Sequence[int]) -> CheckpointEvaluator:
    """Return an evaluator on P labeled pairs: the accuracy, times 100, of the model's `PairClassifier`."""
    _check_pairs(first, second, labels, "labels")
    gold = np.asarray(labels)  # (P,)
    cache = TokenCache([*first, *second])

    def score(model: SentenceTransformer) -> Metrics:
        head = find_part(model, PairClassifier)
        if head is None:
            raise EvaluationError("the model has no PairClassifier, which exists only during training on labels")
        left, right = torch.from_numpy(cache.vectors(model)).to(head.linear.weight.device).chunk(2)  # each (P, D)
        with torch.inference_mode():
            predicted = head.logits(left, right).argmax(dim=1).cpu().numpy()  # (P,)
        return {"accuracy": 100 * float((predicted == gold).mean())}

    description = f"best accuracy on {len(gold):,} held-out labelled pairs"
    return CheckpointEvaluator("accuracy", "held_out", score, description, [*first, *second])


def scores_evaluator(
    first: Sequence[str],
    second: Sequence[str],
    scores: Sequence[float] | np.ndarray,
    *,
    to_target: Callable[[np.ndarray], np.ndarray] = lambda scores: scores,
    from_target: Callable[[np.ndarray], np.ndarray] = lambda targets: targets,
    name: str = "dev",
) -> CheckpointEvaluator:
    """Return an evaluator on P scored pairs, for an encoder (by its cosines) or a cross-encoder.

    The metrics are `mse`, the mean squared error of the targets, which is minimized; `mse_harvest`, the same on the
    scale of the scores; and `spearman` and `pearson` with the scores, times 100 (0 if they are undefined).

    Args:
        to_target, from_target: Functions from scores to training targets, and back.
    """
    _check_pairs(first, second, scores, "scores", "two scored pairs")
    gold = np.asarray(scores, dtype=np.float64)  # (P,)
    targets, predict = to_target(gold), PairPredictions(first, second)

    def score(model: Any) -> Metrics:
        predicted = predict(model)  # (P,)
        return {
            "mse": float(np.mean((predicted - targets) ** 2)),
            "mse_harvest": float(np.mean((from_target(predicted) - gold) ** 2)),
            **_correlations(predicted, gold),
        }

    description = f"lowest mean squared error on {len(gold):,} held-out scored pairs"
    return CheckpointEvaluator("mse", name, score, description, [*first, *second], greater_is_better=False)


def triplets_evaluator(
    anchors: Sequence[str],
    positives: Sequence[str],
    negatives: Sequence[str],
    *,
    distance: Distance = "euclidean",
    sides: Sequence[Role] = (),
) -> CheckpointEvaluator:
    """Return an evaluator on R triplets: the percentage whose positive is nearer than the negative.

    An equal distance counts as wrong, so that a collapsed model has 0. `sides` are the roles of the three columns.
    """
    if not len(anchors) == len(positives) == len(negatives) or not len(anchors):
        raise EvaluationError(
            f"The numbers of anchors, positives and negatives must be equal, but are {len(anchors)}, "
            f"{len(positives)} and {len(negatives)}."
        )
    sentences = [*anchors, *positives, *negatives]
    cache = TokenCache(sentences, [side for side in sides for _ in anchors])

    def score(model: SentenceTransformer) -> Metrics:
        return {"accuracy": triplet_accuracy(cache.vectors(model), distance)}

    description = f"best accuracy ({distance} distance) on {len(anchors):,} held-out triplets"
    return CheckpointEvaluator("accuracy", "held_out", score, description, sentences)


def _check_pairs(
    first: Sequence[str], second: Sequence[str], values: Sequence[object] | np.ndarray, what: str, least: str = ""
) -> None:
    if not len(first) == len(second) == len(values) or not len(values):
        raise EvaluationError(
            f"The numbers of first sentences, second sentences and {what} must be equal, but are {len(first)}, "
            f"{len(second)} and {len(values)}."
        )
    if least and len(values) < 2:
        raise EvaluationError(f"A correlation needs at least {least}, but got one.")


def _correlations(predicted: np.ndarray, gold: np.ndarray) -> Metrics:
    """Return both correlations, with 0 for NaN: a comparison with NaN is false, so the first checkpoint would stay."""
    values = zip(("spearman", "pearson"), correlations(predicted, gold), strict=True)
    return {name: 0.0 if math.isnan(value) else value for name, value in values}


BATCH = 32
"""Sentences in a batch; another size changes the last bits of a score."""


class TokenCache:
    """A list of tokenized sentences, which are encoded repeatedly while the model changes.

    Repeated sentences are encoded once. Batches consist of distinct sentences of similar length, and their tokens are
    cached, so that a call only costs the forward passes. The tokens are recomputed when the tokenizing module, its
    maximum length or the model's prompt changes. A `TextEncoder` is not used because the trained encoder can be of any
    kind, and because its scores must be bitwise reproducible, in batches of 32.

    Args:
        sentences: S texts.
        roles: Role of each text, for a model that encodes queries and documents differently; () for no roles.
    """

    def __init__(self, sentences: Sequence[str], roles: Sequence[Role] = ()) -> None:
        self._sentences, self._roles = sentences, roles
        self._batches: list[tuple[str | None, Features]] = []  # of a route each
        self._setting: tuple[object, ...] = ()

    def vectors(self, model: SentenceTransformer) -> np.ndarray:
        """Return the vectors of all sentences, (S, D) float32; the model's modes and the random state are restored."""
        self._tokenize(model)
        encoded = []
        with undisturbed(model), torch.inference_mode():
            for task, batch in self._batches:
                # A copy: modules put their outputs into the dict that they are given.
                features = batch_to_device(dict(batch), model.device)
                output = (model(features, task=task) if task else model(features))["sentence_embedding"]
                encoded.append(output[:, : model.truncate_dim].float().cpu())
        table: np.ndarray = torch.cat(encoded).numpy()
        return table[self._rows]

    def _tokenize(self, model: SentenceTransformer) -> None:
        settings = ModelSettings.of(model)
        setting = (model[0], model.max_seq_length, settings.prompts, settings.default_prompt)
        if self._setting == setting:
            return
        none: list[Role | None] = [None] * len(self._sentences)
        roles = self._roles if self._roles and settings.has_sides else none
        texts = list(zip(roles, self._sentences, strict=True))
        # Longest first, so that a batch that does not fit in memory fails at once.
        unique = sorted(dict.fromkeys(texts), key=lambda text: (text[0] or "", -len(text[1])))
        place = {text: i for i, text in enumerate(unique)}
        self._rows = np.array([place[text] for text in texts], dtype=np.int64)  # (S,)
        self._batches = []
        for role, group in groupby(unique, key=lambda text: text[0]):
            same = [sentence for _, sentence in group]
            prompt, task = settings.prompt(role), settings.task(role)
            routed = {"task": task} if task else {}
            for start in range(0, len(same), BATCH):
                tokens = model.preprocess(same[start : start + BATCH], prompt=prompt or None, **routed)
                self._batches.append((task, tokens))
        self._setting = setting


class PairPredictions:
    """The float32 scores of P pairs by any model: cosines of an encoder, scores of a cross-encoder."""

    def __init__(self, first: Sequence[str], second: Sequence[str]) -> None:
        self._sides = first, second
        self._cache = TokenCache([*first, *second])

    def __call__(self, model: Any) -> np.ndarray:
        """Return scores (P,) float64; the model's modes and the global random state are restored."""
        if isinstance(model, CrossEncoder):
            return predict_pairs(model, *self._sides, BATCH, "fp32")
        return pair_cosines(*np.split(self._cache.vectors(model), 2))
