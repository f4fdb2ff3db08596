"""Encoders built from a base: a Hugging Face name, a folder, or `bundled:minilm`."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Normalize,
    Pooling,
    Transformer,
    WeightedLayerPooling,
    WordWeights,
)

from likewise.encoder.modules import with_modules
from likewise.encoder.opening import (
    LoadError,
    check_loadable,
    check_tokenizer,
    is_sentence_encoder,
    open_model,
    readable_errors,
)
from likewise.encoder.training_modules import TrainingHead
from likewise.transformers_output import no_bar, no_report_of_spares

PoolingMode = Literal["cls", "mean", "max"]
OwnOrMode = Literal["own", "cls", "mean", "max"]

FIRST_LAST, LAST_TWO = (1, -1), (-2, -1)
"""Layer 1 is the first above the embeddings: so BERT-whitening's and SimCSE's codes count."""


def load_transformer(base: str, dropout: float | None = None) -> Transformer:
    """Load the Transformer module of a base.

    Args:
        dropout: probability for hidden states and attention; None keeps the base's own.
    """
    found = check_loadable(base)
    if found.folder and not (found.folder / "config.json").exists():
        # A sentence-transformers folder may keep its transformer in a subfolder (0_Transformer).
        return _first_of(open_model(SentenceTransformer, found), base, dropout)
    with readable_errors(base), no_bar(), no_report_of_spares():
        # And not Transformer(path): it reads the maximal length too.
        transformer = Transformer.load(found.path, local_files_only=found.local_only)
    check_tokenizer(transformer.tokenizer, base)
    return _first_of([transformer], base, dropout)


def _first_of(modules: Any, base: str, dropout: float | None) -> Transformer:
    """Return the first of a base's modules, which must be a transformer, with its dropout set."""
    first = modules[0]
    if not isinstance(first, Transformer):
        raise LoadError(f"--base {base}: its first module is {type(first).__name__}, not a Transformer")
    if first.get_embedding_dimension() is None:
        raise LoadError(f"--base {base}: it does not tell the size of its token vectors")
    if dropout is not None:
        set_dropout(first, dropout)
    return first


def build_encoder(
    base: str, pooling: OwnOrMode = "cls", head: bool = True, dropout: float | None = None
) -> SentenceTransformer:
    """Return a trainable encoder: the base's transformer, a pooling, and optionally the training head.

    Args:
        pooling: how token vectors (B, T, D) become a sentence vector (B, D). "own" keeps a sentence encoder's pooling
            and normalisation; for any other base it means "cls". The others use only the base's
            transformer.
        head: add the MLP head of contrastive training (see `TrainingHead`).
    """
    modules: list[torch.nn.Module]
    if pooling == "own" and is_sentence_encoder(base):
        model = open_model(SentenceTransformer, check_loadable(base)).train()
        _first_of(model, base, dropout)
        if any(isinstance(module, WordWeights) for module in model):
            raise LoadError(
                f"--base {base} puts every text into a prompt, whose mask it reads: train it with sncse, or drop the "
                "prompt by --pooling mean"
            )
        width = model.get_embedding_dimension()
        if not head or not width:
            return model
        modules = [*model]
        # Before a last normalisation: the head's tanh is linear on vectors of length 1, and teaches less.
        modules.insert(len(modules) - isinstance(modules[-1], Normalize), TrainingHead(width))
        return with_modules(model, modules).train()
    transformer = load_transformer(base, dropout)
    width = transformer.get_embedding_dimension()
    modules = [transformer, Pooling(width, pooling_mode="cls" if pooling == "own" else pooling)]
    return SentenceTransformer(modules=[*modules, TrainingHead(width)] if head else modules)


def build_layer_average(base: str, layers: Sequence[int], dropout: float | None = None) -> SentenceTransformer:
    """Return an encoder whose vector is the mean over the tokens of the mean of some hidden layers.

    It is made of stock modules, so that what is saved loads with no flag.

    Args:
        layers: 0 for the embeddings, 1 for the first layer, -1 for the last, and so on; equal ones count once.
    """
    transformer = load_transformer(base, dropout)
    width = transformer.get_embedding_dimension()
    config = transformer.auto_model.config
    deepest = getattr(config, "num_hidden_layers", None)
    if deepest is None:
        raise LoadError(f"--base {base}: it does not tell the number of its layers")
    chosen = {layer + deepest + 1 if layer < 0 else layer for layer in layers}
    if not chosen or min(chosen) < 0 or max(chosen) > deepest:
        raise LoadError(f"--base {base}: its layers are 0 to {deepest}, and {tuple(layers)} are asked for")
    if chosen == {deepest}:
        return SentenceTransformer(modules=[transformer, Pooling(width, pooling_mode="mean")])
    config.output_hidden_states = True  # saved with the model, and read again
    start = min(chosen)
    weights = torch.tensor([float(layer in chosen) for layer in range(start, deepest + 1)])
    pooling = WeightedLayerPooling(
        width,
        num_hidden_layers=deepest,
        layer_start=start,
        # Not trained: it says which layers, not how much of each.
        layer_weights=torch.nn.Parameter(weights, requires_grad=False),
    )
    return SentenceTransformer(modules=[transformer, pooling, Pooling(width, pooling_mode="mean")])


def set_dropout(transformer: Transformer, probability: float) -> None:
    """Set the probability of every dropout of a transformer, those of attention included."""
    for module in transformer.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = probability
    config = transformer.auto_model.config
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
        if hasattr(config, name):
            setattr(config, name, probability)
