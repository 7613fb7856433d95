"""What `install` writes is what the real clients read: each lists the server and is connected to it.

Every client has a home of its own, with a configuration that held another server and odd formatting before, and no
account. After `uninstall` the file is that one again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mcp_memory.cli.main import program
from mcp_memory.integrations.hooks import hooks_of
from mcp_memory.server.tools import TOOLS
from scripts.install_peers import CLAUDE_CODE, CODEX, GEMINI, Peer, node_environment
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
    for variable in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
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
    clients_own = ("CLAUDE", "CODEX", "GEMINI", "MCP_")
    environ = {name: value for name, value in node_environment().items() if not name.startswith(clients_own)}
    environ |= {"HOME": str(home), "USERPROFILE": str(home), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    environ |= {
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "PATH": environ["PATH"].replace(str(Path(sys.executable).parent), ""),
    }
    folder = home / "project"
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [*peer.command, *arguments],
        cwd=folder,
        env={**environ, **(extra or {})},
        stdin=subprocess.DEVNULL,
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
def codex(home: Path) -> Iterator[Callable[[str, dict[str, Any]], Any]]:
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


def leave(home: Path) -> None:
    """Take away the file without which what serves the hooks ends."""
    for left in (home / ".mcp-memory" / "hooks").glob("*.json"):
        left.unlink(missing_ok=True)
