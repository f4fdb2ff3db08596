"""A data folder in SentEval's layout, of the true sizes, made of few sentences so that it is quick."""

import random
from pathlib import Path

import pytest

from likewise.evaluation.tasks.sts import TASKS


@pytest.fixture(scope="session")
def few(sentences: list[str]) -> list[str]:
    return sentences[:40]


@pytest.fixture(scope="session")
def made_pairs(few: list[str]) -> dict[str, list[tuple[str, str, float]]]:
    """The rated pairs of each file, in order, with random ratings."""
    rng = random.Random(3)
    made = {}
    for task in TASKS:
        for file in task.files:
            rows = [(rng.choice(few), rng.choice(few), rng.randint(4, 20) / 4) for _ in range(file.size)]
            made[file.path] = rows
    return made


def write_senteval(folder: Path, made: dict[str, list[tuple[str, str, float]]]) -> Path:
    """Write the layout, with unrated pairs strewn in where ratings have a file of their own."""
    for task in TASKS:
        for file in task.files:
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = made[file.path]
            if file.gold is not None:
                lines, gold = [], []
                for i, (a, b, rating) in enumerate(rows):
                    if i % 50 == 7:
                        lines.append("an unrated\tpair")
                        gold.append("")
                    lines.append(f"{a}\t{b}\tsource one\tsource two")
                    gold.append(f"{rating}")
                (folder / file.gold).write_text("\n".join(gold) + "\n", encoding="utf-8")
            elif file.header:
                lines = ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r"]
                lines += [f"{i}\t{a}\t{b}\t{rating}\tNEUTRAL\r" for i, (a, b, rating) in enumerate(rows)]
            else:
                lines = [f"main-news\tX\t2015\t{i}\t{r}\t{a}\t{b}" for i, (a, b, r) in enumerate(rows)]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return folder


@pytest.fixture
def senteval(tmp_path: Path, made_pairs) -> Path:
    return write_senteval(tmp_path / "senteval", made_pairs)
