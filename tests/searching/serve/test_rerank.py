"""Requests to rerank, as the clients of Cohere and Jina send them."""

import httpx
import numpy as np
import pytest
from sentence_transformers import CrossEncoder, SentenceTransformer

from likewise.encoder.location import LoadError
from likewise.searching.serve import ServeOptions
from likewise.searching.serve.service import Service

QUERY = "the quiet river"
PATHS = ("/rerank", "/v1/rerank", "/v2/rerank")


@pytest.fixture(scope="module")
def with_cross_encoder(running, saved_model, tiny_cross_encoder):
    """A service of the tiny model with a cross-encoder."""
    return running({"tiny": saved_model}, reranker=tiny_cross_encoder)[0]


def expected_max_sim(folder, query, texts):
    """MaxSim by sentence-transformers' own token outputs, one text at a time."""
    model = SentenceTransformer(str(folder))

    def tokens(text):
        found = model.encode(text, output_value="token_embeddings").cpu().numpy()
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    asked = tokens(query)
    return [np.mean([max(one @ other for other in tokens(text)) for one in asked]) for text in texts]


@pytest.mark.parametrize("path", PATHS)
def test_without_a_cross_encoder_the_tokens_of_a_model_are_compared(client, saved_model, sentences, path):
    texts = sentences[:12]
    wanted = expected_max_sim(saved_model, QUERY, texts)
    answer = client.post(path, json={"query": QUERY, "documents": texts, "model": "again"}).json()
    assert answer["model"] == "again"
    assert [one["index"] for one in answer["results"]] == np.argsort(-np.array(wanted), kind="stable").tolist()
    scores = {one["index"]: one["relevance_score"] for one in answer["results"]}
    assert [scores[i] for i in range(12)] == pytest.approx(wanted, abs=1e-4)
    tokenizer = SentenceTransformer(str(saved_model)).tokenizer
    assert answer["usage"]["total_tokens"] == sum(len(tokenizer(text)["input_ids"]) for text in [QUERY, *texts])


# The bodies of cohere 5.18 (`Client.rerank`, `ClientV2.rerank`), of Jina's API, and of Open WebUI's external reranker.
RECORDED = {
    "cohere v1": ("/v1/rerank", {"query": QUERY, "documents": ["the river", "a train"], "top_n": 1}),
    "cohere v1, objects": ("/v1/rerank", {"query": QUERY, "documents": [{"text": "the river"}, {"text": "a train"}]}),
    "cohere v2": ("/v2/rerank", {"model": "tiny", "query": QUERY, "documents": ["the river"], "max_tokens_per_doc": 9}),
    "jina": ("/v1/rerank", {"model": "tiny", "query": QUERY, "documents": ["a", "b"], "top_n": 5, "truncation": True}),
    "open webui": ("/rerank", {"model": "tiny", "query": QUERY, "documents": ["the river", "a train"], "top_n": 2}),
}


@pytest.mark.parametrize(("path", "body"), RECORDED.values(), ids=RECORDED)
def test_recorded_bodies_of_clients_get_what_these_read(client, path, body):
    answer = client.post(path, json=body)
    assert answer.status_code == 200
    found = answer.json()
    assert {"id", "model", "usage", "meta", "results"} <= found.keys()
    assert len(found["results"]) == min(body.get("top_n", 99), len(body["documents"]))
    for one in found["results"]:
        assert set(one) == {"index", "relevance_score"}
        assert 0 <= one["index"] < len(body["documents"])
    scores = [one["relevance_score"] for one in found["results"]]
    assert scores == sorted(scores, reverse=True)


def test_documents_come_back_if_they_are_asked_for(client):
    body = {"query": QUERY, "documents": ["a train", {"text": QUERY}], "return_documents": True}
    first, second = client.post("/rerank", json=body).json()["results"]
    assert (first["index"], first["document"]) == (1, {"text": QUERY})
    assert first["relevance_score"] == pytest.approx(1, abs=1e-5)
    assert second["document"] == {"text": "a train"}


def test_a_cross_encoder_scores_pairs(with_cross_encoder, tiny_cross_encoder, sentences):
    texts = sentences[:40]
    wanted = CrossEncoder(str(tiny_cross_encoder)).predict([(QUERY, text) for text in texts])  # a sigmoid by default
    for name in (None, str(tiny_cross_encoder), tiny_cross_encoder.name):
        body = {"query": QUERY, "documents": texts} | ({"model": name} if name else {})
        answer = httpx.post(f"{with_cross_encoder}/rerank", json=body, timeout=60).json()
        assert answer["model"] == tiny_cross_encoder.name
        scores = {one["index"]: one["relevance_score"] for one in answer["results"]}
        assert [scores[i] for i in range(40)] == pytest.approx(wanted.tolist(), abs=1e-5)
    tokens = httpx.post(f"{with_cross_encoder}/rerank", json=body | {"model": "tiny"}, timeout=60).json()
    assert tokens["model"] == "tiny"


