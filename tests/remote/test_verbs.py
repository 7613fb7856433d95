"""The memory of a server from another machine: the same answers and errors, the rights of the token, no secrets sent."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from mcp_memory.core.errors import InvalidInput, NotFound, Refused, ServerAway, ServerRefused
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers.history import statement_atoms
from mcp_memory.integrations.importers.records import ImportedStatement
from mcp_memory.server.verb_tools import verb_tools
from mcp_memory.service.memory import Memory
from mcp_memory.service.remote.verbs import VERBS, answer_type
from mcp_memory.store.values import FollowedLog
from tests.remote.team_server import TeamServer, answering, on_laptop, team_server

KEY = "AKIAIOSFODNN7EXAMPLQ"
SAID = NewTurn(role="user", content="The harbour master of Torvik is Odd Berge.", client_id="c1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with team_server(tmp_path_factory.mktemp("team") / "server") as running:
        yield running


def test_each_verb_is_declared_as_it_is() -> None:
    for name, (declaration, _) in VERBS.items():
        real = inspect.signature(getattr(Memory, name)).parameters
        for parameter in inspect.signature(declaration).parameters.values():
            assert (parameter.kind, parameter.default) == (real[parameter.name].kind, real[parameter.name].default)
        TypeAdapter(answer_type(declaration))
    assert {tool.name for tool in verb_tools().values()} == {f"verb.{name}" for name in VERBS}


def test_a_laptop_gets_the_answers_that_the_server_itself_gives(server: TeamServer, home: Path) -> None:
    token = server.token("answers", "answers")

    async def use(memory: Memory) -> list[Any]:
        first = await memory.record_turns([SAID], session="s")
        again = await memory.record_turns([SAID], session="s")
        kept = await memory.keep_tool_result("Bash", b"\xff\x00line\n" * 50, session="s", tool_call_id="call")
        said = await memory.remember("Odd Berge likes tea.", typed=True)
        found = await memory.conversation_search("harbour master")
        [hit] = (await memory.find("harbour master", layers=["turn"], limit=1)).hits
        assert (hit.id, hit.text, hit.neighbours) == (found.hits[0].turn.id, found.hits[0].turn.content, [])
        recalled = await memory.recall_beyond("Who is harbour master of Torvik?", known="", session="other")
        return [first, again, kept, said, found, recalled, await memory.kept_calls("s", ["call", "none"])]

    first, again, kept, said, found, recalled, calls = on_laptop(home, server.url, token, use)
    assert (len(first.stored), again.duplicates, calls) == (1, 1, {"call"})
    assert "Odd Berge" in recalled.dynamic
    assert said.atom.held == ()

    async def look(memory: Memory) -> list[Any]:
        inside = memory.in_space("answers")
        hits = (await inside.conversation_search("harbour master")).hits
        return [hits, await inside.atom(said.atom.id), (await inside.ref(kept.id))[1]]

    hits, atom, data = server.ask(look)
    assert (hits, atom, data) == (found.hits, said.atom, b"\xff\x00line\n" * 50)


def test_errors_are_those_of_the_server(server: TeamServer, home: Path) -> None:
    token = server.token("errors")

    async def wrong(memory: Memory) -> None:
        with pytest.raises(NotFound, match="There is no session 'none'"):
            await memory.session_turns("none")
        with pytest.raises(InvalidInput, match="limit is 99"):
            await memory.conversation_search("x", limit=99)
        with pytest.raises(Refused, match="This runs on the server"):
            await memory.purge()
        with pytest.raises(Refused, match="Notes are what"):
            await memory.record_turns([NewTurn(role="note", content="He is rich.")])

    on_laptop(home, server.url, token, wrong)


def test_a_token_has_its_right_and_its_spaces_and_no_more(server: TeamServer, home: Path) -> None:
    reading, writing = server.token("reads", right="read"), server.token("writes")

    async def record(memory: Memory) -> None:
        await memory.record_turns([SAID])

    with pytest.raises(ServerRefused, match="record_turns needs the right write, and this client has read"):
        on_laptop(home, server.url, reading, record)
    with pytest.raises(ServerRefused, match="forget needs the right admin"):
        on_laptop(home, server.url, writing, lambda memory: memory.forget(["t1"]))
    for settings in ({"space": "other"}, {"space": "default", "personal_space": "other"}):
        with pytest.raises(ServerRefused, match=r"'other' is not a space of this token\. Its spaces: default"):
            on_laptop(home, server.url, writing, record, **settings)
    with pytest.raises(ServerRefused, match=r"\(HTTP 401\)\. This token is unknown, has ended or was revoked"):
        on_laptop(home, server.url, "mcm_0000_wrong", record)
    with pytest.raises(Refused, match="There is no token for http"):
        on_laptop(home, server.url, "", record)
    status = on_laptop(home, server.url, reading, lambda memory: memory.status())
    assert (status["access"]["right"], "spaces" in status, "home" in status) == ("read", False, False)


def test_the_personal_memory_of_the_token_is_beside_that_of_the_project(server: TeamServer, home: Path) -> None:
    token = server.token("two", "проект", "me")
    both = {"space": "проект", "personal_space": "me"}
    on_laptop(home, server.url, token, lambda memory: memory.remember("Odd likes tea.", typed=True), space="me")
    found = on_laptop(home, server.url, token, lambda memory: memory.recall_answer("What does Odd like?"), **both)
    assert "Odd likes tea." in found.stable + found.dynamic
    alone = on_laptop(
        home, server.url, token, lambda memory: memory.recall_answer("What does Odd like?"), space="проект"
    )
    assert "Odd likes tea." not in alone.stable + alone.dynamic


def test_no_secret_and_no_private_passage_leaves_the_laptop(home: Path) -> None:
    heard: list[bytes] = []

    async def say(memory: Memory) -> None:
        connection: Any = getattr(memory, "connection")  # noqa: B009 of a remote memory only
        spy = connection.call

        def call(verb: str, arguments: Any, **more: Any) -> Any:
            heard.append(repr(arguments).encode())
            return spy(verb, arguments, **more)

        connection.call = call
        secret = f"My key is {KEY}. <private>I am ill.</private> Good night."
        arguments = {"command": f"deploy --token {KEY}", "password": "hunter2-Torvik"}
        for ask in (
            lambda: memory.record_turns([NewTurn(role="user", content=secret)]),
            lambda: memory.keep_tool_result("Bash", f"AWS_KEY={KEY}\n", arguments=arguments),
            lambda: memory.keep_tool_result("Bash", f"AWS_KEY={KEY}\n\xff".encode("latin-1")),
            lambda: memory.recall_beyond(secret, known="", session="s"),
        ):
            with pytest.raises(ServerAway):
                await ask()
        with pytest.raises(InvalidInput, match="Nothing was sent or stored"):
            await memory.remember(f"The key is {KEY}.")

    with answering((500, b"no", {})) as url:
        on_laptop(home, url, "token", say)
    assert len(heard) == 4
    for secret in (KEY.encode(), b"I am ill", b"hunter2"):
        assert secret not in b"".join(heard)


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (500, b"<h1>Internal Server Error</h1>", "text/html", "HTTP 500, text/html"),
        (200, b"<html>Sign in</html>", "text/html", "HTTP 200, text/html. Is it the address of mcp-memory"),
        (404, b"{}", "application/json", "HTTP 404, application/json. Is it the address"),
        (200, b"not json", "application/json", "HTTP 200, application/json"),
        (503, b'{"error": {"message": "Try again."}}', "application/json", "Try again."),
        (302, b"", "text/plain", "HTTP 302"),
        (503, b"<h1>503</h1>", "text/html", "reaches no server now (HTTP 503). Try again later."),
    ],
)
def test_what_is_no_answer_of_a_memory_is_told(home: Path, status: int, body: bytes, kind: str, says: str) -> None:
    with answering((status, body, {"Content-Type": kind})) as url, pytest.raises(ServerAway) as raised:
        on_laptop(home, url, "token", lambda memory: memory.undistilled())
    assert says in str(raised.value)


def test_a_server_that_does_not_allow_its_address_says_which_setting_does(home: Path) -> None:
    body = b'{"error": {"message": "The host is not allowed by MCP_MEMORY_ALLOWED_HOSTS."}}'
    with answering((421, body, {})) as url, pytest.raises(ServerRefused, match=r"421\). The host is .*ALLOWED_HOSTS"):
        on_laptop(home, url, "token", lambda memory: memory.undistilled())


def test_a_request_over_the_rate_waits_as_the_server_says(home: Path) -> None:
    body = b'{"error": {"message": "Too many requests. Try again in 1 s."}}'
    busy = (429, body, {"Retry-After": "0"})
    with answering(busy, busy, (500, b"", {})) as url, pytest.raises(ServerAway, match="HTTP 500"):
        on_laptop(home, url, "token", lambda memory: memory.undistilled())
    with answering((429, body, {"Retry-After": "3600"})) as url, pytest.raises(ServerAway, match="Too many requests"):
        on_laptop(home, url, "token", lambda memory: memory.undistilled())


def test_a_server_that_is_gone_or_cut_off_is_told_and_found_again(server: TeamServer, home: Path) -> None:
    token = server.token("cut")

    async def use(memory: Memory) -> None:
        await memory.undistilled()
        server.proxy.cut()
        await memory.undistilled()  # on a new connection
        server.proxy.refuse()
        server.proxy.cut()
        with pytest.raises(ServerAway, match="cannot be reached: Connection refused"):
            await memory.undistilled()
        server.proxy.accept()
        await memory.undistilled()
        server.proxy.cut_after(b"verb.record_turns")
        assert (await memory.record_turns([SAID], session="cut")).duplicates == 1  # sent once more, and recognised

    on_laptop(home, server.url, token, use)


def test_imported_statements_are_imported_whatever_a_client_says(server: TeamServer, home: Path) -> None:
    token, now = server.token("imports"), datetime.now(UTC)
    [plain] = statement_atoms(
        [ImportedStatement(text="Odd lives in Torvik.", about=("Odd",), where="1")], session="s", now=now
    )

    async def use(memory: Memory) -> None:
        assert (await memory.tell([plain])).stored == 1
        for forged in ({"source": "user"}, {"kind": "instruction"}, {"supersedes": ["a1"]}):
            with pytest.raises(Refused, match="has no evidence here"):
                await memory.tell([replace(plain, atom=replace(plain.atom, **forged))])

    on_laptop(home, server.url, token, use)


def test_how_far_logs_were_read_is_noted_here_and_never_sent(home: Path) -> None:
    at = datetime.now(UTC)
    log = FollowedLog(
        path="/home/odd/log.jsonl", client="codex", session="s", offset=3, head="h", tail="t", state="{}", at=at
    )

    async def use(memory: Memory) -> list[Any]:
        await memory.note_followed(log)
        secrets = [await memory.secret("logs"), await memory.secret("logs"), await memory.secret("files")]
        return [await memory.followed_logs(), await memory.followed_logs(path="/elsewhere"), secrets]

    logs, others, secrets = on_laptop(home, "http://127.0.0.1:1", "token", use)
    assert (logs, others, secrets[0] == secrets[1], secrets[0] == secrets[2]) == ([log], [], True, False)
    files = [path for path in (home / "servers").rglob("*") if path.is_file()]
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)
    assert len(files) == 2
