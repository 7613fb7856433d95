"""A memory moves between the engines whole, is proven, and goes on where it stopped; what cannot be moved is said."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
import numpy as np
import psycopg
import pytest
from click.testing import CliRunner

from mcp_memory.cli.main import program
from mcp_memory.core.errors import Damaged, InvalidInput, McpMemoryError, NotFound, Refused, StoreUnavailable
from mcp_memory.core.types import NewTurn, Spend
from mcp_memory.service.memory import open_memory
from mcp_memory.service.upkeep.move import Moved, move
from mcp_memory.service.upkeep.rebuild import spaces_with_outdated_persona
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.postgres.store import open_store as open_postgres
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import (
    exporting,
    home_rows,
    policy_rows,
    recall_rows,
    record_rows,
    ref_rows,
    tombstone_rows,
    turn_rows,
)
from mcp_memory.store.sqlite.store import open_store as open_sqlite
from mcp_memory.store.values import RecallEntry, Token, Vectors
from tests.cli.conftest import unwrapped
from tests.postgres_server import PostgresServer
from tests.store.test_engines import answers

pytestmark = pytest.mark.postgres

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ODD = "NUL \0 and noncharacter \U0010fffe, \U0010fffe0, é, 茶, \r\n and a lone \\0"
SECRET = "The code of the vault is 4711, and nobody may ever read that again."


@pytest.fixture(scope="session")
def full_template(one_that_lived: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with something of everything: odd characters, forgotten and purged rows, vectors, ledgers, a token."""
    home = Path(shutil.copytree(one_that_lived, tmp_path_factory.mktemp("full") / "home"))
    with closing(open_sqlite(home)) as store:
        new = [NewTurn(role="user", content=content, client_id=content[:9]) for content in (ODD, SECRET, "Bye.")]
        turns = store.write("default", turn_rows.append, "s\U0010fffe", turn_rows.prepare(new), now=NOW).stored
        gone = store.write("default", tombstone_rows.forget, [turns[1].id], reason="secret", now=NOW)
        store.purge("default", Purge(tombstones=[gone.id]), now=NOW)
        store.write("default", tombstone_rows.forget, [turns[2].id], reason="\0", now=NOW)
        rows = [
            (name, id)
            for name in store.read_home(home_rows.spaces)
            for id, _ in store.unembedded(name, "model", limit=99)
        ]
        vectors = np.eye(len(rows), 64, dtype=np.float32) + 0.1  # most of the length in one number, which is cut
        store.put_vectors(rows, Vectors(identity="model", data=vectors))
        store.write_home(
            home_rows.add_token, Token(id="k1", name="laptop", hash=b"\0\xff", spaces=("work",), right="read", at=NOW)
        )
        store.write_home(
            home_rows.add_spend,
            Spend(at=NOW, purpose="merge", model="m", prompt_tokens=7, completion_tokens=3, cost=0.1),
        )
        store.write("work", policy_rows.put_policy, "turns", 9, now=NOW)
        store.write_home(
            recall_rows.note_recalls,
            [("default", RecallEntry(at=NOW, how="recall", session=ODD, ids=("t1",), tokens=9, query=ODD))],
        )
    return home


@pytest.fixture
def full(full_template: Path, home: Path) -> Path:
    return Path(shutil.copytree(full_template, home))


