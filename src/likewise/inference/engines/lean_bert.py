"""A BERT-like transformer without the calls of its hundred modules, and, for many texts, without padding.

In transformers, a sentence passes through about a hundred `forward` methods, which collect outputs, check for hooks and
create masks. The same products in one loop give bitwise identical vectors (`padded`). For many texts, the rows of all
tokens are concatenated without padding, the query, key and value are computed by one product, and attention runs on the
texts of each length without a mask (`packed`); the vectors are equal up to rounding.

Letters of the shapes: B sentences of a batch, T tokens of the longest, N tokens of all, D hidden, H heads.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.models.bert.modeling_bert import BertModel
from transformers.models.roberta.modeling_roberta import RobertaModel
from transformers.models.xlm_roberta.modeling_xlm_roberta import XLMRobertaModel

from likewise.encoder.attention import is_hooked, is_plain_layer, only_pooled_token
from likewise.encoder.modules import Features, parts_of
from likewise.inference.engines.engine import INPUTS, TOKENS

_MODELS = (BertModel, RobertaModel, XLMRobertaModel)
_OUTPUT = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
"""What a Transformer of sentence-transformers takes of the outputs of its model."""

_JOINED: WeakKeyDictionary[nn.Module, tuple[object, Tensor, Tensor]] = WeakKeyDictionary()
"""The joined weights of each attention, with the state of the weights that they were made of."""


class LeanBert:
    """The modules of an encoder in sequence, the first of them, of BERT's kind, in one loop.

    Args:
        model: An encoder that `lean_bert` takes.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        first, *self.rest = list(model)
        self.embeddings: Any = first.auto_model.embeddings  # type: ignore[union-attr]
        self.layers: Any = first.auto_model.encoder.layer  # type: ignore[union-attr]

    def padded(self, ids: np.ndarray, mask: np.ndarray) -> Features:
        """Return the features of a batch, equal to the model's own to the last bit.

        Args:
            ids, mask: (B, T) int64 each.
        """
        features = dict(zip(INPUTS, map(torch.from_numpy, (ids, mask)), strict=True))
        sentences, tokens = ids.shape
        hidden = self.embeddings(input_ids=features[INPUTS[0]])
        hidden_from = None  # as in transformers, which makes no mask where there is no padding
        if not mask.all():
            hidden_from = features[INPUTS[1]].bool()[:, None, None, :].expand(sentences, 1, tokens, tokens)
        for layer in self.layers:
            attention = layer.attention.self
            parts = (attention.query, attention.key, attention.value)
            query, key, value = (
                F.linear(hidden, part.weight, part.bias)
                .view(sentences, tokens, attention.num_attention_heads, -1)
                .transpose(1, 2)
                for part in parts
            )  # (B, H, T, D/H) each
            context = F.scaled_dot_product_attention(query, key, value, attn_mask=hidden_from, scale=attention.scaling)
            hidden = _after_attention(layer, context.transpose(1, 2).reshape(sentences, tokens, -1), hidden)
        return self._finished(features | {TOKENS: hidden})

    def packed(self, ids: np.ndarray, mask: np.ndarray) -> Features:
        """Return the features of a batch, equal to the model's own up to rounding; padding has vectors of zeros.

        Args:
            ids, mask: (B, T) int64 each; texts of one length stand together, as in batches by `by_budget`.
        """
        features = dict(zip(INPUTS, map(torch.from_numpy, (ids, mask)), strict=True))
        embedded = self.embeddings(input_ids=features[INPUTS[0]])  # (B, T, D)
        whole = bool(mask.all())
        there = torch.from_numpy(np.flatnonzero(mask))
        rows = embedded.flatten(0, 1)
        hidden = rows if whole else rows[there]  # (N, D)
        groups = _of_one_length(mask.sum(1))
        context = torch.empty_like(hidden)
        for layer in self.layers:
            attention = layer.attention.self
            made = F.linear(hidden, *_joined(attention))  # (N, 3D)
            for start, end, texts in groups:
                shape = texts, (end - start) // texts, attention.num_attention_heads, -1
                query, key, value = (part.view(shape).transpose(1, 2) for part in made[start:end].chunk(3, 1))
                mixed = F.scaled_dot_product_attention(query, key, value, scale=attention.scaling)
                context[start:end].view(shape).copy_(mixed.transpose(1, 2))
            hidden = _after_attention(layer, context, hidden)
        if not whole:
            hidden = torch.zeros_like(rows).index_copy_(0, there, hidden)
        return self._finished(features | {TOKENS: hidden.view_as(embedded)})

    def _finished(self, features: Features) -> Features:
        for module in self.rest:
            features = module(features)
        return features


