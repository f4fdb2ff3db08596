"""Loading a sentence encoder whose `encode` is fast, and the result of a job that ends with a model."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from likewise.encoder.location import LoadError, check_loadable
from likewise.encoder.opening import open_model
from likewise.inference.encoder import Encoder
from likewise.inference.engines.engine import EngineChoice, EngineName, EnginePrecision
from likewise.runs.arguments import checked

__all__ = ["LoadError", "check_loadable", "load"]


@checked
def load(
    name: str | os.PathLike[str],
    *,
    device: str | torch.device | None = None,
    engine: EngineName = "auto",
    precision: EnginePrecision = "fp32",
) -> Encoder:
    """Load a sentence encoder: a SentenceTransformer whose `encode` is faster.

    Args:
        name: a folder (a SentenceTransformer or a transformers checkpoint), a name of the model hub, or
            `bundled:NAME` for a model that comes with a package (`bundled:minilm`, `bundled:mpnet`).
        device: where to put it ("cpu", "cuda:0"); by default the best device there is.
        engine: what `encode` runs on: "torch", "openvino", "onnx", or "auto", which takes what is fastest on this
            processor. It exports the model, into the cache, when there is so much to encode that it pays; short calls
            take an export that is there after a few hundred texts. With "torch", a call of up to 32
            texts gives exactly the vectors of sentence-transformers.
        precision: "fp32", the vectors of sentence-transformers; "bf16" or "int8", if those are near enough (see
            `likewise.inference.engines.fidelity`); "auto", the fastest that is.

    Modules that likewise itself defines load without `trust_remote_code`: they are code that is installed, not code
    from the folder. A model that brings its own code is refused.

    Raises:
        LoadError: there is no such folder or name, the folder holds no sentence encoder, or its files are broken.
        EngineError: an unknown engine or precision, or a pair that does not exist.
    """
    choice = EngineChoice(engine, precision)
    found = check_loadable(os.fspath(name))
    with torch.random.fork_rng(devices=[]):
        # Weights that a folder lacks (a pooler that no vector needs) start at random: the same in every process.
        torch.default_generator.manual_seed(0)
        model = open_model(Encoder, found, device)
    model.choice = choice
    model.loaded_from = str(found.folder.resolve()) if found.folder else found.path
    return model


def opened(model: SentenceTransformer | str | os.PathLike[str]) -> tuple[SentenceTransformer, str]:
    """Return a model, loaded if it is named, and its name: the one given, or else its class."""
    if isinstance(model, (str, os.PathLike)):
        return load(model), os.fspath(model)
    return model, type(model).__name__


@dataclass(frozen=True)
class SavedModel:
    """A model that a job has saved."""

    path: Path
    record: dict[str, Any]

    @cached_property
    def model(self) -> Any:
        """The saved model, loaded on first access."""
        if self.record.get("kind") != "cross-encoder":
            return load(self.path)
        from sentence_transformers import CrossEncoder

        return CrossEncoder(str(self.path))
