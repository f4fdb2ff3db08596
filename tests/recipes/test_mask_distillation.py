import pytest
import torch

import likewise
from likewise.encoder.build import build_encoder, build_prompt_encoder
from likewise.encoder.training_modules import FrozenCopy
from likewise.recipes import OptionError, find_recipe

RECIPE = find_recipe("mask-distillation")


def features(batch, names=("sentence", "plain")):
    return [
        {key.removeprefix(f"{name}_"): value for key, value in batch.items() if key.startswith(name)} for name in names
    ]


def test_the_loss_is_the_cosine_distance_to_the_mean_of_the_base_s_token_vectors(tiny_base, sentences):
    options = RECIPE.options()
    encoder = RECIPE.build_encoder(str(tiny_base), options).eval()
    loss = RECIPE.build_loss(encoder, options)
    short = [" ".join(s.split()[:4]) for s in sentences[:6]]  # nothing is cut: the oracle encodes them whole
    batch = RECIPE.build_collator(encoder, options, 1)([{"sentence": s} for s in short])
    with torch.no_grad():
        mine = build_prompt_encoder(str(tiny_base), head=False).eval()
        vectors = mine.encode(short, convert_to_tensor=True).double()
        teacher = build_encoder(str(tiny_base), pooling="mean", head=False).eval()
        targets = teacher.encode(short, convert_to_tensor=True).double()
    cosines = (vectors * targets).sum(1) / (vectors.norm(dim=1) * targets.norm(dim=1))
    assert loss(features(batch)).item() == pytest.approx((1 - cosines.mean()).item(), rel=1e-3)


def test_two_prompts_learn_the_same_vector(tiny_base, sentences):
    options = RECIPE.options(other_template='this : " X " is [MASK].')
    encoder = RECIPE.build_encoder(str(tiny_base), options).eval()
    loss = RECIPE.build_loss(encoder, options)
    batch = RECIPE.build_collator(encoder, options, 1)([{"sentence": " ".join(s.split()[:4])} for s in sentences[:6]])
    first, plain, again = features(batch, ("sentence", "plain", "again"))
    assert first["input_ids"].tolist() != again["input_ids"].tolist()
    with torch.no_grad():
        alone = [loss([one, plain]).item() for one in (first, again)]
        both = loss([first, plain, again]).item()
    assert alone[0] != alone[1]
    assert both == pytest.approx(sum(alone) / 2, rel=1e-4)


def test_the_teacher_is_not_trained_and_nothing_is_dropped_though_the_base_keeps_its_dropout(tiny_base, sentences):
    options = RECIPE.options()
    encoder = RECIPE.build_encoder(str(tiny_base), options).train()
    loss = RECIPE.build_loss(encoder, options)
    batch = RECIPE.build_collator(encoder, options, 1)([{"sentence": s} for s in sentences[:4]])
    loss(features(batch)).backward()
    with torch.no_grad():
        assert loss(features(batch)).item() == loss(features(batch)).item()
    assert encoder[0].auto_model.config.hidden_dropout_prob > 0
    (teacher,) = [module for module in encoder if isinstance(module, FrozenCopy)]
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert any(parameter.grad is not None for parameter in encoder[0].parameters())
    with torch.no_grad():
        plain = features(batch)[1]
        assert torch.equal(teacher.encode(plain), teacher.encode(plain))


def test_a_run_brings_the_mask_near_the_teacher_and_leaves_the_teacher_out(tiny_base, corpus_file, tmp_path, sentences):
    base = build_encoder(str(tiny_base), pooling="mean", head=False).eval()
    before = build_prompt_encoder(str(tiny_base), head=False).eval()
    likewise.train(
        "mask-distillation",
        corpus_file,
        base=tiny_base,
        out=tmp_path / "out",
        max_steps=60,
        batch_size=16,
        learning_rate=3e-3,
        eval_steps=0,
        select_by="last",
        quiet=True,
    )
    after = likewise.load(tmp_path / "out", precision="fp32")
    assert [type(module).__name__ for module in after] == ["Transformer", "WordWeights", "Pooling"]

    def nearness(model):
        mine, theirs = (m.encode(sentences, convert_to_tensor=True) for m in (model, base))
        return torch.nn.functional.cosine_similarity(mine, theirs).mean().item()

    assert nearness(after) > nearness(before) + 0.1


def test_what_is_no_template_is_refused(says):
    with says(OptionError):
        RECIPE.options(template="no place")
