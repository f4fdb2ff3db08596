"""The initialisation of the discriminator's head: one space for sentences and contexts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from likewise.context.discriminator import Discriminator
from likewise.context.discriminator_data import ContextBatch, draw_negatives


@torch.no_grad()
def calibrate(model: Discriminator, sentences: Any, batch: ContextBatch, seed: int) -> None:
    """Set P, Q, t and the biases from a sample; the head `linear` is left unchanged.

    P and all Q begin as the same projection, the leading principal directions of representations, partly whitened; t
    and the bias are fitted to the sample by logistic regression.

    Args:
        sentences: the S sentences of `batch`, as `Discriminator.represent` takes them.
        batch: some whole documents.
    """
    if model.head != "product":
        return
    from sklearn.linear_model import LogisticRegression

    found = model.represent(sentences)  # (S, W)
    mean = found.mean(dim=0)
    values, directions = torch.linalg.eigh(torch.cov(found.T))  # rising
    leading = directions[:, -model.rank :] * (values[-model.rank :] + values.mean()).rsqrt()  # (W, R or fewer)
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
