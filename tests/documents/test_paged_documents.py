"""Web pages, notebooks, Word, PowerPoint and PDF files, made here."""

import json
import os
import shutil
import signal
import threading
import time
import zipfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from likewise.corpus import CorpusError, CorpusOptions, read_sentences
from likewise.corpus.formats import Source
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.passages import read_passages
from likewise.corpus.sources import find_sources, open_source
from likewise.documents import guard, paged_format
from likewise.documents.web_pages import WebPage
from likewise.runs.progress import Progress, Stopped, orderly_stop
from likewise.searching.index.table_update import read_ahead

OPTIONS = CorpusOptions()
PARTS = Path(__file__).parent / "parts"
PUMP = "The pump does not start if the valve is closed. Open it first."


def blocks(path: Path) -> list[tuple]:
    """The place, the headings, the kind and the sentences of each paragraph."""
    found = read_paragraphs(open_source(path, OPTIONS), blocks=True)
    return [(one.sentences[0][0], one.headings, one.kind, [text for _, text in one.sentences]) for one in found]


def pages_of(path: Path) -> list:
    """The pages of a file."""
    source = open_source(path, CorpusOptions())
    return list(source.format.read(source))


def test_a_web_page_is_its_text_below_its_headings(write):
    page = "<html><head><title>Manual</title><meta name=viewport><style>p {}</style></head><body><nav>Home</nav>"
    page += f"<h1>Pumps</h1><script>run()</script><p>{PUMP}\nSee <a href='x.html'>the list</a>.</p>"
    page += "<pre>make\n  test</pre><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"
    found = blocks(write("a.html", page + "<footer>Imprint</footer></body></html>"))
    headings = ("Manual", "Pumps")
    assert found[0] == (
        0,
        headings,
        "prose",
        ["The pump does not start if the valve is closed.", "Open it first.", "See the list."],
    )
    assert found[1] == (0, headings, "code", ["```", "make", "  test", "```"])
    assert found[2] == (0, headings, "table", ["| a | b |", "| --- | --- |", "| 1 | 2 |"])
    assert len(found) == 3


def test_a_word_file_has_the_headings_of_its_styles():
    assert blocks(PARTS / "headings.docx") == [
        (0, ("Pumps",), "prose", ["The pump does not start if the valve is closed.", "Open it first."]),
        (0, ("Pumps", "Parts"), "prose", ["A seal."]),
    ]


def test_the_place_in_a_presentation_is_the_slide(tmp_path):
    pptx = pytest.importorskip("pptx")
    slides = pptx.Presentation()
    for title in ("Pumps", "Valves"):
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, f"{title} need oil."
    slides.save(tmp_path / "a.pptx")
    assert blocks(tmp_path / "a.pptx") == [
        (1, ("Pumps",), "prose", ["Pumps need oil."]),
        (2, ("Valves",), "prose", ["Valves need oil."]),
    ]


def test_the_place_in_a_pdf_is_the_page_and_running_heads_are_left_out(tmp_path):
    shutil.copy(PARTS / "running-heads.pdf", tmp_path / "unnamed")  # a PDF is known by its content
    for path in (PARTS / "running-heads.pdf", tmp_path / "unnamed"):
        assert blocks(path) == [
            (1, (), "prose", ["The pump has a valve."]),
            (2, (), "prose", ["The valve is closed.", "It is red."]),
            (3, (), "prose", ["# Oil is not a heading."]),
        ]


def test_the_place_in_a_notebook_is_the_cell(write):
    cells = [
        {"cell_type": "markdown", "source": ["# Pumps\n", PUMP]},
        {"cell_type": "code", "source": "# no heading\nx = 1", "outputs": [{"text": "left out"}]},
        {"cell_type": "markdown", "source": "It is red."},
    ]
    assert blocks(write("a.ipynb", json.dumps({"cells": cells}))) == [
        (1, ("Pumps",), "prose", ["The pump does not start if the valve is closed.", "Open it first."]),
        (2, ("Pumps",), "code", ["```", "# no heading", "x = 1", "```"]),
        (3, ("Pumps",), "prose", ["It is red."]),
    ]


