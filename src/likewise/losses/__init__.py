"""Losses: the tensor math in `functional`, one thin sentence-transformers loss class in each other file."""
