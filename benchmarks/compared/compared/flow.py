"""BERT-flow: a normalizing flow under which the vectors of a corpus are Gaussian, fitted by maximum likelihood.

Li et al. 2020, "On the Sentence Embeddings from Pre-trained Language Models".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from compared.baselines import Baseline, BaselineError
from compared.sentence_vectors import Pooled, fitted
from likewise.errors import counted
from likewise.recipes import option
from likewise.runs.options import Options
from likewise.runs.progress import Progress

if TYPE_CHECKING:
    import numpy as np

    from compared.normalizing_flow import NormalizingFlow


class FlowOptions(Options):
    """The options of the flow; defaults from the authors' code where it has the same part."""

    pooling: Pooled = option("last-two", "Vectors to transform; 'own' takes the base's sentence vectors.")
    steps: int = option(9, "Number of coupling layers of the flow.", gt=0)
    hidden: int = option(256, "Width of the hidden layer in each coupling's network.", gt=0)
    coupling: Literal["additive", "affine"] = option(
        "additive", "Whether a coupling only shifts values or also scales them."
    )
    learning_rate: float = option(1e-3, "Learning rate of Adam.", gt=0)
    epochs: int = option(1, "Epochs: passes over the vectors.", gt=0)
    flow_batch_size: int = option(32, "Batch size of the flow's training.", gt=0)
    sentences: int = option(20_000, "Sentences sampled from the corpus to fit on; 0 takes all.", ge=0)
    batch_size: int = option(64, "Batch size for encoding.", gt=0)


def fit_flow(vectors: np.ndarray, options: FlowOptions, seed: int, progress: Progress) -> NormalizingFlow:
    """Fit a flow to vectors (N, D) by maximum likelihood, reproducibly for a seed."""
    import torch

    from compared.normalizing_flow import NormalizingFlow

    count, size = vectors.shape
    sample = torch.from_numpy(vectors)
    if count < options.flow_batch_size:
        raise BaselineError(
            f"the text's {counted(count, 'sentence')} cannot fill a batch of {options.flow_batch_size}: "
            "give more text, or a smaller flow_batch_size"
        )
    batches = count // options.flow_batch_size
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        flow = NormalizingFlow(size, options.steps, options.hidden, options.coupling)
        flow.standardise_by(sample)
        optimizer = torch.optim.Adam(flow.parameters(), lr=options.learning_rate)
        with progress.bar("fitting the flow", options.epochs * batches) as bar:
            for _ in range(options.epochs):
                order = torch.randperm(count)
                for batch in range(batches):
                    rows = order[batch * options.flow_batch_size : (batch + 1) * options.flow_batch_size]
                    loss = -flow.log_prob(sample[rows]).mean() / size  # nats a number
                    if not torch.isfinite(loss):
                        raise BaselineError("the flow's likelihood is not finite: give a smaller learning_rate")
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    bar.advance()
    return flow.eval()


FLOW = Baseline(
    name="flow",
    summary="A normalizing flow under which the corpus's vectors are Gaussian (BERT-flow).",
    source="Li et al. 2020, BERT-flow",
    presets={"paper": FlowOptions()},
    build=fitted(fit_flow),
    corpus="required",
)
