"""The card of a model, README.md in its folder."""

from typing import Any

from sentence_transformers import CrossEncoder

_CARD = """---
library_name: sentence-transformers
pipeline_tag: {pipeline}
tags: [sentence-transformers, {tags}, likewise, {name}]
---
# {title} with likewise

{about}

```python
{use}
```

{files}
"""

_PLAIN = """from sentence_transformers import SentenceTransformer
model = SentenceTransformer("path/to/this/folder")"""

_OWN_MODULES = """import likewise
model = likewise.load("path/to/this/folder")
# or, where likewise is installed:
# SentenceTransformer("path/to/this/folder", trust_remote_code=True)"""

_VECTORS = """
vectors = model.encode(["A man is playing a guitar.", "Somebody plays music."])"""

_PAIRS = """from sentence_transformers import CrossEncoder
model = CrossEncoder("path/to/this/folder")
scores = model.predict([("A man is playing a guitar.", "Somebody plays music.")])"""


def model_card(model: Any, name: str, title: str, about: str, files: str) -> str:
    """Return the text of a card: what a model is, and how it is loaded and used.

    Args:
        name: of the method, as a tag.
        title: what was made, as "A baseline made".
        about: how it was made.
        files: what else is in the folder.
    """
    if isinstance(model, CrossEncoder):
        pipeline, tags, use = "text-ranking", "cross-encoder", _PAIRS
    else:
        own_modules = any(type(module).__module__.startswith("likewise.") for module in model)
        pipeline, tags = "sentence-similarity", "sentence-similarity, feature-extraction"
        use = (_OWN_MODULES if own_modules else _PLAIN) + _VECTORS
    return _CARD.format(pipeline=pipeline, tags=tags, name=name, title=title, about=about, use=use, files=files)
