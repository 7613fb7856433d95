"""Measures which standing rules recall shows for a prompt: `python -m bench.rule_relevance`

Twelve memories (`fixtures/rules/relevance`) each have 8 to 11 rules, some of them replaced or withdrawn later, and 12
prompts, with the rules that govern them; rules about every answer govern all of them. Each message is recorded as a
turn on a separate day, the reader turns its sentences into statements, and each prompt is recalled. The figures, for
the statements of rules that an ordinary search finds first (up to three for a question, up to six otherwise) and for
the rules that recall shows, are

    shown       rules per prompt
    precision   share of these that governs the prompt
    recall      share of the rules that govern the prompt that is shown
    outdated    share of the prompts for which a rule is shown that had ended, without the message that ended it
    none        share of the prompts without a rule (except rules about every answer) for which none is shown

A message that withdrew a rule counts as neither right nor wrong. Rules of which the reader makes no statement are
missing from both; `recognised` is the recall among the others. The projection and the weights of
`scripts/fit_rule_relevance.py` come from other sentences and from these prompts, so these figures are in-sample; the
script prints figures that leave each memory out in turn.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from anyio import to_thread

from bench.ours import until_indexed
from mcp_memory.core.config import Settings
from mcp_memory.core.types import Atom, NewTurn
from mcp_memory.longterm.recall.lines import RecallLimits
from mcp_memory.longterm.recall.rules import rules_for
from mcp_memory.longterm.search.search import SearchContext, atom_turns
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.sql import atom_rows
from mcp_memory.store.values import Filters

MEMORIES = Path(__file__).parent.parent / "fixtures/rules/relevance"
_NEAREST, _FOR_QUESTION, _LOOKED_AT = 6, 3, 24
_START = datetime(2026, 1, 1, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    id: str
    text: str
    is_rule: bool
    general: bool
    """Whether it is a rule about every answer."""
    ends: tuple[str, ...]
    """Ids of the rules that it replaces or withdraws."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    text: str
    rules: frozenset[str]
    """Ids of the rules that govern it, except those about every answer."""


@dataclass(frozen=True, kw_only=True)
class RuleMemory:
    """A memory: messages in chronological order, and prompts after them."""

    name: str
    said: Sequence[Message]
    prompts: Sequence[Prompt]

    @cached_property
    def ended(self) -> frozenset[str]:
        return frozenset(id for message in self.said for id in message.ends)

    @cached_property
    def current(self) -> list[Message]:
        """The rules in force."""
        return [message for message in self.said if message.is_rule and message.id not in self.ended]

    def pairs(self) -> Iterator[tuple[str, str, bool]]:
        """Yield (rule, later message, whether the message ends the rule)."""
        for place, older in enumerate(self.said):
            if older.is_rule:
                for newer in self.said[place + 1 :]:
                    yield older.text, newer.text, older.id in newer.ends


def read_memories() -> list[RuleMemory]:
    return [_read(path) for path in sorted(MEMORIES.glob("*.jsonl"))]


