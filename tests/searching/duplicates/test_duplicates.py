"""`likewise.duplicates`: groups, what words tell apart, files, and vectors that are kept."""

import csv
import gzip
import json

import numpy as np
import pytest

import likewise
from likewise.corpus import CorpusOptions
from likewise.corpus.inputs import given_texts
from likewise.runs.progress import Progress, Stopped
from likewise.searching.duplicates.encoded_texts import read_units

TEXTS = [
    "The old cat sees the dog near the river",
    "The quiet doctor builds the bridge in the market",
    "the old cat  sees the dog near the river",  # another case: the tiny model reads lower case
    "The old cat sees the dog near the river",  # word for word
    "The old cat does not see the dog near the river",
    "The farmer likes the 20 letters in the train",
    "The farmer likes the 30 letters in the train",
]


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


def test_a_group_has_the_first_text_and_those_that_repeat_it(lines, saved_model, tmp_path):
    out, kept = tmp_path / "groups.jsonl", tmp_path / "kept.txt"
    found = likewise.duplicates(lines, model=saved_model, out=out, keep_one=kept, threshold=0.99, quiet=True)
    assert found.groups == ((0, 2, 3),)
    assert (found.texts, found.exact, found.near, found.kept) == (7, 1, 1, 5)
    (group,) = map(json.loads, out.read_text().splitlines())
    assert group["kept"] == {"text": TEXTS[0], "file": str(lines), "line": 1}
    assert [(one["line"], one["cosine"]) for one in group["duplicates"]] == [(3, pytest.approx(1)), (4, 1.0)]
    assert kept.read_text().splitlines() == [TEXTS[0], TEXTS[1], *TEXTS[4:]]
    assert found.above[0].text == "the old cat sees the dog near the river"


def test_words_tell_apart_what_vectors_do_not(lines, saved_model):
    found = likewise.duplicates(lines, model=saved_model, threshold=0.5, words=0.01, quiet=True)
    assert found.reasons["negation"] >= 1
    assert found.reasons["numbers"] >= 1
    left_out = {one for _, *others in found.groups for one in others}
    assert not left_out & {4, 5, 6}
    blind = likewise.duplicates(lines, model=saved_model, threshold=0.5, words=0, quiet=True)
    assert {4, 6} <= {one for _, *others in blind.groups for one in others}
    assert not blind.apart


def test_texts_of_python_are_the_lines_of_a_file(lines, saved_model):
    by_file = likewise.duplicates(lines, model=saved_model, threshold=0.9, quiet=True)
    for given in (TEXTS, tuple(TEXTS), iter(TEXTS), np.array(TEXTS)):
        assert likewise.duplicates(given, model=saved_model, threshold=0.9, quiet=True) == by_file


