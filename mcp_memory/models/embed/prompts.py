"""Classifies prompts: does an answer need earlier conversations, or not (general knowledge, small talk, a sum)?

A logistic regression on the features of the bundled encoder. `scripts/fit_prompt_gate.py` fits it to prompts that were
written for this project, in fifteen languages. It does not read any memory and takes 2 ms.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.models.embed.encoder import Encoder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FILE", "leans_on_memory"]

FILE = "prompts.safetensors"
_MOST = 6.0


def leans_on_memory(prompt: str) -> float:
    """Return the log-odds, -6 to 6, that a prompt needs earlier conversations; 0 for a text without words.

    EmbeddingFailed where the files of the package cannot be read.
    """
    weights = _weights()
    features = Encoder().features(prompt)
    return 0.0 if features is None else float(max(-_MOST, min(_MOST, features @ weights[:-1] + weights[-1])))


@cache
def _weights() -> NDArray[np.float32]:
    from safetensors import SafetensorError
    from safetensors.numpy import load  # pyright: ignore[reportUnknownVariableType]

    try:
        return load((resources.files("mcp_memory.models.embed") / "model" / FILE).read_bytes())["weights"]
    except (OSError, SafetensorError) as error:
        raise EmbeddingFailed(f"The prompt gate cannot be read ({error}). Install mcp-memory again.") from error
