"""Nothing of a foreign space is reached: by any tool, resource, prompt, completion, cursor, id or subscription.

The law is that of non-interference. Two servers stand side by side, with the same space of ours; beside it, one of
them keeps a stranger's. Whatever is asked, with his ids, names, cursors and words, both give the same answer: so none
tells what he keeps, nor that he is there. And no word comes back that only he has written.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from mcp import Client, MCPDeprecationWarning
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.types import (
    PromptReference,
    ResourceListChangedNotification,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
)

from mcp_memory.core.config import load_settings
from mcp_memory.core.types import NewTurn
from mcp_memory.server.arguments import input_schema
from mcp_memory.server.mcp_server import MemoryServer
from mcp_memory.server.prompts import PROMPTS
from mcp_memory.server.resources import FIXED, TEMPLATES
from mcp_memory.server.tools import TOOLS, Tool
from mcp_memory.service.memory import Memory
from tests.isolation.spaces import MINE, THEIRS, Homes, make_homes
from tests.server.answers import WAIT, answer_of
from tests.server.served import bearer, served

if TYPE_CHECKING:
    from tests.postgres_server import HomesOnPostgres

# What was asked before changes what is answered, so a failing example cannot be made smaller.
few = settings(max_examples=max(4, settings.default.max_examples // 8), phases=[Phase.generate])

_VOLATILE = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-]\d\d:\d\d)?"), "<time>"),
    (re.compile(r"\d{4}-\d\d-\d\d-[0-9a-f]{8}(?:-[0-9a-f]{4})?"), "<session>"),
    (re.compile(r"\br-[0-9a-f]{12}\b"), "<ref>"),
    (re.compile(r'"(cursor|next_cursor)": "[^"]*"'), r'"\1": "<cursor>"'),
    (re.compile(r"cursor=\S+"), "cursor=<cursor>"),
    (re.compile(r'Persona, version \d+|"version\\?": \d+'), "<version>"),  # the background writes the page in batches
    (
        re.compile(r'"(\w*(?:saved|spent|net|tokens)\w*)\\?": -?\d+'),
        r'"\1": <tokens>',
    ),  # of refs, which have chance in them
]


@dataclass(frozen=True, repr=False)
class Sides:
    """Clients of our space, by right and generation, on the server with the stranger and on the one without."""

    homes: Homes
    shared: dict[str, Client]
    alone: dict[str, Client]
    stranger: Client
    said: set[str] = field(default_factory=set[str])

    def __repr__(self) -> str:
        return "sides"

    async def both(self, ask: Any, who: str) -> tuple[str, str]:
        return await _told(ask, self.shared[who]), await _told(ask, self.alone[who])

    async def same(self, ask: Any, asked: object, *, who: str) -> None:
        """Have both servers answer the same, and tell no word of the stranger that we have not said ourselves."""
        said = json.dumps(asked, ensure_ascii=False).casefold()
        self.said.update(word for word in self.homes.secrets if word in said)
        shared, alone = await self.both(ask, who)
        assert shared.splitlines() == alone.splitlines(), asked
        assert [word for word in self.homes.secrets if word in shared.casefold() and word not in self.said] == []


async def _told(ask: Any, client: Client) -> str:
    """Return all that comes back, without what is a clock's or counts up."""
    try:
        with anyio.fail_after(WAIT):
            answer = (await ask(client)).model_dump(mode="json", by_alias=True)
    except MCPError as error:
        answer = {"code": error.error.code, "message": error.error.message, "data": error.error.data}
    text = json.dumps(answer, ensure_ascii=False, indent=1).replace("\\n", "\n")
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return text


