"""The relay between a client and a server that both stand here, over a real memory: what passes, and what is edited."""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.core.token_counts import token_counter
from mcp_memory.integrations.proxy import kept_results
from mcp_memory.integrations.proxy import stdio as wire
from mcp_memory.integrations.proxy.answer_editor import Editor
from mcp_memory.integrations.proxy.kept_results import ResultKeeper
from mcp_memory.integrations.proxy.relay import Relay
from mcp_memory.integrations.proxy.stdio import LinePart
from mcp_memory.integrations.shown_results import shown_of
from mcp_memory.service.memory import open_memory

WAIT = 20
LONG = "\n".join(f"{n} GET /item/{n} {200 if n % 7 else 500}" for n in range(400))
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}

Answer = Callable[[dict[str, Any]], Iterable[bytes | LinePart]]


class Here:
    """Both ends: `say` what the client says, `hear` what it is told. `answer` is the server."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._to_server, self._from_client = anyio.create_memory_object_stream[bytes](100)
        self._to_client, self._told = anyio.create_memory_object_stream[bytes](100)
        self._spoken, self._lines = anyio.create_memory_object_stream[bytes | LinePart](100)
        self.asked: list[bytes] = []
        self.name = "the server"

    # the client's end
    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._from_client:
            yield chunk

    async def send(self, line: bytes) -> None:
        await self._to_client.send(line)

    async def hold(self) -> None: ...

    async def send_piece(self, data: bytes) -> None:
        await self._to_client.send(data)

    def release(self) -> None: ...

    # what a test does with it
    async def say(self, method: str, params: Any = None, id: Any = 1) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}} | ({} if id is None else {"id": id})
        await self._to_server.send(json.dumps(message).encode() + b"\n")

    async def say_raw(self, data: bytes) -> None:
        await self._to_server.send(data)

    async def hear_raw(self) -> bytes:
        with anyio.fail_after(WAIT):
            return await self._told.receive()

    async def hear(self) -> Any:
        return json.loads(await self.hear_raw())

    async def ask(self, method: str, params: Any = None, id: Any = 1) -> Any:
        await self.say(method, params, id)
        return (await self.hear())["result"]

    async def call(self, name: str, **arguments: Any) -> Any:
        return await self.ask("tools/call", {"name": name, "arguments": arguments})

    def hang_up(self) -> None:
        self._to_server.close()

    def end(self) -> None:
        self._spoken.close()

    def close(self) -> None:
        for stream in (self._to_server, self._from_client, self._to_client, self._told, self._spoken, self._lines):
            stream.close()


class ServerEnd:
    """The server's end of a `Here`."""

    def __init__(self, here: Here) -> None:
        self._here = here
        self.name = here.name

    async def lines(self) -> AsyncIterator[bytes | LinePart]:
        async for line in self._here._lines:
            yield line

    async def send(self, line: bytes) -> None:
        self._here.asked.append(line)
        try:
            message = json.loads(line)
        except ValueError:
            return
        for answer in self._here._answer(message):
            await self._here._spoken.send(answer)

    def close_input(self) -> None:
        self._here.end()

    async def wait(self) -> int:
        return 3


def tools(*listed: Any, **page: Any) -> Any:
    return {"tools": [{"name": tool} if isinstance(tool, str) else tool for tool in listed], **page}


def replies(**results: Any) -> Answer:
    """Answer each method with its result; `tools/call` is `call`, `tools/list` is `list`."""

    def answer(message: dict[str, Any]) -> Iterable[bytes]:
        result = results.get(message.get("method", "").rpartition("/")[2])
        if result is not None:
            yield json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()

    return answer


def named_in(result: Any) -> tuple[str, str]:
    """The node and the ref that a note names."""
    text = result["content"][0]["text"]
    assert len(text) < len(LONG) // 2
    return re.findall(r"\b\d{3}-N\d+", text)[0], re.findall("r-[0-9a-f]{12}", text)[0]


@pytest.fixture
def settings(home: Path) -> Settings:
    return load_settings({}, home=home, embedder="none")


