"""What a model carries besides its weights, setting by setting, through each verb that makes a model of a model.

The walk also makes the table of docs/reference/settings.md; LIKEWISE_WRITE_TABLES=1 writes it.
"""

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

import likewise
from likewise.encoder.location import LoadError
from likewise.encoder.settings import ModelSettings, adapters_of
from likewise.errors import LikewiseError, MissingExtraError
from likewise.runs.options import OptionError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
PROMPTS = {"query": "the old ", "document": "a quiet "}
LITTLE = {"quiet": True, "select_by": "last", "max_steps": 2, "batch_size": 8, "precision": "fp32", "max_length": 24}
SETTINGS = {
    "prompts, including the default": ("all", lambda s: (s.prompts, s.default_prompt)),
    "a prompt excluded from pooling": ("unpooled", lambda s: s.include_prompt),
    "truncate_dim": ("all", lambda s: s.truncate_dim),
    "similarity": ("all", lambda s: s.similarity),
    "truncation side": ("all", lambda s: s.sides),
    "normalized vectors": ("all", lambda s: s.normalizes),
    "routes (Router)": ("routes", lambda s: (s.routes, s.default_route)),
    "adapters (LoRA)": ("adapter", lambda s: s.adapters),
}
"""The rows of the table: a setting, the form of the tiny model that has it, and its value in a record."""


def routed():
    torch.manual_seed(1)
    return Router.for_query_document(
        query_modules=[Dense(32, 8)], document_modules=[Dense(32, 8)], default_route="document"
    )


@pytest.fixture(scope="module")
def forms(tiny_base, tmp_path_factory):
    """Folders of one tiny model that carries different things."""
    root = tmp_path_factory.mktemp("forms")
    carried = {"prompts": PROMPTS, "default_prompt_name": "query", "similarity_fn_name": "dot"}

    def save(name, *more, include_prompt=True, adapter=False, **settings):
        first = Transformer(str(tiny_base), max_seq_length=48)
        first.tokenizer.truncation_side = "left"
        pooling = Pooling(32, "mean", include_prompt=include_prompt)
        model = SentenceTransformer(modules=[first, pooling, *more], device="cpu", **settings)
        if adapter:
            from peft import LoraConfig, TaskType

            torch.manual_seed(2)
            kind = {"task_type": TaskType.FEATURE_EXTRACTION, "target_modules": ["query", "value"]}
            model.add_adapter(LoraConfig(r=2, init_lora_weights=False, **kind))
        model.save(str(root / name), create_model_card=False)
        return root / name

    found = {
        "all": save("all", Normalize(), truncate_dim=16, **carried),
        "no prompts": save("no-prompts", Normalize(), truncate_dim=16, similarity_fn_name="dot"),
        "unpooled": save("unpooled", Normalize(), include_prompt=False, **carried),
        "routes": save("routes", routed()),
    }
    try:
        found["adapter"] = save("adapter", adapter=True)
    except ImportError:  # the extra 'lora'
        return found
    return found


