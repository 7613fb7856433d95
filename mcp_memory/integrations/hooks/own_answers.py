"""The answers of a hook whose daemon is not ready: from the store, by words alone.

A prompt gets what the user said about its words, a start the user's standing rules; both in the form of `answers`,
without what the client's log shows already, and from the personal memory too. Nothing is written. It loads no numpy, no
model and no event loop.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial

from mcp_memory.core.config_file import read_config
from mcp_memory.core.personal_ids import mark_block, marked_ids
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
    config = read_config(files.home)
    space = files.space or str(config.get("space") or _DEFAULT_SPACE)
    personal = os.environ.get("MCP_MEMORY_PERSONAL_SPACE") or str(config.get("personal_space") or "none")
    others = [] if personal in ("none", space) else [personal]
    text = _start(files, space, others, parsed) if parsed.kind == "start" else _prompt(files, space, others, parsed)
    answer = context_answer(parsed, text) if text else None
    return json.dumps(answer).encode() if answer else b""


def _start(files: DaemonFiles, space: str, others: Sequence[str], event: HookEvent) -> str:
    shown = "" if event.source in ("startup", "clear") else "\n".join(recalled_before(event.log))
    is_recorded = event.log is not None and files.folder.is_dir()  # otherwise this home cannot be written to
    parts = [recording_notice(event.session)] if is_recorded else []
    parts.append(rules_by_words(files.home, space, shown=shown))
    parts += [mark_block(rules_by_words(files.home, other, shown=_shown_of_personal(shown))) for other in others]
    return "\n\n".join(part for part in parts if part and part not in shown)


def _prompt(files: DaemonFiles, space: str, others: Sequence[str], event: HookEvent) -> str:
    typed = typed_text(event.text).strip()[:PROMPT_CHARS]
    if not typed:
        return ""
    shown = "\n".join(recalled_before(event.log))
    recall = partial(recall_by_words, files.home, question=typed, session=event.session)
    blocks = [recall(space, shown=shown, budget=NEEDED_TOKENS // 2 if others else NEEDED_TOKENS)]
    budget = NEEDED_TOKENS // 3  # the marks need the rest
    blocks += [mark_block(recall(other, shown=_shown_of_personal(shown), budget=budget)) for other in others]
    return "\n".join(filter(None, blocks))


def _shown_of_personal(shown: str) -> str:
    return "".join(f"[{id}]" for id in marked_ids(shown))
