"""Selects the rows to forget by ids, words, sessions and times, and describes what else is affected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, plural
from mcp_memory.language.words import base_terms
from mcp_memory.longterm.persona import body
from mcp_memory.longterm.verification.evidence import call_of
from mcp_memory.store.citations import cited_atoms
from mcp_memory.store.forgetting import How, Reach, Which
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, canvas_rows, page_rows, tombstone_rows, turn_rows

MAX_IDS = 200
_SHOWN = 12


def chosen_ids(
    store: Store,
    space: str,
    *,
    ids: Sequence[str],
    query: str | None,
    session: str | None,
    since: datetime | None,
    until: datetime | None,
) -> list[str]:
    """Return the ids of the selected rows; several selectors are intersected. Ids alone are returned unchecked.

    Raises InvalidInput if no selector is given, and for more than MAX_IDS ids.
    """
    if len(ids) > MAX_IDS:
        raise InvalidInput(f"{len(ids)} ids at once are too many. Forget at most {MAX_IDS} in a call.")
    text = (query or "").strip()
    has_filter = bool(text or session or since or until)
    if not (ids or has_filter):
        raise InvalidInput(
            "Say what to forget: ids, a query, a session, a time (since, until), or the tombstone to undo."
        )
    if not has_filter:
        return list(ids)
    words = base_terms(text)
    if text and not words:
        return []
    matching = store.read(space, tombstone_rows.matching, Which(terms=words, session=session, since=since, until=until))
    return [id for id in matching if id in ids] if ids else matching


def forgetting_method(*, query: str | None, session: str | None, timed: bool) -> How:
    """Return the first kind of selector that was used, in the order query, session, time, ids.

    The tombstone has this kind, but never the words of the query.
    """
    return "query" if query else "session" if session else "time" if timed else "ids"


def forgotten_along(store: Store, space: str, reach: Reach, *, query: str | None) -> list[str]:
    """Return sentences for the user on what else the forgetting affects.

    They name the other forgotten items (rows, facts, lines of tasks and pages), the turns that stay and may say the
    same, and with a query the number of results that are not indexed yet.
    """
    sentences: list[str] = []
    if reach.along:
        rest = "rests" if len(reach.along) == 1 else "rest"
        sentences.append(f"Nothing else is left of what {_names(reach.along)} {rest} on: that goes too.")
    if reach.facts:
        sentences.append(f"{plural(reach.facts, 'fact')} with it.")
    if reach.records:
        sentences.append(f"{plural(reach.records, 'line')} of tasks, with the words on their nodes.")
    sentences += _changed_pages(store, space, reach)
    if reach.said_in:
        stay = "stays" if len(reach.said_in) == 1 else "stay"
        sentences.append(
            f"{_names(reach.said_in)} {stay}, and may say the same: the statements were drawn from there. Name that "
            "too, if it is to go."
        )
    if query and (waiting := store.index_progress().unindexed_refs):
        sentences.append(f"{plural(waiting, 'result')} not indexed yet: whether the words stand there is not known.")
    return sentences


def _changed_pages(store: Store, space: str, reach: Reach) -> list[str]:
    is_on_page = not set(reach.atoms).isdisjoint(cited_atoms(body(store, space)))
    scenes = [scene.title for scene in store.read(space, page_rows.scenes) if scene.slug in reach.scenes]
    pages = [*(["the page about the user"] if is_on_page else []), *(f"the page “{title}”" for title in scenes)]
    return [f"The lines that are based on it in {', '.join(pages)}."] if pages else []


def previews(store: Store, space: str, ids: Sequence[str], *, written: Mapping[str, str] | None = None) -> list[str]:
    """Return one line for each id with the start of its text, or the id alone if it is unknown.

    `written` has, by id, the words of an agent about some results; they are shown after the call.
    """
    atoms = store.read(space, atom_rows.by_ids, [id for id in ids if id.startswith("a")])
    turns = store.read(space, turn_rows.by_ids, [id for id in ids if id.startswith("t")])
    lines = {atom.id: atom.text for atom in atoms} | {turn.id: turn.content for turn in turns}
    for ref in (id for id in ids if id.startswith("r-")):
        with suppress(NotFound):
            call, text = call_of(store, space, ref), (written or {}).get(ref, "")
            lines[ref] = call if text in call else f"{call}: {text}"
    for task in (id for id in ids if id.isdecimal()):
        with suppress(NotFound):
            lines[task] = f"task {store.read(space, canvas_rows.canvas, int(task)).label}"
    return [f"{id}: {one_line(lines[id], 120)}" if id in lines else id for id in ids]


def _names(ids: Sequence[str]) -> str:
    rest = len(ids) - _SHOWN
    return ", ".join(ids[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