@asynccontextmanager
async def relayed(settings: Settings, answer: Answer, **options: Any) -> AsyncIterator[Here]:
    here = Here(answer)
    try:
        async with anyio.create_task_group() as tasks:
            keeping = ResultKeeper(lambda: settings, over=500, session=options.pop("session", None), folder="/work")
            async with keeping.hold_open():
                editor = Editor(keeping, **{"offers_tool": True, **options})
                tasks.start_soon(Relay(here, ServerEnd(here), editor).run)
                yield here
            here.hang_up()
    finally:
        here.close()


# --- what passes ------------------------------------------------------------------------------------

ODD = [
    b'{ "jsonrpc" : "2.0",  "method": "notifications/of/tomorrow", "params": {"n": 1.0e+02, "\\u0061": "\\ud83d"}}',
    b'{"jsonrpc":"2.0","id":77,"method":"sampling/createMessage","params":{}}',
    b'{"jsonrpc":"2.0","id":999,"result":{"content":[{"type":"text","text":"nobody asked"}]}}',
    b'[{"jsonrpc":"2.0","method":"notifications/progress","params":{}},{"jsonrpc":"2.0","id":5,"result":{}}]',
    b'{"jsonrpc":"2.0","id":6,"result":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    b'{"jsonrpc":"2.0","method":"m","params":{"n":' + b"9" * 5_000 + b"}}\r",
]


async def test_what_is_no_tools_answer_passes_byte_for_byte(settings: Settings) -> None:
    async with relayed(settings, lambda message: ODD if message == [1] else []) as here:
        sent = [b'{"jsonrpc": "2.0" ,"id":0.5, "method":"x"}\n', b"no json at all\n", b"[1]\n"]
        for raw in sent:
            await here.say_raw(raw[:5])
            await here.say_raw(raw[5:])
        assert [await here.hear_raw() for _ in ODD] == [line + b"\n" for line in ODD]
        assert here.asked == sent
    assert not settings.home.exists()


async def test_a_small_result_passes_byte_for_byte(settings: Settings) -> None:
    line = b'{"id" :1,"jsonrpc":"2.0", "result":{"content":[ {"type":"text","text":"\\u00e9\\ud83d"} ],"x":1.50}}'
    async with relayed(settings, lambda _: [line]) as here:
        await here.say("tools/call", {"name": "small"})
        assert await here.hear_raw() == line + b"\n"
    assert not settings.home.exists()


async def test_with_no_memory_all_passes_and_it_is_said_once(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    result = {"content": [{"type": "text", "text": LONG}]}
    settings.home.write_text("a file where a folder should be")
    async with relayed(settings, replies(call=result)) as here:
        for _ in range(3):
            assert await here.call("read") == result
        opened = await here.call("expand_result", ref="r-9f2c1a7b3d4e")
        assert opened["isError"]
    (said,) = [record for record in caplog.records if record.name.startswith("mcp_memory.integrations.proxy")]
    assert said.getMessage().startswith("large results pass as they are: ")


async def test_a_message_too_long_to_hold_passes_in_pieces(settings: Settings) -> None:
    start, end = LinePart(b'{"jsonrpc":"2.0","id":1,"result":', last=False), LinePart(b"{}}\n", last=True)
    async with relayed(settings, lambda _: [start, end, b'{"jsonrpc":"2.0","id":2,"result":{}}']) as here:
        await here.say("tools/call", {"name": "huge"})
        assert [await here.hear_raw() for _ in range(2)] == [start.data, end.data]
        assert (await here.hear())["id"] == 2


async def test_who_waits_for_a_message_that_ends_in_the_middle_is_told(settings: Settings) -> None:
    start = LinePart(b'{"jsonrpc":"2.0","id":1,"result":', last=False)
    async with relayed(settings, lambda _: [start]) as here:
        await here.say("tools/call", {"name": "huge"})
        assert await here.hear_raw() == start.data
        here.end()
        assert await here.hear_raw() == b"\n"
        heard = await here.hear()
        assert (heard["id"], "did not answer" in heard["error"]["message"]) == (1, True)


async def test_a_number_that_only_the_bytes_can_say_leaves_the_result_as_it_came(settings: Settings) -> None:
    line = (
        b'{"jsonrpc":"2.0","id":1,"result":{"n":1e999,"content":[{"type":"text","text":'
        + json.dumps(LONG).encode()
        + b"}]}}"
    )
    async with relayed(settings, lambda _: [line]) as here:
        await here.say("tools/call", {"name": "read"})
        assert await here.hear_raw() == line + b"\n"


# --- what is edited ---------------------------------------------------------------------------------


async def test_a_large_text_is_kept_and_opened_again(settings: Settings) -> None:
    result = {"content": [{"type": "text", "text": LONG}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]}
    page = tools("read", {"name": "typed", "outputSchema": {"type": "object"}}, nextCursor="2")
    async with relayed(settings, replies(list=page, call={**result, "_meta": {"m": 1}})) as here:
        assert [tool["name"] for tool in (await here.ask("tools/list"))["tools"]] == ["read", "typed"]
        edited = await here.call("read", path="access.log")
        assert (edited["content"][1], edited["_meta"]) == (result["content"][1], {"m": 1})
        node, ref = named_in(edited)
        assert (node, "expand_result" in edited["content"][0]["text"]) == ("001-N1", True)
        opened = await here.call("expand_result", ref="001-N1", lines="7-8")
        assert "GET /item/6 200" in opened["content"][0]["text"]
        assert opened["isError"] is False
        again = await here.call("expand_result", ref=ref, grep="item/399 ")
        assert "GET /item/399" in again["content"][0]["text"]
        wrong = await here.call("expand_result", ref="009-N9")
        assert wrong["isError"]
        assert [json.loads(line)["params"].get("name") for line in here.asked] == [None, "read"]


async def test_the_other_generation_is_answered_in_its_words(settings: Settings) -> None:
    async with relayed(settings, replies()) as here:
        asked = {"name": "expand_result", "arguments": {"ref": "009-N9"}, "_meta": META}
        assert (await here.ask("tools/call", asked))["resultType"] == "complete"


@pytest.mark.parametrize("declared", [True, False])
async def test_structured_content_goes_where_no_schema_asks_for_it_and_is_a_note_where_one_does(
    settings: Settings, declared: bool
) -> None:
    tool = {"name": "read"} | ({"outputSchema": {"type": "object"}} if declared else {})
    result = {"content": [{"type": "text", "text": LONG}], "structuredContent": {"content": LONG}}
    async with relayed(settings, replies(list=tools(tool), call=result)) as here:
        assert (await here.call("read"))["structuredContent"]["offloaded"]["node"] == "001-N1"  # no listing was seen
        await here.ask("tools/list")
        edited = await here.call("read")
        assert ("structuredContent" in edited) == declared
        if declared:
            assert edited["structuredContent"]["offloaded"]["text"] == edited["content"][0]["text"]


async def test_a_views_structured_content_and_small_ones_stay(settings: Settings) -> None:
    view = {"name": "chart", "_meta": {"ui": {"resourceUri": "ui://chart"}}}
    large = {"content": [{"type": "text", "text": LONG}], "structuredContent": {"content": LONG}}
    async with relayed(settings, replies(list=tools(view), call=large)) as here:
        await here.ask("tools/list")
        assert (await here.call("chart"))["structuredContent"] == {"content": LONG}
    small = {"content": [{"type": "text", "text": LONG}], "structuredContent": {"lines": 400}}
    async with relayed(settings, replies(call=small)) as here:
        assert (await here.call("read"))["structuredContent"] == {"lines": 400}


async def test_a_large_error_stays_an_error(settings: Settings) -> None:
    async with relayed(settings, replies(call={"content": [{"type": "text", "text": LONG}], "isError": True})) as here:
        edited = await here.call("read")
        assert (edited["isError"], named_in(edited)[0]) == (True, "001-N1")


async def test_a_tool_of_our_name_is_the_servers(settings: Settings) -> None:
    result = {"content": [{"type": "text", "text": "mine"}]}
    answer = replies(list=tools("expand_result"), call=result, initialize={"serverInfo": {"name": "Result"}})
    async with relayed(settings, answer) as here:
        await here.ask("initialize")
        names = [tool["name"] for tool in (await here.ask("tools/list"))["tools"]]
        assert names == ["expand_result", "expand_result_2"]
        assert await here.call("expand_result", ref="001-N1") == result
        assert (await here.call("expand_result_2", ref="001-N1"))["isError"]


async def test_ten_thousand_tools_pass_with_one_more(settings: Settings) -> None:
    page = tools(*({"name": f"tool_{n}", "inputSchema": {"type": "object"}} for n in range(10_000)))
    async with relayed(settings, replies(list=page)) as here:
        assert len((await here.ask("tools/list"))["tools"]) == 10_001
    async with relayed(settings, replies(list=page), offers_tool=False) as here:
        assert await here.ask("tools/list") == page


async def test_a_schema_nested_too_deep_leaves_everything_as_it_is(settings: Settings) -> None:
    deep: Any = {"type": "object"}
    for _ in range(300):
        deep = {"properties": {"a": deep}}
    result = {"content": [{"type": "text", "text": LONG}], "structuredContent": {"content": LONG}}
    page = tools({"name": "read", "outputSchema": deep})
    async with relayed(settings, replies(list=page, call=result)) as here:
        assert await here.ask("tools/list") == page
        assert await here.call("read") == result


def nested(depth: int, where: str) -> bytes:
    """Return an answer to request 1 whose content is JSON of this depth, as a text or as structured content."""
    deep = "[" * depth + f'"{"x" * 9_000}"' + "]" * depth
    content = [{"type": "text", "text": deep if where == "text" else "none"}]
    structured = f',"structuredContent":{{"a":{deep}}}' if where == "structured" else ""
    return f'{{"jsonrpc":"2.0","id":1,"result":{{"content":{json.dumps(content)}{structured}}}}}'.encode()


@pytest.mark.parametrize("where", ["text", "structured"])
@pytest.mark.parametrize("depth", [150, 400, 900, 985, 2_000, 5_000, 100_000])
async def test_a_result_is_answered_however_deep_it_is_nested(settings: Settings, depth: int, where: str) -> None:
    async with relayed(settings, lambda message: [nested(depth, where)]) as here:
        await here.say("tools/call", {"name": "read", "arguments": {}})
        line = await here.hear_raw()
        assert line.startswith(b'{"jsonrpc":"2.0","id":1,"result":{"content":')
        assert where == "text" or line == nested(depth, where) + b"\n" or b"expand" in line


async def test_a_deep_result_is_answered_where_its_content_names_a_request_that_was_answered(
    settings: Settings,
) -> None:
    deep = b'{"id":1,"a":' * 5_000 + b"1" + b"}" * 5_000

    def answer(message: dict[str, Any]) -> Iterable[bytes]:
        yield b'{"result":{"content":[],"structuredContent":%b},"jsonrpc":"2.0","id":%d}' % (deep, message["id"])

    async with relayed(settings, answer) as here:
        for id in (1, 2):
            await here.say("tools/call", {"name": "read", "arguments": {}}, id)
            assert (await here.hear_raw()).endswith(b'"id":%d}\n' % id)


async def test_several_clients_of_one_name_in_one_folder_share_a_canvas(settings: Settings) -> None:
    result = {"content": [{"type": "text", "text": LONG}]}
    nodes: list[str] = []
    for name, tool in (("Desk App", "read_file"), ("Desk App", "git_log"), ("other", "query")):
        async with relayed(settings, replies(initialize={}, call=result)) as here:
            await here.ask("initialize", {"clientInfo": {"name": name}})
            edited = await here.call(tool)
            nodes.append(named_in(edited)[0])
    assert nodes == ["001-N1", "001-N2", "002-N1"]


@pytest.mark.parametrize("name", ["claude-code", "codex-mcp-client", "a stranger"])
async def test_no_more_is_saved_than_the_client_would_have_shown(settings: Settings, name: str) -> None:
    count = token_counter(settings.tokenizer).count
    whole = LONG * 8
    answer = replies(initialize={}, call={"content": [{"type": "text", "text": whole}]})
    async with relayed(settings, answer) as here:
        await here.ask("initialize", {"clientInfo": {"name": name}})
        note = (await here.call("read"))["content"][0]["text"]
    async with open_memory(settings) as memory:
        status = await memory.status()
        (saved,) = status["savings"]["kinds"]
    assert (saved["times"], saved["saved"], saved["spent"]) == (1, count(shown_of(name, whole)), count(note))
    assert saved["saved"] < count(whole) / 1.5
    assert status["offload"]["tokens_saved"] == saved["saved"] - saved["spent"]


async def test_a_call_is_ours_only_while_it_can_be(settings: Settings) -> None:
    result = {"content": [{"type": "text", "text": "mine"}]}
    async with relayed(settings, replies(list=tools("read"), call=result)) as here:
        assert (await here.call("expand_other", ref="001-N1"))["isError"]  # from a listing of an earlier process
        await here.ask("tools/list")
        assert await here.call("expand_other", ref="001-N1") == result
    async with relayed(settings, replies(call=result), offers_tool=False) as here:
        assert await here.call("expand_result", ref="001-N1") == result


async def test_one_result_that_cannot_be_kept_is_not_held_against_the_next(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    result = {"content": [{"type": "text", "text": LONG}]}
    async with relayed(settings, replies(call=result)) as here:
        assert await here.call("") == result
        assert named_in(await here.call("read"))[0] == "001-N1"
    assert "a large result passes as it is: tool_name is empty" in caplog.text


async def test_a_memory_that_is_busy_for_long_keeps_nobody_waiting(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    result = {"content": [{"type": "text", "text": LONG}]}
    async with relayed(settings, replies(call=result)) as here:
        named_in(await here.call("warm_up"))
        monkeypatch.setattr(kept_results, "KEEPING_SECONDS", 0.2)
        other = apsw.Connection(str(settings.home / "memory.db"))
        other.set_busy_timeout(5_000)  # the saving of the call before may be on its way
        other.execute("BEGIN IMMEDIATE")
        assert await here.call("read") == result
        other.execute("ROLLBACK")
        other.close()
        assert await here.call("read") == result
    assert "keeping one took over" in caplog.text


@pytest.mark.parametrize("kept", [True, False])
async def test_a_result_that_no_client_can_use_whole_is_kept_to_an_end_and_opened_by_its_name(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    whole = LONG * 3 + "\nthe last line"
    result = {"content": [{"type": "text", "text": whole}]}
    async with relayed(settings, replies(call=result, list=tools("read"))) as here:
        await here.ask("tools/list")
        await here.call("warm_up")
        monkeypatch.setattr(kept_results, "KEEPING_SECONDS", 0.2)
        monkeypatch.setattr(kept_results, "MOST_AS_IT_CAME", 10_000)
        other = apsw.Connection(str(settings.home / "memory.db"))
        other.set_busy_timeout(5_000)  # the saving of the call before may be on its way
        other.execute("BEGIN IMMEDIATE")
        said = (await here.call("read"))["content"][0]["text"]
        assert len(said) < 2_000
        assert whole.startswith(said.partition("It begins:\n")[2])
        (name,) = set(re.findall("r-[0-9a-f]{12}", said))
        assert (await here.call("expand_result", ref=name))["content"][0]["text"].startswith(f"{name} is still being")
        if not kept:
            monkeypatch.setattr(ResultKeeper, "_render_note", lambda *_: None)
        other.execute("ROLLBACK")
        other.close()
        monkeypatch.setattr(kept_results, "KEEPING_SECONDS", 20)
        opened = (await here.call("expand_result", ref=name, grep="the last line"))["content"][0]["text"]
        assert opened == whole if not kept else "the last line" in opened and len(opened) < 2_000


# --- what goes wrong --------------------------------------------------------------------------------


async def test_all_who_wait_are_told_when_the_server_ends(settings: Settings) -> None:
    async with relayed(settings, replies()) as here:
        for id in (1, "two"):
            await here.say("tools/call", {"name": "read"}, id)
        await here.say("notifications/cancelled", {"requestId": 3}, id=None)
        await here.say("prompts/list", id=3)
        await here.say("notifications/cancelled", {"requestId": 3}, id=None)
        await anyio.wait_all_tasks_blocked()
        here.end()
        errors = [await here.hear() for _ in range(2)]
    assert [error["id"] for error in errors] == [1, "two"]
    assert errors[0]["error"] == {
        "code": -32000,
        "message": "the server has ended (exit code 3) and did not answer.",
    }


async def test_lines_that_are_no_messages_are_left_out_and_a_torn_answer_is_an_error(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    said = [b"Server starting\xff", b"", b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":', b"42"]
    async with relayed(settings, lambda _: said) as here:
        await here.say("tools/call", {"name": "read"})
        error = await here.hear()
    assert (error["id"], error["error"]["code"]) == (1, wire.PARSE_ERROR)
    assert "Server starting" in caplog.text


async def test_an_expansion_can_be_cancelled(settings: Settings) -> None:
    async with relayed(settings, replies(ping={})) as here:
        await here.say("tools/call", {"name": "expand_result", "arguments": {"ref": "001-N1"}}, id=5)
        await here.say("notifications/cancelled", {"requestId": 5}, id=None)
        assert await here.ask("ping", id=6) == {}
        assert all(b"expand" not in line for line in here.asked)


def call_of_ours(id: Any, **params: Any) -> bytes:
    asked = {"name": "expand_result", "arguments": {"ref": "001-N1"}, **params}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": asked}).encode() + b"\n"


async def test_a_second_call_with_the_id_of_one_in_progress_gets_an_error_and_the_relay_goes_on(
    settings: Settings,
) -> None:
    async with relayed(settings, replies(ping={})) as here:
        await here.say_raw(3 * call_of_ours(5))
        heard = [await here.hear() for _ in range(3)]
        assert [one["id"] for one in heard] == [5, 5, 5]
        refused = [one["error"] for one in heard if "error" in one]
        assert [one["code"] for one in refused] == [wire.INVALID_REQUEST, wire.INVALID_REQUEST]
        assert refused[0]["message"] == "A request with the id 5 is in progress. Use each id once."
        await here.say_raw(call_of_ours(5))  # once answered, an id may come again
        assert "result" in await here.hear()
        assert await here.ask("ping", id=6) == {}


WORDS = st.sampled_from(
    [
        "tools/call",
        "tools/list",
        "initialize",
        "notifications/cancelled",
        "expand_result",
        "ping",
        "001-N1",
        "\ud83d",
        "",
    ]
)
KEYS = st.sampled_from(
    ["id", "method", "params", "name", "arguments", "ref", "requestId", "_meta", "clientInfo", "result", "error",
     "tools", "content", "serverInfo", "structuredContent", "outputSchema", "text", "type"]
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)
MESSAGES: st.SearchStrategy[Any] = st.dictionaries(KEYS, VALUES, max_size=6) | st.fixed_dictionaries(
    {"method": WORDS, "id": VALUES, "params": st.dictionaries(KEYS, VALUES, max_size=5) | VALUES}
)


@given(said=st.lists(MESSAGES, max_size=6), answered=st.lists(MESSAGES | VALUES, max_size=3))
@example(said=[{"method": "tools/call", "id": math.inf}], answered=[])
@example(said=[{"method": "tools/call", "id": [math.nan], "params": {"name": "expand_result"}}], answered=[])
@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_message_of_either_side_ends_the_relay(
    settings: Settings, said: list[Any], answered: list[Any]
) -> None:
    def answer(message: Any) -> Iterable[bytes]:
        if json.dumps(message).endswith('"the last"}'):
            return [b'{"jsonrpc":"2.0","id":"the last","result":{}}']
        return [json.dumps(one).encode() for one in answered]

    async with relayed(settings, answer) as here:
        for message in said:
            await here.say_raw(json.dumps(message).encode() + b"\n")
        await here.say("ping", id="the last")
        while b'"the last"' not in await here.hear_raw():
            pass


async def test_a_second_answer_to_a_request_goes_no_further_and_is_logged(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    result = {"content": [{"type": "text", "text": LONG}]}

    def twice(message: dict[str, Any]) -> Iterable[bytes | LinePart]:
        line = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        return [line, line, b"[" + line + b"]", LinePart(line, last=False), LinePart(b"\n", last=True)]

    async with relayed(settings, twice) as here:
        for _ in range(2):  # an id that is used again is answered again
            named_in(await here.call("long"))
        await here.say("tools/call", {"name": "long", "arguments": {}}, id="other")
        assert (await here.hear())["id"] == "other"
    assert len([one for one in caplog.records if "second answer" in one.getMessage()]) >= 6


async def test_an_answer_that_nobody_asked_for_passes_as_before(settings: Settings) -> None:
    line = b'{"jsonrpc":"2.0","id":9,"result":{}}'
    async with relayed(settings, lambda _: [line, line]) as here:
        await here.say("notifications/x", id=None)
        assert [await here.hear_raw() for _ in range(2)] == [line + b"\n"] * 2
