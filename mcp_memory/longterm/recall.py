"""Recall: what a context needs to know, in two blocks, so that prompt caches live.

The stable block (who the user is, standing instructions, the persona) changes only when something was told.
The dynamic block is what this question needs: atoms ranked 0.6 × similarity + 0.4 × confidence (the formula of
DeerFlow's memory), then verbatim turns. Nothing relevant means nothing injected. Both fit the budget, counted
exactly, and `left_out` names what was relevant and did not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mcp_memory.longterm import l3_persona
from mcp_memory.longterm.l0_turns import recall_block
from mcp_memory.longterm.search import Ranked, Search
from mcp_memory.store.protocol import Filters, Store, Vectors
from mcp_memory.text import base_terms, index_terms, one_line, query_terms
from mcp_memory.tokens import TokenCounter
from mcp_memory.types import Atom, Bundle, Turn

__all__ = ["Relevance", "bundle", "context_of"]

IDENTITY_TOKENS = 50
STANDING_TOKENS = 120
SIMILARITY_WEIGHT = 0.6
CONFIDENCE_WEIGHT = 0.4
_ATOMS, _TURNS = 12, 8
_TURN_CHARS = 400
# Cosines of a static model say little by themselves: on real conversations one turn in ten of any kind passes 0.6,
# and a question about nothing in the store finds some at 0.5. So words must agree as well, or the cosine be rare.
_HALF_THE_WORDS = 0.5
_SOME_WORDS, _NEAR = 0.25, 0.6
_VERY_NEAR = 0.82


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """How near a row is to what is asked: 0 to 1; `enough` is what recall asks before it interrupts."""

    similarity: float
    enough: bool


def context_of(store: Store, space: str, session: str | None) -> str:
    """Return the last three user turns and assistant answers of a session, as further words of the question."""
    if session is None:
        return ""
    turns = store.last_turns(space, session, limit=6, roles=("user", "assistant"))
    return "\n".join(one_line(turn.content, _TURN_CHARS) for turn in turns)


def bundle(
    store: Store,
    search: Search,
    space: str,
    question: str,
    *,
    embedded: Callable[[], Sequence[Vectors]],
    counter: TokenCounter,
    budget: int,
) -> Bundle:
    """Return the two blocks within `budget` tokens together."""
    stable, shown = _stable(store, space, counter, budget)
    left = budget - (counter.count(stable) if stable else 0)
    lines = list(_dynamic_lines(store, search, space, question, embedded, shown)) if question.strip() else []
    dynamic, left_out = _fit(lines, counter, left, part="dynamic")
    tokens = sum(counter.count(block) for block in (stable, dynamic) if block)
    return Bundle(stable=stable, dynamic=dynamic, tokens=tokens, left_out=left_out)


def _stable(store: Store, space: str, counter: TokenCounter, budget: int) -> tuple[str, set[str]]:
    """Return the block and the ids of the atoms it shows."""
    who = _within("User: ", l3_persona.identity(store, space), "; ", counter, IDENTITY_TOKENS)
    rules = store.list_atoms(space, filters=Filters(kind="instruction"), limit=50)
    standing = [atom for atom in rules if atom.priority < 0]
    always = _within("Always:\n", [f"- {one_line(a.text, 300)}" for a in standing], "\n", counter, STANDING_TOKENS)
    persona = store.persona(space)
    body = _without(persona.text, "Standing instructions") if persona and persona.text != l3_persona.EMPTY else ""
    lines = [(id_, line) for line in [*who, *always, *body] for id_ in [_id_in(line)]]
    text, _ = _fit(lines, counter, budget, part="stable")
    shown = {atom.id for atom in standing if one_line(atom.text, 300) in text}
    return text, shown | {id_ for id_, line in lines if id_ and line in text}


def _within(head: str, items: Sequence[str], joint: str, counter: TokenCounter, budget: int) -> list[str]:
    taken: list[str] = []
    for item in items:
        if counter.count(head + joint.join([*taken, item])) > budget:
            break
        taken.append(item)
    return (head + joint.join(taken)).splitlines() if taken else []


def _without(page: str, section: str) -> list[str]:
    """Return the page's lines but its title and one section."""
    lines: list[str] = []
    skipping = False
    for line in page.splitlines():
        if line.startswith("## "):
            skipping = line[3:] == section
        if line and not skipping and line != "# Persona":
            lines.append(line)
    return lines


def _id_in(line: str) -> str:
    return line.rpartition("(")[2].rstrip(")") if line.startswith("- ") and line.endswith(")") else ""


def _dynamic_lines(
    store: Store,
    search: Search,
    space: str,
    question: str,
    embedded: Callable[[], Sequence[Vectors]],
    shown: set[str],
) -> Iterable[tuple[str, str]]:
    wanted = set(query_terms(question)) & set(base_terms(question))  # one form a word, so that shares are of words
    hits = search(space, "atom", question, embedded=embedded, filters=Filters(), limit=_ATOMS)
    by_id = {hit.id: hit for hit in hits}
    ranked: list[tuple[float, Atom]] = []
    for atom in store.atoms(space, by_id):
        near = _relevance(by_id[atom.id], atom.text, wanted)
        if near.enough and atom.id not in shown:
            ranked.append((SIMILARITY_WEIGHT * near.similarity + CONFIDENCE_WEIGHT * atom.confidence, atom))
    ranked.sort(key=lambda pair: (-pair[0], -int(pair[1].id[1:])))
    for _, atom in ranked:
        yield atom.id, f"- [{atom.id} · {atom.valid_from:%Y-%m-%d}] {one_line(atom.text, _TURN_CHARS)}"
    yield from _turn_lines(store, search, space, question, embedded, wanted)


def _turn_lines(
    store: Store,
    search: Search,
    space: str,
    question: str,
    embedded: Callable[[], Sequence[Vectors]],
    wanted: set[str],
) -> Iterable[tuple[str, str]]:
    hits = search(space, "turn", question, embedded=embedded, filters=Filters(), limit=_TURNS)
    by_id = {hit.id: hit for hit in hits}
    for turn in store.turns(space, by_id):
        if _relevance(by_id[turn.id], turn.content, wanted).enough:
            yield (
                turn.id,
                f"- [{turn.id} · {turn.said_at:%Y-%m-%d} · {_speaker(turn)}] {one_line(turn.content, _TURN_CHARS)}",
            )


def _relevance(hit: Ranked, text: str, wanted: set[str]) -> Relevance:
    """Tell how near a text is to the telling words of the question and to its meaning."""
    overlap = len(wanted & set(index_terms(text))) / len(wanted) if wanted else 0.0
    cosine = max(0.0, hit.cosine or 0.0)
    enough = overlap >= _HALF_THE_WORDS or (overlap >= _SOME_WORDS and cosine >= _NEAR) or cosine >= _VERY_NEAR
    return Relevance(similarity=max(cosine, overlap), enough=enough)


def _speaker(turn: Turn) -> str:
    return one_line(turn.name, 40) if turn.name else turn.role


def _fit(lines: Sequence[tuple[str, str]], counter: TokenCounter, budget: int, *, part: str) -> tuple[str, list[str]]:
    """Return the block of the lines that fit, in order, and the ids of those that do not."""
    taken: list[str] = []
    left_out: list[str] = []
    for id, line in lines:
        if counter.count(recall_block("\n".join([*taken, line]), part=part)) <= budget:
            taken.append(line)
        elif id:
            left_out.append(id)
    return (recall_block("\n".join(taken), part=part) if taken else ""), left_out
