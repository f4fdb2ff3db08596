"""A handle of a model: its facts without loading it, and its encoder of texts in a role.

Torch takes seconds to import, longer than a query or the start of a service: nothing here imports it before a model has
to be loaded. A folder's facts are remembered in the cache for as long as none of its files changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from likewise import processor
from likewise.data.bundled import resolve_model
from likewise.encoder.location import check_loadable, files_of_model
from likewise.inference.engines.engine import EngineChoice, EngineName, EnginePrecision
from likewise.inference.engines.store import MAKERS, Store
from likewise.inference.text_encoder import TextEncoder
from likewise.inference.tokens import FEW, Role, TextSide, Tokens
from likewise.runs.cache import CacheError, cached, find_in_cache
from likewise.runs.on_ray import loadable
from likewise.runs.progress import Progress
from likewise.runs.whole_files import read_json, write_json
from likewise.version import __version__

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

EXPORTS: tuple[EngineName, ...] = ("onnx", "openvino")
"""The engines that run a model without loading it, the faster one to open first."""
_FACTS = "facts.json"
_FORMAT = 3
"""The format of the facts; facts in another format are determined again."""


@dataclass(frozen=True)
class Facts:
    """The facts about a model that a job needs before or without loading it.

    Attributes:
        fingerprint: Hash of the weights and the computation.
        dimension: Dimension of its vectors.
        longest: Maximum number of tokens that it reads; None for no limit.
        truncate_dim: Dimension to which its vectors are truncated, or None.
        prompts: Prompts of queries and documents by role; "" for other texts.
        tokenizer: Hash of the tokenizer; None if the fast path does not support the model.
        tokens: Dimension of its token vectors; 0 if it has none.
        other_similarity: Name of its own similarity, if it ranks differently from the cosine.
    """

    fingerprint: str
    dimension: int
    longest: int | None
    truncate_dim: int | None
    prompts: Mapping[str, str]
    tokenizer: str | None
    tokens: int
    other_similarity: str = ""

    @classmethod
    def of(cls, model: SentenceTransformer) -> Facts:
        """Return the facts about a loaded model."""
        from likewise.encoder.settings import ModelSettings
        from likewise.inference.engines.graph import fingerprint, token_dimension
        from likewise.inference.model_tokens import UnfitModel, fits
        from likewise.inference.vectors import dimension

        settings = ModelSettings.of(model)
        prompts = {role: settings.prompt(role) for role in get_args(Role)} | {"": settings.prompt()}
        try:
            tokenizer, tokens = fits(model, [], "".join(prompts.values())).hash, token_dimension(model)
        except UnfitModel:
            tokenizer, tokens = None, 0
        longest, cut = model.max_seq_length, model.truncate_dim
        other = settings.other_similarity
        return cls(fingerprint(model), dimension(model), longest, cut, prompts, tokenizer, tokens, other)

    def prompt(self, role: Role | None = None) -> str:
        """Return the prompt that the model puts before a query, a document, or any text; "" if it has none."""
        return self.prompts[role or ""]

    def side(self, role: Role | None = None) -> TextSide:
        """Return prompt and route of a query, a document, or any text."""
        return TextSide(self.prompt(role), role)


class ModelHandle:
    """A model that is loaded on demand.

    Args:
        model: Encoder, or its path or name as in `load`.
        engine, precision: See `load`; the defaults are the settings of a loaded model.

    Attributes:
        requested: Requested engine and precision.
    """

    def __init__(
        self,
        model: SentenceTransformer | str | os.PathLike[str],
        engine: EngineName = "auto",
        precision: EnginePrecision = "fp32",
    ) -> None:
        self._source, self._choice = model, EngineChoice(engine, precision)
        self.requested = f"{engine} {precision}"
        # What 'auto' takes for these vectors wherever there is an export (see `candidates`).
        float32 = precision in ("fp32", "close")
        self._path = os.fspath(model) if isinstance(model, str | os.PathLike) else ""
        allowed = EXPORTS if engine == "auto" else tuple(name for name in EXPORTS if name == engine)
        self._by_export = allowed if self._path and float32 else ()
        self._bf16 = precision == "close" and processor.has_bf16()

    @cached_property
    def model(self) -> SentenceTransformer:
        """The model, loaded on first access."""
        if not isinstance(self._source, str | os.PathLike):
            return self._source
        check_loadable(self._path)  # a name that leads nowhere is said before torch is imported
        from likewise.inference.load_model import load

        return load(self._source, engine=self._choice.engine, precision=self._choice.precision)

    @cached_property
    def facts(self) -> Facts:
        """The facts about the model, which is loaded if there are none from before."""
        if self._by_export:
            with suppress(LookupError):
                return recalled(self._path)
        facts = Facts.of(self.model)
        if self._by_export:
            remember(self._path, facts)
        return facts

    @property
    def name(self) -> str | None:
        """The name by which a search loads the model again: an absolute path, or one of the hub."""
        if not self._path:
            return getattr(self._source, "loaded_from", None)
        return str(Path(self._path).expanduser().resolve()) if Path(self._path).exists() else self._path

    def opened(
        self,
        role: Role | None = None,
        texts: Sequence[str] = (),
        total: int = 1,
        *,
        tokens: bool = False,
        by_export: bool = True,
        normalize: bool = True,
        progress: Progress | None = None,
        before: str = "",
    ) -> TextEncoder:
        """Return the encoder of texts in a role, by a float32 export if there is one, or by the loaded model.

        Args:
            texts: First texts, for the selection of the engine if the model is loaded.
            total: Approximate total number of texts.
            tokens: Whether token vectors are required.
            by_export: Whether an export may be used without loading the model.
            normalize: See `TextEncoder`; an export uses the default.
            progress: Progress that shows the engine.
            before: Engine of the resumed run.
        """
        # For few texts it does not pay to load the model for bfloat16, where that was left open.
        by_this = before in {f"{name} fp32" for name in self._by_export}
        if by_export and (by_this or (not before and (total < FEW or not self._bf16))):
            with suppress(LookupError):
                encoder = self.export(role)
                if encoder.gives_tokens or not tokens:
                    if progress:
                        progress.tell(f"engine: {encoder.engine}")
                    return encoder
        from likewise.inference.policy import DEFAULT, settled, text_encoder

        choice, side = self._choice, self.facts.side(role)
        if not self._path and choice in (EngineChoice(), DEFAULT):  # nothing was asked for
            own = getattr(self.model, "choice", None)
            choice = DEFAULT if own == choice == DEFAULT else settled(self.model)
        by_model = partial(text_encoder, self.model, choice, texts, total, side=side, normalize=normalize)
        return by_model(progress=progress, before=before)

    def export(self, role: Role | None = None) -> TextEncoder:
        """Return the encoder of texts in a role by an export.

        Raises:
            LookupError: If other vectors were requested, or there is no checked export.
        """
        if not self._by_export:
            raise LookupError(self.name)
        facts = self.facts
        return export_encoder(
            facts.fingerprint, facts.tokenizer, facts.truncate_dim, facts.prompt(role), self._by_export
        )

    def tokenizer(self) -> Tokenizer | None:
        """Return the model's tokenizer without a limit or padding, None if it is not one of the library `tokenizers`.

        The model is loaded only if its tokenizer was not kept.
        """
        from tokenizers import Tokenizer

        cached = Store(self.facts.fingerprint).tokenizer(self.facts.tokenizer) if self.facts.tokenizer else None
        if cached is not None:
            own = Tokenizer.from_file(str(cached[0]))
        else:
            whole = getattr(self.model, "tokenizer", None)
            whole = getattr(whole, "backend_tokenizer", whole)
            if not isinstance(whole, Tokenizer):
                return None
            own = Tokenizer.from_str(whole.to_str())
        own.no_truncation()
        own.no_padding()
        return own

    def for_worker(self, encoder: TextEncoder, texts: Sequence[str], total: int) -> Callable[[], TextEncoder]:
        """Return a function that opens an encoder of this model in another process, which keeps it.

        Args:
            encoder: Result of `opened` without an export, whose engine and settings are used.
            texts, total: Arguments of `opened`, so that the engine is checked on the same texts.

        Raises:
            ClusterError: If the model has no folder or name from which it could be loaded there.
        """
        from likewise.inference.sample import sample_of

        some = tuple(sample_of(texts))
        return partial(
            _reopened, loadable(self.name), some, total, encoder.side.task, encoder.normalize, encoder.engine
        )


@lru_cache(maxsize=1)
def _reopened(
    name: str, texts: tuple[str, ...], total: int, role: Role | None, normalize: bool, engine: str
) -> TextEncoder:
    handle = ModelHandle(name, *(engine.split() if engine.count(" ") == 1 else ()))
    return handle.opened(role, texts, total, by_export=False, normalize=normalize)


def export_encoder(
    fingerprint: str,
    tokenizer: str | None,
    truncate_dim: int | None,
    prompt: str = "",
    engines: Sequence[EngineName] = EXPORTS,
) -> TextEncoder:
    """Return an encoder of texts by a checked float32 export in the cache.

    Args:
        fingerprint: Fingerprint of the model.
        tokenizer: Hash of the model's tokenizer (`Tokens.hash`).
        truncate_dim: Dimension to which vectors are truncated; None keeps them.
        prompt: Text before each text.
        engines: Allowed engines in order of preference.

    Raises:
        LookupError: If there is no export with this tokenizer, if its vectors are not verified, or if its engine is not
            installed.
    """
    store = Store(fingerprint)
    cached = store.tokenizer(tokenizer) if tokenizer else None
    name = next((engine for engine in engines if store.is_same(engine)), None)
    folder = store.folder((name, "fp32")) if name else None
    if cached is None or name is None or folder is None:
        raise LookupError(fingerprint)
    path, known = cached
    try:
        engine = MAKERS[name].ENGINE(folder, "fp32", known["at_least"])
        engine.few_on_all_cores = False  # it would be opened a second time, which takes longer than a query
        engine.open(2)  # on one core
    except ImportError as error:
        raise LookupError(fingerprint) from error
    from tokenizers import Tokenizer

    own = Tokenizer.from_file(str(path))
    own.encode_special_tokens = bool(known["special"])
    tokens = Tokens(own, known["pad"], bool(known["left"]), bool(known.get("by_words")))
    return TextEncoder(tokens, engine, side=TextSide(prompt), truncate_dim=truncate_dim)


def remember(name: str | os.PathLike[str], facts: Facts) -> None:
    """Cache the facts about a bundled model, or the model of a folder, until one of its files changes."""
    with suppress(LookupError, OSError, CacheError):  # a model of the hub; a cache that can only be read
        cached("facts", _state(name), lambda folder: write_json(folder / _FACTS, asdict(facts)))


def recalled(name: str | os.PathLike[str]) -> Facts:
    """Return the facts that `remember` has kept about a model.

    Raises:
        LookupError: If there are none, or a file of the model has changed.
    """
    if (folder := find_in_cache("facts", _state(name))) is None:
        raise LookupError(name)
    return Facts(**read_json(folder / _FACTS))


def _state(name: str | os.PathLike[str]) -> list[str]:
    """Return the sizes and times of a model's files, with this release: facts belong to one state."""
    folder = Path(resolve_model(os.fspath(name))).expanduser().resolve()
    if not (folder / "modules.json").is_file():
        raise LookupError(name)
    files = [(inner, path.stat()) for inner, path in files_of_model(folder).items()]
    state = [f"{inner} {about.st_size} {about.st_mtime_ns}" for inner, about in files]
    return [f"{__version__} {_FORMAT} {folder}", *state]
