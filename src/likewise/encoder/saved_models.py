"""Opening a saved model: a folder, a name on the model hub, or a bundled model.

No code that comes with a model runs: its modules come from sentence-transformers, likewise, and recipes and
modules that installed packages register; weights are read as tensors only. This is the only file that uses private
names of SentenceTransformer, for which the minor version of sentence-transformers is pinned.
"""

import math
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar, cast

import torch
from huggingface_hub import constants
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Module, Transformer
from sentence_transformers.util import get_device_name, import_from_string

import likewise.encoder
from likewise.encoder.location import CONFIG, LoadError, ModelPlace, check_loadable
from likewise.errors import LikewiseError, first_line, limit_of
from likewise.runs.plugins import MODULES_GROUP, RECIPES_GROUP, entry_points_of
from likewise.runs.whole_files import Record
from likewise.transformers_output import lacking_weights, no_bar

_Model = TypeVar("_Model", bound=SentenceTransformer)


class OwnInference(SentenceTransformer):
    """A SentenceTransformer whose `encode` parses its arguments as usual and leaves the rest to `infer`."""

    def _inference(self, inputs: list[Any], **settings: Any) -> Any:
        return self.infer(inputs, **settings)

    def infer(self, inputs: list[Any], **settings: Any) -> Any:
        """Return the vectors (S, D) of texts, which `encode` then post-processes."""
        return super()._inference(inputs, **settings)


def is_sentence_encoder(name: str) -> bool:
    """Return whether a model, local or on the hub, is in the format of sentence-transformers, with a pooling."""
    return bool(check_loadable(name).modules)


def open_model(kind: type[_Model], place: ModelPlace, device: str | torch.device | None = None) -> _Model:
    """Load a model as an instance of a class.

    Args:
        device: Device of the model ("cpu", "cuda:0"); by default the best available device.
    """
    with _readable_errors(place.name), no_bar(), lacking_weights() as lacking, _no_hub(place):
        classes = _own_classes(place)
        # The public way, trust_remote_code=True, would also run any code that is in the model's folder.
        # Language models are often saved in 16 bits, which most processors are slow at.
        whole = {"dtype": torch.float32} if torch.device(device or get_device_name()).type == "cpu" else None
        model = kind._load_with_module_classes(
            place.path, classes, device=device, local_files_only=place.local_only, model_kwargs=whole
        )
        if lacking:  # transformers puts random ones in their place
            raise LoadError(
                f"The weights of '{place.name}' are incomplete, for example {lacking[0]}: a file is missing, or "
                f"belongs to another model. Copy the folder again."
            )
        fit_to_weights(model[0], place.name)
    numbers = {"max_seq_length": getattr(model[0], "max_seq_length", None), "truncate_dim": model.truncate_dim}
    for setting, value in numbers.items():
        # A model of word vectors reads texts of any length: infinity.
        if value not in (None, math.inf) and (not isinstance(value, int) or value < 1):
            raise LoadError(
                f"The model '{place.name}' has {setting} {value!r}: set it to an integer of 1 or more, or null."
            )
    return model


def transformer_of(model: SentenceTransformer, name: str) -> Transformer:
    """Return the first of a model's modules, which must be a transformer that tells the size of its vectors."""
    first = model[0]
    if not isinstance(first, Transformer):
        raise LoadError(f"--base {name}: its first module is {type(first).__name__}, not a Transformer")
    if first.get_embedding_dimension() is None:
        raise LoadError(
            f"--base {name}: its configuration does not state the size of its token vectors: use another base"
        )
    return first


def fit_to_weights(first: Any, name: str) -> None:
    """Fit the tokenizer and the limit of a model's first module to its weights.

    Many language models have no padding token: any token will do, since the attention mask hides it. A model of
    RoBERTa's kind numbers positions from the one behind padding, so that it reads fewer tokens than it has positions.

    Raises:
        LoadError: If the tokenizer is empty, as transformers makes one if its files are missing.
    """
    tokenizer: Any = getattr(first, "tokenizer", None)
    if hasattr(tokenizer, "all_special_tokens") and len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise LoadError(
            f"The model '{name}' has no tokenizer files (tokenizer.json or vocab.txt): copy the folder again."
        )
    if getattr(tokenizer, "pad_token", "") is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token or tokenizer.convert_ids_to_tokens(0)
    for part in first.modules() if isinstance(first, Transformer) else ():
        positions = getattr(part, "position_embeddings", None)
        if isinstance(positions, torch.nn.Embedding) and positions.padding_idx is not None:
            longest = positions.num_embeddings - positions.padding_idx - 1
            first.max_seq_length = min(longest, first.max_seq_length or longest)


