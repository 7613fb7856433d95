"""Compresses a list of messages once: reads it, replays earlier edits, adds new edits that pay, and writes it back.

Guarantees: the same list gives the same result, also a list that was compressed before and has grown; everything that
is removed is stored; messages without edits are returned as the same objects.

Earlier edits are recognised in the list and repeated byte for byte, so the caller need not remember them. The list may
be the caller's original, a compressed list that has grown, or an older version of either. Each message is recognised
by its place in the conversation, in its original or its replaced form. Only the edits that `locate_messages` and
`replay_edits` need are read from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import Refused, StoreUnavailable
from mcp_memory.core.lru import LRU
from mcp_memory.service.compression import message_lists
from mcp_memory.service.compression.message_lists import START, ListMessage, MessagePart, digest, place_after
from mcp_memory.service.compression.plan import (
    MESSAGE_TOKENS,
    CompressionRules,
    EditPlan,
    Level,
    PlanItem,
    make_plan,
    sent_before,
)
from mcp_memory.service.compression.storing import MessageStorage
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import digests, saving_rows
from mcp_memory.store.values import Conflict, MessageEdit, Saving

if TYPE_CHECKING:
    from mcp_memory.core.token_counts import TokenCounter

IMAGE_TOKENS = 1_600
"""Tokens counted for each image: the most after its provider has scaled it down. Other blocks count as their JSON."""
ROUNDS = 50
"""The most plans in one call: a plan may not suffice, and other programs may edit the conversation meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """A compressed list, in the form of the input."""

    messages: list[Any]
    level: Level
    """The level that the window requires in this call."""
    tokens_before: int
    """Tokens of the input list, `overhead` included."""
    tokens: int
    """Tokens of the result, `overhead` included."""
    edits: int
    """Number of new edits; with 0 the provider's cache stays valid."""
    cache_broken: int
    """Tokens after the first new edit that were sent before: they are read again without the cache."""
    fits: bool
    """Whether the result is within the window. If not, `note` says what cannot be made shorter."""
    note: str | None
    session: str
    places: list[tuple[int, ...]]
    """For each message, the indexes of the input messages it represents."""


def compress_list(
    store: Store,
    space: str,
    messages: Sequence[Any],
    *,
    rules: CompressionRules,
    counter: TokenCounter,
    now: Callable[[], datetime],
    session: str | None = None,
    overhead: int = 0,
    level: Level | None = None,
    keep_secrets: bool = False,
) -> Compressed:
    """Compress the list by the rules, storing every part that is removed; see `Memory.compress`.

    Raises InvalidInput for anything but a list of messages, StoreUnavailable if `ROUNDS` rounds do not suffice.
    """
    parsed = message_lists.read(messages)
    secret = store.read_home(digests.secret, "message")
    message_digests = [digest(message, secret) for message in parsed]
    made = broken = conflicts = 0
    reached: Level | None = None
    for _ in range(ROUNDS):
        positions = locate_messages(
            parsed, message_digests, store.read(space, saving_rows.message_edits, shown=message_digests)
        )
        earlier = store.read(
            space, saving_rows.message_edits, reaching=list({position.after for position in positions})
        )
        items = replay_edits(parsed, positions, earlier, counter)
        name = session or (earlier[0].session if earlier else _session_name(positions))
        plan = make_plan(items, rules, overhead=overhead, level=level)
        reached = reached or plan.level
        storage = MessageStorage(
            store=store,
            space=space,
            session=name,
            counter=counter,
            now=now().astimezone(),
            items=[replace(item, message=message_lists.without_private_text(item.message)) for item in items],
            keep_secrets=keep_secrets,
        )
        edits = list(_edits(storage, plan, messages, secret))
        if not edits:
            tokens = overhead + sum(item.total for item in items)
            return Compressed(
                messages=[_write_item(messages, item) for item in items],
                level=reached,
                tokens_before=overhead + sum(sum(_tokens(message, counter)) + MESSAGE_TOKENS for message in parsed),
                tokens=tokens,
                edits=made,
                cache_broken=broken,
                fits=tokens <= rules.window,
                note=None if tokens <= rules.window else _too_large(items, tokens, rules.window, overhead),
                session=name,
                places=[item.places for item in items],
            )
        trial = [replace(edit, id=_UNSTORED + place) for place, edit in enumerate(edits)]
        saving = _saving(items, replay_edits(parsed, positions, [*earlier, *trial], counter), plan, edits, at=now())
        try:
            store.write(
                space,
                saving_rows.put_message_edits,
                edits,
                seen=max((edit.id for edit in earlier), default=0),
                saving=saving,
            )
            broken = max(broken, saving.cache_broken)
            made += len(edits)
        except Conflict:
            conflicts += 1
    raise StoreUnavailable(
        f"Other programs compress this conversation at the same time ({conflicts} conflicts). Call again."
    )


