"""Conversations: the sessions, the turns of one word for word, and the imports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, remove_hidden
from mcp_memory.core.types import Atom, SessionInfo, Turn
from mcp_memory.ui import components as ui
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pages.canvas import record_row
from mcp_memory.ui.views import Page, View
from mcp_memory.ui.words import t

if TYPE_CHECKING:
    from mcp_memory.store.values import FollowedLog, Imported


_SESSIONS = 50
_TURNS = 50
_RECORDS = 50
_CHARS = 20_000  # of a window, so that its page stays small
_OF_A_TURN = 4_000
_IMPORTS = 20


async def conversations(view: View) -> Page:
    """The sessions, the one written to last first, and the state of imports on the first page."""
    start = _start(view)
    found = await view.memory.sessions(start=start, limit=_SESSIONS + 1)
    shown = found[:_SESSIONS]
    return Page(
        title=t("conversations.title"),
        here="conversations",
        body=ui.body(
            ui.section(
                t("conversations.sessions"),
                ui.rows(map(_session_row, shown)) if shown else ui.empty(t("conversations.none")),
                _windows(
                    "/conversations",
                    before=max(0, start - _SESSIONS) if start else None,
                    after=start + _SESSIONS if len(found) > _SESSIONS else None,
                    words=("conversations.newer", "conversations.older"),
                ),
            ),
            *([] if start else [_imports(view, await view.memory.imported(), await view.memory.followed_logs())]),
        ),
    )


async def session(view: View) -> Page:
    """A window of the turns of a session, each with the statements that were made from it."""
    name, start = view.parts["session"], _start(view)
    try:
        found = await view.memory.session_turns(name, start=start, limit=_TURNS + 1)
    except NotFound:
        if page := await _of_tools(view, name):
            return page
        raise
    shown = list(_window(found[:_TURNS]))
    about = next((one for one in await view.memory.sessions(prefix=name) if one.session == name), None)
    statements = {turn.id: await view.memory.statements_about(turn.id) for turn in shown}
    after = shown[-1].position + 1 if len(found) > len(shown) else None
    path = f"/session/{ui.part(name)}"
    return Page(
        title=t("session.title", name=remove_hidden(one_line(name, 80))),
        here="conversations",
        body=ui.body(
            ui.gap(ui.link("/conversations", t("session.all")), _extent(about) if about else None),
            ui.rows((_said(turn, statements[turn.id]) for turn in shown), ordered=True)
            if shown
            else ui.empty(t("session.end")),
            _windows(
                path,
                before=max(0, start - _TURNS) if start else None,
                after=after,
                words=("session.earlier", "session.later"),
            ),
        ),
    )


async def _of_tools(view: View, name: str) -> Page | None:
    """Return the page of a session of which no turn was recorded, only results of its tools; None without those."""
    records = await view.memory.records(session=name, limit=_RECORDS)
    body = (
        ui.gap(ui.link("/conversations", t("session.all"))),
        ui.empty(t("session.no_turns")),
        ui.section(t("session.results"), ui.rows(map(record_row, records))),
    )
    title = t("session.title", name=remove_hidden(one_line(name, 80)))
    return Page(title=title, here="conversations", body=body) if records else None


def _start(view: View) -> int:
    given = view.query.get("start", "0")
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise InvalidInput(t("conversations.no_start"))
    return int(given)


def _windows(path: str, *, before: int | None, after: int | None, words: tuple[str, str]) -> Element | None:
    """Return links to the windows before and after this one; None where it is the only one."""
    links = [
        ui.link(path, t(word), start=start or None)
        for start, word in zip((before, after), words, strict=True)
        if start is not None
    ]
    return el("nav", ui.gap(*links), class_="pager", aria_label=t("conversations.windows")) if links else None


# --- sessions ---------------------------------------------------------------------------------------


def _session_row(one: SessionInfo) -> Element:
    name = ui.words_of(one.session)
    return el(
        "div",
        el("p", ui.link(f"/session/{ui.part(one.session)}", name), class_="said"),
        _extent(one),
        class_="statement",
    )


def _extent(one: SessionInfo) -> Element:
    return ui.gap(t("conversations.turns", count=one.turns), ui.span(one.first, one.last))


def _window(turns: Sequence[Turn]) -> Iterator[Turn]:
    """Yield turns until they are as long as a page should be; at least one."""
    room = _CHARS
    for turn in turns:
        length = min(len(turn.content), _OF_A_TURN)
        if room < _CHARS and length > room:
            return
        room -= length
        yield turn


def _said(turn: Turn, statements: Sequence[Atom]) -> list[Element]:
    whole = len(turn.content) <= _OF_A_TURN
    shown = turn if whole else replace(turn, content=turn.content[:_OF_A_TURN] + "…")
    made = (ui.gap(ui.link(f"/{one.id}", ui.words_of(one.text))) for one in statements)
    return [
        ui.turn_row(shown),
        *([] if whole else [el("p", ui.link(f"/{turn.id}", t("session.whole")))]),
        *([el("small", t("session.made", count=len(statements))), *made] if statements else []),
    ]


# --- imports ----------------------------------------------------------------------------------------


def _imports(view: View, files: Sequence[Imported], logs: Sequence[FollowedLog]) -> Element:
    parts: list[Any] = []
    if files:
        head = (t("imports.file"), t("imports.turns"), t("imports.at"))
        lines = [(_path(view, one.path), ui.count(one.turns), ui.moment(one.at)) for one in files[:_IMPORTS]]
        parts += [ui.table(t("imports.files"), head, lines, numbers=(1,)), _more(len(files))]
    if logs:
        head = (t("imports.log"), t("imports.client"), t("imports.session"), t("imports.read"), t("imports.at"))
        parts += [
            ui.table(t("imports.logs"), head, (_log_line(view, one) for one in logs[:_IMPORTS]), numbers=(3,)),
            _more(len(logs)),
        ]
    how = el("p", t("imports.how"), " ", el("code", "mcp-memory import claude-code --watch"))
    return ui.section(t("imports.title"), *(parts or [ui.empty(t("imports.none"))]), how)


def _log_line(view: View, one: FollowedLog) -> tuple[Any, ...]:
    name = ui.link(f"/session/{ui.part(one.session)}", ui.words_of(one.session)) if one.session else None
    read = t("imports.bytes", count=one.offset)
    return _path(view, one.path), ui.words_of(one.client), name, read, ui.moment(one.at)


def _path(view: View, path: str) -> Element:
    """Return where a file is; a reader who does not have this machine sees its name alone."""
    return ui.words_of(path if view.is_owner else PurePath(path).name, tag="code")


def _more(many: int) -> Element | None:
    return el("p", t("imports.more", count=many - _IMPORTS)) if many > _IMPORTS else None
