"""What is written is found again, sign by sign but for white space, in each format and encoding."""

import csv
import html
import json
import re
import zipfile
from email.message import EmailMessage
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from likewise.corpus import CorpusOptions, CorpusReport
from likewise.searching.index.passages import Splitting

SETTINGS = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
SIGNS = "abcXYZ019äößéñłżЖяφあ水한กع.,;:!?'\"()[]{}<>|/\\#*_~`^+-=&%$@§€°…→"
TEXTS = st.lists(st.text(SIGNS, min_size=1, max_size=9), min_size=1, max_size=9).map(" ".join)
FIELD = CorpusOptions(field="text")


def bare(text: str) -> str:
    return "".join(normalize("NFC", text).split())


def read(path: Path, options: CorpusOptions, words: int = 40) -> str:
    return bare(" ".join(one.title + " " + one.text for one in Splitting(words, options).read(path)))


def paragraphs(texts: list[str]) -> str:
    return "".join(f"<p>{html.escape(text, quote=False)}</p>" for text in texts)


def write_csv(path: Path, texts: list[str], separator: str) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerows([["id", "text"], *([str(i), text] for i, text in enumerate(texts))])


def write_tsv(path: Path, texts: list[str]) -> None:
    path.write_text("id\ttext\n" + "".join(f"{i}\t{text}\n" for i, text in enumerate(texts)), encoding="utf-8")


def write_parquet(path: Path, texts: list[str]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": texts}), path)


def write_sheet(path: Path, texts: list[str]) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["id", "text"])
    for number, text in enumerate(texts):
        book.active.append([number, text])
        book.active.cell(number + 2, 2).data_type = "s"  # '=a' is no formula
    book.save(path)


def write_mail(path: Path, texts: list[str]) -> None:
    message = EmailMessage()
    message["Subject"], message["From"] = "Pumps", "ada@example.org"
    message.set_content("\n\n".join(texts))
    path.write_bytes(bytes(message))