def _read(path: Path) -> RuleMemory:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return RuleMemory(
        name=path.stem,
        said=[
            Message(
                id=row["id"], text=row["said"], is_rule=row.get("rule", True), general=row.get("general", False),
                ends=tuple(row.get("ends", ())),
            )
            for row in rows
            if "said" in row
        ],
        prompts=[Prompt(text=row["prompt"], rules=frozenset(row["rules"])) for row in rows if "prompt" in row],
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The messages shown for a prompt, and those that would be right, by id."""

    memory: RuleMemory
    prompt: Prompt
    nearest: list[str]
    governing: list[str]
    recognised: frozenset[str]
    """The messages from which the reader made a statement of a rule."""

    @property
    def right(self) -> frozenset[str]:
        return self.prompt.rules | {rule.id for rule in self.memory.current if rule.general}


async def shown_in(memory: RuleMemory) -> list[Shown]:
    """Record the messages of a memory, and collect the rules for each of its prompts."""
    with TemporaryDirectory(prefix="bench-") as folder:
        now = _START + timedelta(days=len(memory.said))
        async with open_memory(Settings(home=Path(folder)), now=lambda: now) as opened:
            names: dict[str, str] = {}
            for day, message in enumerate(memory.said):
                turn = NewTurn(role="user", content=message.text, said_at=_START + timedelta(days=day))
                done = await opened.record_turns([turn], session=f"day-{day}")
                names |= dict.fromkeys(done.stored, message.id)
            await until_indexed(opened)
            recognised = frozenset(names[id] for id in await to_thread.run_sync(_stating, opened, names))
            found: list[Shown] = []
            for prompt in memory.prompts:
                nearest, governing = await to_thread.run_sync(_shown, opened, prompt.text)
                found.append(
                    Shown(
                        memory=memory,
                        prompt=prompt,
                        nearest=[names[id] for id in nearest],
                        governing=[names[id] for id in governing],
                        recognised=recognised,
                    )
                )
            return found


def _stating(opened: Memory, turns: Iterable[str]) -> list[str]:
    """Return the turns from which the reader made a statement of a rule, including ended ones."""
    context = _desk(opened)
    based = context.store.read(context.space, atom_rows.based_on, turns)
    return [id for id, atoms in based.items() if any(map(_is_rule, atoms))]


def _shown(opened: Memory, prompt: str) -> tuple[list[str], list[str]]:
    """Return the ids of the turns whose rules are nearest to a prompt, and of those that recall shows."""
    context = _desk(opened)
    hits = context.hits("atom", prompt, filters=Filters(kind="instruction", unheld=True), limit=_LOOKED_AT)
    nearest = [
        atom.id
        for atom in context.store.read(context.space, atom_rows.by_ids, [hit.id for hit in hits])
        if _is_rule(atom)
    ]
    most = _FOR_QUESTION if "?" in prompt or "？" in prompt else _NEAREST
    lines = rules_for(context, prompt, (), RecallLimits(), "").lines
    return _turns_of(context, nearest)[:most], _turns_of(context, [line.id for line in lines])


def _desk(opened: Memory) -> SearchContext:
    return opened._parts.scheduler.context().cached()  # pyright: ignore[reportPrivateUsage]  no verb


def _is_rule(atom: Atom) -> bool:
    return atom.kind == "instruction" and atom.label != "promise"


def _turns_of(context: SearchContext, ids: Sequence[str]) -> list[str]:
    """Return the distinct turns of some ids: for a statement, the latest turn that states it."""
    atoms = {
        atom.id: atom
        for atom in context.store.read(context.space, atom_rows.by_ids, [id for id in ids if id[0] == "a"])
    }
    latest = (max(atom_turns(atoms[id]), key=lambda turn: int(turn[1:])) if id in atoms else id for id in ids)
    return list(dict.fromkeys(latest))


def table(found: Sequence[Shown]) -> Iterator[str]:
    """Yield the lines of the report."""
    columns = ("prompts", "shown", "precision", "recall", "recognised", "outdated", "none")
    yield " " * 20 + "".join(f"{name:>12}" for name in columns)
    memories = list(dict.fromkeys(one.memory.name for one in found))
    for side in ("nearest", "governing"):
        yield _row(side, found, side)
    for name in memories:
        yield _row(name, [one for one in found if one.memory.name == name], "governing")


def _row(title: str, found: Sequence[Shown], side: str) -> str:
    shown = rightly = counted = wanted = recognised = rightly_recognised = outdated = 0
    without: list[bool] = []
    for one in found:
        ids: list[str] = getattr(one, side)
        messages = {message.id: message for message in one.memory.said}
        rules = [id for id in ids if messages[id].is_rule]
        known = one.right & one.recognised
        shown += len(ids)
        counted += len(ids) - sum(bool(messages[id].ends) and not messages[id].is_rule for id in ids)
        rightly += len(one.right.intersection(rules))
        wanted += len(one.right)
        recognised += len(known)
        rightly_recognised += len(known.intersection(rules))
        outdated += _is_outdated(one.memory, ids)
        if not one.prompt.rules:
            without.append(not any(not messages[id].general for id in rules))
    shares = (
        rightly / max(1, counted), rightly / wanted, rightly_recognised / max(1, recognised), outdated / len(found),
        sum(without) / len(without),
    )  # fmt: skip
    return f"{title:<20}{len(found):12}{shown / len(found):12.1f}" + "".join(f"{share:12.1%}" for share in shares)


def _is_outdated(memory: RuleMemory, ids: Sequence[str]) -> bool:
    marked = {id for message in memory.said if message.id in ids for id in message.ends}
    return not memory.ended.intersection(ids) <= marked


async def measure() -> list[Shown]:
    return [shown for memory in read_memories() for shown in await shown_in(memory)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rule_relevance", description="Rules shown for prompts.")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print that many prompts with what is shown")
    options = parser.parse_args()
    found = anyio.run(measure)
    print("\n".join(table(found)))
    for one in found[: options.show]:
        print(f"\n{one.prompt.text}\n  right {sorted(one.right)}\n  shown {one.governing}, nearest {one.nearest}")


if __name__ == "__main__":
    main()
