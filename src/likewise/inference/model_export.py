"""The export of a model: as one graph, for a server or a machine without torch, or in model2vec's format (0.10)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

from likewise.data.bundled import resolve_model
from likewise.encoder.location import ABOUT_EXPORT
from likewise.encoder.settings import ModelSettings
from likewise.errors import LikewiseError, counted
from likewise.inference.engines.engine import INPUTS, OUTPUT, CannotExport, EngineError, EngineName, EngineVariant
from likewise.inference.engines.graph import fingerprint, least_tokens
from likewise.inference.engines.store import MAKERS, TOKENIZER, release
from likewise.inference.handle import EXPORTS
from likewise.inference.load_model import default_prompt, load
from likewise.inference.model_tokens import UnfitModel, fits, tokens_of
from likewise.inference.policy import DEFAULT, policy_of
from likewise.inference.sample import Sample, sample_of
from likewise.inference.tokens import SENTENCES
from likewise.inference.verdict import candidates
from likewise.runs.cache import made_in_cache
from likewise.runs.job import Job, Plan, check_target, open_job
from likewise.runs.options import checked
from likewise.runs.progress import Progress
from likewise.runs.whole_files import write_json, write_text

MODEL2VEC = "model2vec"
_LARGEST = 2e9
"""Size of weights from which no export is made without a request: it takes minutes, and their size again."""
FORMATS = (*MAKERS, MODEL2VEC)
# Short, long, empty and special texts on which a graph is compared with torch.
_TEXTS = ["A cat.", "", "It isn't 3.5, says \u201cX\u201d.", *("a few words more " * n for n in (2, 9, 40))]


@checked
def export(
    model: SentenceTransformer | str | os.PathLike[str],
    format: Literal["openvino", "onnx", "model2vec"] | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    quiet: bool = False,
) -> list[Path]:
    """Export a model as a graph with its pooling and its tokenizer, or as word vectors.

    Without `out`, the graph is stored in the cache, where `likewise.load` finds it: `export("bundled:minilm")` creates
    the fastest graph for this processor and compares its vectors with torch's vectors. With `out`, the export is
    written to a folder for use in other programs.

    The inputs of the graph are the ids and the mask, (B, T) int64 each, under their usual names. Its outputs are
    'sentence_embedding', (B, D) float32, and 'token_embeddings', (B, T, E), unless the model pools a single token.
    `likewise_export.json` contains the maximum number of tokens, the padding token and side, the minimum length of a
    batch, the default prompt and the named prompts, the number of dimensions to which a vector is truncated, and the
    similarity of the model. If the settings of the model have changed, set `overwrite` to export it again.

    Args:
        model: Encoder on the CPU in float32, or its path or name as in `likewise.load`.
        format: Name of the format: "onnx", "openvino", or "model2vec" for a model that averages word vectors. Without
            `out`, the default is the fastest format on this processor.
        out: Path to the output folder; None exports to the cache.
        overwrite: Whether to replace an existing export.
        quiet: Whether to print nothing to standard error.

    Returns:
        The paths of the exported files.

    Raises:
        CannotExport: If the format does not support the model or one of its settings, which the message names, or if
            the exported vectors differ from torch's.
        MissingExtraError: If the format's package is not installed.
        EngineError: If there is no such format.
        JobError: If the folder contains another export, or other files.

    Example:
        >>> import likewise
        >>> files = likewise.export("bundled:minilm", format="onnx", out="exports/minilm", quiet=True)
        >>> print(*sorted(path.name for path in files))
        likewise_export.json model.onnx tokenizer.json
    """
    if format is not None and format not in FORMATS:
        raise EngineError(f"Unknown format {format!r}; choose one of {', '.join(FORMATS)}.")
    if (out is None and format == MODEL2VEC) or (out is not None and format is None):
        raise EngineError(
            "model2vec's format is for other programs: give an output folder (--out)"
            if out is None
            else f"an output folder needs a format: give --format, one of {', '.join(FORMATS)}"
        )
    if out is not None:
        check_target(out)
    encoder = model if isinstance(model, SentenceTransformer) else load(model, device="cpu", precision="fp32")
    if out is None:
        try:
            return _in_cache(encoder, format, SENTENCES, Progress(quiet))
        except UnfitModel as reason:
            raise CannotExport(f"The model cannot be exported: {reason}.") from None
    if format == MODEL2VEC:
        _check_model2vec(encoder)
    else:
        _check_graph(encoder)
    inputs = {"model": fingerprint(encoder)}
    with suppress(UnfitModel):
        inputs["tokenizer"] = tokens_of(encoder).hash
    plan = Plan("export", {"format": format, **_settings(encoder)}, inputs)
    with open_job(out, plan, overwrite=overwrite) as job:
        if job.finished is None:
            if format == "model2vec":
                _write_model2vec(encoder, job.result)
            elif format is not None:
                _write_graph(encoder, format, job)
        record = job.finished or job.finish()
    return [Path(out) / name for name in record["files"]]


def _write_graph(encoder: SentenceTransformer, format: EngineName, job: Job) -> None:
    """Copy a checked export from the cache, where it is made if there is none, and write what a caller must know."""
    pair: EngineVariant = (format, "fp32")
    policy = policy_of(encoder)
    try:
        sample = Sample(encoder, _TEXTS)
        policy.engines.check(pair, sample)
    except (CannotExport, UnfitModel) as reason:
        raise CannotExport(f"The model cannot be exported: {reason}.") from None
    tokens, made = sample.tokens, policy.engines.store.folder(pair)
    assert made is not None
    shutil.copytree(made, job.result, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.json", "with-tokens.*"))
    write_text(job.result / TOKENIZER, tokens.json)
    about = {
        "inputs": list(INPUTS),
        "output": OUTPUT,
        "min_tokens_of_a_batch": least_tokens(encoder),
        "pad_id": tokens.pad,
        "padding_side": "left" if tokens.left else "right",
        **_settings(encoder),
    }
    write_json(job.result / ABOUT_EXPORT, about)


def _settings(model: SentenceTransformer) -> dict[str, object]:
    """Return the settings that a caller of an export has to obey."""
    settings = ModelSettings.of(model)
    return {
        "max_tokens": settings.max_length,
        "prompt": settings.prompt(),
        "prompts": {name: text for name, text in settings.prompts.items() if text},
        "truncate_dim": settings.truncate_dim,
        "similarity": settings.similarity,
    }


def _check_graph(model: SentenceTransformer) -> None:
    """Check that one graph of ids and mask, and a prompt before the text, give a model's vectors."""
    settings = ModelSettings.of(model)
    if settings.routes:
        raise CannotExport(
            "The model cannot be exported: it has a Router, with different modules for queries and documents, but an "
            "export is a single graph: export the model of each route separately."
        )
    prompts = [name for name, text in settings.prompts.items() if text]
    if prompts and not settings.include_prompt:
        raise CannotExport(
            f"The model cannot be exported: its pooling excludes the prompt (include_prompt), but a graph does not "
            f"know where a prompt ends (prompts: {', '.join(prompts)}). Use torch, or remove the prompts."
        )


