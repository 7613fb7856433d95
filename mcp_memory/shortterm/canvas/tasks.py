"""Choose the task, canvas and node of a call; detect where one task ends and another begins.

A task is found by its words, its label or its number. A label is made of the task's words; two tasks whose labels were
cut to the same 30 characters stay two, because their goals differ.

`route_call` reads the store and writes nothing. Its result is ready to be committed with the record: the canvas with
the step on it, and a note of the step. `row.version` guards it: where another writer was first, the call is routed
again.

`boundary` reads the messages since the last step. It is pure and deterministic, and cautious: when in doubt the task
goes on. The user's words count; the agent's only where they say that the task is done. Text in code, in quotes and far
down a long message is skipped. Three things begin a new task: words that say so ("next task: …", "let's move on to
…"); "now …" after a task was said to be done, or a request in a later message than the one that said so; and "now let's
build …" that shares no word with the task. "Back to …" takes up the earlier task that its words name. A task that is
said to be done goes on until something else begins: steps until then belong to it. The words are in `boundaries.txt`.
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
from mcp_memory.core.types import CanvasRow, Role, StepStatus, Turn
from mcp_memory.language import patterns_of
from mcp_memory.language.words import base_terms, function_words
from mcp_memory.shortterm.addresses import canvas_uri, mmd_path
from mcp_memory.shortterm.canvas.flowchart import GOAL_LIMIT, TITLE_LIMIT, Canvas, clean, goal_of, padded
from mcp_memory.shortterm.canvas.folding import nodes_of, opened
from mcp_memory.shortterm.canvas.placement import CallIntent, CanvasStep, StepNote, latest, place
from mcp_memory.shortterm.canvas.state import CanvasState, complete, current_state, row_of
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import CanvasChange

LABEL_LIMIT = 30
TASK_LIMIT = 200
TASKS_LOOKED_AT = 1000

_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_PATH = re.compile(r"/\S*|~[/\\].*|\\.*|[A-Za-z]:(?:[\\/].*|\S*)|(?:.*[\\/])?\.{1,2}(?:[\\/].*)?", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChoice:
    """The canvas to go on with, or None for a new one with this label and goal."""

    row: CanvasRow | None
    label: str
    goal: str


def choose_task(
    *, task: str | None, active: CanvasRow | None, earlier: Sequence[CanvasRow], goal_hint: str, tool: str
) -> TaskChoice:
    """Return the task of a call.

    `active` is the session's canvas, `earlier` those of the same session that may be taken up again. Without `task` the
    active one goes on; without either, the hint or the tool names a new one.
    Raises InvalidInput for a task that is named like a path.
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
    """Return the first row that has this number (`003`), label, file, address or goal, or a goal of the same words."""
    for row in rows:
        number = padded(row.number)
        if task in (number, f"{number}-{row.label}", mmd_path(row.number, row.label), canvas_uri(row.number)):
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


def goals_in(said: str) -> set[str]:
    """Return the goals that a task without a name may get from a user's message: all of it, or one of its requests."""
    goals = {clean(mask(one_line(said, GOAL_WORDS)), GOAL_LIMIT)}
    for clause in _clauses(said):
        firm = _patterns()["hesitates"].sub("", clause, count=1)
        starts = [firm[found.end() :] for kind in ("new", "now") if (found := _patterns()[kind].match(firm))]
        goals |= {
            clean(mask(goal), GOAL_LIMIT) for words in (clause, firm, *starts) if (goal := _goal_of_request(words))
        }
    return goals - {""}


def is_task(words: str) -> bool:
    """Return whether `check_task` would take them."""
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
    folded = normalize("NFKC", text).casefold()
    kept = "".join(char if unicodedata.category(char)[0] in "LMN" else "-" for char in folded)
    return re.sub("-+", "-", normalize("NFC", kept)).strip("-")


