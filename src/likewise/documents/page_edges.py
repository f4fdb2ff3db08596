"""Pages without what stands above or below the text of most of them, and with divided words joined."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from likewise.corpus.sentence_splitter import JOINING

_HYPHEN = re.compile("(?<!\\w)(\\w+)([-\u2010\u00ad])\n(\\w+)")
_JOINING = re.compile(rf"{JOINING}(?=\s)")
_EDGE = 2
"""Number of blocks at the top and at the bottom of a page that may be its header and footer."""
_LONGEST_EDGE = 100
"""Number of characters of one."""


def without_edges(pages: list[list[str]]) -> list[str]:
    r"""Return the text of pages of blocks without headers and footers, and with divided words joined.

    A header or footer is a short block among the first or last two of a page that is on more than half of the pages,
    and on three at least, with the same numbers or with those of the pages. A word that a hyphen divides at a line's
    end is joined if it is elsewhere joined in the text, or if the hyphen is a soft one.

    >>> texts = ["Open the valve.", "Turn the valve-\nwheel.", "Then close the val-\nve."]
    >>> without_edges([["Manual", text, f"{i}/3"] for i, text in enumerate(texts)])
    ['Open the valve.', 'Turn the valve-wheel.', 'Then close the valve.']
    """

    def form(block: str) -> str:
        return re.sub(r"\d+", "0", " ".join(block.split()))

    edges = [{form(block): block for block in [*page[:_EDGE], *page[-_EDGE:]]} for page in pages]
    seen: dict[str, list[tuple[int, list[int]]]] = {}
    for number, page_edges in enumerate(edges):
        for one, block in page_edges.items():
            seen.setdefault(one, []).append((number, [int(digits[-18:]) for digits in re.findall(r"\d+", block)]))
    often = {
        block
        for block, places in seen.items()
        if len(places) >= 3 and len(places) > len(pages) / 2 and _goes_on(places)
    }
    repeated = {block for block in often if len(block) <= _LONGEST_EDGE}
    kept = [
        [block for place, block in enumerate(page) if _EDGE <= place < len(page) - _EDGE or form(block) not in repeated]
        for page in pages
    ]
    kept = kept if any(kept) else pages  # short pages that differ in their numbers alone
    words = set(re.findall(r"\w+", " ".join(block for page in kept for block in page)))

    def joined(match: re.Match[str]) -> str:
        if match[2] != "\u00ad" and _JOINING.match(match.string, match.start(3)):
            return f"{match[1]}{match[2]} {match[3]}"
        is_one = match[2] == "\u00ad" or match[1] + match[3] in words
        return match[1] + ("" if is_one else match[2]) + match[3]

    return [_HYPHEN.sub(joined, "\n\n".join(page)) for page in kept]


def _goes_on(places: Sequence[tuple[int, Sequence[int]]]) -> bool:
    """Return whether the numbers of blocks on several pages are the same, or those of the pages, on most of these.

    >>> _goes_on([(0, [7, 3]), (1, [8, 3]), (2, [9, 3])]), _goes_on([(0, [471]), (1, [482]), (2, [499])])
    (True, False)
    """

    def most(values: Iterable[int]) -> int:
        return Counter(values).most_common(1)[0][1]

    pages = [page for page, _ in places]
    columns = zip(*(numbers for _, numbers in places), strict=True)
    as_pages = ((column, [number - page for page, number in zip(pages, column, strict=True)]) for column in columns)
    return all(2 * max(most(column), most(distances)) > len(places) for column, distances in as_pages)
