"""Open a canvas, group or node into its records, and a record into the raw text of its ref.

Guarantees: no answer has more than `max_tokens`; an answer with a remainder has a cursor; following the cursors of the
records shows each of them once. `expand` shows the raw text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Literal

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound
from mcp_memory.core.text import decode_text
from mcp_memory.core.types import CanvasRow, Expansion, Record, Ref
from mcp_memory.shortterm.addresses import ref_address
from mcp_memory.shortterm.canvas.flowchart import clean, number_of, padded
from mcp_memory.shortterm.canvas.folding import nodes_of
from mcp_memory.shortterm.canvas.state import current_state
from mcp_memory.shortterm.canvas.tasks import find_canvas
from mcp_memory.shortterm.expand import MIN_TOKENS, View, expand_text, has_match, view_of_cursor
from mcp_memory.store.protocol import Store

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
_REFS_LOOKED_AT = 5000
_SEARCHED = 50  # results of a node, the newest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """A checked request. `view` is None where the target decides."""

    view: Layer | None
    lines: str | None
    grep: str | None
    json_path: str | None
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
    """Open what `target` names: a node, group or canvas into its records, a ref into its raw text.

    `text` is that of a target outside the canvases, which is opened as a raw text is.
    View `raw`, `lines` or `json_path` of a node, group or canvas opens the raw text of its newest record, `grep` that
    of the newest in which a line matches.
    Raises NotFound for an id that is not there, naming near ones; InvalidInput for a view, range or cursor.
    """
    if max_tokens < MIN_TOKENS:
        raise InvalidInput(f"max_tokens is {max_tokens}; the least that can be shown is {MIN_TOKENS}.")
    target, lines = _with_lines(target.strip(), lines, alone=not (view or grep or json_path or cursor))
    ask = _Ask(
        view=_view(view, lines=lines, grep=grep, json_path=json_path, cursor=cursor),
        lines=lines,
        grep=grep,
        json_path=json_path,
        max_tokens=max_tokens,
        cursor=cursor,
    )
    if text is not None:
        return _page_of(text, target, ask, counter)
    if found := _REF.fullmatch(target):
        ref = _ref(store, space, f"r-{found[1].lower()}")
        if ask.view != "records":
            return _raw(store, space, ref, ask, counter)
        return _records(ref.id, list(_all_records(store, space, ref=ref.id)), ask, counter)
    title, records = _find(store, space, target)
    if ask.view in (None, "records"):
        return _records(title, records, ask, counter)
    return _raw_of_newest(store, space, target, records, ask, counter)


def _with_lines(target: str, lines: str | None, *, alone: bool) -> tuple[str, str | None]:
    """Split `r-9f2c1a7b3d4e:120-134`, the form in search results; explicit arguments take precedence."""
    ref, colon, named = target.rpartition(":")
    if not colon or not _REF.fullmatch(ref):
        return target, lines
    return ref, named if alone and lines is None else lines


def _view(
    view: str | None, *, lines: str | None, grep: str | None, json_path: str | None, cursor: str | None
) -> Layer | None:
    """Return the view: `raw` with lines, grep or json_path means that one; without any, cursor or target decide."""
    name = (view or "").strip().lower()
    if name and name not in _VIEWS:
        raise InvalidInput(f"view {clean(name, 40)!r} is unknown. Allowed: records, raw, lines, grep, json_path.")
    if name not in ("", "raw", "page"):
        return _VIEWS[name]
    arguments: dict[View, str | None] = {"lines": lines, "grep": grep, "json": json_path}
    given: list[View] = [kind for kind, value in arguments.items() if value]
    if len(given) > 1:
        raise InvalidInput("Give one of lines, grep and json_path: each is a view of its own.")
    if given:
        return given[0]
    if name:
        return "page"
    if cursor and cursor.strip():
        if _CURSOR.fullmatch(cursor.strip()):
            return "records"
        return view_of_cursor(cursor)
    return None


# --- finding ----------------------------------------------------------------------------------------


def _find(store: Store, space: str, target: str) -> tuple[str, list[Record]]:
    """Return what to call the target, and its records, oldest first."""
    if not _NODE.fullmatch(target):
        row = store.canvas(space, int(target)) if _NUMBER.fullmatch(target) else _task(store, space, target)
        records = list(_all_records(store, space, node=padded(row.number)))
        return f"{padded(row.number)} {row.label} ({row.status})", records
    row = store.canvas(space, number_of(target))
    try:
        canvas = current_state(store, space, row).canvas
    except Damaged:
        return target, list(_all_records(store, space, node=target))  # the records outlive the drawing
    held = set(nodes_of(canvas, row.groups, target))
    if not held:
        ids = [*row.groups, *(node.id for node in canvas.nodes)]
        raise NotFound(f"There is no {target}. Near it on canvas {padded(row.number)}: {_near(target, ids)}.")
    records = [each for each in _all_records(store, space, node=padded(row.number)) if each.node_id in held]
    node = next((node for node in canvas.nodes if node.id == target), None)
    return (f'{target} "{node.title}" ({node.status})' if node else f"{target}, {len(held)} steps"), records


def _task(store: Store, space: str, target: str) -> CanvasRow:
    try:
        return find_canvas(store, space, task=target, session=None)
    except NotFound as error:
        raise NotFound(f"{error} A target is a node (003-N4), group (003-F1), canvas (003) or ref (r-…).") from None


def _ref(store: Store, space: str, id_: str) -> Ref:
    try:
        return store.ref(space, id_)
    except NotFound as error:
        names = list(dict.fromkeys(each.ref for each in islice(_all_records(store, space), _REFS_LOOKED_AT)))
        near = get_close_matches(id_, names, n=20, cutoff=0.5) or names[-20:]
        known = [ref for ref in near if _is_held(store, space, ref)]
        hint = f" Near it: {_near(id_, known)}." if known else ""
        raise NotFound(f"{error}{hint}") from None


def _is_held(store: Store, space: str, id_: str) -> bool:
    """A forgotten result has its records still."""
    try:
        store.ref(space, id_)
    except NotFound:
        return False
    return True


def _near(id_: str, ids: Sequence[str]) -> str:
    return ", ".join(get_close_matches(id_, ids, n=5, cutoff=0.5) or ids[-5:])


def _all_records(store: Store, space: str, *, node: str | None = None, ref: str | None = None) -> Iterator[Record]:
    start = 0
    while page := store.records(space, node=node, ref=ref, start=start, limit=_PAGE):
        yield from page
        start += len(page)


# --- records ----------------------------------------------------------------------------------------


def _records(title: str, records: Sequence[Record], ask: _Ask, counter: TokenCounter) -> Expansion:
    """As many lines as fit, in order from the cursor on; a line that alone is too long is cut."""
    start = _start(ask.cursor, len(records))
    head = counter.cut(f"{title}: {len(records)} record{'s' * (len(records) != 1)}", ask.max_tokens // 3)

    def text(end: int) -> str:
        left = len(records) - end
        more = [f"… {left} more: go on with cursor=r{end}"] if left else []
        return "\n".join([head, *map(_line, records[start:end]), *more])

    end, room = start, ask.max_tokens
    while end < len(records) and room > 0:
        room -= counter.count(_line(records[end]))
        end += 1
    while end > start + 1 and not counter.fits(text(end), ask.max_tokens):
        end -= 1
    shown = text(end)
    if not counter.fits(shown, ask.max_tokens):
        line = _line(records[start])
        around = counter.count(shown.replace(line, "…"))
        shown = shown.replace(line, counter.cut(line, max(0, ask.max_tokens - around - 2)) + "…")
        shown = counter.cut(shown, ask.max_tokens)
    cursor = f"r{end}" if end < len(records) else None
    tokens = counter.count(shown)
    return Expansion(view="records", text=shown, tokens=tokens, ref=None, lines=None, total_lines=None, cursor=cursor)


def _start(cursor: str | None, total: int) -> int:
    if not cursor or not cursor.strip():
        return 0
    found = _CURSOR.fullmatch(cursor.strip())
    if not found or int(found[1]) >= total:
        raise InvalidInput("This cursor does not continue these records. Copy it from the last line of an answer.")
    return int(found[1])


def _line(record: Record) -> str:
    """`003-N4 04-16 22:19 pytest tests → 2 failed, 40 passed (r-9f2c1a7b3d4e, 5,120 tokens)`"""
    at = record.timestamp.strftime("%m-%d %H:%M")
    return f"{record.node_id} {at} {record.tool_call} → {record.summary} ({record.ref}, {record.tokens_raw:,} tokens)"


# --- raw text ---------------------------------------------------------------------------------------


def _raw_of_newest(
    store: Store, space: str, target: str, records: Sequence[Record], ask: _Ask, counter: TokenCounter
) -> Expansion:
    """Show the newest record, for a search the newest that matches; the header lists the others."""
    if not records:
        raise NotFound(f"{target} has no record, so there is no raw text. Its id may be expanded without a view.")
    calls = {each.ref: each.tool_call for each in reversed(records)}
    if len(calls) == 1:
        return _raw(store, space, _ref(store, space, records[-1].ref), ask, counter)
    searched = list(islice(calls, _SEARCHED)) if ask.view == "grep" else []
    matching = [id_ for id_ in searched if ask.grep and _matches(store, space, id_, ask.grep)]
    first, *others = matching or calls
    ref = _ref(store, space, first)
    named = "; ".join(f"{id_} {clean(calls[id_], 40)}" for id_ in others[:5])
    which = f"{target}, newest of {len(others) + 1} results{' with a match' if matching else ''}"
    note = f"{which} ({named}{'; …' * (len(others) > 5)}): " if others else f"{target}, the one result with a match: "
    room = ask.max_tokens - counter.count(note) - 1  # one for where the two texts meet
    if room < max(MIN_TOKENS, ask.max_tokens // 2):
        note = f"{which}: "
        room = ask.max_tokens - counter.count(note) - 1
    if room < MIN_TOKENS:
        return _raw(store, space, ref, ask, counter)
    shown = _raw(store, space, ref, replace(ask, max_tokens=room), counter)
    return replace(shown, text=note + shown.text, tokens=counter.count(note + shown.text))


def _matches(store: Store, space: str, id_: str, pattern: str) -> bool:
    try:
        text = decode_text(store.read_ref(space, id_))
    except (NotFound, Damaged):  # forgotten or torn
        return False
    return text is not None and has_match(text, pattern)


def _raw(store: Store, space: str, ref: Ref, ask: _Ask, counter: TokenCounter) -> Expansion:
    data = store.read_ref(space, ref.id)
    raw = decode_text(data)
    if raw is None:
        return _binary(ref, ref_address(store, ref.id, ref.path), data, ask, counter)
    return _page_of(raw, ref.id, ask, counter)


def _page_of(raw: str, id: str, ask: _Ask, counter: TokenCounter) -> Expansion:
    return expand_text(
        raw,
        ref=id,
        counter=counter,
        view="page" if ask.view is None or ask.view == "records" else ask.view,
        lines=ask.lines,
        grep=ask.grep,
        json_path=ask.json_path,
        max_tokens=ask.max_tokens,
        cursor=ask.cursor,
    )


def _binary(ref: Ref, address: str, data: bytes, ask: _Ask, counter: TokenCounter) -> Expansion:
    if ask.view not in (None, "page"):
        raise InvalidInput(f"{ref.id} is not text ({ref.bytes:,} bytes): it has no lines. Open {address}.")
    where = f"at {address}" if address.startswith("memory:") else f"in {address}, after its front matter"
    text = f"{ref.id} is not text: {ref.bytes:,} bytes {where}."
    dump = f"{text}\nfirst bytes: {data[:64].hex(' ')}"
    text = dump if counter.fits(dump, ask.max_tokens) else counter.cut(text, ask.max_tokens)
    tokens = counter.count(text)
    return Expansion(view="page", text=text, tokens=tokens, ref=ref.id, lines=None, total_lines=None, cursor=None)
