"""Figure 3 of GCLSR: which words of a sentence its word attention holds to be important.

    python benchmarks/gclsr/attention.py

The attention has no parameters, so that training does not change it unless the words are trained. The importance of a
word is the sum over the sentence's words j of x_i . x_j / sqrt(D): what algorithm 1 multiplies the word's vector by. It
is given for the word vectors as they are, which is the paper's way, and with frequent words made short, the default.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from likewise.corpus import prepare
from likewise.encoder.text_cnn import attend
from likewise.encoder.word_vectors import WordVectors
from likewise.recipes import find_recipe
from likewise.runs.cache import data_folder

SENTENCE = "the performances are immaculate , with roussillon providing comic relief ."
"""Of SST-2. The figure's four words of the largest importance all stand in it."""


def importance(vectors: WordVectors, sentence: str) -> tuple[list[str], np.ndarray]:
    """The words of a sentence and the importance of each (T,)."""
    features = vectors.preprocess([sentence])
    names = vectors.tokenizer.convert_ids_to_tokens(features["input_ids"][0].tolist())
    with torch.no_grad():
        found = vectors(features)["token_embeddings"]  # (1, T, D)
        attended = attend(found, features["attention_mask"])
    # S_i is the factor between the two, read off at the dimension whose value is farthest from zero.
    at = found.abs().argmax(dim=2, keepdim=True)
    return names, (attended.gather(2, at) / found.gather(2, at))[0, :, 0].numpy()


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("sentence", nargs="?", default=SENTENCE)
    found.add_argument("--base", default="bundled:glove", help="word vectors")
    found.add_argument("--corpus", default=data_folder() / "wikipedia/sentences-250k.txt.gz", help="counts the words")
    found.add_argument("--sentences", type=int, default=10_000, help="of the corpus")
    return found


def main() -> None:
    args = parser().parse_args()
    text = prepare(Path(args.corpus)).dataset["sentence"][: args.sentences]
    recipe, columns = find_recipe("gclsr"), []
    for weighted in (False, True):
        encoder = recipe.build_encoder(args.base, recipe.options("cpu", weighted=weighted), [*text, args.sentence])
        names, found = importance(encoder[0], args.sentence)
        columns.append(found)
    print("| word | as they are | place | frequent words short | place |\n| --- | ---: | ---: | ---: | ---: |")
    places = [(-column).argsort().argsort() + 1 for column in columns]
    for i, name in enumerate(names):
        cells = (f"{column[i]:.2f} | {place[i]}" for column, place in zip(columns, places, strict=True))
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
