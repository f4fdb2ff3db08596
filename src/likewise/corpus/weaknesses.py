"""The CWE list of software weaknesses: text of a domain from the package registry, with a search test by experts.

The package cwe2 ships the list as MITRE publishes it. Each weakness has a description and names reports of real
vulnerabilities ('observed examples') that experts filed under it. The reports are the questions of the test, and are
not part of the text.
"""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from likewise.corpus.corpus_options import CorpusError
from likewise.runs.whole_files import write_text


class Weakness(NamedTuple):
    """A weakness.

    Attributes:
        id: its number, as "79".
        described: description and extended description.
        avoided: how it is avoided, a text for each way.
        parent: the id of the more general weakness, "" at the top.
    """

    id: str
    name: str
    described: tuple[str, ...]
    avoided: tuple[str, ...]
    reports: tuple[str, ...]
    parent: str


def read_weaknesses() -> list[Weakness]:
    """Return the weaknesses of the CWE list that are neither deprecated nor obsolete."""
    spec = find_spec("cwe2")
    if spec is None or not spec.submodule_search_locations:
        raise CorpusError('the CWE list needs the package cwe2: pip install "likewise[bundled]"')
    root = ET.parse(next(Path(spec.submodule_search_locations[0]).rglob("cwec_*.xml"))).getroot()
    prefix = root.tag.partition("}")[0] + "}"

    def texts(node: ET.Element, *path: str, below: bool = True) -> Iterator[str]:
        for found in node.iterfind((".//" if below else "") + "/".join(prefix + part for part in path)):
            if text := " ".join(" ".join(found.itertext()).split()):
                yield text

    found = []
    for node in root.iter(f"{prefix}Weakness"):
        if node.get("Status") not in ("Deprecated", "Obsolete"):
            parents = [
                one.get("CWE_ID", "")
                for one in node.iter(f"{prefix}Related_Weakness")
                if (one.get("Nature"), one.get("View_ID")) == ("ChildOf", "1000")
            ]
            described = (*texts(node, "Description", below=False), *texts(node, "Extended_Description", below=False))
            avoided, reports = (tuple(texts(node, part, "Description")) for part in ("Mitigation", "Observed_Example"))
            parent = parents[0] if parents else ""
            found.append(Weakness(node.get("ID", ""), node.get("Name", ""), described, avoided, reports, parent))
    return found


def write_weaknesses(folder: Path) -> tuple[int, int]:
    """Write the weaknesses as a corpus, `text.jsonl`, and the test on reports in BEIR's layout in `reports/`.

    Returns:
        The number of weaknesses and of reports.
    """
    weaknesses = read_weaknesses()
    reports: dict[str, list[str]] = {}
    for one in weaknesses:
        for report in one.reports:
            reports.setdefault(report, []).append(one.id)
    test = folder / "reports"
    (test / "qrels").mkdir(parents=True, exist_ok=True)
    text = ({"title": one.name, "text": "\n\n".join(one.described + one.avoided)} for one in weaknesses)
    documents = ({"_id": one.id, "title": one.name, "text": " ".join(one.described)} for one in weaknesses)
    queries = ({"_id": f"q{i}", "text": report} for i, report in enumerate(reports))
    judged = (f"q{i}\t{weakness}\t1\n" for i, right in enumerate(reports.values()) for weakness in dict.fromkeys(right))
    files = {folder / "text.jsonl": text, test / "corpus.jsonl": documents, test / "queries.jsonl": queries}
    for path, rows in files.items():
        write_text(path, "".join(f"{json.dumps(row)}\n" for row in rows))
    write_text(test / "qrels" / "test.tsv", "".join(judged))
    return len(weaknesses), len(reports)
