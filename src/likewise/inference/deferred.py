"""An encoder whose model is loaded when it is first needed. Nothing here imports torch before that."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from likewise import processor
from likewise.corpus.bundled import resolve_model
from likewise.encoder.location import check_loadable
from likewise.errors import LikewiseError
from likewise.inference.engines.engine import EngineChoice, EngineName, EnginePrecision
from likewise.inference.engines.store import Store
from likewise.inference.exported import ExportedEncoder, Facts, Role
from likewise.inference.text_encoder import TextEncoder
from likewise.runs.cache import CacheError, cached, found_in_cache
from likewise.runs.whole_files import read_json, write_json
from likewise.version import __version__

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

    from likewise.inference.vectors import LoadedEncoder

_FACTS = "facts.json"


class DeferredEncoder:
    """An encoder whose model is loaded when it is first needed.

    Args:
        model: the encoder, or what `load` takes.
        engine, precision: as in `load`.

    Attributes:
        asked: engine and precision, as they were asked for.
    """

    def __init__(
        self,
        model: SentenceTransformer | str | os.PathLike[str],
        engine: EngineName = "auto",
        precision: EnginePrecision = "fp32",
    ) -> None:
        self._given, self._engine, self._precision = model, engine, precision
        self.asked = f"{engine} {precision}"
        self._exports: dict[Role | None, ExportedEncoder] = {}
        # What 'auto' takes for these vectors wherever there is an export (see `fast_pairs`).
        float32 = precision in ("fp32", "close")
        self._by_export = isinstance(model, str | os.PathLike) and engine in ("auto", "onnx") and float32
        self._bf16 = precision == "close" and processor.has_bf16()

    @cached_property
    def model(self) -> SentenceTransformer:
        """The model, loaded on first access."""
        if not isinstance(self._given, str | os.PathLike):
            return self._given
        check_loadable(os.fspath(self._given))  # a name that leads nowhere is said before torch is imported
        from likewise.inference.load_model import load

        return load(self._given, engine=self._engine, precision=self._precision)

    @cached_property
    def facts(self) -> Facts:
        """The facts about the model, which is loaded if there are none from before."""
        if self._by_export:
            with suppress(LookupError):
                return recalled(self._given)  # type: ignore[arg-type]
        model = self.model
        from likewise.inference.vectors import facts_of

        found = facts_of(model)
        if self._by_export:
            remember(self._given, found)  # type: ignore[arg-type]
        return found

    @property
    def name(self) -> str | None:
        """The name by which a search loads the model again: an absolute path, or one of the hub."""
        if not isinstance(self._given, str | os.PathLike):
            return getattr(self._given, "loaded_from", None)
        return str(Path(self._given).expanduser().resolve()) if Path(self._given).exists() else str(self._given)

    def opened(
        self, role: Role | None = None, tokens: bool = False, *, few: bool = False, before: str = ""
    ) -> TextEncoder:
        """Return the encoder of texts in a role: by an export in float32, where there is one, or by the loaded model.

        Args:
            tokens: whether it must give the vectors of tokens.
            few: texts are so few that it does not pay to load the model for bfloat16, where that was left open.
            before: the engine of the run that is resumed.
        """
        if before == ExportedEncoder.engine or (not before and (few or not self._bf16)):
            with suppress(LookupError):
                found = self.export(role)
                if found.gives_tokens or not tokens:
                    return found
        return self.loaded(role)

    def loaded(self, role: Role | None = None) -> LoadedEncoder:
        """Return the encoder of texts in a role by the loaded model."""
        from likewise.inference.vectors import LoadedEncoder

        choice: EngineChoice | None = EngineChoice(self._engine, self._precision)
        if not isinstance(self._given, str | os.PathLike):  # 'close' is then what it was loaded with
            own = getattr(self._given, "choice", None)
            choice = own if self._precision == "close" and getattr(own, "precision", "") == "close" else None
        return LoadedEncoder(self.model, self.facts.prompt(role), choice=choice)

    def export(self, role: Role | None = None) -> ExportedEncoder:
        """Return the encoder of texts in a role by an export.

        Raises:
            LookupError: other vectors were asked for, or there is no checked export.
        """
        if not self._by_export:
            raise LookupError(self.name)
        if role not in self._exports:  # to open it takes half a second
            facts, prompt = self.facts, self.facts.prompt(role)
            self._exports[role] = ExportedEncoder(facts.fingerprint, facts.tokenizer, facts.truncate_dim, prompt)
        return self._exports[role]

    def tokenizer(self) -> Tokenizer | None:
        """Return the model's tokenizer without a limit or padding, None if it is not one of the library `tokenizers`.

        The model is loaded only if its tokenizer was not kept.
        """
        from tokenizers import Tokenizer

        kept = Store(self.facts.fingerprint).tokenizer(self.facts.tokenizer) if self.facts.tokenizer else None
        if kept is not None:
            own = Tokenizer.from_file(str(kept[0]))
        else:
            whole = getattr(self.model, "tokenizer", None)
            whole = getattr(whole, "backend_tokenizer", whole)
            if not isinstance(whole, Tokenizer):
                return None
            own = Tokenizer.from_str(whole.to_str())
        own.no_truncation()
        own.no_padding()
        return own

    def make_export(self, texts: Sequence[str]) -> None:
        """Make the export that `export` finds next time, where it is fast and its parts are installed.

        Args:
            texts: 1 or more, on which its vectors are compared with torch's; a longer job compares more.
        """
        from likewise.inference.chooser import exports_of, fast_pairs
        from likewise.inference.fidelity import Sample
        from likewise.inference.model_tokens import UnfitModel

        pair = fast_pairs("fp32")[0]
        if not self._by_export or pair[0] != "onnx":
            return
        with suppress(UnfitModel, LikewiseError, OSError):
            exports_of(self.model).ready(pair, Sample(self.model, texts))


def remember(name: str | os.PathLike[str], facts: Facts) -> None:
    """Keep the facts about the model of a folder, or a bundled one, for as long as none of its files changes."""
    with suppress(LookupError, OSError, CacheError):  # a model of the hub; a cache that can only be read
        cached("facts", _state(name), lambda folder: write_json(folder / _FACTS, asdict(facts)))


def recalled(name: str | os.PathLike[str]) -> Facts:
    """Return the facts that `remember` has kept about a model.

    Raises:
        LookupError: there are none, or a file of the model has changed.
    """
    if (kept := found_in_cache("facts", _state(name))) is None:
        raise LookupError(name)
    return Facts(**read_json(kept / _FACTS))


def _state(name: str | os.PathLike[str]) -> list[str]:
    """Return the sizes and times of a model's files, with this release: facts are those of one state."""
    folder = Path(resolve_model(os.fspath(name))).expanduser().resolve()
    if not (folder / "modules.json").is_file():
        raise LookupError(name)
    files = [(path, path.stat()) for path in sorted(folder.rglob("*")) if path.is_file()]
    state = [f"{path.relative_to(folder)} {about.st_size} {about.st_mtime_ns}" for path, about in files]
    return [f"{__version__} {folder}", *state]
