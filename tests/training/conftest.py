import random

import pytest


@pytest.fixture(scope="session")
def nli_file(sentences, tmp_path_factory):
    """90 pairs with a label, as SNLI's tables name their columns."""
    path = tmp_path_factory.mktemp("nli") / "nli.tsv"
    rng = random.Random(1)
    rows = ["gold_label\tpairID\tsentence1\tsentence2"]
    for i in range(90):
        label = ("entailment", "neutral", "contradiction")[i % 3]
        rows.append(f"{label}\t{i}\t{sentences[i // 3]}\t{rng.choice(sentences)}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def sts_file(sentences, tmp_path_factory):
    """80 pairs rated 0 to 5."""
    path = tmp_path_factory.mktemp("sts") / "rated.csv"
    rng = random.Random(2)
    rows = ["sentence1,sentence2,score"]
    rows += [f'"{sentences[i]}","{rng.choice(sentences)}",{rng.uniform(0, 5):.2f}' for i in range(80)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def triplet_file(sentences, tmp_path_factory):
    """80 triplets, as the Wikipedia sections name their columns, among others."""
    path = tmp_path_factory.mktemp("triplets") / "train.csv"
    rng = random.Random(3)
    rows = ["Sentence1,Article Title,Sentence2,Sentence3"]
    for i in range(80):
        rows.append(f'"{sentences[i]}","A, or ""B""","{rng.choice(sentences)}","{rng.choice(sentences)}"')
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path
