"""Which engine encodes for a model, in which precision, and why: the one place where that is decided.

What is fast follows from the processor and was measured (benchmarks/README.md): int8 where the processor multiplies it,
bfloat16 where it has that, else the exported graphs where there is AVX2, and torch. That an engine keeps the vectors is
checked on a sample of the user's own texts and remembered in the cache, by model, release and processor. An export
takes 15 to 40 s: one is made if it was asked for by name, or by a job that is long enough for it to pay; a call of
`encode` takes an export that is there, and makes none unless its engine or precision was named.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise import processor
from likewise.encoder.attention import is_hooked
from likewise.encoder.settings import ModelSettings
from likewise.errors import MissingExtraError, counted, first_line
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
from likewise.inference.engines.graph import check_exportable, fingerprint, least_tokens, mark
from likewise.inference.engines.store import (
    ENOUGH,
    MAKERS,
    MAX_DIFFERENCE,
    MIN_CLOSE,
    MIN_COSINE,
    MIN_RANK,
    Fidelity,
    Store,
    release,
)
from likewise.inference.model_tokens import UnfitModel, fits, for_each_model, tokens_of
from likewise.inference.text_encoder import TextEncoder, equal_vectors, float32
from likewise.inference.tokens import FEW, PLAIN, SENTENCES, Step, TextSide, WholeTexts
from likewise.runs.progress import WORTH_TELLING, Progress, seconds_each, spoken

DEFAULT = EngineChoice("auto", "close")
"""The choice of `load` if it is told nothing."""
TORCH: EngineVariant = ("torch", "fp32")
LONG = 5e12
"""Operations from which a job makes an export: about a minute of two cores with AVX2."""
LONG_IN_BF16 = 1e14
"""The same where torch is in bfloat16 without an export, which is then a fifth faster: some minutes of one core."""
_AT_ONCE = 4 * ENOUGH
"""The number of texts of a default call from which its engine is judged before it runs, on some of them. A shorter call
of a model that was never judged here is encoded in float32, so that no first call takes longer for being judged."""

_SIZE = 128
"""Sentences of a sample: 8,128 pairs for the rank correlation, a second or two of float32 for a small model."""
_SHORT = 24
"""Characters to which the last text of a sample is cut."""

logger = logging.getLogger(__name__)


def sample_of(texts: Sequence[str], size: int = _SIZE) -> list[str]:
    """Return up to `size` evenly spaced ones of the different texts."""
    unique = list(dict.fromkeys(texts))
    places = np.linspace(0, len(unique) - 1, num=min(size, len(unique))).round().astype(int)
    return [unique[place] for place in dict.fromkeys(places.tolist())]


class Sample:
    """The sample of texts, and their vectors in float32 by torch; too few are joined by some sentences of our own.

    Args:
        tell: is called with a line before an export is made.
    """

    def __init__(
        self, model: SentenceTransformer, texts: Sequence[str], tell: Callable[[str], None] = logger.info
    ) -> None:
        self.model, self.tokens, self.texts, self.tell = model, tokens_of(model), sample_of(texts), tell

    @cached_property
    def reference(self) -> np.ndarray:
        """The vectors in float32 by torch, (S, D)."""
        return self._vectors(TorchEngine(self.model))

    def fidelity(self, engine: Engine) -> Fidelity:
        """Compare an engine's vectors with the reference.

        Raises:
            CannotExport: torch runs the sample, and the engine does not.
        """
        reference = self.reference
        try:
            vectors = self._vectors(engine)
        except Exception as error:  # of every kind, by a graph that holds for the lengths of its example alone
            raise CannotExport(f"it does not run the model ({type(error).__name__}: {first_line(error)})") from error
        return compare(vectors, reference)

    def operations(self, total: int) -> float:
        """Return the approximate number of operations for `total` such texts: 2 x weights x tokens."""
        parts = [module for module in self.model.modules() if isinstance(module, (nn.Linear, nn.Conv1d))]
        tokens = sum(map(len, self.tokens(self.texts))) / len(self.texts)
        return 2.0 * sum(part.weight.numel() for part in parts) * tokens * total

    def batches(self, at_least: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return ids and mask of each text as a separate batch, for the calibration of int8."""
        return [self.tokens.batch([ids], at_least) for ids in self.tokens(self.texts)]

    def _vectors(self, engine: Engine) -> np.ndarray:
        encoder = TextEncoder(self.tokens, engine)
        texts = self.texts if len(self.texts) >= ENOUGH else [*self.texts, *SENTENCES]
        rows = float32(encoder.rows(texts))
        # Short and alone, as a query is: an engine may fill it up to a length of its own.
        rows[-1:] = float32(encoder.rows([texts[-1][:_SHORT]]))
        return rows


