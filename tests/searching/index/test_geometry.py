import errno

import numpy as np
import pytest

from likewise.searching import Index, SearchError
from likewise.searching.index import geometry, lance_access, maxsim, table
from likewise.searching.index.geometry import Geometry
from likewise.searching.index.index_update import index


def opened(folder):
    reader = Index(folder)
    return reader.table, reader._opened.stored.geometry


def by_text(folder):
    """Text to the cosines of its nearest passages."""
    table, found = opened(folder)
    texts = [f"{row['title']}: {row['text']}" for row in table.passages(found.rows)]
    return {text: found.similarity[i].tolist() for i, text in enumerate(texts)}


def test_neighbours_and_moments_are_those_of_all_vectors(many):
    table, found = opened(many)
    vectors = table.sample(len(found.rows)).astype(np.float64)
    cosines = vectors @ vectors.T - 2 * np.eye(len(vectors))
    np.testing.assert_allclose(found.similarity, -np.sort(-cosines, axis=1)[:, :5], atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(cosines, found.near, axis=1), found.similarity, atol=1e-6)
    query = vectors[7] * 0.6 + vectors[9] * 0.8
    assert found.moments(query) == pytest.approx(((vectors @ query).mean(), (vectors @ query).std()), abs=1e-6)


def test_blocks_give_the_same_as_a_whole(many, monkeypatch):
    table, whole = opened(many)
    monkeypatch.setattr(geometry, "_ROWS", 17)
    monkeypatch.setattr(geometry, "_COLUMNS", 40)
    found = geometry.build(table, 5, _NoStop())
    np.testing.assert_allclose(found.similarity, whole.similarity, atol=1e-6)
    np.testing.assert_allclose(found.covariance, whole.covariance, atol=1e-6)


class _NoStop:
    from likewise.runs.progress import Progress

    progress = Progress(quiet=True)

    def check(self, done=""):
        pass


def test_an_update_leaves_what_a_new_index_has(sentences, word_model, tmp_path):
    text, out = tmp_path / "lines.txt", tmp_path / "a.index"
    other = tmp_path / "other.txt"
    text.write_text("\n".join(sentences[:60] + sentences[:3]) + "\n")
    other.write_text("\n".join(sentences[60:90]) + "\n")
    index([text, other], model=word_model, out=out, quiet=True)
    asked = set()
    before = geometry._Nearest.compare

    def counting(self, positions, *others):
        asked.update(positions.tolist())
        return before(self, positions, *others)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(geometry._Nearest, "compare", counting)
        (tmp_path / "new.txt").write_text("\n".join(sentences[90:95]) + "\n")
        index([text, other, tmp_path / "new.txt"], out=out, quiet=True)
        assert len(asked) == 5  # the others are only compared with these
        asked.clear()
        index([text, tmp_path / "new.txt"], out=out, quiet=True)
        assert 0 < len(asked) < 68
    index([text, tmp_path / "new.txt"], model=word_model, out=tmp_path / "fresh.index", quiet=True)
    found, wanted = by_text(out), by_text(tmp_path / "fresh.index")
    assert found.keys() == wanted.keys()
    for one in wanted:
        np.testing.assert_allclose(found[one], wanted[one], atol=1e-6)
    table, held = opened(out)
    assert held.rows.tolist() == table.keys()[0].tolist()


def test_the_approximate_index_finds_most_of_the_neighbours_also_after_an_update(sentences, word_model, tmp_path):
    text, new, out = tmp_path / "lines.txt", tmp_path / "new.txt", tmp_path / "a.index"
    text.write_text("\n".join(sentences[:350]) + "\n")
    new.write_text("\n".join(sentences[350:]) + "\n")
    for given in (text, [text, new]):
        index(given, model=word_model, out=out, approximate=300, quiet=True)
        table, found = opened(out)
        assert table.is_approximate
        vectors = table.sample(len(found.rows))
        exact = np.argsort(-(vectors @ vectors.T - 2 * np.eye(len(vectors))), axis=1)[:, :3]
        shared = [len(set(a) & set(b)) for a, b in zip(exact.tolist(), found.near.tolist(), strict=True)]
        assert np.mean(shared) > 2.4
        assert (np.diff(found.similarity, axis=1) <= 1e-6).all()


@pytest.mark.parametrize("kept", [0, 60])
def test_cells_find_most_of_the_neighbours(kept, sentences, word_model, tmp_path, monkeypatch):
    text, out = tmp_path / "lines.txt", tmp_path / "a.index"
    monkeypatch.setattr(geometry, "MANY", 0)
    monkeypatch.setattr("likewise.searching.parts.cells.SIZE", 50)
    for given in (sentences[:kept], sentences)[kept == 0 :]:
        text.write_text("\n".join(given) + "\n")
        index(text, model=word_model, out=out, approximate=300 if given == sentences else 10_000, quiet=True)
    table, found = opened(out)
    assert table.is_approximate
    assert len(found.rows) > 350
    vectors = table.sample(len(found.rows))
    cosines = vectors @ vectors.T - 2 * np.eye(len(vectors))
    reached = np.take_along_axis(cosines, found.near, axis=1)
    np.testing.assert_allclose(found.similarity, reached, atol=1e-6)
    assert (reached > np.sort(cosines, axis=1)[:, -3:][:, ::-1] - 1e-5).mean() > 0.9
    assert sorted(path.name for path in out.iterdir() if "tmp" in path.name) == []


def test_a_passage_that_is_alone_has_no_neighbours(word_model, tmp_path):
    (tmp_path / "a.txt").write_text("the old cat\n")
    index(tmp_path / "a.txt", model=word_model, out=tmp_path / "a.index", quiet=True)
    assert opened(tmp_path / "a.index")[1].near.tolist() == [[-1] * 3]
    hits = Index(tmp_path / "a.index").search("the cat")
    assert len(hits) == 1
    assert hits[0].scores["neighbours"] == 0


def test_a_damaged_geometry_is_said_with_the_cure(many, tmp_path, says):
    with says(SearchError):
        Geometry.open(tmp_path / "none")


LIMITS = {
    "too many files are open": OSError(errno.EMFILE, "Too many open files"),
    "may not access it": PermissionError(errno.EACCES, "Permission denied"),
    r"failed \(Input/output error\)": OSError(errno.EIO, "Input/output error"),
    "not enough memory": OSError(errno.ENOMEM, "Cannot allocate memory"),
    "Stale file handle": OSError(errno.ESTALE, "Stale file handle"),
    "by `ulimit -n": ValueError("lance error: LanceError(IO): Too many open files (os error 24), /rust/x.rs:1"),
    "Permission denied": ValueError("Not found: LanceError(IO): Permission denied (os error 13)"),
}


@pytest.mark.parametrize("told", LIMITS)
def test_a_limit_or_a_right_is_named_and_is_no_damage(told, monkeypatch, tmp_path, says):
    def refused(*_, **__):
        raise LIMITS[told]

    (tmp_path / "tokens.npz").touch()
    monkeypatch.setattr(np, "load", refused)
    monkeypatch.setattr(table, "opened", refused)
    monkeypatch.setattr(maxsim, "_FILE", "tokens.npz")
    for opened in (
        lambda: Geometry.open(tmp_path),
        lambda: maxsim.TokenCodec.open(tmp_path),
        lambda: table.Table(tmp_path, "t"),
    ):
        with says(SearchError) as error:
            opened()
        assert not isinstance(error.value, lance_access.DamageError)
