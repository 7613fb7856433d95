"""Finds the question of a logged recall, although the log keeps no questions by default.

Agents whose conversations are recorded also have their prompts in the memory, as turns of the user. The log has hashes
of the words of each question, by which its turn is recognised among the turns of the session around that time.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcp_memory.longterm.attachments import typed_text
from mcp_memory.longterm.search.feedback import question_hashes
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import recall_rows
from mcp_memory.store.values import RecallEntry

_LOOKED_AT = 8  # turns of the user before a recall, and as many after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The question of a recall: its text, and the turn that has it, if any.

    If `is_before`, the agent worded a question of its own, which is not known, and this is what the user had said last.
    """

    text: str
    turn: str | None
    is_before: bool = False


def asked_by(store: Store, space: str, entry: RecallEntry) -> Asked | None:
    """Return the question of a recall, or what the user had said before it; None if neither was kept."""
    said = store.read(space, recall_rows.said_around, entry.session, entry.at, limit=_LOOKED_AT)
    asked = frozenset(entry.words)
    for id, _, content in sorted(said, key=lambda turn: abs(turn[1] - entry.at)) if asked else ():
        if question_hashes(text := typed_text(content).strip()) == asked:
            return Asked(text=text, turn=id)
    if entry.query:
        return Asked(text=entry.query, turn=None)
    if entry.how == "recall":
        for id, at, content in reversed(said):
            if at <= entry.at and (text := typed_text(content).strip()):
                return Asked(text=text, turn=id, is_before=True)
    return None
