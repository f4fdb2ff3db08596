import pytest
import torch

from likewise.recipes import OptionError
from likewise.training import precision


def test_asked_for_is_taken_and_auto_follows_the_machine(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for fast in (True, False):
        monkeypatch.setattr(precision, "bf16_is_fast", lambda fast=fast: fast)
        assert precision.use_bf16("auto") is fast
        assert precision.use_bf16("bf16") is True
        assert precision.use_bf16("fp32") is False


def test_a_processor_without_instructions_for_it_is_not_fast(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(precision.platform, "machine", lambda: "x86_64")
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: False, raising=False)
    assert not precision.bf16_is_fast()
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True, raising=False)
    assert precision.bf16_is_fast()


def test_a_gpu_without_bfloat16_is_told(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: False)
    with pytest.raises(OptionError, match="fp32"):
        precision.use_bf16("bf16")


def test_a_run_under_bfloat16_goes_through(corpus_file, tiny_base, tmp_path):
    import likewise

    result = likewise.train(
        "arccse", corpus_file, base=tiny_base, out=tmp_path / "run", precision="bf16", batch_size=8, max_steps=2,
        select_by="held-out", held_out=20, quiet=True,
    )  # fmt: skip
    assert result.record["precision"] == "bf16"
    weights = likewise.load(result.path).state_dict().values()
    assert all(torch.isfinite(weight).all() for weight in weights)
    # The saved weights are the float32 masters.
    assert {weight.dtype for weight in weights} == {torch.float32}
