"""What every test gets: a home of its own, no network but loopback, and an event loop that must not block.

* A connection to, or a look-up of, anything but this machine raises at once, whatever library asks.
* Code of `mcp_memory` that blocks the event loop (a file, a lock, a sleep) raises `BlockingError`.
* The developer's settings and home folder are out of sight: `MCP_MEMORY_*` is unset and HOME is empty.
* No statements are made of sentences unless a test asks for it (`read_sentences=True`): they would be rows that it did
  not store, and reading loads the encoder.
* A server of a stdio client is a process of its own, unless a test asks for a shared one: it would outlive its client.
* Temporary folders are in memory where the system has a file system for that, unless TMPDIR names a folder: on a disk,
  a run of all tests waits minutes for `fsync` and for files to be deleted.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.postgres_server import HomesOnPostgres, PostgresServer

settings.register_profile("default", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", settings.get_profile("default"), max_examples=150, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # started in the background: all that tests start would ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)

ADDRESSED = {"socket.connect": 1, "socket.sendto": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0}


def _is_this_machine(address: Any) -> bool:
    host = address[0] if isinstance(address, tuple) else address
    if isinstance(host, bytes):
        host = host.decode()
    if host in (None, "", "localhost", "testserver") or str(host).startswith("/"):
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _forbid_network(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ADDRESSED and not _is_this_machine(arguments[ADDRESSED[event]]):
        raise PermissionError(f"a test tried to reach {arguments[ADDRESSED[event]]!r}: only loopback is allowed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        choices=("sqlite", "postgres"),
        default="sqlite",
        help="which store a memory is opened on; with `postgres`, a database for each home, on a server of the run's own",
    )


IN_MEMORY = Path("/dev/shm")
ROOM = 2_000_000_000
"""Bytes; a run of all tests uses half of this. The folders of tests that pass are deleted."""


def _has_room_in_memory() -> bool:
    if not IN_MEMORY.is_dir() or not os.access(IN_MEMORY, os.W_OK):
        return False
    runs_programs = not os.statvfs(IN_MEMORY).f_flag & os.ST_NOEXEC
    return runs_programs and shutil.disk_usage(IN_MEMORY).free >= ROOM


def pytest_configure() -> None:
    if "TMPDIR" not in os.environ and _has_room_in_memory():
        os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)  # the workers and programs of this run inherit it
    sys.addaudithook(_forbid_network)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server with a template of a memory."""
    from tests.postgres_server import running

    with running() as server:
        server.make_template()
        yield server


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """A memory in PostgreSQL of this test alone."""
    made = postgres.create_memory()
    yield made
    postgres.drop_database(made)


@pytest.fixture(scope="session", autouse=True)
def homes_on_postgres(request: pytest.FixtureRequest) -> Iterator[HomesOnPostgres | None]:
    """The homes of this run, where their memories are in PostgreSQL."""
    if request.config.getoption("--store") == "sqlite":
        yield None
        return
    from mcp_memory.service import memory
    from tests.postgres_server import HomesOnPostgres

    homes = HomesOnPostgres(request.getfixturevalue("postgres"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_open_store", homes.opened)
        yield homes


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _unblocked_loop() -> Iterator[None]:
    with blockbuster_ctx("mcp_memory"):
        yield


@pytest.fixture(scope="session", autouse=True)
def _stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("MCP_MEMORY_")]:
            patch.delenv(name)
        patch.setenv("MCP_MEMORY_READ_SENTENCES", "false")
        patch.setenv("MCP_MEMORY_SHARED", "false")
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder for a store of this test alone; it does not exist yet."""
    return tmp_path / "home"


@pytest.fixture(scope="module")
def loop_for_litellm() -> Iterator[None]:
    """litellm makes the thread an event loop where it has none, and never closes it."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()
