"""An encoder, including its pooling, as one function of ids and mask: the exported graph and its fingerprint.

Letters of the shapes: B sentences of a batch, T tokens, D embedding, E a token's vector.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from likewise.encoder.attention import only_pooled_token
from likewise.encoder.modules import modes_restored, parts_of
from likewise.encoder.settings import adapters_state, hash_of_model
from likewise.encoder.text_cnn import TextCNN
from likewise.errors import first_line
from likewise.inference.engines.engine import OUTPUT, TOKENS, CannotExport
from likewise.transformers_output import no_warning_of_old_names, only_errors

# Part of what an index and an export are known by: another one makes every index one of another model.
_FORMAT = "3"


class PooledGraph(nn.Module):
    """The modules of an encoder in sequence: (B, T) ids and mask to (B, D), and (B, T, E) for tokens."""

    def __init__(self, model: SentenceTransformer, tokens: bool = False) -> None:
        super().__init__()
        self.model, self.tokens = model, tokens

    @property
    def outputs(self) -> list[str]:
        """The names of what `forward` returns."""
        return [OUTPUT, TOKENS] if self.tokens else [OUTPUT]

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Return the vectors (B, D) of ids and mask, (B, T) int64 each, and the token vectors."""
        features = self.model({"input_ids": input_ids, "attention_mask": attention_mask})
        return tuple(features[name] for name in self.outputs) if self.tokens else features[OUTPUT]


def least_tokens(model: SentenceTransformer) -> int:
    """Return the least length in tokens of a batch for an exported graph.

    A trace keeps one side of a branch on the length: TextCNN pads batches that are shorter than its longest filter.
    """
    return max((max(module.regions) for module in model if isinstance(module, TextCNN)), default=2)


def example(model: SentenceTransformer) -> tuple[Tensor, Tensor]:
    """Return example ids and mask for tracing: three sentences, one of them padded."""
    longest = least_tokens(model) + 5
    mask = torch.ones(3, longest, dtype=torch.long)
    mask[1, longest // 2 :] = 0
    return torch.full((3, longest), 3, dtype=torch.long) + torch.arange(longest) % 2, mask


def token_dimension(model: SentenceTransformer) -> int:
    """Return E, the length of the vectors that a model has for the tokens of a text; 0 if it has none."""
    ids, mask = (part.to(model.device) for part in example(model))
    with modes_restored(model), torch.inference_mode():
        tokens = model.eval()({"input_ids": ids, "attention_mask": mask}).get(TOKENS)
    return int(tokens.shape[2]) if tokens is not None and tokens.shape[:2] == ids.shape else 0


def check_exportable(model: SentenceTransformer) -> None:
    """Raise CannotExport for a model that an engine would not run as torch does."""
    if model.device.type != "cpu":
        raise CannotExport(f"the model is on {model.device}, and the engines run on the CPU")
    kinds = {str(p.dtype).removeprefix("torch.") for p in model.parameters() if p.is_floating_point()}
    if kinds - {"float32"}:
        raise CannotExport(f"the model's weights are {', '.join(sorted(kinds))}, but exports need float32")


def fingerprint(model: SentenceTransformer) -> str:
    """Return a hash of the weights and the computation: it changes when the vectors do."""
    return hash_of_model(model, _FORMAT, model)


def mark(model: SentenceTransformer) -> tuple[object, ...]:
    """Return a value, in 0.1 ms, that tells whether a model was changed: while it is equal, so is the fingerprint.

    These are the parts, the settings of parts that do not read texts, and the addresses and versions of the weights.
    A write that torch does not count (through `.data` or a numpy view) is not seen.
    """
    parts = parts_of(model)
    owned = chain.from_iterable(chain(part._parameters.values(), part._buffers.values()) for part in parts)
    tensors = [tensor for tensor in owned if tensor is not None]  # one made for inference cannot be written
    versions = [(tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version) for tensor in tensors]
    return (*map(id, parts), *map(repr, list(model)[1:]), repr(adapters_state(parts)), *versions)


def write_graphs(model: SentenceTransformer, write: Callable[[PooledGraph, bool], None]) -> None:
    """Call a function with the graph of a model, and, if the graph omits tokens, with a second, full graph.

    Args:
        write: Function that receives the graph, and whether it is the second graph of a model that pools a single
            token.
    """
    with tracing(model) as graph:
        write(graph, False)
        whole = graph.tokens
    if not whole and token_dimension(model):
        with tracing(model, tokens=True) as graph:
            write(graph, True)


@contextmanager
def tracing(model: SentenceTransformer, tokens: bool | None = None) -> Iterator[PooledGraph]:
    """Provide the graph in evaluation mode, without gradients and without a tracer's warnings.

    Args:
        tokens: Whether the graph returns token vectors. With None, it does so unless the model pools a single token, in
            which case the graph computes no other token.
    """
    try:
        has_tokens = token_dimension(model) > 0
        with (
            modes_restored(model),
            torch.no_grad(),
            only_errors(),
            no_warning_of_old_names(),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            with nullcontext(False) if tokens else only_pooled_token(model) as is_single:
                yield PooledGraph(model.eval(), has_tokens and not is_single).eval()
    except CannotExport:
        raise
    except Exception as error:  # tracers and converters raise of every kind
        raise CannotExport(f"the export failed ({type(error).__name__}: {first_line(error)})") from error
