"""What `install` writes is what the real clients read: each lists the server and is connected to it.

Every client has a home of its own, with a configuration that held another server and odd formatting before, and no
account. After `uninstall` the file is that one again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from click.testing import CliRunner

from mcp_memory.cli.main import program
from mcp_memory.integrations.clients.hook_entries import hooks_of
from mcp_memory.server.tools import TOOLS
from scripts.install_peers import CLAUDE_CODE, CODEX, COPILOT, GEMINI, QWEN_CODE, Peer, node_environment
from scripts.scripted_model import Turn, serving_model
from tests.peers.gemini_model import GeminiModel, serving_gemini

pytestmark = [pytest.mark.peers, pytest.mark.timeout(300)]

CLAUDE_JSON = '{"mcpServers":  {"other": {"type": "stdio", "command": "true", "args": []}},\n\t"theme": "dark"}'
CODEX_TOML = '# mine\nmodel = "x"   # odd\n\n[mcp_servers.other]\ncommand = "true"\n\n# the end'
GEMINI_JSON = '{\r\n\t// mine\r\n\t"mcpServers": {\r\n\t\t"other": {"command": "true"} // odd\r\n\t}\r\n}\r\n'

Run = Callable[..., str]


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run our command line as somebody whose home is `tmp_path`."""
    for variable in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    def call(*arguments: str) -> str:
        result = CliRunner().invoke(program, arguments, prog_name="mcp-memory")
        assert result.exit_code == 0, result.output
        return result.output

    return call


def client(peer: Peer, *arguments: str, home: Path, extra: Mapping[str, str] | None = None) -> str:
    """Run a client's command in a folder of its own, and return what it printed; Gemini lists servers on stderr."""
    assert peer.installed, f"{peer.package} {peer.version} is not installed: run `make peers`"
    return run([*peer.command, *arguments], home, extra or {})


def run(command: list[str], home: Path, extra: Mapping[str, str], stdin: str = "") -> str:
    clients_own = ("CLAUDE", "CODEX", "COPILOT", "GEMINI", "QWEN", "MCP_")
    environ = {name: value for name, value in node_environment().items() if not name.startswith(clients_own)}
    environ |= {"HOME": str(home), "USERPROFILE": str(home), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    environ |= {
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "PATH": environ["PATH"].replace(str(Path(sys.executable).parent), ""),
    }
    folder = home / "project"
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environ, **extra},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout or done.stderr


@pytest.mark.smoke
def test_claude_code_is_connected(memory: Run, tmp_path: Path) -> None:
    config = tmp_path / ".claude.json"
    config.write_text(CLAUDE_JSON)
    memory("install", "claude-code", "--yes")
    assert re.search(
        r"^memory: .*mcp-memory serve - .*Connected$", client(CLAUDE_CODE, "mcp", "list", home=tmp_path), re.M
    )
    memory("uninstall", "claude-code", "--yes")
    listed = client(CLAUDE_CODE, "mcp", "list", home=tmp_path)
    assert "memory:" not in listed
    assert "other:" in listed
    assert not (tmp_path / ".claude" / "settings.json").exists()


def test_claude_code_runs_the_hooks_and_its_model_calls_the_tools(memory: Run, tmp_path: Path) -> None:
    memory("install", "claude-code", "--yes")
    call = {"type": "tool_use", "name": "mcp__memory__remember", "input": {"text": "Ada keeps bees."}}
    turns = [Turn("Ada keeps bees.", [[call], [{"type": "text", "text": "Noted."}]])]
    with serving_model(turns, summary="", project=str(tmp_path)) as model:
        flags = ["--output-format", "json", "--allowedTools", "mcp__memory"]
        key = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-ant-made-up-for-loopback-only"}
        said = json.loads(client(CLAUDE_CODE, "-p", turns[0].prompt, *flags, home=tmp_path, extra=key))
    assert said["result"] == "Noted."
    asked = json.dumps(model.asked)
    assert "SessionStart hook additional context: This conversation is recorded" in asked
    assert "Remembered as a1" in asked
    leave(tmp_path)


