"""The vectors of a frozen encoder as what a light one learns: made once for a corpus, and kept beside it."""

import hashlib
from typing import Any

import numpy as np
from filelock import FileLock

from likewise.corpus import PreparedCorpus
from likewise.inference.engines.graph import fingerprint
from likewise.inference.files import encode_file
from likewise.inference.loading import load
from likewise.runs.parts import Parts
from likewise.runs.progress import Progress
from likewise.runs.whole_files import written_whole

_AT_A_TIME = 10_000


def with_teacher(corpus: PreparedCorpus, dataset: Any, base: str, length: int, progress: Progress) -> Any:
    """Return the dataset with the column `teacher`: a base's vector of each sentence, less their mean, as bytes.

    The vectors lie in the folder of the corpus, where every seed and every later run finds them. Encoding is a job like
    `likewise encode`: shown, resumed after a stop, and in bfloat16 or int8 where those are fast and near enough (a
    cosine of 0.998 to the exact vector, where a student comes to 0.88).

    Args:
        dataset: rows with 'sentence'.
        base: what `likewise.load` takes.
        length: the most tokens that the base reads of a sentence; 0: as many as it does by itself.

    Returns:
        The rows; `teacher` holds E float16 numbers (`numpy.frombuffer`).
    """
    model = load(base, precision="auto")
    if length:
        model.max_seq_length = min(length, model.max_seq_length or length)
    starts = range(0, len(dataset), _AT_A_TIME)
    sentences = [text for start in starts for text in dataset[start : start + _AT_A_TIME]["sentence"]]
    text = "".join(f"{sentence}\n" for sentence in sentences).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(text, digest_size=6)
    digest.update(f"{fingerprint(model)} {model.max_seq_length}".encode())
    folder, name = corpus.path.parent / "teachers", f"{digest.hexdigest()}.npy"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / f"{name}.lock"):  # another training of the same corpus may be at it: its vectors will do
        kept = Parts(folder)
        if name not in kept:
            lines, vectors = (folder / f"new-{digest.hexdigest()}{ending}" for ending in (".txt", ".npy"))
            with written_whole(lines) as unfinished:
                unfinished.write_bytes(text)
            progress.tell(f"vectors of {base}, which are learnt from (kept in {folder})")
            encode_file(model, lines, vectors, quiet=progress.quiet)
            lines.unlink()
            with kept.new(name) as path:
                vectors.replace(path)
    found = np.load(kept.path(name), mmap_mode="r")
    mean = found.mean(axis=0, dtype=np.float64)
    pieces = ((found[start : start + _AT_A_TIME] - mean).astype(np.float16) for start in starts)
    return dataset.add_column("teacher", [row.tobytes() for rows in pieces for row in rows])
