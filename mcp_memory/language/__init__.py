"""Words of many languages, without a model. Word lists and patterns are text files, read by `blocks_of`.

A file has blocks: a line at the margin is the name of a block, and the indented lines below are its content.

    define DO                   a pattern that later blocks of the file name as {DO}
        (?:add|address
        |answer)\\b
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources

_DEFINED = re.compile(r"\{([A-Z_]+)\}")


def blocks_of(package: str, *path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the lines of each block of a data file, without `#` comments."""
    head, lines = "", list[str]()
    for line in resources.files(package).joinpath(*path).read_text("utf-8").splitlines():
        if line.startswith("    "):
            lines.append(line[4:])
        elif line and not line.startswith("#"):
            if head:
                yield head, lines
            head, lines = line, []
    yield head, lines


def patterns_of(package: str, *path: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the regular expression of each block, its lines joined and `{NAMES}` replaced."""
    defined: dict[str, str] = {}
    for head, lines in blocks_of(package, *path):
        source = _DEFINED.sub(lambda name: defined[name[1]], "".join(lines))
        defined[head.removeprefix("define ")] = source
        yield head, source


@cache
def pattern_of(package: str, file: str, name: str) -> re.Pattern[str]:
    """Return the compiled regular expression of a block."""
    return re.compile(_sources(package, file)[name])


@cache
def _sources(package: str, file: str) -> dict[str, str]:
    return dict(patterns_of(package, file))


@cache
def words_of(package: str, file: str, name: str) -> frozenset[str]:
    """Return the words of a block, which are separated by white space."""
    return frozenset(" ".join(lines_of(package, file, name)).split())


@cache
def lines_of(package: str, file: str, name: str) -> list[str]:
    """Return the lines of a block."""
    return dict(blocks_of(package, file))[name]
