"""Draw the figures of the systems' pages: python docs/pictures/methods.py

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
