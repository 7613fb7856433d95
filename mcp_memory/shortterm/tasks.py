"""Which canvas a call belongs to: a task by its words, its label or its number. It only reads.

A label is made of the task's words; two tasks whose labels were cut to the same 30 characters stay two, because
they are told apart by their goals.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_memory.errors import InvalidInput, NotFound
from mcp_memory.shortterm.canvas import GOAL_LIMIT, padded, parse
from mcp_memory.shortterm.label import clean
from mcp_memory.store.protocol import Store
from mcp_memory.types import CanvasRow

__all__ = [
    "Choice",
    "check_task",
    "choose_task",
    "find_canvas",
    "find_task",
    "known_tasks",
    "label_of",
    "mmd_path",
    "number_in",
]

LABEL_LIMIT = 30
TASK_LIMIT = 200
TASKS_LOOKED_AT = 1000

_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_PATH = re.compile(r"/\S*|~[/\\].*|\\.*|[A-Za-z]:(?:[\\/].*|\S*)|(?:.*[\\/])?\.{1,2}(?:[\\/].*)?", re.DOTALL)
_NUMBERED = re.compile(r"(?:mmds/)?(\d{3,9})(?:-.*)?")
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
    """Return the first row that has this number (`003`), label, file name or goal."""
    for row in rows:
        if task in (padded(row.number), f"{padded(row.number)}-{row.label}", mmd_path(row.number, row.label)):
            return row
    wanted = _words(task) or task
    for row in rows:
        if task == row.label or wanted == (_words(goal := _goal(row)) or goal):
            return row
    return None


def find_canvas(store: Store, space: str, *, task: str | None, session: str | None) -> CanvasRow:
    """Return the canvas that is meant: the task's, else the active one, else the newest; the session's first."""
    if task is None:
        if active := store.active_canvas(space, session):
            return active
        if newest := store.canvases(space, session=session, limit=1):
            return newest[0]
        rows = store.canvases(space)
        of = f"Session {clean(session, 60)!r}" if session else "This space"
        raise NotFound(f"{of} has no task. {known_tasks(rows)} offload_tool_result starts one.")
    rows = store.canvases(space, limit=TASKS_LOOKED_AT)
    own = [row for row in rows if row.session == session]
    if found := find_task(own, clean(task, 200)) or find_task(rows, clean(task, 200)):
        return found
    raise NotFound(f"There is no task {clean(task, 60)!r}. {known_tasks(rows)}")


def check_task(task: str) -> str:
    """Return the task's words, cleaned. Raises InvalidInput for a name that is a path, a device, empty or long."""
    problem = None
    if not task.strip():
        problem = "is empty"
    elif len(task) > TASK_LIMIT:
        problem = f"has {len(task):,} characters; {TASK_LIMIT} are allowed"
    elif _CONTROL.search(task):
        problem = "has a control character or a line break"
    elif _PATH.fullmatch(task.strip()):
        problem = "is a path"
    elif _RESERVED.fullmatch(task.strip()):
        problem = "is a device name on Windows"
    if problem:
        raise InvalidInput(
            f"task {clean(task, 40)!r} {problem}. Say in a few words what is being done, such as 'fix the login test'."
        )
    return clean(task, GOAL_LIMIT)


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


def number_in(task: str) -> int | None:
    """Return the canvas number in `003`, `003-fix-login` or `mmds/003-fix-login.mmd`."""
    found = _NUMBERED.fullmatch(task)
    return int(found[1]) if found else None


def mmd_path(number: int, label: str) -> str:
    """Return where the canvas is, within the space's folder."""
    return f"mmds/{padded(number)}-{label}.mmd"


def known_tasks(rows: Sequence[CanvasRow]) -> str:
    """Return the tasks for an error's text: `003 fix-login (doing), 002 …`."""
    shown = ", ".join(f"{padded(row.number)} {row.label} ({row.status})" for row in rows[:8])
    return f"Known tasks: {shown}{' …' if len(rows) > 8 else ''}." if rows else "There is no task yet."


def _goal(row: CanvasRow) -> str:
    try:
        return parse(row.text).task_goal
    except InvalidInput:
        return row.label  # a torn canvas is still found by its label


def _words(text: str) -> str:
    """Letters, marks and digits of any script in lower case, everything else one hyphen."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(char if unicodedata.category(char)[0] in "LMN" else "-" for char in folded)
    return re.sub("-+", "-", unicodedata.normalize("NFC", kept)).strip("-")
