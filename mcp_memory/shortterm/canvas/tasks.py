"""Chooses the task, canvas and node of a call, and detects where a task ends and another begins.

A task is found by its goal, its label or its number. A label is derived from the goal; two tasks whose labels were
cut to the same 30 characters remain distinct, because their goals differ.

`route_call` reads the store and writes nothing. Its result is committed with the record: the canvas with the step on
it, and a note of the step. The commit checks `row.version`; after a conflict the call is routed again.

`boundary` reads the messages since the last step. It is pure, deterministic and cautious: when in doubt the task
continues. The user's words count; the agent's only to finish a task. Text in code, in quotes and far down a long
message is skipped. Three things begin a new task: a phrase such as "next task: …" or "let's move on to …"; "now …"
after a task was declared done, or a request in a later message; and "now let's build …" that shares no word with the
task. "Back to …" resumes the earlier task that its words name. A finished task continues until something else begins.
The phrases are in `boundaries.txt`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import normalize, one_line
from mcp_memory.core.types import CanvasRow, OpenStep, OpenTask, Role, StepStatus, Turn
from mcp_memory.language import patterns_of
from mcp_memory.language.words import base_terms, function_words
from mcp_memory.shortterm.canvas.flowchart import GOAL_LIMIT, TITLE_LIMIT, Canvas, clean, goal_of, padded
from mcp_memory.shortterm.canvas.folding import members, nodes_of
from mcp_memory.shortterm.canvas.placement import CallIntent, CanvasStep, StepNote, latest, place
from mcp_memory.shortterm.canvas.state import CanvasState, complete, current_state, row_of
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, record_rows, turn_rows
from mcp_memory.store.values import CanvasChange

LABEL_LIMIT = 30
TASK_LIMIT = 200
MAX_TASKS = 1000
_LAST_TURNS, _OPEN_STEPS = 4, 5

_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_PATH = re.compile(r"/\S*|~[/\\].*|\\.*|[A-Za-z]:(?:[\\/].*|\S*)|(?:.*[\\/])?\.{1,2}(?:[\\/].*)?", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChoice:
    """The canvas to continue, or None for a new canvas with this label and goal."""

    row: CanvasRow | None
    label: str
    goal: str


def choose_task(
    *, task: str | None, active: CanvasRow | None, earlier: Sequence[CanvasRow], goal_hint: str, tool: str
) -> TaskChoice:
    """Return the task of a call.

    `active` is the session's current canvas, `earlier` are its other canvases; `task` names one of them, or a new task.
    Without it the active canvas continues; without either, the hint or the tool names a new task. Raises InvalidInput
    as `check_task` does.
    """
    if task is None:
        goal = clean(goal_hint, GOAL_LIMIT) or f"Work with {clean(tool, 60)}"
    else:
        goal = check_task(task)
        rows = [*([active] if active else []), *earlier]
        active = find_task(rows, goal)
    if active is not None:
        return TaskChoice(row=active, label=active.label, goal=goal)
    return TaskChoice(row=None, label=label_of(goal), goal=goal)


def find_task(rows: Sequence[CanvasRow], task: str) -> CanvasRow | None:
    """Return the first row with this number (`003`), label, file, address or goal, or the same terms; else None."""
    for row in rows:
        number = padded(row.number)
        if task in (number, f"{number}-{row.label}", _mmd_path(row.number, row.label), _canvas_uri(row.number)):
            return row
    key = _kebab_case(task) or task
    for row in rows:
        if task == row.label or key == (_kebab_case(goal := _goal(row)) or goal):
            return row
    terms = content(task)
    return next((row for row in rows if len(terms) > 1 and content(_goal(row)) == terms), None)


def _find_earlier(rows: Sequence[CanvasRow], words: str) -> CanvasRow | None:
    """Return the task that "back to `words`" means: the first row if `words` is empty, None when in doubt."""
    if not words:
        return rows[0] if rows else None
    if row := find_task(rows, words):
        return row
    terms = content(words)
    shared = [(len(terms & content(f"{_goal(row)} {row.label}")), row) for row in rows]
    most = max((count for count, _ in shared), default=0)
    best = [row for count, row in shared if count == most]
    return best[0] if len(best) == 1 and 2 * most >= len(terms) > 0 else None


def canvas_address(store: Store, number: int, label: str) -> str:
    """Return the address of a canvas: its path in the space's folder, or a resource URI if the store has no files."""
    return _mmd_path(number, label) if store.has_files else _canvas_uri(number)


