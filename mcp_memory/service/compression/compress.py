"""One compression: read the list, replay earlier edits, make new ones where they pay, and write the list back.

Guarantees: the same list gives the same list, as does one that was compressed before and has grown; everything that
leaves the list is stored; messages that are not edited come back as the very objects that were given.

Earlier edits are found again in the list and repeated byte for byte, so the caller need not remember them. The list
may be the caller's own, a compressed one that has grown, or an older one of these. Each message is recognised by its
place in the conversation, in its original or its replaced form. The store is read only for the edits that `walk` and
`replayed` need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mcp_memory.core.errors import Refused, StoreUnavailable
from mcp_memory.service.compression import message_lists
from mcp_memory.service.compression.message_lists import START, ListMessage, MessagePart, behind, digest
from mcp_memory.service.compression.plan import (
    CompressionRules,
    EditPlan,
    Level,
    PlanItem,
    Replacement,
    in_use,
    make_plan,
    sent_before,
)
from mcp_memory.service.compression.storing import MessageStorage, StoredResult
from mcp_memory.store.protocol import Conflict, Store
from mcp_memory.store.values import MessageEdit, Saving

if TYPE_CHECKING:
    from mcp_memory.core.tokens import TokenCounter


IMAGE_TOKENS = 1_600
"""What an image costs at most where its provider scales it down; of other blocks the JSON is counted."""
ROUNDS = 50
"""A plan goes by what things will have at most, so when it is carried out more may be wanted: until nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """A list as it may go to the model, in the form it came in."""

    messages: list[Any]
    level: Level
    """What the window asked for at this call."""
    tokens_before: int
    """Of the list as it was given, `overhead` included."""
    tokens: int
    """Of the list as it is now, `overhead` included."""
    edits: int
    """How many were made at this call; 0: the provider's cache still holds all it held."""
    cache_broken: int
    """Tokens that were sent before, stand behind the first of these edits and are read anew."""
    fits: bool
    """Whether it is within the window. If not, `note` says what cannot be made shorter."""
    note: str | None
    session: str
    places: list[tuple[int, ...]]
    """For each message, the places in the given list of those it stands for."""


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
    """Return the list compressed by the rules; see `Memory.compress`. Raises InvalidInput for anything but a list."""
    read = message_lists.read(messages)
    made = broken = conflicts = 0
    reached: Level | None = None
    for _ in range(ROUNDS):
        now_stands = ReplayedState.of(store, space, read, counter)
        items, name = now_stands.items, session or now_stands.session
        plan = make_plan(items, rules, overhead=overhead, level=level, in_use=in_use(items, rules.keep_calls))
        reached = reached or plan.level
        keeper = MessageStorage(
            store=store,
            space=space,
            session=name,
            counter=counter,
            now=now().astimezone(),
            items=items,
            keep_secrets=keep_secrets,
        )
        edits = list(_edits(keeper, plan, now_stands.standing, messages))
        if not edits:
            tokens = overhead + sum(item.total for item in items)
            given = (_item(_unedited(message, place), counter) for place, message in enumerate(read))
            return Compressed(
                messages=[_written(messages, one) for one in now_stands.standing],
                level=reached,
                tokens_before=overhead + sum(item.total for item in given),
                tokens=tokens,
                edits=made,
                cache_broken=broken,
                fits=tokens <= rules.window,
                note=None if tokens <= rules.window else _too_large(items, tokens, rules.window, overhead),
                session=name,
                places=[one.places for one in now_stands.standing],
            )
        try:
            broken = max(broken, _stored(store, space, now_stands, plan, edits, at=now(), counter=counter))
            made += len(edits)
        except Conflict:
            conflicts += 1
    raise StoreUnavailable(
        f"This conversation is being compressed by others at once ({conflicts} times meanwhile). Call again."
    )


# --- as it stood ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedState:
    """The list with all edits that were made before, and those edits."""

    read: Sequence[ListMessage]
    spots: Sequence[MessagePosition]
    known: list[MessageEdit]
    standing: list[ReplayedMessage]
    items: list[PlanItem]

    @classmethod
    def of(cls, store: Store, space: str, read: Sequence[ListMessage], counter: TokenCounter) -> ReplayedState:
        digests = [digest(message) for message in read]
        shown = store.message_edits(space, shown=digests)
        spots = walk(read, digests, shown)
        known = store.message_edits(space, reaching=list({spot.after for spot in spots}))
        return cls.by(read, spots, known, counter)

    @classmethod
    def by(
        cls,
        read: Sequence[ListMessage],
        spots: Sequence[MessagePosition],
        known: list[MessageEdit],
        counter: TokenCounter,
    ) -> ReplayedState:
        standing = replayed(read, spots, known)
        items = [_item(one, counter) for one in standing]
        return cls(read=read, spots=spots, known=known, standing=standing, items=items)

    @property
    def session(self) -> str:
        """What the conversation is called: as it was before, else by how it begins."""
        if self.known:
            return self.known[0].session
        first = next((spot.after for spot in self.spots if spot.after), START)
        return f"chat-{first[:10] or 'empty'}"


