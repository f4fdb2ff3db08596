"""Examples, places of tokens and sentences, padding."""

from likewise.context.chunks import Chunk
from likewise.context.subwords import Cutter, Example, examples_of, pad


def test_examples_have_a_neighbour_on_both_sides():
    chunks = [Chunk(0, tuple("abcde")), Chunk(1, ("x", "y")), Chunk(2, ("p", "q", "r"))]
    assert list(examples_of(chunks, left=2, right=1)) == [
        Example(("a",), "b", ("c",)),
        Example(("a", "b"), "c", ("d",)),
        Example(("b", "c"), "d", ("e",)),
        Example(("p",), "q", ("r",), document=2),
    ]


def test_places_of_tokens_and_of_sentences(vocabulary):
    a, b = "the cat", "a goose."
    ids_a, ids_b = vocabulary.encode_batch([a, b])
    cutter = Cutter(vocabulary, 20, 3)
    (example,) = cutter.examples([Example((a, b), a, (b, a))])
    n, m = len(ids_a) + 1, len(ids_b) + 1
    assert example["left"].ids == (*ids_a, vocabulary.sep, *ids_b, vocabulary.eos)
    assert example["left"].tokens == (*range(n), *range(m))
    assert example["left"].sentences == (-2,) * n + (-1,) * m
    assert example["centre"].sentences == (0,) * n
    assert example["right"].sentences == (1,) * m + (2,) * n
    assert len(example["left"]) == n + m


def test_long_sentences_and_far_ones_are_cut(vocabulary):
    cutter = Cutter(vocabulary, 3, 2)
    (piece,) = cutter.sides([("far away", "near by", "the nearest one")], "left")
    assert (piece.sentences[0], piece.sentences[-1], len(piece)) == (-2, -1, 8)
    (piece,) = cutter.sides([("the nearest one", "near by", "far away")], "right")
    assert (piece.sentences[0], piece.sentences[-1]) == (1, 2)
    assert max(piece.tokens) == 3


def test_an_empty_side_is_the_end_token(vocabulary):
    cutter = Cutter(vocabulary, 3, 2)
    (piece,) = cutter.sides([()], "left")
    assert piece.ids == (vocabulary.eos,)


def test_padding(vocabulary):
    cutter = Cutter(vocabulary, 20, 2)
    pieces = cutter.sentences(["the cat", "the cat lives at the harbour."])
    batch = pad(pieces, vocabulary.pad)
    assert batch.mask.sum(1).tolist() == [len(piece) for piece in pieces]
    assert batch.ids[0, len(pieces[0]) :].unique().tolist() == [vocabulary.pad]
    assert batch.ids[1].tolist() == list(pieces[1].ids)