def test_rows_are_kept_whole(saved_model, tmp_path):
    rows = [{"id": i, "body": text} for i, text in enumerate(TEXTS)]
    source = tmp_path / "rows.jsonl.gz"
    with gzip.open(source, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    options = {"model": saved_model, "threshold": 0.99, "corpus_options": CorpusOptions(field="body"), "quiet": True}
    likewise.duplicates(source, keep_one=tmp_path / "kept.jsonl", **options)
    kept = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    assert kept == [rows[i] for i in (0, 1, 4, 5, 6)]
    likewise.duplicates(source, keep_one=tmp_path / "kept.csv", **options)
    with (tmp_path / "kept.csv").open(newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["0", "1", "4", "5", "6"]


def test_vectors_are_kept_for_another_threshold_and_another_file(lines, saved_model, tmp_path, monkeypatch, capsys):
    likewise.duplicates(lines, model=saved_model, threshold=0.9, quiet=True)
    monkeypatch.setattr("likewise.inference.encoded_files.encode_file", None)
    likewise.duplicates(lines, model=saved_model, threshold=0.8)
    assert "the vectors are taken from the cache" in capsys.readouterr().err
    copy = tmp_path / "copy.txt"
    copy.write_text(lines.read_text())
    likewise.duplicates(copy, model=saved_model, threshold=0.8, quiet=True)


def test_a_stop_while_texts_are_encoded_loses_nothing(corpus_file, saved_model, monkeypatch):
    from likewise.inference import text_pieces
    from likewise.inference.text_encoder import TextEncoder

    monkeypatch.setattr(text_pieces, "WINDOW", 100)
    whole = likewise.duplicates(corpus_file, model=saved_model, threshold=0.99, quiet=True)
    likewise.runs.cache_contents.clear_cache("vectors")
    encoded, before = [], TextEncoder.__call__

    def counted(encoder, texts, step):
        encoded.append(len(texts))
        if len(encoded) == 2:
            raise Stopped
        return before(encoder, texts, step)

    monkeypatch.setattr(TextEncoder, "__call__", counted)
    with pytest.raises(Stopped):
        likewise.duplicates(corpus_file, model=saved_model, threshold=0.99, quiet=True)
    assert likewise.duplicates(corpus_file, model=saved_model, threshold=0.99, quiet=True) == whole
    assert sum(encoded) == 500  # of 400 texts, the window that was stopped twice


def test_a_unit_is_a_line_a_row_or_a_paragraph(tmp_path):
    prose = "One sentence is here. Another one follows it, and it goes on for a while.\n" * 3
    (tmp_path / "prose.md").write_text(f"# Title\n\n{prose}\n{prose}")
    units = list(read_units(given_texts(tmp_path / "prose.md"), Progress(quiet=True)))
    assert len(units) == 2
    assert units[0].text == units[1].text == " ".join(prose.split())


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 1.5},
        {"words": 2},
        {"out": "no/such/groups.jsonl"},
    ],
)
def test_an_option_out_of_range_is_told_before_anything_is_read(options, saved_model, says):
    with says(likewise.LikewiseError):
        likewise.duplicates("no-such-file.txt", model=saved_model, **options)


def test_too_few_texts_and_what_is_no_text_are_errors(saved_model, tmp_path, says):
    (tmp_path / "one.txt").write_text("only one line is here\n")
    with says(likewise.LikewiseError):
        likewise.duplicates(tmp_path / "one.txt", model=saved_model, quiet=True)
    with says(likewise.LikewiseError):
        likewise.duplicates(["none.txt", "nor.txt"], model=saved_model, quiet=True)
    with says(likewise.LikewiseError):
        likewise.duplicates(["the cat", 3], model=saved_model, quiet=True)


def test_the_cosine_of_pairs_drawn_at_random_is_that_of_all_pairs():
    from likewise.searching.duplicates.duplicates import _at_random

    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(200, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors @ vectors.T)[~np.eye(200, dtype=bool)]
    assert _at_random(vectors) == pytest.approx(np.quantile(cosines, 0.99), abs=0.02)
    assert _at_random(vectors[:1]) == 0


def test_of_a_folder_what_cannot_be_read_is_left_out_and_told(saved_model, tmp_path, capsys):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("\n".join(TEXTS) + "\n")
    (folder / "b.txt").write_bytes(b"\x00\x01\x02 binary")
    (folder / "c.py").write_text("import this\n")
    kept = tmp_path / "kept.txt"
    found = likewise.duplicates(folder, model=saved_model, keep_one=kept, threshold=0.99)
    assert found.groups == ((0, 2, 3),)
    assert len(kept.read_text().splitlines()) == found.kept
    told = capsys.readouterr().err
    assert "b.txt" in told
    assert "1 .py" in told


@pytest.mark.parametrize("option", ["out", "keep_one"])
def test_a_file_that_is_read_is_not_written_over(option, saved_model, sentences, tmp_path, says):
    path = tmp_path / "own.txt"
    path.write_text("\n".join(sentences[:20]) + "\n")
    before = path.read_bytes()
    given = {option: tmp_path / "." / "own.txt"}
    with says(likewise.LikewiseError):
        likewise.duplicates(tmp_path, model=saved_model, quiet=True, overwrite=True, **given)
    assert path.read_bytes() == before


def found_by(texts, **options):
    return likewise.duplicates(texts, quiet=True, **options).groups


def test_positions_are_those_of_the_list_that_was_given():
    texts = ["", "I lost my card", "The train is late", " ", "i lost my card!", "---", "the train is late!"]
    assert set(found_by(texts)) == {(1, 4), (2, 6)}


