"""Finds the id of a JSON-RPC message that cannot be parsed: nested too deep, truncated, or too large for memory.

Only a member of the message itself counts, never an `"id"` inside its result. The search covers the first and the last
members, which is where programs write the id.
"""

from __future__ import annotations

import json
import re

_NEAR = 1_000  # bytes at either end
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]]', re.DOTALL)
_VALUE = re.compile(rb'\s*:\s*(-?\d{1,30}(?![\d.eE])|"(?:[^"\\]|\\.){0,200}")', re.DOTALL)
_LAST = re.compile(
    rb'[,{]\s*"id"\s*:\s*(-?\d{1,30}|"(?:[^"\\]|\\.){0,200}")'
    rb'(?:\s*,\s*"[^"\\]{1,40}"\s*:\s*(?:"[^"\\]{0,40}"|-?\d{1,30}|null|true|false))*\s*\}?\s*\Z'
)


def id_of_unparsed(line: bytes) -> str | int | None:
    """Return the id of a message from its bytes, or None if neither its first nor its last members include it."""
    member = _id_in_head(line[:_NEAR]) or _LAST.search(line, max(0, len(line) - _NEAR))
    if member is None:
        return None
    try:
        return json.loads(member[1])
    except ValueError:
        return None


def _id_in_head(head: bytes) -> re.Match[bytes] | None:
    depth = 0
    for token in _TOKEN.finditer(head):
        if token[0] in b"{[":
            depth += 1
        elif token[0] in b"}]":
            depth -= 1
        elif depth == 1 and token[0] == b'"id"' and (value := _VALUE.match(head, token.end())):
            return value
    return None
