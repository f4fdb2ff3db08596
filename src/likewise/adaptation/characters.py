"""`likewise train characters`: an encoder of a text's own characters, for a language without a base."""

from __future__ import annotations

import os
import shutil
from typing import Any

from sentence_transformers import SentenceTransformer

from likewise.adaptation.adapt_options import CharactersOptions
from likewise.corpus import CorpusError, CorpusOptions, prepare
from likewise.corpus.inputs import GivenTexts, given_texts
from likewise.encoder.character_vectors import fit_character_vectors
from likewise.inference.load_model import SavedModel
from likewise.runs.job import Plan, Resume, check_target, complete_installation, open_job
from likewise.runs.options import checked
from likewise.runs.progress import Progress
from likewise.runs.whole_files import write_text
from likewise.training.training_result import model_card
from likewise.transformers_output import no_bar

_ABOUT = """This model counts the characters of a text, weighted by their frequency in {sentences:,} sentences without
labels (seed {seed}). It has no base and no tokenizer."""
_FILES = "`likewise.json` contains every option, the versions, and the hash of the corpus."


@checked
@no_bar()
def train_characters(
    corpus: GivenTexts,
    *,
    out: str | os.PathLike[str],
    corpus_options: CorpusOptions | None = None,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
    **options: Any,
) -> SavedModel:
    """Build a sentence encoder from the characters of your own text, for a language without a base.

    Training takes seconds because it uses no gradients. The vector of a sentence is the weighted sum of the vectors of
    its parts, such as beginnings and trigrams of words (see `likewise.encoder.character_vectors`).

    Args:
        corpus: Path to a file or a folder, a glob pattern, `bundled:wiki-sample`, or a list of these; in Python also
            texts (a list, a column or any iterable) or rows (mappings or a DataFrame).
        out: Path to save the model to.
        corpus_options: Options of reading the corpus.
        resume, overwrite, quiet: See `likewise.train`.
        options: Options of `likewise.adaptation.CharactersOptions`: axes, width and seed.

    Returns:
        The path of the model and its record.

    Raises:
        LikewiseError: If the input is invalid; the message names the cure.

    See also:
        `likewise.train`: Train an encoder that starts from a base.

    Example:
        >>> import likewise
        >>> texts = ["Die Pumpe ist undicht.", "Zwei Pumpen sind undicht.", "Der Techniker kam."]
        >>> result = likewise.train_characters(texts, out="runs/characters", quiet=True)
        >>> model = likewise.load(result.path)
        >>> near, far = (likewise.similarity(model, texts[0], text) for text in texts[1:])
        >>> near > far
        True
    """
    chosen = CharactersOptions(**options)
    progress = Progress(quiet)
    check_target(out)
    complete_installation(out)
    text = given_texts(corpus, corpus_options)
    sentences = prepare(text.files, text.options, progress=progress)
    progress.tell(sentences.report)
    if len(sentences) < 2:
        raise CorpusError(
            f"{sentences.sources[0]}: it has one sentence, but frequencies need two or more: give more text"
        )
    plan = Plan("train characters", chosen.to_dict(), {"corpus": sentences.sha256}, defaults=chosen.defaults())
    with open_job(out, plan, resume=resume, overwrite=overwrite) as job:
        if job.finished is None:
            with progress.bar("counting characters", len(sentences)) as bar:
                vectors = fit_character_vectors(
                    sentences.dataset["sentence"], chosen.axes, chosen.width, chosen.seed, bar.advance
                )
            model = SentenceTransformer(modules=[vectors], device="cpu")
            facts = {"recipe": "characters", "kind": "encoder", "corpus": sentences.record(), **chosen.to_dict()}
            facts |= {"parts": len(vectors.parts), "dimensions": vectors.get_embedding_dimension()}
            shutil.rmtree(job.result)
            model.save_pretrained(str(job.result), create_model_card=False)
            about = _ABOUT.format(sentences=len(sentences), seed=chosen.seed)
            card = model_card(model, "characters", "A sentence encoder made", about, _FILES)
            write_text(job.result / "README.md", card)
            job.finish(facts)
        else:
            progress.tell(job.already)
        assert job.finished is not None
        return SavedModel(job.target, job.finished)
