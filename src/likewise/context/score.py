"""The score of equation 3 for the fit of sentences to contexts, in batches.

    S(s, c) = w1 log p(y = 1 | s, left, right) + w2 / |s| log p(s | left, right)
            + w3 / |left| log p(left | s, right) + w4 / |right| log p(right | left, s)

A length counts the end token, whose probability is in the sum too. Computed once: the encoding of each text for all
that read it, the keys and values the decoder reads of it, the decoder's layers that read the target alone, and each
(sentence, context) however many pairs ask for it.

Letters of the shapes: S sentences, C contexts, K cells (a sentence in a context), T target tokens, M memory tokens,
D width, F numbers of a memory token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from likewise.context.chunks import Context
from likewise.context.generators import Generators
from likewise.context.options import TERMS, ScoreOptions
from likewise.context.subwords import SOURCES, TASKS, Padded, Piece, Task, pad
from likewise.context.terms import TermScorer
from likewise.context.workspace import ContextError
from likewise.runs.progress import Progress
from likewise.training.precision import use_bf16


class Coherence(Protocol):
    """The discriminator of equation 1, as `likewise.context.selection.CachedRanker`."""

    def coherence(self, sentences: Sequence[str], contexts: Sequence[Context]) -> np.ndarray:
        """Return log p(y = 1) of each sentence in each context: (S, C)."""


class ContextScorer(TermScorer):
    """Scores sentences in contexts by equation 3.

    Args:
        generators: in evaluation mode, on the device that is to be used.
    """

    def __init__(
        self, generators: Generators, discriminator: Coherence | None, options: ScoreOptions | None = None
    ) -> None:
        self.generators = generators.eval()
        self.discriminator = discriminator
        self.options = options or ScoreOptions()
        self.weights = np.array(self.options.weights or (1 / len(TERMS),) * len(TERMS), dtype=np.float64)  # (4,)
        if self.weights[0] and discriminator is None:
            raise ContextError("the first weight is above 0 and there is no discriminator: give one, or the weight 0")
        self.bf16 = use_bf16(self.options.precision)

    def cell_terms(
        self, sentences: Sequence[str], contexts: Sequence[Context], cells: np.ndarray, wanted: Any, progress: Progress
    ) -> np.ndarray:
        """Return the four terms of equation 3, not yet weighted: (K, 4) float64, each at most 0.

        A cell that is repeated is computed once.
        """
        distinct, inverse = np.unique(cells[:, ::-1], axis=0, return_inverse=True)  # by context, sentence
        inverse = inverse.reshape(-1)
        asked = np.bincount(inverse, minlength=len(distinct))  # how often each is wanted
        found = np.zeros((len(distinct), len(TERMS)))
        numbers, starts = np.unique(distinct[:, 0], return_index=True)
        ends = [*starts[1:], len(distinct)]
        with torch.inference_mode(), progress.bar("scoring sentences in contexts", len(cells)) as bar:
            for begin in range(0, len(numbers), self.options.contexts_at_once):
                last = min(begin + self.options.contexts_at_once, len(numbers)) - 1
                rows = slice(int(starts[begin]), int(ends[last]))
                found[rows] = self._block(sentences, contexts, distinct[rows], wanted)
                bar.advance(int(asked[rows].sum()))
        return found[inverse]

    def _block(
        self, sentences: Sequence[str], contexts: Sequence[Context], cells: np.ndarray, wanted: Any
    ) -> np.ndarray:
        """Return the terms (K, 4) of cells (K, 2), each the index of a context and of a sentence."""
        context_numbers, of_context = np.unique(cells[:, 0], return_inverse=True)
        sentence_numbers, of_sentence = np.unique(cells[:, 1], return_inverse=True)
        here = [contexts[i] for i in context_numbers]
        said = [sentences[i] for i in sentence_numbers]
        terms = np.zeros((len(cells), len(TERMS)))
        if wanted[0]:
            assert self.discriminator is not None
            terms[:, 0] = self.discriminator.coherence(said, here)[of_sentence, of_context]
        if any(wanted[1:]):
            cutter = self.generators.cutter
            texts = {
                "left": _Texts(cutter.sides([context.left for context in here], "left"), of_context),
                "centre": _Texts(cutter.sentences(said), of_sentence),
                "right": _Texts(cutter.sides([context.right for context in here], "right"), of_context),
            }
            memories: dict[Any, Tensor] = {}
            for i, task in enumerate(TASKS, start=1):
                if wanted[i]:
                    terms[:, i] = self._generate(task, texts, memories)
        return terms

    def _generate(self, task: Task, texts: dict[str, _Texts], memories: dict[Any, Tensor]) -> np.ndarray:
        """Return the mean log probability of a token of each cell's target: (K,)."""
        network, device = self.generators.network(task), self.generators.device
        target, sources = texts[task], {(id(network), side): texts[side] for side in SOURCES[task]}
        ids = self._pad(target.pieces).ids
        found = torch.zeros(len(target.rows), dtype=torch.float64, device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.bf16):
            started = self._in_batches(target.pieces, lambda part: network.start(part, self.generators.first(task)))
            for key, source in sources.items():
                if key not in memories:
                    memories[key] = self._in_batches(source.pieces, lambda part: network.remember(network.encode(part)))
            for cells in self._batches(target, list(sources.values())):
                parts = [source.take(memories[key], cells) for key, source in sources.items()]
                memory, mask = (torch.cat([part[i] for part in parts], dim=1) for i in (0, 1))
                prefix, real = target.take(started, cells)
                wanted = ids[torch.as_tensor(target.rows[cells], device=device), : real.shape[1]][real]
                logs = network.log_probabilities(network.finish(prefix, memory, mask)[real], wanted).double()
                owner = torch.arange(len(cells), device=device)[:, None].expand_as(real)[real]
                sums = torch.zeros(len(cells), dtype=torch.float64, device=device).index_add_(0, owner, logs)
                found[torch.as_tensor(cells, device=device)] = sums / real.sum(1)
        return found.cpu().numpy()

    def _pad(self, pieces: Sequence[Piece]) -> Padded:
        return pad(pieces, self.generators.vocabulary.pad).to(self.generators.device)

    def _in_batches(self, pieces: Sequence[Piece], work: Callable[[Any], Tensor]) -> Tensor:
        """Apply `work` to pieces in batches of similar length; return one zero-padded tensor (N, T, ...)."""
        longest = max(map(len, pieces))
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))
        found: Tensor | None = None
        for rows in _cut(order, [len(pieces[i]) for i in order], self.options.batch_tokens):
            part = work(self._pad([pieces[i] for i in rows]))
            if found is None:
                found = part.new_zeros(len(pieces), longest, part.shape[-1])
            found[rows, : part.shape[1]] = part
        assert found is not None
        return found

    def _batches(self, target: _Texts, sources: Sequence[_Texts]) -> Iterator[np.ndarray]:
        """Yield cells grouped by the length of the target, then by the length of the source."""
        lengths = target.lengths[target.rows]
        read = np.sum([source.lengths[source.rows] for source in sources], axis=0)
        order = np.lexsort((read, lengths))
        for rows in _cut(order, lengths[order], self.options.batch_tokens):
            yield np.asarray(rows)


class _Texts:
    """The distinct texts of one kind, and the index of the one of each cell."""

    def __init__(self, pieces: list[Piece], rows: np.ndarray) -> None:
        # Contexts often share a side, and a text is encoded once.
        known: dict[Piece, int] = {}
        numbers = np.array([known.setdefault(piece, len(known)) for piece in pieces])
        self.pieces = list(known)
        self.rows = numbers[rows.reshape(-1)]
        self.lengths = np.array([len(piece) for piece in self.pieces])

    def take(self, values: Tensor, cells: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return the values of the texts of cells, padded (K, T, F), and a mask of real tokens (K, T)."""
        rows = self.rows[cells]
        lengths = torch.as_tensor(self.lengths[rows], device=values.device)
        longest = int(self.lengths[rows].max())
        mask = torch.arange(longest, device=values.device) < lengths[:, None]
        return values[torch.as_tensor(rows, device=values.device), :longest], mask


def _cut(order: Sequence[int] | np.ndarray, lengths: Sequence[int] | np.ndarray, most: int) -> Iterator[list[int]]:
    """Cut rows of ascending length into parts of at most `most` tokens with padding (or one row)."""
    begin = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - begin) * lengths[end] > most:
            yield [int(i) for i in order[begin:end]]
            begin = end
