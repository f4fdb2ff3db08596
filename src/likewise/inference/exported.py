"""An exported encoder by itself, and the facts about a model that is not loaded. Nothing here imports torch.

The import of torch and sentence-transformers takes seconds, longer than a query or the start of a service.

Letters of the shapes: S texts, B texts of a batch, T tokens, D embedding.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np

from likewise.corpus.bundled import resolve_model
from likewise.corpus.decoding import without_surrogates
from likewise.inference.batches import CPU_BUDGET, by_budget, padded
from likewise.inference.engines.store import MAX_DIFFERENCE, TOKENIZER, Store, release
from likewise.runs.cache import CacheError, cache_folder, made_in_cache
from likewise.runs.whole_files import write_json
from likewise.version import __version__

Role = Literal["query", "document"]
_PROMPTS: dict[Role, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
_PAIR = ("onnx", "fp32")


@dataclass(frozen=True)
class Facts:
    """The facts about a model that a job needs before, or instead of, loading it.

    Attributes:
        fingerprint: a hash of the weights and the computation.
        dimension: the length of its vectors.
        longest: the most tokens that it reads; None if there is no limit.
        truncate_dim: the length that its vectors are cut to; None keeps them whole.
        prompts: by name; "" is the default one.
        tokenizer: a hash of the tokenizer; None where the fast path does not take the model.
    """

    fingerprint: str
    dimension: int
    longest: int | None
    truncate_dim: int | None
    prompts: Mapping[str, str]
    tokenizer: str | None

    def prompt(self, role: Role | None = None) -> str:
        """Return the prompt that the model puts before a query, a document, or any text; "" if it has none."""
        named = (self.prompts.get(name) for name in _PROMPTS[role]) if role else iter(())
        return next(filter(None, named), None) or self.prompts.get("", "")


def remember(name: str | os.PathLike[str], facts: Facts) -> None:
    """Keep the facts about the model of a folder, or a bundled one, for as long as none of its files changes."""
    with suppress(LookupError, OSError, CacheError):  # a model of the hub; a cache that can only be read
        path = _place(name)
        made_in_cache(path.parent)
        write_json(path, asdict(facts))


def recalled(name: str | os.PathLike[str]) -> Facts:
    """Return the facts that `remember` has kept about a model.

    Raises:
        LookupError: there are none, or a file of the model has changed.
    """
    try:
        return Facts(**json.loads(_place(name).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise LookupError(name) from error


def _place(name: str | os.PathLike[str]) -> Path:
    """Return the file for the facts about a model, by the sizes and times of the model's files."""
    folder = Path(resolve_model(os.fspath(name))).expanduser().resolve()
    if not (folder / "modules.json").is_file():
        raise LookupError(name)
    digest = blake2b(f"{__version__} {folder}".encode(), digest_size=16)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            about = path.stat()
            digest.update(f"{path.relative_to(folder)} {about.st_size} {about.st_mtime_ns}\n".encode())
    return cache_folder() / "engines" / "models" / f"{digest.hexdigest()}.json"


class ExportedEncoder:
    """The vectors of texts, of length 1, by ONNX Runtime from a checked export in the cache.

    Calls from several threads run at the same time, each on one core.

    Args:
        fingerprint: of the model.
        tokenizer: the tokenizer of the model as JSON, hashed (`Tokens.hash`).

    Raises:
        LookupError: there is none with this tokenizer, or its vectors are not known to be torch's.
    """

    def __init__(self, fingerprint: str, tokenizer: str | None, truncate_dim: int | None) -> None:
        store = Store(fingerprint)
        about = store.about(_PAIR) or {}
        facts: dict[str, Any] = about.get("tokens") or {}
        difference = about.get("fidelity", {}).get("difference", 1.0)
        if (
            tokenizer is None
            or facts.get("hash") != tokenizer
            or about.get("release") != release("onnx")
            or difference > MAX_DIFFERENCE
        ):
            raise LookupError(fingerprint)
        import onnxruntime
        from tokenizers import Tokenizer

        folder = store.folder(_PAIR)
        self._tokens = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokens.encode_special_tokens = facts["special"]
        self._pad, self._left, self._at_least = facts["pad"], facts["left"], facts["at_least"]
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), settings, ["CPUExecutionProvider"])
        self._truncate_dim = truncate_dim

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (S, D), float32, of S texts, 1 or more."""
        return self.vectors(self.ids(texts), cores()[0])

    def ids(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the token ids of each text, cut to the model's length."""
        tokens = self._tokens.encode_batch_fast([without_surrogates(text) for text in texts])
        return [np.array(text.ids, dtype=np.int32) for text in tokens]

    def vectors(self, ids: Sequence[np.ndarray], pool: ThreadPoolExecutor | None = None) -> np.ndarray:
        """Return the vectors (S, D), float32, of the ids of S texts, 1 or more; batches are spread over a pool."""
        batches = by_budget(np.array([len(row) for row in ids]), CPU_BUDGET)
        rows = list((pool.map if pool else map)(lambda batch: self._rows([ids[i] for i in batch]), batches))
        found = np.empty((len(ids), rows[0].shape[1]), dtype=np.float32)
        for batch, vectors in zip(batches, rows, strict=True):
            found[batch] = vectors
        return found

    def _rows(self, ids: Sequence[np.ndarray]) -> np.ndarray:
        """Return the vectors (B, D) of a batch."""
        tokens, mask = padded(ids, self._pad, self._left, self._at_least)
        found: np.ndarray = self._session.run(None, {"input_ids": tokens, "attention_mask": mask})[0]
        return cut(found, self._truncate_dim)


def cut(vectors: np.ndarray, dimensions: int | None) -> np.ndarray:
    """Return vectors (S, D) cut to a dimension, if one is given, and scaled to length 1."""
    found = vectors[:, :dimensions]
    scaled: np.ndarray = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    return scaled


def exported(facts: Facts) -> ExportedEncoder:
    """Return the exported encoder of a model that is known.

    Raises:
        LookupError: there is no checked export, or its parts are not installed.
    """
    try:
        return ExportedEncoder(facts.fingerprint, facts.tokenizer, facts.truncate_dim)
    except ImportError as error:
        raise LookupError(facts.fingerprint) from error


@cache
def cores() -> tuple[ThreadPoolExecutor, int]:
    """Return a pool with a thread for each core of this process, or for OMP_NUM_THREADS if less; and their number."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    found = min(found, int(limit)) if limit.isdigit() and int(limit) else found
    return ThreadPoolExecutor(found, "likewise-onnx"), found
