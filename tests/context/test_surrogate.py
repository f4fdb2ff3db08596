import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

import likewise
from likewise.context.stage_options import PAPER, SURROGATE, SurrogateOptions
from likewise.context.surrogate import distill
from likewise.context.workspace import ContextError
from likewise.encoder.build import build_encoder
from likewise.encoder.location import LoadError
from likewise.encoder.training_modules import FrozenCopy
from likewise.errors import LikewiseError
from likewise.evaluation.task import DataError
from likewise.losses.encoder_loss import AnchoredLoss
from likewise.recipes import OptionError
from likewise.recipes.gclsr import build_light_student

SMALL = {"preset": "cpu", "batch_size": 8, "max_steps": 6, "eval_steps": 2, "learning_rate": 1e-3, "quiet": True}


@pytest.fixture(scope="module", autouse=True)
def _no_data_found(tmp_path_factory):
    """No surrogate is scored on STS-B but where a test asks for it: that takes longer than all else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIKEWISE_DATA", str(tmp_path_factory.mktemp("nothing")))
        yield


def overlap(first, second):
    """A similarity that can be learnt: the share of common words, moved to where Origin's scores lie."""
    one, other = set(first.lower().split()), set(second.lower().split())
    return 0.95 + 0.05 * len(one & other) / len(one | other)


@pytest.fixture(scope="module")
def harvest(sentences, tmp_path_factory):
    folder = tmp_path_factory.mktemp("harvest")
    rng = random.Random(0)
    for shard in range(2):
        first, second = ([rng.choice(sentences) for _ in range(60)] for _ in range(2))
        scores = [overlap(*pair) for pair in zip(first, second, strict=True)]
        split = ["dev"] * 6 + ["test"] * 6 + ["train"] * 48
        columns = {"sentence1": first, "sentence2": second, "score": scores, "split": split}
        pq.write_table(pa.table(columns), folder / f"shard-{shard}.parquet")
    return folder


