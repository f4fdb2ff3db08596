"""The tables of README and of the pages, made from the result files: `make tables`.

    python benchmarks/tables.py
    python benchmarks/tables.py --check

tables.md.j2 has each table between `<!-- table: NAME -->` and `<!-- end -->`, with expressions in the place of its
figures. A page that has the same two lines gets the table written between them. --check writes nothing, and ends with 1
if a page would change.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from claims import Claim
from likewise.cli.demo import MINUTES, NEAREST, OTHERS, TAUGHT
from likewise.runs.whole_files import write_text
from rows import Difference, ResultFile, difference

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGES = [
    ROOT / "README.md",
    *(HERE / f"notebook/{name}.md" for name in ("languages", "search")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_SHOWN: list[Difference] = []
"""The intervals of a rendering."""
PROCESSORS = ("avx2", "bf16-vnni")
"""The kinds of processor that stand side by side in the table of speed."""
FIELDS = ("name", "unit", "peer", "ours", "kind")
BLOCK = re.compile(r"^<!-- table: ([\w-]+) -->\n(.*?)^<!-- end -->$", re.DOTALL | re.MULTILINE)


@cache
def rows_of(table: str) -> list[dict[str, Any]]:
    """Return the rows of a result file that are not older than the mathematics of their system."""
    return ResultFile(table).current()


def values(table: str, arm: str | None = None, *, field: str = "score", **where: Any) -> list[float]:
    """Return a field of the rows that have these values, a row for each seed; there must be one."""
    wanted = where | ({} if arm is None else {"arm": arm})
    found = [
        row[field]
        for row in rows_of(table)
        if row.get(field) is not None and all(row.get(name) == value for name, value in wanted.items())
    ]
    if not found:
        raise LookupError(f"benchmarks/results/{table}.jsonl: no current row has {wanted} and {field}")
    return found


def mean(table: str, arm: str | None = None, set: str = "average", digits: int = 2, **where: Any) -> str:
    """Return the mean over the seeds."""
    return f"{statistics.fmean(values(table, arm, set=set, **where)):.{digits}f}"


def spread(table: str, arm: str, set: str = "average", bold: bool = False, **where: Any) -> str:
    """Return the mean over the seeds, and the standard deviation where there are several."""
    found = values(table, arm, set=set, **where)
    shown = f"{statistics.fmean(found):.2f}"
    shown = f"**{shown}**" if bold else shown
    return f"{shown} ± {statistics.stdev(found):.2f}" if len(found) > 1 else shown


def of_arms(table: str, arms: list[str | None], sets: list[str | None], digits: int = 2, **where: Any) -> str:
    """Return the mean over arms and sets, such as the seeds of a model that are arms of their own."""
    places = [{"set": name} if name else {} for name in sets]
    found = [value for arm in arms for place in places for value in values(table, arm, **place, **where)]
    return f"{statistics.fmean(found):.{digits}f}"


def percent(table: str, field: str, **where: Any) -> str:
    """Return a share as a percentage without decimals."""
    return f"{100 * statistics.fmean(values(table, field=field, **where)):.0f}"


def gain(arm: str, set: str, model: str) -> str:
    """Return the 95% interval of a search's gain over the hybrid baseline."""
    (low, high), *_ = values("searching", arm, field="ndcg_cut_10_gain", set=set, model=model, part="test")  # type: ignore[misc]
    return f"({low:+.1f} to {high:+.1f})"


def of_rule(arm: str, set: str, part: str) -> str:
    """Return the gain of a rule of the search, its 95% interval, and how many of the queries it changes."""
    where = {"arm": arm, "set": set, "part": part, "model": "bundled:minilm"}
    row = next((row for row in rows_of("search-rules") if where.items() <= row.items()), None)
    if row is None:
        return "not measured"
    (low, high), changed = row["interval"], f"{row['changed']} of {row['queries']}"
    return f"{row['gain']:+.1f} ({low:+.1f} to {high:+.1f}), {changed}" if row["changed"] else changed


def best_search(arms: list[str], set: str, model: str) -> str:
    """Return the search that scores best on a set."""
    where = {"field": "ndcg_cut_10", "set": set, "model": model, "part": "test"}
    return max(arms, key=lambda arm: values("searching", arm, **where)[0])  # type: ignore[arg-type]


def seeds(table: str, arm: str, set: str = "average") -> str:
    """Return the seeds of an arm."""
    return ", ".join(map(str, sorted(values(table, arm, field="seed", set=set))))


def differences(table: str, arm: str, other: str, set: str = "average") -> str:
    """Return the mean difference of two arms, and that of each seed in brackets."""
    gap = difference(rows_of(table), arm, other, set)
    return f"{gap.mean:+.2f} ({', '.join(f'{value:+.2f}' for value in gap.gaps)})"


def interval(table: str, arm: str, other: str, set: str | list[str] = "average") -> str:
    """Return the mean difference of two arms with its 95% interval over the seeds."""
    found = difference(rows_of(table), arm, other, set)
    if found not in _SHOWN:
        _SHOWN.append(found)
    return str(found)


