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
from mcp_memory.integrations.importers.archive import is_conversations
from mcp_memory.integrations.importers.format import Format, Unit
from mcp_memory.integrations.importers.reader import first_lines, first_value, text_head
from mcp_memory.integrations.importers.records import SourceValue
from mcp_memory.integrations.importers.streams import Readable, readable_file

GENERIC = "jsonl"
"""The format of JSON values that are of no other format, which is tried last."""
_LARGEST_GUESS = 64 * 2**20
"""Bytes of a JSON file up to which its first value is read to find out its format."""
_NO_FOLDERS = {"node_modules", ".git", ".venv", "__pycache__"}


@cache
def table() -> Mapping[str, Format]:
    """Return the formats by name, in the order in which they are tried."""
    by_name = {name: format_named(name) for name in formats.names()}
    order = TopologicalSorter(dict.fromkeys(by_name, ()))
    for name, form in by_name.items():
        for later in form.before:
            order.add(later, name)
    names = [name for name in order.static_order() if name in by_name]
    return {name: by_name[name] for name in sorted(names, key=lambda name: (by_name[name].is_last, name == GENERIC))}


def format_named(name: str) -> Format:
    """Return the format of a name in `formats.names()`, without loading the others."""
    return importlib.import_module(f"{formats.__name__}.{name.replace('-', '_')}").FORMAT


def _of_unit(unit: Unit) -> Iterator[Format]:
    return (form for form in table().values() if form.unit == unit)


def _is_at(form: Format, path: str) -> bool:
    return not form.path or re.search(form.path, path) is not None


def whole_file_format(file: Path | Readable, format: str = "auto") -> Format | None:  # noqa: A002
    """Return the format as which a file is read as a whole; None if its values are recognised one by one.

    Raises InvalidInput if the file cannot be read.
    """
    source = readable_file(file) if isinstance(file, Path) else file
    if format != "auto":
        form = table().get(format)
        return None if form is None or form.unit in ("value", "text") else form
    if form := next((form for form in _of_unit("path") if _is_at(form, source.place)), None):
        return form
    documents = [form for form in _of_unit("document") if source.suffix == ".json" and _is_at(form, source.place)]
    first = first_value(source) if documents else None
    if form := next((form for form in documents if form.matches(first)), None):
        return form
    candidates = [] if source.suffix == ".md" else [form for form in _of_unit("lines") if _is_at(form, source.place)]
    lines = first_lines(source) if candidates else []
    return next((form for form in candidates if lines and form.matches(lines)), None)


def files_of_formats(folder: Path, format: str = "auto") -> Iterator[Path]:  # noqa: A002
    """Yield the files of known formats (or of `format`) in a folder and its subfolders. Links are not followed.

    Files that have the names of an export's conversations, and texts whose format has no path, are not yielded.
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
    """Return the format of a file in a folder: by its path, its first lines, its head, or its first JSON value.

    A format that has no path is only tried for JSON.
    """
    source = readable_file(path)
    if (form := whole_file_format(source)) is not None or is_conversations(source.place):
        return form
    texts = [form for form in _of_unit("text") if form.path and _is_at(form, source.place)]
    head = text_head(source) if texts else ""
    if form := next((form for form in texts if form.matches(head)), None):
        return form
    if path.stat().st_size > _LARGEST_GUESS:
        return None
    if source.suffix not in (".json", ".jsonl") and not any(
        form.path and _is_at(form, source.place) for form in _of_unit("value")
    ):
        return None
    return value_format(SourceValue(first_value(source), "", path=source.place))


def value_format(source: SourceValue) -> Format | None:
    """Return the format of a JSON value; None if it is of no known format, or generic."""
    forms = (form for form in _of_unit("value") if form is not table()[GENERIC] and _is_at(form, source.path))
    return next((form for form in forms if form.matches(source.value)), None)


def text_format(source: SourceValue) -> Format | None:
    """Return the format of a text; None if it is of no known format."""
    forms = (form for form in _of_unit("text") if _is_at(form, source.path))
    return next((form for form in forms if form.matches(source.value)), None)