def compare(vectors: np.ndarray, reference: np.ndarray) -> Fidelity:
    """Compare vectors with the ones in float32.

    Args:
        vectors, reference: (S, D) each, S of 1 or more; a row that is zero in both counts as equal.
    """
    vectors, reference = vectors.astype(np.float64), reference.astype(np.float64)
    lengths = np.linalg.norm(reference, axis=1)  # (S,)
    difference = float((np.abs(vectors - reference).max(axis=1) / np.maximum(lengths, 1e-12)).max())
    units = [rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (vectors, reference)]
    cosines = (units[0] * units[1]).sum(axis=1)  # (S,)
    cosines[(lengths == 0) & (np.linalg.norm(vectors, axis=1) == 0)] = 1.0
    rank = 1.0
    if len(vectors) >= ENOUGH:
        pairs = np.triu_indices(len(vectors), k=1)
        rank = float(np.nan_to_num(spearmanr(*((rows @ rows.T)[pairs] for rows in units)).statistic))
    return Fidelity(float(cosines.mean()), float(cosines.min()), rank, difference, len(vectors))


def candidates(choice: EngineChoice) -> list[EngineVariant]:
    """Return the engines and precisions to try on this processor for what was asked, the fastest first."""
    named, auto = choice.precision in ("bf16", "int8"), choice.engine == "auto"
    among: dict[str, tuple[str, ...]] = {"auto": ("int8", "bf16", "fp32"), "close": ("bf16", "fp32")}
    tried = among.get(choice.precision, (choice.precision,))
    fast_graphs = not auto or bool(processor.flags() & {"avx2", "asimd"})
    pairs: list[EngineVariant] = []
    if "int8" in tried and (named or fast_graphs):
        # Without VNNI the int8 of ONNX Runtime is faster than its float32, and that of OpenVINO is not.
        int8: list[EngineVariant] = [("onnx", "int8"), ("openvino", "int8")]
        pairs += int8[::-1] if processor.has_int8() else int8 if named else int8[:1]
    if "bf16" in tried and (named or processor.has_bf16()):
        pairs += [("openvino", "bf16"), ("torch", "bf16")]
    if "fp32" in tried:
        pairs += [("onnx", "fp32"), ("openvino", "fp32")] if fast_graphs else []
        pairs.append(TORCH)
    return [pair for pair in pairs if auto or pair[0] == choice.engine]


