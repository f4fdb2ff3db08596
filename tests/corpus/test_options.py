"""Options that contradict each other are refused when they are made."""

import pytest

from likewise.corpus import CorpusOptions
from likewise.runs.options import OptionError


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"split": "words"}, "must be one of auto, line, prose"),
        ({"field": ""}, "must be a string of 1 character or more"),
        ({"field": "text", "split": "line"}, "always prose"),
        ({"min_words": 0}, "1 or more"),
        ({"min_words": 5, "max_words": 4}, "every sentence would be dropped"),
        ({"encoding": "utf-9"}, "unknown encoding 'utf-9'"),
        ({"encoding": "base64"}, "not a text encoding"),
    ],
)
def test_contradictions(values, words):
    with pytest.raises(OptionError, match=words):
        CorpusOptions(**values)


def test_options_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        CorpusOptions().min_words = 1


def test_no_limit():
    assert CorpusOptions(max_words=None).max_words is None
