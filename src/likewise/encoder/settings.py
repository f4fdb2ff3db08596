"""The settings of a model: one record, read in one place, and passed on to derived models.

`ModelSettings.of(model)` reads it; `carried_by` transfers it to other modules; `prompt` and `task` determine how a text
in a role is encoded; `key` contains the settings that determine a vector in addition to the weights; `check` refuses
settings that a verb does not support. Low-rank adapters (Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language
Models") are included: adapters that a base has learn on, or a new one is added. sentence-transformers saves such a
model as its adapter alone, with the name of the transformer that it belongs to, and loads it where peft is installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import Normalize, Transformer
from torch import nn
from transformers import PreTrainedTokenizerBase

from likewise.encoder.location import CONFIG_OF_SETTINGS, LoadError, Role, check_loadable
from likewise.errors import first_line, require_extra
from likewise.runs.options import OptionError
from likewise.runs.whole_files import Values

_NO_COMPUTATION = frozenset(
    "transformers_version dtype torch_dtype architectures id2label label2id output_hidden_states output_attentions "
    "use_cache return_dict problem_type torchscript".split()
)
_PROMPTS: dict[Role, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""The names of a role's prompt, the first that a model has, as `encode_query` and `encode_document` look for them."""


def adapters_of(model: nn.Module) -> tuple[str, ...]:
    """Return the names of the adapters in a model's transformers."""
    names: dict[str, None] = {}
    for module in _with_adapters(model):
        names |= dict.fromkeys(module.peft_config)
    return tuple(names)


def train_adapters(model: nn.Module) -> None:
    """Let the active adapters of a model learn: they are loaded frozen, as all else of their transformer stays."""
    for module in _with_adapters(model):
        module.set_adapter(module.active_adapters())


