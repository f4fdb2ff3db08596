"""The exports of one model: made where there is none of its weights, kept, opened, and checked against torch's vectors.

They are in `engines/` in the model's folder where that can be written, else in the cache; each has a note of the
weights that it was made of.
"""

from __future__ import annotations

import json
import os
import shutil
import weakref
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from likewise.inference.engines import onnx_engine, openvino_engine
from likewise.inference.engines.engine import (
    CannotExport,
    Engine,
    EngineError,
    EngineName,
    EnginePrecision,
    Pair,
    QuantisationRefused,
    TorchEngine,
)
from likewise.inference.engines.fidelity import ENOUGH, MAX_DIFFERENCE, MIN_COSINE, MIN_RANK, Fidelity, Sample
from likewise.inference.engines.graph import check_exportable, fingerprint, least_tokens, mark
from likewise.runs.cache import cache_folder
from likewise.runs.whole_files import write_json
from likewise.version import __version__

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

FOLDER = "engines"
_ABOUT = "about.json"
# Folders that are not the user's: an installed package, a download of the model hub.
_NOT_OURS = {"site-packages", "dist-packages", "snapshots"}


@dataclass(frozen=True)
class Store:
    """The exports of one model with one set of weights, on disk."""

    home: Path
    fingerprint: str

    @classmethod
    def of(cls, model_folder: Path | None, fingerprint: str) -> Store:
        """Return the store of a model: `engines/` in its folder, else in $LIKEWISE_CACHE or ~/.cache/likewise."""
        if model_folder is not None and os.access(model_folder, os.W_OK):
            folder = model_folder.resolve()
            if not _NOT_OURS & set(folder.parts):
                return cls(folder / FOLDER, fingerprint)
        return cls(cache_folder() / FOLDER / fingerprint[:16], fingerprint)

    def folder(self, pair: Pair) -> Path:
        """Return where an export is, or would be."""
        return self.home / "-".join(pair)

    def about(self, pair: Pair) -> dict[str, Any] | None:
        """Return what is known of an export; None if there is none or it was made of other weights."""
        try:
            found = json.loads((self.folder(pair) / _ABOUT).read_text(encoding="utf-8"))
            return found if found["model"] == self.fingerprint else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, pair: Pair, write: Callable[[Path], None]) -> None:
        """Make an export: `write` fills a folder, which then replaces an older one; one process at a time."""
        self.home.mkdir(parents=True, exist_ok=True)
        unfinished = self.home / ".unfinished"
        with FileLock(self.home / ".lock"):
            try:
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                write(unfinished)
                self._describe(unfinished, {})
                shutil.rmtree(self.folder(pair), ignore_errors=True)
                unfinished.rename(self.folder(pair))
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)

    def note(self, pair: Pair, **about: Any) -> None:
        """Add to what is known of an export."""
        self.folder(pair).mkdir(parents=True, exist_ok=True)
        self._describe(self.folder(pair), (self.about(pair) or {}) | about)

    def _describe(self, folder: Path, about: dict[str, Any]) -> None:
        write_json(folder / _ABOUT, {"model": self.fingerprint, "likewise": __version__} | about)


