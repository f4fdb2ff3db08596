import numpy as np
import pytest

from likewise import index
from likewise.runs.options import OptionError
from likewise.searching import Index, Part, Pipeline, SearchError

QUERY = "the famous captain of a zebra"


@pytest.fixture(scope="module")
def reader(many):
    return Index(many)


def standard(scores):
    return (scores - scores.mean()) / scores.std()


class Exhaustive:
    """What a query's scores are if all passages are compared."""

    def __init__(self, reader, query, pipeline):
        rows, _ = reader.table.keys()
        self.vectors = reader.table.sample(len(rows)).astype(np.float64)
        self.texts = [row["text"] for row in reader.table.passages(rows)]
        by_words = {hit.text: hit.words for hit in reader.search(query, 1000, mode="words")}
        self.words = np.array([by_words.get(text, 0.0) for text in self.texts])
        self.cosines = self.vectors @ reader._encode([query])[0]
        self.own = pipeline.vectors * standard(self.cosines) + pipeline.words * standard(self.words)
        between = self.vectors @ self.vectors.T - 2 * np.eye(len(rows))
        near = np.argsort(-between, axis=1)[:, : pipeline.nearest]
        self.final = (1 - pipeline.neighbours) * self.own + pipeline.neighbours * self.own[near].mean(axis=1)


@pytest.mark.parametrize("neighbours", [0, 0.3])
@pytest.mark.parametrize(("vectors", "words"), [(1, 1), (2, 0.5), (1, 0), (0, 1)])
def test_hybrid_is_the_exhaustive_fusion_of_standardised_scores(reader, neighbours, vectors, words):
    pipeline = Pipeline(vectors=vectors, words=words, neighbours=neighbours, depth=300, nearest=3)
    wanted = Exhaustive(reader, QUERY, pipeline)
    assert 0 < (wanted.words > 0).sum() < len(wanted.words)
    hits = reader.search(QUERY, 300, pipeline=pipeline)
    assert len(hits) == (wanted.words > 0).sum() if (vectors, neighbours) == (0, 0) else 300
    place = [wanted.texts.index(hit.text) for hit in hits]
    np.testing.assert_allclose([hit.score for hit in hits], wanted.final[place], atol=2.5e-3)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    np.testing.assert_allclose([hit.similarity for hit in hits], wanted.cosines[place], atol=2e-4)  # 16 bits
    if words:
        np.testing.assert_allclose([hit.words for hit in hits], wanted.words[place], atol=1e-5)
    for hit, i in zip(hits, place, strict=True):
        assert hit.scores.get("neighbours", 0) == pytest.approx(wanted.final[i] - wanted.own[i], abs=1e-3)
        assert sum(hit.scores.values()) == pytest.approx(hit.score)


@pytest.mark.parametrize("query", [QUERY, "the old cat near the river", "dogs watch"])
def test_few_candidates_have_the_scores_of_an_exhaustive_fusion(reader, query):
    pipeline = Pipeline(depth=10, neighbours=0.3, nearest=5)
    wanted = Exhaustive(reader, query, pipeline)
    hits = reader.search(query, 10, pipeline=pipeline)
    place = [wanted.texts.index(hit.text) for hit in hits]
    np.testing.assert_allclose([hit.score for hit in hits], wanted.final[place], atol=2.5e-3)
    assert (
        len(set(place) & set(np.argsort(-wanted.final)[:10].tolist())) >= 5
    )  # a passage that only its neighbours hold up can be missed


def test_a_passage_that_nothing_found_comes_in_through_its_neighbours(reader):
    found = [{hit.text for hit in reader.search(QUERY, 10, mode=mode)} for mode in ("vectors", "words")]
    hits = reader.search(QUERY, 30, pipeline=Pipeline(depth=10, neighbours=0.9, nearest=5))
    assert {hit.text for hit in hits} - found[0] - found[1]


def test_a_condition_holds_for_what_comes_in_and_changes_no_score(reader):
    whole = {hit.line: hit.score for hit in reader.search(QUERY, 300)}
    hits = reader.search(QUERY, 40, where="line > 200")
    assert len(hits) == 40
    assert min(hit.line for hit in hits) > 200
    assert {hit.line: hit.score for hit in hits} == pytest.approx({hit.line: whole[hit.line] for hit in hits})
    assert reader.search(QUERY, 40, where="line < 0") == []


