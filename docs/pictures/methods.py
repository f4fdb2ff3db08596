"""Draw the figures of the pages 'How it works': python docs/pictures/methods.py

They are drawings, not measurements. The ground is light, so that they can be read on a light and on a dark page.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import Arc, FancyBboxPatch, Rectangle

HERE = Path(__file__).parent
GROUND, INK, SOFT = "#f6f4ef", "#263238", "#90a4ae"
TEAL, ORANGE, PURPLE, PALE = "#00796b", "#e64a19", "#5e35b1", "#cfe8e4"
FIGURES: dict[str, tuple[tuple[float, float], Callable[[Any], None]]] = {}


def figure(width: float, height: float) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Register a function that draws on axes whose units are a hundredth of the figure's width."""

    def register(draw: Callable[[Any], None]) -> Callable[[Any], None]:
        FIGURES[draw.__name__] = ((width, height), draw)
        return draw

    return register


def box(ax: Any, x: float, y: float, w: float, h: float, text: str, fill: str = "white", size: float = 10) -> None:
    ax.add_patch(FancyBboxPatch((x, y), w, h, "round,pad=0.2,rounding_size=1", fc=fill, ec=INK, lw=1))
    ax.text(x + w / 2, y + h / 2, text, ha="center", va="center", size=size)


def arrow(ax: Any, start: tuple[float, float], end: tuple[float, float], color: str = INK, text: str = "") -> None:
    style = {"arrowstyle": "-|>", "color": color, "lw": 1.4, "shrinkA": 2, "shrinkB": 2}
    ax.annotate("", end, start, arrowprops=style)
    if text:
        middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 1.5
        ax.text(*middle, text, ha="center", color=color, size=9)


def cells(ax: Any, x: float, y: float, values: np.ndarray, side: float, color: str = TEAL) -> None:
    """Draw a matrix of shares as squares from white to a colour; row 0 is on top."""
    shades = mpl.colors.LinearSegmentedColormap.from_list("", ["#ffffff", color])
    for i, row in enumerate(np.atleast_2d(values)):
        for j, value in enumerate(row):
            ax.add_patch(Rectangle((x + j * side, y - i * side), side, side, fc=shades(value), ec=SOFT, lw=0.6))


def vector(ax: Any, x: float, y: float, seed: int, color: str = TEAL, n: int = 8) -> None:
    cells(ax, x, y, np.random.default_rng(seed).uniform(0.1, 0.95, (1, n)), 2, color)


@figure(7.2, 2.6)
def simcse(ax: Any) -> None:
    box(ax, 2, 15, 22, 6, "A cat sleeps.")
    for y, seed, name in ((24, 1, "first pass"), (8, 2, "second pass")):
        arrow(ax, (25, 18), (33, y + 2), text="")
        box(ax, 33, y - 0.5, 18, 5, f"encoder, {name}", PALE, 8)
        arrow(ax, (51.5, y + 2), (56, y + 2))
        vector(ax, 56, y + 1, 5, TEAL if seed == 1 else ORANGE)
    ax.text(42, 18, "another dropout mask", ha="center", va="center", size=8, style="italic")
    similar = np.random.default_rng(3).uniform(0.05, 0.4, (6, 6))
    np.fill_diagonal(similar, 1.0)
    cells(ax, 79, 24, similar, 3)
    ax.text(88, 29, "second pass", ha="center", size=8)
    ax.text(77.6, 18, "first pass", va="center", ha="center", rotation=90, size=8)
    ax.text(88, 5.5, "diagonal: up\nall others: down", ha="center", va="center", size=8.5)


