"""The terms of equation 3 in batches and from caches against a literal loop over sentences and contexts."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

from likewise.context import ContextFinder, Workspace, generators, train_generators
from likewise.context import origin as origin_file
from likewise.context.generators import SOURCES, TASKS
from likewise.context.generators_stage import load_generators
from likewise.context.origin import Origin
from likewise.context.stage_options import ScoreOptions
from likewise.runs.progress import Progress

SENTENCES = ["The ship stood beside the wave.", "The cow stood beside the barn and then near the field.", "A dog!"]
NUMBERS = [3, 40, 41, 7]


class Counting(Progress):
    """Keeps its bars."""

    @contextmanager
    def bar(self, what, total=None, **more):
        with super().bar(what, total, **more) as bar:
            self.bars = [*getattr(self, "bars", []), bar]
            yield bar


@pytest.fixture(scope="module", params=["states", "text"])
def opened(request, frozen, trained, tiny_generators, tmp_path_factory):
    """Generators and ranker of either family."""
    work = frozen
    if request.param == "text":
        import shutil

        work = tmp_path_factory.mktemp("terms") / "work"
        shutil.copytree(trained, work)
        train_generators(work, tiny_generators.updated(max_steps=6), quiet=True)
    ranker = ContextFinder.open(work).ranker
    return load_generators(Workspace(work).require("generators"), ranker.states), ranker


def origin_of(opened, options, progress=None):
    """Origin with both."""
    model, ranker = opened
    origin = Origin("work", ranker.states, options, progress=progress or Progress(quiet=True))
    origin.finder, origin.generators = ContextFinder(ranker.states.store, None, ranker), model
    return origin


@torch.no_grad()
def literal(opened, sentence, number, without=False):
    """The logit and the three mean log probabilities of one sentence in one context, each run on this example alone."""
    model, ranker = opened
    states = ranker.states
    texts = states.sides(np.array([number])) | {"centre": [states.read([sentence])]}
    found = []
    for task in TASKS:
        memories = [model.encode(task, side, texts[side]) for side in SOURCES[task]]
        if without:
            gone = [task == "centre" or side == "centre" for side in SOURCES[task]]
            memories = [memory.without(torch.tensor([out])) for memory, out in zip(memories, gone, strict=True)]
        targets = model.targets(texts[task])
        logs = model.log_probabilities(task, memories, targets)
        found.append(logs.sum().item() / max(1, int((targets >= 0).sum())))
    head = ranker.model
    logit = ranker.sentence_parts(states.read([sentence]))[0] @ torch.from_numpy(ranker.parts[number].copy())
    assert head.training is False
    return np.array([logit.item(), *found])


@pytest.mark.parametrize("at_once", [2, 256])
def test_the_papers_terms_are_the_literal_double_loop(opened, monkeypatch, at_once):
    monkeypatch.setattr(generators, "_CONTEXTS", at_once)
    monkeypatch.setattr(origin_file, "_CELLS", at_once)
    progress = Counting(quiet=True)
    origin = origin_of(opened, ScoreOptions(form="paper"), progress)
    cells = np.array([(s, c) for s in range(len(SENTENCES)) for c in NUMBERS])
    rng = np.random.default_rng(0)
    cells = cells[rng.integers(len(cells), size=30)]  # in any order, repeated ones too
    found = origin.cell_terms(SENTENCES, cells)
    expected = np.array([literal(opened, SENTENCES[s], c) for s, c in cells])
    expected[:, 0] = -np.log1p(np.exp(-expected[:, 0]))
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert (found < 0).all()
    assert progress.bars[0].done == progress.bars[0].total
    assert origin.cell_terms(SENTENCES, cells[:0]).shape == (0, 4)


def test_the_pointwise_mutual_information_of_each_term(opened, monkeypatch):
    monkeypatch.setattr(origin_file, "_SAMPLE", 6)
    origin = origin_of(opened, ScoreOptions(form="pmi"))
    assert len(origin.sample) == 6

    def plain(sentence, number):
        without = literal(opened, sentence, number, without=True) * [0, 1, 1, 1]
        return literal(opened, sentence, number) - without

    cells = np.array([[0, 3], [1, 3], [1, 41]])
    means = [np.mean([plain(SENTENCES[s], number) for number in origin.sample], axis=0) for s in (0, 1)]
    expected = [plain(SENTENCES[s], c) - means[s] for s, c in cells]
    np.testing.assert_allclose(origin.cell_terms(SENTENCES, cells), expected, atol=3e-5)


def test_scores_are_the_weighted_terms_and_a_weight_of_zero_costs_nothing(opened, monkeypatch):
    all_terms = origin_of(opened, ScoreOptions(form="paper")).cell_terms(
        ["A dog!"], np.array([(0, c) for c in NUMBERS])
    )
    origin = origin_of(opened, ScoreOptions(form="paper", weights=(0, 0.5, 0.0, 0.2)))
    asked = []
    real = origin.generators.encode
    monkeypatch.setattr(origin.generators, "encode", lambda task, *rest: asked.append(task) or real(task, *rest))
    monkeypatch.setattr(origin.finder.ranker, "sentence_parts", None)
    found = origin.fits("A dog!", np.array(NUMBERS))
    np.testing.assert_allclose(found, all_terms @ [0, 0.5, 0, 0.2], atol=1e-6)
    assert set(asked) == {"centre", "right"}


def test_a_text_is_encoded_once_for_all_that_read_it(opened, monkeypatch):
    origin = origin_of(opened, ScoreOptions(form="paper"))
    real, texts = origin.generators.encode, []
    monkeypatch.setattr(
        origin.generators,
        "encode",
        lambda task, side, found: texts.append((task, side, len(found))) or real(task, side, found),
    )
    origin.cell_terms(SENTENCES, np.array([(s, c) for s in range(3) for c in NUMBERS]))
    assert sorted(texts) == sorted(
        (task, side, 3 if side == "centre" else 4) for task in TASKS for side in SOURCES[task]
    )
