"""Embedding models: a static one that ships inside the package, or any that litellm reaches.

`make_embedder(settings)` gives the one that is configured; nothing is loaded until it is first asked.
Every vector is stored under its model's `identity`, so a change of model is seen, and rows are embedded
again, rather than compared across models.
"""

from __future__ import annotations

from mcp_memory.config import Settings
from mcp_memory.embed.protocol import Embedder
from mcp_memory.embed.remote import RemoteEmbedder
from mcp_memory.embed.static import StaticEmbedder

__all__ = ["Embedder", "embedder_for", "make_embedder"]


def make_embedder(settings: Settings) -> Embedder | None:
    """Return the embedder that the settings name; None where they say `none`."""
    match settings.embedder:
        case "none":
            return None
        case "bundled":
            return StaticEmbedder()
        case model:
            return RemoteEmbedder(model, base_url=settings.embedder_base_url, api_key=settings.embedder_api_key)


def embedder_for(identity: str, settings: Settings) -> Embedder | None:
    """Return an embedder that makes vectors of that identity today, or None where there is none.

    The bundled model always can, if it is still the same. A remote one can while it is the configured one:
    of an earlier one, neither the address nor the key is known any more.
    """
    for embedder in (make_embedder(settings), StaticEmbedder()):
        if embedder is not None and embedder.identity == identity:
            return embedder
    return None
