"""The command `tools`: hostile calls over the real protocol, to real processes, until time is over.

Two servers run on one home: over stdio and over HTTP. The SDK's clients of both generations call each, and raw lines
and raw requests are sent that no SDK writes. A few calls are made at a time. Afterwards the servers must end cleanly,
and `doctor` and `verify` must report nothing about the home.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, cast

import anyio
import anyio.from_thread
import anyio.to_thread
import httpx2
import mcp.types as wire
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from mcp import Client, MCPDeprecationWarning, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tqdm import tqdm

from bench.fuzz import oracle
from bench.fuzz.calls import Act, Seen, acts, filled
from bench.fuzz.serving import Lines, http_server, posted
from mcp_memory.core.text import well_formed

_ANSWER_SECONDS = 60.0
_ROUND = 100
_SHOWN = 3_000
_TOLD_APART = 80
"""Two troubles whose first characters, this many, are equal count as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A problem, and the acts that were in progress, as JSON."""

    what: str
    acts: str = ""
    log: str = ""


@dataclass
class _Hunt:
    """Clients of servers on one home, and the problems found."""

    clients: Sequence[Client]
    raw: Callable[[str], Any]
    post: Callable[[str], Any]
    schemas: dict[str, Any]
    logs: Sequence[Path]
    seen: Seen = field(default_factory=Seen)
    calls: int = 0
    found: dict[str, Trouble] = field(default_factory=dict[str, Trouble])
    read: dict[Path, int] = field(default_factory=dict[Path, int])

    async def together(self, some: Sequence[Act]) -> None:
        """Perform some acts concurrently, then check the logs."""
        told = [(act, filled(act.arguments, self.seen)) for act in some]
        words = json.dumps([[act.what, act.name, arguments] for act, arguments in told], default=str)[:_SHOWN]
        async with anyio.create_task_group() as tasks:
            for act, arguments in told:
                tasks.start_soon(self._once, act, arguments, words)
        for log in self.logs:
            size = log.stat().st_size
            if size > self.read.get(log, 0):
                text = log.read_bytes()[self.read.get(log, 0) : size].decode("utf-8", "replace")
                for trouble in oracle.log_troubles(text):
                    self._note(trouble, words, text[-_SHOWN:])
                self.read[log] = size

    def _note(self, what: str, words: str, log: str = "") -> None:
        self.found.setdefault(what[:_TOLD_APART], Trouble(what=what, acts=words, log=log))

    async def _once(self, act: Act, arguments: Any, words: str) -> None:
        self.calls += 1
        who = f"{act.what} {act.name}".strip()
        try:
            with anyio.fail_after(_ANSWER_SECONDS):
                await self._do(act, arguments, words)
        except TimeoutError:
            self._note(f"{who}: no answer within {_ANSWER_SECONDS:.0f} s", words)
        except MCPError as error:
            for trouble in oracle.of_error(who, error):
                self._note(trouble, words)
        except Exception as error:  # noqa: BLE001 whatever the client met is what is looked for
            self._note(f"{who}: the client met {type(error).__name__}: {str(error)[:300]}", words)

    async def _do(self, act: Act, arguments: Any, words: str) -> None:
        client = self.clients[act.connection % len(self.clients)]
        arguments = _sendable(arguments)
        match act.what:
            case "tool":
                answer = await client.call_tool(act.name, arguments)
                for trouble in oracle.of_answer(act.name, answer, self.schemas.get(act.name)):
                    self._note(trouble, words)
                told: Any = answer.structured_content
                if isinstance(told, dict):
                    self.seen.note(cast("dict[str, Any]", told))
            case "resource":
                await client.read_resource("".join(map(str, arguments)))
            case "prompt":
                await client.get_prompt(act.name, {key: str(value) for key, value in arguments.items()})
            case "complete":
                name, value = arguments
                place = (
                    wire.ResourceTemplateReference(uri=act.name)
                    if act.name.startswith("memory://")
                    else wire.PromptReference(name=act.name)
                )
                await client.complete(place, {"name": name, "value": str(value)})
            case "list":
                await _lists(client)[act.name]()
            case "watch":
                await _watch(client, "".join(map(str, arguments)))
            case "line":
                for trouble in [await self.raw(arguments), await self.post(arguments)]:
                    if trouble:
                        self._note(trouble, words)


def _lists(client: Client) -> dict[str, Callable[[], Any]]:
    return {
        "tools": client.list_tools,
        "resources": client.list_resources,
        "prompts": client.list_prompts,
        "templates": client.list_resource_templates,
    }


async def _watch(client: Client, uri: str) -> None:
    if client.mode == "legacy":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await client.session.subscribe_resource(uri)  # pyright: ignore[reportDeprecated]
            await client.session.unsubscribe_resource(uri)  # pyright: ignore[reportDeprecated]
    else:
        async with client.listen(resource_subscriptions=[uri]):
            pass


def _sendable(value: Any) -> Any:
    """Return the value without lone surrogates, which the SDK's clients cannot write; raw lines may contain them."""
    if isinstance(value, str):
        return value if well_formed(value) else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_sendable(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {_sendable(key): _sendable(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


# --- the hunt ---------------------------------------------------------------------------------------


@asynccontextmanager
async def _served(home: Path, folder: Path, more: Mapping[str, str]) -> AsyncGenerator[_Hunt]:
    """Start both servers, and connect two clients to each."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MCP_MEMORY_")}
    env |= {"MCP_MEMORY_HOME": str(home), "MCP_MEMORY_RATE_LIMIT": "0", "MCP_MEMORY_LOG_CONTENTS": "true", **more}
    serve = ["-m", "mcp_memory", "serve"]
    logs = [folder / name for name in ("stdio.log", "other-stdio.log", "raw.log", "http.log")]
    async with AsyncExitStack() as stack:
        with_logs = [stack.enter_context(log.open("w", encoding="utf-8")) for log in logs]
        parameters = StdioServerParameters(command=sys.executable, args=serve, env=env)
        raw = await stack.enter_async_context(Lines.opened([sys.executable, *serve], env, with_logs[2]))
        url = await stack.enter_async_context(http_server([sys.executable, *serve], env, with_logs[3], logs[3]))
        poster = await stack.enter_async_context(httpx2.AsyncClient(timeout=_ANSWER_SECONDS))
        clients = [
            await stack.enter_async_context(Client(stdio_client(parameters, errlog=with_logs[0]))),
            await stack.enter_async_context(Client(stdio_client(parameters, errlog=with_logs[1]), mode="legacy")),
            await stack.enter_async_context(Client(streamable_http_client(url))),
            await stack.enter_async_context(Client(streamable_http_client(url), mode="legacy")),
        ]
        tools = (await clients[0].list_tools()).tools
        hunt = _Hunt(
            clients=clients,
            raw=raw.answered,
            post=partial(posted, poster, url),
            schemas={tool.name: tool.output_schema for tool in tools},
            logs=logs,
        )
        yield hunt
        for trouble in await raw.end():
            hunt.found.setdefault(trouble, Trouble(what=trouble))


async def hunted(
    home: Path,
    *,
    seconds: float,
    start: int,
    rounds: int = sys.maxsize,
    most: int = _ROUND,
    env: Mapping[str, str] | None = None,
) -> tuple[int, list[Trouble]]:
    """Send calls for some seconds, or `rounds` rounds of up to `most` draws; return their number and the problems.

    `env` is added to the environment of the servers.
    """
    with TemporaryDirectory(prefix="fuzz-") as folder:
        async with _served(home, Path(folder), env or {}) as hunt:
            tools = {tool.name: tool.input_schema for tool in (await hunt.clients[0].list_tools()).tools}
            prompts = [prompt.name for prompt in (await hunt.clients[0].list_prompts()).prompts]
            drawn = st.lists(acts(tools, prompts, len(hunt.clients)), min_size=1, max_size=3)
            end = monotonic() + seconds
            with tqdm(desc="tools", unit="call", leave=False) as bar:
                for number in range(start, start + rounds):
                    await anyio.to_thread.run_sync(partial(_round, hunt, drawn, number, most, end))
                    bar.update(hunt.calls - bar.n)
                    if monotonic() > end:
                        break
    troubles = [Trouble(what=what) for what in await oracle.home_troubles(home)]
    return hunt.calls, [*hunt.found.values(), *troubles]


def _round(hunt: _Hunt, drawn: st.SearchStrategy[list[Act]], number: int, most: int, end: float) -> None:
    """Run a round in a thread, since hypothesis calls plain functions; the acts run in the event loop."""

    @seed(number)
    @settings(
        max_examples=most,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(drawn)
    def some(of: list[Act]) -> None:
        if monotonic() < end:
            anyio.from_thread.run(hunt.together, of)

    run: Any = some
    run()


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="bench.fuzz tools", description="Ask real servers what may break them.")
    parser.add_argument("--minutes", type=float, default=5, help="[default: %(default)s]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--home", type=Path, metavar="DIR", help="keep the home there")
    options = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="fuzz-home-") as folder:
        home = options.home or Path(folder) / "home"
        calls, found = anyio.run(partial(hunted, home, seconds=options.minutes * 60, start=options.seed))
    print(
        f"{calls:,} calls over stdio and HTTP, both generations, raw lines and requests: {len(found) or 'no'} findings"
    )
    for trouble in found:
        print("\n".join(part for part in (f"\n{trouble.what}", trouble.acts, trouble.log) if part))
    return int(bool(found))
