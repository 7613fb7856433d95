"""Places a step on the canvas. Pure and deterministic: the same canvas and step give the same canvas.

Rules
    The same step (its id, or its title compared without case and white space) continues its node.
    A call without a step continues the latest node if that is in progress and unnamed too, and the intents fit
    (`continues`); a dead end starts a new node.
    A new step follows the nodes named in `after`, or the latest node. A dashed edge leads to a dead end (`blocked`),
    and the next step follows the node before it.
    When a step starts, preceding nodes that were still `doing` become done.

The intent of a call is derived from its command, or its tool and arguments. When in doubt a call starts a new node,
such as when it changes another file or its outcome differs. Calls of unknown purpose are compared by their tools.

    look     reads and searches: any number of calls in a row
    change   writes to one file; a following run of that file belongs to it
    run      runs one program, as long as the outcome is the same
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
_REDIRECTED_OR_QUOTED = re.compile(r"""\d?>+\s*(?:/dev/\S+|&\d)|"[^"]*"|'[^']*'""")
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
    """The purpose, object (`subject`) and outcome of a call. `verb` is its tool, or the first word of its command."""

    intent: Intent
    verb: str
    subject: str
    failed: bool = False
    title: str = ""
    """A better title for the step than the command, if there is one."""

    @property
    def key(self) -> str:
        """The intent as text, which is stored so that `continues` can compare a later call with it."""
        return " ".join([self.intent, "failed" if self.failed else "ok", self.verb.replace(" ", "_"), self.subject])


def call_intent(tool: str, arguments: object, *, failed: bool = False) -> CallIntent:
    if command := command_of(arguments):
        return _command_intent(command, failed)
    name = short_name(tool)
    subject = _last_part(path_of(arguments)) or subject_of(arguments)
    return CallIntent(intent=_tool_intent(name), verb=name, subject=subject, failed=failed)


@lru_cache(maxsize=4096)
def title_intent(title: str) -> CallIntent | None:
    """Return the intent behind a generated title; None for a title given by the agent."""
    words = _CUT.sub("", _MORE.sub("", title))
    if words.startswith(_LOOKED):
        return CallIntent(intent="look", verb="", subject=words.removeprefix(_LOOKED).split(", ")[0])
    verb, _, rest = words.partition(" ")
    if verb in ("Write", "Edit"):
        subject = rest.removeprefix("and run ")
        return CallIntent(intent="change", verb="", subject=subject) if _FILE.fullmatch(subject) else None
    if verb.islower() and (intent := _command_intent(words, False)).intent != "other":
        return intent
    subject_match = _QUOTED.search(rest) or _FILE.fullmatch(rest)
    if not subject_match:
        return None
    return CallIntent(intent=_tool_intent(verb), verb=verb, subject=_last_part(subject_match[0]).strip("\"'"))


def _tool_intent(name: str) -> Intent:
    return "look" if _LOOK_TOOL.match(name) else "change" if _CHANGE_TOOL.match(name) else "other"


def _command_intent(command: str, failed: bool) -> CallIntent:
    line = command.split("<<")[0]
    verb = _last_part(line.split(maxsplit=1)[0]) if line.strip() else "sh"
    names = [_last_part(path) for path in _FILE.findall(_REDIRECTED_OR_QUOTED.sub(" ", line))]
    files = [name for name in names if "." in name]
    pattern = next((quoted for quoted in reversed(_QUOTED.findall(line)) if "*." not in quoted), "")
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


# --- calls in a row ---------------------------------------------------------------------------------


def continues(before: str, now: CallIntent) -> bool:
    """Return whether the call `now` belongs to the node whose last call has the intent key `before`."""
    last = _parse_key(before)
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


def extend_title(title: str, before: str, now: CallIntent) -> str:
    """Return the title of a node after one more call: `Read app.py (+2 more)`, or the names of the files read."""
    last = _parse_key(before)
    bare, more = _MORE.sub("", title), int(match[1]) if (match := _MORE.search(title)) else 0
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


def _parse_key(key: str) -> CallIntent | None:
    parts = key.split(" ", 3)
    intent = next((name for name in get_args(Intent) if name == parts[0]), None)
    if intent is None or len(parts) != 4:
        return None
    return CallIntent(intent=intent, verb=parts[2], subject=parts[3], failed=parts[1] == "failed")


DEAD_END = "dead end"