def _canvas_uri(number: int) -> str:
    return f"memory://canvas/{padded(number)}"


def _mmd_path(number: int, label: str) -> str:
    return f"mmds/{padded(number)}-{label}.mmd"


def find_canvas(store: Store, space: str, *, task: str | None, session: str | None) -> CanvasRow:
    """Return the canvas of a task, preferably of the session. Raises NotFound if no canvas matches.

    Without a task, return the active canvas, else the newest canvas, of the session; without a session, of the space.
    """
    if task is None:
        if active := store.read(space, canvas_rows.active_canvas, session):
            return active
        if newest := store.read(space, canvas_rows.list_canvases, session=session, limit=1):
            return newest[0]
        rows = store.read(space, canvas_rows.list_canvases)
        of = f"Session {clean(session, 60)!r}" if session else "This space"
        raise NotFound(
            f"{of} has no task. {known_tasks(rows)} offload_tool_result starts one; what was said is found by recall."
        )
    rows = store.read(space, canvas_rows.list_canvases, limit=MAX_TASKS)
    own = [row for row in rows if row.session == session]
    if row := find_task(own, clean(task, 200)) or find_task(rows, clean(task, 200)):
        return row
    raise NotFound(f"There is no task {clean(task, 60)!r}. {known_tasks(rows)}")


def open_task(store: Store, space: str, session: str) -> OpenTask | None:
    """Return the task of a session that was changed last, if it is not done and nobody has said since that it is."""
    rows = store.read(space, canvas_rows.list_canvases, session=session, limit=1)
    if not rows or rows[0].status == "done":
        return None
    turns = store.read(space, turn_rows.last_turns, session, limit=_LAST_TURNS, roles=("user", "assistant"))
    since: list[tuple[Role, str]] = [(turn.role, turn.content) for turn in turns if turn.learned_at > rows[0].updated]
    if boundary(since, about=()).done:
        return None
    try:
        canvas = current_state(store, space, rows[0]).canvas
    except Damaged:
        return None
    steps = [OpenStep(node.id, node.title) for node in canvas.nodes if node.status in ("doing", "paused")]
    return OpenTask(id=padded(canvas.number), goal=canvas.task_goal, steps=tuple(steps[-_OPEN_STEPS:]))


def check_task(task: str) -> str:
    """Return the cleaned name of a task. Raises InvalidInput if it is a path or a device, empty or too long."""
    if problem := _problem(task):
        raise InvalidInput(
            f"task {clean(task, 40)!r} {problem}. Say in a few words what is being done, such as 'fix the login test'."
        )
    return clean(task, GOAL_LIMIT)


def goals_in(message: str) -> set[str]:
    """Return the goals that a user's message may give to an unnamed task: the whole message, or any of its requests."""
    goals = {clean(mask(one_line(message, GOAL_CHARS)), GOAL_LIMIT)}
    for clause in _clauses(message):
        firm = _patterns()["hesitates"].sub("", clause, count=1)
        requests = [clause, firm]
        requests += [firm[start.end() :] for kind in ("new", "now") if (start := _patterns()[kind].match(firm))]
        goals |= {clean(mask(goal), GOAL_LIMIT) for request in requests if (goal := _goal_of_request(request))}
    return goals - {""}


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
    """Return the goal in kebab-case, at most 30 characters, whole words if possible: `fix-failing-login-test`."""
    words = _kebab_case(goal)
    label = ""
    for word in words.split("-"):
        longer = f"{label}-{word}" if label else word
        if len(longer) > LABEL_LIMIT:
            break
        label = longer
    label = label or words[:LABEL_LIMIT].strip("-") or "task"
    return f"{label}-task" if _RESERVED.fullmatch(label) else label


