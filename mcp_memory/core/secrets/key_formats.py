"""Keys, tokens and card numbers, by their published formats.

The formats of keys are rows of `key_formats.toml`, from the documentation of each service and from the public rules of
gitleaks and detect-secrets, read in November 2026. The other rules of gitleaks are in `published.json`, which
`scripts/refresh_published_keys.py` writes. A body of letters alone must not read as words, because many prefixes also
begin ordinary names.

Card numbers are digits in the lengths and with the first digits that issuers use (ISO/IEC 7812 in November 2026), and
with a valid checksum. One number in ten of that form has a valid checksum by chance, and one in a hundred numbers of
its length has the form. So a number after the name of something else (`id=`, "order") is kept unless the context
mentions a card. In a tool result, which a wrong mask would change for good, the context must mention a card, or the
number must be grouped and in a sentence.
"""

from __future__ import annotations

import json
import re
import tomllib
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

from mcp_memory.core.secrets.values import (
    any_of,
    is_chosen_or_phrase,
    is_cipher_key,
    is_mixed,
    is_phrase,
    is_placeholder,
    is_random_token,
    reads_as_words,
)

_NAME_AND_PASSWORD = re.compile(rb"[\x21-\x7e]{1,200}:[\x20-\x7e]{2,200}")
_PART = r"(?:[a-z]{1,14}\d{0,5}|[0-9]{1,8}[a-z]{0,2}|v[0-9]+)"
_WORDS = rf"{_PART}(?:[-_]{_PART}){{1,20}}"
"""Joined words and numbers, such as the name of a file or a branch."""


