import threading
import time

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import likewise
from likewise.errors import LikewiseError, MissingExtraError
from likewise.inference import handle, policy
from likewise.runs.job import read_record
from likewise.searching.index import table_update
from likewise.searching.index.index_update import index, recall_of
from likewise.searching.index.table import SearchError
from likewise.searching.search_index import Index


def contents(folder):
    """All that an index holds, in an order of its own."""
    found = Index(folder).table._select(["file", "line", "title", "text", "last", "vector"]).to_pylist()
    return sorted((row["file"], row["line"], row["title"], row["text"], row["last"], row["vector"]) for row in found)


def test_passages_and_their_vectors_are_those_of_the_model(indexed, sentences, saved_model):
    rows = contents(indexed)
    wanted = [f"Rivers: {sentences[40]} {sentences[41]}", f"Rivers > Dogs: {sentences[42]}", *sentences[:40]]
    vectors = SentenceTransformer(str(saved_model)).encode(wanted, normalize_embeddings=True)
    by_text = {f"{title}: {text}" if title else text: vector for _, _, title, text, _, vector in rows}
    np.testing.assert_allclose([by_text[text] for text in wanted], vectors, atol=1e-5)
    assert [row[1] for row in rows if row[0].endswith("lines.txt")] == list(range(1, 41))
    assert sum(row[4] for row in rows) == 2


def test_an_update_encodes_what_is_new_and_removes_what_is_gone(notes, saved_model, sentences, tmp_path):
    out = tmp_path / "notes.index"
    first = index(notes, model=saved_model, out=out, quiet=True)
    assert (first.passages, first.files, first.encoded, first.added, first.removed) == (42, 2, 42, 2, 0)
    again = index(notes, out=out, quiet=True)  # the model is that of the index
    assert (again.passages, again.encoded, again.added, again.removed) == (42, 0, 0, 0)

    lines = (notes / "deep" / "lines.txt").read_text().splitlines()
    (notes / "deep" / "lines.txt").write_text("\n".join([*lines[5:], "a new cat ."]) + "\n")
    (notes / "heads.md").rename(notes / "moved.md")
    changed = index(notes, out=out, quiet=True)
    assert (changed.passages, changed.files, changed.encoded, changed.added, changed.removed) == (38, 2, 1, 2, 2)
    index(notes, model=saved_model, out=tmp_path / "fresh.index", quiet=True)
    for found, wanted in zip(contents(out), contents(tmp_path / "fresh.index"), strict=True):
        assert found[:5] == wanted[:5]
        np.testing.assert_allclose(found[5], wanted[5], atol=1e-6)

    kept = index(notes / "moved.md", out=out, keep=True, quiet=True)
    assert (kept.passages, kept.removed) == (38, 0)
    gone = index(notes / "moved.md", out=out, quiet=True)
    assert (gone.passages, gone.files, gone.encoded, gone.removed) == (2, 1, 0, 1)
    assert likewise.search(out, sentences[20], words_only=True, k=1)[0].file.endswith("moved.md")


def test_a_stopped_run_is_resumed_and_its_readers_see_the_old_index(notes, saved_model, tmp_path, after_two_windows):
    out = tmp_path / "notes.index"
    index(notes / "heads.md", model=saved_model, out=out, quiet=True)
    reader = Index(out)
    with after_two_windows():
        index(notes, out=out, quiet=True)
    assert (reader.table.rows, Index(out).table.rows) == (2, 2)
    rest = index(notes, out=out, quiet=True)
    assert (rest.passages, rest.encoded) == (42, 8)
    assert reader.table.rows == 42
    index(notes, model=saved_model, out=tmp_path / "fresh.index", quiet=True)
    assert [row[:5] for row in contents(out)] == [row[:5] for row in contents(tmp_path / "fresh.index")]


def test_two_readers_while_one_writes(notes, saved_model, tmp_path, sentences):
    out = tmp_path / "notes.index"
    index(notes, model=saved_model, out=out, quiet=True)
    faults, done = [], threading.Event()

    def read():
        reader = Index(out)
        while not done.is_set():
            try:
                rows = len(reader.search(sentences[3], 100, mode="words"))
                if rows not in (39, 40, 41, 42):
                    faults.append(rows)
            except Exception as error:
                faults.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for one in readers:
        one.start()
    with (notes / "deep" / "lines.txt").open("a") as file:
        file.write("the zebra\n")
    index(notes, out=out, quiet=True)
    done.set()
    for one in readers:
        one.join()
    assert faults == []
    assert likewise.search(out, "zebra", words_only=True)[0].text == "the zebra"


def test_binary_files_of_a_folder_are_skipped_and_a_named_one_is_refused(notes, saved_model, tmp_path, says):
    (notes / "picture.bin").write_bytes(b"\0\1\2")
    (notes / "binary.txt").write_bytes(b"\0\1\2")
    (notes / "page.py").write_text("The cat sees the dog.\n")
    found = index(notes, model=saved_model, out=tmp_path / "a.index", quiet=True)
    assert found.passages == 42
    assert len(found.skipped) == 2
    assert "2 files in other formats (1 .bin, 1 .py)" in found.skipped[0]
    assert "binary.txt:1" in found.skipped[1]
    found = index([notes, notes / "page.py"], out=tmp_path / "a.index", quiet=True)
    assert found.passages == 43, "a named file is read"
    with says(LikewiseError, hidden=r"(?<=null byte: give ).*"):
        index(notes / "picture.bin", out=tmp_path / "a.index", quiet=True)


