"""Conversations: the sessions, the turns of a session verbatim, and the imports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line, plural, remove_hidden
from mcp_memory.core.types import Atom, Conversation, Record, Turn
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.longterm.search.marking import marks_of
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pages.canvas import record_row
from mcp_memory.ui.pages.item import is_retired

if TYPE_CHECKING:
    from mcp_memory.store.values import FollowedLog, Imported


_SESSIONS = 30
_FILTERS = ("client", "project", "month", "entity")
_FIRST_LINE = 160  # characters
_NOTHING = "Nothing has been recorded in this space yet."
_TURNS = 100
_RECORDS = 50
_RESULTS, _TOGETHER = 1_000, 3  # tool results of a window, and those that are listed between two messages
_CALL, _OUTPUT = 100, 60  # characters
_CHARS = 30_000  # characters of a window, so that its page stays small
_OF_A_TURN = 4_000
_ROW = 300  # a tool result counts as so many characters
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
    """Show the turns of a session with their statements and tool results; of a long session, a window from `start`.

    `q` is a search whose words are marked. A session without turns is shown with its tool results. Raises NotFound if
    it has neither.
    """
    name, start = view.parts["session"], ui.start_of(view.query)
    try:
        window = await _read_window(view, name, 0 if start < _TURNS else start)
        if start < _TURNS and window.is_last:
            start = 0  # it fits in one window
        elif 0 < start < _TURNS:
            window = await _read_window(view, name, start)
    except NotFound:
        if page := await _tool_session(view, name):
            return page
        raise
    talk = await view.memory.conversation(name)
    statements = await view.memory.statements_about([turn.id for turn in window.turns])
    after = None if window.is_last else window.turns[-1].position + 1
    before = max(0, start - _TURNS) if start else None
    q = view.query.get("q", "")
    marks = marks_of(q)
    return Page(
        title=_title(talk.title or ui.untitled(talk.last, talk.client) if talk else name),
        here="conversations",
        body=ui.body(
            _head(talk) if talk else None,
            _window_link(name, "← Earlier messages", before, q),
            ui.rows(_window_rows(window, statements, marks), ordered=True)
            if window.turns
            else ui.empty("This conversation has no messages from here on."),
            _window_link(name, "Later messages →", after, q),
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


def _window_link(session: str, text: str, start: int | None, q: str) -> Element | None:
    """Return the link to another window of a session; None if `start` is None."""
    if start is None:
        return None
    return el("p", ui.link(f"/session/{ui.part(session)}", text, start=start or None, q=q), class_="pager")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """Turns of a session, and by their places the results of the tools called before them, and after the last."""

    turns: Sequence[Turn]
    results: Mapping[int, Sequence[Record]]
    is_last: bool


async def _read_window(view: View, session: str, start: int) -> _Window:
    """Read turns from `start` up to the size of a page, and at least one. Raises NotFound for an unknown session."""
    turns = await view.memory.session_turns(session, start=start, limit=_TURNS + 1)
    records = await view.memory.records(
        session=session,
        since=turns[0].said_at if start and turns else None,
        until=turns[-1].said_at if len(turns) > _TURNS else None,
        limit=_RESULTS,
    )
    results: dict[int, list[Record]] = {}
    for record in records:
        place = next((place for place, turn in enumerate(turns) if record.timestamp < turn.said_at), len(turns))
        if not record.forgotten:
            results.setdefault(place, []).append(record)
    room, many = _CHARS, 0
    for turn in turns[:_TURNS]:
        room -= min(len(turn.content), _OF_A_TURN) + _ROW * len(results.get(many, ())[:_TOGETHER])
        if many and room < 0:
            break
        many += 1
    return _Window(turns=turns[:many], results=results, is_last=many == len(turns))


_Marks = Callable[[str], Sequence[tuple[int, int]]]


def _window_rows(window: _Window, statements: Mapping[str, Sequence[Atom]], marks: _Marks) -> Iterator[Element]:
    """Yield turns with the statements made from them, and between them the results of the tools called meanwhile."""
    for place, turn in enumerate(window.turns):
        yield from _results(window.results.get(place, ()))
        yield _turn_with_statements(turn, statements[turn.id], marks)
    yield from _results(window.results.get(len(window.turns), ()))


def _results(records: Sequence[Record]) -> Iterator[Element]:
    """Yield the tool calls between two turns in a row, each a line that leads to its result; nothing without any."""
    if not records:
        return
    more = records[_TOGETHER:]
    yield el(
        "div",
        map(_result, records[:_TOGETHER]),
        ui.line(ui.link(f"/{more[0].node_id.partition('-')[0]}", f"and {plural(len(more), 'more result')}"))
        if more
        else None,
    )


def _result(record: Record) -> Element:
    call = ui.link(f"/{record.ref}", ui.memory_text(one_line(record.tool_call, _CALL), tag="code"))
    output = ui.memory_text(one_line(record.summary, _OUTPUT)) if record.summary else None
    return ui.line(el("span", "▸ ", call), output)


def _turn_with_statements(turn: Turn, statements: Sequence[Atom], marks: _Marks) -> Element:
    """Return a turn with the statements made from it: as links in its words, or below it if their words differ."""
    whole = len(turn.content) <= _OF_A_TURN
    shown = turn if whole else replace(turn, content=turn.content[:_OF_A_TURN] + "…")
    current = [atom for atom in statements if not is_retired(atom)]
    same = {atom.span: f"/{atom.id}" for atom in current if _is_verbatim(atom, shown)}
    others = [atom for atom in current if f"/{atom.id}" not in same.values()]
    made = (ui.line(ui.link(f"/{atom.id}", ui.memory_text(atom.text))) for atom in others)
    return el(
        "div",
        ui.turn_row(shown, marks(shown.content), paths=same),
        None if whole else el("p", ui.link(f"/{turn.id}", "This message goes on: read all of it")),
        [el("small", f"Statement{'s' if len(others) > 1 else ''} made from it:"), *made] if others else None,
        id=turn.id,
    )


def _is_verbatim(atom: Atom, turn: Turn) -> bool:
    """Return whether a statement has the words of the turn that it is based on, apart from added dates."""
    quote = turn.content[slice(*atom.span)] if atom.evidence == turn.id else ""
    return ADDITION.sub("", atom.text).split() == ADDITION.sub("", quote).split()


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
