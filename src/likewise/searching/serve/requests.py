"""The bodies of requests, and errors in OpenAI's format."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from likewise.corpus.clean_text import without_surrogates
from likewise.errors import LikewiseError
from likewise.searching.serve.serve_options import ServeOptions


class RequestError(LikewiseError):
    """Raised if a request cannot be answered.

    Attributes:
        status: Status of the response.
        param, code: as in OpenAI's error object.
        headers: Headers of the response, with _ for -.
    """

    def __init__(
        self, message: str, status: int = 400, *, param: str | None = None, code: str | None = None, **headers: str
    ) -> None:
        super().__init__(message)
        self.status, self.param, self.code = status, param, code
        self.headers = {name.replace("_", "-"): text for name, text in headers.items()}

    def response(self) -> JSONResponse:
        """Return the response, with the error object of OpenAI's API."""
        kind = "server" if self.status >= 500 else "rate_limit" if self.status == 429 else "invalid_request"
        error = {"message": str(self), "type": f"{kind}_error", "param": self.param, "code": self.code}
        return JSONResponse({"error": error}, self.status, self.headers)


# Half of an emoji, which JavaScript's `slice` leaves, is no reason to refuse a request.
Text = Annotated[str, AfterValidator(without_surrogates)]
ListedTexts = Annotated[list[Text], Field(fail_fast=True)]
ListedNumbers = Annotated[list[int], Field(fail_fast=True)]
ListsOfNumbers = Annotated[list[ListedNumbers], Field(fail_fast=True)]


class Body(BaseModel):
    """The body of a request. A null field is ignored, and an unknown field is an error.

    Clients such as LiteLLM and Dify send null for unset fields. An unknown field that is silently ignored, such as
    `filter` instead of `where`, would change the meaning of a request.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _set_alone(cls, body: object) -> object:
        return {name: value for name, value in body.items() if value is not None} if isinstance(body, dict) else body


class EmbeddingsBody(Body):
    """A request for vectors, as OpenAI's API has it."""

    input: Text | ListedTexts | ListedNumbers | ListsOfNumbers = Field(description="Text, or list of texts.")
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Number of dimensions to which vectors are truncated; they are normalized again."
    )
    user: str | None = None


class SimilarityBody(Body):
    """A request for the cosines of texts with others, or with each other."""

    texts: ListedTexts = Field(min_length=1)
    others: ListedTexts | None = Field(None, min_length=1)
    model: str | None = Field(None, description="Name of the model; by default the first one.")


class SearchBody(Body):
    """A request for passages."""

    query: Text
    k: int = Field(10, ge=1, le=1000, description="Number of hits.")
    offset: int = Field(0, ge=0, le=10_000, description="Number of hits to skip (pagination).")
    mode: Literal["hybrid", "vectors", "words"] = "hybrid"
    where: Text | None = Field(None, max_length=2000, description="Condition as in SQL.")
    index: str | None = Field(None, description="Name of the index; by default the first one.")
    pipeline: dict[str, float] | None = Field(
        None, description="Weights of the pipeline's parts, which override the index's weights."
    )


class TextObject(BaseModel):
    """A text in an object, as in the APIs of Cohere and Jina; the error names its other fields."""

    model_config = ConfigDict(extra="allow")

    text: Text


class RerankBody(Body):
    """A request for the order of texts by how well they answer a query.

    `documents` are as in Cohere, Jina and infinity, and `texts` as in text-embeddings-inference, whose response is
    a list.
    """

    query: Text
    documents: Annotated[list[Text | TextObject], Field(fail_fast=True)] | None = None
    texts: ListedTexts | None = Field(None, description="Texts instead of documents, as in text-embeddings-inference.")
    model: str | None = Field(
        None, description="Name of the model; by default the reranker, or otherwise the first model."
    )
    top_n: Annotated[int, Field(ge=1)] | None = Field(None, description="Number of results; by default all.")
    return_documents: bool = False
    return_text: bool = Field(False, description="Whether to return the texts, as return_documents does for documents.")
    raw_scores: bool = Field(False, description="Whether to return the outputs of a cross-encoder without a sigmoid.")
    # Of Cohere's and Jina's clients.
    max_tokens_per_doc: int | None = Field(None, description="Not supported: a model reads as many tokens as it can.")
    max_chunks_per_doc: int | None = Field(None, description="Not supported, like max_tokens_per_doc.")
    truncation: bool | None = Field(None, description="Not supported, like max_tokens_per_doc.")
    truncate: bool | None = Field(None, description="Not supported, like max_tokens_per_doc.")
    truncation_direction: str | None = Field(None, description="Not supported, like max_tokens_per_doc.")


UNUSED = frozenset(
    ("max_tokens_per_doc", "max_chunks_per_doc", "truncation", "truncate", "truncation_direction")
)  # of RerankBody


def checked_texts(value: Any, param: str, limits: ServeOptions) -> list[str]:
    """Return the texts of a request as a list.

    Raises:
        RequestError: If there is none, one is empty or too long, there are too many, or they are token ids.
    """
    texts, most, longest = [value] if isinstance(value, str) else value, limits.max_texts, limits.max_characters
    fault = ""
    if not texts:
        fault = "the list of texts is empty: give 1 or more"
    elif not isinstance(texts[0], str):
        fault = "token ids are not accepted, because each model has its own tokens. Send texts; with LangChain, set "
        fault += "check_embedding_ctx_length=False"
    elif len(texts) > most:
        fault = f"{len(texts):,} texts are more than {most:,}: send several requests"
    elif "" in texts:
        fault = f"text {texts.index('')} is empty: omit it"
    elif len(text := max(texts, key=len)) > longest:
        fault = f"text {texts.index(text)} has {len(text):,} characters, more than {longest:,}: split it"
    if fault:
        raise RequestError(fault, param=param)
    return texts
