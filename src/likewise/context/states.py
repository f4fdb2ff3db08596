"""The stage `states` of a workspace: what a frozen encoder says of every sentence of the index, computed once.

    states/
      states.safetensors   vectors (S, D) float16, unit length; the word pieces of each sentence; and of each piece,
                           idf (V,) float32

Letters of the shapes: S sentences, D embedding, T tokens of a sentence, V word pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from likewise.context.indexing import open_store
from likewise.context.options import StatesOptions
from likewise.context.workspace import ContextError, Stage, Workspace
from likewise.inference.encoding import undisturbed
from likewise.inference.loading import load
from likewise.runs.job import Job, Resume
from likewise.runs.parts import Parts, checksum
from likewise.runs.progress import Progress
from likewise.runs.stopping import orderly_stop

_FILE = "states.safetensors"
_AT_ONCE = 500
"""Sentences of a part: what a stopped run may lose."""
_BATCH_TOKENS = 4_096
_KEPT = 40_000
"""Sentences that are remembered, about 1 GB with their tokens."""


class Tokens(NamedTuple):
    """The word pieces of a sentence, without special tokens: ids int64 (T,), states float16 (T, D), unit length."""

    ids: np.ndarray
    states: np.ndarray


class FrozenEncoder:
    """An encoder that is only read: vectors of sentences, and the states of their word pieces.

    Args:
        name: what `likewise.load` takes.
        max_tokens: word pieces read of a sentence, special tokens included.

    Raises:
        LoadError: it cannot be loaded.
        ContextError: it has no word pieces.
    """

    def __init__(self, name: str, max_tokens: int) -> None:
        self.name, self.max_tokens = name, max_tokens
        self.model = load(name)
        tokenizer = self.model.tokenizer
        if not hasattr(tokenizer, "all_special_ids"):
            raise ContextError(f"states.encoder={name}: it reads whole words: give a transformer")
        self.model.max_seq_length = min(self.model.max_seq_length or max_tokens, max_tokens)
        self.pieces = len(tokenizer)
        self._special = np.array(tokenizer.all_special_ids)
        self._vectors: dict[str, np.ndarray] = {}
        self._tokens: dict[str, Tokens] = {}

    def ids(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the word pieces of sentences, without special tokens."""
        found = self.model.tokenizer(list(texts), truncation=True, max_length=self.model.max_seq_length)["input_ids"]
        return [row[~np.isin(row, self._special)] for row in map(np.array, found)]

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of sentences (S, D); those that were read before are kept."""
        self.remember(texts)
        return np.stack([self._vectors[text] for text in texts])

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of sentences; those that were read before are kept."""
        self.remember(texts, tokens=True)
        return [self._tokens[text] for text in texts]

    def forget(self) -> None:
        """Forget what was read."""
        self._vectors.clear()
        self._tokens.clear()

    def remember(self, texts: Sequence[str], *, tokens: bool = False, progress: Progress | None = None) -> None:
        """Read those of the sentences that were not read before."""
        known: Any = self._tokens if tokens else self._vectors
        if len(self._vectors) + len(texts) > _KEPT:
            self.forget()
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            vectors, found = self.read(new, tokens=tokens, progress=progress)
            self._vectors |= dict(zip(new, vectors, strict=True))
            self._tokens |= dict(zip(new, found, strict=False))

    def read(
        self, texts: Sequence[str], *, tokens: bool = False, progress: Progress | None = None
    ) -> tuple[np.ndarray, list[Tokens]]:
        """Read sentences.

        Returns:
            (S, D) float32 vectors of unit length, and the tokens of each sentence (an empty list without `tokens`).
        """
        vectors: np.ndarray | None = None
        found: list[Any] = [None] * len(texts)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        with (
            (progress or Progress(quiet=True)).bar("reading sentences", len(texts)) as bar,
            undisturbed(self.model),
            torch.inference_mode(),
        ):
            for rows in self._batches(texts, order):
                features: Any = self.model.preprocess([texts[i] for i in rows])
                features = {k: v.to(self.model.device) if torch.is_tensor(v) else v for k, v in features.items()}
                out = self.model(features)
                unit = torch.nn.functional.normalize(out["sentence_embedding"].float(), dim=1).cpu().numpy()
                if vectors is None:
                    vectors = np.zeros((len(texts), unit.shape[1]), np.float32)
                vectors[rows] = unit
                if tokens:
                    states = torch.nn.functional.normalize(out["token_embeddings"].float(), dim=-1).half().cpu().numpy()
                    ids, mask = features["input_ids"].cpu().numpy(), features["attention_mask"].cpu().numpy()
                    kept = mask.astype(bool) & ~np.isin(ids, self._special)
                    for k, row in enumerate(rows):
                        found[row] = Tokens(ids[k][kept[k]], states[k][kept[k]])
                bar.advance(len(rows))
        assert vectors is not None, "there is a sentence"
        return vectors, found if tokens else []

    def _batches(self, texts: Sequence[str], order: list[int]) -> list[list[int]]:
        """Cut sentences, the shortest first, into batches of near-equal length."""
        found: list[list[int]] = [[]]
        for i in order:
            # About four characters a word piece; a batch is bounded by its longest, which is the last.
            length = min(self.max_tokens, 3 + len(texts[i]) // 4)
            if found[-1] and (len(found[-1]) + 1) * length > _BATCH_TOKENS:
                found.append([])
            found[-1].append(i)
        return found


@dataclass(frozen=True)
class States:
    """The stage `states`.

    Attributes:
        encoder: the frozen encoder.
        vectors: (S, D) float32, of the index's sentences.
        ids, starts: the word pieces of sentence i are ids[starts[i] : starts[i + 1]].
        idf: (V,) float32, ln((S + 1) / (sentences with the piece + 1)).
    """

    encoder: FrozenEncoder
    vectors: np.ndarray
    ids: np.ndarray
    starts: np.ndarray
    idf: np.ndarray

    def pieces(self, sentence: int) -> np.ndarray:
        """Return the word pieces of a sentence of the index."""
        return self.ids[self.starts[sentence] : self.starts[sentence + 1]]


def read_states(
    work: str | Path,
    options: StatesOptions | None = None,
    *,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
) -> Stage:
    """Read all sentences of a workspace's index with the frozen encoder, unless that is done.

    Args:
        work: the workspace's folder, with its stage `index`.
        options: the encoder.
        resume, overwrite, quiet: as in `likewise.context.build_index`; a stopped run goes on after its last 500
            sentences.

    Raises:
        ContextError: there is no index, it is stale, or the encoder has no word pieces.
        LoadError: the encoder cannot be loaded.
        JobError: the stage was made with other options.
        Stopped: a stop was asked for.
    """
    options, workspace, progress = options or StatesOptions(), Workspace(work), Progress(quiet)
    with workspace.open("states", options, ["index"], resume=resume, overwrite=overwrite) as job:
        if not job.finished:
            store = open_store(workspace.require("index"))
            texts = [sentence for part in store.sentences() for sentence in part]
            _read(job, texts, FrozenEncoder(options.encoder, options.max_tokens), progress)
    return workspace.require("states")


def _read(job: Job, texts: list[str], encoder: FrozenEncoder, progress: Progress) -> None:
    from safetensors.numpy import load_file, save_file

    # Equal lengths share a part, so that little is padded.
    order = np.argsort([len(text) for text in texts], kind="stable")
    begins = range(0, len(texts), _AT_ONCE)
    names = {begin: f"{begin}-{min(begin + _AT_ONCE, len(texts))}.safetensors" for begin in begins}
    parts = Parts(job.work / "parts")
    with orderly_stop(progress) as stop, progress.bar("encoding sentences", len(begins), done=len(parts)) as bar:
        for begin in begins:
            if names[begin] in parts:
                continue
            rows = [texts[i] for i in order[begin : begin + _AT_ONCE]]
            vectors, _ = encoder.read(rows)
            ids = encoder.ids(rows)
            found: dict[str, np.ndarray] = {
                "vectors": vectors.astype(np.float16),
                "ids": np.concatenate(ids).astype(np.int32),
            }
            found["lengths"] = np.array([len(row) for row in ids])
            with parts.new(names[begin]) as path:
                save_file(found, path)
            bar.advance()
            stop.check(f"after {len(parts)} of {len(begins)} parts")
    blocks = [load_file(parts.path(names[begin])) for begin in begins]
    back = np.argsort(order)
    pieces = [row for block in blocks for row in np.split(block["ids"], np.cumsum(block["lengths"])[:-1])]
    pieces = [pieces[i] for i in back]
    vectors = np.concatenate([block["vectors"] for block in blocks])[back]
    holding = np.bincount(np.concatenate([np.unique(row) for row in pieces]), minlength=encoder.pieces)
    content: dict[str, np.ndarray] = {
        "vectors": vectors,
        "ids": np.concatenate(pieces),
        "starts": np.cumsum([0, *map(len, pieces)]),
        "idf": np.log((len(texts) + 1) / (holding + 1)).astype(np.float32),
    }
    save_file(content, job.result / _FILE)
    job.finish({"fingerprint": checksum(job.result / _FILE), "sentences": len(texts), "dimension": vectors.shape[1]})


def open_states(stage: Stage) -> States:
    """Return the states of a stage, with its encoder."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    options = stage.record["plan"]["options"]
    try:
        found = load_file(stage.folder / _FILE)
    except (OSError, SafetensorError) as error:
        raise ContextError(
            f"{stage.folder / _FILE} cannot be read ({error}): make it again with 'likewise context "
            f"train states --overwrite --work {stage.folder.parent}'"
        ) from None
    encoder = FrozenEncoder(options["encoder"], options["max_tokens"])
    return States(
        encoder, found["vectors"].astype(np.float32), found["ids"].astype(np.int64), found["starts"], found["idf"]
    )
