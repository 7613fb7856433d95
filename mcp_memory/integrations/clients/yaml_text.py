"""YAML settings files edited in place, in the forms that people write: mappings in blocks, lists of words. Pure.

`rewrite_yaml(text, value)` adds, replaces and removes members and items of lists; every other line stays, comments
included. What else YAML can say (anchors, texts of several lines, objects in braces) is read as an opaque text: it
stays as it is, and `BadYaml` is raised if it would have to change. PyYAML decides whether a text is YAML at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from mcp_memory.integrations.clients.json_text import BOM, same_value

_KEY = re.compile(
    r"""(?P<key>"(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[^\s"'#&*!|>%@`{}\[\],?:-][^:#]*?|-[^\s:]+)\s*:(?=\s|$)"""
)
_ITEM = re.compile(r"-(?:\s+|$)")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_PLAIN = re.compile(r"[A-Za-z_/~.][\w/.+~-]*")
_QUOTED = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:''|[^'])*')\s*(?:#.*)?""")
_NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"})
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
"""Characters that some programs take for the end of a line, or refuse."""
_INDENT = 2


_Edit = tuple[int, int, list[str]]
"""The first line, the line after the last, and the lines in their place; of two at one place, the first is first."""


class BadYaml(ValueError):
    """Invalid YAML, or a form of it that cannot be changed in place."""


class _Opaque(str):
    """The text of a value in another form."""


@dataclass
class _Node:
    """A value, from line `start` to before line `end`; the members of a mapping begin in column `indent`."""

    value: Any
    start: int
    end: int
    indent: int = 0
    members: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    items: list[int] = field(default_factory=list[int])
    """The lines of the items of a list in a block."""


def read_yaml(text: str) -> dict[str, Any]:
    """Parse a document; values in other forms become texts. Raises BadYaml if it is no mapping in a block."""
    value = cast("dict[str, Any]", _parse(text).value)
    _check_syntax(text)
    return value


def rewrite_yaml(text: str, value: Mapping[str, Any]) -> str:
    """Return the text changed to the value. Raises BadYaml if that is not possible in place."""
    lines = _LINE.findall(text)
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += end_of_line
    edits: list[_Edit] = []
    _edit(_parse(text), value, edits)
    for _, (start, end, new) in sorted(enumerate(edits), key=lambda edit: (edit[1][:2], edit[0]), reverse=True):
        lines[start:end] = [line + end_of_line for line in new]
    result = "".join(lines)
    if not same_value(read_yaml(result), dict(value)):
        raise BadYaml("it is written in a form of YAML that cannot be changed in place")
    return result


# --- reading ----------------------------------------------------------------------------------------


def _check_syntax(text: str) -> None:
    """Raise BadYaml unless the text is one document of YAML."""
    try:
        yaml.compose(text, yaml.SafeLoader)  # pyright: ignore[reportUnknownMemberType]
    except yaml.MarkedYAMLError as error:
        at, since = error.problem_mark, error.context_mark
        where = f"line {at.line + 1}, column {at.column + 1}: " if at else ""
        context = f"{error.context}{f' from line {since.line + 1}' if since else ''}, " if error.context else ""
        raise BadYaml(f"{where}{context}{error.problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise BadYaml(f"line {line}: a character that YAML does not allow") from None
    except RecursionError:
        raise BadYaml("nested too deep") from None


def _parse(text: str) -> _Node:
    lines = [line.rstrip("\r\n") for line in _LINE.findall(text.removeprefix(BOM))]
    found = [at for at, line in enumerate(lines) if _content(line) and line.strip() != "---"]
    if not found:
        return _Node({}, len(lines), len(lines))
    if any(line.rstrip() in ("---", "...") for line in lines[found[0] :]):
        raise BadYaml("it holds more than one document")
    node = _parse_block(lines, found[0], len(lines))
    if not isinstance(node.value, dict):
        raise BadYaml(f"line {found[0] + 1}: a member with its name belongs here")
    return node


def _content(line: str) -> str:
    stripped = line.strip()
    return "" if stripped.startswith("#") else stripped


def _column(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _parse_block(lines: Sequence[str], start: int, stop: int) -> _Node:
    """Parse the block that begins at a line with content; it ends before a line with content further left."""
    indent = _column(lines[start])
    end = start + 1
    for at in range(start, stop):
        if _content(lines[at]):
            if _column(lines[at]) < indent:
                break
            if lines[at].lstrip(" ").startswith("\t"):
                raise BadYaml(f"line {at + 1}: a tab where spaces belong")
            end = at + 1
    if _ITEM.match(lines[start].strip()):
        return _parse_list(lines, start, end, indent)
    if not _KEY.match(lines[start].strip()):
        return _Node(_Opaque("\n".join(lines[start:end])), start, end, indent)
    heads = [at for at in range(start, end) if _content(lines[at]) and _column(lines[at]) == indent]
    heads = [at for at in heads if not _ITEM.match(lines[at].strip())]  # items may be in the column of their key
    members: dict[str, _Node] = {}
    for at, following in zip(heads, [*heads[1:], end], strict=True):
        match = _KEY.match(lines[at].strip())
        if match is None:
            raise BadYaml(f"line {at + 1}: a member with its name belongs here")
        members[_scalar(match["key"])] = _parse_member(lines, at, following, lines[at].strip()[match.end() :])
    return _Node({key: member.value for key, member in members.items()}, start, end, indent, members)


def _parse_member(lines: Sequence[str], at: int, stop: int, rest: str) -> _Node:
    """Parse the value of the member at a line, whose text after the colon is `rest`."""
    below = [line for line in range(at + 1, stop) if _content(lines[line])]
    last = below[-1] + 1 if below else at + 1
    inline = rest if _QUOTED.fullmatch(rest.strip()) else _COMMENT.sub("", rest)
    if inline.strip():
        whole = "\n".join([inline.strip(), *(lines[line] for line in below)])
        return _Node(_Opaque(whole) if below else _value(inline.strip()), at, last)
    if not below:
        return _Node(None, at, last)
    node = _parse_block(lines, below[0], stop)
    if node.end < last:
        raise BadYaml(f"line {node.end + 1}: further left than the lines before it")
    return _Node(node.value, at, last, node.indent, node.members, node.items)


def _parse_list(lines: Sequence[str], start: int, end: int, indent: int) -> _Node:
    heads = [at for at in range(start, end) if _content(lines[at])]
    items: list[Any] = []
    for at in heads:
        match = _ITEM.match(lines[at].strip())
        text = "" if match is None else lines[at].strip()[match.end() :]
        text = text if _QUOTED.fullmatch(text) else _COMMENT.sub("", text)
        if _column(lines[at]) != indent or not text or _KEY.match(text) or _ITEM.match(text):
            return _Node(_Opaque("\n".join(lines[start:end])), start, end, indent)
        items.append(_scalar(text.strip()))
    return _Node(items, start, end, indent, items=heads)


def _value(text: str) -> Any:
    if text[0] == "[" and text[-1] == "]":
        inner = text[1:-1].strip()
        words = re.findall(r"""\s*("(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[^\s,"'\[\]{}][^,"'\[\]{}]*?)\s*(?:,|$)""", inner)
        if ", ".join(words).replace(" ", "") == inner.rstrip(",").replace(" ", ""):
            return [_scalar(word) for word in words]
    if text == "{}":
        return {}
    return _Opaque(text) if text[0] in "&*!|>%@`{[" else _scalar(text)


def _scalar(text: str) -> Any:
    if text[:1] == "'":
        return text[1:-1].replace("''", "'")
    if text[:1] == '"':
        try:
            return json.loads(text)
        except ValueError:
            return _Opaque(text)
    match text:
        case "true" | "True":
            return True
        case "false" | "False":
            return False
        case "null" | "~":
            return None
        case _ if re.fullmatch(r"-?(?:0|[1-9]\d*)", text):
            return int(text)
        case _:
            return text


# --- writing ----------------------------------------------------------------------------------------


def _edit(node: _Node, value: Mapping[str, Any], edits: list[_Edit]) -> None:
    """Note the edits that change a mapping to the value."""
    for key, member in node.members.items():
        new = value.get(key)
        if key not in value:
            edits.append((member.start, member.end, []))
        elif same_value(member.value, new):
            continue
        elif isinstance(new, Mapping) and new and member.members:
            _edit(member, cast("Mapping[str, Any]", new), edits)
        elif isinstance(new, list) and new and member.items:
            _edit_items(member, cast("list[Any]", new), edits)
        elif isinstance(member.value, _Opaque):
            raise BadYaml(f"line {member.start + 1}: {key} is written in a form that cannot be changed in place")
        else:
            edits.append((member.start, member.end, _written(key, new, node.indent)))
    added = [line for key in value if key not in node.members for line in _written(key, value[key], node.indent)]
    if added:
        edits.append((node.end, node.end, added))


def _edit_items(node: _Node, new: Sequence[Any], edits: list[_Edit]) -> None:
    for line, item in zip(node.items, node.value, strict=True):
        if item not in new:
            edits.append((line, line + 1, []))
    added = [f"{' ' * node.indent}- {_word(item)}" for item in new if item not in node.value]
    if added:
        edits.append((node.end, node.end, added))


def _written(key: str, value: Any, indent: int) -> list[str]:
    start = f"{' ' * indent}{_word(key)}:"
    match value:
        case dict():
            members = cast("dict[str, Any]", value)
            inner = [line for name, member in members.items() for line in _written(name, member, indent + _INDENT)]
            return [start, *inner] if inner else [f"{start} {{}}"]
        case list():
            items = [f"{' ' * (indent + _INDENT)}- {_word(item)}" for item in cast("list[Any]", value)]
            return [start, *items] if items else [f"{start} []"]
        case _:
            return [f"{start} {_word(value)}"]


def _word(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))
