"""The HTTP application: OpenAI's embeddings, similarity, search, health, metrics and the page."""

# No `from __future__ import annotations`: FastAPI reads the annotations of the functions below.
import asyncio
import base64
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from traceback import clear_frames
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import orjson
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from likewise.errors import LikewiseError
from likewise.inference.text_encoder import cut
from likewise.runs.whole_files import Record
from likewise.searching.serve.guard import Guard
from likewise.searching.serve.requests import (
    UNUSED,
    EmbeddingsBody,
    RequestError,
    RerankBody,
    SearchBody,
    SimilarityBody,
    checked_texts,
)
from likewise.searching.serve.service import Service
from likewise.version import __version__

_FOLDER = Path(__file__).parent / "page"
# By the path alone: `request.url` also holds what the client wrote as the host.
_PAGES = {"/": _FOLDER / "page.html", "/page.css": _FOLDER / "page.css", "/page.js": _FOLDER / "page.js"}
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_ALSO_CALLED = {
    **dict.fromkeys(("top_k", "topk", "limit", "n", "size", "num_results"), "k"),
    **dict.fromkeys(("filter", "filters", "condition"), "where"),
    **dict.fromkeys(("skip", "from"), "offset"),
    **dict.fromkeys(("q", "text"), "query"),
    "texts": "input",
}
"""Names of fields in other services to names in this service."""
_SLICE = 1 << 16
"""Values of an answer that are written at once: some milliseconds."""
_Answer = TypeVar("_Answer")


def create_app(service: Service, keys: Sequence[str] = (), cors: Sequence[str] = (), hosts: Sequence[str] = ()) -> Any:
    """Return the ASGI application of a service.

    Args:
        service: Models and indexes.
        keys: Keys of which a request must have one; without keys, none is required.
        cors: Origins whose pages may call it, from `checked_origins`.
        hosts: Names by which requests may address it, in addition to localhost and IP addresses; "*" for every name.
    """
    # Swagger UI from the package's own files: FastAPI would have the browser load it from another host.
    app = FastAPIOffline(title="likewise", version=__version__, redoc_url=None)
    app.router.redirect_slashes = False
    _answer_errors(app)
    for add_routes in (_add_openai, _add_own, _add_rerank, _add_operation):
        add_routes(app, service)
    for path in _PAGES:
        app.add_route(path, _page, include_in_schema=False)
    paths = [str(getattr(route, "path", "")) for route in app.routes]
    guarded = Guard(app, service.options, keys, service.metrics, paths, hosts)
    # Around the guard, so that a page that is allowed reads its refusals, too.
    return CORSMiddleware(guarded, list(cors), allow_methods=["*"], allow_headers=["*"]) if cors else guarded


def _answer_errors(app: FastAPI) -> None:
    async def answer(request: Request, error: Any) -> Response:
        # FastAPI leaves the error in a variable of what raised it, which would keep the body until a collection.
        clear_frames(error.__traceback__)
        if isinstance(error, RequestError):
            return error.response()
        if isinstance(error, RequestValidationError):
            # Of a union, the fault of an item tells more than that the whole is of another kind.
            first = max(error.errors(), key=lambda fault: (fault["type"] == "extra_forbidden", _in_a_list(fault)))
            if first["type"] == "extra_forbidden":
                return _unknown(request, str(first["loc"][-1])).response()
            if first["type"] == "json_invalid":
                return RequestError(f"the body is not valid JSON at character {first['loc'][-1]}").response()
            kinds = ("list[", "str", "function-after[")  # of a union, instead of a fault
            place = ".".join(str(part) for part in first["loc"][1:] if not str(part).startswith(kinds))
            return RequestError(f"{place or 'body'}: {first['msg']}", param=place or None).response()
        if isinstance(error, LikewiseError):
            return RequestError(str(error)).response()
        if isinstance(error.__cause__, UnicodeDecodeError):
            return RequestError("the body is not in UTF-8").response()
        if hasattr(error, "status_code"):  # of the framework: no such path, another method, a body it cannot read
            allow = {name: text for name, text in (error.headers or {}).items() if name.lower() == "allow"}
            message = f"{error.detail}: {request.scope['path'][:100]}"
            if error.status_code == 404:
                there = [
                    str(getattr(route, "path", ""))
                    for route in app.routes
                    if getattr(route, "include_in_schema", False)
                ]
                message += f"; choose one of {', '.join(dict.fromkeys(there))}"
            return RequestError(message, error.status_code, **allow).response()
        return RequestError("internal error; see the log of the service", 500).response()

    for kind in (LikewiseError, RequestValidationError, HTTPException, 400, 404, 405, 413, Exception):
        app.add_exception_handler(kind, answer)


