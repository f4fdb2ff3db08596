"""`likewise.topics`: groups, names, the map, and files that come out the same each time."""

import json
import re

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

import likewise
from likewise.searching.duplicates.topics import centres_of, laid_out, map_page


def blobs(count: int, each: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(count), each)
    vectors = rng.normal(size=(count, 24))[labels] + 0.25 * rng.normal(size=(count * each, 24))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), labels


def test_a_centre_is_the_mean_of_its_group():
    vectors, labels = blobs(3, 5)
    centres = centres_of(vectors, labels)
    mean = vectors[5:10].mean(axis=0)
    assert centres[1] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)


THREE = [
    *("I lost my card", "my card is gone", "the card was stolen from me", "where is my card"),
    *("the train is late", "my train was delayed", "trains are late today", "no train came"),
    *("the soup is cold", "cold soup was served", "this soup tastes salty", "the soup has no salt"),
]


def test_few_texts_about_three_things_are_three_topics_and_empty_ones_have_none(capsys):
    texts = ["", *THREE, "..."]
    sorted_texts = likewise.topics(texts)
    assert "rough guide" in capsys.readouterr().err
    assert len(sorted_texts.of) == len(texts)
    assert sorted_texts.of[0] == -1
    assert np.isnan(sorted_texts.fit[0])
    assert adjusted_rand_score(np.repeat([0, 1, 2], 4), sorted_texts.of[1:13]) > 0.7
    assert sum(topic.size for topic in sorted_texts.topics) == len(texts) - 1


def test_names_leave_out_the_stop_words_of_the_language():
    german = ["die Karte ist weg", "meine Karte wurde gestohlen", "wo ist die Karte", "der Zug ist zu spät"]
    german += ["der Zug war gestern nicht da", "ein Zug kam nicht an", "das Essen war kalt", "das Essen ist salzig"]
    named = likewise.topics([*german, *german[:2]], number=3, quiet=True)
    words = {word for topic in named.topics for word in topic.words}
    assert words
    assert not words & {"die", "der", "das", "war", "ist", "nicht"}


def test_topics_are_written_read_and_the_same_each_time(sentences, saved_model, tmp_path, capsys):
    texts = [*sentences, sentences[0], sentences[1]]
    options = {"model": saved_model, "quiet": True}
    found = likewise.topics(texts, out=tmp_path / "topics", **options)
    assert sum(topic.size for topic in found.topics) == len(texts) == len(found.of)
    assert [topic.size for topic in found.topics] == sorted((topic.size for topic in found.topics), reverse=True)
    assert [topic.number for topic in found.topics] == list(range(len(found.topics)))
    assert np.bincount(found.of).tolist() == [topic.size for topic in found.topics]
    assert found.of[0] == found.of[400]
    for topic in found.topics:
        assert set(topic.examples) <= {texts[i] for i in np.flatnonzero(found.of == topic.number)}
        assert topic.words
        assert topic.name.startswith(topic.words[0])
        assert topic.number not in topic.near
    rows = [json.loads(line) for line in (tmp_path / "topics/assignments.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == [" ".join(text.split()) for text in texts]
    assert [row["topic"] for row in rows] == found.of.tolist()
    again = likewise.topics(texts, out=tmp_path / "again", **options)
    for name in ("topics.jsonl", "assignments.jsonl", "map.html"):
        assert (tmp_path / "topics" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert again.topics == found.topics
    options["quiet"] = False
    assert likewise.topics(texts, out=tmp_path / "topics", **options).topics == found.topics
    assert "already finished, nothing done" in capsys.readouterr().err
    with pytest.raises(likewise.LikewiseError, match="was made with another text or model"):
        likewise.topics(texts[:300], out=tmp_path / "topics", **options)
    with pytest.raises(likewise.LikewiseError, match=r"was made with smallest 10, not 20"):
        likewise.topics(texts, out=tmp_path / "topics", smallest=20, **options)


def test_the_work_on_texts_that_stand_elsewhere_is_another(sentences, saved_model, tmp_path):
    likewise.topics(sentences, model=saved_model, out=tmp_path / "out", number=3, quiet=True)
    with pytest.raises(likewise.LikewiseError):
        likewise.topics(["", *sentences], model=saved_model, out=tmp_path / "out", number=3, quiet=True)


def test_more_topics_than_different_texts_are_refused(sentences, saved_model):
    with pytest.raises(likewise.LikewiseError, match="ask for fewer"):
        likewise.topics([*sentences[:12]] * 3, model=saved_model, number=20, quiet=True)


def test_a_number_of_topics_can_be_asked_for(sentences, saved_model):
    threads = torch.get_num_threads()
    found = likewise.topics(sentences, model=saved_model, number=7, quiet=True)
    assert len(found.topics) == 7
    assert found.path is None
    assert torch.get_num_threads() == threads  # UMAP would leave as many as there are cores


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"number": 1}, "number is 1: give 2 or more"),
        ({"smallest": 1}, "smallest is 1: give 2 or more"),
    ],
)
def test_an_option_out_of_range_is_told_before_anything_is_read(options, told, saved_model):
    with pytest.raises(likewise.LikewiseError, match=told):
        likewise.topics("no-such-file.txt", model=saved_model, **options)


def test_copies_of_one_text_have_no_topics(saved_model):
    with pytest.raises(likewise.LikewiseError, match="1 different text among 30"):
        likewise.topics(["The old dog sees a river."] * 30, model=saved_model, quiet=True)
    texts = ["The old dog sees a river.", "A green garden.", "The teacher likes the market."] * 10
    assert sum(topic.size for topic in likewise.topics(texts, model=saved_model, quiet=True).topics) == 30


def test_near_vectors_are_near_on_the_map():
    vectors, labels = blobs(4, 30)
    places = laid_out(vectors, seed=1)
    assert places.min() == 0
    assert places.max() == 1
    far = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(far, np.inf)
    assert (labels[far.argmin(axis=1)] == labels).mean() > 0.95


def test_the_page_loads_nothing_and_a_text_cannot_end_its_script():
    topic = {"number": 0, "name": "<b>card</b>", "size": 2, "words": ["card"], "examples": ["</script><img src=x>"]}
    page = map_page([topic], [(0.1, 0.2, 0, "</script><img src=x>"), (0.3, 0.4, 0, "a card")], 2)
    assert page.count("</script>") == 1
    assert "<img" not in page
    assert "<b>card" not in page
    (data,) = re.findall(r"const data = (.*);\n", page)
    assert json.loads(data)["spots"][0] == [0.1, 0.2, 0, "</script><img src=x>"]
    assert not re.search(r"<[^>]*(?:src|href)\s*=|https?://|@import|url\(", page)


def test_a_language_that_is_none_is_refused(word_model, tmp_path):
    with pytest.raises(likewise.LikewiseError, match=r"language is 'Klingon': give one of .*german"):
        likewise.topics([f"text {n}" for n in range(20)], model=word_model, out=tmp_path / "a", language="Klingon")
