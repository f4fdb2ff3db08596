"""The initialisation of the discriminator: a similarity of weighted bags of words.

From random weights an LSTM needs millions of sentences until its last state says what a sentence is about. Every LSTM
can add up its words, though: with forget gates open, recurrent weights of zero, and an input gate that a number of the
word's own vector opens, its cell is the sum over the words of a_w x_w, with a_w = a / (a + p(w)) of smooth inverse
frequency (Arora et al. 2017). Both directions take other random projections of x. P and all Q begin as the same
projection, the leading principal directions of such sums, partly whitened; t and the bias are fitted to a small sample
by logistic regression. Every weight is trained from there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from likewise.context.discriminator import Discriminator
from likewise.context.discriminator_data import ContextBatch, draw_negatives
from likewise.context.subwords import Vocabulary

RARE = 1e-3
"""a of smooth inverse frequency, its authors' value."""
_FORGET, _OUTPUT = 4.0, 2.0
"""Gates before the sigmoid: 0.98 of the cell is kept per step, and 0.88 is output."""
_VECTOR_NORM = 2.0
"""Length of a word vector relative to the random part, whose length is 1."""


def word_vectors_of(vocabulary: Vocabulary, source: str) -> dict[int, np.ndarray]:
    """Return the float32 vector of each sub-word that is a whole word, by id."""
    from likewise.encoder.vector_files import read_word_vectors

    table = read_word_vectors(source)
    words = list(table.words[: 4 * len(vocabulary)])  # the most frequent come first
    found: dict[int, np.ndarray] = {}
    for row, ids in enumerate(vocabulary.encode_batch(words)):
        if len(ids) == 1 and ids[0] not in found:
            found[ids[0]] = np.array(table.vectors[row], np.float32)
    return found


def begin_vectors(model: Discriminator, vectors: Mapping[int, np.ndarray]) -> None:
    """Write word vectors into the first dimensions of the sub-word embeddings; longer ones are truncated."""
    if vectors:
        size = model.embed.embedding_dim
        rows = torch.from_numpy(np.stack([vector[:size] for vector in vectors.values()]))
        with torch.no_grad():
            model.embed.weight[list(vectors), : rows.shape[1]] = rows


@torch.no_grad()
def begin_as_bag_of_words(model: Discriminator, vectors: Mapping[int, np.ndarray], frequencies: np.ndarray) -> None:
    """Initialise embedding and LSTM so that the last state is the squashed sum of a_w x_w.

    `vectors` are word vectors by id, and `frequencies` (float64 [vocabulary]) the share p(w) of each id.
    """
    size, hidden = model.embed.embedding_dim, model.hidden
    # The last number of a vector is the logit of a_w; the others are x_w.
    dimensions = max((len(vector) for vector in vectors.values()), default=0)
    model.embed.weight.normal_(std=max(1, size - 1 - dimensions) ** -0.5)
    lengths = {i: max(1e-6, float(np.linalg.norm(vector))) for i, vector in vectors.items()}
    usual = float(np.median(list(lengths.values()))) if lengths else 1.0
    scaled = {i: vector * (_VECTOR_NORM / max(lengths[i], usual)) for i, vector in vectors.items()}
    begin_vectors(model, {i: vector[: size - 1] for i, vector in scaled.items()})
    weights = np.clip(RARE / (RARE + frequencies), 1e-3, 0.98)
    model.embed.weight[:, -1] = torch.from_numpy(np.log(weights / (1 - weights))).float()
    model.embed.weight[0].zero_()
    gates = {name: slice(i * hidden, (i + 1) * hidden) for i, name in enumerate(("input", "forget", "cell", "output"))}
    for lstm in (model.forward_lstm, model.backward_lstm):
        for parameter in lstm.parameters():
            parameter.zero_()
        weights_in, biases = lstm.get_parameter("weight_ih_l0"), lstm.get_parameter("bias_ih_l0")
        weights_in[gates["input"], -1] = 1.0
        weights_in[gates["cell"], :-1] = torch.randn(hidden, size - 1) * 3 * size**-0.5
        biases[gates["forget"]] = _FORGET
        biases[gates["output"]] = _OUTPUT


@torch.no_grad()
def calibrate(model: Discriminator, sentences: list[list[int]], batch: ContextBatch, seed: int) -> None:
    """Set P, Q, t and the biases from a sample; the head `linear` is left unchanged.

    `sentences` are the ids of the S sentences of `batch`, which holds some whole documents.
    """
    if model.head != "product":
        return
    from sklearn.linear_model import LogisticRegression

    found = model.represent(sentences)  # (S, 2H)
    mean = found.mean(dim=0)
    values, directions = torch.linalg.eigh(torch.cov(found.T))  # rising
    leading = directions[:, -model.rank :] * (values[-model.rank :] + values.mean()).rsqrt()  # (2H, R or fewer)
    projection = torch.zeros_like(model.meet_sentence.weight)
    projection[: leading.shape[1]] = leading.T
    places = model.left + model.right
    model.meet_sentence.weight.copy_(projection)
    model.meet_sentence.bias.copy_(-projection @ mean)
    model.meet_context.weight.copy_(projection.repeat(places, 1))
    model.meet_context.bias.copy_((-projection @ mean).repeat(places))
    drawn, _ = draw_negatives(batch, seed)
    there = drawn >= 0
    if not there.any():
        return
    unit = torch.nn.functional.normalize(model.meet_sentence(found), dim=1)
    around = torch.from_numpy(batch.places[there])
    near = torch.cat([unit, torch.zeros_like(unit[:1])])[around]  # (C, J, R); -1 is the row of zeros
    rows = [batch.centres[there], drawn[there]]
    features = [(unit[torch.from_numpy(row)][:, None] * near).sum(dim=2).numpy() for row in rows]  # (C, J) each
    labels = np.repeat([1, 0], len(features[0]))
    fitted = LogisticRegression(C=100.0, max_iter=500).fit(np.concatenate(features), labels)
    model.scales.copy_(torch.from_numpy(fitted.coef_[0]).float())
    model.sum_sentence.weight.zero_()
    model.sum_context.weight.zero_()
    model.sum_sentence.bias.fill_(float(fitted.intercept_[0]))