@pytest.fixture(scope="session")
def answers_of_full(full_template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What `told` returns of a full home that was never moved."""
    return told(f"sqlite:{shutil.copytree(full_template, tmp_path_factory.mktemp('unmoved') / 'home')}")


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A full home that was moved to a database, and from there to another home: the templates of `moved` and `back`."""

    source: Path
    url: str
    back: Path
    there: Moved
    here: Moved


@pytest.fixture(scope="session")
def round_trip(
    full_template: Path, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RoundTrip]:
    folder = tmp_path_factory.mktemp("round-trip")
    source, back = Path(shutil.copytree(full_template, folder / "source")), folder / "back"
    url = owned(postgres.create_memory())
    there = move(f"sqlite:{source}", url)
    here = move(url, f"sqlite:{back}")
    yield RoundTrip(source, url, back, there, here)
    postgres.drop_database(url)


@pytest.fixture
def url(url: str) -> str:
    """The address of an empty target."""
    return owned(url)


@pytest.fixture
def moved(round_trip: RoundTrip, postgres: PostgresServer) -> Iterator[str]:
    """The address of a database that `full` was moved to."""
    url = owned(postgres.copy_memory(round_trip.url))
    yield url
    postgres.drop_database(url)


@pytest.fixture
def moved_back(round_trip: RoundTrip, tmp_path: Path) -> str:
    """The address of a home that `full` was moved to by way of a database."""
    return f"sqlite:{shutil.copytree(round_trip.back, tmp_path / 'back')}"


def owned(url: str) -> str:
    """Return the URL with the user who owns the database: a move needs one."""
    return url.replace("memory@", "owner@")


def opened(address: str) -> Store:
    return open_sqlite(Path(address[7:])) if address.startswith("sqlite:") else open_postgres(address)


def told(address: str) -> dict[str, object]:
    """Return all that a memory answers, by space and for the home."""
    with closing(opened(address)) as store:
        home = (
            store.read_home(exporting.home_id),
            store.read_home(home_rows.tokens),
            store.read_home(home_rows.spent, since=NOW - timedelta(days=999)),
        )
        vectors = [(one.identity, one.embedded) for one in store.index_progress().vectors]
        return {
            f"{space} {place}": repr(one)
            for space in store.read_home(home_rows.spaces)
            for place, one in enumerate(answers(store, space))
        } | {"home": (home, vectors)}


def result_of(address: str, space: str, ref: str) -> bytes:
    with closing(opened(address)) as store:
        return store.read(space, ref_rows.read_bytes, ref)


@pytest.fixture
def back(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'back'}"


def test_a_memory_moves_to_postgresql_and_back_and_gives_every_answer(
    round_trip: RoundTrip, moved: str, moved_back: str, answers_of_full: dict[str, object]
) -> None:
    there, here = round_trip.there, round_trip.here
    assert told(moved) == answers_of_full == told(moved_back)
    assert there.proven == here.proven
    assert {one.what for one in here.proven} >= {"turn", "atom", "canvas_version", "results", "turn vectors by model"}
    assert there.questions > 0


def test_raw_results_are_the_same_bytes(full: Path, moved: str, moved_back: str) -> None:
    with closing(open_sqlite(full)) as store:
        refs = [
            (space, record.ref)
            for space in store.read_home(home_rows.spaces)
            for record in store.read(space, record_rows.list_records)
        ]
    assert len(refs) == 6
    for space, ref in refs:
        assert (
            result_of(moved_back, space, ref) == result_of(moved, space, ref) == result_of(f"sqlite:{full}", space, ref)
        )


def test_a_home_that_came_back_has_its_files_and_nothing_wrong(full: Path, moved_back: str) -> None:
    home = Path(moved_back[7:])
    with closing(open_sqlite(home)) as store:
        assert store.problems() == []
    assert spaces_with_outdated_persona(home) == []
    files = {path.relative_to(full) for path in (full / "spaces").rglob("*") if path.is_file()}
    assert {path.relative_to(home) for path in (home / "spaces").rglob("*") if path.is_file()} == files
    whole = [path for path in files if path.suffix != ".jsonl" or path.parent.name == "conversations"]  # no history
    assert [path for path in whole if (home / path).read_bytes() != (full / path).read_bytes()] == []
    assert (home / "identity.json").read_bytes() == (full / "identity.json").read_bytes()


def test_ids_go_on_counting_after_a_move(full: Path, moved: str, moved_back: str, tmp_path: Path) -> None:
    def next_ids(address: str) -> object:
        async def write() -> object:
            beside = {"store": moved, "home": tmp_path / "beside"}
            settings = beside if address == moved else {"home": address[7:]}
            async with open_memory(**settings, embedder="none", now=lambda: NOW) as memory:  # type: ignore[arg-type]
                turns = await memory.record_turns([NewTurn(role="user", content="Next.")], session="new")
                atom = await memory.remember("The user counts on", session="new", typed=True)
                kept = await memory.offload_tool_result("shell", "x\n" * 3000, session="new", task="Next")
                gone = await memory.forget([atom.atom.id])
                return turns.stored, atom.atom.id, kept.node, gone.tombstone

        return repr(anyio.run(write))

    assert next_ids(moved) == next_ids(f"sqlite:{full}") == next_ids(moved_back)


def test_rows_of_the_home_are_numbered_on(moved: str) -> None:
    with closing(open_postgres(moved)) as store:
        store.write_home(
            home_rows.add_spend,
            Spend(at=NOW, purpose="merge", model="m", prompt_tokens=1, completion_tokens=1, cost=None),
        )
        store.write(
            "a new space", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="Hi.")]), now=NOW
        )
        assert sorted(store.read_home(home_rows.spaces)) == ["a new space", "default", "work"]


