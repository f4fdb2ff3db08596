"""Generators by a causal model against a plain double loop of whole forward passes."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from likewise.context import GeneratorOptions, ScoreOptions, Workspace, open_origin, pretrained, train_generators
from likewise.context.causal_model import CausalModel
from likewise.context.generators_stage import load_generators
from likewise.context.pretrained import PretrainedGenerators
from likewise.context.stage_options import SelectionOptions

LEFTS = ["The sun rose over the harbour.", "Two dogs ran. They were quick and they were glad.", "No."]
RIGHTS = ["Then it set.", "The boats came home in the evening, one after the other.", "Yes, it did."]
SENTENCES = ["A ship sailed away.", "The children played in the garden until it was dark."]
CELLS = np.array([(s, c) for s in range(2) for c in range(3)])[[3, 0, 5, 1, 4, 2, 0]]


@pytest.fixture
def plain(llama, monkeypatch, tmp_path):
    """log p(text | before) and the number of its tokens by a whole forward pass for each question, in float32."""
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "none")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    model = AutoModelForCausalLM.from_pretrained(llama, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(llama)

    def ids(text):
        return tokenizer(" " + text, add_special_tokens=False)["input_ids"] if text else []

    @torch.no_grad()
    def log(text, *before):
        given = [tokenizer.convert_tokens_to_ids("<|endoftext|>"), *(token for one in before for token in ids(one))]
        logs = model(torch.tensor([given + ids(text)])).logits[0].log_softmax(dim=1)
        return sum(logs[len(given) + i - 1, token].item() for i, token in enumerate(ids(text)))

    log.length = lambda text: len(ids(text))
    return log


@pytest.mark.parametrize("at_once", [2048, 30])
def test_the_sums_are_those_of_whole_forward_passes(llama, plain, monkeypatch, at_once):
    monkeypatch.setattr(pretrained, "_BATCH_TOKENS", at_once)
    scorer = PretrainedGenerators(llama)
    before = ["", *LEFTS]
    cells = np.array([(b, s, c) for b in range(4) for s in range(2) for c in (2, 3)])
    found = scorer.sums(before, [*SENTENCES, *RIGHTS[:2]], cells)
    texts = [*SENTENCES, *RIGHTS[:2]]
    wanted = [(plain(texts[s], before[b]), plain(texts[c], before[b], texts[s])) for b, s, c in cells]
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    assert scorer.lengths(SENTENCES).tolist() == [plain.length(text) for text in SENTENCES]
    assert scorer.sums(before, texts, cells[:0]).shape == (0, 2)


def test_no_sum_is_computed_twice(llama, plain, monkeypatch):
    read = []
    real = CausalModel.padded
    monkeypatch.setattr(CausalModel, "padded", lambda self, rows: read.append(len(rows)) or real(self, rows))
    cells = np.array([(b, s) for b in range(3) for s in range(2)])
    found = PretrainedGenerators(llama).sums(LEFTS, SENTENCES, cells)
    assert sum(read) == 6
    again = PretrainedGenerators(llama).sums(LEFTS, SENTENCES, cells)
    assert sum(read) == 6
    np.testing.assert_allclose(again, found, rtol=1e-6)


@pytest.mark.parametrize("pmi", [True, False])
@pytest.mark.parametrize("given", ["near", "both"])
def test_the_terms_by_bayes_rule(llama, plain, given, pmi):
    model = PretrainedGenerators(llama, given)
    found = model.of_texts(SENTENCES, LEFTS, RIGHTS, CELLS, pmi=pmi)

    def joint(*texts):
        return sum(plain(text, *texts[:i]) for i, text in enumerate(texts))

    wanted = []
    for s, c in CELLS:
        sentence, left, right = SENTENCES[s], LEFTS[c], RIGHTS[c]
        if given == "near":
            logs = [
                joint(left, sentence) - joint(left),
                joint(left, sentence) - joint(sentence),
                plain(right, sentence),
            ]
            alone = [joint(sentence), joint(left), joint(right)]
        else:
            whole = joint(left, sentence, right)
            logs = [whole - joint(left, right), whole - joint(sentence, right), whole - joint(left, sentence)]
            alone = [joint(sentence), joint(left, right) - joint(right), joint(left, right) - joint(left)]
        lengths = [plain.length(text) for text in (sentence, left, right)]
        logs = np.array(logs) - (np.array(alone) if pmi else 0)
        wanted.append(logs / lengths)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=2e-4)
    some = model.of_texts(SENTENCES, LEFTS, RIGHTS, CELLS, (False, True, False), pmi)
    np.testing.assert_allclose(some, found * [0, 1, 0], atol=1e-5)


def test_the_stage_of_a_pretrained_model_and_its_score(llama, frozen, tmp_path, monkeypatch):
    import shutil

    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "none")
    work = tmp_path / "work"
    shutil.copytree(frozen, work, ignore=shutil.ignore_patterns("generators"))
    options = GeneratorOptions(reads="pretrained", model=llama)
    assert train_generators(work, options, quiet=True).record["perplexity"] == {}
    origin = open_origin(work, ScoreOptions(weights=(1, 0, 0, 0, 1, 1, 1)), SelectionOptions(size=3))
    model = load_generators(Workspace(work).require("generators"), origin.states)
    one, other = "The ship stood beside the wave.", "The cow stood beside the barn."
    (terms,) = origin.terms([(one, other)])
    numbers = np.concatenate([origin.contexts([text])[text] for text in (one, other)])
    store = origin.states.store
    for side, text in enumerate((one, other)):

        def plain_terms(contexts, text=text):
            texts = [store.around(np.array([number]))[0] for number in contexts]
            counts = [(store.places(np.array([n]))[1][0, : store.left] >= 0).sum() for n in contexts]
            lefts = [found[count] for found, count in zip(texts, counts, strict=True)]
            rights = [found[count + 1] for found, count in zip(texts, counts, strict=True)]
            cells = np.array([(0, i) for i in range(len(contexts))])
            return model.of_texts([text], lefts, rights, cells)

        few = origin.sample[:: len(origin.sample) // model.sample]
        expected = plain_terms(numbers) - plain_terms(few).mean(axis=0)
        np.testing.assert_allclose(terms[side, :, 1:], expected, atol=1e-3)
