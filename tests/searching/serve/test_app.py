import base64
import gzip
import json
import re
import shutil
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import numpy as np
import openai
import pytest
from sentence_transformers import SentenceTransformer

import likewise
from likewise.searching.serve import ServeOptions, ServingError
from likewise.searching.serve.service import Service


@pytest.fixture(scope="module")
def wanted(saved_model, sentences):
    """The unit vectors of the first 40 sentences, by sentence-transformers."""
    return SentenceTransformer(str(saved_model)).encode(sentences[:40], normalize_embeddings=True)


@pytest.fixture
def official(address):
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


def test_the_official_client_gets_the_vectors_of_the_model(official, sentences, wanted, saved_model):
    found = official.embeddings.create(model="tiny", input=sentences[:40])  # asks for base64
    np.testing.assert_allclose([row.embedding for row in found.data], wanted, atol=1e-5)
    assert [row.index for row in found.data] == list(range(40))
    tokenizer = SentenceTransformer(str(saved_model)).tokenizer
    assert found.usage.prompt_tokens == sum(len(tokenizer(text)["input_ids"]) for text in sentences[:40])
    assert found.model == "tiny"
    one = official.embeddings.create(model="again", input=sentences[3], encoding_format="float")
    np.testing.assert_allclose(one.data[0].embedding, wanted[3], atol=1e-5)
    cut = official.embeddings.create(model="tiny", input=sentences[:2], dimensions=8)
    shorter = wanted[:2, :8] / np.linalg.norm(wanted[:2, :8], axis=1, keepdims=True)
    np.testing.assert_allclose([row.embedding for row in cut.data], shorter, atol=1e-5)


def test_the_official_client_lists_the_models_and_gets_its_own_errors(official):
    assert [model.id for model in official.models.list()] == ["tiny", "again"]
    assert official.models.retrieve("again").owned_by == "likewise"
    with pytest.raises(openai.NotFoundError, match="choose one of tiny, again") as error:
        official.embeddings.create(model="text-embedding-3-small", input="a")
    assert (error.value.code, error.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError, match="token ids are not accepted") as error:
        official.embeddings.create(model="tiny", input=[[1, 2], [3]])
    assert (error.value.type, error.value.param) == ("invalid_request_error", "input")
    with pytest.raises(openai.BadRequestError, match="64 is more than the 32 of tiny"):
        official.embeddings.create(model="tiny", input="a", dimensions=64)


def test_both_encodings_hold_the_same_numbers(client):
    body = {"model": "tiny", "input": "the cat"}
    plain = client.post("/v1/embeddings", json=body).json()["data"][0]["embedding"]
    coded = client.post("/v1/embeddings", json=body | {"encoding_format": "base64"}).json()["data"][0]["embedding"]
    assert np.frombuffer(base64.b64decode(coded), dtype="<f4").tolist() == np.float32(plain).tolist()


def test_many_clients_at_once_get_what_each_would_get_alone_from_shared_batches(client, sentences, wanted):
    def ask(number):
        answer = client.post("/v1/embeddings", json={"model": "tiny", "input": sentences[number]})
        return answer.json()["data"][0]["embedding"]

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(ask, [*range(40)] * 4))
    np.testing.assert_allclose(found, np.tile(wanted, (4, 1)), atol=1e-5)
    told = dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if line[0] != "#")
    batches, texts = (float(told[f'likewise_batch_texts_{what}{{model="tiny"}}']) for what in ("count", "sum"))
    assert batches < texts
    assert float(told['likewise_requests_total{path="/v1/embeddings",status="200"}']) >= 160
    assert float(told['likewise_waiting_texts{model="tiny"}']) == 0


def test_similarity_is_the_cosine(client, sentences, wanted):
    found = client.post("/similarity", json={"texts": sentences[:3], "others": sentences[3:5]}).json()
    np.testing.assert_allclose(found["similarity"], wanted[:3] @ wanted[3:5].T, atol=1e-5)
    alone = client.post("/similarity", json={"texts": sentences[:3], "model": "again"}).json()
    np.testing.assert_allclose(alone["similarity"], wanted[:3] @ wanted[:3].T, atol=1e-5)


def test_search_gives_what_the_index_gives(client, indexed, sentences):
    from likewise.searching import Index

    for mode in ("hybrid", "vectors", "words"):
        found = client.post("/search", json={"query": sentences[7], "k": 4, "mode": mode}).json()
        hits = [hit.to_dict() for hit in Index(indexed).search(sentences[7], 4, mode=mode)]
        assert found["index"] == "notes"
        assert [hit["text"] for hit in found["hits"]] == [hit["text"] for hit in hits]
        assert [hit["score"] for hit in found["hits"]] == pytest.approx([hit["score"] for hit in hits], abs=1e-5)
    found = client.post("/search", json={"query": "the cat", "where": "line = = 1"})
    assert found.status_code == 400
    assert "the filter 'line = = 1' is not valid" in found.json()["error"]["message"]
    assert client.post("/search", json={"query": "the cat", "index": "none"}).status_code == 404


