"""The real OpenClaw, Hermes and opencode with our plugin: they record, recall, and get a note for a large result.

Each has a home of its own, a model on loopback and a configuration with odd formatting, which is that one again after
`uninstall`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcp_memory.cli.main import program
from scripts.install_peers import HERMES, OPENCLAW, OPENCODE, Peer, PythonPeer, node_environment
from tests.peers.chat_model import MODEL, serving_chat, text_of

pytestmark = [pytest.mark.peers, pytest.mark.timeout(900)]

NAMED = "My name is Ada and I keep bees on the roof of the library."
LISTED = "List the weights of the hives."
ASKED = "What do I keep on the roof of the library?"
WEIGHTS = "for i in $(seq 1 900); do echo hive $i weighs $((20 + i % 7)) kg; done"


@dataclass(frozen=True)
class Client:
    """A client with a plugin: `config` is its configuration in its home, in which `{url}` is the model's address."""

    name: str
    peer: Peer | PythonPeer
    file: str
    config: str
    shell: str
    first: Callable[[str], list[str]]
    again: Callable[[str], list[str]]
    """The commands that say a prompt in a new conversation, and in the one of `first`."""


OPENCLAW_CONFIG = """{
  // mine
  "models": {"providers": {"scripted": {"baseUrl": "{url}", "apiKey": "made-up", "api": "openai-completions",
    "models": [{"id": "scripted", "name": "m", "contextWindow": 200000, "maxTokens": 4096}]}}},
  "agents": {"defaults": {"model": {"primary": "scripted/scripted"}}},
  "mcp": {"servers": {"other": {"command": "true", "enabled": false}}},
}
"""
HERMES_CONFIG = """# mine
model:
  default: scripted   # odd
  provider: custom
  base_url: {url}
  api_key: 'made-up'

plugins:
  enabled: []
"""
OPENCODE_CONFIG = """{
  "$schema": "https://opencode.ai/config.json", // opencode adds it
  "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "name": "scripted",
    "options": {"baseURL": "{url}", "apiKey": "made-up"}, "models": {"scripted": {"name": "scripted"}}}},
  "model": "scripted/scripted", "autoupdate": false, "share": "disabled",
}
"""


def openclaw(session: str) -> Callable[[str], list[str]]:
    return lambda prompt: [*OPENCLAW.command, "agent", "--local", "--session-id", session, "--message", prompt]


def hermes(*flags: str) -> Callable[[str], list[str]]:
    return lambda prompt: [str(HERMES.program("hermes")), "chat", "--quiet", "--yolo", *flags, "--query", prompt]


def opencode(*flags: str) -> Callable[[str], list[str]]:
    return lambda prompt: [*OPENCODE.command, "run", *flags, prompt]


CLIENTS = [
    Client("openclaw", OPENCLAW, ".openclaw/openclaw.json", OPENCLAW_CONFIG, "exec", openclaw("1"), openclaw("1")),
    Client("hermes", HERMES, ".hermes/config.yaml", HERMES_CONFIG, "terminal", hermes(), hermes("--continue")),
    Client(
        "opencode",
        OPENCODE,
        ".config/opencode/opencode.json",
        OPENCODE_CONFIG,
        "bash",
        opencode(),
        opencode("--continue"),
    ),
]
_FOREIGN = ("CLAUDE", "CODEX", "GEMINI", "HERMES", "MCP_", "OPENCLAW", "OPENCODE", "XDG_")


def memory(*arguments: str) -> str:
    result = CliRunner().invoke(program, arguments, prog_name="mcp-memory")
    assert result.exit_code == 0, result.output
    return result.output


def run(command: Sequence[str], environ: Mapping[str, str], folder: Path, stdin: str = "") -> str:
    done = subprocess.run(
        command, cwd=folder, env=environ, input=stdin, capture_output=True, text=True, timeout=280, check=False
    )
    return done.stdout


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_with_the_plugin_records_recalls_and_gets_a_note(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.peer.installed, f"{client.peer.package} {client.peer.version} is not installed: run `make peers`"
    for variable in [name for name in os.environ if name.startswith(_FOREIGN)]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))
    base = node_environment(client.peer) if isinstance(client.peer, Peer) else dict(os.environ)
    environ = {**base, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    (project := tmp_path / "project").mkdir()
    config = tmp_path / client.file
    config.parent.mkdir(parents=True)
    call = (client.shell, {"command": WEIGHTS, "description": "weights"})
    with serving_chat({NAMED: ["Noted, Ada."], LISTED: [call, "Between 20 and 26 kg."], ASKED: ["Bees."]}) as model:
        before = client.config.replace("{url}", model.url)
        config.write_text(before)
        memory("install", client.name, "--yes")
        hook = [str(Path(sys.executable).with_name("mcp-memory")), "hook", "SessionStart"]
        other = json.dumps({"session_id": "another", "transcript_path": str(tmp_path / "log"), "source": "startup"})
        while not run(hook, environ, project, other):  # until the daemon answers
            pass
        assert "Noted, Ada." in run(client.first(NAMED), environ, project)
        assert "Between 20 and 26 kg." in run(client.again(LISTED), environ, project)
        new = openclaw("2") if client.name == "openclaw" else client.first
        assert "Bees." in run(new(ASKED), environ, project)
        asked = [[text_of(message) for message in request["messages"]] for request in model.asked]
        notes = [text for texts in asked for text in texts if "expand_node]" in text and "900 lines" in text]
        assert notes
        assert not any("hive 450 weighs" in text for texts in asked for text in texts)
        last = "\n".join(next(texts for texts in reversed(asked) if any(ASKED in text for text in texts)))
        assert "This conversation is recorded in memory by itself" in last
        assert "keep bees on the roof" in last
        assert model.asked[0]["model"] == MODEL
    for left in (tmp_path / ".mcp-memory" / "hooks").glob("*.json"):
        left.unlink(missing_ok=True)  # the daemon ends
    found = json.loads(memory("search", "--in", "turns", "--json"))["hits"]
    turns = [hit["text"].strip('"') for hit in found]  # opencode puts prompts in quotes
    assert sorted(turns) == sorted([NAMED, "Noted, Ada.", LISTED, "Between 20 and 26 kg.", ASKED, "Bees."])
    memory("uninstall", client.name, "--yes")
    assert config.read_text() == before
    assert not [path for path in tmp_path.rglob("*mcp-memory*") if ".mcp-memory" not in path.parts and path.is_file()]