_UNSTORED = 2**62
"""First id of edits that are not stored yet: they are newer than all stored edits."""


def _saving(
    before: Sequence[PlanItem], after: Sequence[PlanItem], plan: EditPlan, edits: Sequence[MessageEdit], *, at: datetime
) -> Saving:
    """Return what the edits save, and how many cached tokens they invalidate."""
    first = min([*(replacement.item for replacement in plan.replacements), *(cut.start for cut in plan.cuts)])
    unsent = {place for item in before[sent_before(before) :] for place in item.places}
    behind = [item for item in after if item.places[0] >= before[first].places[0]]
    changed = [item for item in after if any(item.after == edit.after for edit in edits)]
    stayed = {item.after for item in after} - {item.after for item in changed}
    return Saving(
        session=edits[0].session,
        at=at,
        kind="compress",
        saved=sum(item.total for item in before if item.after not in stayed),
        spent=sum(item.total for item in changed),
        cache_broken=sum(item.total for item in behind if unsent.isdisjoint(item.places)),
    )


# --- the edits that were made before ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MessagePosition:
    """The places before and after a message in its conversation, and the edit that produced the message, if any."""

    before: str
    after: str
    edit: MessageEdit | None = None


def locate_messages(
    messages: Sequence[ListMessage], message_digests: Sequence[str], shown: Iterable[MessageEdit]
) -> list[MessagePosition]:
    """Return the position of each message. A replacement spans its messages; a system message spans nothing."""
    edits = {(edit.before, edit.shown): edit for edit in shown}
    positions: list[MessagePosition] = []
    at = START
    for message, shown_digest in zip(messages, message_digests, strict=True):
        if message.role == "system":
            positions.append(MessagePosition(at, at))
            continue
        edit = edits.get((at, shown_digest))
        after = edit.after if edit else place_after(at, shown_digest)
        positions.append(MessagePosition(at, after, edit))
        at = after
    return positions


def _session_name(positions: Sequence[MessagePosition]) -> str:
    """Return a name for a conversation, from its first message."""
    first = next((position.after for position in positions if position.after), START)
    return f"chat-{first[:10] or 'empty'}"


def replay_edits(
    messages: Sequence[ListMessage],
    positions: Sequence[MessagePosition],
    reaching: Iterable[MessageEdit],
    counter: TokenCounter,
) -> list[PlanItem]:
    """Return the list as the last compression left it, followed by the new messages."""
    newest: dict[str, MessageEdit] = {}
    notes: list[MessageEdit] = []
    for edit in sorted(reaching, key=lambda edit: edit.id):
        if edit.note is None:
            newest[edit.after] = edit
        else:
            notes.append(edit)
    runs = _find_noted_runs(messages, positions, notes)
    items: list[PlanItem] = []
    for at, (message, position) in enumerate(zip(messages, positions, strict=True)):
        run = next((run for run in runs if at in run[0]), None)
        if message.role == "system" or run is None:
            edit = None if message.role == "system" else newest.get(position.after)
            items.append(_apply_edit(message, position, at, edit, counter))
        elif at == run[0].start:
            span, note = run
            message = ListMessage(role="user", parts=(MessagePart("text", note.note or ""),))
            is_here = position.edit is not None and position.edit.note == note.note
            items.append(
                PlanItem(
                    message=message,
                    tokens=_tokens(message, counter),
                    before=note.before,
                    after=note.after,
                    places=tuple(place for place in span if messages[place].role != "system"),
                    edit=note,
                    new_note=None if is_here else note.note,
                )
            )
    return items


def _apply_edit(
    message: ListMessage, position: MessagePosition, at: int, edit: MessageEdit | None, counter: TokenCounter
) -> PlanItem:
    texts = edit.texts.items() if edit else ()
    changed = {place: text for place, text in texts if message.parts[place].text != text}
    if changed:
        parts = (replace(part, text=changed.get(place, part.text)) for place, part in enumerate(message.parts))
        message = replace(message, parts=tuple(parts))
    return PlanItem(
        message=message,
        tokens=_tokens(message, counter),
        before=position.before,
        after=position.after,
        places=(at,),
        edit=edit,
        texts=changed,
    )


