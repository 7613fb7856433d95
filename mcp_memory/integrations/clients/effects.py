"""What changes for a user when a client gets this server, or loses it: sentences from the client's description."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_memory.integrations.clients.description import ClientHooks, ClientProgram
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
    if recall := _recall(described, client.title):
        yield recall
    if stored := _when_stored(described):
        yield f"{stored} the conversation is stored {place}."
    if described.replaced and offload_over:
        yield (
            f"{_replaced_results(described)} over {offload_over:,} tokens are stored, and a short stand-in takes their "
            "place."
        )


def effects_of_removal(client: ClientProgram, *, hooks: bool) -> Iterator[str]:
    """Yield what the client will no longer do."""
    described = client.hooks if hooks else None
    if described is None:
        yield f"The agent in {client.title} loses its tools to remember and to recall."
    else:
        ended = [f"ask {NAME} before a prompt"] if "prompt" in described.context else []
        ended += ["store conversations"] if _when_stored(described) else []
        ended += ["replace large tool results"] if described.replaced else []
        *most, last = ended
        yield f"{client.title} will no longer {' or '.join([', '.join(most), last] if most else [last])}."
    yield "What is stored stays."


def _recall(hooks: ClientHooks, title: str) -> str:
    if "prompt" not in hooks.context:
        return ""
    start = f" ({STABLE_TOKENS} at the start of a session)" if "start" in hooks.context else ""
    when = "Before each prompt or, in older versions, after a tool call" if hooks.context_if else "Before each prompt"
    return f"{when}, {title} will ask {NAME} for what matters, up to {NEEDED_TOKENS} tokens{start}."


def _when_stored(hooks: ClientHooks) -> str:
    kinds = hooks.events.values()
    return "After each answer," if "stop" in kinds else "When a session ends," if "end" in kinds else ""


def _replaced_results(hooks: ClientHooks) -> str:
    only_mcp = all(pattern.lower().startswith("mcp") for pattern in hooks.outputs)
    return "Results of other MCP servers" if only_mcp else "Tool results"
