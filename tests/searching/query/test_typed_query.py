import hashlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import likewise
from likewise import index
from likewise.cli import build_app
from likewise.searching import SearchError
from likewise.searching.query.typed_query import TypedQuery, known_language, stop_words

TEXTS = [
    "The résumé was sent.",  # 0
    "Beyoncé sang in Łódź.",  # 1
    "To be or not to be, that is the question.",  # 2
    "The IT department orders goods.",  # 3
    "Bills of AT&T are paid here.",  # 4
    f"The disk has the sum {hashlib.sha256(b'1').hexdigest()}.",  # 5
    "機械学習は楽しいです。",  # 6
    "水泵的密封圈损坏导致漏油。",  # 7
    "The heat pump leaks in winter; version 3.14 does not.",  # 8
    "The pump of heat and gas leaks.",  # 9
    "A category of pumps with gases.",  # 10
    "The heat\n pump, again.",  # 11
    "The heat pump leaks in winter; version 3.14 does not.",  # 12
]


@pytest.fixture(scope="module")
def made(saved_model, tmp_path_factory):
    return index(TEXTS, model=saved_model, out=tmp_path_factory.mktemp("typed") / "a.index", quiet=True)


def found(made, query, mode="words", **more):
    return [hit.id for hit in made.search(query, mode=mode, **more)]


@pytest.mark.parametrize(
    ("styled", "plain"),
    [
        ("\U0001d413\U0001d421\U0001d41e \U0001d41c\U0001d41a\U0001d42d", "The cat"),
        ("\uff34\uff48\uff45 \uff43\uff41\uff54", "The cat"),
        ("an o\ufb03ce", "an office"),
    ],
)
def test_letters_of_another_style_have_the_vector_of_plain_ones(saved_model, tmp_path, styled, plain):
    made = index([f"{styled} sat on the mat."], model=saved_model, out=tmp_path / "a.index", quiet=True)
    (hit,) = made.search(f"{plain} sat on the mat.", mode="vectors")
    assert hit.similarity == pytest.approx(1, abs=1e-4)
    assert hit.text.startswith(styled), "the text itself stays as it is"
    assert made.search(f"{styled} sat on the mat.", mode="vectors")[0].similarity == pytest.approx(1, abs=1e-4)


def test_the_words_of_a_passage_are_those_of_its_text(saved_model, tmp_path):
    """Nothing is added that would change its length, or weigh a word twice."""
    texts = ["The role of e-mail, e.g. getUserById at 50Hz.", "The role of paper."]
    made = index(texts, model=saved_model, out=tmp_path / "a.index", quiet=True)
    searched = made.table._select(["searched"])["searched"].to_pylist()
    assert searched == [text.lower() for text in texts]
    assert made.search("eg email", mode="words").missing == ("eg", "email")


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("resume", 0),
        ("RESUMÉ", 0),
        ("Beyonce", 1),
        ("lodz", 1),
        ("to be or not to be", 2),
        ("IT", 3),
        ("AT&T", 4),
        (hashlib.sha256(b"1").hexdigest(), 5),
        ("学習", 6),
        ("密封圈", 7),
        ("3.14", 8),
        ("win\u00adter", 8),
        ("de\u200bpartment", 3),
    ],
)
def test_words_find_what_holds_them_however_they_are_typed(made, query, wanted):
    assert found(made, query)[0] == wanted
    assert made.search(query).missing == ()


@pytest.mark.parametrize("mode", ["hybrid", "vectors", "words"])
def test_a_phrase_must_stand_in_a_passage_and_a_barred_word_must_not(made, mode):
    assert set(found(made, '"heat pump"', mode, k=2)) == {8, 11}
    assert set(found(made, 'winter "HEAT PUMP leaks"', mode, k=1)) == {8}
    assert set(found(made, '"version 3.14"', mode, k=1)) == {8}
    assert set(found(made, '"学習"', mode, k=1)) == {6}
    assert set(found(made, "pump -gas", mode)) >= {8, 10, 11}
    assert 9 not in found(made, "pump -gas", mode)
    found_without = found(made, 'pump -"heat pump" -gases', mode)
    assert 9 in found_without
    assert not {8, 10, 11} & {*found_without}
    hits = made.search('"heat pump" -winter', mode=mode)
    assert hits[0].id == 11
    assert 8 not in [hit.id for hit in hits]
    assert (hits.demanded, hits.barred, hits.others) == (("heat pump",), ("winter",), len(hits) - 1)


