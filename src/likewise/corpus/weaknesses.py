"""The CWE list of software weaknesses: text of a domain from the package registry, with a search test by experts.

The package cwe2 ships the list as MITRE publishes it. Each weakness has a description and names reports of real
vulnerabilities ('observed examples') that experts filed under it. The reports are the questions of the test, and are
not part of the text.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from likewise.corpus.corpus_options import CorpusError


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
        for element in node.iterfind((".//" if below else "") + "/".join(prefix + part for part in path)):
            if text := " ".join(" ".join(element.itertext()).split()):
                yield text

    weaknesses = []
    for node in root.iter(f"{prefix}Weakness"):
        if node.get("Status") not in ("Deprecated", "Obsolete"):
            parents = [
                related.get("CWE_ID", "")
                for related in node.iter(f"{prefix}Related_Weakness")
                if (related.get("Nature"), related.get("View_ID")) == ("ChildOf", "1000")
            ]
            described = (*texts(node, "Description", below=False), *texts(node, "Extended_Description", below=False))
            avoided, reports = (tuple(texts(node, part, "Description")) for part in ("Mitigation", "Observed_Example"))
            parent = parents[0] if parents else ""
            weaknesses.append(Weakness(node.get("ID", ""), node.get("Name", ""), described, avoided, reports, parent))
    return weaknesses