def _in_a_list(fault: dict[str, Any]) -> bool:
    return any(isinstance(part, int) for part in fault["loc"])


def _unknown(request: Request, name: str) -> RequestError:
    """Return the error of a field that a request does not have, which names the existing fields."""
    body = request.scope["route"].body_field.field_info.annotation
    there = f"there is no field {name[:100]!r} in {request.scope['path']}"
    meant = _ALSO_CALLED.get(name)
    cure = f"say {meant}" if meant in body.model_fields else f"it has {', '.join(body.model_fields)}"
    return RequestError(f"{there}: {cure}", param=name[:100] if name.isidentifier() else None)


def _add_openai(app: FastAPI, service: Service) -> None:
    limits = service.options

    @app.post("/v1/embeddings", tags=["OpenAI"], summary="Vectors of texts")
    async def embeddings(body: EmbeddingsBody, request: Request) -> Response:
        name = service.model_name(body.model)
        texts, most = checked_texts(body.input, "input", limits), service.models[name].facts.dimension
        size = body.dimensions or most
        if size > most:
            raise RequestError(f"dimensions: {size} is more than the {most} of {name}", param="dimensions")
        vectors, tokens = await _unless_gone(request, service.vectors(name, texts), limits.timeout)
        if size < most:
            vectors = cut(vectors, size)
        encoded: Any = vectors
        if body.encoding_format == "base64":
            encoded = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in vectors]
        listed_rows = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(encoded)]
        data = await _listed(listed_rows, size)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return _json({"object": "list", "data": data, "model": name, "usage": usage})

    begun = int(time.time())

    def listed(name: str) -> Record:
        return {"id": name, "object": "model", "created": begun, "owned_by": "likewise"}

    @app.get("/v1/models", tags=["OpenAI"], summary="The models")
    async def models() -> Response:
        return _json({"object": "list", "data": [listed(name) for name in service.models]})

    @app.get("/v1/models/{name:path}", tags=["OpenAI"], summary="A model")
    async def model(name: str) -> Response:
        return _json(listed(service.model_name(name)))


def _add_own(app: FastAPI, service: Service) -> None:
    limits = service.options

    @app.post("/similarity", tags=["likewise"], summary="Cosines of texts")
    async def similarity(body: SimilarityBody, request: Request) -> Response:
        name = service.model_name(body.model)
        texts = checked_texts(body.texts, "texts", limits)
        others = checked_texts(body.others, "others", limits) if body.others else []
        if len(texts) * (len(others) or len(texts)) > 1 << 20:
            raise RequestError("the request has more than 1,048,576 pairs: split it", param="texts")
        vectors, _ = await _unless_gone(request, service.vectors(name, [*texts, *others]), limits.timeout)
        cosines = np.clip(vectors[: len(texts)] @ (vectors[len(texts) :] if others else vectors).T, -1, 1)
        return _json({"model": name, "similarity": await _listed(cosines, cosines.shape[1])})

    @app.post("/search", tags=["likewise"], summary="Passages of an index")
    async def search(body: SearchBody, request: Request) -> Response:
        if len(body.query) > limits.max_characters:
            raise RequestError(f"the query has more than {limits.max_characters:,} characters", param="query")
        name, hits = await _unless_gone(request, service.search(body), limits.timeout)
        return _json({"index": name, **hits.to_dict()})

    @app.get("/info", tags=["likewise"], summary="Models and indexes")
    async def info() -> Any:
        return await run_in_threadpool(service.about)


