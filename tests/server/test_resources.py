"""Resources, prompts and completions, through the SDK's own client, of both protocol generations."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from inline_snapshot import snapshot
from mcp import Client, MCPError
from mcp.types import (
    INVALID_PARAMS,
    BlobResourceContents,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)

from mcp_memory.core.config import load_settings
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import NewTurn
from mcp_memory.server.mcp_server import MemoryServer
from mcp_memory.server.resources import MOST

FIXED = ["memory://persona", "memory://canvas/active", "memory://status"]


@pytest.fixture(scope="module")
async def filled(server: MemoryServer) -> MemoryServer:
    memory = await server.memory.get()
    turns = [NewTurn(role="user", content=f"turn number {n}") for n in range(130)]
    await memory.record_turns(turns, session="a/b".replace("/", "-"))
    await memory.remember("Anna lives in Porto", entity="Anna", relation="lives in", value="Porto", typed=True)
    for task in ("Fix the build", "Write the report"):
        await memory.offload_tool_result("bash", f"{task}: no output\n", task=task, session="a-b", step="look")
    return server


@pytest.fixture
async def client(filled: MemoryServer, era: Any) -> AsyncIterator[Client]:
    async with Client(filled, mode=era) as client:
        yield client


async def read(client: Client, uri: str) -> TextResourceContents:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content


async def prompt(client: Client, name: str, arguments: dict[str, str]) -> str:
    (message,) = (await client.get_prompt(name, arguments)).messages
    assert isinstance(message.content, TextContent)
    return message.content.text


async def test_the_fixed_resources_come_first_then_the_canvases_by_number(client: Client) -> None:
    listed = (await client.list_resources()).resources
    assert [resource.uri for resource in listed] == [*FIXED, "memory://canvas/001", "memory://canvas/002"]
    assert [listed[0].name, listed[0].mime_type] == ["persona.md", "text/markdown"]
    assert [template.uri_template for template in (await client.list_resource_templates()).resource_templates] == [
        "memory://scene/{slug}",
        "memory://canvas/{number}",
        "memory://session/{session}",
        "memory://atom/{id}",
        "memory://ref/{id}",
    ]


async def test_each_address_is_read_in_its_own_format(client: Client) -> None:
    persona, active, status = [await read(client, uri) for uri in FIXED]
    assert persona.mime_type == "text/markdown"
    assert "Porto" in persona.text
    assert active.mime_type == "text/vnd.mermaid"
    assert (
        active.text
        == (await read(client, "memory://canvas/2")).text
        == (await read(client, "memory://canvas/002")).text
    )
    assert active.text.startswith("%% {")
    assert json.loads(status.text)["space"] == "default"
    assert json.loads((await read(client, "memory://atom/a1")).text)["text"] == "Anna lives in Porto"


async def test_the_active_canvas_keeps_to_its_budget_and_by_its_number_it_is_whole(tmp_path: Path, era: Any) -> None:
    server = MemoryServer(load_settings({}, home=tmp_path / "home", embedder="none"))
    async with Client(server, mode=era) as client:
        memory = await server.memory.get()
        for at in range(30):
            name, status = f"step number {at}", "done" if at < 29 else "doing"
            await memory.offload_tool_result("bash", f"output {at}\n", task="A long task", step=name, status=status)
        active = (await read(client, "memory://canvas/active")).text
        whole = (await read(client, "memory://canvas/1")).text
    assert active.startswith("%% {")
    assert "step number 29" in active
    assert token_counter("o200k_base").count(active) <= 1000 < token_counter("o200k_base").count(whole)


async def test_a_long_session_is_read_page_by_page(client: Client) -> None:
    first = (await read(client, "memory://session/a-b")).text
    second = (await read(client, "memory://session/a-b?start=100")).text
    assert "turn number 99\n" in first
    assert "turn number 100" not in first
    assert first.endswith("More: memory://session/a-b?start=100\n")
    assert "turn number 129" in second


def said_in(page: str, turn: str) -> str:
    """The words of a turn that a page of its session quotes, without their line breaks."""
    _, found, rest = page.partition(f"## {turn} ")
    quoted = rest.partition("\n## ")[0].splitlines()
    return "".join(line[2:] for line in quoted if line.startswith("> ")) if found else ""


async def pages_of(client: Client, uri: str) -> list[Any]:
    """The first contents of a resource's pages, each read from the address that the one before it names."""
    pages = list[Any]()
    while uri:
        contents = (await client.read_resource(uri)).contents
        pages.append(contents[0])
        said = getattr(contents[-1], "text", "")
        found = re.search(r"^More: (memory://\S+)[^\n]*\n?\Z", said, re.MULTILINE)
        uri = found[1] if found else ""
        assert len(pages) < 100
    return pages


