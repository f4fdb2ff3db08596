"""The export of a model: as one graph, for a server or a machine without torch, or in model2vec's format (0.10)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

from likewise.errors import LikewiseError
from likewise.inference import background
from likewise.inference.chooser import MAKERS, exports_of, next_export
from likewise.inference.encoder import default_prompt
from likewise.inference.engines.engine import INPUTS, OUTPUT, CannotExport, EngineError
from likewise.inference.engines.graph import fingerprint, least_tokens
from likewise.inference.engines.onnx_engine import WHOLE
from likewise.inference.engines.store import TOKENIZER
from likewise.inference.fidelity import Sample, sample_of
from likewise.inference.load_model import load
from likewise.inference.model_tokens import UnfitModel, tokens_of
from likewise.runs.arguments import checked
from likewise.runs.cache import cache_folder, made_in_cache
from likewise.runs.job import Job, check_target, open_job
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress
from likewise.runs.whole_files import write_json, write_text

MODEL2VEC = "model2vec"
FORMATS = (*MAKERS, MODEL2VEC)
# Short, long, empty and special texts on which a graph is compared with torch.
_TEXTS = ["A cat.", "", "It isn't 3.5, says \u201cX\u201d.", *("a few words more " * n for n in (2, 9, 40))]


@checked
def export(
    model: SentenceTransformer | str | os.PathLike[str],
    format: Literal["openvino", "onnx", "model2vec"],
    out: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Export a model: its graph with the pooling and its tokenizer, or its word vectors.

    Ids and mask, (B, T) int64 each, go in under their usual names; 'sentence_embedding', (B, D) float32, comes out, and
    'token_embeddings', (B, T, E), unless the model pools a single token.
    `likewise_export.json` holds what a caller must know: how many tokens are read, with what and on which side
    batches are padded, how short one may be, the prompt that belongs before each text and those that belong to a name,
    the dimensions that a vector is cut to, and the model's similarity. An export of a model whose settings have changed
    since is made again by `overwrite`, and refused without it.

    Args:
        model: the encoder, on the CPU and in float32; or what `likewise.load` takes.
        format: "onnx" or "openvino"; or "model2vec", for a model that is a mean of word vectors.
        out: the folder to write.
        overwrite: replace another export there.

    Returns:
        The files written.

    Raises:
        CannotExport: the format does not take the model or one of its settings (which the message names), or its
            vectors differ from torch's.
        MissingExtraError: the format's package is not installed.
        EngineError: there is no such format.
        JobError: the folder holds another export, or other files.
    """
    check_target(out)
    if format not in FORMATS:
        raise EngineError(f"Unknown format {format!r}; known are {', '.join(FORMATS)}.")
    encoder = model if isinstance(model, SentenceTransformer) else load(model, device="cpu", precision="fp32")
    check = _check_model2vec if format == MODEL2VEC else _check_graph
    check(encoder)
    settings = {"format": format, **_settings(encoder)}
    plan = Plan("export", settings, inputs={"model": fingerprint(encoder)} | _tokenizer_of(encoder))
    with open_job(out, plan, overwrite=overwrite) as job:
        if job.finished is None and format == MODEL2VEC:
            _write_model2vec(encoder, job.result)
        elif job.finished is None:
            try:
                _write_graph(encoder, format, job)
            except (CannotExport, UnfitModel) as reason:
                raise CannotExport(f"The model cannot be exported: {reason}.") from None
        record = job.finished or job.finish()
    return [Path(out) / name for name in record["files"]]


