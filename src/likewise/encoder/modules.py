"""The base classes of likewise's modules, and operations on the modules of an encoder."""

import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Self, TypeVar

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Module
from torch import Tensor, nn

from likewise.encoder.settings import ModelSettings
from likewise.runs.whole_files import Record

Features = dict[str, Tensor]  # what modules pass on: tokens and vectors of a batch, by name
_Whole = TypeVar("_Whole", bound=nn.Module)
_Part = TypeVar("_Part", bound=nn.Module)


class SavedModule(Module):
    """A sentence-transformers module that is saved as the arguments of its `__init__`, with or without weights.

    A subclass stores each argument as an attribute of the same name.
    """

    def __init_subclass__(cls, **settings: object) -> None:
        super().__init_subclass__(**settings)
        if "__init__" in vars(cls):
            cls.config_keys = [*inspect.signature(cls).parameters]

    def save(self, output_path: str, *args: object, safe_serialization: bool = True, **kwargs: object) -> None:
        """Write the configuration, and the weights, if there are any, as safetensors."""
        self.save_config(output_path)
        if self.state_dict():
            self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: object, **kwargs: object) -> Self:
        """Load the module from a folder or the hub."""
        hub = hub_arguments(subfolder, kwargs)
        module = cls(**cls.load_config(model_name_or_path, **hub))
        if module.state_dict():
            cls.load_torch_weights(model_name_or_path, model=module, **hub)
        return module


class TrainingOnly(SavedModule):
    """A module for training only, which is saved in checkpoints but never exported.

    As a module of the encoder instead of the loss, its gradients are clipped and synchronized across processes, and its
    state is resumed. It does not change the features in evaluation. A subclass returns the features for training from
    `_in_training`.
    """

    def forward(self, features: Features, **kwargs: object) -> Features:
        """Add features in training; return them unchanged in evaluation."""
        return features | self._in_training(features) if self.training else features

    def _in_training(self, features: Features) -> Features:
        return {}


def hub_arguments(subfolder: str, kwargs: Record) -> Record:
    """Return the arguments of a module's `load` that its file readers accept."""
    names = ("token", "cache_folder", "revision", "local_files_only")
    return {"subfolder": subfolder} | {name: kwargs[name] for name in names if name in kwargs}


def parts_of(model: nn.Module) -> list[nn.Module]:
    """Return a model and its parts, where a part that is used twice occurs twice: `modules()` without names.

    A call with a single sentence inspects all parts of the model, and `modules()` would take a twentieth of its time.
    """
    parts = [model]
    for part in parts:  # it grows meanwhile
        parts.extend(child for child in part._modules.values() if child is not None)
    return parts


def find_part(encoder: nn.Module, kind: type[_Part]) -> _Part | None:
    """Return the first module of a class in an encoder, None if there is none."""
    return next((part for part in encoder.children() if isinstance(part, kind)), None)


def with_modules(model: SentenceTransformer, modules: list[nn.Module]) -> SentenceTransformer:
    """Return a model of other modules with the prompts and settings of `model`; modules are not copied."""
    return ModelSettings.of(model).carried_by(modules, model.device)


def saved_modules(encoder: nn.Module) -> list[nn.Module]:
    """Return the modules of an encoder without the training modules."""
    return [module for module in encoder.children() if not isinstance(module, TrainingOnly)]


def without_training_head(model: SentenceTransformer) -> SentenceTransformer:
    """Return the encoder to save, without training-only modules; it shares its weights with `model`."""
    return with_modules(model, saved_modules(model)).eval()


@contextmanager
def modes_restored(model: nn.Module) -> Iterator[None]:
    """Restore the training or evaluation mode of every module after a `with` block, also after an error."""
    modes = {module: module.training for module in model.modules()}
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Put the model in evaluation mode in a `with` block, and restore its modes and the random state.

    Each module gets its own train or eval flag back (a run may keep some parts frozen in eval mode), and the
    random states of torch, its devices, numpy and Python are restored: an evaluation in the middle of a run
    must not change the run.
    """
    python_state, numpy_state = random.getstate(), np.random.get_state()
    devices = sorted({tensor.device.index or 0 for tensor in model.parameters() if tensor.device.type == "cuda"})
    try:
        with modes_restored(model), torch.random.fork_rng(devices=devices):
            model.eval()
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


@contextmanager
def forward_replaced(model: nn.Module, forward: Callable[..., object]) -> Iterator[None]:
    """Replace the `forward` of a model by another function in a `with` block.

    The original `forward` can be an attribute of the instance, such as the `forward` under autocast that accelerate
    sets.
    """
    before = vars(model).get("forward")
    vars(model)["forward"] = forward
    try:
        yield
    finally:
        if before is None:
            del vars(model)["forward"]
        else:
            vars(model)["forward"] = before


@contextmanager
def dropout_off(model: nn.Module) -> Iterator[None]:
    """Switch off the dropout of `model` in a `with` block; gradients and its training head remain.

    Attention layers read their own `training` flag, so setting the dropout modules alone would not do.
    """
    with modes_restored(model):
        for module in model.modules():
            if not isinstance(module, TrainingOnly):
                # Not .eval(): that would also reach the modules inside a training head.
                module.training = False
        yield


def with_linear_in(model: _Whole, dtype: torch.dtype) -> _Whole:
    """Return a model for inference that shares all with `model` but the weights of linear layers, kept in `dtype`.

    Under autocast its vectors equal the vectors of `model` to the last bit: that casts these weights in every call, for
    one sentence as long as it takes to encode it. A model whose parts have a `forward` of their own is returned as it
    is.
    """
    if any("forward" in vars(part) for part in model.modules()):  # it may lead back to the part that it was made for
        return model
    twins: dict[nn.Module, nn.Module] = {}

    def twin(part: nn.Module) -> nn.Module:
        if part not in twins:
            twins[part] = copied = copy(part)
            copied.training = False
            copied._modules = {name: child and twin(child) for name, child in part._modules.items()}
            # A hook that transformers sets on the twin (to collect the layers' outputs) stays off the original.
            copied._forward_hooks = copy(part._forward_hooks)
            if isinstance(part, nn.Linear):
                cast = {name: _cast(value, dtype) for name, value in part._parameters.items()}
                copied._parameters = cast
        return twins[part]

    inference = twin(model)
    vars(inference).pop("model_card_data", None)  # it holds the model, which should be free to go before this one
    return inference  # type: ignore[return-value]


def _cast(value: nn.Parameter | None, dtype: torch.dtype) -> nn.Parameter | None:
    return None if value is None else nn.Parameter(value.detach().to(dtype), requires_grad=False)
