"""stdio, HTTP and SSE as real processes, and what guards the last two."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp.types import JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter

from mcp_memory.core.config import load_settings
from mcp_memory.core.errors import Refused
from mcp_memory.server.authentication import make_local_token, read_local_token
from mcp_memory.server.mcp_server import MemoryServer
from mcp_memory.server.transports import MAX_BODY, http_app, serve
from mcp_memory.service.jsonrpc import repair_message
from tests.server.answers import HEADERS, INITIALIZE, WAIT, answer_of
from tests.server.served import bearer

TURNS = [{"role": "user", "content": "The ferry leaves at nine."}]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mcp_memory", "serve", *arguments]


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "MCP_MEMORY_HOME": str(home), "MCP_MEMORY_EMBEDDER": "none"}


async def use(client: Client) -> None:
    """Do through a connection what every connection must be able to do."""
    with anyio.fail_after(WAIT):
        answer_of(await client.call_tool("record_turns", {"turns": TURNS, "session": "trip"}))
        found = answer_of(await client.call_tool("conversation_search", {"query": "ferry"}))
        assert [turn["content"] for passage in found["passages"] for turn in passage["turns"]] == [TURNS[0]["content"]]
        assert "ferry" in (await client.read_resource("memory://session/trip")).contents[0].text


# --- stdio ------------------------------------------------------------------------------------------


async def test_stdio_serves_both_generations(tmp_path: Path, era: Any) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "mcp_memory", "serve"], env=environment(tmp_path / "home")
    )
    with anyio.fail_after(WAIT):
        async with Client(parameters, mode=era) as client:
            await use(client)


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(tmp_path / "home"),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[str], line: str) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def call(id_: int, tool: str, arguments: dict[str, Any]) -> str:
    """Return the line of a tool call, lone surrogates escaped as JavaScript escapes them."""
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params})


@pytest.mark.slow
def test_stdio_answers_malformed_and_huge_lines_and_goes_on(piped: subprocess.Popen[str]) -> None:
    assert ask(piped, json.dumps(INITIALIZE))["result"]["serverInfo"]["name"] == "mcp-memory"
    assert ask(piped, '{"jsonrpc": "2.0", "id": 2,')["error"]["code"] == -32700
    assert ask(piped, '{"jsonrpc": "2.0", "id": 3, "method": 7}') == {
        "jsonrpc": "2.0",
        "id": 3,
        "error": {"code": -32600, "message": "The line is not a JSON-RPC message."},
    }
    answer = ask(piped, call(4, "offload_tool_result", {"tool_name": "cat", "result": "half an emoji: \ud83d"}))
    assert answer["id"] == 4
    assert "isError" not in answer["result"] or not answer["result"]["isError"]
    answer = ask(piped, call(5, "remember", {"text": "half an emoji: \ud83d"}))
    assert (answer["id"], answer["result"]["isError"]) == (5, True)

    turns = [{"role": "user", "content": "0123456789abcdef\n" * (50_000_000 // 17)}]
    answer = ask(piped, call(6, "record_turns", {"turns": turns}))
    assert answer["result"]["isError"]
    assert len(answer["result"]["content"][0]["text"]) < 300
    assert not ask(piped, call(7, "remember", {"text": "still here"}))["result"].get("isError")


def test_stdio_answers_a_request_whose_id_is_none_and_no_notification(piped: subprocess.Popen[str]) -> None:
    ask(piped, json.dumps(INITIALIZE))
    for id_ in ("{}", "[]", "true", "null", "1.5"):
        assert ask(piped, f'{{"jsonrpc": "2.0", "id": {id_}, "method": "tools/list", "params": {{}}}}') == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32600, "message": "The id of a request must be a string or an integer."},
        }
    assert piped.stdin is not None
    for method in ("notifications/initialized", "notifications/of/tomorrow"):
        piped.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method}) + "\n")
    assert ask(piped, json.dumps({"jsonrpc": "2.0", "id": 9, "method": "ping"}))["id"] == 9


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM on Windows")
def test_stdio_ends_on_a_signal_though_its_input_stays_open(piped: subprocess.Popen[str]) -> None:
    ask(piped, json.dumps(INITIALIZE))
    ask(piped, call(2, "remember", {"text": "kept"}))
    piped.terminate()
    assert piped.wait(WAIT) == 0
    assert piped.stderr is not None
    assert piped.stderr.read() == ""


@pytest.mark.slow
def test_stdio_ends_with_its_input(piped: subprocess.Popen[str]) -> None:
    ask(piped, json.dumps(INITIALIZE))
    ask(piped, call(2, "remember", {"text": "kept"}))
    output, log = piped.communicate(timeout=WAIT)
    assert (output, log, piped.returncode) == ("", "", 0)


CLIENT = """
import os, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
# A process that inherits both ends of the pipes, and lives until the test closes its input.
os.set_inheritable(server.stdin.fileno(), True)
os.set_inheritable(server.stdout.fileno(), True)
other = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], close_fds=False)
server.stdin.write(os.environ["INITIALIZE"].encode() + b"\\n")
server.stdin.flush()
server.stdout.readline()
print(server.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes are inherited otherwise on Windows")
def test_stdio_ends_with_its_client_though_another_process_holds_the_pipe_open(tmp_path: Path) -> None:
    set_up = {**environment(tmp_path / "home"), "INITIALIZE": json.dumps(INITIALIZE)}
    log = tmp_path / "log"
    with log.open("wb") as stderr, subprocess.Popen(
        [sys.executable, "-c", CLIENT, *command()], env=set_up, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=stderr, text=True,
    ) as client:  # fmt: skip
        assert client.stdout is not None
        server = int(client.stdout.readline())
        assert client.wait(WAIT) == -9
        until = time.monotonic() + WAIT
        while _is_running(server) and time.monotonic() < until:
            threading.Event().wait(0.05)
        is_left = _is_running(server)
        if is_left:
            os.kill(server, 9)
    assert not is_left
    assert log.read_text() == ""


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
        # One that has ended, and whose new parent has not asked for its result, still has its number.
        return not Path(f"/proc/{process}/stat").exists() or ") Z " not in Path(f"/proc/{process}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.slow
def test_a_server_warns_of_a_variable_that_sets_nothing_and_serves(tmp_path: Path) -> None:
    done = subprocess.run(
        command(),
        input=json.dumps(INITIALIZE) + "\n",
        env={**environment(tmp_path / "home"), "MCP_MEMORY_HOEM": "/elsewhere"},
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=True,
    )
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "mcp-memory"
    assert "MCP_MEMORY_HOEM is not a setting and has no effect. Did you mean MCP_MEMORY_HOME?" in done.stderr


def test_nothing_heavy_is_loaded_when_initialize_is_answered(tmp_path: Path) -> None:
    code = (
        "import sys, threading\n"
        "from mcp_memory.core.config import load_settings\n"
        "from mcp_memory.server import mcp_server, transports\n"
        "mcp_server.MemoryServer(load_settings({}, home=sys.argv[1]))\n"
        "print(*sorted(n for n in sys.modules if n in sys.argv[2:]))\n"
    )
    heavy = ["numpy", "litellm", "tiktoken", "model2vec", "apsw", "Stemmer", "openai"]
    heavy += [f"mcp_memory.{name}" for name in ("core.types", "core.secrets.masking", "server.tools", "service.render")]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "home"), *heavy], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
    assert not (tmp_path / "home").exists()


