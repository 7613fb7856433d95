"""Stores what an edit removes (results on their canvas, other texts as refs and turns) and writes the replacements.

Guarantees: a replacement may go into the list at once, since the ids in it are on disk; storing the same part twice
gives the same ref and node, so an interrupted call is simply repeated. No replacement exceeds its limit of tokens;
arguments stay JSON of the same shape, so that a provider accepts them; text from outside is masked, and our own notes
are fenced so that they are not recorded as turns.
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
from mcp_memory.core.private_passages import PRIVATE
from mcp_memory.core.secrets.masking import mask, mask_values
from mcp_memory.core.text import one_line
from mcp_memory.core.types import FORGOTTEN, NewTurn
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.longterm.turns import admit, recall_block
from mcp_memory.service.compression.message_lists import ListMessage, MessagePart
from mcp_memory.service.compression.plan import PlanItem, Removal, Replacement
from mcp_memory.shortterm.calls import stand_in
from mcp_memory.shortterm.canvas.flowchart import clean, number_of
from mcp_memory.shortterm.canvas.state import current_state
from mcp_memory.shortterm.canvas.tasks import canvas_address
from mcp_memory.shortterm.canvas.view import view
from mcp_memory.shortterm.offload import MAX_BYTES, OffloadRequest, offload, raw
from mcp_memory.shortterm.synopsis.synopsis import synopsise
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, ref_rows, turn_rows
from mcp_memory.store.values import NewRef

if TYPE_CHECKING:
    from mcp_memory.core.token_counts import TokenCounter


TALK_CHARS = 6_000
LOOK_BACK = 5_000
"""How many of a session's newest turns are searched for recorded messages."""
SMALL = 60
"""The largest result of a removed message, in tokens, that gets no node."""

_STAND_IN = re.compile(r"\[(?P<node>\d{3,}-N\d+) (?P<ref>r-[0-9a-f]{12,64})\b[^\n]*\]\n(?P<summary>[^\n]*)")
_DATA_URL = re.compile(r"data:([\w/+.-]+);base64,")
_REF = re.compile(r"\br-[0-9a-f]{12,64}\b")


