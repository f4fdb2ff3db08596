"""Queries as they are typed, and the hits that answer them."""
