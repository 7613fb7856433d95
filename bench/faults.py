"""Faults of a team's memory: `python -m bench.faults [FAULT…] [--json FILE]`

Each fault happens to real servers (`bench.fleet`) while two clients record turns over HTTP and send again whatever was
not acknowledged. Printed for each: what the clients read and after how many seconds at most, what `/readyz`, `doctor`
and the log said meanwhile, and, after recovery (and a failover, where the row says so), how many of the acknowledged
turns are missing or stored twice.

Exit code 1 if a turn is missing or doubled, if a client waits longer than the deadline, or if something else differs
from what the fault requires; each difference is a line that begins with `WRONG`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from bench.failover import stored
from bench.fleet import DATABASE, OWNER, SPACES, Calls, Fleet, Unanswered, clock_ahead, fleet, has_haproxy
from mcp_memory.store.postgres.store import open_store
from tests.postgres_server import PostgresServer, run

DEADLINE = 10.0
PROBE_DEADLINE = 2.0
_SLACK = 3.0
"""Seconds that a busy machine adds to a deadline."""

_MAY_BE_STORED = "may or may not be stored"
_DEPLOY = Path(__file__).parent.parent / "deploy"
_STALL_SECONDS = 32.0
_COMMITS = 14  # of a call of record_turns, at most


@dataclass(slots=True)
class Outcome:
    """What a fault did. `wrong` are sentences: what differs from what is required."""

    fault: str
    what: str
    answers: dict[str, int] = field(default_factory=dict[str, int])
    known_s: float | None = None
    seen: dict[str, str] = field(default_factory=dict[str, str])
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: list[str] = field(default_factory=list[str])
    skipped: str | None = None

    def require(self, is_right: bool, otherwise: str) -> None:
        if not is_right:
            self.wrong.append(otherwise)

    def note_calls(self, calls: Calls, server: PostgresServer, *, requests: int = 1) -> None:
        """Count what the clients read, and compare the acknowledged turns with those that a server has now.

        `requests`: how many of a client's requests, each of which has the deadline, may fail before it gives up.
        """
        self.answers = dict(Counter(_shortened(call.error) for call in calls.made if call.error).most_common(4))
        self.known_s = round(max(call.seconds for call in calls.made), 1)
        self.compare(calls.acknowledged, stored(server.url(DATABASE, "memory"), calls.spaces))
        self.require(self.known_s <= requests * DEADLINE + _SLACK, f"a client waited {self.known_s} s")

    def compare(self, acknowledged: Sequence[str], found: Counter[str]) -> None:
        """Count the acknowledged turns that are missing, and the turns that are there more than once."""
        self.acknowledged = len(acknowledged)
        lost = [text for text in acknowledged if text not in found]
        doubled = [text for text, count in found.items() if count > 1]
        self.lost, self.doubled = len(lost), len(doubled)
        self.require(not lost, f"lost: {', '.join(lost[:3])}")
        self.require(not doubled, f"stored twice: {', '.join(doubled[:3])}")

    def look(self, team: Fleet, *words: str, server: int = 0, **environment: str) -> None:
        """Note what `/readyz`, `doctor` and the log say; `doctor` and the log have to contain one of `words`.

        `doctor` runs with the variables of `environment` too.
        """
        answer, seconds = team.ready(server)
        _, told = team.cli("doctor", seconds=90, **environment)
        log = [line for line in team.logged() if any(word in line for word in words)] or team.logged()
        self.seen = {
            "readyz": f"{answer} after {seconds:.1f} s",
            "doctor": _problems(told),
            "log": " | ".join(log[-2:]) or "silent",
        }
        self.require(seconds <= PROBE_DEADLINE + _SLACK, f"/readyz answered after {seconds:.1f} s")
        for place in ("doctor", "log") if words else ():
            self.require(any(word in self.seen[place] for word in words), f"{place} does not say why")


def _shortened(error: str | None) -> str:
    return re.sub(r"\b127\.0\.0\.1:\d+|\b[0-9a-f]{8,}\b|\b\d+\b(?= s\b)", "…", " ".join((error or "").split()))[:240]


# --- the standby ------------------------------------------------------------------------------------


def standby_lost(done: Outcome) -> None:
    """The standby is gone, and commits wait for it."""
    with fleet() as team, team.writing("standby lost") as calls:
        standby = _standby(team)
        calls.wait(time.monotonic(), acknowledged=True)
        standby.kill()
        calls.wait(time.monotonic() + 0.5)
        done.look(team, "standby")
        done.require(_answer(team, "conversation_search", {"query": "lost"}, url=team.url) is None, "a read fails")
        standby.start()
        calls.wait(time.monotonic(), acknowledged=True)
        calls.stopped = True
        done.require(
            any(_MAY_BE_STORED in (call.error or "") for call in calls.made),
            "no client read that a write was not confirmed by the standby",
        )
        done.note_calls(calls, team.primary)


def wait_cancelled(done: Outcome) -> None:
    """`pg_cancel_backend` ends the wait for the standby; then the standby is promoted."""
    _end_wait(done, lambda team: _end_waits(team, "pg_cancel_backend"))


def wait_terminated(done: Outcome) -> None:
    """`pg_terminate_backend` ends the wait for the standby; then the standby is promoted."""
    _end_wait(done, lambda team: _end_waits(team, "pg_terminate_backend"))


def primary_restarted(done: Outcome) -> None:
    """A restart of the primary ends the wait for the standby; then the standby is promoted."""

    def restart(team: Fleet) -> None:
        team.primary.control("-m", "fast", "stop")
        team.primary.start()

    _end_wait(done, restart)


def _end_wait(done: Outcome, end: Callable[[Fleet], None]) -> None:
    with fleet() as team, team.writing(done.fault) as calls:
        standby = _standby(team)
        calls.wait(time.monotonic(), acknowledged=True)
        standby.kill()
        for _ in range(3):
            time.sleep(1)
            end(team)
        before = len(calls.acknowledged)
        time.sleep(2)
        team.proxy.refuse()
        team.proxy.cut()
        team.primary.kill()
        standby.start()
        _promote(standby)
        calls.wait(time.monotonic(), acknowledged=True)
        calls.stopped = True
        done.seen["acknowledged before"] = str(before)
        done.note_calls(calls, standby)


def _end_waits(team: Fleet, function: str) -> None:
    """Call a function of PostgreSQL on the process of each commit that waits for the standby."""
    with psycopg.connect(team.primary.url(), autocommit=True) as con:
        con.execute(f"SELECT {function}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'".encode())


def promoted_as_documented(done: Outcome) -> None:
    """The primary is gone; the standby is promoted, and the old primary rebuilt, by the scripts that are shipped."""
    with fleet() as team, team.writing("failover") as calls:
        primary, standby = team.primary, _standby(team)
        _rows(primary, "CREATE ROLE standby LOGIN REPLICATION")
        calls.wait(time.monotonic(), acknowledged=True)
        primary.kill()
        _script(standby, "promote.sh", f"host=127.0.0.1 port={primary.port}")
        time.sleep(1)
        acknowledged = len(calls.acknowledged)
        done.look(team, "standby")
        done.require(len(calls.acknowledged) == acknowledged, "a write was acknowledged that one disk alone has")
        _script(primary, "rebuild-standby.sh", f"host=127.0.0.1 port={standby.port} user=standby")
        primary.start()
        calls.wait(time.monotonic(), acknowledged=True)
        calls.stopped = True
        done.note_calls(calls, standby)


def _script(server: PostgresServer, name: str, connection: str) -> None:
    """Run a script of `deploy/` on the machine of a server."""
    run(
        *("sh", str(_DEPLOY / name), connection),
        PATH=f"{server.binaries}{os.pathsep}{os.environ['PATH']}",
        PGDATA=str(server.folder / "data"),
        PGHOST="127.0.0.1",
        PGPORT=str(server.port),
        PGUSER="postgres",
    )


def _promote(standby: PostgresServer) -> None:
    standby.control("promote")


def _standby(team: Fleet) -> PostgresServer:
    assert team.standby is not None
    return team.standby


# --- the clock --------------------------------------------------------------------------------------


def clock_fast(done: Outcome) -> None:
    """A server's clock is 60 days ahead, and a space keeps its turns for 30."""
    ahead = clock_ahead(60)
    if ahead is None:
        done.skipped = "libfaketime is not installed (Debian: faketime)"
        return
    with fleet(balancer=False) as team:
        _answer(team, "record_turns", _turns("kept"))
        team.cli("retention", "--turns", "30d")
        fast = team.serve(**ahead)
        error = _answer(team, "record_turns", _turns("dated by the fast server"), url=fast)
        time.sleep(25)
        done.look(team, "clock", server=-1, **ahead)
        rows = _rows(
            team.primary,
            "SELECT content, to_timestamp(said_at / 1e3) > now() + interval '1 day', tombstone IS NOT NULL FROM turn",
        )
        done.seen["turns"] = str(rows)
        done.answers = {error: 1} if error else {}
        done.compare(["kept"], stored(team.primary.url(DATABASE, "memory"), SPACES))
        done.require(not any(late for _, late, _ in rows), "a turn is dated in the future")


