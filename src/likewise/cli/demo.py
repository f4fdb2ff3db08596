"""`likewise demo`: each of the four systems trains for a short while, and is measured beside what it starts from."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import likewise
from likewise.cli.groups import typed
from likewise.cli.messages import table_of
from likewise.errors import counted, require_extra

if TYPE_CHECKING:
    import numpy as np

    from likewise.context import Origin
    from likewise.training.training_result import TrainingResult

NEARER, NEAREST = "paraphrase nearer than opposite", "own paraphrase the nearest of all"
MEASURES = {
    NEARER: "A guess is right on 50%; an encoder that goes by the words is right on nearly none.",
    NEAREST: "Among the paraphrases of all sentences, where a guess is right on 0.5%.",
}
"""What is measured on the sentences of `opposites.tsv`, as a percentage of them."""
_EXAMPLES = 12
_SEARCHES = (
    ("a plain question", "two threads change the same variable at the same time"),
    ("one that excludes something", "ways to inject code, excluding SQL"),
    ("one with 'not'", "the program does not check how long the input is"),
)
_PLAIN = {"tokens": 0, "neighbours": 0, "excluded": 0}
"""The pipeline of a plain hybrid: the standardised scores of vectors and of BM25, added."""
_HITS = 3
_OWN = {"arccse", "cls", "contexts", "demo.html", "gclsr", "sncse", "surrogate", "weaknesses.index", "words"}
"""The names in the folder of a demonstration."""


class DemoSettings(NamedTuple):
    """What the demonstration starts from and how long each system trains: chosen to fit the time, tuned on nothing."""

    base: str = "bundled:minilm"
    words: str = "bundled:glove"
    corpus: str | Path = "bundled:wiki-sample"
    arccse: Mapping[str, Any] = {
        "pooling": "cls",
        "learning_rate": 1e-4,
        "max_steps": 30,
        "triplet_limit": 8,
        "select_by": "last",
    }
    sncse: Mapping[str, Any] = {"preset": "negation", "max_steps": 80, "distil_steps": 40, "batch_size": 32}
    gclsr: Mapping[str, Any] = {
        **{"sentences": 4096, "batch_size": 256, "filters": 100, "epochs": 3, "warmup_epochs": 1},
        "select_by": "last",
    }
    context_words: int = 40_000
    surrogate: Mapping[str, Any] = {"preset": "profiles", "max_steps": 16}
    weaknesses: int = 0


@dataclass(frozen=True)
class DemoRow:
    """A row of the table: what was right of the items before and after, as truth values of each item."""

    system: str
    start: str
    seconds: float
    measure: str
    before: np.ndarray
    after: np.ndarray

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as it is shown; what moved by less than two standard errors is told as nothing."""
        before, after = 100 * self.before.mean(), 100 * self.after.mean()
        changed = int((self.before != self.after).sum())
        noise = 200 * changed**0.5 / len(self.before)
        gain = f"{after - before:+.1f}" if abs(after - before) > noise else "nothing"
        return (self.system, self.start, f"{self.seconds:.0f}", self.measure, f"{before:.1f}", f"{after:.1f}", gain)


COLUMNS = ("system", "starts from", "seconds", "how often, in %", "before", "after", "gain")


