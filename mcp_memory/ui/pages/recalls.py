"""What agents got: the recalls with their questions, and for each what was given and left out, with feedback on it.

The log of recalls has no questions by default. If the conversation is recorded, the question is found among its turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line, plural, remove_hidden
from mcp_memory.core.types import Atom, Record, Turn
from mcp_memory.longterm.turns import small_talk_kind
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el, text_of

if TYPE_CHECKING:
    from mcp_memory.longterm.recall.asked import Asked
    from mcp_memory.longterm.recall.blocks import RowVerdict
    from mcp_memory.store.values import Feedback, FeedbackVerdict, RecallEntry

_PAGE = 25
_QUESTION, _LINE = 160, 300  # characters
_LINES, _ALWAYS, _LEFT_OUT = 50, 20, 8
_UNASKED: Mapping[str, str] = {
    "recall": "An agent asked in its own words",
    "prompt": "Before a message of yours",
    "start": "At the start of a conversation",
}
"""What is shown of a recall whose question is not known."""
_SAID: Mapping[FeedbackVerdict, str] = {"helpful": "Helpful", "wrong": "Wrong here"}
_EFFECTS: Mapping[FeedbackVerdict, str] = {
    "helpful": "It comes earlier for questions like this one.",
    "wrong": "It comes later for questions like this one; agents that ask exactly this do not get it.",
}
_QUESTION_MARK = re.compile(r"\?(?=\s|$)|[？؟]")
_LOOKED_AT = 30  # recalls among which those with a question are chosen


async def recalls(view: View) -> Page:
    """List the recalls, the newest first, filtered by words of their questions and by the program that asked."""
    memory, query = view.memory, view.query
    text, client, cursor = query.get("q", ""), query.get("client", ""), query.get("cursor", "")
    before = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 19 else None
    entries = await memory.recalls(text=text, client=client or None, before=before, limit=_PAGE + 1)
    shown, clients = entries[:_PAGE], await memory.recall_clients()
    is_filtered = bool(text or client or before)
    nothing = "No question had these words." if is_filtered else "No agent has asked this memory for anything yet."
    return Page(
        title="What your agents got",
        here="live",
        body=ui.body(
            el("p", "Each time a program asked this memory: its question, and what it was given. ",
               ui.link("/activity", "Everything that happened"), class_="lead"),
            _filters(text, client, clients) if shown or is_filtered else None,
            await recall_rows(view, shown) if shown else ui.empty(nothing),
            ui.pager("/live", str(shown[-1].id) if len(entries) > _PAGE else None, "Earlier", q=text, client=client),
            _connected(await memory.connected()) if view.is_owner and not is_filtered else None,
        ),
    )  # fmt: skip


async def recall_rows(view: View, entries: Sequence[RecallEntry]) -> Element:
    """Return recalls as a list: the question of each, and its first line that is not given whatever was asked."""
    asked = await view.memory.asked_by(entries)
    always = await _always_given(view)
    own = {entry.id: next((id for id in entry.ids if id not in always), "") for entry in entries}
    rows = await _rows_of(view, list(filter(None, own.values())))
    titles = await view.memory.titles([entry.session for entry in entries])
    return ui.rows(
        _recall_row(entry, question, titles, line=_line_of(rows.text(own[entry.id])), talk=_talk_link(entry, titles))
        for entry, question in zip(entries, asked, strict=True)
    )


async def latest_questions(view: View, entries: Sequence[RecallEntry], limit: int) -> Element | None:
    """Return the last recalls whose question or conversation is known, without what they gave; None if none is.

    `entries` are newest first. Agents that asked on their own and messages with a question go before other messages.
    """
    entries = [entry for entry in entries if entry.how != "start"][:_LOOKED_AT]
    titles = await view.memory.titles([entry.session for entry in entries])
    known: dict[str, tuple[bool, RecallEntry, Asked | None]] = {}
    for entry, asked in zip(entries, await view.memory.asked_by(entries), strict=True):
        if title := _asked_in(entry, asked, titles):
            known.setdefault(title, (True, entry, asked))
        elif asked and not asked.is_before and small_talk_kind(asked.text) is None:
            asks = entry.how == "recall" or _QUESTION_MARK.search(asked.text) is not None
            known.setdefault(asked.text, (asks, entry, asked))
    chosen = sorted(known.values(), key=lambda each: not each[0])[:limit]
    chosen.sort(key=lambda each: -each[1].id)
    return ui.rows(_recall_row(entry, asked, titles) for _, entry, asked in chosen) if chosen else None


def _filters(text: str, client: str, clients: Sequence[str]) -> Element:
    options = [("", "any"), *((name, remove_hidden(ui.program_name(name))) for name in clients)]
    return el(
        "form",
        ui.input_field("Words of the question", "q", text, kind="search"),
        ui.choice("Program", "client", options, client) if len(clients) > 1 else None,
        el("button", "Find"),
        method="get",
        action="/live",
        role="search",
        aria_label="Recalls",
    )


def _recall_row(
    entry: RecallEntry,
    asked: Asked | None,
    titles: Mapping[str, str],
    *,
    line: Element | None = None,
    talk: Element | None = None,
) -> Element:
    named = _asked_in(entry, asked, titles) is not None  # the program and the conversation
    return ui.dated_row(
        [el("p", ui.link(f"/recall/{entry.id}", _question(entry, asked, titles)), class_="said"), line],
        ui.memory_text(ui.program_name(entry.client)) if entry.client and not named else None,
        plural(len(entry.ids), "line"),
        None if named else talk,
        when=ui.moment(entry.at),
    )


def _line_of(text: str | None) -> Element | None:
    return el("p", "→ ", ui.memory_text(one_line(text, _QUESTION))) if text else None


def _question(entry: RecallEntry, asked: Asked | None, titles: Mapping[str, str]) -> Sequence[Node]:
    """Return the question of a recall; if it is not known, the conversation in which an agent asked, or when it did."""
    if title := _asked_in(entry, asked, titles):
        who = ui.memory_text(ui.program_name(entry.client)) if entry.client else "an agent"
        return ["Asked by ", who, " in: ", ui.memory_text(one_line(title, _QUESTION))]
    if asked is None or asked.is_before:
        return [_UNASKED[entry.how]]
    return [ui.memory_text(one_line(asked.text, _QUESTION))]


def _asked_in(entry: RecallEntry, asked: Asked | None, titles: Mapping[str, str]) -> str | None:
    """Return the title of the conversation in which an agent asked in words of its own that are not known."""
    is_known = asked is not None and not asked.is_before
    return _title(entry, titles) if entry.how == "recall" and not is_known else None


def _connected(processes: Sequence[dict[str, Any]]) -> Element | None:
    if not processes:
        return None
    names = (el("li", ui.memory_text(_name(process))) for process in processes)
    return ui.section("Connected now", el("ul", names, class_="names"))


def _name(process: dict[str, Any]) -> str:
    clients = ", ".join(map(ui.program_name, process["clients"]))
    return f"{process['what']} · {clients}" if clients else str(process["what"])


# --- a recall ---------------------------------------------------------------------------------------
async def recall(view: View) -> Page:
    """Show what an agent got, and what was left out. Raises NotFound for a recall that is not in the log."""
    memory, entry = view.memory, await view.memory.recall_entry(int(view.parts["number"]))
    (asked,) = await memory.asked_by([entry])
    rows = await _rows_of(view, entry.ids)
    titles = await memory.titles([entry.session])
    said = _latest(await memory.feedback_on(recall=entry.id))
    always = await _always_given(view) if entry.how != "prompt" else frozenset[str]()
    is_known = asked is not None and not asked.is_before
    given, every = ([id for id in entry.ids if (id in always) == is_always] for is_always in (False, True))
    return Page(
        title="".join(map(text_of, _question(entry, asked, titles))),
        here="live",
        body=ui.body(
            ui.line(
                ui.moment(entry.at),
                ui.memory_text(ui.program_name(entry.client)) if entry.client else None,
                _talk_link(entry, titles),
                plural(entry.tokens, "token") if entry.tokens else None,
            ),
            _unknown_question(entry, asked, is_recorded=entry.session in titles),
            _given("It got", given, [_given_row(view, entry, id, rows, said.get(id)) for id in given[:_LINES]]),
            _given(
                "It got, as every agent does",
                every,
                [_given_row(view, entry, id, rows, said.get(id), is_always=True) for id in every[:_ALWAYS]],
                beside=ui.link("/persona", "The page about you"),
            ),
            await _left_out(view, asked.text, entry) if asked and is_known else None,
        ),
    )


async def _always_given(view: View) -> frozenset[str]:
    """Return the ids of the statements on the page about the user, which is given whatever was asked."""
    return frozenset(atom.id for line in await view.memory.persona_lines() for atom in line.atoms)


def _title(entry: RecallEntry, titles: Mapping[str, str]) -> str | None:
    """Return the title of the conversation of a recall, None if it has none."""
    title = titles.get(entry.session)
    return None if title == entry.session else title


def _talk_link(entry: RecallEntry, titles: Mapping[str, str]) -> Element | None:
    title = _title(entry, titles)
    return ui.session_link(entry.session, title) if title else None


def _unknown_question(entry: RecallEntry, asked: Asked | None, *, is_recorded: bool) -> Element | None:
    """Return why the question is not shown, or what the user had said before it; None if it is shown, or was none."""
    if asked is not None and asked.is_before:
        said = ui.link(f"/{asked.turn}", ui.memory_text(one_line(asked.text, _LINE)))
        words = el("figure", el("blockquote", said), class_="quote")
        return ui.section(None, el("p", "The agent worded its own question, which was not kept. You had said:"), words)
    if asked is not None or entry.how == "start" or not entry.words:
        return None
    if is_recorded:
        return ui.note(
            "The agent worded its own question, and this memory keeps only what was given, not such questions."
        )
    return ui.note("The question is not here: its conversation is not recorded.")


def _given(title: str, ids: Sequence[str], lines: Sequence[Node], *, beside: Element | None = None) -> Element | None:
    """Return the first lines of a part of a recall, and how many more it has; None if it has none."""
    more = len(ids) - len(lines)
    rest = el("p", f"and {plural(more, 'line')} more", class_="empty") if more else None
    return ui.section(title, ui.rows(lines), rest, beside=beside) if lines else None


def _given_row(
    view: View, entry: RecallEntry, id: str, rows: _Rows, said: Feedback | None, *, is_always: bool = False
) -> Element:
    text = rows.text(id)
    if text is None:
        return el("p", ui.link(f"/{id}", "This was forgotten since."), class_="said")
    atom = rows.atoms.get(id)
    return el(
        "div",
        el("p", ui.link(f"/{id}", ui.memory_text(one_line(text, _LINE))), id=id, class_="said"),
        el(
            "div",
            *rows.about(id),
            [_said_badge(said), " ", _EFFECTS[said.verdict]] if said else None,
            _undo(view, said, f"/recall/{entry.id}#{id}") if said else None,
            *([] if said or is_always or not entry.words or id[0] not in "at" else _buttons(view, entry, id)),
            ui.link(f"/{id}#correct", "Correct it")
            if atom is not None and atom.valid_to is None and view.may("write")
            else None,
            class_="line say",
        ),
        class_="statement ended" if atom is not None and atom.valid_to else "statement",
    )


def _buttons(view: View, entry: RecallEntry, id: str) -> Iterator[Element | None]:
    for verdict, words in _SAID.items():
        back = f"/recall/{entry.id}#{id}"
        key = verdict[0]
        yield ui.action(view, "feedback", words, key=key, recall=entry.id, target=id, verdict=verdict, back=back)


def _said_badge(said: Feedback) -> Element:
    return ui.badge(_SAID[said.verdict], "ok" if said.verdict == "helpful" else "warn")


def _undo(view: View, said: Feedback, back: str) -> Element | None:
    return ui.action(view, "undo_feedback", "Undo", key="u", id=said.id, back=back)


def _latest(given: Iterable[Feedback]) -> dict[str, Feedback]:
    """Return the latest feedback on each row, of feedback that is newest first."""
    latest: dict[str, Feedback] = {}
    for feedback in given:
        latest.setdefault(feedback.target, feedback)
    return latest


async def _left_out(view: View, question: str, entry: RecallEntry) -> Element | None:
    """Return the rows nearest to a question that it would not bring now, each with the reason."""
    explained = await view.memory.explain_recall(question)
    others = [row for row in explained.verdicts if not row.brought and row.id not in entry.ids][:_LEFT_OUT]
    if not others:
        return None
    return ui.section("Left out, as the memory is now", ui.rows(map(_left_out_row, others)),
                      beside=ui.link("/search", "Ask again", q=question, **{"in": "recall"}))  # fmt: skip


def _left_out_row(verdict: RowVerdict) -> list[Node]:
    return [
        el("p", ui.link(f"/{verdict.id}", ui.memory_text(verdict.text)), class_="said"),
        ui.line(el("span", f"It {verdict.why}.")),
    ]


# --- the rows that were given -----------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The statements, messages and tool results of a page, by id."""

    atoms: Mapping[str, Atom] = field(default_factory=dict[str, Atom])
    turns: Mapping[str, Turn] = field(default_factory=dict[str, Turn])
    results: Mapping[str, Record] = field(default_factory=dict[str, Record])

    def text(self, id: str) -> str | None:
        """Return the words of a row, None for one that was forgotten."""
        if atom := self.atoms.get(id):
            return atom.text
        if turn := self.turns.get(id):
            return turn.content
        result = self.results.get(id)
        return f"{result.tool_call}: {result.summary}" if result and not result.forgotten else None

    def about(self, id: str) -> list[Node | None]:
        """Return when a row was said, and by whom."""
        if atom := self.atoms.get(id):
            ended = ui.ENDED if atom.valid_to else None
            return [ui.moment(atom.valid_from, day=True), ui.name_of_source(atom.source), ended]
        if turn := self.turns.get(id):
            return [ui.moment(turn.said_at, day=True), ui.speaker(turn)]
        return [ui.moment(self.results[id].timestamp, day=True), "tool result"]