def known_tasks(rows: Sequence[CanvasRow]) -> str:
    """Return the list of tasks for an error message: `Known tasks: 003 fix-login (doing), 002 …`."""
    shown = ", ".join(f"{padded(row.number)} {row.label} ({row.status})" for row in rows[:8])
    return f"Known tasks: {shown}{' …' if len(rows) > 8 else ''}." if rows else "There is no task yet."


def content(text: str) -> frozenset[str]:
    """Return the index terms of a text without function words: `fix`, `login`, `test` of `Fix the login tests`."""
    return frozenset(base_terms(text)) - function_words(("en", "de", "fr", "es", "it", "pt", "nl", "ru"))


def _goal(row: CanvasRow) -> str:
    return goal_of(row.text) or row.label  # a damaged canvas is still found by its label


def _kebab_case(text: str) -> str:
    """Return letters, marks and digits of any script in lower case, everything else as one hyphen."""
    folded = normalize("NFKC", text).casefold()
    kept = "".join(char if unicodedata.category(char)[0] in "LMN" else "-" for char in folded)
    return re.sub("-+", "-", normalize("NFC", kept)).strip("-")


RECENT_TITLES = 12
MAX_EARLIER_TASKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingCall:
    """A tool call (see `calls`), and the agent's arguments about its task and step."""

    session: str
    tool: str
    title: str
    summary: str
    intent: CallIntent
    now: datetime
    task: str | None = None
    step: str | None = None
    after: tuple[str, ...] = ()
    status: StepStatus | None = None
    goal_hint: str = ""
    turns: tuple[Turn, ...] = ()
    """The last turns of the session, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedCall:
    """The routing of a call: arguments of `record_rows.commit_step`. `row` has the version on which it is based."""

    row: CanvasRow
    node: str
    step: str | None
    left: CanvasChange | None
    """The change of the task that the session leaves, if any: done if the user or agent said so, else paused."""


def route_call(store: Store, space: str, call: IncomingCall) -> RoutedCall:
    """Return the canvas and node of a call. Raises InvalidInput for a task that is a path, and for unknown ids."""
    choice, left = _choose(store, space, call)
    if choice.row is None:
        number, now = store.read(space, canvas_rows.next_number), call.now
        state = CanvasState(canvas=Canvas(number, choice.goal, "doing", now, now))
        row = CanvasRow(
            number=number, label=choice.label, session=call.session, text="", status="doing", updated=now, version=0
        )
    else:
        row, state = replace(choice.row, session=call.session), current_state(store, space, choice.row)
    placed = place(state.canvas, _step(store, space, call, state))
    # A new step unfolds the canvas and the groups around its node.
    groups = {id_: group for id_, group in state.groups.items() if placed.node not in members(state.groups, id_)}
    row = row_of(CanvasState(canvas=placed.canvas, groups=groups), row)
    return RoutedCall(row=row, node=placed.node, step=placed.note.text(), left=left)


def _leave(store: Store, space: str, row: CanvasRow, *, is_done: bool, now: datetime) -> CanvasChange | None:
    try:
        state = current_state(store, space, row)
    except Damaged:  # left as it is; `doctor` reports it
        return None
    if is_done:
        kind, after = "completed", complete(state, now) if state.canvas.status != "done" else None
    else:
        kind, after = "paused", replace(state, canvas=replace(state.canvas, status="paused"))
        after = after if state.canvas.status == "doing" else None
    return None if after is None else CanvasChange(row=row_of(after, row), kind=kind)


def _choose(store: Store, space: str, call: IncomingCall) -> tuple[TaskChoice, CanvasChange | None]:
    """Return the task of the call, and the change of the task that the session leaves for it."""
    active = store.read(space, canvas_rows.active_canvas, call.session)
    task = None if call.task is None else check_task(call.task)
    verdict = _boundary_since(store, space, call.turns, active) if active and task is None else GOES_ON
    choice = None
    if verdict.back is not None:
        row = _find_earlier(_other_tasks(store, space, call, active), verdict.back)
        choice = TaskChoice(row=row, label=row.label, goal="") if row else None
    if verdict.new:
        task = mask(verdict.new)
    if choice is None:
        stays = task is None or (active and find_task([active], task))
        choice = choose_task(
            task=task,
            active=active,
            earlier=[] if stays else _other_tasks(store, space, call, active),
            goal_hint=call.goal_hint,
            tool=call.tool,
        )
    if active is None or (choice.row and choice.row.number == active.number):
        return choice, None
    return choice, _leave(store, space, active, is_done=verdict.done, now=call.now)


def _boundary_since(store: Store, space: str, turns: Sequence[Turn], active: CanvasRow) -> BoundaryVerdict:
    """Return whether the messages since the active task's last step end it, or begin or resume another task."""
    since: list[tuple[Role, str]] = [(turn.role, turn.content) for turn in turns if turn.learned_at > active.updated]
    if not any(role == "user" for role, _ in since):
        return GOES_ON
    canvas = current_state(store, space, active).canvas
    texts = [canvas.task_goal, *(node.title for node in canvas.nodes[-RECENT_TITLES:])]
    return boundary(since, about=content(" ".join(texts)))