@pytest.mark.parametrize(
    ("query", "demanded", "line"), [('"{}" -zebra', True, "with: "), ('Where is "{}" at home?', False, "ranked higher")]
)
def test_search_says_which_phrases_demanded_and_which_ranked(client, sentences, query, demanded, line):
    phrase = " ".join(sentences[7].rstrip(".").split()[-2:])
    found = client.post("/search", json={"query": query.format(phrase), "k": 2}).json()
    assert (found["demanded"], found["ranked"]) == (([phrase], []) if demanded else ([], [phrase]))
    assert line in found["told"][0]
    assert phrase in found["told"][0]


def test_what_is_served_and_that_it_is_alive(client):
    told = client.get("/info").json()
    assert [model["name"] for model in told["models"]] == ["tiny", "again"]
    assert told["indexes"] == [{"name": "notes", "model": "tiny", "passages": 42}]
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready"}
    assert client.get("/openapi.json").json()["info"]["title"] == "likewise"
    assert client.get("/v1").json()["error"]["message"].startswith("Not Found: /v1; choose one of /v1/embeddings, ")
    refused = client.get("/v1/embeddings")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


HOSTILE = {
    "not JSON": b'{"model": "tiny", ',
    "nothing": b"",
    "a list": b"[]",
    "a wrong type": b'{"model": "tiny", "input": {"a": 1}}',
    "a number among texts": b'{"model": "tiny", "input": ["a", 3]}',
    "null": b'{"model": "tiny", "input": null}',
    "no model": b'{"input": "a"}',
    "NaN": b'{"model": "tiny", "input": "a", "dimensions": NaN}',
    "NaN as text": b'{"model": "tiny", "input": NaN}',
    "infinity": b'{"model": "tiny", "input": "a", "dimensions": 1e999}',
    "zero dimensions": b'{"model": "tiny", "input": "a", "dimensions": 0}',
    "not UTF-8": b'{"model": "tiny", "input": "\xff\xfe"}',
    "deep nesting": b'{"model": "tiny", "input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "an empty text": b'{"model": "tiny", "input": ""}',
    "no text": b'{"model": "tiny", "input": []}',
    "a long text": json.dumps({"model": "tiny", "input": "a" * 100_000}).encode(),
    "many texts": json.dumps({"model": "tiny", "input": ["a"] * 3000}).encode(),
    "ten megabytes": json.dumps({"model": "tiny", "input": "a" * 10_000_000}).encode(),
    "an unknown encoding": b'{"model": "tiny", "input": "a", "encoding_format": "utf-16"}',
}


def test_half_of_an_emoji_is_no_reason_to_refuse_a_request(client):
    def vectors(content):
        answer = client.post("/v1/embeddings", content=content, headers={"content-type": "application/json"})
        assert answer.status_code == 200, answer.text
        return [row["embedding"] for row in answer.json()["data"]]

    wanted = vectors(b'{"model": "tiny", "input": ["the cat ?", "a"]}')
    found = vectors(b'{"model": "tiny", "input": ["the cat \\ud83d", "a"]}')
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    np.testing.assert_allclose(vectors(b'{"model": "tiny", "input": "the cat \\ude00"}'), wanted[:1], atol=1e-5)
    body = b'{"texts": ["the cat \\ud83d"], "others": ["\\udc00 b"]}'
    assert client.post("/similarity", content=body, headers={"content-type": "application/json"}).status_code == 200
    body = b'{"query": "the cat \\ud83d"}'
    assert client.post("/search", content=body, headers={"content-type": "application/json"}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/embeddings/", "/search/", "/similarity//", "/rerank/"])
def test_a_slash_at_the_end_is_answered_without_a_redirect(client, path):
    assert client.post(path, json=ASKED[path.rstrip("/")], follow_redirects=False).status_code == 200


def test_the_state_of_the_process_is_measured(client):
    told = dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if line[0] != "#")
    assert float(told["process_resident_memory_bytes"]) > 1e7
    assert float(told["process_open_fds"]) > 3
    assert told[f'likewise_info{{version="{likewise.__version__}"}}'] == "1.0"