def test_texts_of_signs_are_duplicates_only_of_the_same_signs():
    assert found_by(["👍", "!!!", "👍", "👎", "!", "", ""], words=0, threshold=-1) == ((0, 2),)


OPENING = (
    "Dear customer service team, we thank you for the delivery of the ordered goods and for the friendly support. "
    "We have checked the goods with care, and all parts were found in the box. "
) * 12
ENDS = [
    "Please send a replacement for the broken pump because oil drips onto the floor.",
    "Please cancel the contract for cleaning the office windows and return the deposit.",
]


@pytest.mark.parametrize("texts", [[OPENING + end for end in ENDS], [end + " " + OPENING for end in ENDS]])
def test_texts_that_share_all_but_a_sentence_are_compared_by_that_sentence(texts):
    assert found_by(texts) == ()
    assert found_by([texts[0], texts[0].replace("broken pump", "broken  pump").replace("Please send", "please send")])


def test_long_texts_without_sentences_are_compared_part_by_part():
    log = " ".join(f"step{i % 7} ran well and" for i in range(200))
    assert found_by([f"{log} the pump leaks oil", f"{log} the office party begins"]) == ()


KEPT_APART = [
    ("Turn the left valve", "Turn the right valve"),
    ("Switch the light on", "Switch the light off"),
    ("Call me before lunch", "Call me after lunch"),
    ("Please open the gate", "Please close the gate"),
    ("I want to buy ten shares", "I want to sell ten shares"),
    ("How do I lock the door?", "How do I unlock the door?"),
    ("Take it once a day", "Take it twice a day"),
    ("Press the first button", "Press the second button"),
    ("Add ½ cup of sugar", "Add ¼ cup of sugar"),
    ("we meet on monday", "we meet on tuesday"),
    ("The pipe is 5 mm wide", "The pipe is 5 cm wide"),
    ("It costs 20 €", "It costs 20 $"),
    ("Update to version 1.2.3", "Update to version 1.2.4"),
    ("The dog bit the man", "The man bit the dog"),
    ("A flight from Paris to London", "A flight from London to Paris"),
    ("It is -5 degrees", "It is 5 degrees"),
    ("Berlin is cold in winter", "Rome is cold in winter"),
    ("The price goes up", "The price goes down"),
    ("The shop opens at 9 a.m.", "The shop opens at 9 p.m."),
    ("Contact sales@acme.com for help", "Contact support@acme.com for help"),
    ("file_a.txt was deleted", "file_b.txt was deleted"),
    ("C:\\data\\a.txt was deleted", "C:\\data\\b.txt was deleted"),
    ("I love this product \N{THUMBS UP SIGN}", "I love this product \N{THUMBS DOWN SIGN}"),
    ("if (a < b) return", "if (a > b) return"),
    ("You must sign the form", "You may sign the form"),
    ("Sort by row in the table", "Sort by column in the table"),
    ("The plaintiff appealed the judgment", "The defendant appealed the judgment"),
    ("Rates were raised by 5%", "Rates were raised to 5%"),
    ("Rates rose by 5% in May", "Rates rose by 5 in May"),
    ("It costs $50 a month", "It costs €50 a month"),
    ("I lent him money", "He lent me money"),
    ("They finished the report in May", "They unfinished the report in May"),
]
TOLD_TOGETHER = [
    ("I lost my card yesterday", "Yesterday I lost my card."),
    ("The delivery was late again", "the delivery was lare again"),
    ("Where is my card? Thanks!", "Where is my card?"),
    ("The first of the two", "The 1st of the 2"),
    ("It costs 1,250 dollars", "It costs $1250"),
    ("Rates rose by 5% in May", "Rates rose by 5 percent in May"),
    ("The team showed the name for the club", "The team showed the name for club"),
    ("Look at https://a.org/alpha for the news", "Look at https://a.org/gamma for the news"),
    ("The pump in max_flow leaks.Call us", "The pump in max_flow leaks. Call us"),
]


def in_one_group(pairs):
    """Return the pairs of which both texts are in one group, where all are compared at once."""
    groups = found_by([text for pair in pairs for text in pair], threshold=0.3)
    return [pair for i, pair in enumerate(pairs) if any({2 * i, 2 * i + 1} <= set(group) for group in groups)]


