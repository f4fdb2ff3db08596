"""A mean of word vectors in the format of model2vec (0.10): its loader and others' that read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

from likewise.inference.engines.engine import CannotExport


def check_model2vec(model: SentenceTransformer) -> None:
    """Raise CannotExport if a model is not a mean of word vectors and nothing else, but a normalisation."""
    others = [module for module in list(model)[1:] if not isinstance(module, Normalize)]
    if not isinstance(model[0], StaticEmbedding):
        others = [model[0]]
    if others:
        raise CannotExport(
            f"model2vec's format holds a mean of word vectors alone, and this model has {type(others[0]).__name__}: "
            "train one (likewise train light --preset mean), or export it as onnx."
        )


def write_model2vec(model: SentenceTransformer, folder: Path) -> None:
    """Write vectors, tokenizer and config.json into a folder.

    model2vec leaves unknown characters out of the mean, where sentence-transformers takes their one vector.
    """
    words: Any = model[0]
    save_file({"embeddings": words.embedding.weight.detach().contiguous()}, folder / "model.safetensors")
    words.tokenizer.save(str(folder / "tokenizer.json"))
    normalised = any(isinstance(module, Normalize) for module in model)
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "tokenizer_name": words.base_model or "",
        "hidden_dim": words.embedding_dim,
        "seq_length": 1_000_000,
        "max_length": None,
        "normalize": normalised,
        "embedding_dtype": str(words.embedding.weight.dtype).removeprefix("torch."),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
