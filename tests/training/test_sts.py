import numpy as np
import pytest
import torch

from likewise.corpus.tables import LabelledDataError
from likewise.encoder.build import build_encoder
from likewise.evaluation import DataError
from likewise.recipes import OptionError
from likewise.training.objectives import STS, read_sts


def test_ratings_become_shares_of_the_scale(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("score\tsentence1\tsentence2\n1\ta\tb\n5\tc\td\n2\te\tf\n3\t\tg\n")
    rows = read_sts([path], None, STS.options(lowest=1))
    assert rows.dataset["label"][:] == [0.0, 1.0, 0.25]
    assert rows.dropped == {"an empty sentence": 1}


def test_ratings_that_use_a_fifth_of_the_scale_are_told(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("score\tsentence1\tsentence2\n0.2\ta\tb\n1\tc\td\n")
    assert "--highest 1" in str(read_sts([path], None, STS.options()))
    assert "--highest" not in str(read_sts([path], None, STS.options(highest=1)))


def test_ratings_off_the_scale(tmp_path, says):
    path = tmp_path / "a.tsv"
    for rating in ("6", "-1", "high", "nan"):
        path.write_text(f"score\tsentence1\tsentence2\n1\ta\tb\n{rating}\tc\td\n")
        with says(LabelledDataError):
            read_sts([path], None, STS.options())
    with says(OptionError):
        STS.options(lowest=5)


def test_no_data_anywhere(tmp_path, says):
    with says(DataError):
        read_sts([], tmp_path, STS.options())


def test_sts_b_train(data_dir):
    rows = read_sts([], data_dir, STS.options())
    assert len(rows) == 5749
    # A plane is taking off: rated 5; playing a large flute: 3.8.
    assert rows.dataset["label"][:2] == pytest.approx([1.0, 3.8 / 5])


def test_loss_is_the_squared_error_of_the_cosine(tiny_base):
    encoder = build_encoder(str(tiny_base), pooling="mean", head=False).eval()
    texts = [["the cat sees the dog", "the old river"], ["the small garden", "the captain paints"]]
    first, second = (encoder.encode(column).astype(np.float64) for column in texts)
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    found = STS.build_loss(encoder, STS.options())(
        [encoder.preprocess(column) for column in texts], torch.tensor([0.1, 0.8])
    )
    assert float(found) == pytest.approx(((cosines - [0.1, 0.8]) ** 2).mean(), rel=1e-4)
