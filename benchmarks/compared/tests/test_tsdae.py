import numpy as np
import pytest
import torch

from compared.tsdae import delete_words, noisy_views
from compared.tsdae_loss import TrainingDecoder
from likewise.encoder.location import LoadError
from likewise.recipes import OptionError, find_recipe

TSDAE = find_recipe("tsdae")


@pytest.fixture
def encoder_and_loss(tiny_base):
    options = TSDAE.options(batch_size=4)
    encoder = TSDAE.build_encoder(str(tiny_base), options)
    return encoder, TSDAE.build_loss(encoder, options)


def test_the_paper_s_values():
    options = TSDAE.options("paper")
    assert not options.length_batches
    assert (options.deletion, options.pooling, options.batch_size) == (0.6, "cls", 8)
    assert (options.learning_rate, options.schedule) == (3e-5, "constant")


def test_views_are_the_remains_and_the_sentence(sentences):
    columns = noisy_views([{"sentence": s} for s in sentences[:20]], 0.6, 1)
    assert columns["sentence"] == sentences[:20]
    for noisy, sentence in zip(columns["noisy"], columns["sentence"], strict=True):
        left = iter(sentence.split())
        assert all(word in left for word in noisy.split())
    assert noisy_views([{"sentence": sentences[3]}], 0.6, 1)["noisy"][0] == columns["noisy"][3]


def test_the_decoder_shares_the_encoder_s_weights_and_lies_in_its_checkpoints(encoder_and_loss, tmp_path):
    encoder, loss = encoder_and_loss
    (module,) = [part for part in encoder if isinstance(part, TrainingDecoder)]
    assert module.decoder is loss.decoder
    first = dict(encoder[0].auto_model.named_parameters())["encoder.layer.0.attention.self.query.weight"]
    second = dict(loss.decoder.named_parameters())["bert.encoder.layer.0.attention.self.query.weight"]
    assert first is second
    (tmp_path / "module").mkdir()
    module.save(str(tmp_path / "module"))
    state, again = module.state_dict(), TrainingDecoder.load(str(tmp_path), subfolder="module").state_dict()
    assert state.keys() == again.keys()
    assert all(torch.equal(state[name], again[name]) for name in state)


def test_it_learns_to_make_the_sentences_again(encoder_and_loss, sentences):
    encoder, loss = encoder_and_loss
    encoder.train()
    batch = TSDAE.build_collator(encoder, TSDAE.options(), 1)([{"sentence": s} for s in sentences[:4]])
    features = [
        {key.removeprefix(f"{name}_"): value for key, value in batch.items() if key.startswith(name)}
        for name in ("noisy", "sentence")
    ]
    optimizer = torch.optim.Adam(encoder.parameters(), lr=5e-3)
    found = []
    for _ in range(25):
        value = loss([dict(f) for f in features], None)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        found.append(value.item())
    assert found[-1] < 0.6 * found[0]


def test_a_base_that_cannot_decode_is_told(tiny_base):
    encoder = TSDAE.build_encoder(str(tiny_base), TSDAE.options())
    encoder[0].auto_model.config._name_or_path = "/nowhere"
    with pytest.raises(LoadError, match="decoder"):
        TSDAE.build_loss(encoder, TSDAE.options())
    with pytest.raises(OptionError, match="deletion"):
        TSDAE.options(deletion=1.2)


def test_the_share_of_deleted_words_is_met_on_average_and_order_is_kept():
    rng = np.random.default_rng(0)
    sentence = " ".join(f"w{i}" for i in range(50))
    found = [delete_words(sentence, 0.6, rng).split() for _ in range(400)]
    kept = np.mean([len(words) for words in found]) / 50
    assert kept == pytest.approx(0.4, abs=5 * (0.24 / 20_000) ** 0.5)
    assert all(words == sorted(words, key=lambda word: int(word[1:])) for words in found)
    assert len({len(words) for words in found}) > 5  # each word by itself, not a fixed number


def test_one_word_is_left_at_least():
    rng = np.random.default_rng(0)
    assert {delete_words("a b c", 1.0, rng) for _ in range(50)} == {"a", "b", "c"}
    assert delete_words("", 0.6, rng) == ""
    assert delete_words("all of it", 0.0, rng) == "all of it"
    with pytest.raises(ValueError, match="share"):
        delete_words("a", -0.1, rng)
