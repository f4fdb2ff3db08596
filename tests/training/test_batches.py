import numpy as np
from datasets import Dataset
from transformers import AutoTokenizer

from likewise.training.batches import LengthBatchSampler, lengths_of

LENGTHS = np.random.default_rng(0).integers(3, 60, 5003)


def test_every_row_once_but_for_the_last_incomplete_batch():
    batches = list(LengthBatchSampler(LENGTHS, 16, seed=1))
    rows = [row for batch in batches for row in batch]
    assert len(batches) == 5003 // 16 == len(LengthBatchSampler(LENGTHS, 16, seed=1))
    assert all(len(batch) == 16 for batch in batches)
    assert len(set(rows)) == len(rows)


def test_padding_is_far_less_than_in_shuffled_batches():
    def padded(by_length):
        batches = LengthBatchSampler(LENGTHS if by_length else np.zeros_like(LENGTHS), 16, seed=1)
        return sum(16 * max(LENGTHS[b]) for b in batches)

    content = LENGTHS.sum()
    assert padded(False) / content > 1.7
    assert padded(True) / content < 1.1


def test_order_depends_on_seed_and_epoch_alone():
    one, same, other = (LengthBatchSampler(LENGTHS, 16, seed=s) for s in (1, 1, 2))
    assert list(one) == list(same) == list(one)
    assert list(one) != list(other)
    same.set_epoch(1)
    assert list(one) != list(same)


def test_batches_do_not_come_in_order_of_length():
    means = [LENGTHS[b].mean() for b in LengthBatchSampler(LENGTHS, 16, seed=1)]
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.2


class OfTransformer:
    def __init__(self, base):
        self.tokenizer = AutoTokenizer.from_pretrained(base)


def test_lengths_are_in_tokens_where_the_model_reads_tokens(tiny_base):
    model = OfTransformer(str(tiny_base))
    texts = ["a river", "unbelievable antidisestablishmentarianism", "the old river sees the dog", "a"]
    data = Dataset.from_dict({"sentence": texts, "words": [len(text.split()) for text in texts]})
    lengths = lengths_of(data, model)
    assert len(lengths) == 4
    assert lengths[np.array([3, 1])].tolist() == [len(model.tokenizer(texts[i])["input_ids"]) for i in (3, 1)]
    assert lengths_of(data, object()).tolist() == [2, 2, 6, 1]


def test_the_lengths_of_labelled_rows_are_those_of_all_their_texts(tiny_base):
    model, rows = OfTransformer(str(tiny_base)), np.arange(2)
    data = Dataset.from_dict(
        {"sentence1": ["a river", "the dog"], "sentence2": ["a", "the old river"], "label": [0, 1]}
    )
    wanted = [
        len(model.tokenizer(row["sentence1"])["input_ids"] + model.tokenizer(row["sentence2"])["input_ids"])
        for row in data
    ]
    assert lengths_of(data, model)[rows].tolist() == wanted
    assert lengths_of(data, None).tolist() == [3, 5]
