"""Vectors of sentences by a loaded model, in memory or text after text with an engine that is chosen once.

Letters of the shapes: S sentences, D embedding, T tokens, E a token's vector.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, partial
from typing import Any, Literal, overload

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from likewise.encoder.modules import modes_restored
from likewise.errors import LikewiseError, counted
from likewise.inference.chooser import LONG, choose
from likewise.inference.cores import cores
from likewise.inference.encoder import DEFAULT_BATCH, default_prompt, fast_vectors, finished, settled
from likewise.inference.engines.engine import ENDLESS, Call, Engine, EngineChoice, TorchEngine
from likewise.inference.engines.graph import fingerprint, token_dimension
from likewise.inference.exported import Facts
from likewise.inference.fidelity import Sample, sample_of
from likewise.inference.load_model import load
from likewise.inference.model_tokens import UnfitModel, fits
from likewise.inference.text_encoder import Item, Spread, TextEncoder, all_finite, float32
from likewise.inference.tokens import Step
from likewise.runs.duration import WORTH_TELLING, seconds_each, spoken
from likewise.runs.on_ray import loadable
from likewise.runs.progress import Progress

Precision = Literal["fp32", "bf16"]


def encode(
    model: SentenceTransformer,
    sentences: Sequence[str],
    *,
    batch_size: int | None = None,
    precision: Precision | None = None,
    normalize: bool = False,
    progress: Progress | None = None,
) -> np.ndarray:
    """Encode sentences: the vectors of `model.encode`, as float32 rows in the order given.

    Args:
        model: the encoder; its train or eval mode and the global random state are restored.
        sentences: S strings; one that occurs again is encoded once.
        batch_size: most sentences in a batch; None leaves it to the number of their tokens.
        precision: None for the model's own choice (torch, if it was not loaded by `likewise.load`; float32, if that
            was told no precision), "fp32" for unchanged torch, "bf16" for torch under bfloat16 autocast (faster on
            hardware that has it; changes the third digit or so).
        normalize: scale each row to length 1.
        progress: where to show a bar; None shows none.

    Returns:
        (S, D) float32.

    Raises:
        LikewiseError: the batch size is not positive, the precision is unknown, or the vectors are not finite.
    """
    if batch_size is not None and batch_size < 1:
        raise LikewiseError(f"batch_size is {batch_size}; give 1 or more.")
    cast = autocast(model, precision)
    if not len(sentences):
        return np.zeros((0, dimension(model)), dtype=np.float32)
    shown = progress or Progress(quiet=True)
    choice = settled(model) if precision is None else TorchEngine(model, precision)
    with undisturbed(model):
        try:
            with torch.inference_mode():
                prompt = default_prompt(model)
                found, _ = fast_vectors(model, sentences, choice, prompt=prompt, at_most=batch_size, progress=shown)
                vectors = finished(found, model.truncate_dim, normalize)
        except UnfitModel:
            with cast:
                return all_finite(_plain(model, sentences, None, batch_size, normalize))
    return all_finite(vectors.float().cpu().numpy())  # (S, D)


def _plain(
    model: SentenceTransformer, texts: Sequence[str], prompt: str | None, batch_size: int | None, normalize: bool
) -> np.ndarray:
    """Return the vectors (S, D), float32, of S texts by the model's own `encode`; None is its own prompt."""
    settings: Any = {"batch_size": batch_size or DEFAULT_BATCH, "normalize_embeddings": normalize}
    settings |= {} if prompt is None else {"prompt": prompt}
    found: Any = model.encode(list(texts), convert_to_tensor=True, show_progress_bar=False, **settings)
    return torch.as_tensor(found).float().cpu().numpy()


@overload
def similarity(  # type: ignore[overload-overlap]
    texts: str, others: str, *, model: SentenceTransformer | str | os.PathLike[str]
) -> float: ...


@overload
def similarity(
    texts: str | Sequence[str],
    others: str | Sequence[str] | None = None,
    *,
    model: SentenceTransformer | str | os.PathLike[str],
) -> np.ndarray: ...


