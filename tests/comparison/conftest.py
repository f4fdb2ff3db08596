import random

import pytest


@pytest.fixture(scope="session")
def data(sentences, tmp_path_factory):
    """A data folder with STS-B dev of few sentences, and nothing else."""
    folder = tmp_path_factory.mktemp("data")
    rng = random.Random(0)
    rows = [f"g\tf\ty\t{i}\t{i % 6}\t{rng.choice(sentences[:12])}\t{rng.choice(sentences[:12])}" for i in range(1500)]
    (folder / "STS/STSBenchmark").mkdir(parents=True)
    (folder / "STS/STSBenchmark/sts-dev.csv").write_text("\n".join(rows), encoding="utf-8")
    return folder