def test_what_was_forgotten_stays_forgotten_and_is_not_learned_again(moved: str) -> None:
    with closing(open_postgres(moved)) as store:
        known = [NewTurn(role="user", content=content, said_at=NOW - timedelta(days=1)) for content in (SECRET, ODD)]
        assert [
            turn.content
            for turn in store.write("default", turn_rows.append, "later", turn_rows.prepare(known), now=NOW).stored
        ] == [ODD]
    with psycopg.connect(moved.replace("owner@", "postgres@")) as con:
        assert con.execute("SELECT count(*) FROM turn WHERE content LIKE '%vault%'").fetchone() == (0,)


def test_an_empty_memory_moves(home: Path, url: str, back: str) -> None:
    open_sqlite(home).close()
    there = move(f"sqlite:{home}", url)
    here = move(url, back)
    assert [(one.what, one.rows) for one in here.proven] == [("home", 1)]
    assert there.proven == here.proven


def test_the_source_is_as_it_was(full: Path, round_trip: RoundTrip, answers_of_full: dict[str, object]) -> None:
    def files(home: Path) -> dict[Path, bytes]:
        return {path.relative_to(home): path.read_bytes() for path in (home / "spaces").rglob("*") if path.is_file()}

    assert files(round_trip.source) == files(full)
    assert told(f"sqlite:{round_trip.source}") == answers_of_full


# --- interrupted ------------------------------------------------------------------------------------

KILLED = """
import os, sys
from mcp_memory.service.upkeep import move
from mcp_memory.store.sql import moving
source, target, during, share = sys.argv[1:]
moving._BATCH = 3
def tell(doing, done, of):
    if doing == during and done >= of * float(share):
        os.kill(os.getpid(), 9)
move.move(source, target, tell=tell)
"""


def killed(source: str, target: str, during: str, share: float) -> None:
    command = [sys.executable, "-c", KILLED, source, target, during, str(share)]
    assert subprocess.run(command, check=False).returncode == -9


COMPARING = pytest.param("comparing rows", marks=pytest.mark.nightly)  # the next test kills it there too


@pytest.mark.parametrize("during", ["copying rows", "making indexes", COMPARING, "asking questions"])
def test_a_move_that_was_killed_goes_on(
    full: Path, url: str, back: str, during: str, answers_of_full: dict[str, object]
) -> None:
    killed(f"sqlite:{full}", url, during, 0.5)
    with pytest.raises(StoreUnavailable, match="was not finished"):
        open_postgres(url)
    assert move(f"sqlite:{full}", url).resumed
    killed(url, back, during, 0.5)
    with pytest.raises(StoreUnavailable, match="was not finished"):
        open_sqlite(Path(back[7:]))
    assert move(url, back).resumed
    assert told(back) == told(url) == answers_of_full
    with closing(open_sqlite(Path(back[7:]))) as store:
        assert store.problems() == []