@dataclass(frozen=True)
class DemoItems:
    """Sentences, a paraphrase of each with few of its words, and its opposite with many of them."""

    sentences: Sequence[str]
    paraphrases: Sequence[str]
    opposites: Sequence[str]

    @classmethod
    def read(cls) -> DemoItems:
        """Return the items of the package, which were written by hand for this demonstration."""
        text = files("likewise.cli").joinpath("opposites.tsv").read_text(encoding="utf-8")
        rows = list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))
        return cls(*([row[name] for row in rows] for name in ("sentence", "paraphrase", "opposite")))

    def by_vectors(self, encode: Callable[[Sequence[str]], object]) -> dict[str, np.ndarray]:
        """Return which items an encoder has right by the cosines of its vectors, by measure."""
        import numpy as np

        own, same, opposite = (
            np.asarray(encode(texts), dtype=np.float64) for texts in (self.sentences, self.paraphrases, self.opposites)
        )
        own, same, opposite = (
            vectors / np.maximum(np.linalg.norm(vectors, axis=1)[:, None], 1e-12) for vectors in (own, same, opposite)
        )
        nearer = (own * same).sum(axis=1) > (own * opposite).sum(axis=1)
        return {NEARER: nearer, NEAREST: (own @ same.T).argmax(axis=1) == np.arange(len(own))}

    def by_pairs(self, origin: Origin) -> dict[str, np.ndarray]:
        """Return which items a scorer of pairs has right, by measure."""
        import numpy as np

        count = len(self.sentences)
        scores = origin.score_pairs([*self.sentences] * 2, [*self.paraphrases, *self.opposites])
        ranked = origin.rows(self.paraphrases, self.sentences)(slice(0, count))
        return {NEARER: scores[:count] > scores[count:], NEAREST: ranked.argmax(axis=1) == np.arange(count)}


def rows_of(
    system: str, start: str, seconds: float, before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]
) -> list[DemoRow]:
    """Return the rows of a system, one for each measure."""
    return [DemoRow(system, start, seconds, name, before[name], after[name]) for name in before]


def _trained_rows(
    system: str, start: str, items: DemoItems, before: str | Path, trained: TrainingResult
) -> list[DemoRow]:
    both = (items.by_vectors(likewise.load(model).encode) for model in (before, trained.path))
    return rows_of(system, start, float(trained.record["seconds"]), *both)


def arccse(out: Path, items: DemoItems, settings: DemoSettings) -> list[DemoRow]:
    """Train ArcCSE as its paper does, from the vector at [CLS], which no training made a sentence vector."""
    before = likewise.baseline("cls", base=settings.base, out=out / "cls", quiet=True)
    trained = likewise.train("arccse", settings.corpus, base=settings.base, out=out / "arccse", **settings.arccse)
    return _trained_rows("arccse", "[CLS] of the base", items, before.path, trained)


def sncse(out: Path, items: DemoItems, settings: DemoSettings) -> list[DemoRow]:
    """Train SNCSE with the preset that sees 'not'."""
    trained = likewise.train("sncse", settings.corpus, base=settings.base, out=out / "sncse", **settings.sncse)
    return _trained_rows("sncse", "the base", items, settings.base, trained)


def gclsr(out: Path, items: DemoItems, settings: DemoSettings) -> list[DemoRow]:
    """Train GCLSR, which has no transformer, beside the mean of the same word vectors with the same weights."""
    before = likewise.baseline(
        "word-average", settings.corpus, base=settings.words, out=out / "words", weighted=True, quiet=True
    )
    trained = likewise.train("gclsr", settings.corpus, base=settings.words, out=out / "gclsr", **settings.gclsr)
    return _trained_rows("gclsr", "mean of its word vectors", items, before.path, trained)


def contexts(out: Path, items: DemoItems, settings: DemoSettings) -> list[DemoRow]:
    """Score by contexts beside the cosine of the same encoder, and train a surrogate from an untrained [CLS]."""
    import likewise.context as stages

    work = out / "contexts"
    made = [
        stages.build_index(work, settings.corpus, stages.IndexOptions(words=settings.context_words)),
        stages.read_states(work, stages.StatesOptions(encoder=settings.base, keep="vectors")),
        stages.train_discriminator(work, stages.DiscriminatorOptions()),
    ]
    spent = sum(stage.record["seconds"] for stage in made)
    begun = time.monotonic()
    origin = stages.open_origin(work, stages.ScoreOptions(terms=("coherence",)), stages.SelectionOptions(size=20))
    by_contexts = items.by_pairs(origin)
    spent += time.monotonic() - begun
    base = items.by_vectors(likewise.load(settings.base).encode)
    taught = likewise.distill(work=work, base=settings.base, out=out / "surrogate", **settings.surrogate)
    untaught = likewise.baseline("cls", base=settings.base, out=out / "cls", quiet=True)
    return [
        *rows_of("contexts, Origin", "cosine of the base", spent, base, by_contexts),
        *_trained_rows("contexts, Surrogate", "[CLS] of the base", items, untaught.path, taught),
    ]