@figure(7.2, 3.0)
def arccse(ax: Any) -> None:
    centre, radius = np.array([22.0, 6.0]), 30.0

    def at(degrees: float) -> tuple[float, float]:
        turn = np.radians(degrees)
        return (float(centre[0] + radius * np.cos(turn)), float(centre[1] + radius * np.sin(turn)))

    for degrees, color, name in ((80, INK, "$h$"), (48, TEAL, "$h^+$"), (24, ORANGE, "$h_j$")):
        arrow(ax, (float(centre[0]), float(centre[1])), at(degrees), color)
        ax.text(at(degrees)[0] + 1.5, at(degrees)[1] - 0.2, name, color=color, size=13)
    ax.add_patch(Arc(tuple(centre), 24, 24, theta1=48, theta2=80, color=TEAL, lw=1.6))
    ax.text(25.5, 19, r"$\theta$", color=TEAL, size=12)
    ax.add_patch(Arc(tuple(centre), 40, 40, theta1=34, theta2=48, color=PURPLE, lw=1.6))
    ax.plot([centre[0], at(34)[0]], [centre[1], at(34)[1]], ls="--", color=PURPLE, lw=1.2)
    ax.text(38.5, 21.2, "$m$", color=PURPLE, size=12)
    ax.text(22, 2, "the positive is scored as if it were $m$ further away", size=8.5, ha="center")
    for i, (name, width, color) in enumerate(
        (("the sentence  $h$", 34, INK), ("20% of words masked  $h^a$", 28, TEAL), ("40% masked  $h^b$", 21, ORANGE))
    ):
        y = 31 - 9 * i
        ax.text(60, y + 4.2, name, size=9)
        ax.add_patch(Rectangle((60, y), width, 3, fc=color, alpha=0.75))
    ax.text(77, 6, r"triplet: $\cos(h, h^b) \leq \cos(h, h^a)$", ha="center", size=9.5)


@figure(7.2, 2.3)
def sncse(ax: Any) -> None:
    arrow(ax, (6, 12), (96, 12))
    ax.text(6, 8, "cosine to the sentence", ha="left", size=9)
    ax.add_patch(Rectangle((46, 10.5), 22, 3, fc=PURPLE, alpha=0.25))
    marks = ((12, ORANGE, "other sentences", "pushed away"), (57, PURPLE, "its negation", "held in between"))
    for x, color, name, what in (*marks, (90, TEAL, "its other view", "pulled close")):
        ax.plot([x], [12], "o", color=color, ms=11)
        ax.text(x, 18, f"{name}\n{what}", ha="center", color=color, size=9.5)
    for left, right, y, name in ((68, 90, 15.2, r"$\alpha$"), (46, 90, 8.6, r"$\beta$")):
        ax.annotate("", (left, y), (right, y), arrowprops={"arrowstyle": "<->", "color": INK, "lw": 1})
        ax.text((left + right) / 2, y + 0.5 if y > 12 else y - 3, name, ha="center", size=12)
    ax.text(50, 27.5, '"The shop is open."   "The shop is not open."', ha="center", size=10)
    ax.text(50, 1.5, "the soft negative stays within the shaded interval", ha="center", size=8.5, style="italic")


@figure(7.2, 2.2)
def mask_distillation(ax: Any) -> None:
    box(ax, 2, 20, 40, 5, 'The sentence of " X " means [MASK].', size=9)
    box(ax, 2, 5, 40, 5, "X", size=9)
    box(ax, 48, 19.5, 14, 6, "encoder\n(learns)", PALE, 9)
    box(ax, 48, 4.5, 14, 6, "base\n(frozen)", "#e0e0e0", 9)
    for y in (22.5, 7.5):
        arrow(ax, (42.5, y), (48, y))
        arrow(ax, (62.5, y), (67, y))
    vector(ax, 67, 21.5, 4)
    vector(ax, 67, 6.5, 4, SOFT)
    ax.text(75, 25, "the vector at the mask", ha="center", size=8.5)
    ax.text(75, 3, "the base's own vector", ha="center", size=8.5)
    arrow(ax, (75, 20.5), (75, 9.5), ORANGE)
    ax.text(77, 15, "1 - cosine", color=ORANGE, va="center", size=10)


