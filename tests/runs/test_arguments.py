"""The names and plain types of the arguments of public functions."""

import inspect

import numpy as np
import pytest

import likewise
from likewise.errors import LikewiseError
from likewise.runs.options import ArgumentError, checked


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: likewise.choose("a", minutes="15"), "minutes must be a number, not '15'"),
        (lambda: likewise.adapt("a", out="b", minutes="soon"), "minutes must be a number, not 'soon'"),
        (lambda: likewise.adapt("a", out="b", minuts=3), "there is no option minuts: did you mean minutes"),
        (lambda: likewise.adapt("a", out="b", quite=True), "there is no option quite: did you mean quiet"),
        (lambda: likewise.adapt("a", out=3), "out must be a path, not 3"),
        (lambda: likewise.index("a", out="b", quiet="no"), "quiet must be true or false, not 'no'"),
        (lambda: likewise.index("a", out="b", words=10.5), r"words must be an integer, not 10\.5"),
        (
            lambda: likewise.index("a", out="b", metadata="year"),
            r"metadata must be a list, not 'year': write \['year'\]",
        ),
        (lambda: likewise.index("a", out="b", modl="c"), "index has no argument modl: did you mean model"),
        (lambda: likewise.index("a"), "missing a required argument: 'out'"),
        (lambda: likewise.search("a", "b", k="5"), "k must be an integer, not '5'"),
        (lambda: likewise.search("a", ["b"], k=True), r"query must be a string, not \['b'\]"),
        (
            lambda: likewise.duplicates(["a b"], corpus_options={"field": "b"}),
            r"corpus_options must be CorpusOptions\(",
        ),
        (lambda: likewise.load("bundled:minilm", engin="onnx"), "load has no argument engin: did you mean engine"),
        (lambda: likewise.choose("a", bases="bundled:minilm"), "bases must be a list, not 'bundled:minilm'"),
    ],
)
def test_a_wrong_argument_is_one_sentence(call, told):
    with pytest.raises(LikewiseError, match=told):
        call()


def test_right_arguments_pass_as_they_are():
    @checked
    def function(a: float, b: int = 1, *, c: str | None = None, d: bool = False) -> tuple:
        return a, b, c, d

    assert function(np.float32(2), np.int64(3), c="x", d=np.True_) == (2, 3, "x", True)
    assert function(1) == (1, 1, None, False)
    assert inspect.signature(function).parameters.keys() == {"a", "b", "c", "d"}
    with pytest.raises(TypeError):
        function()
    assert issubclass(ArgumentError, TypeError)
