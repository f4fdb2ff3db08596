"""Vectors as a column of an Arrow table, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


def vector_column(vectors: np.ndarray) -> pa.Array:
    """Return vectors (S, D) as a column of an Arrow table."""
    import pyarrow as pa

    flat = np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), vectors.shape[1])


def matrix_of(column: pa.ChunkedArray) -> np.ndarray:
    """Return a column of vectors as (S, D)."""
    flat: np.ndarray = column.combine_chunks().flatten().to_numpy()
    return flat.reshape(-1, column.type.list_size)
