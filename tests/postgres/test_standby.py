"""A synchronous standby, or the primary, that stops: every call ends, and nothing is acknowledged that could be lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.service import indexing
from mcp_memory.service.memory import open_memory
from mcp_memory.store.postgres import standby as standby_state
from mcp_memory.store.postgres.store import PostgresStore
from mcp_memory.store.sql import home_rows, recall_rows, turn_rows
from mcp_memory.store.values import RecallEntry, Replication
from mcp_memory.testing import HashEmbedder
from tests.postgres.notes import make_table, note, noted, opened, sql
from tests.postgres.test_crashes import DURABLE, writers
from tests.postgres_server import PostgresServer, running
from tests.server.answers import WAIT
from tests.server.served import served
from tests.store.test_contract import NOW

pytestmark = pytest.mark.postgres

UNCONFIRMED = r"not confirmed by the standby within 2 s: it may or may not be stored. Send it again"
NONE_ANSWERS = "synchronous_standby_names requires a standby, and none answers"


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary and a synchronous standby, which tests may pause."""
    with running(DURABLE) as primary:
        primary.make_template()
        make_table(primary.url("memory"))
        with primary.standby() as standby:
            yield primary, standby


@pytest.fixture
def primary(pair: tuple[PostgresServer, PostgresServer]) -> PostgresServer:
    return pair[0]


@pytest.fixture
def standby(pair: tuple[PostgresServer, PostgresServer]) -> PostgresServer:
    return pair[1]


@pytest.fixture
def memory(primary: PostgresServer) -> Iterator[str]:
    made = primary.create_memory()
    for name in ("me", *(f"space {number}" for number in range(10))):
        sql(made, f"INSERT INTO space (name) VALUES ('{name}')")
    yield made
    primary.drop_database(made)


def waiting(primary: PostgresServer) -> set[tuple[int, datetime]]:
    """Return the processes that wait for the standby, and when their statements began."""
    return {*sql(primary.url(), "SELECT pid, query_start FROM pg_stat_activity WHERE wait_event = 'SyncRep'")}


def wait_until(is_so: Callable[[], object]) -> Any:
    until = time.monotonic() + 30
    while not (found := is_so()):
        assert time.monotonic() < until
        time.sleep(0.01)
    return found


def problem_of(store: PostgresStore, *, try_commit: bool = False) -> str:
    """Return why writes are not confirmed."""
    assert store.not_ready(try_commit=try_commit) is None
    return store.write_problem or ""


def write(store: PostgresStore, number: int) -> None:
    store.write(f"space {number}", lambda tx: tx.run("INSERT INTO note (text) VALUES (?)", f"{number}"))


def test_a_write_that_the_standby_does_not_confirm_is_an_error_and_leaves_no_process_waiting(
    primary: PostgresServer, standby: PostgresServer, memory: str
) -> None:
    with opened(memory, timeout=2) as store:
        with standby.paused():
            with pytest.raises(StoreUnavailable, match=UNCONFIRMED):
                note(store, "perhaps")
            assert waiting(primary) == set()
            with pytest.raises(StoreUnavailable, match=UNCONFIRMED):
                note(store, "perhaps")
        note(store, "surely")
    assert set(noted(memory)) == {"perhaps", "surely"}


def test_a_write_succeeds_if_the_standby_is_back_in_time(
    primary: PostgresServer, standby: PostgresServer, memory: str
) -> None:
    with opened(memory) as store, ThreadPoolExecutor(1) as threads:
        with standby.paused():
            writing = threads.submit(note, store, "once")
            wait_until(lambda: waiting(primary))
        writing.result()
    assert noted(memory) == ["once"]