@figure(7.2, 2.6)
def gclsr(ax: Any) -> None:
    rng = np.random.default_rng(0)
    words = rng.uniform(0.1, 0.9, (5, 6))
    noisy = words.copy()
    noisy[[1, 3]] = rng.uniform(0, 1, (2, 6))
    for y, matrix, name in ((30, words, "noisy words"), (13, noisy, "other noise")):
        cells(ax, 3, y - 2, matrix, 2)
        ax.text(9, y + 0.8, name, ha="center", size=8)
        arrow(ax, (16, y - 5), (24, y - 5))
        box(ax, 24, y - 7.5, 15, 5, "TextCNN", PALE, 9)
        arrow(ax, (39.5, y - 5), (45, y - 5))
    box(ax, 45, 22.5, 20, 5, "projector, predictor", "white", 8.5)
    box(ax, 45, 5.5, 20, 5, "projector", "white", 8.5)
    for y, color in ((24, TEAL), (7, ORANGE)):
        arrow(ax, (65.5, y + 1), (70, y + 1))
        for group in range(4):
            cells(ax, 70 + 6.5 * group, y, rng.uniform(0.2, 0.9, (1, 3)), 2, color)
    for group in range(4):
        arrow(ax, (73 + 6.5 * group, 23.5), (73 + 6.5 * group, 9.5), PURPLE)
    ax.text(83, 28, "groups of features", ha="center", size=8.5)
    ax.text(83, 3, "no gradient here", ha="center", size=8.5, style="italic")


@figure(7.2, 2.3)
def esimcse(ax: Any) -> None:
    box(ax, 2, 22, 34, 5, "the cat sleeps on the mat", size=9)
    box(ax, 2, 12, 34, 5, "the cat cat sleeps on the the mat", size=9)
    ax.text(19, 18.7, "positive: some sub-words come twice", ha="center", size=8.5, style="italic")
    ax.text(19, 5.5, "so that equal length no longer\nmeans equal sentence", ha="center", va="center", size=8)
    box(ax, 45, 17, 14, 6, "encoder", PALE, 9.5)
    box(ax, 45, 4, 14, 6, "slow copy\nof it", "#e0e0e0", 9)
    arrow(ax, (36.5, 24.5), (45, 21))
    arrow(ax, (36.5, 14.5), (45, 19))
    arrow(ax, (52, 16.7), (52, 10.5), SOFT)
    for i in range(6):
        vector(ax, 68, 12 - 2.2 * i + 0.4, i, ORANGE, 6)
    arrow(ax, (59.5, 7), (67.5, 7))
    ax.text(74, 15.5, "queue of earlier batches:\nmore negatives", ha="center", size=8.5)
    vector(ax, 68, 23, 9, TEAL, 6)
    arrow(ax, (59.5, 20), (67.5, 24))


@figure(7.2, 2.2)
def consert(ax: Any) -> None:
    plain = np.random.default_rng(2).uniform(0.25, 0.9, (5, 7))
    views = {name: plain.copy() for name in ("embeddings", "token cutoff", "feature cutoff", "shuffle", "dropout")}
    views["token cutoff"][2] = 0
    views["feature cutoff"][:, [2, 5]] = 0
    views["shuffle"] = plain[[3, 0, 4, 1, 2]]
    views["dropout"][np.random.default_rng(1).random(plain.shape) < 0.25] = 0
    for i, (name, matrix) in enumerate(views.items()):
        cells(ax, 3 + 19.5 * i, 18, matrix, 2.1, TEAL if i == 0 else ORANGE)
        ax.text(3 + 19.5 * i + 7.3, 22.5, name, ha="center", size=9)
    ax.text(50, 3.5, "rows: tokens, columns: features. Two views of a sentence belong together.", ha="center", size=9)


@figure(7.2, 2.2)
def ct(ax: Any) -> None:
    for y, text in ((22, "A cat sleeps."), (6, "A cat sleeps.   or   Rain is near.")):
        box(ax, 2, y - 2.5, 34, 5, text, size=9)
        arrow(ax, (36.5, y), (43, y))
        box(ax, 43, y - 3, 16, 6, "encoder 1" if y > 10 else "encoder 2", PALE, 9)
        arrow(ax, (59.5, y), (65, y))
        vector(ax, 65, y - 1, 7 if y > 10 else 8, TEAL if y > 10 else ORANGE)
    arrow(ax, (73, 20.5), (73, 8.5), PURPLE)
    ax.text(75, 14, "dot product:\nhigh if equal,\nlow if not", va="center", size=9, color=PURPLE)
    ax.text(51, 14, "equal at the start", ha="center", va="center", size=8.5, style="italic")


