"""Runs the real Claude Code through a story with a scripted model, in a separate home.

Nothing of the person at this machine is read or touched: the home, the project and the settings are made in a given
folder, the key is made up, and the client only knows the address of the model on loopback.

This module does not know which hooks and servers the client gets, nor what they do.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import IO, Any

from scripts.scripted_model import ScriptedModel, Turn, serving_model

COMPACT = "/compact"
SESSION = "3f2a9c1e-7b4d-4c8a-9e21-5d6f7a8b9c0d"
KEY = "sk-ant-made-up-for-loopback-only"
_SECONDS = 180  # a whole story takes ten; a busy machine more


@dataclass(frozen=True)
class Story:
    """A conversation: the files it works on, earlier knowledge, the turns, and when it is compacted."""

    project: Mapping[str, str]
    earlier: Sequence[str]
    turns: Sequence[Turn]
    compact_after: int
    summary: str


@dataclass(frozen=True)
class Held:
    """Recording of a story: the client's log, the folder, and every request to the model."""

    transcript: Path
    project: Path
    asked: Sequence[dict[str, Any]]


def read_story(path: Path) -> Story:
    fields = json.loads(path.read_text(encoding="utf-8"))
    return Story(
        project={name: text if isinstance(text, str) else _lines(text) for name, text in fields["project"].items()},
        earlier=fields["earlier"],
        turns=[Turn(prompt, steps) for prompt, steps in fields["turns"]],
        compact_after=fields["compact_after"],
        summary=fields["summary"],
    )


def _lines(fields: Mapping[str, Any]) -> str:
    """Return the text of a described file: columns of alternating words, and special lines."""
    columns = [cycle(words) for words in fields["cycle"]]
    lines: list[str] = []
    for at in range(fields["lines"]):
        figures = {
            "day": 1 + at % 28,
            "hour": at % 24,
            "minute": at * 7 % 60,
            "second": at * 13 % 60,
            "cars": at * 37 % 83,
        }
        lines.append(" | ".join(next(column).format(**figures) for column in columns))
        lines.extend([fields["with"][str(at)]] if str(at) in fields["with"] else [])
    return "\n".join(lines) + "\n"


def hold(
    client: Sequence[str],
    story: Story,
    folder: Path,
    *,
    hooks: Mapping[str, Any],
    servers: Mapping[str, Any],
    prompts: int = 99,
) -> Held:
    """Run the first `prompts` of a story in the real client, including its `/compact`, and return the recording.

    `client` is the command that starts it. `hooks` is the value of that name in the client's settings, `servers` that
    of `mcpServers`.
    """
    home, project = folder / "home", folder / "skerry"
    for name, text in story.project.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    _settle(home, project, hooks, servers)
    with (
        serving_model(story.turns, summary=story.summary, project=str(project)) as model,
        _client(client, home, project, model) as conversation,
    ):
        for at, turn in enumerate(story.turns[:prompts], start=1):
            _say(*conversation, turn.prompt)
            if at == story.compact_after:
                _say(*conversation, COMPACT)
    [transcript] = (home / ".claude" / "projects").glob(f"*/{SESSION}.jsonl")
    return Held(transcript, project, model.asked)


def _settle(home: Path, project: Path, hooks: Mapping[str, Any], servers: Mapping[str, Any]) -> None:
    """Write the files of a client that was started before: no first steps, no questions of trust."""
    allowed = ["Bash", "Read", "Edit", "Write", *(f"mcp__{name}" for name in servers)]
    settings = {"hooks": hooks, "permissions": {"allow": allowed, "defaultMode": "acceptEdits"}}
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {str(project): trusted},
        "mcpServers": servers,
    }
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    (home / ".claude.json").write_text(json.dumps(known), encoding="utf-8")


@contextmanager
def _client(
    client: Sequence[str], home: Path, project: Path, model: ScriptedModel
) -> Generator[tuple[IO[str], IO[str]]]:
    """Run the client and yield its input and output streams; it ends with its input."""
    environment = {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }
    streams = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    with subprocess.Popen(
        [*client, "-p", *streams, "--session-id", SESSION],
        cwd=project,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        late = threading.Timer(_SECONDS, _kill, [running])
        late.start()
        try:
            yield running.stdin, running.stdout
            running.stdin.close()
            running.stdout.read()
            running.wait()
        finally:
            late.cancel()
            _kill(running)


def _kill(running: subprocess.Popen[str]) -> None:
    """End the client and its child processes, if they are still running."""
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def _say(to: IO[str], of: IO[str], prompt: str) -> None:
    """Send a prompt and wait for the end of its turn."""
    to.write(json.dumps({"type": "user", "message": {"role": "user", "content": prompt}}) + "\n")
    to.flush()
    for line in of:
        if json.loads(line).get("type") == "result":
            return
    raise RuntimeError(f"the client ended before it answered: {prompt[:80]}")
