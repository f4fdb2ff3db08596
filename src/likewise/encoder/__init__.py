"""Modules for sentence-transformers, and the construction of encoders from them."""
