"""An exported encoder by itself, without torch: for a single query its import takes longer than all else.

Letters of the shapes: S texts, T tokens, D embedding.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.inference.engines.store import MAX_DIFFERENCE, TOKENIZER, Store, release

_PAIR = ("onnx", "fp32")
_BATCH = 16


class ExportedEncoder:
    """The vectors of texts, of length 1, by ONNX Runtime from a checked export in the cache.

    Args:
        tokenizer: the tokenizer of the model as JSON, hashed (`Tokens.hash`).

    Raises:
        LookupError: there is none with this tokenizer, or its vectors are not known to be torch's.
    """

    def __init__(self, store: Store, tokenizer: str, truncate_dim: int | None) -> None:
        about = store.about(_PAIR) or {}
        facts: dict[str, Any] = about.get("tokens") or {}
        difference = about.get("fidelity", {}).get("difference", 1.0)
        if (
            facts.get("hash") != tokenizer
            or facts["at_least"] > 2
            or about.get("release") != release("onnx")
            or difference > MAX_DIFFERENCE
        ):
            raise LookupError(store.fingerprint)
        import onnxruntime
        from tokenizers import Tokenizer

        folder = store.folder(_PAIR)
        self._tokens = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokens.encode_special_tokens = facts["special"]
        self._tokens.enable_padding(pad_id=facts["pad"], direction="left" if facts["left"] else "right")
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), settings, ["CPUExecutionProvider"])
        self._truncate_dim = truncate_dim

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (S, D), float32, of S texts, 1 or more."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        rows: dict[int, np.ndarray] = {}
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            tokens = self._tokens.encode_batch([texts[place] for place in batch])
            given = {
                "input_ids": np.array([one.ids for one in tokens], dtype=np.int64),  # (B, T)
                "attention_mask": np.array([one.attention_mask for one in tokens], dtype=np.int64),
            }
            rows |= zip(batch, self._session.run(None, given)[0], strict=True)
        found: np.ndarray = np.stack([rows[place] for place in range(len(texts))])[:, : self._truncate_dim]
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
