"""`likewise choose`: the best base and search for the passages of your own text, without labels."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from likewise.adaptation import adapt as adapt_encoder
from likewise.corpus.clean_text import digest_of
from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.counts import CorpusReport
from likewise.corpus.inputs import GivenTexts, TextSource, given_texts
from likewise.corpus.sources import tell
from likewise.errors import LikewiseError, counted
from likewise.evaluation.character_bag import CharacterBag
from likewise.inference.handle import ModelHandle
from likewise.inference.load_model import base_name
from likewise.inference.model_export import weight_bytes
from likewise.runs.job import Job, Plan, Resume, check_target, open_job, read_record
from likewise.runs.options import checked
from likewise.runs.progress import Progress, orderly_stop, seconds_each, spoken
from likewise.runs.releases import versions
from likewise.runs.whole_files import Parts, Record, checksum
from likewise.searching.choose.choice_result import Choice, System, best_free, compared, decided, judgement
from likewise.searching.choose.given_queries import (
    ChoiceError,
    Judged,
    by_writer,
    of_passages,
    read_judged,
    read_written,
)
from likewise.searching.choose.held_out import CALLED, LEAST, Excerpt, HeldOut, sampled
from likewise.searching.choose.query_writer import ServerWriter, is_server
from likewise.searching.index.index_plan import WORDS, files_of
from likewise.searching.index.index_update import index
from likewise.searching.index.passages import Splitting
from likewise.searching.parts.pipeline import FREE_HYBRID, VECTORS_ALONE, WORDS_ALONE, Pipeline, pipeline_of
from likewise.searching.query.typed_query import known_language
from likewise.searching.search_index import Index, Mode
from likewise.training.training_result import base_fingerprint
from likewise.transformers_output import no_bar

_BM25 = "BM25"
_CHARACTERS = "a bag of characters"
_DEPTH = 10  # passages of a search that count
_PROBE = 32  # passages by which the time is foretold
_DISAGREEING = 10
_ADAPTED = (
    "{} is an adapted model. If it was adapted to this text, it has seen the answers to these queries, so that its "
    "scores are too high and it is not chosen: give its base, with --adapt"
)


@checked
@no_bar()
def choose(
    texts: GivenTexts,
    *,
    bases: Sequence[SentenceTransformer | str | os.PathLike[str]] = ("bundled:minilm",),
    adapt: bool = False,
    reranker: str | os.PathLike[str] = "",
    queries: str | os.PathLike[str] | Iterable[tuple[str, str]] | None = None,
    queries_model: str = "",
    queries_for: int = 200,
    judgements: str | os.PathLike[str] | None = None,
    queries_file: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    corpus_options: CorpusOptions | None = None,
    language: str = "English",
    passages: int = 3000,
    minutes: float = 15.0,
    seed: int = 1,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
) -> Choice:
    """Compare bases and searches on your own text, without labels, and recommend one.

    Titles, questions and sentences are removed from passages and used as queries, each of which has to retrieve its own
    passage among all passages. Words that occur only in a query and its passage are removed from the query. The
    following systems are compared: BM25; each base alone; each base with BM25 added (the hybrid baseline); and each
    base in the pipeline of `likewise search`, optionally with a cross-encoder. The score is nDCG@10, with a confidence
    interval of the gain over the best baseline. The pipeline of the first base is recommended, unless the gain of
    another system is statistically significant.

    Args:
        texts: Paths to files, folders, or patterns, or in-memory texts or rows, as in `likewise.index`.
        bases: Encoders, as in `likewise.load`.
        adapt: Whether to also adapt each base to the text, as `likewise adapt` does, without the removed queries.
        reranker: Path or hub name of a cross-encoder of sentence-transformers, which reorders the first passages of
            each pipeline in further rows.
        queries: Path to further queries: JSONL with the fields query and passage, which is the id of the passage (the
            field _id of its row, or its file and line, notes.md:12). Or the address of a server with an
            OpenAI-compatible API that writes the queries, such as http://localhost:11434/v1, to which the passages are
            then sent. A written query is used if one of the bases, with BM25 added, ranks its passage among the first
            10, and if it does not copy the passage. In Python also pairs of a query and an id; the id of a text in a
            list is its position from 0.
        queries_model: Name of the model on that server; optional if the server has only one.
        queries_for: Maximum number of passages for which queries are written.
        judgements: Path to your own judgements: one line each with the id of the query, the id of the document and a
            grade, separated by tabs. The id of a document is the field _id of its row, or its file.
        queries_file: Path to the judged queries: JSONL with the fields _id and text.
        out: Path to the folder for the page and the indexes; without it, nothing is saved.
        corpus_options: Options of reading; `field` names the text of JSONL, CSV and Parquet rows.
        language: Language of the text, for stemming.
        passages: Maximum number of passages that are searched; passages of a longer text are sampled.
        minutes: Approximate maximum number of minutes of each adaptation.
        seed: Random seed of the sampled queries and passages.
        resume, overwrite, quiet: See `likewise.index`.

    Returns:
        All systems with their scores, the recommended system, and the reason.

    Raises:
        CorpusError: If a file cannot be read, or no file contains text.
        ChoiceError: If the text provides too few queries, or only one of judgments and their queries is given.
        Stopped: If the comparison is interrupted; the same call resumes it.

    Example:
        >>> import likewise
        >>> halls = "north hall", "boiler room", "old yard", "second cellar"
        >>> texts = [f"Pump {n} stands in the {halls[n % 4]}. Its valve was mended in {1950 + n}." for n in range(240)]
        >>> choice = likewise.choose(texts, bases=["bundled:minilm"], quiet=True)
        >>> choice.chosen.name
        'bundled:minilm, pipeline'
    """
    progress = Progress(quiet)
    names = _checked_names(bases, minutes, passages)
    with ExitStack() as stack:
        language = known_language(language)
        target = Path(out or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "choice")
        check_target(target)
        judged = read_judged(judgements, queries_file)
        source = given_texts(texts, corpus_options)
        named, listings = files_of(source)
        files = [*named, *(path for listing in listings for path in listing.files)]
        splitting = Splitting(WORDS, source.options)
        report = CorpusReport()
        excerpts, total = sampled(files, splitting, passages, seed, report)
        tell(report, progress)
        encoders = {name: ModelHandle(name) for name in names}
        if is_server(queries):
            writer = ServerWriter(str(queries), queries_model)
            written = by_writer(excerpts, writer, queries_for, list(encoders.values()), language, seed, progress)
        else:
            written = of_passages(read_written(queries), excerpts, progress)
        split = HeldOut.of(excerpts, seed, language=language.lower(), written=written)
        _check_enough(split, excerpts)
        options: Record = {"bases": names, "adapt": adapt, "language": language, "passages": passages, "seed": seed}
        options |= {"minutes": minutes} if adapt else {}
        options |= ({"reranker": os.fspath(reranker)} if reranker else {}) | {"default": Pipeline().to_dict()}
        inputs = _inputs(excerpts, split, encoders, reranker, judgements, queries_file)
        plan = Plan("choose", options, inputs, versions=versions("searching/choose"))
        job = stack.enter_context(open_job(target, plan, resume=resume, overwrite=overwrite))
        if job.finished is not None:
            progress.tell(job.already)
            return Choice.from_dict(job.finished["choice"], target)
        stack.enter_context(orderly_stop(progress))
        progress.tell(
            f"{len(excerpts):,} of {counted(total, 'passage')} are searched by {len(split.queries):,} queries that "
            f"were removed from them: {', '.join(counted(count, CALLED[kind]) for kind, count in split.kinds.items())}"
        )
        run = _Run(job, Parts(job.work / "scores"), split, judged, source, language, os.fspath(reranker), progress)
        run.foretell(encoders, adapt)
        for name, encoder in encoders.items():
            if learnt := read_record(encoder.name or name).get("recipe") == "adapt":
                progress.tell(_ADAPTED.format(name))
            run.base(f"{name} (adapted)" if learnt else name, name, encoder, free=not learnt, learnt=learnt)
        if adapt:
            run.adapted(names, target, minutes)
        run.characters()
        choice = replace(run.choice(), folder=target if out else None)
        choice.save(job.result)
        split.save(job.result / "queries")
        job.finish({"choice": choice.to_dict()})
        return choice


def _checked_names(
    bases: Sequence[SentenceTransformer | str | os.PathLike[str]], minutes: float, passages: int
) -> list[str]:
    """Return the names of the bases; a ChoiceError names an argument that is out of range."""
    names = [base_name(base) for base in bases]
    if not names or len(set(names)) < len(names):
        raise ChoiceError("give one or more different bases, for example --base bundled:minilm")
    if minutes <= 0:
        raise ChoiceError(f"minutes must be above 0, not {minutes:g}")
    if passages < 1:
        raise ChoiceError(f"passages must be 1 or more, not {passages}")
    return names


def _check_enough(split: HeldOut, excerpts: Sequence[Excerpt]) -> None:
    if len(split.queries) < LEAST:
        raise ChoiceError(
            f"{len(split.queries)} queries can be removed from {counted(len(excerpts), 'passage')}, but {LEAST} are "
            f"needed: give more text, passages of several sentences or titles, or --queries"
        )


def _inputs(
    excerpts: Sequence[Excerpt],
    split: HeldOut,
    encoders: Mapping[str, ModelHandle],
    reranker: str | os.PathLike[str],
    *files: str | os.PathLike[str] | None,
) -> Record:
    """Return what a comparison is made of, by the digests of its contents."""
    inputs: Record = {"text": digest_of("\n".join(f"{item.id}\t{item.searched}" for item in excerpts)).hex()}
    inputs |= {name: encoder.facts.fingerprint for name, encoder in encoders.items()}
    inputs |= {"queries": digest_of(repr([(query.text, sorted(query.own)) for query in split.queries])).hex()}
    inputs |= {"reranker": str(base_fingerprint(os.fspath(reranker)))} if reranker else {}
    return inputs | {os.fspath(path): checksum(Path(path)) for path in files if path}


@dataclass
class _Run:
    """The measurements of one call, kept in its job as they come in."""

    job: Job
    parts: Parts
    split: HeldOut
    judged: Judged | None
    given: TextSource
    language: str
    reranker: str
    progress: Progress
    systems: list[System] = field(default_factory=list)
    pipelines: list[int] = field(default_factory=list)  # the places of what `likewise search` does by default
    each: list[np.ndarray] = field(default_factory=list)
    by_judges: list[np.ndarray] = field(default_factory=list)
    rankings: list[list[list[str]]] = field(default_factory=list)

    def foretell(self, encoders: Mapping[str, ModelHandle], adapt: bool) -> None:
        """Report an estimate of the time, measured on a few passages."""
        begun = [name for name in encoders if not (self.job.result / "indexes" / _folder(name)).exists()]
        if not begun or self.progress.quiet:
            return
        probe, seconds = [passage.searched for passage in self.split.passages[:_PROBE]], 0.0
        for name in begun:
            encoder = encoders[name].opened("document", probe, len(self.split.passages))
            seconds += seconds_each(encoder, probe) * (len(self.split.passages) + 3 * len(self.split.queries))
        more = ", and --minutes for each adaptation" if adapt else ""
        texts = counted(len(self.split.passages) * len(begun), "passage")
        self.progress.tell(f"{texts} to encode: {spoken(seconds)}{more}")

    def base(self, label: str, model: str, encoder: ModelHandle, free: bool = True, learnt: bool = False) -> None:
        """Index the text by a base, and measure every way to search with it."""
        folder, whole = (self.job.result / place / _folder(label) for place in ("indexes", "whole"))
        path, text = folder / "index", CorpusOptions(field="text")
        how: Record = {"model": encoder.name, "metadata": ["_id"], "language": self.language, "precision": "fp32"}
        how |= {"quiet": self.progress.quiet}
        index(self.split.save(folder / "text"), out=path, corpus_options=text, **how)
        opened, judged_by = Index(path, encoder.name), None
        if self.judged is not None:
            index(self.given.files, out=whole, corpus_options=self.given.options, vectors_from=path, **how)
            judged_by = Index(whole, encoder.name)
            if not self.by_judges:
                self.judged.check(judged_by, self.progress)
        if (noted := f"facts of {label}") not in self.job.notes:  # later the record tells of an update of nothing
            record = read_record(path)
            pace = record["passages"] / max(record["seconds"], 1e-3)
            sizes = {"index_bytes": _bytes(path), "model_bytes": weight_bytes(encoder.name or "")}
            self.job.note(**{noted: {"passages_a_second": pace, **sizes}})
        facts: Record = self.job.notes[noted]
        ways: list[tuple[str, Mode, Pipeline, bool]] = []
        if not self.systems:
            ways.append((_BM25, "words", WORDS_ALONE, True))
        ways += [
            (f"{label}, alone", "vectors", VECTORS_ALONE, free),
            (f"{label} + BM25", "hybrid", FREE_HYBRID, free),
            (f"{label}, pipeline", "hybrid", opened.pipeline, False),
        ]
        self.pipelines.append(len(self.systems) + len(ways) - 1)
        if self.reranker:
            with_it = pipeline_of({"reranker": self.reranker}, opened.pipeline)
            ways.append((f"{label}, pipeline, reranker", "hybrid", with_it, False))
        for name, mode, pipeline, is_free in ways:
            if f"{_folder(name)}.json" not in self.parts:
                self._measure(name, mode, pipeline, opened, judged_by)
            saved = json.loads(self.parts.path(f"{_folder(name)}.json").read_text(encoding="utf-8"))
            score = float(np.mean(saved["each"]))
            known: Record = (
                {"model": "", "learnt": False} if name == _BM25 else {"model": model, "learnt": learnt} | facts
            )
            queries = zip(saved["each"], self.split.queries, strict=True)
            of_written = [each for each, query in queries if query.kind == "written"]
            known |= {"milliseconds": saved["milliseconds"]}
            known |= {"written": float(np.mean(of_written))} if of_written else {}
            self.systems.append(System(name, mode=mode, pipeline=pipeline, free=is_free, score=score, **known))
            self.each.append(np.array(saved["each"]))
            self.rankings.append(saved["found"])
            if saved["judged"]:
                self.by_judges.append(np.array(saved["judged"]))
            self.progress.tell(f"{name}: {score:.2f}")

    def adapted(self, names: Sequence[str], target: Path, minutes: float) -> None:
        """Adapt each base to the text without the queries, and measure it."""
        # What was taken out of the passages is no text to adapt to: it holds the answers.
        rows = self.split.save(self.job.work / "learnt")
        how: Record = {"minutes": minutes, "corpus_options": CorpusOptions(field="text"), "quiet": self.progress.quiet}
        for name in names:
            model = self.job.result / "adapted" / _folder(name)
            try:
                result = adapt_encoder(rows, base=name, out=model, **how)
            except LikewiseError as reason:  # too little time or text: what has been measured is worth having
                self.progress.tell(f"{name} is not adapted: {reason}")
                continue
            if result.chosen == "base":
                self.progress.tell(f"{name}, adapted, is {name}: {result.reason}")
            else:
                final = target / "adapted" / _folder(name)
                self.base(f"{name}, adapted", str(final), ModelHandle(model), free=False)

    def characters(self) -> None:
        """Measure a bag of characters, the last of all: a row to compare with, which no search offers."""
        ids, texts = zip(*((passage.id, passage.searched) for passage in self.split.passages), strict=True)
        queries = self.split.queries
        cosines = CharacterBag.fitted(texts).rows(texts, [query.text for query in queries])
        each, results = [], []
        for place, query in enumerate(queries):
            first = np.argsort(-cosines(slice(place, place + 1))[0], kind="stable")[:_DEPTH]
            results.append([ids[i] for i in first])
            each.append(discounted(next((i for i, name in enumerate(results[-1]) if name in query.own), None)))
        bag = System(_CHARACTERS, "", "words", WORDS_ALONE, free=False, score=float(np.mean(each)), only_measured=True)
        self.systems.append(bag)
        self.each.append(np.array(each))
        self.rankings.append(results)
        self.progress.tell(f"{bag.name}: {bag.score:.2f}")

    def _measure(self, name: str, mode: Mode, pipeline: Pipeline, opened: Index, judged_by: Index | None) -> None:
        """Search with every query, and keep what was found."""
        each, results, seconds = [], [], []
        queries = self.split.queries
        with orderly_stop(self.progress) as stop, self.progress.bar(name, len(queries)) as bar:
            for query in queries:
                begun = time.perf_counter()
                hits = opened.search(query.text, _DEPTH, mode=mode, mark=False, pipeline=pipeline)
                seconds.append(time.perf_counter() - begun)
                ids = list(dict.fromkeys(hit.metadata["_id"] for hit in hits))
                each.append(round(discounted(next((i for i, id in enumerate(ids) if id in query.own), None)), 4))
                results.append(ids)
                bar.advance()
                stop.check(f"after {bar.done:,} of {len(queries):,} queries")
        saved = {
            "each": each,
            "found": results,
            "milliseconds": 1000 * float(np.median(seconds)),
            "judged": self.judged.scores(judged_by, mode, pipeline) if self.judged and judged_by else [],
        }
        with self.parts.new(f"{_folder(name)}.json") as path:
            path.write_text(json.dumps(saved), encoding="utf-8")

    def choice(self) -> Choice:
        """Decide on the system to use, and say why."""
        systems = compared(self.systems, self.each, self.by_judges)
        usual = next((i for i in self.pipelines if not systems[i].learnt), self.pipelines[0])  # that of the first base
        chosen, reason = decided(systems, self.each, usual)
        said = judgement(systems, chosen, len(self.judged.queries) if self.judged else 0)
        facts = {
            "texts": self.given.names,
            "passages": len(self.split.passages),
            "queries": self.split.kinds,
            "free": systems[best_free(systems)].name,
            "disagreements": self._disagreements(),
        }
        return Choice(systems, chosen, reason, said, facts)

    def _disagreements(self) -> list[Record]:
        """Return the queries whose scores differ most between systems, and the first passage of each system."""
        scores = np.stack(self.each, axis=1)  # (Q, systems)
        order = np.lexsort((np.arange(len(scores)), -scores.std(axis=1)))[:_DISAGREEING]
        passages = {passage.id: passage for passage in self.split.passages}
        examples = []
        for i in order.tolist():
            query = self.split.queries[i]
            firsts = []
            for system, ids in zip(self.systems, self.rankings, strict=True):
                name = ids[i][0] if ids[i] else ""
                rank = next((place for place, hit in enumerate(ids[i], start=1) if hit in query.own), None)
                text = passages[name].searched[:300] if name else ""
                firsts.append({"system": system.name, "id": name, "text": text, "rank": rank})
            own = passages[min(query.own)].searched[:300]
            examples.append({"query": query.text, "kind": query.kind, "own": own, "first": firsts})
        return examples


def discounted(rank: int | None) -> float:
    """Return nDCG@10 times 100 if one passage is relevant and has a rank from 0; None means that it is not retrieved.

    >>> discounted(0), round(discounted(2), 1), discounted(None)
    (100.0, 50.0, 0.0)
    """
    return 0.0 if rank is None or rank >= _DEPTH else float(100 / np.log2(rank + 2))


def _folder(name: str) -> str:
    """Return a name for the files of a system."""
    plain = "".join(char if char.isalnum() else "-" for char in name).strip("-")[-60:]
    return f"{plain}-{digest_of(name).hex()[:6]}"


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
