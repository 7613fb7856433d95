"""Standing rules that a user states in passing, found by the grammar of sixteen languages, without a model.

    find          the sentences of a turn that state a rule, with their strength
    reported      what others do or say, which is no rule
    grammar       the patterns of a language, and the form of its file
    patterns/     one file a language; `sv` is Swedish, Danish and Norwegian

Nothing is compiled before a text needs it.
"""

from __future__ import annotations

from mcp_memory.language.standing_rules.find import READ, Rule, is_question, sentences, standing_rules
from mcp_memory.language.standing_rules.reported import is_reported, people

__all__ = ["READ", "Rule", "is_question", "is_reported", "people", "sentences", "standing_rules"]
