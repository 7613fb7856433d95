"""Tables of a TOML document put in, replaced and taken out; every other byte stays.

`rewrite(text, value)` handles what a client's configuration asks for: tables two levels deep (`[mcp_servers.memory]`
with what belongs to it) that come, change or go. A new one goes to the end of the document. The result is read again,
so that whatever else the document does with its tables, it says what was asked for or is not changed at all.

Pure. A table written in braces, on a line of a larger one, is refused: BadToml says so.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from mcp_memory.integrations.clients.json_text import BOM, same

__all__ = ["BadToml", "read", "rewrite", "table"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PART = r"""(?:"(?:\\.|[^"\\\r\n])*"|'[^'\r\n]*'|[^"'\[\]#\r\n])*"""
_HEADER = re.compile(rf"[ \t]*\[\[?(?P<name>{_PART})\]\]?[ \t]*(?:#[^\r\n]*)?(?:\r?\n|\Z)")
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{1,2}(?!"))?'
    r"|'''.*?'''(?:'{1,2}(?!'))?"
    r'|"(?:\\.|[^"\\\r\n])*"'
    r"|'[^'\r\n]*'"
    r"|#[^\r\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)

Keys = tuple[str, ...]


class BadToml(ValueError):
    """The text is not TOML, or not such that a table could be changed in it."""


def read(text: str) -> dict[str, Any]:
    """Return the document. Raises BadToml with line and column."""
    try:
        return tomllib.loads(text.removeprefix(BOM).replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise BadToml(str(error)) from None
    except (ValueError, RecursionError):
        raise BadToml("it holds a number or a nesting that is too large to read") from None


def rewrite(text: str, value: Mapping[str, Any]) -> str:
    """Return the text with the tables of the second level as in `value`.

    Raises BadToml when it cannot be read, or when the change is not one of such a table.
    """
    old = read(text)
    for path in sorted(_paths(old) | _paths(value)):
        before, after = _at(old, path), _at(value, path)
        if same(before, after):
            continue
        blocks = list(_blocks(text, path))
        if before is not None and not blocks:
            raise BadToml(f"{'.'.join(path)} is not a table of its own, with a line [{'.'.join(path)}]")
        if after is None:
            text = _without(text, blocks)
        elif not blocks:
            text = _with(text, table(path, after))
        else:
            (start, end), *others = blocks
            text = _without(text, others)
            text = text[:start] + table(path, after).replace("\n", _newline(text)) + text[end:]
    try:
        if same(_with_content(read(text)), _with_content(value)):
            return text
    except BadToml:
        pass
    raise BadToml("it writes the tables in a way that leaves no place for another, such as in braces on one line")


def table(path: Keys, values: Mapping[str, Any]) -> str:
    """Return a table as text: its header, its values, then the tables in it."""
    inner = {key: cast("dict[str, Any]", value) for key, value in values.items() if isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}\n" for key, value in values.items() if key not in inner]
    head = f"[{'.'.join(map(_key, path))}]\n" if lines or not inner else ""
    parts = [head + "".join(lines), *(table((*path, key), value) for key, value in inner.items())]
    return "\n".join(part for part in parts if part)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case list():
            return f"[{', '.join(map(_value, cast('list[Any]', value)))}]"
        case dict():
            members = cast("dict[str, Any]", value).items()
            return f"{{ {', '.join(f'{_key(key)} = {_value(inner)}' for key, inner in members)} }}" if members else "{}"
        case _:
            return str(value)  # numbers, and times, which TOML writes as Python does


def _paths(document: Mapping[str, Any]) -> set[Keys]:
    return {
        (outer, inner)
        for outer, tables in document.items()
        if isinstance(tables, dict)
        for inner in cast("dict[str, Any]", tables)
    }


def _at(document: Mapping[str, Any], path: Keys) -> Any:
    outer = document.get(path[0])
    return cast("dict[str, Any]", outer).get(path[1]) if isinstance(outer, dict) else None


def _with_content(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without empty tables of the first level, which may be there without a line that says so."""
    return {key: value for key, value in document.items() if value != {}}


# --- where a table stands ---------------------------------------------------------------------------


def _blocks(text: str, path: Keys) -> Iterator[tuple[int, int]]:
    """Yield where the table and the tables in it stand: from their header to the end of their last line."""
    headers = list(_headers(text))
    for at, (start, body, name) in enumerate(headers):
        if name[: len(path)] == path:
            end = headers[at + 1][0] if at + 1 < len(headers) else len(text)
            yield start, body + len(_up_to_the_last_value(text[body:end]))


def _headers(text: str) -> Iterator[tuple[int, int, Keys]]:
    """Yield start, end and name of each line that begins a table; those in strings and arrays are none."""
    at, depth, fresh = len(BOM) if text.startswith(BOM) else 0, 0, True
    while at < len(text):
        if fresh and not depth and (found := _HEADER.match(text, at)):
            yield at, found.end(), _name(found["name"])
            at = found.end()
            continue
        token = _TOKEN.search(text, at)
        if token is None:
            return
        depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        fresh, at = token[0] == "\n", token.end()


def _name(written: str) -> Keys:
    """Return the parts of a header's name, as TOML itself reads it."""
    document: Any = tomllib.loads(f"{written.strip('[] ')} = 0")
    parts: list[str] = []
    while isinstance(document, dict):
        ((part, document),) = cast("dict[str, Any]", document).items()
        parts.append(part)
    return tuple(parts)


def _up_to_the_last_value(body: str) -> str:
    """Return a table's lines up to its last value; comments and empty lines behind it belong to what follows."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", body)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return "".join(lines)


def _without(text: str, blocks: list[tuple[int, int]]) -> str:
    for start, end in reversed(blocks):
        rest = text[end:]
        before = text[:start]
        # One empty line stood between the table and what comes before or after it: it goes too.
        if before.endswith(("\n\n", "\r\n\r\n")) and (not rest or rest.startswith(("\n", "\r\n"))):
            before = before[: -2 if before.endswith("\r\n") else -1]
        elif not before.removeprefix(BOM):
            rest = rest.lstrip("\r\n")
        text = before + rest
    return text


def _with(text: str, block: str) -> str:
    newline = _newline(text)
    if text.removeprefix(BOM):
        text += newline if text.endswith("\n") else newline * 2
    return text + block.replace("\n", newline)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
