"""`likewise demo`: the whole road on what the package registry carries, in a few minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from likewise.cli.messages import clean_errors

QUERY = "The government announced a plan to help refugees."
STEPS = 12
BATCH_SIZE = 64  # half the preset: minutes count here
BASE = "bundled:minilm"
CORPUS = "bundled:wiki-sample"


@clean_errors
def demo(
    out: Annotated[Path, typer.Option(help="Where the model will lie.")] = Path("runs/demo"),
    steps: Annotated[int, typer.Option(help="Training steps.", min=1)] = STEPS,
    query: Annotated[str, typer.Option(help="The sentence whose neighbours are shown.")] = QUERY,
) -> None:
    """Train ArcCSE from the bundled MiniLM on gensim's Wikipedia sample, and show what came of it."""
    from rich.console import Console

    import likewise
    from likewise.corpus import prepare
    from likewise.evaluation import DataError, find_data
    from likewise.training import train

    console = Console(highlight=False)
    console.rule("1. Train ArcCSE, without labels")
    console.print(f"base {BASE} with [CLS] pooling, corpus: the Wikipedia sample that gensim ships", markup=False)
    train("arccse", CORPUS, base=BASE, out=out, max_steps=steps, eval_steps=6, batch_size=BATCH_SIZE)

    console.rule("2. Is it better?")
    tasks = ["news"]
    try:
        find_data(None)
        tasks += ["sts-b", "sick-r"]
    except DataError:
        console.print("STS tasks: no data found (set LIKEWISE_DATA to a folder in SentEval's layout)", markup=False)
    from likewise.encoder.build import build_encoder

    untrained = build_encoder(BASE, pooling="cls", head=False).eval()
    trained = likewise.load(out)
    _table(console, *(likewise.evaluate(model, tasks) for model in (untrained, trained)))

    console.rule("3. Neighbours")
    sentences = prepare(CORPUS).dataset["sentence"]
    _neighbours(console, trained, query, list(sentences))

    console.rule("4. Use it")
    console.print(f"model: {out.resolve()}", markup=False, soft_wrap=True)
    console.print(f'python: SentenceTransformer("{out}").encode(["..."])', markup=False, soft_wrap=True)
    console.print(f'shell:  likewise similarity {out} "A man plays." "Somebody plays."', markup=False, soft_wrap=True)


def _table(console: Any, before: Any, after: Any) -> None:
    from rich.table import Table

    table = Table("task", "measure", box=None, padding=(0, 3, 0, 0))
    for column in ("before", "after"):
        table.add_column(column, justify="right")
    for old, new in zip(before.results, after.results, strict=True):
        table.add_row(old.title, old.metric, f"{old.score:.2f}", f"[bold]{new.score:.2f}[/]")
    console.print(table)


def _neighbours(console: Any, model: Any, query: str, sentences: list[str], n_shown: int = 5, most: int = 3000) -> None:
    from rich.table import Table

    from likewise.inference import encode

    # An even sample keeps this step to seconds on two cores.
    sample = sentences[:: max(1, len(sentences) // most)]
    vectors = encode(model, [query, *sample], normalize=True, progress=False)
    cosines = vectors[1:] @ vectors[0]
    console.print(f"query: {query}", markup=False)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for row in (-cosines).argsort()[:n_shown]:
        table.add_row(f"{cosines[row]:.3f}", sample[row].replace("[", r"\["))
    console.print(table)