@dataclass(frozen=True)
class KeyFormat:
    """A kind of key. Texts without any of `hints`, in lower case, contain no such key.

    The pattern matches from `back` characters before a hint. Its group `shown`, if it has one, stays readable;
    otherwise the hint does, if the match begins with it. `takes` checks the rest of the match.
    """

    kind: str
    hints: tuple[str, ...]
    source: str
    takes: Callable[[str], bool] | None = None
    back: int = 0
    begins: bool = False
    """Whether the hint is a prefix of the key, which may occur by chance in encoded data."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)

    def match(self, text: str, at: int, hint: str) -> tuple[int, int] | None:
        """Return the span to mask for a hint at `at`; None if it does not belong to a key."""
        match = self.pattern.match(text, at - self.back) if at >= self.back else None
        if match is None or (self.begins and (match[0].endswith("EXAMPLE") or _is_encoded(text, at, at + len(hint)))):
            return None
        start = match.start()
        if "shown" in self.pattern.groupindex:
            start = match.end("shown")
        elif not self.back:
            start += len(hint)
        return (start, match.end()) if self.takes is None or self.takes(text[start : match.end()]) else None


def _is_key(body: str) -> bool:
    return any(c.isdigit() for c in body[:300]) or not reads_as_words(body[:300])


_MARKERS = re.compile(r"-{1,5}(?:BEGIN|END)[^-\n]{0,60}-{3,5}|[^\S\n]*[A-Z][A-Za-z-]{2,20}: [^\n]*")
_ENCODED = re.compile(r"[A-Za-z0-9+/]{16}")


def _is_key_body(text: str) -> bool:
    """Return whether the text after the first line of a key is key data, not code or prose about such lines."""
    body = _MARKERS.sub("", text)
    return (
        _ENCODED.search(body) is not None
        or (not body.strip(" -\\nr\n\t\"'") and "END" in text[5:])
        or (len(body.split()) == 1 and body.strip().isalnum())
    )


def _is_private_key_in_base64(rest: str) -> bool:
    try:
        return b"PRIVATE KEY" in b64decode(f"LS0tLS1CRUdJTi{rest}"[:80], validate=True)
    except (NoBase64, ValueError):
        return False


def _is_password(value: str) -> bool:
    return is_chosen_or_phrase(value) and not is_placeholder(value)


def _is_credential(value: str) -> bool:
    """Return whether a value after `Basic` or `Bearer` is a credential: random, or a name and a password in base64."""
    if is_placeholder(value):
        return False
    if is_random_token(value, 16) or is_phrase(value, 4, of_key=True):
        return True
    try:
        return _NAME_AND_PASSWORD.fullmatch(b64decode(value, validate=True)) is not None
    except (NoBase64, ValueError):
        return False


_PARTS_OF_TOKEN = re.compile(r"[\w-]+(?:\.[\w-]+){2,4}=*")


def _is_header(value: str) -> bool:
    """Return whether the value of an Authorization header is a credential, not a word or placeholder."""
    return not is_placeholder(value) and (
        _PARTS_OF_TOKEN.fullmatch(value) is not None or any(map(str.isdigit, value)) or not reads_as_words(value)
    )


_HASH = re.compile(r"(?i)(?<![a-z])(?:sha-?\d{1,3}|md5|blake\w{1,3})[=:-][\w+/-]{0,90}\Z")
_WRAPPED = re.compile(r"[A-Za-z0-9+/]{60,}\r?\n[A-Za-z0-9+/]{0,80}\Z")
_ENCODED_LINE = re.compile(r"[A-Za-z0-9+/]{40,}")
_RUN = re.compile(r"[\w+/-]{16,}[+/_-]\Z", re.ASCII)
_LONG_HINT = 5


def _is_encoded(text: str, start: int, end: int) -> bool:
    """Return whether the prefix of a key is inside a hash or other base64 data.

    A long prefix with a mark in it does not occur there by chance.
    """
    if _HASH.search(text, max(0, start - 100), start):
        return True
    hint = text[start:end]
    if len(hint) >= _LONG_HINT and not hint.isalnum():
        return False
    wrapped = _WRAPPED.search(text, max(0, start - 170), start) if hint.isalnum() else None
    if wrapped and _ENCODED_LINE.match(text, wrapped.end() - len(wrapped[0].rpartition("\n")[2])):
        return True
    run = _RUN.search(text, max(0, start - 60), start)
    if run is None or run[0].islower() or run[0].isupper():
        return False
    return "+" in run[0] or (any(map(str.isdigit, run[0])) and not reads_as_words(run[0]))


_TAKEN = r"[^\s\"'`<>{}|;&()$\\]"
"""A character of a command-line value."""


_CLASSES = tuple(map(re.compile, (r"[a-z]", r"[A-Z]", r"\d", r"[^A-Za-z0-9]")))


def _is_strong(value: str) -> bool:
    """Return whether a value has characters of three classes, unlike names of databases."""
    return is_mixed(value) and sum(of.search(value) is not None for of in _CLASSES) >= 3 and not is_placeholder(value)


_CHECKS: dict[str | None, Callable[[str], bool] | None] = {
    None: None,
    "authorization": lambda value: (
        _is_credential(value) or (len(value) >= 16 and value.isalnum() and not reads_as_words(value))
    ),
    "cipher key": is_cipher_key,
    "cookie": lambda value: is_random_token(value, 16) or not reads_as_words(value),
    "credential": _is_credential,
    "element": lambda value: _is_password(value) and (len(value.split()) == 1 or is_phrase(value, 4)),
    "header": _is_header,
    "key body": _is_key_body,
    "mixed value": lambda value: is_mixed(value) and not is_placeholder(value),
    "password": _is_password,
    "private key in base64": _is_private_key_in_base64,
    "random": lambda value: is_random_token(value, 16),
    "strong value": _is_strong,
    "value": lambda value: not is_placeholder(value),
}


def _parse_format(row: dict[str, Any]) -> KeyFormat:
    if "prefixes" in row:
        heads = "|".join(map(re.escape, row["prefixes"]))
        before = "A-Za-z0-9" if row.get("joined") else "A-Za-z0-9_"
        pattern = rf"(?<![{before}])(?P<shown>{heads})(?!{_WORDS}(?![A-Za-z0-9_-])){row['body']}"
        hints = tuple(prefix.lower() for prefix in row["prefixes"])
        return KeyFormat(row["kind"], hints, pattern, _is_key, begins=True)
    if "command" in row:
        pattern = (
            rf"(?i)(?<![A-Za-z0-9_.-])(?P<shown>{row['command']}(?:[ ][^\n|;&`,]{{0,200}}?)??[ ]"
            rf"(?-i:{row['option']})(?P<quote>[\"'])?)"
            rf"(?(quote)[^\"'\n]{{4,200}}|(?!-){_TAKEN}{{6,}})"
        )
    else:
        pattern = row["pattern"] if isinstance(row["pattern"], str) else "".join(row["pattern"])
    return KeyFormat(row["kind"], tuple(row["hints"]), pattern, _CHECKS[row.get("check")], back=row.get("back", 0))


@cache
def key_formats() -> tuple[KeyFormat, ...]:
    """Return all formats: those of `key_formats.toml`, then the rules of gitleaks in `published.json`.

    Each pattern of gitleaks begins with a prefix that only one service uses, so it needs no context.
    """
    folder = resources.files("mcp_memory.core.secrets")
    own = tomllib.loads((folder / "key_formats.toml").read_text(encoding="utf-8"))["format"]
    published = json.loads((folder / "published.json").read_text(encoding="utf-8"))["forms"]
    return (
        *map(_parse_format, own),
        *(
            KeyFormat(rule["id"].replace("-", " "), tuple(rule["hints"]), "(?a)" + rule["pattern"], begins=True)
            for rule in published
        ),
    )


SHOWN = 4
"""Last digits that stay readable, as on a receipt, to tell cards apart."""

_GAP = r"[ .\u00a0\u2011\u2013\u202f-]"
_GROUPS = (
    rf"\d{{3}}(?P<gap>{_GAP})\d{{4}}(?P=gap)\d{{4}}(?P=gap)\d{{1,7}}|\d{{3}}(?P<amex>{_GAP})\d{{6}}(?P=amex)\d{{4,5}}"
)
_NUMBER = re.compile(
    rf"[2-6](?<![\w./#•-].)(?<!\d,.)(?<!\d .)(?:\d{{14,15}}|{_GROUPS})(?![\w/-]|\.\d| [\da-f]{{4}}\b|\t)"
)
_SHAPE = re.compile(rb"0000(?=0{11}| 0000 0000 0| 000000 0000)")
"""Every number in ASCII digits has one of these shapes; `re` is quick to find a fixed string in bytes."""
_SHAPES = bytes(ord("0" if chr(code).isdecimal() else " " if chr(code) in " .-?\u00a0" else "x") for code in range(256))
"""Zeros for digits, spaces for gaps. In Latin-1 the gaps of other encodings are question marks."""
_AT_ONCE = re.compile(r"(?i)(?:^|[^a-z])[\"']?[a-z_]*(?:id|no|ref|seq|hash|ts|code)[\"']?\s?[:=]\s?[\"']?$")
_IN_SENTENCE = re.compile(r"[^\W\d]{2,}:? $|\d[\"']\s?: $")

_ISSUERS = (
    (re.compile(r"4"), (16, 19)),
    (re.compile(r"5[1-5]|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"6(?:011|5|4[4-9])"), (16, 19)),
    (re.compile(r"35(?:2[89]|[3-8]\d)"), (16,)),
    (re.compile(r"3(?:0[0-5]|[68])"), (14,)),
    (re.compile(r"62"), (16, 17, 18, 19)),
)

_NAMED = re.compile(
    r"(?i)(?:id|no|nr|num|number|ref|seq|hash|ts|time|stamp|count|bytes|size|offset)[\"'\]]{0,2}\s?[:=#]?\s?[\"']?$"
    rf"|{any_of('numbers of other things')}"
)
_CARD = re.compile(f"(?i){any_of('cards')}")


def find_cards(text: str, *, prose: bool = True) -> Iterator[tuple[int, int]]:
    """Yield the spans of card numbers. Without `prose`, the context of ungrouped digits must mention a card."""
    end = 0
    for shape in _SHAPE.finditer(text.encode("latin-1", "replace").translate(_SHAPES)):
        match = _NUMBER.match(text, shape.start()) if shape.start() >= end else None
        if match is None:
            continue
        end = match.end()
        digits = re.sub(r"\D", "", match[0])
        issued = any(head.match(digits) and len(digits) in lengths for head, lengths in _ISSUERS)
        alone = prose or (digits != match[0] and _IN_SENTENCE.search(text, max(0, match.start() - 40), match.start()))
        if issued and _passes_luhn(digits) and _is_card_context(text, match.start(), alone=bool(alone)):
            yield match.span()


def _is_card_context(text: str, start: int, *, alone: bool) -> bool:
    """Return whether the words before a number mention a card or, with `alone`, do not mention something else."""
    before = text[max(0, start - 40) : start]
    if _CARD.search(before) is not None:
        return _AT_ONCE.search(before) is None
    return alone and _NAMED.search(before) is None


def _passes_luhn(digits: str) -> bool:
    """Return whether the Luhn checksum is valid; False for a single repeated digit, which is a sample."""
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (
        len(set(digits)) > 1 and (sum(map(int, digits[::-2])) + sum(two - 9 * (two > 9) for two in doubled)) % 10 == 0
    )
