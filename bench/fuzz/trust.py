"""Targets that trust depends on: exports, backups, notes, secrets, detection of attacks, settings."""

from __future__ import annotations

import io
import zipfile
from typing import get_args

from hypothesis import strategies as st

from bench.fuzz.imports import input_file
from bench.fuzz.material import json_bytes, lines
from bench.fuzz.target import Target, is_short, text_of
from mcp_memory.core.config import load_settings
from mcp_memory.core.errors import InvalidInput, McpMemoryError
from mcp_memory.core.secrets.detection import find_secrets
from mcp_memory.core.secrets.masking import holds_secret, mask, mask_lines, mask_result
from mcp_memory.core.text import to_plain_letters
from mcp_memory.core.types import Source
from mcp_memory.integrations.importers.history import ImportOptions, records, source_of, survey
from mcp_memory.integrations.importers.records import SkippedParts
from mcp_memory.service.portable.form import KINDS, MANIFEST, line_of, row_of
from mcp_memory.service.portable.reading import is_parcel
from mcp_memory.service.portable.reading import open_export as parcel
from mcp_memory.service.upkeep import archive
from mcp_memory.suspicion.flags import TAG, breaks_out, defuse, flags, without_flagged_lines


def _parcel(data: bytes) -> None:
    path = input_file("memory.zip")
    path.write_bytes(data)
    is_parcel(path)
    try:
        with parcel(path) as found:
            for space in found.spaces:
                for kind in KINDS.values():
                    list(found.rows(space, kind))
    except InvalidInput as error:
        is_short(error, 1_000)


def _line(data: bytes) -> None:
    for kind in KINDS.values():
        try:
            row = row_of(kind, data)
        except InvalidInput as error:
            is_short(error, 300)
            continue
        assert line_of(row_of(kind, line_of(row))) == line_of(row), "but for parts of a millisecond, writing is undone"


def _backup(data: bytes) -> None:
    path = input_file("backup.zip")
    path.write_bytes(data)
    try:
        with archive.open_backup(path) as (manifest, packed):
            for name, member in manifest.members.items():
                archive.unpack(packed, name, member, None)
    except McpMemoryError as error:
        is_short(error, 1_000)


def _packed(manifest: bytes, rows: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, held in ((MANIFEST, manifest), ("spaces/default/data/turns.jsonl", rows), ("memory.db", rows)):
            packed.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), held)
    return made.getvalue()


def _notes(data: bytes) -> None:
    path = input_file("Note.md")
    path.write_bytes(data)
    source = source_of(path)
    for asked in (ImportOptions(), ImportOptions(format="basic-memory"), ImportOptions(format="mempalace")):
        try:
            found = survey(source, asked, on_read=_silent)
            list(records(source, asked, found.layout, skipped=SkippedParts(), on_read=_silent))
        except InvalidInput as error:
            is_short(error, 1_000)


def _silent(_: int) -> None: ...


def _secrets(data: bytes) -> None:
    text = text_of(data)
    last = 0
    for secret in find_secrets(text):
        assert last <= secret.start < secret.end <= len(text)
        last = secret.end
    assert holds_secret(text) == bool(find_secrets(text))
    assert mask(mask(text)) == mask(text), "what is masked holds no more to mask"
    assert mask_lines(text).count("\n") == text.count("\n")
    mask_result(data)


def _suspicion(data: bytes) -> None:
    text = text_of(data)
    for source in get_args(Source):
        flags(text, source)
    assert without_flagged_lines(text).count("\n") == text.count("\n")
    breaks_out(text)
    assert TAG not in to_plain_letters(defuse(text)).casefold(), "the name of the tag"


def _config(data: bytes) -> None:
    path = input_file("config.toml")
    path.write_bytes(data)
    try:
        load_settings({}, home=path.parent)
    except InvalidInput as error:
        is_short(error, 2_500)
    finally:
        path.unlink()


_MANIFEST_KEYS = ("format", "version", "home", "spaces", "members", "counts", "sha256", "bytes", "schema", "when")
_ROW_KEYS = ("id", "session", "position", "role", "content", "said_at", "learned_at", "text", "kind", "valid_from")
_KEYS = (*_ROW_KEYS, "evidence", "turn", "span", "quote", "source", "name", "body", "ids", "at", "reason", "node_id")

TARGETS = (
    Target(
        name="parcel", run=_parcel, made=(st.builds(_packed, json_bytes(_MANIFEST_KEYS), lines(json_bytes(_KEYS))),)
    ),
    Target(name="parcel-line", run=_line, made=(json_bytes(_KEYS),)),
    Target(name="backup", run=_backup, made=(st.builds(_packed, json_bytes(_MANIFEST_KEYS), st.binary()),)),
    Target(name="notes", run=_notes),
    Target(name="secrets", run=_secrets),
    Target(name="suspicion", run=_suspicion),
    Target(name="config", run=_config),
)
