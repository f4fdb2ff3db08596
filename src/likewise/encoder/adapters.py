"""Low-rank adapters (LoRA) of an encoder's transformer: those that a base has learn on, or a new one is added.

Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models". sentence-transformers saves such a model as its
adapter alone, with the name of the transformer that it belongs to, and loads it where peft is installed.
"""

from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer
from torch import nn

from likewise.errors import first_line, require_extra
from likewise.runs.options import OptionError


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
        encoder: its first module is a transformer; modules behind it are trained as always.
        rank: r; the adapter is scaled by 2, as alpha = 2 r.

    Raises:
        OptionError: the encoder has no transformer, or an adapter already.
        MissingExtraError: peft is not installed.
    """
    transformer: Any = encoder[0]
    if not isinstance(transformer, Transformer):
        raise OptionError(f"lora adapts a transformer, and this encoder begins with {type(transformer).__name__}")
    if there := adapters_of(encoder):
        raise OptionError(f"the base has an adapter already ({', '.join(there)}), which is trained: leave lora out")
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


def _with_adapters(model: nn.Module) -> list[Any]:
    return [module for module in model.modules() if getattr(module, "_hf_peft_config_loaded", False)]
