"""The light encoder beside model2vec's distillation of the same base, on the seven STS tasks.

    python benchmarks/light.py

The rows `light` are `likewise train light` with the options named (see ../arms.py); steps, batches and lengths are the
preset's. model2vec has its defaults, and the best of its settings by STS-B dev.
"""

from __future__ import annotations

import argparse
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from arms import Arm, parser_of, run

WORDS = 20_000


def untrained(args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """The mean of words that training starts from."""
    from likewise.corpus import prepare
    from likewise.encoder.word_vectors import build_static_words
    from likewise.inference.load_model import Encoder

    words, _ = build_static_words(args.base, prepare(args.corpus).dataset["sentence"], WORDS)
    return {"model": Encoder(modules=[words])}


def corpus_words(args: argparse.Namespace, most: int) -> list[str]:
    """The most frequent words of the corpus."""
    from collections import Counter

    from likewise.corpus import prepare

    counts: Counter[str] = Counter()
    for sentence in prepare(args.corpus).dataset["sentence"]:
        counts.update(word for word in sentence.lower().split() if word.isalpha())
    return [word for word, _ in counts.most_common(most)]


def model2vec(*settings: dict[str, Any]) -> Any:
    """A function that distils the base by each of the settings and keeps the one that is best on STS-B dev."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        from model2vec.distill import distill, distillation

        import likewise
        from likewise.data.bundled import resolve_model

        # The same words are encoded once for all settings.
        plain, kept = distillation.create_embeddings, {}

        def remembered(tokenized: Any, **other: Any) -> Any:
            if len(tokenized) not in kept:
                kept[len(tokenized)] = plain(tokenized=tokenized, **other)
            return kept[len(tokenized)].copy()

        distillation.create_embeddings = remembered
        words = cache(lambda most: corpus_words(args, most) if most else None)
        tried = []
        for one in settings:
            options = {key: value for key, value in one.items() if key != "words"}
            model = distill(
                resolve_model(args.base), words(one.get("words", 0)), "cpu", quantize_to="float32", **options
            )
            encoder = Cosines(model)
            (dev,) = likewise.evaluate(encoder, ["sts-b-dev"], data=args.data).results
            tried.append((dev.score, one, encoder))
            print(f"{dev.score:.2f} {one}", flush=True)
        score, best, encoder = max(tried, key=lambda item: item[0])
        settled = [{"dev": dev, **one} for dev, one, _ in tried]
        return {"model": encoder, "dev": score, "settings": best, "tried": settled}

    return make


class Cosines:
    """model2vec's model as a scorer of pairs: the cosine of its vectors of the whole sentences."""

    name = "model2vec"
    settings: dict[str, str] = {"similarity": "cosine"}  # noqa: RUF012 - the protocol declares it so

    def __init__(self, model: Any) -> None:
        self.model = model

    def score_pairs(self, first: Any, second: Any, progress: Any = None) -> Any:
        """Return the cosines."""
        from likewise.evaluation.pairs import pair_cosines

        return pair_cosines(*(self.model.encode(list(texts), max_length=None) for texts in (first, second)))


GRID = [
    {"words": words, "pca_dims": size, "sif_coefficient": sif}
    for words, size, sif in product((0, WORDS), (256, "auto", None), (1e-4, 1e-3))
]
ARMS = {
    "model2vec, its defaults": Arm(model2vec({}), seeds=False),
    "model2vec, its best settings": Arm(model2vec(*GRID), seeds=False),
    "mean of words, untrained": Arm(untrained, seeds=False),
    "light, preset mean": Arm("light", {"hidden": 0}),
    "light": Arm("light"),
    "light, from GloVe of 50 numbers": Arm("light", {"vectors": "bundled:glove"}, seeds=False),
}


def parser() -> argparse.ArgumentParser:
    preset = {"steps": 0, "batch_size": 0, "max_length": 0, "eval_steps": 500}
    return parser_of(ARMS, __doc__, out=Path("runs/light-sts"), table="light", **preset)


if __name__ == "__main__":
    run(ARMS, parser().parse_args())
