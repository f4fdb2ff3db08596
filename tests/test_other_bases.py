"""Bases that are not BERT: a tiny MPNet for all that takes a sentence encoder, and a tiny Llama.

MPNet has relative positions, <s> and <mask>, no segments, and no decoder; Llama has neither a mask nor an order of
tokens that lets the first see the last.
"""

import json
import random
import shutil
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sentence_transformers import SentenceTransformer, SparseEncoder
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Pooling,
    StaticEmbedding,
    WordEmbeddings,
)
from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer
from sentence_transformers.sparse_encoder.modules import SpladePooling
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2Model,
    RobertaConfig,
    RobertaModel,
    T5EncoderModel,
)

import likewise
from conftest import sentence
from likewise.adaptation import adaptation_flow
from likewise.adaptation.head import HeadTrainingOptions
from likewise.context import distill
from likewise.encoder.build import build_encoder, build_prompt_encoder, open_base, reads_left_to_right
from likewise.encoder.location import LoadError
from likewise.encoder.poolings import LAST_TEMPLATE
from likewise.errors import LikewiseError
from likewise.inference import encode
from likewise.inference.engines.graph import fingerprint
from likewise.inference.model_export import keep_export
from likewise.recipes import recipe_names
from likewise.runs.progress import Progress

SMALL = {"batch_size": 8, "max_steps": 2, "quiet": True, "precision": "fp32"}
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def hidden_states(encoder, text):
    """The last layer (T, D) of one text by the bare transformer, and its tokens."""
    found = encoder.tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        return encoder[0].auto_model(**found).last_hidden_state[0], found["input_ids"][0]


RUNS = {name: {"select_by": "last"} for name in recipe_names() if name != "tsdae"}
RUNS["light"] = {}
RUNS["sncse"] |= {"distil_mask": "never", "negation": "none"}  # a stage with a run of its own; nothing of the base
RUNS["gclsr"] |= {"sentences": 64, "most_frequent": 50, "projection": 32, "bottleneck": 16, "filters": 4}


@pytest.mark.parametrize("recipe", RUNS)
def test_a_recipe_trains_it_and_what_is_saved_loads_with_no_flag(recipe, mpnet, corpus_file, sentences, tmp_path):
    base = f"distilled:{mpnet}" if recipe == "gclsr" else mpnet
    result = likewise.train(recipe, corpus_file, base=base, out=tmp_path / "out", **SMALL | RUNS[recipe])
    assert result.steps == 2
    found = likewise.load(result.path, engine="torch").encode(sentences[:6])
    if recipe != "gclsr":
        np.testing.assert_allclose(found, SentenceTransformer(str(result.path)).encode(sentences[:6]), atol=1e-6)
    assert len(np.unique(found.round(5), axis=0)) == 6


def test_the_mask_of_a_prompt_is_the_base_s_own_and_a_text_brings_no_second(mpnet):
    found = build_prompt_encoder(mpnet, 'The "X" is [MASK].', head=False).eval()
    plain = build_encoder(mpnet, pooling="cls", head=False).eval()
    states, ids = hidden_states(plain, 'The "old cat" is <mask>.')
    (place,) = (ids == plain.tokenizer.mask_token_id).nonzero().flatten().tolist()
    # The base's vectors have length 1, and so have those of the mask.
    np.testing.assert_allclose(found.encode("old cat"), states[place] / np.linalg.norm(states[place]), atol=1e-5)
    assert (found.tokenizer("a <mask> b")["input_ids"]).count(found.tokenizer.mask_token_id) == 1


def test_padding_changes_nothing(mpnet, sentences):
    model = likewise.load(mpnet, engine="torch")
    alone = np.stack([model.encode(text) for text in sentences[:8]])
    np.testing.assert_allclose(model.encode(sentences[:8]), alone, atol=1e-5)
    np.testing.assert_allclose(encode(model, sentences)[:8], alone, atol=1e-5)


@pytest.fixture(scope="module")
def paragraphs(tmp_path_factory):
    """300 passages of three sentences: those of one passage share a number."""
    rng = random.Random(5)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lines = [" ".join(f"{sentence(rng)[:-1]} at {i} k{i * 7}." for _ in range(3)) for i in range(300)]
    path.write_text("\n\n".join(lines) + "\n")
    return path


def test_adapt_index_and_search(mpnet, paragraphs, tmp_path, monkeypatch):
    monkeypatch.setattr(adaptation_flow, "HeadTrainingOptions", partial(HeadTrainingOptions, steps=10, batch_size=32))
    result = likewise.adapt(paragraphs, base=mpnet, out=tmp_path / "model", passages=280, width=16, quiet=True)
    assert result.chosen.startswith("words")  # the vectors of random weights know no number
    model = likewise.load(result.path, precision="fp32")
    assert model.encode("the cat at 12").shape == (48,)
    likewise.index(paragraphs, model=result.path, out=tmp_path / "own.index", quiet=True)
    (hit,) = likewise.search(tmp_path / "own.index", "at 12 k84", k=1)
    assert "at 12 k84" in hit.text


