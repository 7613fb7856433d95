"""What `install` writes is what the real clients read: each lists the server and is connected to it.

Every client has a home of its own, with a configuration that held another server and odd formatting before, and no
account. After `uninstall` the file is that one again.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mcp_memory.cli import program
from mcp_memory.hooks.manifest import hooks_of
from mcp_memory.server.tools import TOOLS
from scripts.install_peers import CLAUDE_CODE, CODEX, GEMINI, Peer, node_environment

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


def client(peer: Peer, *arguments: str, home: Path) -> str:
    """Run a client's command in a folder of its own, and return what it printed: Gemini lists servers on stderr."""
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
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stderr if peer is GEMINI else done.stdout


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


def test_claude_code_asks_about_the_server_of_a_project_and_then_uses_it(memory: Run, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    memory("install", "claude-code", "--project", str(tmp_path / "project"), "--no-hooks", "--yes")
    assert re.search(r"^memory: .* Pending approval", client(CLAUDE_CODE, "mcp", "list", home=tmp_path), re.M)
    (tmp_path / ".claude" / "settings.json").write_text('{"enableAllProjectMcpServers": true}')
    assert re.search(r"^memory: .* Connected$", client(CLAUDE_CODE, "mcp", "list", home=tmp_path), re.M)


def test_codex_lists_the_server_and_its_tools(memory: Run, tmp_path: Path) -> None:
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
    [server] = [one for one in codex_answer("mcpServerStatus/list", {}, tmp_path) if one["name"] == "memory"]
    assert set(server["tools"]) == {tool.name for tool in TOOLS}
    [folder] = codex_answer("hooks/list", {"cwds": [str(tmp_path)]}, tmp_path)
    assert (folder["warnings"], folder["errors"]) == ([], [])
    assert len(folder["hooks"]) == len(hooks_of("codex", ["mcp-memory"]))
    assert {(one["enabled"], one["trustStatus"]) for one in folder["hooks"]} == {
        (True, "untrusted")
    }  # the user's to say
    memory("uninstall", "codex", "--yes")
    assert config.read_text() == CODEX_TOML
    assert not config.with_name("hooks.json").exists()


def codex_answer(method: str, params: dict[str, Any], home: Path) -> list[dict[str, Any]]:
    """Ask the app server of Codex, which starts what is configured, and return its answer."""
    requests = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "title": "t", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": method, "params": params},
    ]
    environ = {**node_environment(), "HOME": str(home), "USERPROFILE": str(home)}
    environ.pop("CODEX_HOME", None)
    with subprocess.Popen(
        [*CODEX.command, "app-server"],
        cwd=home,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(f"{json.dumps(request)}\n" for request in requests))
        server.stdin.flush()
        answer = next(told for line in server.stdout if (told := json.loads(line)).get("id") == 2)
        server.terminate()
    return answer["result"]["data"]


def test_gemini_is_connected(memory: Run, tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    config = tmp_path / ".gemini" / "settings.json"
    config.write_bytes(GEMINI_JSON.encode())
    memory("install", "gemini", "--yes")
    assert re.search(r"memory: .*mcp-memory serve \(stdio\) - Connected", client(GEMINI, "mcp", "list", home=tmp_path))
    memory("uninstall", "gemini", "--yes")
    assert config.read_bytes() == GEMINI_JSON.encode()
