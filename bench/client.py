"""Measures the requests to a model with and without the memory: `python -m bench.client [--json FILE]`

Plays one story of twenty turns with a compaction in the middle in the real Claude Code twice: unchanged, and with our
hooks and server. The model is scripted, on loopback, and says the same both times (`fixtures/transcripts/skerry.json`,
invented); the client is the one that `scripts/install_peers.py` installs. Tokens (cl100k_base) over all requests:

* `talk`: the messages, which grow with the conversation. Without the memory they are the floor.
* `tools`: the definitions of all tools of the client, and ours.
* `context`: the text that our hooks added, each counted once.

It does not show how a real model would use that text.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from bench.trajectories import tokens_of
from mcp_memory.integrations.clients.hook_entries import hooks_of
from mcp_memory.integrations.clients.programs import client_named, server_entry
from scripts.claude_code import Held, hold, read_story
from scripts.install_peers import CLAUDE_CODE, install
from scripts.record_session import known_before

STORY = Path(__file__).parent.parent / "fixtures" / "transcripts" / "skerry.json"


def told(request: dict[str, Any]) -> str:
    """Return the messages of a request as lines `role: text`, one for each part of each message."""
    lines: list[str] = []
    for message in request["messages"]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        lines.extend(f"{message['role']}: {part.get('text') or json.dumps(part, ensure_ascii=False)}" for part in parts)
    return "\n".join(lines)


def held_with_memory(folder: Path, home: Path, *, prompts: int = 99) -> Held:
    """Play the story with the hooks and the server of a memory in `home`, as `mcp-memory install` configures them."""
    command = [str(Path(sys.executable).with_name("mcp-memory")), "--home", str(home)]
    servers = {"memory": server_entry(client_named("claude-code"), [*command, "serve"], {})}
    hooks = hooks_of("claude-code", command)
    return hold(CLAUDE_CODE.command, read_story(STORY), folder, hooks=hooks, servers=servers, prompts=prompts)


def figures(held: Held) -> dict[str, Any]:
    talks = [tokens_of(told(request)) for request in held.asked]
    context = [tokens_of(text) for text in _added(held.transcript)]
    return {
        "requests": len(talks),
        "talk": sum(talks),
        "largest": max(talks),
        "tools": sum(tokens_of(json.dumps(request.get("tools", []))) for request in held.asked),
        "context": sum(context),
        "told": len(context),
    }


def _added(transcript: Path) -> list[str]:
    """Return the texts that hooks added for the model, from the client's log."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in transcript.read_text(encoding="utf-8").splitlines()]
    attachments: list[dict[str, Any]] = [line["attachment"] for line in lines if line.get("attachment")]
    return [text for one in attachments if one["type"] == "hook_additional_context" for text in one["content"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    install(CLAUDE_CODE)
    with TemporaryDirectory() as made:
        bare, ours = Path(made, "bare"), Path(made, "ours")
        story = read_story(STORY)
        anyio.run(known_before, ours / "memory", story)
        found = {
            "without": figures(hold(CLAUDE_CODE.command, story, bare, hooks={}, servers={})),
            "with memory": figures(held_with_memory(ours, ours / "memory")),
        }
    names = list(found["without"])
    print(f"{'':<14}" + "".join(f"{name:>11}" for name in names))
    for label, row in found.items():
        print(f"{label:<14}" + "".join(f"{row[name]:>11,}" for name in names))
    saved = 1 - found["with memory"]["talk"] / found["without"]["talk"]
    print(f"the talk is {saved:.1%} shorter")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
