"""A purge leaves nothing of what was forgotten, and all of the rest."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import apsw
import numpy as np
import pytest
from anyio import to_thread
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.reader import Reader
from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.longterm.persona import versions_without
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.verbs import forgetting as forgetting_verbs
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, page_rows, record_rows, stage_outputs, tombstone_rows, turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import NewAtom, PersonaPage, SceneChanges, SceneEdit, Vectors
from mcp_memory.testing import FixedClock
from tests.in_memory import in_memory
from tests.postgres.notes import sql

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def forms(text: str) -> set[bytes]:
    escaped = [json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)]
    return {one.encode("utf-8", "surrogatepass") for one in (text, *escaped)}


def holding(home: Path, texts: Sequence[str]) -> list[str]:
    """Files of a home in which a text stands, by a search of ours: plain, and without the program's help."""
    needles = {form for text in texts for form in forms(text)}
    found = list[str]()
    for path in sorted(home.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".zip":
                with zipfile.ZipFile(path) as archive:
                    data = b"".join(archive.read(name) for name in archive.namelist())
            if any(needle in data for needle in needles):
                found.append(path.relative_to(home).as_posix())
    return found


# --- the law ----------------------------------------------------------------------------------------

letters = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",), exclude_characters="\0"), max_size=40)
PLACES = ("turn", "note", "result", "summary", "arguments", "fact", "speaker", "step")


@st.composite
def secrets(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Where each stands, and what it is: every one is a word that nothing else has."""
    places = draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=4))
    return [(place, f"{draw(letters)} xq{n}zeta{n}quagga {draw(letters)}") for n, place in enumerate(places)]


async def put(memory: Memory, place: str, text: str, at: int) -> str:
    """Store a text and return the id of what has it."""
    task: dict[str, Any] = {"session": f"s{at}", "task": "Paint the shed", "step": f"Step {at}"}
    named: dict[str, Any] = {**task, "step": text}
    plain = f"{at} nothing of note\n" * 40
    match place:
        case "turn":
            done = await memory.record_turns([NewTurn(role="user", content=f"Well: {text}")], session=f"s{at}")
            return done.stored[0]
        case "speaker":
            turn = NewTurn(role="user", content="Good morning to all of you.", name=text)
            return (await memory.record_turns([turn], session=f"s{at}")).stored[0]
        case "note":
            return (await memory.remember(f"Told: {text}", session=f"s{at}", typed=True)).atom.id
        case "fact":
            told = await memory.remember(
                "Has something", entity="user", relation=f"has {at}", value=f"v {text}", typed=True
            )
            return told.atom.id
        case "result":
            return (await memory.offload_tool_result("shell", f"{plain}{text}\n", **task)).ref
        case "summary":
            return (await memory.offload_tool_result("shell", plain, summary=text, **task)).ref
        case "arguments":
            return (await memory.offload_tool_result("shell", plain, arguments={"q": text}, **task)).ref
        case _:
            return (await memory.offload_tool_result("shell", plain, **named)).ref


@pytest.mark.files
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=4)
@given(hidden=secrets())
def test_no_byte_of_it_is_left_in_any_file(
    tmp_path_factory: pytest.TempPathFactory, hidden: list[tuple[str, str]]
) -> None:
    home = tmp_path_factory.mktemp("home")

    async def live(memory: Memory) -> None:
        await memory.record_turns([NewTurn(role="user", content="The shed is to be green.")], session="kept")
        ids = [await put(memory, place, text, at) for at, (place, text) in enumerate(hidden)]
        before = await memory.session_turns("kept")
        gone = await memory.forget(ids)
        done = await memory.purge([gone.tombstone or ""])
        assert done.proof
        assert (done.is_proven, done.proof.found, done.proof.copies) == (True, [], [])
        assert await memory.session_turns("kept") == before
        assert await memory.problems() == []

    in_memory(home, live)
    assert holding(home, [f"xq{n}zeta{n}quagga" for n in range(len(hidden))]) == []


# --- what tells of it -------------------------------------------------------------------------------


@pytest.fixture
async def read_by_a_model(home: Path, clock: FixedClock) -> Any:
    """A memory whose pyramid a model built of two things that were said."""
    async with open_memory(home=home, now=clock, embedder="none", llm=Reader(), distil=False) as memory:
        yield memory


@pytest.mark.files
async def test_the_pyramid_above_it_loses_what_told_of_it_and_nothing_else(
    read_by_a_model: Memory, clock: FixedClock, home: Path
) -> None:
    memory = read_by_a_model
    for session, thing in (("s1", "quagga"), ("s2", "violin")):
        said = NewTurn(role="user", content=f"I learned about the {thing} in the morning.")
        await memory.record_turns([said], session=session)
        await memory.flush(session)
    clock.advance(hours=2)
    await memory.consolidate()
    about = [atom for atom in await memory.atoms() if "quagga" in atom.text]
    assert len(about) == 1
    assert [scene for scene in await memory.scenes() if "quagga" in scene.body]
    await memory.forget([about[0].id])
    gone = await memory.forget(session="s1", dry_run=False)
    done = await memory.purge(["x1", gone.tombstone or ""])
    assert done.is_proven
    assert await to_thread.run_sync(holding, home, ["quagga"]) == []
    assert "violin" in (await memory.read_persona()).text
    assert [one for one in (await memory.verify()).problems if "forgotten" not in one] == []
    assert await memory.problems() == []


def standing(store: Store) -> tuple[Any, ...]:
    slugs = ("things",)
    return (
        store.read("me", atom_rows.list_since, 0, limit=9),
        [store.read("me", page_rows.scene_versions, slug) for slug in slugs],
        store.read("me", page_rows.persona_versions),
        store.read("me", record_rows.list_records),
    )


def pyramid(store: Store) -> None:
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="user", content="I have a quagga and a violin.")]),
        now=NOON,
    )
    for text, span in (("Has a quagga", (9, 15)), ("Has a violin", (22, 28))):
        quote = Evidence(turn="t1", span=span, quote=text[6:])
        new = NewAtom(
            kind="persona", text=text, priority=50, confidence=0.9, session="s", valid_from=NOON, evidence=[quote]
        )
        store.write("me", atom_rows.add, new, now=NOON)
    for version in ("create", "update"):
        body = f"- Rides a quagga, {version} (a1)\n- Plays the violin, {version} (a2)"
        edit = SceneEdit(
            action=version, slug="things", reason="the quagga", title="Things", summary="Quagga and violin", body=body,
            atoms=["a1", "a2"],
        )  # fmt: skip
        store.write("me", stage_outputs.commit, None, SceneChanges(edits=[edit], upto=0), outcome={}, now=NOON)
    store.write(
        "me",
        stage_outputs.commit,
        None,
        PersonaPage(text="# Persona\n\n- Loves a quagga (a1)\n- Loves a violin (a2)\n"),
        outcome={},
        now=NOON,
    )


def test_what_one_purge_erases_another_forgetting_keeps(store: Store) -> None:
    pyramid(store)
    first, second = (store.write("me", tombstone_rows.forget, [id], reason="", now=NOON) for id in ("a1", "a2"))
    store.purge("me", Purge(tombstones=[first.id], personas=versions_without(store, "me", ["a1"])), now=NOON)
    store.write("me", tombstone_rows.undo, second.id, now=NOON)
    (scene,) = store.read("me", page_rows.scenes)
    assert (scene.body, scene.atoms) == ("- Plays the violin, update (a2)", ("a2",))
    page = store.read("me", page_rows.persona)
    assert page
    assert page.text == "# Persona\n\n- Loves a violin (a2)\n"
    assert [atom.text for atom in store.read("me", atom_rows.by_ids, ["a1", "a2"])] == ["Has a violin"]
    told = json.dumps(standing(store), default=str)
    assert "quagga" not in told.casefold()
    with pytest.raises(NotFound, match="purged"):
        store.write("me", tombstone_rows.undo, first.id, now=NOON)
    with pytest.raises(NotFound, match="nothing to purge under x1"):
        store.purge("me", Purge(tombstones=["x1"]), now=NOON)
    assert store.problems() == []


def test_a_page_of_which_nothing_is_left_stays_gone(store: Store) -> None:
    pyramid(store)
    gone = store.write("me", tombstone_rows.forget, ["a1", "a2"], reason="", now=NOON)
    store.purge("me", Purge(tombstones=[gone.id]), now=NOON)
    assert store.read("me", page_rows.scenes) == []
    assert list((store.folder("me") / "scenes").iterdir()) == []


def test_vectors_of_it_are_gone_as_well(store: Store, home: Path) -> None:
    rng = np.random.default_rng(7)
    data = rng.normal(size=(2, 64)).astype(np.float32)
    said = [NewTurn(role="user", content=text) for text in ("A secret of mine, well kept.", "The weather is fine.")]
    store.write(
        "me", turn_rows.append, "s", turn_rows.prepare(said), now=NOON, vectors=Vectors(identity="test/64", data=data)
    )
    kept = [np.clip(np.rint(row / np.linalg.norm(row) * 127), -127, 127).astype(np.int8).tobytes() for row in data]
    store.secure_delete()
    assert [row[:32] in (home / "memory.db").read_bytes() for row in kept] == [True, True]
    gone = store.write("me", tombstone_rows.forget, ["t1"], reason="", now=NOON)
    store.purge("me", Purge(tombstones=[gone.id]), now=NOON)
    assert store.secure_delete()
    assert [row[:32] in (home / "memory.db").read_bytes() for row in kept] == [False, True]


# --- killed, copied, beside others ------------------------------------------------------------------


def test_a_purge_that_was_killed_before_its_end_is_finished_by_the_next(home: Path) -> None:
    store = open_store(home)
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="user", content="The quagga sleeps under the bridge.")]),
        now=NOON,
    )
    gone = store.write("me", tombstone_rows.forget, ["t1"], reason="", now=NOON)
    store.purge("me", Purge(tombstones=[gone.id]), now=NOON)
    store.close()
    store = open_store(home)
    assert store.unverified_purges() == [f"me/{gone.id}"]
    assert store.secure_delete()
    store.note_verified([f"me/{gone.id}"])
    assert store.unverified_purges() == []
    store.close()
    assert holding(home, ["sleeps under"]) == []


@pytest.mark.files
async def test_that_a_purge_was_cut_short_is_told_when_it_is_finished(memory: Memory) -> None:
    turns = [NewTurn(role="user", content="The quagga sleeps under the bridge.")]
    gone = await memory.forget((await memory.record_turns(turns)).stored)
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]
    assert gone.tombstone
    what = Purge(tombstones=[gone.tombstone])
    await to_thread.run_sync(lambda: store.purge(memory.space, what, now=NOON))  # and no more: it is killed here
    finished = await memory.purge()
    assert (finished.cut_short, finished.shredded, finished.proof) == (True, True, None)
    assert not (await memory.purge()).cut_short


@pytest.mark.files
async def test_a_purge_that_was_killed_before_its_proof_is_told_too(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [NewTurn(role="user", content=f"The quagga sleeps under bridge {number}.") for number in range(2)]
    first, second = (await memory.record_turns(turns)).stored
    gone, other = await memory.forget([first]), await memory.forget([second])
    assert gone.tombstone
    assert other.tombstone

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(forgetting_verbs, "prove", killed)
        with pytest.raises(KeyboardInterrupt):
            await memory.purge([gone.tombstone])
    assert await memory.unproven()
    assert (await memory.purge([other.tombstone])).cut_short
    assert not await memory.unproven()


def test_others_that_read_keep_the_log_and_that_is_told(store: Store, home: Path) -> None:
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="user", content="The quagga sleeps under the bridge.")]),
        now=NOON,
    )
    gone = store.write("me", tombstone_rows.forget, ["t1"], reason="", now=NOON)
    other = apsw.Connection(str(home / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    other.execute("BEGIN; SELECT count(*) FROM sqlite_master").fetchall()
    store.purge("me", Purge(tombstones=[gone.id]), now=NOON)
    assert not store.secure_delete(patience=0.05)
    other.close()
    assert store.secure_delete()
    assert holding(home, ["sleeps under"]) == []


@pytest.mark.files
async def test_a_copy_that_cannot_be_written_does_not_keep_a_purge_from_erasing(memory: Memory, home: Path) -> None:
    kept = await memory.offload_tool_result("shell", "The quagga sleeps.\n" * 40, session="s", task="Look", step="Look")
    gone = await memory.forget([kept.ref])
    lines = home / "spaces/default/offload-s.jsonl"
    await to_thread.run_sync(lines.unlink)
    await to_thread.run_sync(lines.mkdir)
    assert not (await memory.purge([gone.tombstone or ""])).is_proven  # that copy may still have the words
    await to_thread.run_sync(lines.rmdir)
    await memory.record_turns([NewTurn(role="user", content="And this.")])
    assert await memory.problems() == []
    assert b"quagga" not in await to_thread.run_sync(lines.read_bytes)


@pytest.mark.files
async def test_copies_are_named_and_deleted_where_that_is_asked_for(memory: Memory, home: Path) -> None:
    said = [NewTurn(role="user", content=f"The quagga sleeps under bridge number {n}.") for n in range(3)]
    await memory.record_turns(said, session="s")

    def copy() -> None:
        (home / "backups").mkdir()
        with zipfile.ZipFile(home / "backups/old.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            (journal,) = (home / "spaces/default/conversations").iterdir()
            archive.write(journal, "journal.jsonl")
        (home / "hooks").mkdir()
        (home / "hooks/hooks.log").write_text("all is well\nfailed at: quagga sleeps under bridge number 1\n")

    await to_thread.run_sync(copy)
    ids = [turn.id for turn in await memory.session_turns("s")]
    await memory.forget(ids[:1])
    await memory.forget(ids[1:])
    first = await memory.purge(["x1"])
    assert first.proof
    assert (first.is_proven, first.proof.copies) == (True, ["backups/old.zip"])
    assert set(first.proof.also_in) >= {"t2", "t3"}  # which are forgotten, and not purged: they say much the same
    last = await memory.purge(["x2"], delete_copies=True)
    assert last.proof
    assert (last.proof.deleted, last.proof.cleared) == (["backups/old.zip"], ["hooks/hooks.log"])
    assert await to_thread.run_sync(lambda: (home / "hooks/hooks.log").read_text()) == "all is well\n"


@pytest.mark.files
async def test_settings_are_no_copy_and_stay_whatever_stands_in_them(memory: Memory, home: Path) -> None:
    text = "The quagga sleeps under the bridge by the mill."
    gone = await memory.forget((await memory.record_turns([NewTurn(role="user", content=text)])).stored)
    assert gone.tombstone
    await anyio.Path(home / "config.toml").write_text(f"# {text}\n")
    done = await memory.purge([gone.tombstone], delete_copies=True)
    assert done.proof
    assert [line.split()[0] for line in done.proof.found] == ["config.toml"]
    assert await anyio.Path(home / "config.toml").exists()


async def test_what_was_forgotten_can_be_purged_by_age(memory: Memory, clock: FixedClock) -> None:
    for text in ("The first thing of all.", "The second thing of all."):
        await memory.record_turns([NewTurn(role="user", content=text)], session="s")
    await memory.forget(["t1"])
    clock.advance(days=40)
    await memory.forget(["t2"])
    assert [one.id for one in await memory.purgeable(older_than=timedelta(days=30))] == ["x1"]
    assert [one.id for one in await memory.purgeable()] == ["x1", "x2"]
    await memory.purge(["x1"])
    assert [one.id for one in await memory.purgeable()] == ["x2"]


@pytest.mark.postgres
async def test_in_postgresql_no_row_has_it_and_the_report_says_what_may(url: str, home: Path) -> None:
    async with open_memory(home=home, store=url, embedder="none") as memory:
        await memory.record_turns([NewTurn(role="user", content="The quagga sleeps.", name="Quagga")], session="s")
        await memory.remember("The quagga sleeps under the bridge", typed=True)
        await memory.offload_tool_result("shell", "quagga\n" * 400, session="s", task="Look", step="Look at the quagga")
        gone = [(await memory.forget([one])).tombstone or "" for one in ("t1", "a1")]
        results = await memory.forget(session="s", dry_run=False)
        done = await memory.purge([*gone, results.tombstone or ""])
    assert (done.turns, done.atoms, done.refs) == (2, 1, 1)  # what is remembered has a turn of its own
    assert (done.is_proven, done.provable) == (False, False)
    rows = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    having = [
        table for (table,) in sql(url, rows) if sql(url, f"SELECT 1 FROM {table} x WHERE x::text ILIKE '%quagga%'")
    ]
    assert having == []