def test_weights_of_zero_switch_parts_off(reader):
    by_vectors = [hit.text for hit in reader.search(QUERY, 9, mode="vectors")]
    by_words = [hit.text for hit in reader.search(QUERY, 3, mode="words")]
    assert [hit.text for hit in reader.search(QUERY, 9, pipeline={"neighbours": 0, "words": 0})] == by_vectors
    assert [hit.text for hit in reader.search(QUERY, 3, pipeline={"neighbours": 0, "vectors": 0})] == by_words


def test_a_rare_word_counts_less_where_a_query_excludes_something(sentences, word_model, tmp_path):
    made = index([*sentences[:80], "The xylophone plays."], model=word_model, out=tmp_path / "a.index", quiet=True)
    plain, excluding = (made.search(query, 1)[0] for query in ("xylophone plays", "xylophone plays, excluding rivers"))
    assert (plain.id, excluding.id) == (80, 80)
    assert plain.scores["words"] > 0.4 * 6
    assert excluding.scores["words"] == pytest.approx(0.4 * 6)


def test_an_index_keeps_its_weights_and_a_search_may_have_others(many, tmp_path, says):
    reader = Index(many)
    assert (reader.pipeline.words, reader.pipeline.nearest) == (1, 5)
    (tmp_path / "weights.toml").write_text("words = 0.0\nneighbours = 0.0\n")
    assert all(hit.scores["words"] == 0 for hit in reader.search(QUERY, pipeline=tmp_path / "weights.toml"))
    (tmp_path / "weights.toml").write_text("wrds = 0.0\n")
    with says(OptionError):
        reader.search(QUERY, pipeline=tmp_path / "weights.toml")
    with says(OptionError):
        reader.search(QUERY, pipeline={"vectors": 0, "words": 0})


def test_more_neighbours_than_the_index_holds_are_refused(reader, says):
    with says(SearchError):
        reader.search("the cat", pipeline={"nearest": 6})


def test_a_passage_takes_a_share_of_its_document_by_hand(sentences, word_model, tmp_path):
    """Documents of one to five passages; the score is that of the mean vector and of all BM25 scores."""
    texts = [" ".join(sentences[start : start + 1 + start % 5]) for start in range(0, 200, 5)]
    texts += [" ".join(sentences[start : start + 4]) for start in range(200, 260, 4)]
    made = index(texts, model=word_model, out=tmp_path / "a.index", words=12, quiet=True)
    steps = {"vectors": 1, "words": 2, "neighbours": 0, "tokens": 0, "documents": 0.7, "depth": 300}
    rows, _ = made.table.keys()
    passages, vectors = made.table.passages(rows), made.table.sample(len(rows)).astype(np.float64)
    assert len(rows) > len(texts) + 20
    by_words = {hit.text: hit.words for hit in made.search(QUERY, 300, mode="words")}
    words = np.array([by_words.get(row["text"], 0.0) for row in passages])
    cosines = vectors @ made._encode([QUERY])[0]
    document = np.array([int(row["id"]) for row in passages])
    by_document = [
        np.array([total(values[document == i]) for i in range(len(texts))])
        for values, total in ((cosines, np.mean), (words, np.sum))
    ]
    sizes = np.bincount(document)
    by_document[1] /= 0.8 + 0.2 * sizes / sizes.mean()
    gained = 0.7 * (standard(by_document[0]) + 2 * standard(by_document[1]))
    hits = made.search(QUERY, 60, pipeline=steps)
    assert len(hits) == 60
    for hit in hits:
        assert hit.scores["documents"] == pytest.approx(gained[hit.id], abs=0.01)  # vectors are kept in 16 bits
        assert sum(hit.scores.values()) == pytest.approx(hit.score)


