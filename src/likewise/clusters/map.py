"""The map of texts: a layout on a plane, and the page that shows it. Letters of the shapes: P texts, D embedding."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from likewise.runs.pages import page_of

_FEWEST = 20
"""Texts below which UMAP has no neighbourhoods to lay out."""
_SHOWN = 160
"""Characters of a text on the page."""


class Spot(NamedTuple):
    """A text on the map: its place, from 0 to 1 each, its topic, and the text."""

    x: float
    y: float
    topic: int
    text: str


def laid_out(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Return a place (P, 2) for each vector, from 0 to 1, where near vectors are near (UMAP, by cosines).

    Args:
        vectors: (P, D) of length 1.
        seed: fixes the layout.
    """
    from sklearn.decomposition import PCA
    from umap import UMAP

    few = len(vectors) < _FEWEST
    reducer = PCA(2, random_state=seed) if few else UMAP(min_dist=0.1, metric="cosine", random_state=seed)
    places = reducer.fit_transform(vectors)
    low, high = places.min(axis=0), places.max(axis=0)
    scaled: np.ndarray = (places - low) / np.maximum(high - low, 1e-12)
    return scaled


def map_page(topics: Sequence[Mapping[str, Any]], spots: Sequence[Spot], texts: int) -> str:
    """Return the page: the map with the names of the topics, and the topics in a list. It loads nothing.

    Args:
        topics: the facts of each, the largest first.
        spots: the texts on the map.
        texts: how many there are in all.
    """
    places: dict[int, list[tuple[float, float]]] = {}
    for spot in spots:
        places.setdefault(spot.topic, []).append((spot.x, spot.y))
    labels = [[topic, *np.median(where, axis=0).round(4).tolist()] for topic, where in sorted(places.items())]
    rows = [[round(x, 4), round(y, 4), topic, text[:_SHOWN]] for x, y, topic, text in spots]
    data = {"spots": rows, "labels": labels, "names": [topic["name"] for topic in topics]}
    # "<" would end the script where a text holds "</script>".
    shown = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    return page_of("likewise.clusters", "map.html.j2", topics=topics, shown=len(spots), texts=texts, data=shown)
