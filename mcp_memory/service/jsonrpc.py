"""Repairs JSON-RPC messages that the SDK's parser rejects, or answers them with an error.

The parser rejects half a surrogate pair, which JavaScript writes when it cuts a text inside an emoji.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mcp.types as wire
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from mcp_memory.core.message_ids import id_of_unparsed
from mcp_memory.core.text import well_formed

if TYPE_CHECKING:
    from pydantic import JsonValue


_TOO_DEEP = "The message is nested too deep. Send deeply nested data as a text."


def repair_message(error: Exception) -> SessionMessage:
    """Return the repaired message, or the error to answer with."""
    try:
        value = _refused_json(error)
    except RecursionError:
        return error_reply(_id_of_unparsed(error), wire.PARSE_ERROR, _TOO_DEEP)
    except ValueError:
        return error_reply(None, wire.PARSE_ERROR, "The line is not valid JSON.")
    id_ = _id_of(value)
    try:
        if id_ is not None or not (isinstance(value, dict) and "id" in value):
            return SessionMessage(wire.jsonrpc_message_adapter.validate_python(_repair_values(value), by_name=False))
    except ValidationError:
        pass
    except RecursionError:
        return error_reply(id_, wire.INVALID_REQUEST, _TOO_DEEP)
    return error_reply(id_, wire.INVALID_REQUEST, "The line is not a JSON-RPC message.")


def _repair_values(message: Any) -> Any:
    """Return a message without lone surrogates, except in the arguments of a tool."""
    match message:
        case {"method": "tools/call", "params": {"arguments": arguments, **params}, **rest}:
            mended = sendable(params)
            return {**sendable(rest), "method": "tools/call", "params": {**mended, "arguments": arguments}}
        case _:
            return sendable(message)


def _id_of(message: object) -> str | int | None:
    """Return the id of a message if an answer can carry it."""
    match message:
        case {"id": bool()}:
            return None
        case {"id": int(id_)} if abs(id_) < 2**63:
            return id_
        case {"id": str(id_)} if well_formed(id_):
            return id_
        case _:
            return None


def _id_of_unparsed(error: Exception) -> str | int | None:
    """Return the id of a message that neither the SDK's parser nor `json` can read, None if it is not found."""
    line = error.errors()[0]["input"] if isinstance(error, ValidationError) else b""
    return _id_of({"id": id_of_unparsed(line if isinstance(line, bytes) else str(line).encode(errors="replace"))})


def _refused_json(error: Exception) -> object:
    if not isinstance(error, ValidationError):
        raise ValueError(error)
    problems = error.errors()
    if problems[0]["type"] == "json_invalid":
        return json.loads(problems[0]["input"])
    # A union reports the missing field of each member: the input of this problem is the message itself.
    return next((problem["input"] for problem in problems if problem["type"] == "missing"), None)


def error_reply(id_: str | int | None, code: int, message: str) -> SessionMessage:
    return SessionMessage(wire.JSONRPCError(jsonrpc="2.0", id=id_, error=wire.ErrorData(code=code, message=message)))


def sendable(value: JsonValue) -> Any:
    """Return the JSON value with every lone surrogate as U+FFFD, since no transport can carry it."""
    match value:
        case str():
            return value if well_formed(value) else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [sendable(item) for item in value]
        case dict():
            return {key: sendable(item) for key, item in value.items()}
        case _:
            return value