# --- the database -----------------------------------------------------------------------------------


def lost_after_commit(done: Outcome) -> None:
    """The database is lost right after a COMMIT of a call, each of them in turn; the call is sent again."""
    with fleet(servers=1, standby=False, balancer=False) as team:
        texts = [f"commit {number}" for number in range(_COMMITS)]
        longest = 0.0
        for number, text in enumerate(texts):
            _answer(team, "conversation_search", {"query": text})  # the server has connected again
            team.proxy.fail_after(b"COMMIT", skip=number)
            began = time.monotonic()
            error = _answer(team, "record_turns", _turns(text))
            longest = max(longest, time.monotonic() - began)
            team.proxy.forget_traps()
            if not team.proxy.is_open:
                team.proxy.accept()
            if error:
                done.answers[_shortened(error)] = done.answers.get(_shortened(error), 0) + 1
                denied = "Nothing was written" in error and "may" not in error
                stored_now = text in stored(team.primary.url(DATABASE, "memory"), SPACES)
                done.require(not (denied and stored_now), "a client read that nothing was written, although it was")
                done.require(_answer(team, "record_turns", _turns(text)) is None, "the repeated call failed")
        done.compare(texts, stored(team.primary.url(DATABASE, "memory"), SPACES))
        done.known_s = round(longest, 1)
        done.require(longest <= DEADLINE + _SLACK, f"a client waited {done.known_s} s")


