"""Documents as pages: Word, PowerPoint, Excel, PDF, web pages, mails, e-books, OpenDocument, notebooks, other markup.

The formats are reached through the one list of formats (`likewise.corpus.known_formats`), by entry points of the group
`likewise.formats`; nothing below imports this package.

Libraries that read everything were measured before code of our own was kept. Of 23 documents and the lines that must
come of each (`tests/documents/files`), they lose these; `benchmarks/documents/read_files.py` makes the table:

| file | lines | markitdown | xberg |
| --- | ---: | ---: | ---: |
| box.mbox | 5 | 2 | 2 |
| catalogue.pdf | 16 | 0 | 0 |
| fpdf2-german.pdf | 9 | 3 | 0 |
| guide.rst | 8 | 4 | 1 |
| letter.odt | 6 | 6 (UnsupportedFormatException) | 5 |
| mail.eml | 6 | 1 | 2 |
| manual.adoc | 5 | 2 | 0 |
| notes.org | 6 | 2 | 1 |
| novel.epub | 4 | 0 | 4 |
| page.html | 9 | 4 | 4 |
| parts.xlsx | 5 | 2 | 2 |
| readme.md | 7 | 2 | 3 |
| report.docx | 8 | 2 | 0 |
| reportlab-chinese.pdf | 21 | 3 | 0 |
| reportlab-columns.pdf | 15 | 3 | 0 |
| reportlab-form.pdf | 10 | 4 | 0 |
| reportlab-scanned.pdf | 9 | 3 | 0 |
| reportlab-table.pdf | 21 | 15 | 0 |
| reportlab-two-pages.pdf | 39 | 38 | 0 |
| saved-by-word.html | 2 | 1 | 1 |
| saved.mht | 3 | 3 | 1 |
| steps.ipynb | 4 | 1 | 1 |
| talk.pptx | 6 | 0 | 1 |

What they lose is why own code stays: lists of HTML that Word saved, letters of lists, cells that span rows, mails
within mails, percentages and codes of sheets, directives of reStructuredText, boxes and notes of OpenDocument. PDFs
are liteparse's (`pdf_files.py`), with headers, footers, hyphens, torn and divided tables by our own rules; 30 PDFs
of several producers are measured in `benchmarks/notebook/documents.md`.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
