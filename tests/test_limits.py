"""What files, folders and shells do to a run: files that change or vanish, devices, bombs, rights and memory."""

from pathlib import Path

import pytest

import likewise
from likewise.corpus import CorpusError
from likewise.searching import Index, index, indexing


def while_reading(monkeypatch, name, change):
    """Call `change` when the file of that name is about to be read, after the run has looked at all files."""
    read = indexing.Splitting.read

    def late(self, path):
        if path.name == name:
            change(path)
        return read(self, path)

    monkeypatch.setattr(indexing.Splitting, "read", late)


def while_looking(monkeypatch, name, change):
    """Call `change` when the content of the file of that name is about to be looked at."""
    checksum = indexing.checksum

    def late(path):
        if path.name == name:
            change(path)
        return checksum(path)

    monkeypatch.setattr(indexing, "checksum", late)


@pytest.mark.parametrize("when", [while_looking, while_reading])
def test_a_source_that_vanishes_is_one_sentence_and_nothing_is_lost(when, notes, saved_model, tmp_path, monkeypatch):
    out, gone = tmp_path / "a.index", notes / "heads.md"
    index(notes, model=saved_model, out=out, quiet=True)
    gone.write_text(f"{gone.read_text()}\nThe old dog sees the river.\n")
    with monkeypatch.context() as patched:
        when(patched, "heads.md", Path.unlink)
        with pytest.raises(CorpusError, match=r"heads\.md: .*No such file.*check"):
            index([notes / "deep", gone], model=saved_model, out=out, quiet=True)
    assert Index(out).table.rows == 42, "the index is as it was"
    found = index(notes, model=saved_model, out=out, quiet=True)
    assert (found.passages, found.files) == (40, 1)


@pytest.mark.parametrize("when", [while_looking, while_reading])
def test_a_file_of_a_folder_that_vanishes_is_passed_over(when, notes, saved_model, tmp_path, monkeypatch):
    when(monkeypatch, "heads.md", Path.unlink)
    found = index(notes, model=saved_model, out=tmp_path / "a.index", quiet=True)
    assert (found.passages, found.files) == (40, 1)
    (reason,) = found.skipped
    assert "heads.md: " in reason
    assert "No such file" in reason


def test_a_document_that_vanishes_is_passed_over(notes, saved_model, tmp_path, monkeypatch):
    pytest.importorskip("markitdown")
    (notes / "page.html").write_text("<p>The old dog sees the river.</p>")
    while_reading(monkeypatch, "page.html", Path.unlink)
    found = index(notes, model=saved_model, out=tmp_path / "a.index", quiet=True)
    assert found.passages == 42
    assert "page.html: cannot be opened (No such file" in found.skipped[0]


def test_a_file_that_changes_while_it_is_read_is_read_again_by_the_next_run(notes, saved_model, tmp_path, monkeypatch):
    out, changing = tmp_path / "a.index", notes / "heads.md"
    before = changing.read_text()

    def change(path):
        path.write_text("The green bridge follows the song.\n")

    with monkeypatch.context() as patched:
        while_reading(patched, "heads.md", change)
        found = index(notes, model=saved_model, out=out, quiet=True)
    assert found.passages == 41
    assert "heads.md: it changed while it was read: index again" in found.skipped[0]
    changing.write_text(before)  # what was looked at is there again, and it is not what was read
    assert index(notes, model=saved_model, out=out, quiet=True).passages == 42
    assert "Rivers > Dogs" in {hit.title for hit in Index(out).search("dogs", 42, mode="words")}


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/urandom", "/dev/full"])
def test_a_device_without_an_end_is_refused(name, saved_model, tmp_path):
    if not Path(name).exists():
        pytest.skip(f"there is no {name} here")
    with pytest.raises(likewise.LikewiseError, match="is a device"):
        index(name, model=saved_model, out=tmp_path / "a.index", quiet=True)
    with pytest.raises(likewise.LikewiseError, match="is a device"):
        likewise.encode_file(saved_model, name, tmp_path / "a.npy", quiet=True)


@pytest.mark.parametrize("mode", ["words", "vectors", "hybrid"])
def test_any_number_of_hits_may_be_asked_for(mode, indexed):
    found = Index(indexed).search("the cat", 10**30, mode=mode)
    assert len({(hit.file, hit.line) for hit in found}) == len(found)
    assert 0 < len(found) <= 42
