"""The headers and footers of pages: text that repeats above or below most pages."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

_EDGE = 2
"""Number of lines at the top and at the bottom of a page that may be its header and footer."""
_LONGEST = 100
"""Number of characters of one."""


def edges_of(pages: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the positions of the header and footer among the lines of each page.

    A header or footer is a short line among the first or last two of a page that is on more than half of the pages,
    and on three at least, with the same numbers or with the numbers of the pages. If no page has other text, the lines
    are not edges.

    >>> edges_of([["Manual", "Open the valve.", "1/3"], ["Manual", "Turn it.", "2/3"], ["Manual", "Wait.", "3/3"]])
    [[0, 2], [0, 2], [0, 2]]
    """
    outer = [[place for place in range(len(page)) if not _EDGE <= place < len(page) - _EDGE] for page in pages]
    seen: dict[str, dict[int, list[int]]] = {}
    for number, (page, places) in enumerate(zip(pages, outer, strict=True)):
        for line in (page[place] for place in places):
            seen.setdefault(_form(line), {})[number] = [int(digits[-18:]) for digits in re.findall(r"\d+", line)]
    repeated = {
        form
        for form, numbers in seen.items()
        if 3 <= len(numbers) > len(pages) / 2 and len(form) <= _LONGEST and _goes_on(list(numbers.items()))
    }
    edges = [
        [place for place in places if _form(page[place]) in repeated] for page, places in zip(pages, outer, strict=True)
    ]
    has_text = any(len(places) < len(page) for page, places in zip(pages, edges, strict=True))
    return edges if has_text else [[] for _ in pages]


def _form(line: str) -> str:
    return re.sub(r"\d+", "0", " ".join(line.split()))


def _goes_on(places: Sequence[tuple[int, Sequence[int]]]) -> bool:
    """Return whether the numbers of lines on most of several pages are the same, or are the page numbers.

    >>> _goes_on([(0, [7, 3]), (1, [8, 3]), (2, [9, 3])]), _goes_on([(0, [471]), (1, [482]), (2, [499])])
    (True, False)
    """

    def most(values: Iterable[int]) -> int:
        return Counter(values).most_common(1)[0][1]

    pages = [page for page, _ in places]
    columns = zip(*(numbers for _, numbers in places), strict=True)
    as_pages = ((column, [number - page for page, number in zip(pages, column, strict=True)]) for column in columns)
    return all(2 * max(most(column), most(distances)) > len(places) for column, distances in as_pages)
