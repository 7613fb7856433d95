"""Targets that read data of other programs: exports, logs, settings, protocol messages."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, cast, get_args

from hypothesis import strategies as st

from bench.fuzz.material import json_bytes, lines
from bench.fuzz.target import Target, is_short, object_in, text_of
from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.clients import json_text, toml_text
from mcp_memory.integrations.hooks import events, tool_outputs
from mcp_memory.integrations.importers import agent_logs
from mcp_memory.integrations.importers.format_table import table
from mcp_memory.integrations.importers.generic import generic_records, seed_records
from mcp_memory.integrations.importers.history import ImportOptions, records, source_of, survey
from mcp_memory.integrations.importers.log_file import LogChunk, agent_of, read_chunks
from mcp_memory.integrations.importers.log_lines import LogLine, LogState
from mcp_memory.integrations.importers.records import AGENTS, SkippedParts, SourceValue
from mcp_memory.integrations.proxy import answer_editor
from mcp_memory.integrations.proxy import stdio as wire
from mcp_memory.store.values import FollowedLog


@cache
def _folder() -> Path:
    """Return a folder for all inputs of this process, in memory if the system has such a place."""
    shared = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="fuzz-", dir=shared if shared.is_dir() else None))


def input_file(name: str) -> Path:
    """Return the path for an input."""
    return _folder() / name


def _silent(_: int) -> None: ...


# --- exports ----------------------------------------------------------------------------------------


def _import(data: bytes) -> None:
    """Check that both passes read the same."""
    path = input_file("input.jsonl")
    path.write_bytes(data)
    source = source_of(path)
    for asked in (ImportOptions(), ImportOptions(format="seed", skip_bad=True)):
        try:
            found = survey(source, asked, on_read=_silent)
            first = list(records(source, asked, found.layout, skipped=SkippedParts(), on_read=_silent))
            second = list(records(source, asked, found.layout, skipped=SkippedParts(), on_read=_silent))
        except InvalidInput as error:
            is_short(error, 1_000)
            continue
        assert repr(first) == repr(second)


def _packed(value: bytes, name: str = "answers.json") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), value)
    return made.getvalue()


def _format(data: bytes) -> None:
    try:
        value: Any = json.loads(text_of(data))
    except (ValueError, RecursionError):
        return
    source, skipped = SourceValue(value, "line 1"), SkippedParts()
    for form in table().values():
        if form.unit != "text" and (form.unit in ("path", "document") or form.matches(value)):
            list(form.records(source, skipped))
    list(generic_records(source, skipped))
    list(seed_records(source, skipped))
    for form in agent_logs.FORMATS.values():
        if isinstance(value, dict):
            form.is_line(value)
            so_far = LogState()
            list(form.records(LogLine(cast("dict[str, Any]", value), "line 1", so_far, SkippedParts())))
            assert LogState.load(so_far.dump()).conversation == so_far.conversation


_KEYS = (
    *("role", "content", "name", "session", "said_at", "timestamp", "id", "sessions", "conversations", "sessionKey"),
    *("mapping", "message", "author", "parts", "parent", "children", "current_node", "create_time", "content_type"),
    *("chat_messages", "sender", "text", "attachments", "uuid", "type", "payload", "sessionId", "uuid", "parentUuid"),
    *("toolUseResult", "tool_use_id", "messages", "toolCalls", "result", "functionResponse", "output", "arguments"),
)

# --- logs of agents ---------------------------------------------------------------------------------


def _log(data: bytes) -> None:
    """Check that a log read in two pieces yields the same as read at once, wherever it is divided."""
    path = input_file("log.jsonl")
    path.write_bytes(data)
    whose = agent_of(path)
    for agent in AGENTS if whose is None else (whose,):
        whole = list(read_chunks(path, agent, None))
        path.write_bytes(data[: len(data) // 2])
        before = list(read_chunks(path, agent, None))
        known = _followed(before[-1]) if before else None
        path.write_bytes(data)
        after = list(read_chunks(path, agent, known))
        if known is not None and known.offset and not any(piece.bad for piece in (*whole, *before, *after)):
            assert _said(whole) == _said(before) + _said(after), "it matters when a log is read"


def _followed(piece: LogChunk) -> FollowedLog:
    return FollowedLog(
        client="claude-code",
        path="log.jsonl",
        session="s",
        offset=piece.offset,
        head=piece.head,
        tail=piece.tail,
        state=piece.state.dump(),
        at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def _said(read: Sequence[LogChunk]) -> list[str]:
    return [told.content for piece in read for told in piece.turns]


# --- settings of clients ----------------------------------------------------------------------------


def _json_settings(data: bytes) -> None:
    """Edit settings: the input is the text, a NUL, and the value of the new member."""
    head, _, more = data.partition(b"\0")
    text = text_of(head)
    dialects_of: Sequence[json_text.Dialect] = get_args(json_text.Dialect)
    for dialect in dialects_of:
        try:
            value = json_text.parse_json(text, dialect).value
        except json_text.BadJson:
            continue
        assert json_text.rewrite_json(text, value, dialect) == text, "nothing changes where nothing changes"
        if isinstance(value, dict):
            held = cast("dict[str, Any]", value)
            new: dict[str, Any] = {**held, "mcpServers": {"memory": {"command": text_of(more)[:80], "args": ["x", 1]}}}
            changed = json_text.rewrite_json(text, new, dialect)
            assert json_text.same_value(json_text.parse_json(changed, dialect).value, new)
            assert json_text.same_value(
                json_text.parse_json(json_text.rewrite_json(changed, value, dialect), dialect).value, held
            )
    try:
        json_text.read_json(text)
    except json_text.BadJson:
        pass


def _toml_settings(data: bytes) -> None:
    head, _, more = data.partition(b"\0")
    text = text_of(head)
    try:
        value = toml_text.read_toml(text)
    except toml_text.BadToml:
        return
    entry = {"command": text_of(more)[:80], "args": ["x", 1], "env": {"A b": "c"}}
    held = value.get("mcp_servers", {})
    if not isinstance(held, dict):
        return
    new: dict[str, Any] = {**value, "mcp_servers": {**held, "memory": entry}}
    _becomes(text, value)
    changed = _becomes(text, new)
    if changed is not None:
        _becomes(changed, value)


def _becomes(text: str, value: dict[str, Any]) -> str | None:
    try:
        changed = toml_text.rewrite_toml(text, value)
    except toml_text.BadToml:
        return None
    full = {key: held for key, held in value.items() if held != {}}
    read = {key: held for key, held in toml_text.read_toml(changed).items() if held != {}}
    assert json_text.same_value(read, full), "it reads as what was asked for"
    return changed


# --- messages ---------------------------------------------------------------------------------------


def _wire(data: bytes) -> None:
    whole = [*wire.Splitter(64).feed(data)]
    apart = wire.Splitter(64)
    one = [line for at in range(0, len(data), 7) for line in apart.feed(data[at : at + 7])]
    assert _bytes_of(whole) == _bytes_of(one)
    wire.id_in(data)
    try:
        message = wire.parse(data)
    except (wire.NotAMessage, wire.UnreadableLine):
        return
    if not isinstance(message, dict):
        return
    result: Any = message.get("result", message)
    if isinstance(result, dict):
        _result(cast("dict[str, Any]", result))
    try:
        wire.to_line(message)
    except (ValueError, RecursionError):
        return


def _bytes_of(parts: Sequence[bytes | wire.LinePart]) -> bytes:
    return b"".join(part.data if isinstance(part, wire.LinePart) else part + b"\n" for part in parts)


def _result(result: dict[str, Any]) -> None:
    if answer_editor.is_plain(result):
        found = answer_editor.texts_in(result, with_structured=True)
        answer_editor.replace_texts(result, dict.fromkeys(found, "note"))
        answer_editor.full_text(result)
    if isinstance(result.get("tools"), list):
        try:
            for tool in answer_editor.tools_of(result):
                answer_editor.shows_itself(tool)
            answer_editor.with_tools(result, [{"name": "ours"}])
        except RecursionError:
            return


def _hook(data: bytes) -> None:
    given: Any = object_in(data)
    for client in AGENTS:
        for name in ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostCompact", "Stop", "BeforeAgent"):
            event = events.parse_event(client, name, given)
            if event is None or event.call is None:
                continue
            call = event.call
            parts = tool_outputs.parts_of(client, call.tool, call.response)
            tool_outputs.full_output_path(call.tool, call.response)
            if parts:
                tool_outputs.replace_parts(call.response, {part.keys: "note" for part in parts})


_WIRE_KEYS = ("jsonrpc", "id", "method", "params", "result", "content", "type", "text", "structuredContent", "tools")
_HOOK_KEYS = (
    "session_id",
    "transcript_path",
    "tool_name",
    "tool_use_id",
    "tool_input",
    "tool_response",
    "prompt",
    "source",
)


TARGETS = (
    Target(name="import", run=_import, made=(lines(json_bytes(_KEYS)), st.builds(_packed, json_bytes(_KEYS)))),
    Target(name="format", run=_format, made=(json_bytes(_KEYS),)),
    Target(name="log", run=_log, made=(lines(json_bytes(_KEYS)),)),
    Target(name="json-settings", run=_json_settings, made=(json_bytes(("mcpServers", "memory", "args")),)),
    Target(name="toml-settings", run=_toml_settings),
    Target(name="wire", run=_wire, made=(json_bytes(_WIRE_KEYS),)),
    Target(name="hook", run=_hook, made=(json_bytes(_HOOK_KEYS),)),
)
