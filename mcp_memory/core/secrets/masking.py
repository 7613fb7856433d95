"""Masks secrets in texts, tool results and JSON values: keys by format, values by their name or by the structure.

    detection      finds secrets in several views of a text, with these:
    key_formats    keys and tokens with a published format; card numbers, by issuer and checksum
    assignments    `DB_PASSWORD=…`, `"api_key": "…"`      structures   tables, `.netrc`, Kubernetes …
    prose          statements: "my password is …"         codes        of doors, alarms, phones and cards
    nearby         random tokens near a password's name
    wallets        seed phrases, private keys             values       random and chosen values, words, placeholders

`mask` is for messages, `mask_result` for tool results, `mask_values` for JSON. Masking happens before anything is
stored, indexed, logged, shown or sent to a model, and cannot be undone, so it has two levels. A message is also read as
prose. In a tool result, which is evidence, a secret is masked only if a program would read it as a secret, and a value
that reads like words of code or prose is kept. `python -m bench.secrets` counts errors of both kinds.

In a JSON value each string is masked by its own text and by the text of the whole value. The structure stays the
same: only characters of strings and names are replaced, and a long number becomes a string if it is masked.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate, islice, takewhile
from typing import Any, cast

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.private_passages import PRIVATE, without_private
from mcp_memory.core.secrets.assignments import HINTS, name_at
from mcp_memory.core.secrets.detection import (
    CARD,
    Secret,
    find_in_parts,
    find_secrets,
    hint_places,
    lower_in_place,
    merge_overlaps,
    replace_spans,
)
from mcp_memory.core.secrets.prose import states_password

MASK = "•••"
_BYTES = "latin-1"
_MARKS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_UNMARKED = ("utf-16-le", "utf-16-be")
_BODY = re.compile(r"(?m)^[ \t\"']*[A-Za-z0-9+/]{60,76}={0,2}[\"',]*$")


def mask(text: str, *, prose: bool = True) -> str:
    """Return the text with each secret as `•••`; its name, and the kind of key, stay readable."""
    return mask_spans(text, find_secrets(text, prose=prose))


def mask_typed(text: str) -> str:
    """Return the storable form of a text that somebody typed: without private passages, with its secrets masked.

    For all texts except messages (see `longterm.turns.admit`): reasons, goals, steps, summaries.
    """
    return mask(without_private(text))


def is_redacted(text: str) -> bool:
    """Return whether a secret or a private passage was taken out of a stored text."""
    return MASK in text or PRIVATE in text


def mask_name(name: str) -> str:
    """Return a name, path or id of another program with any key in it masked."""
    return mask(name) if holds_key(name) else name


@lru_cache(maxsize=1_024)  # names without a key, because the errors of others are not cached
def require_no_key(name: str, what: str) -> None:
    """Raise InvalidInput if the name of a `what` seems to contain a key."""
    if holds_key(name):
        raise InvalidInput(f"The name of the {what} seems to contain a key or password. Choose another name.")


def mask_result(data: bytes) -> tuple[bytes, list[Secret]]:
    """Return a tool result with its secrets masked, and the spans of the masks, in bytes.

    It is evidence, so prose about passwords is kept. Binary data is returned unchanged.
    """
    secrets = [secret for encoding in _encodings(data) for secret in _secrets_of_encoding(data, *encoding)]
    pieces: list[bytes] = []
    places: list[Secret] = []
    at = length = 0
    for secret, hidden in sorted(secrets, key=lambda each: (each[0].start, -each[0].end)):
        if secret.start < at:
            continue  # also found in another encoding
        pieces += [data[at : secret.start], hidden]
        length += secret.start - at + len(hidden)
        places.append(Secret(length - len(hidden), length, secret.kind))
        at = secret.end
    return (b"".join([*pieces, data[at:]]), places) if places else (data, [])


def _secrets_of_encoding(data: bytes, codec: str, errors: str) -> Iterator[tuple[Secret, bytes]]:
    """Yield the secrets of bytes read in an encoding, each with its mask in that encoding."""
    text = data.decode(codec, errors)
    hidden = MASK.encode(codec if codec != _BYTES else "utf-8")
    at = length = 0
    for secret in find_in_parts(text, prose=False):
        start = length + len(text[at : secret.start].encode(codec, errors))
        length = start + len(text[secret.start : secret.end].encode(codec, errors))
        at = secret.end
        yield Secret(start, length, secret.kind), hidden


def _encodings(data: bytes) -> list[tuple[str, str]]:
    """Return (codec, error handler) pairs that round-trip the bytes; none for binary data.

    There may be several: two-byte ASCII letters are also valid UTF-8, and a UTF-16 mark may occur by chance. For
    other encodings Latin-1 and UTF-8 with invalid bytes are returned, since the letters of keys are ASCII in all of
    them.
    """
    marked = [codec for mark, codec in _MARKS if data.startswith(mark)]
    able = [(codec, "strict") for codec in marked or (_UNMARKED if b"\0" in data else ())]
    wide = [encoding for encoding in able if _round_trips(data, *encoding)]
    if _round_trips(data, "utf-8", "surrogatepass"):
        return [*wide, ("utf-8", "surrogatepass")]
    controls = sum(data.count(bytes([byte])) for byte in range(32) if byte not in b"\t\n\r\x1b\f")
    return [*wide, ("utf-8", "surrogateescape"), (_BYTES, "strict")] if controls * 100 < len(data) else wide


def _round_trips(data: bytes, codec: str, errors: str) -> bool:
    try:
        return data.decode(codec, errors).encode(codec, errors) == data
    except UnicodeError:
        return False


def holds_secret(text: str, *, prose: bool = True) -> bool:
    """Return whether `mask` would change a text."""
    return bool(find_secrets(text, prose=prose))


def states_secret(text: str) -> bool:
    """Return whether a statement to be remembered contains a secret, including a password that is a plain word.

    A false alarm costs little here: the statement is refused with the reason, and can be repeated without the value.
    """
    places = hint_places(lower_in_place(text))
    names = (name_at(text, place, hint) for hint in filter(places.__contains__, HINTS) for place in places[hint])
    return holds_secret(text) or any(name is not None and states_password(text, name) for name in names)


def holds_key(name: str) -> bool:
    """Return whether a name given by a program (of a session, a call, a message) contains a key.

    Digits there are counters, not card numbers.
    """
    return any(secret.kind != CARD for secret in find_secrets(name))


def mask_id(id: str) -> str:
    """Return an id given by a program, or its digest if it contains a key. Different ids stay different."""
    return f"sha256-{sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()}" if holds_key(id) else id


def mask_lines(text: str) -> str:
    """Return part of a text masked, with the same number of lines.

    A private key may have begun before this part. Its lines look like any encoded data, which has no value for
    reading or search, so all such lines are masked.
    """
    text = _BODY.sub(MASK, text)
    return mask_spans(text, find_secrets(text, prose=False), keep_lines=True)


def mask_spans(text: str, secrets: Iterable[Secret], *, keep_lines: bool = False) -> str:
    """Return a text with each of the secrets as `•••`; overlapping and touching secrets share a mask."""

    def replacement(secret: Secret) -> str:
        return MASK + "\n" * (text.count("\n", secret.start, secret.end) if keep_lines else 0)

    return replace_spans(text, ((secret.start, secret.end, replacement(secret)) for secret in merge_overlaps(secrets)))


_DEEPEST = 100
_CHARACTER = re.compile(r"\\u[0-9a-f]{4}|\\.|.", re.DOTALL)
"""A character of JSON text."""


def mask_values(value: Any) -> Any:
    """Return a JSON value with every string, name and long number masked. The name of a member is context of its value.

    In a list an option is context of the next string, as in `["--password", "…"]`. Lists and objects nested more
    than 100 levels deep become `…`.
    """
    strings = _Strings()
    strings.add_value(value, "", _DEEPEST)
    return _replace_strings(value, strings.masked_strings(), _DEEPEST)


def _replace_strings(value: Any, masked: Iterator[str], depth: int) -> Any:
    """Return a value with its strings, names and long numbers replaced by masked strings, in the order of its text."""
    match value:
        case str():
            return next(masked)
        case int() if 10**5 < value < 10**19:
            shown = next(masked)
            return value if shown == str(value) else shown
        case list() | tuple() | dict() if depth == 0:
            return "…"
        case list() | tuple():
            return [_replace_strings(item, masked, depth - 1) for item in cast("Iterable[Any]", value)]
        case dict():
            members = cast("dict[Any, Any]", value).items()
            names = ((next(masked) if isinstance(name, str) else name, item) for name, item in members)
            return {name: _replace_strings(item, masked, depth - 1) for name, item in names}
        case _:
            return value


class _Strings:
    """The strings of a value, in the order of the text that they form."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._found: list[tuple[int, str, str, list[Secret]]] = []

    def add_value(self, value: Any, head: str, depth: int) -> None:
        """Add the text of a value; `head` is its context: the name of the member, or the preceding option."""
        match value:
            case str():
                self._add(value, head, find_secrets(value))
            case int() if 10**5 < value < 10**19:
                self._add(str(value), head, [])  # digits alone are counters
            case list() | tuple() | dict() if depth == 0:
                pass
            case list() | tuple():
                before = ""
                self._pieces.append("[")
                for number, item in enumerate(cast("Iterable[Any]", value)):
                    self._pieces.append(", " if number else "")
                    self.add_value(item, f'"{before[-80:]}", "' if before.startswith("-") else head, depth - 1)
                    before = item if isinstance(item, str) else ""
                self._pieces.append("]")
            case dict():
                self._pieces.append("{")
                for number, (name, item) in enumerate(cast("dict[Any, Any]", value).items()):
                    self._pieces.append(", " if number else "")
                    if isinstance(name, str):
                        self._add(name, "", find_secrets(name) if holds_key(name) else [])
                    self._pieces.append(": ")
                    self.add_value(item, f'"{str(name)[-80:]}": "', depth - 1)
                self._pieces.append("}")
            case _:
                self._pieces.append(str(value) if isinstance(value, float | int) else "null")

    def _add(self, text: str, head: str, own: list[Secret]) -> None:
        """Add a string with its context and its own secrets."""
        self._found.append((len(self._pieces) + 1, text, head, own))
        self._pieces += ['"', _escape_json(text), '"']

    def masked_strings(self) -> Iterator[str]:
        """Yield every string masked by its own secrets, its context, and the secrets of the whole text."""
        whole = find_secrets("".join(self._pieces), prose=False)
        ends = [secret.end for secret in whole]
        starts = [0, *accumulate(map(len, self._pieces))]
        for piece, text, head, own in self._found:
            start, end = starts[piece], starts[piece + 1]
            around = takewhile(lambda span, end=end: span.start < end, islice(whole, bisect_right(ends, start), None))
            named = find_secrets(f'{head}{_escape_json(text)}"') if _has_hint(head) else []
            yield mask_spans(
                text, [*own, *_map_to_string(text, around, start), *_map_to_string(text, named, len(head))]
            )


def _has_hint(head: str) -> bool:
    small = head.lower()
    return any(hint in small for hint in HINTS)


def _escape_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _map_to_string(text: str, secrets: Iterable[Secret], start: int) -> Iterator[Secret]:
    """Map secrets of a larger text to positions in a string that the text contains, escaped, at `start`.

    Only secrets that reach the beginning or the end of the string are mapped. Those inside it are found by searching
    the string itself, with its line breaks unescaped.
    """
    escaped = _escape_json(text)
    secrets = [secret for secret in secrets if secret.start <= start or secret.end >= start + len(escaped)]
    places = [secret.start() for secret in _CHARACTER.finditer(escaped)] if secrets else []
    for secret in secrets:
        first = max(0, bisect_right(places, secret.start - start) - 1)
        last = bisect_left(places, secret.end - start)
        if first < last:
            yield Secret(first, last, secret.kind)