@pytest.mark.parametrize("mode", ["hybrid", "vectors", "words"])
def test_where_too_few_passages_have_a_phrase_the_others_follow_and_the_output_says_so(made, mode):
    hits = made.search('pump "heat pump"', 3, mode=mode)
    assert {hit.id for hit in hits[:2]} == {8, 11}
    assert (hits.demanded, hits.others) == (("heat pump",), 1)
    assert hits.told == ['first with: "heat pump", then 1 without']
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    if mode == "hybrid":
        assert sum(hits[2].scores.values()) == pytest.approx(hits[2].score)
    alone = made.search('pump "heat pump"', 2, mode=mode)
    assert ([hit.id for hit in alone], alone.others) == ([hit.id for hit in hits[:2]], 0)
    assert alone.told == ['only with: "heat pump"']
    second = made.search('pump "heat pump"', 2, offset=2, mode=mode)
    assert second[0].id == hits[2].id
    assert second.told == ['first with: "heat pump"; all of these are without']


def test_a_demanded_phrase_that_no_passage_has_is_missing_and_the_others_follow(made):
    hits = made.search('pump "pump heat"')
    assert len(hits) > 2
    assert (hits.demanded, hits.others, hits.missing) == ((), 0, ("pump heat",))
    assert hits.to_dict()["missing"] == ["pump heat"]
    both = made.search('"heat pump" "gases"')  # no passage has both
    assert (both.demanded, both.ranked) == ((), ("heat pump", "gases"))
    assert {hit.id for hit in both[:3]} == {8, 10, 11}


@pytest.mark.parametrize(
    ("query", "out", "stays"),
    [
        ('pumps, excluding "natural gas"', {1}, {0, 2}),
        ('pumps (excluding "natural gas") of "the cellar"', {1, 2}, {0}),
        ("pumps without mentioning “natural gas”", {1}, {0, 2}),
        ("server -node.js", {3}, {4, 5}),
        ("server –nginx.conf", {6}, {4}),
        ("server －AB-1234/5", {7}, {8}),
        ("server -ann.smith@example.org", {9}, {10}),
        ('"C++" compiler', {12, 13}, {11}),
        ("compiler -C++", {11}, {12, 13}),
        ('compiler -"C"', {13}, {11, 12}),
        ('"C#"', {11, 13}, {12}),
        ('server ".NET"', {3, 4}, {5}),
    ],
)
def test_a_phrase_is_barred_or_demanded_with_its_signs(signs, query, out, stays):
    hits = signs.search(query, k=20)
    ids = [hit.id for hit in hits]
    ids = ids[: len(ids) - hits.others]
    assert not {*ids} & out
    assert stays <= {*ids}
    assert bool(hits.others) == bool(hits.demanded)


@pytest.fixture(scope="module")
def signs(saved_model, tmp_path_factory):
    texts = [
        *("The pump in the cellar leaks.", "Pumps with natural gas are loud.", "The pump of the hall is new."),
        *("The node.js server is slow.", "The server node in the rack is slow.", "The server runs .NET code in js."),
        *("nginx.conf of the server is wrong.", "Server part AB-1234/5 is sold out.", "Server part AB-9999/5 is here."),
        *("ann.smith@example.org runs the server.", "Ann runs the server, too."),
        *("Notes on the C++ compiler.", "Notes on the C# compiler.", "Notes on the C compiler."),
    ]
    return index(texts, model=saved_model, out=tmp_path_factory.mktemp("signs") / "a.index", quiet=True)