@pytest.mark.parametrize(
    "change",
    [
        {"documents": []},
        {"documents": ["a", ""]},
        {"documents": ["a", 3]},
        {"documents": [{"title": "a"}]},
        {"documents": "a"},
        {"documents": ["a"] * 3000},
        {"documents": ["a" * 50_000]},
        {"query": ""},
        {"query": "a" * 50_000},
        {"query": None},
        {"top_n": 0},
        {"model": "rerank-v3.5"},
    ],
)
def test_bad_requests_are_refused_in_the_error_format(client, change):
    body = {"query": QUERY, "documents": ["the river"]} | change
    answer = client.post("/rerank", json=body)
    assert answer.status_code == (404 if "model" in change else 400)
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert len(answer.json()["error"]["message"]) < 400


def test_half_a_surrogate_pair_is_read_as_a_question_mark(client):
    for documents in (b'["\\ud83d"]', b'[{"text": "\\ud83d"}]'):
        body = b'{"query": "a", "return_documents": true, "documents": ' + documents + b"}"
        answer = client.post("/rerank", content=body, headers={"content-type": "application/json"})
        assert answer.json()["results"][0]["document"] == {"text": "?"}


def test_the_form_of_text_embeddings_inference_is_answered_in_its_own(client):
    texts = ["a train", QUERY]
    answer = client.post("/rerank", json={"query": QUERY, "texts": texts, "truncate": True, "return_text": True})
    first, second = answer.json()
    assert (first["index"], first["text"]) == (1, QUERY)
    assert first["score"] == pytest.approx(1, abs=1e-5)
    assert second["score"] < first["score"]
    assert set(client.post("/rerank", json={"query": QUERY, "texts": texts}).json()[0]) == {"index", "score"}
    for wrong in ({"texts": texts, "documents": texts}, {}, {"texts": ["a", ""]}):
        assert client.post("/rerank", json={"query": QUERY, **wrong}).status_code == 400


def test_raw_scores_are_the_outputs_of_the_cross_encoder(with_cross_encoder, tiny_cross_encoder, sentences):
    texts = sentences[:5]
    body = {"query": QUERY, "documents": texts, "raw_scores": True}
    answer = httpx.post(f"{with_cross_encoder}/rerank", json=body, timeout=60).json()
    found = np.array([row["relevance_score"] for row in sorted(answer["results"], key=lambda row: row["index"])])
    chances = CrossEncoder(str(tiny_cross_encoder)).predict([(QUERY, text) for text in texts])
    np.testing.assert_allclose(1 / (1 + np.exp(-found)), chances, atol=1e-5)


def test_a_key_is_wanted_and_other_hosts_are_refused(running, saved_model):
    locked = running({"tiny": saved_model}, keys=["secret"])[0]
    body = {"query": QUERY, "documents": ["the river"]}
    for path in PATHS:
        assert httpx.post(f"{locked}{path}", json=body).status_code == 401
        headers = {"Authorization": "Bearer secret", "Host": "evil.example"}
        assert httpx.post(f"{locked}{path}", json=body, headers=headers).status_code == 421
    assert httpx.post(f"{locked}/rerank", json=body, headers={"Authorization": "Bearer secret"}).status_code == 200


def test_only_so_many_wait(running, saved_model):
    address, service = running({"tiny": saved_model}, options=ServeOptions(searches=1))
    with service._free:
        assert httpx.post(f"{address}/rerank", json={"query": QUERY, "documents": ["a"]}).status_code == 429
    for _ in range(2):
        assert httpx.post(f"{address}/rerank", json={"query": QUERY, "documents": ["a"]}).status_code == 200


def test_what_is_no_cross_encoder_is_said_at_the_start(saved_model, tmp_path, says):
    with says(LoadError):
        Service({"tiny": str(saved_model)}, engine="torch", reranker=saved_model)
    with says(LoadError):
        Service({"tiny": str(saved_model)}, engine="torch", reranker=tmp_path / "none")


def test_a_model_answers_to_what_the_service_was_started_with(running, saved_model):
    address = running({"short": str(saved_model)})[0]
    for name in ("short", str(saved_model)):
        answer = httpx.post(f"{address}/v1/embeddings", json={"model": name, "input": "a"}).json()
        assert answer["model"] == "short"
        assert httpx.get(f"{address}/v1/models/{name.lstrip('/')}").status_code in (200, 404)
        answer = httpx.post(f"{address}/rerank", json={"model": name, "query": "a", "documents": ["a"]}).json()
        assert answer["model"] == "short"


def test_cohere_s_own_client(address):
    cohere = pytest.importorskip("cohere", reason="cohere is not installed: pip install cohere")
    for client in (cohere.Client("key", base_url=address), cohere.ClientV2("key", base_url=address)):
        found = client.rerank(model="tiny", query=QUERY, documents=["a train", QUERY], top_n=2)
        assert [one.index for one in found.results] == [1, 0]
        assert found.results[0].relevance_score == pytest.approx(1, abs=1e-5)


def test_what_changes_nothing_is_told(client):
    asked = {"query": "a", "documents": ["b"], "max_tokens_per_doc": 9}
    (warning,) = client.post("/v2/rerank", json=asked).json()["meta"]["warnings"]
    assert "max_tokens_per_doc" in warning
    assert "warnings" not in client.post("/v2/rerank", json={**asked, "max_tokens_per_doc": None}).json()["meta"]
    asked = {"query": "a", "documents": ["b", {"text": "b", "title": "c"}]}
    (warning,) = client.post("/v2/rerank", json=asked).json()["meta"]["warnings"]
    assert "not fields such as 'title" in warning
