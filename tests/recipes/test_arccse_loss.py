import pytest
import torch
from safetensors.torch import load_file

import likewise
from likewise.encoder.build import build_encoder
from likewise.encoder.training_modules import TripletWatch
from likewise.losses import functional
from likewise.recipes.arccse import ARCCSE, ArcCSEOptions


def column(model, texts):
    return dict(model.tokenizer(texts, padding=True, return_tensors="pt"))


def test_parts_are_weighted_and_named(tiny_model):
    one, three = (
        column(tiny_model, ["the cat", "a dog"]),
        column(tiny_model, ["the cat", "the [MASK]", "[MASK] dog"]),
    )
    parts = ARCCSE.build_loss(tiny_model, ArcCSEOptions(triplet_weight=0.25, triplet_margin=0.5))([one, three])
    cats, triplet = (tiny_model(dict(features))["sentence_embedding"] for features in (one, three))
    assert torch.allclose(parts["contrastive"], functional.arccon(cats, cats))
    expected = functional.entailment_triplet(*triplet.chunk(3), 0.5)
    assert expected > 0
    assert torch.allclose(parts["triplet"], 0.25 * expected)


@pytest.mark.parametrize("contrastive", ["arccon", "none"])
def test_a_batch_without_triplets_has_a_zero_that_can_be_differentiated(tiny_model, contrastive):
    parts = ARCCSE.build_loss(tiny_model, ArcCSEOptions(contrastive=contrastive))(
        [column(tiny_model, ["the cat", "a dog"])]
    )
    assert parts["triplet"].item() == 0
    sum(parts.values()).backward()


def test_the_trainers_wrapper_reaches_both_parts(tiny_model):
    loss = ARCCSE.build_loss(tiny_model, ArcCSEOptions())
    loss.model = torch.nn.Sequential(tiny_model)
    sizes = []
    loss.model.register_forward_hook(lambda module, inputs, output: sizes.append(len(inputs[0]["input_ids"])))
    loss([column(tiny_model, ["the cat", "a dog"]), column(tiny_model, ["the cat", "the [MASK]", "[MASK] dog"])])
    assert sizes == [4, 3]


def test_triplets_in_order_are_not_passed_backward_and_the_gradient_is_that_of_all(tiny_base):
    model = build_encoder(str(tiny_base), pooling="mean", head=True, dropout=0.0).train()
    # The second triplet cannot be in order: its version masked more is the sentence itself.
    texts = ["the cat", "a dog", "the cat", "[MASK] [MASK]", "[MASK] [MASK]", "a dog"]
    both, twins = column(model, texts), column(model, ["the cat", "a dog"])
    loss = ARCCSE.build_loss(model, ArcCSEOptions(triplet_weight=3.0))
    seen = []
    model.register_forward_hook(lambda module, inputs, found: seen.append((len(found["input_ids"]), found["x"])))
    model[0].register_forward_hook(lambda module, inputs, found: found | {"x": torch.is_grad_enabled()})

    def gradients(value):
        model.zero_grad()
        value.backward()
        return torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None])

    found = gradients(loss([twins, both])["triplet"])
    assert seen == [(4, True), (6, False), (3, True)]
    assert loss.measures() == {"triplets_out_of_order": 0.5}
    wanted = gradients(3 * functional.entailment_triplet(*model(dict(both))["sentence_embedding"].chunk(3)))
    assert torch.allclose(found, wanted, atol=1e-6)
    assert wanted.abs().max() > 1e-3
    seen.clear()
    in_order = column(model, texts[::2])
    assert loss([twins, in_order])["triplet"].item() == 0
    assert seen == [(4, True), (3, False)]


def test_triplets_are_looked_at_for_a_while_and_then_in_one_update_of_several(tiny_base):
    options = ArcCSEOptions(pooling="mean", triplet_every=4, triplet_weight=3.0)
    model = ARCCSE.build_encoder(str(tiny_base), options)
    twins = column(model, ["the cat", "a dog"])
    # The version masked more is the sentence itself, or the one masked less is.
    wrong = column(model, ["the cat", "[MASK] [MASK]", "the cat"])
    right = column(model, ["the cat", "the cat", "[MASK] [MASK]"])
    loss = ARCCSE.build_loss(model, options)

    def looks(step, triplets):
        loss.step = step
        part = loss([twins, triplets])["triplet"].item()
        return bool(loss.measures()), part > 0

    assert [looks(step, right) for step in range(8)] == 8 * [(True, False)]
    assert [looks(step, right)[0] for step in range(8, 17)] == [step % 4 == 0 for step in range(8, 17)]
    assert looks(17, wrong) == (False, False)  # what is not looked at adds nothing
    assert looks(20, wrong) == (True, True)
    assert [looks(step, right)[0] for step in range(21, 31)] == 8 * [True] + [False, False]


@pytest.mark.parametrize("changes", [{"triplet_every": 1}, {"contrastive": "none"}, {"triplet_dropout": True}])
def test_triplets_are_always_looked_at_where_it_is_asked_for_or_where_all_have_a_gradient(tiny_base, changes):
    options = ArcCSEOptions(**({"triplet_every": 4} | changes))
    assert not any(isinstance(part, TripletWatch) for part in ARCCSE.build_encoder(str(tiny_base), options))


def test_a_stopped_training_looks_where_it_would_have_looked(corpus_file, tiny_base, tmp_path, stopping_after):
    made = {"base": str(tiny_base), "quiet": True, "max_steps": 12, "batch_size": 4, "precision": "fp32"}
    # A margin of 0.9 is never met: every look finds triplets.
    made |= {"select_by": "last", "triplet_every": 2, "triplet_min_words": 3, "triplet_margin": 0.9, "seed": 3}
    likewise.train("arccse", corpus_file, out=tmp_path / "whole", **made)
    with stopping_after(7):
        likewise.train("arccse", corpus_file, out=tmp_path / "stopped", **made)
    likewise.train("arccse", corpus_file, out=tmp_path / "stopped", **made)
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("whole", "stopped")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
