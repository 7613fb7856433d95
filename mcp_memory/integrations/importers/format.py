"""The description of a format: how a file is recognised, and which function yields its records. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcp_memory.integrations.importers.records import (
    ImportedResult,
    ImportedStatement,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
    SourceValue,
    find,
    items_of,
    list_of,
    object_of,
)

AnyRecord = ImportedTurn | ImportedResult | ImportedStatement | ImportProblem
Records = Callable[[SourceValue, SkippedParts], Iterator[AnyRecord]]

Unit = Literal["value", "document", "lines", "text", "path"]
"""The unit that is recognised and read as a `SourceValue`:

value      each JSON value of a file: a line, an element of the array, or the document
document   the JSON document of a file, also if it is an array
lines      the list of all objects in a file of JSON lines, in order; lines that are not JSON are problems
text       the text of a file
path       each value that `load` yields for a file: a database, or a file that has its messages in other files
"""


def _matches_all(_: Any) -> bool:
    return True


def _has_no_parts(_: Path) -> Sequence[Path]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of files.

    `title` is its name for people, with an article if it needs one in "looks like …"; `location` describes where
    its files are or come from, for the documentation. A file or value is of this format if its path matches `path`
    and `matches` returns True for the value (of `lines`: for the list of the first objects; of `text`: for the
    first 64 KiB; of a `document`: for the first element of its array, or for its object; of `path`: `matches` is
    not asked). `path` is searched in the absolute path with `/` between its parts; formats of the unit `path` need
    one.
    """

    title: str
    location: str
    records: Records
    live: Records | None = None
    """The records of a log that is followed, if they are not those of an import: of a log that is a copy, for one."""
    unit: Unit = "value"
    matches: Callable[[Any], bool] = _matches_all
    path: str = ""
    before: Sequence[str] = ()
    """Names of less strict formats that recognise the same values, and are tried later."""
    is_last: bool = False
    """Whether it is tried after all others, because it recognises their values too."""
    load: Callable[[Path], Iterator[SourceValue | ImportProblem]] | None = None
    """Yields the values of a file, for the unit `path`. Files of a format with `load` are not read in zips."""
    parts: Callable[[Path], Sequence[Path]] = _has_no_parts
    """Returns the other files that belong to a file; a change of any of them causes the file to be read again."""


def has(*paths: str, **types: Any) -> Callable[[Any], bool]:
    """Return a test for an object that has these fields; with `name=type`, of that type.

    Paths may be dotted; in keyword arguments, `__` is the dot.
    """
    typed: Mapping[str, Any] = {name.replace("__", "."): kind for name, kind in types.items()}

    def matches(value: Any) -> bool:
        return all(find(value, path) is not None for path in paths) and all(
            isinstance(find(value, path), kind) for path, kind in typed.items()
        )

    return matches


def first_of(key: str, test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a test for an object whose list under `key` begins with an object that passes the test."""

    def matches(value: Any) -> bool:
        return any(test(item) for item in items_of(object_of(value) or {}, key)[:1])

    return matches


def any_line(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a test for the first lines of a file: any line has to pass the test."""
    return lambda lines: any(map(test, list_of(lines) or []))


def first_line(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a test for the first lines of a file: the first line has to pass the test."""
    return lambda lines: any(map(test, (list_of(lines) or [])[:1]))


def values_of(thing: Any) -> Iterable[Any]:
    """Return the values of an object; none of anything else."""
    return (object_of(thing) or {}).values()
