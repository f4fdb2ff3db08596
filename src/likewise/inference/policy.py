"""The choice of engine and precision for a model, with its reason.

The fastest engine depends on the processor and was measured (benchmarks/notebook/speed.md): int8 or bfloat16 if the
processor supports them natively, otherwise exported graphs with AVX2, and torch. The fidelity of the vectors is checked
on a sample of the user's own texts and cached by model, release and processor. An export takes 15 to 40 s: it is
created if it was requested by name, or by a job that is long enough to justify it; a call of `encode` uses an existing
export, and creates one only if its engine or precision was given.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from likewise import processor
from likewise.encoder.attention import is_hooked
from likewise.encoder.settings import ModelSettings
from likewise.errors import MissingExtraError, counted, first_line
from likewise.inference.checked_engines import CheckedEngines
from likewise.inference.engines.engine import (
    DEFAULT_BATCH,
    ENDLESS,
    CannotExport,
    Engine,
    EngineChoice,
    EngineVariant,
    OwnEncode,
    QuantisationRefused,
    TorchEngine,
)
from likewise.inference.engines.graph import mark
from likewise.inference.engines.store import ENOUGH, Fidelity, release
from likewise.inference.model_tokens import UnfitModel, fits, for_each_model, tokens_of
from likewise.inference.sample import SIZE, Sample, sample_of
from likewise.inference.text_encoder import TextEncoder, equal_vectors
from likewise.inference.tokens import FEW, PLAIN, Step, TextSide, WholeTexts
from likewise.inference.verdict import LOWER, TORCH, PairFacts, candidates, verdict
from likewise.runs.progress import WORTH_TELLING, Progress, seconds_each, spoken

DEFAULT = EngineChoice("auto", "close")
"""The default choice of `load`."""
LONG = 5e12
"""Operations from which a job makes an export: about a minute of two cores with AVX2."""
LONG_IN_BF16 = 1e14
"""The same where torch is in bfloat16 without an export, which is then a fifth faster: some minutes of one core."""
_AT_ONCE = 4 * ENOUGH
"""The number of texts of a default call from which its engine is judged before it runs, on some of them. A shorter call
of a model that was never judged here is encoded in float32, so that no first call takes longer for being judged."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Chosen:
    """The chosen engine and the reason.

    Attributes:
        why: Reason in words.
        fidelity: Fidelity of the vectors; None for torch in float32.
        notes: Notes for the user, who requested another engine.
        settled: Whether further texts cannot change the choice.
    """

    engine: Engine
    why: str = ""
    fidelity: Fidelity | None = None
    notes: tuple[str, ...] = ()
    settled: bool = True

    def __str__(self) -> str:
        lower = self.fidelity is not None and self.engine.precision != "fp32"
        return f"{self.engine}, {self.fidelity}" if lower else str(self.engine)