TITLES_HEARD = 12
EARLIER_TASKS_LOOKED_AT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingCall:
    """A tool call in words (see `records`), and what the agent says of it."""

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
    said: tuple[Turn, ...] = ()
    """The last turns of the session, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedCall:
    """`step` is for `Store.commit_step`, with `row`, whose version is the one that was read."""

    row: CanvasRow
    node: str
    step: str | None
    left: CanvasChange | None
    """The task that the session leaves: done, where it was said to be, or paused until it is taken up again."""


def route_call(store: Store, space: str, call: IncomingCall) -> RoutedCall:
    """Return where the call goes. Raises InvalidInput for a task that is a path, and ids that are not there."""
    choice, left = _choose(store, space, call)
    if choice.row is None:
        row = _new_row(store.next_canvas_number(space), choice, call)
        state = CanvasState(canvas=Canvas(row.number, choice.goal, "doing", call.now, call.now))
    else:
        row, state = replace(choice.row, session=call.session), current_state(store, space, choice.row)
    placed = place(state.canvas, _step(store, space, call, state))
    # The groups that hold its node open, and so does the canvas.
    grown = CanvasState(canvas=placed.canvas, groups=opened(state.groups, placed.node))
    return RoutedCall(row=row_of(grown, row), node=placed.node, step=placed.note.text(), left=left)


def _left(store: Store, space: str, row: CanvasRow, *, is_done: bool, now: datetime) -> CanvasChange | None:
    try:
        state = current_state(store, space, row)
    except Damaged:  # it stays as it is; `doctor` tells of it
        return None
    if is_done:
        kind, after = "completed", complete(state, now) if state.canvas.status != "done" else None
    else:
        kind, after = "paused", replace(state, canvas=replace(state.canvas, status="paused"))
        after = after if state.canvas.status == "doing" else None
    return None if after is None else CanvasChange(row=row_of(after, row), kind=kind)


def _new_row(number: int, choice: TaskChoice, call: IncomingCall) -> CanvasRow:
    return CanvasRow(
        number=number, label=choice.label, session=call.session, text="", status="doing", updated=call.now, version=0
    )


# --- the task ---------------------------------------------------------------------------------------


def _choose(store: Store, space: str, call: IncomingCall) -> tuple[TaskChoice, CanvasChange | None]:
    """Return the task of the call, and the one that the session leaves for it."""
    active = store.active_canvas(space, call.session)
    task = None if call.task is None else check_task(call.task)
    heard = _heard(store, space, call, active) if active and task is None else None
    if heard and heard.back is not None:
        row = find_earlier(_others(store, space, call, active), heard.back)
        choice = TaskChoice(row=row, label=row.label, goal="") if row else None
    else:
        choice = None
    wanted = mask(heard.new) if heard and heard.new else task
    if choice is None:
        known = wanted is None or (active and find_task([active], wanted))
        choice = choose_task(
            task=wanted,
            active=active,
            earlier=[] if known else _others(store, space, call, active),
            goal_hint=call.goal_hint,
            tool=call.tool,
        )
    if active is None or (choice.row and choice.row.number == active.number):
        return choice, None
    is_done = heard is not None and heard.done
    return choice, _left(store, space, active, is_done=is_done, now=call.now)


def _heard(store: Store, space: str, call: IncomingCall, active: CanvasRow) -> BoundaryVerdict | None:
    """Return the verdict of the messages since the task's last step; None where the user said nothing."""
    since: list[tuple[Role, str]] = [
        (turn.role, turn.content) for turn in call.said if turn.learned_at > active.updated
    ]
    if not any(role == "user" for role, _ in since):
        return None

    canvas = current_state(store, space, active).canvas
    told = [canvas.task_goal, *(node.title for node in canvas.nodes[-TITLES_HEARD:])]
    return boundary(since, about=content(" ".join(told)))


def _others(store: Store, space: str, call: IncomingCall, active: CanvasRow | None) -> list[CanvasRow]:
    """The session's other tasks, the one worked on last first."""
    rows = store.canvases(space, session=call.session, limit=EARLIER_TASKS_LOOKED_AT)
    return [row for row in rows if active is None or row.number != active.number]


# --- the step ---------------------------------------------------------------------------------------


def _step(store: Store, space: str, call: IncomingCall, state: CanvasState) -> CanvasStep:
    last = latest(state.canvas)
    taken = store.last_step(space, last.id) if last and call.step is None else None
    return CanvasStep(
        title=call.title,
        summary=call.summary,
        now=call.now,
        name=clean(call.step or "", TITLE_LIMIT) or None,
        after=dict(_followed(state, each) for each in call.after),
        status=call.status,
        intent=call.intent,
        before=StepNote.read(taken).routine,
    )


