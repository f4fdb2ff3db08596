"""GCLSR: word vectors, a word attention and a TextCNN, trained on noisy views with a grouped loss and no negatives.

Wang, Zhang, Lei, Peng 2023, "Grouped Contrastive Learning of Self-supervised Sentence Representation".
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from likewise.corpus.files import strict_lines
from likewise.recipes import OptionError, Recipe, Run, TrainingOptions, option
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from torch import Tensor, nn

    from likewise.encoder.modules import Features
    from likewise.losses import EncoderLoss

NOISES = ("partial", "full", "authors")
"""The augmentations that are made on the word vectors, inside the network."""
_PATIENCE = 10
"""Collapsed batches one after the other that end the run."""


class GCLSROptions(TrainingOptions):
    """The options of GCLSR; the defaults are the paper's (section 4.1)."""

    batch_size: int = option(
        512, "Number of sentences in a forward pass, over which batch normalization computes its statistics.", ge=2
    )
    learning_rate: float = option(0.03, "Base learning rate; the peak is this times batch_size x accumulation / 128.")
    epochs: int = option(20, "Number of passes over the sampled sentences.")
    warmup_epochs: int = option(
        5, "Number of epochs over which the learning rate warms up from 0; it then decays along a cosine.", ge=0
    )
    momentum: float = option(0.9, "Momentum of SGD during warm-up.", ge=0, lt=1)
    momentum_after: float = option(0.8, "Momentum of SGD after warm-up.", ge=0, lt=1)
    weight_decay: float = option(1e-3, "Weight decay of SGD.")
    predictor_rate: float = option(
        1.0, "Constant learning rate of the predictor; 0 lets it decay like the other rates.", ge=0
    )
    sentences: int = option(10_000, "Number of sentences that are sampled from the corpus; 0 uses all.", ge=0)
    dimension: int = option(
        0,
        "Number of dimensions of the word vectors. A file must have exactly this number; an encoder's vectors are "
        "truncated to it. 0 accepts any.",
        ge=0,
    )
    most_frequent: int = option(
        100_000, "Number of most frequent words to keep in addition to the words of the corpus.", ge=0
    )
    weighted: bool = option(
        False, "Whether to subtract the mean from the word vectors, and to scale frequent words down."
    )
    trust_pickle: bool = option(
        False, "Whether to read word vectors in gensim's own format, a pickle, which can run any code."
    )
    unknown_drawn: float = option(
        0.0,
        "Bound x of the random vector, drawn from -x to x, that replaces an unknown word in training (the authors' "
        "code: 0.1); 0 uses the mean vector, as the saved model does.",
        ge=0,
    )
    attention: bool = option(
        True, "Whether to use word attention between the word vectors and the TextCNN in training."
    )
    regions: str = option("1,1,1,6,15,20", "Window sizes of the TextCNN's filters in words, one for each bank.")
    filters: int = option(300, "Number of filters in each bank.", gt=0)
    projection: int = option(4096, "Width of the projector's layers.", gt=0)
    bottleneck: int = option(1024, "Width of the predictor's hidden layer.", gt=0)
    group_size: int = option(16, "Number of features in each group of the loss; 0 uses no groups.", ge=0)
    collapse_below: float = option(
        0.01,
        "Spread of the outputs below which the run stops, because the model has collapsed; 0 disables the check.",
        ge=0,
    )
    augmentation: Literal["partial", "full", "authors", "none", "edits", "paraphrases"] = option(
        "partial",
        "Second view of a sentence: noise on some words (partial), on all words (full), or on some words as in the "
        "authors' code (authors); the sentence itself (none); word edits (edits); or paraphrases.",
    )
    paraphrases: str = option(
        "", "Path to a file with a sentence, a tab and its paraphrase on each line, for augmentation=paraphrases."
    )
    edits: Literal["all", "no-synonyms"] = option(
        "all", "Set of word edits: all of replace, insert, swap and delete, or only the edits that do not need WordNet."
    )
    noise_share: float = option(0.5, "Probability p that noise is added to a word.", ge=0, le=1)
    noise_white: float = option(0.5, "Probability p1 of Gaussian white noise.")
    noise_zeros: float = option(0.2, "Probability p2 of random zeros.")
    noise_fourier: float = option(0.1, "Probability p3 of the Fourier round trip.")
    noise_background: float = option(0.2, "Probability p4 of background noise.")

    def _check(self) -> None:
        super()._check()
        if self.warmup_epochs >= self.epochs:
            raise OptionError(f"warmup_epochs {self.warmup_epochs} must be below epochs {self.epochs}")
        if self.group_size and self.projection % self.group_size:
            raise OptionError(f"group_size {self.group_size} does not divide projection {self.projection}")
        if self.sentences and self.sentences < self.batch_size * self.accumulation:
            raise OptionError(
                f"sentences {self.sentences} are fewer than one update of {self.batch_size} x {self.accumulation}"
            )
        if bool(self.paraphrases) != (self.augmentation == "paraphrases"):
            raise OptionError("augmentation=paraphrases and the file in paraphrases go together: give both or neither")
        if min(self.noise_kinds) < 0 or abs(sum(self.noise_kinds) - 1) > 1e-6:
            raise OptionError(f"the kinds of noise must be four probabilities that add up to 1, not {self.noise_kinds}")
        _ = self.region_sizes  # it checks what it is made of

    @property
    def region_sizes(self) -> tuple[int, ...]:
        """The region sizes as integers."""
        parts = [part.strip() for part in self.regions.split(",")]
        if not all(part.isdigit() and int(part) for part in parts):
            raise OptionError(
                f"regions must be comma-separated numbers of words, such as 1,1,1,6,15,20, not {self.regions!r}"
            )
        return tuple(int(part) for part in parts)

    @property
    def noise_kinds(self) -> list[float]:
        """The probabilities of the four kinds of noise."""
        return [self.noise_white, self.noise_zeros, self.noise_fourier, self.noise_background]