@pytest.fixture(scope="module")
async def sides(
    tmp_path_factory: pytest.TempPathFactory, homes_on_postgres: HomesOnPostgres | None
) -> AsyncIterator[Sides]:
    copy = homes_on_postgres.copy if homes_on_postgres else shutil.copytree
    homes = await make_homes(tmp_path_factory.mktemp("isolation"), copy)
    async with AsyncExitStack() as stack:

        async def connect(url: str, token: str, era: Any = "auto") -> Client:
            http = await stack.enter_async_context(bearer(token))
            return await stack.enter_async_context(Client(streamable_http_client(url, http_client=http), mode=era))

        async def side(settings: Any) -> tuple[str, dict[str, Client]]:
            address, server = await stack.enter_async_context(served(settings))
            url, ours = f"{address}/mcp", (await server.memory.get()).in_space(MINE)
            ours.session = "by-hand"  # it has some chance in it too
            clients = {right: await connect(url, token) for right, token in homes.tokens.items()}
            return url, {**clients, "legacy": await connect(url, homes.tokens["admin"], "legacy")}

        url, shared = await side(homes.shared)
        _, alone = await side(homes.alone)
        yield Sides(homes, shared, alone, await connect(url, homes.stranger))


# --- what is asked with -----------------------------------------------------------------------------

# Ids are known when the homes are made, after the strategies: «f3» stands for the fourth of the stranger's.
_NAMED = re.compile("«([fos])([0-9]+)»")
THEIR_WORDS = st.integers(0, 30).flatmap(
    lambda n: st.sampled_from([f"«f{n}»", f"«f{n}»", f"«s{n}»"])
) | st.sampled_from([THEIRS, f"../{THEIRS}", "a", "t"])
NEAR = st.integers(0, 120).flatmap(
    lambda n: st.sampled_from([f"t{n}", f"a{n}", f"x{n}", f"w{n}", f"{n:03}", f"{n:03}-N{n}", str(n)])
)
WORDS = THEIR_WORDS | THEIR_WORDS | st.integers(0, 30).map(lambda n: f"«o{n}»") | NEAR


def named(value: Any, homes: Homes) -> Any:
    """Return the value with ids in the place of what stands for them."""

    def named_one(found: re.Match[str]) -> str:
        of = {"f": homes.foreign_ids, "o": [*homes.own_ids, *homes.own], "s": [*homes.secrets]}[found[1]]
        return of[int(found[2]) % len(of)]

    match value:
        case str():
            return _NAMED.sub(named_one, value)
        case list():
            return [named(one, homes) for one in value]
        case dict():
            return {name: named(one, homes) for name, one in value.items()}
        case _:
            return value


def values(schema: dict[str, Any], text: SearchStrategy[str]) -> SearchStrategy[Any]:
    match schema:
        case {"enum": [*choices]}:
            return st.sampled_from(choices)
        case {"type": "integer"}:
            return st.integers(max(0, schema.get("minimum", 0)), min(schema.get("maximum", 400), 400))
        case {"type": "boolean"}:
            return st.booleans()
        case {"type": "array", "items": {"properties": _} as of}:
            return st.lists(objects(of, text), min_size=1, max_size=2)
        case {"type": "array"}:
            return st.lists(text, max_size=3)
        case _:
            return text


def objects(schema: dict[str, Any], text: SearchStrategy[str]) -> SearchStrategy[dict[str, Any]]:
    fields = {name: values(field, text) for name, field in schema.get("properties", {}).items()}
    required = set(schema.get("required", ()))
    return st.fixed_dictionaries(
        {name: field for name, field in fields.items() if name in required},
        optional={name: field for name, field in fields.items() if name not in required},
    )


def who_calls(tool: Tool) -> SearchStrategy[str]:
    """Clients of the handshake era write into a session by chance, by which completion would tell the two apart."""
    return st.sampled_from(["admin", "write", "read", *(["legacy"] if tool.read_only else [])])


def of_tool(tool: Tool) -> SearchStrategy[dict[str, Any]]:
    if not tool.destructive:
        return objects(input_schema(tool.model), WORDS)
    # What of our own is forgotten would leave less and less to ask about.
    return objects(input_schema(tool.model), THEIR_WORDS).map(
        lambda given: {
            **{name: value for name, value in given.items() if name not in ("since", "until")},
            **({} if given.get("ids") or given.get("undo") else {"dry_run": True}),
        }
    )


# --- the laws ---------------------------------------------------------------------------------------


@pytest.mark.slow
@few
@given(calls=st.fixed_dictionaries({tool.name: st.tuples(who_calls(tool), of_tool(tool)) for tool in TOOLS}))
async def test_every_tool_answers_as_if_there_were_no_other_space(
    sides: Sides, calls: dict[str, tuple[str, dict[str, Any]]]
) -> None:
    for tool, (who, drawn) in calls.items():
        given = named(drawn, sides.homes)
        await sides.same(lambda client, t=tool, g=given: client.call_tool(t, g), {tool: given}, who=who)


