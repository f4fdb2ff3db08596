"""Generators of equation 2 by a pretrained causal language model, of which nothing is trained.

What stands before is read once for all texts that follow it, and its keys and values are kept for them. Texts of
near-equal length share a batch. Sums are kept in likewise's cache, so that the same question is not computed again.

A causal model reads from left to right. What it is asked depends on `given`:

    near   log p(s | l), l the sentence before the gap, and log p(r | s), r the one behind it. By Bayes' rule
           log p(l | s) = log p(l) + log p(s | l) - log p(s), so the left term costs nothing more.
    both   all of either side, as in equation 2, again by Bayes' rule:
           log p(s | l, r) = log p(s | l) + log p(r | l, s) - log p(r | l)
           log p(l | s, r) = log p(l) + log p(s | l) + log p(r | l, s) - log p(s) - log p(r | s)
           log p(r | l, s)

As pointwise mutual information, log p(s), log p(l | r) and log p(r | l) are taken off (`near`: log p(l) and log p(r)).
All are per token of what is generated.

Letters: S sentences, C contexts, K cells (a sentence in a context, or a text behind another one), P parts of a cell, N
rows of a batch, T tokens, V words.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from likewise.corpus.lines_and_rows import digest_of
from likewise.queries.local import CausalModel
from likewise.runs.cache import cached
from likewise.runs.whole_files import written_whole

if TYPE_CHECKING:
    from transformers import DynamicCache

    from likewise.context.states import States

_BATCH_TOKENS = 2_048
"""Tokens of a forward pass."""
_KEPT_TOKENS = 8_192
"""Tokens of what stands before, whose keys and values are held at a time."""
_PIECE = 4_096
"""Cells that a stopped run may lose."""
_ROWS = 64
"""Distributions over all words that are normalised at a time: these fit a processor's cache."""


