"""Words of many languages, without a model. Word lists and patterns are text files, read by `blocks_of`.

A file has blocks: a line at the margin names one, the lines below it are indented by four columns.

    define DO                   a pattern that later blocks of the file name as {DO}
        (?:add|address
        |answer)\\b
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_DEFINED = re.compile(r"\{([A-Z_]+)\}")


def blocks_of(package: str, *path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the lines of each block of a data file; lines that begin with `#` are comments."""
    from importlib import resources

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
    """Yield the name and the regular expression of each block, its lines joined and the names of others filled in."""
    defined: dict[str, str] = {}
    for head, lines in blocks_of(package, *path):
        source = _DEFINED.sub(lambda name: defined[name[1]], "".join(lines))
        defined[head.removeprefix("define ")] = source
        yield head, source
