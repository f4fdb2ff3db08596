"""A baseline, from a base to a model folder with its record and card."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from likewise.baselines.baseline import Baseline, BaselineError
from likewise.baselines.table import find_baseline
from likewise.corpus import CorpusOptions, prepare
from likewise.runs.provenance import machine, versions
from likewise.training.card import OWN_MODULES, PLAIN
from likewise.training.folder import RunFolder
from likewise.transformers_output import no_bar

CARD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [sentence-transformers, sentence-similarity, feature-extraction, likewise, {name}]
---
# A baseline made with likewise

`{name}`: {summary} ({source}.) Base: `{base}`.{fitted}

```python
{loading}
vectors = model.encode(["A man is playing a guitar.", "Somebody plays music."])
```

Options and versions are in `likewise.json`.
"""


@dataclass(frozen=True)
class BaselineResult:
    """A baseline that was made.

    Attributes:
        path: the model's folder.
        record: all that likewise.json says.
    """

    path: Path
    record: dict[str, Any]


@no_bar()  # one bar is enough
def build_baseline(
    name: str,
    base: str | None,
    out: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | Sequence[str] | None = None,
    *,
    corpus_options: CorpusOptions | None = None,
    seed: int = 1,
    overwrite: bool = False,
    quiet: bool = False,
    **options: Any,
) -> BaselineResult:
    """Make a baseline and save it as a model folder.

    Args:
        name: one of `BASELINES`.
        base: a Hugging Face name, a folder, `bundled:minilm`, or a file of word vectors; None for the baseline's own.
        out: the folder, which becomes the model.
        corpus: text that the baseline is fitted to, as in `likewise.train`.
        corpus_options: how the corpus is read.
        seed: fixes which sentences are drawn, and the start of the flow.
        overwrite: replace the model that lies in `out`.
        quiet: print nothing.
        options: options of the baseline; a name it does not know is an error.

    Raises:
        OptionError, RunFolderError, CorpusError, BaselineError, LoadError, WordVectorError: each a ValueError
            whose message names the cure.
    """
    console = Console(quiet=quiet, stderr=True)
    baseline = find_baseline(name)
    chosen = baseline.options.updated(**options)
    if corpus is None and baseline.corpus == "required":
        raise BaselineError(f"{name} is fitted to text: give a corpus (--corpus FILE, or bundled:wiki-sample)")
    if corpus is not None and baseline.corpus == "none":
        raise BaselineError(f"{name} is not fitted to anything: leave the corpus out")
    folder = RunFolder(Path(out))
    folder.prepare(resume=False, overwrite=overwrite)
    started = time.monotonic()
    sentences: Any = ()
    facts: dict[str, Any] | None = None
    if corpus is not None:
        read = prepare(corpus if isinstance(corpus, str | os.PathLike) else list(corpus), corpus_options)
        sentences = read.dataset["sentence"]
        facts = {"sources": list(read.sources), "sentences": len(read), "sha256": read.sha256}
    source = base or baseline.default_base
    with _bar(console) as bar:
        tasks: dict[str, Any] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        model = baseline.build(source, chosen, sentences, seed, progress).eval()
    record = {
        "baseline": name,
        "options": chosen.to_dict(),
        "base": source,
        "seed": seed,
        "corpus": facts,
        "versions": versions(),
        "machine": machine(),
        "seconds": round(time.monotonic() - started, 1),
        "status": "finished",
    }
    # The record first: a folder with it may be overwritten, should the model be cut short.
    folder.write_record(record)
    folder.install_model(model)
    own = any(type(module).__module__.startswith("likewise.") for module in model)
    (folder.path / "README.md").write_text(_card(baseline, record, own), encoding="utf-8")
    return BaselineResult(folder.path, record)


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


def _card(baseline: Baseline, record: dict[str, Any], own_modules: bool) -> str:
    corpus = record["corpus"]
    return CARD.format(
        name=baseline.name,
        summary=baseline.summary,
        source=baseline.source,
        base=record["base"],
        fitted=f" Text: {corpus['sentences']:,} sentences." if corpus else "",
        loading=OWN_MODULES if own_modules else PLAIN,
    )