def survivors() -> str:
    """Return how many intervals were shown above, and the means that Holm's correction leaves significant."""
    ordered, left = (
        sorted((gap for gap in _SHOWN if len(gap.seeds) > 1), key=lambda gap: gap.chance),
        list[Difference](),
    )
    for place, gap in enumerate(ordered):
        if gap.chance > 0.05 / (len(ordered) - place):
            break
        left.append(gap)
    named = ", ".join(f"{gap.mean:+.2f}" for gap in sorted(left, key=lambda gap: -gap.mean))
    return f"{len(ordered)} intervals, of which {len(left)} exclude zero after Holm's correction: {named}"


def stage(path: str, digits: int = 1, rank: int = 0) -> str:
    """Return a figure that the stages of contexts from scratch recorded, such as a perplexity, by its dotted path."""
    for row in rows_of("context-origin"):
        if row["part"] == "stages" and row["stages"]["discriminator"]["plan"]["options"]["rank"] == rank:
            found = row["stages"]
            for name in path.split("."):
                found = found[name]
            return f"{found:.{digits}f}"
    raise LookupError(f"benchmarks/results/context-origin.jsonl: no stages with rank {rank}")


def updates(table: str, arm: str) -> str:
    """Return the number of updates of an arm's training."""
    options, *_ = values(table, arm, field="options")
    return f"{options['max_steps']:,}"  # type: ignore[call-overload]


def paper(figure: str) -> str:
    """Return a figure that a paper prints, which no result file of ours can hold."""
    return figure


def claim(name: str, processor: str) -> Claim:
    """Return a claim of speed on a kind of processor."""
    found = _latest(name, processor)
    if found is None:
        raise LookupError(f"benchmarks/results/speed.jsonl: no claim {name!r} on {processor}")
    return Claim(**{field: found[field] for field in FIELDS})


def times(name: str, processor: str, digits: int = 2) -> str:
    """Return how many times faster ours is than its peer."""
    return f"{claim(name, processor).ratio:.{digits}f}"


def compared(label: str, script: str, *names: str, digits: int = 2) -> str:
    """Return a row of the table of speed: the ratio on each kind of processor, the script, and the dates.

    Args:
        names: Names of the claim, of which the first that a kind of processor has counts.
    """
    ratios, dates = list[str](), list[str]()
    for kind in PROCESSORS:
        row = next((row for name in names if (row := _latest(name, kind)) is not None), None)
        ratios.append("" if row is None else f"{Claim(**{f: row[f] for f in FIELDS}).ratio:.{digits}f}")
        dates.append("-" if row is None else row["date"])
    return f"| {label} | {' | '.join(ratios)} | `{script}` | {'; '.join(dates)} |"


def peak_memory(label: str, name: str) -> str:
    """Return a row of the table of memory: megabytes of the peer and ours on the plainest processor."""
    row = _latest(name, PROCESSORS[0])
    if row is None:
        raise LookupError(f"benchmarks/results/speed.jsonl: no claim {name!r} on {PROCESSORS[0]}")
    return f"| {label} | {row['peer']:,.0f} | {row['ours']:,.0f} |"


def rendered(template: str | None = None) -> dict[str, str]:
    """Return every table of the template by its name."""
    _SHOWN.clear()
    environment = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    known = (mean, spread, of_arms, percent, gain, seeds, differences, interval, updates, paper, claim, times)
    environment.globals |= {
        "minutes_of_the_demo": MINUTES,
        "nearest_of_all": NEAREST,
        "taught": TAUGHT,
        "not_taught": OTHERS,
    }
    known += (survivors, stage, values, rows_of, compared, peak_memory, best_search, of_rule)
    environment.globals |= {function.__name__: function for function in known}
    text = environment.from_string(template or (HERE / "tables.md.j2").read_text(encoding="utf-8")).render()
    return dict(BLOCK.findall(text))


def filled(page: str, tables: dict[str, str]) -> str:
    """Return a page with its tables; one that no template has stays as it is."""
    return BLOCK.sub(lambda block: f"<!-- table: {block[1]} -->\n{tables.get(block[1], block[2])}<!-- end -->", page)


def _latest(name: str, processor: str) -> dict[str, Any] | None:
    """Return the last row of a claim on a kind of processor, with the date of its run; None if there is none."""
    for row in reversed(_dated_speeds()):
        if row.get("name", "").rpartition(":")[0] == name and row["processor"] == processor:
            return row
    return None


@cache
def _dated_speeds() -> list[dict[str, Any]]:
    return ResultFile("speed").dated()


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--check", action="store_true", help="write nothing")
    return found


def main() -> None:
    args = parser().parse_args()
    tables, changed = rendered(), []
    for path in PAGES:
        before = path.read_text(encoding="utf-8")
        if (after := filled(before, tables)) != before:
            changed.append(path.relative_to(ROOT))
            if not args.check:
                write_text(path, after)
    print(
        "\n".join(f"{'would change' if args.check else 'written'}: {path}" for path in changed) or "nothing to change"
    )
    if args.check and changed:
        sys.exit(1)


if __name__ == "__main__":
    main()
