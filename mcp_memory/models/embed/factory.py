"""Creates the configured embedder; nothing is loaded until it is first used.

Every vector is stored under its model's `identity`, so a change of model is noticed and rows are embedded again:
vectors of different models are never compared.
"""

from __future__ import annotations

import re

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.paths import absolute_path
from mcp_memory.models.embed.bundled import BundledEmbedder, StaticEmbedder
from mcp_memory.models.embed.external import Library, LocalEmbedder, RemoteEmbedder
from mcp_memory.models.embed.protocol import Embedder, is_folder, prefixes_of


def make_embedder(settings: Settings) -> Embedder | None:
    """Return the configured embedder; None for `none`. Raises InvalidInput for a missing name or a relative folder."""
    match settings.embedder.partition(":"):
        case "none", "", _:
            return None
        case "bundled", "", _:
            return BundledEmbedder()
        case ("fastembed" | "model2vec") as library, ":", model:
            return _local(library, model, settings)
        case _:
            return _remote(settings.embedder, settings)


def embedder_for(identity: str, settings: Settings) -> Embedder | None:
    """Return an embedder whose vectors have an identity today, or None if no known embedder has it.

    A local model that is not configured is found only if its folder is unchanged and its prefixes were its defaults, a
    remote model only while it is configured, because addresses and keys are not stored.
    """
    for embedder in (
        make_embedder(settings),
        BundledEmbedder(),
        StaticEmbedder(),
        _earlier_embedder(identity, settings),
    ):
        if embedder is not None and embedder.identity == identity:
            return embedder
    return None


def _earlier_embedder(identity: str, settings: Settings) -> Embedder | None:
    library, _, rest = identity.partition("/1:")
    if library not in ("fastembed", "model2vec"):
        return None
    model = re.sub(r"(@[0-9a-f]{12})?(\+[0-9a-f]{8})?$", "", rest)
    return _local(
        library, model, settings.model_copy(update={"embedder_query_prefix": None, "embedder_passage_prefix": None})
    )


def _local(library: Library, model: str, settings: Settings) -> LocalEmbedder:
    if not model:
        raise InvalidInput(f"The embedder {library}: names no model. Write {library}:NAME or {library}:/FOLDER.")
    if is_folder(model) or model.startswith(("$", "%")):
        model = str(absolute_path(model, "The folder in MCP_MEMORY_EMBEDDER"))
    return LocalEmbedder(library, model, prefixes=prefixes_of(model, settings), models=settings.home / "models")


def _remote(model: str, settings: Settings) -> RemoteEmbedder:
    return RemoteEmbedder(
        model,
        base_url=settings.embedder_base_url,
        api_key=settings.embedder_api_key,
        prefixes=prefixes_of(model, settings),
    )
