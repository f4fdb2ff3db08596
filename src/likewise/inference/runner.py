"""The loop of the fast encoder: repeated texts once, batches by a budget of tokens, rows in the given order.

Batches run on threads of one core each, which all calls of the process share. A mean of word vectors has a way of its
own: large batches, and no objects for each token. Letters of the shapes: S sentences, D embedding.
"""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding, Transformer
from tokenizers import Tokenizer
from torch import Tensor

from likewise.corpus.lines_and_rows import without_surrogates
from likewise.encoder.word_vectors import WordVectors
from likewise.inference.engines.engine import Engine
from likewise.inference.per_model import PerModel
from likewise.inference.tokens import Step, Tokens, by_budget

_STATIC_BATCH = 1024  # texts of a mean of word vectors: nothing is padded
# Longer than any model reads: tokenizers without a limit say 1e30.
_NO_LIMIT = 1 << 24
_SETTING = threading.Lock()
_POOLS: dict[tuple[int, int], ThreadPoolExecutor] = {}  # by process, as a fork has no threads, and size


class UnfitModel(ValueError):  # noqa: N818 - the reason, not a fault
    """Raised if the fast path does not support a model; sentence-transformers' own path is then used."""


class Runner:
    """The fast encoder of texts with a model and an engine; `runner_of` keeps one for each model."""

    def __init__(self, model: SentenceTransformer) -> None:
        """Check the model."""
        self.tokens, self.state = tokens_of(model), token_state(model)

    def vectors(
        self, texts: Sequence[str], engine: Engine, *, at_most: int | None = None, step: Step = lambda _: None
    ) -> Tensor:
        """Encode texts.

        Args:
            at_most: the most sentences in a batch, if they are limited in addition to the tokens.
            step: called with the number of sentences done after each batch.

        Returns:
            (S, D), on the engine's device and of its type; row i belongs to text i.
        """
        unique = list(dict.fromkeys(texts))
        ids = self.tokens(unique)
        batches = by_budget(np.array([len(row) for row in ids]), engine.budget, at_most)
        threads = torch_threads() if engine.budget < 4096 else 1
        # Two batches a core, or the last one would wait for the others.
        workers = threads if len(batches) >= 2 * threads else 1
        call, rows = engine.open(workers), None

        def run(batch: np.ndarray) -> Tensor:
            return torch.as_tensor(call(*self.tokens.batch([ids[i] for i in batch], engine.at_least)))

        # One batch a core needs no waiting for each other inside a matrix product.
        spread = map if workers == 1 else one_core_threads(workers).map
        for batch, found in zip(batches, spread(run, batches), strict=True):
            if rows is None:
                rows = found.new_empty((len(ids), found.shape[1]))
            rows[torch.from_numpy(batch).to(rows.device)] = found
            step(len(batch))
        assert rows is not None
        if len(unique) == len(texts):
            return rows
        place = {text: i for i, text in enumerate(unique)}
        step(len(texts) - len(unique))
        return rows[torch.tensor([place[text] for text in texts], device=rows.device)]

    def equal_vectors(self, texts: Sequence[str], model: SentenceTransformer, batch_size: int) -> Tensor:
        """Return vectors (S, D) by torch in the batches of sentence-transformers, equal to its own to the last bit."""
        order = np.argsort([-len(text) for text in texts])  # as it sorts
        ids, rows = self.tokens(texts), []
        for start in range(0, len(texts), batch_size):
            batch = self.tokens.batch([ids[i] for i in order[start : start + batch_size]])
            features = dict(zip(("input_ids", "attention_mask"), map(torch.from_numpy, batch), strict=True))
            rows.append(model({name: part.to(model.device) for name, part in features.items()})["sentence_embedding"])
        return torch.cat(rows)[torch.from_numpy(np.argsort(order)).to(model.device)]


runner_of = PerModel(Runner, lambda known, model: known.state == token_state(model))
"""The runner of a model, made again if its tokenizer or its length has changed."""


def fits(model: SentenceTransformer, texts: Sequence[object], prompt: str | None) -> Runner:
    """Return the runner for these texts."""
    if not all(isinstance(text, str) for text in texts):
        raise UnfitModel("not all inputs are texts")
    if prompt and not all(getattr(module, "include_prompt", True) for module in model):
        raise UnfitModel("its pooling leaves the prompt out")
    if has_own_encode(model):
        raise UnfitModel("its encode is its own")
    if getattr(model[0], "can_flatten_inputs", False):
        raise UnfitModel("its batches are flattened for flash attention")
    return runner_of(model)


def has_own_encode(model: SentenceTransformer) -> bool:
    """Return whether a model has an `encode` that is not sentence-transformers'."""
    return "encode" in vars(model) or type(model).encode is not SentenceTransformer.encode


