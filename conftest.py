"""Tiny models and texts, made here: no test needs a network, a hub or the bundled parts unless it says so."""

import gc
import os
import random
import shutil
import signal
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from pathlib import Path

# Before torch is imported: two threads that wait for each other make tiny models slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["LIKEWISE_EXPORTS"] = "never"  # a training of two steps needs none at its end

import pytest

NOUNS = "cat dog river bridge teacher letter garden train window song market doctor island captain farmer".split()
VERBS = "sees paints follows remembers crosses builds visits likes carries watches".split()
ADJECTIVES = "old small green quiet bright heavy famous narrow".split()
PLACES = "near in behind above beside".split()
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
"""The sizes of a tiny transformer, by the names of their configurations."""

IS_MISSING = ("installed", "could not import", "extra '", "there is no chromium")
NOT_OURS = ("langchain", "llama-index", "haystack", "cohere", "bundled:mpnet")
"""What a skip says for want of a package, and what CI does without: other projects, and 438 MB of weights."""

IN_LOWEST = "extra 'lora'"
"""What only .ci/lowest installs, and says so by LIKEWISE_NO_SKIP=all: peft holds transformers back."""


def _failed_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    asked = os.environ.get("LIKEWISE_NO_SKIP")
    if not (asked and report.skipped and isinstance(report.longrepr, tuple)):
        return
    reason = report.longrepr[2]
    allowed = NOT_OURS if asked == "all" else (*NOT_OURS, IN_LOWEST)
    if any(words in reason for words in IS_MISSING) and not any(words in reason for words in allowed):
        report.outcome = "failed"
        report.longrepr = f"LIKEWISE_NO_SKIP is set: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    _failed_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    report = yield
    _failed_if_skipped(report)
    return report


@pytest.fixture(autouse=True)
def _folder_of_examples(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the examples of docstrings in an empty folder, where they may write."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path_factory.mktemp("examples"))


@pytest.fixture(autouse=True, scope="module")
def _frozen_imports():
    """Keep what imports made out of the garbage collection that each training ends with: half of a second less."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _releases_read_once():
    """Read the releases of packages and the code of the library once: each of a thousand jobs notes them."""
    from likewise.runs import releases

    with pytest.MonkeyPatch.context() as patched:
        for name in ("version", "_code"):
            patched.setattr(releases, name, cache(getattr(releases, name)))
        yield


def sentence(rng: random.Random, n_clauses: int = 1) -> str:
    """A sentence of 9 words a clause."""
    clauses = [
        f"the {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)} {rng.choice(VERBS)} the {rng.choice(NOUNS)} "
        f"{rng.choice(PLACES)} the {rng.choice(NOUNS)}"
        for _ in range(n_clauses)
    ]
    return " and ".join(clauses).capitalize() + "."


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    """400 different sentences of 9 to 39 words, a third of them of 25 or more."""
    rng = random.Random(0)
    found = dict.fromkeys(sentence(rng, rng.choice((1, 2, 4))) for _ in range(500))
    return list(found)[:400]


@pytest.fixture(scope="session")
def corpus_file(sentences: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sentences, one a line."""
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers and 32 dimensions with random weights, saved as a Hugging Face folder."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-bert")
    words = ["the", "and", ".", ",", "a", "is", "not", *NOUNS, *VERBS, *ADJECTIVES, *PLACES]
    pieces = [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    letters = list("abcdefghijklmnopqrstuvwxyz0123456789")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(words + letters + pieces)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        **TINY,
        max_position_embeddings=128,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=128).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def llama(sentences, tmp_path_factory) -> str:
    """A causal language model with weights in bfloat16, and a tokenizer that adds nothing to a text."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny") / "llama"
    marks = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=marks, initial_alphabet=alphabet)
    words.train_from_iterator(sentences, trainer)
    named = {"unk_token": marks[0], "bos_token": marks[1], "eos_token": marks[2], "pad_token": marks[2]}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=128, **named)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        **TINY,
        num_key_value_heads=1,
        max_position_embeddings=128,
        pad_token_id=2,
    )
    LlamaForCausalLM(config).bfloat16().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def raw_mpnet(tmp_path_factory):
    """An MPNet as Hugging Face has it, of two layers and 32 dimensions with random weights."""
    import torch
    from transformers import MPNetConfig, MPNetModel, MPNetTokenizer

    folder = tmp_path_factory.mktemp("tiny") / "mpnet"
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    words = ["the", "and", ".", ",", "a", "is", "not", *NOUNS, *VERBS, *ADJECTIVES, *PLACES, *letters]
    vocabulary = ["<s>", "<pad>", "</s>", "[UNK]", *dict.fromkeys(words), *(f"##{one}" for one in letters), "<mask>"]
    torch.manual_seed(0)
    config = MPNetConfig(
        vocab_size=len(vocabulary),
        **TINY,
        max_position_embeddings=130,
        initializer_range=0.2,  # so that attention, and with it the relative positions, makes a difference
    )
    MPNetModel(config).save_pretrained(folder)
    tokens = {token: number for number, token in enumerate(vocabulary)}
    MPNetTokenizer(vocab=tokens, model_max_length=128).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def mpnet(raw_mpnet, tmp_path_factory):
    """The same as a sentence encoder, of the modules that all-mpnet-base-v2 has."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    folder = tmp_path_factory.mktemp("tiny") / "all-mpnet"
    transformer = Transformer(raw_mpnet)
    pooling = Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")
    SentenceTransformer(modules=[transformer, pooling, Normalize()]).save(str(folder), create_model_card=False)
    return str(folder)


