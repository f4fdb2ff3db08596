"""Documents: sentences with their neighbors and the headings above them; and triplets from their sections.

Triplets (Ein Dor et al. 2018) are a sentence, one of the same section and one of another: a sentence is nearer in theme
to its own section than to others of the article. Their set has 1.8 million triplets for training and 222 thousand for
testing; the same CSV format is read here, and written by `likewise sections`.
"""

import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from likewise.corpus.articles import is_sentence_like, read_articles
from likewise.corpus.clean_text import unrepeated
from likewise.corpus.corpus_options import CorpusError, CorpusOptions, Spec
from likewise.corpus.formats import Source
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sentence_splitter import sentences_of
from likewise.corpus.sources import find_sources
from likewise.corpus.tables import read_table
from likewise.corpus.words import word_count
from likewise.errors import LikewiseError, counted

COLUMNS = ("Sentence1", "Sentence2", "Sentence3")
_ALSO_WRITTEN = ("Article", "Section", "Other section")
# No caption or fragment, and no list that was run together. Ours: the paper's files are cleaned already.
MIN_WORDS, MAX_WORDS = 5, 50
SEED = 42
# Of an article at most, each of another anchor: 10,000 of them leave others of ten thousand articles to train on.
PER_ARTICLE = 4


@dataclass(frozen=True)
class Section:
    """Consecutive sentences under one heading.

    Attributes:
        heading: Heading of the section; "" for the beginning of a document, and for plain text.
        sentences: Sentences in order.
    """

    heading: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """An article, or a file of plain text.

    Attributes:
        id: Id of the article, or the path of a plain text file.
        title: Title of the article, or the name of a plain text file without its suffixes.
        sections: Sections with a sentence, in order.
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

    In an articles file and a MediaWiki dump, each article is a document; a plain text file is one document with one
    section. Because the order matters, no sentence is dropped for its length or as a duplicate; other text (captions,
    list entries, tables) is skipped, as are documents without sentences.

    With `options.deduplicate`, a document with the same sentences as an earlier document is skipped, because a repeated
    context would be retrieved as its own best match. This takes about 100 bytes of memory per document.

    Raises:
        CorpusError: If a file cannot be read with these options or has rows with a text field, which have no order, or
            if no document remains.
    """
    options = options or CorpusOptions()
    sources = find_sources(spec, options)
    for source in sources:
        if source.holds == "rows":
            raise CorpusError(
                f"{source.path}:1: rows with a text field contain sentences, but documents are needed: give an "
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
            f"{sources[0].path}:1: no document in {counted(len(sources), 'file')} contains a sentence: give more text"
        )


def _documents(source: Source) -> Iterator[Document]:
    if source.holds in ("text", "markdown", "pages"):
        paragraphs = read_paragraphs(source)
        if sentences := tuple(text for paragraph in paragraphs for _, text in paragraph.sentences if text):
            yield Document(str(source.path), source.path.name.split(".")[0], (Section("", sentences),))
        return
    for _, id_, title, parts in read_articles(source):
        split = ((heading, [sentence for text in texts for sentence in sentences_of(text)]) for heading, texts in parts)
        sections = (Section(heading, tuple(filter(is_sentence_like, sentences))) for heading, sentences in split)
        if non_empty := tuple(section for section in sections if section.sentences):
            yield Document(id_, title, non_empty)


@dataclass(frozen=True)
class Triplet:
    """Three sentences of one article.

    Attributes:
        anchor, positive: Two sentences of one section.
        negative: Sentence of another section.
        article, section, other: Article's title and the two headings; empty where a file has none.
    """

    anchor: str
    positive: str
    negative: str
    article: str = ""
    section: str = ""
    other: str = ""


def section_triplets(documents: Iterable[Document], count: int, seed: int = SEED, skip: int = 0) -> Iterator[Triplet]:
    """Yield triplets drawn from articles, in the order of the articles.

    The beginning of an article is not used, because it summarizes all sections. The triplets of an article depend only
    on the seed and its id, so a longer list begins with the shorter list.

    Args:
        count: Maximum number of triplets; fewer if there are too few articles.
        skip: Number of triplets whose articles are reserved for evaluation, so that training triplets share no article
            with them.
    """
    if count < 1 or skip < 0:
        raise LikewiseError(f"count must be 1 or more and skip 0 or more, not {count} and {skip}")
    passed = yielded = 0
    for document in documents:
        drawn = _draw(document, seed)
        if passed < skip:
            passed += len(drawn)
            continue
        for triplet in drawn[: count - yielded]:
            yielded += 1
            yield triplet
        if yielded == count:
            return


def _draw(document: Document, seed: int) -> list[Triplet]:
    sections = []
    for section in document.sections:
        sentences = [s for s in dict.fromkeys(section.sentences) if MIN_WORDS <= word_count(s) <= MAX_WORDS]
        if section.heading and sentences:
            sections.append((section.heading, sentences))
    rng = random.Random(f"{seed} {document.id}")  # a text seeds alike in every process
    anchors = [(i, s) for i, (_, sentences) in enumerate(sections) if len(sentences) > 1 for s in sentences]
    if len(sections) < 2:
        return []
    triplets = []
    for i, anchor in rng.sample(anchors, min(PER_ARTICLE, len(anchors))):
        heading, own = sections[i]
        positive = rng.choice([s for s in own if s != anchor])
        other, sentences = sections[rng.choice([j for j in range(len(sections)) if j != i])]
        # A sentence may stand in both sections, word for word.
        strange = [s for s in sentences if s not in (anchor, positive)]
        if strange:
            triplets.append(Triplet(anchor, positive, rng.choice(strange), document.title, heading, other))
    return triplets


def read_triplets(path: str | os.PathLike[str]) -> list[Triplet]:
    """Read a CSV file whose header names Sentence1 (the anchor), Sentence2 (its section) and Sentence3 (another)."""
    triplets = []
    for place, cells in read_table(Path(path), {name: (name,) for name in COLUMNS}, _ALSO_WRITTEN):
        if not all(cells[: len(COLUMNS)]):
            raise CorpusError(f"{place}: a sentence is empty: complete or remove the row")
        triplets.append(Triplet(*cells))
    if not triplets:
        raise CorpusError(f"{path}:2: the file contains no triplet: write one per line below the header")
    return triplets
