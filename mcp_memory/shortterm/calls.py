"""A tool call in words: its line in the record, the title of its step, its summary.

Guarantees: a line has at most 150 characters and begins with the tool's name, a title at most 80, a summary
at most 200; each is one line, cleaned, and holds no secret that `secrets` knows. All of it is deterministic.
The result's own summary comes from `synopsis`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from mcp_memory.core.secrets.masking import mask
from mcp_memory.shortterm.canvas.flowchart import SUMMARY_LIMIT, TITLE_LIMIT, clean

CALL_LIMIT = 150
_READ = 6_000

# The informative arguments, most informative first, by the names that clients and servers give them.
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
    """Return the tool and the arguments that tell, in at most 150 characters: `Read path=src/app.py limit=40`."""
    name = clean(tool, 60).replace(" ", "_") or "tool"
    given = _by_name(arguments)
    shown = [f"{key}={text}" for key, value in _telling_first(given) if (text := _short(value))]
    if not given and (text := _short(arguments)):
        shown = [text]
    return clean(mask(" ".join([name, *shown])), CALL_LIMIT)


def title_of(tool: str, arguments: object) -> str:
    """Return a short name for what the call does: `pytest tests/test_login.py`, `Read src/app.py`."""
    name = short_name(tool)
    given = _by_name(arguments)
    if isinstance(arguments, str) and arguments.strip():
        return _title(f"{name} {_text(arguments)[:400]}")
    if command := _title(command_of(arguments)):
        return command
    path, address, question = (_first(given, names) for names in (_PATHS, _ADDRESSES, _QUESTIONS))
    if address:
        method = given.get("method")
        return _title(f"{method.upper() if isinstance(method, str) and method else 'GET'} {_address(address)}")
    if path and not question:
        return _title(f"{name} {_path(path)}")
    if question:
        quoted = f'{name} "{clean(question, 48)}"'
        return _title(f"{quoted} in {_path(path)}" if path else quoted)
    other = next((text for _, value in _telling_first(given) if (text := _short(value))), "")
    return _title(f"{name} {other}")


def command_of(arguments: object) -> str:
    """Return the command line of a call to a shell, without the `cd` and the environment before it, else ""."""
    return _command(_first(_by_name(arguments), _COMMANDS)).strip()


def path_of(arguments: object) -> str:
    """Return the file or folder that a call names, else ""."""
    return _first(_by_name(arguments), _PATHS)


def subject_of(arguments: object) -> str:
    """Return the subject of a call in a few words: its question, its address, or its first informative argument."""
    given = _by_name(arguments)
    if address := _first(given, _ADDRESSES):
        return clean(mask(_address(address)), 80)
    question = _first(given, _QUESTIONS)
    other = next((text for _, value in _telling_first(given) if (text := _short(value))), "")
    return clean(mask(question or other or _text(arguments)), 80)


def summary_line(text: str) -> str:
    """Return a summary as the record and the node keep it."""
    return clean(mask(text), SUMMARY_LIMIT)


# --- arguments --------------------------------------------------------------------------------------


def _by_name(arguments: object) -> dict[str, object]:
    if not isinstance(arguments, Mapping):
        return {}
    return {str(key): value for key, value in cast("Mapping[Any, object]", arguments).items()}


def _telling_first(arguments: dict[str, object]) -> list[tuple[str, object]]:
    order = {name: at for at, name in enumerate((*_COMMANDS, *_PATHS, *_ADDRESSES, *_QUESTIONS))}
    return sorted(arguments.items(), key=lambda pair: order.get(pair[0].casefold(), len(order)))


def _first(arguments: dict[str, object], names: tuple[str, ...]) -> str:
    by_name = {key.casefold(): value for key, value in arguments.items()}
    found = (by_name[name] for name in names if name in by_name)
    return next((text for value in found if (text := _text(value).strip())), "")


def _text(value: object) -> str:
    """Return the words of an argument, masked before they are cut: half a secret would not be known as one."""
    if isinstance(value, str):
        return mask(value[:_READ])[:4000]
    if isinstance(value, list):
        parts = cast("list[object]", value)[:40]
        return mask(" ".join(part[:_READ] for part in parts if isinstance(part, str))[:_READ])[:4000]
    return ""


def _short(value: object) -> str:
    if isinstance(value, bool | int | float):
        return str(value)[:40]
    return clean(_text(value), 100)


# --- words ------------------------------------------------------------------------------------------


def _title(text: str) -> str:
    return clean(mask(text), TITLE_LIMIT)


def short_name(tool: str) -> str:
    """`mcp__github__search_issues` is `search_issues` to a person."""
    name = clean(tool, 60)
    return re.split(r"__|[./:]", name)[-1].strip() or name or "tool"


def _command(command: str) -> str:
    """Return the first line of a command, without the `cd` and the environment before it."""
    rest = command
    while found := _SHELL_LEAD.match(rest):
        if not rest[found.end() :].strip():
            break
        rest = rest[found.end() :]
    lines = [line for line in rest.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) > 1 and lines[0].rstrip().endswith(("'", '"', "\\")):  # python -c ", and what it runs
        return f"{lines[0].rstrip(chr(92)).rstrip()} {lines[1].strip()}"
    return lines[0] if lines else rest


def _path(path: str) -> str:
    """The last parts of a long path; they tell more than the first."""
    text = clean(path, 400).replace("\\", "/")
    if len(text) <= 48:
        return text
    parts = text.split("/")
    kept = parts.pop()
    while parts and len(parts[-1]) + len(kept) < 44:
        kept = f"{parts.pop()}/{kept}"
    return f"…/{kept}"


def _address(url: str) -> str:
    """Host and path; the query may hold anything, keys too."""
    bare = re.sub(r"^[a-z][a-z0-9+.-]*://(?:[^/@\s]*@)?(?:www\.)?", "", clean(url, 400), flags=re.IGNORECASE)
    return re.split(r"[?#]", bare)[0].rstrip("/") or clean(url, 60)


def stand_in(*, node: str, ref: str, summary: str, preview: str, expand: str = "expand_node") -> str:
    """Return the text that a model reads in place of a result: one short line of node, ref and tool, summary, preview.

    It is read again with every later prompt. All parts are masked already.
    """
    return f"[{node} {ref}; {expand}]\n{summary}\n{preview}"
