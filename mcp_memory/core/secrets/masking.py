"""Where the secrets of a text stand, and the text without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from mcp_memory.core.secrets.cards import SHOWN, cards
from mcp_memory.core.secrets.forms import Form
from mcp_memory.core.secrets.having import Has, having
from mcp_memory.core.secrets.named import COVER, assigned
from mcp_memory.core.secrets.names import HINTS, name_at
from mcp_memory.core.secrets.prose import is_stated, pairs, personal_numbers, told
from mcp_memory.core.secrets.published import forms
from mcp_memory.core.secrets.structures import structured
from mcp_memory.core.secrets.views import views

__all__ = [
    "MASK",
    "Secret",
    "find",
    "holds_key",
    "holds_secret",
    "mask",
    "mask_bytes",
    "mask_id",
    "mask_lines",
    "states_secret",
    "without",
]

MASK = "•••"
_CARD = "card number"
_BYTES = "latin-1"
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_UNMARKED = ("utf-16-le", "utf-16-be")
_READ_AGAIN = 50_000

_BODY = re.compile(r"(?m)^[ \t\"']*[A-Za-z0-9+/]{60,76}={0,2}[\"',]*$")


@dataclass(frozen=True, slots=True)
class Secret:
    """What is to be masked: characters `start` to `end` of a text, and what kind of secret it is."""

    start: int
    end: int
    kind: str


def find(text: str, *, prose: bool = True) -> list[Secret]:
    """Return the secrets of a text in order; none overlaps another. What stays readable of them is not in them.

    Without `prose` only what a program reads counts, as in tool results: forms of keys, assignments, structures.
    """
    found: list[Secret] = []
    for view, place in views(text):
        found += (Secret(place(one.start), place(one.end - 1) + 1, one.kind) for one in _standing(view, prose))
    return _apart(found)


def mask(text: str, *, prose: bool = True) -> str:
    """Return the text with each secret as `•••`; its name, and what kind of key it was, stay readable."""
    return without(text, find(text, prose=prose))


def mask_bytes(data: bytes) -> tuple[bytes, list[Secret]]:
    """Return a tool result with its secrets masked, and where the masks stand, in bytes.

    It is evidence, so talk of passwords in it is left alone. What is no text in any encoding is returned as it is.
    """
    found = [one for encoding in _encodings(data) for one in _found_in(data, *encoding)]
    pieces: list[bytes] = []
    places: list[Secret] = []
    at = length = 0
    for one, hidden in sorted(found, key=lambda each: (each[0].start, -each[0].end)):
        if one.start < at:
            continue  # found in another reading, too
        pieces += [data[at : one.start], hidden]
        length += one.start - at + len(hidden)
        places.append(Secret(length - len(hidden), length, one.kind))
        at = one.end
    return (b"".join([*pieces, data[at:]]), places) if places else (data, [])


def _found_in(data: bytes, codec: str, errors: str) -> Iterator[tuple[Secret, bytes]]:
    """Yield where secrets stand in bytes that are read in an encoding, and what stands for each in it."""
    text = data.decode(codec, errors)
    hidden = MASK.encode(codec if codec != _BYTES else "utf-8")
    at = length = 0
    for one in find(text, prose=False):
        start = length + len(text[at : one.start].encode(codec, errors))
        length = start + len(text[one.start : one.end].encode(codec, errors))
        at = one.end
        yield Secret(start, length, one.kind), hidden


def _encodings(data: bytes) -> list[tuple[str, str]]:
    """Return how bytes may be read and written back the same, errors too; none for what is no text.

    Letters of ASCII that are two bytes each are text in UTF-8, too, and bytes of another encoding may have a mark of
    UTF-16 by chance, so there may be several. In other encodings the letters of keys are those of ASCII, so these are
    read as if each byte were a letter, and as UTF-8 with bytes that are none.
    """
    marked = [codec for mark, codec in _MARKS if data.startswith(mark)]
    able = [(codec, "strict") for codec in marked or (_UNMARKED if b"\0" in data else ())]
    wide = [encoding for encoding in able if _is_kept(data, *encoding)]
    if _is_kept(data, "utf-8", "surrogatepass"):
        return [*wide, ("utf-8", "surrogatepass")]
    controls = sum(data.count(bytes([one])) for one in range(32) if one not in b"\t\n\r\x1b\f")
    return [*wide, ("utf-8", "surrogateescape"), (_BYTES, "strict")] if controls * 100 < len(data) else wide


def _is_kept(data: bytes, codec: str, errors: str) -> bool:
    try:
        return data.decode(codec, errors).encode(codec, errors) == data
    except UnicodeError:
        return False


def holds_secret(text: str, *, prose: bool = True) -> bool:
    """Tell whether a text has anything that `mask` would take out."""
    return bool(find(text, prose=prose))


def states_secret(text: str) -> bool:
    """Tell whether a statement that is to be remembered gives a secret: a password that is a word, too.

    Nothing is lost by a false alarm here: the statement is refused with the reason, and can be told without the value.
    """
    small = _small(text)
    names = (
        name_at(text, place.start(), hint)
        for hint in _hints_in(having(small))
        for place in re.finditer(re.escape(hint), small)
    )
    return holds_secret(text) or any(name is not None and is_stated(text, name) for name in names)


def holds_key(name: str) -> bool:
    """Tell whether a name that programs give (of a session, a call, a message) has a key in it.

    Digits are no card number there: they count something.
    """
    return any(one.kind != _CARD for one in find(name))


def mask_id(id: str) -> str:
    """Return an id that programs give, or its digest where it has a key in it: ids that differ stay so."""
    return f"sha256-{sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()}" if holds_key(id) else id


def mask_lines(text: str) -> str:
    """Return a piece of a text masked, with as many lines as before.

    A private key may have begun before the piece. Its lines cannot be told from other encoded data, which nobody reads
    or searches for, so all lines of that form are masked.
    """
    text = _BODY.sub(MASK, text)
    return without(text, find(text, prose=False), keep_lines=True)


def _standing(text: str, prose: bool) -> list[Secret]:
    """Return the secrets that stand in a text as it is written."""
    small = _small(text)
    has = having(small)
    covered, formed = text, list[Secret]()
    while more := [*_formed(covered, small, has), *_numbers(covered, prose)]:
        formed = _apart([*formed, *more])
        covered = _covered(text, formed)
        if len(text) > _READ_AGAIN:
            break  # again, for a key that stood before a key: rare, and long texts take long
    named = [*_named(covered, small, has, prose), *structured(covered, small, has)]
    if prose:
        named += [*personal_numbers(text), *pairs(covered, small)]
    known = _apart([*formed, *(Secret(start, end, "named value") for start, end in named)])
    # A number behind one that is masked is a card's where the two together were none.
    return _apart([*known, *_numbers(_covered(text, known), prose)]) if named else known


def _small(text: str) -> str:
    """Return the text in small letters, each where it stood: a few letters have two small ones."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _formed(text: str, small: str, has: Has) -> Iterator[Secret]:
    grouped = _forms_by_beginning()
    for shared in filter(has, grouped):
        for form, hint in grouped[shared]:
            place = small.find(hint)
            while place >= 0:
                span, after = form.match(text, place, hint), place + 1
                if span is not None:
                    yield Secret(*span, form.kind)
                    after = max(after, span[1] - len(hint) + 1)  # a run of a million hints is one key
                place = small.find(hint, after)


