"""Ask a raw result by JSON path (RFC 9535): JSON and JSON lines, printed pretty where long and flat where short.

Work is bounded by nodes visited (`VISITS`), not by time, so the same question always has the same answer; only
regular expressions inside a filter are stopped by the clock. Raises InvalidInput and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from time import monotonic
from typing import Any, cast

from mcp_memory.core.errors import InvalidInput

__all__ = ["answer_json_path"]

VISITS = 500_000
MATCHES = 20_000
LONGEST_PATH = 1_000
WIDTH = 100
REGEX_SECONDS = 2.0
PLAIN_NAME = re.compile(r"\['([A-Za-z_]\w*)'\]")


def answer_json_path(raw: str, path: str) -> tuple[int, str]:
    """How many values match, and the answer: one value alone, several each behind its path."""
    value = _parse(raw)
    try:
        found = _ask(value, path)
        if len(found) == 1:
            return 1, _pretty(found[0][1], "")
        if not found:
            return 0, _what_there_is(value)
        return len(found), "\n".join(f"{_short_path(where)}: {_pretty(one, '')}" for where, one in found)
    except RecursionError:
        raise InvalidInput(
            "The JSON is nested too deep for this path. Name a deeper part, or use view `page` or `grep`."
        ) from None


def _parse(raw: str) -> Any:
    """The value, or the list of values of JSON lines."""
    try:
        return json.loads(raw)
    except RecursionError:
        raise InvalidInput("The JSON is nested too deep to parse. Use view `page`, `lines` or `grep`.") from None
    except json.JSONDecodeError as error:
        if (rows := _parse_lines(raw)) is not None:
            return rows
        raise InvalidInput(
            f"The result is not JSON: {error.msg} at line {error.lineno}, column {error.colno}. "
            "Use view `lines`, `grep` or `page`."
        ) from None
    except ValueError as error:  # an integer with thousands of digits
        raise InvalidInput(f"The result is not JSON that can be read: {error}. Use view `grep` or `page`.") from None


def _parse_lines(raw: str) -> list[Any] | None:
    rows: list[Any] = []
    for line in raw.split("\n"):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError):
                return None
    return rows if len(rows) > 1 else None


def _ask(value: Any, path: str) -> list[tuple[str, Any]]:
    import jsonpath  # late: 40 ms that most answers never need
    from jsonpath.function_extensions import Match, Search

    if len(path) > LONGEST_PATH:
        raise InvalidInput(f"json_path is longer than {LONGEST_PATH:,} characters. Ask in smaller steps.")
    visited = 0

    class Counted(jsonpath.JSONPathMatch):
        """Counts the nodes that a query visits; those of `$..*..*` grow without end."""

        def __init__(self, **given: Any) -> None:
            nonlocal visited
            visited += 1
            if visited > VISITS:
                raise InvalidInput(
                    f"json_path visits more than {VISITS:,} values. Name more of the path and use `..` less."
                )
            super().__init__(**given)

    left = REGEX_SECONDS  # for all values together: a filter asks each of them

    def timed(pattern: Any, method: str, value: object) -> bool:
        nonlocal left
        if pattern is None or not isinstance(value, str):
            return False
        start = monotonic()
        found = bool(getattr(pattern, method)(value, timeout=max(0.001, left)))
        left -= monotonic() - start
        return found

    class TimedSearch(Search):
        def __call__(self, value: object, pattern: object) -> bool:
            return timed(self.check_cache(pattern), "search", value) if isinstance(pattern, str) else False

    class TimedMatch(Match):
        def __call__(self, value: object, pattern: object) -> bool:
            return timed(self.check_cache(pattern), "fullmatch", value) if isinstance(pattern, str) else False

    class Environment(jsonpath.JSONPathEnvironment):
        match_class = Counted

    environment = Environment()
    environment.function_extensions |= {"search": TimedSearch(), "match": TimedMatch()}
    try:
        found: list[tuple[str, Any]] = []
        query = environment.compile(path)
        if isinstance(value, str):  # which the library would take for a document to parse
            return [("$", value)] if path.strip() == "$" else []
        for match in query.finditer(value):
            found.append((match.path, match.obj))
            if len(found) > MATCHES:
                raise InvalidInput(f"json_path matches more than {MATCHES:,} values. Slice it, such as [0:100].")
        return found
    except jsonpath.JSONPathError as error:
        if isinstance(error, RecursionError):
            raise RecursionError from None
        told = str(error).partition("\n")[0].rstrip(".")
        raise InvalidInput(
            f"json_path {path[:80]!r} is not valid: {told}. Examples: $.items[0], $..name, $.rows[?@.id == 7]."
        ) from None
    except TimeoutError:
        raise InvalidInput("A regular expression in json_path takes too long. Make it simpler.") from None


def _what_there_is(value: Any) -> str:
    if isinstance(value, dict):
        keys = list(cast("dict[str, Any]", value))
        return f"nothing matches; the top level has the keys {', '.join(keys[:20])}" + (" …" if len(keys) > 20 else "")
    if isinstance(value, list):
        return f"nothing matches; the top level is an array of {len(cast('list[Any]', value)):,}"
    return "nothing matches; the result is a single value"


def _short_path(path: str) -> str:
    """`$['items'][3]['name']` as an agent would type it: `$.items[3].name`."""
    return PLAIN_NAME.sub(r".\1", path)


def _pretty(value: Any, indent: str) -> str:
    """On one line where that is short, else one entry a line."""
    flat = _flat(value)
    if flat is not None and len(flat) + len(indent) <= WIDTH:
        return flat
    inner = indent + " "
    if isinstance(value, dict) and value:
        entries = cast("dict[str, Any]", value).items()
        parts = [f"{inner}{_dump(key)}: {_pretty(one, inner)}" for key, one in entries]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        parts = [inner + _pretty(one, inner) for one in cast("list[Any]", value)]
        return "[\n" + ",\n".join(parts) + f"\n{indent}]"
    return _dump(value)


def _flat(value: Any) -> str | None:
    """The value on one line, or None as soon as it is clearly longer than that."""
    parts: list[str] = []
    room = WIDTH
    for piece in _pieces(value):
        parts.append(piece)
        room -= len(piece)
        if room < 0:
            return None
    return "".join(parts)


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield "{"
        for at, (key, one) in enumerate(cast("dict[str, Any]", value).items()):
            yield f"{', ' if at else ''}{_dump(key)}: "
            yield from _pieces(one)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for at, one in enumerate(cast("list[Any]", value)):
            yield ", " if at else ""
            yield from _pieces(one)
        yield "]"
    else:
        yield _dump(value)


def _dump(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except ValueError:  # an integer too long to print
        return "a very large number"
