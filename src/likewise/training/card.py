"""The model card of a trained model, from its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentence_transformers import CrossEncoder

CARD = """---
library_name: sentence-transformers
pipeline_tag: {pipeline}
tags: [sentence-transformers, {tags}, likewise, {recipe}]
---
# A {what} trained with likewise

Recipe `{recipe}` (preset `{preset}`) on {sentences:,} {unit}, from `{base}`,
seed {seed}, {steps} steps.
{score}

```python
{use}
```

Every option, the versions, the hash of the corpus and all scores are in `likewise.json` and `log.jsonl`; `run.toml`
holds the arguments.
"""


PLAIN = """from sentence_transformers import SentenceTransformer
model = SentenceTransformer("path/to/this/folder")"""

OWN_MODULES = """import likewise
model = likewise.load("path/to/this/folder")
# or, where likewise is installed:
# SentenceTransformer("path/to/this/folder", trust_remote_code=True)"""

VECTORS = """
vectors = model.encode(["A man is playing a guitar.", "Somebody plays music."])"""

PAIRS = """from sentence_transformers import CrossEncoder
model = CrossEncoder("path/to/this/folder")
scores = model.predict([("A man is playing a guitar.", "Somebody plays music.")])"""


def model_card(record: Mapping[str, Any], model: Any) -> str:
    """Return the text of README.md for a model and the record of its training."""
    best = record.get("best")
    score = (
        f"Checkpoint of step {best['step']}, selected by: {record['selection']}; {best['metric']} {best['score']:.4g}."
        if best
        else f"Checkpoint: {record['selection']}."
    )
    if reason := record.get("kept_base"):
        score = f"This is the unchanged base: {reason}."
    pairs = isinstance(model, CrossEncoder)
    return CARD.format(
        what="cross-encoder" if pairs else "sentence encoder",
        pipeline="text-ranking" if pairs else "sentence-similarity",
        tags="cross-encoder" if pairs else "sentence-similarity, feature-extraction",
        recipe=record["recipe"],
        preset=record["preset"],
        sentences=record["corpus"]["sentences"],
        unit=record["corpus"].get("unit", "sentences without labels"),
        base=record["base"],
        seed=record["seed"],
        steps=record["steps"],
        score=score,
        use=usage(model),
    )


def usage(model: Any) -> str:
    """Return the code that loads and uses a model."""
    if isinstance(model, CrossEncoder):
        return PAIRS
    own_modules = any(type(module).__module__.startswith("likewise.") for module in model)
    return (OWN_MODULES if own_modules else PLAIN) + VECTORS
