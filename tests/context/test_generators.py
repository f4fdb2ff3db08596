"""Equation 2 against the formula written out and against a loop over single tokens; saving; perplexity."""

import numpy as np
import pytest
import torch

from likewise.context.generators import SOURCES, TASKS, LogBilinear, Transformers, padded
from likewise.context.generators_stage import held_out_contexts, perplexities
from likewise.context.index import Chunk, ChunkStore, write_chunks
from likewise.context.stage_options import GeneratorOptions
from likewise.context.states import SentenceReading
from likewise.context.training_loop import WEIGHTS, load_weights, save_weights
from likewise.context.workspace import ContextError, Stage, Workspace

PIECES = np.array([3, 5, 8, 9])


def sentence(*ids: int) -> SentenceReading:
    vector = np.random.default_rng(sum(ids)).standard_normal(6).astype(np.float32)
    return SentenceReading(vector, np.array(ids, int), np.zeros((0, 6), np.float16))


TEXTS = {
    "left": [[sentence(3, 5), sentence(8)], [], [sentence(9, 9, 7, 3)]],
    "centre": [[sentence(5, 9, 7, 5)], [sentence(8)], [sentence()]],
    "right": [[sentence(8, 8)], [sentence(5), sentence(9), sentence(3)], [sentence(3)]],
}


def build(family, seed=0):
    torch.manual_seed(seed)
    if family is LogBilinear:
        found = LogBilinear(PIECES, 12, width=6, rank=5)
    else:
        sizes = GeneratorOptions(width=16, heads=2, feed_forward=32, layers=2)
        found = Transformers(PIECES, 12, sizes, sentences=3, max_tokens=8)
    with torch.no_grad():
        for weight in found.parameters():
            weight.copy_(torch.randn_like(weight) * 0.4)
    return found.eval()


@pytest.fixture(params=[LogBilinear, Transformers])
def model(request):
    return build(request.param)


def logs_of(model, task, texts=TEXTS):
    memories = [model.encode(task, side, texts[side]) for side in SOURCES[task]]
    return model.log_probabilities(task, memories, model.targets(texts[task]))


@torch.no_grad()
def test_the_log_bilinear_probability_is_that_of_the_formula():
    model = build(LogBilinear)
    found = logs_of(model, "centre")
    for row, ids in enumerate([[1, 3, 1], [2], []]):  # 7 is no word of the model
        hidden = torch.zeros(5)
        for side in ("left", "right"):
            for one in TEXTS[side][row]:
                mean = torch.from_numpy(one.vector) / len(TEXTS[side][row])
                hidden = hidden + model.read[f"centre {side}"].weight @ mean
        logits = [(hidden @ vector + bias).item() for vector, bias in zip(model.vectors, model.bias, strict=True)]
        total = np.log(np.sum(np.exp(logits)))
        assert found[row, : len(ids)].tolist() == pytest.approx([logits[i] - total for i in ids], abs=1e-5)
        assert (found[row, len(ids) :] == 0).all()


@torch.no_grad()
def test_teacher_forcing_in_a_batch_is_the_loop_over_tokens():
    model = build(Transformers)
    end, separator = model.end, model.separator
    assert model.targets(TEXTS["left"]).tolist() == [
        [0, 1, separator, 2, end],
        [end, -1, -1, -1, -1],
        [3, 3, 0, end, -1],
    ]
    for task in TASKS:
        found = logs_of(model, task)
        targets = model.targets(TEXTS[task])
        for row in range(3):
            memories = [model.encode(task, side, TEXTS[side][row : row + 1]) for side in SOURCES[task]]
            ids = targets[row][targets[row] >= 0]
            for t, word in enumerate(ids):
                # The token itself is hidden, one after the other in its place: together they are a distribution.
                logs = [
                    model.log_probabilities(task, memories, torch.cat([ids[:t], torch.tensor([w])])[None])[0, t].item()
                    for w in range(len(PIECES) + 3)
                ]
                assert np.exp(logs).sum() == pytest.approx(1, abs=1e-5)
                assert found[row, t].item() == pytest.approx(logs[word], abs=1e-5)


@torch.no_grad()
def test_where_a_word_stands_matters_to_a_transformer():
    model = build(Transformers)
    turned = TEXTS | {"left": [text[::-1] for text in TEXTS["left"]]}
    assert not torch.allclose(logs_of(model, "centre")[0], logs_of(model, "centre", turned)[0])
    swapped = TEXTS | {"left": TEXTS["right"], "right": TEXTS["left"]}
    assert not torch.allclose(logs_of(model, "centre"), logs_of(model, "centre", swapped))