def _own_classes(place: ModelPlace) -> Record:
    """Import the classes that a modules.json names and that are not sentence-transformers', by their dotted path."""
    own: Record = {}
    for kind in place.modules:
        if kind.startswith("sentence_transformers."):
            _check_is_module(place.path, kind)
        elif kind.startswith("likewise."):
            if (module := _of_likewise(kind)) is None:
                raise LoadError(
                    f"'{place.path}' was saved by another release of likewise: this release has no module {kind}. "
                    f"Install the release that its model card names."
                )
            own[kind] = module
        elif module := _of_a_package(kind):
            own[kind] = module
    return own


def _of_likewise(kind: str) -> type[Module] | None:
    """Return a module's class of likewise, in whatever file of this package it is by now; None if there is none."""
    home, _, name = kind.rpartition(".")
    files = [module.name for module in iter_modules(likewise.encoder.__path__, "likewise.encoder.")]
    for file in sorted(files, key=lambda file: file != home):
        module = getattr(import_module(file), name, None)
        if isinstance(module, type) and issubclass(module, Module) and module.__module__ == file:
            return module
    return None


def _of_a_package(kind: str) -> type | None:
    """Return a module's class that an installed package registers, or its recipe brings; None if there is none."""
    for entry in entry_points_of(MODULES_GROUP):
        if entry.value.replace(":", ".") == kind:
            with suppress(ImportError, AttributeError):
                return cast(type, entry.load())
    for entry in entry_points_of(RECIPES_GROUP):
        if entry.module.partition(".")[0] == kind.partition(".")[0]:
            with suppress(ImportError, AttributeError):  # `Registry.find` says what is wrong with it
                for module in getattr(entry.load(), "modules", ()):
                    if kind == (module if isinstance(module, str) else f"{module.__module__}.{module.__qualname__}"):
                        return import_from_string(module) if isinstance(module, str) else module
    return None


def _check_is_module(name: str, kind: str) -> None:
    """Check a class of sentence-transformers, which itself would take anything that it imports: `json`, `torch`."""
    with suppress(ImportError, AttributeError):
        named = import_from_string(kind)
        if isinstance(named, type) and issubclass(named, torch.nn.Module):
            return
    raise LoadError(
        f"'{name}' requires a module {kind}, which this release of sentence-transformers does not have. Install the "
        "release that its config_sentence_transformers.json names."
    )


@contextmanager
def _no_hub(place: ModelPlace) -> Iterator[None]:
    """Ask no hub over a model that is here: libraries would, for what its vectors do not need."""
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or place.local_only or place.folder is not None
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextmanager
def _readable_errors(name: str) -> Iterator[None]:
    """Convert any error that a library raises over the files of a model into a one-sentence message."""
    try:
        yield
    except LikewiseError:
        raise
    except Exception as error:  # safetensors, torch, transformers and the hub's client raise of many kinds
        reason, kind = first_line(error), type(error).__name__
        cure = "Copy or download the folder again."
        if limit := limit_of(error):
            raise LoadError(f"The model '{name}' cannot be loaded: {limit}") from error
        if kind == "SafetensorError":
            reason = f"its weights are truncated or damaged ({reason})"
        elif isinstance(error, pickle.UnpicklingError) or "weights_only" in str(error):
            reason = "its weights are a pickle with more than tensors, which could run code"
            cure = "It is not loaded: get the model with safetensors weights."
        elif "size mismatch" in str(error) or "ignore_mismatched_sizes" in str(error):
            reason = f"its weights do not have the shapes that its {CONFIG} states"
        elif "trust_remote_code" in str(error) or "custom code" in str(error):
            named = f" ({reason.rstrip('.')})"
            reason, cure = f"it needs custom code{named}", "likewise runs no code from a model's folder."
        elif "peft" in reason.lower() and isinstance(error, ImportError):
            reason, cure = "it is a LoRA adapter, which needs peft", "Install it: pip install peft."
        raise LoadError(f"The model '{name}' cannot be loaded: {reason}. {cure}") from error