def lean_bert(model: SentenceTransformer, *, whole: bool) -> LeanBert | None:
    """Return the encoder in this form; None if its vectors would differ.

    Args:
        model: The encoder, in evaluation mode.
        whole: Whether the last layer computes all tokens; otherwise, a model that pools a single token is not
            supported, because `only_pooled_token` saves more.
    """
    first: Any = model[0]
    transformer: Any = getattr(first, "auto_model", None)
    if type(first) is not Transformer or type(transformer) not in _MODELS or model.device.type != "cpu":
        return None
    if first.modality_config != _OUTPUT or first.module_output_name != TOKENS:
        return None
    config: Any = transformer.config
    layers = transformer.encoder.layer
    if config._attn_implementation != "sdpa" or not all(is_plain_layer(layer, config) for layer in layers):
        return None
    if not all(_is_plain(part) for layer in layers for part in parts_of(layer)):
        return None
    if is_hooked(model) or torch.is_autocast_enabled("cpu"):
        return None
    if not whole:
        with only_pooled_token(model) as is_single:
            if is_single:
                return None
    return LeanBert(model)


def _joined(attention: Any) -> tuple[Tensor, Tensor]:
    """Return weight (3D, D) and bias (3D,) of query, key and value in one, rebuilt if one of them has changed."""
    parts = (attention.query, attention.key, attention.value)
    pairs = [(part.weight, part.bias) for part in parts]
    state = [(each.data_ptr(), 0 if each.is_inference() else each._version) for pair in pairs for each in pair]
    known = _JOINED.get(attention)
    if known is None or known[0] != state:
        weights, biases = zip(*pairs, strict=True)
        known = _JOINED[attention] = state, torch.cat(weights), torch.cat(biases)
    return known[1:]


def _after_attention(layer: Any, context: Tensor, hidden: Tensor) -> Tensor:
    """Return what a layer makes of its attention's output, (B, T, D) or (N, D) each."""
    output = layer.attention.output
    mixed = F.linear(context, output.dense.weight, output.dense.bias).add_(hidden)
    mixed = _normalised(output.LayerNorm, mixed)
    inner = layer.intermediate.intermediate_act_fn(
        F.linear(mixed, layer.intermediate.dense.weight, layer.intermediate.dense.bias)
    )
    made = F.linear(inner, layer.output.dense.weight, layer.output.dense.bias).add_(mixed)
    return _normalised(layer.output.LayerNorm, made)


def _normalised(norm: nn.LayerNorm, rows: Tensor) -> Tensor:
    return F.layer_norm(rows, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


def _of_one_length(lengths: np.ndarray) -> list[tuple[int, int, int]]:
    """Return the neighbors of one length among B texts: their first row, the row behind them, and how many they are.

    >>> _of_one_length(np.array([5, 5, 3, 0]))
    [(0, 10, 2), (10, 13, 1)]
    """
    firsts = np.flatnonzero(np.diff(lengths, prepend=-1))
    counts = np.diff(firsts, append=len(lengths))
    ends = np.cumsum(lengths)
    groups = [(int(ends[i] - lengths[i]), int(ends[i + n - 1]), int(n)) for i, n in zip(firsts, counts, strict=True)]
    return [group for group in groups if group[1] > group[0]]


def _is_plain(part: nn.Module) -> bool:
    """Return whether a part computes what its class says: no adapter, quantization or `forward` of its own."""
    kinds = (nn.Linear, nn.LayerNorm, nn.Dropout)
    known = type(part) in kinds or type(part).__module__.startswith(("transformers.", "torch.nn.modules.activation"))
    return known and not part.training and "forward" not in vars(part)
