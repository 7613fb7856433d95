"""JSON and JSON lines: the shape, and as many of the values as there is room for.

Bounds: up to `PARSED` characters are parsed whole; of more, or of what is broken or too deep, `SKIMMED`
characters are read by a loop that closes what was left open, and the summary says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from mcp_memory.shortterm.synopsis.draft import Draft
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.json_parts import ROWS, columns_of, is_prose, parts_of, with_addresses
from mcp_memory.shortterm.synopsis.json_render import TooLong, label_of, render
from mcp_memory.shortterm.synopsis.listings import describe_tree
from mcp_memory.shortterm.synopsis.page import Page, clip, one_line, size

__all__ = ["describe_json"]

PARSED = 4_000_000
SKIMMED = 200_000
DEEPEST = 60
START = re.compile(r'\s*(?:[{\[]\s*(?:["{\[\]}\d-]|true|false|null)|"[^"\n]*"\s*$)')
TOKEN = re.compile(r'[ \t\r\n]*(?:([{}\[\],:])|"((?:[^"\\\n]|\\.)*)"|(-?\d[\d.eE+-]*|true|false|null))')
FAILED_KEYS = ("error", "errors", "message", "detail", "exception")


def describe_json(page: Page, focus: Focus) -> Draft | None:
    """JSON, whole or cut off, or lines of it."""
    if not START.match(page.text[:400]):
        return None
    kind, problem = "json", ""
    if (value := _load(page.text)) is _NOTHING:
        rows = _load_lines(page.text)
        if rows:
            kind, value = "jsonl", rows
            problem = "" if len(page.text) <= PARSED else f"the first {len(rows):,} lines were read"
        else:
            value, problem = _skim(page.text, page)
            if value is _NOTHING:
                return None
    if (tree := describe_tree(value, focus)) and not problem:
        return replace(tree, content_type="application/json")
    parts = tuple(parts_of(value))
    prose = is_prose(parts)
    said = [f"not whole: {problem}"] if problem else []
    said += ["\n".join(columns)] if not prose and (columns := columns_of(value, focus)) else []
    return Draft(
        kind=kind,
        content_type="application/json" if kind == "json" else "application/jsonl",
        summary=_summary(value, focus, kind, f"JSON ({problem})" if problem else "JSON", by_label=prose),
        use="text" if prose else "data",
        score=3 if problem else 5 if page.chars > 4_000 else 6,
        facts=tuple(said),
        form=_form(value),
        pieces=tuple(with_addresses(parts, focus)) if prose else parts,
        parts=True,
    )


_NOTHING = object()


def _form(value: Any) -> str:
    try:
        return render(value)
    except TooLong:
        return ""


def _load(text: str) -> Any:
    if len(text) > PARSED:
        return _NOTHING
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOTHING


def _load_lines(text: str) -> list[Any]:
    """The values of JSON lines; empty unless there are two and all but the last parse."""
    rows: list[Any] = []
    pieces = text[:PARSED].split("\n")
    for at, piece in enumerate(pieces[:ROWS]):
        if not piece.strip():
            continue
        row = _load(piece) if piece.lstrip()[:1] in "{[" else _NOTHING
        if row is _NOTHING:
            if at < len(pieces) - 1:
                return []
            break  # a torn last line
        rows.append(row)
    return rows if len(rows) > 1 else []


def _skim(text: str, page: Page) -> tuple[Any, str]:
    """Read tokens until one is wrong; what is open then is closed. (value, what is the matter)"""
    holder: list[Any] = []
    stack: list[Any] = [holder]
    key: str | None = None
    read = at = 0
    end = min(len(text), SKIMMED)
    problem = "" if end == len(text) else f"only the first {size(end)} of {size(len(text))} read"
    while stack and (token := TOKEN.match(text, at, end)):
        at, read = token.end(), read + 1
        mark, string, other = token.groups()
        if mark in ("}", "]"):
            stack.pop()
            if len(stack) == 1:
                break
            continue
        if mark in (",", ":"):
            continue
        value: Any = {} if mark == "{" else [] if mark == "[" else string if other is None else _scalar(other)
        top = stack[-1]
        if isinstance(top, dict):
            if key is None and string is not None:
                key = string
                continue
            cast("dict[str, Any]", top)[key or ""] = value
            key = None
        else:
            top.append(value)
        if mark:
            stack.append(value)
            if len(stack) > DEEPEST:
                problem = f"nested deeper than {DEEPEST} levels"
                break
    rest = text[at:end].strip()
    if len(stack) == 1 and rest:
        problem = "text follows the JSON"
    elif not problem:
        where = text.count("\n", 0, at) + (page.lines[0].number if page.lines else 1)
        problem = f"{'cut off' if len(rest) < 2_000 and text.endswith(rest) else 'not valid'} after line {where}"
    too_deep = len(stack) > DEEPEST
    if read < 6 or not holder or (rest and len(stack) > 1 and at < end // 4 and not too_deep):
        return _NOTHING, problem
    return holder[0], problem


def _scalar(text: str) -> Any:
    named = {"true": True, "false": False, "null": None}
    return named.get(text, text)


def _summary(value: Any, focus: Focus, kind: str, title: str, *, by_label: bool) -> str:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        noun = "lines" if kind == "jsonl" else "items"
        inner = [one for item in items[:200] if isinstance(item, list) for one in cast("list[Any]", item)[:20]]
        rows = [cast("dict[str, Any]", one) for one in items + inner if isinstance(one, dict)]
        if not rows:
            return f"{title}: {len(items):,} {noun}: {clip(', '.join(_short(item) for item in items[:12]), 120)}"
        labels = [label for row in rows[:200] if (label := label_of(row))]
        shown = focus.best(dict.fromkeys(labels), 6)
        if not shown or not by_label:
            return f"{title}: {len(items):,} {noun} with {clip(', '.join(str(key) for key in rows[0]), 80)}"
        return f"{title}: {len(items):,} {noun}: {clip(', '.join(clip(label, 60) for label in shown), 120)}"
    if isinstance(value, dict):
        return clip(f"{title}: " + ", ".join(_parts(cast("dict[str, Any]", value), focus)), 190)
    return f"{title}: {_short(value)}"


def _parts(value: dict[str, Any], focus: Focus) -> Iterator[str]:
    """Keys with short values: an error first, then those that were asked for, then in order."""
    keys = list(value)
    ranked = sorted(keys[:200], key=lambda k: (str(k).lower() not in FAILED_KEYS, -focus.of(f"{k}"), keys.index(k)))
    for key in sorted(ranked[:9], key=lambda k: (str(k).lower() not in FAILED_KEYS, keys.index(k))):
        one = value[key]
        if isinstance(one, (dict, list)):
            sized = cast("list[Any] | dict[str, Any]", one)
            said = ", ".join(_short(v) for v in sized.values() if isinstance(v, str)) if isinstance(sized, dict) else ""
            if str(key).lower() in FAILED_KEYS and said:
                yield f"{key} {clip(said, 120)}"
            else:
                yield f"{len(sized):,} {key}" if isinstance(one, list) else key
        else:
            yield f"{key} {_short(one)}"


def _short(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "{…}" if isinstance(value, dict) else "[…]"
    return clip(one_line(value if isinstance(value, str) else json.dumps(value)), 40)
