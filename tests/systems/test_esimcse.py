import pytest

from likewise.recipes import OptionError, find_recipe
from likewise.systems.esimcse_loss import MomentumQueue

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
        ({"sam_rho": 0.05}, "no option sam_rho"),
        ({"repetition": 2.0}, "repetition .* at most 1"),
        ({"momentum": 1.5}, "momentum"),
    ],
)
def test_contradictions_are_refused(changes, message):
    with pytest.raises(OptionError, match=message):
        ESIMCSE.options(**changes)