@dataclass(frozen=True, kw_only=True)
class MessageStorage:
    """Stores parts of a conversation. `items` are its messages without private passages; `session` is its name."""

    store: Store
    space: str
    session: str
    counter: TokenCounter
    now: datetime
    items: Sequence[PlanItem]
    keep_secrets: bool = False

    def store_part(self, replacement: Replacement) -> tuple[str, str]:
        """Store a part; return its replacement and its ref.

        Raises Refused if the part was forgotten, InvalidInput if it is too large to store.
        """
        part = self.items[replacement.item].message.parts[replacement.part]
        if replacement.how == "result":
            return self._result(replacement.item, part, replacement.limit)
        if replacement.how == "call":
            ref = self._ref(part.text, f"{part.tool} arguments", "application/json")
            return shorten_arguments(part.text, ref=ref, limit=replacement.limit, counter=self.counter), ref
        text = part.text or PRIVATE  # all of it may have been a private passage
        ref = self._ref(text, part.tool or "message", "text/plain")
        return cut_middle(text, ref=ref, limit=replacement.limit, counter=self.counter), ref

    def note(self, cut: Removal) -> tuple[str, tuple[str, ...]]:
        """Store whole messages; return the note that replaces them, and the refs. Raises as `store_part` does."""
        going = self.items[cut.start : cut.end]
        pointers = {
            (at, place): self._pointer_of(at, part)
            for at, item in enumerate(going, cut.start)
            for place, part in enumerate(item.message.parts)
            if part.kind == "result" and item.tokens[place] > SMALL
        }
        ref = self._ref("\n".join(self._transcript(cut, pointers)), "conversation", "text/plain")
        turns = self._turns(going)
        numbers = sorted({number_of(node) for node, _ in pointers.values() if node != FORGOTTEN})
        shown = write_note(
            calls=sum(item.calls for item in going),
            ref=ref,
            quotes=[words for item in going for words in _user_quotes(item, turns)],
            canvases=lambda room: self._canvases(numbers, room),
            limit=cut.limit,
            counter=self.counter,
        )
        earlier = [id for item in going if item.is_note for id in _REF.findall(item.message.parts[0].text)]
        return shown, tuple(dict.fromkeys([ref, *earlier]))

    # --- results ------------------------------------------------------------------------------------

    def _result(self, at: int, part: MessagePart, limit: int) -> tuple[str, str]:
        """Offload a result; return its stand-in with a preview that fits, and its ref."""
        raw, node, ref, summary = self._offloaded(at, part)
        bare = stand_in(node=node, ref=ref, summary=summary, preview="").rstrip("\n")
        room = limit - self.counter.count(bare) - 1
        if room < 12:
            return (bare if room >= 0 else self.counter.cut(bare, limit)), ref
        tool, arguments = self._call_of(at, part)
        made = synopsise(  # masked before lines are cut: half a secret is not recognised
            mask(raw), tool=tool, arguments=arguments, talk=self._talk_since(at), budget_chars=room * 3
        )
        shown = f"{bare}\n{mask(made.preview)}"
        return shown if self.counter.fits(shown, limit) else self.counter.cut(shown, limit).rstrip(), ref

    def _pointer_of(self, at: int, part: MessagePart) -> tuple[str, str]:
        try:
            _, node, ref, _ = self._offloaded(at, part)
        except Refused:  # its words must not be stored elsewhere either
            return FORGOTTEN, ""
        return node, ref

    def _offloaded(self, at: int, part: MessagePart) -> tuple[str, str, str, str]:
        """Offload a result unless that was done before, and return its text, node, ref and summary."""
        if pointer := _STAND_IN.match(part.text):
            try:
                raw = self.store.read(self.space, ref_rows.read_bytes, pointer["ref"]).decode("utf-8", "replace")
                return raw, pointer["node"], pointer["ref"], pointer["summary"]
            except NotFound:
                pass
        asked = next((text_of(item.message) for item in reversed(self.items[:at]) if item.has_user_words), "")
        tool, arguments = self._call_of(at, part)
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
            goal_hint=one_line(mask(typed_text(asked)), 120),
            talk=self._talk_since(at),
        )
        return part.text, done.node, done.ref, done.summary

    def _call_of(self, at: int, result: MessagePart) -> tuple[str, Any]:
        """Return the tool and the arguments of the call that a result answers.

        Without the call, the arguments are None.
        """
        calls = (part for item in reversed(self.items[:at]) for part in item.message.parts if part.kind == "call")
        call = next((part for part in calls if part.call_id == result.call_id), None)
        tool = (call.tool if call else "") or result.tool or "tool"
        return tool, mask_values(_value(call.text)) if call else None

    def _talk_since(self, at: int) -> str:
        """Return the model's latest words and calls since a result: parts that they mention may be needed again."""
        later: list[str] = []
        room = TALK_CHARS
        for item in reversed(self.items[at:]):
            if room <= 0:
                break
            if item.message.role == "assistant":
                spoken = [part.text[:1_000] for part in item.message.parts if part.kind in ("text", "call")]
                later += reversed(spoken)
                room -= sum(len(text) + 1 for text in spoken)
        return "\n".join(reversed(later))[-TALK_CHARS:]

    # --- whole messages -----------------------------------------------------------------------------

    def _transcript(self, cut: Removal, pointers: dict[tuple[int, int], tuple[str, str]]) -> Iterator[str]:
        for at in range(cut.start, cut.end):
            message = self.items[at].message
            for place, part in enumerate(message.parts):
                who = " ".join(word for word in (message.role, part.kind, part.tool, part.call_id) if word)
                yield f"=== {who}"
                if (at, place) in pointers:
                    yield " ".join(pointers[at, place])
                else:
                    yield self._block(part.text) if part.kind == "fixed" else part.text

    def _block(self, block: str) -> str:
        """Store a long block, or the file in a block, and return its ref; return a short block unchanged.

        Returns `FORGOTTEN` if the content was forgotten.
        """
        file = _file_in(_value(block))
        if file is None and len(block) <= 4_000:
            return block
        kind, content = file or ("application/json", block)
        try:
            return self._ref(content, "attachment", kind)
        except Refused:
            return FORGOTTEN

    def _turns(self, going: Sequence[PlanItem]) -> dict[str, str]:
        """Record the messages as turns, unless the session has them already; return the ids of turns by place."""
        recorded: dict[tuple[str, str], list[str]] = {}
        for turn in self.store.read(
            self.space, turn_rows.last_turns, self.session, limit=LOOK_BACK, roles=("user", "assistant")
        ):
            recorded.setdefault((turn.role, turn.content), []).append(turn.id)
        ids: dict[str, str] = {}
        for item in going:
            role, text = item.message.role, text_of(item.message)
            if item.is_note or not text.strip() or role not in ("user", "assistant"):
                continue
            try:
                admitted = admit([NewTurn(role=role, content=text, client_id=item.after)]).turns
            except InvalidInput:  # too large, or not a valid turn: the transcript has it
                continue
            for turn in admitted:
                same = recorded.get((turn.role, turn.content))
                stored = (
                    []
                    if same
                    else self.store.write(
                        self.space, turn_rows.append, self.session, turn_rows.prepare([turn]), now=self.now
                    ).stored
                )
                if not ids.get(item.after):  # an attachment follows its message
                    ids[item.after] = same.pop(0) if same else next((new.id for new in stored), "")
        return ids

    def _canvases(self, numbers: Sequence[int], room: int) -> str:
        """Return the canvases drawn within `room` tokens, in order; the oldest are left out first."""
        drawn: list[str] = []
        for number in reversed(numbers):
            row = self.store.read(self.space, canvas_rows.canvas, number)
            left = room - sum(self.counter.count(text) + 8 for text in drawn) - 16
            try:
                canvas = current_state(self.store, self.space, row).canvas
                address = canvas_address(self.store, row.number, row.label)
                shown = view(row, canvas, address=address, counter=self.counter, budget_tokens=left)
            except InvalidInput:
                break
            drawn.append(f"Canvas {shown.canvas} ({shown.mmd_file_path}):\n{shown.text.rstrip()}")
        return "\n".join(reversed(drawn))

    def _ref(self, content: str | bytes, tool: str, content_type: str) -> str:
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
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
        return self.store.write(self.space, ref_rows.put, new).id


