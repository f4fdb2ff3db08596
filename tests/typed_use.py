"""The public functions as a user's type checker sees them; `make lint` runs mypy on this file."""

from typing import assert_type

import numpy as np

import likewise
from likewise.adaptation import AdaptResult
from likewise.inference.load_model import Encoder
from likewise.recipes import ArcCSEOptions


def check() -> None:
    adapted = likewise.adapt("my-text/", out="runs/mine", minutes=15)
    assert_type(adapted, AdaptResult)
    assert_type(adapted.reason, str)
    model = likewise.load("runs/mine")
    assert_type(model, Encoder)
    cosines: np.ndarray = likewise.similarity("a", ["b", "c"], model=model)
    cosine: float = likewise.similarity("a", "b", model=model)
    for hit in likewise.search("my.index", "a question", k=5):
        assert_type(hit, likewise.Hit)
        assert_type(hit.score, float)
    print(cosines, cosine)
    likewise.train("arccse", "text.txt", out="runs/arc", preset=ArcCSEOptions(margin=5.0, max_steps=40))
    ArcCSEOptions(margn=5.0)  # type: ignore[call-arg]
    ArcCSEOptions(margin="5")  # type: ignore[arg-type]
    likewise.load("runs/mine", engin="onnx")  # type: ignore[call-arg]