@dataclass(frozen=True)
class Chosen:
    """The chosen engine and the reason.

    Attributes:
        why: the reason, in words.
        fidelity: of the vectors; None for torch in float32.
        notes: for the user, who asked for something else.
        settled: whether more texts would not change it.
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
        store: the model's exports in the cache, and what is known of their vectors.
        encoded: texts that `encode` was called with.
        default: what the last default call ran on, and why.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        self.store = Store(fingerprint(model))
        self.encoded = 0
        self.default = f"torch fp32: not chosen yet; the first {ENOUGH} texts are encoded in float32"
        self._hooked = is_hooked(model)
        self._open: dict[EngineVariant, Engine] = {}
        self._checked: dict[EngineVariant, Fidelity] = {}
        self._failed: dict[EngineVariant, str] = {}
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
        """Return the vectors (S, D) of S texts of a call of `encode`, 1 or more, and what they were made by.

        Args:
            batch_size: sentences of a batch of a short call in float32, as in sentence-transformers.
            at_most: the most sentences in a batch, if they are limited in addition to the tokens.
            step: called with the number of sentences done after each batch.
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
            # Nobody asked for this engine: what torch can encode must not fail by it.
            logger.warning("%s fails, and torch runs instead: %s", chosen.engine, first_line(error))
            self._failed[chosen.engine.pair] = first_line(error)
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
        return Chosen(self._open.get(pair) or TorchEngine(model), why)

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
            model: one that the fast path takes (see `fits`).
            texts: what is to be encoded, or the first of it: checks and int8's ranges are made on a sample.
            total: how many there are in all, about.
            makes: whether an export may be made, if there is so much to encode that it pays.
            tell: is called with a line before an export is made.

        Raises:
            QuantisationRefused: a precision was asked for by name, and no engine here keeps the vectors in it.
            MissingExtraError: an engine was asked for by name, and its package is not installed.
        """
        auto, close = choice.engine == "auto", choice.precision == "close"
        named = choice.precision in ("bf16", "int8")
        if (choice.engine, choice.precision) == TORCH or not (texts or close):
            return Chosen(TorchEngine(model))
        if auto and not named and self._hooked:
            return Chosen(TorchEngine(model), "the model has hooks, which no other engine would call")
        sample = Sample(model, sample_of(texts, ENOUGH if close else _SIZE), tell)
        notes: list[str] = []
        reasons: list[str] = []
        for pair in candidates(choice):
            if pair == TORCH:
                break
            try:
                if auto and (reason := self._not_now(pair, choice, sample, total, makes)):
                    reasons.append(reason)
                    continue
                if not (sample.texts or self._known(pair)):
                    return Chosen(TorchEngine(model), settled=False)
                fidelity = self.check(pair, sample, close)
                said = f"lowest cosine with float32 {fidelity.lowest:.5f} on {fidelity.sentences} texts"
                why = [said if pair[1] != "fp32" else "its vectors are torch's up to rounding", *reasons]
                return Chosen(self._opened(pair, sample), "; ".join(why), fidelity, tuple(notes))
            except (MissingExtraError, QuantisationRefused) as refused:
                if not auto and (named or isinstance(refused, MissingExtraError)):
                    raise
                (reasons if auto and close else notes).append(str(refused))
            except CannotExport as unfit:
                if auto and close:
                    reasons.append(f"{' '.join(pair)}: {unfit}")
                else:
                    instead = "" if auto else " torch runs instead."
                    notes.append(f"The engine {pair[0]} ({pair[1]}) cannot be used: {unfit}.{instead}")
            except Exception as error:  # of every kind, by an engine that is broken here
                if not auto or named:
                    raise
                reasons.append(f"{' '.join(pair)}: {first_line(error)}")
        if named and auto:
            raise QuantisationRefused(f"No engine here gives {choice.precision}. {' '.join([*reasons, *notes])}")
        without = "; ".join(dict.fromkeys(reasons)) or ("nothing here is faster" if auto else "")
        return Chosen(TorchEngine(model), without, notes=tuple(notes))

    def _not_now(
        self, pair: EngineVariant, choice: EngineChoice, sample: Sample, total: int, makes: bool
    ) -> str | None:
        """Return why an engine that nobody asked for is passed over; None if it is to be checked."""
        close = choice.precision == "close"
        if pair in self._failed:
            return f"{' '.join(pair)}: {self._failed[pair]}"
        if pair[0] == "torch":
            own_forward = close and TorchEngine(sample.model, "bf16").model is sample.model
            return "torch bf16: its parts have a forward of their own" if own_forward else None
        if sample.model.device.type != "cpu":
            return f"{pair[0]} runs on the CPU alone"
        if not release(pair[0]):
            return f"{pair[0]} is not installed"
        if choice.precision in ("bf16", "int8"):
            return None
        if not close and total < FEW:
            # Opening an export takes as long as some hundred texts.
            return None if pair in self._open and pair in self._checked else f"few texts do not pay for {pair[0]}"
        if self.is_there(pair, judged=bool(sample.texts)):
            return None
        long = LONG_IN_BF16 if close and processor.has_bf16() else LONG
        if makes and sample.texts and sample.operations(total) >= long:
            return None
        return f"there is no export for {pair[0]}"

    def is_there(self, pair: EngineVariant, judged: bool = False) -> bool:
        """Return whether an engine can run without an export being made first.

        Args:
            judged: whether there are texts by which one in float32 is judged now.
        """
        if pair[0] == "torch":
            return True
        if not release(pair[0]) or self.store.folder(pair) is None:
            return False
        return pair[1] != "fp32" or judged or self.store.is_same(pair[0])

    def missing_export(self, than: EngineVariant | None = None) -> EngineVariant | None:
        """Return the export to make for default calls: the fastest that is missing; None if none would be faster.

        Args:
            than: what runs now; None for what torch runs by itself.
        """
        for pair in candidates(DEFAULT):
            if pair in (than, TORCH) or (than is None and pair[0] == "torch"):
                return None
            failed = pair in self._failed or isinstance(self.store.verdict(pair), str)
            if pair[0] != "torch" and release(pair[0]) and not failed and not self.is_there(pair):
                return pair
        return None

    def make(self, pair: EngineVariant, sample: Sample) -> Fidelity:
        """Make an export for later, and judge its vectors by a sample of 1 or more texts.

        Raises:
            CannotExport: it does not take the model, or its vectors are not near enough.
        """
        try:
            return self.check(pair, sample, close=True)
        except CannotExport as reason:
            self._failed[pair] = str(reason)
            self.store.keep(pair, str(reason))
            raise

    def check(self, pair: EngineVariant, sample: Sample, close: bool = False) -> Fidelity:
        """Return how near an engine's vectors are to float32's.

        Args:
            close: whether a lower precision must be as near as 'close' allows.

        Raises:
            CannotExport: it does not take the model, or its float32 differs from torch's.
            QuantisationRefused: its lower precision differs too much.
        """
        engine, precision = pair
        lower = precision != "fp32"
        if close or engine != "torch":
            check_exportable(sample.model)
        known = self._known(pair) if close or not lower else self._checked.get(pair)
        if isinstance(known, str):
            raise CannotExport(known)
        if known is None:
            known = self._judged(pair, sample)
            if close or not lower:
                self.store.keep(pair, known)
        if not lower and not known.same:
            limit = f"not {MAX_DIFFERENCE:.0e} at most"
            raise CannotExport(f"its vectors differ from torch's by {known.difference:.1e} and {limit}")
        if lower and close and not known.close:
            told = f"{known.lowest:.5f} on {known.sentences} texts"
            raise QuantisationRefused(f"{engine} {precision}: lowest cosine with float32 {told}, not {MIN_CLOSE}")
        if lower and not close and not known.near:
            raise QuantisationRefused(
                f"{engine} {precision} does not keep the vectors: {known}; {MIN_COSINE} and {MIN_RANK} are needed. "
                "Take --precision fp32."
            )
        self._checked[pair] = known
        return known

    def _known(self, pair: EngineVariant) -> Fidelity | str | None:
        return self._checked.get(pair) or self.store.verdict(pair)

    def _judged(self, pair: EngineVariant, sample: Sample) -> Fidelity:
        """Return how near an engine's vectors are to float32's, by a sample of which nothing is known yet.

        A graph that runs in bfloat16 is judged in float32 as well, in which it encodes a query of a new process
        without torch (see `export_encoder`).
        """
        fidelity = sample.fidelity(self._opened(pair, sample))
        if pair[0] in MAKERS and pair[1] == "bf16":
            with suppress(CannotExport):
                self.check((pair[0], "fp32"), sample)
        return fidelity

    def _opened(self, pair: EngineVariant, sample: Sample) -> Engine:
        if pair[0] == "torch" and pair not in self._open:
            engine = TorchEngine(sample.model, "bf16" if pair[1] == "bf16" else "fp32", traced=not self._hooked)
            if engine.model is sample.model:  # not kept: it holds the model
                return engine
            self._open[pair] = engine
        if pair not in self._open:
            at_least = least_tokens(sample.model)
            self._open[pair] = MAKERS[pair[0]].ENGINE(self._made(pair, sample), pair[1], at_least)
            if pair[1] == "fp32":
                self.store.put_tokenizer(sample.tokens, at_least)
        return self._open[pair]

    def _made(self, pair: EngineVariant, sample: Sample) -> Path:
        if known := self.store.folder(pair):
            return known
        maker = MAKERS[pair[0]]
        if pair[1] != "int8":
            sample.tell(f"exporting the model for {pair[0]}, once: 15 to 40 seconds")
            return self.store.put(pair, lambda folder: maker.export(sample.model, folder))
        whole = self._made((pair[0], "fp32"), sample)
        batches = sample.batches(least_tokens(sample.model))
        return self.store.put(pair, lambda folder: maker.quantise(whole, folder, batches))


policy_of = for_each_model(Policy, lambda model: (mark(model), is_hooked(model)))
"""The policy of a model, made anew if its weights or its hooks have changed."""


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
        choice: of the engine, which is made by the texts; or the engine itself.
        texts: what is to be encoded, or the first of it.
        total: how many there are in all, about; None for these.
        side, normalize, batch_size: as `TextEncoder` takes them.
        progress: shows the engine and how long a long job will take; None logs what is not as it was asked for.
        before: the engine of the run that is resumed: what was left to 'auto' is chosen as it was then.
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
        tell(f"sentence-transformers' own encode runs, the slower way: {reason}.")
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
    """Return a model's engine for what is compared, chosen or kept: float32 if the model's own is left open."""
    own = getattr(model, "choice", EngineChoice("torch"))
    return EngineChoice(own.engine, "fp32" if own.precision == "close" else own.precision)