def text_of(message: ListMessage) -> str:
    return "\n".join(part.text for part in message.parts if part.kind == "text")


def _user_quotes(item: PlanItem, turns: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the user's words in a message, each with the id of its turn; for a note, the words that it quotes."""
    if item.is_note:
        yield from read_quotes(item.message.parts[0].text)
    elif item.has_user_words:
        yield turns.get(item.after, ""), text_of(item.message)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _file_in(block: Any) -> tuple[str, bytes] | None:
    """Return the type and content of a base64 file in a block of either API, None without a valid file."""
    match block:
        case {"source": {"type": "base64", "data": str(data), "media_type": str(kind)}}:
            pass
        case {"image_url": {"url": str(url)}} | {"file": {"file_data": str(url)}} if data_url := _DATA_URL.match(url):
            kind, data = data_url[1], url[data_url.end() :]
        case _:
            return None
    try:
        return kind, base64.b64decode(data, validate=True)
    except ValueError:
        return None


EARLIER = "earlier"
"""The `part` of the recall block of a note."""

_STRINGS = (600, 300, 160, 80, 40, 0)
_SAID_HEAD = "What the user said there:"
_SAID_LINE = re.compile(r"- (?:(t\d+) )?(.*)")
_SAID = (400, 200, 100, 50)


def shorten_arguments(text: str, *, ref: str, limit: int, counter: TokenCounter) -> str:
    """Return the arguments with their long texts cut; if even that is too long, only a pointer to `ref`.

    Arguments that are not JSON are cut in the middle.
    """
    try:
        arguments = mask_values(json.loads(text))
    except (ValueError, RecursionError):
        return cut_middle(text, ref=ref, limit=limit, counter=counter)
    for most in _STRINGS:
        shown = json.dumps(_cut(arguments, most, ref), ensure_ascii=False, separators=(",", ":"))
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


def cut_middle(text: str, *, ref: str, limit: int, counter: TokenCounter) -> str:
    """Return a text cut to `limit` tokens: its beginning and its end, with a pointer to the whole between them.

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


def write_note(
    *,
    calls: int,
    ref: str,
    quotes: Sequence[tuple[str, str]],
    canvases: Callable[[int], str],
    limit: int,
    counter: TokenCounter,
) -> str:
    """Return the note that replaces removed messages.

    `quotes` are the user's words in these messages, each with the id of its turn; `canvases` draws the tasks within a
    number of tokens.
    """
    head = (
        f"Earlier messages of this conversation, {calls} calls of the model among them, were put away to make room. "
        f"They are whole in {ref}: expand_node opens it by lines or grep, conversation_search finds what was said. "
        "What follows is a record of them."
    )
    parts = [head]
    for most in _SAID:
        lines = [f"- {id + ' ' if id else ''}{one_line(mask(text), most)}" for id, text in quotes]
        quoted = "\n".join([_SAID_HEAD, *lines]) if lines else ""
        if counter.fits("\n".join([head, quoted]), limit * 2 // 3):
            parts += [quoted] if quoted else []
            break
    room = limit - counter.count(_fence(parts)) - 4
    if room > 40 and (drawn := canvases(room)):
        parts.append(drawn)
    shown = _fence(parts)
    return shown if counter.fits(shown, limit) else _fence([counter.cut(head, max(0, limit - 30))])


def _fence(parts: Sequence[str]) -> str:
    return recall_block("\n".join(parts), part=EARLIER)


def read_quotes(note: str) -> Iterator[tuple[str, str]]:
    """Yield the user's words that a note quotes, each with the id of its turn, to repeat them in the next note."""
    _, _, rest = note.partition(f"{_SAID_HEAD}\n")
    for line in rest.splitlines():
        quote = _SAID_LINE.fullmatch(line)
        if quote is None:
            return
        yield quote[1] or "", quote[2]
