"""How the last session in a project ended, and what was left open in it.

A session starts with one line about it (`start_line`). A prompt that asks to continue gets its end (`ending`): the open
task with its open steps, the end of the last answer, the last request, and earlier turns while there is room. After a
compaction the session to continue is the current one.

If the project of the current session is known, its sessions come first, then sessions without a known project; those
of other projects are never shown. Quarantined, suspicious and other people's turns are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from mcp_memory.core.secrets.masking import MASK
from mcp_memory.core.text import day_in_words
from mcp_memory.core.token_counts import TokenCounter
from mcp_memory.core.types import OpenTask, SessionInfo, Turn
from mcp_memory.language.sentences import sentences
from mcp_memory.longterm.digest import shown_text
from mcp_memory.longterm.recall.lines import RecallLine, of_turns, without_quarantined
from mcp_memory.longterm.search.query import parse_query, question_pattern
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.turns import is_continuation, recall_block, small_talk_kind
from mcp_memory.longterm.verification.trust import turns_of_others
from mcp_memory.store.sql import turn_rows
from mcp_memory.suspicion.flags import flags

START_LINE_TOKENS = 80
"""The most tokens of the line at the start of a session, with the tags around it."""
_TURN_TOKENS = 120  # of each turn in the end of a session
_WIDTHS = (110, 75, 50, 30)  # characters of each quoted text in the line
_SESSIONS, _TURNS, _EARLIER = 20, 40, 4
_LONGEST = 400  # characters; a longer prompt names its own subject
_READ_CHARS = 4_000
_QUESTION_MARKS = ("?", "？", "؟", "\u037e")


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuity:
    """Where to look for the session to continue.

    `session` and `project` are the current ones, None if unknown. `open_task` returns the task that a session left
    open.
    """

    session: str | None = None
    project: str | None = None
    open_task: Callable[[str], OpenTask | None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class _SessionEnd:
    """The end of a session. `request` is its last request, if any; `answer` is what the assistant said last after it.

    Small talk is no `answer`, but a request that got only "Noted." `is_answered`. `earlier` are the turns before,
    latest first.
    """

    title: str
    name: str
    request: Turn | None
    answer: Turn | None
    is_answered: bool
    earlier: Sequence[Turn]
    task: OpenTask | None


def asks_to_continue(prompt: str, at: datetime) -> bool:
    """Return whether a prompt, written `at` a moment, asks to continue an earlier session.

    Either it says nothing else, or it names the last session and not only its time, which the search finds.
    """
    if is_continuation(prompt):
        return True
    names_it = len(prompt) <= _LONGEST and question_pattern("CONTINUE").search(prompt) is not None
    return names_it and not parse_query(prompt, at).time_only


# --- the line at the start --------------------------------------------------------------------------


def start_line(context: SearchContext, continuity: Continuity, counter: TokenCounter) -> RecallLine | None:
    """Return a line about the last session and what was left open; None if it is the current session, or there is none.

    It fits `START_LINE_TOKENS`; the longest quotes that fit are shown. No model is loaded: turns were judged by their
    meaning when they were stored.
    """
    end = next(_ends(context, continuity, skip_current=False), None)
    if end is None or end.name == continuity.session:
        return None
    asked = end.request if end.request and not _is_unfit(end.request.content) else None
    left_open = list(_left_open(end))
    for left in (left_open, left_open[:1], []):
        for width in _WIDTHS:
            parts = [f"{end.title}: {shown_text(asked.content, width)} ({asked.id})" if asked else f"{end.title}."]
            parts += [part(width) for part in left]
            text = " ".join(parts)
            if len(parts) + bool(asked) > 1 and counter.fits(recall_block(text, part="dynamic"), START_LINE_TOKENS):
                return RecallLine(group="end", id=end.name, text=text)
    return None


def _is_unfit(request: str) -> bool:
    """Return whether a request resembles an attack, or a secret was masked in the beginning that would be quoted."""
    return MASK in shown_text(request, _WIDTHS[0]) or bool(flags(request, "user"))


def _left_open(end: _SessionEnd) -> Iterator[Callable[[int], str]]:
    """Yield functions that return a sentence about something left open, with quotes of at most so many characters."""
    task, request, answer = end.task, end.request, end.answer
    if task is not None and not flags(_task_text(task, 200), "tool", meaning=False):
        known = request.content if request else ""
        yield lambda width: _task_text(replace(task, steps=task.steps[-1:]), width, known=known)
    question = _question_at_the_end(answer) if answer else ""
    if answer is not None and question and not flags(question, "assistant", meaning=False):
        yield lambda width: f"Left open: “{shown_text(question, width)}” ({answer.id})"
    if request is not None and not end.is_answered:
        yield lambda _: "It has no answer yet."


def _question_at_the_end(answer: Turn) -> str:
    """Return the last sentence of an answer if it is a question, else an empty text."""
    text = answer.content[-_READ_CHARS:].rstrip(" \n*_`)\"'”»")
    spans = list(sentences(text))
    last = text[slice(*spans[-1])].strip() if spans else ""
    return last if last.endswith(_QUESTION_MARKS) else ""


def _task_text(task: OpenTask, width: int, *, known: str = "") -> str:
    """Return a sentence: `Task 003 “fix the login test” is not marked as done: “run the tests” (003-N4).`

    A goal that is in the `known` text is left out.
    """
    goal = shown_text(task.goal, width)
    goal = "" if task.goal in shown_text(known, _READ_CHARS) else f" “{goal}”"
    steps = ", ".join(f"“{shown_text(step.title, width)}” ({step.id})" for step in task.steps)
    return f"Task {task.id}{goal} is not marked as done" + (f": {steps}." if steps else ".")


# --- the end ----------------------------------------------------------------------------------------


def ending(
    context: SearchContext,
    continuity: Continuity,
    counter: TokenCounter,
    *,
    shown: str = "",
    in_context: Collection[str] = (),
    is_compacted: bool = False,
) -> list[RecallLine]:
    """Return lines with the end of the session to continue, without what is in `shown`.

    What was left open comes first, then the end of the last answer, the last request, and earlier turns. Turns
    `in_context` are left out. If `is_compacted`, the session to continue is the current one.
    """
    if is_compacted and continuity.session is not None:
        title = "This session, before its context was compacted"
        end = _read_end(context, continuity, continuity.session, title, in_context)
    else:
        end = next(_ends(context, continuity, skip_current=True), None)
    if end is None:
        return []
    lines: list[RecallLine] = []
    if end.task is not None and not all(f"({step.id})" in shown for step in end.task.steps):
        text = f"{_task_text(end.task, 110)} expand_node opens its steps."
        lines.append(RecallLine(group="end", id=end.task.id, text=text, source="tool"))
    turns = [_cut(end.answer, counter, keeps_end=True)] if end.answer else []
    if end.request is not None and shown_text(end.request.content, _READ_CHARS) not in shown:
        turns.append(_cut(end.request, counter))
    turns += [_cut(turn, counter) for turn in end.earlier]
    lines += of_turns(turns, words=frozenset(), widths=(_READ_CHARS,), group="end")
    head = RecallLine(group="end", id=end.name, text=f"{end.title}, {end.name}, ended so, latest first:")
    return [head, *lines] if lines else []


def _cut(turn: Turn, counter: TokenCounter, *, keeps_end: bool = False) -> Turn:
    """Return a turn with the beginning or the end of its text, at most `_TURN_TOKENS`."""
    text = turn.content[-_READ_CHARS:] if keeps_end else turn.content[:_READ_CHARS]
    while not counter.fits(text, _TURN_TOKENS):
        width = len(text) * 3 // 4
        text = text[-width:].partition(" ")[2] or text[-width:] if keeps_end else text[:width]
    if len(text) < len(turn.content.strip()):
        text = f"…{text.lstrip()}" if keeps_end else f"{text.rstrip()}…"
    return replace(turn, content=text)


# --- the sessions -----------------------------------------------------------------------------------


def _ends(context: SearchContext, continuity: Continuity, *, skip_current: bool) -> Iterator[_SessionEnd]:
    """Yield the ends of sessions that had a request, the session to continue first."""
    for project in (None,) if continuity.project is None else (continuity.project, ""):
        for info in _latest(context, project):
            if skip_current and info.session == continuity.session:
                continue
            title = f"Last {'session in this project' if project else 'conversation'}, "
            title += day_in_words(info.last.astimezone().date())
            if end := _read_end(context, continuity, info.session, title):
                yield end


def _latest(context: SearchContext, project: str | None) -> list[SessionInfo]:
    rows = context.store.read(context.space, turn_rows.sessions, project=project, limit=_SESSIONS)
    return sorted(rows, key=lambda info: info.last, reverse=True)


def _read_end(
    context: SearchContext, continuity: Continuity, session: str, title: str, in_context: Collection[str] = ()
) -> _SessionEnd | None:
    """Return the end of a session; None if nothing was requested in it."""
    turns = context.store.read(
        context.space, turn_rows.last_turns, session, limit=_TURNS + len(in_context), roles=("user", "assistant")
    )
    others = turns_of_others(context.store, context.space, turns)
    allowed = without_quarantined(context, [turn for turn in turns if turn.id not in {*others, *in_context}])
    said = [turn for turn in allowed if small_talk_kind(turn.content) is None]
    request = next((turn for turn in reversed(said) if turn.role == "user"), None)
    if request is None and not any(turn.role == "user" and is_continuation(turn.content) for turn in allowed):
        return None
    after = said[said.index(request) + 1 :] if request else said
    before = said[: said.index(request)] if request else []
    return _SessionEnd(
        title=title,
        name=session,
        request=request,
        answer=after[-1] if after else None,
        is_answered=request is None or any(turn.role == "assistant" for turn in turns[turns.index(request) + 1 :]),
        earlier=before[-_EARLIER:][::-1],
        task=continuity.open_task(session),
    )