def similarity(
    texts: str | Sequence[str],
    others: str | Sequence[str] | None = None,
    *,
    model: SentenceTransformer | str | os.PathLike[str],
) -> np.ndarray | float:
    """Return the cosines of texts with others, whichever similarity the model card names.

    Args:
        texts: S texts (a list, an array, a column), or one.
        others: O texts, or one; None compares the texts with each other.
        model: the encoder, or what `likewise.load` takes.

    Returns:
        (S, O) float64, each between -1 and 1; of one text and one other, a float. Cosines of different models are not
        comparable: compare the order in which each ranks the same texts.
    """
    encoder = model if isinstance(model, SentenceTransformer) else load(model, precision="fp32")
    rows = [texts] if isinstance(texts, str) else list(texts)
    columns = [others] if isinstance(others, str) else list(() if others is None else others)
    vectors = encode(encoder, [*rows, *columns], normalize=True).astype(np.float64)  # (S + O, D)
    cosines = vectors[: len(rows)] @ (vectors if others is None else vectors[len(rows) :]).T
    return cosines.item() if isinstance(texts, str) and isinstance(others, str) else cosines


class LoadedEncoder(TextEncoder):
    """A loaded model with an engine, or sentence-transformers' own `encode` if the fast path does not take the model.

    Args:
        model: the encoder.
        prompt: the text before each text.
        choice: of the engine; None for the model's own (torch, if it was not loaded by `likewise.load`; float32, if
            that was told no precision).
        batch_size: most texts in a batch; None leaves it to the number of their tokens.
        normalize: scale each row to length 1.
    """

    engine = ""
    gives_tokens = True
    _tokens: Any = None  # those of the fast path, if it takes the model
    _runs: Engine | None = None

    def __init__(
        self,
        model: SentenceTransformer,
        prompt: str,
        *,
        choice: EngineChoice | None = None,
        batch_size: int | None = None,
        normalize: bool = True,
    ) -> None:
        # The tokenizer and the engine come with the choice.
        self.prompt, self.truncate_dim, self.batch_size = prompt, model.truncate_dim, batch_size
        self.model, self.normalize, self.workers = model.eval(), normalize, cores()
        self.choice = choice or settled(model)
        self._chosen_by: tuple[tuple[str, ...], int] = ((), 0)

    @torch.inference_mode()
    def choose(self, texts: Sequence[str], total: int, progress: Progress, before: str = "") -> None:
        """Choose the engine by the first of `total` texts, and show it, and how long a long job will take.

        Args:
            before: the engine of the run that is resumed: what was left to 'auto' is chosen as it was then.
        """
        if before.count(" ") == 1:
            self.choice = EngineChoice(*before.split())  # type: ignore[arg-type]
        sample = sample_of(texts)
        self.engine, self._chosen_by = "sentence-transformers", (tuple(sample), total)
        if not texts:
            return
        try:
            tokens = fits(self.model, texts, self.prompt)
            chosen = choose(self.model, self.choice, [self.prompt + text for text in sample], total)
        except UnfitModel as reason:
            progress.tell(f"sentence-transformers' own encode runs, the slower way: {reason}.")
            return
        self._runs, self._tokens, self.engine = chosen.engine, tokens, str(chosen.engine)
        for line in (*chosen.notes, f"engine: {chosen}"):
            progress.tell(line)
        prompted = [self.prompt + text for text in sample]
        if not progress.quiet and total < ENDLESS and Sample(self.model, prompted).operations(total) >= LONG:
            seconds = seconds_each(TextEncoder(tokens, chosen.engine).rows, prompted) * total
            if seconds >= WORTH_TELLING:
                progress.tell(f"{spoken(seconds)} for {counted(total, 'text')}, measured on a few of them")

    def __call__(self, texts: Sequence[str], step: Step = lambda _: None) -> np.ndarray:
        """See `TextEncoder`."""
        if self._opened(texts) is None:
            found = _plain(self.model, texts, self.prompt, self.batch_size, self.normalize)
            step(len(texts))
            return all_finite(found)
        return super().__call__(texts, step)

    def items(self, texts: Sequence[str], prompt: str | None = None) -> list[Item]:
        """See `TextEncoder.items`; they stay texts if the fast path does not take the model."""
        if self._opened(texts) is None:
            before = self.prompt if prompt is None else prompt
            return [before + text for text in texts]
        return super().items(texts, prompt)

    def tokens(self, item: Item) -> int:
        """Return the length of an item in tokens; in characters divided by 4 if they are not known."""
        return 1 + len(item) // 4 if self._runs is None else len(item)

    def vectors(self, items: Sequence[Item], spread: Spread = map, step: Step = lambda _: None) -> np.ndarray:
        """See `TextEncoder.vectors`."""
        if self._runs is None:
            return _plain(self.model, items, "", self.batch_size, self.normalize)
        return super().vectors(items, spread, step)

    def _opened(self, texts: Sequence[str]) -> Engine | None:
        """Return the engine, chosen by these texts if it was not yet; None for sentence-transformers' own `encode`."""
        if not self.engine:
            self.choose(texts, len(texts), Progress(quiet=True))
        return self._runs

    def _open(self, workers: int, tokens: bool) -> Call:
        assert self._runs is not None
        try:
            return super()._open(workers, tokens)
        except LookupError:  # its graph gives no tokens
            return TorchEngine(self.model, "bf16" if self._runs.precision == "bf16" else "fp32").open(workers, tokens)

    def _finished(self, rows: Any) -> np.ndarray:
        """Return rows as `encode` gives them, to the last bit: torch scales them."""
        return float32(finished(torch.as_tensor(rows), self.truncate_dim, self.normalize))

    def elsewhere(self) -> Callable[[], LoadedEncoder]:
        """Return a function that opens the model with the chosen engine in another process, which keeps it.

        Raises:
            ClusterError: it has no folder or name from which it could be loaded there.
        """
        name = loadable(getattr(self.model, "loaded_from", None))
        choice = EngineChoice(self._runs.name, self._runs.precision) if self._runs else EngineChoice("torch")
        return partial(_reopened, name, self.prompt, choice, self.batch_size, self.normalize, *self._chosen_by)