class Policy:
    """The engines of a model with its present weights, and the choice among them.

    The model itself is not held, so that it is free to go; it comes with each call.

    Attributes:
        engines: Engines of the model, with facts about their vectors.
        encoded: Number of texts passed to `encode`.
        default: Engine of the last default call, and the reason.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        self.engines = CheckedEngines(model)
        self.encoded = 0
        self.default = f"torch fp32: not chosen yet; the first {ENOUGH} texts are encoded in float32"
        self._settled: tuple[EngineVariant, str] | None = None
        self._seen: dict[str, None] = {}
        self._lock = threading.Lock()

    def rows(
        self,
        model: SentenceTransformer,
        choice: EngineChoice,
        texts: Sequence[str],
        *,
        batch_size: int,
        at_most: int | None,
        step: Step,
    ) -> tuple[Tensor, Chosen]:
        """Return the vectors (S, D) of S texts of a call of `encode`, at least one, and the engine that computed them.

        Args:
            batch_size: Number of sentences in a batch of a short call in float32, as in sentence-transformers.
            at_most: Maximum number of sentences in a batch, in addition to the limit on tokens.
            step: Function that is called with the number of finished sentences after each batch.
        """
        tokens, default = tokens_of(model), choice == DEFAULT
        self.encoded += len(texts)
        with self._lock:
            chosen = self._for_default(model, texts) if default else self.choose(model, choice, texts, self.encoded)
        for note in chosen.notes:
            logger.warning(note)
        exact = default or choice == EngineChoice("torch")
        try:
            if exact and chosen.engine.pair == TORCH and len(texts) <= DEFAULT_BATCH:
                rows = equal_vectors(tokens, TorchEngine(model, whole=True), texts, batch_size)
            else:
                rows = TextEncoder(tokens, chosen.engine, batch_size=at_most).rows(texts, step)
        except Exception as error:
            if not default or chosen.engine.name == "torch":
                raise
            # This engine was not requested: what torch can encode must not fail by it.
            logger.warning("%s fails, and torch runs instead: %s", chosen.engine, first_line(error))
            self.engines.failed[chosen.engine.pair] = first_line(error)
            self._settle(model, Chosen(TorchEngine(model), f"{chosen.engine} fails: {first_line(error)}"))
            return self.rows(model, choice, texts, batch_size=batch_size, at_most=at_most, step=step)
        finally:
            if default and not chosen.settled:
                self._see(model, texts)
        return torch.as_tensor(rows), chosen

    def _for_default(self, model: SentenceTransformer, texts: Sequence[str]) -> Chosen:
        """Return the engine of a default call, which stays the same in a process: it gives a text one vector."""
        if self._settled is None:
            some = sample_of(texts, ENOUGH) if len(texts) >= _AT_ONCE else list(self._seen)
            chosen = self.choose(model, DEFAULT, some if len(some) >= ENOUGH else [], len(texts), makes=False)
            if chosen.settled:
                self._settle(model, chosen)
            return chosen
        pair, why = self._settled
        return Chosen(self.engines.opened.get(pair) or TorchEngine(model), why)

    def _see(self, model: SentenceTransformer, texts: Sequence[str]) -> None:
        """Remember the first texts, and choose by them once they are enough."""
        with self._lock:
            for text in texts:
                if len(self._seen) < ENOUGH:
                    self._seen.setdefault(text)
            if len(self._seen) >= ENOUGH:
                self._for_default(model, [])

    def _settle(self, model: SentenceTransformer, chosen: Chosen) -> None:
        self._settled, self.default = (chosen.engine.pair, chosen.why), f"{chosen.engine}: {chosen.why}"
        self._seen.clear()
        name = getattr(model, "loaded_from", None) or "the model"
        faster = self.missing_export(chosen.engine.pair)
        hint = f"; an export for {' '.join(faster)} would be faster: likewise export {name}" if faster else ""
        logger.info("%s runs on %s%s", name, self.default, hint)

    def choose(
        self,
        model: SentenceTransformer,
        choice: EngineChoice,
        texts: Sequence[str],
        total: int,
        *,
        makes: bool = True,
        tell: Callable[[str], None] = logger.info,
    ) -> Chosen:
        """Choose an engine.

        Args:
            model: Model that the fast path supports (see `fits`).
            texts: Texts to encode, or the first of them; checks and the ranges of int8 use a sample.
            total: Approximate total number of texts.
            makes: Whether an export may be created if the number of texts justifies it.
            tell: Function that is called with a line before an export is created.

        Raises:
            QuantisationRefused: If a precision was requested by name, and no engine preserves the vectors in it.
            MissingExtraError: If an engine was requested by name, and its package is not installed.
        """
        close = choice.precision == "close"
        if (choice.engine, choice.precision) == TORCH or not (texts or close):
            return Chosen(TorchEngine(model))
        if choice.engine == "auto" and choice.precision not in LOWER and self.engines.hooked:
            return Chosen(TorchEngine(model), "the model has hooks, which no other engine would call")
        sample = Sample(model, sample_of(texts, ENOUGH if close else SIZE), tell)
        reasons: list[str] = []
        notes: list[str] = []
        for pair in candidates(choice):
            if pair == TORCH:
                break
            try:
                action, reason = verdict(pair, self._facts(pair, choice, sample, total, makes))
                if action == "wait":
                    return Chosen(TorchEngine(model), settled=False)
                if action == "check":
                    return self._checked(pair, sample, close, reasons, notes)
                reasons.append(reason)
            except Exception as error:  # of every kind, by an engine that is broken here
                is_note, said = _refusal(pair, choice, error)
                (notes if is_note else reasons).append(said)
        return self._only_torch(model, choice, reasons, notes)

    def _facts(self, pair: EngineVariant, choice: EngineChoice, sample: Sample, total: int, makes: bool) -> PairFacts:
        """Return what is known about an engine; nothing is looked up on disk for few texts."""
        engines, close, has_texts = self.engines, choice.precision == "close", bool(sample.texts)
        few = not close and total < FEW
        exported = not few and engines.is_there(pair, judged=has_texts)
        pays = False
        if makes and has_texts and not few and not exported and release(pair[0]):
            pays = sample.operations(total) >= (LONG_IN_BF16 if close and processor.has_bf16() else LONG)
        return PairFacts(
            choice,
            failure=engines.failed.get(pair, ""),
            installed=bool(release(pair[0])),
            on_cpu=sample.model.device.type == "cpu",
            own_forward=pair == ("torch", "bf16") and TorchEngine(sample.model, "bf16").model is sample.model,
            few=few,
            is_open=pair in engines.opened and pair in engines.checked,
            exported=exported,
            pays=pays,
            judged=has_texts or bool(engines.known(pair)),
        )

    def _checked(
        self, pair: EngineVariant, sample: Sample, close: bool, reasons: Sequence[str], notes: Sequence[str]
    ) -> Chosen:
        """Return an engine if its vectors are near enough; raise what `CheckedEngines.check` raises if they are not."""
        fidelity = self.engines.check(pair, sample, close)
        nearness = f"minimum cosine with float32 {fidelity.lowest:.5f} on {fidelity.sentences} texts"
        why = [nearness if pair[1] != "fp32" else "its vectors are torch's up to rounding", *reasons]
        return Chosen(self.engines.open(pair, sample), "; ".join(why), fidelity, tuple(notes))

    def _only_torch(
        self, model: SentenceTransformer, choice: EngineChoice, reasons: Sequence[str], notes: Sequence[str]
    ) -> Chosen:
        """Return torch in float32, with the reasons for which no other engine was taken."""
        auto = choice.engine == "auto"
        if auto and choice.precision in LOWER:
            raise QuantisationRefused(f"no engine here supports {choice.precision}: {'; '.join([*reasons, *notes])}")
        why = "; ".join(dict.fromkeys(reasons)) or ("no engine here is faster" if auto else "")
        return Chosen(TorchEngine(model), why, notes=tuple(notes))

    def missing_export(self, than: EngineVariant | None = None) -> EngineVariant | None:
        """Return the export to make for default calls: the fastest that is missing; None if none would be faster.

        Args:
            than: Engine that runs now; None for torch's default.
        """
        for pair in candidates(DEFAULT):
            if pair in (than, TORCH) or (than is None and pair[0] == "torch"):
                return None
            failed = pair in self.engines.failed or isinstance(self.engines.store.verdict(pair), str)
            if pair[0] != "torch" and release(pair[0]) and not failed and not self.engines.is_there(pair):
                return pair
        return None


def _refusal(pair: EngineVariant, choice: EngineChoice, error: Exception) -> tuple[bool, str]:
    """Return whether the user is notified of an engine that cannot be taken, and the words.

    Raises:
        Exception: The error itself, if the caller requested something impossible.
    """
    auto, named = choice.engine == "auto", choice.precision in LOWER
    by_default = auto and choice.precision == "close"
    if isinstance(error, CannotExport):
        if by_default:
            return False, f"{' '.join(pair)}: {error}"
        instead = "" if auto else " torch runs instead."
        return True, f"The engine {pair[0]} ({pair[1]}) cannot be used: {error}.{instead}"
    if isinstance(error, (MissingExtraError, QuantisationRefused)):
        if not auto and (named or isinstance(error, MissingExtraError)):
            raise error
        return not by_default, str(error)
    if not auto or named:
        raise error
    return False, f"{' '.join(pair)}: {first_line(error)}"


policy_of = for_each_model(Policy, lambda model: (mark(model), is_hooked(model)))
"""The policy of a model, rebuilt if its weights or its hooks have changed."""


def text_encoder(
    model: SentenceTransformer,
    choice: EngineChoice | Engine,
    texts: Sequence[str],
    total: int | None = None,
    *,
    side: TextSide = PLAIN,
    normalize: bool = True,
    batch_size: int | None = None,
    progress: Progress | None = None,
    before: str = "",
) -> TextEncoder:
    """Return what encodes texts by a loaded model: by token ids and an engine, or by its own `encode`.

    Args:
        choice: Choice of the engine, which depends on the texts; or the engine itself.
        texts: Texts to encode, or the first of them.
        total: Approximate total number of texts; None for these.
        side, normalize, batch_size: Settings as in `TextEncoder`.
        progress: Progress that shows the engine and the time of a long job; None logs deviations from the request.
        before: Engine of the resumed run, which 'auto' then repeats.
    """
    if before.count(" ") == 1:
        choice = EngineChoice(*before.split())  # type: ignore[arg-type]
    tell, warn = (progress.tell, progress.tell) if progress else (logger.info, logger.warning)
    made = partial(TextEncoder, side=side, truncate_dim=model.truncate_dim, normalize=normalize, batch_size=batch_size)
    total = len(texts) if total is None else total
    if side.task:  # settings take half a millisecond to read
        ModelSettings.of(model).task(side.task)
    model.eval()
    try:
        tokens = fits(model, texts, side.prompt)
    except UnfitModel as reason:
        tell(f"the slower encode of sentence-transformers is used: {reason}.")
        return made(WholeTexts(), OwnEncode(model, batch_size))
    prompted = [side.prompt + text for text in sample_of(texts)]
    with torch.inference_mode():
        chosen = (
            policy_of(model).choose(model, choice, prompted, total, tell=tell)
            if isinstance(choice, EngineChoice)
            else Chosen(choice)
        )
        for note in chosen.notes:
            warn(note)
        if progress:
            progress.tell(f"engine: {chosen}")
            _foretell(model, chosen.engine, prompted, total, progress)
    precision: Literal["fp32", "bf16"] = "bf16" if chosen.engine.precision == "bf16" else "fp32"
    return made(tokens, chosen.engine, for_tokens=lambda: TorchEngine(model, precision))


def _foretell(model: SentenceTransformer, engine: Engine, texts: Sequence[str], total: int, progress: Progress) -> None:
    """Tell how long a long job will take, if anybody waits for it; the texts of a service have no end."""
    if progress.quiet or total >= ENDLESS or not texts or Sample(model, texts).operations(total) < LONG:
        return
    seconds = seconds_each(TextEncoder(tokens_of(model), engine).rows, texts) * total
    if seconds >= WORTH_TELLING:
        progress.tell(f"{spoken(seconds)} for {counted(total, 'text')}, measured on a few of them")


def settled(model: SentenceTransformer) -> EngineChoice:
    """Return a model's engine for comparisons and stored results: float32 unless the model has a setting."""
    own = getattr(model, "choice", EngineChoice("torch"))
    return EngineChoice(own.engine, "fp32" if own.precision == "close" else own.precision)