def _numbers(text: str, prose: bool) -> Iterator[Secret]:
    return (Secret(start, end - SHOWN, _CARD) for start, end in cards(text, prose=prose))


@cache
def _forms_by_beginning() -> dict[str, list[tuple[Form, str]]]:
    """Return the forms with each of their hints by how the hint begins: most texts have few of the beginnings."""
    grouped: dict[str, list[tuple[Form, str]]] = {}
    for form in forms():
        for hint in form.hints:
            grouped.setdefault(hint[:3], []).append((form, hint))
    return grouped


def _named(covered: str, small: str, has: Has, prose: bool) -> Iterator[tuple[int, int]]:
    for hint in _hints_in(has):
        place, end = small.find(hint), 0
        while place >= 0:
            name = name_at(covered, place, hint) if place >= end else None
            if name is not None:
                spans = assigned(covered, name, prose=prose)
                if not spans and (span := told(covered, name, prose=prose)):
                    spans = [span]
                yield from spans
                end = max((last for _, last in spans), default=end)
            place = small.find(hint, place + 1)


def _hints_in(has: Has) -> Iterator[str]:
    """Yield the names of secrets that may be in a text: those without a word in them that is not there."""
    grouped = _hints_by_word()
    return (hint for shared in filter(has, grouped) for hint in grouped[shared])


@cache
def _hints_by_word() -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for hint in HINTS:
        shared = next((word for word in ("pass", "key", "token", "secret") if word in hint), hint)
        grouped.setdefault(shared, []).append(hint)
    return grouped


def _covered(text: str, secrets: Iterable[Secret]) -> str:
    """Return a text of the same length with something else in the place of the secrets."""
    pieces: list[str] = []
    at = 0
    for one in secrets:
        pieces += [text[at : one.start], COVER * (one.end - one.start)]
        at = one.end
    return "".join([*pieces, text[at:]])


def _apart(secrets: Iterable[Secret]) -> list[Secret]:
    """Return the secrets in order; those that overlap or touch are one."""
    apart: list[Secret] = []
    for one in sorted(secrets, key=lambda one: (one.start, -one.end)):
        if apart and one.start <= apart[-1].end:
            apart[-1] = Secret(apart[-1].start, max(one.end, apart[-1].end), apart[-1].kind)
        else:
            apart.append(one)
    return apart


def without(text: str, secrets: Iterable[Secret], *, keep_lines: bool = False) -> str:
    """Return a text with each of the secrets as `•••`; those that overlap or touch are one."""
    pieces: list[str] = []
    at = 0
    for one in _apart(secrets):
        lost = text.count("\n", one.start, one.end) if keep_lines else 0
        pieces += [text[at : one.start], MASK, "\n" * lost]
        at = one.end
    return "".join([*pieces, text[at:]])
