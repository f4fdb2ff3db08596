"""Generators of equation 2 by a pretrained causal language model, which is not trained.

Texts of similar length share a batch. Sums are cached.

A causal model reads from left to right. The computed probabilities depend on `given`:

    near   log p(s | l), l the sentence before the gap, and log p(r | s), r the one behind it. By Bayes' rule
           log p(l | s) = log p(l) + log p(s | l) - log p(s), so the left term costs nothing more.
    both   all of either side, as in equation 2, again by Bayes' rule:
           log p(s | l, r) = log p(s | l) + log p(r | l, s) - log p(r | l)
           log p(l | s, r) = log p(l) + log p(s | l) + log p(r | l, s) - log p(s) - log p(r | s)
           log p(r | l, s)

For the pointwise mutual information, log p(s), log p(l | r) and log p(r | l) are subtracted (`near`: log p(l) and log
p(r)). All terms are divided by the number of generated tokens.

Letters: S sentences, C contexts, K cells (a sentence in a context, or a text behind another one), P parts of a cell, N
rows of a batch, T tokens, V words.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from likewise.context.causal_model import CausalModel
from likewise.context.states import States
from likewise.context.workspace import QUIET
from likewise.corpus.clean_text import digest_of
from likewise.inference.tokens import by_budget
from likewise.runs.cache import cached
from likewise.runs.progress import Progress
from likewise.runs.releases import releases
from likewise.runs.whole_files import written_whole

_BATCH_TOKENS = 2_048
"""Tokens of a forward pass."""
_PIECE = 4_096
"""Cells that a stopped run may lose."""
_ROWS = 64
"""Distributions over all words that are normalized at a time: these fit a processor's cache."""


