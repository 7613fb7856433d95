"""Commands, `install`, the bridge and `wrap` of a laptop whose memory is on a server."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import anyio.to_thread
import pytest
from click.testing import CliRunner, Result
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from mcp_memory import __version__
from mcp_memory.cli.main import program
from mcp_memory.core.server_address import parse_address
from tests.remote.team_server import TeamServer, answering, team_server

Run = Callable[..., Result]
ANSWER = "The harbour master of Torvik is Odd Berge."
_MOVING = ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "COPILOT_HOME")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with team_server(tmp_path_factory.mktemp("team") / "server") as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for variable in _MOVING:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MCP_MEMORY_EMBEDDER", "none")
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(program, arguments, input=stdin, prog_name="mcp-memory")

    return call


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Set the server and the token of the laptop."""

    def choose(url: str, token: str) -> None:
        monkeypatch.setenv("MCP_MEMORY_SERVER", url)
        monkeypatch.setenv("MCP_MEMORY_SERVER_TOKEN", token)

    return choose


def test_commands_ask_the_server(server: TeamServer, run: Run, use: Callable[[str, str], None], tmp_path: Path) -> None:
    token = server.token("commands", "commands")
    ref = server.ask(lambda memory: memory.in_space("commands").keep_tool_result("Bash", b"one\ntwo\n"))
    use(server.url, token)
    assert "Stored as a" in run("remember", ANSWER).output
    assert "Odd Berge" in run("recall", "Who is harbour master of Torvik?").output
    assert "Odd Berge" in run("search", "harbour master").output
    history = tmp_path / "history.jsonl"
    turns = [
        {"role": "user", "content": f"Boat {number} is in the harbour.", "session": "boats"} for number in range(3)
    ]
    history.write_text("\n".join(map(json.dumps, turns)))
    assert "3 turns" in run("import", str(history), "--dry-run").output
    assert "3 stored" in run("import", str(history)).output
    assert "nothing new" in run("import", str(history)).output
    assert "0 stored, 3 were there before" in run("import", str(history), "--again").output
    shown = run("show", "session", "boats")
    assert "Boat 2" in shown.output
    assert run("show", "ref", ref.id).output == "one\ntwo\n"
    status = run("status")
    assert "commands, with the right write" in status.output
    assert "nothing waits for the server" in status.output
    assert json.loads(run("status", "--json").output)["counts"]["turns"] >= 3
    assert not (tmp_path / ".mcp-memory" / "memory.db").exists()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("backup",), "works on the files of a memory, and this one is on"),
        (("doctor", "--repair"), "works on the files of a memory"),
        (("purge", "--all", "--yes"), "This runs on the server"),
        (("forget", "t1"), "needs the right admin"),
        (("token", "list"), "needs the right operator"),
        (("ui",), "The pages of this memory are on its server: open http://127.0.0.1"),
        (("serve", "--transport", "http"), "`server` is set"),
        (("import", "--project", "."), "they stay on it"),
    ],
)
def test_commands_on_files_of_the_memory_refuse(
    server: TeamServer, run: Run, use: Callable[[str, str], None], command: tuple[str, ...], says: str
) -> None:
    use(server.url, server.token(f"refused-{'-'.join(command)}"))
    result = run(*command)
    assert result.exit_code in (1, 2)
    assert says in " ".join(result.output.split())


def test_doctor_tells_what_the_token_may_and_why_a_server_cannot_be_used(
    server: TeamServer, run: Run, use: Callable[[str, str], None]
) -> None:
    writing, reading = server.token("doctor"), server.token("doctor-reads", right="read")
    use(server.url, writing)
    checks = {check["name"]: check for check in json.loads(run("doctor", "--json").output)["checks"]}
    found = {name: checks[name]["state"] for name in ("server", "rights", "version", "clock", "queue")}
    assert found == dict.fromkeys(("server", "rights", "version", "clock", "queue"), "ok")
    assert "ms for a request" in checks["latency"]["found"]
    use(server.url, reading)
    assert "has only the right read" in run("doctor").output
    use(server.url, "mcm_0_wrong")
    wrong = run("doctor")
    assert wrong.exit_code == 1
    assert "This token is unknown, has ended or was revoked." in " ".join(wrong.output.split())
    with answering((200, b"<html>Sign in</html>", {"Content-Type": "text/html"})) as url:
        use(url, "token")
        assert "Is it the address of mcp-memory" in run("doctor").output


