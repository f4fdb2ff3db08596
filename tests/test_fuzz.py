"""Inputs made at random: each is taken, or refused in one sentence; none ends in a traceback.

`LIKEWISE_FUZZ=5000` tries so many in place of some hundreds, and other ones each time.
"""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from typer.main import get_command
from typer.testing import CliRunner

from likewise.cli import build_app
from likewise.corpus import CorpusOptions, read_documents, read_sentences
from likewise.corpus.documents import read_triplets
from likewise.corpus.passages import read_passages
from likewise.errors import LikewiseError
from likewise.evaluation.registry import resolve
from likewise.evaluation.suite import read_tasks
from likewise.inference.load_model import load
from likewise.inference.text_pieces import lines_of
from likewise.searching import Index
from likewise.training.objectives import STSOptions, read_nli, read_sts

TOTAL = int(os.environ.get("LIKEWISE_FUZZ", "0"))
PARTS = 5


def tries(count):
    """The settings of one of the parts: so many inputs, always the same ones, or its part of what was asked for."""
    return settings(
        max_examples=TOTAL // PARTS or count,
        derandomize=not TOTAL,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink) if TOTAL else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )


NUMBERS = st.one_of(
    st.integers(-3, 3), st.sampled_from([2**31, 2**64, -(2**63), 10**400, 1e308, -1e-308, float("nan"), float("inf")])
)
TEXTS = st.one_of(
    st.sampled_from(["", "the cat", "\ud800", "\0", "\x1b[31m", "..", "a" * 5000, "[b]x[/b]", "{}"]), st.text()
)
PLAIN = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    PLAIN, lambda one: st.lists(one, max_size=3) | st.dictionaries(TEXTS, one, max_size=3), max_leaves=8
)


def one_sentence(message):
    """Fail unless a message is short and of no program."""
    assert message.strip(), "an empty message"
    assert len(message) < 6000
    assert not re.search(r"Traceback|validation errors? for|object at 0x|^\w+Error\b", message)
    return True


def refused(call):
    """Return whether a call ends with an error that the user can mend, in one sentence; every other one is a fault."""
    try:
        call()
    except LikewiseError as error:
        return one_sentence(str(error))
    return False


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A working folder of odd files."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "lines.txt").write_text("the cat sees the dog\n" * 3)
    (folder / "rows.jsonl").write_text('{"text": "a b c"}\n{"a": 1}\n[]\n')
    (folder / "odd.toml").write_text("steps = 'a'\n[methods]\n")
    (folder / "bytes.bin").write_bytes(bytes(range(256)) * 9)
    (folder / "zero.gz").write_bytes(b"\x1f\x8b")
    (folder / "empty.txt").touch()
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    (folder / "old.index").mkdir()
    (folder / "old.index" / "likewise.json").write_text("[]")
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


def commands(command, names=()):
    """Yield the words and the click command of each verb, but for those that fetch things or train at once."""
    for name in command.list_commands(None):
        one = command.get_command(None, name)
        if name in ("demo", "data"):
            continue
        if hasattr(one, "list_commands"):
            yield from commands(one, (*names, name))
        else:
            yield (*names, name), one


VERBS = dict(commands(get_command(build_app())))
MODELS = {"base", "model", "models", "encoder"}
ODD = st.one_of(
    st.sampled_from(
        "lines.txt rows.jsonl odd.toml bytes.bin zero.gz empty.txt model old.index none *.txt - -- -1 0 1e999 nan "
        "text= =a a=b , pairs:none retrieval:model simcse sts fp32 auto hybrid line".split()
    ),
    NUMBERS.map(str),
    # No path that leaves the folder, and what a command line cannot hold.
    st.binary(max_size=12).map(
        lambda raw: os.fsdecode(raw.replace(b"/", b"|").replace(b"\0", b"0").replace(b"~", b"-"))
    ),
)


@st.composite
def command_lines(draw):
    """A verb, some of its options, and odd values; a model is none, so that nothing is trained."""
    verb = draw(st.sampled_from(sorted(VERBS)))
    flags = [flag for one in VERBS[verb].params for flag in one.opts if flag.startswith("-")]
    words = draw(st.lists(st.one_of(ODD, st.sampled_from([*flags, "--no-such"])), max_size=8))
    words = [word for word in words if word not in ("--install-completion", "--show-completion")]
    for one in VERBS[verb].params:
        if one.name in MODELS and one.opts[0].startswith("-"):
            words += [one.opts[0], "model"]
    return [*verb, *words]


@tries(150)
@given(words=command_lines())
def test_any_words_of_a_command_line(words, place):
    found = CliRunner().invoke(build_app(), words)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise AssertionError(f"likewise {words}") from found.exception
    assert found.exit_code in (0, 1, 2), words
    assert found.exit_code == 0 or one_sentence(found.stderr)


ROWS = st.one_of(
    st.dictionaries(
        st.sampled_from(["text", "id", "sections", "title", "anchor", "positive", "query"]), VALUES, max_size=3
    ),
    VALUES,
).map(json.dumps)
LINES = st.one_of(
    ROWS.map(str.encode), st.binary(max_size=40), st.sampled_from([b"a,b,text\n1,2", b'"', b"\t", b"<page>"])
)
ENDINGS = [".jsonl", ".jsonl.gz", ".csv", ".tsv", ".txt", ".md", ".json", ".xml", ".parquet", ".html", ".py", ".bz2"]


