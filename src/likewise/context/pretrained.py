"""Any Hugging Face encoder-decoder as the network of the generators."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.context.network import shifted, target_places
from likewise.context.options import GeneratorOptions
from likewise.context.pieces import Padded
from likewise.context.vocabulary import Vocabulary
from likewise.context.workspace import ContextError
from likewise.errors import first_line


class Pretrained(nn.Module):
    """An encoder-decoder with the vectors of the sentence's place added to its word vectors.

    They start at zero, so that training begins with the base as it is; the token's place is the base's own affair.
    Its methods are those of `network.Transformer`.
    """

    def __init__(self, model: Any, options: GeneratorOptions) -> None:
        super().__init__()
        self.model = model
        self.options = options
        width = model.get_input_embeddings().embedding_dim
        self.sentences = nn.Embedding(2 * options.max_sentences + 1, width)
        self.target_sentences = nn.Embedding(options.max_sentences, width)
        for table in (self.sentences, self.target_sentences):
            nn.init.zeros_(table.weight)

    def encode(self, source: Padded) -> Tensor:
        """States of texts: (B, T, D)."""
        places = source.sentences + self.options.max_sentences
        vectors = self.model.get_input_embeddings()(source.ids) + self.sentences(places)
        states: Tensor = self.model.get_encoder()(
            inputs_embeds=vectors, attention_mask=source.mask.long()
        ).last_hidden_state
        return states

    def remember(self, states: Tensor) -> Tensor:
        """The states themselves (B, M, D): the base projects them itself."""
        return states

    def start(self, target: Padded, first: int) -> Tensor:
        """The decoder's word vectors: (B, T, D)."""
        places = target_places(target, self.options.max_sentences)
        vectors: Tensor = self.model.get_input_embeddings()(shifted(target, first)) + self.target_sentences(places)
        return vectors

    def finish(self, started: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """The logits of all ids: (B, T, V)."""
        from transformers.modeling_outputs import BaseModelOutput

        logits: Tensor = self.model(
            encoder_outputs=BaseModelOutput(last_hidden_state=memory),
            attention_mask=memory_mask.long(),
            decoder_inputs_embeds=started,
            use_cache=False,
        ).logits
        return logits

    def log_probabilities(self, last: Tensor, ids: Tensor) -> Tensor:
        """The log probability of each id (N,) from its logits (N, V): (N,)."""
        return -F.cross_entropy(last.float(), ids, reduction="none")

    def distribution(self, last: Tensor) -> Tensor:
        """The log probabilities of all ids from logits (N, V): (N, V)."""
        return F.log_softmax(last.float(), dim=-1)


def load_base(base: str) -> tuple[Any, Vocabulary]:
    """An encoder-decoder with its vocabulary, made as large as ours needs.

    Raises:
        ContextError: there is no such model, or it is no encoder-decoder.
    """
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(base)
        model = AutoModelForSeq2SeqLM.from_pretrained(base)
    except (OSError, ValueError) as error:
        raise ContextError(f"--base {base} is no encoder-decoder that can be loaded ({first_line(error)})") from None
    vocabulary = Vocabulary.from_pretrained(tokenizer)
    model.config.use_cache = False
    table = model.get_input_embeddings()
    if len(vocabulary) > table.num_embeddings:
        model.resize_token_embeddings(len(vocabulary), mean_resizing=False)
        table = model.get_input_embeddings()
    with torch.no_grad():
        # What starts a text means what the base starts with; what ends a sentence, what ends a text.
        start = model.config.decoder_start_token_id
        start = vocabulary.eos if start is None else start
        for new in (vocabulary.bos, *vocabulary.tasks.values()):
            table.weight[new] = table.weight[start]
        table.weight[vocabulary.sep] = table.weight[vocabulary.eos]
    return model, vocabulary
