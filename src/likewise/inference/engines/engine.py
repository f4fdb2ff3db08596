"""The engines' names, errors and interface, and torch as the first of them. Nothing here imports torch before it runs.

Letters of the shapes: B sentences of a batch, T tokens, D embedding, E a token's vector.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from likewise.errors import LikewiseError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

    from likewise.inference.tokens import TextSide, WholeText

EngineName = Literal["auto", "torch", "openvino", "onnx"]
EnginePrecision = Literal["close", "auto", "fp32", "bf16", "int8"]
EngineVariant = tuple[EngineName, EnginePrecision]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
PRECISIONS: tuple[EnginePrecision, ...] = get_args(EnginePrecision)

INPUTS = ("input_ids", "attention_mask")
OUTPUT = "sentence_embedding"
TOKENS = "token_embeddings"
Vectors: TypeAlias = "np.ndarray | Tensor"
"""Vectors as an engine gives them: on an accelerator, or of a lower precision, they are a tensor."""
Call: TypeAlias = "Callable[[np.ndarray, np.ndarray], tuple[Vectors, Vectors | None]]"
"""Ids and mask, (B, T) int64 each, to the vectors (B, D), and on request the token vectors (B, T, E)."""

ENDLESS = 1 << 30
"""The number of texts of a service, which come for as long as it runs."""

DEFAULT_BATCH = 32
"""The batch size of SentenceTransformer.encode where none is given."""
_STATIC_BATCH = 1024
CPU_BUDGET = 640
"""Cells of a batch that one core runs: 512 to 768 were the fastest here, 2048 a fifth slower (benchmarks/encode.py)."""
DEVICE_BUDGET = 32_768
"""Cells of a batch on an accelerator, where small batches leave it idle."""


class EngineError(LikewiseError):
    """Raised if an engine or precision is unknown or unavailable; the message names the cure."""


class CannotExport(EngineError):  # noqa: N818 - a reason to fall back, not a fault of the user
    """Raised if an engine does not support a model; the message says why. Callers fall back to torch."""


class QuantisationRefused(EngineError):  # noqa: N818 - said of the vectors, which are not good enough
    """Raised if the vectors of a lower precision differ too much from float32; the message has the figures."""


@dataclass(frozen=True)
class EngineChoice:
    """The requested engine and precision; 'auto' and 'close' are resolved at the first call."""

    engine: EngineName = "auto"
    precision: EnginePrecision = "fp32"

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise EngineError(f"Unknown engine {self.engine!r}; choose one of {', '.join(ENGINES)}.")
        if self.precision not in PRECISIONS:
            raise EngineError(f"Unknown precision {self.precision!r}; choose one of {', '.join(PRECISIONS)}.")
        if (self.engine, self.precision) == ("torch", "int8"):
            raise EngineError("torch has no int8 here; use --engine openvino or onnx.")
        if (self.engine, self.precision) == ("onnx", "bf16"):
            raise EngineError("ONNX Runtime has no bf16 on a CPU; use --engine openvino or torch.")


class Engine(ABC):
    """A model ready to run."""

    name: EngineName
    precision: EnginePrecision
    budget: int = CPU_BUDGET
    at_least: int = 1
    """Tokens that a batch must have; shorter ones are padded to it."""
    makes_batches: bool = False
    """True if it takes all texts at once and makes batches of them itself."""
    few_on_all_cores: bool = True
    """True if batches that are fewer than two a core run one after the other, each on all cores."""

    @property
    def pair(self) -> EngineVariant:
        """Its name and its precision."""
        return self.name, self.precision

    @property
    def gives_tokens(self) -> bool:
        """True if it gives the vectors of tokens."""
        return True

    def filled_to(self, texts: int, longest: int) -> int:
        """Return the number of tokens to which a batch of `texts` texts is padded; the longest text has `longest`."""
        return max(self.at_least, longest)

    @abstractmethod
    def open(self, workers: int, tokens: bool = False) -> Call:
        """Return the function that runs one batch.

        Args:
            workers: Number of threads that call it at the same time; each call then uses one core. With 1, a call uses
                all of torch's threads.
            tokens: Whether it also returns token vectors; only for an engine that `gives_tokens`.
        """

    def __str__(self) -> str:
        return f"{self.name} {self.precision}"


class TorchEngine(Engine):
    """The model's own modules under torch, on any device; bf16 is autocast.

    Args:
        precision: Precision of the products.
        whole: Whether to compute everything as in sentence-transformers, for bit-identical vectors, instead of the last
            layer for the pooled token only.
        traced: Whether to run bfloat16 on a CPU as one graph, which takes half a second to build.
    """

    name = "torch"

    def __init__(
        self,
        model: SentenceTransformer,
        precision: Literal["fp32", "bf16"] = "fp32",
        *,
        whole: bool = False,
        traced: bool = False,
    ) -> None:
        on_cpu = model.device.type == "cpu"
        self.model = model
        if precision == "bf16" and on_cpu:
            import torch

            from likewise.encoder.modules import with_linear_in

            self.model = with_linear_in(model, torch.bfloat16)
        self.precision, self.whole = precision, whole
        self._dtype = next((weight.dtype for weight in model.parameters() if weight.is_floating_point()), None)
        self.budget = CPU_BUDGET if on_cpu else DEVICE_BUDGET
        self._traced = traced and precision == "bf16" and on_cpu
        self._graphs: dict[bool, Any] = {}
        if self._traced:
            from likewise.inference.engines.graph import least_tokens

            self.at_least = least_tokens(model)

    def open(self, workers: int, tokens: bool = False) -> Call:
        """Return the function that runs one batch, as `Engine.open`; the caller sets the threads of torch."""
        import torch

        from likewise.encoder.attention import only_pooled_token
        from likewise.inference.engines.lean_bert import lean_bert

        model, device, bf16 = self.model, self.model.device, self.precision == "bf16"
        whole = tokens or self.whole
        if self._traced and (graph := self._graph(tokens)) is not None:
            return partial(_run, graph, tokens)

        if not bf16 and (lean := lean_bert(model, whole=whole)) is not None:
            return partial(_run_lean, lean.padded if whole else lean.packed, tokens)

        def call(ids: np.ndarray, mask: np.ndarray) -> tuple[Tensor, Tensor | None]:
            # These contexts are of the calling thread only, so they are entered in each call.
            cast = torch.autocast(device.type, dtype=torch.bfloat16) if bf16 else nullcontext()
            with torch.inference_mode(), cast, nullcontext() if whole else only_pooled_token(model):
                parts = (torch.from_numpy(part).to(device, non_blocking=True) for part in (ids, mask))
                outputs = model(dict(zip(INPUTS, parts, strict=True)))
                # Under autocast a last linear layer gives bfloat16, and callers expect the type of the weights.
                vectors = outputs[OUTPUT].to(self._dtype) if bf16 else outputs[OUTPUT]
                return vectors, outputs[TOKENS] if tokens else None

        return call

    def _graph(self, tokens: bool) -> Any:
        """Return the model as one graph of torch; None if it cannot be traced.

        It makes the same products, without the calls of a hundred modules, which take half the time of a sentence.
        """
        import torch

        from likewise.inference.engines.graph import example, tracing

        if tokens not in self._graphs:
            self._graphs[tokens] = None
            cast = torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False)
            with suppress(CannotExport), cast, tracing(self.model, tokens or None) as graph:
                if not tokens or graph.tokens:
                    traced = torch.jit.trace(graph, example(self.model), check_trace=False)
                    self._graphs[tokens] = torch.jit.freeze(traced)
        return self._graphs[tokens]


def _run(graph: Any, tokens: bool, ids: np.ndarray, mask: np.ndarray) -> tuple[Tensor, Tensor | None]:
    import torch

    with torch.inference_mode():
        made = graph(torch.from_numpy(ids), torch.from_numpy(mask))
    vectors, *of_tokens = made if isinstance(made, tuple) else (made,)
    return vectors.float(), of_tokens[0] if tokens else None


def _run_lean(
    run: Callable[[np.ndarray, np.ndarray], dict[str, Tensor]], tokens: bool, ids: np.ndarray, mask: np.ndarray
) -> tuple[Tensor, Tensor | None]:
    import torch

    with torch.inference_mode():
        outputs = run(ids, mask)
    return outputs[OUTPUT], outputs[TOKENS] if tokens else None


class OwnEncode(Engine):
    """sentence-transformers' own `encode`, for models that do not take token ids alone; it takes `WholeText`s.

    Args:
        batch_size: Maximum number of texts in a batch; None for its default, or 1,024 for a mean of word vectors, which
            needs no padding.
    """

    name, precision = "torch", "fp32"
    makes_batches = True

    def __init__(self, model: SentenceTransformer, batch_size: int | None = None) -> None:
        self.model = model
        self.batch_size = batch_size or (_STATIC_BATCH if is_static(model) else DEFAULT_BATCH)

    @property
    def gives_tokens(self) -> bool:
        """False: `encode` gives the vectors of texts alone."""
        return False

    def open(self, workers: int, tokens: bool = False) -> Call:
        """Return the function that runs one batch, as `Engine.open`."""
        import torch

        def call(items: np.ndarray, mask: np.ndarray) -> tuple[Tensor, None]:
            sides: dict[TextSide, list[int]] = {}
            texts: list[WholeText] = list(items)
            for place, item in enumerate(texts):
                sides.setdefault(item.side, []).append(place)
            parts = [self._encoded([texts[place].text for place in places], side) for side, places in sides.items()]
            order = torch.tensor([place for places in sides.values() for place in places])
            return torch.cat(parts)[order.argsort()], None

        return call

    def _encoded(self, texts: list[str], side: TextSide) -> Tensor:
        import torch

        from likewise.corpus.clean_text import without_surrogates
        from likewise.inference.engines.long_texts import is_long, vector_of_long

        model = self.model
        default = model.prompts.get(model.default_prompt_name or "", "")
        settings: dict[str, str] = {} if side.prompt == default else {"prompt": side.prompt}
        settings |= {} if side.task is None or has_own_encode(model) else {"task": side.task}
        texts = [without_surrogates(text) for text in texts]
        if is_static(model) and any(is_long(model, text) for text in texts):
            each = (
                [vector_of_long(model, side.prompt + text)] if is_long(model, text) else self._encoded([text], side)
                for text in texts
            )
            return torch.stack([vector for vectors in each for vector in vectors])
        vectors = model.encode(  # type: ignore[call-overload]
            texts, convert_to_tensor=True, batch_size=self.batch_size, show_progress_bar=False, **settings
        )
        return torch.as_tensor(vectors)

    def __str__(self) -> str:
        return "sentence-transformers"


def has_own_encode(model: SentenceTransformer) -> bool:
    """Return whether a model has an `encode` that is not sentence-transformers'."""
    from sentence_transformers import SentenceTransformer

    return "encode" in vars(model) or type(model).encode is not SentenceTransformer.encode


def is_static(model: SentenceTransformer) -> bool:
    """Return whether a model is a mean of word vectors."""
    return type(model[0]).__name__ == "StaticEmbedding"
