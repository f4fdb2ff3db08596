from collections import Counter

import numpy as np
import pytest

from compared.esimcse import repeat_tokens
from compared.esimcse_loss import MomentumQueue
from likewise.recipes import OptionError, find_recipe

ESIMCSE = find_recipe("esimcse")


def test_the_paper_s_values():
    options = ESIMCSE.options("paper-base")
    assert not options.length_batches
    assert (options.repetition, options.momentum, options.queue, options.temperature) == (0.32, 0.995, 2.5, 0.05)
    assert (options.batch_size, options.learning_rate, options.dropout, options.pooling) == (64, 3e-5, 0.1, "cls")


def test_the_queue_is_a_multiple_of_the_batch(tiny_base):
    encoder = ESIMCSE.build_encoder(str(tiny_base), ESIMCSE.options(batch_size=6))
    (queue,) = [module for module in encoder if isinstance(module, MomentumQueue)]
    assert tuple(queue.queue.shape) == (15, 32)
    without = ESIMCSE.build_encoder(str(tiny_base), ESIMCSE.options(queue=0.0))
    assert not any(isinstance(module, MomentumQueue) for module in without)


def test_the_second_column_repeats_sub_words_between_the_special_tokens(tiny_base, sentences):
    options = ESIMCSE.options(max_length=12)
    encoder = ESIMCSE.build_encoder(str(tiny_base), options)
    rows = [{"sentence": s} for s in sentences[:30]]
    batch = ESIMCSE.build_collator(encoder, options, 1)(rows)
    lengths = []
    for i in range(30):
        plain, repeated = (
            batch[f"{column}_input_ids"][i][batch[f"{column}_attention_mask"][i].bool()].tolist()
            for column in ("sentence", "repeated")
        )
        assert (plain[0], plain[-1]) == (repeated[0], repeated[-1])
        assert len(plain) <= 12
        lengths.append(len(repeated) - len(plain))
        # Every token of the sentence, in order, each once or twice.
        left = iter(repeated)
        assert all(token in left for token in plain)
    # N = 10 sub-words: from 0 to 3 are repeated.
    assert set(lengths) == {0, 1, 2, 3}
    again = ESIMCSE.build_collator(encoder, options, 1)(rows)
    assert again["repeated_input_ids"].equal(batch["repeated_input_ids"])
    other = ESIMCSE.build_collator(encoder, options, 2)(rows)["repeated_input_ids"]
    assert other.tolist() != batch["repeated_input_ids"].tolist()


def test_repetitions_never_pass_what_the_base_reads(tiny_base, sentences):
    options = ESIMCSE.options()
    encoder = ESIMCSE.build_encoder(str(tiny_base), options)
    long = " ".join(sentences[:20])
    batch = ESIMCSE.build_collator(encoder, ESIMCSE.options(max_length=0), 1)([{"sentence": long}])
    assert batch["repeated_input_ids"].shape[1] <= 128


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"repetition": 2.0}, "repetition .* at most 1"),
        ({"momentum": 1.5}, "momentum"),
    ],
)
def test_contradictions_are_refused(changes, message):
    with pytest.raises(OptionError, match=message):
        ESIMCSE.options(**changes)


def repeats(n, rate, draws=4000):
    rng = np.random.default_rng(1)
    return [repeat_tokens(range(n), rate, rng) for _ in range(draws)]


@pytest.mark.parametrize(("n", "rate", "most"), [(25, 0.32, 8), (5, 0.32, 2), (40, 0.1, 4), (1, 0.32, 1), (10, 0, 2)])
def test_the_number_of_repetitions_is_even_from_0_to_dup_len(n, rate, most):
    found = repeats(n, rate)
    counts = Counter(len(tokens) - n for tokens in found)
    assert set(counts) == set(range(most + 1))
    # Each of the most + 1 numbers has the same share: five deviations of a binomial.
    share = 1 / (most + 1)
    assert all(abs(c / len(found) - share) < 5 * (share * (1 - share) / len(found)) ** 0.5 for c in counts.values())


def test_a_repeated_token_stands_behind_itself_once_and_order_is_kept():
    for tokens in repeats(25, 0.32, 200):
        assert sorted(set(tokens)) == list(range(25))
        assert tokens == sorted(tokens)
        assert max(Counter(tokens).values()) <= 2


def test_every_token_is_repeated_equally_often():
    found = repeats(25, 0.32)
    often = Counter(token for tokens in found for token, count in Counter(tokens).items() if count == 2)
    # The mean number of repetitions is 4 of 25.
    assert all(abs(often[token] / len(found) - 4 / 25) < 0.03 for token in range(25))


def test_edges_of_repetition():
    assert repeat_tokens([], 0.32, np.random.default_rng(0)) == []
    with pytest.raises(ValueError, match="share"):
        repeat_tokens([1], 1.5, np.random.default_rng(0))
