"""The base of likewise's own modules: a configuration and weights in a folder."""

from __future__ import annotations

from typing import Any, Self

from sentence_transformers.sentence_transformer.modules import Module


class SavedModule(Module):
    """A sentence-transformers module made of its `config_keys`, with or without weights."""

    config_file_name: str = "config.json"

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the configuration, and the weights as safetensors where there are any."""
        self.save_config(output_path)
        if self.state_dict():
            self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: Any, **kwargs: Any) -> Self:
        """Read what `save` wrote, from a folder or the hub."""
        hub = hub_arguments(subfolder, kwargs)
        module = cls(**cls.load_config(model_name_or_path, **hub))
        if module.state_dict():
            cls.load_torch_weights(model_name_or_path, model=module, **hub)
        return module


def hub_arguments(subfolder: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Of what sentence-transformers hands to `load`, what its readers of files take."""
    names = ("token", "cache_folder", "revision", "local_files_only")
    return {"subfolder": subfolder} | {name: kwargs[name] for name in names if name in kwargs}
