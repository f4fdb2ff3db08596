"""The files of a corpus, also those of its folders, and the format of each; and data sets of the hub as files."""

import glob
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.corpus.converter import converters
from likewise.corpus.corpus_options import TEXT, CorpusError, CorpusOptions
from likewise.corpus.counts import CorpusReport, shortened
from likewise.corpus.encodings import seen_encoding
from likewise.corpus.files import check_ends, format_suffix, is_folder, kernel_devices, read_head
from likewise.corpus.inputs import plain_value
from likewise.corpus.lines_and_rows import READERS, Source, SourceKind, json_type, read_rows
from likewise.corpus.other_markup import MARKED
from likewise.corpus.paged_documents import converted, document_suffixes, lacks_extra, uninstalled
from likewise.data.bundled import wiki_sample_path
from likewise.errors import counted, first_line, is_utf8
from likewise.runs.cache import cached, made_in_cache
from likewise.runs.progress import Progress
from likewise.runs.results import RECORD

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Spec = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A path, a folder, a glob, `bundled:wiki-sample`, `hf:NAME[:CONFIG][:SPLIT][:COLUMN]`, or a list of these."""

_HUB = "hf:"
_TEXT_COLUMNS = ("text", "sentence", "content", "document", "body")
"""Columns that are taken where none is named, the likeliest first."""
_SLICE = re.compile(r"(\w[\w.-]*)\[:(\d+)\]")
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_NAMES = 30
"""Fields that a message names."""
_READ = "plain text, Markdown, JSONL, CSV, Parquet, MediaWiki XML, or a document such as .html, .docx or .pdf"
_PARQUET = b"PAR1"
_CONTROL = bytes({*range(32), 127} - {*b"\t\n\v\f\r\x1b\b"})
_BINARY = {
    b"PK\x03\x04": "a zip file",
    b"ARROW1": "an Arrow file",
    b"7z\xbc\xaf": "a 7z file",
    b"\xd0\xcf\x11\xe0": "an Office file of before 2007, which has to be saved as .docx or .pptx",
    b"{\\rtf": "Rich Text, which has to be saved as .docx or .odt",
}

FOLDER_SUFFIXES = (".txt", *MARKED, ".text", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xml")
"""Formats that are read of a folder, beside documents; code is text too, but not prose."""

IGNORE_FILES = (".gitignore", ".likewiseignore")
_NO_PROSE = ("makefile", "dockerfile", "containerfile", "jenkinsfile", "vagrantfile", "gemfile", "procfile")
_CODE_BEGINS = (b"#!", b"<", b"{", b"[")
_KINDS = 5  # endings of files that are left out
_CURE = "check its rights, or leave it out"


@dataclass
class Listing:
    """What was seen of a folder.

    Attributes:
        folder: its path.
        files: those that are read, in the order of their paths.
        unread: files, links and folders that could not be looked at, each with a sentence that names it. What they hold
            is not known to be gone.
        left_out: lines that count files in other formats, and those that a rule leaves out.
    """

    folder: Path
    files: list[Path] = field(default_factory=list)
    unread: dict[Path, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def list_folder(folder: Path, exclude: Sequence[str] = ()) -> Listing:
    """Look for the files of a folder and its subfolders that are read; links are followed.

    Text, Markdown, reStructuredText, Org, AsciiDoc, JSONL, CSV, TSV, Parquet and MediaWiki dumps are read, compressed
    or not, and text without an ending, such as README; notebooks, and with the extra `files` web pages, mails, office
    files and PDFs. JSON and code must be named to be read. Hidden files and folders are left out, and so are models,
    indexes that likewise made among the texts.

    Args:
        exclude: patterns as those of a .gitignore, relative to the folder. Those in the files .gitignore and
            .likewiseignore of a folder, and of the folders above it in a repository, hold as well.
    """
    walk = _Walk(folder, exclude)
    uninstalled_kinds = {suffix for suffix in document_suffixes() if lacks_extra(suffix)}
    others: Counter[str] = Counter()
    lacking: Counter[str] = Counter()
    for path in walk.files():
        if not _is_prose(path):
            kind = format_suffix(path)
            packed = path.suffix.lower() if kind in document_suffixes() else ""  # it is not read while it is compressed
            others[f"{kind}{packed}" or path.name] += 1
        elif path.suffix.lower() in uninstalled_kinds:
            lacking[path.suffix.lower()] += 1
        else:
            walk.listing.files.append(path)
    walk.listing.files.sort()
    if lacking:
        walk.listing.left_out.append(uninstalled(lacking))
    if others:
        walk.listing.left_out.append(_counted(others))
    if walk.made:
        walk.listing.left_out.append(f"{counted(walk.made, 'folder')} made by likewise left out")
    for rule, count in walk.excluded.items():
        walk.listing.left_out.append(f"{counted(count, 'path')} left out by {rule}")
    return walk.listing


IgnoreRule = tuple[Path, str, "GitIgnoreSpec"]
"""A folder, the name of what holds patterns for it, and the patterns."""


class _Walk:
    """A walk through a folder, with what it could not look at, and how much each rule has left out."""

    def __init__(self, folder: Path, exclude: Sequence[str]) -> None:
        self.listing = Listing(folder)
        self.excluded: Counter[str] = Counter()
        self.made = 0
        self._first: list[IgnoreRule] = []
        if exclude:
            try:
                own = [re.sub(r"^(!?)\./", r"\1/", pattern) for pattern in exclude]
                self._first = [(folder, "--exclude", _patterns(own))]
            except ValueError as error:
                raise CorpusError(f"exclude: {error}: give patterns as in a .gitignore") from None

    def files(self) -> Iterator[Path]:
        """Yield the files that no rule leaves out."""
        seen: set[tuple[int, int]] = set()
        folders: list[tuple[Path, list[IgnoreRule]]] = [(self.listing.folder, _rules_above(self.listing.folder))]
        while folders:
            here, rules = folders.pop()
            try:
                own = here.stat()
                with os.scandir(here) as scanned:
                    entries = sorted(scanned, key=lambda entry: entry.name, reverse=True)
            except OSError as error:
                self._note(here, error)
                continue
            if (own.st_dev, own.st_ino) in seen:  # a link leads back
                continue
            seen.add((own.st_dev, own.st_ino))
            if here != self.listing.folder and any(entry.name == RECORD for entry in entries):
                self.made += 1
                continue
            rules = [*rules, *_rules_in(here)]
            for entry in entries:
                path = here / entry.name
                if entry.name.startswith((".", "~$")):  # '~$' is what Word keeps beside an open file
                    continue
                try:
                    state, is_folder = entry.stat(), entry.is_dir()
                except OSError as error:
                    self._note(path, error)
                    continue
                if rule := self._rule(path, is_folder, rules):
                    self.excluded[rule] += 1
                elif state.st_dev in kernel_devices():
                    self.listing.unread[path] = f"{path}: this is a file of the system's kernel, not of a disk: {_CURE}"
                elif not is_folder:
                    yield path
                else:
                    folders.append((path, rules))

    def _note(self, path: Path, error: OSError) -> None:
        is_broken = isinstance(error, FileNotFoundError) and path.is_symlink()
        reason = "the link leads to nothing" if is_broken else error.strerror
        self.listing.unread[path] = f"{path}: it cannot be read now ({reason}): {_CURE}"

    def _rule(self, path: Path, is_folder: bool, rules: list[IgnoreRule]) -> str:
        """Return the name of the rule that leaves a path out, "" if none does; the nearest that says anything does."""
        for folder, name, patterns in [*self._first, *reversed(rules)]:
            relative = os.path.relpath(path, folder) + ("/" if is_folder else "")
            if (include := patterns.check_file(relative).include) is not None:
                return name if include else ""
        return ""


def _patterns(lines: Sequence[str]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _rules_in(folder: Path) -> list[IgnoreRule]:
    rules = []
    for name in IGNORE_FILES:
        with suppress(OSError, ValueError):
            content = (folder / name).read_bytes()
            text = content.decode(seen_encoding(content) or "utf-8", "replace").removeprefix("\ufeff")
            rules.append((folder, name, _patterns(text.splitlines())))
    return rules


def _rules_above(folder: Path) -> list[IgnoreRule]:
    """Return the rules of the folders above one, up to the top of its repository, the outermost first."""
    with suppress(OSError):
        absolute = folder.absolute()
        above = [absolute, *absolute.parents]
        top = next((place for place, parent in enumerate(above) if (parent / ".git").exists()), 0)
        return [rule for parent in reversed(above[1 : top + 1]) for rule in _rules_in(parent)]
    return []


def _is_prose(path: Path) -> bool:
    """Return whether a file of a folder is one that is read; one that cannot be looked into is told when it is read."""
    if not path.is_file():
        return False
    if suffix := format_suffix(path):
        if path.suffix.lower() in document_suffixes():
            return True
        return suffix in FOLDER_SUFFIXES or suffix.startswith(".xml-p")  # a part of a dump, of pages
    if path.name.lower() in _NO_PROSE:
        return False
    try:
        head = read_head(path)
    except CorpusError:
        return True
    return b"\0" not in head and not head.lstrip().startswith(_CODE_BEGINS)


def _counted(others: Counter[str]) -> str:
    """Return the line that counts files in other formats, by their endings."""
    most = sorted(others.items(), key=lambda item: (-item[1], item[0]))[:_KINDS]
    kinds = [f"{count:,} {ending}" for ending, count in most]
    more = others.total() - sum(count for _, count in most)
    listed = ", ".join([*kinds, *([f"{more:,} more"] if more else [])])
    return f"{counted(others.total(), 'file')} in other formats ({listed}); a text file that is named is read"


def find_files(spec: Spec, exclude: Sequence[str] = (), listings: list[Listing] | None = None) -> list[Path]:
    """Return the files that a spec names, sorted by path and without duplicates.

    Args:
        exclude: patterns of files of folders that are left out.
        listings: takes what was seen of each folder.
    """
    entries = [spec] if isinstance(spec, str | PathLike) else list(spec)
    if not entries:
        raise CorpusError("no corpus file was named: give a path, a glob, or a list of these")
    files: dict[Path, Path] = {}
    for entry in entries:
        for path in _expand(str(entry), exclude, listings if listings is not None else []):
            files.setdefault(path.resolve(), path)
    return sorted(files.values())


def nothing_in(folder: str | PathLike[str], listing: Listing) -> str:
    """Return the error of a folder without files that are read."""
    there = "; ".join([*listing.unread.values(), *listing.left_out]) or "name its files"
    return f"{folder}: no file in this folder ends in {', '.join((*FOLDER_SUFFIXES, *document_suffixes()))}: {there}"


def _expand(entry: str, exclude: Sequence[str], listings: list[Listing]) -> list[Path]:
    if entry.startswith("bundled:"):
        if entry != "bundled:wiki-sample":
            raise CorpusError(f"unknown corpus {entry!r}: the one that is bundled is bundled:wiki-sample")
        return [wiki_sample_path()]
    if entry.startswith(_HUB):
        return [hub_rows(entry)]
    path = Path(entry).expanduser()
    if is_folder(path):
        listing = list_folder(path, exclude)
        if not listing.files:
            raise CorpusError(nothing_in(path, listing))
        listings.append(listing)
        return listing.files
    if path.is_fifo():
        return [_read_pipe(path)]
    if path.exists():
        check_ends(path)
        return [path]
    if not glob.has_magic(entry):
        raise CorpusError(f"{entry}: no such file: check the path (it is relative to {Path.cwd()})")
    # Not Path.glob: it refuses an absolute pattern.
    matches = [Path(name) for name in glob.glob(str(path), recursive=True)]  # noqa: PTH207
    files = [match for match in matches if match.is_file()]
    if not files:
        raise CorpusError(f"{entry}: no file matches this pattern: check it (it is relative to {Path.cwd()})")
    return files


_PIPES: dict[tuple[int, int], Path] = {}
"""The files of the pipes that this process has read, by device and inode: a pipe can be read only once."""


def _read_pipe(path: Path) -> Path:
    """Copy a pipe, as of a shell's <(...), into the cache, and return the file: its name is its content's hash."""
    key = path.stat().st_dev, path.stat().st_ino
    if key not in _PIPES:
        digest = hashlib.blake2b(digest_size=16)
        with tempfile.NamedTemporaryFile(dir=made_in_cache("pipes")) as kept, path.open("rb") as pipe:
            while piece := pipe.read(1 << 20):
                digest.update(piece)
                kept.write(piece)
            kept.flush()
            # The same text again keeps its time, and so its prepared corpus.
            folder = cached("pipes", digest.hexdigest(), lambda made: shutil.copyfile(kept.name, made / "text"))
            _PIPES[key] = folder / "text"
    return _PIPES[key]


def find_sources(
    spec: Spec, options: CorpusOptions, progress: Progress | None = None, report: CorpusReport | None = None
) -> list[Source]:
    """Return the files of a spec with their formats, detected from the beginning of each file.

    Args:
        progress: shows the documents that are converted, and a line about files of a folder that cannot be read as
            asked, and are left out. Without it they are an error, as is any file that was named.
        report: keeps these lines, and what is told of the files while they are read.
    """
    report = report if report is not None else CorpusReport()
    listings, sources, errors = list[Listing](), list[Source](), list[str]()
    files = find_files(spec, options.exclude, listings)
    sizes = {path: path.stat().st_size for path in files if path.suffix.lower() in converters()}
    shown, done = progress if progress is not None and sizes else Progress(quiet=True), 0
    with shown.bar("reading documents", sum(sizes.values()), unit="bytes") as bar:
        for path in files:
            try:
                sources.append(open_source(path, options, report))
            except CorpusError as reason:
                if progress is None or not any(path.is_relative_to(listing.folder) for listing in listings):
                    raise
                errors.append(str(reason))
            done += sizes.get(path, 0)
            bar.update(done)
    if not sources:
        raise CorpusError(errors[0])
    report.failed += len(errors) + sum(len(listing.unread) for listing in listings)
    for sentence in [
        *errors,
        *(line for listing in listings for line in (*listing.unread.values(), *listing.left_out)),
    ]:
        report.note(sentence)
    if progress is not None:
        tell(report, progress, what="left out")
    if options.field is not None and not any(source.kind in READERS for source in sources):
        raise CorpusError(
            f"{sources[0].path}: field {options.field!r} was given, but no file here is JSONL, CSV or Parquet: leave "
            "it out"
        )
    return sources


def tell(report: CorpusReport, progress: Progress, since: int = 0, what: str = "reading") -> None:
    """Show the first notes of a report, and how many more there are.

    Args:
        since: notes that have been shown before.
        what: the word before each.
    """
    for sentence in shortened(report.told[since:]):
        progress.tell(f"{what}: {sentence}")


def check_name(path: Path) -> None:
    """Raise a CorpusError for a file whose name is not UTF-8: no record could name it."""
    if not is_utf8(str(path)):
        shown = os.fsencode(path).decode("utf-8", "replace")
        raise CorpusError(f"{shown}: this name is not UTF-8: rename the file or its folder")


def open_source(path: Path, options: CorpusOptions, report: CorpusReport | None = None) -> Source:
    """Return a file with its format, detected from its beginning; a document is converted, if the cache has no text.

    Args:
        report: that of the source.
    """
    check_name(path)
    if options.field is None and path.suffix == ".jsonl" and path.parent.parent.name == "hub":  # made by `hub_rows`
        options = options.updated(field=path.stem)
    source = Source(path, options, document=_document(path))
    kind = _kind(source)
    if kind in READERS and options.field is None:  # `_kind_of_rows` saw that it is there
        options = options.updated(field=TEXT)
    if kind == "document" and source.document in converters():
        converted(path, source.document, options)
    return replace(source, options=options, kind=kind, report=report if report is not None else CorpusReport())


def _document(path: Path) -> str:
    """Return the ending of the format of a document, "" for any other file; a PDF is known whatever its name."""
    if (suffix := path.suffix.lower()) in document_suffixes():
        return suffix
    with suppress(OSError), path.open("rb") as file:
        return ".pdf" if file.read(5) == b"%PDF-" else ""
    return ""


def _kind(source: Source) -> SourceKind:
    path = source.path
    if source.document:
        if source.options.split == "line":
            raise CorpusError(f"{path}: split 'line' is for plain text, and this file is a {source.document} file")
        if source.document in (".xlsx", ".xlsm") and source.options.field is not None:
            return _kind_of_rows(source, "xlsx")
        return "document"
    suffix = format_suffix(path)
    if suffix in document_suffixes() and suffix != path.suffix.lower():
        raise CorpusError(f"{path}: a {suffix} file is not read while it is compressed: unpack it first")
    head = read_head(path, source.options)
    if not head.startswith(_PARQUET):
        refuse_binary(path, head)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    kind: SourceKind = "text"
    if head.startswith(_PARQUET):
        kind = _kind_of_rows(source, "parquet")
    elif suffix in (".csv", ".tsv"):
        kind = _kind_of_rows(source, "csv")
    elif text.startswith(b"<mediawiki") or (text.startswith(b"<?xml") and b"<mediawiki" in text):
        kind = "wiki"
    elif suffix == ".xml":
        raise CorpusError(f"{path}:1: this XML is not a MediaWiki dump (no <mediawiki> at the top): convert it to text")
    elif text and (text.startswith(b"{") or suffix in _JSON_SUFFIXES):
        kind = _json_kind(source, text, named=suffix in _JSON_SUFFIXES)
    if source.options.split == "line" and kind != "text":
        raise CorpusError(f"{path}: split 'line' is for plain text, and this file is {kind}, which is always prose")
    return "markdown" if kind == "text" and suffix in MARKED and source.options.split != "line" else kind


def refuse_binary(path: Path, head: bytes) -> None:
    """Check that the beginning of a file is text.

    Raises:
        CorpusError: it is not; the message names what it is and what can be read.
    """
    for magic, what in _BINARY.items():
        if head.startswith(magic):
            raise CorpusError(f"{path}:1: unreadable encoding: this is {what}: give {_READ}")
    control = len(head) - len(head.translate(None, _CONTROL))
    if b"\0" in head or control > 0.1 * len(head):
        line = head[: max(0, head.find(0))].count(b"\n") + 1
        what = "a zero byte" if b"\0" in head else "control characters"
        raise CorpusError(f"{path}:{line}: unreadable encoding: {what}, so this is binary: give {_READ}")


def _json_kind(source: Source, text: bytes, named: bool) -> SourceKind:
    """Return the kind of a file that begins as JSON does: an object a line, a list of them, or other text."""
    strict = replace(source, kind="jsonl", strict=True)
    try:
        next(read_rows(strict), None)
    except CorpusError:
        if not named:
            return "text"  # a text may well begin with a brace
        if text.startswith(b"[") or (text.startswith(b"{") and b"\n" in text):
            try:
                next(read_rows(replace(strict, kind="json")), None)
                return _kind_of_rows(source, "json")
            except CorpusError:  # neither: as a file of lines it may have others that are whole
                pass
    return _kind_of_rows(source, "jsonl")


def _kind_of_rows(source: Source, kind: SourceKind) -> SourceKind:
    source = replace(source, kind=kind)
    number, row = next(read_rows(source), (0, None))
    if row is None:
        if source.report.notes:
            raise CorpusError(source.report.notes[0])
        return "text" if kind == "jsonl" else kind
    if source.options.field is not None:
        return kind
    if kind == "jsonl" and isinstance(row.get("sections"), list):
        return "articles"
    if isinstance(row.get(TEXT), str):
        return kind
    if names := _listed(name for name, value in row.items() if isinstance(value, str)):
        reason = f"it is not clear which field holds the text: give --field NAME, one of {names}"
    else:
        fields = _listed(f"{name} ({json_type(value)})" for name, value in row.items()) or "none"
        reason = f"no field of this row is a text (its fields: {fields}): give a file with a row for each text"
    raise CorpusError(f"{source.path}:{number}: {reason}")


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:_NAMES] + [f"{len(every) - _NAMES:,} more"] * (len(every) > _NAMES))


def hub_rows(entry: str) -> Path:
    """Return a file of the cache that holds the rows of a data set, called by the column of its text.

    The rows are streamed by the library `datasets`, once: another call finds the file, unless the data set has changed.

    Args:
        entry: as "hf:wikitext:wikitext-2-raw-v1:test:text". CONFIG may be empty, SPLIT is 'train' by default, and as
            'train[:1000]' its first thousand rows; COLUMN is by default one called text or sentence.

    Raises:
        CorpusError: there is no such data set, split or column.
    """
    parts = re.split(r":(?![^\[]*\])", entry.removeprefix(_HUB))
    name, config, split, column = [*parts, "", "", ""][:4]
    if not name or len(parts) > 4:
        raise CorpusError(f"{entry}: give hf:NAME, hf:NAME:CONFIG, hf:NAME:CONFIG:SPLIT or hf:NAME:CONFIG:SPLIT:COLUMN")
    sliced = _SLICE.fullmatch(split)
    wanted, most = (sliced[1], int(sliced[2])) if sliced else (split or "train", None)
    import datasets

    try:
        rows = datasets.load_dataset(name, config or None, split=wanted, streaming=True)
        names = rows.column_names or list(next(iter(rows), {}))
    except Exception as error:  # the library raises its own, and those of every format and connection
        raise CorpusError(
            f"{entry}: this data set cannot be read ({type(error).__name__}: {first_line(error)}): check the name, the "
            "config and the split"
        ) from None
    column = column or next((usual for usual in _TEXT_COLUMNS if usual in names), "")
    if column not in names:
        raise CorpusError(f"{entry}: there is no column {column or 'text'!r}: name one of {', '.join(names)}")

    def make(folder: Path) -> None:
        with (folder / f"{column}.jsonl").open("w", encoding="utf-8") as file:
            for row in rows if most is None else rows.take(most):
                kept = {name: plain_value(value) for name, value in row.items() if _is_plain(value)}
                file.write(json.dumps(kept, ensure_ascii=False, default=str) + "\n")

    return cached("hub", [name, config, wanted, most, column, _version(name)], make) / f"{column}.jsonl"


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool) or hasattr(value, "isoformat")


def _version(name: str) -> object:
    """Return what changes with a data set: the times of a folder's files, or the commit of the hub."""
    if Path(name).exists():
        files = [path for path in sorted(Path(name).rglob("*")) if path.is_file()] or [Path(name)]
        return [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
    from huggingface_hub import HfApi

    try:
        return HfApi().dataset_info(name).sha
    except Exception:  # no connection: what the library itself has kept
        return ""
