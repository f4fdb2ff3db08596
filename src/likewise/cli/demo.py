"""`likewise demo`: adapt the bundled model to the CWE list of software weaknesses, and show which search finds more."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import likewise
from likewise.cli.groups import typed
from likewise.cli.messages import table_of

QUERY = "two threads change the same variable"
BASE = "bundled:minilm"
PASSAGES = 10_000  # all of it, on any machine


@typed
def demo(
    out: Annotated[Path, typer.Option(help="The folder of the model; its text is put next to it.")] = Path("runs/demo"),
    query: Annotated[
        str, typer.Option(help="A question that is searched with the base and with the adapted model.")
    ] = QUERY,
    passages: Annotated[int, typer.Option(help="The most passages of the text that are used.", min=1)] = PASSAGES,
) -> None:
    """Adapt the bundled MiniLM to the CWE list of software weaknesses, and compare ways to search it."""
    from rich.console import Console

    from likewise.cli.choose import show_choice
    from likewise.cli.train import show_adapted
    from likewise.corpus.weaknesses import write_weaknesses
    from likewise.errors import require_extra
    from likewise.runs.job import JobError, check_target, read_record

    for extra, module in (("bundled", "cwe2"), ("retrieval", "pytrec_eval"), ("search", "lancedb")):
        require_extra(extra, "The demo", module)  # now, and not after minutes
    check_target(out)
    if (record := read_record(out)) and (record.get("recipe"), record.get("base")) != ("adapt", BASE):
        raise JobError(f"{out} holds another model: choose another --out for the demo")
    text = out.with_name(f"{out.name}-text")
    if text.exists() and (not text.is_dir() or {path.name for path in text.iterdir()} - {"text.jsonl", "reports"}):
        raise JobError(f"{text} holds other files: choose another --out for the demo")
    console = Console(highlight=False)
    console.rule("1. A text of your own")
    weaknesses, reports = write_weaknesses(text)
    console.print(f"{weaknesses:,} weaknesses of software in the CWE list: {text}/text.jsonl")
    console.print(
        f"To test on, {reports:,} reports of real vulnerabilities, each filed under a weakness by an expert. "
        "They are not in the text."
    )
    console.rule("2. Adapt the encoder to it, without labels")
    options = likewise.CorpusOptions(field="text")
    adapted = likewise.adapt(
        text / "text.jsonl", base=BASE, out=out, passages=passages, alone=True, corpus_options=options
    )
    show_adapted(adapted)

    console.rule("3. Does it find the weakness of a report?")
    task = f"retrieval:{text}/reports:test"
    found: list[Any] = [likewise.evaluate(one, task, quiet=True).results[0] for one in (BASE, adapted.model)]
    rows = {"nDCG@10": [one.score for one in found], "recall@100": [one.recall for one in found]}
    cells = [(name, *(f"{value:.2f}" for value in values)) for name, values in rows.items()]
    console.print(table_of(("", "base as shipped", "adapted"), cells))

    console.rule("4. Search before and after")
    _search(console, {"base": likewise.load(BASE), "adapted": adapted.model}, query, text)

    console.rule("5. Which search suits the text?")
    console.print("The adapted model is left out: its text holds the answers to the queries that are taken out of it.")
    choice = likewise.choose(
        text / "text.jsonl", bases=[BASE], out=out.with_name(f"{out.name}-choice"), corpus_options=options
    )
    show_choice(choice)

    console.rule("6. Use it")
    console.print(f"what was tried, and neighbours that changed: {out.resolve()}/report.html", soft_wrap=True)
    console.print(f'python: likewise.load("{out}").encode(["..."])', soft_wrap=True)
    console.print(f"search: likewise index my-text/ --model {out} --out my.index", soft_wrap=True)
    console.print("your own text: likewise adapt my-text/ --out my-model", soft_wrap=True)


def _search(console: Any, models: dict[str, Any], query: str, text: Path, shown: int = 3) -> None:
    """Print the nearest weaknesses of a question by each model."""
    import json

    rows = [json.loads(line) for line in (text / "reports" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    console.print(f"question: {query}", markup=False)
    for name, model in models.items():
        cosines = likewise.similarity([query], [f"{row['title']} {row['text']}" for row in rows], model=model)[0]
        for place in (-cosines).argsort()[:shown]:
            row = rows[place]
            said = " ".join(row["text"].split())
            console.print(f"{name:8} {cosines[place]:.3f}  {row['title']}: {said}", markup=False, no_wrap=True)
