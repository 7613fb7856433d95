"""A backup holds what a home holds at one moment, and a restored home is the one that was backed up."""

from __future__ import annotations

import hashlib
import json
import threading
import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import anyio
import apsw
import pytest

from mcp_memory.core.errors import Damaged, InvalidInput, StoreUnavailable
from mcp_memory.core.process_registry import register
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.upkeep.backup import back_up, folder_of, list_backups, verify
from mcp_memory.service.upkeep.restore import restore
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.sqlite.store import open_store
from tests.in_memory import in_memory
from tests.upkeep.conftest import NOW, Lived, backed_up


def contents(home: Path) -> dict[str, str]:
    """Every file of the spaces by its hash."""
    return {
        path.relative_to(home).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((home / "spaces").rglob("*"))
        if path.is_file() and path.name != "persona.md"
    }


def rows(home: Path) -> dict[str, list[tuple[object, ...]]]:
    con = apsw.Connection(str(home / "memory.db"))
    try:
        tables = [
            str(name)
            for (name,) in con.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%' AND name NOT GLOB"
                " '*_terms_*' ORDER BY name"
            )
        ]
        return {table: sorted(con.execute(f"SELECT * FROM {table}"), key=repr) for table in tables}
    finally:
        con.close()


def test_a_home_restored_from_its_backup_is_the_same_row_by_row_and_file_by_file(home: Path, lived: Lived) -> None:
    lived(home)
    made = backed_up(home)
    assert made.path.parent == folder_of(home)
    other = home.parent / "other"
    restored = restore(made.path, other, now=NOW)
    assert (restored.home, restored.aside) == (other, None)
    assert contents(other) == contents(home)
    assert rows(other) == rows(home)

    async def problems() -> list[str]:
        async with open_memory(home=other, embedder="none") as memory:
            return await memory.problems()

    assert anyio.run(problems) == []


def test_restoring_in_place_keeps_what_was_there(home: Path, lived: Lived) -> None:
    lived(home)
    made = backed_up(home)
    before = rows(home)
    (home / "config.toml").write_text("")

    in_memory(
        home,
        lambda memory: memory.record_turns([NewTurn(role="user", content="Said after the backup.")], session="late"),
    )
    after = rows(home)
    restored = restore(made.path, home, now=NOW)
    assert rows(home) == before
    assert restored.aside is not None
    assert rows(restored.aside) == after
    assert (home / "config.toml").exists()
    assert made.path.exists()


def test_what_was_forgotten_since_the_backup_stays_forgotten_and_can_come_back(home: Path, lived: Lived) -> None:
    lived(home)
    made = backed_up(home)

    async def forget() -> list[str]:
        async with open_memory(home=home, embedder="none") as memory:
            turn = (await memory.session_turns("trip"))[0].id
            await memory.forget([turn], reason="moved on")
            again = (await memory.session_turns("work"))[0].id
            gone = await memory.forget([again])
            assert gone.tombstone
            await memory.purge([gone.tombstone])
            await memory.forget(undo=(await memory.forget(session="work", dry_run=False)).tombstone)
            return [turn, again]

    turn, again = anyio.run(forget)
    # What was said since has an id that the backup has not, or has for something else.
    restored = restore(made.path, home, now=NOW)
    assert [(one.space, one.ids, one.was_purged) for one in restored.again] == [
        ("default", 1, False),
        ("default", 1, True),
    ]

    async def look(memory: Memory) -> tuple[list[str], list[str], list[str]]:
        said = [one.id for name in ("trip", "work") for one in await memory.session_turns(name)]
        reasons = [one.reason for one in await memory.tombstones() if not one.undone]
        await memory.forget(undo=restored.again[0].tombstone)
        back = [one.id for one in await memory.session_turns("trip")]
        assert await memory.problems() == []
        return said, reasons, back

    said, reasons, back = in_memory(home, look)
    assert not {turn, again} & set(said)
    assert "moved on" in reasons
    assert turn in back
    assert restore(made.path, home.parent / "other", now=NOW).again == []