READERS = {
    "sentences": lambda path: list(read_sentences(path, CorpusOptions(field="text"))),
    "passages": lambda path: list(read_passages(path)),
    "documents": lambda path: list(read_documents(path)),
    "triplets": read_triplets,
    "lines": lambda path: list(lines_of(path, CorpusOptions(field="text"))),
    "pairs": lambda path: read_tasks(resolve(f"pairs:{path}")[0], None),
    "entailments": lambda path: read_nli([Path(path)]),
    "ratings": lambda path: read_sts([Path(path)], None, STSOptions()),
}


@tries(200)
@given(lines=st.lists(LINES, max_size=5), ending=st.sampled_from(ENDINGS), reader=st.sampled_from(sorted(READERS)))
def test_any_bytes_as_a_file_of_rows(lines, ending, reader, place):
    path = place / f"any{ending}"
    path.write_bytes(b"\n".join(lines))
    refused(lambda: READERS[reader](str(path)))


KEYS = st.sampled_from(
    "methods seeds steps minutes tasks base corpus out batch_size recipe preset a b.c [x] [[methods]]".split()
)
SETTINGS = st.tuples(
    KEYS, st.one_of(VALUES.map(lambda one: json.dumps(one, default=str)), st.text(max_size=8), st.just("2024-01-01"))
)


@tries(100)
@given(
    lines=st.lists(st.one_of(SETTINGS.map(" = ".join), KEYS, st.text(max_size=9)), max_size=6),
    tail=st.binary(max_size=3),
)
def test_any_settings_as_toml(lines, tail, place):
    path = place / "any.toml"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass") + tail)
    words = ["compare", "--config", "any.toml", "--corpus", "none.txt", "--out", "compared"]
    found = CliRunner().invoke(build_app(), words)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise AssertionError(path.read_bytes()) from found.exception
    assert found.exit_code == 2
    assert one_sentence(found.stderr)


def changed(draw, content):
    """A record with one of its values, at any depth, replaced by another or left out."""
    if not isinstance(content, (dict, list)) or not content or draw(st.integers(0, 5)) == 0:
        return draw(VALUES)
    keys = sorted(content) if isinstance(content, dict) else range(len(content))
    key, copy = draw(st.sampled_from(keys)), content.copy()
    if draw(st.integers(0, 5)) == 0:
        del copy[key]
    else:
        copy[key] = changed(draw, content[key])
    return copy


@pytest.fixture(scope="module")
def records(_indexed, saved_model, tmp_path_factory):
    """A copy of an index and of a model, and the records in them."""
    folder = tmp_path_factory.mktemp("records")
    shutil.copytree(_indexed, folder / "a.index")
    shutil.copytree(saved_model, folder / "model")
    names = [folder / "a.index" / "likewise.json", *sorted((folder / "model").rglob("*.json"))]
    return {path: path.read_text() for path in names if path.stat().st_size < 10_000}


@tries(100)
@given(data=st.data())
def test_any_values_in_a_record(data, records):
    path = data.draw(st.sampled_from(sorted(records)))
    changes = changed(data.draw, json.loads(records[path]))
    path.write_text(json.dumps(changes))
    model = next((one for one in path.parents if one.name == "model"), None)
    try:
        refused(lambda: load(model) if model else Index(path.parent).search("the cat", 3, mode="words"))
    except Exception as error:
        raise AssertionError(f"{path.name}: {changes}") from error
    finally:
        path.write_text(records[path])


@pytest.fixture(scope="module")
def client(saved_model, _indexed):
    """A client of a service of the tiny model and the index of notes."""
    from starlette.testclient import TestClient

    from likewise.searching.serve.app import create_app
    from likewise.searching.serve.service import Service

    app = create_app(Service({"tiny": saved_model}, [_indexed], engine="torch"))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as opened:
        yield opened


@tries(150)
@given(data=st.data())
def test_any_body_of_a_request(data, client):
    paths = client.get("/openapi.json").json()
    path, methods = data.draw(st.sampled_from([item for item in sorted(paths["paths"].items()) if "post" in item[1]]))
    (content,) = methods["post"]["requestBody"]["content"].values()
    known = sorted(paths["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]["properties"])
    texts = st.lists(TEXTS, max_size=3)
    values = st.one_of(st.sampled_from(["tiny", "notes", "words", 3]), texts, VALUES)
    bodies = st.one_of(st.dictionaries(st.sampled_from(known) | TEXTS, values, max_size=6), VALUES)
    raw = data.draw(st.one_of(bodies.map(lambda one: json.dumps(one).encode()), st.binary(max_size=50)))
    answer = client.post(path, content=raw, headers={"content-type": "application/json"})
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, (path, raw)
    assert answer.status_code == 200 or one_sentence(answer.json()["error"]["message"])


def test_a_fault_is_seen(place):
    """What the tests above look for would be found."""
    with pytest.raises(AssertionError):
        one_sentence("Traceback (most recent call last):")
    with pytest.raises(AssertionError):
        one_sentence("2 validation errors for SearchBody")
    with pytest.raises(AssertionError):
        one_sentence(" ")
