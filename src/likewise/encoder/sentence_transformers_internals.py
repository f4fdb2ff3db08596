"""The only use that likewise makes of private names of sentence-transformers, whose minor version is pinned for it."""

from collections.abc import Mapping
from typing import Any, TypeVar

from sentence_transformers import SentenceTransformer
from torch import nn

_Model = TypeVar("_Model", bound=SentenceTransformer)

PRIVATE = ("_inference", "_load_with_module_classes")
"""Attributes of SentenceTransformer that a test looks for."""


class OwnInference(SentenceTransformer):
    """A SentenceTransformer whose `encode` parses its arguments as usual and leaves the rest to `infer`."""

    def _inference(self, inputs: list[Any], **settings: Any) -> Any:
        return self.infer(inputs, **settings)

    def infer(self, inputs: list[Any], **settings: Any) -> Any:
        """Return the vectors (S, D) of texts, which `encode` then post-processes."""
        return super()._inference(inputs, **settings)


def load_with_classes(kind: type[_Model], name: str, classes: Mapping[str, type[nn.Module]], **settings: Any) -> _Model:
    """Load a model whose modules.json names classes that are already imported.

    The public way, trust_remote_code=True, would also run any code that is in the model's folder.
    """
    return kind._load_with_module_classes(name, classes, **settings)
