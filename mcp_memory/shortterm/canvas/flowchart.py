r"""The canvas of a task: a flowchart as a value, and its text, the content of `mmds/NNN-label.mmd`.

Guarantees: the text is valid Mermaid, and `parse(render(canvas)) == canvas` if node ids are unique and edges join
existing nodes. A canvas cleans its texts on construction: titles have at most 80 characters, summaries and goals 200,
edge labels 40; times are whole milliseconds. `clean` is idempotent, `decode(encode(text)) == text` for every cleaned
text, and Mermaid draws `text` for `encode(text)`, except for invisible word joiners (U+2060).

The text: a comment line of JSON, `flowchart TD`, one line per node, one line per edge. `parse` refuses any line that
`render` could not write again, and names its number, so that nothing is lost by guessing.

Traps of Mermaid 11, which `encode` avoids: entities are `#quot;` and `#35;`, so `#` before `word;` must be escaped.
`%%{` anywhere is a directive. A line with `direction LR` is a statement, even inside quotes. A line with `style` or
`classDef` loses its last `;` if a word has both a `:` and a `#`. A quote followed by a backtick opens Markdown.
`\n`, `$$` and `fa:fa-x` are read after entities are decoded, so only a joiner breaks them up; `ﬂ°` and `¶ß` are
its internal spelling of entities.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, NoReturn, get_args

from mcp_memory.core.errors import Damaged, InvalidInput
from mcp_memory.core.text import iso
from mcp_memory.core.types import CanvasRow, StepStatus

_JOINER = "\u2060"
# Explicit bidi embeddings, overrides and isolates: cut in half, one would turn round the rest of the line.
_DROPPED = re.compile(f"[{_JOINER}\ufeff\u202a-\u202e\u2066-\u2069]")
_UNWRITABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_CODED = re.compile(r'["<]|&(?=[#A-Za-z])|#(?=\w+;)|^`|%(?=%)', re.ASCII)
_BROKEN_UP = re.compile(
    r"\\(?=n)|\$(?=\$)|(?<=fa)(?=:fa-)|(?<=fa[bklrs])(?=:fa-)|ﬂ(?=°)|¶(?=ß)|direction(?=\s+(?:TB|BT|RL|LR|TD))"
)
_UNBROKEN = re.compile(r"\S+")
_NAMES = {'"': "#quot;", "<": "#lt;", "&": "#amp;"}
_ENTITY = re.compile(r"#(\w+);", re.ASCII)


def clean(text: str, limit: int) -> str:
    """Return the text on one line of at most `limit` characters, with an ellipsis if cut.

    Control characters and runs of white space become one space; lone surrogates, which no file can contain, become
    U+FFFD; word joiners, BOMs and bidi controls are dropped. ZWJ, LRM and RLM stay: scripts and emoji need them.
    """
    text = _CONTROL.sub(" ", _UNWRITABLE.sub("\ufffd", _DROPPED.sub("", text)))
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def encode(text: str) -> str:
    """Escape a cleaned text for the quotes of a Mermaid label."""
    coded = _CODED.sub(lambda match: _NAMES.get(match[0], f"#{ord(match[0])};"), text)
    coded = _BROKEN_UP.sub(lambda match: f"{match[0]}#{ord(_JOINER)};", coded)
    return _UNBROKEN.sub(_encode_colons, coded) if ":" in coded else coded


def _encode_colons(run: re.Match[str]) -> str:
    """Encode the colons before the last `#` of a run without spaces, in linear time."""
    before, mark, after = run[0].rpartition("#")
    return f"{before.replace(':', '#58;')}{mark}{after}"


def decode(label: str) -> str:
    """Return the text that a label shows. Unknown entities are kept."""
    return _ENTITY.sub(_character, label).replace(_JOINER, "")


def _character(entity: re.Match[str]) -> str:
    name = entity[1]
    if not name.isdecimal():
        return html.unescape(f"&{name};").replace(f"&{name};", entity[0])
    code = int(name) if len(name) <= 7 else 0
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else entity[0]


TITLE_LIMIT, SUMMARY_LIMIT, GOAL_LIMIT, LABEL_LIMIT = 80, 200, 200, 40

_ID = r"\d{3,9}-(?:N\d{1,9}|F\d{1,9}(?:-\d{1,9})?)"
_NODE = re.compile(rf'\s*({_ID})\["([^"]*)"\]\s*')
_EDGE = re.compile(rf'\s*({_ID}) (-->|-\.->)(?:\|(?:"([^"]*)"|([^"|]*))\|)? ({_ID})\s*')
_EMPTY = re.compile(r"\s*%% (\d{3,9})\s*")  # in place of the nodes of an empty canvas
_PLAIN = re.compile(r"[A-Za-z0-9]+(?: [A-Za-z0-9]+)*")  # words with single spaces
_STATUSES: tuple[StepStatus, ...] = get_args(StepStatus)
_HEADER = ("taskGoal", "status", "createdTime", "updatedTime")


@dataclass(frozen=True, slots=True)
class Node:
    """A step. `id` is `003-N4`, or `003-F1` for a folded group; `timestamp` is the time of its newest record."""

    id: str
    title: str
    status: StepStatus
    summary: str
    timestamp: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", clean(self.title, TITLE_LIMIT))
        object.__setattr__(self, "summary", clean(self.summary, SUMMARY_LIMIT))
        object.__setattr__(self, "timestamp", _moment(self.timestamp))


@dataclass(frozen=True, slots=True)
class Edge:
    """`target` followed `source`; dashed if it led to a dead end."""

    source: str
    target: str
    label: str = ""
    dashed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", clean(self.label, LABEL_LIMIT))


@dataclass(frozen=True, slots=True)
class Canvas:
    """The flowchart of a task: nodes in the order they were made, edges in the order they were drawn."""

    number: int
    task_goal: str
    status: StepStatus
    created: datetime
    updated: datetime
    nodes: tuple[Node, ...] = field(default=())
    edges: tuple[Edge, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "task_goal", clean(self.task_goal, GOAL_LIMIT))
        object.__setattr__(self, "created", _moment(self.created))
        object.__setattr__(self, "updated", _moment(self.updated))


def _moment(moment: datetime) -> datetime:
    """Return a moment in whole milliseconds at a fixed offset, as in the text. Raises ValueError without an offset."""
    offset = moment.utcoffset()
    if offset is None:
        raise ValueError(f"a moment without an offset: {moment!r}")
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=timezone(offset), fold=0)


def padded(number: int) -> str:
    """Return a canvas number as in ids and file names: `003`."""
    return f"{number:03d}"


def number_of(id_: str) -> int:
    """Return the canvas number of a node or group id."""
    return int(id_.partition("-")[0])


# --- writing ----------------------------------------------------------------------------------------


def render(canvas: Canvas) -> str:
    """Return the text of the `.mmd` file, with a final newline."""
    values = (canvas.task_goal, canvas.status, iso(canvas.created), iso(canvas.updated))
    header = json.dumps(dict(zip(_HEADER, values, strict=True)), ensure_ascii=False, separators=(",", ":"))
    # Mermaid looks for tags and for `%%{` before it drops comments.
    header = header.replace("<", "\\u003c").replace("%%", "%\\u0025")
    lines = [f"%% {header}", "flowchart TD"]
    lines += [f"    {node_line(node)}" for node in canvas.nodes] or [f"    %% {padded(canvas.number)}"]
    lines += [f"    {edge_line(edge)}" for edge in canvas.edges]
    return "\n".join(lines) + "\n"


def node_line(node: Node) -> str:
    parts = (
        encode(node.title),
        f"status: {node.status}",
        f"summary: {encode(node.summary)}",
        f"Timestamp: {iso(node.timestamp)}",
    )
    return f'{node.id}["{"<br/>".join(parts)}"]'


def edge_line(edge: Edge) -> str:
    arrow = "-.->" if edge.dashed else "-->"
    if edge.label:
        plain = _PLAIN.fullmatch(edge.label) and encode(edge.label) == edge.label
        text = edge.label if plain else f'"{encode(edge.label)}"'
        arrow += f"|{text}|"
    return f"{edge.source} {arrow} {edge.target}"


# --- reading ----------------------------------------------------------------------------------------


def read(row: CanvasRow) -> Canvas:
    """Parse a stored canvas. Raises Damaged if its text is invalid; its records are intact."""
    try:
        return parse(row.text)
    except InvalidInput as error:
        number = padded(row.number)
        raise Damaged(
            f"Canvas {number}-{row.label} cannot be read: {error} "
            f"Its records are intact: expand_node {number} lists them. Another task starts a new canvas."
        ) from None


def goal_of(text: str) -> str | None:
    """Return the goal from the first line of a canvas's text; None if that line is damaged."""
    try:
        return _read_header(text.partition("\n")[0])[0]
    except InvalidInput:
        return None


