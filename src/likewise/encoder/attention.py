"""Faster attention: the last layer for the pooled token alone, and a form that OpenVINO runs fast.

With [CLS] or the mask of a prompt as pooling, only one of the T vectors of a transformer's last layer is needed. The
keys and values are computed from all tokens, but the query and everything after the attention from one token: of the
layer's twelve D x D products with T rows (in BERT's shape), two remain (a test counts them). The output is equal up to
rounding.

OpenVINO makes a kernel of its own of 'product, softmax, product', which takes a third of the time of an encoder that
reads sentences. With one product for query, key and value, and with the scores transposed, so that the softmax goes
over their first axis, the two products and the softmax are nodes of their own and take less than half of that. The sums
are the same, so the vectors are the same up to rounding.

Letters of the shapes: B sentences, T tokens, D hidden, H heads, W width of a head.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer, WordWeights
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PretrainedConfig
from transformers.models.bert.modeling_bert import BertLayer, BertSelfAttention
from transformers.models.roberta.modeling_roberta import RobertaLayer, RobertaSelfAttention
from transformers.models.xlm_roberta.modeling_xlm_roberta import XLMRobertaLayer, XLMRobertaSelfAttention

from likewise.encoder.modules import Features, SavedModule, TrainingOnly, parts_of

_LAYERS = (BertLayer, RobertaLayer, XLMRobertaLayer)
"""Layers that are built as `_one_token` computes them."""
_LOCK = threading.Lock()
_HERE = threading.local()
"""Of the running thread: `places`, by layer the pooled token's place in each sentence (B,), None for the first."""
_KINDS = (BertSelfAttention, RobertaSelfAttention, XLMRobertaSelfAttention)
_HIDDEN = -1e9  # added to the scores of padding; the least float32 would be infinite in bfloat16


class _OneToken:
    """A replacement of a layer's `forward` that computes the pooled token; in other threads it calls the original.

    Attributes:
        token: Id of the pooled token; None for the first token.
        count: Number of threads inside. The first to enter sets the replacement, and the last to leave removes it.
    """

    def __init__(self, transformer: Transformer, layer: Any, token: int | None) -> None:
        self.transformer, self.layer, self.token = transformer, layer, token
        self.count = 0

    def enter(self) -> None:
        if not self.count:
            self.whole = self.layer.forward
            self.hook = self.transformer.register_forward_pre_hook(self.find_places, with_kwargs=True)
            self.layer.forward = self
        self.count += 1

    def leave(self) -> None:
        self.count -= 1
        if not self.count:
            self.hook.remove()
            del self.layer.forward

    def find_places(self, module: nn.Module, args: tuple[Features, ...], kwargs: dict[str, Features]) -> None:
        places = getattr(_HERE, "places", {})
        if self.token is not None and id(self.layer) in places:
            ids = (args[0] if args else kwargs["features"])["input_ids"]
            places[id(self.layer)] = (ids == self.token).int().argmax(1)

    def __call__(self, hidden: Tensor, attention_mask: Tensor | None = None, *args: object, **kwargs: object) -> Tensor:
        """Run the layer, (B, T, D) to (B, T, D)."""
        places = getattr(_HERE, "places", {})
        if id(self.layer) not in places or getattr(self.layer, "gradient_checkpointing", False):
            whole: Tensor = self.whole(hidden, attention_mask, *args, **kwargs)
            return whole
        at = places[id(self.layer)]
        pooled = _one_token(self.layer, hidden, attention_mask, at)
        if at is None:
            return torch.cat([pooled, torch.zeros_like(hidden[:, 1:], dtype=pooled.dtype)], 1)
        return torch.zeros_like(hidden, dtype=pooled.dtype).scatter(1, at[:, None, None].expand_as(pooled), pooled)


@contextmanager
def only_pooled_token(model: nn.Module) -> Iterator[bool]:
    """Make the last layer of `model`, in this thread, compute the pooled token alone and zeros for the others.

    'sentence_embedding' is the same up to rounding, its gradients too. A model that pools otherwise, or whose last
    layer is not one of BERT's, runs as usual. Yields whether it pools one token.
    """
    one_token = _pooled(model)
    if one_token is None:
        yield False
        return
    places: dict[int, Tensor | None] = _HERE.__dict__.setdefault("places", {})
    layer = id(one_token.layer)
    if layer in places:  # already inside
        yield True
        return
    with _LOCK:
        one_token = vars(one_token.layer).get("forward", one_token)  # another thread may be inside
        one_token.enter()
    places[layer] = None
    try:
        yield True
    finally:
        del places[layer]
        with _LOCK:
            one_token.leave()


def is_hooked(model: nn.Module) -> bool:
    """Return whether hooks wait for calls of a model's parts, which another engine does not make."""
    for part in parts_of(model):
        if part._forward_hooks or part._forward_pre_hooks:
            hooks = (*part._forward_hooks.values(), *part._forward_pre_hooks.values())
            if any(not isinstance(getattr(hook, "__self__", None), _OneToken) for hook in hooks):
                return True
    return False


@contextmanager
def keys_first(model: nn.Module) -> Iterator[int]:
    """Let the self-attentions of BERT's kind that are in `model` run in this form, in this thread, without dropout.

    Any other runs as usual. Yields how many run so.
    """
    attentions = [
        part
        for part in model.modules()
        if type(part) in _KINDS and _plain_attention(part) and "forward" not in vars(part)
    ]
    for part in attentions:
        part.forward = _KeysFirst(part)
    try:
        yield len(attentions)
    finally:
        for part in attentions:
            del part.forward


