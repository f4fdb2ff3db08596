"""`likewise topics`: the topics of texts, with names by their words, sizes, examples and a map.

Letters of the shapes: N texts, S different texts, P texts that are grouped or drawn, T topics, D embedding.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.inputs import GivenTexts, given_texts
from likewise.corpus.languages import language_of
from likewise.errors import counted, require_extra
from likewise.evaluation.bm25 import MARKS
from likewise.inference.cores import torch_threads
from likewise.inference.engines.engine import EngineName, EnginePrecision
from likewise.runs.job import Job, Plan, Resume, check_target, open_job
from likewise.runs.options import OptionError, checked, checked_seed
from likewise.runs.pages import page_of
from likewise.runs.progress import Progress, StopRequest, orderly_stop
from likewise.runs.whole_files import Record, Values, write_text
from likewise.searching.duplicates.encoded_texts import KeptTexts, TextError, keep_texts

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_FEWEST = 20
"""Texts below which UMAP has no neighbourhoods to lay out."""
_SHOWN = 160
"""Characters of a text on the page."""
SAMPLE = 20_000
"""Texts that are sorted, drawn at random; every other one goes to the topic of the nearest centre."""
_DIFFERENT = 3
"""Different texts, of fewer of which there are no groups."""
FEW = 100
"""Texts below which there is too little for UMAP and HDBSCAN."""
SMALLEST = 10
ON_MAP = 5_000
"""Texts on the map, drawn at random."""
_EXAMPLES = 5
_IN_NAME = 3
"""Words of a name."""
_WITHOUT_BLANKS = ("chinese", "japanese", "thai", "lao", "khmer", "burmese")
_AT_ONCE = 1 << 14
_TOPICS, _ASSIGNMENTS = "topics.jsonl", "assignments.jsonl"


def laid_out(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Return a place (P, 2) for each vector, from 0 to 1, where near vectors are near (UMAP, by cosines).

    Args:
        vectors: (P, D) of length 1.
        seed: fixes the layout.
    """
    from sklearn.decomposition import PCA
    from umap import UMAP

    few = len(vectors) < _FEWEST
    reducer = PCA(2, random_state=seed) if few else UMAP(min_dist=0.1, metric="cosine", random_state=seed)
    places = reducer.fit_transform(vectors)
    low, high = places.min(axis=0), places.max(axis=0)
    scaled: np.ndarray = (places - low) / np.maximum(high - low, 1e-12)
    return scaled


