"""A turn or a statement, opened by its id: its whole text with what it stands among."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import Atom, Turn
from mcp_memory.longterm.search.search import atom_turns
from mcp_memory.longterm.verification.trust import quarantined_ids
from mcp_memory.store.protocol import Store

ROW = re.compile(r"[at]\d{1,12}")
"""The id of a statement or a turn."""

_AROUND = 1  # turns before and after


def opened_text(store: Store, space: str, id: str) -> str:
    """Return the text of a turn between its neighbours, or of a statement and the turns that it rests on.

    NotFound for an id that is not there.
    """
    if id.startswith("t"):
        return _conversation(store, space, id)
    for atom in store.atoms(space, [id]):
        said = [_conversation(store, space, turn.id) for turn in store.turns(space, dict.fromkeys(atom_turns(atom)))]
        return "\n\n".join([f"{_heading(atom)}\n{atom.text}", *said])
    raise NotFound(f"There is no statement {id} in this space. memory_search finds those that there are.")


def statements_of(store: Store, space: str, ids: Sequence[str]) -> list[str]:
    """Return the ids with each turn among them replaced by the current statements that rest on it.

    NotFound for a turn on which none rests.
    """
    named: list[str] = []
    for id in ids:
        if not (id.startswith("t") and ROW.fullmatch(id)):
            named.append(id)
            continue
        resting = [atom.id for atom in store.atoms_based_on(space, id) if atom.valid_to is None]
        if not resting:
            raise NotFound(
                f"No statement rests on turn {id}, so there is none to supersede. Leave {id} out: what was said later "
                "counts as the newer value by itself."
            )
        named += resting
    return list(dict.fromkeys(named))


def _conversation(store: Store, space: str, id: str) -> str:
    turns = store.context_windows(space, [id], around=_AROUND)
    if not turns:
        raise NotFound(f"There is no turn {id} in this space. conversation_search finds those that there are.")
    waiting = quarantined_ids(store, space, [turn.id for turn in turns])
    parts = [f"{_speaker(turn, waits=turn.id in waiting)}\n{turn.content}" for turn in turns]
    return "\n\n".join([f"Session {turns[0].session}:", *parts])


def _speaker(turn: Turn, *, waits: bool) -> str:
    name = f" ({turn.name})" if turn.name else ""
    waiting = " · waits for review" if waits else ""
    return f"[{turn.id} · {turn.role}{name} · {turn.said_at:%Y-%m-%d %H:%M}{waiting}]"


def _heading(atom: Atom) -> str:
    ended = f" until {atom.valid_to:%Y-%m-%d}" if atom.valid_to else ""
    replaced = f", replaced by {atom.superseded_by}" if atom.superseded_by else ""
    return f"[{atom.id} · {atom.kind} · true from {atom.valid_from:%Y-%m-%d}{ended}{replaced}]"