def _find_noted_runs(
    messages: Sequence[ListMessage], positions: Sequence[MessagePosition], notes: Iterable[MessageEdit]
) -> list[tuple[range, MessageEdit]]:
    """Return the runs of messages that notes replace; of overlapping runs the longest."""
    named = [at for at, message in enumerate(messages) if message.role != "system"]
    ends = {positions[at].after: at for at in named}
    starts = {positions[at].before: at for at in reversed(named)}
    runs = [
        (range(starts[edit.before], ends[edit.after] + 1), edit)
        for edit in notes
        if edit.before in starts and edit.after in ends and starts[edit.before] <= ends[edit.after]
    ]
    chosen: list[tuple[range, MessageEdit]] = []
    for span, edit in sorted(runs, key=lambda each: (-len(each[0]), -each[1].id)):
        if not any(span.start < other.stop and other.start < span.stop for other, _ in chosen):
            chosen.append((span, edit))
    return chosen


_COUNTS = LRU[tuple[str, bytes], int](50_000)


def _tokens(message: ListMessage, counter: TokenCounter) -> tuple[int, ...]:
    """Return the number of tokens of each part of a message."""
    return tuple(_tokens_of_part(part, counter) for part in message.parts)


def _tokens_of_part(part: MessagePart, counter: TokenCounter) -> int:
    """Return the tokens of a part, the same for every image. Counts of long texts are cached by their hash."""
    if part.kind == "fixed" and '"image' in part.text[:80]:
        return IMAGE_TOKENS
    called = counter.count(part.tool) if part.kind == "call" else 0
    if len(part.text) < 200:
        return called + counter.count(part.text)
    key = (counter.name, blake2b(part.text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    cached = _COUNTS.get(key)
    return called + (_COUNTS.put(key, counter.count(part.text)) if cached is None else cached)


# --- the new edits ----------------------------------------------------------------------------------


def _edits(storage: MessageStorage, plan: EditPlan, originals: Sequence[Any], secret: bytes) -> Iterator[MessageEdit]:
    """Store the parts to remove, and yield the edits that replace them."""
    for at, replacements in groupby(plan.replacements, key=lambda put: put.item):
        item = storage.items[at]
        kept: dict[int, tuple[str, str]] = {}
        for replacement in replacements:
            with suppress(Refused):  # a forgotten part stays in the caller's list, and is not stored again
                kept[replacement.part] = storage.store_part(replacement)
        if not kept:
            continue
        texts = {**(item.edit.texts if item.edit else {}), **{part: text for part, (text, _) in kept.items()}}
        shown = message_lists.write(originals[item.places[0]], texts)
        refs = [*(item.edit.refs if item.edit else ()), *(ref for _, ref in kept.values())]
        yield MessageEdit(
            session=storage.session,
            before=item.before,
            after=item.after,
            shown=digest(message_lists.read([shown])[0], secret),  # as a later call will read it
            texts=texts,
            refs=tuple(dict.fromkeys(refs)),
        )
    for cut in plan.cuts:
        going = [item for item in storage.items[cut.start : cut.end] if item.message.role != "system"]
        try:
            text, refs = storage.note(cut)
        except Refused:
            continue
        yield MessageEdit(
            session=storage.session,
            before=going[0].before,
            after=going[-1].after,
            shown=digest(message_lists.read([message_lists.note(text)])[0], secret),
            note=text,
            refs=refs,
            calls=sum(item.calls for item in going),
        )


# --- the answer -------------------------------------------------------------------------------------


def _write_item(originals: Sequence[Any], item: PlanItem) -> Any:
    if item.new_note is not None:
        return message_lists.note(item.new_note)
    return message_lists.write(originals[item.places[0]], item.texts)


def _too_large(items: Sequence[PlanItem], tokens: int, window: int, overhead: int) -> str:
    text = f"The list is {tokens:,} tokens and the window is {window:,}: what is left cannot be made shorter. "
    if items:
        largest = max(items, key=lambda item: item.total)
        text += f"The largest is message {largest.places[0] + 1} ({largest.message.role}, {largest.total:,} tokens). "
    if overhead:
        text += f"{overhead:,} are taken by `overhead`. "
    return text + "Shorten the system prompt or the newest message, or use a model with a larger window."