def test_documents_are_text_to_learn_from(tmp_path, write):
    shutil.copy(PARTS / "headings.docx", tmp_path / "a.docx")
    write("b.html", f"<h1>Pumps</h1><p>Another pump stands still now.</p><pre>{PUMP}</pre>")
    assert list(read_sentences(tmp_path)) == [
        "The pump does not start if the valve is closed.",
        "Open it first.",
        "Another pump stands still now.",
    ]
    assert [(one.title, len(one.sentences)) for one in read_passages(tmp_path)] == [("Pumps", 2), ("Pumps", 1)]


def bomb(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"\0" * (80 << 20))
    return path


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: bomb(folder / "a.docx"),
        lambda folder: folder / "b.docx",
        lambda folder: PARTS / "empty.docx",
        lambda folder: PARTS / "no-text.pdf",
        lambda folder: folder / "e.pdf",
        lambda folder: folder / "f.ipynb",
        lambda folder: folder / "g.pptx",
        lambda folder: folder / "h.mbox",
    ],
    ids=["bomb", "text", "empty", "no text", "cut", "no notebook", "of Word", "no mail"],
)
def test_what_cannot_be_read_ends_in_one_sentence(make, tmp_path, says):
    (tmp_path / "b.docx").write_text("plain text")
    (tmp_path / "e.pdf").write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 9)
    (tmp_path / "f.ipynb").write_text('{"cells": [{}]}')
    shutil.copy(PARTS / "headings.docx", tmp_path / "g.pptx")
    (tmp_path / "h.mbox").touch()
    path = make(tmp_path)
    with says(CorpusError, hidden=r"(?<= \().*(?=\): save)") as fault:
        blocks(path)
    assert str(fault.value).startswith(str(path))
    assert "\n" not in str(fault.value)


def told_lines() -> tuple[Progress, list[str]]:
    """A display, and the lines that it is told."""
    progress, told = Progress(quiet=True), []
    progress.tell = told.append
    return progress, told


def test_a_file_that_cannot_be_read_is_passed_over_in_a_folder(tmp_path, write):
    write("a.html", f"<p>{PUMP}</p>")
    write("b.pdf", b"%PDF-1.7 and no more")
    progress, told = told_lines()
    assert [source.path.name for source in find_sources(tmp_path, OPTIONS, progress)] == ["a.html"]
    assert len(told) == 1
    assert told[0].startswith(f"skipped: {tmp_path}/b.pdf: it cannot be read as .pdf (")


def test_a_reader_that_hangs_is_ended_and_the_next_file_is_read(write, monkeypatch, says):
    path = write("a.html", f"<p>{PUMP} Once.</p>")
    blocks(write("first.html", f"<p>{PUMP} At first.</p>"))
    hung = guard.GUARD._process
    os.kill(hung.pid, signal.SIGSTOP)  # or else it might have answered already
    with monkeypatch.context() as patch:
        patch.setattr(guard, "FILE_SECONDS", 0.0)
        with says(CorpusError):
            blocks(path)
    assert hung.poll() is not None
    assert len(blocks(path)[0][3]) == 3
    process = guard.GUARD._process
    process.kill()
    process.wait()
    assert len(blocks(write("b.html", f"<p>{PUMP} Twice.</p>"))) == 1


