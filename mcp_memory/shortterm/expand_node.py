"""Expands a canvas, group or node into its records, and a record into the raw text of its ref.

No answer has more than `max_tokens`; an incomplete answer has a cursor; following the cursors of records shows each
record once. `expand` formats the raw text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Literal

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound
from mcp_memory.core.text import decode_text
from mcp_memory.core.types import CanvasRow, Expansion, Record, Ref
from mcp_memory.shortterm.canvas.flowchart import clean, number_of, padded
from mcp_memory.shortterm.canvas.folding import nodes_of
from mcp_memory.shortterm.canvas.state import current_state
from mcp_memory.shortterm.canvas.tasks import find_canvas
from mcp_memory.shortterm.expand import MIN_TOKENS, View, expand_text, has_match, view_of_cursor
from mcp_memory.shortterm.offload import ref_address
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, record_rows, ref_rows

if TYPE_CHECKING:
    from mcp_memory.core.token_counts import TokenCounter

Layer = View | Literal["records"]

_NODE = re.compile(r"\d{3,9}-[NF]\d{1,9}(?:-\d{1,9})?")
_NUMBER = re.compile(r"\d{3,9}")
_REF = re.compile(r"(?:refs/.*-|memory://ref/)?(?:r-)?([0-9a-f]{12,64})(?:\.md)?", re.IGNORECASE)
_CURSOR = re.compile(r"r(\d{1,9})")
_VIEWS: dict[str, Layer] = {
    "records": "records", "raw": "page", "page": "page", "lines": "lines", "grep": "grep",
    "json": "json", "json_path": "json",
}  # fmt: skip
_PAGE = 200
_MAX_REFS = 5000  # compared with an unknown id
_SEARCHED = 50  # newest results of a node that `grep` reads


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExpandRequest:
    """A checked request. If `view` is None, the target decides the view; `argument` is that of `expand_text`."""

    view: Layer | None
    argument: str
    max_tokens: int
    cursor: str | None


def expand(
    store: Store,
    space: str,
    *,
    target: str,
    view: str | None = None,
    lines: str | None = None,
    grep: str | None = None,
    json_path: str | None = None,
    max_tokens: int = 2000,
    cursor: str | None = None,
    text: str | None = None,
    counter: TokenCounter,
) -> Expansion:
    """Expand `target`: a node, group or canvas into its records, a ref into its raw text.

    `text` is the text of a target outside the canvases, and is shown like raw text.
    View `raw`, `lines` or `json_path` of a node, group or canvas shows the raw text of its newest record, `grep` the
    raw text of its newest record with a match.
    Raises NotFound for an unknown id, with similar ids; InvalidInput for a wrong view, range, pattern, path, cursor or
    budget.
    """
    if max_tokens < MIN_TOKENS:
        raise InvalidInput(f"max_tokens is {max_tokens}; the least that can be shown is {MIN_TOKENS}.")
    target = target.strip()
    ref_part, colon, named_lines = target.rpartition(":")
    if colon and _REF.fullmatch(ref_part):  # `r-9f2c1a7b3d4e:120-134`, as search results have it
        target = ref_part
        if not (view or lines is not None or grep or json_path or cursor):
            lines = named_lines
    arguments: dict[Layer, str | None] = {"lines": lines, "grep": grep, "json": json_path}
    layer = _view(view, arguments, cursor)
    argument = arguments.get(layer) if layer else None
    request = _ExpandRequest(view=layer, argument=argument or "", max_tokens=max_tokens, cursor=cursor)
    if text is not None:
        return _show_text(text, target, request, counter)
    if match := _REF.fullmatch(target):
        ref = _find_ref(store, space, f"r-{match[1].lower()}")
        if request.view != "records":
            return _show_raw(store, space, ref, request, counter)
        return _show_records(ref.id, list(_all_records(store, space, ref=ref.id)), request, counter)
    title, records = _find_records(store, space, target)
    if request.view in (None, "records"):
        return _show_records(title, records, request, counter)
    return _show_newest_raw(store, space, target, records, request, counter)


def _view(view: str | None, arguments: Mapping[Layer, str | None], cursor: str | None) -> Layer | None:
    """Return the view that the arguments select, None if the target decides.

    Raises InvalidInput for an unknown view, conflicting arguments or a wrong cursor.
    """
    name = (view or "").strip().lower()
    if name and name not in _VIEWS:
        raise InvalidInput(f"view {clean(name, 40)!r} is unknown. Allowed: records, raw, lines, grep, json_path.")
    if name not in ("", "raw", "page"):
        return _VIEWS[name]
    views: list[Layer] = [kind for kind, value in arguments.items() if value]
    if len(views) > 1:
        raise InvalidInput("Give one of lines, grep and json_path: each is a view of its own.")
    if views:
        return views[0]
    if name:
        return "page"
    if cursor and cursor.strip():
        return "records" if _CURSOR.fullmatch(cursor.strip()) else view_of_cursor(cursor)
    return None


# --- targets ----------------------------------------------------------------------------------------


def _find_records(store: Store, space: str, target: str) -> tuple[str, list[Record]]:
    """Return the title of a target, and its records, oldest first. Raises NotFound for an unknown target."""
    if not _NODE.fullmatch(target):
        row = (
            store.read(space, canvas_rows.canvas, int(target))
            if _NUMBER.fullmatch(target)
            else _find_task(store, space, target)
        )
        records = list(_all_records(store, space, node=padded(row.number)))
        return f"{padded(row.number)} {row.label} ({row.status})", records
    row = store.read(space, canvas_rows.canvas, number_of(target))
    try:
        canvas = current_state(store, space, row).canvas
    except Damaged:
        return target, list(_all_records(store, space, node=target))  # records do not depend on the canvas
    nodes = set(nodes_of(canvas, row.groups, target))
    if not nodes:
        ids = [*row.groups, *(node.id for node in canvas.nodes)]
        raise NotFound(f"There is no {target}. Near it on canvas {padded(row.number)}: {_similar(target, ids)}.")
    records = [record for record in _all_records(store, space, node=padded(row.number)) if record.node_id in nodes]
    node = next((node for node in canvas.nodes if node.id == target), None)
    return (f'{target} "{node.title}" ({node.status})' if node else f"{target}, {len(nodes)} steps"), records


def _find_task(store: Store, space: str, target: str) -> CanvasRow:
    try:
        return find_canvas(store, space, task=target, session=None)
    except NotFound as error:
        raise NotFound(f"{error} A target is a node (003-N4), group (003-F1), canvas (003) or ref (r-…).") from None


def _find_ref(store: Store, space: str, id_: str) -> Ref:
    try:
        return store.read(space, ref_rows.by_id, id_)
    except NotFound as error:
        ids = list(dict.fromkeys(record.ref for record in islice(_all_records(store, space), _MAX_REFS)))
        existing: list[str] = []
        for similar in get_close_matches(id_, ids, n=20, cutoff=0.5) or ids[-20:]:
            with suppress(NotFound):  # the records of a forgotten result remain
                existing.append(store.read(space, ref_rows.by_id, similar).id)
        hint = f" Near it: {_similar(id_, existing)}." if existing else ""
        raise NotFound(f"{error}{hint}") from None


def _similar(id_: str, ids: Sequence[str]) -> str:
    return ", ".join(get_close_matches(id_, ids, n=5, cutoff=0.5) or ids[-5:])


def _all_records(store: Store, space: str, *, node: str | None = None, ref: str | None = None) -> Iterator[Record]:
    start = 0
    while page := store.read(space, record_rows.list_records, node=node, ref=ref, start=start, limit=_PAGE):
        yield from page
        start += len(page)


# --- records ----------------------------------------------------------------------------------------


def _show_records(title: str, records: Sequence[Record], request: _ExpandRequest, counter: TokenCounter) -> Expansion:
    """Show as many records as fit, from the cursor on; a line that alone is too long is cut."""
    start, limit = 0, request.max_tokens
    if cursor := (request.cursor or "").strip():
        match = _CURSOR.fullmatch(cursor)
        if not match or int(match[1]) >= len(records):
            raise InvalidInput("This cursor does not continue these records. Copy it from the last line of an answer.")
        start = int(match[1])
    head = counter.cut(f"{title}: {len(records)} record{'s' * (len(records) != 1)}", limit // 3)

    def text(end: int) -> str:
        rest = len(records) - end
        more = [f"… {rest} more: go on with cursor=r{end}"] if rest else []
        return "\n".join([head, *map(_line, records[start:end]), *more])

    end, room = start, limit
    while end < len(records) and room > 0:
        room -= counter.count(_line(records[end]))
        end += 1
    while end > start + 1 and not counter.fits(text(end), limit):
        end -= 1
    shown = text(end)
    if not counter.fits(shown, limit):
        line = _line(records[start])
        frame = counter.count(shown.replace(line, "…"))
        shown = shown.replace(line, counter.cut(line, max(0, limit - frame - 2)) + "…")
        shown = counter.cut(shown, limit)
    next_cursor = f"r{end}" if end < len(records) else None
    return _expansion("records", shown, counter, cursor=next_cursor)


def _expansion(
    view: Layer, text: str, counter: TokenCounter, *, ref: str | None = None, cursor: str | None = None
) -> Expansion:
    tokens = counter.count(text)
    return Expansion(view=view, text=text, tokens=tokens, ref=ref, lines=None, total_lines=None, cursor=cursor)


def _line(record: Record) -> str:
    """Return a line such as `003-N4 04-16 22:19 pytest tests → 2 failed, 40 passed (r-9f2c1a7b3d4e, 5,120 tokens)`."""
    at = record.timestamp.strftime("%m-%d %H:%M")
    return f"{record.node_id} {at} {record.tool_call} → {record.summary} ({record.ref}, {record.tokens_raw:,} tokens)"


# --- raw text ---------------------------------------------------------------------------------------


def _show_newest_raw(
    store: Store, space: str, target: str, records: Sequence[Record], request: _ExpandRequest, counter: TokenCounter
) -> Expansion:
    """Show the newest result, or with `grep` the newest result with a match; the header lists further results."""
    if not records:
        raise NotFound(f"{target} has no record, so there is no raw text. Its id may be expanded without a view.")
    calls = {record.ref: record.tool_call for record in reversed(records)}
    if len(calls) == 1:
        return _show_raw(store, space, _find_ref(store, space, records[-1].ref), request, counter)
    searched = list(islice(calls, _SEARCHED)) if request.view == "grep" else []
    matching = [id_ for id_ in searched if request.argument and _has_match(store, space, id_, request.argument)]
    first, *others = matching or calls
    ref = _find_ref(store, space, first)
    listed = "; ".join(f"{id_} {clean(calls[id_], 40)}" for id_ in others[:5])
    which = f"{target}, newest of {len(others) + 1} results{' with a match' if matching else ''}"
    note = f"{which} ({listed}{'; …' * (len(others) > 5)}): " if others else f"{target}, the one result with a match: "
    room = request.max_tokens - counter.count(note) - 1  # joining two texts may add a token
    if room < max(MIN_TOKENS, request.max_tokens // 2):
        note = f"{which}: "
        room = request.max_tokens - counter.count(note) - 1
    if room < MIN_TOKENS:
        return _show_raw(store, space, ref, request, counter)
    shown = _show_raw(store, space, ref, replace(request, max_tokens=room), counter)
    return replace(shown, text=note + shown.text, tokens=counter.count(note + shown.text))


def _has_match(store: Store, space: str, id_: str, pattern: str) -> bool:
    try:
        text = decode_text(store.read(space, ref_rows.read_bytes, id_))
    except (NotFound, Damaged):
        return False
    return text is not None and has_match(text, pattern)


def _show_raw(store: Store, space: str, ref: Ref, request: _ExpandRequest, counter: TokenCounter) -> Expansion:
    data = store.read(space, ref_rows.read_bytes, ref.id)
    text = decode_text(data)
    if text is not None:
        return _show_text(text, ref.id, request, counter)
    address = ref_address(store, ref.id, ref.path)
    if request.view not in (None, "page"):
        raise InvalidInput(f"{ref.id} is not text ({ref.bytes:,} bytes): it has no lines. Open {address}.")
    where = f"at {address}" if address.startswith("memory:") else f"in {address}, after its front matter"
    text = f"{ref.id} is not text: {ref.bytes:,} bytes {where}."
    dump = f"{text}\nfirst bytes: {data[:64].hex(' ')}"
    shown = dump if counter.fits(dump, request.max_tokens) else counter.cut(text, request.max_tokens)
    return _expansion("page", shown, counter, ref=ref.id)


def _show_text(text: str, id: str, request: _ExpandRequest, counter: TokenCounter) -> Expansion:
    return expand_text(
        text,
        ref=id,
        counter=counter,
        view="page" if request.view is None or request.view == "records" else request.view,
        argument=request.argument,
        max_tokens=request.max_tokens,
        cursor=request.cursor,
    )
