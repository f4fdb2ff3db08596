import gzip
import math

import pytest
import torch

from likewise.corpus.tables import LabelledDataError
from likewise.encoder.build import build_encoder
from likewise.encoder.modules import with_modules
from likewise.encoder.training_modules import PairClassifier
from likewise.training.objectives import LABELS, NLI, read_nli


def side_by_side(folder, labels, part="train", first=None, second=None, ending=""):
    texts = {
        "labels": labels,
        "s1": first or [f"a{i}" for i in range(len(labels))],
        "s2": second or [f"b{i}" for i in range(len(labels))],
    }
    for name, lines in texts.items():
        content = "".join(f"{line}\n" for line in lines).encode()
        path = folder / f"{name}.{part}{ending}"
        path.write_bytes(gzip.compress(content) if ending else content)
    return folder / f"labels.{part}{ending}"


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_sentevals_three_files(tmp_path, ending):
    path = side_by_side(tmp_path, ["neutral", "-", "entailment", "contradiction"], ending=ending)
    for given in (path, tmp_path):
        rows = read_nli([given])
        assert rows.dataset.to_dict() == {
            "sentence1": ["a0", "a2", "a3"],
            "sentence2": ["b0", "b2", "b3"],
            "label": [LABELS["neutral"], LABELS["entailment"], LABELS["contradiction"]],
        }
        assert rows.dropped == {"no gold label": 1}
        assert f"{path}:2" in str(rows)


def test_snli_json_lines_and_several_files(tmp_path):
    lines = [
        '{"annotator_labels": [], "gold_label": "entailment", "sentence1": "x", "sentence2": "y"}',
        '{"gold_label": "neutral", "sentence1": "", "sentence2": "y"}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    rows = read_nli([tmp_path / "a.jsonl", side_by_side(tmp_path, ["neutral"])])
    assert rows.dataset["sentence1"][:] == ["x", "a0"]
    assert rows.dropped == {"an empty sentence": 1}


def test_the_hash_is_of_the_rows(tmp_path):
    one, other, third = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    for folder in (one, other, third):
        folder.mkdir()
    same = [read_nli([side_by_side(folder, ["neutral", "entailment"])]).sha256 for folder in (one, other)]
    assert same[0] == same[1]
    assert read_nli([side_by_side(third, ["neutral", "neutral"])]).sha256 != same[0]


def test_broken_files(tmp_path, says):
    path = side_by_side(tmp_path, ["neutral", "maybe"])
    with says(LabelledDataError):
        read_nli([path])
    side_by_side(tmp_path, ["neutral", "neutral"], second=["b"])
    with says(LabelledDataError):
        read_nli([path])
    (tmp_path / "s2.train").unlink()
    with says(LabelledDataError):
        read_nli([path])
    with says(LabelledDataError):
        empty = tmp_path / "dev"
        empty.mkdir()
        side_by_side(empty, ["neutral"], part="dev")
        read_nli([empty])
    with says(LabelledDataError):
        read_nli([side_by_side(tmp_path, ["-"])])


def test_loss_is_the_cross_entropy_of_a_softmax_over_u_v_and_their_difference(tiny_base):
    """With weights that are 1 for the first number of u, v and |u - v|, a class each, the logits can be read off."""
    encoder = build_encoder(str(tiny_base), pooling="mean", head=False)
    encoder = with_modules(encoder, [*encoder, PairClassifier(32, 3)]).eval()
    loss = NLI.build_loss(encoder, NLI.options())
    with torch.no_grad():
        head = encoder[-1].linear
        head.weight.zero_()
        head.bias.zero_()
        for number in range(3):
            head.weight[number, 32 * number] = 1.0
    texts = [["the cat sees the dog", "the old river"], ["the small garden", "the captain paints"]]
    vectors = [encoder.encode(column) for column in texts]
    expected = []
    for u, v, label in zip(*vectors, (2, 1), strict=True):
        logits = [u[0], v[0], abs(u[0] - v[0])]
        expected.append(math.log(sum(math.exp(x) for x in logits)) - logits[label])
    found = loss([encoder.preprocess(column) for column in texts], torch.tensor([2, 1]))
    assert float(found) == pytest.approx(sum(expected) / 2, rel=1e-5)


def test_the_classifier_is_the_encoders(tiny_base):
    encoder = build_encoder(str(tiny_base), pooling="mean", head=False)
    encoder = with_modules(encoder, [*encoder, PairClassifier(32, 3)])
    loss = NLI.build_loss(encoder, NLI.options())
    own = {id(parameter) for parameter in encoder.parameters()}
    assert all(id(parameter) in own for parameter in loss.parameters())


def test_snli_as_senteval_has_it(data_dir):
    rows = read_nli([data_dir / "senteval" / "SNLI" / "labels.dev"])
    assert len(rows) == 9842
    counts = [rows.dataset["label"][:].count(LABELS[name]) for name in ("contradiction", "entailment", "neutral")]
    assert counts == [3278, 3329, 3235]
