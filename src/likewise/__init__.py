"""Sentence encoders from plain text, no labels needed."""
