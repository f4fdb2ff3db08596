"""The coherence discriminator: the probability that a sentence fits between its left and right context (equation 1).

Each sentence has a representation h of its own: the vector of a frozen encoder, or, in the paper, the last states of a
one-layer bidirectional LSTM that is trained here (`LstmReader`). The paper concatenates the representations of left
context, centre and right context and puts one weight vector on them before the sigmoid (equation 1),

    p(y = 1 | s, c) = sigmoid(w . [h_left, h_s, h_right]).

That is the head `linear` here. As it stands it is a sum a(s) + b(c): no word of s can matter more in one context than
in another, every sentence ranks the contexts alike, and nothing separates a sentence from a negative. The default head,
`product`, adds the term in which the two meet,

    w . [h_left, h_s, h_right] + sum_j t_j u(P h_s + p) . u(Q_j h_j + q_j),    u(x) = x / |x|,

over the places j of the context. Concatenation and layer split over their inputs (Q is one block a place), so what a
context gives is a sum over its sentences, computed once and cached (`context_part`), and so is what a sentence gives
(`sentence_part`), each K numbers. Scoring S sentences against C contexts is then one matrix product (S, K) x (K, C),
`combine`.

Letters: B sentences of a pass, T tokens, H hidden units, W width of h, S sentences, C contexts, J = left + right places
around the centre, R numbers in which sentence and context meet, K = R + 2 numbers of a part (2 for `linear`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from likewise.context.discriminator_data import ContextBatch, negatives
from likewise.context.workspace import ContextError
from likewise.runs.whole_files import read_json, write_json

EMPTY = 1
"""The id (unknown) that stands for a sentence of no token."""
_IN_A_PASS = 128


class LstmReader(nn.Module):
    """A bidirectional LSTM over sub-words: the ids of sentences to (B, 2H).

    Args:
        vocabulary: number of ids; 0 is padding.
    """

    def __init__(self, vocabulary: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.width = 2 * hidden
        self.embed = nn.Embedding(vocabulary, embedding, padding_idx=0)
        # Two of one direction each: the second reads the sentence from its end, so that in both the last state stands
        # at the sentence's length and the padding behind it is never read. It is what a packed bidirectional LSTM
        # gives, and keeps the fast kernels for padded batches.
        self.forward_lstm = nn.LSTM(embedding, hidden)
        self.backward_lstm = nn.LSTM(embedding, hidden)
        nn.init.normal_(self.embed.weight, std=0.3)
        with torch.no_grad():
            self.embed.weight[0].zero_()
            for lstm in (self.forward_lstm, self.backward_lstm):
                # Gates that remember from the start: the last state then holds something of every word.
                lstm.get_parameter("bias_ih_l0")[hidden : 2 * hidden].fill_(1.0)

    def forward(self, sentences: Sequence[Sequence[int]]) -> Tensor:
        """Return the representations (B, 2H) of sentences given as ids; forward state first.

        Sentences of near-equal length share a pass, so that little is padded.
        """
        device = self.embed.weight.device
        lengths = torch.tensor([max(1, len(ids)) for ids in sentences])
        order = torch.argsort(lengths, stable=True)
        found = []
        for rows in order.split(_IN_A_PASS):
            size = lengths[rows]
            longest = int(size.max())
            batch = torch.zeros(longest, len(rows), dtype=torch.long)  # (T, B)
            turned = torch.zeros_like(batch)
            for column, row in enumerate(rows.tolist()):
                ids = torch.tensor(sentences[row] or [EMPTY])
                batch[: len(ids), column] = ids
                turned[: len(ids), column] = ids.flip(0)
            last = size - 1, torch.arange(len(rows))
            states = [
                lstm(self.embed(tokens.to(device)))[0][last]
                for lstm, tokens in ((self.forward_lstm, batch), (self.backward_lstm, turned))
            ]
            found.append(torch.cat(states, dim=1))  # (B', 2H)
        if not found:
            return torch.zeros(0, self.width, device=device)
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order))
        return torch.cat(found)[back.to(device)]


class Discriminator(nn.Module):
    """The coherence discriminator: a head on representations.

    Args:
        reader: what makes representations; None where they are vectors of a frozen encoder.
        width: W, numbers of a representation.
        left, right: places of a context.
        head: "product" or "linear", see the module.
        rank: R, numbers in which sentence and context meet.
    """

    def __init__(self, reader: LstmReader | None, width: int, left: int, right: int, head: str, rank: int) -> None:
        super().__init__()
        self.reader, self.width_in = reader, width
        self.left, self.right, self.head, self.rank = left, right, head, rank
        places = left + right
        self.sum_sentence = nn.Linear(width, 1)  # w on h_s, and a bias
        self.sum_context = nn.Linear(width, places, bias=False)  # w on the context, a block a place
        if head == "product":
            self.meet_sentence = nn.Linear(width, rank)  # P, p
            self.meet_context = nn.Linear(width, places * rank)  # Q, q, a block a place
            self.scales = nn.Parameter(torch.ones(places))  # t

    @property
    def width(self) -> int:
        """The width K of the parts of the head."""
        return self.rank + 2 if self.head == "product" else 2

    def represent(self, sentences: Any) -> Tensor:
        """Return representations (B, W) of sentences: of ids by the reader, or of vectors (B, W) as they are."""
        if self.reader is None:
            return torch.as_tensor(sentences)
        found: Tensor = self.reader(sentences)
        return found

    def sentence_part(self, representations: Tensor) -> Tensor:
        """Return the head's part of sentences (S, W), the same for every context: (S, K)."""
        summed = self.sum_sentence(representations)  # (S, 1)
        both = [summed, torch.ones_like(summed)]
        if self.head == "product":
            both.append(normalize(self.meet_sentence(representations), dim=-1))
        return torch.cat(both, dim=1)

    def context_part(self, representations: Tensor, places: Tensor) -> Tensor:
        """Return the head's part of contexts, the same for every sentence: (C, K).

        Args:
            representations: (S, W), of all sentences that stand in a context.
            places: (C, J) rows of `representations`, the left places (farthest first) and then the right ones
                (nearest first); -1 where the chunk has no sentence there, which brings nothing.
        """
        n, places_there = len(representations), places.shape[1]
        rows = torch.where(places < 0, n, places)
        at = torch.arange(places_there, device=places.device)

        def gathered(blocks: Tensor) -> Tensor:
            # (S, J, width), each sentence as it is in every place, to (C, width), the sum over who stands there.
            blocks = torch.cat([blocks, torch.zeros_like(blocks[:1])]) if n else blocks.new_zeros(1, *blocks.shape[1:])
            return blocks[rows, at].sum(dim=1)

        summed = gathered(self.sum_context(representations)[..., None])  # (C, 1)
        both = [torch.ones_like(summed), summed]
        if self.head == "product":
            met = self.meet_context(representations).reshape(n, places_there, self.rank)
            both.append(gathered(normalize(met, dim=-1) * self.scales[:, None]))
        return torch.cat(both, dim=1)

    def combine(self, sentences: Tensor, contexts: Tensor) -> Tensor:
        """Return the logits (S, C) of every sentence in every context, from their parts (S, K) and (C, K)."""
        return sentences @ contexts.T

    def combine_pairs(self, sentences: Tensor, contexts: Tensor) -> Tensor:
        """Return the logits (N,) of sentence i in context i, from N parts of each (N, K)."""
        return (sentences * contexts).sum(dim=1)