def test_what_the_parser_refuses_is_understood_at_a_second_look_or_answered() -> None:
    def refused(line: str) -> Exception:
        with pytest.raises(ValueError) as caught:
            jsonrpc_message_adapter.validate_json(line, by_name=False)
        return caught.value

    given = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"a":"\\ud83d"}}}'
    understood = repair_message(refused(given)).message
    called = {"name": "x", "arguments": {"a": "\ud83d"}}
    assert understood == JSONRPCRequest(jsonrpc="2.0", id=7, method="tools/call", params=called)
    # What an answer would repeat, as it does an unknown method or address, has to be text.
    mended = repair_message(refused('{"jsonrpc":"2.0","id":7,"method":"x\\ud83d","params":{"uri":"\\ud83d"}}')).message
    assert mended == JSONRPCRequest(jsonrpc="2.0", id=7, method="x\ufffd", params={"uri": "\ufffd"})
    answers = [repair_message(refused(line)).message for line in ("[" * 5000, "[]", '{"id": {}}', "")]
    assert all(isinstance(answer, JSONRPCError) for answer in answers)
    assert [answer.error.code for answer in answers] == [-32700, -32600, -32600, -32700]


@pytest.mark.parametrize("depth", [300, 950, 5_000])
@pytest.mark.parametrize("member", ["arguments", "_meta"])
def test_a_request_nested_too_deep_to_be_parsed_is_answered_under_its_id(depth: int, member: str) -> None:
    deep = "[" * depth + "]" * depth
    line = f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"x","{member}":{{"a":{deep}}}}}}}'
    with pytest.raises(ValueError) as caught:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    message = repair_message(caught.value).message
    assert isinstance(message, JSONRPCRequest | JSONRPCError)
    assert message.id == 7