def test_status_without_the_server_tells_what_waits(run: Run, use: Callable[[str, str], None], tmp_path: Path) -> None:
    use("http://127.0.0.1:1", "token")
    waiting = tmp_path / ".mcp-memory" / "hooks" / "waiting"
    waiting.mkdir(parents=True)
    note = waiting / "0.json"
    note.write_text("{}")
    assert "1 conversation waits to be stored since 20" in run("status").output  # however short
    assert "1 conversation waits to be stored since 20" in run("doctor").output
    os.utime(note, (1_000_000_000, 1_000_000_000))
    result = run("status")
    assert result.exit_code == 1
    assert "cannot be reached: Connection refused" in " ".join(result.output.split())
    assert "1 conversation waits to be stored since 2001-09-09" in result.output


def test_a_server_whose_writes_fail_is_told_by_status_and_doctor(run: Run, use: Callable[[str, str], None]) -> None:
    counts = dict.fromkeys(("turns", "sessions", "current", "scenes", "records", "canvases"), 0)
    access = {"right": "write", "space": "me", "now": datetime.now(UTC).isoformat()}
    status = {
        "access": access,
        "counts": counts,
        "held": 0,
        "quotas": [{"what": "turns", "most": 6, "used": 6}],
        "version": __version__,
        "write_problem": "No standby confirms writes.",
    }
    bodies = [json.dumps({"result": {"structuredContent": {"result": result}}}).encode() for result in (status, [])]
    answers = [(200, body, {"Content-Type": "application/json"}) for body in bodies]
    with answering(*answers) as url:
        use(url, "token")
        shown = run("status").output
    assert "No standby confirms writes." in shown
    assert "6 of 6 turns" in shown
    with answering(*answers) as url:
        use(url, "token")
        doctor = run("doctor", "--json")
    assert doctor.exit_code == 1
    assert {"name": "writes", "state": "fail", "found": "No standby confirms writes."}.items() <= next(
        check for check in json.loads(doctor.output)["checks"] if check["name"] == "writes"
    ).items()


def test_the_quota_of_the_space_is_shown_and_its_error_says_whom_to_ask(
    server: TeamServer, run: Run, use: Callable[[str, str], None]
) -> None:
    server.ask(lambda memory: memory.set_quotas("small", {"bytes": 60}))
    use(server.url, server.token("small", "small"))
    assert run("remember", ANSWER).exit_code == 0
    assert "42 B of 60 B" in run("status").output
    refused = " ".join(run("remember", "The boat sails at six.").output.split())
    assert "Ask who runs the memory for more" in refused


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("memory.example.com", "is no address of a server"),
        ("ftp://memory.example.com", "is no address of a server"),
        ("https://me:secret@memory.example.com", "has no user and password"),
        ("http://memory.example.com", "would send the token in the clear"),
        ("https://memory.example.com:99999", "is no address of a server"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(run: Run, address: str, says: str) -> None:
    result = run("search", "x", "--server", address)
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())


def test_addresses_have_one_spelling() -> None:
    assert parse_address("https://Memory.example.com").url == "https://memory.example.com/mcp"
    assert parse_address("https://memory.example.com:443/").url == "https://memory.example.com/mcp"
    assert parse_address("http://[::1]:8765/team/mcp").url == "http://[::1]:8765/team/mcp"
    assert parse_address("http://10.0.0.1", allow_http=True).url == "http://10.0.0.1/mcp"