def test_words_that_are_in_no_passage_are_told(made):
    hits = made.search("flibbert pumps, -cat zzyzx!")
    assert hits.missing == ("flibbert", "zzyzx")
    assert any("flibbert" in line for line in hits.told)
    assert made.search("flibbert", mode="vectors").missing == ()


def test_copies_are_shown_once_and_pages_go_on(made, says):
    (hit,) = (hit for hit in made.search("heat pump leaks", 20) if "winter" in hit.text)
    assert (hit.id, hit.also) in {(8, ("12",)), (12, ("8",))}
    whole = made.search("the pump", 12)
    assert len(whole) == 12
    pages = [made.search("the pump", 5, offset=start) for start in (0, 5, 10, 15)]
    assert [hit.id for page in pages for hit in page] == [hit.id for hit in whole]
    with says(SearchError):
        made.search("a", offset=-1)


def test_documents_are_shown_once(saved_model, tmp_path):
    (tmp_path / "notes").mkdir()
    for name, topic in (("a", "cat"), ("b", "dog")):
        text = "\n\n".join(f"# Part {i}\n\nThe {topic} number {i} sees the river." for i in range(6))
        (tmp_path / "notes" / f"{name}.md").write_text(text)
    rows = "".join(json.dumps({"text": f"The cat of row {i}."}) + "\n" for i in range(3))
    (tmp_path / "notes" / "rows.jsonl").write_text(rows)
    options = likewise.CorpusOptions(field="text")
    made = index(tmp_path / "notes", model=saved_model, out=tmp_path / "a.index", corpus_options=options, quiet=True)
    hits = made.search("the cat", 20, by="document")
    names = sorted(Path(hit.file).name for hit in hits)
    assert names == ["a.md", "b.md", *["rows.jsonl"] * 3]
    assert {len(hit.also) for hit in hits if hit.file.endswith(".md")} == {5}
    arguments = ["search", str(tmp_path / "a.index"), "the cat -dog flibbert", "--by", "document"]
    shown = CliRunner().invoke(build_app(), arguments, env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    assert {"dog", "flibbert"} <= {*shown.output.partition("1. ")[0].replace('"', " ").split()}
    made = json.loads(CliRunner().invoke(build_app(), [*arguments, "--json"]).output)
    assert (made["barred"], made["missing"], len(made["hits"])) == (["dog"], ["flibbert"], 4)


def test_more_conditions_than_one_query_may_have_are_refused(made, says):
    with says(likewise.LikewiseError):
        made.search(" ".join(["the", *(f"-word{i}" for i in range(33))]))


def test_numbers_options_and_inches_are_no_conditions():
    for query in ("at -40 degrees", "ls -l", 'a 5" disk, 6" x 4"', "pre- and post-war", "-burnout", 'say ""'):
        typed = TypedQuery.of(query)
        assert (typed.text, typed.demanded, typed.barred) == (query, (), ())


def test_languages(sentences, saved_model, tmp_path, says):
    assert known_language(" english") == "English"
    assert "the" in stop_words("English")
    assert "fur" in stop_words("German")  # as it is looked for
    with says(likewise.LikewiseError):
        index(sentences[:5], model=tmp_path / "none", out=tmp_path / "a.index", language="Klingon", quiet=True)
    index(sentences[:5], model=saved_model, out=tmp_path / "a.index", language="english", quiet=True)
    index(sentences[:5], model=saved_model, out=tmp_path / "a.index", language="English", quiet=True)


@pytest.mark.parametrize("name", ["_distance", "_score", "_rowid", "_rowaddr", "id_", "Created At", "a.b", "vector"])
def test_a_field_may_have_any_name(name, saved_model, tmp_path):
    rows = [{"id": str(i), "text": f"The cat {i}.", name: i} for i in range(4)]
    made = index(rows, model=saved_model, out=tmp_path / "a.index", quiet=True)
    for mode in ("hybrid", "vectors", "words"):
        hits = made.search("the cat", mode=mode, where=f"`{name}` >= 2")
        assert {hit.metadata[name] for hit in hits} == {2, 3}


def test_a_folder_whose_name_is_not_ascii_gets_no_second_one(sentences, saved_model, tmp_path):
    home = tmp_path / "jürgen k"
    home.mkdir()
    index(sentences[:5], model=saved_model, out=home / "a.index", quiet=True)
    assert list(tmp_path.iterdir()) == [home]


def test_a_link_that_is_moved_to_another_index_is_followed_as_a_whole(sentences, saved_model, tmp_path):
    for name, few in (("one", sentences[:30]), ("two", sentences[30:36])):
        index(few, model=saved_model, out=tmp_path / name, quiet=True)
    (tmp_path / "link").symlink_to(tmp_path / "one")
    reader = likewise.Index(tmp_path / "link")
    held = reader._opened
    (tmp_path / "next").symlink_to(tmp_path / "two")
    (tmp_path / "next").replace(tmp_path / "link")
    assert held.stored.table.folder == tmp_path / "one"
    assert {hit.text for hit in reader.search("the", 9)} == {*sentences[30:36]}


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
def test_hits_are_printed_in_any_encoding(encoding, saved_model, tmp_path):
    index(["The pump → tank is checked ✓ \x9b31m."], model=saved_model, out=tmp_path / "a.index", quiet=True)
    for more in ([], ["--json"]):
        shown = CliRunner(charset=encoding).invoke(build_app(), ["search", str(tmp_path / "a.index"), "pump", *more])
        assert shown.exit_code == 0, shown.output
        assert "\x9b" not in shown.output
        if more:
            assert json.loads(shown.output)["hits"][0]["text"].startswith("The pump → tank is checked ✓")


@pytest.mark.parametrize(
    ("query", "demanded"),
    [
        ('"heat pump"', True),
        ('"heat pump" noise -gas', True),
        ('noise "heat pump" cellar of hotels at night', False),
        ('noise "heat pump" in winter', True),
        ('noise "heat pump" cellar hotels night winter', False),
        ('"¿qué bomba?" fuga', True),
        ('what is the "heat pump"', False),
        ('Articles on systems, including "what you see is what you get" systems.', False),
        ('During the "training phase", words are selected.', False),
        ("水泵 “密封圈”", True),
        ("地下室的水泵的 “密封圈” 为什么坏了", False),
    ],
)
def test_a_phrase_demands_in_a_few_words_and_ranks_in_prose(query, demanded):
    typed = TypedQuery.of(query)
    assert (bool(typed.demanded), bool(typed.ranking)) == (demanded, not demanded)
    assert not set('"“”') & set(typed.text)


@pytest.mark.parametrize(
    ("query", "demanded", "ranking"),
    [
        ('encoded "%20"', (), ()),
        ('"%20" "heat pump"', ("heat pump",), ()),
        ('encoded "//absolute/path"', (), ("//absolute/path",)),
        ('During the "training" phase, words are selected.', (), ()),
        ('"training" phase', ("training",), ()),
        ('"training" phase words selected', (), ()),
        ('What is the "C++" of a pump?', (), ("C++",)),
    ],
)
def test_code_is_not_demanded_and_a_word_of_prose_is_no_phrase(query, demanded, ranking):
    typed = TypedQuery.of(query)
    assert (typed.demanded, typed.ranking) == (demanded, ranking)


def test_words_around_a_phrase_are_prose_by_the_stop_words_of_the_language():
    assert TypedQuery.of('wo ist die "alte Pumpe"', "German").ranking
    assert TypedQuery.of('wo ist die "alte Pumpe"', "Spanish").demanded


def test_a_phrase_of_prose_ranks_passages_higher_and_puts_none_out(word_model, tmp_path):
    texts = ["The pump has heat.", "The heat pump is there.", "A pump leaks.", "Heat is work.", *(["Rain falls."] * 9)]
    made = index(texts, model=word_model, out=tmp_path / "a.index", quiet=True)
    asked = 'What is the thing that they call a "{}" at home?'
    hits = made.search(asked.format("heat pump"), 4)
    plain = made.search(asked.format("heat pump").replace('"', ""), 4)
    assert {hit.id for hit in hits} == {hit.id for hit in plain}
    assert (hits[0].id, hits.demanded, hits.ranked) == (1, (), ("heat pump",))
    assert hits[0].scores["phrases"] == made.pipeline.phrases
    assert hits[1].scores["phrases"] == 0
    assert 'ranked higher with: "heat pump"' in hits.told
    none = made.search(asked.format("pump heat"), 4)
    assert (none.ranked, none.missing[0]) == ((), "pump heat")
    assert [hit.id for hit in none] == [hit.id for hit in plain]


def test_prose_may_have_more_quotes_than_a_query_may_demand(made):
    words = " ".join(f'the "word {i}" and' for i in range(40))
    assert len(TypedQuery.of(f"{words} so on").ranking) == 32
    assert made.search(f"{words} so on")


def test_documents_that_are_copies_have_scores_of_their_own(made):
    """A search lists copies once, and a judgement may name any of them."""
    scores = {name: score for (name,), score in made.documents("heat pump leaks in winter")}
    assert list(scores)[:2] == ["8", "12"]
    assert scores["8"] == scores["12"]
    assert len(scores) == len(TEXTS)


def test_documents_are_those_of_the_search_that_a_user_has(sentences, word_model, tmp_path):
    made = index(["The heat pump is loud.", *sentences[:20]], model=word_model, out=tmp_path / "a.index", quiet=True)
    for query in ('loud "heat pump"', "sentences -heat", '"pump heat" -loud'):
        assert [name for (name,), _ in made.documents(query)] == [str(hit.id) for hit in made.search(query, 100)]
    found = made.documents('"heat pump" the')
    assert found[0][0] == ("0",)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


def test_phrases_and_barred_words_of_other_scripts(word_model, tmp_path):
    texts = ["पंप तहखाने में खराब है", "பம்பு உடைந்துள்ளது", "ปั๊มน้ำในห้องใต้ดินเสีย", "配置Docker容器很容易", "The pump leaks."]
    opened = index(texts, model=word_model, out=tmp_path / "a.index", quiet=True)
    for query, wanted in (('"तहखाने में"', 0), ('"பம்பு"', 1), ('"ห้องใต้ดิน"', 2), ('"Docker容器"', 3), ('"Docker"', 3)):
        assert opened.search(query, 1)[0].id == wanted
    assert 0 not in [hit.id for hit in opened.search("pump -पंप", 9)]
    assert 3 not in [hit.id for hit in opened.search("pump -Docker", 9)]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("مضخة", 0),
        ("أحمد", 1),
        ('"السلام عليكم"', 2),
        ("שלום", 3),
        ("123", 4),
        ('"펌프"', 5),
        ("Teile des Ein- und -ausgang", 6),
    ],
)
def test_marks_forms_and_digits_of_other_scripts_do_not_count(scripts, query, wanted):
    hits = scripts.search(query, mode="hybrid" if '"' in query else "words", k=1 if '"' in query else 20)
    assert wanted in [hit.id for hit in hits]
    assert not hits.barred


def test_words_that_are_missing_are_told_as_typed(scripts):
    assert scripts.search("Réparé İstanbul", mode="words").missing[0] == "Réparé"


@pytest.fixture(scope="module")
def scripts(saved_model, tmp_path_factory):
    texts = [
        *("هذه مُضَخَّةُ الماء", "قال احمد", "السَّلامُ عَلَيْكُم يا علي", "שָׁלוֹם לכולם", "الرقم ١٢٣ هنا", "펌프가 고장났다"),
        "Die Teile von Ein- und -ausgang sind hier",
    ]
    return index(texts, model=saved_model, out=tmp_path_factory.mktemp("scripts") / "a.index", quiet=True)
