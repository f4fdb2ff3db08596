"""A light encoder: the mean of word vectors and a small network, which learn a frozen encoder's sentence vectors.

Not from a paper as a whole. From GCLSR (Wang et al. 2023) it has a light encoder and a loss of cosines with a stop
gradient; a frozen encoder replaces the other view, as in tokenlearn. Its values: docs/systems/others.md.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.encoder.location import LoadError, check_loadable
from likewise.recipes import AdamWOptions, OptionError, Recipe, Run, TextCollator, check_encoder, option
from likewise.runs.progress import orderly_stop
from likewise.runs.whole_files import Parts, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from sentence_transformers import SentenceTransformer
    from torch import Tensor, nn

    from likewise.encoder.modules import Features
    from likewise.inference.tokens import Step
    from likewise.losses import EncoderLoss

_AT_A_TIME = 10_000  # sentences whose vectors are in memory
_BLOCK = 8192  # sentences that are encoded and saved together; another number changes the last bits of their vectors
_VECTORS = "vectors.npy"


class LightOptions(AdamWOptions):
    """The options of the light encoder; the presets were chosen on STS-B dev."""

    learning_rate: float = option(1e-3, "Peak learning rate of the network.")
    word_rate: float = option(1e-3, "Peak learning rate of the word vectors.", gt=0)
    max_length: int = option(
        96,
        "Maximum number of tokens of a sentence that the base encodes, which is truncated to "
        "it; 0 uses the base's limit.",
    )
    words: int = option(
        20_000, "Number of the corpus's most frequent words that get their own vector, in addition to sub-words.", ge=0
    )
    vectors: str = option(
        "", "Path to word vectors to start from, or bundled:glove; if empty, the base encodes each word."
    )
    hidden: int = option(
        2048, "Width of the network's hidden layer; 0 uses no network, only a mean of word vectors.", ge=0
    )

    def _check(self) -> None:
        super()._check()
        if self.vectors and not self.hidden:
            raise OptionError("vectors=... requires the network: omit hidden")

    def inputs(self) -> Record:
        """Return the file of the initial word vectors."""
        return {"vectors file": self.vectors} if self.vectors else {}


def with_teacher(run: Run) -> Run:
    """Return a run with the column 'teacher': the base's vector of each sentence, minus their mean, as bytes.

    The vectors are cached for every seed and every later run. An interrupted run is resumed, and the engine runs in
    bfloat16 or int8 if these are fast and close enough (a cosine of 0.998 to the exact vector, compared with 0.88 for a
    student). `teacher` contains E float16 numbers (`numpy.frombuffer`).
    """
    import numpy as np

    vectors = _vectors(run)
    mean = vectors.mean(axis=0, dtype=np.float64)
    starts = range(0, len(vectors), _AT_A_TIME)
    pieces = ((vectors[start : start + _AT_A_TIME] - mean).astype(np.float16) for start in starts)
    return run.but(rows=run.rows.add_column("teacher", [row.tobytes() for rows in pieces for row in rows]))


def build_network(base: str, options: LightOptions, sentences: Sequence[str]) -> SentenceTransformer:
    """Return a mean of word vectors and, if the options ask for it, a network.

    Its vectors have length 1 if the base's have, and its similarity is the base's.
    """
    from sentence_transformers.sentence_transformer.modules import Normalize

    from likewise.encoder.settings import ModelSettings
    from likewise.encoder.word_vectors import build_static_words

    words, dimension = build_static_words(base, sentences, options.words, options.vectors)
    modules: list[nn.Module] = [words]
    if options.hidden:
        modules += _network(words.embedding_dim, options.hidden, dimension)
    settings = dataclasses.replace(
        ModelSettings.named(base), truncate_dim=None
    )  # its vectors are as long as the base's
    return settings.carried_by([*modules, *([Normalize()] if settings.normalizes else [])])


def words_and_vectors(rows: list[Record], preprocess: Callable[[list[str]], dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the words of a batch and the vectors that they learn."""
    import numpy as np
    import torch

    words = preprocess([row["sentence"] for row in rows])
    vectors = np.frombuffer(b"".join(row["teacher"] for row in rows), dtype=np.float16).astype(np.float32)
    batch = {f"sentence_{name}": value for name, value in words.items()}
    return batch | {"teacher_sentence_embedding": torch.from_numpy(vectors.reshape(len(rows), -1))}


def vectors_loss(loss: EncoderLoss[LightOptions], own: Features, targets: Features) -> Tensor:
    """Return the mean of 1 - cos with vectors that were encoded before training.

    Use it to distill an encoder into word vectors and a small network.

    Args:
        loss: The encoder and the options.
        own: Features of the sentences.
        targets: {'sentence_embedding': (B, E)}, the vectors of the base.

    See also:
        `likewise.searching.query.exclusion_recipe.composed_loss`: the same distance from vectors of a teacher.
        `likewise.losses.functional.cosine_distance`: the equation.

    >>> import torch
    >>> from types import SimpleNamespace
    >>> loss = SimpleNamespace(vectors=lambda tokens: tokens["vectors"])
    >>> own, targets = {"vectors": torch.tensor([[1.0, 0.0]])}, {"sentence_embedding": torch.tensor([[3.0, 3.0]])}
    >>> round(float(vectors_loss(loss, own, targets)), 3)
    0.293
    """
    from likewise.losses import functional

    return functional.cosine_distance(loss.vectors(own), targets["sentence_embedding"])


