"""Views of a sentence: each a pure, seeded function from text (or word vectors) to another version of it."""