class CausalScorer:
    """The log probability of texts behind other texts.

    A text begins with a blank, also at the start, so that the same tokens are scored with and without a text before
    them. In bfloat16 a sum changes by about a hundredth with the texts that share its batch.

    Args:
        model: the language model.
        keep: keep the sums in likewise's cache.
    """

    def __init__(self, model: CausalModel, keep: bool = True) -> None:
        self.causal = model
        self.keep = keep
        self._tokens: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a text with a blank before it; those of no text are none."""
        if text not in self._tokens:
            self._tokens[text] = self.causal.ids(" " + text) if text else []
        return self._tokens[text]

    def lengths(self, texts: Sequence[str]) -> np.ndarray:
        """Return the number of tokens of each text: int64 (N,)."""
        return np.array([len(self.ids(text)) for text in texts], np.int64)

    def sums(
        self,
        before: Sequence[str],
        texts: Sequence[str],
        cells: np.ndarray,
        advance: Callable[[int], object] = lambda count: None,
    ) -> np.ndarray:
        """Return the log probability of every part of each cell: (K, P) float64.

        Args:
            before: what may stand before; "" for nothing.
            texts: what may follow.
            cells: (K, 1 + P), the index of what stands before, and those of the texts that follow it one after the
                other; each is scored given all before it.
            advance: told how many cells were done.
        """
        if not self.keep or not len(cells):
            return self._sums(before, texts, cells, advance)

        order = np.lexsort(cells.T[::-1])  # by what stands before

        def make(folder: Path) -> None:
            for begin in range(0, len(order), _PIECE):
                if not (path := folder / f"{begin}.npy").exists():
                    with written_whole(path) as unfinished, unfinished.open("wb") as file:
                        np.save(file, self._sums(before, texts, cells[order[begin : begin + _PIECE]], advance))

        asked = ["\0".join([before[row[0]], *(texts[i] for i in row[1:])]) for row in cells]
        key = [self.causal.identity, digest_of("\n".join(asked)).hex()]
        folder = cached("likelihoods", key, make, resumes=True)
        sums = np.empty((len(cells), cells.shape[1] - 1))
        pieces = [np.load(folder / f"{begin}.npy") for begin in range(0, len(cells), _PIECE)]
        sums[order] = np.concatenate(pieces)
        return sums

    def _sums(
        self, before: Sequence[str], texts: Sequence[str], cells: np.ndarray, advance: Callable[[int], object]
    ) -> np.ndarray:
        sums = np.zeros((len(cells), cells.shape[1] - 1))
        for rows, logs in self._batches(before, texts, cells):
            for i, log in zip(rows, logs, strict=True):
                ends = np.cumsum(self.lengths([texts[k] for k in cells[i, 1:]]))
                sums[i] = [part.sum() for part in np.split(log, ends[:-1])]
            advance(len(rows))
        return sums

    def _batches(
        self, before: Sequence[str], texts: Sequence[str], cells: np.ndarray
    ) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
        """Yield rows of the cells, and the log probabilities of the tokens of each, until all are done."""
        if not len(cells):
            return
        distinct, of = np.unique(cells[:, 0], return_inverse=True)
        sources = [[self.start, *self.ids(before[i])] for i in distinct]
        following = [[token for i in row[1:] for token in self.ids(texts[i])] for row in cells]
        lengths = np.array([len(row) for row in following])
        order = np.argsort([len(tokens) for tokens in sources], kind="stable")
        begin = 0
        while begin < len(order):
            size = 1
            while begin + size < len(order) and (size + 1) * len(sources[order[begin + size]]) <= _KEPT_TOKENS:
                size += 1
            block = order[begin : begin + size]
            begin += size
            place = np.full(len(distinct), -1)
            place[block] = np.arange(len(block))
            rows = np.flatnonzero(place[of] >= 0)
            rows = rows[np.argsort(lengths[rows], kind="stable")]
            with torch.inference_mode():
                cache, mask = self._read([sources[i][:-1] for i in block])
                last = [sources[i][-1] for i in block]
                while len(rows):
                    count = 1
                    while count < len(rows) and (count + 1) * max(1, lengths[rows[count]]) <= _BATCH_TOKENS:
                        count += 1
                    batch, rows = rows[:count], rows[count:]
                    at = place[of[batch]]
                    yield batch, self._score(cache, mask, at, [last[i] for i in at], [following[i] for i in batch])

    @cached_property
    def start(self) -> int:
        """The token before the first one: what stands between texts in the model's training, or its first token."""
        tokenizer = self.causal.tokenizer
        marks = "<|endoftext|>", tokenizer.bos_token, tokenizer.eos_token
        return next((tokenizer.convert_tokens_to_ids(mark) for mark in marks if mark in tokenizer.get_vocab()), 0)

    def _read(self, rows: list[list[int]]) -> tuple[DynamicCache | None, Tensor]:
        """Return the keys and values of rows of tokens, and where there is a token; no cache if there is none."""
        if not max(map(len, rows)):
            return None, torch.ones(len(rows), 0, dtype=torch.int64, device=self.causal.model.device)
        from transformers import DynamicCache

        cache = DynamicCache()
        ids, mask = self.causal.padded(rows)
        begin, step = 0, max(1, _BATCH_TOKENS // ids.shape[1])
        if len(rows) <= step:
            self.causal.forward(ids, mask, cache)
            return cache, mask
        parts = []
        while begin < len(rows):
            part = DynamicCache()
            self.causal.forward(ids[begin : begin + step], mask[begin : begin + step], part)
            parts.append(part)
            begin += step
        for number in range(len(parts[0].layers)):
            keys, values = (
                torch.cat([getattr(part.layers[number], name) for part in parts]) for name in ("keys", "values")
            )
            cache.update(keys, values, number)
        return cache, mask

    def _score(
        self, cache: DynamicCache | None, mask: Tensor, at: np.ndarray, last: list[int], texts: list[list[int]]
    ) -> list[np.ndarray]:
        """Return the log probabilities of the tokens of each of N texts behind the kept rows `at`."""
        longest = max(map(len, texts))
        if not longest:
            return [np.zeros(0) for _ in texts]
        device = self.causal.model.device
        ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in texts], device=device)  # (N, T)
        inputs = torch.cat([torch.tensor(last, device=device)[:, None], ids[:, :-1]], dim=1)
        rows = torch.as_tensor(at, device=device)
        if cache is not None:
            cache = copy.deepcopy(cache)
            cache.batch_select_indices(rows)
        seen = torch.cat([mask[rows], torch.ones_like(ids)], dim=1)
        logits = self.causal.forward(inputs, seen, cache, logits=0).flatten(0, 1)  # (N T, V)
        logs = [
            part.float().log_softmax(dim=1).gather(1, wanted[:, None])[:, 0]
            for part, wanted in zip(logits.split(_ROWS), ids.flatten().split(_ROWS), strict=True)
        ]
        log_probabilities = torch.cat(logs).reshape(ids.shape).double().cpu().numpy()
        return [line[: len(row)] for line, row in zip(log_probabilities, texts, strict=True)]