# --- HTTP and SSE -----------------------------------------------------------------------------------


@asynccontextmanager
async def listening(home: Path, transport: str, **extra: str) -> AsyncIterator[tuple[str, int]]:
    """Run the command, by default without a token, and yield the address that it names, and its process id."""
    open_to_all = () if "MCP_MEMORY_TOKEN" in extra else ("--no-token",)
    process = await anyio.open_process(
        command("--transport", transport, "--port", "0", *open_to_all), env={**environment(home), **extra}, stdout=None
    )
    async with process:
        try:
            assert process.stderr is not None
            log = b""
            with anyio.fail_after(WAIT):
                while not (named := re.search(rb"listens on (\S+)\n", log)):
                    log += await process.stderr.receive()
            yield named[1].decode(), process.pid
            process.terminate()
            with anyio.fail_after(WAIT):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()


@pytest.mark.slow
async def test_http_serves_both_generations_to_who_has_the_token_and_ends_while_they_are_connected(
    tmp_path: Path,
) -> None:
    async with (
        listening(tmp_path / "home", "http", MCP_MEMORY_TOKEN="s3cret") as (url, pid),
        bearer("s3cret") as http,
        Client(streamable_http_client(url, http_client=http)) as modern,
        Client(streamable_http_client(url, http_client=http), mode="legacy") as legacy,
    ):
        await use(modern)
        await use(legacy)
        with anyio.fail_after(WAIT):
            async with modern.listen(resource_subscriptions=["memory://persona"]) as updates:
                said = {"turns": [{"role": "user", "content": "Boats are best."}]}
                answer_of(await legacy.call_tool("record_turns", said))
                answer_of(await legacy.call_tool("remember", {"text": "Boats are best."}))
                assert await anext(updates) == ResourceUpdated(uri="memory://persona")
        os.kill(pid, signal.SIGINT)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_clients_of_one_server_that_name_no_session_do_not_draw_on_one_canvas(
    tmp_path: Path, transport: str
) -> None:
    async with listening(tmp_path / "home", transport) as (url, _pid):
        connect = streamable_http_client if transport == "http" else sse_client
        async with Client(connect(url), mode="legacy") as one, Client(connect(url), mode="legacy") as other:
            call = {"tool_name": "bash", "result": "42 passed\n" * 200}
            made = [
                (await client.call_tool("offload_tool_result", call)).structured_content for client in (one, other, one)
            ]
    first, second, third = [found for found in made if found]
    assert first["session"] == third["session"] != second["session"]
    assert first["canvas"] == third["canvas"] != second["canvas"]


@pytest.mark.slow
async def test_sse_serves_both_generations_at_once(tmp_path: Path) -> None:
    async with (
        listening(tmp_path / "home", "sse") as (url, _pid),
        Client(sse_client(url)) as modern,
        Client(sse_client(url), mode="legacy") as legacy,
    ):
        await use(modern)
        await use(legacy)


