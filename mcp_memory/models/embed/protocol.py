"""What an embedding model is to the rest of the package, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embedder", "unit_rows"]


class Embedder(Protocol):
    """Turns texts into vectors. Calls block, may come from any thread, and raise EmbeddingFailed.

    Making one loads and asks nothing, and neither do `identity` and `local`.
    """

    @property
    def identity(self) -> str:
        """Vectors may be compared when, and only when, their identities are the same."""
        ...

    @property
    def local(self) -> bool:
        """Cheap enough to embed a turn inside the call that stores it: no network, no more than milliseconds."""
        ...

    @property
    def dimensions(self) -> int:
        """How long a vector is. A remote model is asked once, unless it has answered something already."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text, shape (texts, dimensions), each of length one.

        A text in which the model knows nothing (empty, blank, or no known token) has a row of zeros: it is
        as far from everything as can be, and never fails the texts beside it.
        """
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector, shape (dimensions,), to compare with rows of `embed`."""
        ...


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows scaled to length one; a row of zeros stays one."""
    import numpy as np

    # Divided by the largest component first: squares of very large or very small floats are inf or 0.
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    scaled = vectors / np.where(largest == 0, 1, largest)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths == 0, 1, lengths)).astype(np.float32)
