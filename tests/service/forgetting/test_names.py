"""A word that was erased is left nowhere: not in a name, an address, a log, or a hash that confirms a guess of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.types import TITLE, NewTurn
from mcp_memory.integrations.importers.history import ImportOptions, import_file, source_of
from mcp_memory.service.memory import Memory, open_memory

pytestmark = pytest.mark.files

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
WORD = "Zyxwandrovic"
SENTENCE = f"The doctor told {WORD} about the heart."
FILLER = "Sunny, eleven degrees, wind from the west.\n" * 40


@asynccontextmanager
async def opened(home: Path) -> AsyncGenerator[Memory]:
    async with open_memory(home=home, embedder="none", distil=False) as memory:
        yield memory


def left_in(home: Path, word: str) -> list[str]:
    """Return the files that have a word, in any case, as text, as JSON, or as an unkeyed hash."""
    spellings = {word, word.lower(), json.dumps(word)[1:-1]}
    hashes = {hashlib.sha256(one.encode()).hexdigest()[:12] for one in (word, SENTENCE, FILLER + SENTENCE)}
    needles = {one.encode() for one in spellings | hashes} | {bytes.fromhex(one) for one in hashes}
    found = list[str]()
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        if path.is_file() and any(needle in name.encode() or needle in path.read_bytes() for needle in needles):
            found.append(name)
    return found


async def said(memory: Memory, **of_turn: Any) -> list[str]:
    session = of_turn.pop("session", "talk")
    turn = NewTurn(role="user", content=SENTENCE, said_at=NOON, **of_turn)
    return (await memory.record_turns([turn], session=session)).stored


async def told(memory: Memory, **of_statement: Any) -> list[str]:
    return [(await memory.remember(SENTENCE, **of_statement)).atom.id]


async def took(memory: Memory, **of_call: Any) -> list[str]:
    done = await memory.offload_tool_result(of_call.pop("tool", "weather"), FILLER + SENTENCE, **of_call)
    return [done.ref]


Put = Callable[[Memory, Path], Awaitable[list[str]]]


async def imported(memory: Memory, folder: Path) -> list[str]:
    path = folder / f"{WORD}.jsonl"
    line = json.dumps({"role": "user", "content": SENTENCE, "session": f"{WORD} and I"})
    await anyio.Path(path).write_text(line + "\n")

    def silent(*_: object) -> None:
        pass

    before = {info.session for info in await memory.sessions()}
    source = await anyio.to_thread.run_sync(source_of, path)
    await import_file(memory, source, ImportOptions(), now=NOON, progress=silent)
    new = [info.session for info in await memory.sessions() if info.session not in before]
    return [turn.id for name in new for turn in await memory.session_turns(name)]


async def in_project(memory: Memory) -> list[str]:
    await memory.note_project("garden", f"/srv/{WORD}")
    return await said(memory)


async def titled(memory: Memory) -> list[str]:
    turns = [NewTurn(role="system", name=TITLE, content=SENTENCE, said_at=NOON)]
    return (await memory.record_turns(turns, session="talk")).stored


FIELDS: dict[str, Put] = {
    "content": lambda memory, _: said(memory),
    "speaker": lambda memory, _: said(memory, name=WORD),
    "session": lambda memory, _: said(memory, session=f"about-{WORD}"),
    "session in lower case": lambda memory, _: said(memory, session=WORD.lower()),
    "project": lambda memory, _: in_project(memory),
    "client": lambda memory, _: said(memory.called_by(f"agent {WORD}")),
    "title": lambda memory, _: titled(memory),
    "client id": lambda memory, _: said(memory, client_id=f"msg-{WORD}"),
    "statement": lambda memory, _: told(memory),
    "entity": lambda memory, _: told(memory, entity=WORD, relation="saw", value="a doctor"),
    "value": lambda memory, _: told(memory, entity="user", relation="knows", value=WORD),
    "relation": lambda memory, _: told(memory, entity="user", relation=f"sister of {WORD}", value="yes"),
    "session of a statement": lambda memory, _: told(memory, session=f"about-{WORD}"),
    "result": lambda memory, _: took(memory),
    "tool": lambda memory, _: took(memory, tool=f"find_{WORD}"),
    "arguments": lambda memory, _: took(memory, arguments={WORD: WORD}),
    "call id": lambda memory, _: took(memory, tool_call_id=f"call-{WORD}"),
    "session of a result": lambda memory, _: took(memory, session=f"about-{WORD}"),
    "task": lambda memory, _: took(memory, task=f"Call {WORD}"),
    "step": lambda memory, _: took(memory, task="Call", step=f"Ask {WORD}"),
    "summary": lambda memory, _: took(memory, summary=f"{WORD} was not in."),
    "file": imported,
}


async def erased(home: Path, folder: Path, fields: Sequence[str], *, reason: str = "") -> list[str]:
    """Put the word into fields, purge the rows that have it; return what the verification reports."""
    async with opened(home) as memory:
        await memory.record_turns([NewTurn(role="user", content="Plant the tulips in autumn.")], session="garden")
        ids = [id for field in fields for id in await FIELDS[field](memory, folder)]
        await memory.recall(f"What about {WORD}?", session=f"asking-{WORD}")
        gone = await memory.forget(list(dict.fromkeys(ids)), reason=reason, also=True)
        done = await memory.purge([str(gone.tombstone)])
        assert done.proof is not None
        assert done.proof.found == []
        assert [turn.content for turn in await memory.session_turns("garden")] == ["Plant the tulips in autumn."]
        assert await memory.problems() == []
        return [line for line in done.proof.words if WORD.lower() in line]


@pytest.mark.parametrize("field", FIELDS)
def test_a_purge_leaves_the_word_in_no_field(tmp_path: Path, field: str) -> None:
    reported = anyio.run(lambda: erased(tmp_path / "home", tmp_path, [field], reason=f"{WORD} asked for it"))
    assert (left_in(tmp_path / "home", WORD), reported) == ([], [])


@pytest.mark.slow
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(fields=st.lists(st.sampled_from(sorted(FIELDS)), min_size=2, max_size=4, unique=True))
def test_a_purge_leaves_the_word_in_no_fields_together(
    tmp_path_factory: pytest.TempPathFactory, fields: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("home")
    reported = anyio.run(lambda: erased(folder / "home", folder, fields))
    assert (left_in(folder / "home", WORD), reported) == ([], [])


def test_a_name_that_stays_is_reported(tmp_path: Path) -> None:
    async def live() -> list[str]:
        async with opened(tmp_path / "home") as memory:
            await memory.offload_tool_result("weather", FILLER, task=f"Call {WORD}", session="calls")
            gone = await memory.forget(await said(memory), also=False)
            done = await memory.purge([str(gone.tombstone)])
            assert done.proof is not None
            return [line.split(":")[0] for line in done.proof.words]

    reported = anyio.run(live)
    assert set(left_in(tmp_path / "home", WORD)) <= set(reported)
    assert "memory.db" in reported


def test_a_renamed_session_is_still_known_by_its_old_name(tmp_path: Path) -> None:
    async def live() -> None:
        async with opened(tmp_path / "home") as memory:
            old = f"about-{WORD}"
            (first,) = await said(memory, session=old)
            await memory.record_turns([NewTurn(role="user", content="The tulips are planted.")], session=old)
            gone = await memory.forget([first])
            await memory.purge([str(gone.tombstone)])
            (session,) = await memory.sessions()
            assert session.session.startswith("session-")
            assert (
                await memory.record_turns([NewTurn(role="user", content=SENTENCE, said_at=NOON)], session=old)
            ).stored == []
            await memory.record_turns([NewTurn(role="user", content="They bloom.")], session=old)
            turns = await memory.session_turns(session.session)
            assert [turn.content for turn in turns] == ["The tulips are planted.", "They bloom."]

    anyio.run(live)
    assert left_in(tmp_path / "home", WORD) == []