def test_what_changed_in_the_source_between_two_tries_is_moved_too(full: Path, url: str, back: str) -> None:
    def change(store: Store) -> None:
        store.write(
            "default",
            turn_rows.append,
            "trip",
            turn_rows.prepare([NewTurn(role="user", content="One more thing.")]),
            now=NOW,
        )
        gone = store.write("default", tombstone_rows.forget, ["t1", *(record.ref for record in store.read("default", record_rows.list_records)[:1])],
                            reason="", now=NOW)  # fmt: skip
        store.purge("default", Purge(tombstones=[gone.id]), now=NOW)

    killed(f"sqlite:{full}", url, "comparing rows", 0.1)
    with closing(open_sqlite(full)) as store:
        change(store)
    move(f"sqlite:{full}", url)
    killed(url, back, "comparing rows", 0.1)
    with closing(open_postgres(url)) as store:
        store.write(
            "default",
            turn_rows.append,
            "trip",
            turn_rows.prepare([NewTurn(role="user", content="Another one.")]),
            now=NOW,
        )
    move(url, back)
    here, there = told(back), told(url)
    assert {key for key in here | there if here.get(key) != there.get(key)} <= {"default 0", "work 0"}  # newest chunks
    with closing(open_sqlite(Path(back[7:]))) as store:
        assert store.problems() == []
        assert len(list((store.folder("default") / "refs").iterdir())) == 2


def test_a_row_that_was_damaged_in_an_unfinished_target_is_copied_again(
    full: Path, url: str, answers_of_full: dict[str, object]
) -> None:
    killed(f"sqlite:{full}", url, "asking questions", 0.1)
    with psycopg.connect(url.replace("owner@", "postgres@")) as con:
        con.execute("UPDATE session SET name = 'other' WHERE id = 1")
    move(f"sqlite:{full}", url)
    assert told(url) == answers_of_full


# --- the proof --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("UPDATE atom SET confidence = confidence + 1e-15 WHERE space = 1 AND id = 1", "atom of the space default"),
        ("DELETE FROM evidence WHERE space = 2 AND atom = 2", "evidence of the space work: 4 and 3"),
        ("UPDATE token SET hash = '\\x00fe'", "token: 1 with other values"),
        ("UPDATE object SET data = data || '\\x00' WHERE space = 2", "results of the space work"),
        ("UPDATE turn_vec_1 SET embedding = embedding + embedding WHERE id = 1 AND space = 1", "turn vectors by model"),
        ("UPDATE home SET key = '\\x00'", "home: 1 with other values"),
    ],
)
def test_a_damaged_row_is_found_by_the_proof(full: Path, moved: str, damage: str, named: str) -> None:
    with psycopg.connect(moved.replace("owner@", "postgres@")) as con:
        con.execute(damage.encode())
    with pytest.raises(Damaged, match=named):
        move(f"sqlite:{full}", moved, check=True)


def test_a_memory_that_was_moved_whole_passes_the_proof_again(full: Path, moved: str) -> None:
    assert move(f"sqlite:{full}", moved, check=True).questions > 0


def test_a_target_that_finds_something_else_is_found_by_the_questions(full: Path, moved: str) -> None:
    with psycopg.connect(moved.replace("owner@", "postgres@")) as con:
        con.execute("UPDATE turn_terms SET keys = '{}'")
    with pytest.raises(Damaged, match="The question"):
        move(f"sqlite:{full}", moved, check=True)


# --- refused ----------------------------------------------------------------------------------------


def refused(kind: type[McpMemoryError], run: Callable[[], Moved], said: str) -> None:
    with pytest.raises(kind, match=said):
        run()


def test_a_target_with_a_memory_is_refused_and_left_as_it_was(
    full: Path, moved: str, moved_back: str, answers_of_full: dict[str, object]
) -> None:
    refused(Refused, partial(move, f"sqlite:{full}", moved), "spaces: default, work")
    refused(Refused, partial(move, moved, moved_back), "has a memory already")
    assert told(moved) == answers_of_full == told(moved_back)


def test_a_target_with_a_part_of_another_memory_is_refused(
    full: Path, url: str, lived: Callable[[Path], Path], tmp_path: Path
) -> None:
    killed(f"sqlite:{full}", url, "copying rows", 0.5)
    open_sqlite(tmp_path / "other").close()
    refused(Refused, partial(move, f"sqlite:{tmp_path / 'other'}", url), "a part of another memory")


