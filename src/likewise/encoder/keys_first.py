"""Self-attention as a graph that OpenVINO runs fast: one product for query, key and value, and the keys' axis first.

OpenVINO makes a kernel of its own of 'product, softmax, product', which takes a third of the time of an encoder that
reads sentences. With the scores transposed, so that the softmax goes over their first axis, the two products and the
softmax are nodes of their own and take less than half of that. The sums are the same, so the vectors are the same up to
rounding.

Letters of the shapes: B sentences, T tokens, D hidden, H heads, W width of a head.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.models.bert.modeling_bert import BertSelfAttention
from transformers.models.roberta.modeling_roberta import RobertaSelfAttention
from transformers.models.xlm_roberta.modeling_xlm_roberta import XLMRobertaSelfAttention

_KINDS = (BertSelfAttention, RobertaSelfAttention, XLMRobertaSelfAttention)
_HIDDEN = -1e9  # added to the scores of padding; the least float32 would be infinite in bfloat16


@contextmanager
def keys_first(model: nn.Module) -> Iterator[int]:
    """Let the self-attentions of BERT's kind that are in `model` run in this form, in this thread, without dropout.

    Any other runs as usual. Yields how many run so.
    """
    found = [part for part in model.modules() if type(part) in _KINDS and _plain(part) and "forward" not in vars(part)]
    for part in found:
        part.forward = _KeysFirst(part)
    try:
        yield len(found)
    finally:
        for part in found:
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
        made = functional.linear(hidden_states, self.weight, self.bias).view(sentences, tokens, 3, self.heads, -1)
        queries, keys, values = made.permute(2, 0, 3, 1, 4)  # (B, H, T, W) each
        scores = keys @ queries.transpose(2, 3)  # (B, H, T, T), of each key in the first of the two
        if attention_mask is not None:
            mask = attention_mask[:, :, :1].transpose(2, 3)  # (B, 1, T, 1): padding is hidden from every token alike
            if mask.dtype == torch.bool:
                mask = (~mask).to(scores.dtype) * _HIDDEN
            scores = scores + mask.clamp(min=_HIDDEN)
        context = torch.softmax(scores, 2).transpose(2, 3) @ values
        return context.permute(0, 2, 1, 3).reshape(sentences, tokens, -1), None


def _plain(part: Any) -> bool:
    """Return whether an attention is unmodified, sees all tokens of a sentence, and is asked for no weights."""
    config = part.config
    return (
        not (part.is_decoder or part.is_causal or part.training or getattr(config, "output_attentions", False))
        and getattr(config, "_attn_implementation", "") in ("sdpa", "eager")
        and all(type(one) is nn.Linear and one.bias is not None for one in (part.query, part.key, part.value))
        and not (part._forward_hooks or part._forward_pre_hooks)
    )