def test_reads_and_probes_go_on_while_all_writers_wait(
    primary: PostgresServer, standby: PostgresServer, memory: str
) -> None:
    with opened(memory, timeout=4) as store, ThreadPoolExecutor(10) as threads:
        with standby.paused():
            writing = [threads.submit(write, store, number) for number in range(10)]
            wait_until(lambda: len(waiting(primary)) == 8)
            assert store.read("me", lambda tx: tx.get("SELECT count(*) FROM note")) == 0
            assert NONE_ANSWERS in problem_of(store, try_commit=True)
            errors = [str(task.exception()) for task in writing]
        unknown = [error for error in errors if "may or may not be stored" in error]
        assert len(unknown) >= 8
        assert [error for error in errors if error not in unknown and "Nothing was written" not in error] == []
        list(threads.map(partial(write, store), range(10)))
    assert set(noted(memory)) == {str(number) for number in range(10)}


def cancel(primary: PostgresServer) -> None:
    sql(primary.url(), "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")


def terminate(primary: PostgresServer) -> None:
    sql(primary.url(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")


@pytest.mark.parametrize("end", [cancel, terminate])
def test_a_wait_that_an_administrator_ends_is_not_an_acknowledgement(
    primary: PostgresServer, standby: PostgresServer, memory: str, end: Callable[[PostgresServer], None]
) -> None:
    with opened(memory) as store, ThreadPoolExecutor(1) as threads:
        with standby.paused():
            writing = threads.submit(note, store, "once")
            before = wait_until(lambda: waiting(primary))
            end(primary)
            wait_until(lambda: waiting(primary) - before)  # it asks whether that was committed
            assert not writing.done()
        writing.result()
    assert noted(memory) == ["once"]


def test_requests_are_admitted_while_the_standby_is_gone(standby: PostgresServer, memory: str) -> None:
    with opened(memory, timeout=2) as store, standby.paused():
        assert store.write_home(home_rows.take_requests, "client", count=5, a_minute=60) == 5


def test_the_log_of_recalls_is_written_without_the_standby_and_does_not_confirm_other_writes(
    standby: PostgresServer, memory: str
) -> None:
    entry = RecallEntry(at=NOW, how="recall", session="s", ids=("t1",), tokens=9)
    with opened(memory, timeout=2) as store:
        store.write("me", lambda tx: tx.make_space())
        with standby.paused():
            with pytest.raises(StoreUnavailable, match=UNCONFIRMED):
                note(store, "perhaps")
            problem = store.write_problem
            assert problem is not None
            store.write_home(recall_rows.note_recalls, [("me", entry)])
            assert [logged.ids for logged in store.read("me", recall_rows.list_recalls)] == [("t1",)]
            assert store.write_problem == problem


async def test_turns_are_embedded_as_soon_as_the_standby_is_back(
    standby: PostgresServer, memory: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_AFTER_FAILURE_S", 0.1)
    async with open_memory(home=home, store=memory, store_timeout=2, embedder=HashEmbedder()) as opened_memory:
        with standby.paused():
            with pytest.raises(StoreUnavailable, match=UNCONFIRMED):
                await opened_memory.record_turns([NewTurn(role="user", content="Tea, please.")], session="s")
            with anyio.fail_after(WAIT):  # the claim of the space is not confirmed either
                while sql(memory, "SELECT 1 FROM due WHERE until > 0") == []:  # noqa: ASYNC110
                    await anyio.sleep(0.05)
        with anyio.fail_after(WAIT):  # its lease is longer
            while (await opened_memory.status())["embedding"]["embedded"] == 0:  # noqa: ASYNC110
                await anyio.sleep(0.05)


def test_warnings_are_noticed_whatever_the_client_is_sent(
    primary: PostgresServer, standby: PostgresServer, memory: str
) -> None:
    sql(memory, f"ALTER DATABASE {memory.rpartition('/')[2]} SET client_min_messages = 'error'")
    with opened(memory, timeout=2) as store, standby.paused(), pytest.raises(StoreUnavailable, match=UNCONFIRMED):
        note(store, "perhaps")


def test_a_turn_that_is_sent_again_is_acknowledged_only_with_the_standby_and_stored_once(
    standby: PostgresServer, memory: str
) -> None:
    def send() -> None:
        turn = NewTurn(role="user", content="Tea, please.", client_id="1")
        store.write("me", turn_rows.append, "s", turn_rows.prepare([turn]), now=NOW)

    with opened(memory, timeout=2) as store:
        with standby.paused():
            for _ in range(2):
                with pytest.raises(StoreUnavailable, match=UNCONFIRMED):
                    send()
        send()
    assert sql(memory, "SELECT count(*) FROM turn") == [(1,)]


def test_a_store_knows_that_no_standby_confirms_commits(
    primary: PostgresServer, standby: PostgresServer, memory: str
) -> None:
    with opened(memory, timeout=2) as store:
        assert problem_of(store, try_commit=True) == ""
        with standby.paused():
            assert problem_of(store) == ""  # nobody has written
            assert NONE_ANSWERS in problem_of(store, try_commit=True)
            assert NONE_ANSWERS in problem_of(store)
            assert NONE_ANSWERS in store.problems()[-1]
        wait_until(lambda: problem_of(store) == "")
        assert store.problems() == []


def test_servers_agree_that_the_standby_is_silent_while_anything_waits_for_it(
    standby: PostgresServer, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby_state, "STATE", standby_state.STATE.replace("'5 s'", "'0 s'"))
    with opened(memory) as one, opened(memory) as two, ThreadPoolExecutor(8) as threads:
        with standby.paused():
            writing = threads.submit(note, one, "once")
            for store in (one, two):
                wait_until(lambda store=store: NONE_ANSWERS in problem_of(store))
            one.write_home(lambda tx: tx.get("SELECT 1"))  # this COMMIT waits for nothing, and so proves nothing
            answers = threads.map(problem_of, [one, two] * 20)
            assert [answer for answer in answers if NONE_ANSWERS not in answer] == []
        writing.result()
        for store in (one, two):
            wait_until(lambda store=store: problem_of(store) == "")


ALONE = "Writes are acknowledged without a standby, which this memory has had"


def test_a_memory_that_has_had_a_standby_says_that_it_is_written_without_one() -> None:
    with running(DURABLE) as primary:
        primary.make_template()
        make_table(primary.url("memory"))
        sql(primary.url("memory"), "INSERT INTO space (name) VALUES ('me')")
        url = primary.url("memory", "memory")
        with opened(url) as store:
            assert store.problems() == []  # it never had any
            with primary.standby() as standby:
                assert problem_of(store) == ""
                assert store.replication == Replication(connected=1, is_required=True, lag=None)
                with opened(primary.url("memory")) as administrator:
                    administrator.not_ready()
                    assert administrator.replication is not None
                    assert isinstance(administrator.replication.lag, int)
                standby.kill()
                sql(primary.url(), "ALTER SYSTEM SET synchronous_standby_names = ''")
                sql(primary.url(), "SELECT pg_reload_conf()")
                wait_until(lambda: ALONE in problem_of(store))
                note(store, "on one disk")
                assert ALONE in (store.write_problem or "")
                with opened(url) as other:
                    assert [ALONE in problem for problem in other.problems()] == [True]
                standby.start()
                wait_until(lambda: sql(primary.url(), "SELECT EXISTS (SELECT 1 FROM pg_stat_replication)") == [(True,)])
                assert ALONE in problem_of(store)
                sql(primary.url(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
                sql(primary.url(), "SELECT pg_reload_conf()")
                wait_until(lambda: problem_of(store) == "")
                assert store.problems() == []


def test_a_store_knows_that_no_standby_is_connected() -> None:
    with running(DURABLE) as primary:
        primary.make_template()
        make_table(primary.url("memory"))
        sql(primary.url("memory"), "INSERT INTO space (name) VALUES ('me')")
        with primary.standby() as standby, opened(primary.url("memory", "memory"), timeout=2) as store:
            standby.kill()
            wait_until(lambda: sql(primary.url(), "SELECT NOT EXISTS (SELECT 1 FROM pg_stat_replication)") == [(True,)])
            assert "requires a standby, and none is connected" in problem_of(store)
            with pytest.raises(StoreUnavailable, match=UNCONFIRMED):
                note(store, "perhaps")
            with opened(primary.url("memory", "memory")) as other:
                assert "none is connected" in other.problems()[-1]
            standby.start()
            wait_until(lambda: problem_of(store) == "")
            note(store, "surely")


def restart(primary: PostgresServer) -> None:
    primary.control("-l", str(primary.folder / "log"), "-o", primary.options, "-m", "fast", "restart")


@pytest.mark.parametrize("end", [pytest.param(cancel, marks=pytest.mark.nightly), terminate, restart])
def test_no_acknowledged_write_is_lost_if_waits_are_ended_and_the_standby_is_promoted(
    end: Callable[[PostgresServer], None],
) -> None:
    with running(DURABLE) as primary:
        primary.make_template()
        make_table(primary.url("memory"))
        with primary.standby() as standby:
            both = primary.url("memory", "memory").replace(
                f"{primary.port}/", f"{primary.port},127.0.0.1:{standby.port}/"
            )
            with opened(both) as store, writers(store) as written:
                written.wait_for(20)
                standby.kill()
                before = wait_until(lambda: len(pids := waiting(primary)) == 4 and pids)
                end(primary)
                wait_until(lambda: waiting(primary) - before)
                primary.kill()
                standby.start()
                standby.promote()
                written.wait_for(20)
            written.check(standby.url("memory"))


def test_calls_of_a_paused_primary_end_and_the_store_works_when_it_goes_on(
    primary: PostgresServer, memory: str
) -> None:
    def read(_: int) -> int:
        return store.read("me", lambda tx: tx.get("SELECT count(*) FROM note"))

    def error_of(call: Callable[[int], object], number: int) -> str:
        with pytest.raises(StoreUnavailable) as error:
            call(number)
        return str(error.value)

    with opened(memory, timeout=2) as store, ThreadPoolExecutor(12) as threads:
        note(store, "before")
        with primary.paused():
            writing = [threads.submit(error_of, partial(write, store), number) for number in range(6)]
            reading = [threads.submit(error_of, read, number) for number in range(6)]
            assert "did not answer" in (store.not_ready() or "")
            assert all("Nothing was written" in task.result() for task in writing)
            assert not any("written" in task.result() for task in reading)
        assert store.not_ready() is None
        assert list(threads.map(read, range(10))) == [1] * 10
        note(store, "after")
    assert noted(memory) == ["after", "before"]


def test_an_error_says_what_each_host_answered(primary: PostgresServer, standby: PostgresServer, memory: str) -> None:
    hosts = f"127.0.0.1:1,127.0.0.1:{standby.port}"
    with (
        pytest.raises(StoreUnavailable, match=r"127.0.0.1:1 Connection refused; 127.0.0.1:\d+ session is read-only"),
        opened(memory.replace(f"127.0.0.1:{primary.port}", hosts)),
    ):
        pass


async def test_a_client_and_a_probe_learn_why_writes_are_not_confirmed(
    standby: PostgresServer, memory: str, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(home=home, store=memory, store_timeout=2, embedder="none")
    turns = {"turns": [{"role": "user", "content": "Tea, please.", "id": "1"}], "session": "s"}

    async def probe() -> httpx2.Response:
        return await http.get(f"{address}/readyz")

    async with (
        served(settings) as (address, _),
        httpx2.AsyncClient(timeout=WAIT) as http,
        Client(streamable_http_client(f"{address}/mcp")) as client,
    ):
        assert (await probe()).text == ""
        with standby.paused():
            for _ in range(2):  # the second finds it stored, by the primary alone
                answer = await client.call_tool("record_turns", turns)
                assert answer.is_error
                assert "may or may not be stored" in str(answer.content)
            with anyio.fail_after(WAIT):
                while NONE_ANSWERS not in (answer := await probe()).text:  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            assert answer.status_code == 200  # reads go on, and no other server could do more
            assert (await http.get(f"{address}/livez")).status_code == 200
            assert NONE_ANSWERS in str(await client.read_resource("memory://status"))
        with anyio.fail_after(WAIT):
            while (await probe()).text:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        assert not (await client.call_tool("record_turns", turns)).is_error
    assert sql(memory, "SELECT count(*) FROM turn") == [(1,)]
    assert f"ready, with a problem: Writes are not confirmed: {NONE_ANSWERS}" in caplog.text
