import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers import set_seed
from typer.testing import CliRunner

import likewise
from likewise.encoder.modules import without_training_head
from likewise.losses.encoder_loss import CollapseError
from likewise.recipes import RECIPES, OptionError

pytest.importorskip("gensim", reason="needs the extra 'words'")
GCLSR = RECIPES["gclsr"]
SMALL = {
    "batch_size": 16, "sentences": 64, "epochs": 2, "warmup_epochs": 1, "filters": 6, "projection": 32,
    "bottleneck": 8, "group_size": 8, "eval_steps": 4, "select_by": "held-out", "held_out": 20, "quiet": True,
}  # fmt: skip
SIZES = {name: SMALL[name] for name in ("batch_size", "sentences", "filters", "projection", "bottleneck", "group_size")}


@pytest.fixture(scope="module")
def glove(sentences, tmp_path_factory):
    """Random vectors of 12 numbers for the words of the sentences."""
    path = tmp_path_factory.mktemp("vectors") / "glove.txt"
    words = sorted({word for s in sentences for word in s.lower().replace(".", " .").split()} - {"bridge"})
    rng = np.random.default_rng(0)
    path.write_text("".join(f"{word} {' '.join(f'{x:.4f}' for x in rng.normal(size=12))}\n" for word in words))
    return str(path)


def train(corpus_file, glove, out, **changes):
    return likewise.train("gclsr", corpus_file, base=glove, out=out, preset="cpu", **(SMALL | changes))


@pytest.fixture(scope="module")
def finished(corpus_file, glove, tmp_path_factory):
    return train(corpus_file, glove, tmp_path_factory.mktemp("runs") / "whole")


def test_paper_preset_holds_the_values_of_section_4_1():
    paper = GCLSR.options("paper")
    assert (paper.batch_size, paper.learning_rate, paper.epochs, paper.warmup_epochs) == (512, 0.03, 20, 5)
    assert (paper.momentum, paper.momentum_after, paper.weight_decay, paper.predictor_rate) == (0.9, 0.8, 1e-3, 1)
    assert (paper.region_sizes, paper.filters) == ((1, 1, 1, 6, 15, 20), 300)
    assert (paper.projection, paper.bottleneck, paper.group_size, paper.sentences) == (4096, 1024, 16, 10_000)
    assert paper.noise_kinds == [0.5, 0.2, 0.1, 0.2]
    assert paper.attention


TABLES = {
    4: [{"batch_size": size} for size in (64, 128, 256, 512, 1024)],
    5: [{"weight_decay": decay} for decay in (1e-4, 1e-3, 1e-2, 1e-1)],
    6: [{"predictor_rate": rate} for rate in (0, 0.08, 0.2, 0.5, 1)],
    7: [{"momentum": a, "momentum_after": b} for a, b in ((0.8, 0.8), (0.9, 0.9), (0.99, 0.99), (0.9, 0.8))],
    8: [{"warmup_epochs": epochs} for epochs in (1, 2, 3, 4, 5)],
    9: [{"regions": r} for r in ("1,2,3,4,5,6", "2,3,4,5,6", "1,1,1,2,3,4", "1,1,1,1,1,1", "1,1,1,20,30,40")],
    10: [{"augmentation": name} for name in ("none", "full", "partial", "edits")],
    11: [{"group_size": size} for size in (0, 4, 8, 16, 32, 128)],
}


def test_every_row_of_tables_4_to_11_is_an_option():
    for table, rows in TABLES.items():
        for row in rows:
            assert GCLSR.options("paper", **row), table


@pytest.mark.parametrize(
    "changes",
    [
        {"warmup_epochs": 20},
        {"schedule": "linear"},
        {"group_size": 24},
        {"regions": "1,x"},
        {"regions": "0,1"},
        {"regions": ""},
        {"noise_white": 0.9},
        {"augmentation": "paraphrases"},
        {"sentences": 100},
        {"batch_size": 1},
        {"momentum": 1.0},
    ],
)
def test_contradictions_are_refused(changes, says):
    with says(OptionError):
        GCLSR.options("paper", **changes)


def test_both_doors_load_it_to_the_same_vectors(finished, sentences):
    assert finished.steps == 8
    own = likewise.load(finished.path, engine="torch")
    plain = SentenceTransformer(str(finished.path), trust_remote_code=True)
    assert [type(module).__name__ for module in own] == ["WordVectors", "TextCNN"]
    texts = [*sentences[:20], "", "xyzzy"]
    vectors = own.encode(texts)
    assert vectors.shape == (22, 36)
    assert np.array_equal(vectors, plain.encode(texts))
    assert np.allclose(vectors[3], own.encode(texts[3]), atol=1e-6)  # whatever else is in the batch


