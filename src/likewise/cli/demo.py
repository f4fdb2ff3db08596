"""`likewise demo`: train on a model and a corpus from the package registry, and show the result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from likewise.cli.groups import command

QUERY = "The government announced a plan to help refugees."
STEPS = 12
BATCH_SIZE = 64  # half the preset: minutes count here
BASE = "bundled:minilm"
CORPUS = "bundled:wiki-sample"


def demo_command() -> Any:
    """Return `likewise demo`."""

    def demo(
        out: Annotated[Path, typer.Option(help="The folder of the model.")] = Path("runs/demo"),
        steps: Annotated[int, typer.Option(help="Training steps.", min=1)] = STEPS,
        query: Annotated[str, typer.Option(help="The sentence whose neighbours are shown.")] = QUERY,
    ) -> None:
        """Train ArcCSE from the bundled MiniLM on gensim's Wikipedia sample; compare it with the original MiniLM."""
        from rich.console import Console

        import likewise
        from likewise.corpus import prepare
        from likewise.evaluation import DataError, find_data
        from likewise.runs.job import JobError, read_record

        if record := read_record(out):
            asked = {"recipe": "arccse", "base": BASE, "steps": steps}
            if asked != {name: record.get(name) for name in asked}:
                raise JobError(f"{out} holds another model: choose another --out for the demo")
        console = Console(highlight=False)
        console.rule("1. Train ArcCSE, without labels")
        console.print(f"base {BASE} with its mean pooling, corpus: gensim's Wikipedia sample", markup=False)
        options: dict[str, Any] = {"pooling": "mean", "max_steps": steps, "eval_steps": 6, "batch_size": BATCH_SIZE}
        trained = likewise.train("arccse", CORPUS, base=BASE, out=out, **options).model

        console.rule("2. Is it better than its base?")
        tasks = ["news"]
        try:
            find_data(None)
            tasks += ["sts-b", "sick-r"]
        except DataError:
            console.print("STS tasks: no data found (set LIKEWISE_DATA to a folder in SentEval's layout)", markup=False)
        _table(console, *(likewise.evaluate(model, tasks) for model in (likewise.load(BASE), trained)))

        console.rule("3. Neighbours")
        _neighbours(console, trained, query, list(prepare(CORPUS).dataset["sentence"]))

        console.rule("4. Use it")
        console.print(f"model: {out.resolve()}", markup=False, soft_wrap=True)
        console.print(f'python: SentenceTransformer("{out}").encode(["..."])', markup=False, soft_wrap=True)
        console.print(
            f'shell:  likewise similarity {out} "A man plays." "Somebody plays."', markup=False, soft_wrap=True
        )

    return command(demo)


def _table(console: Any, before: Any, after: Any) -> None:
    from rich.table import Table

    table = Table("task", "measure", box=None, padding=(0, 3, 0, 0))
    for column in ("base", "trained"):
        table.add_column(column, justify="right")
    for old, new in zip(before.results, after.results, strict=True):
        table.add_row(old.title, old.metric, f"{old.score:.2f}", f"[bold]{new.score:.2f}[/]")
    console.print(table)


def _neighbours(console: Any, model: Any, query: str, sentences: list[str], n_shown: int = 5, most: int = 3000) -> None:
    from rich.table import Table

    import likewise

    # An even sample keeps this step to seconds on two cores.
    sample = sentences[:: max(1, len(sentences) // most)]
    cosines = likewise.similarity([query], sample, model=model)[0]
    console.print(f"query: {query}", markup=False)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for row in (-cosines).argsort()[:n_shown]:
        table.add_row(f"{cosines[row]:.3f}", sample[row].replace("[", r"\["))
    console.print(table)