NAMING = [
    "ids",
    "undo",
    "supersedes",
    "cites",
    "work_id",
    "node",
    "ref",
    "task",
    "nodes",
    "after",
    "session",
    "scene",
    "entity",
    "cursor",
    "section",
    "query",
]
NEEDED: dict[str, dict[str, Any]] = {
    "remember": {"text": "Told with somebody's id."},
    "record_turns": {"turns": [{"role": "user", "content": "Said with somebody's id."}]},
    "conversation_search": {"query": "harbour"},
    "offload_tool_result": {"tool_name": "run", "result": "42 passed"},
    "distill": {"reply": "{}"},
}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
async def test_no_argument_that_names_something_names_what_is_the_strangers(sides: Sides, tool: Tool) -> None:
    for name, schema in input_schema(tool.model)["properties"].items():
        for theirs in dict.fromkeys(sides.homes.foreign_ids) if name in NAMING else ():
            given = {**NEEDED.get(tool.name, {}), name: [theirs] if schema.get("type") == "array" else theirs}
            if tool.destructive and name not in ("ids", "undo"):
                given["dry_run"] = True
            await sides.same(
                lambda client, t=tool.name, g=given: client.call_tool(t, g), {tool.name: given}, who="admin"
            )


async def test_no_address_is_that_of_the_strangers(sides: Sides) -> None:
    for template in TEMPLATES:
        for theirs in dict.fromkeys(sides.homes.foreign_ids):
            uri = re.sub(r"\{\w+\}", lambda _, name=theirs: quote(name, safe=""), template.uri_template)
            await sides.same(lambda client, uri=uri: client.read_resource(uri), [uri, theirs], who="read")


@few
@given(
    asked=st.lists(
        st.tuples(st.sampled_from(TEMPLATES), WORDS, st.booleans(), st.sampled_from(["", "?start=0", "?start=20"])),
        min_size=5,
        max_size=5,
    ),
    who=st.sampled_from(["read", "legacy"]),
)
async def test_resources_are_read_as_if_there_were_no_other_space(sides: Sides, asked: list[Any], who: str) -> None:
    for template, drawn, quoted, query in asked:
        name = named(drawn, sides.homes)
        path = quote(name, safe="") if quoted else name
        uri = re.sub(r"\{\w+\}", lambda _, path=path: path, template.uri_template) + query
        await sides.same(lambda client, uri=uri: client.read_resource(uri), [uri, name], who=who)


@few
@given(drawn=WORDS | st.sampled_from(["", "s", "M", "0"]), who=st.sampled_from(["read", "legacy"]))
async def test_prompts_and_completions_know_of_no_other_space(sides: Sides, drawn: str, who: str) -> None:
    typed = named(drawn, sides.homes)
    for prompt in PROMPTS:
        given = {prompt.argument: typed}
        await sides.same(lambda client, p=prompt.name, g=given: client.get_prompt(p, g), typed, who=who)
    references = [(PromptReference(name=prompt.name), prompt.argument) for prompt in PROMPTS]
    for template in TEMPLATES:
        reference = ResourceTemplateReference(uri=template.uri_template)
        references.append((reference, re.findall(r"\{(\w+)\}", template.uri_template)[0]))
    for reference, name in references:
        typing = {"name": name, "value": typed}
        await sides.same(lambda client, r=reference, t=typing: client.complete(r, t), typed, who=who)


@pytest.mark.parametrize("who", ["read", "write", "admin", "legacy"])
async def test_lists_and_pages_know_of_no_other_space(sides: Sides, who: str) -> None:
    for ask in (
        lambda client: client.list_tools(),
        lambda client: client.list_resources(),
        lambda client: client.list_resource_templates(),
        lambda client: client.list_prompts(),
        *((lambda client, uri=fixed.uri: client.read_resource(uri)) for fixed in FIXED),
    ):
        await sides.same(ask, "", who=who)


