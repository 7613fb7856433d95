"""Write `fixtures/transcripts/claude-code`: a session of the real Claude Code, its log and the inputs of its hooks.

    python -m scripts.record_session [large_results]

The client is the one that `scripts/install_peers.py` installs, the story is `fixtures/transcripts/skerry.json`
(invented); another story, given by name, is written to a folder `claude-code-…`. The client writes the log
(`session.jsonl`) and the hooks' inputs. Lines with the client's own prompts and requests are left out, and the paths of
this machine are replaced by those of a person called Ines. `hooks.jsonl` has, for each event, the number of lines that
the log had when the hook ran, and the hook's input.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio

from mcp_memory.core.config import Settings
from mcp_memory.integrations.clients.hook_entries import hooks_of
from mcp_memory.integrations.clients.programs import client_named, server_entry
from mcp_memory.service.memory import open_memory
from scripts.claude_code import Story, hold, read_story
from scripts.install_peers import CLAUDE_CODE

FOLDER = Path(__file__).parent.parent / "fixtures" / "transcripts"
HOME = "/home/ines"
_TALK = {"user", "assistant", "system"}
_SPOKEN = {"hook_success", "hook_additional_context", "hook_error_during_execution"}
"""Attachments of hooks; the client has many more, all in words of its own."""

_NOTE = """
import json, os, pathlib, sys, time
told = json.load(sys.stdin)
log = pathlib.Path(told["transcript_path"])
lines = log.read_bytes().count(b"\\n") if log.exists() else 0
(pathlib.Path(sys.argv[1]) / f"{time.time_ns()}.json").write_text(json.dumps({"lines": lines, "input": told}))
"""


def main() -> None:
    command = str(Path(sys.executable).with_name("mcp-memory"))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        memory, notes = folder / "memory", folder / "notes"
        notes.mkdir()
        name = sys.argv[1] if len(sys.argv) > 1 else "skerry"
        story = read_story(FOLDER / f"{name}.json")
        anyio.run(known_before, memory, story)
        (folder / "note.py").write_text(_NOTE, encoding="utf-8")
        note = shlex.join([sys.executable, str(folder / "note.py"), str(notes)])
        hooks: dict[str, list[Any]] = hooks_of("claude-code", [command, "--home", str(memory)])
        for entries in hooks.values():
            entries.append({"hooks": [{"type": "command", "command": note, "timeout": 10}]})
        server = server_entry(client_named("claude-code"), [command, "--home", str(memory), "serve"], {})
        recorded = hold(CLAUDE_CODE.command, story, folder, hooks=hooks, servers={"memory": server})
        log = recorded.transcript.read_text(encoding="utf-8").splitlines()
        events = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(notes.iterdir())]
        _write(log, events, folder, "claude-code" if name == "skerry" else f"claude-code-{name.replace('_', '-')}")


async def known_before(home: Path, story: Story) -> None:
    """Remember what the story's person said on earlier days."""
    async with open_memory(Settings(home=home)) as memory:
        for fact in story.earlier:
            await memory.remember(fact, typed=True)


def _write(log: Sequence[str], events: Sequence[dict[str, Any]], folder: Path, name: str) -> None:
    kept: list[str] = []
    parents: dict[str, str | None] = {}
    until = [0]
    for line in log:
        kept.extend(_told(json.loads(line), parents))
        until.append(len(kept))
    target = FOLDER / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / "session.jsonl").write_text("".join(_elsewhere(line, folder) for line in kept), encoding="utf-8")
    lines = [json.dumps({**event, "lines": until[event["lines"]]}, ensure_ascii=False) + "\n" for event in events]
    (target / "hooks.jsonl").write_text("".join(_elsewhere(line, folder) for line in lines), encoding="utf-8")
    print(f"{len(events)} events, {len(kept)} lines of {len(log)}")


def _told(line: dict[str, Any], parents: dict[str, str | None]) -> Iterator[str]:
    """Yield a line of the conversation; a child of an omitted line is attached to its parent."""
    parent = line.get("parentUuid")
    parent = parents.get(parent, parent) if parent else parent
    attachment = line.get("attachment", {}).get("type")
    if line["type"] in _TALK or attachment in _SPOKEN:
        entry = {**line, "parentUuid": parent} if "parentUuid" in line else dict(line)
        entry.pop("rendered", None)
        yield json.dumps(entry, ensure_ascii=False) + "\n"
    elif "uuid" in line:
        parents[line["uuid"]] = parent


def _elsewhere(line: str, folder: Path) -> str:
    slug = str(folder).replace("/", "-").replace(".", "-").replace("_", "-")
    for place, name in (
        (f"{folder}/home", HOME),
        (f"{folder}/skerry", f"{HOME}/skerry"),
        (f"{folder}/memory", f"{HOME}/.mcp-memory"),
    ):
        line = line.replace(place, name)
    return (
        line.replace(f"{slug}-skerry", "-home-ines-skerry")
        .replace(sys.prefix, "/usr")
        .replace(str(folder), "/tmp/ines")
    )


if __name__ == "__main__":
    main()