def _other_tasks(store: Store, space: str, call: IncomingCall, active: CanvasRow | None) -> list[CanvasRow]:
    """Return the session's other tasks, the most recent first."""
    rows = store.read(space, canvas_rows.list_canvases, session=call.session, limit=MAX_EARLIER_TASKS)
    return [row for row in rows if active is None or row.number != active.number]


def _step(store: Store, space: str, call: IncomingCall, state: CanvasState) -> CanvasStep:
    last = latest(state.canvas)
    last_note = store.read(space, record_rows.last_step, last.id) if last and call.step is None else None
    after: dict[str, str] = {}
    for text in call.after:  # such as `003-N2 if red`: a node or group, and the label of the edge
        id_, _, label = text.strip().partition(" ")
        nodes = nodes_of(state.canvas, state.groups, id_)
        if nodes:
            after[nodes[-1]] = label
        else:
            after[text] = ""  # `place` refuses it
    return CanvasStep(
        title=call.title,
        summary=call.summary,
        now=call.now,
        name=clean(call.step or "", TITLE_LIMIT) or None,
        after=after,
        status=call.status,
        intent=call.intent,
        before=StepNote.read(last_note).routine,
    )


# --- boundaries of tasks ----------------------------------------------------------------------------

MESSAGE_CHARS = 600
"""Characters of a message that are read."""
GOAL_CHARS = 120

_SKIPPED = re.compile(
    r"```.*?(?:```|$)|`[^`\n]*`|^\s*>.*$|\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”|«[^»\n]{0,200}»", re.DOTALL | re.MULTILINE
)
_ASKS = re.compile(r"[?？]\s*$")
_PUNCTUATION = " \t,:;.!?–—-：，。、"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryVerdict:
    """Whether the user goes on with the current task.

    `new` is the goal of a new task. `back` has the words that name an earlier task to resume, "" for the previous task.
    If both are None, the task continues. `done` is True if somebody said that the current task is finished.
    """

    new: str | None = None
    back: str | None = None
    done: bool = False


