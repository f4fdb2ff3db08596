"""The index on disk: rows, passages, vectors, and how they are written."""
