"""The real Claude Code, held through twenty turns with a compaction in the middle, our hooks and our server in it.

What is looked at is what the model was sent, and what the memory holds afterwards.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import anyio
import pytest

from bench.client import STORY, held_with_memory, told
from mcp_memory.core.config import Settings
from mcp_memory.core.types import Turn
from mcp_memory.service.memory import open_memory
from scripts.claude_code import Held, Story, hold, read_story
from scripts.install_peers import CLAUDE_CODE
from scripts.record_session import known_before

pytestmark = [pytest.mark.peers, pytest.mark.timeout(300)]

ROOT = Path(__file__).parent.parent.parent
SESSION = "claude-code-3f2a9c1e"
ENDED_WITHIN = 15


@dataclass(frozen=True)
class Session:
    """A story that was held, and the memory's home."""

    story: Story
    held: Held
    home: Path

    def asked(self, prompt: str) -> str:
        """What the model was sent, as text, when it was first asked this."""
        return next(text for text in map(told, self.held.asked) if text.rpartition("\nuser: ")[2].startswith(prompt))

    def turns(self) -> list[Turn]:
        async def read() -> list[Turn]:
            async with open_memory(Settings(home=self.home, embedder="none")) as memory:
                return await memory.session_turns(SESSION)

        return anyio.run(read)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("session")
    home, story = folder / "memory", read_story(STORY)
    anyio.run(known_before, home, story)
    held = held_with_memory(folder, home)
    until = monotonic() + ENDED_WITHIN
    while any((home / "hooks" / "waiting").glob("*.json")) and monotonic() < until:
        sleep(0.05)
    yield Session(story, held, home)
    for left in (home / "hooks").glob("*.json"):
        left.unlink(missing_ok=True)


# --- what the model was sent ------------------------------------------------------------------------


def test_the_first_prompt_comes_with_what_is_known_and_that_it_is_recorded(session: Session) -> None:
    first = session.asked(session.story.turns[0].prompt)
    assert "SessionStart hook additional context: This conversation is recorded" in first
    assert f"session {SESSION}" in first
    assert all(fact in first for fact in session.story.earlier)


def test_a_large_output_is_never_sent_and_its_stand_in_names_it(session: Session) -> None:
    everything = "\n".join(map(told, session.held.asked))
    for name in ("logs/departures.log", "data/tides.csv", "tests/output.txt", "logs/nightly.log"):
        lines = session.story.project[name].splitlines()
        assert sum(line in everything for line in lines) < len(lines) / 10
    assert "expand_node]\\n171 lines; 1: 2026-11-01" in everything


def test_after_a_compaction_the_task_and_the_end_of_the_session_are_given_again(session: Session) -> None:
    after = session.asked("Where were we?")
    assert "The summary below covers the earlier portion" in after
    assert "bin/replay" in after.partition('part="canvas"')[2]
    ended = after.partition("This session, before its context was compacted")[2]
    assert "is not marked as done" in ended
    assert "And what does the tide table have for Torvik?" in ended


def test_what_was_said_before_a_compaction_is_told_when_it_is_asked_for(session: Session) -> None:
    asked = session.asked("What slack did we agree on")
    assert "15 minutes of slack for the Petrel" in asked.partition('part="dynamic"')[2]


def test_from_the_canvas_the_model_comes_back_to_the_line_that_was_put_away(session: Session) -> None:
    text = next(text for text in map(told, session.held.asked) if "1 matching line" in text)
    assert "31 minutes late | bow door sensor 7 failed, reset by hand" in text


# --- what the memory holds --------------------------------------------------------------------------


def test_each_turn_is_kept_once_and_nothing_of_what_was_recalled(session: Session) -> None:
    turns = session.turns()
    said = [turn.content for turn in turns if turn.role == "user"]
    assert said == [turn.prompt for turn in session.story.turns]
    answers = [turn.content for turn in turns if turn.role == "assistant"]
    assert [answer.splitlines()[-1] for answer in answers if answer != "I read it first."] == [
        turn.steps[-1][0]["text"] for turn in session.story.turns
    ]
    [summary] = [turn for turn in turns if turn.role == "system"]
    assert summary.name == "summary"
    assert "Ines works on Skerry, a ferry planner" in summary.content
    assert not any("mcp-memory-recall" in turn.content for turn in turns)


def test_the_resident_had_nothing_to_complain_of(session: Session) -> None:
    log = session.home / "hooks" / "hooks.log"
    assert not log.exists() or not log.read_text(encoding="utf-8")


# --- the plugin -------------------------------------------------------------------------------------


def test_the_plugin_alone_brings_the_same_hooks(tmp_path: Path) -> None:
    """Its launcher finds the program where installers of Python put it."""
    (tmp_path / "home" / ".local" / "bin").mkdir(parents=True)
    (tmp_path / "home" / ".local" / "bin" / "mcp-memory").symlink_to(Path(sys.executable).with_name("mcp-memory"))
    client = [*CLAUDE_CODE.command, "--plugin-dir", str(ROOT / "plugin")]
    held = hold(client, read_story(STORY), tmp_path, hooks={}, servers={}, prompts=4)
    assert "This conversation is recorded in memory by itself" in told(held.asked[0])
    assert "expand_node]\\n171 lines; 1: 2026-11-01" in told(held.asked[-1])
    assert "mcp__plugin_mcp-memory_memory__recall" in {tool["name"] for tool in held.asked[-1]["tools"]}


# --- when there is no memory ------------------------------------------------------------------------


def test_a_home_that_cannot_be_used_stops_no_turn(tmp_path: Path) -> None:
    home = tmp_path / "memory"
    home.write_text("no folder", encoding="utf-8")
    held = held_with_memory(tmp_path, home, prompts=4)
    log = held.transcript.read_text(encoding="utf-8")
    assert "31 minutes: sensor 7 of the bow door had failed" in log
    assert "hook_error" not in log
    assert "hook_blocking_error" not in log