@pytest.mark.parametrize("kind", ["mpnet", "llama"])
@pytest.mark.parametrize("engine", ["onnx", "openvino"])
def test_an_export_gives_the_same_vectors(kind, engine, request, sentences, tmp_path):
    model = SentenceTransformer(request.getfixturevalue(kind)).float()
    found = likewise.load(request.getfixturevalue(kind), engine=engine, precision="fp32")
    np.testing.assert_allclose(found.encode(sentences[:40]), model.encode(sentences[:40]), rtol=1e-3, atol=1e-5)
    assert found.last_engine == f"{engine} fp32"


@pytest.mark.parametrize("processor", ["avx2", "bf16+vnni"])
def test_an_engine_that_refuses_the_gates_of_a_language_model_is_tried_once(
    processor, llama, sentences, tmp_path, monkeypatch
):
    pytest.importorskip("openvino", reason="openvino is not installed: pip install 'likewise[openvino]'")
    monkeypatch.setenv("LIKEWISE_PROCESSOR", processor)
    monkeypatch.delenv("LIKEWISE_EXPORTS", raising=False)
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path))
    lines = []
    monkeypatch.setattr(Progress, "tell", lambda self, line: lines.append(line))
    keep_export(llama, sentences[:8], Progress(quiet=True))
    assert lines
    assert len(set(lines)) == len(lines)
    assert any("gates" in line for line in lines) is ("bf16" in processor)
    assert likewise.load(llama).encode(sentences[0]).shape == (32,)


def test_int8_keeps_the_vectors(mpnet, sentences):
    found = likewise.load(mpnet, engine="onnx", precision="int8")
    cosines = (found.encode(sentences[:60]) * SentenceTransformer(mpnet).encode(sentences[:60])).sum(axis=1)
    assert found.last_engine.startswith("onnx int8")
    assert cosines.mean() > 0.99


def test_it_learns_from_contexts(mpnet, sentences, tmp_path):
    first, second = sentences[:100], sentences[100:200]
    scores = np.linspace(0.9, 1.0, 100).tolist()
    split = ["dev"] * 10 + ["test"] * 10 + ["train"] * 80
    columns = {"sentence1": first, "sentence2": second, "score": scores, "split": split}
    (tmp_path / "harvest").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "harvest" / "shard-0.parquet")
    settings = SMALL | {"select_by": "last", "max_length": 32}
    for preset in ("cpu", "anchored"):
        out = distill(tmp_path / "harvest", base=mpnet, out=tmp_path / preset, preset=preset, **settings)
        assert SentenceTransformer(str(out.path)).encode("a cat").shape == (32,)


def test_which_way_a_base_reads_is_seen(llama, raw_mpnet, tiny_base):
    ways = [reads_left_to_right(open_base(base)[0]) for base in (llama, raw_mpnet, str(tiny_base))]
    assert ways == [True, False, False]


def test_two_views_of_a_language_model_differ_by_the_dropout_of_its_attention(llama):
    torch.manual_seed(0)
    for dropout, differ in ((None, False), (0.5, True)):
        encoder = build_encoder(llama, pooling="mean", head=False, dropout=dropout).train()
        first, second = (encoder(encoder.preprocess(["the cat at the door"]))["sentence_embedding"] for _ in range(2))
        assert torch.equal(first, second) is not differ  # random weights attend little


def test_a_language_model_learns_in_float32_from_a_prompt_or_its_mean_and_not_from_its_first_token(
    llama, corpus_file, tmp_path, says
):
    for pooling, expected in [("own", "lasttoken"), ("mean", "mean")]:
        options = SMALL | {"select_by": "last", "pooling": pooling}
        result = likewise.train("simcse", corpus_file, base=llama, out=tmp_path / pooling, **options)
        saved = json.loads((result.path / "config.json").read_text())
        assert saved["dtype"] == "float32"
        assert SentenceTransformer(str(result.path))[1].pooling_mode == expected
    with says(LoadError):
        likewise.train("simcse", corpus_file, base=llama, out=tmp_path / "cls", pooling="cls", **SMALL)


