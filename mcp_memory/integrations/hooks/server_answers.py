"""The answer of a hook whose daemon is not ready, where the memory is on a server: one request, within the hook's time.

The request runs in a thread that is left behind at the deadline: not even finding the server's name may keep the user
waiting. What leaves this machine has no secrets and no private passages.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from mcp_memory.core.config_file import read_config
from mcp_memory.core.errors import InvalidInput, McpMemoryError, ServerAway
from mcp_memory.core.projects import project_of
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.server_address import access_of
from mcp_memory.integrations.hooks import NEEDED_TOKENS
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles
from mcp_memory.integrations.hooks.events import MAX_CHARS, PROMPT_CHARS, context_answer, parse_input
from mcp_memory.integrations.hooks.transcripts import recalled_before
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.service.remote.connection import ServerConnection

_LEAST_S = 0.1
"""Seconds below which it is not worth asking."""


def server_answer(files: DaemonFiles, client: str, event: str, payload: bytes, deadline: float) -> bytes:
    """Return the answer to a prompt before the `deadline` of the monotonic clock, empty if there is nothing to say.

    Raises ValueError or RecursionError for bad input, and the errors of the settings and of `ServerConnection.call`.
    """
    parsed = parse_input(client, event, payload)
    if parsed is None or not parsed.adds_context:
        return b""
    typed = typed_text(parsed.text).strip()[:PROMPT_CHARS]
    if not typed:
        return b""
    access = access_of(files.home, read_config(files.home), space=files.space)
    if access is None:
        raise InvalidInput("No server is set.")
    connection = ServerConnection(access)
    arguments = {
        "query": mask(typed),
        "known": "\n".join(recalled_before(parsed.log)),
        "session": parsed.session,
        "project": project_of(Path(parsed.folder)) if parsed.folder else None,
        "budget_tokens": NEEDED_TOKENS,
    }
    bundle = _ask(connection, arguments, deadline - time.monotonic())
    text = str(bundle["dynamic"])
    answer = context_answer(parsed, text) if text and len(text) <= MAX_CHARS else None
    return json.dumps(answer).encode() if answer else b""


def _ask(connection: ServerConnection, arguments: dict[str, Any], seconds: float) -> Any:
    """Return the answer of `recall_beyond`, at most after so many seconds. Raises the errors of the call."""
    answers: list[Any] = []

    def ask() -> None:
        try:
            answers.append(connection.call("recall_beyond", arguments, timeout=seconds))
        except (McpMemoryError, ValueError) as error:
            answers.append(error)

    if seconds > _LEAST_S:
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(seconds)
    if not answers:
        text = f"The server {connection.access.address.url} did not answer in time."
        raise ServerAway(text, "the server did not answer in time")
    if isinstance(answers[0], Exception):
        raise answers[0]
    return answers[0]
