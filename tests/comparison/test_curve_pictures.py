"""The picture of a grid: which points are drawn, and where."""

from pathlib import Path

import pytest

from likewise.comparison import curve_pictures
from likewise.comparison.curve_pictures import draw_grids
from likewise.comparison.methods import parse_methods
from likewise.comparison.outcome import Comparison

pytest.importorskip("matplotlib")
SETTINGS = {"tasks": ["sts-b"], "steps": 1, "minutes": None, "preset": None, "shared": {}}


def comparison(*lines, seeds=(1, 2)):
    methods = parse_methods(["base", *lines])
    runs = [(method, seed) for seed in seeds for method in methods if seed == 1 or method.kind != "base"]
    results = [
        {
            "label": method.label,
            "seed": seed,
            "status": "finished",
            "scores": {"sts-b": 60.0},
            "titles": {"sts-b": "STS-B"},
            "averages": {},
            "missing": {},
            "dev": {"metric": "dev", "score": 70 + 10 * method.options.get("alpha", 0) + seed, "step": 1},
        }
        for method, seed in runs
    ]
    return Comparison(Path("out"), SETTINGS, seeds, tuple(runs), tuple(results))


@pytest.fixture
def drawn(monkeypatch):
    """The axes of what was drawn."""
    found = []
    monkeypatch.setattr(curve_pictures, "save", lambda figure, path, y: found.extend(figure.axes) or path)
    return found


def test_a_line_for_each_value_of_the_second_option(drawn):
    draw_grids(comparison("sncse alpha={0.2,0.1} beta={0.3,2}"), Path("a.png"))
    (axes,) = drawn
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "0.2"]
    assert axes.get_xlabel() == "alpha"
    labels = axes.get_legend_handles_labels()[1]
    assert sorted(labels) == ["base (untrained)", "beta=0.3", "beta=2"]
    lines = [bars.lines[0] for bars in axes.containers]
    # The mean of seeds 1 and 2, and their standard deviation of sqrt(0.5).
    assert [line.get_ydata().tolist() for line in lines] == [pytest.approx([72.5, 73.5])] * 2
    low, high = axes.containers[0].lines[2][0].get_segments()[0][:, 1]
    assert (high - low) / 2 == pytest.approx(0.5**0.5)


def test_one_option_and_further_ones(drawn):
    draw_grids(comparison("simcse temperature={0.05,0.1}", seeds=(1,)), Path("a.png"))
    assert len(drawn) == 1
    drawn.clear()
    draw_grids(comparison("sncse alpha={0.1,0.2} beta={0.3,2} weight={1e-3,5e-4,1e-4}", seeds=(1,)), Path("a.png"))
    assert [axes.get_title(loc="left").rpartition(": ")[2] for axes in drawn] == [
        "weight=0.001",
        "weight=0.0005",
        "weight=0.0001",
    ]


def test_no_grid_no_picture(drawn):
    assert draw_grids(comparison("simcse"), Path("a.png")) is None


def test_seven_panels_and_words_as_values_can_be_drawn(tmp_path):
    found = comparison(
        "gclsr augmentation={partial,full} group_size={0,16} noise_share={0.1,0.2,0.3}", "simcse temperature={0.1,1}"
    )
    assert draw_grids(found, tmp_path / "a.png").stat().st_size > 1000
