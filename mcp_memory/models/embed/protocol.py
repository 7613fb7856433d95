"""Interface of an embedding model, and the prefixes that some models expect before a question or a passage.

Without its prefixes, such a model works but finds less. The prefixes come from the settings; else from the model's
folder (`config_sentence_transformers.json`); else from the table below, taken from the cards of widely used models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mcp_memory.core.config import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into vectors. Calls block, may come from any thread, and raise EmbeddingFailed.

    Creating an embedder and reading `identity` or `local` neither load a model nor send a request.
    """

    @property
    def identity(self) -> str:
        """Identifies the vectors' model. Vectors may be compared if, and only if, their identities are the same."""
        ...

    @property
    def local(self) -> bool:
        """Whether a turn may be embedded in the call that stores it: no network, no more than milliseconds."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of a vector. To learn it, a remote model that has not answered yet gets a request."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row per text, shape (texts, dimensions), each of length one.

        A text that the model does not know (empty, blank, or without a known token) has a row of zeros: it is as far as
        possible from everything, and never fails the other texts.
        """
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector, shape (dimensions,), to compare with rows of `embed`."""
        ...


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows scaled to length one. A row of zeros is unchanged."""
    import numpy as np

    # Divided by the largest component first: squares of very large or very small floats are inf or 0.
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    scaled = vectors / np.where(largest == 0, 1, largest)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths == 0, 1, lengths)).astype(np.float32)


_SEARCHING = "Represent this sentence for searching relevant passages: "

# By a pattern in the last part of the name, the first that matches; instruct models want a task, not a prefix.
_KNOWN = (
    (r"e5-.*instruct", "", ""),
    (r"(^|-)e5-", "query: ", "passage: "),
    (r"nomic-embed-text", "search_query: ", "search_document: "),
    (r"bge-(small|base|large)-en", _SEARCHING, ""),
    (r"bge-(small|base|large)-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    (r"mxbai-embed-large", _SEARCHING, ""),
    (r"snowflake-arctic-embed.*(v2|2\.0)|snowflake-arctic-embed2", "query: ", ""),
    (r"snowflake-arctic-embed", _SEARCHING, ""),
    (r"embeddinggemma", "task: search result | query: ", "title: none | text: "),
)
_QUERY_KEYS, _PASSAGE_KEYS = ("query", "search_query"), ("document", "passage", "corpus", "search_document")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """Texts put before a question and before a passage."""

    query: str = ""
    passage: str = ""

    @property
    def mark(self) -> str:
        """The suffix of the identity of vectors with these prefixes: `+` and a short hash; empty without prefixes."""
        if not self.query and not self.passage:
            return ""
        return "+" + sha256(f"{self.query}\0{self.passage}".encode("utf-8", "surrogatepass")).hexdigest()[:8]


NO_PREFIXES = Prefixes()


def prefixes_of(model: str, settings: Settings) -> Prefixes:
    """Return the prefixes for a model's name or folder; the two settings override the defaults."""
    defaults = (_prefixes_in_config(Path(model)) if is_folder(model) else None) or _prefixes_in_table(model)
    query, passage = settings.embedder_query_prefix, settings.embedder_passage_prefix
    return Prefixes(
        query=defaults.query if query is None else query,
        passage=defaults.passage if passage is None else passage,
    )


def is_folder(model: str) -> bool:
    """Return whether a model's name is a path; no name on the hub looks like a path."""
    return model.startswith(("/", "./", "../", "~")) or model[1:3] in (":\\", ":/")


def _prefixes_in_config(folder: Path) -> Prefixes | None:
    try:
        config: Any = json.loads(
            (folder.expanduser() / "config_sentence_transformers.json").read_text(encoding="utf-8")
        )
        prompts: dict[str, Any] = config["prompts"]
        query = next((str(prompts[key]) for key in _QUERY_KEYS if prompts.get(key)), "")
        passage = next((str(prompts[key]) for key in _PASSAGE_KEYS if prompts.get(key)), "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Prefixes(query=query, passage=passage) if query or passage else None


def _prefixes_in_table(model: str) -> Prefixes:
    name = model.rpartition("/")[2].casefold()
    for pattern, query, passage in _KNOWN:
        if re.search(pattern, name):
            return Prefixes(query=query, passage=passage)
    return NO_PREFIXES