async def started(home: Path, transport: str) -> tuple[str, int, int]:
    """Run the command, and return what it prints at its start, and the answers to requests without and with the token
    that its home has then."""
    async with await anyio.open_process(
        command("--transport", transport, "--port", "0"), env=environment(home), stdout=None
    ) as process:
        try:
            assert process.stderr is not None
            log = b""
            with anyio.fail_after(WAIT):
                while not (named := re.search(rb"listens on (\S+)\n(?:Clients must.+\n.+|Clients show.+)\n", log)):
                    log += await process.stderr.receive()
            token = (await anyio.Path(home / "http-token").read_text()).strip()
            url, statuses = named[1].decode(), list[int]()
            for headers in (HEADERS, {**HEADERS, "Authorization": f"Bearer {token}"}):
                async with httpx2.AsyncClient() as client, client.stream("GET", url, headers=headers) as response:
                    statuses.append(response.status_code)
            process.terminate()
            with anyio.fail_after(WAIT):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
    return log.decode(), statuses[0], statuses[1]


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_the_first_start_makes_a_token_and_prints_it_once(tmp_path: Path, transport: str) -> None:
    home = tmp_path / "home"
    log, without, with_token = await started(home, transport)
    token = (home / "http-token").read_text().strip()
    assert f"Authorization: Bearer {token}\n" in log
    assert (without, with_token == 401) == (401, False)
    assert (home / "http-token").stat().st_mode & 0o777 == 0o600
    log, without, with_token = await started(home, transport)
    assert token not in log
    assert (without, with_token == 401) == (401, False)
    assert (home / "http-token").read_text().strip() == token


def test_no_token_is_refused_where_clients_must_show_one(tmp_path: Path) -> None:
    settings = load_settings({}, home=tmp_path / "home")
    with pytest.raises(Refused, match=r"--no-token cannot be used: 0\.0\.0\.0 can be reached"):
        serve(settings, "http", "0.0.0.0", 0, needs_token=False)
    with pytest.raises(Refused, match="--no-token cannot be used: this memory has tokens"):
        serve(settings.model_copy(update={"token": "s3cret"}), "http", "127.0.0.1", 0, needs_token=False)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("damage", [b"", b"\x00\xff" * 30, b"mcm_local_short", b"x" * 5_000])
def test_a_damaged_token_is_refused_with_the_next_step(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "http-token").write_bytes(damage)
    with pytest.raises(Refused, match=r"http-token .+ Remove it"):
        serve(load_settings({}, home=tmp_path), "http", "127.0.0.1", 0)
    (tmp_path / "http-token").unlink()
    (tmp_path / "http-token").mkdir()
    with pytest.raises(Refused, match=r"http-token .+ Remove it"):
        read_local_token(tmp_path)


def test_servers_that_start_together_have_one_token(tmp_path: Path) -> None:
    tokens = [make_local_token(tmp_path) for _ in range(3)]
    assert {*tokens, read_local_token(tmp_path)} == {tokens[0]}
    assert [path.name for path in tmp_path.iterdir()] == ["http-token"]


@asynccontextmanager
async def in_process(home: Path, *, transport: str, host: str, token: str | None) -> AsyncIterator[httpx2.AsyncClient]:
    settings = load_settings({}, home=home, embedder="none", token=token)
    make = partial(http_app, MemoryServer(settings), settings, transport=transport, host=host)
    app = await anyio.to_thread.run_sync(make)  # it imports the pages, which `serve` does before a loop runs
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1:8765") as client:
        yield client


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages/", "/", "/nowhere"])
async def test_every_route_asks_for_the_token(tmp_path: Path, transport: str, path: str) -> None:
    async with in_process(tmp_path, transport=transport, host="0.0.0.0", token="s3cret") as client:
        for given in (b"", b"Bearer s3cre", b"Basic s3cret", b"Bearer s3cr\xe9t", b"s3cret"):
            response = await client.post(path, json=INITIALIZE, headers={b"Authorization": given})
            assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, 'Bearer realm="mcp-memory"')


async def test_a_body_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async with in_process(tmp_path, transport="sse", host="127.0.0.1", token=None) as client:
        response = await client.post("/messages/", content=b"", headers={"Content-Length": str(MAX_BODY + 1)})
        assert (response.status_code, response.text) == (413, "Request body too large")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "memory.example"])
def test_without_a_token_nothing_listens_beyond_this_machine(tmp_path: Path, host: str) -> None:
    with pytest.raises(Refused, match="MCP_MEMORY_TOKEN"):
        serve(load_settings({}, home=tmp_path / "home"), "http", host, 0)
    assert not (tmp_path / "home").exists()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Refused, match=f"port {port}"):
            serve(load_settings({}, home=tmp_path / "home"), "http", "127.0.0.1", port)