@figure(7.2, 1.7)
def tsdae(ax: Any) -> None:
    box(ax, 1, 9, 18, 6, "cat         mat", size=9)
    ax.text(10, 18, "60% of the words deleted", ha="center", size=8)
    box(ax, 25, 9, 13, 6, "encoder", PALE, 9)
    vector(ax, 45, 11, 11)
    ax.text(53, 6.3, "all that the decoder sees", ha="center", size=8, style="italic")
    box(ax, 67, 9, 11, 6, "decoder", "#e0e0e0", 9)
    box(ax, 83, 8, 15, 8, "the cat sleeps\non the mat", "white", 8)
    for start, end in ((19.5, 25), (38.5, 45), (61, 67), (78.5, 83)):
        arrow(ax, (start, 12), (end, 12))


@figure(7.2, 2.7)
def contexts(ax: Any) -> None:
    ax.text(30, 33, "contexts from a corpus", ha="center", size=9)
    for i in range(4):
        y = 25 - 7 * i
        box(ax, 2, y, 20, 5, "left neighbours", size=8)
        box(ax, 24, y, 14, 5, "___", PALE, 9)
        box(ax, 40, y, 20, 5, "right neighbours", size=8)
        arrow(ax, (60.5, y + 2.5), (68, y + 2.5), SOFT)
        rng = np.random.default_rng(i)
        cells(ax, 69, y + 1, rng.uniform(0.1, 0.95, (1, 1)), 3.4, TEAL)
        cells(ax, 78, y + 1, np.random.default_rng(i).uniform(0.15, 0.9, (1, 1)), 3.4, ORANGE)
    ax.text(70.7, 33, "$S(s_1, c)$", ha="center", size=9.5)
    ax.text(80.5, 33, "$S(s_2, c)$", ha="center", size=9.5)
    ax.text(92, 16, "similar:\nboth fit the\nsame places", ha="center", va="center", size=9)


@figure(7.2, 2.6)
def adapt(ax: Any) -> None:
    box(ax, 2, 15, 17, 6, "a sentence", size=9)
    box(ax, 27, 24, 17, 6, "base (frozen)", "#e0e0e0", 9)
    box(ax, 27, 6, 17, 6, "its word pieces", "white", 9)
    arrow(ax, (19.5, 18), (27, 27))
    arrow(ax, (19.5, 18), (27, 9))
    arrow(ax, (44.5, 27), (50, 27))
    arrow(ax, (44.5, 9), (50, 9))
    box(ax, 50, 24, 15, 6, "linear map $W$", PALE, 9)
    box(ax, 50, 6, 15, 6, "rare = long,\nsummed", PALE, 8.5)
    arrow(ax, (65.5, 27), (74, 20))
    arrow(ax, (65.5, 9), (74, 16), text="")
    ax.text(72.5, 10, r"$\times\,\lambda$", size=11)
    ax.text(75, 18, "side\nby\nside", ha="center", va="center", size=7.5, linespacing=0.95)
    arrow(ax, (77.5, 18), (82, 18))
    vector(ax, 82, 17, 6)
    ax.text(90, 21, "length 1", ha="center", size=8.5)


def main() -> None:
    plt.rcParams.update({"font.family": "DejaVu Sans", "text.color": INK})
    for name, ((width, height), draw) in FIGURES.items():
        made = plt.figure(figsize=(width, height), facecolor=GROUND)
        ax = made.add_axes((0.01, 0.02, 0.98, 0.96))
        ax.set(xlim=(0, 100), ylim=(0, 100 * height / width), aspect="equal")
        ax.axis("off")
        draw(ax)
        made.savefig(HERE / f"{name.replace('_', '-')}.png", dpi=180, facecolor=GROUND)
        plt.close(made)


if __name__ == "__main__":
    main()
