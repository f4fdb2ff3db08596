"""An encoder whose model is loaded when it is first needed. Nothing here imports torch before that."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import LikewiseError
from likewise.inference.engines.names import EngineName, EnginePrecision
from likewise.inference.exported import ExportedEncoder, Facts, exported, recalled, remember

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class DeferredEncoder:
    """An encoder whose model is loaded when it is first needed.

    Args:
        model: the encoder, or what `load` takes.
        engine, precision: as in `load`.
    """

    def __init__(
        self,
        model: SentenceTransformer | str | os.PathLike[str],
        engine: EngineName = "auto",
        precision: EnginePrecision = "fp32",
    ) -> None:
        self._given, self._engine, self._precision = model, engine, precision
        # What 'auto' takes for these vectors wherever there is an export (see `fast_pairs`).
        self._by_export = isinstance(model, str | os.PathLike) and engine in ("auto", "onnx") and precision == "fp32"

    @cached_property
    def model(self) -> SentenceTransformer:
        """The model, loaded on first access."""
        if not isinstance(self._given, str | os.PathLike):
            return self._given
        from likewise.inference.loading import load

        return load(self._given, engine=self._engine, precision=self._precision)

    @cached_property
    def facts(self) -> Facts:
        """The facts about the model, which is loaded if there are none from before."""
        if self._by_export:
            with suppress(LookupError):
                return recalled(self._given)  # type: ignore[arg-type]
        from likewise.inference.encoding import facts_of

        found = facts_of(self.model)
        if self._by_export:
            remember(self._given, found)  # type: ignore[arg-type]
        return found

    @property
    def name(self) -> str | None:
        """The name by which a search loads the model again: an absolute path, or one of the hub."""
        if not isinstance(self._given, str | os.PathLike):
            return getattr(self._given, "loaded_from", None)
        return str(Path(self._given).expanduser().resolve()) if Path(self._given).exists() else str(self._given)

    def export(self) -> ExportedEncoder:
        """Return the exported encoder in place of the model.

        Raises:
            LookupError: other vectors were asked for, or there is no checked export.
        """
        if not self._by_export:
            raise LookupError(self.name)
        return exported(self.facts)

    def make_export(self, texts: Sequence[str]) -> None:
        """Make the export that `export` finds next time, where it is fast and its parts are installed.

        Args:
            texts: 1 or more, on which its vectors are compared with torch's; a longer job compares more.
        """
        from likewise.inference.engines.chooser import fast_pairs
        from likewise.inference.engines.exports import exports_of
        from likewise.inference.engines.fidelity import Sample
        from likewise.inference.runner import UnfitModel, runner_of

        pair = fast_pairs("fp32")[0]
        if not self._by_export or pair[0] != "onnx":
            return
        with suppress(UnfitModel, LikewiseError, OSError):
            exports_of(self.model).ready(pair, Sample(self.model, runner_of(self.model), texts))