def tokens_of(model: SentenceTransformer) -> Tokens:
    """Return the tokenizer of a model as sentence-transformers' `preprocess`, without padding.

    It is a copy: its padding and truncation are set once, and the model's own is not changed. It is compared with the
    model's `preprocess` on texts that differ in every way that matters.

    Raises:
        UnfitModel: it gives other ids.
    """
    first = model[0]
    if not isinstance(first, (Transformer, WordVectors)):
        raise UnfitModel(f"its first module is {type(first).__name__}")
    if set(getattr(first, "modality_config", {"text": {}})) != {"text"}:
        raise UnfitModel("it reads more than texts")
    own: Any = first.tokenizer
    if not getattr(own, "is_fast", False):
        raise UnfitModel("its tokenizer is not a fast one")
    copy = Tokenizer.from_str(own.backend_tokenizer.to_str())
    copy.encode_special_tokens = bool(own.split_special_tokens)
    copy.no_padding()
    copy.no_truncation()
    limit = int(min(model.max_seq_length or _NO_LIMIT, _NO_LIMIT))
    if limit < _NO_LIMIT:
        copy.enable_truncation(limit, direction=own.truncation_side)
    found = Tokens(copy, int(own.pad_token_id or 0), own.padding_side == "left")
    special = " ".join(str(token) for token in own.all_special_tokens)
    long = "one of many words " * (limit if limit < _NO_LIMIT else 600)
    _compare(found, model, ["", "A.", f"It isn't 3.5, a caf\u00e9; {special} X", long])
    return found


def _compare(tokens: Tokens, model: SentenceTransformer, texts: list[str]) -> None:
    wanted = model.preprocess(texts)
    if (extra := set(wanted) - {"input_ids", "attention_mask", "token_type_ids", "modality"}) or (
        "input_ids" not in wanted or "attention_mask" not in wanted
    ):
        raise UnfitModel(f"its preprocess gives other features ({', '.join(sorted(extra)) or 'no ids'})")
    if "token_type_ids" in wanted and bool(wanted["token_type_ids"].any()):
        raise UnfitModel("its tokens have types")
    ids, mask = tokens.batch(tokens(texts))
    same = wanted["input_ids"].shape == ids.shape and bool((wanted["attention_mask"].numpy() == mask).all())
    if not same or not bool((wanted["input_ids"].numpy() == ids)[mask == 1].all()):
        raise UnfitModel("its preprocess truncates texts in a custom way")


def token_state(model: SentenceTransformer) -> tuple[Any, ...]:
    """Return the state that the tokens depend on: if it changes, tokenize again."""
    tokenizer: Any = getattr(model[0], "tokenizer", None)
    return id(tokenizer), len(tokenizer) if tokenizer is not None else 0, model.max_seq_length


def torch_threads() -> int:
    """Return how many threads torch uses in the calling thread.

    A thread that asks for the first time gets the setting of the process, so it must not ask while that is changed.
    """
    with _SETTING:
        return torch.get_num_threads()


def one_core_threads(count: int) -> ThreadPoolExecutor:
    """Return a pool of threads in each of which torch uses one core.

    It is made once: overlapping calls wait for each other's batches and do not crowd the cores. Making it leaves the
    setting of every other thread as it was.
    """
    with _SETTING:
        known = _POOLS.get((os.getpid(), count))
        if known is not None:
            return known
        # What a thread sets counts for itself, and for threads that start later: those get it back at once.
        threads = torch.get_num_threads()
        pool = ThreadPoolExecutor(count, thread_name_prefix="likewise-core")
        all_set = threading.Barrier(count)

        def one_core(_: int) -> None:
            torch.get_num_threads()  # or the first use in this thread would give it the setting of the process again
            torch.set_num_threads(1)
            all_set.wait()  # a thread that is done would take another one's turn

        list(pool.map(one_core, range(count)))
        torch.set_num_threads(threads)
        _POOLS[os.getpid(), count] = pool
        return pool


def is_static(model: SentenceTransformer) -> bool:
    """Return whether a model starts with a mean of word vectors, and its `encode` is sentence-transformers' own."""
    return isinstance(model[0], StaticEmbedding) and not has_own_encode(model)


def static_vectors(
    model: SentenceTransformer, texts: Sequence[str], *, at_most: int | None = None, step: Step
) -> Tensor:
    """Return the vectors (S, D) of texts, 1 or more; `step` as in `Runner.vectors`."""
    words: Any = model[0]
    size, found = at_most or _STATIC_BATCH, []
    for start in range(0, len(texts), size):
        piece = [without_surrogates(text) for text in texts[start : start + size]]
        ids = [text.ids for text in words.tokenizer.encode_batch_fast(piece, add_special_tokens=False)]
        lengths = np.array([len(row) for row in ids])
        flat = np.fromiter((i for row in ids for i in row), dtype=np.int64, count=int(lengths.sum()))
        features = {
            "input_ids": torch.from_numpy(flat).to(model.device),
            "offsets": torch.from_numpy(np.cumsum(lengths) - lengths).to(model.device),
        }
        found.append(model(features)["sentence_embedding"])
        step(len(piece))
    return torch.cat(found)
