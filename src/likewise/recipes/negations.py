"""Training rows with their negations: made once, and cached next to the prepared corpus."""

import hashlib
from typing import Any

import numpy as np

from likewise.corpus import PreparedCorpus
from likewise.recipes.recipe import Reading
from likewise.runs.progress import Progress


def with_candidates(dataset: Any, rows: np.ndarray, share: float, seed: int, max_words: int = 25) -> np.ndarray:
    """Return the rows with a share of them replaced by short sentences that may have an opposite, in order.

    In running text one sentence in eight has a word with an antonym behind 'be'; a loss on opposites wants more of
    them. Fewer are replaced where the corpus does not hold enough.

    Args:
        rows: (R,) those that the run would take.
        max_words: longer sentences are not looked at: they say more than the one thing that is negated.
    """
    from likewise.augment.negation.antonyms import may_have_opposites

    rng = np.random.default_rng([seed, 3])
    wanted = round(share * len(rows))
    found: list[int] = []
    short = np.flatnonzero(dataset.with_format("numpy")["words"][:] <= max_words)
    order = rng.permutation(short)
    while len(found) < wanted and len(order):
        some, order = order[:10_000], order[10_000:]
        sentences = dataset.select(some)["sentence"][:]
        found += [int(row) for row, text in zip(some, sentences, strict=True) if may_have_opposites(text)]
    chosen = np.array(found[:wanted], dtype=np.int64)
    others = rng.permutation(np.setdiff1d(rows, chosen))[: len(rows) - len(chosen)]
    return np.sort(np.concatenate([chosen, others]))


def told_apart(reading: Reading, sentences: list[str], negations: list[str]) -> list[bool]:
    """Return whether each sentence and its negation still differ once both are truncated.

    A 'not' behind the cut leaves two equal texts: 3% of the sentences of running text at 32 tokens, 1% at 40.
    """
    if not sentences:
        return []
    first, second = (
        reading.tokenizer(texts, truncation=True, max_length=reading.length)["input_ids"]
        for texts in (sentences, negations)
    )
    return [one != other for one, other in zip(first, second, strict=True)]


def with_negations(corpus: PreparedCorpus, dataset: Any, processes: int, progress: Progress) -> Any:
    """Return the dataset with the column `negation`: the sentence's negation, or None where there is none.

    The negations lie in the folder of the corpus, in a file for this choice of rows.
    """
    import datasets

    from likewise.augment.negation import RULES_VERSION, negate_corpus, read_negations

    # One string a row, some 100 bytes: smaller than the model's own memory up to millions of rows.
    sentences = dataset["sentence"][:]
    name = hashlib.blake2b("\n".join(sentences).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    path = corpus.path.parent / f"negations-{name}-rules{RULES_VERSION}.jsonl"
    if not path.exists():
        negate_corpus(sentences, path, processes=processes, quiet=progress.quiet)
    column = datasets.Dataset.from_dict(
        {"negation": [item.negation for item in read_negations(path)]},
        datasets.Features({"negation": datasets.Value("string")}),
    )
    return datasets.concatenate_datasets([dataset.flatten_indices(), column], axis=1)
