from functools import partial

import pytest
import torch

from likewise.augment.spans import nested_spans, sentence_rng
from likewise.losses import functional
from likewise.recipes import RECIPES, OptionError
from likewise.recipes.arccse import triplet_views

ARCCSE = RECIPES["arccse"]


def options_of(**changes):
    """Options with the paper's triplets, which the default leaves out."""
    return ARCCSE.options(**({"triplet_weight": 0.1} | changes))


def triplets_of(options, mask_token, seed):
    return partial(triplet_views, options=options, mask_token=mask_token, seed=seed)


def rows(sentences):
    return [{"sentence": s, "words": len(s.split())} for s in sentences]


def test_only_long_sentences_make_triplets_in_three_blocks(sentences):
    options = options_of(triplet_min_words=25, triplet_limit=0)
    columns = triplets_of(options, "[MASK]", seed=1)(rows(sentences[:50]))
    long = [s for s in sentences[:50] if len(s.split()) >= 25]
    k = len(long)
    assert 0 < k < 50
    assert columns["sentence"] == sentences[:50]
    assert columns["triplet"][:k] == long
    assert len(columns["triplet"]) == 3 * k
    for sentence, closer, farther in zip(*(columns["triplet"][i * k : (i + 1) * k] for i in range(3)), strict=True):
        n = len(sentence.split())
        hidden = [[i for i, w in enumerate(text.split()) if w == "[MASK]"] for text in (closer, farther)]
        assert [tuple(h) for h in hidden] == list(nested_spans(n, (0.2, 0.4), sentence_rng(sentence, 1)))
        assert all(a == b for a, b in zip(sentence.split(), farther.split(), strict=True) if b != "[MASK]")


def test_the_limit_bounds_the_triplets_of_a_batch(sentences):
    long = [s for s in sentences if len(s.split()) >= 25][:5]
    columns = triplets_of(options_of(triplet_limit=3), "[MASK]", seed=1)(rows(["A short one.", *long]))
    assert len(columns["sentence"]) == 6
    assert columns["triplet"][:3] == long[:3]
    assert len(columns["triplet"]) == 9


def test_views_depend_on_the_seed_and_not_on_the_batch(sentences):
    options = options_of()
    first = triplets_of(options, "[MASK]", seed=1)
    sentence = next(s for s in sentences if len(s.split()) >= 25)
    alone, among = first(rows([sentence]))["triplet"], first(rows([*sentences[:20], sentence]))["triplet"]
    assert set(alone) <= set(among)
    assert triplets_of(options, "[MASK]", seed=2)(rows([sentence]))["triplet"] != alone


def test_batch_is_truncated_and_masks_are_mask_tokens(tiny_base, sentences):
    options = options_of(max_length=8, triplet_max_length=20)
    encoder = ARCCSE.build_encoder(str(tiny_base), options)
    batch = ARCCSE.build_collator(encoder, options, 1)(rows(sentences[:30]))
    assert batch["sentence_input_ids"].shape == (30, 8)
    assert batch["triplet_input_ids"].shape[1] == 20
    k = len(batch["triplet_input_ids"]) // 3
    masks = (batch["triplet_input_ids"] == encoder.tokenizer.mask_token_id).sum(1)
    assert masks[:k].sum() == 0
    assert (masks[k : 2 * k] <= masks[2 * k :]).all()
    assert "triplet_input_ids" not in ARCCSE.build_collator(encoder, options, 1)(rows(["one two three"]))


def test_the_loss_is_equation_5(tiny_base, sentences):
    options = options_of(triplet_weight=0.3, margin=15.0, temperature=0.1, triplet_margin=0.2)
    encoder = ARCCSE.build_encoder(str(tiny_base), options).eval()
    batch = ARCCSE.build_collator(encoder, options, 1)(rows(sentences[:10]))
    features = [
        {key.removeprefix(f"{name}_"): value for key, value in batch.items() if key.startswith(name)}
        for name in ("sentence", "triplet")
    ]
    parts = ARCCSE.build_loss(encoder, options)(features)
    x = encoder(dict(features[0]))["sentence_embedding"]  # without dropout both views are this one
    t = encoder(dict(features[1]))["sentence_embedding"].chunk(3)
    assert torch.allclose(parts["contrastive"], functional.arccon(x, x, 15, 0.1), atol=1e-5)
    assert torch.allclose(parts["triplet"], 0.3 * functional.entailment_triplet(*t, 0.2), atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"triplet_weight": 0.0}, {"contrastive"}),
        ({"contrastive": "none"}, {"triplet"}),
        ({"contrastive": "nt-xent"}, {"contrastive", "triplet"}),
    ],
)
def test_ablations_leave_parts_out(tiny_base, sentences, changes, expected):
    options = options_of(**changes)
    encoder = ARCCSE.build_encoder(str(tiny_base), options)
    batch = ARCCSE.build_collator(encoder, options, 1)(rows(sentences[:10]))
    features = [
        {key.removeprefix(f"{name}_"): value for key, value in batch.items() if key.startswith(name)}
        for name in ("sentence", "triplet")
    ]
    parts = ARCCSE.build_loss(encoder.eval(), options)([one for one in features if one])
    assert set(parts) == expected
    if options.contrastive == "nt-xent":
        x = encoder(dict(features[0]))["sentence_embedding"]
        assert torch.allclose(parts["contrastive"], functional.nt_xent(x, x, options.temperature), atol=1e-5)


def test_a_tokenizer_without_a_mask_is_told(tiny_base, says):
    encoder = ARCCSE.build_encoder(str(tiny_base), options_of())
    encoder[0].tokenizer.mask_token = None
    with says(OptionError):
        ARCCSE.build_collator(encoder, options_of(), 1)


def test_simcse_is_arccse_without_margin_triplets_and_sam():
    for preset in RECIPES["simcse"].presets:
        options = RECIPES["simcse"].options(preset)
        assert (options.contrastive, options.triplet_weight, options.sam_rho) == ("nt-xent", 0, 0)