class Exports:
    """Engines of one model with the weights that it has now.

    Args:
        model: it is referred to weakly, so that it can be freed.
        folder: where it was loaded from, if that is known.
    """

    def __init__(self, model: SentenceTransformer, folder: Path | None) -> None:
        self._model = weakref.ref(model)
        self.mark = mark(model)
        self.store = Store.of(folder, fingerprint(model))
        self._open: dict[Pair, Engine] = {}
        self.checked: dict[Pair, Fidelity] = {}

    @property
    def model(self) -> SentenceTransformer:
        """The model."""
        found = self._model()
        assert found is not None, "the model of these exports is gone"
        return found

    def has(self, pair: Pair) -> bool:
        """Return whether an engine can run without an export that is made first."""
        return pair[0] == "torch" or self.store.about(_file_of(pair)) is not None

    def ready(self, pair: Pair, sample: Sample) -> Engine:
        """Return an engine that keeps the vectors.

        Raises:
            CannotExport: the engine does not take the model.
            MissingExtraError: the engine is not installed.
            QuantisationRefused: its vectors are too far from float32.
        """
        known = self.checked.get(pair) or self._checked_before(pair)
        if known is not None:
            self.checked[pair] = known
        if known is None or known.sentences < ENOUGH <= len(sample.texts):
            older = self.has(pair)
            fidelity = sample.fidelity(self._opened(pair, sample))
            if older and pair[1] == "int8" and not fidelity.near:
                # Its ranges were taken from another corpus: take them from this one.
                self._open.pop(pair)
                self._make(pair, sample)
                fidelity = sample.fidelity(self._opened(pair, sample))
            if pair[0] != "torch":
                self.store.note(pair, fidelity=asdict(fidelity), release=release(pair[0]))
            _approve(pair, fidelity)
            self.checked[pair] = fidelity
        return self._opened(pair, sample)

    def _checked_before(self, pair: Pair) -> Fidelity | None:
        """Return the fidelity of a float32 export that was the same under this release.

        A lower precision depends on the texts too.
        """
        about = (self.store.about(pair) or {}) if pair[1] == "fp32" else {}
        if "fidelity" not in about or about.get("release") != release(pair[0]):
            return None
        found = Fidelity(**about["fidelity"])
        return found if found.same else None

    def _opened(self, pair: Pair, sample: Sample) -> Engine:
        if pair not in self._open:
            engine, precision = pair
            if engine == "torch":  # not kept: it holds the model
                return TorchEngine(self.model, "bf16" if precision == "bf16" else "fp32")
            check_exportable(self.model)
            if not self.has(pair):
                self._make(pair, sample)
            self._open[pair] = engine_in(self.store.folder(_file_of(pair)), engine, self.model, precision)
        return self._open[pair]

    def _make(self, pair: Pair, sample: Sample) -> None:
        make = openvino_engine if pair[0] == "openvino" else onnx_engine
        whole: Pair = (pair[0], "fp32")
        if self.store.about(whole) is None:
            self.store.put(whole, lambda folder: make.export(self.model, folder))
        if pair[1] == "int8":
            source, batches = self.store.folder(whole), sample.batches(least_tokens(self.model))
            self.store.put(pair, lambda folder: make.quantise(source, folder, batches))


def _file_of(pair: Pair) -> Pair:
    """Return the export that a pair runs: bf16 is the float32 export, run otherwise."""
    return (pair[0], "fp32") if pair[1] == "bf16" else pair


def release(engine: EngineName) -> str:
    """Return the installed release of an engine; empty where there is none."""
    try:
        return version({"openvino": "openvino", "onnx": "onnxruntime"}[engine])
    except (KeyError, PackageNotFoundError):
        return ""


def _approve(pair: Pair, fidelity: Fidelity) -> None:
    engine, precision = pair
    if precision == "fp32" and not fidelity.same:
        raise CannotExport(
            f"its vectors differ from torch's by {fidelity.difference:.1e} and not {MAX_DIFFERENCE:.0e} at most"
        )
    if precision != "fp32" and not fidelity.near:
        raise QuantisationRefused(
            f"{engine} {precision} does not keep the vectors: {fidelity}; {MIN_COSINE} and {MIN_RANK} are needed. "
            "Take --precision fp32."
        )


_EXPORTS: weakref.WeakKeyDictionary[SentenceTransformer, Exports] = weakref.WeakKeyDictionary()


def exports_of(model: SentenceTransformer) -> Exports:
    """Return the exports of a model, found anew when its weights were written since."""
    known = _EXPORTS.get(model)
    if known is None or known.mark != mark(model):
        known = _EXPORTS[model] = Exports(model, getattr(model, "folder", None))
    return known


def export_to(model: SentenceTransformer, engine: EngineName, folder: Path) -> None:
    """Write a model's pooled graph in float32 into a folder.

    Raises:
        CannotExport: the engine does not take the model.
        MissingExtraError: its package is not installed.
        EngineError: there is no such format.
    """
    if engine not in ("openvino", "onnx"):
        raise EngineError(f"Unknown format {engine!r}; known are onnx, openvino.")
    check_exportable(model)
    make = openvino_engine if engine == "openvino" else onnx_engine
    make.export(model, folder)


def engine_in(
    folder: Path, engine: EngineName, model: SentenceTransformer, precision: EnginePrecision = "fp32"
) -> Engine:
    """Return the engine of a graph that was exported from a model into a folder."""
    kind = openvino_engine.OpenVINOEngine if engine == "openvino" else onnx_engine.OnnxEngine
    return kind(folder, precision, least_tokens(model))