def sampled(run: Run) -> Run:
    """Return a run on a sample of the rows, with the column 'view' if the second view is a text."""
    options, rows = run.options, run.rows.select(run.sample(run.options.sentences))
    if options.augmentation == "edits":
        from likewise.augment.word_edits import WordEditor

        edit = WordEditor(run.seed, synonyms=options.edits == "all")
        views = [edit(sentence) for sentence in rows["sentence"]]
        if same := sum(map(str.__eq__, views, rows["sentence"])):
            run.progress.tell(f"{same:,} of {len(views):,} sentences are too short for an edit, and are not changed")
        rows = rows.add_column("view", views)
    if options.augmentation == "paraphrases":
        rows = _with_paraphrases(rows, options.paraphrases)
    return run.but(rows=rows)


def _views(rows: list[Record]) -> dict[str, list[str]]:
    return {name: [row[name] for row in rows] for name in ("sentence", "view") if name in rows[0]}


def build_network(base: str, options: GCLSROptions, sentences: Sequence[str] | None = None) -> SentenceTransformer:
    """Return word vectors, noise, attention, TextCNN, projector and predictor; all but vectors and CNN train only."""
    from sentence_transformers import SentenceTransformer

    from likewise.encoder.text_cnn import TextCNN, TrainingAttention
    from likewise.encoder.training_modules import DrawnUnknownWords, NoisyWords, Predictor, Projector
    from likewise.encoder.word_vectors import MAX_WORDS, build_word_vectors

    longest = options.max_length or MAX_WORDS
    words = build_word_vectors(
        base, sentences, options.most_frequent, options.dimension, longest, options.weighted, options.trust_pickle
    )
    share = 1.0 if options.augmentation == "full" else options.noise_share
    noise = {"share": share, "kinds": options.noise_kinds, "authors": options.augmentation == "authors"}
    cnn = TextCNN(words.get_embedding_dimension(), options.region_sizes, options.filters, edges=True)
    modules: list[nn.Module] = [
        words,
        *([DrawnUnknownWords(options.unknown_drawn)] if options.unknown_drawn else []),
        *([NoisyWords(noise)] if options.augmentation in NOISES else []),
        *([TrainingAttention()] if options.attention else []),
        cnn,
        Projector(cnn.get_embedding_dimension(), options.projection),
        Predictor(options.projection, options.bottleneck),
    ]
    return SentenceTransformer(modules=modules)


