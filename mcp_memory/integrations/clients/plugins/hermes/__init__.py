"""The plugin of Hermes: starts `mcp-memory hook EVENT --client hermes` at the events of a conversation.

Its answer goes to the model. If anything fails, the plugin adds nothing and the turn continues. It leaves the place of
the one memory provider free.
"""

from __future__ import annotations

import json
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any, cast

COMMAND = ["mcp-memory"]  # `mcp-memory install hermes` writes the command of this machine here

_TIMEOUT_S = 12  # the hook ends earlier
_MAX_MESSAGES = 1_000  # of a session; earlier ones were sent with earlier turns
_SMALLEST = 1_000  # characters of a result that may be worth replacing
_OF_A_PROGRAM = ("subagent", "cron")

_opened: dict[str, bool] = {}
"""The sessions in which a person takes part, and whether the model was told the text of their start."""


def register(ctx: Any) -> None:
    ctx.register_hook("pre_llm_call", _recall)
    ctx.register_hook("transform_tool_result", _replace_result)
    ctx.register_hook("on_session_end", _record)
    ctx.register_hook("on_session_finalize", _end)


def _ask(event: str, **payload: Any) -> dict[str, Any]:
    """Run the hook and return its answer; empty without one."""
    try:
        done = subprocess.run(
            [*COMMAND, "hook", event, "--client", "hermes"],
            input=json.dumps({"cwd": str(Path.cwd()), **payload}, default=str).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
        return json.loads(done.stdout or b"{}")
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}


def _recall(
    session_id: str = "", user_message: Any = "", is_first_turn: bool = False, platform: str = "", **_: Any
) -> dict[str, str] | None:
    """Return what the model should know before it reads the prompt: it stays with the prompt in the session."""
    if not session_id or platform in _OF_A_PROGRAM or not isinstance(user_message, str):
        return None
    answers: list[dict[str, Any]] = []
    if not _opened.get(session_id):
        source = "startup" if is_first_turn else "resume"
        answers.append(_ask("on_session_start", session_id=session_id, source=source))
        _opened[session_id] = not is_first_turn or "context" in answers[0]
    answers.append(_ask("pre_llm_call", session_id=session_id, prompt=user_message))
    text = "\n\n".join(answer["context"] for answer in answers if answer.get("context"))
    return {"context": text} if text else None


def _replace_result(
    tool_name: str = "",
    args: Any = None,
    result: Any = None,
    session_id: str = "",
    tool_call_id: str = "",
    status: str = "ok",
    **_: Any,
) -> str | None:
    if session_id not in _opened or status != "ok" or not isinstance(result, str) or len(result) < _SMALLEST:
        return None
    answer = _ask(
        "transform_tool_result",
        session_id=session_id,
        tool_name=tool_name,
        tool_input=args,
        tool_use_id=tool_call_id,
        tool_response=_parsed(result),
    )
    response = answer.get("result")
    return response if response is None or isinstance(response, str) else json.dumps(response, ensure_ascii=False)


def _parsed(result: str) -> Any:
    """Return the object that a result is, as those of most tools of Hermes; other texts stay."""
    try:
        value = json.loads(result)
    except ValueError:
        return result
    return cast("dict[str, Any]", value) if isinstance(value, dict) else result


def _record(session_id: str = "", platform: str = "", **_: Any) -> None:
    """Hand over the session after each turn, when Hermes has stored it."""
    if session_id in _opened:
        _ask("on_session_end", session_id=session_id, conversation=_stored_session(session_id, platform))


def _stored_session(session_id: str, platform: str) -> dict[str, Any]:
    database: Any = import_module("hermes_state").SessionDB(read_only=True)
    try:
        session: dict[str, Any] = database.get_session(session_id) or {}
        parent = session.get("parent_session_id")
        return {
            "id": session_id,
            "title": session.get("title"),
            "began": session.get("started_at"),
            "by_program": platform in _OF_A_PROGRAM,
            "messages": database.get_messages(session_id, include_inactive=True)[-_MAX_MESSAGES:],
            "before": database.get_messages(parent, include_inactive=True)[-_MAX_MESSAGES:] if parent else [],
        }
    finally:
        database.close()


def _end(session_id: str | None = None, **_: Any) -> None:
    if session_id is not None and session_id in _opened:
        del _opened[session_id]
        _ask("on_session_finalize", session_id=session_id)