class _KeysFirst:
    """A replacement of an attention's `forward`; in other threads it calls the original."""

    def __init__(self, part: Any) -> None:
        self.whole, self.thread = part.forward, threading.get_ident()
        self.heads = part.num_attention_heads
        scaled = part.query.weight * part.scaling, part.query.bias * part.scaling
        self.weight = torch.cat([scaled[0], part.key.weight, part.value.weight]).detach()  # (3D, D)
        self.bias = torch.cat([scaled[1], part.key.bias, part.value.bias]).detach()

    def __call__(self, hidden_states: Tensor, attention_mask: Tensor | None = None, *args: Any, **others: Any) -> Any:
        """Run the attention, (B, T, D) to (B, T, D) and no weights."""
        if threading.get_ident() != self.thread:
            return self.whole(hidden_states, attention_mask, *args, **others)
        sentences, tokens, _ = hidden_states.shape
        made = F.linear(hidden_states, self.weight, self.bias).view(sentences, tokens, 3, self.heads, -1)
        queries, keys, values = made.permute(2, 0, 3, 1, 4)  # (B, H, T, W) each
        scores = keys @ queries.transpose(2, 3)  # (B, H, T, T), of each key in the first of the two
        if attention_mask is not None:
            mask = attention_mask[:, :, :1].transpose(2, 3)  # (B, 1, T, 1): padding is hidden from every token alike
            if mask.dtype == torch.bool:
                mask = (~mask).to(scores.dtype) * _HIDDEN
            scores = scores + mask.clamp(min=_HIDDEN)
        context = torch.softmax(scores, 2).transpose(2, 3) @ values
        return context.permute(0, 2, 1, 3).reshape(sentences, tokens, -1), None


def _plain_attention(part: Any) -> bool:
    """Return whether an attention is unmodified, sees all tokens of a sentence, and is asked for no weights."""
    config = part.config
    return (
        not (part.is_decoder or part.is_causal or part.training or getattr(config, "output_attentions", False))
        and getattr(config, "_attn_implementation", "") in ("sdpa", "eager")
        and all(type(linear) is nn.Linear and linear.bias is not None for linear in (part.query, part.key, part.value))
        and not (part._forward_hooks or part._forward_pre_hooks)
    )


def _pooled(model: nn.Module) -> _OneToken | None:
    """Return the replacement for a model that pools one token in a supported way; None for any other."""
    modules = list(model.children())
    if not isinstance(model, SentenceTransformer) or len(modules) < 2 or type(modules[0]) is not Transformer:
        return None
    transformer: Any = modules[0]
    token, rest = None, modules[1:]
    if isinstance(rest[0], WordWeights):
        chosen = rest[0].emb_layer.weight.detach().flatten().nonzero().flatten().tolist()
        tokenizer = transformer.tokenizer
        # Of a mask prompt's tokenizer alone it is known that no text brings a second mask.
        if chosen != [tokenizer.mask_token_id] or not getattr(tokenizer, "split_special_tokens", False):
            return None
        token, rest = chosen[0], rest[1:]
    mode = "cls" if token is None else "mean"
    if not rest or not isinstance(rest[0], Pooling) or rest[0].pooling_mode != mode:
        return None
    # These read the sentence's vector and no token's.
    if not all(isinstance(module, (Dense, Normalize, SavedModule, TrainingOnly)) for module in rest[1:]):
        return None
    layers = getattr(getattr(transformer.auto_model, "encoder", None), "layer", None)
    layer: Any = layers[-1] if isinstance(layers, nn.ModuleList) and len(layers) else None
    if not is_plain_layer(layer, transformer.auto_model.config):
        return None
    return _OneToken(transformer, layer, token)


def is_plain_layer(layer: Any, config: PretrainedConfig) -> bool:
    """Return whether a layer is one of BERT's kind and unmodified: not wrapped, sliced or recorded."""
    if type(layer) not in _LAYERS:
        return False
    attention = layer.attention.self
    return (
        not (layer.is_decoder or layer.chunk_size_feed_forward)
        and not (getattr(config, "output_hidden_states", False) or getattr(config, "output_attentions", False))
        and getattr(config, "_attn_implementation", "") in ("sdpa", "eager")
        and all(type(part) is nn.Linear for part in (attention.query, attention.key, attention.value))
    )


def _one_token(layer: BertLayer, hidden: Tensor, mask: Tensor | None, at: Tensor | None) -> Tensor:
    """Return a BERT layer's vector (B, 1, D) of the token at `at` (B,), or of the first for None."""
    attention, output, last = layer.attention.self, layer.attention.output, layer.output
    heads, width = attention.num_attention_heads, attention.attention_head_size
    own = (
        hidden[:, :1] if at is None else hidden.gather(1, at[:, None, None].expand(-1, 1, hidden.shape[2]))
    )  # (B, 1, D)
    queries, keys, values = (
        part(inputs).unflatten(-1, (heads, width)).transpose(1, 2)
        for part, inputs in ((attention.query, own), (attention.key, hidden), (attention.value, hidden))
    )  # (B, H, 1, W), (B, H, T, W) twice
    scores = queries @ keys.transpose(2, 3) * attention.scaling
    if mask is not None:
        mask = mask[:, :, :1]  # padding is all that it hides, from every token alike
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min) if mask.dtype == torch.bool else scores + mask
    weights = attention.dropout(torch.softmax(scores, -1).to(values.dtype))
    context = (weights @ values).transpose(1, 2).flatten(2)
    mixed = output.LayerNorm(output.dropout(output.dense(context)) + own)
    vector: Tensor = last.LayerNorm(last.dropout(last.dense(layer.intermediate(mixed))) + mixed)
    return vector
