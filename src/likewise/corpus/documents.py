"""Reading of documents: sentences with their neighbours and the headings above them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.lines_and_rows import READERS, Source, unrepeated
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sentence_splitter import sentences_of
from likewise.corpus.sources import Spec, find_sources
from likewise.corpus.wiki import is_sentence_like, read_articles
from likewise.errors import counted


@dataclass(frozen=True)
class Section:
    """A run of sentences under one heading.

    Attributes:
        heading: "" for the opening of a document, and for plain text.
        sentences: in order.
    """

    heading: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """An article, or a file of plain text.

    Attributes:
        id: of the article; the path of a plain text file.
        title: of the article; the name of a plain text file without its endings.
        sections: those that hold a sentence, in order.
    """

    id: str
    title: str
    sections: tuple[Section, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of all sections, in order."""
        return tuple(sentence for section in self.sections for sentence in section.sentences)


def read_documents(spec: Spec, options: CorpusOptions | None = None) -> Iterator[Document]:
    """Yield the documents of a corpus in the order of its files, with one document in memory at a time.

    An articles file and a MediaWiki dump give an article a document; a plain text file is one document with
    one section. Neighbours matter here, so no sentence is dropped for its length or because it came before;
    what is not a sentence (captions, list entries, tables) is left out, and documents with no sentence are too.

    With `options.deduplicate` a document with the same sentences as an earlier one is left out: a context
    that is met twice would be found as its own best match. To know them takes about 100 bytes a document.

    Raises:
        CorpusError: a file cannot be read as asked, has rows with a text field (they have no order), or no
            document is left at the end.
    """
    options = options or CorpusOptions()
    sources = find_sources(spec, options)
    for source in sources:
        if source.kind in READERS:
            raise CorpusError(
                f"{source.path}:1: rows with a field of text hold sentences, and documents are needed: give an "
                "articles file (id, title, sections), a MediaWiki dump or plain text"
            )
    documents: Iterator[Document] = chain.from_iterable(map(_documents, sources))
    if options.deduplicate:
        documents = unrepeated(documents, lambda document: "\n".join(document.sentences))
    document = None
    for document in documents:
        yield document
    if document is None:
        raise CorpusError(
            f"{sources[0].path}:1: no document of {counted(len(sources), 'file')} has a sentence: give more text"
        )


def _documents(source: Source) -> Iterator[Document]:
    if source.kind in ("text", "document"):
        paragraphs = read_paragraphs(source)
        if sentences := tuple(text for paragraph in paragraphs for _, text in paragraph.sentences if text):
            yield Document(str(source.path), source.path.name.split(".")[0], (Section("", sentences),))
        return
    for _, id_, title, parts in read_articles(source):
        split = ((heading, [sentence for text in texts for sentence in sentences_of(text)]) for heading, texts in parts)
        sections = (Section(heading, tuple(filter(is_sentence_like, sentences))) for heading, sentences in split)
        if kept := tuple(section for section in sections if section.sentences):
            yield Document(id_, title, kept)