def test_an_approximate_index_is_built_from_the_size_asked_for(sentences, saved_model, tmp_path, corpus_file):
    found = index(corpus_file, model=saved_model, out=tmp_path / "a.index", approximate=300, quiet=True)
    table = Index(tmp_path / "a.index").table
    assert table.is_approximate
    assert found.passages == len(set(sentences))
    assert found.recall == pytest.approx(recall_of(table))
    assert found.recall > 0.5


def test_another_model_or_other_options_are_refused(indexed, tiny_base, notes, says):
    with says(LikewiseError):
        index(notes, model=str(tiny_base), out=indexed, quiet=True)
    with says(LikewiseError):
        index(notes, words=5, out=indexed, quiet=True)
    with says(SearchError):
        likewise.search(indexed, "the cat", model=str(tiny_base))


def test_what_is_not_an_index_is_said_with_the_cure(tmp_path, notes, saved_model, says):
    with says(SearchError):
        likewise.search(tmp_path / "none", "a")
    with says(SearchError):
        index(notes, out=tmp_path / "new.index", quiet=True)
    with says(SearchError):
        index(notes, model=saved_model, metadata=["line"], out=tmp_path / "new.index", quiet=True)


def test_a_damaged_table_is_said_with_the_cure(notes, saved_model, tmp_path, says):
    out = tmp_path / "a.index"
    index(notes / "heads.md", model=saved_model, out=out, quiet=True)
    for path in next(out.glob("*.lance")).rglob("*.manifest"):
        path.write_bytes(b"nonsense")
    with says(SearchError, hidden=r"\(lance error.*\)"):
        likewise.search(out, "the cat")
    assert index(notes / "heads.md", model=saved_model, out=out, overwrite=True, quiet=True).passages == 2
    assert likewise.search(out, "the cat", k=1)


def test_without_lancedb_the_extra_is_named(indexed, monkeypatch, says):
    monkeypatch.setattr("likewise.errors.find_spec", lambda name: None)
    with says(MissingExtraError):
        likewise.search(indexed, "the cat")


def test_an_index_of_nothing_is_refused_and_what_is_there_stays(saved_model, tmp_path, says):
    (tmp_path / "a.txt").write_text("\n---\n")
    with says(LikewiseError):
        index(tmp_path / "a.txt", model=saved_model, out=tmp_path / "a.index", quiet=True)
    (tmp_path / "a.txt").write_text("the old cat\n")
    assert index(tmp_path / "a.txt", model=saved_model, out=tmp_path / "a.index", quiet=True).passages == 1
    (tmp_path / "b.txt").write_text("\n---\n")
    with says(LikewiseError):
        index(tmp_path / "b.txt", out=tmp_path / "a.index", quiet=True)
    for mode in ("vectors_only", "words_only"):
        assert len(likewise.search(tmp_path / "a.index", "the cat", **{mode: True})) == 1


def test_an_encoder_of_words_which_reads_texts_of_any_length_makes_an_index(notes, tmp_path):
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "river": 1, "dog": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=np.eye(3, dtype=np.float32))])
    assert model.max_seq_length == float("inf")
    model.save(str(tmp_path / "words"))
    made = index(notes, model=tmp_path / "words", out=tmp_path / "words.index", quiet=True)
    assert made.passages == 42


def test_a_text_that_comes_again_is_encoded_once_though_the_first_is_still_being_written(
    saved_model, sentences, tmp_path, monkeypatch
):
    monkeypatch.setattr(table_update, "WINDOW", 8)
    monkeypatch.setattr(table_update.Table, "add", slowly(table_update.Table.add))
    source = tmp_path / "lines.txt"
    source.write_text("\n".join([*sentences[:8], *sentences[4:12], *sentences[:8]]) + "\n")
    made = index(source, model=saved_model, out=tmp_path / "a.index", quiet=True)
    assert (made.passages, made.encoded) == (24, 12)
    by_text: dict[str, set[bytes]] = {}
    for *_, text, _, vector in contents(tmp_path / "a.index"):
        by_text.setdefault(text, set()).add(np.array(vector).tobytes())
    assert len(by_text) == 12
    assert all(len(vectors) == 1 for vectors in by_text.values())


def slowly(add):
    def added(self, *args):
        time.sleep(0.1)
        add(self, *args)

    return added


def test_an_index_keeps_its_precision_and_a_stopped_run_its_engine(
    notes, saved_model, sentences, tmp_path, monkeypatch, after_two_windows
):
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "bf16")
    monkeypatch.setattr(handle, "FEW", 10)
    monkeypatch.setattr(policy, "ENOUGH", 10)
    out, exact = tmp_path / "a.index", tmp_path / "exact.index"
    with after_two_windows():
        index(notes, model=saved_model, out=out, precision="close", quiet=True)
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "none")  # where bfloat16 would not be chosen
    index(notes, model=saved_model, out=out, precision="close", quiet=True)
    index(notes, model=saved_model, out=exact, quiet=True)
    records = [read_record(path) for path in (out, exact)]
    assert [(record["precision"], record["engine"]) for record in records] == [
        ("close", "torch bf16"),
        ("fp32", "torch fp32"),
    ]
    lowest = min(np.dot(a[5], b[5]) for a, b in zip(contents(out), contents(exact), strict=True))
    assert lowest >= 0.999
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "bf16")
    (notes / "more.txt").write_text("\n".join(sentences[45:60]) + "\n")
    index(notes, out=exact, quiet=True)
    assert read_record(exact)["engine"] == "torch fp32"
    Index(out).add(sentences[60:75])
    assert read_record(out)["engine"] == "torch bf16"


def test_a_name_with_a_colon_is_no_address(word_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = index(["the cat", "the dog"], model=word_model, out="notes:2024", quiet=True)
    assert [hit.text for hit in made.search("cat", 1)] == ["the cat"]
