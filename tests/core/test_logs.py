"""The log says what happened and nothing of what was said, whoever writes to it."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from mcp_memory.core.errors import InvalidInput, StoreUnavailable
from mcp_memory.core.logs import LogFormat, LogFormatter, SafeText, event
from tests.endpoint import completion, serving

MARK = "quetzalcoatlus"
SECRET = st.text(min_size=4).filter(lambda text: text.strip("…()") and text not in __doc__)


class Log:
    """A logger with our formatter, and what it wrote."""

    def __init__(self, *, form: LogFormat = "text", contents: bool = False) -> None:
        self.written = io.StringIO()
        handler = logging.StreamHandler(self.written)
        handler.setFormatter(LogFormatter(form=form, contents=contents))
        self.logger = logging.Logger("a.library", logging.DEBUG)
        self.logger.addHandler(handler)

    @property
    def lines(self) -> list[str]:
        return self.written.getvalue().splitlines()


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_constant_message_with_numbers_and_words_of_ours_is_shown(log: Log) -> None:
    log.logger.warning("%s took %d of %.1f s", SafeText("indexing"), 3, 2.5)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d [\d:]{8},\d{3} WARNING a\.library: indexing took 3 of 2\.5 s", log.lines[0])


@given(content=SECRET)
def test_no_text_is_shown_as_an_argument_or_a_message(content: str) -> None:
    log = Log()
    log.logger.error("It said %s and %r, %d times.", content, {"content": content}, content)
    log.logger.error(f"It said {content}.")
    log.logger.error("It said %(what)s.", {"what": content})
    shown = "".join(line.partition("a.library: ")[2] for line in log.lines)
    assert content not in shown.replace("It said %s and %r, %d times.", "").replace("It said", "")
    assert re.fullmatch(r"… \(test_logs\.py:\d+\)", log.lines[1].partition("a.library: ")[2])


def test_an_error_is_shown_by_its_type_and_where_it_was_raised(log: Log) -> None:
    try:
        raise InvalidInput(f"The query {MARK!r} is wrong.")
    except InvalidInput as error:
        log.logger.exception("a search failed: %s", error)
    assert log.lines[0].endswith("ERROR a.library: a search failed: InvalidInput")
    assert log.lines[1] == "  InvalidInput"
    assert re.fullmatch(
        r"    at \S*tests/core/test_logs\.py:\d+ test_an_error_is_shown_by_its_type_and_where_.*", log.lines[2]
    )
    assert MARK not in log.written.getvalue()


def test_errors_of_the_machine_are_shown_with_their_text_and_without_files(log: Log) -> None:
    log.logger.error("no: %s", StoreUnavailable("The home cannot be used."))
    log.logger.error("no: %s", PermissionError(13, "Permission denied", f"/home/bob/{MARK}"))
    assert [line.partition("a.library: ")[2] for line in log.lines] == [
        "no: StoreUnavailable: The home cannot be used.",
        "no: PermissionError: Permission denied",
    ]


def test_json_lines_are_objects_with_the_fields_of_an_event() -> None:
    log = Log(form="json")
    event(log.logger, "a tool was called", tool="recall", ms=12.5, error=None)
    try:
        raise ValueError(MARK)
    except ValueError:
        log.logger.exception("it failed")
    called, failed = map(json.loads, log.lines)
    assert {**called, "time": ""} == {
        "time": "", "level": "info", "logger": "a.library", "message": "a tool was called", "tool": "recall",
        "ms": 12.5,
    }  # fmt: skip
    assert (failed["error"], failed["message"]) == ("ValueError", "it failed")
    assert failed["trace"][-1].endswith("test_json_lines_are_objects_with_the_fields_of_an_event")
    assert MARK not in log.written.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_contents_are_shown_where_the_owner_wants_them(form: LogFormat) -> None:
    log = Log(form=form, contents=True)
    try:
        raise ValueError(MARK)
    except ValueError:
        log.logger.exception("It said %s.", MARK)
    assert f"It said {MARK}." in log.lines[0]
    assert f"ValueError: {MARK}" in log.written.getvalue()


# --- a real server ----------------------------------------------------------------------------------

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("record_turns", {"turns": [{"role": "user", "content": f"I keep a {MARK} in {MARK}."}], "session": MARK}),
    ("remember", {"text": f"The user keeps a {MARK}.", "entity": MARK, "relation": "keeps", "value": MARK}),
    ("offload_tool_result", {"tool_name": MARK, "result": f"{MARK} line of a log\n" * 400, "session": MARK}),
    ("conversation_search", {"query": f"where is the {MARK}?"}),
    ("memory_search", {"query": f"who keeps a {MARK}?"}),
    ("recall", {"query": f"tell me of the {MARK}", "session": MARK}),
    ("forget", {"query": f"the {MARK}"}),
]


def from_schema(schema: dict[str, Any]) -> Any:
    """A value of a schema, with the mark wherever a text may stand."""
    match schema:
        case {"enum": [first, *_]}:
            return first
        case {"type": "string"}:
            return MARK
        case {"type": "array", "items": items}:
            return [from_schema(items)]
        case {"type": "object", "properties": properties}:
            return {name: from_schema(field) for name, field in properties.items()}
        case {"type": "object"}:
            return {MARK: MARK}
        case {"type": "integer" | "number"}:
            return schema.get("minimum", 1)
        case {"type": "boolean"}:
            return True
        case _:
            return MARK


def texts_in(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for one in value.values():
                yield from texts_in(one)
        case list():
            for one in value:
                yield from texts_in(one)
        case _:
            pass


async def use_everything(client: Client) -> int:
    """Call every tool rightly and wrongly, and ask for every resource and prompt; return how many calls were right."""
    right = 0
    for name, arguments in CALLS:
        right += not (await client.call_tool(name, arguments)).is_error
    for tool in (await client.list_tools()).tools:
        for arguments in (from_schema(tool.input_schema), {MARK: MARK}):
            await client.call_tool(tool.name, arguments)
    for uri in (f"memory://session/{MARK}", f"memory://{MARK}", "memory://persona", "memory://status"):
        try:
            await client.read_resource(uri)
        except MCPError:
            pass
    for prompt in (await client.list_prompts()).prompts:
        try:
            await client.get_prompt(prompt.name, {one.name: MARK for one in prompt.arguments or []})
        except MCPError:
            pass
    try:
        await client.call_tool(MARK, {})
    except MCPError:
        pass
    return right


@pytest.mark.slow
async def test_no_word_of_the_user_is_in_the_log_of_a_server_at_level_debug(tmp_path: Path) -> None:
    with serving(saying=f"overloaded by {MARK}") as endpoint:
        endpoint.script += [(401, {}), completion(f"no order, but a {MARK}"), *[(401, {})] * 200]
        environment = {
            **os.environ, "MCP_MEMORY_HOME": str(tmp_path / "home"), "MCP_MEMORY_LOG_LEVEL": "debug",
            "MCP_MEMORY_LOG_FORMAT": "json", "MCP_MEMORY_EMBEDDER": "openai/e", "MCP_MEMORY_LLM": "openai/m",
            "MCP_MEMORY_EMBEDDER_BASE_URL": endpoint.url, "MCP_MEMORY_EMBEDDER_API_KEY": MARK,
            "MCP_MEMORY_LLM_BASE_URL": endpoint.url, "MCP_MEMORY_LLM_API_KEY": MARK, "MCP_MEMORY_RERANK": "1",
        }  # fmt: skip
        server = StdioServerParameters(command=sys.executable, args=["-m", "mcp_memory", "serve"], env=environment)
        path = tmp_path / "log"
        with path.open("w") as written, anyio.fail_after(60):
            async with Client(stdio_client(server, errlog=written)) as client:
                assert await use_everything(client) == len(CALLS)
        text = path.read_text()
        assert MARK not in text.lower()
        assert len(text.splitlines()) > 50
        calls = [json.loads(line) for line in text.splitlines() if '"a tool was called"' in line]
        assert {one["tool"] for one in calls} >= {name for name, _ in CALLS}
        assert all(one["ms"] >= 0 for one in calls)
        assert {one.get("error") for one in calls} >= {None, "InvalidInput"}
        assert endpoint.asked  # a model and an embedder took part
        assert {json.loads(line)["logger"].partition(".")[0] for line in text.splitlines()} >= {"mcp", "asyncio"}


def test_a_key_in_the_reason_why_the_store_cannot_be_used_is_masked(log: Log) -> None:
    key = "AKIA" + "Q7RZ5MDW3KXN8PLT"
    log.logger.error("no: %s", StoreUnavailable(f"The home cannot be used: near {key}: syntax error"))
    assert key not in log.lines[0]
    assert "syntax error" in log.lines[0]
