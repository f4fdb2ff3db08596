"""The model card of a trained model: what it is and how it was made, from its record."""

from __future__ import annotations

from typing import Any

CARD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [sentence-transformers, sentence-similarity, feature-extraction, likewise, {recipe}]
---
# A sentence encoder trained with likewise

Recipe `{recipe}` (preset `{preset}`) on {sentences:,} sentences without labels, from `{base}`,
seed {seed}, {steps} steps.
{score}

```python
{loading}
vectors = model.encode(["A man is playing a guitar.", "Somebody plays music."])
```

Every option, the versions, the hash of the corpus and all scores are in `likewise.json` and `log.jsonl`.
"""


PLAIN = """from sentence_transformers import SentenceTransformer
model = SentenceTransformer("path/to/this/folder")"""

OWN_MODULES = """import likewise
model = likewise.load("path/to/this/folder")
# or, where likewise is installed:
# SentenceTransformer("path/to/this/folder", trust_remote_code=True)"""


def model_card(record: dict[str, Any], own_modules: bool = False) -> str:
    """The text of README.md, from a finished run's record; `own_modules`: the model has modules of likewise."""
    best = record.get("best")
    score = (
        f"Checkpoint of step {best['step']}, selected by: {record['selection']}; {best['metric']} {best['score']:.2f}."
        if best
        else f"Checkpoint: {record['selection']}."
    )
    return CARD.format(
        recipe=record["recipe"],
        preset=record["preset"],
        sentences=record["corpus"]["sentences"],
        base=record["base"],
        seed=record["seed"],
        steps=record["steps"],
        score=score,
        loading=OWN_MODULES if own_modules else PLAIN,
    )
