"""Conversations: the sessions, the turns of a session verbatim, and the imports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, plural, remove_hidden
from mcp_memory.core.types import Atom, Conversation, Turn
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pages.canvas import record_row

if TYPE_CHECKING:
    from mcp_memory.store.values import FollowedLog, Imported


_SESSIONS = 30
_FILTERS = ("client", "project", "month", "entity")
_FIRST_LINE = 160  # characters
_NOTHING = "Nothing has been recorded in this space yet."
_TURNS = 100
_RECORDS = 50
_CHARS = 30_000  # characters of a window, so that its page stays small
_OF_A_TURN = 4_000
_IMPORTS = 20


async def conversations(view: View) -> Page:
    """List the conversations by the date of the talk; the first page without filters has the state of imports too."""
    filters = {name: value.strip() for name in _FILTERS if (value := view.query.get(name, "")).strip()}
    text = view.query.get("q", "").strip()
    cursor = view.query.get("cursor")
    body: list[Any] = [_filter_form(view, bool(filters))]
    try:
        listed = await view.memory.conversations(
            text,
            client=ui.client_named(filters["client"]) if "client" in filters else None,
            project=filters.get("project"),
            month=filters.get("month"),
            entity=filters.get("entity"),
            limit=_SESSIONS,
            cursor=cursor,
        )
    except (InvalidInput, NotFound) as wrong:
        body.append(ui.note(remove_hidden(str(wrong)), kind="bad"))
    else:
        nothing = "No conversation passes these filters." if text or filters else _NOTHING
        body += [
            _by_month(listed.conversations) if listed.conversations else ui.empty(nothing),
            ui.pager("/conversations", listed.cursor, "Earlier conversations", q=text, **filters),
        ]
    if not (cursor or text or filters):
        body.append(_imports(view, await view.memory.imported(), await view.memory.followed_logs()))
    return Page(title="Conversations", here="conversations", body=ui.body(*body))


def _filter_form(view: View, is_open: bool) -> Element:
    asked = view.query
    fields = [
        ui.input_field("Program", "client", ui.program_name(asked.get("client", "")), hint="Codex"),
        ui.input_field("Project", "project", asked.get("project", "")),
        ui.input_field("Month", "month", asked.get("month", ""), hint="2026-11 or last month"),
        ui.input_field("About", "entity", asked.get("entity", ""), hint="a name"),
    ]
    folded = el("details", el("summary", "Filters"), ui.line(fields), open=is_open)
    return ui.search_form("/conversations", "Words of a conversation", asked.get("q", ""), folded)


def conversation_row(talk: Conversation) -> Element:
    """Return a conversation: its title, its first line, how long it was, where, and when."""
    title = talk.title or ui.untitled(talk.last, talk.client)
    more = talk.first_line if talk.first_line and not talk.first_line.startswith(title.rstrip("…")) else None
    return ui.dated_row(
        el("p", ui.session_link(talk.session, title), class_="said"),
        ui.memory_text(one_line(more, _FIRST_LINE)) if more else None,
        plural(talk.turns, "message"),
        *_places(talk),
        when=ui.moment(talk.last),
    )


def _places(talk: Conversation) -> list[Element]:
    """Return the program and the project of a conversation, as links to those of the same."""
    places = {"client": talk.client, "project": talk.project}
    return [
        ui.link(
            "/conversations", ui.memory_text(ui.program_name(place) if name == "client" else place), **{name: place}
        )
        for name, place in places.items()
        if place
    ]


def _by_month(talks: Sequence[Conversation]) -> list[Element]:
    """Return conversations under the months in which they ended."""
    months = groupby(talks, lambda talk: f"{ui.day_of(talk.last):%B %Y}")
    return [ui.section(month, ui.rows(map(conversation_row, several))) for month, several in months]


async def session(view: View) -> Page:
    """Show the turns of a session, each with the statements made from it; of a long session, a window from `start`.

    A session without turns is shown with its tool results. Raises NotFound if it has neither.
    """
    name, start = view.parts["session"], ui.start_of(view.query)
    begin = 0 if start < _TURNS else start
    try:
        turns = await view.memory.session_turns(name, start=begin, limit=start - begin + _TURNS + 1)
    except NotFound:
        if page := await _tool_session(view, name):
            return page
        raise
    if begin < start:
        if len(list(_window(turns[:_TURNS]))) == len(turns):
            start = 0  # it fits in one window
        turns = [turn for turn in turns if turn.position >= start]
    shown = list(_window(turns[:_TURNS]))
    talk = await view.memory.conversation(name)
    statements = await view.memory.statements_about([turn.id for turn in shown])
    after = shown[-1].position + 1 if len(turns) > len(shown) else None
    before = max(0, start - _TURNS) if start else None
    return Page(
        title=_title(talk.title or ui.untitled(talk.last, talk.client) if talk else name),
        here="conversations",
        body=ui.body(
            _head(talk) if talk else None,
            _window_link(name, "← Earlier messages", before),
            ui.rows((_turn_with_statements(turn, statements[turn.id]) for turn in shown), ordered=True)
            if shown
            else ui.empty("This conversation has no messages from here on."),
            _window_link(name, "Later messages →", after),
            _details(name),
        ),
    )


def _title(title: str) -> str:
    return remove_hidden(one_line(title, 80))


async def _tool_session(view: View, name: str) -> Page | None:
    """Return the page of a session that has tool results but no turns; None if it has no tool results either."""
    records = await view.memory.records(session=name, limit=_RECORDS)
    body = (
        ui.empty("Nothing that was said in this conversation was recorded, only results of its tools."),
        ui.section("Results of its tools", ui.rows(map(record_row, records))),
    )
    if not records:
        return None
    title = ui.untitled(records[-1].timestamp)
    return Page(title=title, here="conversations", body=(*body, _details(name)))


def _window_link(session: str, text: str, start: int | None) -> Element | None:
    """Return the link to another window of a session; None if `start` is None."""
    if start is None:
        return None
    return el("p", ui.link(f"/session/{ui.part(session)}", text, start=start or None), class_="pager")


# --- a session ---------------------------------------------------------------------------------------


def _head(talk: Conversation) -> Element:
    """Return when a conversation was, its length, its program and its project."""
    return ui.line(
        ui.time_span(talk.first, talk.last),
        plural(talk.turns, "message"),
        *_places(talk),
    )


def _details(name: str) -> Element:
    values = ui.labelled_values([("Its name for programs", el("span", remove_hidden(name), class_="id"))])
    return el("details", el("summary", "Details"), values)


def _window(turns: Sequence[Turn]) -> Iterator[Turn]:
    """Yield turns up to the size of a page, and at least the first."""
    room = _CHARS
    for turn in turns:
        length = min(len(turn.content), _OF_A_TURN)
        if room < _CHARS and length > room:
            return
        room -= length
        yield turn


def _turn_with_statements(turn: Turn, statements: Sequence[Atom]) -> Element:
    whole = len(turn.content) <= _OF_A_TURN
    shown = turn if whole else replace(turn, content=turn.content[:_OF_A_TURN] + "…")
    made = (ui.line(ui.link(f"/{atom.id}", ui.memory_text(atom.text))) for atom in statements)
    return el(
        "div",
        ui.turn_row(shown),
        None if whole else el("p", ui.link(f"/{turn.id}", "This message goes on: read all of it")),
        [el("small", f"Statement{'s' if len(statements) > 1 else ''} made from it:"), *made] if statements else None,
        id=turn.id,
    )


# --- imports ----------------------------------------------------------------------------------------


def _imports(view: View, files: Sequence[Imported], logs: Sequence[FollowedLog]) -> Element:
    parts: list[Any] = []
    if files:
        head = ("File", "Messages", "When")
        lines = [(_path(view, file.path), ui.count(file.turns), ui.moment(file.at)) for file in files[:_IMPORTS]]
        parts += [
            ui.table("Files whose messages are stored, the last first", head, lines, numbers=(1,)),
            _more_files(len(files)),
        ]
    if logs:
        head = ("Log", "Program", "Conversation", "Read", "When")
        parts += [
            ui.table(
                "Logs of coding agents, the one read last first",
                head,
                (_log_line(view, file) for file in logs[:_IMPORTS]),
                numbers=(3,),
            ),
            _more_files(len(logs)),
        ]
    how = el(
        "p",
        "Imports are made in a terminal. This follows the logs of a coding agent as they are written: ",
        el("code", "mcp-memory import claude-code --watch"),
    )
    return ui.section(
        "Imports", *(parts or [ui.empty("No file was imported and no log is followed.")]), how, id="imports"
    )


def _log_line(view: View, log: FollowedLog) -> tuple[Any, ...]:
    name = ui.session_link(log.session, log.session) if log.session else None
    read = plural(log.offset, "byte")
    return _path(view, log.path), ui.memory_text(ui.program_name(log.client)), name, read, ui.moment(log.at)


def _path(view: View, path: str) -> Element:
    """Return the path of a file; only its name if the reader does not own this machine."""
    return ui.memory_text(path if view.is_owner else PurePath(path).name, tag="code")


def _more_files(many: int) -> Element | None:
    return el("p", f"and {many - _IMPORTS:,} more") if many > _IMPORTS else None