def test_claude_code_asks_about_the_server_of_a_project_and_then_uses_it(memory: Run, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    memory("install", "claude-code", "--project", str(tmp_path / "project"), "--no-hooks", "--yes")
    assert re.search(r"^memory: .* Pending approval", client(CLAUDE_CODE, "mcp", "list", home=tmp_path), re.M)
    (tmp_path / ".claude" / "settings.json").write_text('{"enableAllProjectMcpServers": true}')
    assert re.search(r"^memory: .* Connected$", client(CLAUDE_CODE, "mcp", "list", home=tmp_path), re.M)


def test_codex_lists_the_server_and_the_hooks_and_calls_the_tools(memory: Run, tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    config = tmp_path / ".codex" / "config.toml"
    config.write_text(CODEX_TOML)
    memory("install", "codex", "--env", "MCP_MEMORY_SPACE=work", "--yes")
    told = json.loads(client(CODEX, "mcp", "get", "memory", "--json", home=tmp_path))
    assert (told["enabled"], told["transport"]["args"], told["transport"]["env"]) == (
        True,
        ["serve"],
        {"MCP_MEMORY_SPACE": "work"},
    )
    with codex(tmp_path) as ask:
        [ours] = [one for one in ask("mcpServerStatus/list", {})["data"] if one["name"] == "memory"]
        assert set(ours["tools"]) == {tool.name for tool in TOOLS}
        [folder] = ask("hooks/list", {"cwds": [str(tmp_path)]})["data"]
        assert (folder["warnings"], folder["errors"]) == ([], [])
        assert len(folder["hooks"]) == len(hooks_of("codex", ["mcp-memory"]))
        assert {one["trustStatus"] for one in folder["hooks"]} == {
            "untrusted"
        }  # whether to run them is the user's to say
        call = {"threadId": ask("thread/start", {"cwd": str(tmp_path)})["thread"]["id"], "server": "memory"}
        ask("mcpServer/tool/call", {**call, "tool": "remember", "arguments": {"text": "Ada keeps bees."}})
        found = ask("mcpServer/tool/call", {**call, "tool": "memory_search", "arguments": {"query": "bees"}})
        assert "> a1 Ada keeps bees." in found["content"][0]["text"]
    memory("uninstall", "codex", "--yes")
    assert config.read_text() == CODEX_TOML
    assert not config.with_name("hooks.json").exists()


@contextmanager
def codex(home: Path) -> Generator[Callable[[str, dict[str, Any]], Any]]:
    """Run the app server of Codex, which starts what is configured; the answer to a request is its result."""
    environ = {name: value for name, value in node_environment().items() if not name.startswith(("CODEX", "MCP_"))}
    with subprocess.Popen(
        [*CODEX.command, "app-server"],
        cwd=home,
        env={**environ, "HOME": str(home), "USERPROFILE": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        number = count()

        def ask(method: str, params: dict[str, Any]) -> Any:
            assert server.stdin is not None
            assert server.stdout is not None
            id = next(number)
            server.stdin.write(json.dumps({"id": id, "method": method, "params": params}) + "\n")
            server.stdin.flush()
            return next(told for line in server.stdout if (told := json.loads(line)).get("id") == id)["result"]

        ask("initialize", {"clientInfo": {"name": "test", "title": "test", "version": "1"}})
        yield ask
        server.terminate()


def test_gemini_is_connected(memory: Run, tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    config = tmp_path / ".gemini" / "settings.json"
    config.write_bytes(GEMINI_JSON.encode())
    memory("install", "gemini", "--yes")
    assert re.search(r"memory: .*mcp-memory serve \(stdio\) - Connected", client(GEMINI, "mcp", "list", home=tmp_path))
    memory("uninstall", "gemini", "--yes")
    assert config.read_bytes() == GEMINI_JSON.encode()


def test_gemini_runs_the_hooks_and_its_model_calls_the_tools(memory: Run, tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    config = tmp_path / ".gemini" / "settings.json"
    config.write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    memory("install", "gemini", "--yes")
    calling = GeminiModel("mcp_memory_remember", {"text": "Ada keeps bees."}, "Noted.")
    with serving_gemini(calling) as model:
        key = {"GEMINI_API_KEY": "made-up", "GOOGLE_GEMINI_BASE_URL": model.url}
        flags = ["--yolo", "--model", "gemini-2.5-pro", "--prompt", "Ada keeps bees."]
        said = client(GEMINI, *flags, home=tmp_path, extra=key)
    assert "Noted." in said
    asked = json.dumps(model.asked)
    assert "This conversation is recorded" in asked
    assert "Remembered as a1" in asked
    leave(tmp_path)
    memory("uninstall", "gemini", "--yes")
    assert config.read_text() == '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'


QWEN_SETTINGS = '{"security": {"auth": {"selectedType": "anthropic"}}, "privacy": {"usageStatisticsEnabled": false}}\n'
KEEPS_BEES = "Please note that Ada Lovelace keeps bees in Bristol."


def test_qwen_code_recalls_and_records_by_hooks_and_calls_the_tools(memory: Run, tmp_path: Path) -> None:
    config = tmp_path / ".qwen" / "settings.json"
    config.parent.mkdir()
    config.write_text(QWEN_SETTINGS)
    memory("install", "qwen-code", "--yes")
    call = {"type": "tool_use", "name": "mcp__memory__remember", "input": {"text": KEEPS_BEES}}
    turns = [
        Turn(KEEPS_BEES, [[call], [{"type": "text", "text": "Noted."}]]),
        Turn("Where does Ada keep her bees?", [[{"type": "text", "text": "In Bristol."}]]),
    ]
    asked = conversations(QWEN_CODE, turns, tmp_path, "--yolo", key="ANTHROPIC_API_KEY", url="ANTHROPIC_BASE_URL")
    assert "This conversation is recorded in memory by itself, as session qwen-code-" in asked[0]
    assert "Remembered as a" in asked[0]
    assert "Ada Lovelace keeps bees" in asked[1].partition("Last session in this project")[2]
    told = memory("search", "bees", "--in", "turns", "--role", "user")
    assert "Ada Lovelace keeps bees" in told
    assert "mcp-memory-recall" not in told
    leave(tmp_path)
    memory("uninstall", "qwen-code", "--yes")
    assert "mcp-memory" not in config.read_text()  # Qwen Code has written its settings anew


def test_copilot_recalls_and_records_by_hooks_and_takes_a_note_for_a_large_result(memory: Run, tmp_path: Path) -> None:
    memory("install", "copilot", "--yes")
    assert "memory" in client(COPILOT, "mcp", "list", home=tmp_path)
    (tmp_path / "project").mkdir(exist_ok=True)
    lines = [f"2026-05-03 10:00:{n % 60:02d} INFO request {n} took {n * 7 % 91} ms" for n in range(300)]
    (tmp_path / "project" / "log.txt").write_text("\n".join(lines))
    show = {"type": "tool_use", "name": "bash", "input": {"command": "cat log.txt", "description": "Show the log"}}
    call = {"type": "tool_use", "name": "memory-remember", "input": {"text": KEEPS_BEES}}
    turns = [
        Turn(KEEPS_BEES, [[call], [show], [{"type": "text", "text": "Noted."}]]),
        Turn("Where does Ada keep her bees?", [[{"type": "text", "text": "In Bristol."}]]),
    ]
    flags = ["--allow-all-tools", "--disable-builtin-mcps"]
    asked = conversations(
        COPILOT, turns, tmp_path, *flags, key="COPILOT_PROVIDER_API_KEY", url="COPILOT_PROVIDER_BASE_URL"
    )
    assert "This conversation is recorded in memory by itself, as session copilot-" in asked[0]
    assert "Remembered as a" in asked[0]
    assert "expand_node" in asked[0]
    assert lines[150] not in asked[0]
    assert "Ada Lovelace keeps bees" in asked[1].partition("Last session in this project")[2]
    told = memory("search", "bees", "--in", "turns", "--role", "user")
    assert "Ada Lovelace keeps bees" in told
    assert "mcp-memory-recall" not in told
    leave(tmp_path)
    memory("uninstall", "copilot", "--yes")
    assert not (tmp_path / ".copilot" / "mcp-config.json").exists()


def conversations(peer: Peer, turns: list[Turn], home: Path, *flags: str, key: str, url: str) -> list[str]:
    """Have a client talk about each turn in a conversation of its own; return what its model was asked in each."""
    start = json.dumps({"session_id": "3f2a9c1e", "transcript_path": str(home / "none.jsonl")})
    hook = [str(Path(sys.executable).with_name("mcp-memory")), "hook", "SessionStart"]
    while not run(hook, home, {}, start):
        sleep(0.1)  # until the client's hooks find a daemon with an open memory
    asked: list[str] = []
    for turn in turns:
        with serving_model([turn], summary="", project=str(home)) as model:
            extra = {key: "made-up", url: model.url, "ANTHROPIC_MODEL": "claude-sonnet-4-5"}
            extra |= {
                "COPILOT_PROVIDER_TYPE": "anthropic",
                "COPILOT_MODEL": "claude-sonnet-4.5",
                "COPILOT_OFFLINE": "true",
            }
            said = client(peer, "-p", turn.prompt, *flags, home=home, extra=extra)
        assert turn.steps[-1][0]["text"] in said
        asked.append(json.dumps(model.asked))
    return asked


def leave(home: Path) -> None:
    """Take away the file without which what serves the hooks ends."""
    for left in (home / ".mcp-memory" / "hooks").glob("*.json"):
        left.unlink(missing_ok=True)