def add_adapter(encoder: SentenceTransformer, rank: int) -> None:
    """Add an adapter to every linear layer of an encoder's transformer, whose own weights are frozen.

    Args:
        encoder: Encoder whose first module is a transformer; later modules are trained as usual.
        rank: Rank r; the adapter is scaled by 2, as alpha = 2 r.

    Raises:
        OptionError: If the encoder has no transformer, or an adapter already.
        MissingExtraError: If peft is not installed.
    """
    transformer = encoder[0]
    if not isinstance(transformer, Transformer):
        raise OptionError(f"lora adapts a transformer, and this encoder begins with {type(transformer).__name__}")
    if there := adapters_of(encoder):
        raise OptionError(f"the base already has an adapter ({', '.join(there)}), which is trained: omit lora")
    require_extra("lora", "lora", "peft")
    from peft import LoraConfig, TaskType

    model = transformer.auto_model
    config = LoraConfig(TaskType.FEATURE_EXTRACTION, r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    try:
        model.add_adapter(config)
    except ValueError as error:  # peft is too old for transformers, or no layer is linear
        raise OptionError(f"lora cannot be added to this base: {first_line(error)}") from error
    for adapter in model.peft_config.values():
        name = str(adapter.base_model_name_or_path or model.name_or_path)
        # A saved adapter is loaded from any folder.
        adapter.base_model_name_or_path = str(Path(name).resolve()) if Path(name).is_dir() else name


def computation_of(model: nn.Module) -> str:
    """Return what decides vectors besides the weights, as a text: configurations and the state of adapters.

    Activations, heads and windows of attention are only known from a transformer's configuration.
    """
    configurations = [
        {
            name: value
            for name, value in config.to_dict().items()
            if name[0] != "_" and name not in _NO_COMPUTATION and "dropout" not in name
        }
        for module in model.modules()
        if isinstance(module, Transformer) and (config := getattr(module.auto_model, "config", None)) is not None
    ]
    return json.dumps([configurations, *adapters_state(model.modules())], sort_keys=True, default=str)


def adapters_state(parts: Iterable[nn.Module]) -> list[object]:
    """Return, for each layer with adapters among the parts of a model, how much of which it adds to its output."""
    return [
        (sorted(scaling.items()), part._active_adapter, part._disable_adapters)
        for part in parts
        # Not by getattr, which is slow where torch has no such parameter: a call with a single text comes by here.
        if (scaling := part.__dict__.get("scaling")) and hasattr(part, "_disable_adapters")
    ]


def hash_of_model(model: nn.Module, *said: object) -> str:
    """Return a hash of a model: of its weights, its configuration, its adapters, and whatever else is given."""
    digest = blake2b(repr((computation_of(model), *said)).encode(), digest_size=16)
    saved = model.state_dict()
    unsaved = ((name, buffer) for name, buffer in model.named_buffers() if name not in saved)
    for name, tensor in chain(saved.items(), unsaved):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


@dataclass(frozen=True)
class ModelSettings:
    """The settings of a model in addition to its weights.

    Attributes:
        prompts, default_prompt: Prompts by name, and the name of the default prompt.
        include_prompt: Whether the pooling includes the tokens of the prompt.
        truncate_dim: Number of dimensions to which a vector is truncated; None keeps all.
        similarity: Name of the similarity function that the model was trained for.
        max_length: Maximum number of tokens of a text; None for a model without a limit.
        sides: Sides of truncation and of padding, if there is a tokenizer.
        tokenizer: Tokenizer of the first module, if it has one.
        routes, default_route: Routes of a Router, which sends queries and documents through different modules.
        adapters: Names of the adapters (LoRA) in the transformer.
        normalizes: Whether the model itself scales its vectors to length 1.
        module_kwargs: Arguments of `encode` for single modules.
    """

    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    include_prompt: bool = True
    truncate_dim: int | None = None
    similarity: str = "cosine"
    max_length: int | None = None
    sides: tuple[str, str] = ("", "")
    tokenizer: PreTrainedTokenizerBase | None = field(default=None, compare=False, repr=False)
    routes: tuple[str, ...] = ()
    default_route: str | None = None
    adapters: tuple[str, ...] = ()
    normalizes: bool = False
    module_kwargs: Values = field(default_factory=dict)

    @classmethod
    def of(cls, model: SentenceTransformer) -> ModelSettings:
        """Read the settings of a model."""
        modules = list(model.children())
        router = next((module for module in model.modules() if isinstance(module, Router)), None)
        tokenizer = getattr(modules[0], "tokenizer", None)
        return cls(
            prompts={name: prompt or "" for name, prompt in model.prompts.items()},
            default_prompt=model.default_prompt_name,
            include_prompt=all(getattr(module, "include_prompt", True) for module in model.modules()),
            truncate_dim=model.truncate_dim,
            similarity=str(model.similarity_fn_name),
            max_length=getattr(modules[0], "max_seq_length", None),
            sides=(getattr(tokenizer, "truncation_side", ""), getattr(tokenizer, "padding_side", "")),
            tokenizer=tokenizer,
            routes=tuple(router.sub_modules) if router is not None else (),
            default_route=router.default_route if router is not None else None,
            adapters=adapters_of(model),
            normalizes=len(modules) > 1 and isinstance(modules[-1], Normalize),
            module_kwargs=dict(model.module_kwargs or {}),
        )

    @classmethod
    def named(cls, name: str) -> ModelSettings:
        """Read from the files of a model what can be known without loading it: prompts, routes, dimension, similarity.

        Args:
            name: Name as in `check_loadable`; a model without modules of sentence-transformers has no settings.
        """
        place = check_loadable(name)
        if not (modules := place.modules):
            return cls()
        config = place.read(CONFIG_OF_SETTINGS)
        routers = [index for index, kind in enumerate(modules) if kind.endswith(".Router")]
        return cls(
            prompts=config.get("prompts") or {},
            default_prompt=config.get("default_prompt_name"),
            truncate_dim=config.get("truncate_dim"),
            similarity=config.get("similarity_fn_name") or "cosine",
            routes=("query", "document") if routers else (),
            normalizes=len(modules) > 1 and modules[-1].endswith(".Normalize"),
        )

    def carried_by(self, modules: Sequence[nn.Module], device: object = None) -> SentenceTransformer:
        """Return a model of other modules with the prompts, the dimension and the similarity of this model.

        The other settings are properties of the modules, such as the maximum length, the tokenizer, routes and
        adapters.

        Args:
            modules: Modules, which are not copied.
            device: Device of the model; None leaves the choice to sentence-transformers.
        """
        prompts: Any = dict(self.prompts)
        similarity: Any = self.similarity
        model = SentenceTransformer(
            modules=list(modules),
            device=None if device is None else str(device),
            prompts=prompts,
            default_prompt_name=self.default_prompt,
            similarity_fn_name=similarity,
            truncate_dim=self.truncate_dim,
        )
        names = {name for name, _ in model.named_children()}
        model.module_kwargs = {name: value for name, value in self.module_kwargs.items() if name in names} or None
        return model

    def prompt(self, role: Role | None = None) -> str:
        """Return the prompt of a text in a role, '' for none; without a role, the default prompt.

        The prompt of a role is the first of its prompts that is not empty. As in sentence-transformers, the default
        prompt is only used if the model has no prompt for the role.
        """
        named = [self.prompts[name] for name in _PROMPTS[role] if name in self.prompts] if role else []
        if named:
            return next(filter(None, named), "")
        return self.prompts.get(self.default_prompt or "", "")

    def task(self, role: Role | None = None) -> str | None:
        """Return the task by which a text in a role is routed; None for a model without routes, and for no role.

        Raises:
            LoadError: If the model has routes, and none for the role.
        """
        if not role or not self.routes:
            return None
        if role not in self.routes:
            raise LoadError(
                f"the model has routes for {', '.join(self.routes)}, and none for a {role}: name its routes 'query' "
                "and 'document' (the keys of its Router), and save it again"
            )
        return role

    @property
    def has_sides(self) -> bool:
        """Whether a query or a document is encoded otherwise than a text without a role: by a prompt or a route."""
        return bool(self.routes) or {self.prompt("query"), self.prompt("document")} != {self.prompt()}

    @property
    def other_similarity(self) -> str:
        """The name of the model's own similarity, if it ranks otherwise than the cosine; '' for all other models."""
        return "" if self.normalizes or self.similarity == "cosine" else self.similarity

    @property
    def key(self) -> list[object]:
        """All that decides a vector besides the weights and the modules, as plain values, for fingerprints.

        The similarity is among it: it decides which neighbors a vector has.
        """
        return [
            sorted((name, text) for name, text in self.prompts.items() if text),
            *(self.default_prompt, self.include_prompt, self.truncate_dim, self.similarity, self.max_length),
            *(self.sides, _fingerprint(self.tokenizer), self.routes, self.default_route, self.adapters),
            sorted((name, str(value)) for name, value in self.module_kwargs.items() if value),  # a saved one names all
        ]

    def check(self, base: str, verb: str, *, routes: str = "", prompts: str = "", truncate_dim: str = "") -> None:
        """Raise a LoadError for a setting that a verb cannot obey.

        Args:
            base: Name of the model.
            verb: Command in the words of the command line, such as "train light".
            routes, prompts, truncate_dim: Reason why the command cannot obey the setting, and the cure; '' if it can.
        """
        named = [name for name, text in self.prompts.items() if text]
        present = {
            routes: self.routes and f"separate routes for {', '.join(self.routes)}",
            prompts: named and f"prompts ({', '.join(named)})",
            truncate_dim: self.truncate_dim and f"truncate_dim {self.truncate_dim}",
        }
        for reason, what in present.items():
            if reason and what:
                raise LoadError(f"--base {base} has {what}, which {verb} does not support: {reason}")


def _fingerprint(tokenizer: object) -> str:
    """Return a fingerprint of a tokenizer, less the lengths that a call leaves in it; '' if it has no such form."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        return ""
    parts = json.loads(backend.to_str()) | {"truncation": None, "padding": None}
    return blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def _with_adapters(model: nn.Module) -> list[Any]:
    return [module for module in model.modules() if getattr(module, "_hf_peft_config_loaded", False)]
