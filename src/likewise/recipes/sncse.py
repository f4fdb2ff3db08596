"""SNCSE: the hidden state at the mask of a prompt, and the sentence's own negation as a soft negative.

Wang et al. 2022, "SNCSE: Contrastive Learning for Unsupervised Sentence Embedding with Soft Negative Samples".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from likewise.errors import counted
from likewise.recipes import (
    TEMPLATE,
    ContrastiveOptions,
    FinalStop,
    OptionError,
    OtherTemplate,
    Reading,
    Recipe,
    Run,
    Template,
    TextCollator,
    check_templates,
    option,
)
from likewise.recipes.mask_distillation import MASK_DISTILLATION

if TYPE_CHECKING:
    import numpy as np
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from torch import Tensor

    from likewise.losses import EncoderLoss


class SNCSEOptions(ContrastiveOptions):
    """The options of SNCSE; the defaults are the paper's for BERT-base (section 3.2)."""

    template: Template = TEMPLATE
    other_template: OtherTemplate = ""
    final_stop: FinalStop = False
    head: bool = option(True, "Whether to train with an MLP head on top, which is not saved with the model.")
    dropout: float = option(
        0.1, "Dropout rate of the encoder in training, which is all that distinguishes the two views.", gt=0, lt=1
    )
    negation: Literal["soft-negative", "positive", "hard-negative", "none"] = option(
        "soft-negative", "Role of the negation of a sentence in the loss."
    )
    alpha: float = option(
        0.1, "Lower margin, the minimum difference between the cosines of the positive and the negation.", ge=0
    )
    beta: float = option(0.3, "Upper margin, the maximum of this difference; 2 sets no bound.")
    weight: float = option(1e-3, "Weight lambda of the bidirectional margin loss.", ge=0)
    opposite_weight: float = option(
        0.0, "Weight of the loss that pulls 'not A' and 'B' together if A and B are antonyms.", ge=0
    )
    opposite_share: float = option(
        0.25, "Fraction of the sentences that are drawn because one of their words has an antonym.", ge=0, le=1
    )
    keep_weight: float = option(
        0.0, "Weight of the distance between the vector of a sentence and its vector by the base.", ge=0
    )
    distil_mask: Literal["auto", "always", "never"] = option(
        "never",
        "Whether to distil the mask first; auto does so only if the mask scores significantly below the base's own "
        "vector.",
    )
    distil_steps: int = option(
        0,
        "Number of updates of this distillation; 0 takes five times max_steps, but at most 100 (also if max_steps is "
        "0).",
        ge=0,
    )
    processes: int = option(1, "Number of processes that parse the sentences for their negation.", gt=0, exclude=True)

    def _check(self) -> None:
        super()._check()
        check_templates(self.template, self.other_template)
        if self.opposite_weight and self.negation == "none":
            raise OptionError("opposite_weight requires negations: set negation to a value other than none")
        if self.keep_weight and self.head:
            raise OptionError("keep_weight compares the vectors of the saved encoder: set head to false (--no-head)")
        if self.alpha > self.beta:
            raise OptionError(f"alpha {self.alpha} is larger than beta {self.beta}: lower alpha, or raise beta")


def negation_views(
    rows: list[dict[str, Any]], reading: Reading, with_opposites: bool, in_two_prompts: bool = False
) -> dict[str, Any]:
    """Return B sentences and K negations, and the rows of the negations.

    With `with_opposites` these are followed by the Q opposites of negations, and the Q negations of these.

    Args:
        reading: Reading of the negations.
        in_two_prompts: Whether the same texts are the column 'other', after a column of the B sentences alone.

    Returns:
        {'sentence': B + K + 2Q texts, 'sentence_rows': (K,) of the sentences, 'sentence_pairs': (Q,) of the negations}.
    """
    import torch

    from likewise.augment.negation import opposites

    negated = [i for i, row in enumerate(rows) if _is_distinct(row, reading)]
    negations = [rows[i]["negation"] for i in negated]
    texts = [*(row["sentence"] for row in rows), *negations]
    name = "other" if in_two_prompts else "sentence"
    columns: dict[str, Any] = {"sentence": texts[: len(rows)]} if in_two_prompts else {}
    columns |= {name: texts, f"{name}_rows": torch.tensor(negated, dtype=torch.long)}
    if with_opposites:
        both = [opposites(rows[i]["sentence"], negation) for i, negation in zip(negated, negations, strict=True)]
        pairs = [place for place, two in enumerate(both) if two]
        texts += [two[which] for which in (0, 1) for two in both if two]
        columns[f"{name}_pairs"] = torch.tensor(pairs, dtype=torch.long)
    return columns


