"""What others train without labels, with the minutes and the passages of `likewise adapt`: models for `domains.py`.

    python benchmarks/peers.py --out runs/peers --sets aviation threats
    python benchmarks/domains.py --out benchmarks/results/domains --parts test \
        --model "TSDAE=runs/peers/tsdae-{set}" --model "SimCSE=runs/peers/simcse-{set}"

All weights of the base train, and it is read as it is shipped (mean of the tokens). Each method sees 2,000 passages of
corpus.txt.gz (128 tokens of each, batches of similar length) and trains for --minutes of processor time of one thread,
at a rate of 2e-5 with a linear warm-up and decay over that time:

- tsdae: sentence-transformers' DenoisingAutoEncoderLoss, 60% of the words deleted, batches of 8 (Wang et al. 2021).
- simcse: each passage twice under dropout, temperature 0.05, batches of 64 (Gao et al. 2021).
- mlm-simcse: half of the time masked language modelling (15% of the tokens), then simcse.
- gpl: queries are what the text offers (a title, a sentence of the passage), each with a hard negative by the base or
  by BM25; the student's margin of cosines learns the mean of the base's and of BM25's, batches of 32 (after Wang et
  al. 2022, who generate the queries and take margins from a cross-encoder).
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForMaskedLM, DataCollatorForLanguageModeling

from domains import SETS, Bm25
from likewise.augment.word_edits import delete_words
from likewise.corpus.downloads import data_folder
from likewise.corpus.passages import offered_pairs, read_passages
from likewise.inference import encode, load
from likewise.training.batches import LengthBatchSampler

RATE, LENGTH, WARM_UP = 2e-5, 128, 0.1


def batches(texts: list[str], size: int, seed: int) -> Iterator[list[int]]:
    """Yield the rows of batches of similar length, for ever."""
    sampler = LengthBatchSampler(np.array([len(text) for text in texts]), min(size, len(texts)), seed)
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        yield from sampler


def train(parameters: list[nn.Parameter], step: Callable[[], Tensor], minutes: float, what: str) -> None:
    """Take steps until the processor time is spent."""
    optimizer = torch.optim.AdamW(parameters, lr=RATE)
    start, total, count, losses = time.process_time(), minutes * 60, 0, []
    while (share := (time.process_time() - start) / total) < 1:
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(share / WARM_UP, (1 - share) / (1 - WARM_UP), 1)
        optimizer.zero_grad()
        loss = step()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        count, losses = count + 1, [*losses, float(loss.detach())]
    first, last = np.mean(losses[:10]), np.mean(losses[-10:])
    print(f"{what}: {count} updates, loss {first:.4f} to {last:.4f}", flush=True)


def vectors(encoder: Any, texts: list[str]) -> Tensor:
    """Return the unit vectors of texts, (B, D), with a gradient."""
    return F.normalize(encoder(encoder.preprocess(texts))["sentence_embedding"], dim=1)


def simcse(encoder: Any, texts: list[str], minutes: float, seed: int) -> None:
    stream = batches(texts, 64, seed)

    def step() -> Tensor:
        batch = [texts[row] for row in next(stream)]
        cosines = vectors(encoder, batch) @ vectors(encoder, batch).T
        return F.cross_entropy(cosines / 0.05, torch.arange(len(batch)))

    train(list(encoder.parameters()), step, minutes, "simcse")


def tsdae(encoder: Any, texts: list[str], minutes: float, seed: int) -> None:
    loss = DenoisingAutoEncoderLoss(encoder, tie_encoder_decoder=True).train()
    stream, drawn = batches(texts, 8, seed), np.random.default_rng(seed)

    def step() -> Tensor:
        batch = [texts[row] for row in next(stream)]
        noisy = [delete_words(text, 0.6, drawn) for text in batch]
        return loss([encoder.preprocess(noisy), encoder.preprocess(batch)], None)

    train(list(loss.parameters()), step, minutes, "tsdae")


def mlm_simcse(encoder: Any, texts: list[str], minutes: float, seed: int) -> None:
    inner, tokenizer = encoder[0].auto_model, encoder.tokenizer
    head = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(inner.config._name_or_path))
    setattr(head, head.base_model_prefix, inner)  # the head itself starts at random: the base is shipped without
    head.tie_weights()
    collate = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    stream = batches(texts, 32, seed)

    def step() -> Tensor:
        rows = [tokenizer(texts[row], truncation=True, max_length=LENGTH) for row in next(stream)]
        return head(**collate(rows)).loss

    train(list(head.train().parameters()), step, minutes / 2, "mlm")
    simcse(encoder, texts, minutes / 2, seed)


def gpl(encoder: Any, texts: list[str], minutes: float, seed: int) -> None:
    pairs = [(pair.first, pair.second) for pair in offered_pairs(passages_of(texts, seed), seed=seed)]
    queries, documents = [first for first, _ in pairs], list(dict.fromkeys(second for _, second in pairs))
    place = {text: i for i, text in enumerate(documents)}
    own = np.array([place[second] for _, second in pairs])
    base = encode(encoder, queries, normalize=True) @ encode(encoder, documents, normalize=True).T
    encoder.train()
    terms = Bm25(queries, documents, documents).rows(slice(None))
    target = (base + terms / np.maximum(terms.max(axis=1, keepdims=True), 1e-9)) / 2  # each at most about 1
    hard = np.concatenate([np.argsort(-scores, axis=1)[:, :10] for scores in (base, terms)], axis=1)
    stream, rng = batches([documents[i] for i in own], 32, seed), random.Random(seed)

    def step() -> Tensor:
        rows = next(stream)
        negative = [rng.choice([i for i in hard[row] if i != own[row]]) for row in rows]
        asked = vectors(encoder, [queries[row] for row in rows])
        right = vectors(encoder, [documents[own[row]] for row in rows])
        wrong = vectors(encoder, [documents[i] for i in negative])
        margin = torch.from_numpy(target[rows, own[rows]] - target[rows, negative]).float()
        return F.mse_loss((asked * (right - wrong)).sum(dim=1), margin)

    train(list(encoder.parameters()), step, minutes, "gpl")


METHODS = {"tsdae": tsdae, "simcse": simcse, "mlm-simcse": mlm_simcse, "gpl": gpl}


def passages_of(texts: list[str], seed: int) -> Any:
    """Return texts as passages of the library, by a file as a user would give it."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.txt"
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return read_passages(str(path), None, seed=seed)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--data", type=Path, default=data_folder() / "domain")
    found.add_argument("--out", type=Path, default=Path("runs/peers"))
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    found.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    found.add_argument("--minutes", type=float, default=3.0)
    found.add_argument("--passages", type=int, default=2000)
    found.add_argument("--seed", type=int, default=1)
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(1)
    for name in args.sets:
        found = read_passages(str(args.data / name / "corpus.txt.gz"), None, seed=args.seed)
        sample = random.Random(args.seed).sample([one.text for one in found], min(args.passages, len(found)))
        for method in args.methods:
            folder = args.out / f"{method}-{name}"
            if folder.exists():
                continue
            torch.manual_seed(args.seed)
            encoder = load(args.base, precision="fp32")
            length, encoder.max_seq_length = encoder.max_seq_length, LENGTH
            encoder.train()
            METHODS[method](encoder, sample, args.minutes, args.seed)
            encoder.max_seq_length = length
            encoder.eval().save(str(folder), create_model_card=False)
            print(f"{folder} is ready", flush=True)


if __name__ == "__main__":
    main()
