"""Logs that the real Codex and the real Gemini CLI wrote, our hooks in them: what was said, once, and nothing else.

`fixtures/transcripts` holds them; the words are ours, and the clients' own prompts were taken out. Claude Code's is
read in `test_claude_code`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations.importers.agents import followed, refs, turns

TRANSCRIPTS = Path(__file__).parents[3] / "fixtures" / "transcripts"
ASKED = [("user", "Which berth does the Kestrel take?")]
ANSWERED = [("assistant", "The Kestrel takes berth B1, because she is 150 m long.")]
WHAT_WAS_SAID = ("user", "What did we say of the Kestrel and its berth?")


def logs(client: str) -> list[Path]:
    return sorted((TRANSCRIPTS / client).iterdir())


@pytest.mark.parametrize("client", ["codex", "gemini"])
def test_turns_are_stored_once_and_without_recalled_texts(client: str, home: Path) -> None:
    followed(home, *logs(client))
    stored = turns(home).values()
    assert any(told[:2] == ASKED + ANSWERED and len(told) == 4 for told in stored)
    assert any(told[0] == WHAT_WAS_SAID and len(told) == 2 for told in stored)
    assert not any(
        mark in words for told in stored for _, words in told for mark in ("mcp-memory", "recorded in memory")
    )
    # One session was rewound, resumed and compacted.
    [told] = [told for told in stored if told[0] == ("user", "one please")]
    said = [words for role, words in told if role == "user"]
    assert said == ["one please", "two please", "three please instead", "three again"]
    assert [role for role, _ in told].count("assistant") == 4
    assert [role for role, _ in told].count("system") == 1
    [kept] = refs(home)
    assert kept.count(b"ship Kestrel took berth") == 17
    assert sum(done.stored + done.kept for done in followed(home, *logs(client))) == 0
