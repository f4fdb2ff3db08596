"""Sentence vectors from characters, fitted on text alone: they need no base, no tokenizer and no known language.

A text is a bag of parts. Of a word, they are its first four characters, and its n-grams of three and four characters;
of a script without blanks, its characters and words; of any text, its numbers and its marks of punctuation. A part is
weighted by its kind and its inverse document frequency (IDF). The bag x has one number per part. To make it
dense, its coordinates p = A x on the principal axes A of a corpus are weighted by whitening, and the rest, x - A'p,
is a count sketch (Charikar, Chen and Farach-Colton 2002): each part is added to some numbers, chosen by its hash, with
signs that the hash chooses as well. A product of two sketches is, on average, the product of the bags. Parts
that do not occur in the corpus are sketched as well.

Letters of the shapes: B texts, N parts of the texts of a batch, V listed parts, A axes, D numbers of the sketch.
"""

import json
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import InputModule
from torch import Tensor
from torch.nn import functional as F

from likewise.corpus.words import has_unspaced, with_blanks
from likewise.encoder.modules import Features, hub_arguments
from likewise.errors import LikewiseError

WEIGHTS = {
    "beginning": 1.0,
    "trigram": 0.51,
    "fourgram": 0.27,
    "number": 2.7,
    "mark": 1.0,
    "character": 1.0,
    "word": 0.3,
}
"""Weight of a part by its kind; chosen on STS-B dev in German, Spanish, Polish, Chinese and English."""
BEGINNING = 4
"""Number of characters at the beginning of a word that approximate its stem."""
LISTED = 50_000
"""Maximum number of parts that have a frequency and axes of their own; the others count as parts of a single text."""
VARIANCE = 0.01
"""Constant that whitening adds to the variance of each axis, a mean over the texts of the corpus."""
_CODES = {kind: chr(ord("a") + i) for i, kind in enumerate(WEIGHTS)}  # the first character of a part
_WEIGHT = {_CODES[kind]: weight for kind, weight in WEIGHTS.items()}
_HASHES = 4  # numbers of the sketch to which a part is added
_MOST_FITTED = 20_000  # texts of which the axes are computed
_LEAST = 1e-3  # idf of a part of all texts
_NAMES = "parts.json"


class CharacterVectorsError(LikewiseError):
    """Raised if vectors of characters cannot be fitted; the message names the cure."""


def parts_of(text: str) -> Counter[str]:
    """Return the parts of a text with their counts; the first character of a part is the code of its kind.

    >>> sorted(part[1:] for part in parts_of("Ab 12!"))
    [' 12', ' 12 ', ' ab', ' ab ', '!', '12', '12', '12 ', 'ab', 'ab ']
    """
    parts: Counter[str] = Counter()
    text = with_blanks(unicodedata.normalize("NFKC", text).casefold())
    for kind, group in groupby(text, key=_kind):
        token = "".join(group)
        if kind == "mark":
            parts.update(_CODES["mark"] + mark for mark in token)
        elif kind == "letters" and has_unspaced(token):
            parts.update(_CODES["character"] + character for character in token)
            parts[_CODES["word"] + token] += 1
        elif kind == "letters":
            parts.update(_parts_of_word(token))
    return parts