def with_candidates(dataset: Dataset, rows: np.ndarray, share: float, seed: int, max_words: int = 25) -> np.ndarray:
    """Return the rows in order, with a share of them replaced by short sentences with a possible antonym.

    In running text, one sentence in eight has a word with an antonym after 'be', and a loss on opposites needs more.
    Fewer rows are replaced if the corpus does not contain enough.

    Args:
        rows: (R,) rows of the run.
        max_words: Maximum number of words; longer sentences contain more than the negated statement.
    """
    import numpy as np

    from likewise.augment.negation import may_have_opposites

    rng = np.random.default_rng([seed, 3])
    count = round(share * len(rows))
    candidates: list[int] = []
    short = np.flatnonzero(dataset.with_format("numpy")["words"][:] <= max_words)
    order = rng.permutation(short)
    while len(candidates) < count and len(order):
        some, order = order[:10_000], order[10_000:]
        sentences = dataset.select(some)["sentence"][:]
        candidates += [int(row) for row, text in zip(some, sentences, strict=True) if may_have_opposites(text)]
    chosen = np.array(candidates[:count], dtype=np.int64)
    others = rng.permutation(np.setdiff1d(rows, chosen))[: len(rows) - len(chosen)]
    return np.sort(np.concatenate([chosen, others]))


def with_negations(run: Run) -> Run:
    """Return a run with the column 'negation': the negation of the sentence, or None.

    The negations are cached for this selection of rows.
    """
    options = run.options
    if options.negation == "none":
        return run
    import datasets

    from likewise.augment.negation import cached_negations

    # A sentence takes milliseconds to parse: a short run on a large corpus should not wait for all of it.
    needed = options.batch_size * options.accumulation * options.max_steps
    chosen = run.sample(needed)
    if options.opposite_weight:
        chosen = with_candidates(run.rows, chosen, options.opposite_share, run.seed)
    run = run.but(rows=run.rows.select(chosen))

    texts = cached_negations(run.sentences, run.prepared, processes=options.processes, progress=run.progress)
    column = datasets.Dataset.from_dict({"negation": texts}, datasets.Features({"negation": datasets.Value("string")}))
    return run.but(rows=datasets.concatenate_datasets([run.rows.flatten_indices(), column], axis=1))


class SentenceViews(NamedTuple):
    """The vectors of a batch: both views of B sentences, K negations, and Q pairs of an opposite and its negation.

    Attributes:
        anchors, positives: (B, D) the two views of each sentence.
        negations: (K, D) of the sentences `rows`.
        opposites, opposite_negations: (Q, D) of the negations `pairs`.
        rows, pairs: (K,) places of sentences, (Q,) places of negations.
    """

    anchors: Tensor
    positives: Tensor
    negations: Tensor
    opposites: Tensor
    opposite_negations: Tensor
    rows: Tensor
    pairs: Tensor