def test_a_server_and_a_database_are_not_used_together(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_MEMORY_STORE", "postgresql://db.example.com/memory")
    monkeypatch.setenv("MCP_MEMORY_SERVER", "http://127.0.0.1:1")
    assert "are both set" in run("search", "x").output


def test_installing_tries_the_token_and_keeps_it_in_a_file_that_no_client_reads(
    server: TeamServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = server.token("install")
    settings = {path: tmp_path / path for path in (".claude.json", ".claude/settings.json")}
    settings[".claude"] = tmp_path / ".claude"
    settings[".claude"].mkdir()
    before = {".claude.json": b'{\n  "theme": "dark"\n}\n', ".claude/settings.json": b'{ "model": "opus" }'}
    for name, data in before.items():
        settings[name].write_bytes(data)
    refused = run("install", "claude-code", "--yes", "--server", server.url)
    assert refused.exit_code == 1
    assert "There is no token for" in refused.output
    assert "Set MCP_MEMORY_SERVER_TOKEN" in refused.output
    monkeypatch.setenv("MCP_MEMORY_SERVER_TOKEN", "mcm_0_wrong")
    assert "does not accept the token" in run("install", "claude-code", "--yes", "--server", server.url).output
    assert {name: settings[name].read_bytes() for name in before} == before
    monkeypatch.setenv("MCP_MEMORY_SERVER_TOKEN", token)
    done = run("install", "claude-code", "--yes", "--server", server.url)
    assert done.exit_code == 0, done.output
    assert "accepts the token: space 'default', with the right write." in " ".join(done.output.split())
    assert f"the conversation is stored on {server.url}" in " ".join(done.output.split())
    monkeypatch.delenv("MCP_MEMORY_SERVER_TOKEN")
    for command in ("status", "doctor"):
        assert f"mcp-memory {command} --server {server.url}" in " ".join(run(command).output.split())
    entry = json.loads(settings[".claude.json"].read_text())["mcpServers"]["memory"]
    assert entry["args"] == ["--server", server.url, "serve"]
    hooks = json.loads(settings[".claude/settings.json"].read_text())["hooks"]
    assert hooks["Stop"][0]["hooks"][0]["args"] == ["--server", server.url, "hook", "Stop"]
    assert token not in "".join(settings[name].read_text() for name in before)
    [kept] = (tmp_path / ".mcp-memory" / "servers").glob("*/token")
    assert kept.read_text().strip() == token
    assert kept.stat().st_mode & 0o077 == 0
    assert "answers over MCP" in run("install", "claude-code", "--check").output
    assert run("uninstall", "claude-code", "--yes").exit_code == 0
    assert {name: settings[name].read_bytes() for name in before} == before


def test_a_token_file_that_others_can_read_is_refused(
    server: TeamServer, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(server.token("open"))
    file.chmod(0o644)
    monkeypatch.setenv("MCP_MEMORY_SERVER", server.url)
    monkeypatch.setenv("MCP_MEMORY_SERVER_TOKEN_FILE", str(file))
    assert "Other users of this machine can read" in run("search", "x").output
    file.chmod(0o600)
    assert "Nothing found" in run("search", "nothing-like-this").output


def test_no_database_password_is_put_on_a_laptop(run: Run, tmp_path: Path) -> None:
    refused = run("install", "claude-code", "--yes", "--store", "postgresql://memory:pw@db.example.com/memory")
    assert refused.exit_code == 1
    assert "install with --server URL" in " ".join(refused.output.split())
    assert not (tmp_path / ".claude.json").exists()


@pytest.mark.anyio
async def test_a_client_that_starts_a_program_reaches_the_server_through_the_bridge(
    server: TeamServer, tmp_path: Path
) -> None:
    token = await anyio.to_thread.run_sync(server.token, "bridge")
    bridge = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mcp_memory", "--server", server.url, "serve"],
        env={"HOME": str(tmp_path), "MCP_MEMORY_SERVER_TOKEN": token},
    )
    async with Client(stdio_client(bridge)) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert "recall" in tools
        assert "forget" not in tools  # the token may not
        assert not [name for name in tools if name.startswith("verb.")]
        await client.call_tool("record_turns", {"turns": [{"role": "user", "content": ANSWER}], "session": "bridge"})
        found = await client.call_tool("conversation_search", {"query": "harbour master", "session": "bridge"})
        assert "Odd Berge" in str(found.content)
