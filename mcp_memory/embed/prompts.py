"""Whether a prompt leans on what its writer said earlier, or stands alone: general knowledge, small talk, a sum.

A logistic regression on what the bundled encoder makes of a prompt. `scripts/fit_prompt_gate.py` fits it to prompts
that were written for this project, in fifteen languages. It knows nothing of any memory; it takes 2 ms.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from mcp_memory.embed.encoder import Encoder
from mcp_memory.errors import EmbeddingFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FILE", "leans_on_memory"]

FILE = "prompts.safetensors"
_MOST = 6.0


def leans_on_memory(prompt: str) -> float:
    """Return the log-odds, from -6 to 6, that a prompt leans on earlier conversations; 0 for a text without words.

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
        return load((resources.files("mcp_memory.embed") / "model" / FILE).read_bytes())["weights"]
    except (OSError, SafetensorError) as error:
        raise EmbeddingFailed(f"The prompt gate cannot be read ({error}). Install mcp-memory again.") from error
