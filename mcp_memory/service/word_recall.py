"""Recall from the embedded store by words alone, without opening a memory: see `longterm.recall.by_words`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from mcp_memory.core.text import safe_name
from mcp_memory.longterm.recall import by_words
from mcp_memory.store.sqlite.word_rows import open_word_rows


def recall_by_words(home: Path, space: str, question: str, *, session: str, shown: str, budget: int) -> str:
    """Return the block for a prompt; empty if nothing is known. Raises InvalidInput, StoreUnavailable and NewerHome."""
    with open_word_rows(home, safe_name(space, what="space"), now=datetime.now(UTC)) as rows:
        if rows is None:
            return ""
        return by_words.recall_by_words(rows, question, session=session, shown=shown, budget=budget)


def rules_by_words(home: Path, space: str, *, shown: str) -> str:
    """Return the block with the user's standing rules; empty without any. Raises as `recall_by_words` does."""
    with open_word_rows(home, safe_name(space, what="space"), now=datetime.now(UTC)) as rows:
        return "" if rows is None else by_words.rules_by_words(rows, shown=shown)
