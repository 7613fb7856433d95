"""Stores everything that an edit removes (results on their canvas, the rest as refs and turns) and makes its
replacement.

Guarantees: a replacement may go into the list at once, for the ids it names are on disk; storing the same part twice
gives the same ref and node, so an interrupted call is simply repeated. No replacement exceeds its limit of tokens;
arguments stay JSON of the same shape, so that a provider accepts them; outside text is masked, and our own notes are
fenced so that they are not recorded as said.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import InvalidInput, NotFound, Refused
from mcp_memory.core.secrets import mask, mask_values
from mcp_memory.core.text import one_line
from mcp_memory.core.types import FORGOTTEN, NewTurn
from mcp_memory.longterm.turns import admit, recall_block
from mcp_memory.longterm.verification.trust import flag_turns
from mcp_memory.service.compression.message_lists import ListMessage, MessagePart
from mcp_memory.service.compression.plan import PlanItem, Removal, Replacement
from mcp_memory.shortterm.calls import stand_in
from mcp_memory.shortterm.canvas.flowchart import clean, number_of
from mcp_memory.shortterm.canvas.replay import current_state
from mcp_memory.shortterm.canvas.view import view
from mcp_memory.shortterm.offload import MAX_BYTES, OffloadRequest, offload, raw
from mcp_memory.shortterm.synopsis import synopsise
from mcp_memory.store.protocol import NewRef, Store

if TYPE_CHECKING:
    from mcp_memory.core.tokens import TokenCounter


TALK_CHARS = 6_000
LOOK_BACK = 5_000
"""Turns of a session among which what was recorded already is looked for."""
SMALL = 60
"""Tokens; a result that goes with its message has a node of its own if it is larger."""

_STAND_IN = re.compile(r"\[(?P<node>\d{3,}-N\d+) (?P<ref>r-[0-9a-f]{12,64})\b[^\n]*\]\n(?P<summary>[^\n]*)")
_REF = re.compile(r"\br-[0-9a-f]{12,64}\b")


def stood_in(text: str) -> re.Match[str] | None:
    """Whether a result is what already stands in for one that was offloaded, and of which node and ref."""
    return _STAND_IN.match(text)


@dataclass(frozen=True, slots=True)
class StoredResult:
    """The replacement text, and the refs of the stored originals."""

    text: str
    refs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MessageStorage:
    """Stores parts of one conversation: `items` are its messages, `session` its name."""

    store: Store
    space: str
    session: str
    counter: TokenCounter
    now: datetime
    items: Sequence[PlanItem]
    keep_secrets: bool = False

    def put_away(self, put: Replacement) -> StoredResult:
        """Store a part and return its replacement. Raises Refused where it was forgotten."""
        part = self.items[put.item].message.parts[put.part]
        match put.how:
            case "result":
                return self._result(put, part)
            case "call":
                ref = self._ref(
                    part.text.encode("utf-8", "surrogatepass"), f"{part.tool} arguments", "application/json"
                )
                shown = shorter_arguments(part.text, ref=ref, limit=put.limit, counter=self.counter)
            case "middle":
                ref = self._ref(part.text.encode("utf-8", "surrogatepass"), part.tool or "message", "text/plain")
                shown = middle(part.text, ref=ref, limit=put.limit, counter=self.counter)
        return StoredResult(shown, (ref,))

    def note(self, cut: Removal) -> StoredResult:
        """Store whole messages, and return the note that stands for them. Raises Refused as `put_away` does."""
        going = self.items[cut.start : cut.end]
        pointers = {
            (at, place): self._pointer_of(Replacement(at, place, "result", SMALL))
            for at in range(cut.start, cut.end)
            for place, part in enumerate(self.items[at].message.parts)
            if part.kind == "result" and self.items[at].tokens[place] > SMALL
        }
        script = "\n".join(self._transcript(cut, pointers))
        ref = self._ref(script.encode("utf-8", "surrogatepass"), "conversation", "text/plain")
        turns = self._turns(going)
        numbers = sorted({number_of(node) for node, _ in pointers.values() if node != FORGOTTEN})
        shown = earlier_note(
            calls=sum(item.calls for item in going),
            ref=ref,
            said=[words for item in going for words in _words_of_user(item, turns)],
            canvases=lambda room: self._canvases(numbers, room),
            limit=cut.limit,
            counter=self.counter,
        )
        earlier = [id for item in going if item.is_note for id in _REF.findall(item.message.parts[0].text)]
        return StoredResult(shown, tuple(dict.fromkeys([ref, *earlier])))

    # --- results ------------------------------------------------------------------------------------

    def _result(self, put: Replacement, part: MessagePart) -> StoredResult:
        call = self._call_of(put.item, part)
        arguments = mask_values(_value(call.text)) if call else None
        tool = (call.tool if call else "") or part.tool or "tool"
        raw, (node, ref), summary = part.text, ("", ""), ""
        if (found := stood_in(part.text)) and (held := self._held(found["ref"])) is not None:
            raw, (node, ref), summary = held, (found["node"], found["ref"]), found["summary"]
        else:
            node, ref, summary = self._offloaded(put, part, tool, arguments)
        readable = mask(raw)  # before lines are cut: half a secret would not be known as one

        def preview(chars: int) -> str:
            made = synopsise(
                readable, tool=tool, arguments=arguments, talk=self._talk_since(put.item), budget_chars=chars
            )
            return mask(made.preview)

        shown = result_record(
            node=node, ref=ref, summary=summary, preview=preview, limit=put.limit, counter=self.counter
        )
        return StoredResult(shown, (ref,))

    def _pointer_of(self, put: Replacement) -> tuple[str, str]:
        try:
            return self._node_of(put)
        except Refused:  # its words are not to be kept in another place either
            return FORGOTTEN, ""

    def _node_of(self, put: Replacement) -> tuple[str, str]:
        """The node and ref of a result, which is offloaded unless it was."""
        part = self.items[put.item].message.parts[put.part]
        if (found := stood_in(part.text)) and self._held(found["ref"]) is not None:
            return found["node"], found["ref"]
        call = self._call_of(put.item, part)
        tool = (call.tool if call else "") or part.tool or "tool"
        node, ref, _ = self._offloaded(put, part, tool, _value(call.text) if call else None)
        return node, ref

    def _offloaded(self, put: Replacement, part: MessagePart, tool: str, arguments: object) -> tuple[str, str, str]:
        asked = next((said(item.message) for item in self._before(put.item) if _is_asked(item)), "")
        done = offload(
            self.store,
            self.space,
            request=OffloadRequest(
                tool_name=clean(mask(tool), 60) or "tool",
                result=part.text,
                session=self.session,
                arguments=arguments,
                tool_call_id=clean(part.call_id, 200) or None,
                keep_secrets=self.keep_secrets,
            ),
            counter=self.counter,
            now=self.now,
            goal_hint=one_line(mask(asked), 120),
            talk=self._talk_since(put.item),
        )
        return done.node, done.ref, done.summary

    def _held(self, ref: str) -> str | None:
        try:
            return self.store.read_ref(self.space, ref).decode("utf-8", "replace")
        except NotFound:
            return None

    def _call_of(self, at: int, result: MessagePart) -> MessagePart | None:
        calls = (part for item in self._before(at) for part in item.message.parts if part.kind == "call")
        return next((part for part in calls if part.call_id == result.call_id), None)

    def _before(self, at: int) -> Iterator[PlanItem]:
        """The items before a place, the nearest first; a list may have tens of thousands."""
        return (self.items[place] for place in range(at - 1, -1, -1))

    def _talk_since(self, at: int) -> str:
        """Return the newest words and calls of the model after a result: parts it has used may be used again."""
        later: list[str] = []
        room = TALK_CHARS
        for place in range(len(self.items) - 1, at - 1, -1):
            message = self.items[place].message
            if room <= 0:
                break
            if message.role == "assistant":
                spoken = [part.text[:1_000] for part in message.parts if part.kind in ("text", "call")]
                later += reversed(spoken)
                room -= sum(len(text) + 1 for text in spoken)
        return "\n".join(reversed(later))[-TALK_CHARS:]

    # --- whole messages -----------------------------------------------------------------------------

    def _transcript(self, cut: Removal, pointers: dict[tuple[int, int], tuple[str, str]]) -> Iterator[str]:
        for at in range(cut.start, cut.end):
            message = self.items[at].message
            for place, part in enumerate(message.parts):
                who = " ".join(word for word in (message.role, part.kind, part.tool, part.call_id) if word)
                pointer = pointers.get((at, place))
                yield f"=== {who}"
                if pointer:
                    yield f"{pointer[0]} {pointer[1]}"
                elif part.kind == "fixed":
                    yield self._block(part)
                else:
                    yield part.text

    def _block(self, part: MessagePart) -> str:
        """A block that is no text: itself where it is short, a ref of its bytes where it holds a file."""
        block = _value(part.text)
        data = _bytes_in(block)
        if data is None and len(part.text) <= 4_000:
            return part.text
        kind, content = data or ("application/json", part.text.encode("utf-8", "surrogatepass"))
        try:
            return self._ref(content, "attachment", kind)
        except Refused:
            return FORGOTTEN

    def _turns(self, going: Sequence[PlanItem]) -> dict[str, str]:
        """Record the messages as turns, unless the session has them already; return the ids of turns by place."""
        held: dict[tuple[str, str], list[str]] = {}
        for turn in self.store.last_turns(self.space, self.session, limit=LOOK_BACK, roles=("user", "assistant")):
            held.setdefault((turn.role, turn.content), []).append(turn.id)
        ids: dict[str, str] = {}
        for item in going:
            role, text = item.message.role, said(item.message)
            if item.is_note or not text.strip() or role not in ("user", "assistant"):
                continue
            try:
                admitted = admit([NewTurn(role=role, content=text, client_id=item.after)]).turns
            except InvalidInput:  # too large, or no text that a turn can hold: the transcript has it
                continue
            for turn in flag_turns(self.store, self.space, admitted):
                known = held.get((turn.role, turn.content))
                stored = [] if known else self.store.append_turns(self.space, self.session, [turn], now=self.now).stored
                ids[item.after] = known.pop(0) if known else next((one.id for one in stored), "")
        return ids

    def _canvases(self, numbers: Sequence[int], room: int) -> str:
        """The tasks that the messages were about, the newest first, as much as there is room for."""
        drawn: list[str] = []
        for number in reversed(numbers):
            row = self.store.canvas(self.space, number)
            left = room - sum(self.counter.count(one) + 8 for one in drawn) - 16
            try:
                shown = view(
                    row, current_state(self.store, self.space, row).canvas, counter=self.counter, budget_tokens=left
                )
            except InvalidInput:
                break
            drawn.append(f"Canvas {shown.canvas} ({shown.mmd_file_path}):\n{shown.text.rstrip()}")
        return "\n".join(reversed(drawn))

    def _ref(self, data: bytes, tool: str, content_type: str) -> str:
        if len(data) > MAX_BYTES:
            raise InvalidInput(
                f"A message is over {MAX_BYTES // 2**20} MB: no model reads it and it cannot be put away. Leave it out."
            )
        kept = raw(data, keep_secrets=self.keep_secrets)
        new = NewRef(
            data=kept.data,
            tool=clean(mask(tool), 100),
            arguments=None,
            tool_call_id=None,
            session=self.session,
            timestamp=self.now,
            content_type=content_type,
            masked=kept.masked,
        )
        return self.store.put_ref(self.space, new).id


def _is_asked(item: PlanItem) -> bool:
    return item.message.is_said_by_user and not item.is_note


def said(message: ListMessage) -> str:
    return "\n".join(part.text for part in message.parts if part.kind == "text")


def _words_of_user(item: PlanItem, turns: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the user's words in a message, each with the id of its turn; of a note, the words that it quotes."""
    if item.is_note:
        yield from told_before(item.message.parts[0].text)
    elif _is_asked(item):
        yield turns.get(item.after, ""), said(item.message)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _bytes_in(block: Any) -> tuple[str, bytes] | None:
    """Return the type and content of a file that a block holds in base64, for either API."""
    match block:
        case {"source": {"type": "base64", "data": str(data), "media_type": str(kind)}}:
            pass
        case {"image_url": {"url": str(url)}} if found := re.match(r"data:([\w/+.-]+);base64,", url):
            kind, data = found[1], url[found.end() :]
        case {"file": {"file_data": str(url)}} if found := re.match(r"data:([\w/+.-]+);base64,", url):
            kind, data = found[1], url[found.end() :]
        case _:
            return None
    try:
        return kind, base64.b64decode(data, validate=True)
    except ValueError:
        return None


