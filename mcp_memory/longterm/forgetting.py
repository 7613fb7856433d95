"""Forgetting as it is asked for: by id at once, by a query first shown, and undone by its tombstone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from mcp_memory.errors import InvalidInput, NotFound
from mcp_memory.longterm.search.question import read
from mcp_memory.longterm.search.results import results
from mcp_memory.longterm.search.search import Search
from mcp_memory.store.protocol import Filters, Store, Vectors
from mcp_memory.text import base_terms, one_line
from mcp_memory.types import Forgotten

__all__ = ["forget"]

MAX_IDS = 200
_BY_QUERY = 20


def forget(
    store: Store,
    search: Search,
    space: str,
    *,
    ids: Sequence[str],
    query: str | None,
    reason: str,
    dry_run: bool | None,
    undo: str | None,
    embedded: Callable[[], Sequence[Vectors]],
    now: datetime,
) -> Forgotten:
    """Do what exactly one of `ids`, `query` and `undo` asks for. InvalidInput when it is none or several."""
    if sum((bool(ids), bool(query and query.strip()), bool(undo))) != 1:
        raise InvalidInput(
            "Say what to forget by ids or by a query, or give the tombstone to undo: exactly one of them."
        )
    if undo:
        back = store.undo_forget(space, undo, now=now)
        return Forgotten(
            ids=back.ids,
            tombstone=None,
            dry_run=False,
            previews=_previews(store, space, back.ids),
            undone=True,
        )
    if len(ids) > MAX_IDS:
        raise InvalidInput(f"{len(ids)} ids at once are too many. Forget at most {MAX_IDS} in a call.")
    wanted = list(ids) or _meant(store, search, space, query or "", embedded, now)
    previews = _previews(store, space, wanted)
    if (not ids if dry_run is None else dry_run) or not wanted:
        return Forgotten(ids=wanted, tombstone=None, dry_run=True, previews=previews, undone=False)
    tombstone = store.forget(space, wanted, reason=reason, now=now)
    return Forgotten(ids=tombstone.ids, tombstone=tombstone.id, dry_run=False, previews=previews, undone=False)


def _meant(
    store: Store, search: Search, space: str, query: str, embedded: Callable[[], Sequence[Vectors]], now: datetime
) -> list[str]:
    """Return what holds every word of the query: nobody should lose more than they named.

    A tool result is forgotten whole, so all of them have to stand near each other in it.
    """
    words = set(base_terms(query))
    atoms = search(space, "atom", query, embedded=embedded, filters=Filters(), limit=_BY_QUERY)
    turns = search(space, "turn", query, embedded=embedded, filters=Filters(), limit=_BY_QUERY)
    texts = {atom.id: atom.text for atom in store.atoms(space, [hit.id for hit in atoms])}
    texts |= {turn.id: turn.content for turn in store.turns(space, [hit.id for hit in turns])}
    lines = results(store, space, read(query, now, relatives=False), filters=Filters(), limit=_BY_QUERY)
    texts |= {hit.ref: f"{texts.get(hit.ref, '')}\n{hit.text}" for hit in lines}
    return [id for id, text in texts.items() if words and words <= set(base_terms(text))]


def _previews(store: Store, space: str, ids: Sequence[str]) -> list[str]:
    atoms = store.atoms(space, [id for id in ids if id.startswith("a")])
    turns = store.turns(space, [id for id in ids if id.startswith("t")])
    lines = {atom.id: atom.text for atom in atoms} | {turn.id: turn.content for turn in turns}
    lines |= {id: call for id in ids if id.startswith("r-") and (call := _call(store, space, id))}
    return [f"{id}: {one_line(lines[id], 120)}" if id in lines else id for id in ids]


def _call(store: Store, space: str, ref: str) -> str | None:
    """Return which call a result came of; None where it is not there, which forgetting tells better."""
    try:
        tool = store.ref(space, ref).tool
    except NotFound:
        return None
    records = store.records(space, ref=ref)
    return records[-1].tool_call if records else tool
