"""Small documents with a theme each, and workspaces made of them."""

import json
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from likewise.context.stage_options import GeneratorOptions
from likewise.evaluation.pairs import RatedPairs
from likewise.evaluation.registry import rated_task

THEMES = {
    "sea": "ship captain harbour island sailor wave anchor storm",
    "farm": "cow barn farmer wheat tractor field horse hay",
    "school": "teacher lesson pupil classroom book pencil exam desk",
    "music": "violin concert song pianist drum melody choir stage",
}


def theme_sentence(rng: random.Random, words: list[str]) -> str:
    """A sentence of three words of a theme, not always of one length."""
    first, second, third = rng.sample(words, 3)
    tail = f" and then near the {third}" if rng.random() < 0.5 else ""
    return f"The {first} stood beside the {second}{tail} on day {rng.randrange(9)}."


def make_articles(path: Path, documents: int, seed: int = 0) -> Path:
    """An articles file; document i has the theme i mod 4 and 6 to 14 sentences."""
    rng = random.Random(seed)
    rows = []
    for number in range(documents):
        words = list(THEMES.values())[number % 4].split()
        text = " ".join(theme_sentence(rng, words) for _ in range(rng.randrange(6, 15)))
        section = {"heading": "", "paragraphs": [text]}
        rows.append(json.dumps({"id": str(number), "title": f"Article {number}", "sections": [section]}))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def articles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 documents."""
    return make_articles(tmp_path_factory.mktemp("articles") / "articles.jsonl", 80)


@pytest.fixture(scope="session")
def indexed(articles: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with its index; tests that write to it take a copy."""
    from likewise.context import IndexOptions, build_index

    work = tmp_path_factory.mktemp("indexed") / "work"
    build_index(work, str(articles), IndexOptions(chunk_sentences=5, hash_bits=12), quiet=True)
    return work


@pytest.fixture(scope="session")
def tiny_options():
    """A discriminator that trains in a second or two."""
    from likewise.context import DiscriminatorOptions

    return DiscriminatorOptions(
        reads="text",
        embedding=24,
        hidden=24,
        rank=24,
        batch_size=40,
        epochs=5,
        learning_rate=0.01,
        held_out=0.3,
        eval_steps=10,
    )


@pytest.fixture(scope="session")
def trained(indexed: Path, tiny_options, tiny_base, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with index, word pieces and a discriminator of its own LSTM; tests only read it."""
    import shutil

    from likewise.context import StatesOptions, read_states, train_discriminator

    work = tmp_path_factory.mktemp("trained") / "work"
    shutil.copytree(indexed, work)
    read_states(work, StatesOptions(encoder=str(tiny_base), max_tokens=24, keep="pieces"), quiet=True)
    train_discriminator(work, tiny_options, quiet=True)
    return work


def _reading(ids):
    from likewise.context.states import SentenceReading

    return SentenceReading(np.zeros(0), np.array(ids, int), np.zeros((0, 0)))


def sentence_part(model, sentence):
    """The discriminator's part of one sentence alone, given as ids: (K,)."""
    return model.sentence_part(model.represent([_reading(sentence)]))[0]


def context_part(model, left, right):
    """The discriminator's part of one context alone, given as ids: (K,). What is past its places is not read."""
    around = [_reading(ids) for ids in (*left[max(0, len(left) - model.left) :], *right[: model.right])]
    n_left, n_right = min(len(left), model.left), min(len(right), model.right)
    places = [-1] * (model.left - n_left) + list(range(n_left + n_right)) + [-1] * (model.right - n_right)
    return model.context_part(model.represent(around), torch.tensor([places]))[0]


@pytest.fixture(scope="session")
def plain_parts():
    """The functions of a sentence's and of a context's part of the logit."""
    return sentence_part, context_part


@pytest.fixture(scope="session")
def plain_logit():
    """The discriminator's logit of one sentence in one context, all as ids; what is past its places is not read."""
    return lambda model, sentence, left, right: sentence_part(model, sentence) @ context_part(model, left, right)


@pytest.fixture(scope="session")
def tiny_generators() -> GeneratorOptions:
    """The `cpu` architecture, tiny."""
    return GeneratorOptions(
        reads="text",
        width=16,
        heads=2,
        feed_forward=32,
        layers=1,
        vocabulary=360,
        dropout=0.0,
        epochs=1,
        batch_size=8,
        held_out=20,
    )


@pytest.fixture(scope="session")
def frozen(indexed: Path, tiny_base, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with all stages of the preset `frozen`, on a tiny encoder; tests only read it."""
    import shutil

    from likewise.context import (
        DiscriminatorOptions,
        StatesOptions,
        read_states,
        train_discriminator,
        train_generators,
    )

    work = tmp_path_factory.mktemp("frozen") / "work"
    shutil.copytree(indexed, work)
    read_states(work, StatesOptions(encoder=str(tiny_base), max_tokens=24), quiet=True)
    options = {"batch_size": 40, "epochs": 3, "held_out": 0.3, "eval_steps": 10, "learning_rate": 0.01, "rank": 16}
    train_discriminator(work, DiscriminatorOptions(**options), quiet=True)
    train_generators(work, GeneratorOptions(rank=16, batch_size=32, learning_rate=0.02, epochs=8), quiet=True)
    return work


@pytest.fixture
def twelve_pairs(data_dir, monkeypatch):
    """The task sts-b-dev for `likewise context score`: 12 of its pairs in the place of all."""
    rated = rated_task("sts-b-dev").pairs(data_dir / "senteval")
    few = RatedPairs(rated.first[::125], rated.second[::125], rated.gold[::125])
    task = SimpleNamespace(pairs=lambda data: few)
    monkeypatch.setattr("likewise.evaluation.registry.rated_task", lambda name: task)
