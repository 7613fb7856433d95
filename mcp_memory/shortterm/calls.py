"""Describes a tool call: its line in the record, the title of its step, and the stand-in for its result.

A call line has at most 150 characters and begins with the tool's name; a title has at most 80, a summary at most 200.
Each is a single cleaned line with its secrets masked. `synopsis` summarises the results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from mcp_memory.core.secrets.masking import mask
from mcp_memory.shortterm.canvas.flowchart import SUMMARY_LIMIT, TITLE_LIMIT, clean

CALL_LIMIT = 150
_READ_CHARS = 6_000

# Names of informative arguments, the most informative first.
_COMMANDS = ("command", "cmd", "script", "code")
_PATHS = ("file_path", "filepath", "path", "file", "filename", "notebook_path", "directory", "dir", "uri_path")
_ADDRESSES = ("url", "uri", "href", "link")
_QUESTIONS = ("pattern", "query", "q", "search", "regex", "sql", "question", "prompt", "description", "name", "id")
_SHELL_LEAD = re.compile(
    r"""\s*(?:(?:cd|pushd|export|source|\.)\s[^&;\n]*(?:&&|;|\n)|[A-Za-z_]\w*=\S*\s|sudo\s|set\s-\S+\s*(?:&&|;|\n)
    |timeout\s+\S+\s|time\s|(?:ba|z)?sh\s+-l?c\s+["']?)\s*""",
    re.VERBOSE,
)


def call_line(tool: str, arguments: object) -> str:
    """Return the tool and its informative arguments, at most 150 characters: `Read path=src/app.py limit=40`."""
    name = clean(tool, 60).replace(" ", "_") or "tool"
    shown = [f"{key}={text}" for key, text in _informative(arguments)]
    if not isinstance(arguments, Mapping) and (text := _short(arguments)):
        shown = [text]
    return clean(mask(" ".join([name, *shown])), CALL_LIMIT)


def title_of(tool: str, arguments: object) -> str:
    """Return a short title of the call: `pytest tests/test_login.py`, `Read src/app.py`."""
    command = clean(mask(command_of(arguments)), TITLE_LIMIT)
    return command or clean(mask(_title(short_name(tool), arguments)), TITLE_LIMIT)


def _title(name: str, arguments: object) -> str:
    if isinstance(arguments, str) and arguments.strip():
        return f"{name} {_text(arguments)[:400]}"
    path, address, question = (_first(arguments, names) for names in (_PATHS, _ADDRESSES, _QUESTIONS))
    if address:
        method = cast("Mapping[str, object]", arguments).get("method")
        return f"{method.upper() if isinstance(method, str) and method else 'GET'} {_strip_url(address)}"
    place = _shorten_path(path) if path else ""
    if question:
        return f'{name} "{clean(question, 48)}"' + (f" in {place}" if place else "")
    return f"{name} {place or next((text for _, text in _informative(arguments)), '')}"


def command_of(arguments: object) -> str:
    """Return the first command of a shell call, without prefixes such as `cd` and `sudo`; "" for other calls."""
    command = _first(arguments, _COMMANDS)
    while (lead := _SHELL_LEAD.match(command)) and command[lead.end() :].strip():
        command = command[lead.end() :]
    lines = [line for line in command.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) > 1 and lines[0].rstrip().endswith(("'", '"', "\\")):  # python -c ", and the code
        return f"{lines[0].rstrip(chr(92)).rstrip()} {lines[1].strip()}".strip()
    return (lines[0] if lines else command).strip()


def path_of(arguments: object) -> str:
    """Return the file or folder argument of a call; "" if it has none."""
    return _first(arguments, _PATHS)


def subject_of(arguments: object) -> str:
    """Return the subject of a call, at most 80 characters: its address, its question, or the first other argument."""
    if address := _first(arguments, _ADDRESSES):
        return clean(mask(_strip_url(address)), 80)
    other = next((text for _, text in _informative(arguments)), "")
    return clean(mask(_first(arguments, _QUESTIONS) or other or _text(arguments)), 80)


def summary_line(text: str) -> str:
    """Return a summary as stored in records and nodes."""
    return clean(mask(text), SUMMARY_LIMIT)


def stand_in(*, node: str, ref: str, summary: str, preview: str, expand: str = "expand_node") -> str:
    """Return the text that replaces a result in the context. It is read again with every later prompt.

    `summary` and `preview` must be masked already.
    """
    return f"[{node} {ref}; {expand}]\n{summary}\n{preview}"


# --- arguments --------------------------------------------------------------------------------------


def _informative(arguments: object) -> Iterator[tuple[str, str]]:
    """Yield the non-empty arguments with their short texts, the most informative first."""
    if not isinstance(arguments, Mapping):
        return
    by_name = {str(key): value for key, value in cast("Mapping[Any, object]", arguments).items()}
    order = {name: at for at, name in enumerate((*_COMMANDS, *_PATHS, *_ADDRESSES, *_QUESTIONS))}
    for key in sorted(by_name, key=lambda key: order.get(key.casefold(), len(order))):
        if text := _short(by_name[key]):
            yield key, text


def _first(arguments: object, names: tuple[str, ...]) -> str:
    """Return the text of the first of the arguments `names` that is not empty; "" if all are empty."""
    if not isinstance(arguments, Mapping):
        return ""
    by_name = {str(key).casefold(): value for key, value in cast("Mapping[Any, object]", arguments).items()}
    return next((text for name in names if (text := _text(by_name.get(name)).strip())), "")


def _text(value: object) -> str:
    """Return the text of an argument, masked before it is cut, because half a secret would not be recognised."""
    if isinstance(value, str):
        return mask(value[:_READ_CHARS])[:4000]
    if isinstance(value, list):
        parts = cast("list[object]", value)[:40]
        return mask(" ".join(part[:_READ_CHARS] for part in parts if isinstance(part, str))[:_READ_CHARS])[:4000]
    return ""


def _short(value: object) -> str:
    if isinstance(value, bool | int | float):
        return str(value)[:40]
    return clean(_text(value), 100)


def short_name(tool: str) -> str:
    """Return a tool's name without its server, such as `search_issues` for `mcp__github__search_issues`."""
    name = clean(tool, 60)
    return re.split(r"__|[./:]", name)[-1].strip() or name or "tool"


def _shorten_path(path: str) -> str:
    """Return the last parts of a long path, which are the most informative."""
    text = clean(path, 400).replace("\\", "/")
    if len(text) <= 48:
        return text
    parts = text.split("/")
    kept = parts.pop()
    while parts and len(parts[-1]) + len(kept) < 44:
        kept = f"{parts.pop()}/{kept}"
    return f"…/{kept}"


def _strip_url(url: str) -> str:
    """Return the host and path of a URL. The query is dropped because it may contain keys."""
    bare = re.sub(r"^[a-z][a-z0-9+.-]*://(?:[^/@\s]*@)?(?:www\.)?", "", clean(url, 400), flags=re.IGNORECASE)
    return re.split(r"[?#]", bare)[0].rstrip("/") or clean(url, 60)
