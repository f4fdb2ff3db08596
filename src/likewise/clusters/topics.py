"""`likewise topics`: the topics of texts, with names by their words, sizes, examples and a map.

Letters of the shapes: N texts, S different texts, P texts that are grouped, T topics, D embedding.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.clusters.communities import RESOLUTION, centres_of, communities, divided
from likewise.clusters.map import Spot, laid_out, map_page
from likewise.clusters.names import named, topic_words
from likewise.clusters.texts import KeptTexts, keep_texts
from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.given import GivenTexts, given_texts
from likewise.errors import counted
from likewise.inference.engines.engine import EngineName, EnginePrecision
from likewise.runs.arguments import checked
from likewise.runs.job import Job, Resume, check_target, open_job
from likewise.runs.options import OptionError, checked_seed
from likewise.runs.orderly_stop import StopRequest, orderly_stop
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress
from likewise.runs.whole_files import written_whole

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SAMPLE = 20_000
"""Texts that are grouped, drawn at random; every other one goes to the topic of the nearest centre."""
SMALLEST = 5
ON_MAP = 5_000
"""Texts on the map, drawn at random."""
_EXAMPLES = 5
_NAMED_BY = 100_000
_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Topic:
    """A topic.

    Attributes:
        number: from 0, the largest first.
        name: its first words.
        size: how many texts it has, repeated ones too.
        words: words and pairs of words that set it apart, the best first.
        examples: the texts nearest to its centre.
        near: the numbers of the topics whose centres are nearest.
    """

    number: int
    name: str
    size: int
    words: tuple[str, ...]
    examples: tuple[str, ...]
    near: tuple[int, ...]


@dataclass(frozen=True)
class Topics:
    """The topics of texts, as `topics` finds them.

    Attributes:
        path: the folder, with topics.jsonl, assignments.jsonl and map.html; None if none was written.
        topics: the largest first.
        of: (N,) the topic of each text, in the order of reading.
        fit: (N,) the cosine of each text with the centre of its topic.
    """

    path: Path | None
    topics: tuple[Topic, ...]
    of: np.ndarray
    fit: np.ndarray


@checked
def topics(
    texts: GivenTexts,
    *,
    model: SentenceTransformer | str | os.PathLike[str] = "bundled:minilm",
    out: str | os.PathLike[str] | None = None,
    number: int | None = None,
    resolution: float = RESOLUTION,
    smallest: int = SMALLEST,
    language: str = "English",
    corpus_options: CorpusOptions | None = None,
    engine: EngineName = "auto",
    precision: EnginePrecision = "fp32",
    seed: int = 1,
    quiet: bool = False,
    resume: Resume = "auto",
    overwrite: bool = False,
) -> Topics:
    """Find the topics of texts, and name them by their words.

    A text is a line of a list, a row of JSONL, CSV or Parquet, or a paragraph of prose. Topics are communities in the
    graph of each text's nearest neighbours, so that their number follows from the text; `number` asks for one
    instead (k-means). Each text belongs to the topic of the nearest centre. Vectors stay in the cache.

    Args:
        texts: files, folders, or patterns, as `index` takes them; in Python also texts: a list, a column, any iterable.
            Rows are mappings or a DataFrame.
        model: the encoder, or what `load` takes.
        out: the folder for topics.jsonl, assignments.jsonl and map.html.
        number: how many topics; by default as many as the text has communities.
        resolution: higher for more and smaller topics, lower for fewer and larger ones.
        smallest: the fewest texts of a topic; those of smaller ones go to the nearest other topic.
        language: the language of the text; common words are left out of names for English alone.
        corpus_options: how the files are read; `field` names the text of JSONL, CSV and Parquet rows.
        engine, precision: as in `load`.
        seed: fixes the sample, the communities and the map.
        quiet: show nothing on standard error.
        resume: True insists on a stopped run to resume.
        overwrite: make the folder again if it was made of other texts or with other options.

    Returns:
        The topics, and the one of each text.

    Raises:
        CorpusError: a file cannot be read.
        JobError: the folder holds other files, or topics of other texts or options.
        LikewiseError: an option is out of range, or there are too few texts.
    """
    if number is not None and number < 2:
        raise OptionError(f"number is {number}: give 2 or more topics, or leave it out")
    if not resolution > 0:
        raise OptionError(f"resolution is {resolution}: give a number above 0")
    if smallest < 1:
        raise OptionError(f"smallest is {smallest}: give 1 or more")
    checked_seed(seed)
    if out is not None:
        check_target(out)
    progress, given = Progress(quiet), given_texts(texts, corpus_options)
    least = max(10, number or 0)
    kept = keep_texts(given, model=model, engine=engine, precision=precision, progress=progress, at_least=least)
    settings = {"number": number, "resolution": resolution, "smallest": smallest, "language": language, "seed": seed}
    with orderly_stop(progress) as stop:
        if out is None:
            return _found(kept, settings, stop)
        plan = Plan("topics", settings, inputs={"text or model": kept.of_all})
        with open_job(out, plan, resume=resume, overwrite=overwrite) as job:
            if job.finished is not None:
                progress.tell(job.already)
                return _read(job.target)
            found = _found(kept, settings, stop)
            _write(job, kept, found, _spots(kept, found, seed, stop))
        return _read(job.target)


def _found(kept: KeptTexts, settings: dict[str, Any], stop: StopRequest) -> Topics:
    """Group a sample, give the other texts to the nearest topic, and name the topics."""
    tell, seed = stop.progress.tell, settings["seed"]
    drawn = np.random.default_rng(seed)
    sample = np.sort(drawn.permutation(kept.different)[:SAMPLE])  # (P,)
    vectors = np.asarray(kept.vectors[sample], dtype=np.float32)
    tell(f"grouping {counted(len(sample), 'text')}")
    if settings["number"]:
        groups = divided(vectors, settings["number"], seed)
    else:
        groups = communities(vectors, settings["resolution"], seed)
    stop.check("after the groups were found; the vectors are kept")
    sizes = np.bincount(groups)
    large = np.flatnonzero(sizes >= settings["smallest"]) if settings["number"] is None else np.arange(len(sizes))
    large = large if len(large) else np.arange(len(sizes))
    centres = centres_of(vectors, groups, len(sizes))[large]  # (T, D)
    number, fit = _assigned(kept.vectors, centres)
    every = number[kept.number]
    sizes = np.bincount(every, minlength=len(centres))
    order = np.lexsort((np.arange(len(sizes)), -sizes))
    order = order[sizes[order] > 0]
    place = np.full(len(sizes), -1)
    place[order] = np.arange(len(order))
    centres, number, sizes = centres[order], place[number], sizes[order]
    named_by = np.sort(drawn.permutation(kept.different)[:_NAMED_BY])
    words = topic_words([kept.text(i) for i in named_by.tolist()], number[named_by], len(order), settings["language"])
    found = Topics(
        None,
        tuple(
            Topic(i, name, int(sizes[i]), tuple(words[i]), tuple(_examples(kept, number, fit, i)), near)
            for i, (name, near) in enumerate(zip(named(words), _near(centres), strict=True))
        ),
        number[kept.number],
        fit[kept.number],
    )
    return found


def _spots(kept: KeptTexts, found: Topics, seed: int, stop: StopRequest) -> list[Spot]:
    """Lay a sample of the texts out on a plane."""
    shown = np.sort(np.random.default_rng(seed).permutation(kept.different)[:ON_MAP])
    stop.progress.tell(f"drawing a map of {counted(len(shown), 'text')}")
    layout = laid_out(np.asarray(kept.vectors[shown], dtype=np.float32), seed)
    stop.check("after the map was drawn; the vectors are kept")
    topic = found.of[kept.first[shown]].tolist()
    return [
        Spot(float(x), float(y), one, kept.text(number))
        for number, one, (x, y) in zip(shown.tolist(), topic, layout, strict=True)
    ]


def _assigned(vectors: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest centre (S,) of each vector, and the cosine (S,) with it."""
    number, fit = np.empty(len(vectors), dtype=np.int64), np.empty(len(vectors), dtype=np.float32)
    for begin in range(0, len(vectors), _AT_ONCE):
        cosines = np.asarray(vectors[begin : begin + _AT_ONCE], dtype=np.float32) @ centres.T
        number[begin : begin + _AT_ONCE], fit[begin : begin + _AT_ONCE] = cosines.argmax(axis=1), cosines.max(axis=1)
    return number, fit