def test_near_texts_that_exclude_each_other_are_kept():
    assert in_one_group(KEPT_APART) == []


def test_other_order_spelling_and_politeness_leave_duplicates():
    assert in_one_group(TOLD_TOGETHER) == TOLD_TOGETHER


def test_in_other_languages_only_the_same_words_but_for_misspellings_count():
    texts = [
        "Bitte öffnen Sie das Ventil an der Pumpe",
        "Bitte schließen Sie das Ventil an der Pumpe",
        "bitte öffnen Sie das Ventil an der Pummpe!",
    ]
    by_words = likewise.duplicates(texts, quiet=True, threshold=0.5)
    assert by_words.language == "German"
    assert by_words.groups == ((0, 2),)


def test_what_is_kept_and_what_is_left_out_add_up_and_keep_all_columns(tmp_path):
    rows = [
        {"id": 1, "text": "I lost my card"},
        {"id": 2, "text": "i lost my card!", "note": "=late"},
        {"id": 3, "text": "👍"},
        {"id": 4, "text": ""},
        {"id": 5, "text": None},
        {"id": 6, "text": "Another text here", "place": "Rome"},
        {"id": 7, "text": "I lost my card"},
        {"id": 8, "text": "I have lost my card"},
    ]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"corpus_options": CorpusOptions(field="text"), "quiet": True}
    for name in ("kept.jsonl", "kept.csv"):
        counted = likewise.duplicates(source, keep_one=tmp_path / name, **options)
        left_out = [json.loads(line) for line in (tmp_path / "kept.left-out.jsonl").read_text().splitlines()]
        assert [(row["id"], row["left_out"]["reason"]) for row in left_out] == [
            (2, "the same words"),
            (7, "the same words"),
            (8, "says the same"),
        ]
        (tmp_path / "kept.left-out.jsonl").unlink()
        assert counted.kept + len(left_out) == len(rows) == counted.texts
    kept = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    assert kept == [rows[i] for i in (0, 2, 3, 4, 5)]
    with (tmp_path / "kept.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["place"] for row in table] == ["", "", "", "", "Rome"]


def test_one_file_for_both_results_is_refused(tmp_path, says):
    with says(likewise.LikewiseError):
        likewise.duplicates(["a b c", "d e f"], out=tmp_path / "both.txt", keep_one=tmp_path / "both.txt")


def test_kept_rows_keep_their_columns_and_any_sign(word_model, tmp_path):
    rows = [{"id": n, "text": "the cat sees the dog", "n": f"{n}\udc80"} for n in (1, 2)]
    for name in ("kept.tsv", "kept.NDJSON"):
        likewise.duplicates(rows, model=word_model, keep_one=tmp_path / name, quiet=True)
    assert (tmp_path / "kept.tsv").read_text().splitlines() == ["id\ttext\tn", "1\tthe cat sees the dog\t1\\udc80"]
    assert json.loads((tmp_path / "kept.NDJSON").read_text()) == rows[0]


@pytest.mark.parametrize(
    ("texts", "groups"),
    [
        (["Bitte melden Sie das Gerät anmelden", "Bitte melden Sie das Gerät abmelden"], ()),
        (["Das wurde gestern bezahlt und geliefert", "Das würde gestern bezahlt und geliefert"], ()),
        (["आज का दिन बहुत अच्छा है", "आज का दान बहुत अच्छा है"], ()),
        (["ฉันชอบกินข้าวทุกวัน", "ฉันชอบกินข่าวทุกวัน"], ()),
        (["Thanks", "thanks!!!!!", "(thanks)"], ((0, 1, 2),)),
        (["I use C++", "I use C#"], ()),
    ],
)
def test_the_same_words_are_duplicates_and_another_letter_makes_another_word(texts, groups):
    assert found_by(texts) == groups


@pytest.mark.parametrize("name", ["kept.parquet", "kept.json", "kept.jsonl.gz", "kept.xlsx"])
def test_a_file_that_is_not_written_is_refused(name, tmp_path, says):
    with says(likewise.LikewiseError):
        likewise.duplicates(["a", "b"], keep_one=tmp_path / name, quiet=True)