class PretrainedGenerators:
    """The three tasks by one causal model, whose name is what `CausalModel` takes.

    A text begins with a blank, also at the start, so that the same tokens are scored with and without a text before
    them. In bfloat16 a sum changes by about a hundredth with the texts that share its batch.
    """

    sample = 8
    """Contexts of the corpus over which it can afford to take a sentence's mean."""

    def __init__(self, name: str, given: Literal["near", "both"] = "near") -> None:
        self.given, self.causal = given, CausalModel(name)
        self._tokens: dict[str, list[int]] = {}

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a text with a blank before it; an empty text has none."""
        if text not in self._tokens:
            self._tokens[text] = self.causal.ids(" " + text) if text else []
        return self._tokens[text]

    def lengths(self, texts: Sequence[str]) -> np.ndarray:
        """Return the number of tokens of each text: int64 (N,)."""
        return np.array([len(self.ids(text)) for text in texts], np.int64)

    def sums(
        self, before: Sequence[str], texts: Sequence[str], cells: np.ndarray, progress: Progress = QUIET
    ) -> np.ndarray:
        """Return the log probability of every part of each cell: (K, P) float64.

        Args:
            before: Texts before the gap; "" for none.
            texts: Texts that may follow.
            cells: (K, 1 + P), the index of the text before, and the indices of the texts that follow it one after the
                other; each is scored given all before it.
            progress: Progress of the cells.
        """
        order = np.lexsort(cells.T[::-1])  # by the preceding text
        pieces = range(0, len(order), _PIECE)

        def make(folder: Path) -> None:
            with progress.bar("reading texts by the language model", len(order)) as bar:
                for begin in pieces:
                    if not (path := folder / f"{begin}.npy").exists():
                        with written_whole(path) as unfinished, unfinished.open("wb") as file:
                            np.save(file, self._sums(before, texts, cells[order[begin : begin + _PIECE]]))
                    bar.update(min(begin + _PIECE, len(order)))

        sums = np.empty((len(cells), cells.shape[1] - 1))
        if len(cells):
            keys = ["\0".join([before[row[0]], *(texts[i] for i in row[1:])]) for row in cells]
            key = [self.causal.identity, digest_of("\n".join(keys)).hex(), *releases()]
            folder = cached("likelihoods", key, make, resumes=True)
            sums[order] = np.concatenate([np.load(folder / f"{begin}.npy") for begin in pieces])
        return sums

    @torch.inference_mode()
    def _sums(self, before: Sequence[str], texts: Sequence[str], cells: np.ndarray) -> np.ndarray:
        from transformers import DynamicCache

        parts = [[self.ids(texts[i]) for i in row[1:]] for row in cells]
        lengths = np.array([[len(part) for part in row] for row in parts])  # (K, P)
        sources = [[self.start, *self.ids(before[i])] for i in cells[:, 0]]
        rows = [[*source, *itertools.chain(*row)] for source, row in zip(sources, parts, strict=True)]
        sums = np.zeros(lengths.shape)
        for batch in by_budget(np.array([len(row) for row in rows]), _BATCH_TOKENS):
            longest = int(lengths[batch].sum(axis=1).max())
            ids, mask = self.causal.padded([rows[i] for i in batch])
            targets = ids[:, ids.shape[1] - longest :]  # (N, T), behind padding and what stands before
            logits = self.causal.forward(ids, mask, DynamicCache(), longest + 1)[:, :-1].flatten(0, 1)  # (N T, V)
            logs = [
                part.float().log_softmax(dim=1).gather(1, tokens[:, None])[:, 0]
                for part, tokens in zip(logits.split(_ROWS), targets.flatten().split(_ROWS), strict=True)
            ]
            for i, line in zip(batch, torch.cat(logs).reshape(targets.shape).double().cpu().numpy(), strict=True):
                ends = np.cumsum(lengths[i])
                sums[i] = [part.sum() for part in np.split(line[longest - ends[-1] :], ends[:-1])]
        return sums

    @cached_property
    def start(self) -> int:
        """The token before the first one: the token between texts in the model's training, or its first token."""
        tokenizer = self.causal.tokenizer
        marks = "<|endoftext|>", tokenizer.bos_token, tokenizer.eos_token
        return next((tokenizer.convert_tokens_to_ids(mark) for mark in marks if mark in tokenizer.get_vocab()), 0)

    def terms(
        self,
        states: States,
        sentences: Sequence[str],
        cells: np.ndarray,
        chosen: Sequence[bool],
        pmi: bool,
        progress: Progress = QUIET,
    ) -> np.ndarray:
        """Return the terms of the centre, the left and the right (K, 3), see `Generators.terms`."""
        contexts, of = np.unique(cells[:, 1], return_inverse=True)
        lefts, rights = states.store.side_texts(contexts, 1 if self.given == "near" else None)
        rows = np.stack([cells[:, 0], of.reshape(-1)], axis=1)
        return self.of_texts(sentences, lefts, rights, rows, chosen, pmi, progress)

    def of_texts(
        self,
        sentences: Sequence[str],
        lefts: Sequence[str],
        rights: Sequence[str],
        cells: np.ndarray,
        mask: Sequence[bool] = (True,) * 3,
        pmi: bool = True,
        progress: Progress = QUIET,
    ) -> np.ndarray:
        """Return the terms (K, 3) of S sentences in C contexts, whose texts are given.

        Args:
            cells: (K, 2), the index of a sentence and of a context.
            mask: Which of the three terms are requested; the others are 0.
            pmi: Whether to subtract each term's value without the sentence.
        """
        s, c = cells.T

        def behind(before: Sequence[str], texts: Sequence[str], *columns: np.ndarray) -> np.ndarray:
            # (K, P), each computed once.
            distinct, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
            return self.sums(before, texts, distinct, progress)[inverse.reshape(-1)]

        def alone(texts: Sequence[str], rows: np.ndarray) -> np.ndarray:
            return behind([""], texts, np.zeros_like(rows), rows)[:, 0]

        centre = left = right = np.zeros(len(cells))
        if self.given == "near":
            if mask[0] or mask[1]:
                centre = behind(lefts, sentences, c, s)[:, 0]
                gained = centre - alone(sentences, s)
                left = gained if pmi or not mask[1] else gained + alone(lefts, c)
                centre = gained if pmi else centre
            if mask[2]:
                right = behind(sentences, rights, s, c)[:, 0]
                right = right - alone(rights, c) if pmi else right
        else:
            # The sentence and then the right side behind the left one.
            centre, right = behind(lefts, [*sentences, *rights], c, s, len(sentences) + c).T
            right_of_left, own = behind(lefts, rights, c, c)[:, 0], alone(sentences, s)
            if mask[1]:
                left = alone(lefts, c) + centre + right - own - behind(sentences, rights, s, c)[:, 0]
                left = left - alone(lefts, c) - right_of_left + alone(rights, c) if pmi else left
            centre = centre + right - right_of_left
            centre, right = (centre - own, right - right_of_left) if pmi else (centre, right)
        lengths = [self.lengths(texts)[rows] for texts, rows in ((sentences, s), (lefts, c), (rights, c))]
        means = np.stack([centre, left, right], axis=1) / np.maximum(np.stack(lengths, axis=1), 1)
        return np.where(np.asarray(mask), means, 0.0)
