"""A second view of each sentence as text: word edits, or a paraphrase that the user brings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from likewise.augment.word_edits import WordEditor
from likewise.runs.options import OptionError


def add_edits(dataset: Any, seed: int, synonyms: bool = True) -> Any:
    """Add the column 'view': each sentence after one word edit (EDA), the same one for the same seed."""
    edit = WordEditor(seed, synonyms=synonyms)
    return dataset.add_column("view", [edit(sentence) for sentence in dataset["sentence"]])


def add_paraphrases(dataset: Any, path: str) -> Any:
    """Add the column 'view': the paraphrase of each sentence; sentences without one are left out.

    Args:
        dataset: rows with 'sentence'.
        path: a UTF-8 file of lines 'sentence TAB paraphrase'.

    Raises:
        OptionError: no such file, a line that is not two columns, or no sentence of the corpus in it.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise OptionError(f"paraphrases: there is no file '{path}'")
    paraphrase_of: dict[str, str] = {}
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            columns = line.rstrip("\r\n").split("\t")
            if len(columns) != 2 or not all(column.strip() for column in columns):
                raise OptionError(f"{path}:{number}: two columns with a tab between are expected, not {len(columns)}")
            # As the corpus is cleaned: white space is one blank.
            sentence, paraphrase = (" ".join(column.split()) for column in columns)
            paraphrase_of[sentence] = paraphrase
    keys = [" ".join(sentence.split()) for sentence in dataset["sentence"]]
    found = [row for row, key in enumerate(keys) if key in paraphrase_of]
    if not found:
        raise OptionError(f"{path}: its first column holds none of the corpus's {len(keys):,} sentences")
    return dataset.select(found).add_column("view", [paraphrase_of[keys[row]] for row in found])
