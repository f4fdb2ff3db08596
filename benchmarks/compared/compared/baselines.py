"""Baselines, which need no training: from a base to a model folder with its record and card.

from compared.baselines import baseline

baseline("whitening", "wiki.txt.gz", base="bundled:minilm", out="runs/white", pooling="own")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sentence_transformers import SentenceTransformer

from likewise.corpus import CorpusOptions, prepare
from likewise.corpus.inputs import GivenTexts, given_texts
from likewise.errors import LikewiseError, counted
from likewise.inference.load_model import SavedModel, base_name
from likewise.recipes.recipe import check_encoder
from likewise.recipes.recipe_options import WithPresets
from likewise.runs.job import Plan, check_target, open_job
from likewise.runs.options import OptionError, checked, checked_seed
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record, write_text
from likewise.training.training_result import base_fingerprint, model_card
from likewise.transformers_output import no_bar


class BaselineError(LikewiseError):
    """Raised if a baseline cannot be made from the given input; the message names the cure."""


@dataclass(frozen=True)
class Baseline(WithPresets):
    """The definition of one baseline.

    Args:
        build: (base, options, sentences, seed, progress) to a model; `sentences` are the corpus's, in order.
        corpus: whether it is fitted to a corpus: it must be, it may be, or it is not.
        default_base: the base where none is given.
        check_base: called before the corpus is read; raises a LikewiseError for a base that cannot do.
    """

    build: Callable[[str, Any, Sequence[str], int, Progress], SentenceTransformer]
    corpus: Literal["required", "optional", "none"] = "none"
    default_base: str = "bundled:minilm"
    check_base: Callable[[str], object] = lambda base: check_encoder(
        base, "a baseline", routes="it has one vector for every text; give one of the two encoders by itself"
    )


@checked
@no_bar()  # one bar is enough
def baseline(
    name: str,
    corpus: GivenTexts | None = None,
    *,
    base: SentenceTransformer | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str],
    corpus_options: CorpusOptions | None = None,
    seed: int = 1,
    overwrite: bool = False,
    quiet: bool = False,
    **options: Any,
) -> SavedModel:
    """Make a baseline and save it as a model folder.

    Args:
        name: Name of a baseline: word-average, last-average, first-last-average, cls, whitening or flow.
        corpus: text that the baseline is fitted to, as in `likewise.train`.
        base: a Hugging Face name, a folder, `bundled:NAME`, an encoder that is loaded, or a file of word vectors; None
            for the baseline's own.
        out: the folder, which becomes the model.
        corpus_options: the options of reading the corpus.
        seed: fixes which sentences are drawn, and the start of the flow.
        overwrite: replace the model in `out` once the new one is whole.
        quiet: print nothing.
        options: options of the baseline; a name it does not know is an error.

    Raises:
        LikewiseError: an option, the corpus, the base or `out` is not right; the message names the cure.
    """
    progress = Progress(quiet)
    method = find_baseline(name)
    chosen = method.options(**options)
    checked_seed(seed)
    if corpus is None and method.corpus == "required":
        raise BaselineError(f"{name} is fitted to text: give a corpus (--corpus FILE, or bundled:wiki-sample)")
    if corpus is not None and method.corpus == "none":
        raise BaselineError(f"{name} is not fitted to a corpus: leave it out")
    check_target(out)
    source = base_name(method.default_base if base is None else base)
    method.check_base(source)
    sentences: Sequence[str] = ()
    facts: Record = {}
    if corpus is not None:
        text = given_texts(corpus, corpus_options)
        read = prepare(text.files, text.options, progress=progress)
        sentences, facts = read.dataset["sentence"], read.record()
    record = {"baseline": name, "options": chosen.to_dict(), "base": source, "seed": seed, "corpus": facts or None}
    asked = {**chosen.to_dict(), "base": source, "seed": seed}
    plan = Plan(f"baseline {name}", asked, {"corpus": facts.get("sha256"), "base": base_fingerprint(source, out)})
    with open_job(out, plan, overwrite=overwrite) as job:
        if not job.finished:
            model = method.build(source, chosen, sentences, seed, progress).eval()
            model.save_pretrained(str(job.result), create_model_card=False)
            fitted = f" Text: {counted(facts['sentences'], 'sentence')}." if facts else ""
            about = f"`{name}`: {method.summary} ({method.source}.) Base: `{source}`.{fitted}"
            files = "Options and versions are in `likewise.json`."
            write_text(job.result / "README.md", model_card(model, name, "A baseline made", about, files))
            job.finish(record)
        return SavedModel(Path(out), job.finished or {})


def baselines() -> dict[str, Baseline]:
    """Return all baselines by their names."""
    from compared.averages import AVERAGES
    from compared.flow import FLOW
    from compared.whitening import WHITENING

    return {one.name: one for one in (*AVERAGES, FLOW, WHITENING)}


def find_baseline(name: str) -> Baseline:
    """Return the baseline of a name; raises an OptionError if there is none."""
    every = baselines()
    if name not in every:
        raise OptionError(f"there is no baseline {name!r}; choose one of {', '.join(sorted(every))}")
    return every[name]
