"""The record of an index, `likewise.json`, for searches and for the next update."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from likewise.inference.engines.engine import EnginePrecision
from likewise.inference.handle import Facts
from likewise.runs.job import read_record, work_of
from likewise.runs.options import OptionError
from likewise.runs.results import JobError, read_working_file
from likewise.runs.whole_files import Record, Values
from likewise.searching.index.conditions import SearchError
from likewise.searching.index.table import OWN_FOLDER
from likewise.searching.parts.pipeline import Pipeline

FORMAT = 7
"""The format of the files of an index: an index of another one is to be rebuilt."""
_WAIT = 2.0
_QUERY = frozenset(["prompt", "tokenizer", "truncate_dim"])


@dataclass(frozen=True)
class IndexRecord:
    """The record of a finished index.

    Attributes:
        table, version: Name and version of its table.
        geometry: Name of the folder of its geometry.
        pipeline: Options of its search.
        model: Name of the model that made it; None if it has none.
        query: Facts by which queries are encoded.
        left: Folders of former states, which a reader may still use, each with the time since which none is needed.
        ids: Kind of the ids: "int", "text", or "" if there are none.
        partial: Files that could be read in part, each with the reasons.
        next_id: Id of the next text that has none.
        unweighed: Number of passages, texts and files that have changed since tokens were weighed.
        precision, engine: Precision and engine of the passages' vectors.
        passages: Number of passages.
        plan: Plan of the job that made it, which writes that itself.
    """

    table: str
    version: int
    geometry: str
    pipeline: Record
    model: str | None = None
    query: Record = field(default_factory=dict)
    left: dict[str, float] = field(default_factory=dict)
    ids: str = ""
    partial: dict[str, list[str]] = field(default_factory=dict)
    next_id: int = 0
    unweighed: int = 0
    precision: EnginePrecision = "fp32"
    engine: str = ""
    passages: int = 0
    plan: Record = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path, values: Values) -> IndexRecord:
        """Return the record of an index by the values of its file.

        Raises:
            SearchError: If it was made by an older or a later version, or a value is not one that `index` writes; the
                message names the index and the cure.
        """
        _check_version(path, values["plan"].get("format"))
        _check_options(path, values)
        query = values.get("query") or {}
        fits = {
            "table": OWN_FOLDER.fullmatch(f"{values.get('table')}.lance"),
            "geometry": OWN_FOLDER.fullmatch(str(values.get("geometry"))),
            "version": isinstance(values.get("version"), int),
            "pipeline": _is_pipeline(values.get("pipeline")),
            "query": isinstance(query, dict) and query.keys() <= _QUERY,
            "ids": values.get("ids", "") in ("", "int", "text"),
            "plan": isinstance(values["plan"].get("inputs"), dict),
        }
        if wrong := [name for name, is_right in fits.items() if not is_right]:
            raise SearchError(
                f"{path / 'likewise.json'} is damaged (its {wrong[0]!r}): rebuild it with `likewise index ... "
                f"--overwrite`"
            )
        known: Any = {name: values[name] for name in cls.__dataclass_fields__ if values.get(name) is not None}
        return cls(**known)

    def to_dict(self) -> Record:
        """Return the values that an update writes."""
        return {name: value for name, value in asdict(self).items() if name != "plan"}

    @property
    def made_with(self) -> str:
        """The fingerprint of the model that made the index."""
        return str(self.plan["inputs"]["model"])

    @property
    def options(self) -> Record:
        """the settings with which the index was built."""
        return dict(self.plan.get("options", {}))

    @property
    def language(self) -> str:
        """The language of the stems."""
        return str(self.options.get("language", "English"))

    @property
    def steps(self) -> Pipeline:
        """The parts of the search and their weights."""
        return Pipeline(**self.pipeline)


def record_before(target: Path) -> IndexRecord | None:
    """Return the record of the index that an update changes; None if there is none, or it is of another job."""
    values = read_record(target)
    return IndexRecord.of(target, values) if values.get("plan", {}).get("job") == "index" else None


def finished_record(path: Path) -> IndexRecord:
    """Return the record of an index, which is briefly missing while it is replaced.

    Raises:
        SearchError: If the index does not exist, or is not finished.
    """
    end = time.monotonic() + _WAIT
    while not (values := read_record(path)) and work_of(path).is_dir() and time.monotonic() < end:
        time.sleep(0.05)
    if values.get("plan", {}).get("job") == "index":
        return IndexRecord.of(path, values)
    if work_of(path).is_dir():
        raise SearchError(f"{path} is not finished: run the same `likewise index` again")
    raise SearchError(
        f"there is no index at {path}: build it with `likewise index TEXT --model bundled:minilm --out {path}`"
    )


def left_in(target: Path) -> dict[str, float]:
    """Return the folders of the present index and of former states, with the time since which none is needed.

    Readers may still use them for a while. Folders that a killed run began are in its notes.
    """
    names: Record = {}
    for read in (lambda: read_record(target), lambda: read_working_file(work_of(target) / "notes.json")):
        with suppress(JobError):
            values: Mapping[str, Any] = read()
            names |= dict.fromkeys([f"{values.get('table')}.lance", str(values.get("geometry"))], time.time())
            names |= values["left"] if isinstance(values.get("left"), dict) else {}
    now = time.time()  # a clock that was ahead would keep a folder until then
    return {
        one: min(since, now)
        for one, since in names.items()
        if OWN_FOLDER.fullmatch(one) and isinstance(since, int | float)
    }


def of_queries(facts: Facts) -> Record:
    """Return the facts by which queries are encoded, as a record has them."""
    return {"prompt": facts.prompt("query"), "tokenizer": facts.tokenizer, "truncate_dim": facts.truncate_dim}


def _check_version(index: Path, made: object) -> None:
    """Raise SearchError if the files of an index have the format of an older or a later version."""
    if not isinstance(made, int) or made == FORMAT:
        return
    if made < FORMAT:
        raise SearchError(f"{index} was built by an older version: rebuild it with `likewise index ... --overwrite`")
    raise SearchError(
        f"{index} was built by a later version (format {made}, but this version reads {FORMAT}): install the later "
        f"version, or "
        "rebuild it with `likewise index ... --overwrite`"
    )


def _check_options(index: Path, values: Values) -> None:
    """Raise SearchError if the search of an index has options that this version does not have."""
    pipeline = values.get("pipeline")
    gone = sorted(pipeline.keys() - Pipeline.model_fields) if isinstance(pipeline, dict) else []
    if gone:
        made_by = (values["plan"].get("versions") or {}).get("likewise", "unknown")
        raise SearchError(
            f"{index} was built by likewise {made_by}, and this version has no search option {', '.join(gone)}: "
            "rebuild the index with `likewise index ... --overwrite`, or install that version"
        )


def _is_pipeline(values: object) -> bool:
    """Return whether values are valid options of a pipeline."""
    try:
        return isinstance(values, dict) and bool(Pipeline(**values))
    except OptionError:
        return False
