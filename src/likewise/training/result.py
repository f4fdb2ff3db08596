"""The result of a finished training, and its model card."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from sentence_transformers import CrossEncoder

from likewise.inference.loading import SavedModel


class TrainingResult(SavedModel):
    """The result of a finished training."""

    @property
    def before(self) -> dict[str, float]:
        """The scores of the unchanged base by metric, {} if nothing selects the checkpoint.

        Where the base is not a sentence encoder, those of the untrained encoder.
        """
        return self.record["before"]

    @property
    def best(self) -> dict[str, Any] | None:
        """The best checkpoint: 'metric', 'score', 'step', 'noise' and 'improved'.

        'improved' is whether it is better than the base by more than the noise of the change (None where the noise is
        not known). None where the checkpoint is simply the last.
        """
        return self.record["best"]

    @property
    def no_gain(self) -> str:
        """A sentence on a training that did not raise the selection's measure by more than its noise, or ''."""
        return no_gain(self.record)

    @property
    def steps(self) -> int:
        """The number of updates done."""
        return self.record["steps"]

    @cached_property
    def model(self) -> Any:
        """The trained model, loaded on first access."""
        return open_result(self.path, self.record["kind"] == "cross-encoder")


def no_gain(record: Mapping[str, Any]) -> str:
    """Return `TrainingResult.no_gain` of a record."""
    best = record["best"]
    if not best or best["improved"]:
        return ""
    metric, noise = best["metric"], best.get("noise")
    within = "" if noise is None else f", and a change of {noise:.2g} may be chance"
    return f"training brought {metric} from {record['before'][metric]:.4g} to {best['score']:.4g}{within}"


def open_result(path: Path, cross_encoder: bool) -> Any:
    """Load the model in a folder."""
    if cross_encoder:
        return CrossEncoder(str(path))
    from likewise.inference.loading import load

    return load(path)


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
