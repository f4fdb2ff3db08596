"""Finding a model: a folder, a name on the model hub, or a bundled model.

Nothing here imports torch, so that a name that leads nowhere is said at once.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from likewise.data.bundled import bundled_bases, resolve_model
from likewise.errors import LikewiseError, is_utf8, not_utf8, printable, unread
from likewise.runs.whole_files import Record, checksum, read_json

# The files that make a folder a model: sentence-transformers' own, or a plain transformers checkpoint.
MODULES, CONFIG, CONFIG_OF_SETTINGS = "modules.json", "config.json", "config_sentence_transformers.json"
ABOUT_EXPORT = "likewise_export.json"
Role = Literal["query", "document"]
"""What a text is for, which some models put before it by a prompt, or by modules of its own."""
_TEXT_ENDINGS = (".txt", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".parquet", ".gz", ".bz2", ".zst", ".xz", ".zip")
_OF_A_MODEL = (".safetensors", ".bin", ".json", ".txt", ".model")
_NOT_OF_A_MODEL = ("likewise.json", "trainer_state.json")
_HUB_SECONDS = 3.0


class LoadError(LikewiseError):
    """Raised if a model cannot be loaded or is unsuitable; the message names the reason and the cure."""


@dataclass(frozen=True)
class ModelPlace:
    """The location of a model.

    Attributes:
        path: Path to the folder, or the name on the model hub.
        local_only: Whether to use files of an earlier download without a request to the hub.
    """

    name: str
    path: str
    local_only: bool = False

    @property
    def folder(self) -> Path | None:
        """The folder; None for a name on the hub."""
        return Path(self.path) if Path(self.path).is_dir() else None

    def read(self, name: str) -> Any:
        """Return the content of one of its JSON files; {} if there is no such file.

        Raises:
            LoadError: If the file cannot be read.
        """
        from sentence_transformers.util import load_file_path

        path = load_file_path(self.path, name, local_files_only=self.local_only)
        try:
            return read_json(Path(path)) if path else {}
        except (ValueError, OSError) as error:
            raise LoadError(unread(f"'{path}'", error, "copy the model's folder again")) from None

    @property
    def modules(self) -> list[str]:
        """The types of a sentence encoder's modules, as its modules.json names them; none for any other model."""
        try:
            return [str(module["type"]) for module in self.read(MODULES)]
        except (KeyError, TypeError) as error:
            raise LoadError(
                f"{MODULES} of '{self.path}' cannot be read ({error}). Copy the model's folder again."
            ) from None


def check_loadable(name: str) -> ModelPlace:
    """Find a model, and check that it exists without loading it, which takes about a second if the hub answers.

    Args:
        name: Folder (a SentenceTransformer or a transformers checkpoint), a name of the model hub, or `bundled:NAME`.

    Raises:
        LoadError: If there is no such folder or name, or the folder contains no sentence encoder.
        CorpusError: If the bundled name is unknown, or its package is not installed.
    """
    path = Path(resolve_model(name)).expanduser()
    if not is_utf8(str(path.absolute())):
        raise LoadError(f"{printable(name)}: the name of a folder {not_utf8(str(path.absolute()))}")
    if name and path.is_dir():
        _check_folder(path)
        return ModelPlace(name, str(path))
    if path.is_file():
        raise LoadError(f"'{name}' is a file, but a model is a folder. Give the folder that contains {MODULES}.")
    if _looks_like_a_path(name):
        raise LoadError(
            f"There is no folder '{name}'. Give the folder of a model, a hub name (organization/model), or one of "
            f"{', '.join(bundled_bases())}."
        )
    return ModelPlace(name, name, _only_here(name))


def files_of_model(folder: Path) -> dict[str, Path]:
    """Return the files that a model is read from, by name, in order.

    These are the files of its folder, including linked files, and of the transformer that an adapter refers to.
    """
    files: dict[str, Path] = {}
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(place)) in seen:  # a link that leads back
            folders.clear()
            continue
        seen.add(real)
        files |= {(path := Path(place, name)).relative_to(folder).as_posix(): path for name in names}
    files = {name: files[name] for name in sorted(files, key=Path) if files[name].is_file()}
    for name in [name for name in files if Path(name).name == "adapter_config.json"]:
        transformer = Path(str(_json_of(files[name]).get("base_model_name_or_path", "")))
        if transformer.is_dir() and os.path.realpath(transformer) not in seen:
            files |= {f"{transformer}/{inner}": path for inner, path in files_of_model(transformer).items()}
    return files