class CharacterVectors(InputModule):
    """A module from texts to vectors of their characters; `fit_character_vectors` makes it.

    Args:
        parts: V parts of the corpus, the most frequent first.
        axes: A, number of principal axes.
        width: D, numbers of the sketch; a vector has A + D.
        seed: Seed of the hash.
    """

    config_file_name: str = "character_vectors_config.json"
    config_keys: list[str] = ["axes", "width", "seed"]  # noqa: RUF012 - the base class declares it so

    hashes: Tensor
    idf: Tensor
    table: Tensor
    shrink: Tensor
    sketched: Tensor

    def __init__(self, parts: Sequence[str], axes: int, width: int, seed: int = 1) -> None:
        super().__init__()
        self.parts, self.axes, self.width, self.seed = list(parts), axes, width, seed
        self.row = {part: row for row, part in enumerate(self.parts, 1)}
        keys = [hash_of(part, seed) for part in self.parts]
        self.register_buffer("hashes", torch.tensor(keys, dtype=torch.long))  # (V,)
        self.register_buffer("idf", torch.zeros(len(self.parts) + 1))  # row 0 is of parts that are not listed
        self.register_buffer("table", torch.zeros(len(self.parts) + 1, axes))  # (V + 1, A)
        self.register_buffer("shrink", torch.ones(axes))  # what whitening multiplies the coordinates by
        self.register_buffer("sketched", torch.zeros(width, axes))  # (D, A) sketches of the axes

    def get_embedding_dimension(self) -> int:
        """Return A + D."""
        return self.axes + self.width

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: object) -> Features:
        """Return the parts of texts, one text after the other.

        Returns:
            {'input_ids': (N,) rows of the table, 'hashes': (N,), 'counts': (N,) the weights of the parts without their
            IDF, 'offsets': (B,) the first part of each text}.
        """
        rows: list[int] = []
        hashes: list[int] = []
        weights: list[float] = []
        offsets = []
        for text in inputs:
            offsets.append(len(rows))
            for part, count in parts_of((prompt or "") + text).items():
                rows.append(self.row.get(part, 0))
                hashes.append(hash_of(part, self.seed))
                weights.append(_WEIGHT[part[0]] * (1 + math.log(count)))
        return {
            "input_ids": torch.tensor(rows, dtype=torch.long),
            "hashes": torch.tensor(hashes, dtype=torch.long),
            "counts": torch.tensor(weights),
            "offsets": torch.tensor(offsets, dtype=torch.long),
        }

    def forward(self, features: Features, **kwargs: object) -> Features:
        """Add 'sentence_embedding' (B, A + D), of length 1; zeros for a text without parts."""
        rows, offsets = features["input_ids"], features["offsets"]
        weights = features["counts"] * self.idf[rows]
        rest = sketch(features["hashes"], weights, offsets, self.width)
        if self.axes:
            at = F.embedding_bag(rows, self.table, offsets, mode="sum", per_sample_weights=weights)  # (B, A)
            rest = torch.cat([at * self.shrink, rest - at @ self.sketched.T], dim=1)
        features["sentence_embedding"] = F.normalize(rest, dim=1)
        return features

    def save(self, output_path: str, *args: object, safe_serialization: bool = True, **kwargs: object) -> None:
        """Write the parts (parts.json), the numbers (safetensors) and the configuration."""
        self.save_config(output_path)
        Path(output_path, _NAMES).write_text(json.dumps(self.parts, ensure_ascii=False), encoding="utf-8")
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: object, **kwargs: object) -> Self:
        """Load the module from a folder or the hub."""
        hub = hub_arguments(subfolder, kwargs)
        config = cls.load_config(model_name_or_path, **hub)
        folder = Path(str(cls.load_dir_path(model_name_or_path, **hub)))
        parts = json.loads((folder / _NAMES).read_text(encoding="utf-8"))
        return cls.load_torch_weights(model_name_or_path, model=cls(parts, **config), **hub)


def fit_character_vectors(
    texts: Sequence[str], axes: int = 64, width: int = 1984, seed: int = 1, step: Callable[[int], object] = bool
) -> CharacterVectors:
    """Return the vectors of a corpus.

    The IDF of a part that d of T texts hold is log((1 + T) / (1 + d)). The axes are the first right singular vectors
    of the bags, of length 1 each, of at most 20,000 texts; a coordinate with the mean square c is multiplied by
    sqrt(a / (a + c)), with a = 0.01.

    Args:
        texts: T texts.
        axes: A, at most; a corpus of few texts has fewer.
        width: D.
        seed: Seed of the hash, of the texts that are taken and of the first guess of the axes.
        step: Function that is called with the number of counted texts.

    Raises:
        CharacterVectorsError: If fewer than two texts hold a letter, a digit or a mark.
    """
    held: Counter[str] = Counter()
    filled = 0
    for text in texts:
        parts = parts_of(text)
        held.update(parts.keys())
        filled += bool(parts)
        step(1)
    if filled < 2:
        raise CharacterVectorsError(
            f"two texts or more with letters are needed, and there are {filled}: give more text"
        )
    listed = sorted((part for part, count in held.items() if count > 1), key=lambda part: (-held[part], part))[:LISTED]
    chosen = np.random.default_rng([seed, 3]).permutation(len(texts))[:_MOST_FITTED]
    fitted = CharacterVectors(listed, min(axes, len(listed), len(chosen)), width, seed)
    counts = np.array([1, *(held[part] for part in listed)])
    fitted.idf.copy_(torch.from_numpy(np.log((1 + len(texts)) / (1 + counts)) + _LEAST))
    if fitted.axes:
        _fit_axes(fitted, [texts[row] for row in np.sort(chosen)])
    return fitted