def _followed(state: CanvasState, after: str) -> tuple[str, str]:
    """Split `003-N2 if red` into the node and the words on the edge; a folded group is followed at its last step."""
    id_, _, words = after.strip().partition(" ")
    nodes = nodes_of(state.canvas, state.groups, id_)
    return (nodes[-1], words) if nodes else (after, "")


LISTENED = 600
"""Characters of a message that are read."""
GOAL_WORDS = 120

_SKIPPED = re.compile(
    r"```.*?(?:```|$)|`[^`\n]*`|^\s*>.*$|\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”|«[^»\n]{0,200}»", re.DOTALL | re.MULTILINE
)
_ASKS = re.compile(r"[?？]\s*$")
_PUNCTUATION = " \t,:;.!?–—-：，。、"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryVerdict:
    """`new`: the goal of a task that begins. `back`: the words of an earlier one, "" for the one before.

    Both None: the task goes on. `done`: the task so far was said to be finished.
    """

    new: str | None = None
    back: str | None = None
    done: bool = False


GOES_ON = BoundaryVerdict()


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Return the patterns by kind, those of all languages as alternatives."""
    sources: dict[str, list[str]] = {}
    for head, source in patterns_of("mcp_memory.shortterm.canvas", "boundaries.txt"):
        sources.setdefault(head.partition(" ")[0], []).append(source)
    ends = {"also": r"(?!\w)", "thanks": r"(?!\w)"}
    return {
        kind: re.compile(f"(?:{'|'.join(f'(?:{one})' for one in found)}){ends.get(kind, '')}", re.IGNORECASE)
        for kind, found in sources.items()
    }


def boundary(said: Sequence[tuple[Role, str]], *, about: Collection[str]) -> BoundaryVerdict:
    """Return the verdict of these messages, oldest first; `about` are the content terms of the task so far."""
    done_before, verdict = False, GOES_ON
    for role, text in said:
        done_here = False
        waiting = False  # for the name of a task that was announced
        for clause in _clauses(text):
            if _says_done(clause) and (role == "user" or " with " not in clause):
                done_here = True
            elif role == "user":
                verdict, waiting = _heard_in_clause(
                    clause, verdict, waiting=waiting, done_here=done_here, done_before=done_before, about=about
                )
        done_before = done_before or done_here
    return replace(verdict, done=done_before)


def _heard_in_clause(
    clause: str, verdict: BoundaryVerdict, *, waiting: bool, done_here: bool, done_before: bool, about: Collection[str]
) -> tuple[BoundaryVerdict, bool]:
    """Return the verdict after one clause of the user's, and whether the next has to name a task."""
    patterns = _patterns()
    firm = patterns["hesitates"].sub("", clause, count=1)
    if found := patterns["back"].match(firm):
        named = next((each for each in found.groups() if each), "") or firm[found.end() :]
        words = _bare(named)
        return BoundaryVerdict(back="" if patterns["earlier"].match(words) or not words else words), False
    if found := patterns["new"].match(firm):
        rest = firm[found.end() :]
        goal = _goal_of_request(rest)
        return (BoundaryVerdict(new=goal), False) if goal else (verdict, not _bare(rest))
    goal = _goal_of_request(clause)
    if waiting and goal:
        return BoundaryVerdict(new=goal), False
    if found := patterns["now"].match(clause):
        goal = _goal_of_request(clause[found.end() :])
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
    for part in patterns["breaks"].split(_SKIPPED.sub(" ", text[: 4 * LISTENED])[:LISTENED]):
        if clause := part.strip():
            lead = patterns["lead"].match(clause)
            yield ((clause[lead.end() :] if lead else "") or clause).replace("’", "'")


def _bare(words: str) -> str:
    """Return the words without punctuation, politeness and what only rounds a request off."""
    words = _patterns()["at_the_end"].sub("", words.strip(_PUNCTUATION))
    while (found := _patterns()["polite"].match(words)) and found.end() < len(words):
        words = words[found.end() :]
    return words.strip(_PUNCTUATION)


def _goal_of_request(words: str) -> str:
    """Return the name of a task, "" where the words make none: a report, or the next part of the same task."""
    patterns = _patterns()
    goal = clean(_bare(words), GOAL_WORDS)
    continues = patterns["told"].match(goal) or patterns["part"].match(goal)
    return goal if sum(map(str.isalpha, goal)) >= 2 and not continues and is_task(goal) else ""
