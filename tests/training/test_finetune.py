import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

import likewise
from likewise import finetune
from likewise.encoder.build import build_encoder, build_prompt_encoder
from likewise.encoder.location import LoadError
from likewise.recipes import OptionError
from likewise.runs.job import JobError
from likewise.training import LabelledDataError

SMALL = {"batch_size": 8, "max_steps": 4, "eval_steps": 2, "held_out": 8, "learning_rate": 1e-3, "quiet": True}
HELD_OUT = {"select_by": "held-out"}


@pytest.fixture
def trains(nli_file, sts_file, triplet_file):
    files = {"nli": nli_file, "sts": sts_file, "triplets": triplet_file}

    def run(objective, base, out, **changes):
        given = SMALL | HELD_OUT | {"rows": files[objective]} | changes
        return finetune(objective, given.pop("rows"), base=base, out=out, **given)

    return run


@pytest.fixture(scope="module")
def bases(tiny_base, sentences, tmp_path_factory):
    """A model of each kind that this library makes."""
    root = tmp_path_factory.mktemp("bases")
    plain = build_encoder(str(tiny_base), pooling="cls", head=False)
    plain.save_pretrained(str(root / "arccse"), create_model_card=False)
    scaled = SentenceTransformer(modules=[*plain, Normalize()], prompts={"q": "a "}, default_prompt_name="q")
    scaled.save_pretrained(str(root / "scaled"), create_model_card=False)
    prompted = build_prompt_encoder(str(tiny_base), 'the " X " is [MASK].', head=False)
    prompted.save_pretrained(str(root / "sncse"), create_model_card=False)
    found = {name: root / name for name in ("arccse", "scaled", "sncse")} | {"plain": tiny_base}
    try:
        from likewise.encoder.text_cnn import TextCNN
        from likewise.encoder.word_vectors import WordVectors, word_tokenizer
    except ImportError:
        return found
    words = sorted({word for s in sentences for word in s.lower().rstrip(".").split()})
    vectors = torch.randn(len(words) + 2, 12, generator=torch.Generator().manual_seed(0))
    own = SentenceTransformer(modules=[WordVectors(word_tokenizer(words, True), vectors), TextCNN(12, (1, 2), 6)])
    own.save_pretrained(str(root / "gclsr"), create_model_card=False)
    return found | {"gclsr": root / "gclsr"}


@pytest.mark.parametrize(
    ("kind", "objective"),
    [
        *(("plain", objective) for objective in ("nli", "sts", "triplets")),
        ("sncse", "nli"),
        ("arccse", "sts"),
        ("scaled", "triplets"),
        ("gclsr", "nli"),
    ],
)
def test_every_model_is_trained_and_stays_what_it_is(kind, objective, bases, trains, tmp_path, sentences):
    if kind not in bases:
        pytest.skip("needs the extra 'words'")
    trains(objective, bases[kind], tmp_path / "run")
    before, after = (likewise.load(folder, engine="torch") for folder in (bases[kind], tmp_path / "run"))
    assert [type(module) for module in after] == [type(module) for module in before]
    assert (after.prompts, after.default_prompt_name) == (before.prompts, before.default_prompt_name)
    old, new = (model.encode(sentences[:10]) for model in (before, after))
    assert new.shape == old.shape
    assert not np.allclose(new, old, atol=1e-4)
    if kind == "scaled":
        assert np.allclose(np.linalg.norm(new, axis=1), 1, atol=1e-5)
    if kind != "gclsr":
        assert np.array_equal(SentenceTransformer(str(tmp_path / "run")).encode(sentences[:10]), new)


def test_a_mask_prompt_still_reads_the_mask_alone(bases, trains, tmp_path):
    trains("nli", bases["sncse"], tmp_path / "run")
    weights = likewise.load(tmp_path / "run")[1].state_dict()["emb_layer.weight"]
    assert sorted(weights.flatten().unique().tolist()) == [0.0, 1.0]


def test_word_vectors_are_not_trained(bases, trains, tmp_path):
    if "gclsr" not in bases:
        pytest.skip("needs the extra 'words'")
    trains("sts", bases["gclsr"], tmp_path / "run")
    old, new = (likewise.load(path)[0].vectors.weight for path in (bases["gclsr"], tmp_path / "run"))
    assert torch.equal(old, new)


def weights(folder):
    return load_file(folder / "model.safetensors")