def keep_export(name: str | os.PathLike[str], texts: Sequence[str], progress: Progress) -> None:
    """Create the export that `load(name).encode` uses on this processor, after a job that trained or used the model.

    An export is also created if it is not faster, because a command with an export starts in a fifth of the time,
    without torch. No export is created if the package of an engine is missing, the cache is read-only, there is a GPU,
    the weights exceed 2 GB, or the variable LIKEWISE_EXPORTS is 'never'. An unsupported model is not an error.

    Args:
        texts: At least one text; the vectors are compared with torch's vectors on a sample of the texts.
    """
    if os.environ.get("LIKEWISE_EXPORTS", "").strip().lower() == "never" or not texts:
        return
    if torch.accelerator.is_available() or (weight_bytes(os.fspath(name)) or 0) > _LARGEST:
        return
    with suppress(LikewiseError, UnfitModel, OSError):
        made_in_cache("engines")  # an error, if it is only read
        model = load(name, device="cpu", precision="fp32")
        policy, installed = policy_of(model), next((engine for engine in EXPORTS if release(engine)), None)
        if policy.missing_export() is not None:
            _in_cache(model, None, sample_of(texts), progress)
        elif installed and not any(policy.engines.store.is_same(engine) for engine in EXPORTS):
            _in_cache(model, installed, sample_of(texts), progress)


