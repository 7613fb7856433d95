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
from mcp_memory.integrations.importers.reader import first_value, is_conversations, read_head, read_text_head
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
    if form := next((form for form in _tried("path") if _is_at(form, place)), None):
        return form
    documents = [form for form in _tried("document") if path.suffix == ".json" and _is_at(form, place)]
    first = first_value(path) if documents else None
    if form := next((form for form in documents if form.matches(first)), None):
        return form
    candidates = [form for form in _tried("lines") if _is_at(form, place)] if path.suffix != ".md" else []
    lines = read_head(path) if candidates else []
    return next((form for form in candidates if lines and form.matches(lines)), None)


def files_of_formats(folder: Path, format: str = "auto") -> Iterator[Path]:  # noqa: A002
    """Yield the files of known formats (or of one format) in a folder and its subfolders. Links are not followed.

    Not yielded are files whose names are those of an export's conversations, and texts whose format has no path.
    """
    forms = [form for name, form in table().items() if format in ("auto", name)]
    for parent, folders, files in os.walk(folder.absolute()):
        folders[:] = sorted(name for name in folders if name not in _NO_FOLDERS)
        yield from (
            path
            for name in sorted(files)
            if (path := Path(parent, name)).is_file() and _format_in_folder(path) in forms
        )


def _format_in_folder(path: Path) -> Format | None:
    """Return the format of a file in a folder: by its path, its first lines, its head, or its first JSON value."""
    if path.suffix not in (".json", ".md"):
        return whole_file_format(path)
    place = path.as_posix()
    if (form := whole_file_format(path)) is not None or is_conversations(path):
        return form
    if path.suffix == ".md":
        tried = [form for form in _tried("text") if form.path and _is_at(form, place)]
        head = read_text_head(path) if tried else ""
        return next((form for form in tried if form.matches(head)), None)
    value = first_value(path) if path.stat().st_size <= _LARGEST_GUESS else None
    return next((form for form in _tried("value") if _is_at(form, place) and form.matches(value)), None)


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
