import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from likewise.encoder.location import LoadError
from likewise.queries import local
from likewise.queries.local import LocalWriter, surest
from likewise.queries.prompts import HEADS, continued, head, messages


@pytest.fixture
def writer(llama, monkeypatch):
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "none")  # float32
    monkeypatch.setattr(local, "cleaned", lambda kind, text, whole: f"{kind}: {text}")
    monkeypatch.setattr(local, "_NEW_TOKENS", 6)
    return LocalWriter(llama)


def test_queries_by_another_road(writer, llama, sentences):
    """Written together, with padding, caches and rows left out, they are those of one at a time without these."""
    texts = [sentences[0], " ".join(sentences[1:3]), "short"]
    found = writer.write(texts)
    tokenizer = AutoTokenizer.from_pretrained(llama)
    model = AutoModelForCausalLM.from_pretrained(llama, dtype=torch.float32).eval()

    def ids(text):
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    ends = {tokenizer.eos_token_id, ids("\n")[-1]}
    before, _, after = continued("PASSAGE").partition("PASSAGE")
    for text, queries in zip(texts, found, strict=True):
        wanted = []
        for kind, first in HEADS:
            seen = ids(before) + ids(text + after) + ids(head(kind, first))
            blind = ids(before + after) + ids(head(kind, first))
            written = []
            for _ in range(6):
                with torch.no_grad():
                    scores = [model(torch.tensor([one + written])).logits[:, -1] for one in (seen, blind)]
                token = surest(*scores).item()
                if token in ends:
                    break
                written.append(token)
            wanted.append((kind, f"{kind}: {first}{tokenizer.decode(written, skip_special_tokens=True)}"))
        assert queries == list(dict.fromkeys(wanted))
    assert len({tuple(one) for one in found}) > 1


def test_a_chat_model_is_asked_in_its_own_form(writer):
    tokenizer = writer.causal.tokenizer
    tokenizer.chat_template = "{% for one in messages %}<{{ one.role }}>{{ one.content }}{% endfor %}<answer>"
    before, after = writer._frame
    assert before.startswith("<system>")
    assert before.endswith("<user>")
    assert after == "<answer>"
    assert before.count("<assistant>Title: ") == len([one for one in messages("") if one["role"] == "assistant"])


def test_the_surest_token_by_hand():
    """Token 1 is less likely than token 0 with the passage, but far less expected without; token 2 is implausible."""
    seen, blind = torch.tensor([[0.5, 0.4, 0.01]]).log(), torch.tensor([[0.9, 0.05, 0.0001]]).log()
    assert surest(seen, blind).tolist() == [1]
    assert surest(seen, seen).tolist() == [0]


def test_what_is_no_language_model(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(LoadError, match="cannot be loaded as a causal language model"):
        LocalWriter(str(tmp_path)).write(["a text"])
