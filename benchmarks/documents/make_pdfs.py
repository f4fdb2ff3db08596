"""PDF files of several producers whose words, headings, rows and running heads are known.

    pip install reportlab fpdf2 weasyprint matplotlib; apt-get install groff ghostscript libreoffice-writer-nogui
    python make_pdfs.py FOLDER

A producer that is not installed is passed over with a line. Each file has a JSON file of the same name beside it: its
paragraphs in the order in which they are read, its headings, the rows of its tables, its running heads and its notes.
"""

from __future__ import annotations

import html
import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ENGLISH = (
    "The {0} pump of the {1} station was opened in March and found to be worn at the seal. It had run for nine "
    "thousand hours without an inspection, which the manual of the {0} series does not allow. The fitter replaced the "
    "bearing, measured the play of the shaft and wrote the values into the log book of the {1} station."
)
GERMAN = (
    "Die {0} Pumpe der Station {1} wurde im März geöffnet und an der Gleitringdichtung verschlissen vorgefunden. Sie "
    "lief neuntausend Betriebsstunden ohne Instandhaltungsmaßnahme, was die Betriebsanleitung der Baureihe {0} "
    "ausschließt. Der Monteur ersetzte das Wälzlager und trug die Messwerte in das Betriebstagebuch von {1} ein."
)
CHINESE = (
    "第{0}号水泵在三月被打开检查，发现密封件已经磨损。它连续运行了九千小时没有检修。"
    "工人更换了轴承，并把数据写进了{1}站的记录。"
)
NAMES = ("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth").split()
TOWNS = ("Harbour Meadow Castle River Garden Bridge Forest Market Tower Valley Mill Abbey").split()
HEADINGS = ("Inspection of the pumps", "Prices of the spare parts", "What remains to be done")
ROWS = [
    ["Part", "Price", "Stock", "Supplier"],
    *[[f"Pump P-{n}", f"{n % 90 + 10}.50", str(n % 7 + 3), f"{TOWNS[n % 12]} Ltd"] for n in range(100, 111)],
]
HEAD = "Report of the water board 2026"


@dataclass
class Text:
    """What a file says, as blocks: (kind, content); and how it is laid out."""

    blocks: list[tuple[str, object]] = field(default_factory=list)
    columns: int = 1
    head: str = ""
    lined: bool = True
    language: str = "en"

    def truth(self) -> dict[str, object]:
        """Return what a reader has to find."""

        def of(kind: str) -> list:
            return [content for name, content in self.blocks if name == kind]

        return {
            "paragraphs": of("p"),
            "headings": of("h"),
            "rows": [row for rows in of("table") for row in rows],
            "notes": of("note"),
            "head": self.head,
            "language": self.language,
        }


def text(template: str = ENGLISH, paragraphs: int = 2, table: bool = False, notes: bool = False, **form) -> Text:
    """Return a text of three sections with some paragraphs each."""
    blocks: list[tuple[str, object]] = []
    numbers = itertools.cycle(range(12))
    for place, heading in enumerate(HEADINGS):
        blocks.append(("h", heading))
        for _ in range(paragraphs):
            number = next(numbers)
            blocks.append(("p", template.format(NAMES[number], TOWNS[number])))
            if notes and not place:
                blocks.append(("note", f"The {NAMES[number]} remark was made by the auditor of {TOWNS[number]}."))
        if table and place == 1:
            blocks.insert(-1, ("table", ROWS))
    return Text(blocks, **form)