@pytest.mark.parametrize(
    "words",
    ["word " * 12_000, "line\n" * 10_000, "a" + "\n" * 20_000, "a\r\nb" * 10_000],
    ids=["words", "lines", "empty lines", "line breaks of two characters"],
)
async def test_all_pages_of_a_session_together_have_every_word_and_none_is_longer_than_stated(
    client: Client, filled: MemoryServer, words: str
) -> None:
    session = f"of {len(words)} characters like {ord(words[0])}"
    memory = await filled.memory.get()
    contents = [f"before {session}", words, f"{words}!", f"after {session}"]
    turns = [NewTurn(role="user", content=content, client_id=str(n)) for n, content in enumerate(contents)]
    await memory.record_turns(turns, session=session)
    known = [turn.id for turn in await memory.session_turns(session)]
    pages = [page.text for page in await pages_of(client, f"memory://session/{quote(session, safe='')}")]
    assert max(map(len, pages)) <= MOST
    for id, content in zip(known, contents, strict=True):
        is_whole = "".join(said_in(page, id) for page in pages) == "".join(content.splitlines())
        assert is_whole, id  # pytest would compare the texts for minutes


@pytest.mark.parametrize(
    "data", ["ä𝄞 text\r\n" * 20_000, "x" * 120_000, "half \ud83d" * 20_000], ids=["text", "x", "blob"]
)
async def test_all_pages_of_a_raw_result_together_are_its_bytes(
    client: Client, filled: MemoryServer, data: str
) -> None:
    kept = await (await filled.memory.get()).offload_tool_result("bash", data, session="a-b", task="Fix the build")
    pages = await pages_of(client, f"memory://ref/{kept.ref}")
    assert len(pages) > 2
    if isinstance(pages[0], BlobResourceContents):
        assert max(len(page.blob) for page in pages) <= MOST
        whole = b"".join(base64.b64decode(page.blob) for page in pages)
    else:
        assert max(len(page.text) for page in pages) <= MOST
        whole = "".join(page.text for page in pages).encode()
    is_whole = whole == data.encode("utf-8", "surrogatepass")
    assert is_whole


async def test_a_page_behind_the_end_is_not_found(client: Client, filled: MemoryServer) -> None:
    kept = await (await filled.memory.get()).offload_tool_result("bash", "short", session="a-b", task="Fix the build")
    with pytest.raises(MCPError, match="has 5 bytes, and none from 50,000 on"):
        await client.read_resource(f"memory://ref/{kept.ref}?from=50000")
    with pytest.raises(MCPError, match="from must be a number such as 50000, not 'x'"):
        await client.read_resource("memory://persona?from=x")


@pytest.mark.parametrize("cursor", ["2", "", "eyJvZmZzZXQiOjEwMH0=", "null"])
@pytest.mark.parametrize("listing", ["list_tools", "list_prompts", "list_resources", "list_resource_templates"])
async def test_a_listing_refuses_a_cursor_that_it_never_gave(client: Client, listing: str, cursor: str) -> None:
    with pytest.raises(MCPError, match="Invalid cursor") as caught:
        await getattr(client, listing)(cursor=cursor)
    assert caught.value.error.code == INVALID_PARAMS


async def test_a_raw_result_is_text_where_it_is_utf8_and_a_blob_where_not(client: Client, filled: MemoryServer) -> None:
    memory = await filled.memory.get()
    plain = await memory.offload_tool_result("bash", "grüße\n", session="a-b", task="Fix the build")
    odd = await memory.offload_tool_result("bash", "half \ud83d\n", session="a-b", task="Fix the build")
    assert (await read(client, f"memory://ref/{plain.ref}")).text == "grüße\n"
    (blob,) = (await client.read_resource(f"memory://ref/{odd.ref}")).contents
    assert isinstance(blob, BlobResourceContents)


