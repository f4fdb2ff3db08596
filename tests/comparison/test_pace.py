"""A budget of minutes as a number of updates."""

import json

import pytest

from likewise.comparison.methods import Settings, parse_methods
from likewise.comparison.one_run import RunMaker


@pytest.fixture
def maker(corpus_file, tiny_base, tmp_path):
    shared = {"batch_size": 4, "max_length": 8}
    settings = Settings(
        parse_methods(["simcse"]), (1,), (str(corpus_file),), base=str(tiny_base), minutes=0.5, shared=shared
    )
    return RunMaker(settings, settings.read_corpus(), tmp_path / "runs", False, tmp_path / "pace.json")


def test_minutes_become_updates_by_the_measured_pace(maker, tmp_path):
    (method,) = maker.settings.methods
    steps, seconds = maker.steps_of(method)
    assert steps == int(30 / seconds) > 1
    assert list((tmp_path / "runs").iterdir()) == []  # the short training is gone


def test_a_pace_is_measured_once(maker):
    (method,) = maker.settings.methods
    maker.pace.write_text(json.dumps({method.key: 0.7}))
    assert maker.steps_of(method) == (42, 0.7)  # 30 / 0.7 = 42.9