def write_book(path: Path, texts: list[str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/container.xml", '<container><rootfile full-path="o/b.opf"/></container>')
        items = "".join(f'<item id="c{i}" href="c{i}.xhtml"/>' for i in range(len(texts)))
        order = "".join(f'<itemref idref="c{i}"/>' for i in range(len(texts)))
        archive.writestr("o/b.opf", f"<package><manifest>{items}</manifest><spine>{order}</spine></package>")
        for number, text in enumerate(texts):
            archive.writestr(f"o/c{number}.xhtml", f"<html><body>{paragraphs([text])}</body></html>")


def write_open_document(path: Path, texts: list[str]) -> None:
    body = "".join(f"<text:p>{html.escape(text)}</text:p>" for text in texts)
    spaces = 'xmlns:office="urn:o" xmlns:text="urn:t"'
    content = (
        f"<office:document {spaces}><office:body><office:text>{body}</office:text></office:body></office:document>"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("content.xml", content)


def write_word(path: Path, texts: list[str]) -> None:
    base = "http://schemas.openxmlformats.org"
    word = f"{base}/wordprocessingml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    body = "".join(f"<w:p><w:r><w:t>{html.escape(text, quote=False)}</w:t></w:r></w:p>" for text in texts)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{base}/package/2006/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{kind}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{base}/package/2006/relationships"><Relationship Id="rId1" '
        f'Type="{base}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>',
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def write_slides(path: Path, texts: list[str]) -> None:
    pptx = pytest.importorskip("pptx")
    slides = pptx.Presentation()
    for text in texts:
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.placeholders[1].text = text
    slides.save(path)


def text_file(join: str, begin: str = ""):
    return lambda path, texts: path.write_text(join.join(f"{begin}{text}" for text in texts) + "\n", encoding="utf-8")


def write_restructured_text(path: Path, texts: list[str]) -> None:
    """Write paragraphs in which each sign that may be a mark is escaped."""
    text_file("\n\n", "Note ")(path, [re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text) for text in texts])


def lines_of_json(path: Path, texts: list[str]) -> None:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


QUICK = {
    ".txt": text_file("\n"),
    ".md": text_file("\n\n", "Note "),
    ".rst": write_restructured_text,
    ".org": text_file("\n\n", "Note "),
    ".adoc": text_file("\n\n", "Note "),
    ".jsonl": lines_of_json,
    ".json": lambda path, texts: path.write_text(json.dumps([{"text": text} for text in texts], indent=1)),
    ".csv": lambda path, texts: write_csv(path, texts, ","),
    ".semicolons.csv": lambda path, texts: write_csv(path, texts, ";"),
    ".tsv": write_tsv,
    ".parquet": write_parquet,
    ".ipynb": lambda path, texts: path.write_text(
        json.dumps({"cells": [{"cell_type": "markdown", "source": f"Note {text}"} for text in texts]})
    ),
}
CONVERTED = {
    ".html": lambda path, texts: path.write_text(f"<meta charset=utf-8>{paragraphs(texts)}", encoding="utf-8"),
    ".docx": write_word,
    ".pptx": write_slides,
    ".xlsx": write_sheet,
    ".epub": write_book,
    ".odt": write_open_document,
    ".eml": write_mail,
}


def is_marked(text: str) -> bool:
    """Whether Markdown gives a sign of the text a meaning within a line: links go, and so do comments."""
    return "](" in text or "][" in text or "<!--" in text


@pytest.mark.parametrize("suffix", QUICK)
@settings(max_examples=25, **SETTINGS)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
def test_text_and_rows(suffix, texts, tmp_path):
    if suffix in (".md", ".ipynb") and any(map(is_marked, texts)):
        return
    path = tmp_path / f"a{suffix}"
    QUICK[suffix](path, texts)
    rows = suffix in (".jsonl", ".json", ".parquet") or suffix.endswith(("csv", "tsv"))
    found = read(path, FIELD if rows else CorpusOptions())
    for text in texts:
        if any(sign.isalnum() for sign in text):
            assert bare(text) in found


@pytest.mark.parametrize("suffix", CONVERTED)
@settings(max_examples=6, **SETTINGS)
@given(texts=st.lists(TEXTS, min_size=3, max_size=12))
def test_documents(suffix, texts, tmp_path):
    pytest.importorskip("markitdown")
    path = tmp_path / f"a{suffix}"
    CONVERTED[suffix](path, [f"Note {text}" for text in texts])
    found = read(path, CorpusOptions())
    for text in texts:
        assert bare(text) in found


PROSE = {
    "cp1252": "Der Müller mahlt Getreide auf der Brücke. Die Größe der Ölpumpe ist außen angeschrieben.",
    "latin-1": "Où est le café ? La fenêtre est fermée, l'été aussi. La pompe à côté a été réparée.",
    "iso8859-2": "Zażółć gęślą jaźń. Proszę zamknąć zawór, ponieważ pompa jest zepsuta i wymaga części.",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy. Čerpadlo je rozbité a teče z něj olej.",
    "cp1251": "Насос в подвале сломан и теряет масло. Техник должен заменить уплотнение.",
    "koi8-r": "Насос в подвале сломан и теряет масло. Техник должен заменить уплотнение.",
    "cp1253": "Η αντλία στο υπόγειο έχει χαλάσει και χάνει λάδι.",
    "cp1255": "המשאבה במרתף התקלקלה ודולפת שמן. הטכנאי יחליף את האטם.",
    "cp1256": "المضخة في الطابق السفلي معطلة وتسرب الزيت. سيقوم الفني باستبدال الختم.",
    "shift_jis": "地下室のポンプが壊れて油が漏れています。技術者は交換しなければなりません。",
    "euc_jp": "地下室のポンプが壊れて油が漏れています。技術者は交換しなければなりません。",
    "iso2022_jp": "地下室のポンプが壊れて油が漏れています。",
    "gb18030": "地下室的水泵坏了，正在漏油。技术人员必须更换密封圈。",
    "big5": "地下室的水泵壞了，正在漏油。技術人員必須更換密封圈。",
    "euc_kr": "지하실의 펌프가 고장 나서 기름이 샙니다. 기술자가 교체해야 합니다.",
    "iso2022_kr": "지하실의 펌프가 고장 나서 기름이 샙니다. 기술자가 교체해야 합니다.",
    "johab": "지하실의 펌프가 고장 나서 기름이 샙니다. 기술자가 교체해야 합니다.",
    "iso8859-6": "المضخة في الطابق السفلي معطلة وتسرب الزيت. سيقوم الفني باستبدال الختم.",
    "cp874": "ปั๊มในชั้นใต้ดินเสียและน้ำมันรั่ว ช่างต้องเปลี่ยนซีลวันนี้",
    "utf-16": "Zürich 水泵 Насос.",
    "utf-16-le": "Die Pumpe in Zürich ist undicht.",
    "utf-16-be": "Die Pumpe in Zürich ist undicht.",
    "utf-32": "Die Pumpe in Zürich ist undicht.",
    "utf-8-sig": "Die Pumpe in Zürich ist undicht.",
}
ASCII_TEXTS = st.lists(st.text("abcXYZ019.,;:!?'\"()<>/#*+-=&%", min_size=1, max_size=9), max_size=6).map(" ".join)


@pytest.mark.parametrize("encoding", PROSE)
@settings(max_examples=6, **SETTINGS)
@given(more=ASCII_TEXTS, end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_encodings(encoding, more, end, tmp_path):
    lines = [PROSE[encoding], more, PROSE[encoding]]
    report = CorpusReport()
    for name, text in (
        ("a.txt", end.join(lines)),
        ("a.csv", end.join(["id;text", *(f"1;{PROSE[encoding]}" for _ in "ab")])),
    ):
        path = tmp_path / name
        path.write_bytes((text + end).encode(encoding))
        found = bare(" ".join(one.text for one in Splitting(40, FIELD).read(path, report)))
        assert found.count(bare(PROSE[encoding])) == 2
    assert (len(report.messages) == 2) == (encoding != "utf-8-sig")
    path = tmp_path / "a.txt"
    path.write_bytes(end.join(lines).encode(encoding))
    assert any(sign.isalnum() for sign in more) <= (bare(more) in read(path, CorpusOptions()))
