"""Results of a memory in PostgreSQL whose bytes are in a bucket: none is lost, and none stays that was deleted."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import anyio
import psycopg
import pytest
from click.testing import CliRunner

from mcp_memory.cli.main import program
from mcp_memory.core.errors import Damaged, InvalidInput, StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import open_memory
from mcp_memory.service.upkeep.move import move
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.postgres import objects
from mcp_memory.store.postgres.object_upkeep import ObjectUpkeep
from mcp_memory.store.postgres.store import PostgresStore, open_store
from mcp_memory.store.postgres.transaction import PostgresTransaction
from mcp_memory.store.sql import ref_rows, tombstone_rows, turn_rows
from mcp_memory.store.sqlite.store import open_store as open_sqlite
from mcp_memory.testing import HashEmbedder
from tests.bucket import TestBucket, running_bucket
from tests.postgres.notes import as_owner, sql
from tests.postgres.proxy import Proxy
from tests.postgres_server import PostgresServer
from tests.service.test_indexing import until
from tests.store.test_contract import NOW, new_ref

pytestmark = pytest.mark.postgres

WORDS = b"the secret of the vault is 4711"
AT_ONCE = timedelta(0)


@pytest.fixture(scope="module")
def server() -> Iterator[TestBucket]:
    with running_bucket() as made:
        yield made


@pytest.fixture
def bucket(server: TestBucket) -> TestBucket:
    server.empty()
    return server


@pytest.fixture
def store(url: str, bucket: TestBucket) -> Iterator[PostgresStore]:
    with closing(open_store(url, bucket.address)) as opened:
        yield opened


def upkeep(store: PostgresStore) -> ObjectUpkeep:
    return store._object_upkeep  # pyright: ignore[reportPrivateUsage]


def keys(url: str) -> list[str]:
    return [key for (key,) in sql(url, "SELECT key FROM object WHERE key IS NOT NULL ORDER BY key")]


def garbage(url: str) -> list[str]:
    return [key for (key,) in sql(url, "SELECT key FROM object_garbage")]


def forget_for_good(store: PostgresStore, ref: str) -> None:
    gone = store.write("me", tombstone_rows.forget, [ref], reason="", now=NOW)
    store.purge("me", Purge(tombstones=[gone.id]), now=NOW)


@pytest.mark.parametrize("data", [b"", b"\0", b"a\0b\r\n\xff", WORDS * 1_000, bytes(6_000_000)], ids=len)
def test_a_result_comes_back_byte_for_byte(store: PostgresStore, url: str, bucket: TestBucket, data: bytes) -> None:
    ref = store.write("me", ref_rows.put, new_ref(data))
    assert store.read("me", ref_rows.read_bytes, ref.id) == data
    assert keys(url) == list(bucket.objects())
    assert sql(url, "SELECT count(*) FROM object WHERE data IS NOT NULL") == [(0,)]


@pytest.mark.parametrize("span", [(0, 31), (0, 0), (4, 10), (30, 31)])
def test_a_part_of_a_result_is_read_without_the_rest(store: PostgresStore, span: tuple[int, int]) -> None:
    ref = store.write("me", ref_rows.put, new_ref(WORDS))

    def part(tx: PostgresTransaction) -> list[bytes | None]:
        return tx.files.read_results([(ref.path, len(WORDS), span), ("refs/none.md", 7, (0, 7))])

    assert store.read("me", part) == [WORDS[slice(*span)], None]


def test_a_result_is_stored_once_however_often_it_comes(store: PostgresStore, bucket: TestBucket) -> None:
    assert store.write("me", ref_rows.put, new_ref(WORDS)) == store.write("me", ref_rows.put, new_ref(WORDS))
    assert len(bucket.objects()) == 1


def test_results_from_before_the_bucket_was_set_stay_in_their_rows(url: str, bucket: TestBucket) -> None:
    with closing(open_store(url)) as store:
        before = store.write("me", ref_rows.put, new_ref(b"in the row"))
    with closing(open_store(url, bucket.address)) as store:
        after = store.write("me", ref_rows.put, new_ref(b"in the bucket"))
        assert (store.read("me", ref_rows.read_bytes, before.id), store.read("me", ref_rows.read_bytes, after.id)) == (
            b"in the row",
            b"in the bucket",
        )
    assert len(bucket.objects()) == 1


def test_a_server_without_the_setting_names_it_and_reads_the_rest(
    store: PostgresStore, url: str, bucket: TestBucket
) -> None:
    ref = store.write("me", ref_rows.put, new_ref(WORDS))
    with closing(open_store(url)) as other:
        with pytest.raises(StoreUnavailable, match="Set MCP_MEMORY_OBJECTS"):
            other.read("me", ref_rows.read_bytes, ref.id)
        assert "Set MCP_MEMORY_OBJECTS" in other.problems()[0]
        assert (
            other.read("me", ref_rows.read_bytes, other.write("me", ref_rows.put, new_ref(b"in the row")).id)
            == b"in the row"
        )


def test_each_object_is_under_the_number_of_its_space_and_no_row_names_one_of_another(
    store: PostgresStore, url: str, bucket: TestBucket
) -> None:
    for space in ("anna", "ben"):
        store.write(space, ref_rows.put, new_ref(WORDS))
    found = sql(url, "SELECT space, key FROM object ORDER BY space")
    assert [int(key.split("/")[1]) for _, key in found] == [space for space, _ in found]
    assert len(set(bucket.objects())) == 2
    with pytest.raises(psycopg.errors.CheckViolation):
        sql(url, f"UPDATE object SET space = {found[0][0]}, path = 'x' WHERE space = {found[1][0]}")


# --- failures ---------------------------------------------------------------------------------------


class Failure(Exception):
    pass


def store_and_fail(tx: PostgresTransaction) -> None:
    ref_rows.put(tx, new_ref(WORDS))
    raise Failure


def test_a_write_that_is_tried_again_stores_its_object_once(url: str, bucket: TestBucket, proxy: Proxy) -> None:
    with closing(open_store(proxy.url(url), bucket.address)) as store:
        store.write("me", ref_rows.put, new_ref(b"before"))
        proxy.cut_before(b"COMMIT", lambda: None)
        ref = store.write("me", ref_rows.put, new_ref(WORDS))
        assert store.read("me", ref_rows.read_bytes, ref.id) == WORDS
    assert sorted(bucket.objects()) == keys(url)
    assert len(keys(url)) == 2


def test_a_write_that_is_rolled_back_leaves_nothing_to_read_and_the_sweep_takes_the_orphan(
    store: PostgresStore, url: str, bucket: TestBucket
) -> None:
    kept = store.write("me", ref_rows.put, new_ref(b"kept"))
    with pytest.raises(Failure):
        store.write("me", store_and_fail)
    assert (len(bucket.objects()), len(keys(url))) == (2, 1)
    upkeep(store).sweep()
    assert len(bucket.objects()) == 2  # it is not old enough: its transaction might go on
    upkeep(store).sweep(older_than=AT_ONCE)
    assert list(bucket.objects()) == keys(url)
    assert store.read("me", ref_rows.read_bytes, kept.id) == b"kept"


KILLED = """
import os, signal, sys
from mcp_memory.store.postgres.store import open_store
from mcp_memory.store.sql import ref_rows
from tests.store.test_contract import new_ref