def stalled(done: Outcome) -> None:
    """The primary stops for 32 seconds; its connections stay open."""
    with fleet() as team, team.writing("stalled") as calls:
        calls.wait(time.monotonic(), acknowledged=True)
        began = time.monotonic()
        with team.primary.paused():
            time.sleep(1)
            done.look(team, "database", "answer", "memory")
            time.sleep(max(0.0, began + _STALL_SECONDS - time.monotonic()))
        calls.wait(time.monotonic(), acknowledged=True)
        calls.stopped = True
        done.note_calls(calls, team.primary, requests=2)  # it connects by the newer protocol, then by the older


def newer_schema(done: Outcome) -> None:
    """A newer version makes the database its own while a server of this version runs."""
    with fleet() as team:
        with team.writing("old") as calls:
            calls.wait(time.monotonic(), acknowledged=True)
        _rows(team.primary, "INSERT INTO migration VALUES ('9999-newer', 1, 9999)")
        began = time.monotonic()
        error = _answer(team, "record_turns", _turns("too old"))
        done.known_s = round(time.monotonic() - began, 1)
        done.answers = {_shortened(error): 1} if error else {}
        done.look(team)
        found = stored(team.primary.url(DATABASE, "memory"), SPACES)
        done.compare(calls.acknowledged, found)
        done.require("too old" not in found, "the old server wrote")
        done.require(error is not None, "the client read that it was stored")


def restored(done: Outcome) -> None:
    """The database is dumped and restored under another name."""
    with fleet(servers=1, standby=False, balancer=False) as team:
        server = team.primary
        _answer(team, "record_turns", _turns("kept"))
        dump = server.folder / "dump"
        to = ("-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres")
        run(server.binaries / "pg_dump", *to, "-Fc", "-f", dump, DATABASE)
        run(server.binaries / "createdb", *to, "-O", OWNER, "-T", "template0", "restored")
        run(server.binaries / "pg_restore", *to, "-d", "restored", dump)
        url = server.url("restored", OWNER)
        _, told = team.cli("migrate", "--store", url, "--grant", "memory")
        _, doctor = team.cli("doctor", MCP_MEMORY_STORE=server.url("restored", "memory"))
        done.seen = {"migrate": " ".join(told.split()), "doctor": _problems(doctor)}
        with closing(open_store(server.url("restored", "memory"))) as store:
            names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "jit")
            settings = store.read_home(lambda tx: [tx.all(f"SELECT current_setting('{name}')")[0][0] for name in names])
        done.seen["settings"] = ", ".join(f"{name} {value}" for name, value in zip(names, settings, strict=True))
        done.require("0" not in settings[:3], "a timeout is gone")
        done.require(settings[3] == "off", "jit is on")
        done.compare(["kept"], stored(server.url("restored", "memory"), SPACES))


