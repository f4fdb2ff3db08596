"""The raw language model that the papers' methods start from."""

import json
from pathlib import Path

import torch
from transformers import AutoModel

from likewise.encoder.build import build_encoder
from likewise.encoder.saved_models import is_sentence_encoder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_start_is_a_raw_language_model_taken_where_the_score_is_low_enough(
    script, tiny_base, corpus_file, tmp_path, monkeypatch
):
    table = script(BENCHMARKS / "raw_start.py")
    scores = iter([70.0, 60.0, 50.0])
    monkeypatch.setattr(table, "dev_score", lambda *_: next(scores))
    words = ["--corpus", str(corpus_file), "--finished", str(tiny_base), "--out", str(tmp_path)]
    args = table.parser().parse_args([*words, "--start-every", "2", "--start-steps", "6", "--target", "65"])
    table.make_start(args)
    start = str(tmp_path / "start")
    assert not is_sentence_encoder(start)
    assert [(one["step"], one["dev"]) for one in json.loads((tmp_path / "start.json").read_text())["course"]] == [
        (2, 70.0),
        (4, 60.0),
    ]
    before, after = (AutoModel.from_pretrained(one).state_dict() for one in (str(tiny_base), start))
    assert any(not torch.equal(after[name], value) for name, value in before.items())
    assert build_encoder(start, pooling="mean", head=False).encode("the cat").shape == (32,)


def test_the_mean_of_the_seeds_is_that_of_their_weights(script, tiny_base, tmp_path, monkeypatch):
    table = script(BENCHMARKS / "raw_start.py")
    monkeypatch.setattr(
        "likewise.evaluate", lambda *_, **__: type("Report", (), {"results": [type("R", (), {"score": 1.0})]})
    )
    weights = []
    for seed in (1, 2, 3):
        model = build_encoder(str(tiny_base), pooling="mean", head=False)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(seed)
        model.save_pretrained(str(tmp_path / f"arccse-{seed}"))
        weights.append([parameter.detach().clone() for parameter in model.parameters()])
    args = table.parser().parse_args(["--out", str(tmp_path)])
    found = table.mean_of_seeds("arccse")(args, tmp_path)["model"]
    for own, *three in zip(found.parameters(), *weights, strict=True):
        assert torch.allclose(own, sum(three) / 3, atol=1e-5)
