"""Word vectors: the first module of an encoder, built from a file or from a sentence encoder.

The quality of a light encoder is limited by its word vectors. A sentence encoder that encodes each word as a separate
text provides such vectors for a vocabulary (the idea of model2vec). Frequent words are down-weighted by smooth inverse
frequency (Arora et al. 2017, "A simple but tough-to-beat baseline"), because the encoder's vector of 'the' is as long
as its vector of 'volcano'.

Letters of the shapes: V words and sub-words, D numbers, E numbers of the encoder's vectors.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import InputModule, StaticEmbedding
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel, WordPiece
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from likewise.corpus.words import with_blanks
from likewise.encoder.location import LoadError, check_loadable
from likewise.encoder.modules import Features, hub_arguments
from likewise.encoder.saved_models import open_model
from likewise.encoder.settings import hash_of_model
from likewise.encoder.vector_files import WordTable, WordVectorError, check_word_vectors, read_word_vectors
from likewise.runs.cache import cached
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record

_Array = TypeVar("_Array", np.ndarray, Tensor)
PREFIX = "distilled:"
SMOOTHING = 1e-3
"""a of smooth inverse frequency; Arora et al. 2017 give 1e-4 to 1e-3."""
_WORD_VECTORS = "vectors.npy"
_BLOCK = 4096  # words between two looks at the bar
_AT_A_TIME = 10_000
PAD, UNKNOWN = "[PAD]", "[UNK]"
UNKNOWN_ID = 1
MAX_WORDS = 256
"""The default number of words read of a text."""
# Cut as the texts of the common vectors were (the Penn treebank's way): do n't, cat 's, u.s., 3.5, words, punctuation.
_WORD = r"(?:\p{L}\.){2,}|\w+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\d+(?:[.,:]\d+)*|\w+|[^\w\s]"


def is_distilled(source: str) -> bool:
    """Return whether a source of word vectors names an encoder: `distilled:bundled:minilm`."""
    return source.startswith(PREFIX)


def load_encoder(source: str) -> tuple[Any, bool]:
    """Load the encoder that a source names; return it, and whether it ignores case."""
    try:
        model = open_model(SentenceTransformer, check_loadable(source.removeprefix(PREFIX)))
    except LoadError as error:
        raise WordVectorError(f"{source}: {error}") from None
    if not hasattr(model.tokenizer, "backend_tokenizer"):
        raise WordVectorError(f"{source}: the encoder has no vocabulary of words; give a transformer")
    return model.eval(), model.tokenizer("Word").input_ids == model.tokenizer("word").input_ids


def count_words(tokenizer: Tokenizer, sentences: Iterable[str]) -> Counter[str]:
    """Count the words of sentences as a tokenizer splits them, before it cuts them into sub-words."""
    normalize = tokenizer.normalizer.normalize_str if tokenizer.normalizer else str
    cut = tokenizer.pre_tokenizer.pre_tokenize_str
    return Counter(word for sentence in sentences for word, _ in cut(normalize(sentence)))


def distill(source: str, counts: Counter[str], dimension: int, model: SentenceTransformer, lower: bool) -> WordTable:
    """Return the vectors of a corpus's words and of the whole words in an encoder's own vocabulary.

    The vector of a word is its normalized encoding as a text, minus the mean over the corpus's tokens, times a / (a +
    p) with a = 1e-3 and p its relative frequency in the corpus.

    Args:
        source: Name of the table.
        counts: Counts of the corpus's words, in lower case if the encoder uses it.
        dimension: Number D of principal components of each vector; 0 uses the encoder's size.
        model, lower: Output of `load_encoder`.

    Returns:
        The words of the corpus in descending order of their frequency, followed by the other words.
    """
    own = [word for word in model.tokenizer.get_vocab() if word.isalpha() and len(word) > 1]
    words = list(dict.fromkeys([*_most_frequent(counts), *sorted(word.lower() if lower else word for word in own)]))
    vectors = encoded_words(model, words)
    total = sum(counts.values()) or 1
    shares = np.array([counts[word] / total for word in words], dtype=np.float32)
    mean = shares @ vectors / shares.sum() if counts else vectors.mean(axis=0)
    vectors = frequency_weighted(vectors, shares, mean)  # (V, E)
    if dimension and dimension != vectors.shape[1]:
        vectors = vectors @ _principal_axes(source, vectors.T @ vectors, dimension)
    return WordTable(words, vectors, source)


def build_static_words(
    source: str, sentences: Sequence[str], words: int, vectors_from: str = ""
) -> tuple[StaticEmbedding, int]:
    """Return the untrained mean of word vectors, and the number of the encoder's dimensions.

    The encoder's sub-words are joined by the frequent words of a corpus, so that a frequent word has a vector of its
    own and any other word the vectors of its pieces (the vocabulary of model2vec's distillation). A vector is the
    encoder's normalized vector of the word or sub-word as a text, less the mean over the corpus's tokens, times a / (a
    + p) (see `frequency_weighted`). With `vectors_from` it is that file's instead, and a word that the file does not
    hold starts at random.

    Args:
        words: Number of the corpus's most frequent words to add, without words that a WordPiece tokenizer already has.
            The vocabulary of any other tokenizer stays as it is.
        vectors_from: Word vectors to start from, as in `read_word_vectors`.
    """
    model, _ = load_encoder(source)
    tokenizer = with_frequent_words(model.tokenizer.backend_tokenizer, sentences, words)
    vocabulary = tokenizer.get_vocab()
    texts = [_text(model, piece) for piece in sorted(vocabulary, key=vocabulary.__getitem__)]
    size = int(model.get_embedding_dimension())
    vectors = _looked_up(vectors_from, texts, size**-0.5) if vectors_from else encoded_words(model, texts)
    counts = np.zeros(len(vectors), dtype=np.int64)
    for start in range(0, len(sentences), _AT_A_TIME):
        encoded = tokenizer.encode_batch_fast(list(sentences[start : start + _AT_A_TIME]), add_special_tokens=False)
        counts += np.bincount(np.concatenate([text.ids for text in encoded]).astype(np.int64), minlength=len(counts))
    shares = (counts / max(1, counts.sum())).astype(np.float32)
    vectors = frequency_weighted(vectors, shares, shares @ vectors)
    return StaticEmbedding(tokenizer, embedding_weights=torch.from_numpy(vectors), base_model=source), size


def with_frequent_words(tokenizer: Tokenizer, sentences: Sequence[str], words: int) -> Tokenizer:
    """Return a WordPiece tokenizer with the most frequent words of a corpus as further entries, without special tokens.

    Args:
        words: Number of words to add. Words that occur once are never added.
    """
    parts: Record = json.loads(tokenizer.to_str())
    parts |= {"padding": None, "truncation": None, "post_processor": None, "added_tokens": []}
    if isinstance(tokenizer.model, WordPiece):
        vocabulary, counts = parts["model"]["vocab"], count_words(tokenizer, sentences if words else ())
        fresh = [word for word in _most_frequent(counts) if counts[word] > 1 and word not in vocabulary]
        vocabulary |= {word: len(vocabulary) + i for i, word in enumerate(fresh[:words])}
    return Tokenizer.from_str(json.dumps(parts))


def encoded_words(model: SentenceTransformer, words: Sequence[str]) -> np.ndarray:
    """Return the encoder's normalized vectors (V, D) of the words, cached for the next run.

    They are sentence-transformers' own, without a `TextEncoder`: words of a few tokens gain nothing by its batches, and
    this room is below the one that encodes.
    """

    def make(folder: Path) -> None:
        blocks = []
        with Progress(quiet=len(words) <= _BLOCK).bar("encoding the words with the base", len(words)) as bar:
            for start in range(0, len(words), _BLOCK):
                block = list(words[start : start + _BLOCK])
                blocks.append(model.encode(block, batch_size=128, normalize_embeddings=True, show_progress_bar=False))
                bar.advance(len(block))
        np.save(folder / _WORD_VECTORS, np.concatenate(blocks))

    vectors: np.ndarray = np.load(cached("distilled", hash_of_model(model, words), make) / _WORD_VECTORS)
    return vectors


def frequency_weighted(vectors: _Array, shares: _Array, mean: _Array) -> _Array:
    """Return word vectors without their mean, frequent words scaled down: (v - mean) a / (a + p).

    The weight follows Arora, Liang and Ma 2017; the mean replaces their first principal component, which
    needs the sentences.

    Args:
        shares: (V,) p, relative frequency of each word in the corpus.
        mean: (D,) mean vector, which is subtracted.
    """
    return (vectors - mean) * (SMOOTHING / (SMOOTHING + shares))[:, None]


def word_tokenizer(words: Sequence[str], lower: bool, max_words: int = MAX_WORDS) -> PreTrainedTokenizerFast:
    """Return a Hugging Face tokenizer of whole words.

    Args:
        words: Vocabulary; word i has the id i + 2, after padding (0) and the unknown word (1).
    """
    vocabulary = {PAD: 0, UNKNOWN: UNKNOWN_ID} | {word: i + 2 for i, word in enumerate(words)}
    backend = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    steps: list[normalizers.Normalizer] = [
        normalizers.NFC(),
        normalizers.Replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"),
    ]
    backend.normalizer = normalizers.Sequence([*steps, normalizers.Lowercase()] if lower else steps)
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD), behavior="removed", invert=True)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=PAD,
        unk_token=UNKNOWN,
        split_special_tokens=True,  # '[UNK]' in a text is plain characters
        model_max_length=max_words,
        model_input_names=["input_ids", "attention_mask"],
    )


class WordVectors(InputModule):
    """A module from texts to fixed word vectors (B, T, D).

    Args:
        vectors: (V + 2, D): of padding (zeros), of every unknown word, and of the words.
        report: Description of the source of the vectors and their coverage of the corpus.
    """

    config_keys: list[str] = ["shape", "max_seq_length", "report"]  # noqa: RUF012 - the base class declares it so
    config_file_name: str = "word_vectors_config.json"

    def __init__(
        self, tokenizer: PreTrainedTokenizerFast, vectors: Tensor, max_seq_length: int = MAX_WORDS, report: str = ""
    ) -> None:
        super().__init__()
        if len(tokenizer) != len(vectors):
            raise WordVectorError(f"{len(tokenizer):,} words and {len(vectors):,} vectors do not match")
        self.tokenizer = tokenizer
        self.max_seq_length = max_seq_length
        self.report = report
        self.vectors = nn.Embedding.from_pretrained(vectors, freeze=True, padding_idx=0)

    @property
    def shape(self) -> list[int]:
        """The shape of the table, [V + 2, D]."""
        return list(self.vectors.weight.shape)

    def get_embedding_dimension(self) -> int:
        """Return the dimension D of the vectors."""
        return self.shape[1]

    def preprocess(
        self, inputs: Any, prompt: str | None = None, max_length: int | None = None, **kwargs: object
    ) -> Features:
        """Tokenize texts to {'input_ids', 'attention_mask'}, each (B, T) with T between 1 and `max_length`."""
        texts = [with_blanks((prompt or "") + text) for text in inputs]
        tokenizer: Any = self.tokenizer
        token_ids = tokenizer(texts, truncation=True, max_length=max_length or self.max_seq_length)["input_ids"]
        longest = max(1, *map(len, token_ids)) if token_ids else 1  # a text of no word is one padding
        lengths = torch.tensor([len(ids) for ids in token_ids], dtype=torch.long)
        padded = [ids + [0] * (longest - len(ids)) for ids in token_ids]
        return {
            "input_ids": torch.tensor(padded, dtype=torch.long).view(-1, longest),
            "attention_mask": (torch.arange(longest) < lengths[:, None]).long(),
        }

    def forward(self, features: Features, **kwargs: object) -> Features:
        """Look up 'input_ids' (B, T) as 'token_embeddings' (B, T, D)."""
        features["token_embeddings"] = self.vectors(features["input_ids"])
        return features

    def save(self, output_path: str, *args: object, safe_serialization: bool = True, **kwargs: object) -> None:
        """Write the words (tokenizer.json), the vectors (safetensors) and the configuration."""
        self.save_config(output_path)
        self.save_tokenizer(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: object, **kwargs: object) -> Self:
        """Load the module from a folder or the hub."""
        hub = hub_arguments(subfolder, kwargs)
        config = cls.load_config(model_name_or_path, **hub)
        folder = str(cls.load_dir_path(model_name_or_path, **hub))
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        return cls.load_torch_weights(
            model_name_or_path,
            model=cls(tokenizer, torch.zeros(config["shape"]), config["max_seq_length"], config["report"]),
            **hub,
        )


def check_source(source: str, dimension: int = 0, trust_pickle: bool = False) -> None:
    """Check a source of word vectors before the corpus is read; takes the arguments of `build_word_vectors`."""
    if is_distilled(source):
        load_encoder(source)
    else:
        check_word_vectors(source, dimension, trust_pickle)


def build_word_vectors(
    source: str,
    sentences: Iterable[str] | None = None,
    most_frequent: int = 100_000,
    dimension: int = 0,
    max_words: int = MAX_WORDS,
    weighted: bool = False,
    trust_pickle: bool = False,
) -> WordVectors:
    """Return the module with the words of a corpus and the most frequent words of the file.

    A cased word of the corpus that the file knows in lower case only has the lower-case word's vector. The unknown word
    has the mean of the kept vectors: one and the same in every build, every call and every copy of the model.

    Args:
        source: Word vectors as in `read_word_vectors`, or an encoder (`distilled:bundled:minilm`) as in
            `distilled_vectors`.
        sentences: Sentences of the corpus; None only keeps the most frequent words.
        most_frequent: Number of the file's first words to keep in addition to the corpus's words.
        weighted: Whether to scale frequent words down and subtract the mean, see `frequency_weighted`; an encoder's
            words always are.
    """
    if is_distilled(source):
        encoder, lower = load_encoder(source)
        counts = count_words(word_tokenizer((), lower).backend_tokenizer, map(with_blanks, sentences or ()))
        table = distill(source, counts, dimension, encoder, lower)
        most_frequent = len(table.words)
        weighted = False  # they are
    else:
        table = read_word_vectors(source, dimension, trust_pickle)
        lower = not any(word != word.lower() for word in islice(table.words, 50_000))
        counts = count_words(word_tokenizer((), lower).backend_tokenizer, map(with_blanks, sentences or ()))
    words, rows, known = choose_words(table, counts, most_frequent)
    report = (
        f"{source}: {len(table.words):,} words of {table.vectors.shape[1]} dimensions, of which {len(words):,} are used"
    )
    if sentences is not None:
        total = sum(counts.values())
        if not known:
            raise WordVectorError(
                f"{source}: none of the corpus's {len(counts):,} words has a vector: give word vectors of the "
                "corpus's language"
            )
        report += f"; {known / total:.1%} of the corpus's {total:,} tokens are known"
    table_vectors = torch.from_numpy(np.array(table.vectors[rows], dtype=np.float32))  # (V, D)
    if weighted and counts:
        total = sum(counts.values())
        shares = torch.tensor([counts[word] / total for word in words])  # (V,)
        table_vectors = frequency_weighted(table_vectors, shares, (shares @ table_vectors) / shares.sum())
    vectors = torch.cat([torch.zeros_like(table_vectors[:1]), table_vectors.mean(dim=0, keepdim=True), table_vectors])
    return WordVectors(word_tokenizer(words, lower, max_words), vectors, max_words, report)


def choose_words(table: WordTable, counts: Counter[str], most_frequent: int) -> tuple[list[str], list[int], int]:
    """Return the words to keep, the row of each in the table, and how many tokens of the corpus they cover."""
    row_of = table.row_of
    chosen = {word: row_of[word] for word in islice(table.words, most_frequent)}
    known = 0
    for word in sorted(counts):
        form = word if word in row_of else word.lower()
        if form in row_of:
            chosen[word] = row_of[form]
            known += counts[word]
    for special in (PAD, UNKNOWN):
        chosen.pop(special, None)
    return list(chosen), list(chosen.values()), known


def _looked_up(source: str, texts: Sequence[str], spread: float) -> np.ndarray:
    """Return the vectors of a file for texts, (V, D); random vectors of the same size for unknown texts.

    Their numbers get the spread that an encoder's have, as a step of Adam moves each number by the same.
    """
    table = read_word_vectors(source)
    rows = np.array([table.row_of.get(text, -1) for text in texts])
    known = np.asarray(table.vectors[rows[rows >= 0]], dtype=np.float32)
    if not len(known):
        raise WordVectorError(
            f"{source}: it contains none of the corpus's words; give word vectors of the same language"
        )
    chance = np.random.default_rng(1).standard_normal((len(texts), known.shape[1]))
    vectors = known.mean(axis=0) + known.std(axis=0) * chance
    vectors[rows >= 0] = known
    scaled: np.ndarray = (vectors * (spread / known.std())).astype(np.float32)
    return scaled


def _text(model: SentenceTransformer, piece: str) -> str:
    """Return the characters that a sub-word stands for: 'ing' for '##ing', 'the' for the 'Ġthe' of a byte-level BPE."""
    if isinstance(model.tokenizer.backend_tokenizer.model, WordPiece):
        return piece.removeprefix("##") or piece
    return model.tokenizer.convert_tokens_to_string([piece]).strip() or piece


def _most_frequent(counts: Counter[str]) -> list[str]:
    """Return all words, the most frequent first, and equally frequent ones by the alphabet."""
    return sorted(counts, key=lambda word: (-counts[word], word))


def _principal_axes(source: str, products: np.ndarray, dimension: int) -> np.ndarray:
    """Return the first principal axes (E, D) of vectors, by the products of their numbers (E, E)."""
    if dimension > len(products):
        raise WordVectorError(f"{source}: its vectors have {len(products)} dimensions, not {dimension}: request fewer")
    _, columns = np.linalg.eigh(products)  # ascending
    return columns[:, : -dimension - 1 : -1].astype(np.float32)