def test_the_pages_of_the_api_load_nothing_from_elsewhere(client):
    page = client.get("/docs").text
    files = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert files
    assert "//" not in page.replace("</script>", "").replace("// ", "").split("<script>")[0]
    assert all(client.get(file).status_code == 200 for file in files)


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_a_bad_request_gets_a_4xx_in_the_error_format(client, body):
    answer = client.post("/v1/embeddings", content=body, headers={"content-type": "application/json"})
    assert 400 <= answer.status_code < 500
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert len(answer.json()["error"]["message"]) < 400
    assert re.fullmatch(r"[a-z_.0-9]*", answer.json()["error"]["param"] or "")
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("body", "headers", "status", "told"),
    [
        (HOSTILE["a number among texts"], {}, 400, "input.1: "),
        (HOSTILE["not UTF-8"], {}, 400, "not in UTF-8"),
        (gzip.compress(b"{}", mtime=0), {"content-encoding": "gzip"}, 415, "send it uncompressed"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(client, body, headers, status, told):
    answer = client.post("/v1/embeddings", content=body, headers={"content-type": "application/json", **headers})
    assert answer.status_code == status
    assert told in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/similarity", {"texts": []}),
        ("/similarity", {"texts": ["a"] * 1500, "others": ["b"] * 1500}),
        ("/similarity", {"texts": "a"}),
        ("/search", {"query": "a", "k": 0}),
        ("/search", {"query": "a", "mode": "magic"}),
        ("/search", {"query": "a", "pipeline": {"neighbours": 2}}),
        ("/search", {"query": "a", "pipeline": "weights.toml"}),
        ("/search", {"query": "a" * 50_000}),
    ],
)
def test_bad_requests_of_the_other_paths(client, path, body):
    assert client.post(path, json=body).status_code == 400


ASKED = {
    "/v1/embeddings": {"model": "tiny", "input": "a"},
    "/similarity": {"texts": ["a", "b"]},
    "/search": {"query": "the cat"},
    "/rerank": {"query": "the cat", "documents": ["a", "the cat"]},
}


@pytest.mark.parametrize("path", ASKED)
def test_null_is_a_field_that_is_left_out(client, path):
    told = client.get("/openapi.json").json()
    (kind,) = told["paths"][path.replace("/rerank", "/v1/rerank")]["post"]["requestBody"]["content"].values()
    names = told["components"]["schemas"][kind["schema"]["$ref"].rpartition("/")[2]]["properties"]
    nulls = dict.fromkeys([*names, "input_type", "dimension"]) | ASKED[path]
    answer = client.post(path, json=nulls)
    assert answer.status_code == 200
    shown = [{**one.json(), "id": 0} for one in (answer, client.post(path, json=ASKED[path]))]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("name", ["filter", "top_k", "limit", "a b", "x" * 100_000, "größe", "_set_alone"])
@pytest.mark.parametrize("path", ASKED)
def test_a_field_that_is_not_known_is_named(client, path, name):
    answer = client.post(path, json={**ASKED[path], name: 1})
    assert answer.status_code == 400
    told = answer.json()["error"]["message"]
    assert name[:100] in told
    assert len(told) < 400
    assert name not in ("filter", "limit") or path != "/search" or told.endswith(("say where", "say k"))


def test_pages_of_hits_follow_one_another(running, saved_model, tmp_path):
    from likewise import index

    lines = [f"the cat number {i} sees the old river" for i in range(250)]
    index(lines, model=saved_model, out=tmp_path / "many", quiet=True)
    address = running({"tiny": saved_model}, indexes={"first": tmp_path / "many"})[0]

    def hits(**asked):
        body = {"query": "the cat number 3", "mode": "vectors", "index": "first", **asked}
        answer = httpx.post(f"{address}/search", json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        return [hit["text"] for hit in answer.json()["hits"]]

    whole = hits(k=1000)
    assert len(whole) == len(set(whole)) == 250
    assert [*hits(k=90), *hits(k=90, offset=90), *hits(k=90, offset=180), *hits(k=90, offset=270)] == whole


@pytest.mark.parametrize("length", ["0" * 5000, "9" * 5000, "1" * 21, "-1", "+5", "1_0", "", "1, 1"])
def test_a_length_that_is_no_number_of_bytes_is_a_4xx(address, length):
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=10) as opened:
        head = f"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        opened.sendall(head.encode())
        assert opened.recv(4096).split()[1].startswith(b"4")


def test_a_body_that_is_too_large_or_too_slow_is_refused(running, saved_model):
    limits = ServeOptions(body_timeout=1.5, max_body=2000)
    address = urlsplit(running({"tiny": saved_model}, options=limits)[0])

    def answer(*pieces):
        with socket.create_connection((address.hostname, address.port), timeout=10) as opened:
            for piece in pieces:
                opened.sendall(piece)
            return opened.recv(4096).split(b"\r\n")[0]

    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    assert b" 408 " in answer(head + b"Content-Length: 100\r\n\r\n", b'{"model"')
    assert b" 413 " in answer(head + b"Content-Length: 10000000\r\n\r\n")
    assert b" 413 " in answer(head + b"Transfer-Encoding: chunked\r\n\r\n", b"fff\r\n" + b" " * 4095 + b"\r\n")
    assert httpx.get(f"{address.geturl()}/health").status_code == 200


