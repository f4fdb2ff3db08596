"""What a benchmark measured, as rows that `all.py` keeps: the peer, ours, and the ratio.

Not a script. Every script that claims a speed takes --claims FILE and writes its rows there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Claim:
    """One row.

    Attributes:
        name: the task, and the peer.
        unit: of the two figures: '/s', where more is better, or 's' or 'MB', where less is.
        peer: the peer's figure.
        ours: ours, of the same run.
        kind: a speed is told as a ratio above 1 where ours is faster; growth as ours over the peer's.
    """

    name: str
    unit: Literal["/s", "s", "MB"]
    peer: float
    ours: float
    kind: Literal["speed", "growth"] = "speed"

    @property
    def ratio(self) -> float:
        """How many times faster or smaller ours is; for growth, how many times more."""
        if self.kind == "growth" or self.unit == "/s":
            return self.ours / self.peer
        return self.peer / self.ours


def with_claims(parser: argparse.ArgumentParser) -> None:
    """Add --claims."""
    parser.add_argument("--claims", type=Path, help="write the ratios here as JSON")


def finish(args: argparse.Namespace, claims: Sequence[Claim]) -> None:
    """Write the rows if they were asked for."""
    if args.claims:
        args.claims.write_text(json.dumps([asdict(claim) for claim in claims], indent=1))


def read(path: Path) -> list[Claim]:
    """The rows of a file that `finish` wrote."""
    return [Claim(**row) for row in json.loads(path.read_text())]
