"""`likewise compare`: any set of methods under one budget, one table and one page."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from likewise.cli.messages import clean_errors


@clean_errors
def compare(
    out: Annotated[Path, typer.Option(help="The folder of the comparison; made where it is not there.")],
    method: Annotated[
        Optional[list[str]],
        typer.Option(help="A method, may be repeated: simcse, 'arccse margin=0', 'model path=DIR', or all."),
    ] = None,
    corpus: Annotated[
        Optional[list[str]], typer.Option(help="Text to train on, as in `likewise train`; may be repeated.")
    ] = None,
    config: Annotated[Optional[Path], typer.Option(help="TOML with any of these; the command line wins.")] = None,
    base: Annotated[Optional[str], typer.Option(help="A Hugging Face name, a folder, or bundled:minilm.")] = None,
    vectors: Annotated[
        Optional[str], typer.Option(help="Word vectors, for the methods that take them; bundled:glove by default.")
    ] = None,
    seeds: Annotated[Optional[str], typer.Option(help="With commas; 1,2,3 by default.")] = None,
    steps: Annotated[Optional[int], typer.Option(help="Updates of each training.", min=1)] = None,
    minutes: Annotated[Optional[float], typer.Option(help="Or: minutes of updates for each training.")] = None,
    preset: Annotated[Optional[str], typer.Option(help="Of every recipe; the first of each by default.")] = None,
    batch_size: Annotated[Optional[int], typer.Option(help="Of every recipe, over the preset's.", min=2)] = None,
    max_length: Annotated[Optional[int], typer.Option(help="Tokens of a sentence, of every recipe.")] = None,
    eval_steps: Annotated[Optional[int], typer.Option(help="Updates between two evaluations.", min=0)] = None,
    tasks: Annotated[Optional[str], typer.Option(help="As in `likewise evaluate`; sts by default.")] = None,
    data: Annotated[
        Optional[Path],
        typer.Option(help="The folder of SentEval's data; else $LIKEWISE_DATA, else that of likewise data get."),
    ] = None,
    keep_models: Annotated[bool, typer.Option("--keep-models", help="Leave the models in --out/runs.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Do failed runs again.")] = False,
) -> None:
    """Train and evaluate methods under one budget: one table and one page. Goes on where it was stopped."""
    from likewise.comparison import compare as run
    from likewise.comparison.methods import ComparisonError

    given = {
        "methods": method,
        "corpus": corpus,
        "base": base,
        "vectors": vectors,
        "seeds": _seeds(seeds),
        "steps": steps,
        "minutes": minutes,
        "preset": preset,
        "batch_size": batch_size,
        "max_length": max_length,
        "eval_steps": eval_steps,
        "tasks": tasks,
        "data": data,
        "keep_models": keep_models or None,
        "retry_failed": retry_failed or None,
    }
    named = {name: value for name, value in given.items() if value is not None and value != []}
    settings = read_config(config) if config else {}
    if "steps" in named or "minutes" in named:  # a budget takes the place of the other one
        settings = {name: value for name, value in settings.items() if name not in ("steps", "minutes")}
    settings |= named
    for name, option in (("methods", "--method"), ("corpus", "--corpus")):
        if name not in settings:
            raise ComparisonError(f"There is no {name}. Give {option}, or {name} in the file of --config.")
    try:
        found = run(settings.pop("methods"), settings.pop("corpus"), out=out, **settings)
    except KeyboardInterrupt:
        typer.echo("Stopped. Go on with the same command.", err=True)
        raise typer.Exit(130) from None
    from likewise.comparison.tables import notes, scores_table

    typer.echo(f"\n{scores_table(found)}\n")
    for line in notes(found):
        typer.echo(line)
    typer.echo(f"report: {out / 'comparison.html'}")


def read_config(path: Path) -> dict[str, Any]:
    """The settings of a TOML file: the arguments of `likewise.comparison.compare`, and options that all recipes share.

    Raises:
        ComparisonError: it is no TOML, or has a name that means nothing; the message lists those that do.
        FileNotFoundError: it is not there.
    """
    from likewise.comparison import compare as run
    from likewise.comparison.methods import ComparisonError
    from likewise.corpus import CorpusOptions
    from likewise.recipes.options import TrainingOptions

    if not path.is_file():
        raise FileNotFoundError(f"There is no file '{path}' (--config).")
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ComparisonError(f"'{path}' is no TOML: {error}.") from None
    own = set(inspect.signature(run).parameters) - {"out", "quiet", "shared"}
    shared = set(TrainingOptions.model_fields) - {"max_steps", "epochs"}
    if unknown := sorted(set(found) - own - shared):
        raise ComparisonError(
            f"'{path}': {', '.join(unknown)} means nothing here. There are {', '.join(sorted(own))}, and for all "
            f"recipes {', '.join(sorted(shared))}."
        )
    if "corpus_options" in found:
        try:
            found["corpus_options"] = CorpusOptions(**found["corpus_options"])
        except TypeError as error:  # a name that it does not know
            raise ComparisonError(f"'{path}', corpus_options: {error}.") from None
    return found


def _seeds(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise typer.BadParameter(f"'{text}' is no list of whole numbers", param_hint="--seeds") from None