def _write_graph(encoder: SentenceTransformer, format: str, job: Job) -> None:
    """Copy a checked export from the cache, where it is made if there is none, and write what a caller must know."""
    pair: Any = (format, "fp32")
    exports, sample = exports_of(encoder), Sample(encoder, _TEXTS)
    exports.ready(pair, sample)
    tokens, made = sample.tokens, exports.store.folder(pair)
    assert made is not None
    shutil.copytree(made, job.result, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.json", WHOLE))
    write_text(job.result / TOKENIZER, tokens.json)
    about = {
        "inputs": list(INPUTS),
        "output": OUTPUT,
        "min_tokens_of_a_batch": least_tokens(encoder),
        "pad_id": tokens.pad,
        "padding_side": "left" if tokens.left else "right",
        **_settings(encoder),
    }
    write_json(job.result / "likewise_export.json", about)


def _settings(model: SentenceTransformer) -> dict[str, Any]:
    """Return the settings that a caller of an export has to obey."""
    prompts = {name: text for name, text in model.prompts.items() if text}
    return {
        "max_tokens": model.max_seq_length,
        "prompt": default_prompt(model) or "",
        "prompts": prompts,
        "truncate_dim": model.truncate_dim,
        "similarity": model.similarity_fn_name,
    }


def _tokenizer_of(model: SentenceTransformer) -> dict[str, str]:
    """Return a fingerprint of a model's tokenizer, if the fast path takes it."""
    with suppress(UnfitModel):
        return {"tokenizer": tokens_of(model).hash}
    return {}


def _check_graph(model: SentenceTransformer) -> None:
    """Check that one graph of ids and mask, and a prompt before the text, give a model's vectors."""
    if any(isinstance(module, Router) for module in model.modules()):
        raise CannotExport(
            "The model cannot be exported: it has a Router, with other modules for queries than for documents, and an "
            "export is one graph: export the model of each route by itself."
        )
    prompts = [name for name, text in model.prompts.items() if text]
    if prompts and not all(getattr(module, "include_prompt", True) for module in model):
        raise CannotExport(
            f"The model cannot be exported: its pooling leaves the prompt out (include_prompt), and a graph does not "
            f"know where a prompt ends (prompts: {', '.join(prompts)}). Use it with torch, or take the prompts off."
        )


def keep_export(name: str | os.PathLike[str], texts: Sequence[str], progress: Progress) -> None:
    """Make the export that `load(name).encode` takes on this processor, at the end of a job that made the model.

    Nothing is made if an export would not be faster, its package is missing, or exports are not wanted (see
    `background.wanted`). An engine that does not take the model is no error.

    Args:
        texts: 1 or more, on a sample of which its vectors are compared with torch's.
    """
    if (pair := next_export()) is None or not background.wanted():
        return
    progress.tell(f"exporting the model for {pair[0]}, on which `likewise.load` then runs it: 15 to 40 seconds")
    with suppress(LikewiseError, UnfitModel, OSError):
        model = load(name, device="cpu", engine="torch", precision="fp32")
        prompt = default_prompt(model) or ""
        exports_of(model).prepare(pair, Sample(model, [prompt + text for text in sample_of(texts)]))


def told_export(told: Mapping[str, Any]) -> None:
    """Make the export that `background.start` tells of, in its own process."""
    model = load(told["name"], device="cpu", engine="torch", precision="fp32")
    exports, pair = exports_of(model), tuple(told["pair"])
    if exports.store.fingerprint == told["fingerprint"]:
        locks = made_in_cache(cache_folder() / "engines" / ".locks")
        with suppress(Timeout), FileLock(locks / f"{told['fingerprint']}-background", timeout=0):
            exports.prepare(pair, Sample(model, told["texts"]))


def _check_model2vec(model: SentenceTransformer) -> None:
    """Check that a model is a mean of word vectors and nothing else, but a normalisation."""
    others = [module for module in list(model)[1:] if not isinstance(module, Normalize)]
    if not isinstance(model[0], StaticEmbedding):
        others = [model[0]]
    if others:
        raise CannotExport(
            f"model2vec's format holds a mean of word vectors alone, and this model has {type(others[0]).__name__}: "
            "train one (likewise train light --preset mean), or export it as onnx."
        )
    if prompt := default_prompt(model):
        raise CannotExport(
            f"model2vec's format has no place for a prompt, and this model puts {prompt!r} before each text "
            "(default_prompt_name): export it as onnx, or take the prompt off."
        )
    if model.truncate_dim is not None and len(list(model)) > 1:
        raise CannotExport(
            f"the model cuts its vectors to {model.truncate_dim} dimensions after it has scaled them (truncate_dim), "
            "and model2vec's format cuts before: export it as onnx, or set truncate_dim to None."
        )


def _write_model2vec(model: SentenceTransformer, folder: Path) -> None:
    """Write vectors, tokenizer and config.json into a folder.

    model2vec leaves unknown characters out of the mean, where sentence-transformers takes their one vector.
    """
    words: Any = model[0]
    weights = words.embedding.weight.detach()[:, : model.truncate_dim].contiguous()
    save_file({"embeddings": weights}, folder / "model.safetensors")
    words.tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "tokenizer_name": words.base_model or "",
        "hidden_dim": weights.shape[1],
        "seq_length": 1_000_000,
        "max_length": None,
        "normalize": any(isinstance(module, Normalize) for module in model),
        "embedding_dtype": str(words.embedding.weight.dtype).removeprefix("torch."),
    }
    write_json(folder / "config.json", config)