def test_an_id_that_was_given_anew_since_is_not_forgotten_in_its_place(home: Path, lived: Lived) -> None:
    lived(home)
    early = backed_up(home)

    async def say(text: str) -> str:
        async with open_memory(home=home, embedder="none") as memory:
            turns = [NewTurn(role="user", content=text, said_at=NOW)]
            return (await memory.record_turns(turns, session="late")).stored[0]

    kept = anyio.run(say, "This was said first and is in the second backup.")
    late = backed_up(home, now=NOW + timedelta(hours=1))
    restore(early.path, home, now=NOW)
    assert anyio.run(say, "This was said in its place and is forgotten at once.") == kept

    async def forget() -> None:
        async with open_memory(home=home, embedder="none") as memory:
            await memory.forget([kept])

    anyio.run(forget)
    assert restore(late.path, home, now=NOW).again == []


def test_a_backup_is_of_one_moment_while_others_write(home: Path, lived: Lived) -> None:
    lived(home)
    store, done = open_store(home), threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            store.write(
                "default",
                turn_rows.append,
                "busy",
                turn_rows.prepare([NewTurn(role="user", content=f"turn {number}")]),
                now=NOW,
            )

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = [back_up(store, home, now=NOW + timedelta(seconds=n)) for n in range(3)]
    finally:
        done.set()
        writer.join()
        store.close()
    for number, one in enumerate(made):
        other = home.parent / f"other-{number}"
        restore(one.path, other, now=NOW)
        opened = open_store(other)
        assert opened.problems() == []
        opened.close()


def test_a_line_file_that_is_gone_is_backed_up_from_the_rows(home: Path, lived: Lived) -> None:
    lived(home)
    before = contents(home)
    (home / "spaces/default/conversations/2026-03-01.jsonl").unlink()
    (home / "spaces/default/offload-trip.jsonl").write_bytes(b"")
    other = home.parent / "other"
    restore(backed_up(home).path, other, now=NOW)
    assert contents(other) == before


def test_what_the_home_lost_is_named_and_what_is_left_of_it_is_kept(home: Path, lived: Lived) -> None:
    lived(home)
    first, second, *_ = sorted((home / "spaces/default/refs").iterdir())
    first.unlink()
    second.write_bytes(b"torn")
    made = backed_up(home)
    assert made.manifest is not None
    assert made.manifest.lacking == (
        f"default: refs/{first.name} is missing.",
        f"default: refs/{second.name} is damaged: it has no front matter.",
    )
    with zipfile.ZipFile(made.path) as packed:
        assert packed.read(f"spaces/default/refs/{second.name}") == b"torn"


def test_only_the_owner_can_read_it_and_nothing_is_left_beside_it(home: Path, lived: Lived) -> None:
    made = backed_up(lived(home))
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert made.path.parent.stat().st_mode & 0o777 == 0o700
    assert list(made.path.parent.iterdir()) == [made.path]


def test_old_ones_of_this_memory_are_rotated_out_and_nothing_else(home: Path, lived: Lived) -> None:
    lived(home)
    to = home.parent / "kept"
    others = backed_up(home.parent / "another", to=to)
    (to / "mcp-memory-00000000-20200101T000000000Z.zip").write_bytes(b"not ours")
    made = [backed_up(home, to=to, keep=2, now=NOW + timedelta(minutes=n)) for n in range(3)]
    assert made[2].removed == (made[0].path,)
    left = {one.path for one in list_backups(to)}
    assert left == {made[1].path, made[2].path, others.path, to / "mcp-memory-00000000-20200101T000000000Z.zip"}
    with pytest.raises(InvalidInput, match="keep is 0"):
        backed_up(home, keep=0)


def test_no_two_backups_have_one_name(home: Path, lived: Lived) -> None:
    lived(home)
    assert backed_up(home).path != backed_up(home).path


# --- what is no good --------------------------------------------------------------------------------