@pytest.fixture(scope="session")
def word_model(tmp_path_factory) -> Path:
    """An encoder that adds the random vectors of words: unlike the tiny encoder's, its vectors differ much."""
    import numpy as np
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, normalizers
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = "the near in behind above beside old small green quiet bright heavy famous narrow sees paints follows "
    words += "remembers crosses builds visits likes carries watches cat dog river bridge teacher letter garden train "
    words += "window song market doctor island captain farmer zebra"
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(["[UNK]", *words.split()])}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), Whitespace()
    weights = np.random.default_rng(0).normal(size=(len(words.split()) + 1, 16)).astype(np.float32)
    folder = tmp_path_factory.mktemp("words") / "model"
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)])
    model.save(str(folder), create_model_card=False)
    return folder


@pytest.fixture
def tiny_model(tiny_base: Path):
    """A fresh tiny encoder with [CLS] pooling, in evaluation mode."""
    from likewise.encoder.build import build_encoder

    return build_encoder(str(tiny_base), pooling="cls", head=False).eval()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data, or a skip that says why."""
    for candidate in (os.environ.get("LIKEWISE_DATA"), Path(__file__).parents[1] / "shared" / "data"):
        if candidate and (Path(candidate) / "senteval").is_dir():
            return Path(candidate)
    pytest.skip("no real data: set LIKEWISE_DATA to the folder that holds senteval/ and wikipedia/")


@pytest.fixture(scope="session")
def stopping_after():
    """A `with` block in which a training is interrupted after a step, as by Ctrl-C."""
    from likewise.runs.progress import Stopped
    from likewise.training.training_job import Course

    @contextmanager
    def stopping(step: int):
        before = Course.on_step_end

        def on_step_end(self, args, state, control, **rest):
            if state.global_step == step:
                signal.raise_signal(signal.SIGINT)
            before(self, args, state, control, **rest)

        with pytest.MonkeyPatch.context() as patched, pytest.raises(Stopped, match=f"after step {step} of"):
            patched.setattr(Course, "on_step_end", on_step_end)
            yield

    return stopping


@pytest.fixture(params=["none", "avx2", "bf16", "vnni", "bf16+vnni"])
def any_processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each kind of processor in turn, in the place of the one that runs the tests, and no GPU."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("LIKEWISE_PROCESSOR", request.param)
    return request.param


@pytest.fixture(autouse=True)
def _cache_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A cache for each file of tests: an export that another file left would choose the engine of these."""
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path_factory.getbasetemp() / "caches" / request.module.__name__))


@pytest.fixture(scope="session")
def saved_model(tiny_base, tmp_path_factory) -> Path:
    """The tiny encoder as a folder."""
    return _saved(tiny_base, tmp_path_factory.mktemp("saved") / "model", "cls")


@pytest.fixture(scope="session")
def mean_model(tiny_base, tmp_path_factory) -> Path:
    """The same, which pools all of its tokens."""
    return _saved(tiny_base, tmp_path_factory.mktemp("mean") / "model", "mean")


def _saved(base: Path, folder: Path, pooling: str) -> Path:
    from likewise.encoder.build import build_encoder

    build_encoder(str(base), pooling=pooling, head=False).eval().save(str(folder), create_model_card=False)
    return folder


@pytest.fixture(scope="session")
def tiny_cross_encoder(tiny_base, tmp_path_factory) -> Path:
    """A cross-encoder with one output as a folder; its scores are as random as its weights."""
    import torch
    from sentence_transformers import CrossEncoder

    folder = tmp_path_factory.mktemp("cross") / "tiny-cross"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = CrossEncoder(str(tiny_base), num_labels=1, device="cpu")
        with torch.no_grad():  # so that its scores differ
            model.model.classifier.weight.mul_(50)
    model.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="session")
def _notes(sentences, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "lines.txt").write_text("\n".join(sentences[:40]) + "\n")
    (folder / "heads.md").write_text(f"# Rivers\n\n{sentences[40]}\n{sentences[41]}\n\n## Dogs\n\n{sentences[42]}\n")
    (folder / ".hidden").write_text("the cat\n")
    return folder


@pytest.fixture
def notes(_notes, tmp_path) -> Path:
    """A folder of 40 passages in a text file and 2 in a Markdown file; a copy that a test may change."""
    return Path(shutil.copytree(_notes, tmp_path / "notes"))


@pytest.fixture(scope="session")
def _indexed(_notes, saved_model, tmp_path_factory) -> Path:
    from likewise import index

    out = tmp_path_factory.mktemp("indexed") / "notes.index"
    index(_notes, model=saved_model, out=out, quiet=True)
    return out


@pytest.fixture
def indexed(_indexed) -> Path:
    """The index of `notes`, to be read only."""
    return _indexed


@pytest.fixture(scope="session")
def script():
    """A function from a script's path to its module: those of benchmarks/ import one another by name."""
    import importlib.util
    import sys

    opened: dict[Path, object] = {}

    def load(path: Path):
        if path not in opened:
            name = "script_" + "_".join(path.with_suffix("").parts[-2:])
            spec = importlib.util.spec_from_file_location(name, path)
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module  # where dataclasses look their annotations up
            before = list(sys.path)
            sys.path[:0] = [str(path.parent), str(Path(__file__).parent / "benchmarks")]
            try:
                spec.loader.exec_module(module)
            finally:
                sys.path[:] = before
            opened[path] = module
        return opened[path]

    return load


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write text or bytes to a file of the test's folder and give its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file
