"""What changes for a user when a client gets this server, or loses it: sentences from the client's description."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_memory.integrations.clients.description import ClientProgram
from mcp_memory.integrations.clients.programs import NAME
from mcp_memory.integrations.hooks import NEEDED_TOKENS, STABLE_TOKENS


def effects_of_install(client: ClientProgram, *, hooks: bool, place: str, offload_over: int) -> Iterator[str]:
    """Yield what the client will do.

    `place` says where the memory is ("on this machine"), `offload_over` from how many tokens tool results are kept out
    of the context (0: never).
    """
    described = client.hooks if hooks else None
    if described is None:
        yield f"The agent in {client.title} gets tools to remember and to recall, and decides itself when to use them."
        yield f"What it remembers is stored {place}."
        return
    when = (
        "Before each prompt or, in older versions, after a tool call" if described.context_if else "Before each prompt"
    )
    start = f" ({STABLE_TOKENS} at the start of a session)" if "start" in described.context else ""
    yield f"{when}, {client.title} will ask {NAME} for what matters, up to {NEEDED_TOKENS} tokens{start}."
    yield f"After each answer, the conversation is stored {place}."
    if described.replaced and offload_over:
        only_mcp = all(tool.lower().startswith("mcp") for tool in described.outputs)
        results = "Results of other MCP servers" if only_mcp else "Tool results"
        yield f"{results} over {offload_over:,} tokens are stored, and a short stand-in takes their place."


def effects_of_removal(client: ClientProgram, *, hooks: bool) -> Iterator[str]:
    """Yield what the client will no longer do."""
    described = client.hooks if hooks else None
    if described is None:
        yield f"The agent in {client.title} loses its tools to remember and to recall."
    else:
        ended = (
            ", store conversations or replace large tool results" if described.replaced else " or store conversations"
        )
        yield f"{client.title} will no longer ask {NAME} before a prompt{ended}."
    yield "What is stored stays."
