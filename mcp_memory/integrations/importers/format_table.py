"""The table of formats, and how the format of a file or of a value is recognised.

Formats are the modules of `importers.formats`; a stricter format names the formats before which it is tried. Logs of
coding agents that are followed as they grow are in `agent_logs.FORMATS`.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from mcp_memory.integrations.importers import formats
from mcp_memory.integrations.importers.format import AnyRecord, Format, Unit
from mcp_memory.integrations.importers.reader import first_value, is_conversations, read_head
from mcp_memory.integrations.importers.records import (
    OTHER_MEMBERS,
    OTHER_TEXTS,
    ImportProblem,
    SkippedParts,
    SourceValue,
)

GENERIC = "jsonl"
"""The format of JSON values that are of no other format."""
_LARGEST_GUESS = 64 * 2**20
"""Bytes of a JSON file up to which its first value is read to find out its format."""
_NO_FOLDERS = {"node_modules", ".git", ".venv", "__pycache__"}


@cache
def table() -> Mapping[str, Format]:
    """Return the formats by name, in the order in which they are tried."""
    known: dict[str, Format] = {
        name: importlib.import_module(f"{formats.__name__}.{name.replace('-', '_')}").FORMAT for name in formats.names()
    }
    order = TopologicalSorter(dict.fromkeys(known, ()))
    for name, form in known.items():
        for later in form.before:
            order.add(later, name)
    return {name: known[name] for name in order.static_order() if name in known}


def _tried(unit: Unit) -> Iterator[Format]:
    return (form for form in table().values() if form.unit == unit)


def _is_at(form: Format, path: str) -> bool:
    return not form.path or re.search(form.path, path) is not None


def whole_file_format(path: Path, format: str = "auto") -> Format | None:  # noqa: A002
    """Return the format as which a file is read as a whole; None if its values are recognised one by one.

    Raises InvalidInput if the file cannot be read.
    """
    place = path.absolute().as_posix()
    if format != "auto":
        form = table().get(format)
        return None if form is None or form.unit in ("value", "text") else form
    for unit in ("path", "document"):
        if form := next((form for form in _tried(unit) if form.path and _is_at(form, place)), None):
            return form
    candidates = [form for form in _tried("lines") if _is_at(form, place)]
    lines = read_head(path) if candidates else []
    return next((form for form in candidates if lines and form.matches(lines)), None)


def files_of_formats(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders that are read as a whole, by name. Links are not followed."""
    for parent, folders, files in os.walk(folder.absolute()):
        folders[:] = sorted(name for name in folders if name not in _NO_FOLDERS)
        for path in (Path(parent, name) for name in sorted(files)):
            if not path.is_file():
                continue
            if _is_of_a_format(path):
                yield path


def _is_of_a_format(path: Path) -> bool:
    """Return whether a file in a folder is of a format, by its path, its first lines, or its first JSON value."""
    place = path.as_posix()
    if any(form.path and form.unit != "lines" and _is_at(form, place) for form in table().values()):
        return True
    if path.suffix == ".jsonl":
        return whole_file_format(path) is not None
    if path.suffix != ".json" or is_conversations(path) or path.stat().st_size > _LARGEST_GUESS:
        return False
    value = first_value(path)
    return any(form.matches(value) for form in _tried("value") if not form.path)


def value_records(source: SourceValue, format: str, skipped: SkippedParts) -> Iterator[AnyRecord]:  # noqa: A002
    """Yield the records of a JSON value, in the given format or, with `auto`, in the first format that matches."""
    form = table().get(format)
    if form is not None and form.unit == "text":
        yield ImportProblem(where=source.where, what=f"is JSON, and what {format} exports is Markdown.")
        return
    if form is None:
        tried = (form for form in _tried("value") if _is_at(form, source.path))
        form = next((form for form in tried if form.matches(source.value)), table()[GENERIC])
        if source.is_optional and form is table()[GENERIC]:
            skipped.left_out[OTHER_MEMBERS] += 1
            return
    skipped.formats.add(form.title)
    yield from form.records(source, skipped)


def text_records(source: SourceValue, format: str, skipped: SkippedParts) -> Iterator[AnyRecord]:  # noqa: A002
    """Yield the records of a text; a text of unknown format is counted as left out."""
    form = table().get(format)
    if form is None:
        tried = (form for form in _tried("text") if _is_at(form, source.path))
        form = next((form for form in tried if form.matches(source.value)), None)
    if form is None:
        skipped.left_out[OTHER_TEXTS] += 1
        return
    skipped.formats.add(form.title)
    yield from form.records(source, skipped)