def parse(text: str) -> Canvas:
    """Parse the text that `render` writes; blank lines and CRLF are accepted.

    Raises InvalidInput with the number of the invalid line, and the form expected there.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    goal, status, created, updated = _read_header(lines[0])
    if len(lines) < 2 or lines[1].strip() != "flowchart TD":
        _refuse(2, "is not 'flowchart TD'")
    number: int | None = None
    nodes: dict[str, Node] = {}
    edges: list[Edge] = []
    for at, line in enumerate(lines[2:], start=3):
        if match := _NODE.fullmatch(line):
            node = _read_node(match[1], match[2], at)
            number = number_of(node.id) if number is None else number
            if node.id in nodes or number_of(node.id) != number:
                _refuse(at, f"has the id {node.id}, which is there already or of another canvas")
            nodes[node.id] = node
        elif match := _EDGE.fullmatch(line):
            source, arrow, quoted, plain, target = match.groups()
            if source not in nodes or target not in nodes:
                _refuse(at, f"joins {source} and {target}, and a node that it names is not above it")
            edges.append(Edge(source, target, decode(quoted or plain or ""), arrow == "-.->"))
        elif (match := _EMPTY.fullmatch(line)) and number is None:
            number = int(match[1])
        elif line.strip():
            _refuse(at, 'is neither a node 003-N1["title<br/>status: …"] nor an edge 003-N1 --> 003-N2')
    if number is None:
        _refuse(len(lines), "is the end, and no node was named")
    return Canvas(number, goal, status, created, updated, tuple(nodes.values()), tuple(edges))


def _read_header(line: str) -> tuple[str, StepStatus, datetime, datetime]:
    try:
        values: Any = json.loads(line.removeprefix("\ufeff").removeprefix("%%"))
        goal, status, created, updated = (values[name] for name in _HEADER)
        if not isinstance(goal, str):
            raise TypeError
        return clean(goal, GOAL_LIMIT), _read_status(status), _read_moment(created), _read_moment(updated)
    except (ValueError, TypeError, KeyError, RecursionError):
        _refuse(1, f"is not a comment like %% {{{', '.join(_HEADER)}}} with a status and two moments")


def _read_node(id_: str, label: str, at: int) -> Node:
    try:
        title, status, summary, moment = label.split("<br/>")
        if not (status.startswith("status: ") and summary.startswith("summary: ") and moment.startswith("Timestamp: ")):
            raise ValueError(label)
        return Node(
            id_,
            decode(title),
            _read_status(status.removeprefix("status: ")),
            decode(summary.removeprefix("summary: ")),
            _read_moment(moment.removeprefix("Timestamp: ")),
        )
    except ValueError:
        _refuse(at, "does not read title<br/>status: …<br/>summary: …<br/>Timestamp: … (a known status, a moment)")


def _read_status(value: object) -> StepStatus:
    for status in _STATUSES:
        if value == status:
            return status
    raise ValueError(value)


def _read_moment(value: str) -> datetime:
    return _moment(datetime.fromisoformat(value))


def _refuse(line: int, why: str) -> NoReturn:
    raise InvalidInput(f"line {line} {why}. Mend that line, or take the text from before.")
