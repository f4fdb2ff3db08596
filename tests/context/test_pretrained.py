"""Generators that begin with a Hugging Face encoder-decoder: a tiny BART and a tiny T5 with random weights."""

import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from likewise.context.chunks import Context
from likewise.context.generator_training import fit_generators
from likewise.context.generators import Generators, batch_of, perplexity
from likewise.context.options import ScoreOptions
from likewise.context.pieces import SOURCES, TASKS, Example, examples_of
from likewise.context.score import ContextScorer
from likewise.context.workspace import ContextError
from likewise.runs.job import open_job
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress


@pytest.fixture(scope="module", params=["bart", "t5"])
def base(request, vocabulary, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=vocabulary.tokenizer, pad_token="[PAD]", eos_token="[EOS]", bos_token="[BOS]"
    )
    tokenizer.save_pretrained(folder)
    shared = {"vocab_size": len(vocabulary), "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    torch.manual_seed(0)
    if request.param == "bart":
        sizes = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in SIZES.items()}
        model = BartForConditionalGeneration(BartConfig(**shared, **sizes, d_model=16, max_position_embeddings=64))
    else:
        model = T5ForConditionalGeneration(T5Config(**shared, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2))
    model.save_pretrained(folder)
    return folder


SIZES = {"layers": 1, "attention_heads": 2, "ffn_dim": 32}


@pytest.fixture
def examples(chunks):
    return list(examples_of(chunks[:20]))


def test_it_begins_as_the_base_itself(base, tiny_generators, examples):
    generators = Generators.build(tiny_generators.updated(base=str(base), reading="joint")).eval()
    model = generators.networks["all"].model
    (pieces,) = generators.cutter.examples(examples[:1])
    with torch.inference_mode():
        found = generators.log_probabilities(batch_of([pieces], generators.vocabulary.pad))
        for task in TASKS:
            one, other = (pieces.of(side) for side in SOURCES[task])
            target = pieces.of(task).ids
            logits = model(
                input_ids=torch.tensor([one.ids + other.ids]),
                decoder_input_ids=torch.tensor([(generators.first(task), *target[:-1])]),
            ).logits[0]
            expected = logits.log_softmax(-1)[torch.arange(len(target)), list(target)]
            torch.testing.assert_close(found[task], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("reading", ["separate", "joint"])
def test_batches_and_the_score_are_those_of_single_examples(base, tiny_generators, examples, reading):
    generators = Generators.build(tiny_generators.updated(base=str(base), reading=reading)).eval()
    for table in (generators.networks["all"].sentences, generators.networks["all"].target_sentences):
        torch.nn.init.normal_(table.weight)
    contexts = [Context(i, 1, e.left, e.right) for i, e in enumerate(examples[:4])]
    sentences = [examples[0].centre, "A cat."]
    scorer = ContextScorer(generators, None, ScoreOptions(weights=(0, 1, 1, 1), precision="fp32"))

    def scores_of(cells):
        return scorer.terms(sentences, contexts, cells, scorer.weights > 0) @ scorer.weights

    with torch.inference_mode():
        for s, sentence in enumerate(sentences):
            for c, context in enumerate(contexts):
                pieces = generators.cutter.examples([Example(context.left, sentence, context.right)])
                logs = generators.log_probabilities(batch_of(pieces, generators.vocabulary.pad))
                expected = sum(float(logs[task].mean()) for task in TASKS)
                assert scores_of([(s, c)])[0] == pytest.approx(expected, abs=1e-4)
        cells = [(s, c) for s in range(2) for c in range(4)]
        together = scores_of(cells)
        alone = [scores_of([cell])[0] for cell in cells]
    assert together == pytest.approx(alone, abs=1e-4)


def test_a_base_is_trained_saved_and_loaded(base, tiny_generators, chunks, examples, tmp_path):
    options = tiny_generators.updated(base=str(base), max_steps=20, eval_steps=10, learning_rate=1e-2, warmup_steps=2)
    every = list(examples_of(chunks))
    with open_job(tmp_path / "run", Plan("toy", options.to_dict())) as job:
        record = job.finish(fit_generators(job, every, options, None, Progress(quiet=True)))
    loaded = Generators.load(tmp_path / "run")
    before = perplexity(Generators.build(options), examples).of()
    assert perplexity(loaded, examples).of() < before / 2
    assert record["perplexity"]["all"] < before
    assert loaded.vocabulary.tasks == Generators.build(options).vocabulary.tasks


def test_errors(tmp_path, tiny_generators, vocabulary):
    with pytest.raises(ContextError, match="no encoder-decoder that can be loaded"):
        Generators.build(tiny_generators.updated(base=str(tmp_path / "none")))
    with pytest.raises(ContextError, match="vocabulary of its own"):
        Generators.build(tiny_generators.updated(base="some"), vocabulary)
    BertModel(BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=400)).save_pretrained(
        tmp_path / "bert"
    )
    PreTrainedTokenizerFast(tokenizer_object=vocabulary.tokenizer, pad_token="[PAD]").save_pretrained(tmp_path / "bert")
    with pytest.raises(ContextError, match="no encoder-decoder that can be loaded"):
        Generators.build(tiny_generators.updated(base=str(tmp_path / "bert")))
