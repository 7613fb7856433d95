"""TOML settings files edited in place. Pure.

`rewrite_toml(text, value)` adds, replaces and removes tables of the second level (`[mcp_servers.memory]` with its
subtables); every other byte stays. A new table is appended at the end. The result is parsed again: either it is
correct, or `BadToml` is raised, as for an inline table (in braces) of a larger table.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from mcp_memory.integrations.clients.json_text import BOM, same_value

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
    """Invalid TOML, or a table that cannot be changed in place."""


def read_toml(text: str) -> dict[str, Any]:
    """Parse a document. Raises BadToml if it is invalid."""
    try:
        return tomllib.loads(text.removeprefix(BOM).replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise BadToml(str(error)) from None
    except (ValueError, RecursionError):
        raise BadToml("it holds a number or a nesting that is too large to read") from None


def rewrite_toml(text: str, value: Mapping[str, Any]) -> str:
    """Return the text with the tables of the second level changed to those of `value`.

    Raises BadToml if the text cannot be parsed, or if anything else would have to change.
    """
    old = read_toml(text)
    for path in sorted(_paths(old) | _paths(value)):
        before, after = _table_at(old, path), _table_at(value, path)
        if same_value(before, after):
            continue
        blocks = list(_blocks(text, path))
        if before is not None and not blocks:
            raise BadToml(f"{'.'.join(path)} is not a table of its own, with a line [{'.'.join(path)}]")
        if after is None:
            text = _cut_blocks(text, blocks)
        elif not blocks:
            text = _append_block(text, toml_table(path, after))
        else:
            (start, end), *others = blocks
            text = _cut_blocks(text, others)
            text = text[:start] + toml_table(path, after).replace("\n", _newline(text)) + text[end:]
    try:
        if same_value(_drop_empty_tables(read_toml(text)), _drop_empty_tables(value)):
            return text
    except BadToml:
        pass
    raise BadToml("it writes the tables in a way that leaves no place for another, such as in braces on one line")


def toml_table(path: Keys, values: Mapping[str, Any]) -> str:
    """Return the text of a table: its header, its values, then its subtables."""
    inner = {key: cast("dict[str, Any]", value) for key, value in values.items() if isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}\n" for key, value in values.items() if key not in inner]
    head = f"[{'.'.join(map(_key, path))}]\n" if lines or not inner else ""
    parts = [head + "".join(lines), *(toml_table((*path, key), value) for key, value in inner.items())]
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


def _table_at(document: Mapping[str, Any], path: Keys) -> Any:
    outer = document.get(path[0])
    return cast("dict[str, Any]", outer).get(path[1]) if isinstance(outer, dict) else None


def _drop_empty_tables(document: Mapping[str, Any]) -> dict[str, Any]:
    """Drop empty tables of the first level, which may exist without a header."""
    return {key: value for key, value in document.items() if value != {}}


# --- positions of tables ----------------------------------------------------------------------------


def _blocks(text: str, path: Keys) -> Iterator[tuple[int, int]]:
    """Yield the spans of a table and its subtables, from the header to the end of the last value."""
    headers = list(_headers(text))
    for at, (start, body, name) in enumerate(headers):
        if name[: len(path)] == path:
            end = headers[at + 1][0] if at + 1 < len(headers) else len(text)
            yield start, body + len(_strip_trailing_comments(text[body:end]))


def _headers(text: str) -> Iterator[tuple[int, int, Keys]]:
    """Yield start, end and name of each table header; brackets inside strings and arrays are not headers."""
    at, depth, fresh = len(BOM) if text.startswith(BOM) else 0, 0, True
    while at < len(text):
        if fresh and not depth and (header := _HEADER.match(text, at)):
            yield at, header.end(), _name(header["name"])
            at = header.end()
            continue
        token = _TOKEN.search(text, at)
        if token is None:
            return
        depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        fresh, at = token[0] == "\n", token.end()


def _name(name: str) -> Keys:
    """Parse the dotted name of a header."""
    document: Any = tomllib.loads(f"{name.strip('[] ')} = 0")
    parts: list[str] = []
    while isinstance(document, dict):
        ((part, document),) = cast("dict[str, Any]", document).items()
        parts.append(part)
    return tuple(parts)


def _strip_trailing_comments(body: str) -> str:
    """Cut the lines after the last value: comments and empty lines there belong to the next table."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", body)
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return "".join(lines)


def _cut_blocks(text: str, blocks: list[tuple[int, int]]) -> str:
    for start, end in reversed(blocks):
        rest = text[end:]
        before = text[:start]
        # Remove the empty line before the table too, or two would remain.
        if before.endswith(("\n\n", "\r\n\r\n")) and (not rest or rest.startswith(("\n", "\r\n"))):
            before = before[: -2 if before.endswith("\r\n") else -1]
        elif not before.removeprefix(BOM):
            rest = rest.lstrip("\r\n")
        text = before + rest
    return text


def _append_block(text: str, block: str) -> str:
    newline = _newline(text)
    if text.removeprefix(BOM):
        text += newline if text.endswith("\n") else newline * 2
    return text + block.replace("\n", newline)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