def build_optimizer(encoder: SentenceTransformer, options: LightOptions, steps: int) -> tuple[Any, Any]:
    """Return Adam with a separate rate for the word vectors, and its schedule."""
    from transformers import get_scheduler

    from likewise.recipes.optimizers import RowAdam
    from likewise.runs import processes

    words: Any = encoder[0]
    # A batch contains a few thousand of the words; neither clipping nor averaging over processes takes sparse
    # gradients.
    words.embedding.sparse = not options.max_grad_norm and processes.count() == 1
    network = [parameter for module in list(encoder)[1:] for parameter in module.parameters()]
    groups: list[Record] = [
        {"params": list(words.parameters()), "lr": options.word_rate, "rows": True},
        {"params": network},
    ]
    optimizer = RowAdam([group for group in groups if group["params"]], lr=options.learning_rate)
    return optimizer, get_scheduler(options.schedule, optimizer, int(options.warmup_ratio * steps), steps)


def _check_base(base: str, options: LightOptions) -> None:
    check_encoder(base, "light", prompts="its word vectors cannot store them; use a base without prompts")
    if (modules := check_loadable(base).modules) and not modules[0].endswith("Transformer"):
        raise LoadError(
            f"--base {base} begins with {modules[0].rpartition('.')[2]}: give an encoder with a transformer"
        )
    if options.vectors:
        from likewise.encoder.vector_files import check_word_vectors

        check_word_vectors(options.vectors)


def _vectors(run: Run) -> np.ndarray:
    """Return the base's vectors (R, E) of the rows, from the cache."""
    import numpy as np

    from likewise.inference.engines.graph import fingerprint
    from likewise.inference.load_model import load

    model = load(run.base, precision="auto")
    if length := run.options.max_length:
        model.max_seq_length = min(length, model.max_seq_length or length)

    def make(folder: Path) -> None:
        run.progress.tell(f"target vectors by {run.base} are encoded and cached")
        _write_vectors(run, model, folder)

    key = [fingerprint(model), model.max_seq_length]
    return np.load(run.prepared(key, make) / _VECTORS, mmap_mode="r")


def _write_vectors(run: Run, model: SentenceTransformer, folder: Path) -> None:
    """Write the vectors (R, E) of the rows into a folder, block by block, so that a stopped run resumes after one."""
    import numpy as np

    from likewise.encoder.modules import undisturbed
    from likewise.inference.encoded_blocks import TextBlock, encode_blocks, opened_encoder
    from likewise.inference.load_model import default_prompt
    from likewise.inference.policy import settled, text_encoder
    from likewise.inference.tokens import TextSide

    parts, total = Parts(folder / "blocks"), len(run.rows)
    side, first = TextSide(default_prompt(model)), run.rows[:_BLOCK]["sentence"]

    def write(start: int, step: Step) -> Callable[[], tuple[Path, int]]:
        vectors, file = encoder(run.rows[start : start + _BLOCK]["sentence"], step), folder / "block.npy"
        np.save(file, vectors)
        return lambda: (file, len(vectors))

    with undisturbed(model), orderly_stop(run.progress) as stop:
        opens = partial(text_encoder, model, settled(model), first, total, side=side, normalize=False)
        encoder = opened_encoder(partial(opens, progress=run.progress), parts)
        blocks = [TextBlock(f"{start:09d}.npy", partial(write, start), total) for start in range(0, total, _BLOCK)]
        encode_blocks(blocks, parts, encoder.engine, stop)
    arrays = [np.load(parts.path(block.name), mmap_mode="r") for block in blocks]
    table = np.lib.format.open_memmap(folder / _VECTORS, "w+", np.float32, (total, arrays[0].shape[1]))
    np.concatenate(arrays, out=table)
    table.flush()
    shutil.rmtree(parts.folder)


def _network(words: int, hidden: int, dimension: int) -> list[nn.Module]:
    """Return layer norm, a hidden layer and an output layer (W to D), stock modules.

    As gelu(x) - gelu(-x) = x, 2 D hidden units can hand the vector through, so that training starts at the mean of
    words and not at random where W is D.
    """
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense, LayerNorm

    inner = Dense(words, hidden, activation_function=torch.nn.GELU())
    outer = Dense(hidden, dimension, activation_function=torch.nn.Identity())
    if words == dimension:
        if hidden < 2 * dimension:
            raise OptionError(f"training starts with 2 x {dimension} hidden units, but hidden is {hidden}: raise it")
        identity = torch.eye(dimension)
        with torch.no_grad():
            inner.linear.weight[: 2 * dimension] = torch.cat([identity, -identity])
            outer.linear.weight.zero_()[:, : 2 * dimension] = torch.cat([identity, -identity], dim=1)
            inner.linear.bias.zero_()
            outer.linear.bias.zero_()
    return [LayerNorm(words), inner, outer]


CPU = LightOptions(batch_size=256, epochs=2, warmup_ratio=0.02, max_grad_norm=0.0, length_batches=False, eval_steps=500)
LIGHT: Recipe = Recipe(
    name="light",
    summary="A mean of word vectors and a small network learn the vectors of an encoder: fast, without a transformer.",
    source="this library, after GCLSR and tokenlearn; docs/systems/others.md",
    presets={"cpu": CPU, "mean": CPU.updated(hidden=0)},
    preset_notes={
        "cpu": "A mean of word vectors and a network of 2,048 hidden units; two passes over the corpus.",
        "mean": "The mean of word vectors alone, which model2vec reads too.",
    },
    loss=vectors_loss,
    build_encoder=build_network,
    build_collator=lambda encoder, *_: TextCollator(partial(words_and_vectors, preprocess=encoder[0].preprocess)),
    stages=(with_teacher, Run.built_from_sentences),
    check_base=_check_base,
    build_optimizer=build_optimizer,
)
