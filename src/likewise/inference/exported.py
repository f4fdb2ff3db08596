"""Encoders that run by an export alone, and the facts about a model that they need. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from likewise.inference.engines.onnx_engine import OnnxEngine
from likewise.inference.engines.store import Store
from likewise.inference.text_encoder import TextEncoder
from likewise.inference.tokens import Tokens

Role = Literal["query", "document"]
_PROMPTS: dict[Role, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}


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
        tokens: the length of the vectors that it has for the tokens of a text; 0 if it has none.
    """

    fingerprint: str
    dimension: int
    longest: int | None
    truncate_dim: int | None
    prompts: Mapping[str, str]
    tokenizer: str | None
    tokens: int

    def prompt(self, role: Role | None = None) -> str:
        """Return the prompt that the model puts before a query, a document, or any text; "" if it has none."""
        named = (self.prompts.get(name) for name in _PROMPTS[role]) if role else iter(())
        return next(filter(None, named), None) or self.prompts.get("", "")


class ExportedEncoder(TextEncoder):
    """The vectors of texts, of length 1, by ONNX Runtime from a checked export in the cache.

    Args:
        fingerprint: of the model.
        tokenizer: a hash of the model's tokenizer (`Tokens.hash`).
        truncate_dim: the length that vectors are cut to; None keeps them whole.
        prompt: the text before each text.

    Raises:
        LookupError: there is none with this tokenizer, its vectors are not known to be torch's, or ONNX Runtime is not
            installed.
    """

    engine = "onnx fp32"
    few_on_all_cores = False  # the export would be opened a second time, which takes longer than a query

    def __init__(self, fingerprint: str, tokenizer: str | None, truncate_dim: int | None, prompt: str = "") -> None:
        store = Store(fingerprint)
        kept = store.tokenizer(tokenizer) if tokenizer and store.same("onnx") else None
        folder = store.folder(("onnx", "fp32"))
        if kept is None or folder is None:
            raise LookupError(fingerprint)
        path, known = kept
        try:
            runs = OnnxEngine(folder, "fp32", known["at_least"])
            runs.open(2)  # on one core
            self.gives_tokens = runs.gives_tokens
        except ImportError as error:
            raise LookupError(fingerprint) from error
        from tokenizers import Tokenizer

        own = Tokenizer.from_file(str(path))
        own.encode_special_tokens = known["special"]
        super().__init__(Tokens(own, known["pad"], known["left"]), runs, prompt=prompt, truncate_dim=truncate_dim)