def test_a_full_queue_answers_429_and_a_slow_model_504(running, saved_model, monkeypatch):
    address, service = running({"tiny": saved_model}, options=ServeOptions(queue=2, timeout=2))
    model, free = service.models["tiny"].encoder, threading.Event()
    vectors = model.vectors
    monkeypatch.setattr(model, "vectors", lambda items: (free.wait(20), vectors(items))[1])

    def ask(_):
        return httpx.post(f"{address}/v1/embeddings", json={"model": "tiny", "input": ["a " * 100] * 20}, timeout=20)

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, range(6)))
    free.set()
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {429, 504}
    refused = answers[statuses.index(429)]
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert httpx.get(f"{address}/ready").status_code == 200
    assert service.models["tiny"].batcher.waiting == 0


def test_keys_are_wanted_where_there_are_some_and_cors_is_off_unless_named(running, saved_model, address):
    locked = running({"tiny": saved_model}, keys=["first-key", "second-key"], cors=["https://example.org"])[0]
    for header in ({}, {"Authorization": "Bearer first"}, {"Authorization": "Bearer x"}):
        refused = httpx.get(f"{locked}/v1/models", headers=header | {"Origin": "https://example.org"})
        assert refused.headers["access-control-allow-origin"] == "https://example.org"  # its page can read why
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
    for key in ("first-key", "second-key"):
        assert httpx.get(f"{locked}/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code == 200
    assert httpx.get(f"{locked}/health").status_code == 200
    assert httpx.get(f"{locked}/metrics").status_code == 401
    for page in ("/docs", "/openapi.json"):
        assert httpx.get(f"{locked}{page}").status_code == 200  # a browser sends no key
    assert httpx.get(f"{locked}/static-offline-docs/../v1/models").status_code == 401
    assert httpx.get(f"{locked}/static-offline-docs/%2e%2e/v1/models").status_code in (401, 404)
    origin = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    allowed = httpx.options(f"{locked}/v1/embeddings", headers=origin)
    assert allowed.headers["access-control-allow-origin"] == "https://example.org"
    assert "access-control-allow-origin" not in httpx.get(f"{address}/health", headers=origin).headers


def test_an_index_of_another_model_is_refused(indexed, tiny_base, says):
    with says(ServingError):
        Service({"other": str(tiny_base)}, [indexed], engine="torch")


def test_indexes_are_called_by_their_folders_or_by_the_names_given(saved_model, indexed, tmp_path, says):
    for name in ("notes.2023", "notes.2024", "2023/notes", "2024/notes"):
        shutil.copytree(indexed, tmp_path / name)
    folders = [tmp_path / "notes.2023", tmp_path / "notes.2024", indexed]
    assert list(Service({"tiny": saved_model}, folders, engine="torch").indexes) == [
        "notes.2023",
        "notes.2024",
        "notes",
    ]
    with says(ServingError):
        Service({"tiny": saved_model}, [tmp_path / "2023/notes", tmp_path / "2024/notes"], engine="torch")
    with says(ServingError):
        likewise.serve(f"tiny={saved_model}", index=[f"a={tmp_path / '2023/notes'}", f"a={indexed}"], port=0)


def test_an_index_that_is_gone_is_the_service_s_fault_and_its_place_is_not_told(
    running, indexed, saved_model, tmp_path
):
    there, gone = tmp_path / "there.index", tmp_path / "gone.index"
    for copy in (there, gone):
        shutil.copytree(indexed, copy)
    address, _ = running({"tiny": saved_model}, indexes=[there, gone])
    shutil.rmtree(gone)
    asked = {"query": "the cat", "index": "gone"}
    answer = httpx.post(f"{address}/search", json=asked, timeout=60)
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "server_error")
    assert str(tmp_path) not in answer.text
    assert httpx.post(f"{address}/search", json=asked | {"index": "there"}, timeout=60).status_code == 200
    assert [index["name"] for index in httpx.get(f"{address}/info").json()["indexes"]] == ["there"]


def test_monitors_ask_by_head_and_a_body_without_its_kind_is_refused_by_name(client):
    for path in ("/health", "/ready", "/v1/models", "/"):
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")
    answer = client.post("/v1/embeddings", content=b'{"input": "a"}', headers={"Content-Type": ""})
    assert answer.status_code == 415
    assert "Content-Type" in answer.json()["error"]["message"]
