"""Queries and their hits."""
