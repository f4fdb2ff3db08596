"""The stage `states` of a workspace: the states of a frozen encoder for every sentence of the index, computed once.

    states/
      states.safetensors   vectors (S, D) float16, unit length; the word pieces of each sentence; and of each piece,
                           idf (V,) float32
      tokens.npy           float16, the state of every word piece, unit length

Letters of the shapes: S sentences, D embedding, T tokens of a sentence, V word pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch.nn.functional import normalize

from likewise.context.index import open_store
from likewise.context.stage_options import StatesOptions
from likewise.context.workspace import QUIET, ContextError, Stage, Workspace
from likewise.corpus.clean_text import without_surrogates
from likewise.encoder.modules import undisturbed
from likewise.errors import unread
from likewise.inference.load_model import load
from likewise.inference.tokens import by_budget
from likewise.inference.vectors import Precision, autocast
from likewise.runs.job import Job, Resume
from likewise.runs.progress import Progress, orderly_stop
from likewise.runs.whole_files import Parts, checksum

_FILE, _TOKENS = "states.safetensors", "tokens.npy"
_AT_ONCE = 500
"""Sentences of a part: what a stopped run may lose."""
_BATCH_TOKENS = 4_096
_REMEMBERED = 40_000
"""Sentences that are remembered, about 1 GB."""

Side = Literal["centre", "left", "right"]


class SentenceReading(NamedTuple):
    """A sentence as the encoder reads it.

    Attributes:
        vector: Vector of unit length, float32 (D,).
        ids: Word pieces without special tokens, int64 (T,).
        states: States of unit length, float16 (T, D).
    """

    vector: np.ndarray
    ids: np.ndarray
    states: np.ndarray


class FrozenEncoder:
    """An encoder that is only read: vectors of sentences, and the states of `max_tokens` word pieces of each."""

    def __init__(self, name: str, max_tokens: int, precision: Precision = "fp32") -> None:
        self.name, self.max_tokens, self.precision = name, max_tokens, precision
        self.model = load(name, precision="fp32")
        tokenizer = self.model.tokenizer
        if not hasattr(tokenizer, "all_special_ids"):
            raise ContextError(f"states.encoder={name} encodes whole words: give a transformer")
        self.model.max_seq_length = min(self.model.max_seq_length or max_tokens, max_tokens)
        self.pieces = len(tokenizer)
        self._special = np.array(tokenizer.all_special_ids)

    def read_pieces(self, texts: Sequence[str]) -> list[SentenceReading]:
        """Return the word pieces of sentences alone; nothing is encoded."""
        known = [without_surrogates(text) for text in texts]
        token_ids = self.model.tokenizer(known, truncation=True, max_length=self.model.max_seq_length)["input_ids"]
        nothing = np.zeros((0, 0), np.float16)
        ids = (row[~np.isin(row, self._special)] for row in map(np.array, token_ids))
        return [SentenceReading(nothing.ravel(), row_ids, nothing) for row_ids in ids]

    def read(self, texts: Sequence[str], progress: Progress = QUIET) -> list[SentenceReading]:
        """Read sentences; unlike in a `TextEncoder`, any tokenizer of transformers will do."""
        readings: list[Any] = [None] * len(texts)
        with (
            progress.bar("reading sentences", len(texts)) as bar,
            undisturbed(self.model),
            autocast(self.model, self.precision),
            torch.inference_mode(),
        ):
            # About four characters a word piece.
            lengths = np.array([min(self.max_tokens, 3 + len(text) // 4) for text in texts])
            for rows in by_budget(lengths, _BATCH_TOKENS):
                features: Any = self.model.preprocess([without_surrogates(texts[i]) for i in rows])
                features = {k: v.to(self.model.device) if torch.is_tensor(v) else v for k, v in features.items()}
                out = self.model(features)
                vectors = normalize(out["sentence_embedding"].float(), dim=1).cpu().numpy()
                states = normalize(out["token_embeddings"].float(), dim=-1).half().cpu().numpy()
                ids, mask = features["input_ids"].cpu().numpy(), features["attention_mask"].cpu().numpy()
                is_word_piece = mask.astype(bool) & ~np.isin(ids, self._special)
                for k, row in enumerate(rows):
                    readings[row] = SentenceReading(vectors[k], ids[k][is_word_piece[k]], states[k][is_word_piece[k]])
                bar.advance(len(rows))
        return readings


class States:
    """The stage `states` of a workspace: the encoded sentences of its index, and the encoder for other sentences.

    Attributes:
        store: Chunks of the index.
        encoder: Frozen encoder.
        vectors: (S, D) float32, vectors of the index's sentences; (S, 0) if only word pieces are stored.
        ids, starts: Word pieces of sentence i are ids[starts[i] : starts[i + 1]].
        idf: (V,) float32, ln((S + 1) / (sentences with the piece + 1)).

    Raises:
        ContextError: If the stage is missing, stale or damaged.
    """

    def __init__(self, workspace: Workspace) -> None:
        stage = workspace.require("states")
        options = StatesOptions(**stage.record["plan"]["options"])
        try:
            arrays = load_file(stage.folder / _FILE)
            self._tokens = np.load(stage.folder / _TOKENS, mmap_mode="r") if options.keep == "tokens" else None
        except (OSError, ValueError, SafetensorError) as error:
            cure = f"rebuild them with 'likewise context train states --overwrite --work {workspace.path}'"
            raise ContextError(unread(f"{stage.folder}: the states", error, cure)) from None
        self.vectors, self.ids = arrays["vectors"].astype(np.float32), arrays["ids"].astype(np.int64)
        self.starts, self.idf = arrays["starts"], arrays["idf"]
        self.store = open_store(workspace.require("index"))
        self.encoder = FrozenEncoder(options.encoder, options.max_tokens, options.precision)
        self._readings: dict[str, SentenceReading] = {}

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {text: row for row, text in enumerate(self.store.texts())}

    def of(self, rows: Sequence[int] | np.ndarray) -> list[SentenceReading]:
        """Return the kept states of sentences of the index, given by number."""
        tokens = self.vectors[:0] if self._tokens is None else self._tokens
        readings = []
        for row in rows:
            here = slice(self.starts[row], self.starts[row + 1])
            readings.append(SentenceReading(self.vectors[row], self.ids[here], tokens[here]))
        return readings

    def sides(self, contexts: np.ndarray) -> dict[Side, list[list[SentenceReading]]]:
        """Return the sentences left of, in and right of contexts, given by number."""
        centres, places = self.store.places(contexts)
        left = self.store.left
        rows: dict[Side, np.ndarray] = {"left": places[:, :left], "centre": centres[:, None], "right": places[:, left:]}
        return {side: [self.of(row[row >= 0]) for row in numbers] for side, numbers in rows.items()}

    def read(self, texts: Sequence[str]) -> list[SentenceReading]:
        """Read any sentences for the models: word pieces, and vectors if the index has vectors."""
        return self.readings(texts, tokens=False) if self.vectors.shape[1] else self.encoder.read_pieces(texts)

    def readings(self, texts: Sequence[str], progress: Progress = QUIET, tokens: bool = True) -> list[SentenceReading]:
        """Return the states of any sentences, with or without tokens; known sentences are not encoded again."""
        if len(self._readings) + len(texts) > _REMEMBERED:
            self.forget()
        new = []
        for text in dict.fromkeys(texts):
            reading = self._readings.get(text)
            if reading is None and text in self._rows:
                (reading,) = self.of([self._rows[text]])
            if reading is None or (tokens and len(reading.states) < len(reading.ids)):
                new.append(text)
            else:
                self._readings[text] = reading
        self._readings |= dict(zip(new, self.encoder.read(new, progress), strict=True))
        return [self._readings[text] for text in texts]

    def vectors_of(self, texts: Sequence[str], progress: Progress = QUIET) -> np.ndarray:
        """Return the vectors of any sentences (N, D)."""
        return np.stack([reading.vector for reading in self.readings(texts, progress, tokens=False)])

    def forget(self) -> None:
        """Forget the sentences that were read."""
        self._readings.clear()


def read_states(
    work: str | Path,
    options: StatesOptions | None = None,
    *,
    resume: Resume = "auto",
    overwrite: bool = False,
    quiet: bool = False,
) -> Stage:
    """Encode all sentences of a workspace's index with the frozen encoder, unless they are already encoded.

    An interrupted run is resumed after its last complete block of 500 sentences. For the arguments and the errors, see
    `likewise.context.train_discriminator`.

    Raises:
        LoadError: If the encoder cannot be loaded.
    """
    options, workspace, progress = options or StatesOptions(), Workspace(work), Progress(quiet)
    with workspace.open("states", options, ["index"], models=["encoder"], resume=resume, overwrite=overwrite) as job:
        if not job.finished:
            texts = open_store(workspace.require("index")).texts()
            encoder = FrozenEncoder(options.encoder, options.max_tokens, options.precision)
            _read(job, texts, encoder, options.keep, progress)
    return workspace.require("states")


def _read(job: Job, texts: list[str], encoder: FrozenEncoder, keep: str, progress: Progress) -> None:
    names = {begin: f"{begin}.safetensors" for begin in range(0, len(texts), _AT_ONCE)}
    parts = Parts(job.work / "parts")
    with orderly_stop(progress) as stop, progress.bar("encoding sentences", len(names), done=len(parts)) as bar:
        for begin, name in names.items():
            if name in parts:
                continue
            with parts.new(name) as path:
                save_file(_part(texts[begin : begin + _AT_ONCE], encoder, keep), path)
            bar.advance()
            stop.check(f"after {len(parts)} of {len(names)} parts")

    def whole(key: str) -> np.ndarray:
        return np.concatenate([load_file(parts.path(name))[key] for name in names.values()])

    vectors, ids, lengths = whole("vectors"), whole("ids"), whole("lengths")
    starts, width = np.concatenate([[0], np.cumsum(lengths)]), vectors.shape[1]
    if keep == "tokens":
        tokens = np.lib.format.open_memmap(job.result / _TOKENS, "w+", np.float16, (len(ids), width))
        for begin, name in names.items():
            tokens[starts[begin] : starts[min(begin + _AT_ONCE, len(texts))]] = load_file(parts.path(name))["tokens"]
    of = np.repeat(np.arange(len(texts)), lengths)
    holding = np.bincount(np.unique(of * encoder.pieces + ids) % encoder.pieces, minlength=encoder.pieces)
    idf = np.log((len(texts) + 1) / (holding + 1)).astype(np.float32)
    save_file({"vectors": vectors, "ids": ids, "starts": starts, "idf": idf}, job.result / _FILE)
    job.finish({"fingerprint": checksum(job.result / _FILE), "sentences": len(texts), "dimension": width})


def _part(texts: list[str], encoder: FrozenEncoder, keep: str) -> dict[str, np.ndarray]:
    """Return the kept states of some sentences."""
    rows = encoder.read_pieces(texts) if keep == "pieces" else encoder.read(texts)
    arrays: dict[str, np.ndarray] = {
        "vectors": np.stack([row.vector for row in rows]).astype(np.float16),
        "ids": np.concatenate([row.ids for row in rows]).astype(np.int32),
        "lengths": np.array([len(row.ids) for row in rows]),
    }
    return arrays | ({"tokens": np.concatenate([row.states for row in rows])} if keep == "tokens" else {})
