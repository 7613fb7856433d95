"""The whole text of a turn or a statement, opened by its id, with its context."""

from __future__ import annotations

import re

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import Atom, Turn
from mcp_memory.longterm.search.search import atom_turns
from mcp_memory.longterm.verification.trust import quarantined_ids
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, turn_rows

ROW = re.compile(r"[at]\d{1,12}")
"""The id of a statement or a turn."""

_AROUND = 1  # turns before and after


def text_of_row(store: Store, space: str, id: str) -> str:
    """Return the text of a turn with its neighbours, or of a statement and its turns.

    Raises NotFound for an unknown id.
    """
    if id.startswith("t"):
        return _conversation(store, space, id)
    for atom in store.read(space, atom_rows.by_ids, [id]):
        turns = store.read(space, turn_rows.by_ids, dict.fromkeys(atom_turns(atom)))
        return "\n\n".join(
            [f"{_heading(atom)}\n{atom.text}", *(_conversation(store, space, turn.id) for turn in turns)]
        )
    raise NotFound(f"There is no statement {id} in this space. Find statements with memory_search.")


def _conversation(store: Store, space: str, id: str) -> str:
    turns = store.read(space, turn_rows.context_windows, [id], around=_AROUND)
    if not turns:
        raise NotFound(f"There is no turn {id} in this space. Find turns with conversation_search.")
    quarantined = quarantined_ids(store, space, [turn.id for turn in turns])
    parts = [f"{_speaker(turn, is_quarantined=turn.id in quarantined)}\n{turn.content}" for turn in turns]
    return "\n\n".join([f"Session {turns[0].session}:", *parts])


def _speaker(turn: Turn, *, is_quarantined: bool) -> str:
    name = f" ({turn.name})" if turn.name else ""
    waiting = " · waits for review" if is_quarantined else ""
    return f"[{turn.id} · {turn.role}{name} · {turn.said_at:%Y-%m-%d %H:%M}{waiting}]"


def _heading(atom: Atom) -> str:
    ended = f" until {atom.valid_to:%Y-%m-%d}" if atom.valid_to else ""
    replaced = f", replaced by {atom.superseded_by}" if atom.superseded_by else ""
    return f"[{atom.id} · {atom.kind} · true from {atom.valid_from:%Y-%m-%d}{ended}{replaced}]"
