import json

import pytest
import torch
from torch import nn

import likewise
from likewise.recipes import find_recipe
from likewise.training import memory
from likewise.training.memory import in_chunks

CASES = {
    "arccse": {"triplet_min_words": 15, "triplet_weight": 1.0, "triplet_margin": 0.2, "pooling": "mean"},
    "simcse": {"pooling": "mean", "head": False},
    "esimcse": {"pooling": "mean", "head": False},
    "sncse": {"weight": 1.0},
}
"""Recipe to options: with dropout of a pass turned off, with two passes, and with rows of other kinds in the batch."""


def gradient(recipe, base, sentences, rows, dropout):
    """Return loss and gradient of a batch, encoded in chunks of some rows (0: at once)."""
    method = find_recipe(recipe)
    options = method.options(None, batch_size=len(sentences), **CASES[recipe])
    torch.manual_seed(1)
    encoder = method.build_encoder(base, options).train()
    for module in encoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
    loss, collate = method.build_loss(encoder, options), method.build_collator(encoder, options, 1)
    batch = collate(
        [
            {"sentence": text, "words": len(text.split()), "negation": text.replace(" the ", " no ")}
            for text in sentences
        ]
    )
    columns = dict.fromkeys(key.rsplit("_input_ids", 1)[0] for key in batch if key.endswith("_input_ids"))
    features = [
        {key.removeprefix(f"{column}_"): value for key, value in batch.items() if key.startswith(f"{column}_")}
        for column in columns
    ]
    torch.manual_seed(2)
    with in_chunks(encoder, rows):
        value = loss(features)
        value = sum(value.values()) if isinstance(value, dict) else value
        value.backward()
    grads = [one.grad.reshape(-1) for one in encoder.parameters() if one.grad is not None]
    return value.detach(), torch.cat(grads)


@pytest.mark.parametrize("recipe", CASES)
def test_the_gradient_of_chunks_is_that_of_the_whole_batch(recipe, tiny_base, sentences):
    loss, direct = gradient(recipe, str(tiny_base), sentences[:24], 0, 0.0)
    chunked_loss, chunked = gradient(recipe, str(tiny_base), sentences[:24], 7, 0.0)
    assert torch.allclose(chunked_loss, loss, rtol=1e-5)
    assert direct.abs().max() > 0
    assert (chunked - direct).abs().max() < 1e-4 * direct.abs().max()


def test_the_gradient_of_a_batch_of_1024(tiny_base, sentences):
    texts = [f"{first} {second}" for first in sentences[:64] for second in sentences[64:80]]
    loss, direct = gradient("simcse", str(tiny_base), texts, 0, 0.0)
    chunked_loss, chunked = gradient("simcse", str(tiny_base), texts, 64, 0.0)
    assert torch.allclose(chunked_loss, loss, rtol=1e-5)
    assert (chunked - direct).abs().max() < 1e-4 * direct.abs().max()


@pytest.mark.parametrize("recipe", CASES)
def test_a_chunk_is_made_again_under_the_same_dropout(recipe, tiny_base, sentences, monkeypatch):
    """The oracle keeps the activations: the same chunks without a checkpoint."""
    loss, cached = gradient(recipe, str(tiny_base), sentences[:24], 7, 0.2)
    monkeypatch.setattr(memory, "recomputed", lambda made, *arguments, use_reentrant: made(*arguments))
    kept_loss, kept = gradient(recipe, str(tiny_base), sentences[:24], 7, 0.2)
    assert torch.equal(loss, kept_loss)
    assert (cached - kept).abs().max() <= 1e-6 * kept.abs().max()


@pytest.mark.parametrize(
    ("more", "apart"), [({"accumulation": 2, "precision": "fp32"}, 1e-4), ({"precision": "bf16"}, 1e-2)]
)
def test_a_training_in_chunks_has_the_losses_of_one_without(more, apart, corpus_file, tiny_base, tmp_path):
    given = {"batch_size": 16, "max_steps": 4, "select_by": "last", "learning_rate": 3e-4, "quiet": True, **more}
    given |= {"dropout": 1e-12, "pooling": "mean", "head": False}
    losses = []
    for rows in (0, 5):
        likewise.train("arccse", corpus_file, base=tiny_base, out=tmp_path / str(rows), chunk=rows, **given)
        log = [json.loads(line) for line in (tmp_path / str(rows) / "log.jsonl").read_text().splitlines()]
        losses.append([line["loss"] for line in log if "loss" in line])
    assert len(losses[0]) == 4
    assert losses[1] == pytest.approx(losses[0], rel=apart)


def test_the_activations_of_one_chunk_are_kept_at_a_time(tiny_model):
    """What torch saves for the gradient, while a batch of 64 is encoded."""
    features = tiny_model.tokenize(["the cat sees the dog"] * 64)

    def saved(rows):
        sizes = []
        kept = torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t)
        with kept, in_chunks(tiny_model, rows):
            tiny_model(dict(features))["sentence_embedding"].sum()
        return sum(sizes)

    assert saved(8) < saved(0) / 10


def test_the_forward_of_a_model_is_restored(tiny_model):
    with pytest.raises(KeyError), in_chunks(tiny_model, 4):
        assert "forward" in vars(tiny_model)
        raise KeyError
    assert "forward" not in vars(tiny_model)