EARLIER = "earlier"
"""The part of the recall block that a note is."""

_STRINGS = (600, 300, 160, 80, 40, 0)
_SAID_HEAD = "What the user said there:"
_SAID_LINE = re.compile(r"- (?:(t\d+) )?(.*)")
_SAID = (400, 200, 100, 50)


def result_record(
    *, node: str, ref: str, summary: str, preview: Callable[[int], str], limit: int, counter: TokenCounter
) -> str:
    """Return the replacement of a result: its record, and as much of a preview as fits (`preview` takes a size in
    characters).
    """
    bare = stand_in(node=node, ref=ref, summary=summary, preview="").rstrip("\n")
    room = limit - counter.count(bare) - 1
    if room < 12:
        return bare if room >= 0 else counter.cut(bare, limit)
    shown = f"{bare}\n{preview(room * 3)}"
    return shown if counter.fits(shown, limit) else counter.cut(shown, limit).rstrip()


def shorter_arguments(text: str, *, ref: str, limit: int, counter: TokenCounter) -> str:
    """Return the arguments with their long texts cut: of the same keys where that is short enough."""
    try:
        given = mask_values(json.loads(text))
    except (ValueError, RecursionError):
        return middle(text, ref=ref, limit=limit, counter=counter)
    for most in _STRINGS:
        shown = json.dumps(_cut(given, most, ref), ensure_ascii=False, separators=(",", ":"))
        if counter.fits(shown, limit):
            return shown
    return json.dumps({"put_away": f"{ref}; expand_node opens it"}, separators=(",", ":"))