def test_a_document_of_many_passages_is_not_above_all_others(sentences, word_model, tmp_path):
    """As a code of law among short rules: its passages have words of any query, and there are a hundred of them."""
    texts = [*sentences[:60], " ".join(sentences[60:90])]
    made = index(texts, model=word_model, out=tmp_path / "a.index", words=12, quiet=True)
    assert len(made) > 90
    for number, text in enumerate(texts[:60:6]):
        assert made.search(text, 1, mark=False)[0].id == 6 * number


def test_an_index_of_documents_of_one_passage_has_no_such_part(sentences, word_model, tmp_path):
    made = index(sentences[:30], model=word_model, out=tmp_path / "a.index", quiet=True)
    assert "documents" not in made.search(QUERY, 3, pipeline={"documents": 0.5})[0].scores
    made.add([" ".join(sentences[30:70]) * 5])
    assert made.search(QUERY, 3, pipeline={"documents": 0.5})[0].scores["documents"] != 0


class Short(Part):
    """Short passages first."""

    name = "short"
    weight = 0.5

    def score(self, query, candidates):
        return [-len(passage["text"]) for passage in self.passages(candidates)]


def test_a_part_from_outside_adds_to_the_scores(many, reader):
    plain = {hit.text: hit.score for hit in reader.search(QUERY, 300)}
    hits = Index(many, parts=[Short]).search(QUERY, 20)
    assert [hit.scores["short"] for hit in hits] == [-0.5 * len(hit.text) for hit in hits]
    assert {hit.text: hit.score - hit.scores["short"] for hit in hits} == pytest.approx(
        {hit.text: plain[hit.text] for hit in hits}, abs=1e-5
    )
    assert len({len(hit.text) for hit in hits}) > 1
    assert "short 0.5" in Index(many, parts=[Short]).settings["similarity"]


@pytest.mark.parametrize("name", ["words", "first"])
def test_two_parts_of_one_name_are_refused(many, name, says):
    with says(SearchError):
        Index(many, parts=[type("Other", (Part,), {"name": name, "weight": 1.0})])


@pytest.mark.parametrize(
    "parts",
    [
        [Part],
        [type("Off", (Short,), {"weight": 0.0})],
        [Short.__new__(Short)],
        [int],
        [None],
        Short,
        Short.__new__(Short),
        None,
    ],
)
def test_what_is_no_part_is_refused_with_the_reason(many, parts, says):
    with says(SearchError):
        Index(many, parts=parts)


def test_a_part_of_a_package_is_in_each_search(many, monkeypatch, tmp_path, forget_packages, says):
    (tmp_path / "short_parts.py").write_text(
        "from likewise.searching import Part\n\n\nclass Short(Part):\n    name = 'short'\n    weight = 0.5\n\n"
        "    def score(self, query, candidates):\n        return [-1.0] * len(candidates.positions)\n"
    )
    registered = tmp_path / "short_parts-1.0.dist-info"
    registered.mkdir()
    (registered / "METADATA").write_text("Metadata-Version: 2.1\nName: short-parts\nVersion: 1.0\n")
    (registered / "entry_points.txt").write_text("[likewise.search_parts]\nshort = short_parts:Short\n")
    monkeypatch.syspath_prepend(tmp_path)
    forget_packages()
    assert {hit.scores["short"] for hit in Index(many).search(QUERY, 3)} == {-0.5}
    (registered / "entry_points.txt").write_text("[likewise.search_parts]\nshort = short_parts:Shorter\n")
    forget_packages()
    with says(SearchError):
        Index(many)


def test_a_part_that_scores_other_passages_is_named(many, says):
    broken = type("Broken", (Short,), {"name": "broken", "score": lambda self, query, candidates: [1.0]})
    with says(SearchError):
        Index(many, parts=[broken]).search(QUERY)


def test_a_part_that_returns_nothing_is_named(many, says):
    broken = type("Broken", (Short,), {"name": "broken", "score": lambda self, query, candidates: None})
    with says(SearchError):
        Index(many, parts=[broken]).search(QUERY)


def test_a_part_whose_score_is_no_number_is_named(many, says):
    def score(self, query, candidates):
        return [float("nan")] * len(candidates.positions)

    with says(SearchError):
        Index(many, parts=[type("Broken", (Short,), {"name": "broken", "score": score})]).search(QUERY)
