"""Any embedding model that litellm reaches: a provider's, or a server of one's own that speaks its protocol.

An answer is checked before it is used: as many vectors as texts, all as long as each other, every number
finite. What goes wrong is an EmbeddingFailed that names the model, the trouble and the next step; the key is
in no text. A failure that may pass (429, 5xx, no connection, no answer in time) is tried again, briefly for a
query, since somebody waits, and a little longer for rows.

How long a vector is, only the model knows. It is learned from the first answer, and `dimensions` asks for one
where there was none yet. The identity is the model's name, the address it was asked at and the prefixes it
got; a model that changes its dimension behind that is noticed and refused for as long as this object lives.

Only the first 6,000 characters of a text are sent: the usual limit of these models is 8,192 tokens, and a
request over it fails every text beside the long one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NoReturn

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.models.embed.prefixes import NO_PREFIXES, Prefixes
from mcp_memory.models.embed.protocol import unit_rows
from mcp_memory.models.llm import import_litellm, passes, trouble

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["RemoteEmbedder"]

CHARACTERS_SENT = 6000
TEXTS_A_REQUEST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long one request may take, and how long to wait before each further attempt, in seconds."""

    timeout: float
    pauses: tuple[float, ...]


FOR_A_QUERY = Patience(timeout=10, pauses=(0.5,))
FOR_ROWS = Patience(timeout=30, pauses=(0.5, 2))


class RemoteEmbedder:
    """Asks a model through litellm. `model` is litellm's name for it, such as `ollama/nomic-embed-text`."""

    local = False

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        prefixes: Prefixes = NO_PREFIXES,
        for_a_query: Patience = FOR_A_QUERY,
        for_rows: Patience = FOR_ROWS,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._prefixes = prefixes
        self._for_a_query = for_a_query
        self._for_rows = for_rows
        self._pause = pause
        self._learned: int | None = None
        at = f"@{sha256(base_url.encode()).hexdigest()[:8]}" if base_url else ""  # hashed: it may hold a password
        self.identity = f"litellm/1:{model}{at}{prefixes.mark}"

    @property
    def dimensions(self) -> int:
        if self._learned is None:
            self._answer(["How long is a vector?"], self._for_a_query)
        assert self._learned is not None
        return self._learned

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed(texts, self._prefixes.passage, self._for_rows)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._embed([text], self._prefixes.query, self._for_a_query)[0]

    def _embed(self, texts: Sequence[str], prefix: str, patience: Patience) -> NDArray[np.float32]:
        import numpy as np

        # Providers refuse an empty text, and with it the whole request.
        sent = [(row, prefix + _sendable(text)) for row, text in enumerate(texts) if text and not text.isspace()]
        answers = [
            (batch, self._answer([text for _, text in batch], patience)) for batch in _batches(sent, TEXTS_A_REQUEST)
        ]
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for batch, answer in answers:
            vectors[[row for row, _ in batch]] = answer
        return unit_rows(vectors)

    def _answer(self, texts: list[str], patience: Patience) -> NDArray[np.float32]:
        return self._checked(self._ask(texts, patience), len(texts))

    def _ask(self, texts: list[str], patience: Patience) -> Any:
        """Return the model's answer as litellm gives it, after as many attempts as `patience` allows."""
        litellm = import_litellm()
        for pause in (*patience.pauses, None):
            try:
                return litellm.embedding(
                    model=self._model,
                    input=texts,
                    api_base=self._base_url,
                    api_key=self._api_key,
                    timeout=patience.timeout,
                    encoding_format="float",
                    drop_params=True,  # not every provider knows the line above
                )
            except (*litellm.LITELLM_EXCEPTION_TYPES, ValueError) as error:
                status = getattr(error, "status_code", None)
                if not passes(status) or pause is None:
                    self._explain(status, error, patience)
            self._pause(pause)
        raise AssertionError("the last attempt returns or raises")

    def _checked(self, response: Any, expected: int) -> NDArray[np.float32]:
        import numpy as np

        data: Any = getattr(response, "data", None)
        try:
            rows: list[Any] = [item["embedding"] for item in data]
            vectors = np.array(rows, dtype=np.float32)
        except (TypeError, ValueError, KeyError):
            self._fail("answered with something that is not vectors", _WRONG_ENDPOINT)
        if len(rows) != expected:
            self._fail(f"answered with {len(rows)} vectors for {expected} texts", _WRONG_ENDPOINT)
        if vectors.ndim != 2 or vectors.shape[1] == 0 or not np.isfinite(vectors).all():
            self._fail("answered with numbers that make no vector", _WRONG_ENDPOINT)
        if self._learned not in (None, vectors.shape[1]):
            self._fail(
                f"answered with {vectors.shape[1]} numbers a vector and with {self._learned} before",
                "Another model stands behind that name now; set the embedder to a name of its own.",
            )
        self._learned = vectors.shape[1]
        return vectors

    def _explain(self, status: object, error: Exception, patience: Patience) -> NoReturn:
        what, next_step = trouble(status, error, settings="EMBEDDER", timeout=patience.timeout, secret=self._api_key)
        self._fail(what, next_step)

    def _fail(self, what: str, next_step: str) -> NoReturn:
        raise EmbeddingFailed(f"The embedding model {self._model} {what}. {next_step}") from None


_WRONG_ENDPOINT = "Check that MCP_MEMORY_EMBEDDER_BASE_URL is the address of an embedding endpoint."


def _sendable(text: str) -> str:
    return text[:CHARACTERS_SENT].encode("utf-8", "replace").decode()  # a lone surrogate is no JSON


def _batches(items: list[tuple[int, str]], size: int) -> Iterator[list[tuple[int, str]]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
