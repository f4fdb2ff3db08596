"""The names and plain types of the arguments of public functions."""

import inspect

import numpy as np
import pytest

import likewise
from likewise.errors import LikewiseError
from likewise.runs.options import ArgumentError, checked


@pytest.mark.parametrize(
    "call",
    [
        lambda: likewise.choose("a", minutes="15"),
        lambda: likewise.adapt("a", out="b", minutes="soon"),
        lambda: likewise.adapt("a", out="b", minuts=3),
        lambda: likewise.adapt("a", out="b", quite=True),
        lambda: likewise.adapt("a", out=3),
        lambda: likewise.index("a", out="b", quiet="no"),
        lambda: likewise.index("a", out="b", words=10.5),
        lambda: likewise.index("a", out="b", metadata="year"),
        lambda: likewise.index("a", out="b", modl="c"),
        lambda: likewise.index("a"),
        lambda: likewise.search("a", "b", k="5"),
        lambda: likewise.search("a", ["b"], k=True),
        lambda: likewise.duplicates(["a b"], corpus_options={"field": "b"}),
        lambda: likewise.load("bundled:minilm", engin="onnx"),
        lambda: likewise.choose("a", bases="bundled:minilm"),
    ],
)
def test_a_wrong_argument_is_one_sentence(call, says):
    with says(LikewiseError):
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
