"""Doubles that ship: a clock under the caller's control, an embedder without a model, a model that follows a script.

For tests of programs that use this package, and for its own tests. They are complete, small implementations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from mcp_memory.core.errors import EmbeddingFailed, ModelFailed
from mcp_memory.core.token_counts import estimate_tokens
from mcp_memory.language.words import index_terms
from mcp_memory.models.llm import Completion, ModelPrompt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FixedClock", "HashEmbedder", "ScriptedLLM"]

Answer = str | Completion | ModelFailed
Step = Answer | Callable[[ModelPrompt], Answer]


class FixedClock:
    """Returns the same moment until it is moved; pass it as `now` to `open_memory`."""

    def __init__(self, moment: datetime = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)) -> None:
        self.moment = moment

    def __call__(self) -> datetime:
        return self.moment

    def advance(self, **span: float) -> None:
        """Move on by `timedelta(**span)`; negative spans move back."""
        self.moment += timedelta(**span)


class HashEmbedder:
    """Embeds a text as the hashed counts of its index terms: texts that share words are near.

    `failing` makes every call raise EmbeddingFailed until it is reset. `calls` keeps the embedded texts.
    """

    def __init__(self, identity: str = "hash/64", *, dimensions: int = 64, local: bool = True) -> None:
        self.identity = identity
        self.dimensions = dimensions
        self.local = local
        self.failing = False
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        if self.failing:
            raise EmbeddingFailed(f"{self.identity} does not answer.")
        self.calls.append(list(texts))
        data = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for term in index_terms(text):
                digest = hashlib.sha256(term.encode("utf-8", "surrogatepass")).digest()
                data[row, int.from_bytes(digest[:4]) % self.dimensions] += 1 if digest[4] % 2 else -1
        lengths = np.linalg.norm(data, axis=1, keepdims=True)
        return (data / np.where(lengths == 0, 1, lengths)).astype(np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.embed([text])[0]


class ScriptedLLM:
    """Answers prompts from a script, one step a call; pass it as `llm` to `open_memory`.

    A step is the text of an answer, a `Completion`, an error to raise, or a function that returns one of these for the
    prompt. A call beyond the end of the script fails. `asked` keeps the prompts.
    """

    def __init__(self, *script: Step, name: str = "scripted/1") -> None:
        self.name = name
        self.script = list(script)
        self.asked: list[ModelPrompt] = []

    def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
        self.asked.append(prompt)
        step: Step = self.script.pop(0) if self.script else ModelFailed(f"The script of {self.name} has run out.")
        answer = step(prompt) if callable(step) else step
        match answer:
            case Completion():
                return answer
            case str():
                read = sum(estimate_tokens(message.text) for message in prompt.messages)
                return Completion(text=answer, prompt_tokens=read, completion_tokens=estimate_tokens(answer), cost=None)
            case _:
                raise answer
