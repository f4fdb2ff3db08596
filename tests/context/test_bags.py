"""The log-bilinear generators, against the formula written out, and what they learn."""

import numpy as np
import pytest
import torch

from likewise.context import Workspace
from likewise.context.bag_training import held_out_contexts
from likewise.context.bags import BagGenerators, Corpus, pad_bags
from likewise.context.chunks import Chunk, ChunkStore, write_chunks
from likewise.context.indexing import open_store
from likewise.context.state_score import StateScorer
from likewise.context.states import open_states
from likewise.context.workspace import ContextError


@pytest.fixture
def model():
    torch.manual_seed(0)
    found = BagGenerators(np.array([3, 5, 8, 9]), 12, width=6, rank=5)
    with torch.no_grad():
        for weight in found.parameters():
            weight.copy_(torch.randn_like(weight))
    return found.eval()


def test_the_mean_log_probability_is_that_of_the_formula(model):
    left, right = torch.randn(2, 6), torch.randn(2, 6)
    targets = pad_bags([model.words(np.array([5, 9, 7, 5])), model.words(np.array([8]))])
    found = model.mean_log_probabilities("centre", {"left": left, "right": right}, targets)
    for row, ids in enumerate([[1, 3, 1], [2]]):  # 7 is no word of the model
        hidden = model.read["centre left"].weight @ left[row] + model.read["centre right"].weight @ right[row]
        logits = [(hidden @ vector + bias).item() for vector, bias in zip(model.vectors, model.bias, strict=True)]
        total = np.log(np.sum(np.exp(logits)))
        assert float(found[row]) == pytest.approx(np.mean([logits[i] - total for i in ids]), abs=1e-5)
    assert model.mean_log_probabilities("centre", {"left": left[:1]}, pad_bags([np.zeros(0, int)])).item() == 0


def test_saved_and_loaded(model, tmp_path):
    model.save(tmp_path)
    again = BagGenerators.load(tmp_path)
    assert again.words.pieces.tolist() == [3, 5, 8, 9]
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values(), strict=True))
    (tmp_path / "bags.safetensors").write_bytes(b"x")
    with pytest.raises(ContextError, match="train them again"):
        BagGenerators.load(tmp_path)


def test_what_is_held_out_is_whole_documents_without_what_occurs_twice(tmp_path):
    chunks = [Chunk(i, (f"a{i}", "boilerplate" if i % 2 else f"own{i}", f"c{i}")) for i in range(40)]
    chunks.append(Chunk(40, tuple(f"long{i}" for i in range(60))))
    write_chunks(tmp_path / "chunks.arrow", chunks)
    store = ChunkStore(tmp_path / "chunks.arrow", 2, 2)
    texts = [text for chunk in chunks for text in chunk.sentences]
    seen = set()
    for seed in range(12):
        training, held = held_out_contexts(store, texts, 8, seed)
        of = [int(store.documents[chunk]) for chunk in store.positions(held)[0]]
        assert not set(of) & {int(store.documents[chunk]) for chunk in store.positions(training)[0]}
        assert not any(texts[row] == "boilerplate" for row in store.places(held)[0])
        assert of.count(40) in (0, 20)
        seen.add(of.count(40))
    assert seen == {0, 20}


def test_the_right_context_predicts_better_than_a_shuffled_one(frozen):
    found = Workspace(frozen).require("generators").record
    for task in ("centre", "left", "right"):
        by = {sources: found["perplexity"][sources][task] for sources in ("right", "shuffled", "none")}
        assert by["right"] < by["none"] < by["shuffled"], "themes: the wrong context misleads"
    assert found["held_out"]["documents"] >= 10


def test_the_pointwise_mutual_information_of_each_term(frozen):
    from likewise.context import ContextFinder
    from likewise.context.options import ScoreOptions

    states = open_states(Workspace(frozen).require("states"))
    finder = ContextFinder.open(frozen, states.encoder)
    model = BagGenerators.load(frozen / "generators")
    texts = ["The ship stood beside the wave.", "The cow stood beside the barn."]
    contexts = finder.store.contexts(np.array([3, 40, 41]))
    cells = np.array([[0, 0], [1, 0], [1, 2]])
    scorers = [StateScorer(model, finder.ranker, states, ScoreOptions(form=form)) for form in ("paper", "pmi")]
    paper, pmi = (scorer.terms(texts, contexts, cells) for scorer in scorers)
    sample = scorers[1].sample
    everywhere = np.array([[s, c] for s in (0, 1) for c in range(len(sample))])
    usual = scorers[0].terms(texts, finder.store.contexts(sample), everywhere).reshape(2, len(sample), 4)
    assert (paper <= 0).all()
    logits, usual_logits = (np.log(np.exp(x) / (1 - np.exp(x))) for x in (paper[:, 0], usual[:, :, 0]))
    np.testing.assert_allclose(pmi[:, 0], logits - usual_logits.mean(axis=1)[cells[:, 0]], atol=1e-3)
    corpus = Corpus(open_store(Workspace(frozen).require("index")), states, model.words)

    def plain(sentence, number):
        vectors, targets = corpus.sides(np.array([number]))
        own = torch.from_numpy(states.encoder.vectors([texts[sentence]]))
        nothing = torch.zeros_like(own)
        bag = pad_bags([model.words(states.encoder.ids([texts[sentence]])[0])])
        given = [
            ("centre", {"left": vectors["left"], "right": vectors["right"]}, {"left": nothing, "right": nothing}, bag),
            ("left", {"centre": own, "right": vectors["right"]}, {"right": vectors["right"]}, targets["left"]),
            ("right", {"left": vectors["left"], "centre": own}, {"left": vectors["left"]}, targets["right"]),
        ]
        pairs = [[model.mean_log_probabilities(t, one, target).item() for one in (a, b)] for t, a, b, target in given]
        return np.array(pairs)  # (3, with the sentence and without)

    means = [np.mean([plain(sentence, number) @ [1, -1] for number in sample], axis=0) for sentence in (0, 1)]
    for row, (sentence, context) in enumerate(cells):
        both = plain(sentence, [3, 40, 41][context])
        assert paper[row, 1:] == pytest.approx(both[:, 0], abs=1e-5)
        assert pmi[row, 1:] == pytest.approx(both @ [1, -1] - means[sentence], abs=1e-5)
