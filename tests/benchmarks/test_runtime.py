import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace


@pytest.fixture
def measure(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    sys.modules.pop("runtime", None)
    yield importlib.import_module("runtime").measure
    sys.modules.pop("runtime", None)


def test_padding_and_speed_of_both_ways(measure, tiny_model, sentences):
    tiny_model.train()
    few = [*sentences[:20], "the", "and"]
    as_they_come, by_length = measure(tiny_model, few, batch_size=4, turns=2)
    assert tiny_model.training
    assert (as_they_come.by_length, by_length.by_length) == (False, True)
    for speed in (as_they_come, by_length):
        assert 0 < speed.slowest <= speed.per_second <= speed.fastest
        assert (speed.device, speed.sentences, speed.batch_size) == ("cpu", 22, 4)
    # The padding counted by hand: each batch is as long as its longest sentence.
    lengths = {text: len(tiny_model.tokenizer(text)["input_ids"]) for text in few}
    for speed, ordered in ((as_they_come, few), (by_length, sorted(few, key=len, reverse=True))):
        batches = [[lengths[text] for text in ordered[i : i + 4]] for i in range(0, 22, 4)]
        tokens = sum(max(batch) * len(batch) for batch in batches)
        assert speed.padding == pytest.approx(1 - sum(map(sum, batches)) / tokens)
    assert by_length.padding < as_they_come.padding


def test_each_turn_encodes_all_and_the_first_is_not_counted(measure, tiny_model, monkeypatch):
    """A clock of our own: turns of 100, 2, 4 and 3 seconds as they come, and half of that by length."""
    ticks = iter([0, 100, 0, 50, 0, 2, 0, 1, 0, 4, 0, 2, 0, 3, 0, 1.5])
    monkeypatch.setattr(sys.modules["runtime"], "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    as_they_come, by_length = measure(tiny_model, ["the"] * 12, batch_size=5, turns=3)
    assert (as_they_come.slowest, as_they_come.per_second, as_they_come.fastest) == (3.0, 4.0, 6.0)
    assert by_length.per_second == 8.0


def test_a_mean_of_word_vectors_has_no_padding(measure, sentences):
    words = Tokenizer(WordLevel({"[UNK]": 0, "the": 1, "cat": 2}, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()
    model = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=4)], device="cpu")
    for speed in measure(model, sentences[:20], batch_size=4, turns=1):
        assert speed.padding == 0
        assert speed.per_second > 0


@pytest.mark.parametrize("wrong", [{"sentences": []}, {"batch_size": 0}, {"turns": 0}])
def test_nothing_to_measure(measure, tiny_model, wrong):
    with pytest.raises(ValueError, match="give 1 or more"):
        measure(tiny_model, **({"sentences": ["a"]} | wrong))
