"""Error messages about files from which nothing can be imported: their apparent kind, and the next step."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from mcp_memory.core.regular_files import open_regular
from mcp_memory.core.text import one_line
from mcp_memory.integrations.importers.records import SkippedParts, object_of

_HEAD = 64 * 2**10
_KEYS = 6

_MESSENGERS = tuple(
    (f"an export of {name}", re.compile(pattern, re.DOTALL | re.MULTILINE))
    for name, pattern in (
        ("Telegram", r'"(?:from_id|actor_id)"\s*:\s*"(?:user|channel)\d|"type"\s*:\s*"personal_chat"'),
        ("WhatsApp", r"^\u200e?\[?\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}[:.]\d{2}[^\n]{0,12}?(?: - |\] )\S"),
        ("Slack", r'"client_msg_id"\s*:|"user"\s*:\s*"[UW][A-Z0-9]{6,}"'),
        ("Discord", r'"guild"\s*:\s*\{.{0,400}"channel"\s*:\s*\{|"Timestamp"\s*:.{0,200}"Contents"\s*:'),
        (
            "Facebook Messenger or Instagram",
            r'"(?:sender_name|timestamp_ms)"\s*:.{0,4000}"(?:timestamp_ms|sender_name)"\s*:',
        ),
        ("Signal", r'"conversationId"\s*:.{0,2000}"sourceServiceId"'),
    )
)
"""Messengers, and patterns of their exports."""
_TEXTS = tuple(
    (what, re.compile(pattern, re.MULTILINE))
    for what, pattern in (
        ("e-mail", r"\AFrom \S+ .*\d{4}$|\A(?:[A-Z][\w-]*: .*\n(?:[ \t]+.*\n)*){3,}\n"),
        ("a calendar", r"\ABEGIN:VCALENDAR"),
        ("contacts", r"\ABEGIN:VCARD"),
        ("subtitles", r"\AWEBVTT|\A\d+\r?\n\d\d:\d\d:\d\d,\d{3} --> "),
    )
)
"""Texts that are not conversations with an assistant, and patterns of their beginnings."""
_MAGIC = (
    (b"%PDF", "a PDF"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
)

BINARY = tuple(magic for magic, what in _MAGIC if what != "a zip archive")
"""The first bytes of files from which nothing is read."""

KNOWN = "`mcp-memory import --help` lists what can be read"
CONVERT = (
    'convert it to lines of JSON such as {"session": …, "said_at": …, "role": "user" or "assistant", "content": …}'
)


def describe(path: Path) -> str:
    """Describe a file by its first bytes, as in "an export of Telegram" or "JSON with the fields a, b"."""
    try:
        with open_regular(path) as stream:
            return describe_head(stream.read(_HEAD), path.suffix.lower())
    except (OSError, ValueError):
        return "a file that cannot be read"


def describe_head(head: bytes, suffix: str) -> str:
    """Describe a file by its first bytes and the ending of its name."""
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return what
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    for what, pattern in _MESSENGERS:
        if pattern.search(text):
            return what
    if text.startswith(("{", "[")):
        return _describe_json(text)
    for what, pattern in _TEXTS:
        if pattern.match(text):
            return what
    if suffix in (".csv", ".tsv"):
        return "a table"
    if text.startswith("<") and suffix not in (".md", ".markdown"):
        return "HTML" if re.match(r"(?i)<(?:!doctype )?html", text) else "XML"
    return "Markdown" if suffix in (".md", ".markdown") else "text without JSON"


def _describe_json(text: str) -> str:
    """Return a description of JSON by the fields of its first object."""
    start = text.find("{")
    if start < 0:
        return "a JSON array without objects"
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        keys = _outer_keys(text[start:])
    else:
        keys = list(object_of(value) or {})
    if not keys:
        return "JSON objects without fields"
    shown = ", ".join(one_line(key, 30) for key in keys[:_KEYS])
    return f"JSON with the fields {shown}{', …' if len(keys) > _KEYS else ''}"


def _outer_keys(text: str) -> list[str]:
    """Return the fields of an object that is cut off, without those of the objects and lists in it."""
    keys: dict[str, None] = {}
    depth = 0
    for token in re.finditer(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]', text, re.DOTALL):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
        elif token[2] and depth == 1:
            keys[token[1]] = None
        if depth == 0:
            break
    return list(keys)


def refuse_unknown(name: str, path: Path, members: str = "", problem: str = "") -> str:
    """Return the message about a file of no known format: with the members of an archive, or the first problem."""
    if path.suffix == ".pb":
        return (
            f"{name} cannot be read: Antigravity and Windsurf encrypt their conversations in `.pb` files. What can be "
            "imported are Antigravity's transcripts: `transcript_full.jsonl` in the folder `brain` beside "
            "`conversations`."
        )
    what = describe(path)
    detail = f" It contains {members}." if members else ""
    if problem and what.startswith("JSON"):
        detail = f" {problem[0].upper()}{problem[1:]}"
    return f"{name} looks like {what}, which is of no known format.{detail} {_next_step(what)}"


def refuse_without_turns(name: str, formats: Sequence[str], skipped: SkippedParts) -> str:
    """Return the message about a file that was read as some formats and yields nothing to import."""
    left = ", ".join(f"{what} ({count:,})" for what, count in sorted(skipped.left_out.items()))
    why = f" Left out: {left}." if left else ""
    taken = f" It was taken for {' and '.join(sorted(formats))}." if formats else ""
    return f"{name} contains no message that can be imported.{taken}{why} If it is something else, {CONVERT}."


def refuse_log(name: str, client: str) -> str:
    """Return the message about a log without a message."""
    return (
        f"{name} was taken for a log of {client}, but none of its lines is a message that can be read. "
        f"If it is something else, {CONVERT}."
    )


def _next_step(what: str) -> str:
    if what.startswith("an export of"):
        return f"Messages between people are not imported; to import them, {CONVERT}."
    return f"{KNOWN}; or {CONVERT}."
