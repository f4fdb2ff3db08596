import json
import random
import re
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import likewise
from conftest import sentence
from likewise.adaptation import Candidate, adapt, adaptation_flow, head, texts
from likewise.adaptation.adaptation_flow import best_of, gained
from likewise.adaptation.adaptation_result import advice, changed_neighbours, ranks_by_scores
from likewise.adaptation.head import FrozenTexts, Head, HeadTrainingOptions, train_head
from likewise.corpus.passages import OfferedPair
from likewise.encoder.word_part import WordPart
from likewise.errors import LikewiseError
from likewise.runs.job import JobError
from likewise.runs.progress import Progress


@pytest.fixture(scope="module", autouse=True)
def few_updates():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptation_flow, "HeadTrainingOptions", partial(HeadTrainingOptions, steps=10, batch_size=32))
        yield


@pytest.fixture(scope="module")
def passages(tmp_path_factory):
    """300 passages of three sentences: those of one passage share a number, which the words alone show."""
    rng = random.Random(5)
    path = tmp_path_factory.mktemp("passages") / "text.txt"
    lines = []
    for number in range(300):
        lines.append(" ".join(f"{sentence(rng)[:-1]} at {number} k{number * 7}." for _ in range(3)))
    path.write_text("\n\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def adapted(passages, tiny_base, tmp_path_factory):
    return adapt(passages, base=tiny_base, out=tmp_path_factory.mktemp("adapted") / "model", minutes=1, quiet=True)


def test_words_are_found_to_help(adapted, passages):
    """The base has random weights: only the words can tell which passage a sentence is from."""
    base, *others = adapted.candidates
    chosen = next(one for one in others if one.name == adapted.chosen)
    assert adapted.chosen.startswith("words")
    assert chosen.gain > chosen.noise > 0
    assert chosen.mrr == pytest.approx(base.mrr + chosen.gain)
    trained = ["words 0.7", "words 0.7, trained map", "words 0.7, trained map and words"]
    assert [one.name for one in others] == trained
    page = (adapted.path / "report.html").read_text()
    assert "Searches whose first match changed" in page
    assert adapted.advice in page
    assert re.search(r"\d+ <small>better,</small> \d+ <small>worse</small></b>of 150 held-out", page)
    assert adapted.chosen in (adapted.path / "README.md").read_text()
    assert json.loads((adapted.path / "likewise.json").read_text())["corpus"]["held_out"] == 150


def test_the_measure_by_another_road(adapted, passages, tiny_base):
    """The saved folder, encoded in the ordinary way, finds more passages than the base."""
    lines = passages.read_text().split("\n\n")
    found = []
    for model in (likewise.load(tiny_base, engine="torch"), adapted.model):
        queries = model.encode([line.split(". ")[0] for line in lines], normalize_embeddings=True)
        rest = model.encode([line.split(". ", 1)[1] for line in lines], normalize_embeddings=True)
        cosines = queries @ rest.T
        found.append(float(np.mean(cosines.argmax(axis=1) == np.arange(len(lines)))))
    assert found[1] > found[0]


def test_a_stopped_run_ends_with_the_same_bytes(passages, tiny_base, adapted, tmp_path, monkeypatch, says):
    def stopped(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("likewise.adaptation.adaptation_flow.train_head", stopped)
        with pytest.raises(KeyboardInterrupt):
            adapt(passages, base=tiny_base, out=tmp_path / "model", minutes=1, quiet=True)
    assert not (tmp_path / "model" / "modules.json").exists()
    with monkeypatch.context() as patch:
        patch.setattr(head.BaseTexts, "vectors", stopped)  # nothing is encoded again
        again = adapt(passages, base=tiny_base, out=tmp_path / "model", minutes=1, quiet=True)
    assert again.record["candidates"] == adapted.record["candidates"]
    for file in adapted.path.rglob("*.safetensors"):
        assert (again.path / file.relative_to(adapted.path)).read_bytes() == file.read_bytes()
    with says(JobError):
        adapt(passages, base=tiny_base, out=tmp_path / "model", minutes=1, seed=2, quiet=True)


def test_texts_of_python_are_the_same_corpus(passages, tiny_base, adapted, capsys, says):
    paragraphs = passages.read_text().strip().split("\n\n")
    loaded = likewise.load(tiny_base)
    for given, base in (
        (paragraphs, loaded),
        ((text for text in paragraphs), tiny_base),
        ([{"text": text} for text in paragraphs], tiny_base),
    ):
        again = adapt(given, base=base, out=adapted.path, minutes=1)
        assert again.record == adapted.record
        assert "is already complete" in capsys.readouterr().err
    with says(JobError):
        adapt(paragraphs[1:], base=tiny_base, out=adapted.path, minutes=1, quiet=True)


def test_sentences_come_no_nearer_to_their_negations():
    """Word vectors that nearly agree bring them nearer, unless the margin loss is on."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((40, 8)).astype(np.float32)
    vectors[1::2] = vectors[::2] + 0.8 * rng.standard_normal((20, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [np.array([2 + i // 2, 2 + i // 2, 1][: 2 + i % 2]) for i in range(40)]  # piece 1 is 'not'
    texts = FrozenTexts(torch.from_numpy(vectors), ids, {})
    words = WordPart(22, 21, 8, 8, 0.7)
    words.row[1:] = torch.arange(1, 22)
    with torch.no_grad():
        words.table[1:] = torch.from_numpy(rng.standard_normal((21, 8)).astype(np.float32))
        words.table[1] *= 0.1
    rows = np.arange(40).reshape(-1, 2)

    def cosine(head):
        first, second = head.all(texts, rows[:, 0]), head.all(texts, rows[:, 1])
        return float((first * second).sum(1).mean())

    start, found = Head(8, words), {}
    before = float((vectors[::2] * vectors[1::2]).sum(1).mean())
    assert cosine(start) > before + 0.05
    for weight in (0.0, 5.0):
        options = HeadTrainingOptions().updated(steps=60, batch_size=16, negation=weight, word_rate=0.1)
        pairs = np.stack([rows[:, 0], np.roll(rows[:, 0], 1)], axis=1)
        found[weight] = cosine(train_head(start, texts, pairs, options, 1, Progress(quiet=True), rows))
    assert found[5.0] < found[0.0] - 0.05


@pytest.mark.parametrize("line", ["old cat {} garden", "The old cat {} slept in the garden behind the house."])
def test_what_cannot_be_measured_is_not_changed(line, tiny_base, tmp_path, monkeypatch):
    """Phrases and single sentences keep the base, and nothing is encoded for them: it takes no time."""
    encoded = []
    vectors = head.BaseTexts.vectors
    monkeypatch.setattr(head.BaseTexts, "vectors", lambda self, texts: [encoded.extend(texts), vectors(self, texts)][1])
    path = tmp_path / "lines.txt"
    path.write_text("".join(line.format(i) + "\n" for i in range(300)))
    found = adapt(path, base=tiny_base, out=tmp_path / "model", passages=280, quiet=True)
    assert found.record["corpus"]["passages"] == 280
    assert found.chosen == "base"
    assert "0 of 280 passages have several sentences or a title" in found.reason
    assert encoded == []
    assert [one.name for one in found.candidates] == ["base"]
    assert "the base was returned" in (found.path / "report.html").read_text()
    wanted = likewise.load(tiny_base, engine="torch").encode(["old cat"])
    np.testing.assert_allclose(found.model.encode(["old cat"]), wanted, atol=1e-6)
    other = adapt(path, base=tiny_base, out=tmp_path / "other", minutes=0.001)
    assert other.record["corpus"]["passages"] == 300
    assert encoded == []


def test_what_is_left_out_of_the_text_is_counted_and_named(tiny_base, tmp_path, capsys):
    rows = [{"text": f"The old dog number {i} sees a river. It was seen by the cat."} for i in range(120)]
    rows[3]["text"], rows[5]["text"], rows[7]["text"] = "", "Yes.", rows[6]["text"]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "[1]\n")
    adapted = adapt(path, base=tiny_base, out=tmp_path / "model", minutes=1)
    told = capsys.readouterr().err
    for line in (r"empty +1 +lines? 4", r"too short +1", r"duplicate +1", r"rows\.jsonl:121: not a JSON object"):
        assert re.search(line, told), line
    assert adapted.record["corpus"]["report"]["kept"] == 117
    assert adapted.is_partial


def test_too_few_passages_keep_the_base(passages, tiny_base, tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("\n\n".join(passages.read_text().split("\n\n")[:80]))
    found = adapt(path, base=tiny_base, out=tmp_path / "model", minutes=1, quiet=True)
    assert found.chosen == "base"
    assert "80 of 80 passages" in found.reason
    assert "with 100 such passages or more" in found.reason


def test_without_words_vectors_keep_their_length(passages, tiny_base, tmp_path):
    found = adapt(passages, base=tiny_base, out=tmp_path / "model", minutes=1, width=0, quiet=True)
    assert [one.name for one in found.candidates] == ["base", "trained map"]
    assert found.model.get_embedding_dimension() == 32


def test_a_plain_folder_is_loaded_without_likewise(passages, tiny_base, adapted, tmp_path, monkeypatch):
    monkeypatch.setattr(adaptation_flow, "best_of", lambda candidates: (candidates[-1].name, "it is the last"))
    assert "trust_remote_code=True" in adapted.form
    given = {
        "base": tiny_base,
        "out": tmp_path / "model",
        "plain": True,
        "quiet": True,
    }
    found = adapt(passages, **given)
    assert "any tool" in found.form
    types = [one["type"] for one in json.loads((found.path / "modules.json").read_text())]
    assert [one.rpartition(".")[2] for one in types][-2:] == ["Dense", "Normalize"]
    assert all(one.startswith("sentence_transformers.") for one in types)
    code = f"""
import sys
sys.modules["likewise"] = None
from sentence_transformers import SentenceTransformer
print(SentenceTransformer({str(found.path)!r}, device="cpu").encode(["old cat"]).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    np.testing.assert_allclose(json.loads(done.stdout), found.model.encode(["old cat"]), atol=1e-5)


def test_a_map_without_a_bias_stands_right_behind_the_pooling(tiny_model, sentences):
    head = Head(32)
    with torch.no_grad():
        head.linear.weight.add_(0.1 * torch.randn(32, 32, generator=torch.Generator().manual_seed(0)))
    found = head.on(tiny_model)
    assert [type(one).__name__ for one in found][-3:] == ["Pooling", "Dense", "Normalize"]
    vectors = tiny_model.encode(sentences[:5], normalize_embeddings=True)
    wanted = vectors @ head.linear.weight.detach().numpy().T
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(found.encode(sentences[:5]), wanted, atol=1e-5)


def test_negations_are_of_whole_sentences(monkeypatch):
    pairs = [OfferedPair("cat sat", "The cat sat.", "deletion", 0), OfferedPair("It ran.", "A dog.", "rest", 1)]
    monkeypatch.setattr(texts, "negate", lambda texts: [f"not {text}" for text in texts])
    found = texts.negations(pairs, 1)
    assert sorted(found) == [("It ran.", "not It ran."), ("The cat sat.", "not The cat sat.")]


def test_bad_input(tiny_base, tmp_path, says):
    with says(LikewiseError):
        adapt(tmp_path / "a.txt", base=tiny_base, out=tmp_path / "model", width=-1)
    with says(LikewiseError):
        adapt(tmp_path / "a.txt", base=tiny_base, out=tmp_path / "model", language="klingon")
    with says(LikewiseError):
        adapt(tmp_path / "a.txt", base=tiny_base, out=tmp_path / "model", minutes=0)
    with says(LikewiseError):
        adapt(tmp_path / "a.txt", base=tiny_base, out=tmp_path / "model", minutes="soon")
    with says(LikewiseError):
        adapt(tmp_path / "a.txt", base=tiny_base, out=tmp_path / "model", minuts=15)
    with says(LikewiseError):
        adapt(tmp_path / "a.txt", base=tiny_base, out=tmp_path / "model", passages=-1)
    with says(LikewiseError):
        adapt(tmp_path / "a.txt", base=tiny_base, out=tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_reciprocal_ranks_by_hand():
    scores = np.array([[1, 0, 0, 0], [0.6, 0.8, 0, 0], [0.5, 0.5, 0.5, 0.5]], dtype=np.float32)
    assert ranks_by_scores(scores, np.array([0, 0, 2])).tolist() == [1, 0.5, 0.25]


def test_the_choice():
    base, ranks = Candidate("base", 56.25, 0.0, 0.0, 80.0), np.array([0.5, 0.5, 1.0, 0.25])
    assert gained(np.ones(4), ranks) == (pytest.approx(43.75), pytest.approx(100 * np.std([0.5, 0.5, 0, 0.75])))
    better = Candidate("better", 100.0, *gained(np.ones(4), ranks), 79.5)
    forgetful = Candidate("forgetful", 100.0, 50.0, 1.0, 78.5)
    same = Candidate("same", 56.25, *gained(np.array([0.5, 1.0, 0.5, 0.25]), ranks), 80.0)
    assert best_of([base, same, better, forgetful])[0] == "better"
    assert best_of([base, same])[0] == "base"
    assert best_of([base, forgetful])[0] == "base"
    # Above the noise, which is 0 for equal changes, but below a twentieth of the base.
    small = Candidate("small", 52.0, 2.0, 0.0)
    assert best_of([Candidate("base", 50.0), small])[0] == "base"
    assert best_of([Candidate("base", 30.0), small])[0] == "small"  # no data for the guard


def test_the_memory_of_vectors_and_scores_is_counted(monkeypatch):
    assert 1e7 < texts.taken() < 1e11
    pair = OfferedPair("a", "b", "rest", 0)
    few, many = (texts.OwnText([], [], [pair] * 500, [], ["b"] * size) for size in (100, 5000))
    encoded = []

    def vectors(some):
        encoded.extend(some)
        return np.zeros((len(some), 384))

    monkeypatch.setattr(texts, "taken", lambda: 10**9)
    base = SimpleNamespace(vectors=vectors)
    short, long = ([f"{'a ' * (i % 700)}{i}" for i in range(count)] for count in (1000, 3000))
    assert texts.memory(base, long, few) - texts.memory(base, short, few) == 2 * 2000 * 384 * 4
    assert texts.memory(base, long, many) - texts.memory(base, long, few) > 4900 * (500 * 4 + 384 * 4)
    assert min(map(len, encoded)) > 1250


def test_the_advice_tells_what_the_vectors_are_worth_beside_bm25(adapted):
    gain, noise = adapted.beside_bm25
    assert f"{gain:+.2f} ± {noise:.2f}" in adapted.advice
    assert "not significant" in advice(True, (0.5, 0.7))
    assert "not significant" not in advice(True, (2.0, 0.7))
    assert "no gain can be measured" in advice(False, None)


def test_a_gain_beside_bm25_is_that_of_both_scores_added(adapted):
    """By the equation: each score less its mean, divided by its deviation over the passages of a query."""
    rng = np.random.default_rng(0)
    cosines = {name: rng.normal(size=(6, 20)) for name in ("base", "map")}
    words = rng.exponential(size=(6, 20))
    judged = adaptation_flow.Contest.__new__(adaptation_flow.Contest)
    judged.text = SimpleNamespace(queries=[""] * 6, pool=[""] * 20, own=[0, 1, 2, 3, 4, 5])
    judged.scores = cosines.get
    ranks = {name: [] for name in cosines}
    for name, rows in cosines.items():
        for query, row in enumerate(rows):
            both = (row - row.mean()) / row.std() + (words[query] - words[query].mean()) / words[query].std()
            ranks[name].append(1 / (1 + np.sum(both > both[query])))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptation_flow, "bm25", lambda *_: words)
        found = judged.beside_bm25("map", "english")
    assert found[0] == pytest.approx(100 * np.mean(np.array(ranks["map"]) - np.array(ranks["base"])))


def test_a_head_is_saved_as_it_scored(tiny_model, sentences):
    vectors = tiny_model.encode(sentences[:100], normalize_embeddings=True)
    head = Head(32)
    with torch.no_grad():
        head.linear.bias.copy_(torch.from_numpy(-vectors.mean(axis=0)))
    found = head.on(tiny_model).encode(sentences[:5])
    wanted = vectors[:5] - vectors.mean(axis=0)
    np.testing.assert_allclose(found, wanted / np.linalg.norm(wanted, axis=1, keepdims=True), atol=1e-5)
    same = Head(32).on(tiny_model).encode(sentences[:5])
    np.testing.assert_allclose(same, tiny_model.encode(sentences[:5]), atol=1e-6)


def test_neighbours_that_changed():
    before = np.array([[3, 2, 1, 0], [0, 1, 2, 3]])
    after = np.array([[3, 2, 1, 0], [3, 1, 2, 0]])
    assert changed_neighbours(before, after, [0, 0], top=1) == [(1, [3], [0])]


def test_held_out_passages_are_not_trained_on():
    pairs = [OfferedPair(f"a{i}", f"b{i}", "rest", i) for i in range(400)]
    pairs += [OfferedPair(f"t{i}", f"b{i}", "title", i) for i in range(400)]
    held, training = texts.held_out(pairs, [None] * 400, seed=1)
    assert len(held) == 200
    assert {pair.kind for pair in held} == {"rest"}
    gone = {pair.passage for pair in held}
    assert [pair for pair in pairs if pair.passage not in gone] == training
    titles, _ = texts.held_out(pairs[300:], [None] * 400, seed=1)  # too few passages of several sentences
    assert {pair.kind for pair in titles} == {"title"}
    few, rest = texts.held_out(pairs[:80], [None] * 400, seed=1)  # most passages offer nothing to measure on
    assert (few, len(rest)) == ([], 80)


def test_what_is_encoded_fits_the_minutes(passages, tiny_base, tmp_path, monkeypatch, capsys, says):
    """With a token in 10 ms, on any machine: the encoder's share of the time is kept, and what cannot be is told."""
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)  # STS-B dev would take its share of the time
    encoded, each = [], 0.01
    vectors = head.BaseTexts.vectors
    monkeypatch.setattr(head.BaseTexts, "vectors", lambda self, texts: [encoded.extend(texts), vectors(self, texts)][1])
    base = head.BaseTexts(likewise.load(tiny_base), "tiny")

    def seconds(some):
        return each * sum(map(len, base.tokens(list(some))))

    monkeypatch.setattr(texts, "seconds_each", lambda work, items: seconds(items) / len(items))
    monkeypatch.setattr(texts, "_NEGATED", 20)
    monkeypatch.setattr(texts, "_LEAST_USED", 150)
    monkeypatch.setattr(adaptation_flow, "sts_dev_pairs", lambda _: None)  # wherever the data is
    whole = seconds(passages.read_text().split("\n\n"))
    found = adapt(passages, base=tiny_base, out=tmp_path / "fits", minutes=whole / 60)
    used = found.record["corpus"]["passages"]
    assert 150 < used < 300
    assert 0.5 * whole < seconds(encoded) < whole
    told = capsys.readouterr().err
    assert f"{used} of 300 passages are used: more do not fit into the given time" in told
    assert "longer than" not in told
    assert re.search(r"about \d+\.\d GB of memory", told)
    with says(LikewiseError):
        adapt(passages, base=tiny_base, out=tmp_path / "short", minutes=0.01, quiet=True)
    assert list(tmp_path.glob("*short*")) == []  # so that the same folder takes another try


def test_torch_gets_its_threads_back_after_an_error(monkeypatch):
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError), head._one_core():
        assert torch.get_num_threads() == 1
        raise RuntimeError
    assert torch.get_num_threads() == before