@pytest.fixture(scope="module")
def finished(harvest, tiny_base, _no_data_found, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "siamese"
    return distill(harvest, base=tiny_base, out=out, **SMALL | {"max_steps": 20, "eval_steps": 5})


def test_paper_preset_holds_the_values_of_section_4_1():
    paper = SURROGATE.presets["paper"]
    assert (paper.learning_rate, paper.structure, paper.scale) == (1e-4, "siamese", "cosine")
    assert (paper.weight_decay, paper.sam_rho) == (0, 0)


def test_the_surrogate_is_saved_in_stock_modules_and_has_learnt(finished, sentences):
    assert not (finished.path / "run.toml").exists()  # it is of train and finetune
    model = SentenceTransformer(str(finished.path))
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling"]
    assert model[1].pooling_mode == "mean"
    assert finished.best["metric"] == "dev_mse"
    assert finished.best["score"] < finished.before["dev_mse"] / 2
    assert finished.best["improved"]
    entries = [json.loads(line) for line in (finished.path / "log.jsonl").read_text().splitlines()]
    errors = {e["step"]: e["eval_dev_mse"] for e in entries if "eval_dev_mse" in e}
    # The lowest error is the best.
    assert finished.best["score"] == min(error for step, error in errors.items() if step)


def test_the_test_error_is_that_of_the_saved_model(finished, harvest):
    rows = [row for shard in range(2) for row in pq.read_table(harvest / f"shard-{shard}.parquet").to_pylist()]
    train = np.array([row["score"] for row in rows if row["split"] == "train"])
    low, high = np.quantile(train, (0.01, 0.99))
    test = [row for row in rows if row["split"] == "test"]
    model = SentenceTransformer(str(finished.path))
    u, v = (model.encode([row[name] for row in test]).astype(np.float64) for name in ("sentence1", "sentence2"))
    cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    scores = np.array([row["score"] for row in test])
    record = finished.record
    assert record["scale"] == {"rule": "stretch", "low": pytest.approx(low), "high": pytest.approx(high)}
    assert record["test"]["test_mse"] == pytest.approx(
        np.mean((cosines - np.clip((scores - low) / (high - low), -1, 1)) ** 2), rel=1e-4
    )
    assert record["test"]["test_mse_harvest"] == pytest.approx(
        np.mean((low + cosines * (high - low) - scores) ** 2), rel=1e-4
    )
    assert record["corpus"]["splits"] == {"train": 96, "dev": 12, "test": 12}
    assert json.loads((finished.path / "likewise.json").read_text())["recipe"] == "surrogate"


def test_cross_encoder_gives_the_score_itself(harvest, tiny_base, tmp_path):
    result = distill(harvest, base=tiny_base, out=tmp_path / "run", structure="cross", **SMALL)
    model = CrossEncoder(str(tmp_path / "run"))
    assert isinstance(model.activation_fn, torch.nn.Identity)
    assert result.best["score"] < result.before["dev_mse"]
    assert "CrossEncoder" in (tmp_path / "run" / "README.md").read_text()
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_cross_encoder_trained_in_bfloat16_is_scored_as_it_is_saved(harvest, tiny_base, tmp_path):
    settings = SMALL | {"structure": "cross", "scale": "cosine", "max_steps": 2, "eval_steps": 1, "precision": "bf16"}
    result = distill(harvest, base=tiny_base, out=tmp_path / "run", **settings)
    assert result.record["precision"] == "bf16"
    rows = [row for shard in range(2) for row in pq.read_table(harvest / f"shard-{shard}.parquet").to_pylist()]
    saved = CrossEncoder(str(result.path))
    for split, found in (("dev", result.best["score"]), ("test", result.record["test"]["test_mse"])):
        pairs = [row for row in rows if row["split"] == split]
        predicted = saved.predict([(row["sentence1"], row["sentence2"]) for row in pairs])
        # In bfloat16 it is another number from the fifth digit on.
        assert found == pytest.approx(np.mean((predicted - [row["score"] for row in pairs]) ** 2), rel=2e-6)


@pytest.mark.parametrize("changes", [{}, {"structure": "cross"}, {"preset": "anchored"}], ids=str)
def test_resume_gives_the_weights_of_an_uninterrupted_run(harvest, tiny_base, tmp_path, stopping_after, changes):
    settings = SMALL | {"base": tiny_base, "select_by": "last", "eval_steps": 9, "max_steps": 4} | changes
    distill(harvest, out=tmp_path / "whole", **settings)
    with stopping_after(2):
        distill(harvest, out=tmp_path / "cut", **settings)
    torch.manual_seed(999)
    distill(harvest, out=tmp_path / "cut", resume=True, **settings)
    whole, cut = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "cut"))
    assert whole.keys() == cut.keys()
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_input_that_is_wrong_is_told_before_anything_is_done(harvest, tiny_base, tmp_path, says):
    out = tmp_path / "run"
    with says(OptionError):
        distill(harvest, base=tiny_base, out=out, preset="huge")
    with says(DataError):
        distill(harvest, base=tiny_base, out=out, select_by="sts-b-dev", quiet=True)
    with says(ContextError):
        distill(tmp_path / "nowhere", base=tiny_base, out=out)
    for structure in ("siamese", "cross"):
        with says(LoadError):
            distill(harvest, base=tmp_path / "nowhere", out=out, preset="cpu", structure=structure, quiet=True)
    with says(OptionError):
        distill(harvest, base=tiny_base, out=out, batch_size=500, quiet=True)
    assert not out.exists()


def test_the_targets_of_an_anchored_student_lie_on_its_teachers_cosines(harvest, tiny_base, tmp_path):
    result = distill(
        harvest, base=tiny_base, out=tmp_path / "run", preset="anchored", select_by="held-out", pooling="mask",
        **{name: value for name, value in SMALL.items() if name != "preset"},
    )  # fmt: skip
    rows = [row for shard in range(2) for row in pq.read_table(harvest / f"shard-{shard}.parquet").to_pylist()]
    train = [row for row in rows if row["split"] == "train"]
    base = build_encoder(str(tiny_base), pooling="mean", head=False).eval()
    u, v = (base.encode([row[name] for row in train], normalize_embeddings=True) for name in ("sentence1", "sentence2"))
    slope, offset = np.polyfit([row["score"] for row in train], (u * v).sum(1), 1)
    scale = result.record["scale"]
    assert 1 / (scale["high"] - scale["low"]) == pytest.approx(slope, rel=1e-3)
    assert -scale["low"] / (scale["high"] - scale["low"]) == pytest.approx(offset, rel=1e-3)