def _in_cache(model: SentenceTransformer, format: str | None, texts: Sequence[str], progress: Progress) -> list[Path]:
    """Make an export where `load` finds it; return its files, none if this processor has no use for one.

    Args:
        format: Name of the engine; None for the fastest engine on this processor.
        texts: 1 or more, on which its vectors are compared with torch's.
    """
    prompt = default_prompt(model)
    fits(model, texts, prompt)
    policy = policy_of(model)
    usable: list[EngineVariant] = [pair for pair in candidates(DEFAULT) if pair[0] in ([format] if format else MAKERS)]
    pair = policy.missing_export() if format is None else next(iter(usable), None)
    if pair is None:  # it is there, or none would be faster
        pair = next((one for one in usable if one not in policy.engines.failed and policy.engines.is_there(one)), None)
        if pair is None:
            progress.tell("no export is faster than torch on this processor, or its package is not installed")
            return []
    elif not policy.engines.is_there(pair):
        progress.tell(f"exporting the model for {pair[0]}, so that later commands start faster (10 to 40 seconds)")
    try:
        fidelity = policy.engines.make(pair, Sample(model, [prompt + text for text in texts]))
    except CannotExport as reason:
        if format:
            raise
        progress.tell(f"{' '.join(pair)}: {reason}")
        return _in_cache(model, None, texts, progress)  # the next one: it is known by now that this one fails
    verified = f"verified on {counted(fidelity.sentences, 'sentence')} (minimum cosine {fidelity.lowest:.4f})"
    progress.tell(f"{' '.join(pair)} export {verified}")
    folder = policy.engines.store.folder(pair)
    return sorted(path for path in folder.iterdir() if path.name[0] != ".") if folder else []


def _check_model2vec(model: SentenceTransformer) -> None:
    """Check that a model is a mean of word vectors and nothing else, but a normalization."""
    others = [module for module in list(model)[1:] if not isinstance(module, Normalize)]
    if not isinstance(model[0], StaticEmbedding):
        others = [model[0]]
    if others:
        raise CannotExport(
            f"model2vec's format stores only a mean of word vectors, but this model has {type(others[0]).__name__}: "
            f"train such a model (likewise train light --preset mean), or export this one as onnx."
        )
    if prompt := default_prompt(model):
        raise CannotExport(
            f"model2vec's format cannot store a prompt, but this model puts {prompt!r} before each text "
            "(default_prompt_name): export it as onnx, or remove the prompt."
        )
    if model.truncate_dim is not None and len(list(model)) > 1:
        raise CannotExport(
            f"the model truncates its vectors to {model.truncate_dim} dimensions after normalization (truncate_dim), "
            f"but model2vec's format truncates before it: export it as onnx, or set truncate_dim to None."
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


def weight_bytes(name: str) -> int | None:
    """Return the size of a model's weights on disk, also of one of the hub that was fetched; None if it is not here."""
    folder = Path(resolve_model(name)).expanduser()
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        try:
            folder = Path(snapshot_download(name, local_files_only=True))
        except (OSError, ValueError):
            return None
    return sum(path.stat().st_size for end in ("safetensors", "bin") for path in folder.rglob(f"*.{end}")) or None
