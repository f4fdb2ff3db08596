import torch

from likewise import processor

INT8 = {"vnni", "bf16+vnni"}
BF16 = {"bf16", "bf16+vnni"}


def test_another_processor_stands_in(any_processor):
    assert processor.has_int8() is (any_processor in INT8)
    assert processor.has_bf16() is (any_processor in BF16)
    assert ("avx2" in processor.flags()) is (any_processor != "none")
    # What is remembered of this machine is not taken for that one.
    assert processor.name().endswith(f" as {any_processor}")


def test_without_it_the_machine_itself_is_asked(monkeypatch):
    monkeypatch.delenv(processor.VARIABLE, raising=False)
    monkeypatch.setattr(processor, "_own_flags", lambda: frozenset({"amx_bf16", "avx_vnni"}))
    assert processor.has_int8()
    assert processor.has_bf16()
    assert processor.name()
    assert " as " not in processor.name()


def test_where_linux_does_not_tell_torch_does(monkeypatch):
    monkeypatch.setattr(processor, "_cpuinfo", lambda *names: "")
    for question, answer in (
        ("_is_avx512_bf16_supported", True),
        ("_is_amx_tile_supported", False),
        ("_is_vnni_supported", True),
    ):
        monkeypatch.setattr(torch.cpu, question, lambda answer=answer: answer, raising=False)
    assert processor._own_flags.__wrapped__() == {"avx512_bf16", "avx512_vnni"}


def test_a_processor_that_is_not_known_is_told(monkeypatch, says):
    monkeypatch.setenv(processor.VARIABLE, "bf16+avx1024")
    with says(ValueError):
        processor.flags()
