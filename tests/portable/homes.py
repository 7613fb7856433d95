"""Homes with something of everything, and what is left of two of them that have to say the same."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from anyio import to_thread

from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.portable.reading import open_export
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import job_rows, stage_outputs, turn_rows
from mcp_memory.store.values import Extraction, Merge, Merging, NewAtom, PersonaPage, SceneChanges, SceneEdit
from mcp_memory.testing import FixedClock

CLOCK = datetime(2026, 5, 7, 10, 0, tzinfo=UTC)
BIG = "\n".join(f"line {number}: port {number * 7} is open" for number in range(400))


@asynccontextmanager
async def memory(home: Path, space: str = "default", **more: Any) -> AsyncGenerator[Memory]:
    more = {"embedder": "none", "llm": "none", "now": FixedClock(CLOCK)} | more
    async with open_memory(home=home, space=space, **more) as held:
        yield held


def store_of(held: Memory) -> Store:
    return held._parts.store  # pyright: ignore[reportPrivateUsage]


async def fill(held: Memory) -> None:
    """Say, do, tell and distil a bit of everything."""
    await held.record_turns(
        [
            NewTurn(role="user", content="Maya lives in Lisbon now, since May.", said_at=CLOCK - timedelta(days=3)),
            NewTurn(role="assistant", content="Noted: Lisbon.\x85 \u2028Anything else?", client_id="m-1"),
            NewTurn(role="tool", name="fetch", content="a page 海港街"),
        ],
        session="talk",
    )
    await held.record_turns([NewTurn(role="user", content="The boat leaves at nine.")], session="Talk")
    first = await held.remember("I work at Acme", entity="user", relation="works_at", value="Acme", typed=True)
    await held.remember("I work at Umbrella", entity="user", relation="works_at", value="Umbrella", typed=True)
    await held.remember("Answer in French", kind="instruction", supersedes=[], typed=True)
    out = await held.offload_tool_result("scan", BIG, arguments={"host": "h"}, task="Open ports", step="scan the host")
    await held.offload_tool_result("scan", BIG + "\nmore", task="Open ports", step="scan again", status="done")
    await held.record_turns([NewTurn(role="assistant", content=f"As {out.ref}:3-4 says, port 21.")], session="talk")
    await to_thread.run_sync(extract, held)
    await held.recall("Where does Maya live?")
    (entry,) = await held.recalls(limit=1)
    await held.give_feedback(entry.id, entry.ids[0], "wrong")
    assert first.atom.id == "a1"


def extract(held: Memory) -> None:
    """Have a model read the talk, tell a scene of it and write the page."""
    store, space = store_of(held), held.space
    turn = next(one for one in store.read(space, turn_rows.session_turns, "talk") if one.content.startswith("Maya"))
    words = Evidence(turn=turn.id, span=(0, 19), quote=turn.content[:19])

    def take(stage: Any, session: str | None = None) -> str:
        work = store.write(
            space,
            job_rows.lease,
            stage,
            session,
            '{"start": 0, "after": 0}',
            holder="h",
            lease=timedelta(hours=1),
            now=CLOCK,
        )
        assert work is not None
        return work.id

    atom = NewAtom(
        kind="episodic",
        text="Maya lives in Lisbon",
        priority=60,
        confidence=0.8,
        session="talk",
        valid_from=CLOCK,
        entity="Maya Lopez",
        relation="lives_in",
        value="Lisbon",
        single_valued=True,
        evidence=[words],
    )
    store.write(
        space,
        stage_outputs.commit,
        take("extract", "talk"),
        Extraction(upto={"talk": 3}, drafts=[atom], aliases={"Maya Lopez": ["Maya"]}),
        outcome={"turns": 3},
        now=CLOCK,
    )
    draft = store.read(space, stage_outputs.drafts)[0].id
    merged = store.write(
        space,
        stage_outputs.commit,
        take("merge"),
        Merge(merged=[Merging(draft=draft, atom=atom)]),
        outcome={},
        now=CLOCK,
    ).atoms
    id = merged[0].atom.id
    edit = SceneEdit(
        action="create",
        slug="moving",
        reason="new",
        title="Moving",
        summary="Lisbon",
        body=f"Maya lives in Lisbon ({id}).\n\nHer job: [[user]] works ({id}, a2).",
        atoms=(id, "a2"),
        entities=("Umbrella", "Maya Lopez"),
    )
    upto = int(id[1:])
    store.write(
        space, stage_outputs.commit, take("scenes"), SceneChanges(edits=[edit], upto=upto), outcome={}, now=CLOCK
    )
    store.write(
        space,
        stage_outputs.commit,
        take("persona"),
        PersonaPage(text=f"Maya's friend ({id}).\n", reason="scenes", upto=upto),
        outcome={},
        now=CLOCK,
    )


async def export(held: Memory, target: Path) -> Path:
    await held.export(target)
    return target


async def take_in(held: Memory, file: Path, space: str = "default") -> Any:
    parcel = open_export(file)
    held_open = await to_thread.run_sync(parcel.__enter__)
    try:
        return await held.take_in(held_open, space)
    finally:
        await to_thread.run_sync(parcel.__exit__, None, None, None)


@asynccontextmanager
async def lived_in(home: Path, space: str = "default") -> AsyncGenerator[Memory]:
    async with memory(home, space) as held:
        await fill(held)
        yield held


def rows(file: Path, space: str = "default") -> dict[str, list[Any]]:
    """What the data of an export says, by kind."""
    with zipfile.ZipFile(file) as packed:
        return {
            name.rpartition("/")[2].removesuffix(".jsonl"): [
                json.loads(line) for line in packed.read(name).splitlines()
            ]
            for name in packed.namelist()
            if name.startswith(f"spaces/{space}/data/")
        }


def repacked(file: Path, target: Path, change: Any, *, manifest: bool = True) -> Path:
    """Write an export with its members changed, and the manifest to fit."""
    with zipfile.ZipFile(file) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    change(members)
    if manifest:
        held = json.loads(members["manifest.json"])
        held["members"] = {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in members.items()
            if name != "manifest.json"
        }
        members["manifest.json"] = json.dumps(held).encode()
    with zipfile.ZipFile(target, "w") as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return target


_OF_A_HOME = {"learned_at", "origins", "told"}


def loosely(data: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The rows without what differs between homes: how rows are called, where from, when learned."""
    names: dict[str, str] = {}

    def named(value: Any) -> Any:
        if isinstance(value, str):
            return names.get(value, value)
        if isinstance(value, list):
            return [named(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, dict):
            return {key: named(one) for key, one in value.items() if key not in _OF_A_HOME}  # pyright: ignore[reportUnknownVariableType]
        return value

    for kind in ("turns", "atoms", "records"):
        names |= {row["id"]: f"{kind} {nth}" for nth, row in enumerate(data.get(kind, []))}

    def told(text: str) -> str:
        for id in sorted(names, key=len, reverse=True):
            text = text.replace(f"({id}", f"({names[id]}").replace(f", {id})", f", {names[id]})")
        return text

    plain = {kind: named(found) for kind, found in data.items() if kind != "tombstones"}
    for row in plain.get("persona", []):
        del row["version"]
    for kind, field in (("scenes", "body"), ("persona", "text")):
        for row in plain.get(kind, []):
            row[field] = told(row[field])
    return plain