def coherence_loss(logits: Tensor, centres: Tensor, same: Tensor, other: Tensor) -> Tensor:
    """Return the expected loss over the draw of negatives, a scalar.

        1/2 E[-log p(own sentence)] + 1/4 E[-log (1 - p(other of the document))] + 1/4 E[-log (1 - p(of another one))]

    Where a context has no negative of one kind, those of the other kind weigh twice.

    Args:
        logits: (C, S) of every sentence in every context.
        centres: (C,) the sentence that stands in each.
        same, other: bool (C, S), the negatives of the same document and those of other documents.
    """
    positive = softplus(-logits.gather(1, centres[:, None])).mean()
    wrong = softplus(logits)  # -log (1 - p)
    counts = torch.stack([same.sum(dim=1), other.sum(dim=1)]).to(logits.dtype)  # (2, C)
    sums = torch.stack([(wrong * same).sum(dim=1), (wrong * other).sum(dim=1)])
    there = (counts > 0).to(logits.dtype)
    shares = there / there.sum(dim=0).clamp(min=1)  # halves, or one whole
    negative = (shares * sums / counts.clamp(min=1)).sum(dim=0).mean()
    return (positive + negative) / 2


def loss_of(model: Discriminator, representations: Tensor, batch: ContextBatch) -> Tensor:
    """Return the loss of a batch from the representations (S, W) of its sentences, a scalar."""
    same, other = (torch.from_numpy(mask) for mask in negatives(batch))
    contexts = model.context_part(representations, torch.from_numpy(batch.places))
    logits = model.combine(model.sentence_part(representations), contexts).T  # (C, S)
    return coherence_loss(logits, torch.from_numpy(batch.centres), same, other)


WEIGHTS, _CONFIG = "model.safetensors", "config.json"


def save_discriminator(folder: Path, model: Discriminator, max_tokens: int) -> None:
    """Write the weights and the configuration into a folder."""
    from safetensors.torch import save_file

    reader = model.reader
    config = {
        "reader": reader
        and {
            "vocabulary": reader.embed.num_embeddings,
            "embedding": reader.embed.embedding_dim,
            "hidden": reader.width // 2,
        },
        "model": {
            "width": model.width_in,
            **{name: getattr(model, name) for name in ("left", "right", "head", "rank")},
        },
        "max_tokens": max_tokens,
    }
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, folder / WEIGHTS)
    write_json(folder / _CONFIG, config)


def load_discriminator(folder: Path) -> tuple[Discriminator, int]:
    """Return the model, in evaluation mode, and the number of sub-words it reads of a sentence."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        content = read_json(folder / _CONFIG)
        reader = LstmReader(**content["reader"]) if content["reader"] else None
        model = Discriminator(reader, **content["model"])
        model.load_state_dict(load_file(folder / WEIGHTS))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise ContextError(f"{folder}: no discriminator can be read here ({error}): train it again") from None
    return model.eval(), content["max_tokens"]
