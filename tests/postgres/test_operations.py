"""Each procedure of docs/operations.md, as it is written there, on real servers.

The shell blocks of the page are run with the addresses, ports and directories of the test in place of those of the page
(`HERE`). `pg_ctl start` and `restart` get the options of the test's server, such as its port.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGTERM

import pytest
from anyio.from_thread import start_blocking_portal

from bench.fleet import Unanswered, call_once, haproxy, has_haproxy
from bench.load import running_server
from mcp_memory.core.types import NewTurn
from mcp_memory.store.postgres.store import open_store
from mcp_memory.store.sql import turn_rows
from tests.postgres.notes import sql
from tests.postgres.test_crashes import DURABLE
from tests.postgres_server import PostgresServer, running

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
NOT_HERE = {
    "Tool results in a bucket": "needs a bucket; tests/postgres/test_objects.py has one",
    "When the primary is lost": "tests/postgres/test_promotion.py runs it",
    "Reads from the standby": "sets a variable; tests/postgres/test_replica.py reads",
    "Metrics": "shows an address; tests/server/test_metrics.py asks for it",
    "Audit log": "sets a variable; tests/server/test_audit.py reads the log",
}


def sections() -> dict[str, list[str]]:
    """The shell blocks of each section that has any."""
    parts = re.split(r"^##+ (.+)\n", PAGE, flags=re.MULTILINE)
    found = {
        heading: re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        for heading, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    return {heading: blocks for heading, blocks in found.items() if blocks}


BLOCKS = sections()
RUN = {
    "First set-up",
    "When the standby is lost",
    "A dump",
    "Upgrades",
    "To a moment",
    "Poolers",
    "Beyond one primary",
    "Spaces, quotas and tokens",
}


def test_every_procedure_of_the_page_is_run_by_a_test() -> None:
    assert BLOCKS.keys() >= RUN
    assert BLOCKS.keys() - RUN <= NOT_HERE.keys()


@dataclass(frozen=True, slots=True)
class Site:
    """The machines of a test: `hosts` are the servers of PostgreSQL by the names that the page gives them."""

    folder: Path
    hosts: Mapping[str, PostgresServer]

    def here(self, block: str) -> str:
        """Return a block with the addresses and directories of this test."""
        primary, standby = (self.hosts[name].port for name in ("primary", "standby"))
        words = {
            "host=primary": f"host=127.0.0.1 port={primary}",
            "@primary,standby/": f"@127.0.0.1:{primary},127.0.0.1:{standby}/",
            "@primary-2/memory": f"@127.0.0.1:{primary}/memory_2",
            "@primary/": f"@127.0.0.1:{primary}/",
            "--pwprompt ": "",
            "/archive": f"{self.folder}/archive",
            "/backup/": f"{self.folder}/backup/",
            "find /backup": f"find {self.folder}/backup",
            "scram-sha-256\nauth_file": "trust\nauth_file",
        }
        return re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], block)

    def perform(self, block: str, on: str) -> str:
        """Run a block as the user of PostgreSQL on a machine; return what it printed."""
        server = self.hosts[on]
        printed = ""
        for part in re.split(r"^(pg_ctl (?:re)?start)\n", self.here(block), flags=re.MULTILINE):
            match part:
                case "pg_ctl start":
                    server.start()
                case "pg_ctl restart":
                    server.control("-m", "fast", "stop")
                    server.start()
                case _:
                    environ = {"PGDATA": str(server.folder / "data"), "PGHOST": "127.0.0.1", "PGPORT": str(server.port)}
                    printed += self.shell(part, as_postgres=True, PGUSER="postgres", **environ)
        return printed

    def shell(self, script: str, *, as_postgres: bool = False, **environ: str) -> str:
        """Run a script with the programs of PostgreSQL and mcp-memory; return what it printed."""
        binaries = next(iter(self.hosts.values())).binaries
        own = {name: value for name, value in os.environ.items() if not name.startswith(("MCP_MEMORY_", "PG"))}
        path = f"{self.folder / 'bin'}{os.pathsep}{binaries}{os.pathsep}{own['PATH']}"
        user = {"user": "nobody"} if as_postgres and os.geteuid() == 0 else {}
        ran = subprocess.run(
            ["sh", "-euc", script],
            cwd=self.folder,
            env={**own, "PATH": path, "HOME": str(self.folder), "PYTHONPATH": str(ROOT), **environ},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
            **user,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr


def make_site(server: PostgresServer, **others: PostgresServer) -> Site:
    folder = server.folder / "site"
    (folder / "bin").mkdir(parents=True)
    for name in ("archive", "backup"):
        (folder / name).mkdir()
    program = folder / "bin" / "mcp-memory"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mcp_memory "$@"\n')
    program.chmod(0o755)
    if os.geteuid() == 0:
        for place in (folder, *folder.iterdir()):
            shutil.chown(place, "nobody")
    return Site(folder, {"primary": server, "standby": others.get("standby", server)})


@pytest.fixture
def primary() -> Iterator[PostgresServer]:
    with running(DURABLE | {"wal_keep_size": "1GB"}) as server:
        yield server


@pytest.fixture
def with_memory(primary: PostgresServer) -> PostgresServer:
    """A primary with a database `memory`, in which users exist."""
    primary.make_template()
    sql(primary.url(), "CREATE ROLE standby LOGIN REPLICATION")
    return primary


def write(url: str, text: str, key: str | None = None) -> None:
    with closing(open_store(url, key=key)) as store:
        turn = NewTurn(role="user", content=text)
        store.write("me", turn_rows.append, "s", turn_rows.prepare([turn]), now=datetime.now(UTC))


def texts(server: PostgresServer, database: str = "memory") -> list[str]:
    return sorted(text for (text,) in sql(server.url(database), "SELECT content FROM turn"))


def test_a_fleet_is_set_up_and_loses_and_regains_its_standby(primary: PostgresServer) -> None:
    standby = primary.beside()
    site = make_site(primary, standby=standby)
    users, copy, wait, serve, look = BLOCKS["First set-up"]
    site.perform(users, "primary")
    site.perform(copy, "standby")
    try:
        assert re.search(r"127\.0\.0\.1 *\| sync\n", repeated(site, wait))
        # One shell, as an operator has: the variables of the first block are those of the second.
        started = "mcp-memory serve --transport http --host 0.0.0.0 --port 0 >serve.log 2>&1 & echo $! >serve.pid"
        ready = 'until grep -q "listens on" serve.log; do sleep 0.1; done; port=$(grep -o ":[0-9]*/mcp" serve.log | tr -dc 0-9)'
        lines = serve.replace("mcp-memory serve --transport http --host 0.0.0.0", started) + ready + "\n"
        told = site.shell(
            site.here(lines + 'printf %s "$MCP_MEMORY_STORE_KEY" >key\n' + look.replace(":8765", ":$port"))
        )
        assert "laptop opens me" in told
        assert not re.search(r"^fail", told, re.MULTILINE), told

        url, key = site.here("postgresql://memory@primary,standby/memory"), (site.folder / "key").read_text()
        write(url, "on both disks", key)
        standby.kill()
        start, compare, alone = BLOCKS["When the standby is lost"]
        site.perform(alone, "primary")
        write(url, "on one disk", key)
        site.perform(start, "standby")
        site.perform(wait, "primary")
        assert re.search(r"127\.0\.0\.1 *\| sync\n", repeated(site, compare))
        write(url, "on both again", key)
        assert texts(standby) == ["on both again", "on both disks", "on one disk"]
    finally:
        end_process(site.folder / "serve.pid")
        standby.stop()


def repeated(site: Site, block: str) -> str:
    """Run a block on the primary until it shows a synchronous standby, as an operator does."""
    until = time.monotonic() + 30
    while "sync\n" not in (printed := site.perform(block, "primary").replace("async\n", "")):
        assert time.monotonic() < until, printed
        time.sleep(0.2)
    return printed


def end_process(pid_file: Path) -> None:
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int(pid_file.read_text()), SIGTERM)


def test_a_dump_is_restored_with_what_it_contains_and_the_settings(with_memory: PostgresServer) -> None:
    site = make_site(with_memory)
    write(with_memory.url("memory", "memory"), "kept")
    (dump,) = BLOCKS["A dump"]
    migrate = dump.splitlines()[-1]
    told = site.perform(dump.replace(migrate, ""), "primary") + site.shell(site.here(migrate))
    assert "memory may read and write the rows" in told
    assert texts(with_memory, "restored") == ["kept"]
    with closing(open_store(with_memory.url("restored", "memory"))) as store:
        assert [problem for problem in store.problems() if "setting" in problem] == []


def test_an_upgrade_is_begun_and_finished(with_memory: PostgresServer) -> None:
    site = make_site(with_memory)
    expand, contract = BLOCKS["Upgrades"]
    assert "up to date" in site.shell(site.here(expand))
    site.shell(site.here(contract))


def test_a_database_is_restored_as_it_was_at_a_moment(with_memory: PostgresServer) -> None:
    site = make_site(with_memory)
    archive, every_night, restore = BLOCKS["To a moment"]
    site.perform(archive, "primary")
    url = with_memory.url("memory", "memory")
    write(url, "before the backup")
    for _ in range(2):
        site.perform(every_night, "primary")
        time.sleep(1)  # the directory of a backup is named by the second
    write(url, "after the backup")
    ((moment,),) = sql(with_memory.url(), "SELECT now()::text")
    write(url, "after the moment")
    sql(with_memory.url(), "SELECT pg_switch_wal()")
    archived = (
        "SELECT count(*) FROM pg_stat_archiver WHERE last_archived_wal >= pg_walfile_name(pg_current_wal_lsn() - 1)"
    )
    until = time.monotonic() + 30
    while sql(with_memory.url(), archived) == [(0,)]:
        assert time.monotonic() < until
        time.sleep(0.1)
    with_memory.control("-m", "fast", "stop")
    (with_memory.folder / "data").rename(with_memory.folder / "old")
    (said,) = re.findall(r"recovery_target_time = '(.*?)'", restore)
    site.perform(restore.replace(said, moment), "primary")
    until = time.monotonic() + 30
    while sql(with_memory.url(), "SELECT pg_is_in_recovery()") == [(True,)]:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert texts(with_memory) == ["after the backup", "before the backup"]
    write(url, "written again")


@pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="pgbouncer is not installed")
def test_a_pooler_passes_the_writes_of_a_server_on(with_memory: PostgresServer) -> None:
    site = make_site(with_memory)
    port = with_memory.beside().port
    (block,) = BLOCKS["Poolers"]
    try:
        site.perform(block.replace("6432", str(port)), "primary")
        write(f"postgresql://memory@127.0.0.1:{port}/memory", "through the pooler")
        assert texts(with_memory) == ["through the pooler"]
    finally:
        end_process(site.folder / "pgbouncer.pid")


@pytest.mark.nightly
@pytest.mark.skipif(not has_haproxy(), reason="haproxy is not installed")
def test_a_space_moves_to_another_database_behind_the_same_address(with_memory: PostgresServer) -> None:
    site = make_site(with_memory)
    urls = [with_memory.url("memory", "memory"), with_memory.create_memory()]
    assert urls[1].endswith("/memory_2")
    token = site.shell(f"mcp-memory --store {urls[0]} token create --name laptop --space work").split()[0]
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        servers = [served_on(stack, url, site.folder / f"server-{number}.log") for number, url in enumerate(urls)]
        places = {"/usr/local/etc/haproxy/shards.map": str(site.folder / "shards.map")}
        (site.folder / "shards.map").write_text("nobody shard-2\n")

        def record(token: str, text: str) -> None:
            with haproxy(servers, site.folder, ROOT / "deploy/shards.cfg", places) as url:
                turns = {"turns": [{"role": "user", "content": text}]}
                portal.call(call_once, (url, token, "work"), "record_turns", turns)

        record(token, "on the first")
        move, delete = BLOCKS["Beyond one primary"]
        site.shell(site.here(move))
        with pytest.raises(Unanswered):
            record(token, "revoked")
        record((site.folder / "token.txt").read_text().split()[0], "on the second")
        site.shell(site.here(delete))
    assert texts(with_memory) == []
    assert texts(with_memory, "memory_2") == ["on the first", "on the second"]


def served_on(stack: ExitStack, store: str, log: Path) -> str:
    command = [sys.executable, "-m", "mcp_memory", "serve", "--transport", "http", "--port", "0"]
    environ = os.environ | {
        "MCP_MEMORY_STORE": store,
        "MCP_MEMORY_HOME": str(log.with_suffix("")),
        "MCP_MEMORY_EMBEDDER": "none",
    }
    url, _ = stack.enter_context(running_server(command, environ, log, "/mcp"))
    return url.removesuffix("/mcp")


@pytest.mark.nightly
def test_an_operator_administers_spaces_from_another_machine(with_memory: PostgresServer) -> None:
    site = make_site(with_memory)
    url = with_memory.url("memory", "memory")
    (block,) = BLOCKS["Spaces, quotas and tokens"]
    on_a_server, elsewhere = block.split("\n", 1)
    with ExitStack() as stack:
        address = served_on(stack, url, site.folder / "server.log")
        token = site.shell(on_a_server, MCP_MEMORY_STORE=url).split()[0]
        told = site.shell(elsewhere.replace("https://memory.example.com", address).replace("mcm_…", token))
    assert "maya opens team" in told
    assert sql(with_memory.url("memory"), "SELECT name FROM space WHERE name = 'team'") == []