async def test_the_stranger_lost_nothing_by_all_that_was_asked_for(sides: Sides) -> None:
    """It stands after the laws above, which pass his ids to every tool, those that forget and supersede too."""
    theirs = sides.homes.foreign_ids
    for secret in sides.homes.secrets[:2]:
        found = answer_of(await sides.stranger.call_tool("memory_search", {"query": secret}))
        assert secret in str(found)
    turns = str(await sides.stranger.read_resource("memory://session/talk%20russetnewt"))
    assert turns.count("velvetotter leaves") == 30
    opened = await sides.stranger.call_tool("expand_node", {"ref": next(id for id in theirs if id.startswith("r-"))})
    assert "of slateibis" in str(answer_of(opened))


# --- who listens ------------------------------------------------------------------------------------

PLACES = ("status", "persona", "canvas/active", "canvas/001", "canvas/2", "atom/a1", "atom/a2", "session/theirs")
WATCHED = [f"memory://{place}" for place in PLACES]


@asynccontextmanager
async def hearing(url: str, token: str, era: str, transport: str) -> AsyncGenerator[list[str]]:
    """Yield the list of what a client of our space is told, of all that it may watch and of what it may not."""
    heard: list[str] = []

    async def on_message(message: Any) -> None:
        match message:
            case ResourceUpdatedNotification():
                heard.append(str(message.params.uri))
            case ResourceListChangedNotification():
                heard.append("list")
            case _:
                pass

    async with AsyncExitStack() as stack:
        if transport == "sse":
            connection: Any = sse_client(f"{url}/sse", {"Authorization": f"Bearer {token}"})
        else:
            http = await stack.enter_async_context(bearer(token))
            connection = streamable_http_client(f"{url}/mcp", http_client=http)
        mode: Any = era
        client = await stack.enter_async_context(Client(connection, mode=mode, message_handler=on_message))
        if era == "legacy":
            for uri in WATCHED:
                with pytest.warns(MCPDeprecationWarning):
                    await client.subscribe_resource(uri)
            yield heard
            for uri in WATCHED:  # the SDK's SSE client fails where it is told something while it ends
                with pytest.warns(MCPDeprecationWarning):
                    await client.unsubscribe_resource(uri)
            return
        async with (
            client.listen(resource_subscriptions=WATCHED, resources_list_changed=True) as subscription,
            anyio.create_task_group() as tasks,
        ):

            async def forward() -> None:
                async for event in subscription:
                    heard.append(  # noqa: PERF401 - others read it meanwhile
                        event.uri if isinstance(event, ResourceUpdated) else "list"
                    )

            tasks.start_soon(forward)
            yield heard
            tasks.cancel_scope.cancel()
        await client.list_tools()  # answered after all that was sent before the subscription ended


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_who_listens_hears_of_their_own_space_alone_not_even_that_others_write(
    home: Path, era: Any, transport: str
) -> None:
    settings = load_settings({}, home=home, embedder="none")
    async with served(settings, transport) as (url, server), AsyncExitStack() as stack:
        memory = await server.memory.get()
        token = (await memory.create_token("us", spaces=[MINE], right="admin"))[1]
        heard = await stack.enter_async_context(hearing(url, token, era, transport))
        theirs, ours = memory.in_space(THEIRS), memory.in_space(MINE)
        await theirs.remember("Written by a stranger.", typed=True)
        await theirs.record_turns([NewTurn(role="user", content="Hello.")], session="theirs")
        await theirs.offload_tool_result("run", "42 passed", task="Mend it", session="theirs")
        await until_looked(server, memory)
        mark = f"memory://atom/{(await ours.remember('Written by us.', typed=True)).atom.id}"
        with anyio.fail_after(WAIT):
            while mark not in heard:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        # What was sent before it has come before it.
        assert set(heard) <= {mark, "memory://persona", "memory://status"}


async def until_looked(server: MemoryServer, memory: Memory) -> None:
    heard = {space: feed for space, feed in server.updates._feeds.items() if feed.has_listeners}
    now = await memory.last_changes([*heard])
    with anyio.fail_after(WAIT):
        while any(feed.after != now[space] for space, feed in heard.items()):
            server.updates.written()
            await anyio.sleep(0.01)