SYSTEMS: Mapping[str, Callable[[Path, DemoItems, DemoSettings], list[DemoRow]]] = {
    "arccse": arccse,
    "sncse": sncse,
    "gclsr": gclsr,
    "contexts": contexts,
}


class Searched(NamedTuple):
    """A query and its first hits, by a plain hybrid and by the search of this library."""

    kind: str
    query: str
    plain: list[tuple[str, str]]
    own: list[tuple[str, str]]


def searches(out: Path, settings: DemoSettings) -> list[Searched]:
    """Index the CWE list of software weaknesses, and search it in two ways."""
    from likewise.data.bundled import read_weaknesses

    listed = read_weaknesses()[: settings.weaknesses or None]
    rows = [
        {"id": f"CWE-{weakness.id}", "title": weakness.name, "text": " ".join(weakness.described)}
        for weakness in listed
    ]
    index = likewise.index(rows, model=settings.base, out=out / "weaknesses.index")
    searched = []
    for kind, query in _SEARCHES:
        ways = (index.search(query, _HITS, pipeline=_PLAIN), index.search(query, _HITS))
        searched.append(Searched(kind, query, *([(hit.title, hit.sentence) for hit in hits] for hits in ways)))
    return searched


@typed
def demo(
    out: Annotated[Path, typer.Option(help="The folder of the models and of the page.")] = Path("runs/demo"),
) -> None:
    """Let the four systems train for a short while each, measure them beside their base, and search.

    A demonstration, tuned on nothing: a few minutes of training on a sample of Wikipedia, measured on 200 sentences
    that were written for it. A stopped demonstration goes on where it was.
    """
    show(out, DemoSettings())


def show(out: Path, settings: DemoSettings) -> None:
    """Run the whole demonstration, print its table and its hits, and write its page."""
    from rich.console import Console

    from likewise.runs.job import JobError
    from likewise.runs.pages import page_of
    from likewise.runs.whole_files import write_text

    for extra, *modules in (("bundled", "cwe2"), ("search", "lancedb"), ("negation", "spacy"), ("words", "gensim")):
        require_extra(extra, "The demo", *modules)  # now, and not after minutes
    if out.is_file() or (out.is_dir() and {path.name for path in out.iterdir()} - _OWN):
        raise JobError(f"{out} holds other files: choose another --out for the demo")
    items, rows, console = DemoItems.read(), [], Console(highlight=False, emoji=False)
    console.print(
        "A demonstration, tuned on nothing: about 4 min on two quiet cores. Each system trains for a short while and "
        f"is measured on {counted(len(items.sentences), 'sentence')}."
    )
    for place, (name, system) in enumerate(SYSTEMS.items(), start=1):
        console.rule(f"{place} of {len(SYSTEMS) + 1}: {name}")
        rows += system(out, items, settings)
    console.rule(f"{len(SYSTEMS) + 1} of {len(SYSTEMS) + 1}: search")
    hits = searches(out, settings)
    console.rule("What each system gives")
    console.print(table_of(COLUMNS, [row.cells for row in rows]))
    for searched in hits:
        console.rule(f"Search, {searched.kind}: {searched.query}")
        pairs = zip(searched.plain, searched.own, strict=True)
        console.print(table_of(("plain hybrid", "this search"), [(plain[0], other[0]) for plain, other in pairs]))
    verdicts = {"base": next(row.before for row in rows if row.system == "sncse" and row.measure == NEARER)}
    verdicts |= {row.system: row.after for row in rows if row.measure == NEARER}
    shown = range(0, len(items.sentences), max(1, len(items.sentences) // _EXAMPLES))
    page = page_of(
        "likewise.cli",
        "demo.html.j2",
        columns=COLUMNS,
        rows=rows,
        measures=MEASURES,
        items=items,
        verdicts=verdicts,
        shown=shown,
        hits=hits,
    )
    console.print(f"page: {write_text(out / 'demo.html', page).resolve()}", soft_wrap=True)