@pytest.fixture(scope="module")
def rows(sentences, tmp_path_factory):
    """Labelled rows of each objective."""
    root = tmp_path_factory.mktemp("rows")
    three = list(zip(sentences, sentences[1:], sentences[2:], strict=False))[:30]
    labels = ("entailment", "neutral", "contradiction")
    kinds = {
        "triplets": [{"anchor": a, "positive": b, "negative": c} for a, b, c in three],
        "sts": [{"sentence1": a, "sentence2": b, "score": i % 6} for i, (a, b, _) in enumerate(three)],
        "nli": [{"sentence1": a, "sentence2": b, "label": labels[i % 3]} for i, (a, b, _) in enumerate(three)],
    }
    for name, lines in kinds.items():
        (root / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return root


@pytest.fixture(scope="module")
def verbs(rows, sentences):
    """The verbs that make a model of a model, from the folders of both."""
    texts = sentences[:60]

    def trains(recipe, base, out, **options):
        likewise.train(recipe, texts, base=base, out=out, **LITTLE | options)

    def tunes(objective, base, out):
        likewise.finetune(objective, rows / f"{objective}.jsonl", base=base, out=out, **LITTLE)

    return {
        "train simcse": partial(trains, "simcse", pooling="own"),
        "train simcse --pooling cls": partial(trains, "simcse", pooling="cls"),
        "train sncse": partial(trains, "sncse", negation="none", max_length=32),
        "train exclusion": partial(trains, "exclusion"),
        "train light": partial(trains, "light", hidden=64, words=10),
        "finetune nli": partial(tunes, "nli"),
        "finetune sts": partial(tunes, "sts"),
        "finetune triplets": partial(tunes, "triplets"),
    }


def plain(folder):
    return SentenceTransformer(str(folder), device="cpu")


@pytest.fixture(scope="module")
def outcomes(forms, verbs, tmp_path_factory):
    """The record of what each verb makes of each form, or the error that refuses it."""
    root, found = tmp_path_factory.mktemp("made"), {}
    for verb, make in verbs.items():
        for form, base in forms.items():
            if form == "no prompts" and not isinstance(found[verb, "all"], str):
                continue  # asked only where prompts are refused
            out = root / f"{verb} {form}".replace(" ", "-")
            try:
                make(base, out)
            except LikewiseError as refusal:
                found[verb, form] = str(refusal)
            else:
                found[verb, form] = out
    return found


def test_each_setting_is_kept_or_refused_by_name(outcomes, forms, verbs):
    cells = {}
    for setting, (form, value) in SETTINGS.items():
        for verb in verbs:
            made = outcomes.get((verb, form))
            if isinstance(made, str) and form == "all" and "prompts" in made and "prompts" not in setting:
                made = outcomes[verb, "no prompts"]  # the others are asked of a model without prompts
            if made is None:
                continue
            if isinstance(made, str):
                word = {"all": "prompts", "unpooled": "prompts", "routes": "routes", "adapter": "adapter"}[form]
                assert word in made, (setting, verb, made)
                cells[setting, verb] = "refused"
                continue
            base = ModelSettings.of(plain(forms["no prompts" if "no-prompts" in made.name else form]))
            now = ModelSettings.of(plain(made))
            cells[setting, verb] = "preserved" if value(now) == value(base) else f"{value(base)} became {value(now)}"
    lost = {cell: said for cell, said in cells.items() if said not in ("preserved", "refused")}
    known = {
        ("a prompt excluded from pooling", "train sncse"): "not applicable",
        ("truncation side", "train light"): "not applicable",
        ("adapters (LoRA)", "train light"): "not applicable",
        ("truncate_dim", "train light"): "preserved",  # its vectors have that many dimensions
    }
    assert {cell: said for cell, said in lost.items() if cell not in known} == {}
    if len(forms) == 5:
        table = [["setting", *verbs], ["---"] * (len(verbs) + 1)]
        table += [[s, *(known.get((s, v), cells[s, v]) for v in verbs)] for s in SETTINGS]
        written_on_the_page("settings", table)


def cosines(first, second):
    first, second = (np.asarray(v, dtype=np.float64) for v in (first, second))
    return (first / np.linalg.norm(first, axis=1, keepdims=True)) @ (
        second / np.linalg.norm(second, axis=1, keepdims=True)
    ).T


@pytest.fixture(scope="module")
def uses(sentences, rows, tmp_path_factory):
    """The verbs that use a model: from its folder to what they give, and what sentence-transformers gives."""
    root, texts = tmp_path_factory.mktemp("used"), sentences[:12]
    (root / "lines.txt").write_text("".join(f"{text}\n" for text in texts))

    def loads(folder):
        model, wanted = likewise.load(folder, device="cpu", precision="fp32"), plain(folder)
        methods = ("encode", "encode_query", "encode_document")
        return tuple(np.stack([getattr(one, name)(texts) for name in methods]) for one in (model, wanted))

    def encodes(folder):
        out = root / f"{folder.name}.npy"
        likewise.encode_file(folder, root / "lines.txt", out, precision="fp32", quiet=True)
        return np.load(out), plain(folder).encode(texts)

    def searches(folder):
        made = likewise.index(texts, model=folder, out=root / f"{folder.name}.index", precision="fp32", quiet=True)
        hits, wanted = made.search(texts[3], 12, mode="vectors"), plain(folder)
        sides = wanted.encode_query([texts[3]]), wanted.encode_document([hit.text for hit in hits])
        assert len(hits) > 8
        return np.array([hit.similarity for hit in hits]), cosines(*sides)[0]

    def serves(folder):
        from starlette.testclient import TestClient

        from likewise.searching.serve.app import create_app
        from likewise.searching.serve.service import Service

        with TestClient(create_app(Service({"m": folder}, engine="torch")), base_url="http://localhost") as client:
            answer = client.post("/v1/embeddings", json={"model": "m", "input": texts})
        assert answer.status_code == 200, answer.text
        wanted = plain(folder).encode(texts)  # OpenAI's vectors have length 1
        return [row["embedding"] for row in answer.json()["data"]], wanted / np.linalg.norm(wanted, axis=1)[:, None]

    def evaluates(folder):
        from scipy.stats import spearmanr

        rated = [json.loads(line) for line in (rows / "sts.jsonl").read_text().splitlines()]
        report = likewise.evaluate(folder, f"pairs:{rows / 'sts.jsonl'}", precision="fp32", quiet=True)
        sides = (plain(folder).encode([row[name] for row in rated]) for name in ("sentence1", "sentence2"))
        return report.results[0].score, 100 * spearmanr(np.diag(cosines(*sides)), [r["score"] for r in rated]).statistic

    def exports(folder):
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'likewise[onnx]'")
        out = root / f"{folder.name}.onnx"
        likewise.export(folder, "onnx", out, quiet=True)
        about, wanted = json.loads((out / "likewise_export.json").read_text()), ModelSettings.of(plain(folder))
        kept = {name: prompt for name, prompt in about["prompts"].items() if prompt}
        own = {name: prompt for name, prompt in wanted.prompts.items() if prompt}
        assert (kept, about["truncate_dim"]) == (own, wanted.truncate_dim), about
        return 1, 1

    return {
        "load": loads,
        "encode": encodes,
        "index, search": searches,
        "serve": serves,
        "evaluate": evaluates,
        "export onnx": exports,
    }


def test_each_use_obeys_what_a_model_carries_or_refuses_it(forms, uses):
    carried = {
        "all": ("prompts, including the default", "truncate_dim", "similarity", "truncation side"),
        "unpooled": ("a prompt excluded from pooling",),
        "routes": ("routes (Router)",),
        "adapter": ("adapters (LoRA)",),
    }
    table = [["setting", *uses], ["---"] * (len(uses) + 1)]
    for form, settings in carried.items():
        if form not in forms:
            continue
        cells = []
        for use in uses.values():
            try:
                found, wanted = use(forms[form])
            except LikewiseError as error:
                refusal = str(error)
            else:
                np.testing.assert_allclose(found, wanted, atol=1e-4, err_msg=f"{form}: {use.__name__}")
                refusal = ""
            named = {"all": "prompt", "unpooled": "prompt", "routes": "route", "adapter": "adapter"}[form]
            assert not refusal or named in refusal, (form, use.__name__)
            cells.append("refused" if refusal else "supported")
        table += [[setting, *cells] for setting in settings]
    if len(forms) == 5:
        written_on_the_page("uses", table)


def written_on_the_page(name, rows):
    """Assert that a table stands on the page; write it there first if that is asked for."""
    text, mark = "\n".join(f"| {' | '.join(row)} |" for row in rows), f"<!-- table: {name} -->\n"
    if os.environ.get("LIKEWISE_WRITE_TABLES"):
        start, _, rest = PAGE.read_text(encoding="utf-8").partition(mark)
        PAGE.write_text(f"{start}{mark}{text}\n<!-- end -->{rest.partition('<!-- end -->')[2]}")
    assert text in PAGE.read_text(encoding="utf-8")


def test_adapt_refuses_what_it_cannot_obey_before_the_corpus_is_read(forms, tmp_path, says):
    for form in ("routes", "all"):
        with says(LoadError):
            likewise.adapt(tmp_path / "no such corpus", base=forms[form], out=tmp_path / "out")


def test_a_saved_model_gives_the_vectors_of_sentence_transformers(outcomes, sentences):
    for made in outcomes.values():
        if isinstance(made, str):
            continue
        wanted, model = plain(made), likewise.load(made, device="cpu", precision="fp32")
        for method in ("encode", "encode_query", "encode_document"):
            found = getattr(model, method)(sentences[:5])
            np.testing.assert_allclose(found, getattr(wanted, method)(sentences[:5]), atol=1e-5)


def test_what_was_trained_is_what_is_saved(outcomes, forms, sentences):
    for (_, form), made in outcomes.items():
        if not isinstance(made, str):
            before, after = (plain(folder).encode(sentences[0]) for folder in (forms[form], made))
            assert before.shape != after.shape or not np.allclose(before, after, atol=1e-6), made


def test_both_routes_learn_of_triplets(outcomes, forms):
    made = outcomes["finetune triplets", "routes"]
    before, after = plain(forms["routes"]).state_dict(), plain(made).state_dict()
    for side in ("query", "document"):
        names = [name for name in before if f"sub_modules.{side}." in name]
        assert names
        assert any(not torch.equal(before[name], after[name]) for name in names)


def test_an_adapter_learns_and_is_saved_as_one(outcomes, forms):
    if "adapter" not in forms:
        pytest.skip("the extra 'lora' is not installed")
    made = outcomes["finetune triplets", "adapter"]
    assert (made / "adapter_model.safetensors").is_file()
    assert not (made / "model.safetensors").exists()
    before, after = plain(forms["adapter"]).state_dict(), plain(made).state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name]) and "pooler" not in name}
    assert moved
    assert all("lora_" in name for name in moved)