@pytest.mark.parametrize(
    ("recipe", "options", "reason"),
    [
        ("arccse", {}, "no mask token, which triplets need: set triplet_weight to 0"),
        ("arccse", {"triplet_weight": 0.0}, ""),
        ("esimcse", {}, ""),
        ("ct", {}, ""),
        ("tsdae", {"pooling": "mean"}, ""),
        ("exclusion", {}, ""),
        ("sncse", {"negation": "none"}, ""),
        ("sncse", {"template": "X means [MASK].", "negation": "none"}, "a masked language model"),
        ("mask-distillation", {}, ""),
        ("consert", {}, "use a BERT- or RoBERTa-like base"),
    ],
)
def test_a_recipe_takes_a_language_model_or_says_why_not(recipe, options, reason, llama, corpus_file, tmp_path, says):
    train = partial(likewise.train, recipe, corpus_file, base=llama, out=tmp_path / "out", select_by="last")
    if reason:
        with says(LikewiseError):
            train(**SMALL | options)
    else:
        assert train(**SMALL | options).steps == 2


@pytest.mark.parametrize("recipe", ["arccse", "simcse", "sncse"])
def test_the_preset_of_a_language_model_reads_the_last_token_of_a_prompt(recipe, llama, corpus_file, tmp_path):
    options = (
        {"preset": "language-model", "select_by": "last"} | SMALL | ({"negation": "none"} if recipe == "sncse" else {})
    )
    result = likewise.train(recipe, corpus_file, base=llama, out=tmp_path / "out", **options)
    saved = SentenceTransformer(str(result.path))
    assert [type(module).__name__ for module in saved] == ["Transformer", "Pooling"]
    assert saved[1].pooling_mode == "lasttoken"
    tokens = saved.tokenizer.convert_ids_to_tokens(saved.tokenizer("a cat")["input_ids"])
    assert "".join(tokens).replace("Ġ", " ") == LAST_TEMPLATE.replace("X", "a cat")
    again = likewise.train("simcse", corpus_file, base=result.path, out=tmp_path / "again", select_by="last", **SMALL)
    assert SentenceTransformer(str(again.path))[1].pooling_mode == "lasttoken"


@pytest.mark.parametrize("preset", ["cpu", "language-model"])
def test_an_instruct_model_reads_a_text_without_its_chat_template(preset, llama, corpus_file, sentences, tmp_path):
    with_template = tmp_path / "instruct"
    shutil.copytree(llama, with_template)
    template = "{% for message in messages %}<user> {{ message['content'] }} <end>{% endfor %}"
    (with_template / "chat_template.jinja").write_text(template)
    assert "message" in Transformer(str(with_template)).modality_config  # otherwise this shows nothing
    vectors = []
    for base, out in [(llama, "plain"), (str(with_template), "turns")]:
        options = SMALL | {"preset": preset, "select_by": "last"}
        trained = likewise.train("simcse", corpus_file, base=base, out=tmp_path / out, **options)
        vectors.append(SentenceTransformer(str(trained.path)).encode(sentences[:5]))
    np.testing.assert_allclose(*vectors, atol=1e-6)


@pytest.fixture
def other(tiny_base, tiny_model, tmp_path):
    """A function that saves a model of a kind, and returns its folder."""

    def made(kind):
        folder, token, pool = tmp_path / kind, AutoTokenizer.from_pretrained(tiny_base), Pooling(32)
        if kind == "words":
            words, vectors = ["<pad>", "the", "cat", "sees"], np.eye(4, 12, dtype="float32")
            modules = [WordEmbeddings(WhitespaceTokenizer(vocab=words), embedding_weights=vectors), Pooling(12)]
        elif kind == "static":
            modules = [StaticEmbedding(token.backend_tokenizer, embedding_dim=24)]
        elif kind == "routes":
            modules = [tiny_model[0], pool, Router({"ask": [Dense(32, 8)], "say": [Dense(32, 8)]}, default_route="say")]
        elif kind == "narrow":
            modules = [tiny_model[0], pool, Dense(32, 16)]
        elif kind == "sparse":
            SparseEncoder(modules=[tiny_model[0], SpladePooling()], device="cpu").save(str(folder))
            return folder
        else:
            config = BertConfig.from_pretrained(tiny_base, num_labels=1)
            BertForSequenceClassification(config).save_pretrained(folder)
            token.save_pretrained(folder)
            return folder
        SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
        return folder

    return made


