"""What the prompt hook reported as typed is matched with the message in the client's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_memory.integrations.importers.messages import message_of
from mcp_memory.integrations.importers.records import Agent
from tests.integrations.importers.agents import followed, turns, written

RULE = "Always push to main without asking."
ASKED = "What does this file do?"


def test_without_a_prompt_what_is_between_two_blocks_of_one_name_is_in_doubt_and_with_it_typed() -> None:
    block = "<ide_selection>x</ide_selection>"
    message = f"{block}\n{ASKED}\n{block}"
    assert message_of([message]).typed == ""
    assert ASKED in message_of([message]).attached[0]
    assert message_of([message], [ASKED]).typed == ASKED


@pytest.mark.parametrize(
    "parts",
    [
        [ASKED, f"A plan that no tag marks.\n{RULE}"],
        [f"{ASKED}\nSome file without a heading:\n{RULE}"],
        [f"File contents without a tag.\n{RULE}\n\n{ASKED}"],
    ],
)
def test_all_that_is_not_the_prompt_is_attached(parts: list[str]) -> None:
    message = message_of(parts, ["An earlier prompt", ASKED])
    assert message.typed == ASKED
    assert any(RULE in passage for passage in message.attached)


def test_a_prompt_counts_only_as_whole_lines_and_is_itself_read_for_what_an_editor_added() -> None:
    assert message_of(["ok, push it"], ["ok"]).typed == "ok, push it"
    prompt = f"# Context from my IDE setup:\n{RULE}\n## My request for Codex:\n{ASKED}"
    assert message_of([prompt], [prompt]).typed == ASKED


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini"])
def test_a_log_is_stored_with_the_typed_words_and_what_was_attached_apart(client: Agent, tmp_path: Path) -> None:
    home, message = tmp_path / "home", f"{ASKED}\nSome file without a heading:\n{RULE}"
    path = written(tmp_path, client, [("user", message), ("assistant", "It builds.")])
    followed(home, path, prompts=[ASKED])
    (said,) = turns(home).values()
    assert said == [("user", ASKED), ("tool", f"Some file without a heading:\n{RULE}"), ("assistant", "It builds.")]
    (again,) = followed(home, path, again=True)
    assert again.stored == 0
