"""The origin of a model: the fingerprint of its base, the result of a training, and its model card."""

import os
from importlib import resources
from pathlib import Path

from sentence_transformers import CrossEncoder, SentenceTransformer

from likewise.encoder.location import model_fingerprint
from likewise.inference.load_model import SavedModel
from likewise.runs.job import JobError, complete_installation, read_record
from likewise.runs.whole_files import Record, Values

_ABOUT = """This model was trained with the recipe `{recipe}` (preset `{preset}`) on {rows:,} {unit},
starting from `{base}`, with seed {seed}, for {steps} steps. {score}"""
_FILES = """\
`likewise.json` and `log.jsonl` contain every option, the versions, the hash of the corpus and all scores; `run.toml`
contains the arguments."""


def base_fingerprint(base: str, out: str | os.PathLike[str] | None = None) -> object:
    """Return the checksum of a local base's weights, vocabulary and settings, or the name of another base.

    Args:
        out: Path to the folder to write. If it is the base, and the job that replaces it was killed during its
            installation, the base of that job is used.
    """
    path = Path(base).expanduser()
    if out is not None and path.resolve() == Path(out).resolve() and (record := complete_installation(out)):
        return record["plan"]["inputs"].get("base")
    return model_fingerprint(base)


def made_by(base: str) -> Record | None:
    """Return the record of the base, if it is a model made by likewise."""
    try:
        record = read_record(Path(base))
    except (OSError, JobError):
        return None
    names = ("recipe", "preset", "base", "base_run", "seed", "steps", "best")
    facts = {key: record.get(key) for key in names}
    return facts | {"corpus": {"sha256": (record.get("corpus") or {}).get("sha256")}} if record else None


class TrainingResult(SavedModel):
    """The result of a finished training."""

    @property
    def before(self) -> dict[str, float]:
        """The scores of the unchanged base by metric; {} if no metric selects the checkpoint.

        If the base is not a sentence encoder, these are the scores of the untrained encoder.
        """
        return self.record["before"]

    @property
    def best(self) -> Record | None:
        """The best checkpoint: 'metric', 'score', 'step', 'noise' and 'improved'.

        'improved' is whether the gain over the base exceeds the noise of the change (None if the noise is unknown). The
        property is None if the last checkpoint is saved without selection.
        """
        return self.record["best"]

    @property
    def no_gain(self) -> str:
        """A sentence that reports a gain below the noise, or ''."""
        best = self.best
        if not best or best["improved"]:
            return ""
        metric, noise = best["metric"], best.get("noise")
        within = "" if noise is None else f", and a change of {noise:.2g} may be chance"
        return f"training changed {metric} from {self.before[metric]:.4g} to {best['score']:.4g}{within}"

    @property
    def steps(self) -> int:
        """The number of completed updates."""
        return self.record["steps"]


def trained_card(record: Values, model: SentenceTransformer | CrossEncoder) -> str:
    """Return the text of README.md for a model and the record of its training."""
    best, corpus = record["best"], record["corpus"]
    score = f"The saved checkpoint is the {record['selection']}."
    if best:
        score = f"The saved checkpoint is step {best['step']}, with the {record['selection']}: "
        score += f"{best['metric']} is {best['score']:.4g}."
    unit = corpus.get("unit", "sentences without labels")
    about = _ABOUT.format_map({**record, "rows": corpus["sentences"], "unit": unit, "score": score})
    title = "A cross-encoder trained" if record["kind"] == "cross-encoder" else "A sentence encoder trained"
    return model_card(model, record["recipe"], title, about, _FILES)


def model_card(model: SentenceTransformer | CrossEncoder, name: str, title: str, about: str, files: str) -> str:
    """Return the text of a model card, which describes a model and its usage.

    Args:
        name: Name of the method, as a tag.
        title: Title of the model, such as "A baseline made".
        about: Description of its training.
        files: Description of other files in the folder.
    """
    from jinja2 import StrictUndefined, Template

    pairs = isinstance(model, CrossEncoder)
    own_modules = not pairs and any(not type(one).__module__.startswith("sentence_transformers.") for one in model)
    text = resources.files(__package__).joinpath("card.md.j2").read_text(encoding="utf-8")
    template = Template(text, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    return template.render(pairs=pairs, own_modules=own_modules, name=name, title=title, about=about, files=files)
