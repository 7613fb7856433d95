"""Where a step goes on the canvas. Pure and deterministic: the same canvas and step give the same canvas.

Rules
    The same step (its id, or its title compared without case and white space) continues its node.
    A call without a step continues the node touched last if that is unnamed too and the call has the same intent;
    a dead end starts a new node.
    A new step follows the nodes named in `after`, or the node touched last. A dead end (`blocked`) is joined by a
    dashed edge, and the next step follows the node before it.
    When a step starts, the nodes before it become done, if they were still `doing`.

The intent of a call is read from its words. When in doubt a call starts a new node: one that changes something, or
whose outcome differs. A call without telling words has its tool and verb for an intent.

    look     reads and searches: any number of calls in a row
    change   writes to one file; a run of that file after it belongs to it
    run      runs one thing, as long as the outcome is the same
    install  installs dependencies
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, get_args

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import StepStatus
from mcp_memory.shortterm.calls import command_of, path_of, short_name, subject_of
from mcp_memory.shortterm.canvas.flowchart import TITLE_LIMIT, Canvas, Edge, Node, clean, padded

Intent = Literal["look", "change", "run", "install", "other"]

_LOOK = re.compile(
    r"(?:ag|awk|cat|cut|df|diff|dir|du|fd|file|find|grep|head|jq|less|ls|more|nl|pwd|rg|sed|sort|stat|tail|tree|wc|which)$"
)
_CHANGE = frozenset(("cp", "mkdir", "mv", "patch", "rm", "rmdir", "tee", "touch", "truncate"))
_RUN = re.compile(
    r"python|pytest|node|ruby|php|perl|bash|sh\b|make|np[mx]|yarn|pnpm|go\b|cargo|java|mvn|gradle|tox|\./"
)
_INSTALL = re.compile(
    r"(?:python[\d.]* -m )?(?:pip\d?|pipx|uv|poetry|conda|npm|pnpm|yarn|bun|cargo|go|gem|bundle|brew|apt|apt-get|dnf)"
    r"(?: pip)? (?:install|add|get|ci|sync|i)\b"
)
_GIT_LOOK = re.compile(r"git (?:-\S+ )*(?:diff|log|show|status|blame|grep|ls-files|branch|rev-parse)\b")
_GIT_CHANGE = re.compile(r"git (?:-\S+ )*(?:checkout|restore|reset|apply|stash|revert|clean)\b")
_WRITES = re.compile(r"(?<![\d&<>=-])>{1,2}\s*(?!/dev/|&)([\w./~$-]+)|\btee (?:-a )?([\w./~$-]+)")
_IN_PLACE = re.compile(r"\b(?:sed (?:-\S+ )*?(?:-[a-zA-Z]*i\b|--in-place)|perl -p?i)")
_ASIDE = re.compile(r"""\d?>+\s*(?:/dev/\S+|&\d)|"[^"]*"|'[^']*'""")
_FILE = re.compile(r"[\w./~-]*\w\.[A-Za-z]\w{0,9}\b|[\w.~-]*/[\w./~-]*\w")
_QUOTED = re.compile(r"""["']([^"'\n]{2,40})["']""")
_LOOK_TOOL = re.compile(
    r"(?:read|view|open|cat|get|list|ls|glob|grep|find|search|lookup|look|fetch|query|describe|show|browse|inspect|web)"
    r"(?:$|_|-|(?=[A-Z]))|websearch|webfetch",
    re.IGNORECASE,
)
_CHANGE_TOOL = re.compile(
    r"(?:write|edit|multiedit|str_replace|replace|create|insert|patch|apply|update|append|save|delete|move|rename)"
    r"(?:$|_|-|(?=[A-Z]))|notebookedit",
    re.IGNORECASE,
)
_MORE = re.compile(r" \(\+(\d+) more\)$")
_CUT = re.compile(r"\s*\S*…")
_LOOKED = "Look: "
_LOOKED_CHARS = 56


@dataclass(frozen=True, slots=True, kw_only=True)
class CallIntent:
    """The purpose of a call, its object and outcome. `verb` is its tool, or the first word of its command."""

    intent: Intent
    verb: str
    subject: str
    failed: bool = False
    title: str = ""
    """A better name for a step of it than its command, where there is one."""

    @property
    def key(self) -> str:
        """The stored form of the intent, from which a later call sees whether it continues the node."""
        return " ".join([self.intent, "failed" if self.failed else "ok", self.verb.replace(" ", "_"), self.subject])


def call_intent(tool: str, arguments: object, *, failed: bool = False) -> CallIntent:
    if command := command_of(arguments):
        return _of_command(command, failed)
    name = short_name(tool)
    intent: Intent = "look" if _LOOK_TOOL.match(name) else "change" if _CHANGE_TOOL.match(name) else "other"
    return CallIntent(
        intent=intent, verb=name, subject=_last_part(path_of(arguments)) or subject_of(arguments), failed=failed
    )