# HTML, from which weasyprint and LibreOffice make PDFs
def as_html(one: Text, office: bool = False) -> str:
    border = "border: 1px solid black" if one.lined else "border: none"
    style = (
        f"body {{font-size: 11pt; font-family: DejaVu Serif}} td, th {{{border}; padding: 4pt}} h1 {{font-size: 17pt}}"
    )
    if not office:
        style += " p {text-align: justify; hyphens: auto} .note {float: footnote}"
        style += f" @page {{size: A4; margin: 2.5cm; @top-center {{content: '{one.head}'}} "
        style += "@bottom-center {content: 'Page ' counter(page)}}" if one.head else "}"
        style += f" #text {{columns: {one.columns}; column-gap: 1cm}} h1 {{column-span: none}}"
    parts = []
    for kind, content in one.blocks:
        if kind == "table":
            head, *rows = (
                "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
                for row in content  # type: ignore[union-attr]
            )
            body = "".join(f"<tr>{row}</tr>" for row in rows)
            parts.append(f"<table style='border-collapse: collapse'><tr>{head}</tr>{body}</table>")
        elif kind == "note":
            parts[-1] = parts[-1].removesuffix("</p>") + f"<span class=note>{content}</span></p>"
        else:
            tag = "h1" if kind == "h" else "p"
            parts.append(f"<{tag}>{html.escape(str(content))}</{tag}>")
    head = f"<head><meta charset=utf-8><style>{style}</style></head>"
    return f"<html lang={one.language}>{head}<body><div id=text>{''.join(parts)}</div></body></html>"


def weasyprint(one: Text, path: Path) -> None:
    from weasyprint import HTML

    HTML(string=as_html(one)).write_pdf(path)


def libreoffice(one: Text, path: Path) -> None:
    source = path.with_suffix(".html")
    source.write_text(as_html(one, office=True))
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        raise ImportError("libreoffice")
    command = [office, "--headless", "--convert-to", "pdf:writer_web_pdf_Export", "--outdir", path.parent, source]
    subprocess.run(command, check=True, capture_output=True)
    source.unlink()


def reportlab(one: Text, path: Path, rotate: int = 0, scanned: bool = False, form: bool = False) -> None:
    from reportlab.lib.pagesizes import A4, landscape
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, Spacer, Table

    font = "Helvetica"
    if one.language == "zh":
        font = "STSong-Light"
        pdfmetrics.registerFont(UnicodeCIDFont(font))
    normal = ParagraphStyle(
        "p", fontName=font, fontSize=11, leading=14, spaceAfter=8, wordWrap="CJK" * (font != "Helvetica") or None
    )
    heading = ParagraphStyle("h", parent=normal, fontSize=17, leading=21, spaceBefore=10)
    note = ParagraphStyle("note", parent=normal, fontSize=8, leading=10)
    lines = [("GRID", (0, 0), (-1, -1), 0.5, "black")] if one.lined else []
    story = []
    for kind, content in one.blocks:
        if kind == "table":
            story += [Table(content, style=lines), Spacer(0, 10)]
        else:
            story.append(Paragraph(str(content), {"h": heading, "p": normal, "note": note}[kind]))
    width, height = landscape(A4) if rotate else A4

    def decorate(canvas, document) -> None:
        if rotate:
            canvas.setPageRotation(rotate)
        if one.head:
            canvas.setFont("Helvetica", 9)
            canvas.drawCentredString(width / 2, height - 40, one.head)
            canvas.drawCentredString(width / 2, 30, f"Page {document.page}")
        if scanned:
            canvas.setFillGray(0.9)
            canvas.rect(0, 0, width, height, fill=1)
            canvas._code.append("3 Tr")
        if form:
            canvas.acroForm.textfield(name="who", x=72, y=90, width=200, value="Inspector Ada Miller")

    inner = (width - 144 - 20 * (one.columns - 1)) / one.columns
    frames = [Frame(72 + place * (inner + 20), 72, inner, height - 144) for place in range(one.columns)]
    document = BaseDocTemplate(str(path), pagesize=(width, height))
    document.addPageTemplates(PageTemplate(frames=frames, onPage=decorate))
    document.build(story)