_NODE_ID = re.compile(r"\d{3,9}-[NF]\d{1,9}(?:-\d{1,9})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasStep:
    """A tool call to place on the canvas. `name` is the agent's title of the step, or a node's id."""

    title: str
    """The title of an unnamed step."""
    summary: str
    now: datetime
    name: str | None = None
    after: Mapping[str, str] = field(default_factory=dict[str, str])
    """The ids of the nodes that it follows, each with the label of the edge, which may be empty."""
    status: StepStatus | None = None
    intent: CallIntent | None = None
    before: str = ""
    """The intent key of the latest node's last step; empty if that step is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNote:
    """Stored with the record of a step: the node's title that it set, and, if unnamed, its intent key (`routine`)."""

    title: str = ""
    routine: str = ""

    @staticmethod
    def read(text: str | None) -> StepNote:
        """Parse a record's note. A missing or malformed note is read as an empty note."""
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
    """Return the canvas with a step on it. Raises InvalidInput if `name` or `after` has an unknown id."""
    for id_ in step.after:
        _require(canvas, id_, "after")
    by_intent = step.intent if step.name is None else None
    after, finished = step.after, frozenset[str]()
    old = _find_node(canvas, step)
    if old:
        title = extend_title(old.title, step.before, by_intent) if by_intent else ""
        new = replace(
            old,
            title=title or old.title,
            status=step.status or ("blocked" if old.status == "blocked" else "doing"),
            summary=step.summary,
            timestamp=max(old.timestamp, step.now),
        )
    else:
        title = step.title if step.name is None else clean(step.name, TITLE_LIMIT)
        title = by_intent.title or title if by_intent else title
        after = step.after or dict.fromkeys(_live_ends(canvas), "")
        finished = frozenset(after)
        number = max((int(node.id.rpartition("N")[2]) for node in canvas.nodes), default=0) + 1
        id_ = f"{padded(canvas.number)}-N{number}"
        new = Node(id_, title or id_, step.status or "doing", step.summary, step.now)
    nodes = {
        node.id: replace(node, status="done") if node.id in finished and node.status == "doing" else node
        for node in canvas.nodes
    }
    nodes[new.id] = new
    existing = {(edge.source, edge.target) for edge in canvas.edges}
    added = [
        Edge(id_, new.id, label) for id_, label in after.items() if (id_, new.id) not in existing and id_ != new.id
    ]
    edges = tuple(styled(edge, new) if edge.target == new.id else edge for edge in (*canvas.edges, *added))
    updated = max(canvas.updated, step.now)
    return Placed(
        canvas=replace(canvas, nodes=tuple(nodes.values()), edges=edges, status="doing", updated=updated),
        node=new.id,
        note=StepNote(title=title, routine=by_intent.key if by_intent else ""),
    )


def latest(canvas: Canvas) -> Node | None:
    """Return the node with the newest record, None on an empty canvas."""
    newest = max((node.timestamp for node in canvas.nodes), default=None)
    return next((node for node in reversed(canvas.nodes) if node.timestamp == newest), None)


def _find_node(canvas: Canvas, step: CanvasStep) -> Node | None:
    """Return the node that a step continues, None for a new node. Raises InvalidInput if its name is an unknown id."""
    if step.name is None:
        last = latest(canvas)
        if not last or last.status != "doing" or step.after or step.status == "blocked" or not step.intent:
            return None
        return last if continues(step.before, step.intent) else None
    name = clean(step.name, TITLE_LIMIT)
    if _NODE_ID.fullmatch(name):
        return _require(canvas, name, "step")
    return next((node for node in reversed(canvas.nodes) if _squeeze(node.title) == _squeeze(name)), None)


def _require(canvas: Canvas, id_: str, what: str) -> Node:
    by_id = {node.id: node for node in canvas.nodes}
    if id_ in by_id:
        return by_id[id_]
    ids = ", ".join(list(by_id)[-12:]) or "none yet"
    raise InvalidInput(
        f"{what} names {clean(id_, 40)!r}, which is not a node of canvas {padded(canvas.number)}. "
        f"Its {'newest ' if len(by_id) > 12 else ''}nodes are: {ids}."
    )


def _squeeze(title: str) -> str:
    return "".join(title.casefold().split())


def _live_ends(canvas: Canvas) -> list[str]:
    """Return the latest node, or if it is a dead end, the nodes before the dead ends."""
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
    """Return an edge in the style of its target: dashed and labelled if that is a dead end."""
    if target.status == "blocked":
        return replace(edge, label=edge.label or DEAD_END, dashed=True)
    return replace(edge, label="" if edge.label == DEAD_END else edge.label, dashed=False)