def map_page(topics: Sequence[Values], spots: Sequence[tuple[float, float, int, str]], texts: int) -> str:
    """Return the page: the map with the names of the topics, and the topics in a list. It loads nothing.

    Args:
        topics: the facts of each, the largest first.
        spots: the texts on the map: the place of each, from 0 to 1, its topic, and the text.
        texts: how many there are in all.
    """
    places: dict[int, list[tuple[float, float]]] = {}
    for x, y, topic, _ in spots:
        places.setdefault(topic, []).append((x, y))
    labels = [[number, *np.median(where, axis=0).round(4).tolist()] for number, where in sorted(places.items())]
    rows = [[round(x, 4), round(y, 4), topic, text[:_SHOWN]] for x, y, topic, text in spots]
    data = {"spots": rows, "labels": labels, "names": [topic["name"] for topic in topics]}
    # "<" would end the script where a text holds "</script>".
    shown = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    return page_of(
        "likewise.searching.duplicates", "map.html.j2", topics=topics, shown=len(spots), texts=texts, data=shown
    )


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
        of: (N,) the topic of each text, in the order of reading; -1 for an empty one.
        fit: (N,) the cosine of each text with the centre of its topic; NaN for an empty one.
        skipped: sentences on what was left out, or read in another encoding.
        is_partial: files or rows that should have been read could not be.
    """

    path: Path | None
    topics: tuple[Topic, ...]
    of: np.ndarray
    fit: np.ndarray
    skipped: tuple[str, ...] = ()
    is_partial: bool = False


@checked
def topics(
    texts: GivenTexts,
    *,
    model: SentenceTransformer | str | os.PathLike[str] = "bundled:minilm",
    out: str | os.PathLike[str] | None = None,
    number: int | None = None,
    smallest: int = SMALLEST,
    language: str | None = None,
    corpus_options: CorpusOptions | None = None,
    engine: EngineName = "auto",
    precision: EnginePrecision = "fp32",
    seed: int = 1,
    quiet: bool = False,
    resume: Resume = "auto",
    overwrite: bool = False,
) -> Topics:
    """Find the topics of texts, and name them by their words.

    A text is a line of a list, a row of JSONL, CSV or Parquet, or a paragraph of prose. BERTopic (Grootendorst 2022)
    sorts them, or 20,000 drawn at random, by their vectors: UMAP and HDBSCAN find the topics, class-based tf-idf their
    words. Texts that HDBSCAN leaves out, and all others, go to the topic whose mean vector is nearest. Fewer than 100
    texts are grouped by average linkage instead. Vectors stay in the cache.

    Args:
        texts: files, folders, or patterns, as `index` takes them; in Python also texts: a list, a column, any iterable.
            Rows are mappings or a DataFrame.
        model: the encoder, or what `load` takes.
        out: the folder for topics.jsonl, assignments.jsonl and map.html.
        number: the number of topics (k-means in place of HDBSCAN); by default as many as the text has.
        smallest: the fewest texts of a topic, in the sample that is sorted.
        language: the language of the text, whose stop words are left out of names; found out by default.
        corpus_options: how the files are read; `field` names the text of JSONL, CSV and Parquet rows.
        engine, precision: as in `load`.
        seed: fixes the sample, the topics and the map.
        quiet: show nothing on standard error.
        resume: True insists on a stopped run to resume.
        overwrite: make the folder again if it was made of other texts or with other options.

    Returns:
        The topics, and the one of each text.

    Raises:
        CorpusError: a file cannot be read.
        JobError: the folder holds other files, or topics of other texts or options.
        LikewiseError: an option is out of range, or there are too few texts, or too few that differ.
    """
    if number is not None and number < 2:
        raise OptionError(f"number is {number}: give 2 or more topics, or leave it out")
    if smallest < 2:
        raise OptionError(f"smallest is {smallest}: give 2 or more")
    require_extra("topics", "Topics", "bertopic")
    checked_seed(seed)
    if out is not None:
        check_target(out)
    progress, source = Progress(quiet), given_texts(texts, corpus_options)
    least = max(10, number or 0)
    kept = keep_texts(source, model=model, engine=engine, precision=precision, progress=progress, at_least=least)
    if kept.different < _DIFFERENT:
        what = counted(kept.different, "different text")
        raise TextError(f"there is {what} among {kept.read:,}, and topics need {_DIFFERENT} or more")
    if number is not None and kept.different < number:
        there = counted(kept.different, "different text")
        raise TextError(f"number is {number}, and there are {there}: ask for fewer topics")
    if language is not None:
        from stop_words import AVAILABLE_LANGUAGES

        known = sorted({*AVAILABLE_LANGUAGES, *_WITHOUT_BLANKS})
        if language.lower() not in known:
            raise TextError(f"language is {language!r}: give one of {', '.join(known)}")
    settings = {"number": number, "smallest": smallest, "language": language, "seed": seed}
    with torch_threads(), orderly_stop(progress) as stop:  # UMAP's Numba sets those of the process
        if out is None:
            return _sorted(kept, settings, stop)
        plan = Plan("topics", settings, inputs={"text or model": kept.of_all})
        with open_job(out, plan, resume=resume, overwrite=overwrite) as job:
            if job.finished is not None:
                progress.tell(job.already)
                return _read(job.target, kept)
            result = _sorted(kept, settings, stop)
            _write(job, kept, result, _spots(kept, result, seed, stop))
        return _read(job.target, kept)


def _sorted(kept: KeptTexts, settings: Record, stop: StopRequest) -> Topics:
    """Sort a sample by BERTopic, give the other texts to the nearest topic, and name the topics."""
    tell, seed = stop.progress.tell, settings["seed"]
    drawn = np.random.default_rng(seed)
    sample = np.sort(drawn.permutation(kept.different)[:SAMPLE])  # (P,)
    vectors = np.asarray(kept.vectors[sample], dtype=np.float32)
    texts = [kept.text(number) for number in sample.tolist()]
    tell(f"sorting {counted(len(sample), 'text')} by BERTopic")
    if len(sample) < FEW:
        tell(f"{counted(len(sample), 'text')} are few: topics of fewer than {FEW} are a rough guide")
    model = _bertopic(texts, vectors, settings)
    groups = np.array(model.fit_transform(texts, vectors)[0])
    stop.check("after the texts were sorted; the vectors are kept")
    if (groups < 0).all():
        groups[:] = 0  # nothing stands out
    number = np.unique(groups[groups >= 0], return_inverse=True)[1]
    centres = centres_of(vectors[groups >= 0], number)  # (T, D)
    nearest, fit = _assigned(kept.vectors, centres)
    nearest[sample[groups >= 0]] = number
    every = nearest[kept.number]
    sizes = np.bincount(every, minlength=len(centres))
    order = np.lexsort((np.arange(len(sizes)), -sizes))
    place = np.argsort(order)
    centres, nearest, sizes = centres[order], place[nearest], sizes[order]
    model.update_topics(texts, topics=nearest[sample].tolist(), vectorizer_model=_vectorizer(texts, settings))
    found = [[word for word, _ in model.get_topic(topic) or [] if word] for topic in range(len(order))]
    words = [[word for word in some if len({*word.split()}) == len(word.split())] for some in found]  # no 'late late'
    of, fits = np.full(kept.read, -1), np.full(kept.read, np.nan, dtype=np.float32)
    of[kept.position], fits[kept.position] = nearest[kept.number], fit[kept.number]
    return Topics(
        None,
        tuple(
            Topic(i, name, int(sizes[i]), tuple(words[i]), tuple(_examples(kept, nearest, fit, i)), near)
            for i, (name, near) in enumerate(zip(named(words), _near(centres), strict=True))
        ),
        of,
        fits,
        tuple(kept.report.told),
        kept.report.is_partial,
    )


def _bertopic(texts: Sequence[str], vectors: np.ndarray, settings: Record) -> Any:
    """Return an untrained BERTopic for P texts with their vectors (P, D): of few texts, with fewer parts."""
    from bertopic import BERTopic
    from bertopic.dimensionality import BaseDimensionalityReduction
    from hdbscan import HDBSCAN
    from sklearn.cluster import AgglomerativeClustering, KMeans
    from umap import UMAP

    number, smallest = settings["number"], settings["smallest"]
    groups: AgglomerativeClustering | HDBSCAN
    if len(texts) < FEW:
        count = number or _best_number(vectors)
        groups = AgglomerativeClustering(min(count, len(texts)), metric="cosine", linkage="average")
        parts: Record = {"umap_model": BaseDimensionalityReduction(), "hdbscan_model": groups}
    else:
        reduced = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=settings["seed"])
        groups = KMeans(number, random_state=settings["seed"]) if number else HDBSCAN(min_cluster_size=smallest)
        parts = {"umap_model": reduced, "hdbscan_model": groups}
    # 'multilingual' keeps letters that are not English where BERTopic cleans the texts for its words.
    made = BERTopic(language="multilingual", vectorizer_model=_vectorizer(texts, settings), verbose=False, **parts)
    # It warns of what is done here on purpose. Its constructor sets the level anew.
    logging.getLogger("BERTopic").setLevel(logging.ERROR)
    return made


def _best_number(vectors: np.ndarray) -> int:
    """Return the number of groups of few vectors (P, D) that are set apart best, by their silhouette."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import silhouette_score

    def silhouette(count: int) -> float:
        groups = AgglomerativeClustering(count, metric="cosine", linkage="average").fit_predict(vectors)
        return float(silhouette_score(vectors, groups, metric="cosine"))

    return max(range(2, max(3, len(vectors) // 2 + 1)), key=silhouette)


def _pieces(text: str) -> list[str]:
    """Return the pieces of two and three letters of a text that is written without blanks.

    >>> _pieces("水泵漏, 灯")
    ['水泵', '泵漏', '水泵漏']
    """
    runs = re.findall(rf"[^\W\d_{MARKS}][\w{MARKS}]*", text)
    return [run[i : i + size] for run in runs for size in (2, 3) for i in range(len(run) - size + 1)]


def _vectorizer(texts: Sequence[str], settings: Record) -> Any:
    """Return the counter of the words that name topics, without the stop words of the language."""
    from sklearn.feature_extraction.text import CountVectorizer
    from stop_words import AVAILABLE_LANGUAGES, get_stop_words

    language = (settings["language"] or language_of(texts)).lower()
    if language in _WITHOUT_BLANKS:
        return CountVectorizer(analyzer=_pieces)
    known = get_stop_words(language) if language in AVAILABLE_LANGUAGES else []
    pattern = rf"[^\W\d_][\w{MARKS}'’-]*[\w{MARKS}]"
    counter = CountVectorizer(token_pattern=pattern, ngram_range=(1, 2))
    words = {part for word in known for part in counter.build_tokenizer()(word.lower())} | set(known)
    if set().union(*map(counter.build_tokenizer(), (text.lower() for text in texts))) <= words:
        return CountVectorizer(token_pattern=r"(?u)\S+")  # there are stop words and signs alone
    return counter.set_params(stop_words=sorted(words) or None)


def named(words: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each topic of its first words, with more of them where two names would be the same.

    >>> named([["card", "arrive", "track", "post"], ["card", "arrive", "track", "lost"], ["pin"], []])
    ['card, arrive, track, post', 'card, arrive, track, lost', 'pin', '(no words)']
    """
    names = [", ".join(some[:_IN_NAME]) or "(no words)" for some in words]
    return [
        ", ".join(some[: _IN_NAME + 1]) if names.count(name) > 1 and some else name
        for name, some in zip(names, words, strict=True)
    ]


def centres_of(vectors: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the mean vectors (T, D) of groups (P,) from 0 to T - 1, scaled to length 1."""
    sums = np.zeros((int(groups.max()) + 1, vectors.shape[1]), dtype=np.float64)
    np.add.at(sums, groups, vectors)
    centres: np.ndarray = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return centres.astype(np.float32)


def _spots(kept: KeptTexts, result: Topics, seed: int, stop: StopRequest) -> list[tuple[float, float, int, str]]:
    """Lay a sample of the texts out on a plane."""
    shown = np.sort(np.random.default_rng(seed).permutation(kept.different)[:ON_MAP])
    stop.progress.tell(f"drawing a map of {counted(len(shown), 'text')}")
    layout = laid_out(np.asarray(kept.vectors[shown], dtype=np.float32), seed)
    stop.check("after the map was drawn; the vectors are kept")
    topic = result.of[kept.position[kept.first[shown]]].tolist()
    return [
        (float(x), float(y), topic_number, kept.text(number))
        for number, topic_number, (x, y) in zip(shown.tolist(), topic, layout, strict=True)
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
    return [kept.text(text) for text in best.tolist()]


def _near(centres: np.ndarray, count: int = 3) -> list[tuple[int, ...]]:
    """Return the nearest other topics of each topic."""
    cosines = centres @ centres.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : min(count, len(centres) - 1)]
    return [tuple(row) for row in nearest.tolist()]


def _write(job: Job, kept: KeptTexts, result: Topics, spots: Sequence[tuple[float, float, int, str]]) -> None:
    """Write the files of the folder, and finish the job."""
    with (job.result / _TOPICS).open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(topic), ensure_ascii=False) + "\n" for topic in result.topics)
    with (job.result / _ASSIGNMENTS).open("w", encoding="utf-8") as file:
        for place, position in enumerate(kept.position.tolist()):
            row = {**kept.row(place), "position": position}
            row |= {"topic": int(result.of[position]), "cosine": round(float(result.fit[position]), 4)}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    write_text(job.result / "map.html", map_page([asdict(topic) for topic in result.topics], spots, len(kept)))
    job.finish({"texts": kept.read, "topics": len(result.topics)})


def _read(folder: Path, kept: KeptTexts) -> Topics:
    """Return the topics of a finished folder."""
    with (folder / _TOPICS).open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    of, fit = np.full(kept.read, -1), np.full(kept.read, np.nan, dtype=np.float32)
    with (folder / _ASSIGNMENTS).open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            of[row["position"]], fit[row["position"]] = row["topic"], row["cosine"]
    lists = ("words", "examples", "near")
    found = tuple(Topic(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in rows)
    return Topics(folder, found, of, fit, tuple(kept.report.told), kept.report.is_partial)