def fpdf2(one: Text, path: Path) -> None:
    from fpdf import FPDF

    class Document(FPDF):
        def header(self) -> None:
            if one.head:
                self.set_font("helvetica", size=9)
                self.cell(0, 8, one.head, align="C", new_x="LMARGIN", new_y="NEXT")

        def footer(self) -> None:
            if one.head:
                self.set_y(-15)
                self.set_font("helvetica", size=9)
                self.cell(0, 8, f"Page {self.page_no()}", align="C")

    document = Document(format="A4")
    document.add_page()
    if one.columns > 1:
        document.set_font("helvetica", size=11)
        with document.text_columns(ncols=one.columns, gutter=8, text_align="J") as columns:
            for kind, content in one.blocks:
                document.set_font("helvetica", "B" if kind == "h" else "", 16 if kind == "h" else 11)
                columns.write(str(content))
                columns.ln(8)
    else:
        for kind, content in one.blocks:
            document.set_font("helvetica", "B" if kind == "h" else "", 16 if kind == "h" else 11)
            if kind == "table":
                with document.table(
                    borders_layout="ALL" if one.lined else "NONE", first_row_as_headings=False
                ) as table:
                    for row in content:  # type: ignore[union-attr]
                        table.row(row)
            else:
                document.multi_cell(0, 6, str(content), new_x="LMARGIN", new_y="NEXT")
                document.ln(3)
    document.output(str(path))


def groff(one: Text, path: Path) -> None:
    if not (shutil.which("groff") and shutil.which("ps2pdf")):
        raise ImportError("groff, ps2pdf")
    source = [".2C"] if one.columns > 1 else []
    source = [f".ds CH {one.head}", *source]
    for kind, content in one.blocks:
        if kind == "table":
            rows = ["\t".join(row) for row in content]  # type: ignore[union-attr]
            source += [".TS", "allbox;" if one.lined else "center;", "l l l l.", *rows, ".TE"]
        else:
            source += [".SH 1" if kind == "h" else ".LP", str(content)]
    made = subprocess.run(
        ["groff", "-t", "-ms", "-Tps", "-K", "utf8"],
        input="\n".join(source),
        text=True,
        check=True,
        capture_output=True,
    )
    subprocess.run(["ps2pdf", "-", str(path)], input=made.stdout, text=True, check=True)


def matplotlib(one: Text, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6))
    axes = figure.subplots()
    axes.axis("off")
    axes.set_title(HEADINGS[1])
    axes.table(cellText=ROWS, loc="center")
    figure.savefig(path)


def files() -> Iterator[tuple[str, Text, Callable[[Text, Path], None]]]:
    """Yield the name of each file, its text and what makes it."""
    plain, table, bare = text(), text(table=True), text(table=True, lined=False)
    heads, columns = text(paragraphs=12, head=HEAD), text(paragraphs=4, columns=2)
    german = text(GERMAN, language="de")
    for make in (weasyprint, reportlab, fpdf2, groff, libreoffice):
        name = make.__name__
        variants = {"plain": plain, "table": table, "bare": bare, "heads": heads, "columns": columns, "german": german}
        for kind in ("heads", "columns") if make is libreoffice else ():
            del variants[kind]
        for kind, one in variants.items():
            yield f"{name}-{kind}", one, make
    yield "weasyprint-notes", text(notes=True), weasyprint
    yield "reportlab-rotated", table, lambda one, path: reportlab(one, path, rotate=90)
    yield "reportlab-scanned", plain, lambda one, path: reportlab(one, path, scanned=True)
    yield "reportlab-form", plain, lambda one, path: reportlab(one, path, form=True)
    yield "reportlab-chinese", text(CHINESE, language="zh"), reportlab
    yield "matplotlib-table", Text([("p", HEADINGS[1]), ("table", ROWS)]), matplotlib


def main(folder: Path) -> None:
    """Write the files and what is known of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, one, make in files():
        path = folder / f"{name}.pdf"
        if path.with_suffix(".json").exists():
            continue
        try:
            make(one, path)
        except (ImportError, subprocess.CalledProcessError) as error:
            print(f"{name}: passed over: {error}")
            continue
        path.with_suffix(".json").write_text(json.dumps(one.truth(), ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