def sncse_loss(loss: EncoderLoss[SNCSEOptions], *columns: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return L_InfoNCE and lambda L_BML (SNCSE, equations 3 to 7), or one of the paper's comparisons.

    A negation is a soft negative under the bidirectional margin loss (equation 7), a positive (equation 8), a hard
    negative (equation 9), or unused (InfoNCE alone). `functional.agreeing_opposites` and the distance of the two views
    of a sentence from its vector before training are not in the paper. Use it if 'not' matters, or for the highest
    scores on a fine-tuned encoder.

    Args:
        loss: The encoder and the options.
        columns: The columns of `negation_views`, as tokens, with the rows and pairs of the last.

    Returns:
        The weighted parts of the loss by name, scalars.

    See also:
        `likewise.recipes.arccse.arccse_loss`: A margin on the angle, for a pretrained language model.
        `likewise.losses.functional.bidirectional_margin`, `nt_xent`: the two equations.

    >>> import torch
    >>> from likewise.losses import EncoderLoss
    >>> class Given(torch.nn.Module):
    ...     def forward(self, tokens):
    ...         return {"sentence_embedding": torch.eye(3)[tokens["input_ids"][:, 0]]}
    >>> batch = {"input_ids": torch.tensor([[0], [1], [2]]), "rows": torch.tensor([0])}  # the third negates the first
    >>> options = SNCSEOptions(temperature=1.0, weight=1.0, alpha=0.1, beta=0.3)
    >>> parts = sncse_loss(EncoderLoss(Given(), options), batch)
    >>> {name: round(float(part), 2) for name, part in parts.items()}  # its difference of 1 is 0.7 above beta
    {'contrastive': 0.31, 'soft_negative': 0.7}
    """
    import torch

    from likewise.losses import functional

    options, views = loss.options, encoded_views(loss, *columns)
    parts = _contrast(loss, views)
    if options.opposite_weight:
        agreeing = functional.agreeing_opposites(
            views.anchors[views.rows[views.pairs]],
            views.negations[views.pairs],
            views.opposites,
            views.opposite_negations,
            options.temperature,
        )
        parts["opposites"] = options.opposite_weight * agreeing * loss.share(len(views.pairs))
    if options.keep_weight:
        prompts = [*columns[:-1], _first(columns[-1], len(views.anchors))]
        before = [loss.teacher.encode(prompt) for prompt in prompts]  # (B, D) of each
        targets = torch.cat([before[0], before[-1]])  # (2B, D), for both views
        both = torch.cat([views.anchors, views.positives])
        parts["keep"] = options.keep_weight * functional.cosine_distance(both, targets)
    return parts


def encoded_views(loss: EncoderLoss[SNCSEOptions], *columns: dict[str, Tensor]) -> SentenceViews:
    """Return the vectors of the columns of `negation_views`.

    In one prompt, all vectors are rows of one forward pass; in two, the first views of the sentences have a pass of
    their own.
    """
    import torch

    features = dict(columns[-1])
    rows = features.pop("rows")
    pairs = features.pop("pairs", rows[:0])
    sentences = len(features["input_ids"]) - len(rows) - 2 * len(pairs)  # B
    if len(columns) == 2:
        vectors = torch.cat([loss.vectors(columns[0]), loss.vectors(features)])
    else:
        again = _first(features, sentences)
        vectors = loss.vectors(
            {
                name: torch.cat([again[name], value]) if isinstance(value, torch.Tensor) else value
                for name, value in features.items()
            }
        )
    sizes = [sentences, sentences, len(rows), len(pairs), len(pairs)]
    anchors, positives, negations, opposites, opposite_negations = vectors.split(sizes)
    return SentenceViews(anchors, positives, negations, opposites, opposite_negations, rows, pairs)


def distilled_mask(run: Run) -> Run:
    """Return a run from a base whose mask is distilled, if the mask scores below the base's own vector.

    The difference must exceed the noise. The distillation is an ordinary training: it reports its progress, is locked,
    and can be resumed; its model is reused for every seed and every later run of the same base and corpus.
    """
    from likewise.encoder import has_own_vector

    options = run.options
    if options.distil_mask == "never" or (options.distil_mask == "auto" and not has_own_vector(run.base)):
        return run
    usual = MASK_DISTILLATION.options()
    most = usual.max_steps
    steps = options.distil_steps or (min(5 * options.max_steps, most) if options.max_steps else most)
    size = min(options.batch_size, usual.batch_size)

    def needed() -> bool:
        if options.distil_mask == "auto" and not run.is_behind_base():
            return False
        then = f"{counted(options.max_steps, 'update')} of sncse" if options.max_steps else "sncse"
        run.progress.tell(
            f"two stages: {counted(steps, 'update')} of {MASK_DISTILLATION.name}, {size} sentences each, which is "
            f"cached for later runs (--distil-steps shortens it, --distil-mask never skips it); {then}, "
            f"{options.batch_size} sentences each; each estimates its time after its first updates"
        )
        return True

    return run.trained_first(
        MASK_DISTILLATION,
        needed,
        template=options.template,
        other_template=options.other_template,
        final_stop=options.final_stop,
        batch_size=size,
        max_steps=steps,
        precision=options.precision,
    )


def _is_distinct(row: dict[str, Any], reading: Reading) -> bool:
    """Return whether a row has a negation that still differs from the sentence once both are truncated.

    A 'not' behind the cut leaves two equal texts: 3% of the sentences of running text at 32 tokens, 1% at 40.
    """
    if not row.get("negation"):
        return False
    texts = [row["sentence"], row["negation"]]
    first, second = reading.tokenizer(texts, truncation=True, max_length=reading.length)["input_ids"]
    return bool(first != second)


def _contrast(loss: EncoderLoss[SNCSEOptions], views: SentenceViews) -> dict[str, Tensor]:
    """Return the parts of the loss that compare the views of a sentence with other sentences and its negation."""
    from likewise.losses import functional

    tau, role, rows = loss.options.temperature, loss.options.negation, views.rows
    everywhere, offset = loss.gathered(views.positives)
    if role == "hard-negative":
        contrast = functional.nt_xent_with_hard_negative(views.anchors, everywhere, views.negations, rows, tau, offset)
        return {"contrastive": contrast}
    parts = {"contrastive": functional.nt_xent(views.anchors, everywhere, tau, offset)}
    if role == "soft-negative":
        three = views.anchors[rows], views.positives[rows], views.negations
        bounds = loss.options.alpha, loss.options.beta
        if len(rows):
            loss.note(outside_margins=functional.outside_margins(*three, *bounds))
        margin = functional.bidirectional_margin(*three, *bounds)
        parts["soft_negative"] = loss.options.weight * margin * loss.share(len(rows))
    elif role == "positive":
        # Gathered also where there are none here: every process takes part.
        others, first = loss.gathered(views.negations, ragged=True)
        contrast = others.sum() * 0.0
        if len(rows):
            contrast = contrast + functional.nt_xent(views.anchors[rows], others, tau, first)
        parts["negation"] = contrast * loss.share(len(rows))
    return parts


def _first(features: dict[str, Any], sentences: int) -> dict[str, Any]:
    """Return the tokens of the sentences alone, which come before the negations."""
    import torch

    return {
        name: value[:sentences] if isinstance(value, torch.Tensor) else value
        for name, value in features.items()
        if name not in ("rows", "pairs")
    }


def _encoder(base: str, options: SNCSEOptions) -> SentenceTransformer:
    from likewise.encoder import FrozenCopy, build_prompt_encoder

    encoder = build_prompt_encoder(base, options.template, options.head, options.dropout, options.final_stop)
    if options.keep_weight:
        encoder.append(FrozenCopy.of(encoder))
    return encoder


def _collator(encoder: SentenceTransformer, options: SNCSEOptions, seed: int) -> TextCollator:
    own = Reading.prompted(encoder, options.max_length)
    other = Reading.prompted(encoder, options.max_length, options.other_template)
    views = partial(negation_views, reading=other, with_opposites=options.opposite_weight > 0)
    if not options.other_template:
        return TextCollator(views, own)
    return TextCollator(partial(views, in_two_prompts=True), own, {"other": other})


PAPER_BASE = SNCSEOptions(batch_size=256, learning_rate=1e-5, sam_rho=0.0)
PAPER_LARGE = PAPER_BASE.updated(batch_size=128, learning_rate=5e-6)
# After 20 updates, InfoNCE is nearly 0 at the last token of a causal model (papers-language-model).
LANGUAGE_MODEL = SNCSEOptions(
    batch_size=64, chunk=64, learning_rate=1e-4, max_steps=20, max_length=48, eval_steps=20, sam_rho=0.0
)
# A distilled mask speaks already: it is trained itself. STS-B dev chose the length (papers-sncse-length).
CPU = LANGUAGE_MODEL.updated(chunk=0, distil_mask="auto", head=False, learning_rate=3e-5, max_steps=120, eval_steps=30)
# Not the paper's: what makes an encoder see 'not' (docs/systems/sncse.md).
NEGATION = CPU.updated(
    learning_rate=2e-4,
    max_steps=80,
    eval_steps=10,
    max_length=40,
    weight=20.0,
    opposite_weight=5.0,
    opposite_share=0.5,
    keep_weight=20.0,
    select_by="last",  # STS-B dev knows nothing of negation and would take the beginning
)

SNCSE: Recipe = Recipe(
    name="sncse",
    summary="Contrastive learning at the mask of a prompt, with the sentence's own negation as a soft negative.",
    source="Wang et al. 2022, SNCSE",
    presets={
        "cpu": CPU,
        "negation": NEGATION,
        "language-model": LANGUAGE_MODEL,
        "paper-base": PAPER_BASE,
        "paper-large": PAPER_LARGE,
        "paper-roberta-base": PAPER_BASE.updated(weight=5e-4),
        "paper-roberta-large": PAPER_LARGE.updated(weight=5e-4),
    },
    preset_notes={
        "cpu": "Preset for two cores and a fine-tuned encoder: its mask is distilled if needed, and then trained for "
        "120 updates; about six minutes with bf16.",
        "negation": "This library's preset for 'not': cpu with pairs of antonyms, a larger weight of the margin loss "
        "and a tie to the base; 80 updates at rate 2e-4.",
        "language-model": "This library's preset for a pretrained language model, at the mask of the prompt, or at its "
        "last token if the model is causal: 20 updates at rate 1e-4, with a head; a masked one needs hundreds.",
        "paper-base": "Section 3.2, BERT-base: 256 sentences, rate 1e-5, the whole corpus.",
        "paper-large": "Section 3.2, BERT-large: 128 sentences, rate 5e-6.",
        "paper-roberta-base": "Section 3.2, RoBERTa-base: paper-base with weight 5e-4.",
        "paper-roberta-large": "Section 3.2, RoBERTa-large: paper-large with weight 5e-4.",
    },
    loss=sncse_loss,
    build_encoder=_encoder,
    build_collator=_collator,
    stages=(distilled_mask, Run.built, with_negations),
)
