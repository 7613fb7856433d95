"""The answers of a hook whose daemon is not ready: from the store, by words alone.

A prompt gets what the user said about its words, a start the user's standing rules; both in the form of `answers`, and
without what the client's log shows already. Nothing is written. It loads no numpy, no model and no event loop.
"""

from __future__ import annotations

import json

from mcp_memory.core.config_file import read_config
from mcp_memory.integrations.hooks import NEEDED_TOKENS
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles
from mcp_memory.integrations.hooks.events import (
    PROMPT_CHARS,
    HookEvent,
    context_answer,
    parse_input,
    recording_notice,
)
from mcp_memory.integrations.hooks.transcripts import recalled_before
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.service.word_recall import recall_by_words, rules_by_words

_DEFAULT_SPACE = "default"


def own_answer(files: DaemonFiles, client: str, event: str, payload: bytes) -> bytes:
    """Return the answer to a prompt or a start, empty if there is nothing to say.

    Raises ValueError or RecursionError for bad input, and the errors of reading the settings and the store.
    """
    parsed = parse_input(client, event, payload)
    if parsed is None or not parsed.adds_context:
        return b""
    space = files.space or str(read_config(files.home).get("space") or _DEFAULT_SPACE)
    text = _start(files, space, parsed) if parsed.kind == "start" else _prompt(files, space, parsed)
    answer = context_answer(parsed, text) if text else None
    return json.dumps(answer).encode() if answer else b""


def _start(files: DaemonFiles, space: str, event: HookEvent) -> str:
    shown = "" if event.source in ("startup", "clear") else "\n".join(recalled_before(event.log))
    is_recorded = event.log is not None and files.folder.is_dir()  # otherwise this home cannot be written to
    parts = [recording_notice(event.session)] if is_recorded else []
    parts += filter(None, [rules_by_words(files.home, space, shown=shown)])
    return "\n\n".join(part for part in parts if part not in shown)


def _prompt(files: DaemonFiles, space: str, event: HookEvent) -> str:
    typed = typed_text(event.text).strip()[:PROMPT_CHARS]
    if not typed:
        return ""
    shown = "\n".join(recalled_before(event.log))
    return recall_by_words(files.home, space, typed, session=event.session, shown=shown, budget=NEEDED_TOKENS)
