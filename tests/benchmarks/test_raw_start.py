"""The pretrained language model that the papers' methods start from."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from likewise.encoder.build import build_encoder
from likewise.encoder.saved_models import is_sentence_encoder
from likewise.inference import load

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_start_is_a_raw_language_model_taken_where_the_score_is_low_enough(
    script, tiny_base, corpus_file, tmp_path, monkeypatch
):
    table = script(BENCHMARKS / "raw_start.py")
    scores = iter([70.0, 60.0, 50.0])
    monkeypatch.setattr(table, "dev_score", lambda *_: next(scores))
    words = ["--corpus", str(corpus_file), "--finished", str(tiny_base), "--out", str(tmp_path)]
    words += ["--table", str(tmp_path / "raw.jsonl")]
    args = table.parser().parse_args([*words, "--start-every", "2", "--start-steps", "6", "--target", "65"])
    table.make_start(args)
    start = str(tmp_path / "start")
    assert not is_sentence_encoder(start)
    rows = script(BENCHMARKS / "rows.py").ResultFile(tmp_path / "raw.jsonl").rows(arm="the start")
    assert [(row["step"], row["score"]) for row in rows] == [(2, 70.0), (4, 60.0), (4, 60.0)]
    before, after = (AutoModel.from_pretrained(one).state_dict() for one in (str(tiny_base), start))
    assert any(not torch.equal(after[name], value) for name, value in before.items())
    assert build_encoder(start, pooling="mean", head=False).encode("the cat").shape == (32,)


def test_a_figure_has_the_arms_of_its_values(script, tiny_base, monkeypatch):
    table = script(BENCHMARKS / "raw_start.py")
    chosen = []
    monkeypatch.setattr(table, "run", lambda arms, args: chosen.append((args.arms, args.tasks)))
    for words in (["--base", str(tiny_base)], ["--base", str(tiny_base), "--figures", "4", "7"]):
        monkeypatch.setattr("sys.argv", ["raw_start.py", *words])
        table.main()
    assert chosen[0] == (list(table.ARMS), "sts")
    margins = ["margin 0.0", "margin 5.0", "margin 15.0", "margin 20.0"]
    assert chosen[1] == (["arccse", *margins, "triplet weight 0.3", "triplet weight 1.2"], "sts-b-dev")
    assert table.OTHERS["margin 15.0"].options["margin"] == 15


def test_a_mask_is_kept_by_its_seed_and_its_prompts(script, tiny_base, tmp_path, monkeypatch):
    table = script(BENCHMARKS / "sncse_sts.py")
    made = []
    monkeypatch.setattr("likewise.train", lambda *_, **given: made.append(given))
    monkeypatch.setattr(table, "train", lambda arm, args, out: {"base": args.base})
    found = []
    for name in ("SNCSE, a mask for each seed", "SNCSE in two prompts, a mask for each seed"):
        for seed in ("1", "2"):
            args = table.parser().parse_args(["--out", str(tmp_path), "--base", str(tiny_base)])
            args.seed = int(seed)
            found.append((table.ARMS | table.OTHERS)[name].recipe(args, tmp_path)["base"])
    assert [Path(one).name for one in found] == ["mask-1", "mask-2", "mask-1-two", "mask-2-two"]
    assert [given["seed"] for given in made] == [1, 2, 1, 2]
    assert [given.get("other_template") for given in made] == [None, None, *2 * [table.TWO["other_template"]]]


def test_models_that_are_trained_are_scored_again(script, saved_model, tmp_path, monkeypatch):
    table = script(BENCHMARKS / "raw_start.py")
    shutil.copytree(saved_model, tmp_path / "simcse-1")
    record = {"best": {"score": 70.0, "step": 2}, "steps": 4, "options": {"max_steps": 4}}
    (tmp_path / "simcse-1" / "likewise.json").write_text(json.dumps(record))
    chosen = {}
    monkeypatch.setattr(table, "run", lambda arms, args: chosen.update(arms=arms, args=args))
    monkeypatch.setattr("sys.argv", ["raw_start.py", "--base", str(saved_model), "--trained", str(tmp_path)])
    table.main()
    chosen["args"].seed = 1
    facts = chosen["arms"]["simcse"].recipe(chosen["args"], tmp_path)
    found = facts.pop("model")
    assert facts == {"dev": 70.0, "step": 2, "options": {"max_steps": 4}}
    assert found.encode(["the cat"]) == pytest.approx(load(saved_model, precision="fp32").encode(["the cat"]), abs=1e-5)
    assert chosen["arms"]["untrained, mean"] is table.ARMS["untrained, mean"]


def test_a_prompt_asks_at_its_mask_for_a_word_of_its_sentence(script, tiny_base):
    table = script(BENCHMARKS / "raw_start.py")
    tokenizer = AutoTokenizer.from_pretrained(tiny_base)
    texts = ["the cat sees a dog", "a river"] * 50
    shares = np.full(len(tokenizer), 1e-9)
    shares[tokenizer.convert_tokens_to_ids("the")] = 1e6  # never drawn
    batch = table.at_the_mask(tokenizer, texts, shares, np.random.default_rng(0))
    drawn = set()
    for row, text in enumerate(texts):
        (place,) = (batch["labels"][row] != -100).nonzero().ravel().tolist()
        assert batch["input_ids"][row, place] == tokenizer.mask_token_id
        label = int(batch["labels"][row, place])
        assert label in tokenizer(text, add_special_tokens=False)["input_ids"]
        drawn.add(label)
    assert tokenizer.convert_tokens_to_ids("the") not in drawn
    assert len(drawn) > 3


def test_the_start_whose_mask_speaks_is_made_from_the_raw_start(script, tiny_base, corpus_file, tmp_path, monkeypatch):
    table = script(BENCHMARKS / "raw_start.py")
    shutil.copytree(tiny_base, tmp_path / "start")
    scores = iter([40.0, 56.0])
    monkeypatch.setattr(table, "dev_score", lambda *_: next(scores))
    words = ["--corpus", str(corpus_file), "--out", str(tmp_path), "--table", str(tmp_path / "raw.jsonl")]
    args = table.parser().parse_args([*words, "--start-every", "1", "--start-steps", "6", "--speaks", "55"])
    table.make_start(args, speaks=True)
    rows = script(BENCHMARKS / "rows.py").ResultFile(tmp_path / "raw.jsonl").rows(arm="the start, at the mask")
    assert [row["score"] for row in rows] == [40.0, 56.0, 56.0]
    assert (tmp_path / "start-speaking/config.json").is_file()