def test_the_anchored_loss_is_that_of_scores_and_of_vectors(tiny_base, sentences):
    student, teacher = (build_encoder(str(tiny_base), pooling=mode, head=False) for mode in ("cls", "mean"))
    student.append(FrozenCopy(teacher))
    pairs, labels = (sentences[:4], sentences[4:8]), torch.tensor([0.1, 0.9, 0.4, 0.7])
    features = [encoder.preprocess(texts) for encoder in (student, teacher) for texts in pairs]
    parts = AnchoredLoss(student, SurrogateOptions(anchor=3.0)).train()(features, labels)
    plain = build_encoder(str(tiny_base), pooling="cls", head=False).eval()
    u, v = (plain.encode(texts, normalize_embeddings=True).astype(np.float64) for texts in pairs)
    s, t = (teacher.encode(texts, normalize_embeddings=True).astype(np.float64) for texts in pairs)
    assert parts["scores"].item() == pytest.approx(np.mean(((u * v).sum(1) - labels.numpy()) ** 2), rel=1e-4)
    away = [1 - (one * other).sum(1) for one, other in ((u, s), (v, t))]
    assert parts["anchor"].item() == pytest.approx(3 * np.mean(away), rel=1e-4)
    assert all(not parameter.requires_grad for parameter in student[-1].parameters())


@pytest.mark.parametrize("pooling", ["own", "cls", "mask"])
def test_other_students(harvest, tiny_base, tmp_path, pooling):
    result = distill(harvest, base=tiny_base, out=tmp_path / "run", **SMALL | {"pooling": pooling, "max_steps": 2})
    model = SentenceTransformer(str(result.path))
    mode = {"own": "mean", "cls": "cls", "mask": "mean"}[pooling]
    assert next(module for module in model if isinstance(module, Pooling)).pooling_mode == mode
    if pooling == "mask":
        assert [type(module).__name__ for module in model] == ["Transformer", "WordWeights", "Pooling"]


def test_a_surrogate_can_be_the_base_of_the_next(harvest, tiny_base, tmp_path):
    settings = SMALL | {"preset": "anchored", "select_by": "held-out", "max_steps": 2}
    first = distill(harvest, base=tiny_base, out=tmp_path / "first", **settings)
    second = distill(harvest, base=first.path, out=tmp_path / "second", **settings)
    one, two = (SentenceTransformer(str(result.path)) for result in (first, second))
    assert one.tokenizer("a river")["input_ids"] == two.tokenizer("a river")["input_ids"]


def test_a_light_student_of_word_vectors_whose_words_learn(harvest, sentences, tmp_path, says):
    rng = np.random.default_rng(0)
    words = sorted({word for sentence in sentences for word in sentence.lower().replace(".", " ").split()})
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, rng.standard_normal(8).round(3)))}\n" for word in words))
    settings = {name: value for name, value in SMALL.items() if name not in ("preset", "learning_rate")}
    settings |= {"max_steps": 12, "eval_steps": 4, "select_by": "held-out"}
    result = distill(harvest, base=str(path), out=tmp_path / "run", preset="light", **settings)
    model = likewise.load(str(result.path), precision="fp32")
    assert [type(module).__name__ for module in model] == ["WordVectors", "TextCNN"]
    assert result.best["score"] < result.before["dev_mse"]
    begun = build_light_student(str(path), sentences)
    assert begun[0].vectors.weight.shape == model[0].vectors.weight.shape
    assert not torch.allclose(begun[0].vectors.weight, model[0].vectors.weight, atol=1e-3)
    with says(LikewiseError):
        distill(harvest, base=tmp_path / "nowhere.txt", out=tmp_path / "other", preset="light", quiet=True)


def test_a_cross_encoder_has_no_anchor(says):
    with says(OptionError):
        PAPER.updated(structure="cross", anchor=1.0)
    with says(OptionError):
        SURROGATE.presets["light"].updated(anchor=1.0)
