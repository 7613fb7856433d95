"""A task's canvas as a picture: a box for each step, a stack for a folded group, each a link to its page.

A short task is drawn from top to bottom (`layers`), a task of more than `SHORT` boxes with a column for each phase
(`columns`). The status of a step is shown by a sign and a word, never by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcp_memory.core.text import plural, remove_hidden
from mcp_memory.core.types import StepStatus
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node, padded
from mcp_memory.shortterm.canvas.folding import Groups, fold_groups, in_phases, nodes_of
from mcp_memory.shortterm.canvas.placement import latest
from mcp_memory.shortterm.canvas.view import SHORT, phase_title
from mcp_memory.ui.components import link
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.elements import svg as picture_of
from mcp_memory.ui.pictures.charts import shorten, text_width, wrap
from mcp_memory.ui.pictures.columns import lay_out_columns
from mcp_memory.ui.pictures.layers import Box, Drawing, Label, Size, Wire, drawable_edges, lay_out_layers

WIDTH, PADDING, SIGN, LINE, FOOT, STACK = 208.0, 9.0, 19.0, 17.0, 16.0, 6.0
"""Pixels: width of a box, padding, sign, height of a title line, height of the last line, offset of a stacked box."""
MOST = 32
"""Boxes at most, if enough phases are finished and can be folded; with the outline they are a page of 40 kB."""
LABEL_WIDTH = 84.0
"""Pixels of an edge label, at most."""

STATUS_NAMES: Mapping[StepStatus, str] = {
    "done": "done",
    "doing": "doing",
    "paused": "paused",
    "blocked": "dead end",
}
_SIGNS: Mapping[StepStatus, str] = {
    "done": "m0 6 4 4 7-9",
    "doing": "m1 1 9 5-9 5z",
    "paused": "m3 1v10m5-10v10",
    "blocked": "m1 1 9 9m0-9-9 9",
}
_TIPS = {"down": "l-4-7h8z", "up": "l-4 7h8z", "right": "l-7-4v8z", "left": "l7-4v8z"}


def picture(canvas: Canvas, groups: Groups, *, selected: str | None) -> Element:
    """Return the picture; a large picture scrolls separately from the page.

    `selected` is the id of a node or group to highlight; if it is folded, the box that contains it is highlighted.
    """
    folded, drawn = drawing(canvas, groups)
    newest = latest(folded)
    selected_box = next((node.id for node in folded.nodes if _contains(canvas, groups, node.id, selected)), None)
    titles = {(edge.source, edge.target): edge for edge in reversed(folded.edges)}
    label = f"Canvas {padded(canvas.number)}: {plural(len(canvas.nodes), 'step')}"
    shown = picture_of(
        drawn.width,
        drawn.height,
        (_title(title) for title in drawn.titles),
        (_edge(wire, titles[wire.source, wire.target]) for wire in drawn.wires),
        (
            _box(node, drawn.boxes[node.id], now=node == newest, selected=node.id == selected_box)
            for node in folded.nodes
        ),
        label=label,
        role="group",
    )
    return el("div", shown, class_="picture scroll", tabindex="0", role="region", aria_label=label)


def drawing(canvas: Canvas, groups: Groups) -> tuple[Canvas, Drawing]:
    """Return the canvas with its groups folded, as it is drawn, and the places of its boxes and edges."""
    folded, phases = fold_groups(canvas, groups), None
    if len(folded.nodes) > SHORT:
        folded, phases = in_phases(canvas, groups, most=MOST)
    sizes = {node.id: _size(node) for node in folded.nodes}
    edges = drawable_edges((edge.source, edge.target) for edge in folded.edges)
    labels = _labels(folded, edges)
    if phases is None:
        return folded, lay_out_layers(sizes, edges, labels)
    nodes = {node.id: node for node in folded.nodes}
    titles = [phase_title([nodes[id_] for id_ in ids]) for ids in phases]
    titles = [" · ".join(filter(None, (str(at), title))) for at, title in enumerate(titles, start=1)]
    return folded, lay_out_columns(sizes, edges, labels, phases, titles)


def _labels(canvas: Canvas, edges: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Size]:
    """Return the sizes of edge labels. Edges into a box that share a label, such as a dead end, show it once."""
    sizes: dict[tuple[str, str], Size] = {}
    seen: set[tuple[str, str]] = set()
    for edge in canvas.edges:
        pair, text = (edge.source, edge.target), _label_text(edge)
        if text and pair in edges and pair not in sizes and (edge.target, text) not in seen:
            sizes[pair] = Size(text_width(text, 11), LINE)
            seen.add((edge.target, text))
    return sizes


def _contains(canvas: Canvas, groups: Groups, id_: str, selected: str | None) -> bool:
    if selected is None or id_ == selected:
        return id_ == selected
    inside = nodes_of(canvas, groups, selected)
    return "-F" in id_ and bool(inside) and set(inside) <= set(nodes_of(canvas, groups, id_))


def _lines(node: Node) -> list[str]:
    return list(wrap(remove_hidden(node.title), WIDTH - SIGN - 2 * PADDING)) or [" "]


def _size(node: Node) -> Size:
    stack = STACK if "-F" in node.id else 0.0
    return Size(WIDTH + stack, 2 * PADDING + LINE * len(_lines(node)) + FOOT + stack)


def _label_text(edge: Edge) -> str:
    return shorten(remove_hidden(edge.label), LABEL_WIDTH, 11)


# --- elements ---------------------------------------------------------------------------------------


def _title(title: Label) -> Element:
    text = shorten(remove_hidden(title.text), WIDTH, 11)
    whole = el("title", remove_hidden(title.text)) if text != remove_hidden(title.text) else None
    return el("text", whole, text, x=f"{title.x:g}", y=f"{title.y:g}", class_="name")


def _edge(wire: Wire, edge: Edge) -> Element:
    label = None
    if wire.label:
        text, whole = _label_text(edge), remove_hidden(edge.label)
        anchor = None if wire.label.anchor == "start" else wire.label.anchor
        label = el("text", el("title", whole) if text != whole else None, text, x=f"{wire.label.x:g}",
                   y=f"{wire.label.y:g}", text_anchor=anchor)  # fmt: skip
    x, y = wire.end
    tip = el("path", d=f"M{x:g} {y:g}{_TIPS[wire.way]}", class_="tip")
    return el("g", el("path", d=wire.path), tip, label, class_="edge dead" if edge.dashed else "edge")


def _box(node: Node, box: Box, *, now: bool, selected: bool) -> Element:
    lines, stacked = _lines(node), "-F" in node.id
    left, top = box.x + PADDING, box.y + PADDING
    foot = [node.id.partition("-")[2], STATUS_NAMES[node.status], *(["newest"] if now else [])]
    whole = remove_hidden(node.title)
    looks = ["node", node.status, *(["now"] if now else []), *(["selected"] if selected else [])]
    return link(
        f"/{node.id}",
        el("title", f"{whole} ({', '.join(foot)})") if any(line.endswith("…") for line in lines) else None,
        _frames(box, stacked=stacked),
        el("path", d=f"M{left:g} {top:g}{_SIGNS[node.status]}", class_="sign"),
        (el("text", line, x=f"{left + SIGN:g}", y=f"{top + 11 + LINE * at:g}") for at, line in enumerate(lines)),
        el("text", " · ".join(foot), x=f"{left + SIGN:g}", y=f"{top + 10 + LINE * len(lines):g}", class_="id"),
        class_=" ".join(looks),
    )


def _frames(box: Box, *, stacked: bool) -> list[Element]:
    """Return the outline of a box; a group has two more behind it, a little lower."""
    if not stacked:
        return [_frame(box)]
    front = Box(box.x, box.y, box.width - STACK, box.height - STACK)
    behind = [Box(front.x + off, front.y + off, front.width, front.height) for off in (STACK, STACK / 2)]
    return [_frame(each) for each in (*behind, front)]


def _frame(box: Box) -> Element:
    return el("rect", x=f"{box.x:g}", y=f"{box.y:g}", width=f"{box.width:g}", height=f"{box.height:g}", rx=6)
