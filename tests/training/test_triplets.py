import numpy as np
import pytest
import torch

from likewise.corpus.tables import LabelledDataError
from likewise.encoder.build import build_encoder
from likewise.recipes import OptionError
from likewise.training.objectives import TRIPLETS, read_triplets


def test_reads_the_format_of_the_wikipedia_sections(triplet_file, sentences):
    rows = read_triplets([triplet_file])
    assert rows.dataset.column_names == ["anchor", "positive", "negative"]
    assert rows.dataset["anchor"][:] == sentences[:80]
    assert read_triplets([triplet_file.parent]).sha256 == rows.sha256


def test_broken_files(tmp_path, says):
    path = tmp_path / "train.csv"
    path.write_text("Sentence1,Sentence2\na,b\n")
    with says(LabelledDataError):
        read_triplets([path])
    path.write_text("Sentence1,Sentence2,Sentence3\na,b,c\na,b\n")
    with says(LabelledDataError):
        read_triplets([path])
    path.write_text("Sentence1,Sentence2,Sentence3\na,,c\n")
    with says(LabelledDataError):
        read_triplets([path])


def encoded(tiny_base):
    encoder = build_encoder(str(tiny_base), pooling="mean", head=False).eval()
    texts = [["the cat sees the dog", "the old river"], ["the garden", "the captain"], ["a market", "the small song"]]
    return encoder, [encoder.preprocess(column) for column in texts], [encoder.encode(column) for column in texts]


def test_loss_is_a_hinge_on_euclidean_distances(tiny_base):
    encoder, features, (a, p, n) = encoded(tiny_base)
    gaps = np.linalg.norm(a - p, axis=1) - np.linalg.norm(a - n, axis=1)
    # A margin between the two gaps' ends: one triplet counts and the other does not.
    margin = float(-gaps.mean())
    if margin < 0:
        margin = float(abs(gaps).max()) / 2
    expected = np.maximum(gaps + margin, 0).mean()
    found = TRIPLETS.build_loss(encoder, TRIPLETS.options(margin=margin))(features, torch.zeros(2))
    assert float(found) == pytest.approx(expected, rel=1e-3, abs=1e-5)
    assert TRIPLETS.options().margin == 1


def test_a_measure_of_cosines_does_not_choose_for_distances(says):
    with says(OptionError):
        TRIPLETS.options(select_by="sts-b-dev")