@lru_cache(maxsize=4096)
def of_title(title: str) -> CallIntent | None:
    """Return the intent behind a step's title; None where somebody named the step."""
    words = _CUT.sub("", _MORE.sub("", title))
    if words.startswith(_LOOKED):
        return CallIntent(intent="look", verb="", subject=words.removeprefix(_LOOKED).split(", ")[0])
    verb, _, rest = words.partition(" ")
    if verb in ("Write", "Edit"):
        subject = rest.removeprefix("and run ")
        return CallIntent(intent="change", verb="", subject=subject) if _FILE.fullmatch(subject) else None
    if verb.islower() and (found := _of_command(words, False)).intent != "other":
        return found
    named = _QUOTED.search(rest) or _FILE.fullmatch(rest)
    if not named:
        return None
    intent: Intent = "look" if _LOOK_TOOL.match(verb) else "change" if _CHANGE_TOOL.match(verb) else "other"
    return CallIntent(intent=intent, verb=verb, subject=_last_part(named[0]).strip("\"'"))


def _of_command(command: str, failed: bool) -> CallIntent:
    line = command.split("<<")[0]
    verb = _last_part(line.split(maxsplit=1)[0]) if line.strip() else "sh"
    names = [_last_part(found) for found in _FILE.findall(_ASIDE.sub(" ", line))]
    files = [name for name in names if "." in name]
    pattern = next((found for found in reversed(_QUOTED.findall(line)) if "*." not in found), "")
    wrote = _WRITES.search(_QUOTED.sub(" ", line))
    target = _last_part(wrote[1] or wrote[2]) if wrote else ""
    intent: Intent = "other"
    subject, title = next(iter([*files[-1:], pattern, *names[-1:]]), ""), ""
    if _INSTALL.match(line):
        intent, subject = "install", ""
    elif target and not _RUN.match(verb):
        intent, subject, title = "change", target, f"Write {target}"
    elif _IN_PLACE.search(line):
        intent, title = "change", f"Edit {subject}" if subject else ""
    elif verb in _CHANGE or _GIT_CHANGE.match(line):
        intent = "change"
    elif _LOOK.match(verb) or _GIT_LOOK.match(line):
        intent = "look"
    elif _RUN.match(verb) or line.startswith("./"):
        intent, subject = "run", next(iter(files or names), "")
    return CallIntent(intent=intent, verb=verb, subject=subject, failed=failed, title=title)


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


# --- in a row ---------------------------------------------------------------------------------------


def goes_on(before: str, now: CallIntent) -> bool:
    """Return whether a call is more of what the node did last; `before` is that call's key."""
    last = _read(before)
    if last is None:
        return False
    same_way, same_thing = last.failed == now.failed, bool(now.subject) and last.subject == now.subject
    match last.intent, now.intent:
        case ("look", "look") | ("install", "install"):
            return True
        case ("change", "change") | ("change", "run"):
            return same_thing
        case ("run", "run"):
            return same_thing and same_way
        case ("other", "other"):
            return last.verb == now.verb and same_way
        case _:
            return False


def grown(title: str, before: str, now: CallIntent) -> str:
    """Return the title of a node after one more call: `Read app.py (+2 more)`, or the names of the files read."""
    last = _read(before)
    bare, more = _MORE.sub("", title), int(found[1]) if (found := _MORE.search(title)) else 0
    if last and now.intent == "run" and bare == f"Write {now.subject}":
        return f"Write and run {now.subject}"
    if last and now.intent == "look" and not more and now.subject:
        if last.verb != now.verb and last.subject and not bare.startswith(_LOOKED):
            bare = f"{_LOOKED}{last.subject}"
        if bare.startswith(_LOOKED):
            if now.subject in bare.removeprefix(_LOOKED).split(", "):
                return bare
            if len(bare) + len(now.subject) <= _LOOKED_CHARS:
                return f"{bare}, {now.subject}"
    suffix = f" (+{more + 1} more)"
    room = TITLE_LIMIT - len(suffix)
    return (bare if len(bare) <= room else bare[: room - 1].rstrip() + "…") + suffix


def _read(key: str) -> CallIntent | None:
    parts = key.split(" ", 3)
    intent = next((each for each in get_args(Intent) if each == parts[0]), None)
    if intent is None or len(parts) != 4:
        return None
    return CallIntent(intent=intent, verb=parts[2], subject=parts[3], failed=parts[1] == "failed")


DEAD_END = "dead end"