def _item(one: ReplayedMessage, counter: TokenCounter) -> PlanItem:
    calls = 1 if one.message.role == "assistant" else 0
    return PlanItem(
        message=one.message,
        tokens=tuple(_tokens(part, counter) for part in one.message.parts),
        before=one.spot.before,
        after=one.spot.after,
        places=one.places,
        edited=frozenset(one.edit.texts) if one.edit else frozenset(),
        calls=one.edit.calls if one.edit and one.is_note else calls,
        is_note=one.is_note,
    )


def _unedited(message: ListMessage, place: int) -> ReplayedMessage:
    return ReplayedMessage(message=message, spot=MessagePosition(START, START), places=(place,), texts={}, edit=None)


_COUNTS: dict[tuple[str, bytes], int] = {}
_MOST_COUNTS = 50_000


def _tokens(part: MessagePart, counter: TokenCounter) -> int:
    """Count a part. Long texts are remembered by their hash: a list grows by a message or two from call to call."""
    if part.kind == "fixed" and '"image' in part.text[:80]:
        return IMAGE_TOKENS
    called = counter.count(part.tool) if part.kind == "call" else 0
    if len(part.text) < 200:
        return called + counter.count(part.text)
    key = (counter.name, blake2b(part.text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
    if key not in _COUNTS:
        if len(_COUNTS) >= _MOST_COUNTS:
            _COUNTS.clear()
        _COUNTS[key] = counter.count(part.text)
    return called + _COUNTS[key]


# --- the edits --------------------------------------------------------------------------------------


def _edits(
    keeper: MessageStorage, plan: EditPlan, standing: Sequence[ReplayedMessage], given: Sequence[Any]
) -> Iterator[MessageEdit]:
    """Store the parts to remove, and yield their replacements."""
    for at, puts in groupby(plan.puts, key=lambda put: put.item):
        item, held = keeper.items[at], standing[at].edit
        kept = dict(_put_away(keeper, puts))
        if not kept:
            continue
        texts = {**(held.texts if held else {}), **{part: one.text for part, one in kept.items()}}
        shown = message_lists.write(given[item.places[0]], texts)
        yield MessageEdit(
            session=keeper.session,
            before=item.before,
            after=item.after,
            shown=digest(message_lists.read([shown])[0]),  # as it will be read when it comes back
            texts=texts,
            refs=tuple(
                dict.fromkeys([*(held.refs if held else ()), *(ref for one in kept.values() for ref in one.refs)])
            ),
        )
    for cut in plan.cuts:
        going = [item for item in keeper.items[cut.start : cut.end] if item.message.role != "system"]
        try:
            kept_note = keeper.note(cut)
        except Refused:
            continue
        yield MessageEdit(
            session=keeper.session,
            before=going[0].before,
            after=going[-1].after,
            shown=digest(message_lists.read([message_lists.note(kept_note.text)])[0]),
            note=kept_note.text,
            refs=kept_note.refs,
            calls=sum(item.calls for item in going),
        )


def _put_away(keeper: MessageStorage, puts: Iterable[Replacement]) -> Iterator[tuple[int, StoredResult]]:
    """Store parts. Forgotten ones stay in the list, which is its owner's, and are not stored again."""
    for put in puts:
        try:
            yield put.part, keeper.put_away(put)
        except Refused:
            continue


def _stored(
    store: Store,
    space: str,
    before: ReplayedState,
    plan: EditPlan,
    edits: list[MessageEdit],
    *,
    at: datetime,
    counter: TokenCounter,
) -> int:
    """Store edits and their savings; return how many cached tokens they invalidate."""
    trial = [replace(edit, id=_LAST + place) for place, edit in enumerate(edits)]
    after = ReplayedState.by(before.read, before.spots, [*before.known, *trial], counter)
    first = min([*(put.item for put in plan.puts), *(cut.start for cut in plan.cuts)])
    unsent = {place for item in before.items[sent_before(before.items) :] for place in item.places}
    behind = [item for item in after.items if item.places[0] >= before.items[first].places[0]]
    broken = sum(item.total for item in behind if unsent.isdisjoint(item.places))
    changed = [item for item in after.items if any(item.after == edit.after for edit in edits)]
    stayed = {item.after for item in after.items} - {item.after for item in changed}
    saving = Saving(
        session=edits[0].session,
        at=at,
        kind="compress",
        saved=sum(item.total for item in before.items if item.after not in stayed),
        spent=sum(item.total for item in changed),
        cache_broken=broken,
    )
    seen = max((edit.id for edit in before.known), default=0)
    store.put_message_edits(space, edits, seen=seen, saving=saving)
    return broken


_LAST = 2**62
"""Edits that are not stored yet are newer than all that are."""


# --- the answer -------------------------------------------------------------------------------------


def _written(given: Sequence[Any], one: ReplayedMessage) -> Any:
    return (
        message_lists.write(given[one.places[0]], one.texts)
        if one.new_note is None
        else message_lists.note(one.new_note)
    )


def _too_large(items: Sequence[PlanItem], tokens: int, window: int, overhead: int) -> str:
    told = f"The list is {tokens:,} tokens and the window is {window:,}: what is left cannot be made shorter. "
    if items:
        largest = max(items, key=lambda item: item.total)
        told += f"The largest is message {largest.places[0] + 1} ({largest.message.role}, {largest.total:,} tokens). "
    if overhead:
        told += f"{overhead:,} are taken by `overhead`. "
    return told + "Shorten the system prompt or the newest message, or use a model with a larger window."


@dataclass(frozen=True, slots=True)
class MessagePosition:
    """Where a message stands in its conversation. `edit`: the one whose result it is, if it is one."""

    before: str
    after: str
    edit: MessageEdit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedMessage:
    """A message with its edits applied; `places` are those of the messages in the list that it represents."""

    message: ListMessage
    spot: MessagePosition
    places: tuple[int, ...]
    texts: Mapping[int, str]
    """What to write into the parts of the one at `places[0]`."""
    edit: MessageEdit | None
    new_note: str | None = None
    """What to write in place of all of them; None where the message is in the list already."""

    @property
    def is_note(self) -> bool:
        return self.edit is not None and self.edit.note is not None


def walk(
    messages: Sequence[ListMessage], digests: Sequence[str], shown: Iterable[MessageEdit]
) -> list[MessagePosition]:
    """Return the position of each message; a replacement counts as the messages it represents."""
    known = {(edit.before, edit.shown): edit for edit in shown}
    spots: list[MessagePosition] = []
    at = START
    for message, one_digest in zip(messages, digests, strict=True):
        if message.role == "system":
            spots.append(MessagePosition(at, at))
            continue
        edit = known.get((at, one_digest))
        spots.append(MessagePosition(at, edit.after if edit else behind(at, one_digest), edit))
        at = spots[-1].after
    return spots


def replayed(
    messages: Sequence[ListMessage], spots: Sequence[MessagePosition], reaching: Iterable[MessageEdit]
) -> list[ReplayedMessage]:
    """Return the list as the last compression left it, followed by the new messages."""
    newest: dict[str, MessageEdit] = {}
    notes: list[MessageEdit] = []
    for edit in sorted(reaching, key=lambda edit: edit.id):
        if edit.note is None:
            newest[edit.after] = edit
        else:
            notes.append(edit)
    runs = _runs(messages, spots, notes)
    standing: list[ReplayedMessage] = []
    for at, (message, spot) in enumerate(zip(messages, spots, strict=True)):
        run = next(((span, edit) for span, edit in runs if at in span), None)
        if run is not None and message.role != "system":
            span, edit = run
            if at == span.start:
                places = tuple(place for place in span if messages[place].role != "system")
                is_here = spot.edit is not None and spot.edit.note == edit.note
                standing.append(_note(edit, places, new=not is_here))
            continue
        edit = None if message.role == "system" else newest.get(spot.after)
        standing.append(_put(message, spot, at, edit))
    return standing


def _put(message: ListMessage, spot: MessagePosition, at: int, edit: MessageEdit | None) -> ReplayedMessage:
    if edit is None:
        return ReplayedMessage(message=message, spot=spot, places=(at,), texts={}, edit=None)
    texts = {place: text for place, text in edit.texts.items() if message.parts[place].text != text}
    parts = tuple(replace(part, text=texts.get(place, part.text)) for place, part in enumerate(message.parts))
    return ReplayedMessage(message=replace(message, parts=parts), spot=spot, places=(at,), texts=texts, edit=edit)


def _note(edit: MessageEdit, places: tuple[int, ...], *, new: bool) -> ReplayedMessage:
    message = ListMessage(role="user", parts=(MessagePart(kind="text", text=edit.note or ""),))
    spot = MessagePosition(edit.before, edit.after, edit)
    return ReplayedMessage(
        message=message, spot=spot, places=places, texts={}, edit=edit, new_note=edit.note if new else None
    )


def _runs(
    messages: Sequence[ListMessage], spots: Sequence[MessagePosition], notes: Iterable[MessageEdit]
) -> list[tuple[range, MessageEdit]]:
    """Where notes stand for messages; of two that overlap the longer one."""
    named = [at for at, message in enumerate(messages) if message.role != "system"]
    ends = {spots[at].after: at for at in named}
    starts = {spots[at].before: at for at in reversed(named)}
    found = [
        (range(starts[edit.before], ends[edit.after] + 1), edit)
        for edit in notes
        if edit.before in starts and edit.after in ends and starts[edit.before] <= ends[edit.after]
    ]
    chosen: list[tuple[range, MessageEdit]] = []
    for span, edit in sorted(found, key=lambda each: (-len(each[0]), -each[1].id)):
        if not any(span.start < other.stop and other.start < span.stop for other, _ in chosen):
            chosen.append((span, edit))
    return chosen