GOES_ON = BoundaryVerdict()


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Return the patterns by kind; each has the alternatives of all languages."""
    sources: dict[str, list[str]] = {}
    for head, source in patterns_of("mcp_memory.shortterm.canvas", "boundaries.txt"):
        sources.setdefault(head.partition(" ")[0], []).append(source)
    ends = {"also": r"(?!\w)", "thanks": r"(?!\w)"}
    return {
        kind: re.compile(f"(?:{'|'.join(f'(?:{source})' for source in alternatives)}){ends.get(kind, '')}", re.I)
        for kind, alternatives in sources.items()
    }


def boundary(messages: Sequence[tuple[Role, str]], *, about: Collection[str]) -> BoundaryVerdict:
    """Return the verdict on these messages, oldest first; `about` are the content terms of the current task."""
    done_before, verdict = False, GOES_ON
    for role, text in messages:
        done_here = False
        waiting = False  # for the name of a task that was announced
        for clause in _clauses(text):
            if _says_done(clause) and (role == "user" or " with " not in clause):
                done_here = True
            elif role == "user":
                verdict, waiting = _read_clause(
                    clause, verdict, waiting=waiting, done_here=done_here, done_before=done_before, about=about
                )
        done_before = done_before or done_here
    return replace(verdict, done=done_before)


def _read_clause(
    clause: str, verdict: BoundaryVerdict, *, waiting: bool, done_here: bool, done_before: bool, about: Collection[str]
) -> tuple[BoundaryVerdict, bool]:
    """Return the verdict after one clause of the user, and whether the next clause has to name a task."""
    patterns = _patterns()
    firm = patterns["hesitates"].sub("", clause, count=1)
    if match := patterns["back"].match(firm):
        words = _strip_request(next((group for group in match.groups() if group), "") or firm[match.end() :])
        return BoundaryVerdict(back="" if patterns["earlier"].match(words) or not words else words), False
    if match := patterns["new"].match(firm):
        rest = firm[match.end() :]
        goal = _goal_of_request(rest)
        return (BoundaryVerdict(new=goal), False) if goal else (verdict, not _strip_request(rest))
    goal = _goal_of_request(clause)
    if waiting and goal:
        return BoundaryVerdict(new=goal), False
    if match := patterns["now"].match(clause):
        goal = _goal_of_request(clause[match.end() :])
        begins = patterns["together"].match(clause) and patterns["begins"].match(goal)
        new = done_here or done_before or (begins and _is_unrelated(goal, about))
    else:
        follows = patterns["also"].match(clause) or patterns["thanks"].match(clause)
        fresh = done_before and not done_here and verdict == GOES_ON and not follows
        new = fresh and _is_unrelated(goal, about)
    return (BoundaryVerdict(new=goal), False) if goal and new else (verdict, False)


def _is_unrelated(goal: str, about: Collection[str]) -> bool:
    terms = content(goal)
    return len(terms) >= 2 and not terms & frozenset(about)


def _says_done(clause: str) -> bool:
    patterns = _patterns()
    return bool(patterns["done"].match(clause)) and not _ASKS.search(clause) and not patterns["hedged"].search(clause)


def _clauses(text: str) -> Iterator[str]:
    patterns = _patterns()
    for part in patterns["breaks"].split(_SKIPPED.sub(" ", text[: 4 * MESSAGE_CHARS])[:MESSAGE_CHARS]):
        if clause := part.strip():
            lead = patterns["lead"].match(clause)
            yield ((clause[lead.end() :] if lead else "") or clause).replace("’", "'")


def _strip_request(words: str) -> str:
    """Return a request without punctuation, politeness and closing phrases."""
    words = _patterns()["at_the_end"].sub("", words.strip(_PUNCTUATION))
    while (polite := _patterns()["polite"].match(words)) and polite.end() < len(words):
        words = words[polite.end() :]
    return words.strip(_PUNCTUATION)


def _goal_of_request(words: str) -> str:
    """Return the name of the task that a request begins, "" for a report or the next part of the same task."""
    patterns = _patterns()
    goal = clean(_strip_request(words), GOAL_CHARS)
    continues = patterns["told"].match(goal) or patterns["part"].match(goal)
    return goal if sum(map(str.isalpha, goal)) >= 2 and not continues and _problem(goal) is None else ""
