"""Augmentations of a sentence: pure, seeded functions from text (or word vectors) to another version of it."""
