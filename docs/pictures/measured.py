"""Draw the pictures of measurements, for a light and a dark page.

    python docs/pictures/measured.py
    python docs/pictures/measured.py speed

They are drawn from benchmarks/results; the speeds come from benchmarks/notebook/speed.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from rows import ResultFile

HERE = Path(__file__).parent
THEMES = {
    "light": {"ground": "#ffffff", "ink": "#263238", "soft": "#b0bec5", "colors": ("#00796b", "#e64a19", "#5e35b1")},
    "dark": {"ground": "#1e2129", "ink": "#eceff1", "soft": "#546e7a", "colors": ("#4db6ac", "#ff8a65", "#b39ddb")},
}


@contextmanager
def themed(theme: dict[str, Any]) -> Iterator[None]:
    colors = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), theme["ink"])
    ground = {"figure.facecolor": theme["ground"], "axes.facecolor": theme["ground"], "savefig.dpi": 170}
    spines = {"axes.edgecolor": theme["soft"], "axes.spines.top": False, "axes.spines.right": False, "font.size": 11}
    with plt.rc_context({**colors, **ground, **spines, "legend.frameon": False}):
        yield


def average(table: str, arm: str) -> float:
    """Return the mean over the seeds of the average of the seven STS tasks."""
    return float(np.mean([row["score"] for row in ResultFile(table).rows(arm=arm, set="average")]))


def rates() -> dict[str, float]:
    """Return sentences a second with AVX2 by the row of benchmarks/notebook/speed.md, and the peer's as 'base'.

    The rows are of several runs: a rate is the ratio to sentence-transformers in its run, times the rate in the first.
    """
    rows = ResultFile("speed").rows(processor="avx2", unit="/s")
    base = rows[0]["peer"]
    return {"base": base} | {row["name"].rpartition(":")[0]: base * row["ours"] / row["peer"] for row in rows}


def speed(theme: dict[str, Any]) -> None:
    """Draw quality against speed, one point for each encoder."""
    rate, base = rates(), 78.87
    onnx = rate["encode, sentences of 29 tokens, onnx fp32"]
    points = [
        ("all-MiniLM-L6-v2,\nsentence-transformers", rate["base"], base, 1, (-19, -36)),
        ("the same,\nlikewise", onnx, base, 0, (14, -36)),
        ("sncse", onnx, average("papers-sncse-length", "120 updates at 3e-05"), 0, (10, 5)),
        (
            "gclsr, GloVe",
            rate["narrow bundled:glove"],
            average("gclsr-table-12", "regions 1 alone, no attention"),
            2,
            (0, -20),
        ),
        (
            "gclsr,\ndistilled words",
            rate["narrow distilled:bundled:minilm"],
            average("gclsr", "untrained, distilled, regions 1 alone, no attention"),
            2,
            (-12, 10),
        ),
        (
            "mean of\ndistilled words",
            rate["average distilled:bundled:minilm"],
            average("gclsr", "mean of distilled word vectors"),
            2,
            (0, -36),
        ),
        ("train light", rate["learnt bundled:minilm"], average("light", "light"), 2, (0, 10)),
    ]
    _, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
    for name, x, y, color, shift in points:
        ax.scatter([x], [y], s=90, color=theme["colors"][color], zorder=3)
        ax.annotate(
            name, (x, y), xytext=shift, textcoords="offset points", size=10, ha="center" if shift[0] <= 0 else "left"
        )
    ax.axhline(base, color=theme["soft"], lw=1, ls="--", zorder=1)
    ax.set(xscale="log", xlabel="sentences a second, two cores", ylabel="average of seven STS tasks", ylim=(60, 84))
    ax.set_xlim(40, 40000)
    ax.set_xticks([100, 1_000, 10_000], ["100", "1,000", "10,000"])
    ax.minorticks_off()
    ax.grid(axis="y", color=theme["soft"], alpha=0.3)


def negation_cosines(theme: dict[str, Any]) -> None:
    """Draw the cosines of a sentence to a harmless change of it, to its negation and to another sentence."""
    found = {row["arm"]: row for row in ResultFile("negation-cosines").rows() if row["arm"] != "log"}
    titles = ("the base as shipped", "after the preset negation")
    _, rows = plt.subplots(len(found), 1, figsize=(8, 1.7 * len(found) + 0.6), sharex=True, layout="constrained")
    labels = {"positive": "one word left out", "negation": "its negation", "random": "another sentence"}
    for ax, title, kinds in zip(rows, titles, found.values(), strict=True):
        for kind, color in zip(labels, (theme["colors"][0], theme["colors"][1], theme["soft"]), strict=True):
            ax.hist(kinds[kind], np.linspace(-0.2, 1, 73), density=True, color=color, alpha=0.75, label=labels[kind])
        ax.set(yticks=[])
        ax.set_title(title, loc="left", size=11)
        ax.spines["left"].set_visible(False)
    rows[0].legend(loc="upper left")
    rows[-1].set_xlabel("cosine to the sentence")


def curve(ax: Any, theme: dict[str, Any], table: str, option: str, *, color: int = 0, **where: float) -> None:
    """Draw STS-B dev by an option: the mean over the seeds, and from the lowest to the highest."""
    scores: dict[float, list[float]] = {}
    for row in ResultFile(table).rows(set="sts-b-dev"):
        if row["arm"].startswith((option, "alpha")) and all(row["options"][name] == where[name] for name in where):
            scores.setdefault(row["options"][option], []).append(row["score"])
    names = [f"{value:g}" for value in sorted(scores)]
    shown = np.array([(np.mean(of), min(of), max(of)) for _, of in sorted(scores.items())]).T
    label = f"weight {where['weight']:g}" if where else None
    ax.plot(names, shown[0], marker="o", ms=5, color=theme["colors"][color], label=label)
    ax.fill_between(names, shown[1], shown[2], color=theme["colors"][color], alpha=0.25, lw=0)
    ax.grid(axis="y", color=theme["soft"], alpha=0.3)


def arccse_options(theme: dict[str, Any]) -> None:
    """Draw figures 4 to 7 of ArcCSE; a line marks what the paper chose."""
    _, panels = plt.subplots(2, 2, figsize=(9, 6), sharey=True, layout="constrained")
    shown = (("margin", "10"), ("temperature", "0.05"), ("mask_farther", "0.4"), ("triplet_weight", "0.1"))
    titles = (
        "margin, in degrees",
        "temperature",
        "share of words masked in the farther version",
        "weight of the triplets",
    )
    for number, (panel, (option, chosen), title) in enumerate(zip(panels.flat, shown, titles, strict=True), 4):
        curve(panel, theme, "papers-arccse-figures", option)
        panel.axvline(chosen, color=theme["soft"], ls="--", lw=1, zorder=0)
        panel.set_title(f"figure {number}", loc="left", size=11)
        panel.set_xlabel(title)
    for panel in panels[:, 0]:
        panel.set_ylabel("STS-B dev")


def sncse_options(theme: dict[str, Any]) -> None:
    """Draw figure 3 of SNCSE with alpha 0.1; a line marks what the paper chose."""
    _, panel = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for color, weight in enumerate((0.001, 0.1)):
        curve(panel, theme, "papers-sncse-figures", "beta", color=color, alpha=0.1, weight=weight)
    panel.axvline("0.3", color=theme["soft"], ls="--", lw=1, zorder=0)
    panel.set_title("figure 3", loc="left", size=11)
    panel.set(xlabel="beta", ylabel="STS-B dev")
    panel.legend(loc="center left", bbox_to_anchor=(1, 0.5))


PICTURES: dict[str, Callable[[dict[str, Any]], None]] = {
    "speed": speed,
    "negation-cosines": negation_cosines,
    "arccse-options": arccse_options,
    "sncse-options": sncse_options,
}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("names", nargs="*", metavar="NAME", help=f"all if none is named: {', '.join(PICTURES)}")
    return found


def main() -> None:
    names = parser().parse_args().names
    if unknown := set(names) - set(PICTURES):
        parser().error(f"no picture {', '.join(sorted(unknown))}; choose one of {', '.join(PICTURES)}")
    for name in names or PICTURES:
        for kind, theme in THEMES.items():
            with themed(theme):
                PICTURES[name](theme)
                plt.savefig(HERE / f"{name}-{kind}.png")
                plt.close()


if __name__ == "__main__":
    main()