def _examples(kept: KeptTexts, number: np.ndarray, fit: np.ndarray, topic: int) -> list[str]:
    members = np.flatnonzero(number == topic)
    best = members[np.lexsort((members, -fit[members]))][:_EXAMPLES]
    return [kept.text(one) for one in best.tolist()]


def _near(centres: np.ndarray, count: int = 3) -> list[tuple[int, ...]]:
    """Return the nearest other topics of each topic."""
    cosines = centres @ centres.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : min(count, len(centres) - 1)]
    return [tuple(row) for row in nearest.tolist()]


def _write(job: Job, kept: KeptTexts, found: Topics, spots: Sequence[Spot]) -> None:
    """Write the files of the folder, and finish the job."""
    with (job.result / _TOPICS).open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in found.topics)
    with (job.result / _ASSIGNMENTS).open("w", encoding="utf-8") as file:
        for position, (topic, fit) in enumerate(zip(found.of.tolist(), found.fit.tolist(), strict=True)):
            text = kept.text(int(kept.number[position]))
            row = {"text": text, **kept.place(position), "topic": topic, "cosine": round(fit, 4)}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    with written_whole(job.result / "map.html") as path:
        path.write_text(map_page([asdict(one) for one in found.topics], spots, len(kept)), encoding="utf-8")
    job.finish({"texts": len(kept), "topics": len(found.topics)})


_TOPICS, _ASSIGNMENTS = "topics.jsonl", "assignments.jsonl"


def _read(folder: Path) -> Topics:
    """Return the topics of a finished folder."""
    with (folder / _TOPICS).open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    with (folder / _ASSIGNMENTS).open(encoding="utf-8") as file:
        pairs = [(row["topic"], row["cosine"]) for row in map(json.loads, file)]
    of, fit = (np.array(column) for column in zip(*pairs, strict=True))
    return Topics(folder, tuple(Topic(**{**row, **_tuples(row)}) for row in rows), of, fit)


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
