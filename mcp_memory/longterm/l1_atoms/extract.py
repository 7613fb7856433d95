"""L1, extraction: the next turns of a session, read once for what is durably true, become drafts of atoms.

One question a batch: divide the turns into scenes and note what is worth keeping, each note with the words that it
rests on. Drafts, names of entities and the session's cursor are stored together, so every turn is read exactly once.
What does not hold is refused and told; where nothing at all holds the reply goes back, unless that happened before.

    noise, phrases    turns that no model needs to see
    batch             which turns a question is about, and how it shows them
    names             who and what is meant
    reply             the shape of the answer, and its misshapes
    quotes            where quoted words stand
    grounding         what of the answer holds
    times             and when
    language          whether it is in a language that was spoken
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pydantic import BaseModel

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.language.words import fold
from mcp_memory.longterm.desk import Desk
from mcp_memory.longterm.l1_atoms.batch import Batch, batch_of, next_batch, shown
from mcp_memory.longterm.l1_atoms.grounding import Kept, Refusal, grounded
from mcp_memory.longterm.l1_atoms.language import in_a_strange_language
from mcp_memory.longterm.l1_atoms.names import USER, Names, names_in, table, with_told
from mcp_memory.longterm.l1_atoms.reply import Extracted, Statement
from mcp_memory.models.metered import Question
from mcp_memory.models.prompts import prompt
from mcp_memory.models.stage import Applied, StageDefinition
from mcp_memory.store.protocol import Backlog, Work

__all__ = ["EXTRACT", "Basis"]

MAX_ATOMS = 20
_REPLY_TOKENS = 6_000
_SCENE_CHARS = 80


class Basis(BaseModel):
    """The positions of a batch in its session, the second not in it."""

    session: str
    start: int
    stop: int


# --- asking -----------------------------------------------------------------------------------------


def plan(desk: Desk, *, session: str | None, smaller: int) -> Basis | None:
    """Return the batch that begins where the session was read to; None where nothing was said since."""
    waits = None if session is None else _backlog(desk, session)
    if waits is None:
        return None
    most = max(1, desk.settings.batch_turns >> smaller)
    batch = next_batch(desk.store, desk.space, waits.session, waits.start, most=most, background=0)
    return Basis(session=waits.session, start=waits.start, stop=batch.stop) if batch.stop > waits.start else None


def question(desk: Desk, basis: Basis) -> Question[Extracted] | None:
    """Return what a model is asked about the batch; None where all of it is noise."""
    batch = _batch(desk, basis)
    if not batch.turns:
        return None
    waits = _backlog(desk, basis.session)
    names = names_in(desk.store, desk.space, [*batch.background, *batch.turns])
    return Question(
        purpose="extract",
        messages=prompt(
            "extract",
            people=_people(names),
            known=table(names),
            scene=one_line(waits.scene if waits else "", _SCENE_CHARS) or "none yet",
            background=shown(batch.background, background=True),
            turns=shown(batch.turns),
            most=str(MAX_ATOMS),
        ),
        reply=Extracted,
        max_tokens=_REPLY_TOKENS,
    )


def _backlog(desk: Desk, session: str) -> Backlog | None:
    return next(iter(desk.store.backlog(desk.space, session=session)), None)


def _batch(desk: Desk, basis: Basis) -> Batch:
    return batch_of(
        desk.store,
        desk.space,
        basis.session,
        basis.start,
        basis.stop,
        background=desk.settings.background_turns,
    )


def _people(names: Names) -> str:
    lines = [
        f"The user is {names.user}: call them so."
        if names.user
        else 'The user has told no name: call them "the user", in the language of the turns. Note a name they tell.'
    ]
    for name in names.others:
        known = f" A {names.relations[name]} of the user." if name in names.relations else ""
        lines.append(f"{name}: they speak too, for themselves; call them by this name.{known}")
    if len(names.others) > len(names.relations):
        lines.append(
            'What others are to the user, such as a friend, is worth one note ("implied") if the turns show it.'
        )
    return one_line(" ".join(lines).replace("<", " "), 600)


# --- answering --------------------------------------------------------------------------------------


def apply(desk: Desk, work: Work, basis: Basis, reply: Extracted | None) -> Applied:
    """Store what of the reply holds, and that these turns were read.

    Raises InvalidInput where nothing holds for want of quotes, or all is in a language that nobody spoke; a work that
    failed before is taken with what it gives, so that a weak model does not hold up a session for good.
    """
    batch = _batch(desk, basis)
    names = names_in(desk.store, desk.space, [*batch.background, *batch.turns])
    statements = [atom for scene in reply.scenes for atom in scene.atoms] if reply else []
    names = with_told(names, desk.store, desk.space, [one.text for one in statements])
    judged = [(one, grounded(one, batch, names, basis.session)) for one in statements]
    if work.attempts == 0:
        _demand(judged, batch)
    kept, refused = _sorted_out(judged)
    named = [name for scene in reply.scenes if (name := one_line(scene.name, _SCENE_CHARS))] if reply else []
    outcome = {
        "turns": batch.read,
        "skipped": batch.skipped,
        "atoms": len(kept),
        "refused": len(refused),
        "scenes": len(named),
    }
    desk.store.commit_extraction(
        desk.space,
        work.id,
        upto=basis.stop,
        drafts=[one.atom for one in kept],
        aliases=_aliases(statements, names),
        scene=named[-1] if named else "",
        outcome=outcome,
        now=desk.now,
    )
    return Applied(
        outcome=outcome,
        kept=[f"{one.turn.id}: {one.atom.text}" for one in kept],
        refused=[*refused, *(f"{one.turn.id}: {told}" for one in kept for told in one.told)],
    )


Judged = Sequence[tuple[Statement, Kept | Refusal]]


def _demand(judged: Judged, batch: Batch) -> None:
    """Raise InvalidInput where the reply is worth mending as a whole."""
    unquoted = [(one, found) for one, found in judged if isinstance(found, Refusal) and found.unquoted]
    if judged and len(unquoted) == len(judged):
        statement, why = unquoted[0]
        raise InvalidInput(
            f"None of the {len(judged)} notes can be kept: {why.reason} ({one_line(statement.quote, 80)!r}). Copy each "
            "quote letter by letter from the turn that `turn` names, and name new turns only."
        )
    texts = [found.atom.text for _, found in judged if isinstance(found, Kept)]
    if texts and in_a_strange_language(texts, [turn.content for turn in (*batch.background, *batch.turns)]):
        raise InvalidInput(
            "The notes are in another language than the conversation. Write name and text in the language of the turns."
        )


def _sorted_out(judged: Judged) -> tuple[list[Kept], list[str]]:
    """Return what is kept, each statement once with all its evidence, and why the rest is not."""
    held: dict[str, Kept] = {}
    refused: list[str] = []
    for statement, found in judged:
        if isinstance(found, Refusal):
            refused.append(f"{one_line(statement.text, 80)!r} is not kept: {found.reason}.")
            continue
        key = fold(found.atom.text)
        if key in held:
            evidence = dict.fromkeys((*held[key].atom.evidence, *found.atom.evidence))
            found = replace(held[key], atom=replace(held[key].atom, evidence=tuple(evidence)))
        held[key] = found
    by_weight = sorted(held.values(), key=_weight, reverse=True)
    most = {id(one) for one in by_weight[:MAX_ATOMS]}
    refused += [
        f"{one_line(one.atom.text, 80)!r} is not kept: a batch has at most {MAX_ATOMS} notes, and others weigh more."
        for one in by_weight[MAX_ATOMS:]
    ]
    return [one for one in held.values() if id(one) in most], refused


def _weight(kept: Kept) -> int:
    """Return a priority such that what always applies comes first."""
    return kept.atom.priority if kept.atom.priority >= 0 else 101


def _aliases(statements: Iterable[Statement], names: Names) -> dict[str, Sequence[str]]:
    """Return the further names that were said of entities, and the user's own."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    if names.user:
        found[USER][names.user] = None
    for statement in statements:
        for named in statement.entities:
            for alias in names.aliases(named):
                found[names.chief(named.name) or named.name][alias] = None
    return {name: tuple(aliases) for name, aliases in found.items()}


EXTRACT = StageDefinition(name="extract", basis=Basis, reply=Extracted, plan=plan, question=question, apply=apply)