def sketch(hashes: Tensor, weights: Tensor, offsets: Tensor, width: int) -> Tensor:
    """Return the count sketches (B, D) of bags, each part of which is added to four numbers with four signs.

    Args:
        hashes: (N,) hashes of the parts, of 64 bits: for each number 15 bits of its place and one of its sign.
        weights: (N,) weights of the parts.
        offsets: (B,) the first part of each bag.
    """
    bag = torch.bucketize(torch.arange(len(hashes), device=hashes.device), offsets, right=True) - 1
    sums = torch.zeros(len(offsets) * width, dtype=weights.dtype, device=weights.device)
    for bits in (hashes >> (16 * place) for place in range(_HASHES)):
        places = bag * width + ((bits & 0x7FFF) * width >> 15)
        sums = sums.index_add(0, places, weights * (1 - 2 * (bits >> 15 & 1)) / _HASHES**0.5)
    return sums.view(len(offsets), width)


@lru_cache(1 << 18)
def hash_of(part: str, seed: int) -> int:
    """Return the hash of a part, a signed integer of 64 bits."""
    digest = blake2b(part.encode("utf-8", "surrogatepass"), digest_size=8, salt=seed.to_bytes(8, "little"))
    return int.from_bytes(digest.digest(), "little", signed=True)


def _fit_axes(fitted: CharacterVectors, texts: Sequence[str]) -> None:
    """Set the axes, their shrinkage and their sketches by texts."""
    from scipy.sparse import csr_matrix
    from sklearn.utils.extmath import randomized_svd

    features = fitted.preprocess(texts)
    rows, offsets = features["input_ids"].numpy(), features["offsets"].numpy()
    weighted = (features["counts"] * fitted.idf[features["input_ids"]]).double().numpy()
    bag = np.repeat(np.arange(len(texts)), np.diff([*offsets, len(rows)]))
    lengths = np.sqrt(np.bincount(bag, weighted**2, minlength=len(texts)))
    known = rows > 0
    scaled = (weighted / np.maximum(lengths, 1e-12)[bag])[known].astype(np.float32)
    bags = csr_matrix((scaled, (bag[known], rows[known] - 1)), shape=(len(texts), len(fitted.parts)))
    _, strengths, axes = randomized_svd(bags, fitted.axes, n_iter=2, random_state=fitted.seed)
    fitted.table[1:] = torch.from_numpy(axes.T.copy())
    means = torch.from_numpy(strengths**2 / len(texts))
    fitted.shrink.copy_(torch.sqrt(VARIANCE / (VARIANCE + means)))
    start = torch.zeros(1, dtype=torch.long)
    for axis, weights in enumerate(fitted.table[1:].T):
        fitted.sketched[:, axis] = sketch(fitted.hashes, weights, start, fitted.width)[0]


def _parts_of_word(word: str) -> list[str]:
    padded = f" {word} "
    parts = [_CODES["beginning"] + word[:BEGINNING]]
    for kind, size in (("trigram", 3), ("fourgram", 4)):
        places = range(max(1, len(padded) - size + 1))
        parts += [_CODES[kind] + padded[place : place + size] for place in places]
    digits = "".join(character if character.isdecimal() else " " for character in word)
    return parts + [_CODES["number"] + number for number in digits.split()]


@lru_cache(1 << 16)
def _kind(character: str) -> str:
    """Return what a character belongs to: "letters" (with digits and accents), "mark" or "" for white space."""
    category = unicodedata.category(character)
    if category[0] in "LMN":
        return "letters"
    return "" if character.isspace() or category[0] in "CZ" else "mark"