def test_lora_trains_an_adapter_of_any_base_and_keeps_its_best_checkpoint(tiny_base, corpus_file, rows, tmp_path, says):
    pytest.importorskip("peft", reason="the extra 'lora' is not installed")
    options = LITTLE | {"select_by": "held-out", "held_out": 20, "max_steps": 6, "eval_steps": 2, "lora": 4}
    run = likewise.train("simcse", corpus_file, base=tiny_base, out=tmp_path / "out", learning_rate=1e-2, **options)
    model = plain(run.path)
    assert adapters_of(model) == ("default",)
    assert sum(path.stat().st_size for path in run.path.glob("*.safetensors")) < 20_000
    frozen = {n: v for n, v in plain(tiny_base).state_dict().items() if "pooler" not in n}
    now = {name.replace(".base_layer", ""): value for name, value in model.state_dict().items()}
    assert all(torch.equal(now[name], value) for name, value in frozen.items())
    likewise.finetune("triplets", rows / "triplets.jsonl", base=run.path, out=tmp_path / "on", **LITTLE)
    assert adapters_of(plain(tmp_path / "on")) == ("default",)
    with says(OptionError):
        likewise.finetune("sts", rows / "sts.jsonl", base=run.path, out=tmp_path / "two", lora=2, **LITTLE)


def test_lora_without_peft_names_the_extra(tiny_base, rows, tmp_path, monkeypatch, says):
    monkeypatch.setattr("likewise.errors.find_spec", lambda name: None)
    with says(MissingExtraError):
        likewise.finetune("sts", rows / "sts.jsonl", base=tiny_base, out=tmp_path / "out", lora=2, **LITTLE)
