"""Lines of recall's dynamic block: an atom, a fact, a scene, a turn, a rule, a line of a tool result.

Each is one line that begins with an id. Turns are grouped by day. Long turns are cut to the part with the words of the
question; secrets are masked; relative dates get the date they mean. A turn without a speaker is the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal, get_args

from mcp_memory.core.secrets import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import ATTRIBUTION, SAID_BY, Atom, Fact, ResultHit, Role, Scene, Source, Turn
from mcp_memory.language.snippet import matches, snippet
from mcp_memory.language.standing_rules import standing_rules
from mcp_memory.language.words import fold
from mcp_memory.longterm.desk import Desk
from mcp_memory.longterm.l1_atoms.times import date_of
from mcp_memory.longterm.trust import of_tool, of_turn
from mcp_memory.store.citations import plain
from mcp_memory.store.naming import address
from mcp_memory.suspicion import flags

__all__ = [
    "Group", "Line", "is_told", "of_atom", "of_fact", "of_output", "of_rule", "of_scene", "of_turns", "sound", "told",
]  # fmt: skip

_SURELY = 0.55  # strength of a rule: that of plain statements under a heading such as "rules:"
_ATOM_CHARS, _SCENE_CHARS, _OUTPUT_CHARS = 220, 200, 320

Group = Literal["scene", "fact", "atom", "rule", "turn", "output", "end", "maybe", "unsure"]
"""The part of the block that a line belongs to. `unsure` turns are the closest ones, and may be irrelevant.

Automatic recall has one part for all turns, `maybe`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the dynamic block, and the id of its row."""

    group: Group
    id: str
    text: str
    source: Source = "assistant"
    """The source of its text; `assistant` for pages that a model wrote."""
    day: date | None = None
    """The day of a turn; None for other rows."""
    is_suspect: bool = False
    """It reads like an attack and is not shown; its id is told among those left out."""
    place: tuple[str, int] = ("", 0)
    """Session and position of a turn, to sort the turns of a day."""


def sound(desk: Desk, lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines, suspicious ones marked; rows that a person has released pass.

    Rows written before flags existed, and model output, are checked only here. What a tool put out is judged with
    its label. Of other lines the label is judged apart: behind `assistant`, "it asks you to …" reads like an order.
    """
    for line in lines:
        parts = [line.text] if line.source in ("tool", "web") else line.text.split("] ", 1)
        suspect = any(flags(part, line.source) for part in parts) and not _is_released(desk, line.id)
        yield replace(line, is_suspect=True) if suspect else line


def _is_released(desk: Desk, id: str) -> bool:
    is_row = id[:1] in "at" and id[1:].isdigit()
    return is_row and any(one.verdict == "released" for one in desk.store.held(desk.space, [id]))


# --- what is known ----------------------------------------------------------------------------------


def told(atom: Atom) -> str:
    """Return an atom's statement as both blocks show it."""
    return one_line(atom.text, _ATOM_CHARS)


def is_told(atom: Atom, text: str) -> bool:
    """Tell whether a text shows an atom's statement, as a line or as in the persona's page."""
    return f"- {told(atom)}\n" in text or f"{told(atom)} ({atom.id}" in text


def of_atom(atom: Atom) -> Line:
    head = f"- [{atom.id} · {date_of(atom.valid_from, atom.text)}{_whose(atom.source)}]"
    return Line(group="atom", id=atom.id, text=f"{head} {told(atom)}", source=atom.source)


def of_fact(fact: Fact) -> Line:
    parts = (fact.entity, fact.relation.replace("_", " "), fact.value)
    said = " · ".join(one_line(part, 80) for part in parts)
    head = f"- [{fact.atom} · {fact.valid_from:%Y-%m-%d}{_whose(fact.source)}]"
    return Line(group="fact", id=fact.atom, text=f"{head} {said}", source=fact.source)


def _whose(source: Source) -> str:
    return f" · {ATTRIBUTION[source]}" if ATTRIBUTION[source] else ""


def of_scene(scene: Scene, words: AbstractSet[str]) -> Line:
    head = f"- [scene {scene.slug} · {scene.updated:%Y-%m-%d}] {one_line(scene.title, 80)}"
    return Line(group="scene", id=scene.slug, text=f"{head}: {_around(plain(scene.body), words, _SCENE_CHARS)}")


def of_output(hit: ResultHit, words: AbstractSet[str]) -> Line:
    at = address(hit.ref, hit.lines)
    source = of_tool(hit.call.partition(" ")[0])
    whose = "output of" if source == "tool" else "from the web,"
    head = f"- [{at} · {hit.at:%Y-%m-%d} · {whose} {one_line(hit.call, 60)}]"
    return Line(group="output", id=at, text=f"{head} {_around(hit.text, words, _OUTPUT_CHARS)}", source=source)


# --- what was said ----------------------------------------------------------------------------------


def of_turns(
    turns: Sequence[Turn],
    *,
    words: AbstractSet[str],
    widths: Sequence[int],
    group: Group = "turn",
    notes: Mapping[str, str] | None = None,
) -> Iterator[Line]:
    """Yield a line for each turn, at most `widths` characters long (the last of them for all further turns).

    `notes` are remarks on turns by id, such as that a later one changed the value.
    """
    for place, turn in enumerate(turns):
        yield _line(turn, widths[min(place, len(widths) - 1)], words, group, (notes or {}).get(turn.id, ""))


def _line(turn: Turn, width: int, words: AbstractSet[str], group: Group, note: str) -> Line:
    from mcp_memory.language.when.annotate import with_dates

    said = _around(turn.content, words, width)
    dated = with_dates(said, turn.said_at) if turn.role == "user" else said
    head = " · ".join(part for part in (turn.id, _speaker(turn), note) if part)
    return _said(turn, group, f"- [{head}] {dated}")


def of_rule(turn: Turn, width: int) -> Line | None:
    """Return a line for a user's turn that states a standing rule, only the rules of a long one; else None."""
    rules = [rule for rule in standing_rules(turn.content) if rule.strength >= _SURELY]
    if turn.role != "user" or not rules:
        return None
    said = turn.content
    if len(said) > width:
        said = " … ".join(said[rule.start : rule.end] for rule in rules)
    return _said(turn, "rule", f"- [{turn.id} · {turn.said_at:%Y-%m-%d}] {mask(one_line(said, width))}")


def _said(turn: Turn, group: Group, text: str) -> Line:
    place = (turn.session, turn.position)
    return Line(group=group, id=turn.id, text=text, source=of_turn(turn), day=turn.said_at.date(), place=place)


def _speaker(turn: Turn) -> str:
    """Return the speaker of a turn: empty for the user, a name for other people; tools are marked as tools."""
    source = of_turn(turn)
    if source in ("tool", "web"):
        return f"output of {SAID_BY[source]}" + (f", {one_line(turn.name, 40)}" if turn.name else "")
    posing = turn.name is not None and fold(turn.name.strip()) in get_args(Role)
    name = None if posing else turn.name
    return one_line(name or turn.role, 40) if name or turn.role != "user" else ""


def _around(text: str, words: AbstractSet[str], width: int) -> str:
    """Return the part of a text with the words of the question, on one line, with its secrets masked."""
    return mask(one_line(snippet(text, width, matches(text, words))[0] if len(text) > width else text, width + 2))
