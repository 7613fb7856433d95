"""Statements of other memories as they are told here: by a program, each once, with secrets masked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from mcp_memory.core.secrets import mask, mask_id
from mcp_memory.integrations.importers.formats.told import Statement
from mcp_memory.longterm.l1_atoms.told import told
from mcp_memory.service.memory.administration import ToldElsewhere
from mcp_memory.store.protocol import NewAtom

__all__ = ["told_by"]


def told_by(statements: Sequence[Statement], *, session: str, now: datetime) -> list[ToldElsewhere]:
    """Return what to tell. A statement is the imported file's word, whoever that heard it from: no rule and no trait.

    It is held true from when the other memory says it was noted, where that was in the past.
    """
    return [
        ToldElsewhere(atom=_atom(one, session=session, now=now), id=one.id and mask_id(one.id), words=mask(one.words))
        for one in statements
    ]


def _atom(one: Statement, *, session: str, now: datetime) -> NewAtom:
    entity, relation, value = one.fact or (None, None, None)
    atom = told(
        mask(one.text),
        kind="episodic",
        session=session,
        entity=entity and mask(entity),
        relation=relation and mask(relation),
        value=value and mask(value),
        supersedes=(),
        valid_from=min(one.said_at or now, now),
        source="import",
    )
    return replace(atom, entities=tuple(map(mask, one.about)), single_valued=False)