def build_light_student(base: str, sentences: Sequence[str]) -> SentenceTransformer:
    """Return the encoder of the preset `narrow` before any training, with word vectors that learn."""
    from likewise.encoder.modules import without_training_head

    encoder = without_training_head(build_network(base, NARROW.updated(augmentation="none"), sentences))
    encoder[0].requires_grad_(True)
    return encoder.train()


class GroupedCosine:
    """The symmetric grouped loss with stop-gradient (GCLSR, equations 6 and 7), from -1 (all views agree) to 1.

    The encoder encodes the two views one after the other, each with its own batch statistics, as in SimSiam. The log
    contains the spread of embeddings and projections; a run whose spread stays too small is stopped. Use it to study
    training without negatives; `likewise.recipes.light.vectors_loss` trains a fast encoder to higher scores.

    See also:
        `likewise.recipes.arccse.arccse_loss`, `likewise.recipes.sncse.sncse_loss`: losses with negatives.
        `likewise.losses.functional.grouped_cosine`: the equation.

    >>> import torch
    >>> from likewise.losses import EncoderLoss
    >>> class Given(torch.nn.Module):
    ...     def forward(self, tokens):
    ...         return dict.fromkeys(("sentence_embedding", "projection", "prediction"), tokens["vectors"])
    >>> loss = EncoderLoss(Given(), GCLSROptions(group_size=1))
    >>> views = {"vectors": torch.tensor([[1.0, 2.0]])}, {"vectors": torch.tensor([[3.0, 4.0]])}
    >>> round(float(GroupedCosine()(loss, *views)), 2)  # each of the two groups agrees
    -1.0
    """

    def __init__(self) -> None:
        self._collapsed = 0

    def __call__(self, loss: EncoderLoss[GCLSROptions], *columns: Features) -> Tensor:
        """Return the loss of a batch.

        Args:
            loss: The encoder and the options.
            columns: One column of sentences, of which noise creates two views, or two columns (a sentence and another
                version).
        """
        from likewise.losses import functional

        first, second = loss.model(dict(columns[0])), loss.model(dict(columns[-1]))
        self._watch(loss, first)
        size = loss.options.group_size or first["projection"].shape[1]
        grouped: Tensor = functional.grouped_cosine(first["prediction"], second["projection"], size)
        return (grouped + functional.grouped_cosine(second["prediction"], first["projection"], size)) / 2

    def _watch(self, loss: EncoderLoss[GCLSROptions], outputs: dict[str, Tensor]) -> None:
        from likewise.losses import functional
        from likewise.losses.encoder_loss import CollapseError

        named = (("embedding_spread", "sentence_embedding"), ("projection_spread", "projection"))
        # Of all processes: they stop together.
        spreads = {name: float(functional.spread(loss.gathered(outputs[key].detach())[0])) for name, key in named}
        if not loss.model.training:
            return
        loss.note(**spreads)
        least = loss.options.collapse_below
        # Written so that a spread that is not a number counts as collapsed too.
        fine = not least or all(value >= least for value in spreads.values())
        self._collapsed = 0 if fine else self._collapsed + 1
        if self._collapsed >= _PATIENCE:
            values = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in spreads.items())
            raise CollapseError(
                f"training collapsed: in {_PATIENCE} consecutive batches nearly all sentences had the same vector "
                f"({values}; evenly spread vectors have 1, less than {least} is a collapse, and nan means that the "
                "learning rate is too high). Lower learning_rate or predictor_rate, raise warmup_epochs, or use larger "
                "batches; collapse_below=0 disables this check."
            )


