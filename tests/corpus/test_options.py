"""Options that contradict each other are refused when they are made."""

import pytest

from likewise.corpus import CorpusOptions
from likewise.runs.options import OptionError


@pytest.mark.parametrize(
    "values",
    [
        {"split": "words"},
        {"field": ""},
        {"field": "text", "split": "line"},
        {"min_words": 0},
        {"min_words": 5, "max_words": 4},
        {"encoding": "utf-9"},
        {"encoding": "base64"},
    ],
)
def test_contradictions(values, says):
    with says(OptionError):
        CorpusOptions(**values)


def test_options_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        CorpusOptions().min_words = 1


def test_no_limit():
    assert CorpusOptions(max_words=None).max_words is None
