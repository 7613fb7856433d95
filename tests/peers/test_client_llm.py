"""The real clients answer a question of the memory, and nothing of the user's takes part in it.

Each has our server and hooks installed, another server and hook that leave a mark, memory files and a skill. The model
is scripted, on loopback. That the marks can be left is shown by the same clients as a user runs them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import BaseModel

from mcp_memory.cli.main import program
from mcp_memory.core.errors import ModelFailed
from mcp_memory.models.client_llm import CLIENTS, ClientLLM
from mcp_memory.models.llm import ChatMessage, ModelPrompt, parse
from scripts.install_peers import CLAUDE_CODE, CODEX, GEMINI, Peer, node
from scripts.responses_model import ResponsesModel, serving_responses
from scripts.scripted_model import Turn, serving_model
from tests.peers.gemini_model import GeminiModel, serving_gemini

pytestmark = [pytest.mark.peers, pytest.mark.timeout(300)]

USER, SYSTEM, BLUE, WORD = "Which one?", "Name a colour.", '{"colour": "blue"}', "xyzzy"
PEERS: dict[str, Peer] = {"claude-code": CLAUDE_CODE, "codex": CODEX, "gemini": GEMINI}
KEY = "sk-ant-made-up-for-loopback-only"


class Colour(BaseModel):
    colour: str


PROMPT = ModelPrompt(
    messages=[ChatMessage(role="system", text=SYSTEM), ChatMessage(role="user", text=USER)],
    shape=Colour,
    max_tokens=100,
)


@dataclass(frozen=True)
class Household:
    """A user's home with a client in it, and the file that its hooks and servers write to."""

    name: str
    home: Path

    @property
    def marks(self) -> Path:
        return self.home / "marks"

    @property
    def files(self) -> set[str]:
        """The files of the client's home and the memory's; but those that clients keep of their own accord."""
        noise = re.compile(r"\.claude\.json|\.claude/(backups|plugins|telemetry|statsig|cache)/|\.mcp-memory/run/")
        found = (str(path.relative_to(self.home)) for path in self.home.rglob("*") if path.is_file())
        return {path for path in found if not noise.search(path)}