@torch.no_grad()
def test_the_loss_is_the_mean_over_tasks_of_the_mean_over_words(model, monkeypatch):
    parts = []
    for task in TASKS:
        logs, targets = logs_of(model, task), model.targets(TEXTS[task])
        parts.append(-(logs.sum() / (targets >= 0).sum()).item())
    monkeypatch.setattr(torch, "rand", lambda *size: torch.ones(*size))  # no source is left out
    assert model.loss(TEXTS).item() == pytest.approx(np.mean(parts), rel=1e-5)
    monkeypatch.setattr(torch, "rand", lambda *size: torch.zeros(*size))  # all are
    alone = model.loss(TEXTS).item()
    assert alone != pytest.approx(np.mean(parts), rel=1e-3)
    nothing = {side: [[] for _ in range(3)] for side in TASKS}
    if isinstance(model, LogBilinear):  # a Transformer reads the end token of an empty side
        expected = [logs_of(model, task, nothing | {task: TEXTS[task]}) for task in TASKS]
        counts = [(model.targets(TEXTS[task]) >= 0).sum() for task in TASKS]
        found = [-(logs.sum() / count).item() for logs, count in zip(expected, counts, strict=True)]
        assert alone == pytest.approx(np.mean(found), rel=1e-5)


@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_cells_in_any_order_are_single_examples(model, at_once):
    model.at_once = at_once
    rng = np.random.default_rng(1)
    rows = {side: rng.integers(3, size=20) for side in TASKS}
    for task in TASKS:
        memories = [model.encode(task, side, TEXTS[side]) for side in SOURCES[task]]
        found = model.means(task, memories, model.targets(TEXTS[task]), rows)
        for k in range(20):
            one = {side: [TEXTS[side][rows[side][k]]] for side in TASKS}
            logs, targets = logs_of(model, task, one), model.targets(one[task])
            expected = logs.sum().item() / max(1, int((targets >= 0).sum()))
            assert found[k].item() == pytest.approx(expected, abs=1e-5)


def test_saved_and_loaded(model, tmp_path, says):
    save_weights(model, tmp_path)
    weights = load_weights(Stage("generators", tmp_path, {}))
    assert weights["pieces"].tolist() == [3, 5, 8, 9]
    again = build(type(model), seed=1)
    assert not torch.allclose(logs_of(again, "right"), logs_of(model, "right"))
    again.load_state_dict(weights)
    torch.testing.assert_close(logs_of(again, "right"), logs_of(model, "right"))
    (tmp_path / WEIGHTS).write_bytes(b"x")
    with says(ContextError):
        load_weights(Stage("generators", tmp_path, {}))


def test_padding():
    assert padded([np.array([1, 2]), np.zeros(0, int)]).tolist() == [[1, 2], [-1, -1]]


def test_perplexity_is_exp_of_the_mean_over_words(model):
    class Two:
        def sides(self, numbers):
            return {side: [TEXTS[side][i] for i in numbers] for side in TASKS}

    found = perplexities(model, Two(), np.array([0, 1, 2, 0]))
    four = {side: [TEXTS[side][i] for i in (0, 1, 2, 0)] for side in TASKS}
    for task in TASKS:
        logs, targets = logs_of(model, task, four), model.targets(four[task])
        expected = np.exp(-logs.sum().item() / int((targets >= 0).sum()))
        assert found["right"][task] == pytest.approx(expected, rel=1e-4)
        assert len({round(found[kind][task], 3) for kind in ("right", "shuffled", "none")}) == 3


def test_what_is_held_out_is_whole_documents_without_what_occurs_twice(tmp_path):
    chunks = [Chunk(i, (f"a{i}", "boilerplate" if i % 2 else f"own{i}", f"c{i}")) for i in range(40)]
    chunks.append(Chunk(40, tuple(f"long{i}" for i in range(60))))
    write_chunks(tmp_path / "chunks.arrow", chunks)
    store = ChunkStore(tmp_path / "chunks.arrow", 2, 2)
    texts = store.texts()
    seen = set()
    for seed in range(12):
        training, held = held_out_contexts(store, 8, seed)
        of = [int(store.documents[chunk]) for chunk in store.positions(held)[0]]
        assert not set(of) & {int(store.documents[chunk]) for chunk in store.positions(training)[0]}
        assert not any(texts[row] == "boilerplate" for row in store.places(held)[0])
        assert of.count(40) in (0, 20)
        seen.add(of.count(40))
    assert seen == {0, 20}


def test_the_right_context_predicts_better_than_a_shuffled_one(frozen):
    found = Workspace(frozen).require("generators").record
    for task in TASKS:
        by = {sources: found["perplexity"][sources][task] for sources in ("right", "shuffled", "none")}
        assert by["right"] < by["none"] < by["shuffled"], "themes: the wrong context misleads"
    assert found["held_out"]["documents"] >= 10
