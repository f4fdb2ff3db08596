"""`likewise push`: a trained model to a model hub, with a card that has its scores and those of its base."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.corpus.bundled import BUNDLED_MODELS
from likewise.errors import LikewiseError, first_line
from likewise.evaluation import Task, evaluate
from likewise.evaluation.report import EvaluationReport, markdown_table
from likewise.runs.arguments import checked
from likewise.runs.installation import read_record

STAYS_HERE = ("likewise.json", "run.toml", "log.jsonl", "report.html")
"""Files that are not pushed: they name files of this machine, and quote the text that the model was trained on.

Checkpoints are not pushed either.
"""

_HUB_NAMES = {f"bundled:{name}": model.hub for name, model in BUNDLED_MODELS.items()}
_QUOTED_FILES = re.compile(r"\n(?:`report\.html`|Every option)[^\n]*(?:\n[^\n]+)*\n?")


class PushError(LikewiseError):
    """Raised if a model cannot be pushed, with the cure."""


@dataclass(frozen=True)
class Pushed:
    """The result of `push`.

    Attributes:
        repository: its name on the hub.
        files: what is sent, by name with the bytes.
        card: the text of README.md.
        url: where it is; "" after a dry run.
    """

    repository: str
    files: Mapping[str, int]
    card: str
    url: str = ""


@checked
def push(
    model: str | os.PathLike[str],
    repository: str,
    *,
    license: str,
    tasks: str | Task | Sequence[str | Task] = (),
    data: str | os.PathLike[str] | None = None,
    private: bool = False,
    dry_run: bool = False,
    quiet: bool = False,
) -> Pushed:
    """Push a trained model to the Hugging Face hub.

    The card has the licence, the hash of the training text, and a table of scores in which the base stands first.
    What names files of this machine or quotes the text (the record, the log, the report) stays here. You must be logged
    in (`hf auth login`).

    Args:
        model: the folder that `train`, `adapt` or `finetune` wrote.
        repository: the name on the hub, such as "me/my-encoder"; it is made if there is none.
        license: the licence of the model, as the hub spells it ("apache-2.0"); that of the base has to allow it.
        tasks: evaluated for the card, on the base and on the model.
        data: the folder of SentEval's data.
        private: make the repository private.
        dry_run: send nothing, and show what would be sent.
        quiet: print nothing.

    Returns:
        What was sent, or would be, and where it is.

    Raises:
        PushError: the folder holds no model of likewise, or the hub refuses.
    """
    folder = Path(model)
    record = read_record(folder)
    if not record:
        raise PushError(f"{folder} holds no model that likewise has trained: name the folder given as --out")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise PushError(f"{repository!r} is not a repository: give owner and name, such as me/my-encoder")
    reports = [evaluate(one, tasks, data=data, quiet=quiet) for one in (record["base"], folder)] if tasks else []
    card = _card((folder / "README.md").read_text(encoding="utf-8"), record, license, repository, reports)
    content: dict[str, Path | bytes] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in STAYS_HERE and not name.startswith((".", "checkpoints/")):
            content[name] = path
    content["README.md"] = card.encode()
    files = {name: len(one) if isinstance(one, bytes) else one.stat().st_size for name, one in content.items()}
    return Pushed(repository, files, card, "" if dry_run else _send(content, repository, private))


def _send(content: Mapping[str, Path | bytes], repository: str, private: bool) -> str:
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    api = HfApi()
    try:
        url = api.create_repo(repository, private=private, exist_ok=True)
        operations = [CommitOperationAdd(name, one) for name, one in content.items()]
        api.create_commit(repository, operations, commit_message="A model trained with likewise")
    except (HfHubHTTPError, LocalTokenNotFoundError, OSError) as error:
        raise PushError(
            f"the hub did not take {repository}: {first_line(error)}: log in with `hf auth login`, and try again"
        ) from error
    return str(url)


def _card(
    card: str, record: Mapping[str, Any], license: str, repository: str, reports: Sequence[EvaluationReport]
) -> str:
    """Return the card of a folder as it is for others: licence, base, hash and scores; no mention of what stays."""
    base = str(record["base"])
    hub_name = _HUB_NAMES.get(base, base)
    is_hub_name = re.fullmatch(r"[\w.-]+/[\w.-]+", hub_name) and not Path(base).exists()
    matter = f"---\nlicense: {license}\n" + (f"base_model: {hub_name}\n" if is_hub_name else "")
    card = _QUOTED_FILES.sub("", card.replace("---\n", matter, 1)).replace("path/to/this/folder", repository)
    if Path(base).is_dir():
        card = card.replace(base, Path(base).name)
    parts = [card.rstrip(), "## Training text", f"Hash of the training text: `{record['plan']['inputs']['corpus']}`."]
    parts += [f"Licence of this model: {license}."]
    if reports:
        before, after = reports
        rows = [
            (old.title, old.metric, f"{old.score:.2f}", f"{new.score:.2f}")
            for old, new in zip(before.results, after.results, strict=True)
        ]
        parts += ["## Scores", markdown_table(("Task", "Measure", "Base", "This model"), rows, left=2)]
    elif (best := record.get("best")) and best["metric"] in record["before"]:  # the card of adapt has its own table
        row = (best["metric"], f"{record['before'][best['metric']]:.2f}", f"{best['score']:.2f}")
        note = f"This measure ({record['selection']}) selected the checkpoint, which flatters it a little."
        parts += ["## Scores", markdown_table(("Measure", "Base", "This model"), [row]), note]
    return "\n\n".join(parts) + "\n"
