"""Completion of prompt arguments and template variables, from what the store holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import mcp.types as wire

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory

__all__ = ["complete"]

_MOST = 100  # the protocol's limit
_LOOKED_AT = 1000

Reference = wire.PromptReference | wire.ResourceTemplateReference


async def complete(memory: Memory, reference: Reference, name: str, typed: str) -> wire.Completion:
    """Return what may stand for the argument: what begins with the typed text first, then what contains it."""
    candidates = list(dict.fromkeys(await _candidates(memory, reference, name, typed)))
    from mcp_memory.language.words import fold  # late: it brings the patterns of all scripts

    wanted = fold(typed)
    starting = [value for value in candidates if fold(value).startswith(wanted)]
    holding = [value for value in candidates if wanted in fold(value) and value not in set(starting)]
    values = starting + holding
    return wire.Completion(values=values[:_MOST], total=len(values), has_more=len(values) > _MOST)


async def _candidates(memory: Memory, reference: Reference, name: str, typed: str) -> Iterable[str]:
    place = reference.name if isinstance(reference, wire.PromptReference) else reference.uri
    match place, name:
        case "recall", "topic":
            return await memory.entities(prefix=typed, limit=_LOOKED_AT)
        case "continue_task", "task":
            return [f"{canvas.number:03}-{canvas.label}" for canvas in await memory.canvases(limit=_LOOKED_AT)]
        case "memory://canvas/{number}", "number":
            return [f"{canvas.number:03}" for canvas in await memory.canvases(limit=_LOOKED_AT)]
        case (("wrap_up" | "memory://session/{session}"), "session"):
            return [info.session for info in await memory.sessions(limit=_LOOKED_AT)]
        case "memory://scene/{slug}", "slug":
            return [scene.slug for scene in await memory.scenes()]
        case "memory://atom/{id}", "id":
            return [atom.id for atom in await memory.atoms(limit=_LOOKED_AT)]
        case "memory://ref/{id}", "id":
            return [record.ref for record in reversed(await memory.records(limit=_LOOKED_AT))]
        case _:
            return []