@pytest.fixture(params=CLIENTS)
def household(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Household:
    """A user whose client is full of things that must stay out of a question."""
    name: str = request.param
    peer, home = PEERS[name], tmp_path / "user"
    assert peer.installed, f"{peer.package} {peer.version} is not installed: run `make peers`"
    for variable in [one for one in os.environ if one.startswith(("CLAUDE", "CODEX", "GEMINI", "GOOGLE", "MCP_"))]:
        monkeypatch.delenv(variable)
    folder = tmp_path / "bin"
    folder.mkdir()
    home.mkdir()
    loopback = ' -c openai_base_url="$LOOPBACK"' if name == "codex" else ""  # it has no variable for this
    (folder / CLIENTS[name].program).write_text(f'#!/bin/sh\nexec {shlex.join(peer.command)} "$@"{loopback}\n')
    (folder / CLIENTS[name].program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{node().parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    made = Household(name, home)
    _furnish(made)
    result = CliRunner().invoke(program, ["install", name, "--yes"], prog_name="mcp-memory")
    assert result.exit_code == 0, result.output
    return made


def _furnish(household: Household) -> None:
    """Give a client a server and a hook that leave marks, memory files, and a skill."""
    home, marks = household.home, shlex.quote(str(household.marks))
    server = {"command": "sh", "args": ["-c", f"echo server >> {marks}"]}
    hook = [{"hooks": [{"type": "command", "command": f"echo hook >> {marks}"}]}]
    skill = f"---\nname: {WORD}\ndescription: {WORD}\n---\n{WORD}\n"
    match household.name:
        case "claude-code":
            texts = {
                ".claude/settings.json": json.dumps({"hooks": {"SessionStart": hook, "Stop": hook}}),
                ".claude.json": json.dumps({"mcpServers": {"other": {"type": "stdio", **server}}}),
                ".claude/CLAUDE.md": WORD,
                f".claude/skills/{WORD}/SKILL.md": skill,
            }
        case "codex":
            texts = {
                ".codex/config.toml": f'[mcp_servers.other]\ncommand = "sh"\nargs = {json.dumps(server["args"])}\n',
                ".codex/hooks.json": json.dumps({"hooks": {"SessionStart": hook, "Stop": hook}}),
                ".codex/AGENTS.md": WORD,
                f".codex/skills/{WORD}/SKILL.md": skill,
                ".codex/auth.json": json.dumps({"OPENAI_API_KEY": "sk-made-up", "auth_mode": "apikey"}),
            }
        case _:
            settings = {
                "security": {"auth": {"selectedType": "gemini-api-key"}},
                "mcpServers": {"other": server},
                "hooks": {"SessionStart": hook, "AfterAgent": hook},
            }
            texts = {
                ".gemini/settings.json": json.dumps(settings),
                ".gemini/GEMINI.md": WORD,
                ".gemini/.env": "GEMINI_API_KEY=made-up\n",
                f".gemini/skills/{WORD}/SKILL.md": skill,
            }
    for name, text in texts.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")


class Blue(GeminiModel):
    """Gemini's model, that calls no tool."""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        return {"text": self.sentence}


@contextmanager
def model_of(name: str, monkeypatch: pytest.MonkeyPatch, *, key: str = KEY) -> Generator[list[dict[str, Any]]]:
    """Run the model of a client, and yield what it is asked. `key` is that of Claude Code."""
    match name:
        case "claude-code":
            turn = Turn(USER, [[{"type": "text", "text": BLUE}]])
            with serving_model([turn], summary="", project="") as claude:
                monkeypatch.setenv("ANTHROPIC_BASE_URL", claude.url)
                monkeypatch.setenv("ANTHROPIC_API_KEY", key)
                yield claude.asked
        case "codex":
            with serving_responses(ResponsesModel(BLUE)) as openai:
                monkeypatch.setenv("LOOPBACK", openai.url)
                yield openai.asked
        case _:
            with serving_gemini(Blue("", {}, BLUE)) as gemini:
                monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gemini.url)
                yield gemini.asked


def test_nothing_of_the_users_takes_part_in_a_question(
    household: Household, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = household.files
    with model_of(household.name, monkeypatch) as asked:
        said = ClientLLM(f"client:{household.name}", home=tmp_path / "memory").ask(PROMPT, timeout=120)
    assert parse(said.text, Colour) == Colour(colour="blue")
    assert said.prompt_tokens > 0
    assert said.completion_tokens > 0
    assert len(asked) == 1  # none for a title, a route or a summary
    sent = json.dumps(asked)
    assert USER in sent
    assert SYSTEM in sent
    assert WORD not in sent
    assert "recorded" not in sent.lower()  # what our hook says at the start of a session
    assert not household.marks.exists()  # no server was started, and no hook
    assert household.files == before  # no session was saved, by the client or by us
    assert not _tools(household.name, asked[0])


def _tools(name: str, request: dict[str, Any]) -> set[str]:
    """Return the tools that could do something, as a request lists them."""
    match name:
        case "claude-code":
            return {tool["name"] for tool in request.get("tools", ())}
        case "codex":
            # Its JavaScript has no host to run in, and nobody is there to be asked.
            listed = [*(request.get("tools") or ()), *(one for one in request["input"] if "tools" in one)]
            named = set(re.findall(r'"name": "([\w.]+)"', json.dumps(listed)))
            return named - {"functions", "exec", "wait", "request_user_input", "request_user_input_async"}
        case _:
            return {tool["name"] for one in request.get("tools", ()) for tool in one["functionDeclarations"]}


def test_the_same_client_as_a_user_runs_it_does_start_them(
    household: Household, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the test above would prove nothing."""
    arguments = {
        "claude-code": ["-p", USER],
        "codex": ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", USER],
        "gemini": ["--model", "flash", "-p", USER],
    }[household.name]
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    with model_of(household.name, monkeypatch) as asked:
        subprocess.run(
            [CLIENTS[household.name].program, *arguments],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
    assert WORD in json.dumps(asked)
    assert set(household.marks.read_text().split()) == {"hook", "server"}
    for left in (household.home / ".mcp-memory" / "hooks").glob("*.json"):
        left.unlink(missing_ok=True)


@pytest.mark.skipif(sys.platform == "win32", reason="the clients are started by scripts with a #! line")
def test_a_client_that_was_never_signed_in_says_how_to(
    household: Household, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for left in (household.home / ".gemini" / ".env", household.home / ".codex" / "auth.json"):
        left.unlink(missing_ok=True)
    with model_of(household.name, monkeypatch, key=""), pytest.raises(ModelFailed) as raised:
        ClientLLM(f"client:{household.name}", home=tmp_path / "memory").ask(PROMPT, timeout=120)
    assert f"is not signed in. Run `{CLIENTS[household.name].sign_in}` and sign in." in str(raised.value)
