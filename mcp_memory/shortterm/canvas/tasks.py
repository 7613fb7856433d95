"""Which canvas a call belongs to: a task by its words, its label or its number. It only reads.

A label is made of the task's words; two tasks whose labels were cut to the same 30 characters stay two, because
they are told apart by their goals.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.types import CanvasRow
from mcp_memory.language.function_words import function_words
from mcp_memory.language.words import base_terms
from mcp_memory.shortterm.canvas.flowchart import GOAL_LIMIT, goal_of, padded
from mcp_memory.shortterm.canvas.label import clean
from mcp_memory.store.protocol import Store

__all__ = [
    "Choice",
    "check_task",
    "choose_task",
    "content",
    "find_canvas",
    "find_earlier",
    "find_task",
    "is_task",
    "known_tasks",
    "label_of",
    "mmd_path",
]

LABEL_LIMIT = 30
TASK_LIMIT = 200
TASKS_LOOKED_AT = 1000

_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_PATH = re.compile(r"/\S*|~[/\\].*|\\.*|[A-Za-z]:(?:[\\/].*|\S*)|(?:.*[\\/])?\.{1,2}(?:[\\/].*)?", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The canvas to go on with, or None for a new one with this label and goal."""

    row: CanvasRow | None
    label: str
    goal: str


def choose_task(
    *, task: str | None, active: CanvasRow | None, earlier: Sequence[CanvasRow], goal_hint: str, tool: str
) -> Choice:
    """Return the task of a call.

    `active` is the session's canvas, `earlier` those of the same session that may be taken up again. With no
    `task`, the active one goes on, and where there is none the hint or the tool names a new one.
    Raises InvalidInput for a task that is named like a path.
    """
    if task is None:
        goal = clean(goal_hint, GOAL_LIMIT) or f"Work with {clean(tool, 60)}"
    else:
        goal = check_task(task)
        rows = [*([active] if active else []), *earlier]
        active = find_task(rows, goal)
    if active is not None:
        return Choice(row=active, label=active.label, goal=goal)
    return Choice(row=None, label=label_of(goal), goal=goal)


def find_task(rows: Sequence[CanvasRow], task: str) -> CanvasRow | None:
    """Return the first row that has this number (`003`), label, file name or goal, or a goal of the same words."""
    for row in rows:
        if task in (padded(row.number), f"{padded(row.number)}-{row.label}", mmd_path(row.number, row.label)):
            return row
    wanted = _words(task) or task
    for row in rows:
        if task == row.label or wanted == (_words(goal := _goal(row)) or goal):
            return row
    said = content(task)
    return next((row for row in rows if len(said) > 1 and content(_goal(row)) == said), None)


def find_earlier(rows: Sequence[CanvasRow], words: str) -> CanvasRow | None:
    """Return the task that is meant by words that come back to it: the first row for none, None when in doubt."""
    if not words:
        return rows[0] if rows else None
    if found := find_task(rows, words):
        return found
    said = content(words)
    shared = [(len(said & content(f"{_goal(row)} {row.label}")), row) for row in rows]
    best = max((count for count, _ in shared), default=0)
    meant = [row for count, row in shared if count == best]
    return meant[0] if len(meant) == 1 and 2 * best >= len(said) > 0 else None


def find_canvas(store: Store, space: str, *, task: str | None, session: str | None) -> CanvasRow:
    """Return the canvas that is meant: the task's, else the active one, else the newest; the session's first."""
    if task is None:
        if active := store.active_canvas(space, session):
            return active
        if newest := store.canvases(space, session=session, limit=1):
            return newest[0]
        rows = store.canvases(space)
        of = f"Session {clean(session, 60)!r}" if session else "This space"
        raise NotFound(
            f"{of} has no task. {known_tasks(rows)} offload_tool_result starts one; what was said is found by recall."
        )
    rows = store.canvases(space, limit=TASKS_LOOKED_AT)
    own = [row for row in rows if row.session == session]
    if found := find_task(own, clean(task, 200)) or find_task(rows, clean(task, 200)):
        return found
    raise NotFound(f"There is no task {clean(task, 60)!r}. {known_tasks(rows)}")


def check_task(task: str) -> str:
    """Return the task's words, cleaned. Raises InvalidInput for a name that is a path, a device, empty or long."""
    if problem := _problem(task):
        raise InvalidInput(
            f"task {clean(task, 40)!r} {problem}. Say in a few words what is being done, such as 'fix the login test'."
        )
    return clean(task, GOAL_LIMIT)


def is_task(words: str) -> bool:
    """Tell whether `check_task` would take them."""
    return _problem(words) is None


def _problem(task: str) -> str | None:
    if not task.strip():
        return "is empty"
    if len(task) > TASK_LIMIT:
        return f"has {len(task):,} characters; {TASK_LIMIT} are allowed"
    if _CONTROL.search(task):
        return "has a control character or a line break"
    if _PATH.fullmatch(task.strip()):
        return "is a path"
    return "is a device name on Windows" if _RESERVED.fullmatch(task.strip()) else None


def label_of(goal: str) -> str:
    """Return the words in kebab-case, at most 30 characters, whole words where they fit: `fix-failing-login-test`."""
    label = ""
    for word in _words(goal).split("-"):
        longer = f"{label}-{word}" if label else word
        if len(longer) > LABEL_LIMIT:
            break
        label = longer
    label = label or _words(goal)[:LABEL_LIMIT].strip("-") or "task"
    return f"{label}-task" if _RESERVED.fullmatch(label) else label


def mmd_path(number: int, label: str) -> str:
    """Return where the canvas is, within the space's folder."""
    return f"mmds/{padded(number)}-{label}.mmd"


def known_tasks(rows: Sequence[CanvasRow]) -> str:
    """Return the tasks for an error's text: `003 fix-login (doing), 002 …`."""
    shown = ", ".join(f"{padded(row.number)} {row.label} ({row.status})" for row in rows[:8])
    return f"Known tasks: {shown}{' …' if len(rows) > 8 else ''}." if rows else "There is no task yet."


def content(text: str) -> frozenset[str]:
    """Return the terms of a text that tell, as the index has them: `Fix the login tests` is `fix login test`."""
    return frozenset(base_terms(text)) - _telling_nothing()


@cache
def _telling_nothing() -> frozenset[str]:
    return function_words(("en", "de", "fr", "es", "it", "pt", "nl", "ru"))


def _goal(row: CanvasRow) -> str:
    return goal_of(row.text) or row.label  # a torn canvas is still found by its label


def _words(text: str) -> str:
    """Letters, marks and digits of any script in lower case, everything else one hyphen."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(char if unicodedata.category(char)[0] in "LMN" else "-" for char in folded)
    return re.sub("-+", "-", unicodedata.normalize("NFC", kept)).strip("-")
