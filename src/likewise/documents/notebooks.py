"""The format of Jupyter's notebooks."""

from collections.abc import Iterator

from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.formats import Page, Source
from likewise.documents.document_format import DocumentFormat
from likewise.runs.whole_files import parse_json


class Notebook(DocumentFormat):
    """Notebooks: a cell is a page."""

    suffixes = (".ipynb",)
    unit = "cell"

    def read(self, source: Source) -> Iterator[Page]:
        """Yield the cells, numbered from 1; outputs are skipped.

        Raises:
            CorpusError: If the file is not a complete notebook.
        """
        try:
            content = parse_json(source.path.read_text(encoding="utf-8-sig"))
            cells = content.get("cells") or [cell for sheet in content.get("worksheets", ()) for cell in sheet["cells"]]
            language = content.get("metadata", {}).get("kernelspec", {}).get("language", "")
            for number, cell in enumerate(cells, 1):
                written = cell.get("source", cell.get("input", ""))
                text = written if isinstance(written, str) else "".join(written)
                if cell["cell_type"] == "code" and text.strip():
                    fence = "````" if "```" in text else "```"
                    text = f"{fence}{language}\n{text}\n{fence}"
                yield Page(number, text, form="written", goes_on=True)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorpusError(
                f"{source.path}: this is not a complete notebook ({type(error).__name__}: {error}): save it again"
            ) from None
