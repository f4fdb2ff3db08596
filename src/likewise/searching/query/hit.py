"""The hits of a search: passages with the contribution of each part, and the interpretation of the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from likewise.corpus.files import format_suffix
from likewise.corpus.known_formats import format_named
from likewise.runs.whole_files import Record, Values

_ROWS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
"""The ends of the names of files whose rows are documents of their own."""
_REPEATED = 60
"""Characters of the text in `repr`."""


@dataclass(frozen=True, repr=False)
class Hit:
    """A passage that matches a query.

    Attributes:
        score: Score by which hits are sorted: the sum of `scores` in a hybrid search, otherwise `similarity` or
            `words`, lowered for passages without a required phrase.
        file, line: Location where the passage begins. `line` is the page of a PDF, the slide of a .pptx file, the cell
            of a notebook, and 0 in a web page or a Word file.
        title: Headings above the passage, starting with the outermost; "" if there are none.
        text: Text of the passage.
        sentence: Sentence of the passage that matches the query best.
        similarity: Cosine of query and passage; None in a search by words only.
        words: BM25 score; None in a search by vectors only.
        metadata: Stored fields of the passage: strings, numbers or Booleans, and dates in ISO format.
        scores: Z-score of the passage for each part of a hybrid search; their sum is `score`.
        id: Id of the row or text, or its position in the list, from 0, if it has no id; None for a passage of a file
            without ids.
        also: Locations of copies of the passage, and, in a search by document, of the other matching passages of the
            document, which are not listed separately.

    >>> hit = Hit(1.5, "notes.md", 3, "Pumps", "It leaks. Call us.", "It leaks.", similarity=0.4)
    >>> hit.place, hit.parts
    ('notes.md:3', ('', 'It leaks.', ' Call us.'))
    """

    score: float
    file: str
    line: int
    title: str
    text: str
    sentence: str
    similarity: float | None = None
    words: float | None = None
    metadata: Values = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    id: str | int | None = None
    also: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the score, the place and the beginning of the text.

        >>> Hit(1.5, "", 0, "", "It rains. Take a coat.", "Take a coat.", id="a7", metadata={"year": 2024})
        Hit(score=1.50, id='a7', text='It rains. Take a coat.', metadata={'year': 2024})
        """
        named = f"place={self.place!r}" if self.id is None else f"id={self.id!r}"
        text = self.text if len(self.text) <= _REPEATED else f"{self.text[:_REPEATED]}..."
        more = f", metadata={dict(self.metadata)!r}" if self.metadata else ""
        return f"Hit(score={self.score:.2f}, {named}, text={text!r}{more})"

    @property
    def place(self) -> str:
        """The location: the file (relative to the current folder) and its line, page, slide or cell, or the id."""
        return place_of({"file": self.file, "line": self.line, "id": self.id})

    @property
    def document(self) -> tuple[str, ...]:
        """The names of its document that judgments can use: the id of its row or text, or otherwise its file.

        >>> Hit(1.0, "/data/notes/rain.md", 3, "", "It rains.", "It rains.").document
        ('/data/notes/rain.md', 'rain.md', 'rain')
        """
        named = self.metadata.get("_id") if self.id is None else self.id
        if named is not None:
            return (str(named),)
        path = Path(self.file)
        relative = [str(path.relative_to(Path.cwd()))] if path.is_relative_to(Path.cwd()) else []
        return tuple(dict.fromkeys([self.file, *relative, path.name, path.stem]))

    @property
    def parts(self) -> tuple[str, str, str]:
        """The text before the marked sentence, the sentence, and the text after it.

        >>> Hit(1.0, "a.txt", 1, "", "It rains. Take a coat. Run.", "Take a coat.").parts
        ('It rains. ', 'Take a coat.', ' Run.')
        """
        before, middle, after = self.text.partition(self.sentence)
        return before, middle, after

    @property
    def explanation(self) -> str:
        """The parts of the score, in one line.

        >>> Hit(1.5, "a.txt", 1, "", "Rain.", "Rain.", 0.7, 0.0, scores={"vectors": 2.0, "words": -0.5}).explanation
        'vectors +2.00 (cosine 0.700), words -0.50 (BM25 0.00)'
        """
        raw = {} if self.similarity is None else {"vectors": f"cosine {self.similarity:.3f}"}
        raw |= {} if self.words is None else {"words": f"BM25 {self.words:.2f}"}
        parts = {name: f"{name} {value:+.2f}" for name, value in self.scores.items()}
        known = {name: f"{parts[name]} ({text})" if name in parts else text for name, text in raw.items()}
        return ", ".join((parts | known).values())

    def to_dict(self) -> Record:
        """Return plain values for JSON."""
        return asdict(self)


