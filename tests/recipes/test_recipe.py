"""What a recipe makes of its views and its loss if it brings no builders of its own."""

import dataclasses

import pytest
import torch

import likewise
from likewise.errors import LikewiseError
from likewise.losses import functional
from likewise.recipes import ArcCSEOptions, OptionError, Recipe, TrainingOptions, find_recipe, option


def views(rows):
    return {"first": [row["sentence"] for row in rows], "second": [row["sentence"][::-1] for row in rows]}


def nearness(loss, first, second):
    return functional.cosine_distance(loss.vectors(first), loss.vectors(second))


PRESETS = {"cpu": TrainingOptions()}
RECIPE = Recipe("turned", "A sentence and its letters from behind.", "a test", PRESETS, views, nearness)


def test_views_and_loss_are_enough(tiny_base, sentences):
    options = RECIPE.options(max_length=8)
    encoder = RECIPE.build_encoder(str(tiny_base), options).eval()
    batch = RECIPE.build_collator(encoder, options, 1)([{"sentence": text} for text in sentences[:4]])
    assert batch["first_input_ids"].shape == (4, 8)
    columns = [
        {name.removeprefix(f"{side}_"): value for name, value in batch.items() if name.startswith(side)}
        for side in ("first", "second")
    ]
    first, second = (encoder(dict(column))["sentence_embedding"] for column in columns)
    wanted = (1 - torch.cosine_similarity(first, second)).mean()
    assert RECIPE.build_loss(encoder, options)(columns).item() == pytest.approx(wanted.item())


def test_a_changed_copy_has_its_own_loss_and_views(tiny_model):
    copy = dataclasses.replace(RECIPE, loss=lambda loss, *columns: torch.tensor(7.0), views=lambda rows: {"only": []})
    assert copy.build_loss(tiny_model, copy.options())([{}]).item() == 7
    assert copy.build_collator(tiny_model, copy.options(), 1)([]) == {}
    builder = dataclasses.replace(RECIPE, build_loss=lambda encoder, options: "its own")
    assert builder.build_loss(None, None) == "its own"


def test_a_loss_that_counts_is_made_anew_for_each_training(tiny_model):
    class Counting:
        def __init__(self):
            self.calls = 0

        def __call__(self, loss, *columns):
            self.calls += 1
            return torch.tensor(self.calls)

    recipe = dataclasses.replace(RECIPE, loss=Counting)
    first, second = (recipe.build_loss(tiny_model, recipe.options()) for _ in range(2))
    assert [first([{}]), first([{}]), second([{}])] == [1, 2, 1]


@pytest.mark.parametrize("missing", ["views", "loss"])
def test_a_recipe_without_views_or_loss_is_refused(missing, says):
    given = {"views": views, "loss": nearness} | {missing: None}
    with says(OptionError):
        Recipe("turned", "", "", PRESETS, **given)


def test_options_of_ones_own_take_the_place_of_a_preset(says):
    arccse, sncse = find_recipe("arccse"), find_recipe("sncse")
    own = ArcCSEOptions(margin=5.0)
    assert arccse.options(own) == own
    assert arccse.options(own, margin=7.0).margin == 7
    assert [arccse.preset_name(preset) for preset in (None, "paper-base", own)] == ["cpu", "paper-base", "own"]
    with says(OptionError):
        sncse.options(own)


def test_a_loss_knows_where_the_training_is_also_after_a_stop(corpus_file, tiny_base, tmp_path, stopping_after):
    seen = []

    def loss(loss, first, second):
        seen.append((loss.step, loss.steps))
        return nearness(loss, first, second)

    recipe = dataclasses.replace(RECIPE, loss=loss)
    made = {"base": str(tiny_base), "out": tmp_path / "run", "quiet": True, "max_steps": 5}
    made |= {"select_by": "last", "batch_size": 4, "precision": "fp32"}
    with stopping_after(3):
        likewise.train(recipe, corpus_file, **made)
    likewise.train(recipe, corpus_file, **made)
    assert seen == [(step, 5) for step in range(5)]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda loss, first, second: None,
        lambda loss, first, second: {"part": 1.0},
        lambda loss, first, second: loss.vectors(first).sum(dim=1),
        lambda loss, first: loss.vectors(first).sum(),
    ],
)
def test_a_loss_that_takes_or_returns_something_else_is_named(corpus_file, tiny_base, tmp_path, wrong, says):
    wrong.__name__ = "own_loss"
    recipe = dataclasses.replace(RECIPE, loss=wrong)
    with says(LikewiseError):
        likewise.train(
            recipe, corpus_file, base=str(tiny_base), out=tmp_path / "run", quiet=True, max_steps=1, select_by="last"
        )


class TwiceOptions(TrainingOptions):
    twice: int = option(2, "How often a sentence is said.")


def test_views_may_take_the_options_and_the_seed(tiny_base, says):
    def said(rows, options, seed):
        return {"only": [f"{row['sentence']} {seed}" * options.twice for row in rows]}

    recipe = Recipe("said", "", "", {"cpu": TwiceOptions(twice=3)}, said, nearness)
    encoder = recipe.build_encoder(str(tiny_base), recipe.options())
    made = recipe.build_collator(encoder, recipe.options(), 7)([{"sentence": "the cat"}])
    own = encoder.tokenizer(["the cat 7the cat 7the cat 7"], return_tensors="pt")
    assert torch.equal(made["only_input_ids"], own["input_ids"])
    other = dataclasses.replace(recipe, views=lambda rows, options: {})
    with says(OptionError):
        other.build_collator(encoder, recipe.options(), 1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda rows: {"first": [row["title"] for row in rows]},
        lambda rows: {"first": [row["sentence"] for row in rows], "second": ["one"]},
    ],
)
def test_views_that_fail_name_the_recipe_and_the_column_before_anything_is_written(
    corpus_file, tiny_base, tmp_path, wrong, says
):
    recipe = dataclasses.replace(RECIPE, views=wrong)
    with says(OptionError):
        likewise.train(
            recipe, corpus_file, base=str(tiny_base), out=tmp_path / "run", quiet=True, batch_size=4, select_by="last"
        )
    assert not list(tmp_path.glob("*run*"))


def test_a_key_error_of_something_else_than_a_row_stays_what_it_is(tiny_base, says):
    recipe = dataclasses.replace(RECIPE, views=lambda rows: {}["sentence"])
    encoder = recipe.build_encoder(str(tiny_base), recipe.options())
    with says(KeyError):
        recipe.build_collator(encoder, recipe.options(), 1)([{"sentence": "the cat"}])


def test_a_noted_figure_may_be_a_tensor(tiny_model):
    loss = RECIPE.build_loss(tiny_model, RECIPE.options())
    loss.note(share=torch.tensor([True, False]), norm=torch.tensor(2.0, requires_grad=True))
    loss.note(share=1.0, norm=4)
    assert loss.measures() == {"share": 0.75, "norm": 3.0}
