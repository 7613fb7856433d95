"""L1: explicit statements. Model-made atoms belong to another stage; these need no model.

An explicit atom is certain (confidence 1), and an explicit instruction always applies (priority −1, as upstream marks a
global rule).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.secrets import mask_values, states_secret
from mcp_memory.core.text import is_blank, well_formed
from mcp_memory.core.types import Kind, Source
from mcp_memory.language.words import fold
from mcp_memory.longterm.names import name_words
from mcp_memory.store.values import NewAtom

__all__ = ["MAX_CHARS", "explicit_atom", "relation_name"]

MAX_CHARS = 2_000
PRIORITY: dict[Kind, int] = {"persona": 80, "episodic": 70, "instruction": -1}


def explicit_atom(
    text: str,
    *,
    kind: Kind,
    session: str,
    entity: str | None,
    relation: str | None,
    value: str | None,
    supersedes: Sequence[str],
    valid_from: datetime,
    cites: Sequence[str] = (),
    source: Source = "user",
) -> NewAtom:
    """Return the atom that a `remember` asks for. Raises InvalidInput."""
    parts = {"entity": entity, "relation": relation, "value": value}
    given = {name: part.strip() for name, part in parts.items() if part is not None and not is_blank(part)}
    if given and len(given) < 3:
        lacking = " and ".join(sorted(parts.keys() - given.keys()))
        raise InvalidInput(f"A fact needs entity, relation and value together; add {lacking}. Nothing was stored.")
    words = " ".join(given.values()) if is_blank(text) else text.strip()
    if not words:
        raise InvalidInput("There is nothing to remember: text is empty, or has no visible character.")
    if len(words) > MAX_CHARS:
        raise InvalidInput(
            f"{len(words)} characters are more than one statement (at most {MAX_CHARS}). Split it into several, or "
            "keep the words with record_turns. Nothing was stored."
        )
    if not all(map(well_formed, (words, *given.values()))):
        raise InvalidInput("The text has a lone surrogate, which is not text. Nothing was stored.")
    fact = {given["relation"]: given["value"]} if given else {}
    if any(map(states_secret, (words, *given.values()))) or mask_values(fact) != fact:
        raise InvalidInput(
            "This looks like a key or password, and what is remembered is shown in later conversations. Nothing was "
            "stored. Leave the value out; where it is kept may be remembered."
        )
    name = relation_name(given["relation"]) if given else None
    return NewAtom(
        kind=kind,
        text=words,
        priority=PRIORITY[kind],
        confidence=1.0,
        session=session,
        valid_from=valid_from,
        entity=given.get("entity"),
        relation=name,
        value=given.get("value"),
        single_valued=name in name_words("single-valued"),
        cites=tuple(cites),
        supersedes=tuple(supersedes),
        source=source,
    )


def relation_name(name: str) -> str:
    """Return how a relation is stored: `Lives in`, `livesIn` and `lives-in` are one, `lives_in`."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return "_".join(re.findall(r"[\w']+", fold(spaced))) or "is"
