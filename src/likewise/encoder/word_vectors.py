"""Word vectors as the first module of an encoder: words in, vectors out, saved as safetensors."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Self

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import InputModule
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from likewise.encoder.distilled_vectors import count_words, distill, frequency_weighted, is_distilled, load_encoder
from likewise.encoder.modules import hub_arguments
from likewise.encoder.vector_files import WordTable, WordVectorError, check_word_vectors, read_word_vectors

PAD, UNKNOWN = "[PAD]", "[UNK]"
UNKNOWN_ID = 1
MAX_WORDS = 256
"""The default number of words read of a text."""

# Cut as the texts of the common vectors were (the Penn treebank's way): do n't, cat 's, u.s., 3.5, words, signs.
_WORD = r"(?:\p{L}\.){2,}|\w+(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\d+(?:[.,:]\d+)*|\w+|[^\w\s]"


def word_tokenizer(words: Sequence[str], lower: bool, max_words: int = MAX_WORDS) -> PreTrainedTokenizerFast:
    """Return a Hugging Face tokenizer of whole words.

    Args:
        words: the vocabulary; word i has the id i + 2, after padding (0) and the unknown word (1).
    """
    vocabulary = {PAD: 0, UNKNOWN: UNKNOWN_ID} | {word: i + 2 for i, word in enumerate(words)}
    backend = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    steps: list[Any] = [normalizers.NFC(), normalizers.Replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")]
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
        report: where the vectors come from and how much of the corpus they know, for the user.
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
        self, inputs: Any, prompt: str | None = None, max_length: int | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Tokenize texts to {'input_ids', 'attention_mask'}, each (B, T) with T between 1 and `max_length`."""
        texts = [(prompt or "") + text for text in inputs]
        tokenizer: Any = self.tokenizer
        found = tokenizer(texts, truncation=True, max_length=max_length or self.max_seq_length)["input_ids"]
        longest = max(1, *map(len, found)) if found else 1  # a text of no word is one padding
        lengths = torch.tensor([len(ids) for ids in found], dtype=torch.long)
        padded = [ids + [0] * (longest - len(ids)) for ids in found]
        return {
            "input_ids": torch.tensor(padded, dtype=torch.long).view(-1, longest),
            "attention_mask": (torch.arange(longest) < lengths[:, None]).long(),
        }

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Look up 'input_ids' (B, T) as 'token_embeddings' (B, T, D)."""
        features["token_embeddings"] = self.vectors(features["input_ids"])
        return features

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the words (tokenizer.json), the vectors (safetensors) and the configuration."""
        self.save_config(output_path)
        self.save_tokenizer(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: Any, **kwargs: Any) -> Self:
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
        source: see `read_word_vectors`; or an encoder (`distilled:bundled:minilm`), see `distilled_vectors`.
        sentences: the corpus; None keeps the most frequent words alone.
        most_frequent: number of the file's first words to keep in addition to those of the corpus.
        weighted: shorten frequent words and take off the mean word, see `frequency_weighted`. An encoder's always are.
    """
    if is_distilled(source):
        encoder, lower = load_encoder(source)
        counts = count_words(word_tokenizer((), lower).backend_tokenizer, sentences or ())
        table = distill(source, counts, dimension, encoder, lower)
        most_frequent = len(table.words)
        weighted = False  # they are
    else:
        table = read_word_vectors(source, dimension, trust_pickle)
        lower = not any(word != word.lower() for word in islice(table.words, 50_000))
        counts = count_words(word_tokenizer((), lower).backend_tokenizer, sentences or ())
    words, rows, known = choose_words(table, counts, most_frequent)
    report = f"{source}: {len(table.words):,} words of {table.vectors.shape[1]} numbers, {len(words):,} kept"
    if sentences is not None:
        total = sum(counts.values())
        if not known:
            raise WordVectorError(
                f"{source}: none of the corpus's {len(counts):,} words has a vector: give word vectors of the "
                "corpus's language"
            )
        report += f"; {known / total:.1%} of the corpus's {total:,} tokens are known"
    kept = torch.from_numpy(np.array(table.vectors[rows], dtype=np.float32))  # (V, D)
    if weighted and counts:
        total = sum(counts.values())
        shares = torch.tensor([counts[word] / total for word in words])  # (V,)
        kept = frequency_weighted(kept, shares, (shares @ kept) / shares.sum())
    vectors = torch.cat([torch.zeros_like(kept[:1]), kept.mean(dim=0, keepdim=True), kept])
    return WordVectors(word_tokenizer(words, lower, max_words), vectors, max_words, report)


def choose_words(table: WordTable, counts: Counter[str], most_frequent: int) -> tuple[list[str], list[int], int]:
    """Return the words to keep, the row of each in the table, and how many tokens of the corpus they cover."""
    row_of = table.row_of
    chosen = {word: row_of[word] for word in islice(table.words, most_frequent)}
    known = 0
    for word in sorted(counts):
        found = word if word in row_of else word.lower()
        if found in row_of:
            chosen[word] = row_of[found]
            known += counts[word]
    for special in (PAD, UNKNOWN):
        chosen.pop(special, None)
    return list(chosen), list(chosen.values()), known
