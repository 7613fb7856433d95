"""The audit log names who did what to which rows, and never shows a word of anybody."""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
import pytest
from click.testing import CliRunner
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from mcp_memory.cli.main import program
from mcp_memory.core import audit, metrics
from mcp_memory.core.config import Settings, load_settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.server.mcp_server import MemoryServer
from mcp_memory.server.tools import TOOLS
from mcp_memory.service.memory import open_memory
from mcp_memory.testing import FixedClock
from tests.server.answers import answer_of
from tests.server.served import bearer, served
from tests.ui.browsing import browsing

pytestmark = pytest.mark.anyio
CANARY = "quetzalcoatlus"
FIELDS = {"at", "who", "space", "verb", "outcome", "ids", "more_ids"}


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "audit.jsonl"
    audit.set_up(str(path))
    yield path
    audit.set_up(None)


def settings_of(tmp_path: Path, **more: Any) -> Settings:
    return load_settings({}, home=tmp_path / "home", embedder="none", **more)


def lines_of(log: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(line.keys() <= FIELDS for line in lines)
    return lines


def last(log: Path) -> dict[str, Any]:
    line = lines_of(log)[-1]
    datetime.fromisoformat(line.pop("at"))
    return line


# --- what a line says -------------------------------------------------------------------------------


async def test_a_call_with_a_token_names_its_client_its_space_and_the_rows(tmp_path: Path, log: Path) -> None:
    settings = settings_of(tmp_path)
    async with served(settings) as (url, server):
        memory = await server.memory.get()
        token, text = await memory.create_token("Maya's laptop", spaces=["work"])
        async with bearer(text) as http, Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
            told = answer_of(await client.call_tool("remember", {"text": "The ferry leaves at nine."}))
            id = told["atom"]["id"]
            who = f"token {token.id} Maya's laptop"
            assert last(log) == {
                "who": who,
                "space": "work",
                "verb": "remember",
                "outcome": "ok",
                "ids": [id, told["atom"]["evidence"]],
            }
            await client.read_resource(f"memory://atom/{id}")
            assert last(log) == {
                "who": who, "space": "work", "verb": "resource atom", "outcome": "ok", "ids": [id]
            }  # fmt: skip
            await client.call_tool("forget", {"ids": [id]})
            assert last(log) == {"who": who, "space": "work", "verb": "forget", "outcome": "Refused", "ids": [id]}
            await client.call_tool("expand_node", {"ref": "a99"})
            assert last(log) == {
                "who": who, "space": "work", "verb": "expand_node", "outcome": "NotFound", "ids": ["a99"]
            }  # fmt: skip
        async with bearer("mcm_wrong_token") as http:
            assert (await http.post(f"{url}/mcp", json={})).status_code == 401
    assert last(log) == {"who": "address 127.0.0.1", "verb": "enter", "outcome": "rejected 401", "ids": []}


async def test_a_rejected_request_names_the_client_behind_a_proxy_and_the_token_if_it_is_known(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = {"X-Forwarded-For": "203.0.113.9, 198.51.100.7"}
    async with served(settings_of(tmp_path)) as (url, server):
        token, text = await (await server.memory.get()).create_token("laptop", spaces=["work"])
        async with bearer("mcm_wrong_token", **behind) as http:
            assert (await http.post(f"{url}/mcp", json={})).status_code == 401
        assert last(log)["who"] == "address 198.51.100.7"
        async with bearer(text, **behind) as http:
            assert (await http.post(f"{url}/mcp?space=other", json={})).status_code == 403
        assert (last(log)["who"], last(log)["outcome"]) == (f"token {token.id} laptop", "rejected 403")
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "198.51.100.0/24")
    async with served(settings_of(tmp_path)) as (url, _), bearer("mcm_wrong_token", **behind) as http:
        assert (await http.post(f"{url}/mcp", json={})).status_code == 401
    assert last(log)["who"] == "address 127.0.0.1"


async def test_calls_over_stdio_are_those_of_the_user_of_this_machine(tmp_path: Path, log: Path) -> None:
    server = MemoryServer(settings_of(tmp_path))
    async with server.hold_open(), Client(server) as client:
        stored = answer_of(
            await client.call_tool("record_turns", {"turns": [{"role": "user", "content": "Hello, Tove here."}]})
        )
    assert last(log) == {
        "who": f"user {getpass.getuser()}",
        "space": "default",
        "verb": "record_turns",
        "outcome": "ok",
        "ids": stored["stored"],
    }


async def test_the_space_that_an_operator_works_on_is_in_the_log(tmp_path: Path, log: Path) -> None:
    async with served(settings_of(tmp_path)) as (url, server):
        _, text = await (await server.memory.get()).create_token("ops", right="operator")
        async with bearer(text) as http, Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
            await client.call_tool("verb.create_space", {"space": "team"})
            assert (last(log)["verb"], last(log)["space"]) == ("verb.create_space", "team")
            made = answer_of(await client.call_tool("verb.create_token", {"name": CANARY, "spaces": ["team"]}))
            assert (last(log)["verb"], last(log)["ids"]) == ("verb.create_token", [made["result"][0]["id"]])
            await client.call_tool("verb.delete_space", {"space": CANARY})
            assert (last(log)["outcome"], last(log)["space"]) == ("NotFound", "default")
    assert CANARY not in log.read_text()


async def test_pages_and_their_actions_are_in_the_log(home: Path, log: Path) -> None:
    async with browsing(home) as browser:
        assert (await browser.do("remember", text=CANARY, kind="persona")).status_code == 303
        assert {"a1"} == {*last(log)["ids"]}
        assert last(log)["verb"] == "action remember"
        await browser.do("forget", ids="a1", reason=CANARY)
        assert (last(log)["verb"], last(log)["ids"][0]) == ("action forget", "a1")
        await browser.open(f"/search?q={CANARY}")
        assert last(log)["verb"] == "page"
        await browser.open("/a1")
        assert (last(log)["verb"], last(log)["ids"]) == ("page", ["a1"])
        await browser.do(CANARY, text=CANARY)
        assert (last(log)["verb"], last(log)["outcome"]) == ("action", "NotFound")
    assert CANARY not in log.read_text()


def test_commands_are_in_the_log_with_their_outcome(tmp_path: Path) -> None:
    log, home = tmp_path / "audit.jsonl", tmp_path / "home"

    def run(*arguments: str) -> int:
        return (
            CliRunner(env={"MCP_MEMORY_AUDIT_LOG": str(log), "MCP_MEMORY_EMBEDDER": "none"})
            .invoke(program, ["--home", str(home), *arguments], prog_name="mcp-memory")
            .exit_code
        )

    try:
        assert run("remember", CANARY) == 0
        assert run("--space", "work", "token", "create", "--name", "laptop") == 0
        assert run("token", "revoke", "nobody") == 1
        assert run("forget", "a1", "--reason", CANARY) == 0
        assert run("recall", CANARY) == 1
        assert run("space", "delete", "work", "--yes") == 1
        assert run("--help") == 0
    finally:
        audit.set_up(None)
    assert CANARY not in log.read_text()
    token = lines_of(log)[1]["ids"][0]
    assert re.fullmatch("[0-9a-f]{8}", token)
    found = [(line["verb"], line["outcome"], line["space"], line["ids"][:1]) for line in lines_of(log)]
    assert found == [
        ("remember", "ok", "default", ["a1"]),
        ("token create", "ok", "work", [token]),
        ("token revoke", "NotFound", "default", []),
        ("forget", "ok", "default", ["a1"]),
        ("recall", "NotFound", "default", []),
        ("space delete", "NotFound", "work", []),
    ]


# --- no contents ------------------------------------------------------------------------------------

_FREE_TEXT = {
    "record_turns": {"turns": [{"role": "user", "content": CANARY, "name": CANARY, "id": CANARY}], "session": CANARY},
    "remember": {"text": CANARY, "entity": CANARY, "relation": CANARY, "value": CANARY},
    "offload_tool_result": {"tool_name": CANARY, "result": CANARY, "task": CANARY, "step": CANARY, "session": CANARY},
    "distill": {"work_id": CANARY, "reply": CANARY},
    "forget": {"query": CANARY, "dry_run": False},
}


async def test_no_text_of_a_call_reaches_the_log_whether_it_succeeds_or_fails(tmp_path: Path, log: Path) -> None:
    server = MemoryServer(settings_of(tmp_path))
    async with server.hold_open(), Client(server) as client:
        for tool in TOOLS:
            texts = {
                name: CANARY
                for name, schema in cast("dict[str, Any]", tool.definition.input_schema["properties"]).items()
                if '"string"' in json.dumps(schema)
            }
            for arguments in (_FREE_TEXT.get(tool.name, {}), texts, {CANARY: CANARY}):
                await client.call_tool(tool.name, arguments)
        await client.call_tool(CANARY, {CANARY: CANARY})
        for kind in ("scene", "canvas", "session", "atom", "ref", CANARY):
            for ask in (f"memory://{kind}/{CANARY}", f"memory://{kind}?{CANARY}={CANARY}"):
                with pytest.raises(MCPError):
                    await client.read_resource(ask)
        for name in ("recall", CANARY):
            with pytest.raises(MCPError):
                await client.get_prompt(name, {CANARY: CANARY})
        await client.get_prompt("recall", {"topic": CANARY})
    assert CANARY not in log.read_text()
    seen = {(line["verb"], line["outcome"]) for line in lines_of(log)}
    assert {tool.name for tool in TOOLS} | {"tools/call", "prompt recall", "resource unknown"} <= {
        verb for verb, _ in seen
    }
    assert {(tool.name, "ok") for tool in TOOLS} - seen <= {
        ("distill", "ok"),
        ("expand_node", "ok"),
        ("fold_canvas", "ok"),
    }
    assert {(tool.name, "InvalidInput") for tool in TOOLS} <= seen


def test_only_what_has_the_form_of_an_id_is_one() -> None:
    given = {
        "ids": ["t12", "a5 and more", "4711 is my pin", "r-9f2c1a7b3d4e:120-134", "personal:a7", "a0"],
        "node": "003-N4",
        "text": "t13",
        "turns": [{"id": "t14"}],
        "atom": {"id": "a6", "text": "a8"},
    }
    assert audit.ids_in(given) == ("t12", "r-9f2c1a7b3d4e:120-134", "personal:a7", "003-N4", "t14", "a6")
    assert audit.ids_in(given, nested=False) == ("t12", "r-9f2c1a7b3d4e:120-134", "personal:a7", "003-N4")


# --- the file ---------------------------------------------------------------------------------------


def failures() -> int:
    return int(re.search(r"^mcp_memory_audit_failures_total (\d+)$", metrics.text(), re.MULTILINE)[1])  # type: ignore[index]


def line(outcome: str = "ok") -> None:
    audit.write(who="user maya", verb="recall", outcome=outcome)


def test_a_file_that_was_renamed_is_opened_anew_and_is_for_its_owner_alone(log: Path) -> None:
    line("first")
    rotated = log.rename(log.with_suffix(".1"))
    line("second")
    log.unlink()
    line("third")
    assert [re.search('"outcome":"(.*?)"', path.read_text())[1] for path in (rotated, log)] == ["first", "third"]  # type: ignore[index]
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_line_that_cannot_be_written_is_counted_and_the_call_goes_on(log: Path) -> None:
    log.unlink()
    log.mkdir()
    before = failures()
    line()
    assert failures() == before + 1
    log.rmdir()
    line()
    assert len(lines_of(log)) == 1


def test_a_log_in_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="audit_log"):
        audit.set_up(str(tmp_path / "nowhere" / "audit.jsonl"))


async def test_lines_are_dated_by_the_clock_of_the_memory(home: Path, log: Path) -> None:
    async with open_memory(home=home, embedder="none", now=FixedClock(datetime(2030, 1, 1, tzinfo=UTC))):
        await anyio.to_thread.run_sync(line)
    async with open_memory(home=home, embedder="none"):
        await anyio.to_thread.run_sync(line)
    first, second = (datetime.fromisoformat(entry["at"]) for entry in lines_of(log))
    assert first == datetime(2030, 1, 1, tzinfo=UTC)
    assert second.year < 2030


def test_many_ids_are_cut_and_counted(log: Path) -> None:
    audit.write(who="user maya", verb="forget", outcome="ok", ids=tuple(f"t{n}" for n in range(1, 251)))
    (entry,) = lines_of(log)
    assert (len(entry["ids"]), entry["more_ids"]) == (audit.MOST_IDS, 150)