@lru_cache(maxsize=1)
def _reopened(
    name: str,
    prompt: str,
    choice: EngineChoice,
    batch_size: int | None,
    normalize: bool,
    texts: tuple[str, ...],
    total: int,
) -> LoadedEncoder:
    found = LoadedEncoder(
        load(name, precision="fp32"), prompt, choice=choice, batch_size=batch_size, normalize=normalize
    )
    found.choose(texts, total, Progress(quiet=True))
    return found


def dimension(model: SentenceTransformer) -> int:
    """Return the length D of the model's vectors."""
    known = model.get_embedding_dimension()
    if known is not None:
        return int(known)
    with undisturbed(model):
        return int(np.asarray(model.encode(["a"], show_progress_bar=False)).shape[1])


def facts_of(model: SentenceTransformer) -> Facts:
    """Return the facts about a model that later jobs can use without loading it."""
    default = default_prompt(model) or ""
    prompts = {name: text for name, text in model.prompts.items() if text} | {"": default}
    try:
        tokenizer, tokens = fits(model, [], "".join(prompts.values())).hash, token_dimension(model)
    except UnfitModel:
        tokenizer, tokens = None, 0
    return Facts(
        fingerprint(model), dimension(model), model.max_seq_length, model.truncate_dim, prompts, tokenizer, tokens
    )


def autocast(model: SentenceTransformer, precision: Precision | None) -> AbstractContextManager[Any]:
    """Return the context for a precision: bfloat16 autocast for "bf16", otherwise nothing."""
    if precision not in (None, "fp32", "bf16"):
        raise LikewiseError(f"Unknown precision {precision!r}; known are 'fp32' and 'bf16'.")
    if precision == "bf16":
        return torch.autocast(model.device.type, dtype=torch.bfloat16)
    return nullcontext()


@contextmanager
def undisturbed(model: torch.nn.Module) -> Iterator[None]:
    """Put the model in evaluation mode in a `with` block, and restore its modes and the random state.

    Each module gets its own train or eval flag back (a run may keep some parts frozen in eval mode), and the
    random states of torch, its devices, numpy and Python are restored: an evaluation in the middle of a run
    must not change the run.
    """
    python_state, numpy_state = random.getstate(), np.random.get_state()
    devices = sorted({tensor.device.index or 0 for tensor in model.parameters() if tensor.device.type == "cuda"})
    try:
        with modes_restored(model), torch.random.fork_rng(devices=devices):
            model.eval()
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
