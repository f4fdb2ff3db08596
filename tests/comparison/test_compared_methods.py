import re

import pytest

from likewise.comparison.compared_methods import ComparisonError, Method, parse_methods


def one(line):
    (method,) = parse_methods([line])
    return method


def test_options_have_the_types_of_the_recipe():
    method = one('arccse margin=0 head=false contrastive=nt-xent triplet-min-words=12 label="no margin"')
    assert method.label == "no margin"
    assert method.kind == "recipe"
    assert method.options == {"margin": 0.0, "head": False, "contrastive": "nt-xent", "triplet_min_words": 12}
    assert [type(value) for value in method.options.values()] == [float, bool, str, int]
    chosen = method.chosen({"max_steps": 3}, None)
    assert (chosen.margin, chosen.head, chosen.max_steps) == (0.0, False, 3)


def test_values_in_braces_are_a_method_each():
    found = parse_methods(["gclsr augmentation={partial,full} group_size={0,16}"])
    assert [tuple(method.options.values()) for method in found] == [
        ("partial", 0),
        ("partial", 16),
        ("full", 0),
        ("full", 16),
    ]
    assert len({method.key for method in found}) == 4


def test_a_combination_that_contradicts_itself_is_named():
    for line in ("sncse alpha=0.2 beta=0.15", "sncse alpha={0.2,0.3} beta=0.15"):
        with pytest.raises(ComparisonError, match="alpha"):
            parse_methods([line])
    with pytest.raises(ComparisonError, match="ten"):
        parse_methods(["arccse margin={0,ten}"])


def test_a_contradiction_is_judged_with_the_options_of_the_comparison():
    with pytest.raises(ComparisonError, match="beta"):
        parse_methods(["sncse alpha=0.35"])
    assert one("sncse alpha=0.35 beta=2").options == {"alpha": 0.35, "beta": 2.0}


def test_regions_with_commas_are_one_value():
    assert one("gclsr regions=1,2,3").options == {"regions": "1,2,3"}


def test_an_own_option_wins_over_the_comparisons():
    assert one("simcse batch_size=8").chosen({"batch_size": 64}, None).batch_size == 8


@pytest.mark.parametrize(
    ("line", "vectors"), [("gclsr", True), ("word-average", True), ("arccse", False), ("whitening", False)]
)
def test_which_base_a_method_takes(line, vectors):
    assert one(line).takes_vectors is vectors


@pytest.mark.parametrize(
    ("line", "sentences", "differs"),
    [
        ("simcse", 100, True),
        ("flow", 100, True),
        ("whitening sentences=50", 100, True),
        ("whitening sentences=100", 100, False),
        ("whitening sentences=0", 100, False),
        ("word-average", 100, False),
        ("cls", 100, False),
        ("base", 100, False),
        ("bertscore", 100, False),
    ],
)
def test_which_methods_differ_by_seed(line, sentences, differs):
    assert one(line).differs_by_seed(sentences) is differs


def test_the_key_is_of_the_options_and_not_of_the_label():
    assert one("arccse margin=0 label=a").key == one("arccse margin=0").key
    assert one("arccse margin=0").key != one("arccse margin=1").key
    assert one("arccse preset=paper-base").key != one("arccse").key


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["arcsce"], "no method 'arcsce'. Did you mean arccse? There are base,"),
        (["arccse margn=0"], "no option margn: did you mean margin? There are accumulation"),
        (["arccse margin=ten"], "margin must be a number, not 'ten'"),
        (["arccse head=2"], "head must be true or false, not '2'"),
        (["arccse margin"], "'margin' is not an option. Write NAME=VALUE"),
        (["arccse margin=1 margin=2"], "margin is given twice"),
        (["arccse preset=huge"], "no preset 'huge'; there are cpu"),
        (["cls preset=cpu"], "only recipes have presets"),
        (["cls margin=1"], "no option margin. There are none"),
        (["model"], "model path=FOLDER"),
        (["simcse label=a", "arccse label=a"], "Two methods are called 'a'"),
        (["arccse label='a"], "cannot be read"),
        ([""], "empty"),
    ],
)
def test_what_is_wrong_is_told(lines, message):
    with pytest.raises(ComparisonError, match=re.escape(message)):
        parse_methods(lines)


def test_a_method_named_twice_is_one():
    assert parse_methods(["simcse", "simcse"]) == (Method("simcse", "recipe", "simcse"),)