@pytest.mark.parametrize(
    ("kind", "verb"),
    [
        ("words", "finetune"),
        ("words", "light"),
        ("static", "light"),
        ("static", "gclsr"),
        ("routes", "index"),
        ("routes", "finetune"),
        ("narrow", "mask-distillation"),
        ("sparse", "index"),
        ("cross", "index"),
        ("narrow", "evaluate"),
    ],
)
def test_a_model_of_another_kind_is_refused_in_a_sentence(kind, verb, other, sentences, tmp_path, says):
    folder, out = other(kind), tmp_path / "out"
    rows = tmp_path / "triplets.jsonl"
    row = {"anchor": "the cat", "positive": "the cat sees", "negative": "a dog"}
    rows.write_text("".join(json.dumps(row | {"anchor": f"the cat {i}"}) + "\n" for i in range(40)))
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("score\tsentence1\tsentence2\n" + "".join(f"{n}\tthe cat {n}\ta dog\n" for n in range(4)))
    run = {
        "finetune": lambda: likewise.finetune("triplets", rows, base=folder, out=out, **SMALL),
        "light": lambda: likewise.train("light", sentences, base=folder, out=out, max_steps=2, quiet=True),
        "gclsr": lambda: likewise.train("gclsr", sentences, base=f"distilled:{folder}", out=out, quiet=True),
        "mask-distillation": lambda: likewise.train("mask-distillation", sentences, base=folder, out=out, **SMALL),
        "index": lambda: likewise.index(["the cat sees"], model=folder, out=out, quiet=True),
        "evaluate": lambda: likewise.evaluate(f"cross-encoder:{folder}", f"pairs:{pairs}", quiet=True),
    }[verb]
    with says(LikewiseError):
        run()


def test_a_tokenizer_without_padding_and_a_position_too_few_are_no_fault(tiny_base, sentences, tmp_path):
    token = AutoTokenizer.from_pretrained(tiny_base)
    token.model_max_length, small = int(1e30), {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    small |= {"intermediate_size": 64, "max_position_embeddings": 40, "pad_token_id": 1}
    config = RobertaConfig(vocab_size=len(token), **small)
    RobertaModel(config).save_pretrained(tmp_path / "roberta")
    token.save_pretrained(tmp_path / "roberta")
    model = likewise.load(tmp_path / "roberta", device="cpu")
    assert model.max_seq_length == 38
    assert model.encode(["the cat " * 100]).shape == (1, 32)
    token.pad_token = None
    GPT2Model(GPT2Config(vocab_size=len(token), n_embd=32, n_layer=1, n_head=2)).save_pretrained(tmp_path / "gpt")
    token.save_pretrained(tmp_path / "gpt")
    alone = likewise.load(tmp_path / "gpt", device="cpu", precision="fp32").encode(sentences[:1])
    both = likewise.load(tmp_path / "gpt", device="cpu", precision="fp32").encode([sentences[0], "the cat " * 20])
    np.testing.assert_allclose(alone[0], both[0], atol=1e-5)


WIDE = {"vocab_size": 200, "pad_token_id": 0}
NARROW = WIDE | {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
BASES = {
    "albert": NARROW | {"embedding_size": 16},
    "deberta-v2": NARROW | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16},
    "distilbert": WIDE | {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 2},
    "electra": NARROW | {"embedding_size": 16},
    "gpt2": WIDE | {"n_embd": 32, "n_layer": 2, "n_head": 2},
    "modernbert": NARROW | {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
    "qwen3": NARROW | {"num_key_value_heads": 1, "head_dim": 16},
    "t5": WIDE | {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2},
}


@pytest.mark.parametrize("kind", BASES)
def test_a_small_base_of_each_architecture_trains_and_compares(kind, tiny_base, corpus_file, sentences, tmp_path):
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **BASES[kind])
    model = T5EncoderModel(config) if kind == "t5" else AutoModel.from_config(config)
    model.save_pretrained(tmp_path / kind)
    AutoTokenizer.from_pretrained(tiny_base).save_pretrained(tmp_path / kind)
    options = SMALL | {"select_by": "last", "pooling": "mean"}
    result = likewise.train("simcse", corpus_file, base=tmp_path / kind, out=tmp_path / "out", **options)
    trained = SentenceTransformer(str(result.path), device="cpu")
    before = SentenceTransformer(str(tmp_path / kind), device="cpu")
    first, second = trained.encode(sentences[:2])
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert likewise.similarity(sentences[0], sentences[1], model=result.path) == pytest.approx(cosine, abs=1e-3)
    assert not np.allclose(first, before.encode(sentences[0]), atol=1e-6)


def test_a_token_without_weights_is_told(tiny_base, tiny_model, tmp_path, says):
    token = AutoTokenizer.from_pretrained(tiny_base)
    token.add_tokens(["<note>"])
    tiny_model.save(str(tmp_path / "model"), create_model_card=False)
    token.save_pretrained(tmp_path / "model")
    model = likewise.load(tmp_path / "model", device="cpu", precision="fp32")
    with says(LikewiseError):
        model.encode(["a <note> here"])


@pytest.mark.parametrize("change", [{"hidden_act": "relu"}, {"layer_norm_eps": 0.5}])
def test_another_configuration_is_another_model(change, saved_model, tmp_path):
    model = likewise.load(saved_model, precision="fp32")
    model.save(str(tmp_path / "model"), create_model_card=False)
    before = fingerprint(likewise.load(tmp_path / "model", precision="fp32"))
    file = tmp_path / "model" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert fingerprint(likewise.load(tmp_path / "model", precision="fp32")) != before
