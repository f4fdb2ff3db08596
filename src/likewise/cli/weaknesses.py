"""The CWE list of software weaknesses, for the demonstration and benchmarks."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import NamedTuple

from likewise.data.bundled import BundledError


class Weakness(NamedTuple):
    """A weakness of the CWE list, as MITRE publishes it.

    Attributes:
        id: Number, such as "79".
        described: Description and extended description.
        avoided: Ways to avoid it, a text each.
        reports: Reports of real vulnerabilities that experts filed under it; they are the questions of a search test,
            and no part of the text.
        parent: Number of the more general weakness, "" at the top.
    """

    id: str
    name: str
    described: tuple[str, ...]
    avoided: tuple[str, ...]
    reports: tuple[str, ...]
    parent: str


def read_weaknesses() -> list[Weakness]:
    """Return the weaknesses of the CWE list that are neither deprecated nor obsolete."""
    spec = util.find_spec("cwe2")
    if spec is None or not spec.submodule_search_locations:
        raise BundledError('the CWE list needs the package cwe2: pip install "likewise[bundled]"')
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
