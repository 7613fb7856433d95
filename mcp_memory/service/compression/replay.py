"""What was edited before, found again in a list and done again, byte for byte: the caller need not remember.

The list may be the caller's own, whole, or one that was compressed before and has grown, or an older one of these.
Each message is recognised by its place in the conversation: as it was, or as what stands for it. Nothing here asks
the store: `walk` needs the edits by what they show, `replayed` those by the place they reach to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mcp_memory.service.compression.messages import START, Message, Part, behind
from mcp_memory.store.economy import MessageEdit

__all__ = ["Spot", "Standing", "replayed", "walk"]


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a message stands in its conversation. `edit`: the one whose result it is, if it is one."""

    before: str
    after: str
    edit: MessageEdit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A message as it has to stand; `places` of the list are those of what it stands for."""

    message: Message
    spot: Spot
    places: tuple[int, ...]
    texts: Mapping[int, str]
    """What to write into the parts of the one at `places[0]`."""
    edit: MessageEdit | None
    new_note: str | None = None
    """What to write in place of all of them; None where the message is in the list already."""

    @property
    def is_note(self) -> bool:
        return self.edit is not None and self.edit.note is not None


def walk(messages: Sequence[Message], digests: Sequence[str], shown: Iterable[MessageEdit]) -> list[Spot]:
    """Return where each message stands, taking what `shown` put there for what it stands for."""
    known = {(edit.before, edit.shown): edit for edit in shown}
    spots: list[Spot] = []
    at = START
    for message, digest in zip(messages, digests, strict=True):
        if message.role == "system":
            spots.append(Spot(at, at))
            continue
        edit = known.get((at, digest))
        spots.append(Spot(at, edit.after if edit else behind(at, digest), edit))
        at = spots[-1].after
    return spots


def replayed(messages: Sequence[Message], spots: Sequence[Spot], reaching: Iterable[MessageEdit]) -> list[Standing]:
    """Return the list as it stood after the last compression, and what is new behind."""
    newest: dict[str, MessageEdit] = {}
    notes: list[MessageEdit] = []
    for edit in sorted(reaching, key=lambda edit: edit.id):
        if edit.note is None:
            newest[edit.after] = edit
        else:
            notes.append(edit)
    runs = _runs(messages, spots, notes)
    standing: list[Standing] = []
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


def _put(message: Message, spot: Spot, at: int, edit: MessageEdit | None) -> Standing:
    if edit is None:
        return Standing(message=message, spot=spot, places=(at,), texts={}, edit=None)
    texts = {place: text for place, text in edit.texts.items() if message.parts[place].text != text}
    parts = tuple(replace(part, text=texts.get(place, part.text)) for place, part in enumerate(message.parts))
    return Standing(message=replace(message, parts=parts), spot=spot, places=(at,), texts=texts, edit=edit)


def _note(edit: MessageEdit, places: tuple[int, ...], *, new: bool) -> Standing:
    message = Message(role="user", parts=(Part(kind="text", text=edit.note or ""),))
    spot = Spot(edit.before, edit.after, edit)
    return Standing(message=message, spot=spot, places=places, texts={}, edit=edit, new_note=edit.note if new else None)


def _runs(
    messages: Sequence[Message], spots: Sequence[Spot], notes: Iterable[MessageEdit]
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
