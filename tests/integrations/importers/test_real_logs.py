"""Logs of the real Codex and Gemini CLI with our hooks: each message is stored once, and nothing else.

`fixtures/transcripts` holds them; the words are ours, and the clients' own prompts were removed. Claude Code's is
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
    assert any(session[:2] == ASKED + ANSWERED and len(session) == 4 for session in stored)
    assert any(session[0] == WHAT_WAS_SAID and len(session) == 2 for session in stored)
    assert not any(
        mark in words for session in stored for _, words in session for mark in ("mcp-memory", "recorded in memory")
    )
    # One session was rewound, resumed and compacted.
    [session] = [session for session in stored if session[0] == ("user", "one please")]
    words_of_user = [words for role, words in session if role == "user"]
    assert words_of_user == ["one please", "two please", "three please instead", "three again"]
    assert [role for role, _ in session].count("assistant") == 4
    assert [role for role, _ in session].count("system") == 1
    [kept] = refs(home)
    assert kept.count(b"ship Kestrel took berth") == 17
    assert sum(done.stored + done.kept for done in followed(home, *logs(client))) == 0