def test_resume_gives_the_weights_of_an_uninterrupted_run(bases, trains, tmp_path, stopping_after, says):
    """With a softmax classifier, which is no part of what is saved in the end."""
    settings = {"accumulation": 2, "select_by": "last", "max_steps": 4, "eval_steps": 100}
    trains("nli", bases["scaled"], tmp_path / "whole", **settings)
    with stopping_after(2):
        trains("nli", bases["scaled"], tmp_path / "cut", **settings)
    torch.manual_seed(999)
    with says(JobError):
        trains("nli", bases["scaled"], tmp_path / "cut", resume=True, **settings | {"learning_rate": 0.1})
    trains("nli", bases["scaled"], tmp_path / "cut", resume=True, **settings)
    whole, cut = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert whole.keys() == cut.keys()
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    assert not any("classifier" in name or "linear" in name for name in whole)


def test_the_record_says_how_it_was_made(bases, trains, tmp_path, nli_file):
    first = trains("sts", bases["arccse"], tmp_path / "first")
    result = trains("nli", str(tmp_path / "first"), tmp_path / "run")
    record = json.loads((tmp_path / "run" / "likewise.json").read_text())
    assert (record["recipe"], record["preset"], record["status"]) == ("finetune-nli", "sbert", "finished")
    assert record["corpus"]["sources"] == [str(nli_file)]
    assert record["corpus"]["sentences"] == 90
    assert len(record["corpus"]["sha256"]) == 64
    assert record["options"]["warmup_ratio"] == 0.1
    # A chain of runs can be followed back.
    assert record["base_run"]["recipe"] == "finetune-sts"
    assert record["base_run"]["corpus"]["sha256"] == first.record["corpus"]["sha256"]
    assert record["best"]["metric"] == "held_out_accuracy"
    assert result.best["score"] >= max(
        entry["eval_held_out_accuracy"]
        for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()
        if (entry := json.loads(line)).get("step", 0) > 0 and "eval_held_out_accuracy" in entry
    )
    assert "90 labelled pairs" in (tmp_path / "run" / "README.md").read_text()


def test_what_is_saved_is_what_was_evaluated(bases, trains, tmp_path, triplet_file):
    from likewise.evaluation.checkpoint import triplets_evaluator
    from likewise.training.objectives import read_triplets
    from likewise.training.selection import hold_out

    result = trains("triplets", bases["arccse"], tmp_path / "run")
    rows = read_triplets([triplet_file]).dataset
    _, held = hold_out(rows["anchor"], 8, 1)
    held_out = rows.select(held)
    scores = triplets_evaluator(held_out["anchor"], held_out["positive"], held_out["negative"])(
        SentenceTransformer(str(tmp_path / "run"))
    )
    assert scores["held_out_accuracy"] == pytest.approx(result.best["score"])


def test_a_dev_file_picks_the_checkpoint_and_all_rows_are_trained_on(bases, trains, tmp_path, triplet_file, says):
    result = trains("triplets", bases["arccse"], tmp_path / "run", dev=triplet_file, select_by="auto")
    assert "80 held-out triplets" in result.record["selection"]
    assert result.record["corpus"]["dev"]["sentences"] == 80
    with says(OptionError):
        trains("triplets", bases["arccse"], tmp_path / "other", dev=triplet_file, select_by="last")


def test_selects_by_sts_b_dev_where_it_is_found(bases, trains, tmp_path, data_dir):
    result = trains("nli", bases["arccse"], tmp_path / "run", select_by="auto", data=data_dir, max_steps=1)
    assert result.best["metric"] == "sts_dev_spearman"
    assert result.before.keys() >= {"sts_dev_spearman"}


def test_input_that_is_wrong_is_told_before_anything_is_done(bases, trains, tmp_path, says):
    out = tmp_path / "run"
    with says(OptionError):
        trains("nli", bases["arccse"], out, learning_rat=1)
    with says(OptionError):
        finetune("paraphrase", "rows.tsv", base=bases["arccse"], out=out)
    with says(LabelledDataError):
        trains("nli", bases["arccse"], out, rows=tmp_path / "missing.tsv")
    with says(LabelledDataError):
        trains("nli", bases["arccse"], out, rows=None)
    with says(LoadError):
        trains("nli", str(tmp_path / "nowhere"), out)
    with says(OptionError):
        trains("nli", bases["arccse"], out, batch_size=1000)
    with says(JobError):  # it is no folder of a job
        trains("nli", bases["arccse"], bases["arccse"], overwrite=True)
    assert (bases["arccse"] / "modules.json").exists()
    assert not out.exists() or not any(out.iterdir())