def model_fingerprint(name: str) -> str:
    """Return the checksum of the weights, vocabulary and settings of a model here, or of a file; or another name."""
    path = Path(name).expanduser()
    if path.is_file():
        return checksum(path)
    sums = [
        f"{inner} {checksum(file)}"
        for inner, file in (files_of_model(path).items() if path.is_dir() else ())
        if file.suffix in _OF_A_MODEL
        and file.name not in _NOT_OF_A_MODEL
        # Files of an unfinished job, and of a training's checkpoints, are not the model's.
        and not any(part.startswith(".") or part == "checkpoints" for part in Path(inner).parts)
    ]
    return blake2b("\n".join(sums).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() if sums else name


def check_cross_encoder(name: str) -> None:
    """Check that a cross-encoder exists without loading it.

    Args:
        name: Folder, or a name of the model hub.

    Raises:
        LoadError: If there is no such folder or name, or the folder contains no cross-encoder.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if folder.is_file() or name.startswith("bundled:") or _looks_like_a_path(name):
            raise LoadError(f"there is no folder '{name}': give the folder of a cross-encoder, or its hub name")
        _only_here(name)
    elif _kind(folder) != "CrossEncoder" and ((folder / MODULES).is_file() or not _classifies(folder)):
        raise LoadError(
            f"'{folder}' is not a cross-encoder, which scores a query and a text together: give a folder that "
            f"sentence_transformers.CrossEncoder has saved"
        )


def _looks_like_a_path(name: str) -> bool:
    # A hub name is 'model' or 'organization/model'.
    return (
        not name
        or name.startswith((".", "/", "~"))
        or name.endswith(("/", *_TEXT_ENDINGS))
        or name.count("/") > 1
        or "\\" in name
    )


def _check_folder(folder: Path) -> None:
    if (folder / MODULES).is_file() or (folder / CONFIG).is_file():
        # sentence-transformers would use the transformer of each of these with an untrained pooling.
        if _kind(folder) == "SparseEncoder":
            raise LoadError(
                f"'{folder}' is a sparse encoder, whose vectors have a weight for each word of the vocabulary. Give a "
                f"sentence encoder with dense vectors; `likewise search` uses BM25 for words."
            )
        if _kind(folder) == "CrossEncoder" or _scores_pairs(folder):
            raise LoadError(
                f"'{folder}' is a cross-encoder, which scores pairs and has no sentence vectors. Score pairs with "
                f"sentence_transformers.CrossEncoder, or evaluate it as 'cross-encoder:{folder}' with the package "
                "benchmarks/compared."
            )
        _check_parts(folder)
        return
    # A run keeps its models in subfolders: name them, the newest last.
    inside = sorted(
        {path.parent for pattern in (f"*/{MODULES}", f"*/*/{MODULES}") for path in folder.glob(pattern)},
        key=lambda path: path.stat().st_mtime,
    )
    if inside:
        names = ", ".join(f"'{path}'" for path in inside[-5:])
        raise LoadError(f"'{folder}' is not a model (it has no {MODULES}), but contains models. Give one of: {names}.")
    if (folder / ABOUT_EXPORT).is_file():
        raise LoadError(f"'{folder}' is an export for other programs: give the model from which it was exported.")
    raise LoadError(
        f"'{folder}' contains no model: it has neither {MODULES} nor {CONFIG}. If it is the folder of a run, the run "
        f"has not saved a model yet; if it is a copy, files are missing."
    )


def _check_parts(folder: Path) -> None:
    """Raise a LoadError if weights in several files are said to lie outside of a model's folder."""
    for index in (*folder.glob("*.index.json"), *folder.glob("*/*.index.json")):
        names = _json_of(index).get("weight_map")
        for name in set(map(str, names.values())) if isinstance(names, dict) else ():
            if Path(name).name != name:
                raise LoadError(f"'{index}' refers to weights outside its folder ({name}): download the model again.")


def _kind(folder: Path) -> str:
    """Return sentence-transformers' type of the model in a folder; '' if it is not stated."""
    return str(_json_of(folder / CONFIG_OF_SETTINGS).get("model_type", ""))


def _scores_pairs(folder: Path) -> bool:
    """Return whether a checkpoint of transformers alone has one output for a text, as cross-encoders are saved."""
    labels = _json_of(folder / CONFIG).get("id2label")
    return not (folder / MODULES).is_file() and _classifies(folder) and isinstance(labels, dict) and len(labels) == 1


def _classifies(folder: Path) -> bool:
    """Return whether a checkpoint of transformers has a classifier; one that does not tell what it is may have."""
    config = _json_of(folder / CONFIG)
    kinds = config.get("architectures") or ["ForSequenceClassification"]
    return bool(config) and any(str(kind).endswith("ForSequenceClassification") for kind in kinds)


def _json_of(path: Path) -> Record:
    """Return the object in a JSON file of a model; {} if there is none: loading it reports the error."""
    with suppress(OSError, ValueError):
        content = read_json(path)
        return content if isinstance(content, dict) else {}
    return {}


@cache
def _only_here(name: str) -> bool:
    """Return whether a name on the hub can only be loaded from an earlier download.

    The hub is asked once and briefly, because its client tries again for minutes; an answer holds for the process.
    """
    from huggingface_hub import HfApi, constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    reason = "the model hub is disabled (HF_HUB_OFFLINE)"
    bundled = ", ".join(bundled_bases())
    cure = f"give a folder or a model from the package registry ({bundled}), or connect to the hub"
    if not constants.HF_HUB_OFFLINE:
        try:
            HfApi().model_info(name, timeout=_HUB_SECONDS)
            return False
        except (HFValidationError, RepositoryNotFoundError):
            reason = "the model hub has no such model"
            cure = f"check the spelling and whether it is private, or give a bundled model ({bundled})"
        except Exception as error:  # the hub's client raises a dozen kinds
            reason = f"the model hub cannot be reached ({type(error).__name__})"
    with suppress(HFValidationError):
        if any(isinstance(try_to_load_from_cache(name, file), str) for file in (MODULES, CONFIG)):
            return True
    raise LoadError(f"'{name}' is not a folder here, {reason}, and it was not downloaded earlier: {cure}.")