_NODE_ID = re.compile(r"\d{3,9}-[NF]\d{1,9}(?:-\d{1,9})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasStep:
    """A tool call on its way to the canvas. `name` is what the agent calls its step, or a node's id."""

    title: str
    """The title of an unnamed step."""
    summary: str
    now: datetime
    name: str | None = None
    after: Mapping[str, str] = field(default_factory=dict[str, str])
    """Nodes that it follows, each with the words on the edge, which may be none."""
    status: StepStatus | None = None
    intent: CallIntent | None = None
    """The intent of an unnamed call."""
    before: str = ""
    """The intent key of the last step of the node touched last, if that is unnamed too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNote:
    """The note stored with the record of a step: its title for the node, and the key of its intent if unnamed."""

    title: str = ""
    routine: str = ""

    @staticmethod
    def read(text: str | None) -> StepNote:
        """Return the note of a record, an empty one where it has none or another program wrote it."""
        try:
            fields: Any = json.loads(text or "{}")
            return StepNote(title=str(fields.get("title", "")), routine=str(fields.get("routine", "")))
        except (ValueError, AttributeError):
            return StepNote()

    def text(self) -> str | None:
        fields = {key: value for key, value in asdict(self).items() if value}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")) if fields else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The canvas with a step on it, at `node`."""

    canvas: Canvas
    node: str
    note: StepNote


def place(canvas: Canvas, step: CanvasStep) -> Placed:
    """Put a step on the canvas.

    Raises InvalidInput when `name` or `after` has an id that is not on the canvas; its text names those that are.
    """
    for id_ in step.after:
        _require(canvas, id_, "after")
    before, finished = step.after, frozenset[str]()
    old = _existing(canvas, step)
    if old:
        title = grown(old.title, step.before, step.intent) if step.intent and step.name is None else ""
        made = replace(
            old,
            title=title or old.title,
            status=step.status or ("blocked" if old.status == "blocked" else "doing"),
            summary=step.summary,
            timestamp=max(old.timestamp, step.now),
        )
    else:
        title = _title(step)
        before = step.after or dict.fromkeys(_live_ends(canvas), "")
        finished = frozenset(before)
        number = max((int(node.id.rpartition("N")[2]) for node in canvas.nodes), default=0) + 1
        id_ = f"{padded(canvas.number)}-N{number}"
        made = Node(id_, title or id_, step.status or "doing", step.summary, step.now)
    nodes = [made if node.id == made.id else _finished(node) if node.id in finished else node for node in canvas.nodes]
    joined = {(edge.source, edge.target) for edge in canvas.edges}
    drawn = [
        Edge(id_, made.id, words) for id_, words in before.items() if id_ != made.id and (id_, made.id) not in joined
    ]
    edges = tuple(styled(edge, made) if edge.target == made.id else edge for edge in (*canvas.edges, *drawn))
    return Placed(
        canvas=replace(
            canvas,
            nodes=tuple(nodes if old else [*nodes, made]),
            edges=edges,
            status="doing",
            updated=max(canvas.updated, step.now),
        ),
        node=made.id,
        note=StepNote(title=title, routine=step.intent.key if step.intent and step.name is None else ""),
    )


def _finished(node: Node) -> Node:
    return replace(node, status="done") if node.status == "doing" else node


def latest(canvas: Canvas) -> Node | None:
    """Return the node that was touched last."""
    newest = max((node.timestamp for node in canvas.nodes), default=None)
    return next((node for node in reversed(canvas.nodes) if node.timestamp == newest), None)


# --- finding ----------------------------------------------------------------------------------------


def _existing(canvas: Canvas, step: CanvasStep) -> Node | None:
    if step.name is None:
        last = latest(canvas)
        more = step.intent and not step.after and step.status != "blocked" and goes_on(step.before, step.intent)
        return last if last and more and last.status == "doing" else None
    name = clean(step.name, TITLE_LIMIT)
    if _NODE_ID.fullmatch(name):
        return _require(canvas, name, "step")
    return next((node for node in reversed(canvas.nodes) if _key(node.title) == _key(name)), None)


def _require(canvas: Canvas, id_: str, what: str) -> Node:
    by_id = {node.id: node for node in canvas.nodes}
    if id_ in by_id:
        return by_id[id_]
    known = ", ".join(list(by_id)[-12:]) or "none yet"
    raise InvalidInput(
        f"{what} names {clean(id_, 40)!r}, which is no node of canvas {padded(canvas.number)}. "
        f"Its nodes{', the newest ones,' if len(by_id) > 12 else ''} are: {known}."
    )


def _key(title: str) -> str:
    return "".join(title.casefold().split())


def _title(step: CanvasStep) -> str:
    if step.name is not None:
        return clean(step.name, TITLE_LIMIT)
    return step.intent.title if step.intent and step.intent.title else step.title


def _live_ends(canvas: Canvas) -> list[str]:
    """Return the node touched last; for a dead end its sources, as far back as dead ends go."""
    blocked = {node.id for node in canvas.nodes if node.status == "blocked"}
    last = latest(canvas)
    ends: list[str] = [last.id] if last else []
    seen = set(ends)
    while any(id_ in blocked for id_ in ends):
        sources = [edge.source for end in ends if end in blocked for edge in canvas.edges if edge.target == end]
        ends = [id_ for id_ in ends if id_ not in blocked] + [id_ for id_ in sources if id_ not in seen]
        seen.update(sources)
    return ends


def styled(edge: Edge, target: Node) -> Edge:
    """Return an edge in the style of its target: dashed and labelled into a dead end."""
    if target.status == "blocked":
        return replace(edge, label=edge.label or DEAD_END, dashed=True)
    return replace(edge, label="" if edge.label == DEAD_END else edge.label, dashed=False)
