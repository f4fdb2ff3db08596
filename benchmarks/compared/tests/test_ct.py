import pytest
import torch

from compared.ct import tension_pairs
from likewise.encoder.training_modules import EncoderCopy
from likewise.recipes import OptionError, find_recipe

CT = find_recipe("ct")


def test_one_pair_in_eight_is_of_equal_sentences_and_each_encoder_sees_each_sentence_once(sentences):
    columns = tension_pairs([{"sentence": s} for s in sentences[:16]], 7)
    assert columns["first"] == sentences[:16]
    equal = [a == b for a, b in zip(columns["first"], columns["second"], strict=True)]
    assert [i for i, same in enumerate(equal) if same] == [0, 8]
    assert sorted(columns["second"]) == sorted(sentences[:16])


def test_the_loss_is_the_cross_entropy_of_the_products_of_two_encoders(tiny_base, sentences):
    options = CT.options(batch_size=8)
    encoder = CT.build_encoder(str(tiny_base), options).eval()
    loss = CT.build_loss(encoder, options)
    (twin,) = [module for module in encoder if isinstance(module, EncoderCopy)]
    with torch.no_grad():
        next(twin.encoder.parameters()).mul_(1.3)
    batch = CT.build_collator(encoder, options, 1)([{"sentence": s} for s in sentences[:8]])
    features = [
        {key.removeprefix(f"{name}_"): value for key, value in batch.items() if key.startswith(name)}
        for name in ("first", "second")
    ]
    a = twin.encode(features[0])
    b = encoder(dict(features[1]))["sentence_embedding"]
    products = (a * b).sum(dim=1).double()
    expected = torch.nn.functional.softplus(-products[0]) + torch.nn.functional.softplus(products[1:]).sum()
    assert loss([dict(f) for f in features]).item() == pytest.approx(expected.item(), rel=1e-4)


def test_the_rate_falls_in_steps_and_both_encoders_are_trained(tiny_base):
    options = CT.options("paper")
    encoder = CT.build_encoder(str(tiny_base), options)
    optimizer, schedule = CT.build_optimizer(encoder, options, 3000)
    rates = []
    for _ in range(2600):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    expected = [1e-5, 8e-6, 6e-6, 4e-6, 2e-6, 2e-6]
    assert [rates[i] for i in (0, 500, 1000, 1500, 2000, 2500)] == pytest.approx(expected)
    assert [rates[i] for i in (499, 999, 1499, 1999)] == pytest.approx(expected[:4])
    assert len(optimizer.param_groups[0]["params"]) == 2 * len(list(encoder[0].parameters()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 12}, "multiple"),
        ({"batch_size": 2, "negatives": 1}, "3 or more"),
        ({"sam_rho": 0.1}, "no option sam_rho"),
    ],
)
def test_contradictions_are_refused(changes, message):
    with pytest.raises(OptionError, match=message):
        CT.options(**changes)