@pytest.mark.parametrize(
    "uri",
    [
        "memory://atom/a999",
        "memory://ref/r-000000000000",
        "memory://session/never%20was",
        "memory://session/a-b?start=x",
        "memory://session/a-b?start=-1",
        "memory://session/a-b?start=",
        "memory://session/a-b?page=2",
        "memory://session/a-b?100",
        "memory://session/a-b?start=0&start=100",
        "memory://persona?start=1",
        "memory://canvas/404",
        "memory://canvas/99999999999999999999",
        "memory://nonsense",
        "memory://atom/../../etc/passwd",
        "file:///etc/passwd",
    ],
)
async def test_what_is_not_there_is_an_invalid_parameter_with_its_address(client: Client, uri: str) -> None:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    assert (caught.value.error.code, caught.value.error.data) == (-32602, {"uri": uri})


def tear(home: Path, ref: str) -> str:
    (path,) = home.rglob(Path(ref).name)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-3] + b"!!!")
    return path.name


@pytest.mark.files
async def test_a_damaged_ref_says_that_it_is_damaged(client: Client, filled: MemoryServer) -> None:
    memory = await filled.memory.get()
    offloaded = await memory.offload_tool_result(
        "bash", f"to be torn {id(client)}\n", session="a-b", task="Fix the build"
    )
    name = tear(memory.settings.home, offloaded.path)
    with pytest.raises(MCPError) as caught:
        await client.read_resource(f"memory://ref/{offloaded.ref}")
    assert caught.value.error.code == -32603
    assert offloaded.ref in caught.value.error.message or name in caught.value.error.message


async def test_an_empty_memory_says_so_and_how_to_begin(tmp_path: Path, era: Any) -> None:
    empty = MemoryServer(load_settings({}, home=tmp_path / "home", embedder="none"))
    async with Client(empty, mode=era) as client:
        assert (await read(client, "memory://canvas/active")).text.startswith("%% No task is active")
        assert (await read(client, "memory://persona")).text.strip()
        assert [resource.uri for resource in (await client.list_resources()).resources] == FIXED
        assert "No turn of this conversation is stored yet." in await prompt(client, "wrap_up", {})
        assert "No task is noted in your memory yet." in await prompt(client, "continue_task", {})
        assert "holds nothing about 'Porto' yet" in await prompt(client, "recall", {"topic": "Porto"})


async def test_prompts_are_described_and_fetch_what_they_are_about(client: Client) -> None:
    listed = (await client.list_prompts()).prompts
    assert {prompt.name: [argument.name for argument in prompt.arguments or []] for prompt in listed} == snapshot(
        {"recall": ["topic"], "continue_task": ["task"], "wrap_up": ["session"]}
    )
    assert all(prompt.description and prompt.title for prompt in listed)
    assert "Anna lives in Porto" in await prompt(client, "recall", {"topic": "Where does Anna live?"})
    continued = await prompt(client, "continue_task", {"task": "001"})
    assert "Fix the build" in continued
    assert "001-N1" in continued
    wrapped = await prompt(client, "wrap_up", {"session": "a-b"})
    assert "turn number 129" in wrapped
    assert "flowchart" in wrapped


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recall", {"subject": "x"}),
        ("continue_task", {"task": "no such task"}),
        ("wrap_up", {"session": "never was"}),
        ("nonsense", {}),
    ],
)
async def test_a_wrong_prompt_call_is_told_what_is_wrong(client: Client, name: str, arguments: dict[str, str]) -> None:
    with pytest.raises(MCPError) as caught:
        await client.get_prompt(name, arguments)
    assert caught.value.error.code == -32602
    assert caught.value.error.message.endswith((".", "?"))


@pytest.mark.parametrize(
    ("reference", "name", "typed", "values"),
    [
        (PromptReference(name="recall"), "topic", "an", ["Anna"]),
        (PromptReference(name="continue_task"), "task", "report", ["002-write-the-report"]),
        (PromptReference(name="wrap_up"), "session", "A", ["a-b"]),
        (ResourceTemplateReference(uri="memory://canvas/{number}"), "number", "2", ["002"]),
        (ResourceTemplateReference(uri="memory://session/{session}"), "session", "", ["a-b"]),
        (ResourceTemplateReference(uri="memory://atom/{id}"), "id", "a", ["a1"]),
        (PromptReference(name="recall"), "nonsense", "", []),
    ],
)
async def test_arguments_complete_from_what_is_stored(
    client: Client, reference: PromptReference | ResourceTemplateReference, name: str, typed: str, values: list[str]
) -> None:
    completed = (await client.complete(reference, {"name": name, "value": typed})).completion.values
    assert [value for value in completed if value in values] == values
    assert all(typed.casefold() in value.casefold() for value in completed)