def read_until_ended(path, pid, said, orderly, in_a_thread):
    """Read a web page; write the id of the process that converts it, and what is said at a stop in good order."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background ignore it

    def show():
        while guard.GUARD._process is None:
            time.sleep(0.01)
        pid.with_suffix(".part").write_text(str(guard.GUARD._process.pid))
        pid.with_suffix(".part").replace(pid)

    threading.Thread(target=show, daemon=True).start()
    work = WebPage().read(Source(path))
    try:
        with orderly_stop(Progress(quiet=True)) if orderly else nullcontext():
            list(read_ahead(work) if in_a_thread else work)
    except Stopped as stopped:
        said.write_text(str(stopped))


@pytest.mark.parametrize("ends", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("how", [[False, False], [True, False], [True, True]], ids=["plain", "orderly", "in a thread"])
def test_the_reader_ends_with_its_job(tmp_path, write, new_process, ends, how):
    path = write("a.html", "".join(f"<p>{'<b><i>' * 40}The pump {i} leaks{'</i></b>' * 40}</p>" for i in range(20_000)))
    pid, said = tmp_path / "pid", tmp_path / "said"
    job = new_process(read_until_ended, path, pid, said, *how)
    end = time.monotonic() + 60
    while not pid.exists() and job.is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.5)
    os.kill(job.pid, ends)
    job.join(20)
    assert not job.is_alive()
    reader, end = int(pid.read_text()), time.monotonic() + 10
    while alive(reader) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(reader)
    assert said.exists() == (how[0] and ends != signal.SIGKILL)
    assert not said.exists() or str(path) in said.read_text()


def alive(process):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def test_a_text_is_made_once(tmp_path, write, monkeypatch):
    path = write("a.html", "<p>Only once is this page made into text.</p>")
    first = blocks(path)
    monkeypatch.setattr(paged_format, "GUARD", None)
    assert blocks(path) == first


def test_without_the_extra_the_cure_is_named(tmp_path, write, monkeypatch, says):
    monkeypatch.setattr(paged_format, "find_spec", lambda name: None)
    page, text = write("a.html", "<p>x</p>"), write("b.txt", "One two three.")
    write("c.ipynb", json.dumps({"cells": []}))
    with says(CorpusError):
        find_sources(page, OPTIONS)
    progress, told = told_lines()
    assert [source.path.name for source in find_sources(tmp_path, OPTIONS, progress)] == ["b.txt", "c.ipynb"]
    assert told == ["skipped: 1 file (1 .html) can be read after pip install 'likewise[files]'"]
    text.unlink()
    (tmp_path / "c.ipynb").unlink()
    with says(CorpusError):
        find_sources(tmp_path, OPTIONS, progress)


def test_comments_that_never_end_lose_nothing_and_take_no_minute(write):
    begun = time.process_time()
    (block,) = blocks(write("a.html", f"<p>{PUMP}</p><!-- note --><p>{'<!--' * 50_000}<b>And</b> the rest.</p>"))[:1]
    assert time.process_time() - begun < 20
    assert "note" not in str(block)
    assert "the rest" in str(blocks(write("b.html", f"<p>{PUMP}</p><!--<!--<p>And the rest.</p>")))


def test_texts_and_mails_that_are_attached_to_a_mail_are_read(tmp_path):
    from email.message import EmailMessage

    inner, mail = EmailMessage(), EmailMessage()
    inner["Subject"] = "First report"
    inner.set_content("The seal leaks since March.")
    mail["Subject"], mail["Date"] = "Pump", "Tue, 14 May 2024 09:30:00 +0200"
    mail.set_content("The pump is loud.")
    mail.add_attachment("Oil was changed.", filename="notes.txt")
    mail.add_attachment(inner)
    mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="plan.pdf")
    (tmp_path / "a.eml").write_bytes(bytes(mail))
    (page,) = pages_of(tmp_path / "a.eml")
    for text in ("The pump is loud.", "Oil was changed.", "First report", "The seal leaks since March.", "plan.pdf"):
        assert text in page.text
    assert page.fields["date"] == "2024-05-14T09:30:00+02:00"


def test_mails_in_any_encoding_and_with_an_empty_part_are_read(tmp_path):
    from email.message import EmailMessage

    def read(name, content):
        (tmp_path / name).write_bytes(content)
        return " ".join(page.text for page in pages_of(tmp_path / name))

    for encoding in ("utf-8", "cp1252"):
        assert "Die Pumpe läuft aus." in read(
            f"{encoding}.eml", "Subject: A\n\nDie Pumpe läuft aus.\n".encode(encoding)
        )
    mail = EmailMessage()
    mail.set_content("\n")
    mail.add_alternative("<p>The pump leaks.</p>", subtype="html")
    assert "The pump leaks." in read("b.eml", bytes(mail))
    head = b"From a@x Wed May  1 10:00:00 2024\nSubject: One\n"
    box = read(
        "c.mbox", head + b"Content-Type: text/plain; charset=foo-8\n\nThe first.\n\n" + head + b"\nThe second.\n"
    )
    assert "The first." in box
    assert "The second." in box
