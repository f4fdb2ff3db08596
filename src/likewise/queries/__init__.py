"""Queries that a language model writes for passages: a server or a local model writes, a round trip keeps the good."""