def granted_beside_others(done: Outcome) -> None:
    """`migrate --grant` runs twice at once in a new database, in whose `public` another extension has a view."""
    with fleet(servers=0, standby=False) as team:
        url = team.primary.create_database(owner=OWNER).replace("memory@", f"{OWNER}@")
        with psycopg.connect(url.replace(f"{OWNER}@", "postgres@"), autocommit=True) as con:
            con.execute("CREATE EXTENSION vector")
            con.execute("CREATE EXTENSION pg_stat_statements")
        with ThreadPoolExecutor(2) as threads:
            both = [threads.submit(team.cli, "migrate", "--store", url, "--grant", "memory") for _ in range(2)]
            ended = [each.result() for each in both]
        for number, (code, told) in enumerate(ended):
            done.seen[f"migrate {number + 1}"] = f"exit code {code}: {' '.join(told.split())[-200:]}"
            done.require(code == 0, f"migrate ended with {code}")
            done.require("Traceback" not in told, "migrate ended with a traceback")


# --- the load balancer ------------------------------------------------------------------------------


def pages_behind_balancer(done: Outcome) -> None:
    """A reader signs in at `/ui` behind the shipped configuration of HAProxy, and opens thirty pages."""
    if not has_haproxy():
        done.skipped = "haproxy is not installed"
        return
    with fleet(servers=3, standby=False) as team:
        headers = {"Origin": team.url, "Connection": "close"}  # so that the balancer sees each request
        with httpx2.Client(base_url=team.url, headers=headers, follow_redirects=True, timeout=30) as browser:
            browser.post("/ui/.enter", data={"key": team.token})
            codes = Counter(browser.get("/ui/default/").status_code for _ in range(30))
        done.seen["pages"] = ", ".join(f"{count} × {code}" for code, count in sorted(codes.items()))
        done.require(codes == {200: 30}, f"{30 - codes[200]} pages were refused")


# --- helpers ----------------------------------------------------------------------------------------


def _problems(doctor: str) -> str:
    """Return what `doctor` complains about, on one line."""
    checks = [" ".join(check.split()) for check in re.split(r"^(?=ok |warn |fail )", doctor, flags=re.MULTILINE)]
    return " | ".join(c for c in checks if c and not c.startswith(("ok ", "warn embedder switched off"))) or "all ok"


def _turns(text: str) -> dict[str, Any]:
    return {"turns": [{"role": "user", "content": text}]}


def _answer(team: Fleet, tool: str, arguments: dict[str, Any], *, url: str = "") -> str | None:
    """Make a call to the first server; return the error that the client read, if any."""
    try:
        team.call(tool, arguments, url=url or team.addresses[0])
    except Unanswered as error:
        return str(error)
    return None


def _rows(server: PostgresServer, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement on the memory as an administrator, who sees all spaces."""
    with psycopg.connect(server.url(DATABASE), autocommit=True) as con:
        done = con.execute(statement.encode())
        return done.fetchall() if done.description else []


FAULTS: dict[str, Callable[[Outcome], None]] = {
    fault.__name__.replace("_", "-"): fault
    for fault in (
        *(standby_lost, wait_cancelled, wait_terminated, primary_restarted, promoted_as_documented, clock_fast),
        *(lost_after_commit, stalled, newer_schema, restored, granted_beside_others, pages_behind_balancer),
    )
}


def happen(name: str) -> Outcome:
    """Let a fault happen, and return what it did."""
    fault = FAULTS[name]
    done = Outcome(name, " ".join((fault.__doc__ or "").split()))
    try:
        fault(done)
    except TimeoutError as error:
        done.wrong.append(str(error))
    return done


def lines(done: Outcome) -> list[str]:
    """Return an outcome as text for people."""
    if done.skipped:
        return [f"{done.fault}: skipped, {done.skipped}"]
    known = "" if done.known_s is None else f", a client knows within {done.known_s} s"
    return [
        f"{done.fault}: {done.acknowledged:,} acknowledged, {done.lost} lost, {done.doubled} doubled{known}",
        f"    {done.what}",
        *(f"    {count} × {answer}" for answer, count in done.answers.items()),
        *(f"    {name}: {said[:400]}" for name, said in done.seen.items()),
        *(f"    WRONG: {what}" for what in done.wrong),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.faults", description="What faults of a team's memory do.")
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"some of: {', '.join(FAULTS)} [default: all]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes there")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.faults) - set(FAULTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    outcomes: list[Outcome] = []
    for name in asked.faults or FAULTS:
        outcomes.append(happen(name))
        print("\n".join(lines(outcomes[-1])), flush=True)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(done) for done in outcomes], indent=1) + "\n", encoding="utf-8")
    sys.exit(1 if any(done.wrong for done in outcomes) else 0)


if __name__ == "__main__":
    main()