def build_optimizer(encoder: SentenceTransformer, options: GCLSROptions, steps: int) -> tuple[Any, Any]:
    """Return the SGD of section 4.1 and its schedule; the rate of the predictor is constant, unless it is 0."""
    from torch.optim import SGD

    from likewise.encoder import find_part
    from likewise.encoder.training_modules import Predictor
    from likewise.recipes.optimizers import WarmupCosine
    from likewise.runs import processes

    predictor = find_part(encoder, Predictor)
    own = list(predictor.parameters()) if predictor and options.predictor_rate else []
    known = {id(parameter) for parameter in own}
    others = [weight for weight in encoder.parameters() if weight.requires_grad and id(weight) not in known]
    rate = options.learning_rate * options.batch_size * options.accumulation * processes.count() / 128
    groups: list[Record] = [{"params": others}]
    if own:
        groups.append({"params": own, "lr": options.predictor_rate, "constant": True})
    momenta = options.momentum, options.momentum_after
    optimizer = SGD(groups, lr=rate, momentum=momenta[0], nesterov=momenta[0] > 0, weight_decay=options.weight_decay)
    warmup = steps * options.warmup_epochs // options.epochs
    return optimizer, WarmupCosine(optimizer, steps, warmup, momenta)


def _check_base(base: str, options: GCLSROptions) -> None:
    from likewise.encoder.word_vectors import check_source

    check_source(base, options.dimension, options.trust_pickle)


def _with_paraphrases(dataset: Dataset, path: str) -> Dataset:
    """Add the column 'view': the paraphrase of each sentence; sentences without one are skipped.

    Args:
        dataset: Rows with 'sentence'.
        path: UTF-8 file of lines 'sentence TAB paraphrase'.
    """
    paraphrase_of: dict[str, str] = {}
    for number, line in enumerate(strict_lines(Path(path).expanduser()), 1):
        # As the corpus is cleaned: white space is one blank.
        columns = [" ".join(column.split()) for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise OptionError(f"{path}:{number}: two tab-separated columns are expected, not {len(columns)}")
        paraphrase_of[columns[0]] = columns[1]
    keys = [" ".join(sentence.split()) for sentence in dataset["sentence"]]
    rows = [row for row, key in enumerate(keys) if key in paraphrase_of]
    if not rows:
        raise OptionError(f"{path}: its first column contains none of the corpus's {len(keys):,} sentences")
    return dataset.select(rows).add_column("view", [paraphrase_of[keys[row]] for row in rows])


PAPER = GCLSROptions(max_grad_norm=0.0, length_batches=False, eval_steps=19)
CPU = PAPER.updated(projection=1024, bottleneck=256, weighted=True)
# Without the two parts that cost on real word vectors: the best by STS-B dev (benchmarks/notebook/measurements.md).
NARROW = CPU.updated(attention=False, regions="1,1,1,1,1,1")
GCLSR: Recipe = Recipe(
    name="gclsr",
    summary="Word vectors, word attention and a TextCNN, trained on noisy views in groups of features; no transformer.",
    source="Wang et al. 2023, GCLSR",
    presets={"cpu": CPU, "narrow": NARROW, "paper": PAPER},
    preset_notes={
        "cpu": "The paper's system at a CPU's size: a projector of 1,024 and a predictor of 256 dimensions; the word "
        "vectors minus their mean, and frequent words scaled down.",
        "narrow": "cpu without the word attention, and with filters of one word only; it is equally good on real "
        "word vectors.",
        "paper": "Section 4.1: a projector of 4,096 and a predictor of 1,024 dimensions, with unchanged word vectors.",
    },
    views=_views,
    loss=GroupedCosine,
    build_encoder=build_network,
    stages=(sampled, Run.built_from_sentences),
    check_base=_check_base,
    build_optimizer=build_optimizer,
    default_base="bundled:glove",
    mathematics=2,  # the attention works in training alone, and the filters reach over the ends of a sentence
)