def place_in(file: str, line: int) -> str:
    """Return the place of a passage, for people: a file's line, page, slide or cell, or the file alone for line 0.

    >>> place_in("a.txt", 3), place_in("a.pdf", 3), place_in("a.html", 0)
    ('a.txt:3', 'a.pdf, page 3', 'a.html')
    """
    format = format_named(Path(file))
    if format is not None and format.unit:
        return f"{file}, {format.unit} {line}"
    return f"{file}:{line}" if line else file


def place_of(row: Values) -> str:
    """Return the place of a passage, for people, by its file, line and id."""
    if not row["file"]:
        return str(row["id"])
    path = Path(row["file"])
    return place_in(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path), row["line"])


def document_of(row: Values) -> tuple[str, object]:
    """Return the document of a passage, by its file, line, title and id: a row or text, an article, or a file.

    >>> document_of({"file": "a.jsonl", "line": 3, "title": "", "id": None})
    ('a.jsonl', 3)
    >>> document_of({"file": "a.md", "line": 3, "title": "Rain > Coats", "id": None})
    ('a.md', None)
    """
    file = row["file"]
    if row["id"] is not None:
        return file, row["id"]
    suffix = format_suffix(Path(file))
    if suffix in _ROWS:
        return file, row["line"]
    return file, row["title"].partition(" > ")[0] if suffix == ".xml" else None


class Hits(list[Hit]):
    """The hits of a search in descending order of their scores, as a list with the interpretation of the query.

    Attributes:
        without: Exclusion of the query in words, such as 'excluding'; passages about it are ranked lower.
        demanded: Phrases that every hit contains, except for the last `others` hits.
        barred: Words and phrases that no hit contains.
        missing: Words and phrases of the query that do not occur in the index.
        ranked: Phrases that raise the rank of a hit without being required.
        others: Number of hits without the demanded phrases, which follow if too few passages contain them.
    """

    def __init__(
        self,
        hits: Iterable[Hit] = (),
        without: str = "",
        demanded: tuple[str, ...] = (),
        barred: tuple[str, ...] = (),
        missing: tuple[str, ...] = (),
        ranked: tuple[str, ...] = (),
        others: int = 0,
    ) -> None:
        super().__init__(hits)
        self.without, self.demanded, self.barred, self.missing = without, demanded, barred, missing
        self.ranked, self.others = ranked, others

    @property
    def told(self) -> list[str]:
        """The lines that describe the interpretation of the query, for display above the hits.

        >>> Hits(without="burnout", demanded=("heat pump",), missing=("flibbert",)).told
        ['without: burnout', 'only with: "heat pump"', 'no passage contains "flibbert"']
        """
        others = f", then {self.others} without" if self.others < len(self) else "; all of these are without"
        lines = [f"without: {self.without}"] * bool(self.without)
        if self.demanded:
            demanded = _listed(self.demanded)
            lines.append(f"first with: {demanded}{others}" if self.others else f"only with: {demanded}")
        lines += [f"ranked higher with: {_listed(self.ranked)}"] * bool(self.ranked)
        lines += [f"excluded: passages with {_listed(self.barred)}"] * bool(self.barred)
        return lines + [f"no passage contains {_listed(self.missing)}"] * bool(self.missing)

    def to_dict(self) -> Record:
        """Return plain values for JSON: the hits, and the interpretation of the query, also as lines (`told`)."""
        made: Record = {name: list(getattr(self, name)) for name in ("demanded", "ranked", "barred", "missing")}
        made |= {"without": self.without, "others": self.others, "told": self.told}
        return made | {"hits": [hit.to_dict() for hit in self]}


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)