Conditioning = Literal["near", "both"]
Logs = tuple[np.ndarray, np.ndarray, np.ndarray]


class PretrainedGenerators:
    """The three tasks by one causal model.

    Args:
        name: of the model, as `CausalModel` takes it.
        given: "near" or "both".
        keep: keep what was computed in likewise's cache.
    """

    sample = 8
    _advance: Callable[[int], object] = staticmethod(lambda count: None)

    def __init__(self, name: str, given: Conditioning = "near", keep: bool = True) -> None:
        self.given, self.scorer = given, CausalScorer(CausalModel(name), keep)

    @property
    def identity(self) -> str:
        """On these the terms depend: the model's files, and what it is given."""
        return f"{self.scorer.causal.identity} {self.given}"

    def terms(
        self,
        states: States,
        sentences: Sequence[str],
        cells: np.ndarray,
        wanted: Sequence[bool],
        pmi: bool,
        advance: Callable[[int], object] = lambda count: None,
    ) -> np.ndarray:
        """Return the terms of the centre, the left and the right (K, 3), see `Generators.terms`."""
        contexts, of = np.unique(cells[:, 1], return_inverse=True)
        lefts, rights = states.store.side_texts(contexts, 1 if self.given == "near" else None)
        rows = np.stack([cells[:, 0], of.reshape(-1)], axis=1)
        return self.of_texts(sentences, lefts, rights, rows, wanted, pmi, advance)

    def of_texts(
        self,
        sentences: Sequence[str],
        lefts: Sequence[str],
        rights: Sequence[str],
        cells: np.ndarray,
        wanted: Sequence[bool] = (True,) * 3,
        pmi: bool = True,
        advance: Callable[[int], object] = lambda count: None,
    ) -> np.ndarray:
        """Return the terms (K, 3) of S sentences in C contexts, whose texts are given.

        Args:
            cells: (K, 2), the index of a sentence and of a context.
            wanted: which of the three; the others are 0.
            pmi: less what each is without the sentence.
            advance: told how many cells the first pass of the model has done, the longest of two or three.
        """
        self._advance = advance
        logs = (self._near if self.given == "near" else self._both)(sentences, lefts, rights, cells, wanted, pmi)
        s, c = cells.T
        lengths = [self.scorer.lengths(texts)[rows] for texts, rows in ((sentences, s), (lefts, c), (rights, c))]
        means = np.stack([log / np.maximum(length, 1) for log, length in zip(logs, lengths, strict=True)], axis=1)
        return np.where(np.asarray(wanted), means, 0.0)

    def _alone(self, texts: Sequence[str], rows: np.ndarray) -> np.ndarray:
        """Return log p of the texts of some rows with nothing before them: (K,)."""
        return self._behind([""], texts, np.stack([np.zeros_like(rows), rows], axis=1))[:, 0]

    def _behind(self, before: Sequence[str], texts: Sequence[str], rows: np.ndarray) -> np.ndarray:
        """Return log p of texts behind others (K, P) for rows (K, 1 + P), each computed once."""
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        advance, self._advance = self._advance, lambda count: None
        return self.scorer.sums(before, texts, distinct, advance)[inverse.reshape(-1)]

    def _near(
        self,
        sentences: Sequence[str],
        lefts: Sequence[str],
        rights: Sequence[str],
        cells: np.ndarray,
        wanted: Sequence[bool],
        pmi: bool,
    ) -> Logs:
        nothing = np.zeros(len(cells))
        s, c = cells.T
        centre = left = right = nothing
        if wanted[0] or wanted[1]:
            centre = self._behind(lefts, sentences, cells[:, ::-1])[:, 0]
            gained = centre - self._alone(sentences, s)
            left = gained if pmi or not wanted[1] else gained + self._alone(lefts, c)
            centre = gained if pmi else centre
        if wanted[2]:
            right = self._behind(sentences, rights, cells)[:, 0]
            right = right - self._alone(rights, c) if pmi else right
        return centre, left, right

    def _both(
        self,
        sentences: Sequence[str],
        lefts: Sequence[str],
        rights: Sequence[str],
        cells: np.ndarray,
        wanted: Sequence[bool],
        pmi: bool,
    ) -> Logs:
        s, c = cells.T
        texts, n = [*sentences, *rights], len(sentences)
        # The sentence and then the right side behind the left one: (K, 2).
        centre, right = self._behind(lefts, texts, np.stack([c, s, n + c], axis=1)).T
        right_of_left = self._behind(lefts, rights, np.stack([c, c], axis=1))[:, 0]
        alone = self._alone(sentences, s)
        left = np.zeros(len(cells))
        if wanted[1]:
            left = self._alone(lefts, c) + centre + right - alone - self._behind(sentences, rights, cells)[:, 0]
            if pmi:
                left -= self._alone(lefts, c) + right_of_left - self._alone(rights, c)
        centre = centre + right - right_of_left
        return (centre - alone, left, right - right_of_left) if pmi else (centre, left, right)

    def perplexities(
        self, lefts: Sequence[str], centres: Sequence[str], rights: Sequence[str], shift: int
    ) -> dict[str, dict[str, float]]:
        """Return the perplexity of a token by task, in the right contexts, shuffled ones and none.

        Args:
            lefts, centres, rights: the texts of N contexts.
            shift: how far shuffled contexts stand from their own.
        """
        n = len(centres)
        own = np.arange(n)
        by_kind: dict[str, dict[str, float]] = {}
        lengths = {"centre": self.scorer.lengths(centres), "right": self.scorer.lengths(rights)}
        lengths["left"] = self.scorer.lengths(lefts)
        for kind, other in (("right", own), ("shuffled", np.roll(own, shift))):
            # What is generated stays; what it is given is that of another context.
            centre = self.of_texts(centres, lefts, rights, np.stack([own, other], axis=1), (True, False, False), False)
            sides = self.of_texts(centres, lefts, rights, np.stack([other, own], axis=1), (False, True, True), False)
            means = {"centre": centre[:, 0], "left": sides[:, 1], "right": sides[:, 2]}
            by_kind[kind] = {task: _perplexity(means[task], lengths[task]) for task in means}
        texts = {"centre": centres, "left": lefts, "right": rights}
        by_kind["none"] = {
            task: _perplexity(self._alone(texts[task], own) / np.maximum(lengths[task], 1), lengths[task])
            for task in texts
        }
        return by_kind


def _perplexity(means: np.ndarray, lengths: np.ndarray) -> float:
    return float(np.exp(-(means * lengths).sum() / max(1, lengths.sum())))
