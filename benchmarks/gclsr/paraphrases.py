"""Paraphrases by a language model in place of the paper's back-translation (TransL): for `augmentation=paraphrases`.

    python benchmarks/gclsr/paraphrases.py runs/paraphrases.tsv

There is no translation model on the registries that this project uses: `bundled:smollm2` rewrites each sentence after
three examples, by its likeliest tokens. An answer that adds nothing, or is half or twice as long as the sentence, is
left out and counted. Sentences are drawn by --seed; a stopped run goes on where it was. The sentences that have a
paraphrase are written beside it, as a corpus for the rows of other views (sts.py).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from likewise.context.causal_model import CausalModel
from likewise.corpus import prepare
from likewise.runs.cache import data_folder

EXAMPLES = (
    ("The town was founded by settlers in 1852.", "Settlers established the town in 1852."),
    ("He is best known for his work on insects.", "His work on insects is what made him famous."),
    ("The film did not do well at the box office.", "At the box office, the film earned little."),
)
BATCH = 32


def prompt_of(sentence: str) -> str:
    """Return the text that the model goes on with."""
    shown = "".join(f"Sentence: {first}\nIn other words: {second}\n\n" for first, second in EXAMPLES)
    return f"{shown}Sentence: {sentence}\nIn other words:"


@torch.inference_mode()
def rewritten(model: CausalModel, sentences: list[str]) -> list[str]:
    """Return a paraphrase of each sentence, by greedy decoding."""
    rows = [model.ids(prompt_of(sentence)) for sentence in sentences]
    ids, mask = model.padded(rows)
    end = model.ids("\n")[-1]
    longest = max(len(model.ids(sentence)) for sentence in sentences)
    settings = {"do_sample": False, "max_new_tokens": longest + 10, "eos_token_id": [end, model.tokenizer.eos_token_id]}
    output = model.model.generate(input_ids=ids, attention_mask=mask, pad_token_id=end, **settings)
    return [model.tokenizer.decode(row[ids.shape[1] :], skip_special_tokens=True).strip() for row in output]


def is_paraphrase(sentence: str, text: str) -> bool:
    """Whether a text has other words than a sentence, or another order of them, at about its length."""
    before, after = sentence.lower().split(), text.lower().split()
    return before != after and len(before) / 2 <= len(after) <= 2 * len(before)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("out", type=Path, help="the file to write: sentence TAB paraphrase")
    options.add_argument("--corpus", default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    options.add_argument("--model", default="bundled:smollm2")
    options.add_argument("--sentences", type=int, default=2_560)
    options.add_argument("--seed", type=int, default=1)
    return options


def main() -> None:
    args = parser().parse_args()

    rows = prepare(args.corpus).dataset
    drawn = np.random.default_rng(args.seed).choice(len(rows), args.sentences, replace=False)
    sentences = sorted(
        (" ".join(rows[int(place)]["sentence"].split()) for place in drawn), key=len
    )  # of one length in a batch
    tried = args.out.with_suffix(".tried")
    done = int(tried.read_text()) if tried.exists() else 0
    model = CausalModel(args.model)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for begin in range(done, len(sentences), BATCH):
        batch = sentences[begin : begin + BATCH]
        pairs = [(a, b) for a, b in zip(batch, rewritten(model, batch), strict=True) if is_paraphrase(a, b)]
        with args.out.open("a", encoding="utf-8") as file:
            file.writelines(f"{sentence}\t{text}\n" for sentence, text in pairs)
        tried.write_text(str(begin + len(batch)))
        print(f"{begin + len(batch):,} of {len(sentences):,} sentences", flush=True)
    kept = [line.split("\t")[0] for line in args.out.read_text(encoding="utf-8").splitlines()]
    Path(f"{args.out}.txt").write_text("".join(f"{sentence}\n" for sentence in kept), encoding="utf-8")
    print(f"{len(kept):,} paraphrases; {len(sentences) - len(kept):,} answers were left out")


if __name__ == "__main__":
    main()
