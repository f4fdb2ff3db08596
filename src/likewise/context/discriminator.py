"""The stage `discriminator`: the probability that a sentence fits between its left and right context (equation 1).

Each sentence has a representation h: the vector of a frozen encoder, or, in the paper, the last states of a one-layer
bidirectional LSTM that is trained here (`LstmReader`). The paper concatenates the representations of left context,
centre and right context and puts one weight vector on them before the sigmoid (equation 1),

    p(y = 1 | s, c) = sigmoid(w . [h_left, h_s, h_right]).

This logit is a sum a(s) + b(c): every sentence ranks the contexts identically, and nothing distinguishes a sentence
from a negative. We add an interaction term,

    w . [h_left, h_s, h_right] + sum_j t_j u(P h_s + p) . u(Q_j h_j + q_j),    u(x) = x / |x|,

over the positions j of the context; a rank R of 0 restores equation 1. The concatenation and the layer are sums over
their inputs (Q has one block per position), so the contribution of a context is a sum over its sentences, which is
computed once and cached (`context_part`), as is the contribution of a sentence (`sentence_part`); each has K
components. Scoring S sentences against C contexts is then one matrix product, (S, K) x (K, C).

The paper replaces the centre of a context by a sentence of the same document in half of the negative examples, and by a
sentence of the whole corpus in the other half. Instead of sampling, we encode the sentences of some whole documents
once and combine every context with every sentence; the loss and the accuracy are means over all possible samples.
Sentences of the context itself are not used as negatives, because their own copy would make them easy to detect.

Letters: B sentences of a pass, H hidden units, W width of h, S sentences, C contexts, J = left + right positions around
the centre, R dimensions of the interaction, K = R + 2 components of a contribution.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus
from torch.nn.utils.rnn import pack_sequence

from likewise.context.states import SentenceReading

_IN_A_PASS = 128


class LstmReader(nn.Module):
    """A bidirectional LSTM over word pieces: the ids of sentences to (B, 2H).

    Args:
        pieces: Number of ids; id 0, padding, also represents a sentence without word pieces.
    """

    def __init__(self, pieces: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.width = 2 * hidden
        self.embed = nn.Embedding(pieces, embedding)
        self.lstm = nn.LSTM(embedding, hidden, bidirectional=True)
        nn.init.normal_(self.embed.weight, std=0.3)
        with torch.no_grad():
            for name in ("bias_ih_l0", "bias_ih_l0_reverse"):
                # Gates that remember from the start: the last state then depends on every word.
                self.lstm.get_parameter(name)[hidden : 2 * hidden].fill_(1.0)

    def forward(self, sentences: Sequence[np.ndarray]) -> Tensor:
        """Return the representations (B, 2H) of sentences given as ids; forward state first."""
        representations = [torch.zeros(0, self.width)]
        for begin in range(0, len(sentences), _IN_A_PASS):
            ids = [torch.as_tensor(row if len(row) else [0]) for row in sentences[begin : begin + _IN_A_PASS]]
            packed = pack_sequence(ids, enforce_sorted=False)
            _, (states, _) = self.lstm(packed._replace(data=self.embed(packed.data)))  # (2, B', H)
            representations.append(torch.cat([states[0], states[1]], dim=1))
        return torch.cat(representations)


class Discriminator(nn.Module):
    """The coherence discriminator: a head on representations.

    Args:
        reader: Module that computes representations; None if they are vectors of a frozen encoder.
        width: W, numbers of a representation.
        left, right: Places of a context.
        rank: R, dimensions in which sentence and context meet; 0: equation 1 unchanged.
    """

    def __init__(self, reader: LstmReader | None, width: int, left: int, right: int, rank: int) -> None:
        super().__init__()
        self.reader, self.left, self.right, self.rank = reader, left, right, rank
        self.width = rank + 2  # K, of the parts of the head
        places = left + right
        self.sum_sentence = nn.Linear(width, 1)  # w on h_s, and a bias
        self.sum_context = nn.Linear(width, places, bias=False)  # w on the context, a block a place
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rank 0, about layers that hold nothing
            self.meet_sentence = nn.Linear(width, rank)  # P, p
            self.meet_context = nn.Linear(width, places * rank)  # Q, q, a block a place
        self.scales = nn.Parameter(torch.ones(places))  # t

    def represent(self, sentences: Sequence[SentenceReading]) -> Tensor:
        """Return representations (B, W) of sentences: of their word pieces by the reader, or their vectors."""
        if self.reader is None:
            return torch.from_numpy(np.stack([sentence.vector for sentence in sentences]))
        representations: Tensor = self.reader([sentence.ids for sentence in sentences])
        return representations

    def sentence_part(self, representations: Tensor) -> Tensor:
        """Return the head's part of sentences (S, W), the same for every context: (S, K)."""
        summed = self.sum_sentence(representations)  # (S, 1)
        met = normalize(self.meet_sentence(representations), dim=-1)
        return torch.cat([summed, torch.ones_like(summed), met], dim=1)

    def context_part(self, representations: Tensor, places: Tensor) -> Tensor:
        """Return the head's part of contexts, the same for every sentence: (C, K).

        Args:
            representations: (S, W), of all sentences that stand in a context.
            places: (C, J) rows of `representations`, the left places (farthest first) and then the right ones
                (nearest first); -1 where the chunk has no sentence there, which brings nothing.
        """
        n, there = len(representations), places.shape[1]
        rows = torch.where(places < 0, n, places)
        at = torch.arange(there, device=places.device)

        def gathered(blocks: Tensor) -> Tensor:
            # (S, J, width), each sentence as it is in every place, to (C, width), the sum over who is there.
            return torch.cat([blocks, blocks.new_zeros(1, *blocks.shape[1:])])[rows, at].sum(dim=1)

        summed = gathered(self.sum_context(representations)[..., None])  # (C, 1)
        met = self.meet_context(representations).reshape(n, there, self.rank)
        met = gathered(normalize(met, dim=-1) * self.scales[:, None])
        return torch.cat([torch.ones_like(summed), summed, met], dim=1)

    def logits(self, representations: Tensor, places: np.ndarray) -> Tensor:
        """Return the logits (C, S) of S sentences (S, W) in C contexts whose places (C, J) are rows of them."""
        return self.context_part(representations, torch.from_numpy(places)) @ self.sentence_part(representations).T


def coherence_loss(logits: Tensor, centres: Tensor, same: Tensor, other: Tensor) -> Tensor:
    """Return the expected loss over the draw of negatives, a scalar.

        1/2 E[-log p(own sentence)] + 1/4 E[-log (1 - p(other of the document))] + 1/4 E[-log (1 - p(of another one))]

    Where a context has no negative of one kind, the other kind weighs twice.

    Args:
        logits: (C, S) of every sentence in every context.
        centres: (C,) the sentence in each.
        same, other: Negatives of the same document and of other documents, bool (C, S).
    """
    positive = softplus(-logits.gather(1, centres[:, None])).mean()
    wrong = softplus(logits)  # -log (1 - p)
    counts = torch.stack([same.sum(dim=1), other.sum(dim=1)]).to(logits.dtype)  # (2, C)
    sums = torch.stack([(wrong * same).sum(dim=1), (wrong * other).sum(dim=1)])
    there = (counts > 0).to(logits.dtype)
    shares = there / there.sum(dim=0).clamp(min=1)  # halves, or one whole
    negative = (shares * sums / counts.clamp(min=1)).sum(dim=0).mean()
    return (positive + negative) / 2
