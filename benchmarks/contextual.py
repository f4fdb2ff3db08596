"""What the headings above a passage do for its search: none, the last one, or all, in the vector and among the words.

    python benchmarks/contextual.py

Exhaustive, as search_parts.py: every passage is scored. The measure is nDCG@10 of sections; a section has the score
of its best passage. Half of the queries of a set, by a hash, choose; the other half reports.

- `readmes`: the Markdown of installed packages, and the documentation of this project. A heading of three words or
  more is the query, and is taken from the passages below it: they keep the headings above it.
- `readme-sentences`: the same passages with all of their headings; a sentence of one is the query, and is taken.
- `wikipedia`: paragraphs of every 40th article, with its title and the heading; a sentence is the query, and is taken.
- `docstrings`: the first paragraph of a function's documentation is the query; the rest is the passage, and the heading
  the path of modules and classes with the function's name.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from domains import Bm25, standard
from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.downloads import data_folder
from likewise.corpus.sentence_splitter import sentences_of
from likewise.searching.passages import Splitting
from search_parts import PACKAGES, Texts, digest, ndcg

SHARE = 0.6  # of the vectors, as in a Pipeline
WORDS = 180
COUNT = 600  # queries of a set
EVERY = 1  # package, article or function that is read; changed by --every


@dataclass(frozen=True)
class Placed:
    """A passage, its section, and the headings that a search may know."""

    text: str
    section: str
    headings: tuple[str, ...]


@dataclass(frozen=True)
class Set:
    """Passages, and queries with the sections that answer them."""

    passages: list[Placed]
    queries: dict[str, set[str]]


def markdown(folder: Path) -> Iterator[Placed]:
    """The passages of Markdown, as an index has them."""
    texts: dict[str, str] = {}
    for one in distributions():
        body = one.metadata.get_payload() if "markdown" in (one.metadata.get("Description-Content-Type") or "") else ""
        if isinstance(body, str) and len(body) > 500:
            texts[one.metadata["Name"]] = body
    for path in [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]:
        texts[f"likewise-{path.stem}"] = path.read_text(encoding="utf-8")
    for name, body in sorted(texts.items()):
        if int(digest(name), 16) % EVERY:
            continue
        path = folder / f"{name}.md"
        path.write_text(body.encode("utf-8", "replace").decode(), encoding="utf-8")
        for one in Splitting(WORDS, CorpusOptions()).read(path):
            yield Placed(one.text, f"{name} > {one.title}", tuple(one.title.split(" > ")) if one.title else ())


def readmes() -> Set:
    with tempfile.TemporaryDirectory() as folder:
        found = [one for one in markdown(Path(folder)) if one.headings]
    sections = defaultdict(set)
    for one in found:
        if len(one.headings[-1].split()) >= 3:
            sections[one.headings[-1]].add(one.section)
    kept = [Placed(one.text, one.section, one.headings[:-1]) for one in found]
    return Set(kept, drawn(sections))


def without_a_sentence(passages: list[Placed]) -> Set:
    """Of some passages, by a hash, a sentence of six words or more is the query, and is not in the passage."""
    queries: dict[str, set[str]] = defaultdict(set)
    found = []
    for one in passages:
        pieces = [piece for line in one.text.split("\n") for piece in sentences_of(line)]
        long = [piece for piece in pieces if len(piece.split()) >= 6 and not piece.startswith(("|", "```"))]
        if len(pieces) >= 3 and long and int(digest(one.text), 16) % 2:
            query = min(long, key=digest)
            queries[query].add(one.section)
            found.append(Placed(one.text.replace(query, ""), one.section, one.headings))
        else:
            found.append(one)
    return Set(found, drawn(queries))


def readme_sentences() -> Set:
    with tempfile.TemporaryDirectory() as folder:
        return without_a_sentence([one for one in markdown(Path(folder)) if one.headings])


def wikipedia() -> Set:
    found = []
    with gzip.open(data_folder() / "wikipedia/articles.jsonl.gz", "rt", encoding="utf-8") as lines:
        for article in (json.loads(line) for i, line in enumerate(lines) if i % (40 * EVERY) == 0):
            for section in article["sections"]:
                headings = tuple(filter(None, (article["title"], section.get("heading"))))
                for paragraph in section["paragraphs"]:
                    words = paragraph.split()
                    if len(words) >= 25:
                        found.append(Placed(" ".join(words[:WORDS]), " > ".join(headings), headings))
    return without_a_sentence(found)


def docstrings() -> Set:
    passages, queries = [], defaultdict(set)

    def look(node: ast.AST, path: tuple[str, ...]) -> None:
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.FunctionDef | ast.ClassDef) and not one.name.startswith("_"):
                here = (*path, one.name)
                query, _, rest = (" ".join(part.split()) for part in (ast.get_docstring(one) or "").partition("\n\n"))
                body = re.sub(r">>>.*|\.\.\. .*|-{3,}", "", rest).split()
                if 4 <= len(query.split()) <= 30 and len(body) >= 30 and not int(digest(query), 16) % (3 * EVERY):
                    passages.append(Placed(" ".join(body[:150]), " > ".join(here), here))
                    queries[query].add(" > ".join(here))
                if isinstance(one, ast.ClassDef):
                    look(one, here)

    for package in PACKAGES:
        spec = find_spec(package)
        root = Path(spec.origin).parent if spec and spec.origin else None
        for path in sorted(root.rglob("*.py")) if root else ():
            if "tests" not in path.parts and not path.name.startswith("test"):
                parts = path.relative_to(root).with_suffix("").parts
                look(ast.parse(path.read_text(encoding="utf-8")), (package, *(p for p in parts if p != "__init__")))
    return Set(passages, drawn(queries))


def drawn(queries: dict[str, set[str]]) -> dict[str, set[str]]:
    return {query: queries[query] for query in sorted(queries, key=digest)[:COUNT]}


ARMS: dict[str, Callable[[Placed], str]] = {
    "none": lambda one: one.text,
    "last": lambda one: ": ".join([*one.headings[-1:], one.text]),
    "all": lambda one: ": ".join(filter(None, [" > ".join(one.headings), one.text])),
}


def scored(one: Set, encode: Texts) -> dict[str, dict[str, float]]:
    """nDCG@10 by part, and within it by arm."""
    queries = list(one.queries)
    place = {section: i for i, section in enumerate(dict.fromkeys(found.section for found in one.passages))}
    of = np.array([place[found.section] for found in one.passages])
    grades = [dict.fromkeys((place[section] for section in one.queries[query]), 1) for query in queries]
    asked = encode(queries)[0]

    def sections(scores: np.ndarray) -> np.ndarray:
        best = np.full((len(scores), len(place)), -np.inf)
        for column, section in enumerate(of):
            np.maximum(best[:, section], scores[:, column], out=best[:, section])
        return best

    halves = {"choosing": 0, "reporting": 1}
    found: dict[str, dict[str, float]] = {half: {} for half in halves}
    texts = {name: [text(passage) for passage in one.passages] for name, text in ARMS.items()}
    cosines = {name: asked @ encode(given)[0].T for name, given in texts.items()}
    words = {name: Bm25(queries, given, given).rows(slice(None)) for name, given in texts.items()}
    pairs = [("none", "none"), ("last", "last"), ("all", "all"), ("none", "all"), ("all", "none")]
    kinds = {f"vectors, {name}": value for name, value in cosines.items()}
    kinds |= {f"words, {name}": value for name, value in words.items()}
    kinds |= {
        f"both, {a if a == b else f'vectors {a}, words {b}'}": SHARE * standard(cosines[a])
        + (1 - SHARE) * standard(words[b])
        for a, b in pairs
    }
    for kind, scores in kinds.items():
        best = sections(scores)
        for half, parity in halves.items():
            rows = [i for i, query in enumerate(queries) if int(digest(query), 16) // 7 % 2 == parity]
            found[half][kind] = ndcg(best[rows], [grades[i] for i in rows])
    return found


SETS = {"readmes": readmes, "readme-sentences": readme_sentences, "wikipedia": wikipedia, "docstrings": docstrings}


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--model", default="bundled:minilm")
    options.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    options.add_argument("--vectors", type=Path, default=Path("build/vectors"), help="where vectors are kept")
    options.add_argument("--every", type=int, default=1, help="read every Nth package, article and function alone")
    return options


def main() -> None:
    args = parser().parse_args()
    global EVERY
    EVERY = args.every
    encode = Texts(args.model, args.vectors)
    for name in args.sets:
        one = SETS[name]()
        print(f"\n{name}: {len(one.passages):,} passages, {len(one.queries):,} queries")
        found = scored(one, encode)
        print(f"{'':32}{'choosing':>10}{'reporting':>10}")
        for kind in found["choosing"]:
            print(f"{kind:32}{found['choosing'][kind]:10.1f}{found['reporting'][kind]:10.1f}", flush=True)


if __name__ == "__main__":
    main()