def test_what_is_saved_is_what_was_evaluated_and_the_log_has_the_spread(finished, sentences):
    from likewise.evaluation import sentences_evaluator

    rows = np.random.default_rng([1, 1]).permutation(len(sentences))
    held_out = [sentences[i] for i in np.sort(rows[:20])]
    scores = sentences_evaluator(held_out, seed=1)(likewise.load(finished.path))
    assert scores[finished.best["metric"]] == pytest.approx(finished.best["score"], abs=1e-3)
    log = [json.loads(line) for line in (finished.path / "log.jsonl").read_text().splitlines()]
    spreads = [entry for entry in log if "loss" in entry]
    assert spreads
    assert all(0 < entry["embedding_spread"] < 1.1 and 0 < entry["projection_spread"] < 1.1 for entry in spreads)
    assert "trust_remote_code" in (finished.path / "README.md").read_text()


def test_word_vectors_stay_and_all_else_learns(corpus_file, glove, tmp_path):
    run = train(corpus_file, glove, tmp_path / "run", select_by="last", weighted=False)
    options = GCLSR.options("cpu", **{key: value for key, value in SMALL.items() if key != "quiet"})
    set_seed(1)  # as the run does before it builds its encoder
    start = GCLSR.build_encoder(glove, options)
    trained = load_file(run.path / "1_TextCNN" / "model.safetensors")
    assert all(not torch.equal(trained[name], value) for name, value in start[3].state_dict().items())
    vectors = load_file(run.path / "model.safetensors")["vectors.weight"]
    assert torch.equal(vectors, start[0].vectors.weight)
    assert torch.equal(vectors[0], torch.zeros(12))
    names = [type(module).__name__ for module in start]
    assert names == ["WordVectors", "NoisyWords", "TrainingAttention", "TextCNN", "Projector", "Predictor"]


def test_unknown_words_are_drawn_anew_in_training_alone(glove):
    encoder = GCLSR.build_encoder(glove, GCLSR.options("cpu", **SIZES, unknown_drawn=0.01))
    features = encoder[0].preprocess(["the xyzzy bridges"])
    looked_up = encoder[0](features)["token_embeddings"]
    drawn = type(encoder[1])(0.01)
    assert torch.equal(drawn.eval()(features)["token_embeddings"], looked_up)
    first, second = (drawn.train()(dict(features))["token_embeddings"] for _ in range(2))
    unknown = features["input_ids"][0] == 1
    assert 1 <= unknown.sum() < 3
    assert torch.equal(first[0, ~unknown], looked_up[0, ~unknown])
    assert (first[0, unknown] != second[0, unknown]).all()
    assert first[0, unknown].abs().max() <= 0.01
    names = [type(module).__name__ for module in without_training_head(encoder)]
    assert names == ["WordVectors", "TextCNN"]


def test_resume_gives_the_weights_of_an_uninterrupted_run(corpus_file, glove, tmp_path, stopping_after):
    settings = {"select_by": "last"}
    train(corpus_file, glove, tmp_path / "whole", **settings)
    with stopping_after(3):
        train(corpus_file, glove, tmp_path / "cut", **settings)
    torch.manual_seed(999)
    train(corpus_file, glove, tmp_path / "cut", resume=True, **settings)
    whole, cut = (load_file(tmp_path / name / "1_TextCNN" / "model.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_a_run_that_collapses_is_stopped_with_an_explanation(corpus_file, glove, tmp_path, says):
    with says(CollapseError, hidden=r"\d\.\d{4}"):
        train(corpus_file, glove, tmp_path / "run", collapse_below=0.99, epochs=10, group_size=0)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("augmentation", ["none", "full", "edits", "paraphrases"])
def test_the_papers_other_views_train(augmentation, corpus_file, glove, sentences, tmp_path):
    changes = {"augmentation": augmentation, "attention": augmentation != "none", "max_steps": 2, "sentences": 0}
    if augmentation == "edits":
        changes["edits"] = "no-synonyms"
    if augmentation == "paraphrases":
        file = tmp_path / "pairs.tsv"
        file.write_text("".join(f"{s}\tIndeed {s}\n" for s in sentences[:300]))
        changes["paraphrases"] = str(file)
    run = train(corpus_file, glove, tmp_path / "run", select_by="last", **changes)
    assert likewise.load(run.path).encode("the old river").shape == (36,)


def test_paraphrases_that_do_not_fit_are_told(corpus_file, glove, tmp_path, says):
    file = tmp_path / "pairs.tsv"
    for text in ("one column\n", "no such sentence\tparaphrase\n"):
        file.write_text(text)
        with says(OptionError):
            train(
                corpus_file, glove, tmp_path / "run", augmentation="paraphrases", paraphrases=str(file), overwrite=True
            )


def test_the_command_line_trains_and_names_wrong_vectors(corpus_file, glove, tmp_path):
    from likewise.cli import build_app

    words = "--batch-size 16 --sentences 32 --epochs 2 --warmup-epochs 1 --filters 4 --projection 16 --bottleneck 4"
    arguments = ["train", "gclsr", "--corpus", str(corpus_file), "--out", str(tmp_path / "run"), *words.split()]
    done = CliRunner().invoke(build_app(), [*arguments, "--base", glove, "--select-by", "last"])
    assert done.exit_code == 0, done.output
    assert "tokens are known" in done.output
    wrong = CliRunner().invoke(build_app(), [*arguments, "--base", "missing.txt", "--overwrite"])
    assert wrong.exit_code == 2
    assert "missing.txt" in wrong.output