@pytest.fixture
def made(home: Path, lived: Lived) -> Path:
    return backed_up(lived(home)).path


def edited(path: Path, change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> Path:
    with zipfile.ZipFile(path) as packed:
        members = change({name: packed.read(name) for name in packed.namelist()})
    other = path.with_name("edited.zip")
    with zipfile.ZipFile(other, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return other


def hostile() -> Iterator[tuple[str, Callable[[dict[str, bytes]], dict[str, bytes]], str]]:
    def with_member(name: str, content: bytes) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
        def change(members: dict[str, bytes]) -> dict[str, bytes]:
            manifest = json.loads(members["manifest.json"])
            manifest["members"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            return {**members, name: content, "manifest.json": json.dumps(manifest).encode()}

        return change

    def with_fields(**fields: object) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
        def change(members: dict[str, bytes]) -> dict[str, bytes]:
            return {**members, "manifest.json": json.dumps({**json.loads(members["manifest.json"]), **fields}).encode()}

        return change

    yield "another byte", lambda m: {**m, "memory.db": m["memory.db"][:-1] + b"x"}, "does not match its hash"
    yield "a member more", lambda m: {**m, "spaces/default/more.md": b""}, "its files are not those of its manifest"
    yield (
        "a member less",
        lambda m: {n: c for n, c in m.items() if "tombstones" not in n},
        "its files are not those of its manifest",
    )
    yield "no manifest", lambda m: {n: c for n, c in m.items() if n != "manifest.json"}, "has no manifest.json"
    yield "a torn manifest", lambda m: {**m, "manifest.json": b"{"}, "manifest of .* cannot be read"
    yield "a path upwards", with_member("spaces/../../x", b"x"), "is not the name of a file of a home"
    yield "a path of its own", with_member("/etc/x", b"x"), "is not the name of a file of a home"
    yield "another file of a home", with_member("config.toml", b"x"), "is not the name of a file of a home"
    yield "a newer form", with_fields(format=2), "newer mcp-memory"
    yield (
        "a bomb",
        with_fields(members={"memory.db": {"bytes": 10, "sha256": ""}}),
        "its files are not those of its manifest",
    )
    yield "other counts", with_fields(counts={}), "the rows of its database are not those of its manifest"


@pytest.mark.parametrize(("what", "change", "said"), list(hostile()), ids=lambda it: it if isinstance(it, str) else "")
def test_a_backup_that_was_tampered_with_is_refused_and_nothing_is_touched(
    made: Path, home: Path, what: str, change: Callable[[dict[str, bytes]], dict[str, bytes]], said: str
) -> None:
    other = edited(made, change)
    before = rows(home), contents(home)
    with pytest.raises((Damaged, InvalidInput), match=said):
        verify(other)
    with pytest.raises((Damaged, InvalidInput), match=said):
        restore(other, home, now=NOW)
    assert (rows(home), contents(home)) == before
    assert not (home / "backups").joinpath("aside-20260302T080000Z-restore").exists(), what


def test_a_backup_that_was_cut_off_is_named_in_the_list(made: Path) -> None:
    made.write_bytes(made.read_bytes()[:-100])
    [one] = list_backups(made.parent)
    assert one.manifest is None
    assert "is not a backup" in (one.problem or "")


def test_a_database_from_a_newer_version_is_refused(made: Path, home: Path) -> None:
    con = apsw.Connection(str(home / "memory.db"))
    con.execute("INSERT INTO migration VALUES ('9999-later', 'now')")
    con.close()
    with pytest.raises(StoreUnavailable, match="newer"):
        backed_up(home)


def test_nothing_is_restored_while_another_process_holds_the_home(made: Path, home: Path) -> None:
    import subprocess
    import sys

    code = "import sys; from pathlib import Path; from mcp_memory.core.process_registry import register\n"
    code += "n = register(Path(sys.argv[1]), what='serve stdio'); print('x', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(StoreUnavailable, match="in use by serve stdio"):
            restore(made, home, now=NOW)
        process.kill()
    assert register(home, what="after") is not None