async def _rows_of(view: View, ids: Sequence[str]) -> _Rows:
    memory = view.memory
    atoms = await memory.statements_by_id([id for id in ids if id[0] == "a"])
    turns = await memory.turns([id for id in ids if id[0] == "t"])
    results = {id: made for id in ids if id[0] == "r" for made in await memory.records(ref=id, limit=1)}
    return _Rows(atoms={atom.id: atom for atom in atoms}, turns={turn.id: turn for turn in turns}, results=results)


# --- on the page of a statement or a message --------------------------------------------------------
async def feedback_part(view: View, id: str) -> Element | None:
    """Return what was said of a row as an answer, and for which questions; None if nothing was."""
    given = await view.memory.feedback_on(target=id)
    return ui.section("As an answer", ui.rows([await _feedback_row(view, said) for said in given])) if given else None


async def _feedback_row(view: View, said: Feedback) -> Element:
    question: Node = "A question that is not in the log any more"
    if said.recall is not None:
        try:
            entry = await view.memory.recall_entry(said.recall)
            (asked,) = await view.memory.asked_by([entry])
            titles = await view.memory.titles([entry.session])
            question = ui.link(f"/recall/{entry.id}", _question(entry, asked, titles))
        except NotFound:
            pass
    acts = el("div", _said_badge(said), _undo(view, said, f"/{said.target}"), class_="line say")
    return ui.dated_row(el("p", question, class_="said"), acts, when=ui.moment(said.at, day=True))
