"""BERT-flow: a normalizing flow fitted to the vectors of a corpus, under which they are Gaussian.

Li et al. 2020, "On the Sentence Embeddings from Pre-trained Language Models". The encoder is not changed; only the flow
is fitted, by maximum likelihood. It is saved with the model as a module of likewise.
"""

from collections.abc import Sequence

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from likewise.baselines.method import Baseline, BaselineError, Pooled, pooled_encoder, sample_vectors
from likewise.encoder.normalizing_flow import Coupling, NormalizingFlow, require_zuko
from likewise.errors import counted
from likewise.runs.options import Options, option
from likewise.runs.progress import Progress


class FlowOptions(Options):
    """The options of the flow; defaults from the authors' code where it has the same part."""

    pooling: Pooled = option("last-two", "Vectors that are mapped; own: those that the base gives as a model.")
    steps: int = option(9, "Couplings of the flow.", gt=0)
    hidden: int = option(256, "Size of the hidden layer of each coupling's network.", gt=0)
    coupling: Coupling = option("additive", "Whether a coupling only shifts numbers, or also scales them.")
    learning_rate: float = option(1e-3, "Rate of Adam.", gt=0)
    epochs: int = option(1, "Passes over the vectors.", gt=0)
    flow_batch_size: int = option(32, "Vectors of an update of the flow.", gt=0)
    sentences: int = option(20_000, "Sentences drawn from the corpus to fit on; 0: all.", ge=0)
    batch_size: int = option(64, "Sentences encoded at a time.", gt=0)


def fit_flow(vectors: Tensor, options: FlowOptions, seed: int, progress: Progress) -> NormalizingFlow:
    """Fit a flow to vectors (N, D) by maximum likelihood, reproducibly for a seed."""
    count, size = vectors.shape
    if count < options.flow_batch_size:
        raise BaselineError(
            f"the text's {counted(count, 'sentence')} cannot fill a batch of {options.flow_batch_size}: "
            "give more text, or a smaller flow_batch_size"
        )
    batches = count // options.flow_batch_size
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        flow = NormalizingFlow(size, options.steps, options.hidden, options.coupling)
        flow.standardise_by(vectors)
        optimizer = torch.optim.Adam(flow.parameters(), lr=options.learning_rate)
        with progress.bar("fitting the flow", options.epochs * batches) as bar:
            for _ in range(options.epochs):
                order = torch.randperm(count)
                for batch in range(batches):
                    rows = order[batch * options.flow_batch_size : (batch + 1) * options.flow_batch_size]
                    loss = -flow.log_prob(vectors[rows]).mean() / size  # nats a number
                    if not torch.isfinite(loss):
                        raise BaselineError("the flow's likelihood is not finite: give a smaller learning_rate")
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    bar.advance()
    return flow.eval()


def build(
    base: str, options: FlowOptions, sentences: Sequence[str], seed: int, progress: Progress
) -> SentenceTransformer:
    """Return the encoder followed by the flow."""
    require_zuko()
    encoder = pooled_encoder(base, options.pooling)
    vectors = sample_vectors(encoder, sentences, options.sentences, seed, options.batch_size, progress)
    return SentenceTransformer(
        modules=[*encoder.children(), fit_flow(torch.from_numpy(vectors), options, seed, progress)]
    )


FLOW = Baseline(
    name="flow",
    summary="A normalizing flow under which the corpus's vectors are Gaussian (BERT-flow).",
    source="Li et al. 2020, BERT-flow",
    presets={"paper": FlowOptions()},
    build=build,
    corpus="required",
)