def _cut(value: Any, most: int, ref: str) -> Any:
    match value:
        case dict():
            return {key: _cut(each, most, ref) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [_cut(each, most, ref) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case str() if len(value) > most + 80:
            return f"{value[:most]}… [{len(value) - most:,} more characters in {ref}]"
        case _:
            return value


def middle(text: str, *, ref: str, limit: int, counter: TokenCounter) -> str:
    """Return the beginning and the end of a text, and between them a pointer to the whole.

    Secrets are masked, because the text is stored and used again at the next call.
    """
    text = mask(text)
    mark = f"\n[… {len(text):,} characters in all, whole in {ref}; expand_node opens any part …]\n"
    room = len(text)
    shown = text
    while not counter.fits(shown, limit):
        room = min(room - 1, int(room * 0.8), limit * 8)
        if room <= 0:
            return counter.cut(mark.strip(), limit)
        shown = text[: room * 2 // 3] + mark + text[len(text) - room // 3 :]
    return shown


def earlier_note(
    *,
    calls: int,
    ref: str,
    said: Sequence[tuple[str, str]],
    canvases: Callable[[int], str],
    limit: int,
    counter: TokenCounter,
) -> str:
    """Return the note that replaces removed messages.

    `said`: the user's words among them, each with its id; `canvases` draws the tasks within a number of tokens.
    """
    head = (
        f"Earlier messages of this conversation, {calls} calls of the model among them, were put away to make room. "
        f"They are whole in {ref}: expand_node opens it by lines or grep, conversation_search finds what was said. "
        "What follows is a record of them."
    )
    parts = [head]
    for most in _SAID:
        lines = [f"- {id + ' ' if id else ''}{one_line(mask(text), most)}" for id, text in said]
        told = "\n".join([_SAID_HEAD, *lines]) if lines else ""
        if counter.fits("\n".join([head, told]), limit * 2 // 3):
            parts += [told] if told else []
            break
    room = limit - counter.count(_fenced(parts)) - 4
    if room > 40 and (drawn := canvases(room)):
        parts.append(drawn)
    shown = _fenced(parts)
    return shown if counter.fits(shown, limit) else _fenced([counter.cut(head, max(0, limit - 30))])


def _fenced(parts: Sequence[str]) -> str:
    return recall_block("\n".join(parts), part=EARLIER)


def told_before(note: str) -> Iterator[tuple[str, str]]:
    """Yield the user's words that a note quotes, each with its id, for the next note."""
    _, _, rest = note.partition(f"{_SAID_HEAD}\n")
    for line in rest.splitlines():
        found = _SAID_LINE.fullmatch(line)
        if found is None:
            return
        yield found[1] or "", found[2]
