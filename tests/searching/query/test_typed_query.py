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


SPELT = {
    "RULE-A002 detects a change.": "a002, RULE, rulea002",
    "The function getUserById returns a record.": "user by id, get_user, getuserbyid",
    "Sign-off the form before noon.": "signoff, sign off",
    "Signin comes first.": "sign in, sign-in",
    "We follow RFC-9110 here.": "rfc9110, rfc 9110",
    "It is said in ISO9001 as well.": "ISO-9001, iso 9001",
    "The e-mail went out.": "email, e mail",
    "An AC/DC converter.": "acdc, ac dc",
    "He lives in the U.S.A. now.": "usa",
    "Written with Node.js alone.": "nodejs, node",
    "It hums at 50Hz.": "50 hz, hz",
    "A hole of 12 mm.": "12mm",
    "Chosen by O'Reilly.": "oreilly",
    "Some JavaScript and some Java.": "javascript",
    "The Öffner of the Tür.": "oeffner, Tuer",
    "지하실의 펌프가 고장 났습니다.": "펌프, 지하실에서, 펌프를",
}
"""Texts, and spellings of their words by which people look for them."""


@pytest.fixture(scope="module")
def spelt(saved_model, tmp_path_factory):
    out = tmp_path_factory.mktemp("spelt") / "a.index"
    return index([*SPELT], model=saved_model, out=out, language="German", quiet=True)


@pytest.mark.parametrize(
    ("text", "query"), [(text, query) for text, queries in SPELT.items() for query in queries.split(", ")]
)
def test_a_word_is_found_in_other_spellings(spelt, text, query):
    hits = spelt.search(query, mode="words")
    assert hits[0].text == text
    assert not hits.missing


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


def test_other_spellings_are_not_other_words(spelt, made):
    assert [hit.text for hit in spelt.search("script", mode="words")] == []  # of JavaScript
    assert spelt.search("thirds rd 2n", mode="words").missing == ("thirds", "rd", "2n")
    assert sorted(found(made, '"heat pump"')) == [8, 11]  # 12 is a copy of 8


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
    assert set(found(made, '"heat pump"', mode)) == {8, 11}
    assert set(found(made, 'winter "HEAT PUMP leaks"', mode)) == {8}
    assert set(found(made, '"version 3.14"', mode)) == {8}
    assert set(found(made, '"学習"', mode)) == {6}
    assert found(made, '"pump heat"', mode) == []
    assert set(found(made, "pump -gas", mode)) >= {8, 10, 11}
    assert 9 not in found(made, "pump -gas", mode)
    found_without = found(made, 'pump -"heat pump" -gases', mode)
    assert 9 in found_without
    assert not {8, 10, 11} & {*found_without}
    assert set(found(made, '"heat pump" -winter', mode)) == {11}
    hits = made.search('"heat pump" -winter', mode=mode)
    assert (hits.demanded, hits.barred) == (("heat pump",), ("winter",))
    assert len(hits.told) == 2


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
    ids = {*found(signs, query, "hybrid", k=20)}
    assert not ids & out
    assert stays <= ids


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


def test_copies_are_shown_once_and_pages_go_on(made):
    (hit,) = (hit for hit in made.search("heat pump leaks", 20) if "winter" in hit.text)
    assert (hit.id, hit.also) in {(8, ("12",)), (12, ("8",))}
    whole = made.search("the pump", 12)
    assert len(whole) == 12
    pages = [made.search("the pump", 5, offset=start) for start in (0, 5, 10, 15)]
    assert [hit.id for page in pages for hit in page] == [hit.id for hit in whole]
    with pytest.raises(SearchError, match="offset is -1"):
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


def test_more_conditions_than_one_query_may_have_are_refused(made):
    with pytest.raises(likewise.LikewiseError, match="33"):
        made.search(" ".join(["the", *(f"-word{i}" for i in range(33))]))


def test_numbers_options_and_inches_are_no_conditions():
    for query in ("at -40 degrees", "ls -l", 'a 5" disk, 6" x 4"', "pre- and post-war", "-burnout", 'say ""'):
        typed = TypedQuery.of(query)
        assert (typed.text, typed.demanded, typed.barred) == (query, (), ())


def test_languages(sentences, saved_model, tmp_path):
    assert known_language(" english") == "English"
    assert "the" in stop_words("English")
    assert "fur" in stop_words("German")  # as it is looked for
    with pytest.raises(likewise.LikewiseError, match="'Klingon': give one of Arabic, Danish"):
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


def test_a_phrase_of_a_long_question_that_no_passage_has_is_told_and_searched_for_by_its_words(
    sentences, word_model, tmp_path
):
    made = index(
        ["The heat pump is loud.", "A pump leaks.", *sentences[:20]], model=word_model, out=tmp_path / "a.index"
    )
    short = made.search('"pump heat" loud')
    assert (list(short), short.demanded) == ([], ("pump heat",))
    long = made.search(
        'What would you say is the reason that the thing they call a "pump heat" is so very loud at night?'
    )
    assert long[0].text == "The heat pump is loud."
    assert (long.demanded, long.missing[0]) == ((), "pump heat")
    held = made.search(
        'What would you say is the reason that the thing they call a "heat pump" is so very loud at night?'
    )
    assert [hit.text for hit in held] == ["The heat pump is loud."]


def test_questions_of_a_judged_set_have_no_operators(sentences, word_model, tmp_path):
    made = index(["The heat pump is loud.", *sentences[:20]], model=word_model, out=tmp_path / "a.index", quiet=True)
    assert not made.search('"pump heat" -loud')
    assert made.documents('"pump heat" -loud')[0][0] == ("0",)


def test_phrases_and_barred_words_of_other_scripts(word_model, tmp_path):
    texts = ["पंप तहखाने में खराब है", "பம்பு உடைந்துள்ளது", "ปั๊มน้ำในห้องใต้ดินเสีย", "配置Docker容器很容易", "The pump leaks."]
    opened = index(texts, model=word_model, out=tmp_path / "a.index", quiet=True)
    for query, wanted in (('"तहखाने में"', 0), ('"பம்பு"', 1), ('"ห้องใต้ดิน"', 2), ('"Docker容器"', 3), ('"Docker"', 3)):
        assert [hit.id for hit in opened.search(query)] == [wanted]
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
    hits = scripts.search(query, mode="hybrid" if '"' in query else "words", k=20)
    assert len(hits) == 1 or '"' not in query
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