def _add_rerank(app: FastAPI, service: Service) -> None:
    limits = service.options

    @app.post("/v2/rerank", include_in_schema=False)
    @app.post("/v1/rerank", tags=["Cohere and Jina"], summary="Texts by relevance to a query")
    @app.post("/rerank", include_in_schema=False)
    async def rerank(body: RerankBody, request: Request) -> Response:
        (query,) = checked_texts([body.query], "query", limits)
        documents = body.documents if body.texts is None else body.texts
        if documents is None or (body.documents is not None and body.texts is not None):
            raise RequestError("give documents, or texts as in text-embeddings-inference", param="documents")
        texts = [document if isinstance(document, str) else document.text for document in documents]
        checked_texts(texts, "documents" if body.texts is None else "texts", limits)
        scoring = service.rerank(body.model, query, texts, body.raw_scores)
        name, scores, tokens = await _unless_gone(request, scoring, limits.timeout)
        best = np.argsort(-scores, kind="stable")[: body.top_n]
        if body.texts is not None:
            listed: list[Record] = [{"index": int(i), "score": float(scores[i])} for i in best]
            return _json([one | ({"text": texts[one["index"]]} if body.return_text else {}) for one in listed])
        results: list[Record] = [{"index": int(i), "relevance_score": float(scores[i])} for i in best]
        if body.return_documents:
            for result in results:
                result["document"] = {"text": texts[result["index"]]}
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        about: Record = {"id": str(uuid4()), "object": "list", "model": name, "usage": usage}
        # What Cohere's client wants to see.
        about["meta"] = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
        unused = sorted(body.model_fields_set & UNUSED)
        warnings = [f"{field} is not supported: a model reads as many tokens as it can" for field in unused]
        if other := next((name for item in documents for name in getattr(item, "model_extra", None) or ()), None):
            warnings.append(f"only the text of a document is read, not fields such as {other[:100]!r}")
        if warnings:
            about["meta"]["warnings"] = warnings
        return _json({**about, "results": results})


def _add_operation(app: FastAPI, service: Service) -> None:
    @app.get("/health", tags=["running"], summary="Liveness of the process")
    async def health() -> Response:
        return _json({"status": "ok"})

    @app.get("/ready", tags=["running"], summary="Readiness for requests")
    async def ready() -> Response:
        if not service.ready:
            raise RequestError("too many texts are waiting", 503)
        return _json({"status": "ready"})

    @app.get("/metrics", tags=["running"], summary="Metrics for Prometheus")
    async def metrics() -> Response:
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)


async def _page(request: Request) -> Response:
    return FileResponse(_PAGES[request.scope["path"]], headers=_PAGE_HEADERS)


async def _unless_gone(request: Request, work: Awaitable[_Answer], seconds: float) -> _Answer:
    """Await work, and drop it when the client leaves or the time is up.

    Raises:
        RequestError: If the client has left, or the time is up.
    """

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    doing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(left())
    try:
        done, _ = await asyncio.wait({doing, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if doing in done:
            return await doing
        if leaving in done:
            raise RequestError("the client has left", 499)
        raise RequestError(f"no response within {seconds:g} s: send fewer texts", 504)
    finally:
        doing.cancel()
        leaving.cancel()


async def _listed(items: Sequence[Record] | np.ndarray, values: int) -> orjson.Fragment:
    """Return items of so many values each as a JSON list, in slices between which other requests have their turn."""
    pieces, step = [], max(1, _SLICE // values)
    for start in range(0, len(items), step):
        pieces.append(orjson.dumps(items[start : start + step], option=orjson.OPT_SERIALIZE_NUMPY)[1:-1])
        await asyncio.sleep(0)
    return orjson.Fragment(b"[%b]" % b",".join(pieces))


def _json(content: Record | list[Record]) -> Response:
    return Response(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY), media_type="application/json")