store = open_store(*sys.argv[1:])
store.write("me", ref_rows.put, new_ref(b"acknowledged"))

def put(tx):
    ref_rows.put(tx, new_ref(b"killed"))
    os.kill(os.getpid(), signal.SIGKILL)

store.write("me", put)
"""


def test_a_server_that_is_killed_before_its_commit_leaves_an_orphan_and_no_row(url: str, bucket: TestBucket) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, url, bucket.address], timeout=60, check=False)
    assert done.returncode == -9
    assert (len(bucket.objects()), len(keys(url))) == (2, 1)
    with closing(open_store(url, bucket.address)) as store:
        upkeep(store).sweep(older_than=AT_ONCE)
        assert list(bucket.objects()) == keys(url)
        again = store.write("me", ref_rows.put, new_ref(b"killed"))
        assert store.read("me", ref_rows.read_bytes, again.id) == b"killed"


def test_the_object_is_stored_while_no_transaction_holds_the_space(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="there")]), now=NOW)
    into, open_transactions = store._objects, list[int]()  # pyright: ignore[reportPrivateUsage]
    put = into.put

    def counting(space: int, data: bytes):
        ((count,),) = sql(
            url,
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name LIKE 'mcp-memory%' AND state <> 'idle'",
        )
        open_transactions.append(count)
        return put(space, data)

    monkeypatch.setattr(into, "put", counting)
    store.write("me", ref_rows.put, new_ref(WORDS))
    assert open_transactions == [0]


def test_the_bytes_of_a_deleted_result_go_with_the_commit(store: PostgresStore, url: str, bucket: TestBucket) -> None:
    ref = store.write("me", ref_rows.put, new_ref(WORDS))
    forget_for_good(store, ref.id)
    assert (bucket.objects(), garbage(url)) == ({}, [])


def test_a_deletion_that_the_bucket_did_not_take_is_done_later_by_any_server(
    store: PostgresStore, url: str, bucket: TestBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = store.write("me", ref_rows.put, new_ref(WORDS))
    with monkeypatch.context() as patch:  # as if the server had died at its commit
        patch.setattr(ObjectUpkeep, "delete_of", lambda self, space: None)
        forget_for_good(store, ref.id)
    assert garbage(url) == list(bucket.objects()) != []
    with closing(open_store(url, bucket.address)) as other:
        assert not other.maintain_indexes(limit=10)  # the first may be at it
        sql(url, "UPDATE object_garbage SET at = at - interval '2 hours'")
        assert "still in the bucket" in other.problems()[-1]
        assert other.maintain_indexes(limit=10)
        assert not other.maintain_indexes(limit=10)
    assert (bucket.objects(), garbage(url)) == ({}, [])


def test_a_result_that_is_replaced_leaves_no_object(store: PostgresStore, url: str, bucket: TestBucket) -> None:
    ref = store.write("me", ref_rows.put, new_ref(WORDS))
    bucket.put(*keys(url), b"torn")
    with pytest.raises(Damaged, match=ref.id):
        store.read("me", ref_rows.read_bytes, ref.id)
    assert "of another size" in store.problems()[0]
    store.write("me", ref_rows.put, new_ref(WORDS))
    assert store.read("me", ref_rows.read_bytes, ref.id) == WORDS
    sql(url, "UPDATE object_garbage SET at = at - interval '2 hours'")
    assert store.maintain_indexes(limit=10)
    assert (list(bucket.objects()), store.problems()) == (keys(url), [])


def test_a_result_that_is_missing_in_the_bucket_is_damaged_and_a_problem(
    store: PostgresStore, url: str, bucket: TestBucket
) -> None:
    ref = store.write("me", ref_rows.put, new_ref(WORDS))
    assert store.problems() == []
    bucket.delete(*keys(url))
    with pytest.raises(Damaged, match="is missing"):
        store.read("me", ref_rows.read_bytes, ref.id)
    assert store.problems()[0].startswith("1 results are missing in the bucket")
    store.write("me", ref_rows.put, new_ref(WORDS))
    assert store.read("me", ref_rows.read_bytes, ref.id) == WORDS


def test_the_sweep_runs_once_a_day_for_all_servers(store: PostgresStore, url: str, bucket: TestBucket) -> None:
    store.write("me", ref_rows.put, new_ref(WORDS))
    assert not store.maintain_indexes(limit=10)
    sql(url, "UPDATE object_folder SET swept_at = swept_at - interval '2 days'")
    with closing(open_store(url, bucket.address)) as other:
        assert store.maintain_indexes(limit=10)
        assert not other.maintain_indexes(limit=10)
        assert not store.maintain_indexes(limit=10)
    assert list(bucket.objects()) == keys(url)


def test_without_the_bucket_a_result_is_refused_whole_and_all_else_goes_on(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = store.write("me", ref_rows.put, new_ref(WORDS))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with closing(open_store(url, "s3://memory/results")) as cut_off:
        with pytest.raises(
            StoreUnavailable, match=r"The bucket s3://memory/results cannot be used .* AWS_ENDPOINT_URL"
        ):
            cut_off.write("me", ref_rows.put, new_ref(b"another"))
        with pytest.raises(StoreUnavailable, match="cannot be used"):
            cut_off.read("me", ref_rows.read_bytes, ref.id)
        (turn,) = cut_off.write(
            "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="goes on")]), now=NOW
        ).stored
        assert [one.id for one in cut_off.read("me", turn_rows.session_turns, "s")] == [turn.id]
        assert not cut_off.maintain_indexes(limit=10)
        assert "cannot be used" in cut_off.problems()[0]
    assert sql(url, "SELECT count(*) FROM ref") == [(1,)]


async def test_without_the_bucket_turns_are_found_and_embedded_and_results_are_left_out(
    url: str, bucket: TestBucket, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"home": home, "store": url, "objects": bucket.address}
    turns = [NewTurn(role="user", content="The kettle is on the stove.")]
    async with open_memory(**given, embedder="none") as memory:
        await memory.offload_tool_result("Bash", b"The kettle boils.\n" * 200, session="s")
        assert len((await memory.conversation_search("kettle boils")).results) == 1
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    sql(url, "UPDATE ref SET indexed = 0")
    async with open_memory(**given, embedder=HashEmbedder("far/64", local=False)) as memory:
        await memory.record_turns(turns, session="s")
        state = await until(memory, lambda state: state.embedded == 1 and state.error is not None)
        assert "cannot be used" in (state.error or "")
        found = await memory.conversation_search("kettle")
        assert ([hit.turn.content for hit in found.hits], found.results) == ([turns[0].content], [])


def test_a_bucket_that_never_answers_is_asked_once_and_then_left_alone_for_a_while(
    bucket: TestBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_REQUEST_S", 2.1)
    asked = list[socket.socket]()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(0.01)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        cut_off = objects.Bucket(bucket.address, "folder")
        for _ in range(5):
            with pytest.raises(StoreUnavailable, match="cannot be used"):
                cut_off.get("folder/1/x")
        with suppress(TimeoutError):
            while True:
                asked.append(silent.accept()[0])
    for connection in asked:
        connection.close()
    assert 1 <= len(asked) < 5


def test_a_bucket_that_does_not_exist_is_an_error_that_names_it(url: str, bucket: TestBucket) -> None:
    with (
        closing(open_store(url, "s3://elsewhere")) as store,
        pytest.raises(StoreUnavailable, match="s3://elsewhere cannot be used"),
    ):
        store.write("me", ref_rows.put, new_ref(WORDS))


# --- several databases, and moves -------------------------------------------------------------------


def test_two_databases_share_a_bucket_and_neither_sweeps_what_the_other_has(
    postgres: PostgresServer, store: PostgresStore, url: str, bucket: TestBucket
) -> None:
    second = postgres.create_memory()
    ref = store.write("me", ref_rows.put, new_ref(WORDS))
    with closing(open_store(second, bucket.address)) as other:
        theirs = other.write("me", ref_rows.put, new_ref(WORDS))
        for one in (store, other):
            upkeep(one).sweep(older_than=AT_ONCE)
        assert (store.read("me", ref_rows.read_bytes, ref.id), other.read("me", ref_rows.read_bytes, theirs.id)) == (
            WORDS,
            WORDS,
        )
        assert store.problems() == other.problems() == []
    postgres.drop_database(second)


def test_a_copy_of_a_database_reads_the_objects_and_sweeps_none_of_the_first(
    postgres: PostgresServer, url: str, bucket: TestBucket
) -> None:
    with closing(open_store(url, bucket.address)) as store:
        ref = store.write("me", ref_rows.put, new_ref(WORDS))
    copy = postgres.create_database(url.rpartition("/")[2])
    with closing(open_store(url, bucket.address)) as store, closing(open_store(copy, bucket.address)) as other:
        later = store.write("me", ref_rows.put, new_ref(b"written after the copy"))
        theirs = other.write("me", ref_rows.put, new_ref(b"written to the copy"))
        for one in (store, other):
            upkeep(one).sweep(older_than=AT_ONCE)
        assert store.read("me", ref_rows.read_bytes, later.id) == b"written after the copy"
        assert (other.read("me", ref_rows.read_bytes, ref.id), other.read("me", ref_rows.read_bytes, theirs.id)) == (
            WORDS,
            b"written to the copy",
        )
    postgres.drop_database(copy)


def test_a_memory_moves_into_the_bucket_and_out_of_it(home: Path, tmp_path: Path, url: str, bucket: TestBucket) -> None:
    with closing(open_sqlite(home)) as store:
        for space in ("anna", "ben"):
            store.write(
                space,
                turn_rows.append,
                "s",
                turn_rows.prepare([NewTurn(role="user", content=f"{space} keeps bees")]),
                now=NOW,
            )
            for data in (WORDS, b"", b"\0", space.encode()):
                store.write(space, ref_rows.put, new_ref(data))
    sql(url, "DELETE FROM space")  # the target of a move is empty
    there = move(f"sqlite:{home}", as_owner(url), objects=bucket.address)
    assert [one.rows for one in there.proven if one.what == "results"] == [4, 4]
    assert sql(url, "SELECT count(*) FROM object WHERE data IS NOT NULL") == [(0,)]
    assert sorted(bucket.objects()) == keys(url) != []
    returned = move(as_owner(url), f"sqlite:{tmp_path / 'back'}", objects=bucket.address)
    assert list(returned.proven) == list(there.proven)


# --- the whole memory -------------------------------------------------------------------------------


def test_purge_leaves_no_word_in_the_bucket_and_says_that_versions_stay(
    url: str, bucket: TestBucket, home: Path
) -> None:
    given = {"home": home, "store": url, "objects": bucket.address, "embedder": "none"}

    async def store_and_forget() -> None:
        async with open_memory(**given) as memory:
            stored = await memory.offload_tool_result("Bash", WORDS, session="s")
            await memory.offload_tool_result("Bash", b"It stays.", session="s")
            assert any(WORDS in data for data in bucket.objects().values())
            await memory.forget([stored.ref])

    anyio.run(store_and_forget)
    environ = {"MCP_MEMORY_STORE": url, "MCP_MEMORY_OBJECTS": bucket.address, "MCP_MEMORY_HOME": str(home)}
    done = CliRunner().invoke(program, ["purge", "--all", "--yes"], env=environ | {"MCP_MEMORY_EMBEDDER": "none"})
    assert f"If {bucket.address} has versioning, it keeps deleted results" in done.output
    assert not any(b"4711" in data for data in bucket.objects().values())
    assert len(bucket.objects()) == 1


def test_the_setting_without_a_database_is_refused(home: Path) -> None:
    async def open_it() -> None:
        async with open_memory(home=home, objects="s3://memory/results"):
            pass

    with pytest.raises(InvalidInput, match="Set MCP_MEMORY_STORE, or unset MCP_MEMORY_OBJECTS"):
        anyio.run(open_it)


def test_a_missing_client_is_an_error_that_names_the_extra(
    url: str, bucket: TestBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(InvalidInput, match=r"memory-pyramid\[s3\]"):
        open_store(url, bucket.address)
