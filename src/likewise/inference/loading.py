"""Load a sentence encoder from a folder, a hub name or what is bundled with the package."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from sentence_transformers.util import import_from_string

from likewise.errors import first_line
from likewise.transformers_output import no_bar

if TYPE_CHECKING:
    import torch

    from likewise.inference.encoder import Encoder
    from likewise.inference.engines.engine import EngineName, EnginePrecision

BUNDLED = "bundled:"
# The files that make a folder a model: sentence-transformers' own, or a plain transformers checkpoint.
_MODULES = "modules.json"
_CONFIG = "config.json"
_KIND = "config_sentence_transformers.json"


class LoadError(ValueError):
    """A model that cannot be loaded; the message names the model, the reason and the cure."""


def load(
    name_or_path: str | os.PathLike[str],
    *,
    device: str | torch.device | None = None,
    engine: EngineName = "auto",
    precision: EnginePrecision = "fp32",
) -> Encoder:
    """Load a sentence encoder: a SentenceTransformer whose `encode` is faster.

    Args:
        name_or_path: a folder (a SentenceTransformer or a transformers checkpoint), a name of the model hub,
            or `bundled:NAME` for a model that comes with a package (`bundled:minilm`).
        device: where to put it ("cpu", "cuda:0"); by default the best device there is.
        engine: what `encode` runs on: "torch", "openvino", "onnx", or "auto", which exports the model when there is
            so much to encode that it pays, and takes the fastest.
        precision: "fp32", the vectors of sentence-transformers; "bf16" or "int8", if those are near enough (see
            `likewise.inference.engines.fidelity`); "auto", the fastest that is.

    Modules that likewise itself defines load without `trust_remote_code`: they are code that is installed,
    not code from the folder. A model that brings its own code is refused, as by sentence-transformers.

    Raises:
        LoadError: there is no such folder or name, the folder holds no sentence encoder, or its files are broken.
        EngineError: an unknown engine or precision, or a pair that does not exist.
    """
    from likewise.inference.engines.engine import Choice

    choice = Choice(engine, precision)
    model = _load(os.fspath(name_or_path), device)
    model.choice = choice
    return model


def _load(name: str, device: Any) -> Encoder:
    if name.startswith(BUNDLED):
        from likewise.corpus import bundled

        name = str(bundled.resolve_model(name))
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        _check_folder(folder)
        return _load_folder(folder, device)
    if folder.is_file():
        raise LoadError(f"'{name}' is a file, and a model is a folder. Give the folder that holds modules.json.")
    if _looks_like_a_path(name):
        raise LoadError(
            f"There is no folder '{name}'. Give a folder that holds a model, a name of the model hub "
            f"(organization/model), or 'bundled:minilm'."
        )
    return _load_from_hub(name, device)


def _looks_like_a_path(name: str) -> bool:
    # A hub name is 'model' or 'organization/model' and nothing else.
    return name.startswith((".", "/", "~")) or name.endswith("/") or name.count("/") > 1 or "\\" in name or not name


def _check_folder(folder: Path) -> None:
    if (folder / _MODULES).is_file() or (folder / _CONFIG).is_file():
        if _kind(folder) == "CrossEncoder":
            # sentence-transformers would take its transformer with a pooling that nobody trained.
            raise LoadError(
                f"'{folder}' is a cross-encoder: it scores pairs and has no sentence vectors. Score pairs with "
                f"sentence_transformers.CrossEncoder, or evaluate it as 'cross-encoder:{folder}'."
            )
        return
    # A run keeps its models in subfolders: say which, newest last, instead of only 'no model here'.
    inside = sorted(
        {path.parent for pattern in (f"*/{_MODULES}", f"*/*/{_MODULES}") for path in folder.glob(pattern)},
        key=lambda path: path.stat().st_mtime,
    )
    if inside:
        names = ", ".join(f"'{path}'" for path in inside[-5:])
        raise LoadError(
            f"'{folder}' is no model itself (it has no {_MODULES}), but it holds some. Give one of: {names}."
        )
    raise LoadError(
        f"'{folder}' holds no model: it has neither {_MODULES} nor {_CONFIG}. If it is the folder of a "
        f"run, the run has saved nothing yet; if it is a copy, files are missing from it."
    )


def _kind(folder: Path) -> str:
    """What sentence-transformers calls the model in a folder; '' where it does not say."""
    try:
        told = json.loads((folder / _KIND).read_text(encoding="utf-8"))
        return str(told.get("model_type", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def _own_classes(folder: Path) -> dict[str, Any]:
    """The classes of likewise that the folder's modules.json names, by their dotted path."""
    listing = folder / _MODULES
    if not listing.is_file():
        return {}
    try:
        kinds = [str(module["type"]) for module in json.loads(listing.read_text(encoding="utf-8"))]
    except (ValueError, KeyError, TypeError) as error:
        raise LoadError(f"'{listing}' cannot be read ({error}). Copy the model's folder again.") from None
    try:
        return {kind: import_from_string(kind) for kind in kinds if kind.startswith("likewise.")}
    except ImportError as error:
        raise LoadError(
            f"'{folder}' was saved by another release of likewise ({error}). Install the release that its "
            f"model card names."
        ) from None


def _load_folder(folder: Path, device: Any) -> Encoder:
    from likewise.inference.encoder import Encoder

    own = _own_classes(folder)
    try:
        with no_bar():
            if own:
                # The only door of sentence-transformers 6 that takes classes already imported. The public
                # one, trust_remote_code=True, would also run any code that lies in the folder.
                model = Encoder._load_with_module_classes(str(folder), own, device=device)
            else:
                model = Encoder(str(folder), device=device)
    except (OSError, ValueError) as error:
        raise LoadError(f"The model in '{folder}' cannot be loaded: {first_line(error)}") from error
    model.folder = folder
    return model


def _load_from_hub(name: str, device: Any) -> Encoder:
    from likewise.inference.encoder import Encoder

    offline = not _hub_answers()
    try:
        with no_bar():
            # What was downloaded before still loads.
            return Encoder(name, device=device, local_files_only=offline)
    except Exception as error:
        # The hub's client raises a dozen kinds: no network, no such name, no leave to read, offline mode.
        if offline:
            raise LoadError(
                f"'{name}' is no folder here, the model hub cannot be reached, and no earlier download of it "
                f"is on this machine. Give a folder or 'bundled:minilm', or mend the network."
            ) from error
        raise LoadError(
            f"'{name}' is no folder here, and it could not be loaded from the model hub "
            f"({type(error).__name__}: {first_line(error)}). Check the "
            f"spelling, and whether it is private."
        ) from error


def _hub_answers() -> bool:
    """Whether the hub can be reached: asked once and briefly, as its client retries for two minutes."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    address = urlsplit(constants.ENDPOINT)
    if getproxies().get(address.scheme):
        return True  # only the proxy knows
    try:
        port = address.port or (80 if address.scheme == "http" else 443)
        socket.create_connection((address.hostname or "", port), timeout=5).close()
    except OSError:
        return False
    return True
