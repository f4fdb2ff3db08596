"""Text in: sentences and documents from files, streamed, cleaned, deduplicated, and mapped from disk."""

from likewise.corpus.bundled import news_ratings, resolve_model, wiki_sample_path
from likewise.corpus.documents import Document, Section, read_documents
from likewise.corpus.errors import CorpusError
from likewise.corpus.options import CorpusOptions
from likewise.corpus.prepared import PreparedCorpus, default_cache, prepare
from likewise.corpus.report import CorpusReport
from likewise.corpus.sentences import read_sentences

__all__ = [
    "CorpusError",
    "CorpusOptions",
    "CorpusReport",
    "Document",
    "PreparedCorpus",
    "Section",
    "default_cache",
    "news_ratings",
    "prepare",
    "read_documents",
    "read_sentences",
    "resolve_model",
    "wiki_sample_path",
]
