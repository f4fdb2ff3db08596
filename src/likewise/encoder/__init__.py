"""Modules of sentence-transformers that are trained or saved with a model, and how an encoder is put together."""