def test_an_unfinished_move_is_no_source_and_is_not_checked(full: Path, url: str, back: str) -> None:
    killed(f"sqlite:{full}", url, "copying rows", 0.5)
    refused(StoreUnavailable, partial(move, url, back), "was not finished")
    refused(Refused, partial(move, f"sqlite:{full}", url, check=True), "was not finished")


def test_a_memory_that_another_program_has_open_is_not_moved(full: Path, url: str, back: str) -> None:
    async def move_while_open() -> None:
        async with open_memory(home=full, embedder="none", what="serve stdio"):
            other = partial(subprocess.run, capture_output=True, text=True, check=False)
            command = [sys.executable, "-m", "mcp_memory", "move", f"sqlite:{full}", url]
            done = await anyio.to_thread.run_sync(partial(other, command))
            assert (done.returncode, "is in use by serve stdio" in done.stderr) == (1, True)

    anyio.run(move_while_open)
    with closing(open_postgres(url)):
        refused(StoreUnavailable, partial(move, f"sqlite:{full}", url), "in use")
        refused(StoreUnavailable, partial(move, url, back), "in use")


def test_writers_wait_while_a_memory_in_postgresql_is_moved(moved: str, back: str) -> None:
    seen: list[str] = []

    def tell(doing: str, done: int, of: int) -> None:
        if doing == "comparing rows" and not seen:
            with psycopg.connect(moved) as con:
                con.execute("SET lock_timeout = '50ms'")
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    con.execute("SELECT 1 FROM space FOR NO KEY UPDATE")
            seen.append(doing)

    move(moved, back, tell=tell)
    assert seen


def test_a_user_who_does_not_own_the_target_is_refused(full: Path, url: str) -> None:
    refused(StoreUnavailable, partial(move, f"sqlite:{full}", url.replace("owner@", "memory@")), "owns the tables")
    assert not move(f"sqlite:{full}", url).resumed


def test_the_command_prints_the_proof_and_what_to_do_next(
    full: Path, url: str, back: str, round_trip: RoundTrip
) -> None:
    done = CliRunner().invoke(program, ["move", f"sqlite:{full}", url])
    lines = {tuple(re.split(" {2,}", line)) for line in re.sub(r"\n +", "  ", done.stdout).splitlines()}
    assert lines >= {(one.space or "-", one.what, f"{one.rows:,}", one.sha256[:16]) for one in round_trip.there.proven}
    said = unwrapped(done.stdout)
    assert (
        f"sqlite:{full} is as it was. To use the copy, let the servers' user in with `mcp-memory migrate --grant"
        in said
    )
    assert "set MCP_MEMORY_STORE to that user's URL, or the same in config.toml." in said
    assert "have the same contents.\n" in unwrapped(
        CliRunner().invoke(program, ["move", "--check", f"sqlite:{full}", url]).stdout
    )
    done = CliRunner().invoke(program, ["move", url, back])
    assert f"set MCP_MEMORY_HOME={back[7:]} and unset MCP_MEMORY_STORE" in unwrapped(done.stdout)
    again = CliRunner().invoke(program, ["move", url, back])
    assert (again.exit_code, "has a memory already" in again.stderr) == (1, True)


def test_addresses_that_lead_nowhere_are_named(full: Path, tmp_path: Path, postgres: PostgresServer, url: str) -> None:
    refused(InvalidInput, partial(move, f"sqlite:{full}", f"sqlite:{tmp_path / 'new'}"), "backup")
    refused(InvalidInput, partial(move, f"sqlite:{full}", "mysql://db/memory"), "sqlite:FOLDER or postgresql://")
    refused(NotFound, partial(move, f"sqlite:{tmp_path / 'none'}", url), "There is no memory")
    away = "postgresql://memory:hunter2@127.0.0.1:9/memory"
    with pytest.raises(StoreUnavailable, match="cannot be used") as error:
        move(f"sqlite:{full}", away)
    assert "hunter2" not in str(error.value)
    assert not (tmp_path / "none").exists()
