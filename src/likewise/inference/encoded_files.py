"""Encoding of text files into files of vectors: in constant memory, in order, and resumable.

Vectors are in parts: each is written whole or not at all, and all of them make one file, a folder or a Lance table.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from numpy.lib import format as npy
from pyarrow import feather, ipc, parquet
from sentence_transformers import SentenceTransformer

from likewise.corpus import CorpusOptions
from likewise.encoder.modules import undisturbed
from likewise.errors import LikewiseError, counted, require_extra
from likewise.inference.encoded_blocks import TextBlock, encode_blocks, opened_encoder
from likewise.inference.engines.engine import EngineChoice, EngineName, EnginePrecision
from likewise.inference.engines.graph import fingerprint
from likewise.inference.handle import ModelHandle
from likewise.inference.load_model import default_prompt, load
from likewise.inference.policy import settled, text_encoder
from likewise.inference.text_encoder import TextEncoder
from likewise.inference.text_pieces import STREAM, Piece, check_source, list_pieces, state_of, stream_pieces
from likewise.inference.tokens import Step, TextSide
from likewise.inference.vector_columns import matrix_of, vector_column
from likewise.inference.vectors import dimension
from likewise.runs.job import Job, Plan, Resume, TargetKind, check_target, open_job, read_record
from likewise.runs.on_ray import begun_on_ray, check_workers, cluster
from likewise.runs.options import checked
from likewise.runs.progress import Progress, StopRequest, orderly_stop
from likewise.runs.releases import versions
from likewise.runs.whole_files import Parts, written_whole

Opens = Callable[..., TextEncoder]
"""Opens the encoder of some texts: of the first of them, how many there are, progress, and the engine of before."""
Pieces = Iterator[tuple[Piece, int]]
"""Pieces, and the number of texts that are expected in all."""
_LANCE = ".lance"
_SAMPLE = 512  # texts on which every worker checks its engine, so that all come to the same one


class EncodedFile(NamedTuple):
    """The result of `encode_file`: the shape of the vectors."""

    rows: int
    dimension: int


@checked
def encode_file(
    model: SentenceTransformer | str | os.PathLike[str],
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    normalize: bool = False,
    engine: EngineName | None = None,
    precision: EnginePrecision | None = None,
    field: str | None = None,
    encoding: str = "auto",
    on: str | None = None,
    workers: int | None = None,
    quiet: bool = False,
    resume: Resume = "auto",
    overwrite: bool = False,
) -> EncodedFile:
    """Encode a text file with one sentence per line; row i of the output belongs to line i.

    The file is read as a stream and written in parts, so its size is not limited by the memory. An interrupted run is
    resumed if the model and the options are the same; blocks of 8,192 lines whose text has changed are encoded again.
    The output appears under its name once it is complete, and replaces an older file.

    Args:
        model: Encoder, or its path or name as in `load`.
        source: Path to a text or JSONL file, plain or as .gz, .bz2, .zst or .xz, or '-' for standard input. Empty lines
            are encoded, too.
        out: Path to the vectors: X.npy (float32, one row per line) or X.parquet (columns sentence and embedding). A
            folder X/ receives Parquet shards (file, row, sentence, embedding), and X.lance is a Lance table with the
            same columns; their source may also be a Parquet file, a folder, a pattern, or an object store's URL.
        normalize: Whether to scale each row to length 1.
        engine, precision: See `load`; None uses the settings of the loaded model, or float32 if it has none.
        field: Name of the JSONL field that contains the text, by default `text`, or of a Parquet file's column.
        encoding: Encoding of the file, by its Python name; "auto" is UTF-8, or detected for a file in another encoding.
        on: Address of a Ray cluster, such as ray://head:10001, or 'ray' for workers on the cores of this machine (or
            the cluster in $RAY_ADDRESS); `out` is then a folder.
        workers: Number of workers of the Ray cluster; by default one per core.
        quiet: Whether to print nothing to standard error.
        resume: Whether to fail if there is no interrupted run to resume.
        overwrite: Whether to start again if an interrupted run had other options or another model.

    Returns:
        The number of rows and the dimension of the vectors.

    Raises:
        LikewiseError: If the input is missing, invalid or not in its encoding; if the output has another suffix, is
            being written by another process, or belongs to an interrupted run with other options; or if the engine is
            not installed or does not preserve the vectors.

    Example:
        >>> import likewise
        >>> from pathlib import Path
        >>> _ = Path("texts.txt").write_text("A cat sleeps.\\nIt rains.\\n")
        >>> vectors = likewise.encode_file("bundled:minilm", "texts.txt", out="vectors.npy", quiet=True)
        >>> vectors.rows, vectors.dimension
        (2, 384)
    """
    check_workers(on, workers)
    source, out = os.fspath(source), os.fspath(out)
    reading, progress = CorpusOptions(field=field, encoding=encoding), Progress(quiet)
    form = Path(out).suffix
    is_folder = out.endswith(("/", os.sep)) or Path(out).is_dir() or (out != STREAM and form in ("", _LANCE))
    if on and not is_folder:
        raise LikewiseError(f"--on {on} writes a folder: give --out FOLDER/, not '{out}'")
    if is_folder:
        check_target(out)
        form = check_folder(Path(out), overwrite)
        listed = list_pieces(source, reading, form, progress.tell)
        pieces: Pieces = zip(listed, repeat(sum(piece.rows or 0 for piece in listed)))
    else:
        check_source(source)
        pieces = stream_pieces(source, reading, progress.tell)
        check_target(out, "file", overwrite)
        if form not in (".npy", ".parquet"):
            raise LikewiseError(
                f"'{out}': vectors are written to a .npy or .parquet file, a folder, or a .lance table."
            )
    encoder = model if isinstance(model, SentenceTransformer) else load(model, precision="fp32")
    own = settled(encoder) if hasattr(encoder, "choice") else EngineChoice()
    choice = EngineChoice(engine or own.engine, precision or own.precision)
    with undisturbed(encoder):
        prompt = default_prompt(encoder)
        opens: Opens = partial(text_encoder, encoder, choice, side=TextSide(prompt), normalize=normalize)
        options: dict[str, object] = {"normalize": normalize, "form": form}
        options |= {"engine": choice.engine, "precision": choice.precision, "prompt": prompt}
        options |= {"max_seq_length": encoder.max_seq_length, "truncate_dim": encoder.truncate_dim}
        inputs = {"model": fingerprint(encoder)}
        if is_folder:
            options |= reading.to_dict()
            inputs["text"] = state_of(listed)
        plan = Plan("encode", options, inputs, versions=versions("inference"), defaults=reading.defaults())
        kind: TargetKind = "folder" if is_folder else "file"
        with (
            cluster(on, workers) as number,
            open_job(out, plan, resume=resume, overwrite=overwrite, kind=kind) as job,
            orderly_stop(progress) as stop,
        ):
            if job.finished:
                return EncodedFile(job.finished["rows"], job.finished["dimension"])
            return _to_parts(encoder, opens, pieces, job, number, stop)


def _to_parts(
    model: SentenceTransformer, opens: Opens, pieces: Pieces, job: Job, workers: int, stop: StopRequest
) -> EncodedFile:
    """Encode the pieces that are not written yet, here or by the workers of a cluster, and make the result of all."""
    written, tell, reported = VectorParts(job, dimension(model)), stop.progress.tell, False
    first, total = next(pieces, (None, 0))
    texts = next(first.windows(), [])[: _SAMPLE if workers else None] if first else []
    encoder = opened_encoder(partial(opens, texts, total, progress=stop.progress), written.parts)
    opened = ModelHandle(model).for_worker(encoder, texts, total) if workers else lambda: encoder
    write = partial(write_part, opened, written.incoming, written.schema)
    if earlier := written.rows:
        tell(f"resuming after {counted(earlier, 'row')}")

    def begin(piece: Piece, step: Step) -> Callable[[], tuple[Path, int]]:
        nonlocal reported
        if piece.name in written.parts and not reported:
            reported = True
            tell(f"the text has changed from line {piece.start + 1:,} on, and is encoded again")
        work = begun_on_ray(write, piece) if workers else partial(write, piece, step)
        return partial(_received, written.incoming / piece.name, work)

    every = chain([(first, total)] if first else [], pieces)
    blocks = (TextBlock(piece.name, partial(begin, piece), total, piece.digest) for piece, total in every)
    encode_blocks(blocks, written.parts, encoder.engine, stop, 2 * workers)
    return written.finish(encoder.engine)


def _received(file: Path, work: Callable[[], int]) -> tuple[Path, int]:
    """Wait for a file, which a worker may write, and return it with the number of its vectors."""
    rows = work()
    if not file.exists():
        raise LikewiseError(
            f"the shard {file.name} of a worker is not in {file.parent}: --out must be in a folder that all machines "
            f"of the cluster share"
        )
    return file, rows


def write_part(
    opens: Callable[[], TextEncoder], folder: Path, schema: pa.Schema, piece: Piece, step: Step = lambda count: None
) -> int:
    """Encode a piece, write a file of its vectors, and return how many there are; a worker may do it as well.

    Args:
        opens: Function that returns the encoder.
        folder: Path to the folder of the file, whose suffix is its format: .arrow, .parquet or .lance.
        schema: Columns of the file, from 'file', 'row', 'sentence' and 'embedding'.
        step: Function that is called with the number of finished texts.
    """
    rows, encoder = piece.start, opens()
    with written_whole(folder / piece.name) as path, _writer(piece.name)(str(path), schema) as writer:
        for texts in piece.windows():
            columns = {"file": [piece.path] * len(texts), "row": range(rows, rows + len(texts)), "sentence": texts}
            columns["embedding"] = vector_column(encoder(texts, step))
            writer.write_batch(pa.record_batch([columns[name] for name in schema.names], schema=schema))
            rows += len(texts)
    return rows - piece.start


class VectorParts:
    """The parts of a job that encodes: windows of one file, or shards of a folder or a Lance table.

    Args:
        job: Job with the target NAME.npy, NAME.parquet, NAME.lance or any other folder.
        size: Dimension D of the vectors.
    """

    def __init__(self, job: Job, size: int) -> None:
        self.job, self.size, self.form = job, size, job.plan.options["form"]
        self.parts, self.incoming = Parts(job.work / "blocks"), (job.work / "incoming").resolve()
        self.incoming.mkdir(exist_ok=True)
        columns = [("file", pa.string()), ("row", pa.int64()), ("sentence", pa.string())]
        if job.kind == "file":
            columns = columns[2:] if self.form == ".parquet" else []
        self.schema = pa.schema([*columns, ("embedding", pa.list_(pa.float32(), size))])

    @property
    def rows(self) -> int:
        """The number of vectors in all parts."""
        return sum(facts["rows"] for facts in self.parts.facts.values())

    def finish(self, engine: str) -> EncodedFile:
        """Make the result of the parts, and finish the job."""
        shape = EncodedFile(self.rows, self.size)
        names = sorted(self.parts.facts)
        if self.job.kind == "folder":
            self._link(names)
            self.job.finish({"rows": shape.rows, "dimension": self.size, "engine": engine, "shards": len(names)})
            return shape
        if self.form == ".parquet":
            with _writer(self.form)(self.job.result, self.schema) as writer:
                for name in names:
                    writer.write_table(self._table(name))
        else:
            with self.job.result.open("wb") as file:
                npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": tuple(shape)})
                file.writelines(matrix_of(self._table(name)["embedding"]).tobytes() for name in names)
        self.job.finish()
        return shape

    def _link(self, names: list[str]) -> None:
        """Put the shards into the folder of the result."""
        shutil.rmtree(self.job.result)  # some of them, after a kill
        folder = self.job.result / "data" if self.form == _LANCE else self.job.result
        folder.mkdir(exist_ok=True)
        for name in names:
            try:
                os.link(self.parts.path(name), folder / name)
            except OSError:  # a file system without links
                shutil.copyfile(self.parts.path(name), folder / name)
        if self.form == _LANCE:
            _commit(self.job.result, {name: self.parts.facts[name]["rows"] for name in names}, self.schema)

    def _table(self, name: str) -> pa.Table:
        return feather.read_table(self.parts.path(name), memory_map=True)


def check_folder(folder: Path, overwrite: bool) -> str:
    """Return the ending of the shards of a folder.

    Raises:
        MissingExtraError: If the package that writes them is missing.
        LikewiseError: If a Lance table there has a version of somebody else's, which would hide the one that replaces
            it.
    """
    form = _LANCE if folder.suffix == _LANCE else ".parquet"
    _writer(form)
    own = read_record(folder).get("files", [])
    versions = [path.relative_to(folder).as_posix() for path in folder.glob("_versions/*.manifest")]
    if overwrite and not set(versions) <= set(own):
        raise LikewiseError(f"{folder} was changed since it was encoded (rows or an index): choose another --out")
    return form


def _writer(name: str) -> Callable[[Any, Any], Any]:
    """Return what opens a file for batches of rows, in the format that a name says."""
    if name.endswith(_LANCE):
        require_extra("lance", "A folder NAME.lance", "lance")
        os.environ.setdefault("LANCE_LOG", "error")  # read at the import
        warnings.filterwarnings("ignore", "lance is not fork-safe")  # Ray forks to start programs alone
        from lance.file import LanceFileWriter

        return LanceFileWriter
    if name.endswith(".arrow"):
        return ipc.new_file
    return parquet.ParquetWriter


def _commit(folder: Path, rows: Mapping[str, int], schema: pa.Schema) -> None:
    """Make the shards in a folder's `data` the fragments of one Lance table, in the order given."""
    from lance import LanceDataset, LanceOperation
    from lance.file import LanceFileReader
    from lance.fragment import DataFile, FragmentMetadata

    folder, fragments = folder.resolve(), []
    columns = list(range(len(schema)))
    for name, number in rows.items():
        form: Any = LanceFileReader(str(folder / "data" / name)).metadata()
        file = DataFile(name, columns, columns, form.major_version, form.minor_version)
        fragments.append(FragmentMetadata(id=0, files=[file], physical_rows=number))
    LanceDataset.commit(str(folder), LanceOperation.Overwrite(schema, fragments))
