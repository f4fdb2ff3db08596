"""Exact deduplication in bounded memory: fingerprints on disk, compared partition by partition."""

from hashlib import blake2b
from pathlib import Path
from typing import IO

import numpy as np

PARTITION = 1 << 22
"""Fingerprints compared at once; 100 MB with what sorting them takes."""

_RECORD = np.dtype([("low", "<u8"), ("high", "<u8"), ("index", "<u8")])
_CHUNK = 1 << 16


class Fingerprints:
    """A collector of one fingerprint per sentence, which marks repeated sentences at the end.

    A fingerprint has 128 bits (BLAKE2b), so that two different sentences share one with a chance below 1e-20
    in a corpus of a billion. Memory is one buffer while adding, and `partition` records while comparing.

    Args:
        folder: where the temporary files go; they are left for the owner of the folder to remove.
        partition: fingerprints compared at once.
    """

    def __init__(self, folder: Path, partition: int = PARTITION) -> None:
        self._folder, self._partition = folder, partition
        self._file: IO[bytes] = (folder / "fingerprints").open("wb")
        self._buffer: list[bytes] = []
        self._count = 0

    def add(self, text: str) -> None:
        """Add the next sentence."""
        self._buffer.append(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
        if len(self._buffer) == _CHUNK:
            self._write()

    def _write(self) -> None:
        if not self._buffer:
            return
        digests = np.frombuffer(b"".join(self._buffer), dtype="<u8").reshape(-1, 2)  # [n, 2]
        records = np.empty(len(digests), _RECORD)
        records["low"], records["high"] = digests[:, 0], digests[:, 1]
        records["index"] = np.arange(self._count, self._count + len(digests), dtype=np.uint64)
        self._file.write(records.tobytes())
        self._count += len(digests)
        self._buffer.clear()

    def repeated(self) -> np.ndarray:
        """Return a memory mapped bool array [sentences]: True if an equal sentence was added before."""
        self._write()
        self._file.close()
        flags = np.memmap(self._folder / "repeated", dtype=bool, mode="w+", shape=(max(1, self._count),))
        for path in self._partitions():
            records = np.fromfile(path, dtype=_RECORD)
            # Sorted by fingerprint, then by index: the first of each run is the one that came first.
            order = np.lexsort((records["index"], records["high"], records["low"]))
            records = records[order]
            low, high = records["low"], records["high"]
            again = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
            flags[records["index"][1:][again]] = True
        return flags[: self._count]

    def _partitions(self) -> list[Path]:
        whole = self._folder / "fingerprints"
        number = -(-self._count // self._partition)
        if number <= 1:
            return [whole]
        paths = [self._folder / f"fingerprints-{i}" for i in range(number)]
        with whole.open("rb") as file:
            while len(records := np.frombuffer(file.read(_CHUNK * _RECORD.itemsize), dtype=_RECORD)):
                # Equal sentences have equal fingerprints, so they meet in one partition.
                home = records["low"] % number
                records = records[np.argsort(home, kind="stable")]
                ends = np.cumsum(np.bincount(home.astype(np.int64), minlength=number))
                for path, part in zip(paths, np.split(records, ends[:-1]), strict=True):
                    if len(part):
                        with path.open("ab") as out:  # opened each time: a big corpus has many partitions
                            out.write(part.tobytes())
        whole.unlink()
        return [path for path in paths if path.exists()]
