"""The plugin in the real clients and the extension in the real `mcpb`: valid, installed, started.

Each client has a home of its own, and no account: what is asked of it here needs none.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from anyio import fail_after
from mcp import Client, StdioServerParameters

from mcp_memory import __version__
from mcp_memory.integrations.clients.programs import PLUGIN
from mcp_memory.server.tools import TOOLS
from scripts.install_peers import CLAUDE_CODE, CODEX, COPILOT, GEMINI, MCPB, Peer, node_environment
from scripts.make_bundle import manifest, stage
from scripts.scripted_model import Turn, serving_model
from tests.peers.gemini_model import GeminiModel, serving_gemini
from tests.peers.test_clients import codex, leave

pytestmark = [pytest.mark.peers, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parent.parent.parent
UV = Path(sys.executable).with_name("uv")


def run(peer: Peer, *arguments: str | Path, home: Path, said: str = "", extra: Mapping[str, str] | None = None) -> str:
    """Run a peer's command, which has to succeed, and return what it printed, errors last."""
    assert peer.installed, f"{peer.package} {peer.version} is not installed: run `make peers`"
    environ = {
        name: value for name, value in node_environment().items() if not name.startswith(("CLAUDE", "CODEX", "MCP_"))
    }
    environ |= {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        **(extra or {}),
    }
    environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environ["PATH"]])
    done = subprocess.run(
        [*peer.command, *arguments], cwd=home, env=environ, input=said, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


# --- the plugin -------------------------------------------------------------------------------------


def test_claude_code_finds_nothing_to_warn_of_but_the_hooks_of_gemini(tmp_path: Path) -> None:
    validate = ["plugin", "validate"]
    plugin = run(CLAUDE_CODE, *validate, "--strict", ROOT / "plugin", "--profile", "directory", home=tmp_path)
    assert "Validation passed" in plugin
    marketplace = run(CLAUDE_CODE, *validate, ROOT, home=tmp_path)
    assert set(re.findall(r"❯ (.*)", marketplace)) == {
        f"hooks: hooks.{event}: unknown hook event; entry ignored at runtime" for event in ("BeforeAgent", "AfterAgent")
    }


def test_the_plugin_is_installed_from_the_marketplace_and_its_server_is_connected(tmp_path: Path) -> None:
    run(CLAUDE_CODE, "plugin", "marketplace", "add", ROOT, home=tmp_path)
    run(CLAUDE_CODE, "plugin", "install", PLUGIN, home=tmp_path)
    assert re.search(r"plugin:mcp-memory:memory: .* Connected", run(CLAUDE_CODE, "mcp", "list", home=tmp_path))
    details = run(CLAUDE_CODE, "plugin", "details", "mcp-memory", home=tmp_path)
    assert f"Memory (mcp-memory) {__version__}" in details
    assert "Hooks (7)" in details


def test_the_plugin_takes_its_options_and_hides_the_key(tmp_path: Path) -> None:
    run(CLAUDE_CODE, "plugin", "marketplace", "add", ROOT, home=tmp_path)
    run(CLAUDE_CODE, "plugin", "install", PLUGIN, home=tmp_path)
    given = json.dumps({"space": "work", "llm": "ollama/qwen3:8b", "llm_api_key": "made-up"})
    run(CLAUDE_CODE, "plugin", "configure", PLUGIN, "--values-stdin", home=tmp_path, said=given)
    settings = json.loads((tmp_path / ".claude" / "settings.json").read_text(encoding="utf-8"))
    assert settings["pluginConfigs"][PLUGIN]["options"] == {"space": "work", "llm": "ollama/qwen3:8b"}
    assert re.search(r"plugin:mcp-memory:memory: .* Connected", run(CLAUDE_CODE, "mcp", "list", home=tmp_path))


def test_codex_starts_the_server_of_the_plugin_and_knows_its_hooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    run(CODEX, "plugin", "marketplace", "add", ROOT, home=tmp_path)
    run(CODEX, "plugin", "add", PLUGIN, home=tmp_path)
    with codex(tmp_path) as ask:
        [ours] = [one for one in ask("mcpServerStatus/list", {})["data"] if one["name"] == "memory"]
        assert set(ours["tools"]) == {tool.name for tool in TOOLS}
        [folder] = ask("hooks/list", {"cwds": [str(tmp_path)]})["data"]
        assert (folder["warnings"], folder["errors"]) == ([], [])
        launchers = {shlex.split(hook["command"])[0] for hook in folder["hooks"]}
    [launcher] = map(Path, launchers)
    assert launcher.read_bytes() == (ROOT / "plugin" / "launch").read_bytes()


def test_gemini_runs_the_server_and_the_hooks_of_the_extension(tmp_path: Path) -> None:
    run(GEMINI, "extensions", "validate", ROOT, home=tmp_path)
    run(GEMINI, "extensions", "link", ROOT, "--consent", home=tmp_path)
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (tmp_path / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    assert re.search(r"memory \(from mcp-memory\): .* - Connected", run(GEMINI, "mcp", "list", home=tmp_path))
    with serving_gemini(GeminiModel("none", {}, "Noted.")) as model:
        key = {"GEMINI_API_KEY": "made-up", "GOOGLE_GEMINI_BASE_URL": model.url}
        run(GEMINI, "--model", "gemini-2.5-pro", "--prompt", "Ada keeps bees.", home=tmp_path, extra=key)
    assert (tmp_path / ".mcp-memory" / "hooks").is_dir()  # the daemon that hooks start has been there
    leave(tmp_path)


def test_copilot_gives_its_model_the_tools_and_the_skill_of_the_plugin(tmp_path: Path) -> None:
    run(COPILOT, "plugin", "marketplace", "add", ROOT, home=tmp_path)
    run(COPILOT, "plugin", "install", PLUGIN, home=tmp_path)
    turns = [Turn("Ada keeps bees.", [[{"type": "text", "text": "Noted."}]])]
    with serving_model(turns, summary="", project=str(tmp_path)) as model:
        provider = {"TYPE": "anthropic", "API_KEY": "made-up", "BASE_URL": model.url}
        environ = {f"COPILOT_PROVIDER_{name}": value for name, value in provider.items()}
        environ |= {"COPILOT_MODEL": "claude-sonnet-4", "COPILOT_OFFLINE": "1"}
        run(COPILOT, "--prompt", turns[0].prompt, "--allow-all", home=tmp_path, extra=environ)
    [asked] = model.asked
    assert {f"memory-{tool.name}" for tool in TOOLS} <= {tool["name"] for tool in asked["tools"]}
    assert "Look into, correct or tidy what is remembered" in json.dumps(asked)


# --- the extension ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The extension, validated and packed by `mcpb`, beside the folder it was packed from."""
    folder = tmp_path_factory.mktemp("extension")
    stage(folder / "stage")
    run(MCPB, "validate", folder / "stage" / "manifest.json", home=folder)
    run(MCPB, "pack", folder / "stage", folder / "memory.mcpb", home=folder)
    return folder / "memory.mcpb"


def test_mcpb_packs_every_file_as_it_is(packed: Path) -> None:
    files = {path.name: path.read_bytes() for path in (packed.parent / "stage").iterdir()}
    with zipfile.ZipFile(packed) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == files


@pytest.fixture
def installed(packed: Path, tmp_path: Path) -> Path:
    """The extension unpacked, with the libraries that a host's uv fetches when the user installs it."""
    folder = tmp_path / "unpacked"
    run(MCPB, "unpack", packed, folder, home=tmp_path)
    subprocess.run([UV, "sync", "--quiet", "--directory", folder], check=True)
    return folder


async def test_the_unpacked_extension_is_installed_by_uv_and_greets(installed: Path, tmp_path: Path) -> None:
    config = manifest()["server"]["mcp_config"]
    words = [word.replace("${__dirname}", str(installed)) for word in config["args"]]
    path = os.pathsep.join([str(UV.parent), os.environ["PATH"]])
    environ = {"HOME": str(tmp_path), "PATH": path, "MCP_MEMORY_HOME": str(tmp_path / "memory")}
    with fail_after(120):
        async with Client(StdioServerParameters(command=config["command"], args=words, env=environ)) as client:
            assert client.server_info.version == __version__
            tools = [tool.name for tool in (await client.list_tools()).tools]
            assert tools == [tool["name"] for tool in manifest()["tools"]]
